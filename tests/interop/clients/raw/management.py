"""$management of a queue: envelopes, types and what the operations do (contract 6)."""

import time
import uuid as uuids

from peer import check_kind
from report import check, context
from talk import (ACCEPTED, ANNOTATIONS, APPLICATION, DEFERRED, DELIVERY_ANNOTATIONS, LOCK_LOST, PROPERTIES, VALUE,
                  Message, Reply, Talk, check_array, message, now_ms, with_queue)
from wire.frames import frame
from wire.values import (NULL, array, binary, boolean, described, encode, int_, list_, long_, map_, string, text,
                         timestamp, uint, ulong, uuid)

NOT_FOUND = "com.microsoft:message-not-found"


def peek(talk, queue, start=1, count=10):
    return talk.ask(queue, "peek-message", ("from-sequence-number", long_(start)), ("message-count", int_(count)))


def messages_of(body):
    """The maps in a list of messages."""
    check_kind(body["messages"], "list", "messages")
    return [{k.value: v for k, v in check_kind(entry, "map", "an entry of messages")}
            for entry in body["messages"].value]


def tokens(*given):
    return ("lock-tokens", array("uuid", *(uuid(t) for t in given)))


@with_queue("wire/management-envelope")
def management_envelope(talk, queue):
    for message_id in (string("text"), ulong(1), ulong(2**40), uuid(bytes(range(16)))):
        reply = talk.ask(queue, "peek-message", ("from-sequence-number", long_(1)), ("message-count", int_(1)),
                         message_id=message_id,
                         properties=((string("com.microsoft:tracking-id"), string("track")),
                                     (string("com.microsoft:server-timeout"), uint(5000)),
                                     (string("associated-link-name"), string("no such link"))))
        tracking = reply.properties.get("com.microsoft:tracking-id", string("track"))
        check(tracking == string("track"), f"tracking-id is {text(tracking)}")
    # Numbers may come in any width, and arrays as lists (6.3).
    reply = talk.ask(queue, "peek-message", ("from-sequence-number", uint(1)), ("message-count", long_(1)))
    reply.failed(204, NOT_FOUND)
    routed_by_name(queue)


def routed_by_name(queue):
    """A reply-to that is a link's name (JavaScript), or the node's own address on the same session (Python)."""
    address = f"{queue}/$management"
    for name, target, reply_to in (("reply-by-name", NULL, "reply-by-name"), ("other", string(address), address)):
        with Talk() as talk:
            replies = talk.attach(True, described(ulong(0x28), list_(string(address))),
                                  described(ulong(0x29), list_(target)), (0, 0), name=name)
            talk.attached(replies)
            requests = talk.sender(address)
            talk.credit(replies, 1)
            number = talk.post(requests, b"".join(map(encode, (
                described(ulong(PROPERTIES), list_(string("id"), NULL, NULL, NULL, string(reply_to))),
                described(ulong(APPLICATION), map_((string("operation"), string("com.microsoft:peek-message")))),
                described(ulong(VALUE), map_((string("from-sequence-number"), long_(1)),
                                             (string("message-count"), int_(1))))))))
            seen = set()
            while seen != {"disposition", "transfer"}:
                got = talk.item()
                if got.name == "transfer":
                    check(talk.remote[got.field(0).value] == replies, "routed elsewhere")
                if got.name == "disposition":
                    check(got.field(1).value == number and got.field(4) == ACCEPTED, "the request was not accepted")
                seen |= {got.name} - {"flow", "empty"}


@with_queue("wire/management-errors")
def management_errors(talk, queue):
    talk.ask(queue, "no-such-operation").failed(501, "amqp:not-implemented")
    talk.ask(queue, "peek-message").failed(400, "com.microsoft:argument-error")
    talk.ask(queue, "peek-message", ("from-sequence-number", string("one")), ("message-count", int_(1))).failed(
        400, "com.microsoft:argument-error")
    talk.ask(queue, "renew-lock", ("lock-tokens", string("none"))).failed(400, "com.microsoft:argument-error")
    talk.ask(queue, "update-disposition", tokens(bytes(16)), ("disposition-status", string("nonsense"))).failed(
        400, "com.microsoft:argument-error")
    peek(talk, queue).failed(204, NOT_FOUND)  # and it still works
    # A request without a body section costs nothing but that request.
    requests, _, reply_to = talk.pair(queue)
    number = next(talk.sent)
    payload = b"".join(map(encode, (
        described(ulong(PROPERTIES), list_(string("id"), NULL, NULL, NULL, string(reply_to))),
        described(ulong(APPLICATION), map_((string("operation"), string("com.microsoft:peek-message")))))))
    talk.send(frame(0, "transfer", uint(requests), uint(number), binary(b"x"), uint(0), boolean(True), payload=payload))
    check(Reply(talk.delivery()).status == 400, "a request without a body was not refused with 400")
    peek(talk, queue).failed(204, NOT_FOUND)


@with_queue("wire/peek")
def peek_(talk, queue):
    peek(talk, queue).failed(204, NOT_FOUND)
    talk.put(queue, *(message(b"%d" % n) for n in range(3)))
    receiver = talk.receiver(queue)
    talk.take(receiver)  # locked
    found = messages_of(peek(talk, queue).ok())
    seen = [Message(check_kind(entry["message"], "binary", "message")) for entry in found]
    check([m.body for m in seen] == [b"0", b"1", b"2"], f"bodies {[m.body for m in seen]}")
    for number, m in enumerate(seen, 1):
        annotations = m.map(ANNOTATIONS)
        check(annotations["x-opt-sequence-number"] == long_(number), "another sequence number")
        check_kind(annotations["x-opt-enqueued-time"], "timestamp", "x-opt-enqueued-time")
        check("x-opt-locked-until" not in annotations, "peek shows a lock")
        check(annotations["x-opt-message-state"] == int_(0), f"state {text(annotations['x-opt-message-state'])}")
        check(m.count == 0, f"delivery-count {m.count}")
    check(all("lock-token" not in entry for entry in found), "peek gives a lock token")
    check(len(messages_of(peek(talk, queue, 2, 1).ok())) == 1, "more than asked for")
    peek(talk, queue, 4).failed(204, NOT_FOUND)


@with_queue("wire/schedule")
def schedule(talk, queue):
    due = now_ms() + 3600000
    encoded = [message(b"%d" % n, message_id=f"s{n}", annotations={"x-opt-scheduled-enqueue-time": timestamp(due)})
               for n in range(2)]
    request = ("messages", list_(*(map_((string("message-id"), string(f"s{n}")), (string("message"), binary(m)))
                                   for n, m in enumerate(encoded))))
    numbers = check_array(talk.ask(queue, "schedule-message", request).ok()["sequence-numbers"], "long")
    check(len(numbers) == 2 and numbers[0] < numbers[1], f"numbers {numbers}")
    [first, _] = [Message(m["message"].value) for m in messages_of(peek(talk, queue).ok())]
    check(first.map(ANNOTATIONS)["x-opt-message-state"] == int_(2), "the state is not scheduled")
    check(first.map(ANNOTATIONS)["x-opt-scheduled-enqueue-time"] == timestamp(due), "another time")
    cancelled = talk.ask(queue, "cancel-scheduled-message", ("sequence-numbers", array("long", long_(numbers[0]))))
    check(not cancelled.ok(), "the answer to a cancel is not empty")
    # All or nothing: one unknown number, nothing cancelled.
    talk.ask(queue, "cancel-scheduled-message",
             ("sequence-numbers", array("long", *map(long_, numbers)))).failed(404, NOT_FOUND)
    check([m["message"].kind for m in messages_of(peek(talk, queue).ok())] == ["binary"], "not one message is left")
    receiver = talk.receiver(queue)
    talk.credit(receiver, 1)
    talk.silent()


@with_queue("wire/by-sequence-number")
def by_sequence_number(talk, queue):
    talk.put(queue, message(b"later"))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    talk.settled(DEFERRED, got)
    ask = [("sequence-numbers", array("long", long_(got.number))), ("receiver-settle-mode", uint(1))]
    [found] = messages_of(talk.ask(queue, "receive-by-sequence-number", *ask).ok())
    token = check_kind(found["lock-token"], "uuid", "lock-token")
    m = Message(check_kind(found["message"], "binary", "message"))
    check(m.body == b"later", f"body {m.body}")
    check(m.map(DELIVERY_ANNOTATIONS)["x-opt-lock-token"] == uuid(token), "x-opt-lock-token is not the lock token")
    check(m.map(ANNOTATIONS)["x-opt-message-state"] == int_(1), "the state is not deferred")
    check_kind(m.map(ANNOTATIONS)["x-opt-locked-until"], "timestamp", "x-opt-locked-until")
    talk.ask(queue, "receive-by-sequence-number", *ask).failed(404, NOT_FOUND)  # it is locked
    talk.ask(queue, "update-disposition", tokens(token), ("disposition-status", string("abandoned"))).ok()
    [found] = messages_of(talk.ask(queue, "receive-by-sequence-number", *ask).ok())
    check(Message(found["message"].value).count == 1, "the abandon was not counted")
    talk.ask(queue, "update-disposition", tokens(found["lock-token"].value),
             ("disposition-status", string("completed"))).ok()
    talk.ask(queue, "receive-by-sequence-number", *ask).failed(404, NOT_FOUND)
    peek(talk, queue).failed(204, NOT_FOUND)
    # Receive and delete, as a list of plain numbers.
    talk.put(queue, message(b"gone"))
    [got] = talk.take(receiver)
    talk.settled(DEFERRED, got)
    [found] = messages_of(talk.ask(queue, "receive-by-sequence-number", ("sequence-numbers", list_(uint(got.number))),
                                   ("receiver-settle-mode", uint(0))).ok())
    check(Message(found["message"].value).body == b"gone", "another message")
    peek(talk, queue).failed(204, NOT_FOUND)


@with_queue("wire/lock-token")
def lock_token(talk, queue):
    """The tag is the token in the byte order of .NET, the token of a request an RFC uuid."""
    talk.put(queue, message(b"m"))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    talk.ask(queue, "renew-lock", tokens(got.tag)).failed(410, LOCK_LOST)  # the bytes as they are
    talk.ask(queue, "renew-lock", tokens(got.token)).ok()
    annotated = got.map(DELIVERY_ANNOTATIONS).get("x-opt-lock-token", uuid(got.token))
    check(annotated == uuid(got.token), f"x-opt-lock-token is {text(annotated)}")
    talk.settled(ACCEPTED, got)


@with_queue("wire/renew-lock")
def renew_lock(talk, queue):
    talk.put(queue, message(b"m"))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    until = got.map(ANNOTATIONS)["x-opt-locked-until"].value
    seconds = context["lock_seconds"]
    end = time.monotonic() + seconds + 2
    while time.monotonic() < end:
        time.sleep(1)
        before = now_ms()
        [renewed] = check_array(talk.ask(queue, "renew-lock", tokens(got.token)).ok()["expirations"], "timestamp")
        check(before + seconds * 1000 <= renewed <= now_ms() + seconds * 1000, f"renewed until {renewed}")
        check(renewed > until, "the lock did not get longer")
        until = renewed
    stranger = uuids.uuid4().bytes
    # One unknown token, and nothing is renewed.
    talk.ask(queue, "renew-lock", tokens(got.token, stranger)).failed(410, LOCK_LOST)
    time.sleep(seconds + 0.7)
    talk.ask(queue, "renew-lock", tokens(got.token)).failed(410, LOCK_LOST)
    talk.refused_to_settle(ACCEPTED, got, LOCK_LOST)
    [again] = talk.take(receiver)
    check(again.count == 1, f"delivery-count is {again.count}")
    check(again.tag != got.tag, "the same lock token")


@with_queue("wire/update-disposition")
def update_disposition(talk, queue):
    talk.put(queue, *(message(b"%d" % n) for n in range(4)))
    receiver = talk.receiver(queue)
    first, second, third, fourth = talk.take(receiver, 4)
    with Talk() as other:  # a token is good on any connection
        other.ask(queue, "update-disposition", tokens(first.token), ("disposition-status", string("completed"))).ok()
        other.ask(queue, "update-disposition", tokens(second.token), ("disposition-status", string("defered"))).ok()
        other.ask(queue, "update-disposition", tokens(third.token), ("disposition-status", string("suspended")),
                  ("deadletter-reason", string("r")), ("deadletter-description", string("d")),
                  ("properties-to-modify", map_((string("added"), int_(7))))).ok()
        other.ask(queue, "update-disposition", tokens(fourth.token), ("disposition-status", string("abandoned"))).ok()
        other.ask(queue, "update-disposition", tokens(first.token),
                  ("disposition-status", string("completed"))).failed(410, LOCK_LOST)
    talk.refused_to_settle(ACCEPTED, first, LOCK_LOST)
    [again] = talk.take(receiver)
    check((again.body, again.count) == (b"3", 1), f"after the abandon: {again.body}, {again.count}")
    states = [(Message(m["message"].value).body, Message(m["message"].value).map(ANNOTATIONS)["x-opt-message-state"])
              for m in messages_of(peek(talk, queue).ok())]
    check(states == [(b"1", int_(1)), (b"3", int_(0))], f"peek: {states}")
    graves = talk.receiver(f"{queue}/$DeadLetterQueue")
    [dead] = talk.take(graves)
    check(dead.map(APPLICATION) == {"DeadLetterReason": string("r"), "DeadLetterErrorDescription": string("d"),
                                    "added": int_(7)}, f"properties {text(dead.sections[APPLICATION])}")


@with_queue("wire/batch-delete")
def batch_delete(talk, queue):
    talk.put(queue, *(message(b"%d" % n) for n in range(4)))
    receiver = talk.receiver(queue)
    [locked] = talk.take(receiver)
    soon = ("enqueued-time-utc", timestamp(now_ms() + 1000))
    deleted = talk.ask(queue, "batch-delete-messages", ("message-count", int_(2)), soon).ok()["message-count"]
    check(deleted == int_(2), f"deleted {text(deleted)}")
    deleted = talk.ask(queue, "batch-delete-messages", ("message-count", int_(100)), soon).ok()["message-count"]
    check(deleted == int_(1), f"deleted {text(deleted)}, one is locked")
    talk.ask(queue, "batch-delete-messages", ("message-count", int_(100)), soon).failed(204, NOT_FOUND)
    talk.ask(queue, "batch-delete-messages", ("message-count", int_(4001)), soon).failed(
        400, "com.microsoft:argument-out-of-range")
    talk.settled(ACCEPTED, locked)
    peek(talk, queue).failed(204, NOT_FOUND)
