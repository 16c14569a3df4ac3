"""Links to topics and subscriptions: what is refused and how, and what a copy looks like (contract 3.1, 5, 9)."""

import time

from peer import check_kind
from report import ask, check, context
from talk import (ACCEPTED, ANNOTATIONS, APPLICATION, BATCH_FORMAT, DATA, DEFERRED, HEADER, Message, Talk, check_array,
                  message, now_ms, rejected, with_queue)
from transfers import refused_send
from wire.frames import frame_text
from wire.values import (NULL, array, binary, boolean, described, encode, int_, list_, long_, map_, string, text,
                         timestamp, uint, ulong, uuid)

NOT_ALLOWED, NOT_FOUND = "amqp:not-allowed", "amqp:not-found"
MESSAGE_NOT_FOUND = "com.microsoft:message-not-found"


def target(address):
    return described(ulong(0x29), list_(string(address)))


def sender_refused(talk, address, *conditions):
    handle = talk.attach(False, described(ulong(0x28), list_(string("raw"))), target(address), (2, 0))
    return talk.refused(handle, *conditions)


def receiver_refused(talk, address, *conditions, filter_=None):
    return talk.refused(talk.ask_receiver(address, filter_=filter_), *conditions)


def check_not_found(description, name):
    """JavaScript and Java look for this text (contract 3.6)."""
    check(f"The messaging entity '{name}' could not be found" in description, f"another text: {description}")


def peek(talk, entity):
    reply = talk.ask(entity, "peek-message", ("from-sequence-number", long_(1)), ("message-count", int_(50)))
    if reply.status == 204:
        return []
    return [Message({k.value: v for k, v in entry.value}["message"].value) for entry in reply.ok()["messages"].value]


@with_queue("topic/refusals")
def refusals(talk, topic):
    subscription = f"{topic}/Subscriptions/a"
    receiver_refused(talk, topic, NOT_ALLOWED)
    receiver_refused(talk, topic.upper(), NOT_ALLOWED)
    for address in (subscription, f"{subscription}/$DeadLetterQueue", f"{subscription}/$Transfer/$DeadLetterQueue"):
        sender_refused(talk, address, NOT_ALLOWED)
    receiver_refused(talk, subscription, NOT_ALLOWED, filter_=string("s"))  # it has no sessions
    missing = f"{topic}/Subscriptions/no-such"
    check_not_found(receiver_refused(talk, missing, NOT_FOUND), missing)
    check_not_found(sender_refused(talk, missing, NOT_FOUND), missing)
    for address in (f"{topic}/Subscriptions", f"{topic}/$DeadLetterQueue", f"{missing}/$DeadLetterQueue",
                    "no-such-topic/Subscriptions/a", f"{subscription}/Subscriptions/a", f"{topic}/a"):
        receiver_refused(talk, address, NOT_FOUND)
    sender_refused(talk, f"{topic}/key", NOT_FOUND)  # a topic has no routing keys
    receiver_refused(talk, f"{missing}/$management", NOT_FOUND)
    talk.put(topic, message(b"still here"))
    check(talk.take(talk.receiver(subscription))[0].body == b"still here", "another body")


@with_queue("topic/attach")
def attach(talk, topic):
    host, subscription = f"localhost:{talk.broker['port']}", f"{topic}/Subscriptions/a"
    for address in (topic, f"/{topic}", topic.upper(), f"amqp://{host}/{topic}", f"amqps://{host}/{topic}"):
        handle = talk.attach(False, described(ulong(0x28), list_(string("raw"))), target(address), (2, 0))
        got = talk.attached(handle)
        check(got.field(6).kind == "described" and got.field(6).value[1].value[0] == string(address),
              f"the target is not echoed: {frame_text(got)}")
        check(got.field(10) == ulong(1048576), f"max-message-size {text(got.field(10))}")
        check_kind(got.field(13), "map", "properties")
        talk.frame("flow")
        talk.detach(handle)
    for address in (subscription, f"/{subscription}", subscription.replace("/", "%2F"), subscription.lower(),
                    f"amqps://{host}/{subscription}", f"{subscription}/$DeadLetterQueue",
                    f"{subscription}/$deadletterqueue", f"{subscription}/$Transfer/$DeadLetterQueue"):
        handle = talk.ask_receiver(address)
        got = talk.attached(handle)
        check(got.field(5).kind == "described" and got.field(5).value[1].value[0] == string(address),
              f"the source is not echoed: {frame_text(got)}")
        check(got.field(9).value == 0, f"initial-delivery-count {text(got.field(9))}")
        check_kind(got.field(13), "map", "properties")
        talk.detach(handle)


@with_queue("topic/delivery")
def delivery(talk, topic):
    talk.put(topic, message(b"first", message_id="m1", subject="s", properties={"n": int_(1)},
                            annotations={"x-own": string("kept")}), message(b"second"))
    for name in ("a", "b"):
        address = f"{topic}/Subscriptions/{name}"
        before = now_ms()
        got = talk.take(talk.receiver(address), 2)
        for number, one in enumerate(got, 1):
            annotations = one.map(ANNOTATIONS)
            check(annotations["x-opt-sequence-number"] == long_(number), "another sequence number")
            check(annotations["x-opt-enqueue-sequence-number"] == long_(number), "another number of the topic")
            check_kind(annotations["x-opt-enqueued-time"], "timestamp", "x-opt-enqueued-time")
            until = check_kind(annotations["x-opt-locked-until"], "timestamp", "x-opt-locked-until")
            check(before + 59000 <= until <= now_ms() + 61000, f"locked until {until}")
            check(not {"x-exchange", "x-routing-key"} & set(annotations), f"annotations of an exchange: {annotations}")
            check(one.count == 0, f"delivery-count {one.count}")
            check(len(one.tag) == 16, f"delivery-tag {one.tag.hex()}")
            check(one.order[0] == HEADER, f"sections {one.order}")
        check(got[0].map(ANNOTATIONS)["x-own"] == string("kept"), "the sender's own annotation is lost")
        check(got[0].map(APPLICATION) == {"n": int_(1)}, "another application property")
        talk.settled(ACCEPTED, got[0])
        talk.settled(rejected(), got[1])
        check(peek(talk, address) == [], "something is left")
        [letter] = talk.take(talk.receiver(f"{address}/$DeadLetterQueue"))
        check((letter.body, letter.number) == (b"second", 2), f"dead letter {letter.body} {letter.number}")


@with_queue("topic/letter-case")
def letter_case(talk, topic):
    talk.put(topic.title(), message(b"m"))
    for address in (f"{topic.upper()}/SUBSCRIPTIONS/AUDIT", f"{topic}/subscriptions/audit"):
        handle = talk.receiver(address)
        [got] = talk.take(handle)
        check(got.body == b"m", "another body")
        talk.settled(described(ulong(0x26), list_()), got)
        talk.detach(handle)
    check(len(peek(talk, f"{topic}/subscriptions/aUDIT")) == 1, "peek with another case")


@with_queue("topic/session-filter")
def session_filter(talk, topic):
    talk.put(topic, message(b"x", session="x"), message(b"none"))
    address = f"{topic}/Subscriptions/s"
    receiver_refused(talk, address, NOT_ALLOWED)
    receiver_refused(talk, f"{topic}/Subscriptions/p", NOT_ALLOWED, filter_=string("x"))
    handle = talk.ask_receiver(address, filter_=NULL, timeout_ms=3000)
    got = talk.attached(handle)
    source = got.field(5)
    check(source.kind == "described", f"refused: {frame_text(got)}")
    filters = {k.value: v for k, v in source.value[1].value[7].value}
    check(filters == {"com.microsoft:session-filter": string("x")}, f"filter {filters}")
    properties = {k.value: v for k, v in got.field(13).value}
    check_kind(properties["com.microsoft:locked-until-utc"], "long", "locked-until-utc")
    check(talk.take(handle)[0].body == b"x", "another body")
    with Talk() as other:
        receiver_refused(other, address, "com.microsoft:session-cannot-be-locked", filter_=string("x"))
    body = talk.ask(address, "get-message-sessions", ("last-updated-time", timestamp(253402300800000)),
                    ("skip", int_(0)), ("top", int_(10))).ok()
    check(check_array(body["sessions-ids"], "string") == ["x"], f"sessions {text(body['sessions-ids'])}")
    [letter] = talk.take(talk.receiver(f"{address}/$DeadLetterQueue"))  # it has no sessions
    check(letter.body == b"none", "another dead letter")
    properties = letter.map(APPLICATION)
    check(properties["DeadLetterReason"] == string("Session ID is null."), f"{properties}")
    check(properties["DeadLetterErrorDescription"] == string(
        "Session enabled entity doesn't allow a message whose session identifier is null."), f"{properties}")


@with_queue("topic/management")
def management(talk, topic):
    subscription = f"{topic}/Subscriptions/a"
    for node in (topic, subscription, f"{subscription}/$DeadLetterQueue"):
        talk.ask(node, "no-such-operation").failed(501, "amqp:not-implemented")
    talk.ask(topic, "peek-message", ("from-sequence-number", long_(1)), ("message-count", int_(1))).failed(
        400, NOT_ALLOWED)
    due = message(b"m", annotations={"x-opt-scheduled-enqueue-time": timestamp(now_ms() + 60000)})
    talk.ask(subscription, "schedule-message", ("messages", list_(map_(
        (string("message-id"), string("i")), (string("message"), binary(due)))))).failed(400, NOT_ALLOWED)
    talk.put(topic, message(b"m"))
    [got] = talk.take(talk.receiver(subscription))
    tokens = ("lock-tokens", array("uuid", uuid(got.token)))
    expirations = talk.ask(subscription, "renew-lock", tokens).ok()["expirations"]
    check(len(check_array(expirations, "timestamp")) == 1, text(expirations))
    talk.ask(f"{topic}/Subscriptions/b", "renew-lock", tokens).failed(410, "com.microsoft:message-lock-lost")
    talk.ask(subscription, "update-disposition", tokens, ("disposition-status", string("suspended")),
             ("deadletter-reason", string("r")), ("deadletter-description", string("d"))).ok()
    check(peek(talk, subscription) == [], "not dead-lettered")
    [letter] = peek(talk, f"{subscription}/$DeadLetterQueue")
    check(letter.map(APPLICATION) == {"DeadLetterReason": string("r"), "DeadLetterErrorDescription": string("d")},
          f"{letter.map(APPLICATION)}")
    check([m.body for m in peek(talk, f"{topic}/Subscriptions/b")] == [b"m"], "the other copy")


@with_queue("topic/schedule")
def schedule(talk, topic):
    a, due = f"{topic}/Subscriptions/a", now_ms() + 1500
    encoded = [message(b"%d" % n, message_id=f"s{n}", annotations={"x-opt-scheduled-enqueue-time": timestamp(due)})
               for n in range(3)]
    body = talk.ask(topic, "schedule-message", ("messages", list_(*(
        map_((string("message-id"), string(f"s{n}")), (string("message"), binary(m)))
        for n, m in enumerate(encoded))))).ok()
    numbers = check_array(body["sequence-numbers"], "long")
    check(len(set(numbers)) == 3, f"numbers {numbers}")
    check(peek(talk, a) == [], "copies before it is due")

    def cancel(*which):
        return talk.ask(topic, "cancel-scheduled-message",
                        ("sequence-numbers", array("long", *(long_(n) for n in which))))

    check(not cancel(numbers[0]).ok(), "the body is not empty")
    cancel(numbers[0]).failed(404, MESSAGE_NOT_FOUND)
    cancel(numbers[1], numbers[0]).failed(404, MESSAGE_NOT_FOUND)  # nothing is cancelled then
    handle = talk.receiver(a)
    got = talk.take(handle, 2)
    check(time.time() * 1000 >= due, "before its time")
    check([m.body for m in got] == [b"1", b"2"], f"bodies {[m.body for m in got]}")
    for one in got:
        annotations = one.map(ANNOTATIONS)
        check(annotations["x-opt-scheduled-enqueue-time"] == timestamp(due), "another scheduled time")
        check(annotations["x-opt-enqueued-time"].value >= due, "enqueued before it was due")
        check(annotations["x-opt-message-state"] == int_(0), f"state {text(annotations['x-opt-message-state'])}")
    check([m.number for m in got] == [1, 2], "numbers in the subscription")
    cancel(numbers[2]).failed(404, MESSAGE_NOT_FOUND)
    check([m.body for m in peek(talk, f"{topic}/Subscriptions/b")] == [b"1", b"2"], "the other subscription")


def bodies(talk, entity):
    return [m.body for m in peek(talk, entity)]


def reasons(talk, entity):
    """Body, reason and description of the dead letters."""
    return [(m.body, *(m.map(APPLICATION)[f"DeadLetter{what}"].value for what in ("Reason", "ErrorDescription")))
            for m in peek(talk, f"{entity}/$DeadLetterQueue")]


@with_queue("topic/status")
def status(talk, topic):
    talk.put(topic, message(b"m"))
    check(bodies(talk, f"{topic}/Subscriptions/open") == [b"m"], "the open one")
    closed = f"{topic}/Subscriptions/closed"
    receiver_refused(talk, closed, "com.microsoft:entity-disabled")
    for request in (("peek-message", ("from-sequence-number", long_(1)), ("message-count", int_(1))),
                    ("add-rule", ("rule-name", string("r")), ("rule-description", map_(
                        (string("sql-filter"), map_((string("expression"), string("1=1")))))))):
        talk.ask(closed, *request).failed(400, "com.microsoft:entity-disabled")
    deaf = f"{topic}/Subscriptions/deaf"
    check(bodies(talk, deaf) == [], "a copy for one that takes none")
    talk.credit(talk.receiver(deaf), 1)
    talk.silent(0.3)


@with_queue("topic/disabled")
def disabled(talk, topic):
    gone = "com.microsoft:entity-disabled"
    sender_refused(talk, topic, gone)
    later = message(b"later", annotations={"x-opt-scheduled-enqueue-time": timestamp(now_ms() + 3600000)})
    talk.ask(topic, "schedule-message", ("messages", list_(map_(
        (string("message-id"), string("i")), (string("message"), binary(later)))))).failed(400, gone)
    talk.credit(talk.receiver(f"{topic}/Subscriptions/a"), 1)  # its subscriptions are received from as before
    talk.silent(0.3)


@with_queue("topic/evaluation")
def evaluation(talk, topic):
    talk.put(topic, message(b"0", properties={"quantity": int_(0)}), message(b"10", properties={"quantity": int_(10)}))
    lenient, strict = f"{topic}/Subscriptions/lenient", f"{topic}/Subscriptions/strict"
    check(bodies(talk, lenient) == [b"0", b"10"], f"lenient {bodies(talk, lenient)}")
    check(reasons(talk, lenient) == [], f"lenient {reasons(talk, lenient)}")
    check(bodies(talk, strict) == [b"0", b"10"], f"strict {bodies(talk, strict)}")  # another rule matched
    [(body, reason, why)] = reasons(talk, strict)
    check((body, reason) == (b"0", "FilterException") and "b-division" in why, f"strict {body} {reason} {why}")
    action = f"{topic}/Subscriptions/action"
    [copy] = peek(talk, action)
    check(copy.map(APPLICATION) == {"quantity": int_(10), "x": long_(0), "RuleName": string("fails")},
          f"{copy.map(APPLICATION)}")
    [(body, reason, why)] = reasons(talk, action)
    check((body, reason) == (b"0", "RuleActionException") and "fails" in why, f"action {body} {reason} {why}")
    check(bodies(talk, f"{topic}/Subscriptions/other") == [b"0", b"10"], "the other one")
    return why


@with_queue("topic/max-delivery")
def max_delivery(talk, topic):
    talk.put(topic, message(b"unwanted"))
    address = f"{topic}/Subscriptions/a"
    handle = talk.receiver(address)
    for count in range(2):
        [got] = talk.take(handle)
        check(got.count == count, f"delivery-count {got.count}")
        talk.settled(described(ulong(0x27), list_(boolean(True), boolean(False))), got)
    check(bodies(talk, address) == [], "still there")
    check(reasons(talk, address) == [(b"unwanted", "MaxDeliveryCountExceeded",
                                      "Message could not be consumed after 2 delivery attempts.")], "the reason")
    check(bodies(talk, f"{topic}/Subscriptions/b") == [b"unwanted"], "the other copy")


@with_queue("topic/forward-dead-letters")
def forward_dead_letters(talk, topic):
    address = f"{topic}/Subscriptions/a"
    talk.put(topic, message(b"m1"), message(b"m2"))
    for got in talk.take(talk.receiver(address), 2):
        talk.settled(rejected(), got)
    got = talk.take(talk.receiver(context["destinations"]["topic/forward-dead-letters"]), 2)
    check([(m.body, m.number) for m in got] == [(b"m1", 1), (b"m2", 2)], "forwarded")
    source = got[0].map(ANNOTATIONS)["x-opt-deadletter-source"]
    check(source == string(address), f"x-opt-deadletter-source {text(source)}")
    receiver_refused(talk, f"{address}/$DeadLetterQueue", NOT_ALLOWED)
    check(bodies(talk, f"{topic}/Subscriptions/b") == [b"m1", b"m2"], "the other copies")


@with_queue("topic/chain")
def chain(talk, topic):
    """Queue, topic, subscription with an action, queue: the last one has the changes."""
    talk.put(context["sources"]["topic/chain"], message(b"first", message_id="i", subject="s"))
    talk.put(topic, message(b"second"))
    got = talk.take(talk.receiver(context["destinations"]["topic/chain"]), 2)
    check([(m.body, m.number) for m in got] == [(b"first", 1), (b"second", 2)], "forwarded")
    for one in got:
        check(one.map(APPLICATION) == {"hop": string("a"), "RuleName": string("mark")}, f"{one.map(APPLICATION)}")
        check(one.count == 0, f"delivery-count {one.count}")
    check(got[0].sections[0x73].value[0] == string("i") and got[0].sections[0x73].value[3] == string("s"), "properties")
    check(bodies(talk, f"{topic}/Subscriptions/b") == [b"first", b"second"], "the other subscription")


@with_queue("topic/shorter-life")
def shorter_life(talk, topic):
    """The shortest of the message's, the topic's and the subscription's time to live counts."""
    talk.put(topic, message(b"m"), message(b"long", ttl=3600000))
    for name in ("a", "b"):
        address = f"{topic}/Subscriptions/{name}"
        got = talk.take(talk.receiver(f"{address}/$DeadLetterQueue"), 2)
        check([m.body for m in got] == [b"m", b"long"], f"'{name}' {[m.body for m in got]}")
        check(got[0].map(APPLICATION)["DeadLetterReason"] == string("TTLExpiredException"), "the reason")
        check(bodies(talk, address) == [], f"'{name}' has something left")


@with_queue("topic/rights")
def rights(talk, topic):
    """Send for the topic, Listen for its subscriptions and their rules (2.6, 6.3)."""
    unauthorized = "amqp:unauthorized-access"
    subscription = f"{topic}/Subscriptions/a"
    top = (("top", int_(10)), ("skip", int_(0)))
    messages = ("messages", list_(map_((string("message-id"), string("i")), (string("message"), binary(message(
        b"later", annotations={"x-opt-scheduled-enqueue-time": timestamp(now_ms() + 3600000)}))))))
    with Talk(rule="SendOnly", key="send-only-key") as sender:
        sender.put(topic, message(b"m"))
        receiver_refused(sender, subscription, unauthorized)
        sender.ask(subscription, "enumerate-rules", *top).failed(401, unauthorized)
        sender.ask(topic, "schedule-message", messages).ok()
    with Talk(rule="ListenOnly", key="listen-only-key") as listener:
        sender_refused(listener, topic, unauthorized)
        listener.ask(topic, "schedule-message", messages).failed(401, unauthorized)
        check(len(listener.ask(subscription, "enumerate-rules", *top).ok()["rules"].value) == 1, "the rules")
        listener.ask(subscription, "remove-rule", ("rule-name", string("$Default"))).ok()
        [got] = listener.take(listener.receiver(subscription))
        listener.settled(ACCEPTED, got)


@with_queue("topic/session-by-action")
def session_by_action(talk, topic):
    """An action decides the session of its copy (sql-filter contract 6)."""
    talk.put(topic, message(b"1", session="sent", properties={"color": string("red")}),
             message(b"2", properties={"color": string("red")}), message(b"3", session="sent"))
    address = f"{topic}/Subscriptions/s"
    handle = talk.ask_receiver(address, filter_=string("red"))
    talk.attached(handle)
    got = talk.take(handle, 2)
    check([m.body for m in got] == [b"1", b"2"], f"{[m.body for m in got]}")
    check(all(m.sections[0x73].value[10] == string("red") for m in got), "the session id of the copies")
    [(body, reason, _)] = reasons(talk, address)
    check((body, reason) == (b"3", "Session ID is null."), f"{body} {reason}")


@with_queue("topic/sends")
def sends(talk, topic):
    """What a topic takes and refuses, and that nothing refused reaches a subscription."""
    a, handle = f"{topic}/Subscriptions/a", talk.sender(topic)
    refused_send(talk, handle, message(ttl=0), "com.microsoft:argument-out-of-range")
    refused_send(talk, handle, message(message_id="x" * 129), "com.microsoft:argument-out-of-range")
    refused_send(talk, handle, b"\x00\x53\x75\xa0\x20cut short", "amqp:decode-error")
    refused_send(talk, handle, message(b"m"), "amqp:not-implemented", 7)
    refused_send(talk, handle, message(session="s", annotations={"x-opt-partition-key": string("k")}), NOT_ALLOWED)
    later = {"x-opt-scheduled-enqueue-time": timestamp(now_ms() + 1000)}
    inner = [message(b"now"), message(b"later", annotations=later), message(b"now too")]
    batch = b"".join(encode(described(ulong(DATA), binary(m))) for m in inner)
    check(talk.outcome(talk.post(handle, batch, BATCH_FORMAT)) == ACCEPTED, "the batch was not accepted")
    spoiled = batch + encode(described(ulong(DATA), binary(message(b"bad", ttl=0))))
    refused_send(talk, handle, spoiled, "com.microsoft:argument-out-of-range", BATCH_FORMAT)
    talk.post(handle, message(b"pre-settled"), settled=True)
    check(talk.outcome(talk.post(handle, message(b"last"))) == ACCEPTED, "the link is not usable any more")
    got = talk.take(talk.receiver(a), 5)
    check([m.body for m in got] == [b"now", b"now too", b"pre-settled", b"last", b"later"], f"{[m.body for m in got]}")
    check([m.number for m in got] == [1, 2, 3, 4, 5], f"{[m.number for m in got]}")
    for one in got[:2]:
        talk.settled(DEFERRED, one)
    talk.ask(a, "batch-delete-messages", ("message-count", int_(10)), ("enqueued-time-utc", timestamp(
        now_ms() + 60000))).failed(204, MESSAGE_NOT_FOUND)  # all are locked or deferred
    numbers = ("sequence-numbers", array("long", long_(got[1].number), long_(got[0].number)))
    body = talk.ask(a, "receive-by-sequence-number", numbers, ("receiver-settle-mode", uint(0))).ok()
    check(len(body["messages"].value) == 2, "the deferred ones")
    check(bodies(talk, a) == [b"pre-settled", b"last", b"later"], f"{bodies(talk, a)}")


@with_queue("topic/fragmented-delivery")
def fragmented_delivery(talk, topic):
    body = bytes(range(256)) * 240
    with Talk(frame_max=512) as narrow:
        talk.put(topic, message(body, message_id="large"))
        for name in ("a", "b"):
            [got] = narrow.take(narrow.receiver(f"{topic}/Subscriptions/{name}"))
            check(got.body == body, "the body came back different")
            check(len(got.frames) > 120, f"{len(got.frames)} frames")
            narrow.settled(ACCEPTED, got)
            check(peek(narrow, f"{topic}/Subscriptions/{name}") == [], "something is left")


def stored(talk, entity):
    """What the entity has, as far as a restart must not change it."""
    return [(m.body, m.number, m.map(APPLICATION), m.map(ANNOTATIONS)["x-opt-message-state"].value,
             m.map(ANNOTATIONS)["x-opt-enqueued-time"].value, m.map(ANNOTATIONS).get("x-routing-key"))
            for m in peek(talk, entity)]


def without(body, messages):
    """Of what was stored. A restart may take longer than it is until a scheduled message is due."""
    return [m for m in messages if m[0] != body]


@with_queue("topic/restart")
def restart(talk, topic):
    a, b, c = (f"{topic}/Subscriptions/{name}" for name in "abc")

    def rule(entity, name, expression, *action):
        talk.ask(entity, "add-rule", ("rule-name", string(name)), ("rule-description", map_(
            (string("sql-filter"), map_((string("expression"), string(expression)))),
            *((string("sql-rule-action"), map_((string("expression"), string(x)))) for x in action)))).ok()

    def rules(by):
        return [by.ask(entity, "enumerate-rules", ("top", int_(10)), ("skip", int_(0))).ok()["rules"]
                for entity in (a, b, c)]

    rule(a, "r", "n = 1", "SET n = 2")
    rule(b, "red", "color = 'red'")
    talk.ask(b, "remove-rule", ("rule-name", string("$Default"))).ok()
    talk.put(topic, message(b"m1", message_id="1", properties={"n": int_(1)}),
             message(b"m2", message_id="2", properties={"color": string("red")}))
    first, second = talk.take(talk.receiver(c), 2)
    talk.settled(rejected(), first)
    talk.settled(described(ulong(0x27), list_(boolean(False), boolean(True))), second)
    due = now_ms() + 4000
    talk.ask(topic, "schedule-message", ("messages", list_(map_(
        (string("message-id"), string("3")), (string("message"), binary(message(
            b"m3", message_id="3", annotations={"x-opt-scheduled-enqueue-time": timestamp(due)}))))))).ok()
    dead = f"{c}/$DeadLetterQueue"

    def kept(by):
        return [rules(by), *(without(b"m3", stored(by, entity)) for entity in (a, b, c, dead))]

    before = kept(talk)
    check([m[:2] for m in before[1]] == [(b"m1", 1), (b"m1", 2), (b"m2", 3)], f"{before[1]}")
    talk.socket.close()  # a stop waits a while for those who are connected
    ask("stop", "queues")
    ask("start", "queues")
    with Talk() as again:
        for what, was, is_now in zip(("rules", "a", "b", "c", "dead letters"), before, kept(again)):
            check(was == is_now, f"{what} before {was}, after {is_now}")
        again.put(topic, message(b"m1 again", message_id="1"), message(b"m4", message_id="4",
                                                                       properties={"color": string("red")}))
        check([m[:2] for m in stored(again, b)] == [(b"m2", 1), (b"m4", 2)], f"{stored(again, b)}")
        got = again.take(again.receiver(a), 5)  # the scheduled one at its time, whenever that was
        check(now_ms() >= due, "before its time")
        check([m.number for m in got] == [1, 2, 3, 4, 5], f"{[m.number for m in got]}")
        check([m.body for m in got[:3]] == [b"m1", b"m1", b"m2"], f"{[m.body for m in got]}")
        check(sorted(m.body for m in got[3:]) == [b"m3", b"m4"], f"{[m.body for m in got]}")
        late = next(m for m in got if m.body == b"m3")
        check(late.map(ANNOTATIONS)["x-opt-enqueued-time"].value >= due, "it was there before its time")
