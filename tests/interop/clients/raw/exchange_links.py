"""Links to exchanges: addresses and keys, copies, batches and the prefetch limit (exchanges contract 2.2 to 2.5)."""

import struct

from report import ask, check, context
from rule_requests import add, double, remove, sql
from runner.topics import PATTERNS
from talk import (ACCEPTED, ANNOTATIONS, APPLICATION, BATCH_FORMAT, DATA, PROPERTIES, RELEASED, Delivery, Talk,
                  check_array, message, now_ms, with_queue)
from topic_links import (NOT_ALLOWED, NOT_FOUND, check_not_found, peek, receiver_refused, sender_refused, stored,
                         without)
from transfers import refused_send, rich_message
from wire.values import (NULL, Value, array, binary, boolean, described, encode, int_, list_, long_, map_, string,
                         symbol, text, timestamp, uint, ulong)

INVALID = "amqp:invalid-field"


def below(exchange, name):
    return f"{exchange}/Subscriptions/{name}"


def bodies(talk, entity):
    return [m.body for m in peek(talk, entity)]


@with_queue("exchange/refusals")
def refusals(talk, exchange):
    receiver_refused(talk, exchange, NOT_ALLOWED)
    receiver_refused(talk, f"/exchanges/{exchange}", NOT_ALLOWED)
    receiver_refused(talk, f"{exchange}/red", NOT_ALLOWED, NOT_FOUND)
    sender_refused(talk, below(exchange, "red"), NOT_ALLOWED)
    sender_refused(talk, f"/queues/{below(exchange, 'red').replace('/', '%2F')}", NOT_ALLOWED)
    missing = below(exchange, "no-such")
    check_not_found(receiver_refused(talk, missing, NOT_FOUND), missing)
    for address in (f"{exchange}/$key", f"{exchange}/subscriptions", f"{exchange}/SUBSCRIPTIONS", f"{exchange}/a/b",
                    f"no-such/{exchange}", "/exchange/no-such/key", "/exchanges/no-such"):
        sender_refused(talk, address, NOT_FOUND)
    for address in (f"/exchanges/{exchange}/a/b", f"/exchanges/{exchange}/a/", f"/queues/{exchange}/a",
                    f"{exchange}/{'k' * 1025}", f"/exchanges/{exchange}/{'k' * 1025}"):
        sender_refused(talk, address, INVALID)
    red = below(exchange, "red")  # an exchange has no rules
    add(talk, red, "r", sql("1=1")).failed(400, NOT_ALLOWED)
    remove(talk, red, "$Default").failed(400, NOT_ALLOWED)
    reply = talk.ask(red, "enumerate-rules", ("top", int_(10)), ("skip", int_(0)))
    check(reply.status == 204 and reply.empty, f"enumerate-rules answered {reply.status}")
    talk.put(f"{exchange}/red", message(b"still here"))
    check(bodies(talk, below(exchange, "red")) == [b"still here"], "nothing came")


@with_queue("exchange/delivery")
def delivery(talk, exchange):
    forged = {"x-exchange": string("other"), "x-routing-key": binary(b"other"), "x-own": string("kept")}
    talk.put(exchange, message(b"0", subject="a"), message(b"1", subject="b.c", annotations=forged), message(b"2"))
    talk.put(f"{exchange}/b.%C5%BC", message(b"3", subject="s"))
    got = talk.take(talk.receiver(below(exchange, "all")), 4)
    for number, (one, key) in enumerate(zip(got, ("a", "b.c", "", "b.ż"))):
        annotations = one.map(ANNOTATIONS)
        check(one.body == b"%d" % number, f"message {number} has body {one.body}")
        check(annotations["x-exchange"] == string(exchange), f"x-exchange {text(annotations['x-exchange'])}")
        check(annotations["x-routing-key"] == string(key), f"x-routing-key {text(annotations['x-routing-key'])}")
        keys = [k for k, _ in one.sections[ANNOTATIONS].value]
        check(all(k.kind == "symbol" for k in keys) and len(set(map(text, keys))) == len(keys), f"keys {keys}")
        check(one.number == number + 1, f"number {one.number}")
        check(APPLICATION not in one.sections, "routing added application-properties")
        talk.settled(ACCEPTED, one)
    check(got[1].map(ANNOTATIONS)["x-own"] == string("kept"), "the sender's own annotation is lost")
    # A message without an id gets one, as everywhere; nothing else is added.
    check(all(v == NULL for v in got[2].sections[PROPERTIES].value[1:]), f"added: {got[2].sections[PROPERTIES]}")
    copies = talk.take(talk.receiver(below(exchange, "b")), 2)
    check([(m.body, m.number) for m in copies] == [(b"1", 1), (b"3", 2)], "the other subscription")
    numbers = [m.map(ANNOTATIONS)["x-opt-enqueue-sequence-number"] for m in copies]
    check(numbers == [long_(2), long_(4)], f"numbers of the exchange: {numbers}")


@with_queue("exchange/long-key")
def long_key(talk, exchange):
    handle = talk.sender(exchange)
    refused_send(talk, handle, message(b"too long", subject="k" * 1025), INVALID)
    refused_send(talk, handle, message(b"too long in bytes", subject="ż" * 513), INVALID)
    for key in ("k" * 1024, "ż" * 512, "a..b", " any text / %41 "):
        check(talk.outcome(talk.post(handle, message(key.encode()[:10], subject=key))) == ACCEPTED, "not accepted")
    address = below(exchange, "all")
    got = talk.take(talk.receiver(address), 4)
    check(got[0].map(ANNOTATIONS)["x-routing-key"] == string("k" * 1024), "the longest key")
    check(got[3].map(ANNOTATIONS)["x-routing-key"] == string(" any text / %41 "), "a subject is not decoded")


@with_queue("exchange/batch")
def batch(talk, exchange):
    inner = [message(b"%d" % n, subject=key) for n, key in enumerate(("red", "blue", "green", "red"))]
    payload = b"".join(encode(described(ulong(DATA), binary(m))) for m in inner)
    handle = talk.sender(exchange)
    check(talk.outcome(talk.post(handle, payload, BATCH_FORMAT)) == ACCEPTED, "not accepted")
    keyed = talk.sender(f"{exchange}/blue")
    check(talk.outcome(talk.post(keyed, payload, BATCH_FORMAT)) == ACCEPTED, "not accepted by key")
    check(bodies(talk, below(exchange, "red")) == [b"0", b"3"], f"{bodies(talk, below(exchange, 'red'))}")
    check(bodies(talk, below(exchange, "blue")) == [b"1", b"0", b"1", b"2", b"3"],
          f"{bodies(talk, below(exchange, 'blue'))}")


@with_queue("exchange/bytes-preserved")
def bytes_preserved(talk, exchange):
    rich = rich_message()
    own = encode(described(ulong(ANNOTATIONS), map_((symbol("x-own"), list_(boolean(True), string("kept"))))))
    talk.put(exchange, own + rich)
    [got] = talk.take(talk.receiver(below(exchange, "a")))
    payload = b"".join(f.payload for f in got.frames)
    check(payload.endswith(rich), f"the bare message changed: {payload.hex()}")
    check(got.map(ANNOTATIONS)["x-own"] == list_(boolean(True), string("kept")), "the sender's own annotation")


def settle_for_next(talk, handle, held):
    """Completes what is held; the answer and the next delivery come in either order."""
    talk.settle(ACCEPTED, held.id)
    came = sorted((talk.item() for _ in range(2)), key=lambda got: got.name)
    check([got.name for got in came] == ["disposition", "transfer"], f"after one was settled: {came}")
    talk.received[handle] += 1
    return Delivery(came[1:])


@with_queue("exchange/prefetch")
def prefetch(talk, exchange):
    talk.put(exchange, *(message(b"%d" % n) for n in range(6)))
    handle = talk.receiver(below(exchange, "two"))
    talk.credit(handle, 10)
    first, second = talk.delivery(), talk.delivery()
    check((first.body, second.body) == (b"0", b"1"), "another order")
    talk.silent()  # credit is left, but the link holds two
    third = settle_for_next(talk, handle, first)
    check(third.body == b"2", f"after one was settled: {third.body}")
    talk.silent(0.3)
    talk.credit(handle, 5, drain=True)
    flow = talk.frame("flow")
    check(flow.field(6).value == 0 and flow.field(8) == boolean(True), f"the drain was not answered: {flow}")
    check(flow.field(5).value == talk.received[handle] + 5, f"delivery-count {text(flow.field(5))}")
    talk.settled(ACCEPTED, second)
    talk.silent(0.3)  # no credit, no transfer
    settled = talk.receiver(below(exchange, "two"), modes=(1, 0))
    check([m.body for m in talk.take(settled, 3)] == [b"3", b"4", b"5"], "a pre-settled link has no limit")


@with_queue("exchange/prefetch-size")
def prefetch_size(talk, exchange):
    talk.put(exchange, *(message(b"%c" % letter * size, message_id="i") for letter, size in zip(
        b"abcdef", (600, 600, 50, 5000, 10, 10))))
    handle = talk.receiver(below(exchange, "a"))
    talk.credit(handle, 10)
    first = talk.delivery()
    check(first.body[:1] == b"a", "another order")
    talk.silent(0.3)  # the next one does not fit, and the small one behind it has to wait
    talk.settle(ACCEPTED, first.id)
    came = sorted((talk.item() for _ in range(3)), key=lambda got: got.name)
    check([got.name for got in came] == ["disposition", "transfer", "transfer"], f"after the first: {came}")
    talk.received[handle] += 2
    second, third = Delivery(came[1:2]), Delivery(came[2:])
    check((second.body[:1], third.body[:1]) == (b"b", b"c"), "650 bytes fit")
    talk.settled(ACCEPTED, second)
    talk.silent(0.3)  # one that is larger than the limit comes alone
    large = settle_for_next(talk, handle, third)
    check(large.body == b"d" * 5000, f"{large.body[:1]}")
    talk.silent(0.3)


@with_queue("exchange/patterns")
def patterns(talk, exchange):
    keys = sorted({key for _, yes, no in PATTERNS for key in yes + no})
    talk.put(exchange, *(message(key.encode(), subject=key) for key in keys))
    wrong = []
    for number, (pattern, yes, no) in enumerate(PATTERNS):
        got = [body.decode() for body in bodies(talk, below(exchange, f"p{number:02}"))]
        wrong += [f"'{pattern}' misses '{key}'" for key in yes if key not in got]
        wrong += [f"'{pattern}' matches '{key}'" for key in no if key in got]
        check(len(set(got)) == len(got), f"'{pattern}' has a message twice: {got}")
    check(not wrong, ", ".join(wrong))


@with_queue("exchange/header-types")
def header_types(talk, exchange):
    one = [Value("byte", 1), Value("short", 1), int_(1), long_(1), Value("ubyte", 1), Value("ushort", 1), uint(1),
           Value("ulong", 1), timestamp(1), double(1.0), Value("float", struct.pack(">f", 1))]
    x = [string("x"), symbol("x"), binary(b"x"), Value("char", ord("x"))]
    neither = [string("X"), string("1"), int_(2), double(1.5), boolean(False), NULL, Value("uuid", bytes(16)),
               list_(int_(1)), Value("ulong", 2**63), double(float("nan"))]
    values = one + x + [boolean(True)] + neither
    # A list is no value of an application property, but nobody is harmed by one.
    talk.put(exchange, *(message(b"%d" % n, properties={"h": v}) for n, v in enumerate(values)))
    expected = {"number": range(len(one)), "text": range(len(one), len(one) + len(x)),
                "flag": [len(one) + len(x)], "present": range(len(values)), "everything": range(len(values)),
                "x-ignored": range(len(values)), "x-none": [], "with-x": [], "any-with-x": []}
    for name, numbers in expected.items():
        got = bodies(talk, below(exchange, name))
        wrong = set(got) ^ {b"%d" % n for n in numbers}
        check(not wrong, f"'{name}': {[(text(values[int(n)]), n in got) for n in wrong]}")
    talk.put(exchange, message(b"property", properties={"x-a": string("1")}),
             message(b"annotation", annotations={"x-a": string("1"), "x-foo": string("s")}),
             message(b"both", properties={"x-a": string("2")}, annotations={"x-a": string("1")}),
             message(b"foo", properties={"foo": NULL}))
    check(bodies(talk, below(exchange, "with-x")) == [b"property", b"annotation"], "all-with-x")
    check(bodies(talk, below(exchange, "any-with-x")) == [b"annotation", b"foo"], "any-with-x")


@with_queue("exchange/session")
def session(talk, exchange):
    talk.put(exchange, message(b"1", session="x"), message(b"2"), message(b"3", session="x"))
    handle = talk.ask_receiver(below(exchange, "s"), filter_=string("x"))
    talk.attached(handle)
    check([m.body for m in talk.take(handle, 2)] == [b"1", b"3"], "the session")
    [letter] = peek(talk, below(exchange, "s") + "/$DeadLetterQueue")
    check(letter.map(APPLICATION)["DeadLetterReason"] == string("Session ID is null."), f"{letter.map(APPLICATION)}")
    check(bodies(talk, below(exchange, "p")) == [b"1", b"2", b"3"], "without sessions")


@with_queue("exchange/forward")
def forward(talk, exchange):
    """Into an exchange with the subject as its key, and from one of its subscriptions into a queue."""
    talk.put(context["sources"]["exchange/forward"], message(b"1", subject="red"), message(b"2", subject="blue"),
             message(b"3", subject="green"))
    talk.put(f"{exchange}/red", message(b"4"))
    got = talk.take(talk.receiver(context["destinations"]["exchange/forward"]), 2)
    check([(m.body, m.number) for m in got] == [(b"1", 1), (b"4", 2)], f"{[(m.body, m.number) for m in got]}")
    check(bodies(talk, below(exchange, "blue")) == [b"2"], "the other subscription")
    receiver_refused(talk, below(exchange, "red"), NOT_ALLOWED)


@with_queue("exchange/sends")
def sends(talk, exchange):
    handle, red = talk.sender(exchange), below(exchange, "red")
    refused_send(talk, handle, message(subject="red", ttl=0), "com.microsoft:argument-out-of-range")
    talk.post(handle, message(b"lost", subject="green"), settled=True)  # nobody can be told
    talk.post(handle, message(b"pre-settled", subject="red"), settled=True)
    for body, identity, subject, state in ((b"1", "i", "red", ACCEPTED), (b"2", "i", "red", ACCEPTED),
                                           (b"3", "j", "green", RELEASED), (b"4", "k", "red", ACCEPTED)):
        got = talk.outcome(talk.post(handle, message(body, message_id=identity, subject=subject)))
        check(got == state, f"{body} {subject}: {text(got)}")
    check(bodies(talk, red) == [b"pre-settled", b"1", b"4"], f"{bodies(talk, red)}")  # the second is a duplicate
    # What was released may come again: it was never stored.
    check(talk.outcome(talk.post(handle, message(b"3 again", message_id="j", subject="red"))) == ACCEPTED, "j")
    check(bodies(talk, red) == [b"pre-settled", b"1", b"4", b"3 again"], f"{bodies(talk, red)}")


def dated(due, body, **more):
    return message(body, annotations={"x-opt-scheduled-enqueue-time": timestamp(due)}, **more)


@with_queue("exchange/schedule")
def schedule(talk, exchange):
    """Routed when it is due, by the key it was sent with: its subject's, or that of the link's address."""
    due = now_ms() + 1500
    talk.put(exchange, dated(due, b"1", subject="red"), dated(due, b"2"))
    talk.put(f"{exchange}/red", dated(due, b"3", subject="blue"))
    talk.put(f"/exchanges/{exchange}", dated(due, b"4", subject="blue"))
    handle = talk.sender(f"{exchange}/blue")
    batch = b"".join(encode(described(ulong(DATA), binary(m))) for m in (message(b"now"), dated(due, b"5")))
    check(talk.outcome(talk.post(handle, batch, BATCH_FORMAT)) == ACCEPTED, "the batch was not accepted")
    numbers = check_array(talk.ask(exchange, "schedule-message", ("messages", list_(*(
        map_((string("message-id"), string("i")), (string("message"), binary(dated(due, body, subject="red"))))
        for body in (b"6", b"cancelled"))))).ok()["sequence-numbers"], "long")
    talk.ask(exchange, "cancel-scheduled-message", ("sequence-numbers", array("long", long_(numbers[1])))).ok()
    early = [bodies(talk, below(exchange, name)) for name in ("red", "blue", "no-key")]
    check(early == [[], [b"now"], []], f"before it is due: {early}")
    for name, expected in (("red", [b"1", b"3", b"6"]), ("blue", [b"now", b"5"]), ("no-key", [b"2", b"4"])):
        got = talk.take(talk.receiver(below(exchange, name)), len(expected))
        check([m.body for m in got] == expected, f"'{name}': {[m.body for m in got]}")
        key = "" if name == "no-key" else name
        check(all(m.map(ANNOTATIONS)["x-routing-key"] == string(key) for m in got), f"the key of '{name}'")
    check(now_ms() >= due, "before its time")


@with_queue("exchange/restart")
def restart(talk, exchange):
    talk.put(exchange, message(b"1", subject="eu.paid"), message(b"2", subject="us.paid"))
    due = now_ms() + 3000
    talk.put(f"{exchange}/eu.later", dated(due, b"later"))
    eu, paid = below(exchange, "eu"), below(exchange, "paid")
    before = [without(b"later", stored(talk, eu)), stored(talk, paid)]
    check([[m[0] for m in one] for one in before] == [[b"1"], [b"1", b"2"]], f"{before}")
    talk.socket.close()
    ask("stop", "queues")
    ask("start", "queues")
    with Talk() as again:
        after = [without(b"later", stored(again, eu)), stored(again, paid)]
        check(before == after, f"before {before}, after {after}")
        again.put(f"{exchange}/eu.open", message(b"3"))
        handle = again.sender(exchange)
        check(again.outcome(again.post(handle, message(b"4", subject="asia"))) == RELEASED, "not released")
        left = [m[0] for m in without(b"later", stored(again, eu))]
        check(left == [b"1", b"3"], f"{left}")
        receiver = again.receiver(paid)
        again.credit(receiver, 5)
        check(again.delivery().map(ANNOTATIONS)["x-routing-key"] == string("eu.paid"), "another key")
        again.silent(0.3)  # it holds one
        got = again.take(again.receiver(eu), 3)  # the scheduled one at its time, whenever that was
        check(now_ms() >= due, "before its time")
        check(got[0].body == b"1" and sorted(m.body for m in got[1:]) == [b"3", b"later"], f"{[m.body for m in got]}")
        late = next(m for m in got if m.body == b"later")
        check(late.map(ANNOTATIONS)["x-routing-key"] == string("eu.later"), "the key of the scheduled one")
