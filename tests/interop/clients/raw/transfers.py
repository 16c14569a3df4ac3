"""Sending to and receiving from a queue, byte by byte (contract 3.3, 3.7, 4, 5)."""

from peer import check_error, check_fields, check_kind
from report import check
from talk import (ACCEPTED, ANNOTATIONS, APPLICATION, BATCH_FORMAT, DATA, DELIVERY_ANNOTATIONS, FOOTER, HEADER,
                  LOCK_LOST, MODIFIED, PROPERTIES, RELEASED, Talk, check_same_outcome, message, now_ms,
                  rejected, with_queue)
from wire.frames import frame, frame_text
from wire.values import (NULL, Value, array, binary, boolean, described, encode, int_, list_, long_, map_, string,
                         symbol, text, timestamp, ubyte, uint, ulong, uuid)


@with_queue("wire/attach-sender")
def attach_sender(talk, queue):
    from_ = described(ulong(0x28), list_(string("me")))
    to = described(ulong(0x29), list_(string(queue)))
    handle = talk.attach(False, from_, to, (2, 0))
    got = talk.attached(handle)
    check((got.field(5), got.field(6)) == (from_, to), f"not echoed: {frame_text(got)}")
    check(got.field(2) == boolean(True), "the role is not inverse")
    check(got.field(10) == ulong(1048576), f"max-message-size is {text(got.field(10))}")
    check_kind(got.field(13), "map", "properties")
    flow = talk.frame("flow")
    check_fields(flow, 11)
    check_kind(flow.field(0), "uint", "next-incoming-id")
    check(flow.field(4) == got.field(1), f"flow for handle {text(flow.field(4))}")
    check_kind(flow.field(5), "uint", "delivery-count")
    check(check_kind(flow.field(6), "uint", "link-credit") == 1000, f"link-credit is {text(flow.field(6))}")


@with_queue("wire/send-accepted")
def send_accepted(talk, queue):
    handle = talk.sender(queue)
    for number in range(3):
        state = talk.outcome(talk.post(handle, message(b"%d" % number)))
        check(state == ACCEPTED, f"the outcome is {text(state)}")
    talk.post(handle, message(b"pre-settled"), settled=True)
    state = talk.outcome(talk.post(handle, message(b"last")))
    check(state == ACCEPTED, f"after a pre-settled one the outcome is {text(state)}")
    receiver = talk.receiver(queue)
    bodies = [d.body for d in talk.take(receiver, 5)]
    check(bodies == [b"0", b"1", b"2", b"pre-settled", b"last"], f"stored: {bodies}")


def refused_send(talk, handle, payload, condition, message_format=0):
    state = talk.outcome(talk.post(handle, payload, message_format))
    check(state.kind == "described" and state.value[0] == ulong(0x25), f"expected rejected, got {text(state)}")
    return check_error(state.value[1].value[0], condition)


@with_queue("wire/send-rejected")
def send_rejected(talk, queue):
    handle = talk.sender(queue)
    refused_send(talk, handle, message(ttl=0), "com.microsoft:argument-out-of-range")
    refused_send(talk, handle, message(message_id="x" * 129), "com.microsoft:argument-out-of-range")
    refused_send(talk, handle, b"\x00\x53\x75\xa0\x20cut short", "amqp:decode-error", 0)
    # One refused message spoils the whole batch.
    batch = b"".join(encode(described(ulong(DATA), binary(m))) for m in (message(b"good"), message(b"bad", ttl=0)))
    refused_send(talk, handle, batch, "com.microsoft:argument-out-of-range", BATCH_FORMAT)
    check(talk.outcome(talk.post(handle, message(b"fine"))) == ACCEPTED, "the link is not usable any more")
    receiver = talk.receiver(queue)
    talk.credit(receiver, 5)
    check(talk.delivery().body == b"fine", "something refused was stored")
    talk.silent()


@with_queue("wire/unknown-format")
def unknown_format(talk, queue):
    handle = talk.sender(queue)
    refused_send(talk, handle, message(), "amqp:not-implemented", 7)
    check(talk.outcome(talk.post(handle, message())) == ACCEPTED, "the link is not usable any more")


@with_queue("wire/batch")
def batch(talk, queue):
    handle = talk.sender(queue)
    inner = [message(b"%d" % n, message_id=f"id-{n}", annotations={"x-opt-partition-key": string("k")})
             for n in range(3)]
    envelope = encode(described(ulong(PROPERTIES), list_(string("id-0"))))
    payload = envelope + b"".join(encode(described(ulong(DATA), binary(m))) for m in inner)
    check(talk.outcome(talk.post(handle, payload, BATCH_FORMAT)) == ACCEPTED, "not accepted")
    receiver = talk.receiver(queue)
    for number, got in enumerate(talk.take(receiver, 3)):
        check(got.first.field(3) == uint(0), f"message-format {text(got.first.field(3))}")
        check(got.body == b"%d" % number, f"message {number} has body {got.body}")
        check(got.sections[PROPERTIES].value[0] == string(f"id-{number}"), "another message-id")
        check(got.number == number + 1, f"message {number} has number {got.number}")


@with_queue("wire/aborted-transfer")
def aborted_transfer(talk, queue):
    handle = talk.sender(queue)
    number = next(talk.sent)
    talk.send(frame(0, "transfer", uint(handle), uint(number), binary(b"t"), uint(0), boolean(False), boolean(True),
                    payload=message(b"x" * 100)[:50]))
    talk.send(frame(0, "transfer", uint(handle), NULL, NULL, NULL, NULL, boolean(False), NULL, NULL, NULL,
                    boolean(True)))
    check(talk.outcome(talk.post(handle, message(b"whole"))) == ACCEPTED, "the next message was not accepted")
    receiver = talk.receiver(queue)
    talk.credit(receiver, 5)
    check(talk.delivery().body == b"whole", "a part was delivered")
    talk.silent()


@with_queue("wire/delivery")
def delivery(talk, queue):
    before = now_ms()
    talk.put(queue, message(b"body", message_id="m"))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    after = now_ms()
    check_fields(got.first, 11)
    check_kind(got.first.field(1), "uint", "delivery-id")
    check(len(check_kind(got.first.field(2), "binary", "delivery-tag")) == 16, f"tag {got.tag.hex()}")
    check(got.first.field(3) == uint(0), f"message-format is {text(got.first.field(3))}")
    check(got.first.field(4) == boolean(False), f"settled is {text(got.first.field(4))}")
    check(got.order == [c for c in (HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, DATA) if c in got.order],
          f"order of sections: {[hex(c) for c in got.order]}")
    header = got.sections[HEADER].value
    check(len(header) == 5 and header[4] == uint(0), f"header is {text(got.sections[HEADER])}")
    for key, _ in got.sections[ANNOTATIONS].value:
        check_kind(key, "symbol", "key of an annotation")
    annotations = got.map(ANNOTATIONS)
    check(annotations["x-opt-sequence-number"] == long_(1), f"number {text(annotations['x-opt-sequence-number'])}")
    enqueued = check_kind(annotations["x-opt-enqueued-time"], "timestamp", "x-opt-enqueued-time")
    check(before <= enqueued <= after, f"enqueued at {enqueued}, sent between {before} and {after}")
    locked = check_kind(annotations["x-opt-locked-until"], "timestamp", "x-opt-locked-until")
    check(before + 60000 <= locked <= after + 60000, f"locked until {locked}, the lock is a minute, now {after}")
    check(annotations.get("x-opt-message-state", int_(0)) == int_(0), "another state")
    # The hour to live of the queue (5.4).
    check(header[2] == uint(3600000), f"ttl is {text(header[2])}")
    expiry = got.sections[PROPERTIES].value[8]
    check(expiry == timestamp(enqueued + 3600000), f"absolute-expiry-time is {text(expiry)}, enqueued {enqueued}")


@with_queue("wire/fragmented-delivery")
def fragmented_delivery(talk, queue):
    body = bytes(range(256)) * 20
    talk.put(queue, message(body))
    with Talk(frame_max=512) as small:
        receiver = small.receiver(queue)
        [got] = small.take(receiver)
        check(got.body == body, "another body")
        check(len(got.frames) > 10, f"{len(got.frames)} frames of 512 bytes")
        for number, piece in enumerate(got.frames):
            check_fields(piece, 11)
            size = len(encode(piece.performative)) + len(piece.payload) + 8
            check(size <= 512, f"frame {number} has {size} bytes")
            more = number < len(got.frames) - 1
            check(piece.field(5) == boolean(more), f"more is {text(piece.field(5))} in {number}")
            check(number == 0 or piece.field(1) in (NULL, got.first.field(1)), "another delivery-id")
        small.settled(ACCEPTED, got)


@with_queue("wire/sections-added")
def sections_added(talk, queue):
    talk.put(queue, encode(described(ulong(DATA), binary(b"bare"))))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    check(HEADER in got.sections and PROPERTIES in got.sections, f"sections {[hex(c) for c in got.order]}")
    assigned = check_kind(got.sections[PROPERTIES].value[0], "string", "message-id")
    check(len(assigned) == 32 and set(assigned) <= set("0123456789abcdef"), f"assigned message-id {assigned}")
    talk.settled(MODIFIED, got)
    [again] = talk.take(receiver)
    check(again.sections[PROPERTIES].value[0].value == assigned, "another message-id at the second delivery")
    check(again.count == 1, f"delivery-count is {again.count}")


def rich_message():
    """Every section and type, with encodings nobody would choose: they must come back as they are."""
    span = described(symbol("com.microsoft:timespan"), long_(600000000))
    application = [("null", NULL), ("bool", boolean(True)), ("ubyte", ubyte(255)), ("ushort", Value("ushort", 65535)),
                   ("uint", uint(0)), ("ulong", ulong(2**64 - 1)), ("byte", Value("byte", -1)),
                   ("short", Value("short", -2)), ("int", int_(-3)), ("long", long_(-2**63)),
                   ("float", Value("float", b"\x7f\xc0\x00\x01")), ("double", Value("double", b"\x00" * 7 + b"\x01")),
                   ("decimal", Value("decimal64", bytes(range(8)))), ("char", Value("char", 0x1F600)),
                   ("time", timestamp(-1)), ("uuid", uuid(bytes(range(16)))), ("binary", binary(b"\x00\xff")),
                   ("symbol", symbol("sym")), ("span", span), ("", string("an empty key")), ("ż", string("ż"))]
    sections = [
        described(ulong(PROPERTIES), list_(
            ulong(77), binary(b"user"), string("to"), string("subject"), string("reply"), uuid(bytes(range(16))),
            symbol("text/plain"), symbol("identity"), NULL, timestamp(1000), NULL, uint(5), string("reply-group"))),
        described(ulong(APPLICATION), map_(*((string(k), v) for k, v in application))),
        described(ulong(0x76), list_(long_(1), string("two"), array("uint", uint(1), uint(2)))),
        described(ulong(0x76), list_(map_((string("k"), NULL)))),
        described(ulong(FOOTER), map_((symbol("x-foot"), int_(1)))),
    ]
    return b"".join(map(encode, sections))


@with_queue("wire/bytes-preserved")
def bytes_preserved(talk, queue):
    rich = rich_message()
    # A wide encoding of a small list and a wide descriptor: legal, unusual.
    unusual = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73\xd0\x00\x00\x00\x0a\x00\x00\x00\x01\xb1\x00\x00\x00\x01i" \
        + b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xb0\x00\x00\x00\x02hi"
    own = encode(described(ulong(ANNOTATIONS), map_((symbol("x-own"), string("kept")),
                                                    (symbol("x-opt-sequence-number"), long_(99)))))
    talk.put(queue, own + rich, unusual)
    receiver = talk.receiver(queue)
    first, second = talk.take(receiver, 2)
    for got, sent in ((first, rich), (second, unusual)):
        payload = b"".join(f.payload for f in got.frames)
        check(payload.endswith(sent), f"the bare message changed: {payload.hex()}")
    annotations = first.map(ANNOTATIONS)
    check(annotations["x-own"] == string("kept"), "the sender's own annotation is lost")
    check(annotations["x-opt-sequence-number"] == long_(1), "the sender chose a sequence number")


@with_queue("wire/receive-and-delete")
def receive_and_delete(talk, queue):
    talk.put(queue, message(b"once"))
    receiver = talk.receiver(queue, modes=(1, 0))
    [got] = talk.take(receiver)
    check(got.first.field(4) == boolean(True), f"settled is {text(got.first.field(4))}")
    check(len(got.tag) == 16 and got.tag != bytes(16), f"delivery-tag {got.tag.hex()}")
    check("x-opt-locked-until" not in got.map(ANNOTATIONS), "a lock on a deleted message")
    talk.ask(queue, "peek-message", ("from-sequence-number", long_(1)), ("message-count", int_(1))).failed(
        204, "com.microsoft:message-not-found")


@with_queue("wire/settle-modes-echoed")
def settle_modes_echoed(talk, queue):
    for modes in ((0, 1), (0, 0), (1, 0), (2, 0), (2, 1)):
        handle = talk.ask_receiver(queue, modes)
        got = talk.attached(handle)
        check((got.field(3), got.field(4)) == (ubyte(modes[0]), ubyte(modes[1])),
              f"asked for {modes}, got {text(got.field(3))} {text(got.field(4))}")
        check(got.field(9) == uint(0), f"initial-delivery-count is {text(got.field(9))}")
        check_kind(got.field(13), "map", "properties")
        talk.detach(handle)


@with_queue("wire/outcome-echoed")
def outcome_echoed(talk, queue):
    info = map_((symbol("DeadLetterReason"), string("r")), (symbol("DeadLetterErrorDescription"), string("d")))
    states = (ACCEPTED, MODIFIED, rejected(info=info), RELEASED, rejected("my:condition", string("text")))
    receiver = talk.receiver(queue)
    for state in states:
        talk.put(queue, message(b"m"))
        [got] = talk.take(receiver)
        talk.settled(state, got)
        if state in (MODIFIED, RELEASED):
            [again] = talk.take(receiver)
            check(again.count == (1 if state == MODIFIED else 0), f"delivery-count {again.count} after {text(state)}")
            talk.settled(ACCEPTED, again)
    graves = talk.receiver(f"{queue}/$DeadLetterQueue")
    for got, (reason, description) in zip(talk.take(graves, 2), (("r", "d"), ("my:condition", "text"))):
        application = got.map(APPLICATION)
        check(application["DeadLetterReason"] == string(reason), text(application["DeadLetterReason"]))
        check(application["DeadLetterErrorDescription"] == string(description), "another description")
        # Dead-lettering a dead letter is refused; abandoning it works.
    talk.refused_to_settle(rejected(), got, "amqp:not-allowed")


@with_queue("wire/settled-twice")
def settled_twice(talk, queue):
    talk.put(queue, message(b"m"))
    receiver = talk.receiver(queue)
    [got] = talk.take(receiver)
    talk.settled(ACCEPTED, got)
    talk.refused_to_settle(ACCEPTED, got, LOCK_LOST)
    talk.settle(ACCEPTED, got.id, settled=True)  # nobody waits for an answer
    talk.silent()


@with_queue("wire/disposition-range")
def disposition_range(talk, queue):
    talk.put(queue, *(message(b"%d" % n) for n in range(6)))
    receiver = talk.receiver(queue)
    got = talk.take(receiver, 6)
    talk.settled(ACCEPTED, got[3])
    # One of the six is settled already: it fails, and only it.
    talk.settle(ACCEPTED, got[0].id, got[5].id)
    states = {}
    while len(states) < 6:
        first, last, state = talk.answer()
        for number in range(first, last + 1):
            check(number not in states, f"delivery {number} was answered twice")
            states[number] = state
    for delivery_ in got:
        if delivery_ is got[3]:
            check_error(states[delivery_.id].value[1].value[0], LOCK_LOST)
        else:
            check_same_outcome(states[delivery_.id], ACCEPTED)


@with_queue("wire/drain")
def drain(talk, queue):
    talk.put(queue, message(b"0"), message(b"1"))
    receiver = talk.receiver(queue)
    talk.credit(receiver, 5, drain=True)
    check([talk.delivery().body for _ in range(2)] == [b"0", b"1"], "another order")
    for count in (5, 8):
        got = talk.frame("flow")
        check_fields(got, 11)
        check(talk.remote[got.field(4).value] == receiver, "flow for another link")
        check(got.field(5) == uint(count), f"delivery-count is {text(got.field(5))}, expected {count}")
        check(got.field(6) == uint(0), f"link-credit is {text(got.field(6))}")
        check(got.field(8) == boolean(True), "drain is not set")
        check(got.field(9) != boolean(True), "echo is set")
        talk.received[receiver] = count
        if count == 5:  # and when there is nothing at all
            talk.credit(receiver, 3, drain=True)
    talk.put(queue, message(b"2"))
    talk.silent()
    [got] = talk.take(receiver)
    check(got.body == b"2", "another message")


@with_queue("wire/credit-lowered")
def credit_lowered(talk, queue):
    receiver = talk.receiver(queue)
    talk.credit(receiver, 10)
    talk.credit(receiver, 0)
    talk.put(queue, message(b"m"))
    talk.silent()
    [got] = talk.take(receiver)
    check(got.body == b"m", "another message")


@with_queue("wire/echo-flow")
def echo_flow(talk, queue):
    receiver = talk.receiver(queue)
    talk.credit(receiver, 7, echo=True)
    got = talk.frame("flow")
    check_fields(got, 11)
    check(talk.remote[got.field(4).value] == receiver, "flow for another link")
    check((got.field(5), got.field(6)) == (uint(0), uint(7)), frame_text(got))


@with_queue("wire/dlq-not-writable")
def dlq_not_writable(talk, queue):
    for address in (f"{queue}/$DeadLetterQueue", f"{queue}/$deadletterqueue"):
        handle = talk.attach(False, described(ulong(0x28), list_(string("me"))),
                             described(ulong(0x29), list_(string(address))), (2, 0))
        why = talk.refused(handle, "amqp:not-allowed")
    return why
