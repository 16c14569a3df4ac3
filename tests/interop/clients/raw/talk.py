"""A raw peer that talks to queues: links, transfers, outcomes and requests, each a step of a scenario."""

import itertools
import time
import uuid as uuids

from peer import Peer, check_error, check_fields, check_kind
from report import check, context, scenario
from wire.frames import frame, frame_text
from wire.values import (NULL, Value, binary, boolean, decode_all, described, encode, list_, map_, string, symbol, text,
                         ubyte, uint, ulong)

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, VALUE, FOOTER = (
    0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x77, 0x78)
ACCEPTED = described(ulong(0x24), list_())
RELEASED = described(ulong(0x26), list_())
MODIFIED = described(ulong(0x27), list_(boolean(True), boolean(False)))
DEFERRED = described(ulong(0x27), list_(boolean(False), boolean(True)))
LOCK_LOST = "com.microsoft:message-lock-lost"
SESSION_FILTER = symbol("com.microsoft:session-filter")
TICKS_AT_EPOCH = 621355968000000000
BATCH_FORMAT = 0x80013700


def rejected(condition="com.microsoft:dead-letter", description=NULL, info=NULL):
    return described(ulong(0x25), list_(described(ulong(0x1D), list_(symbol(condition), description, info))))


def with_queue(name):
    """Registers a function (talk, queue) as the scenario `name`: a connection and an empty queue of its own."""
    def register(body):
        @scenario(name)
        def run():
            with Talk() as talk:
                return body(talk, context["queues"][name])
        return run
    return register


def message(body=b"body", message_id=None, session=None, annotations=None, ttl=None, subject=None, properties=None):
    sections = []
    if ttl is not None:
        sections.append(described(ulong(HEADER), list_(boolean(True), NULL, uint(ttl))))
    if annotations:
        sections.append(described(ulong(ANNOTATIONS), map_(*((symbol(k), v) for k, v in annotations.items()))))
    fields = [NULL if given is None else string(given)
              for given in (message_id, None, None, subject, None, None, None, None, None, None, session)]
    while fields and fields[-1] == NULL:
        fields.pop()
    if fields:
        sections.append(described(ulong(PROPERTIES), list_(*fields)))
    if properties:
        sections.append(described(ulong(APPLICATION), map_(*((string(k), v) for k, v in properties.items()))))
    sections.append(described(ulong(DATA), binary(body)))
    return b"".join(map(encode, sections))


class Message:
    """The sections of an encoded message; `sections` is code -> value, `order` the codes as they came."""

    def __init__(self, payload):
        found = decode_all(payload)
        self.order = [v.value[0].value for v in found]
        self.sections = {v.value[0].value: v.value[1] for v in found}

    def map(self, section):
        return {k.value: v for k, v in self.sections[section].value} if section in self.sections else {}

    @property
    def body(self):
        return self.sections[DATA].value

    @property
    def count(self):
        return self.sections[HEADER].value[4].value

    @property
    def number(self):
        return self.map(ANNOTATIONS)["x-opt-sequence-number"].value


class Delivery(Message):
    def __init__(self, frames):
        super().__init__(b"".join(f.payload for f in frames))
        self.frames, self.first = frames, frames[0]
        self.id = self.first.field(1).value
        self.tag = self.first.field(2).value

    @property
    def token(self):
        """The lock token, as its bytes are in an AMQP uuid."""
        return uuids.UUID(bytes_le=self.tag).bytes


class Talk(Peer):
    """Handles count up, deliveries too. Flows of the broker are skipped unless they are asked for."""

    def __init__(self, frame_max=1048576, rule=None, key=None, profile="queues"):
        super().__init__(profile)
        check(self.plain(rule, key).field(0).value == 0, "PLAIN was refused")
        self.open("raw", frame_max)
        self.begin()
        self.handles, self.sent = itertools.count(), itertools.count()
        self.received = {}  # our handle -> deliveries that came
        self.remote = {}  # the broker's handle -> ours
        self.pairs = {}

    def expect(self, name, seconds=5.0, skip=("empty", "flow")):
        return self.frame(name, seconds, skip)

    def silent(self, seconds=0.5):
        """Nothing but heartbeats and flows comes."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                got = self.item(deadline - time.monotonic())
            except TimeoutError:
                return
            check(got.name in ("empty", "flow"), f"expected silence, got {frame_text(got)}")

    # Links.

    def attach(self, receiver, source, target, modes, properties=NULL, name=None):
        """Writes an attach; returns our handle."""
        handle = next(self.handles)
        self.send(frame(0, "attach", string(name or f"link-{handle}"), uint(handle), boolean(receiver), ubyte(modes[0]),
                        ubyte(modes[1]), source, target, NULL, NULL, NULL if receiver else uint(0), NULL, NULL, NULL,
                        properties))
        return handle

    def attached(self, handle, seconds=5.0):
        got = self.expect("attach", seconds)
        check_fields(got, 14)
        self.remote[got.field(1).value] = handle
        self.received[handle] = 0
        return got

    def sender(self, address, properties=NULL):
        """A sender that has its first credit."""
        handle = self.attach(False, described(ulong(0x28), list_(string("raw"))),
                             described(ulong(0x29), list_(string(address))), (2, 0), properties)
        got = self.attached(handle)
        check(got.field(6) != NULL, f"the sender was refused: {frame_text(got)}")
        self.frame("flow")
        return handle

    @staticmethod
    def source(address, filter_=None):
        fields = [string(address)]
        if filter_ is not None:
            fields += [NULL] * 6 + [map_((SESSION_FILTER, filter_))]
        return described(ulong(0x28), list_(*fields))

    def ask_receiver(self, address, modes=(0, 1), filter_=None, timeout_ms=None):
        """Writes the attach of a receiver; returns our handle."""
        properties = NULL if timeout_ms is None else map_((symbol("com.microsoft:timeout"), uint(timeout_ms)))
        return self.attach(True, self.source(address, filter_), described(ulong(0x29), list_(string("raw"))), modes,
                           properties)

    def receiver(self, address, modes=(0, 1), filter_=None):
        handle = self.ask_receiver(address, modes, filter_)
        got = self.attached(handle)
        check(got.field(5) != NULL, f"the receiver was refused: {frame_text(got)}")
        return handle

    def refused(self, handle, *conditions, seconds=5.0):
        """attach without a terminus, then detach with the error, both at once."""
        got = self.attached(handle, seconds)
        check(got.field(5) == NULL or got.field(6) == NULL, f"the link was accepted: {frame_text(got)}")
        detach = self.expect("detach")
        check_fields(detach, 3)
        check(detach.field(1) == boolean(True), "detach without closed=true")
        description = check_error(detach.field(2), *conditions)
        self.send(frame(0, "detach", uint(handle), boolean(True)))
        return description

    def detach(self, handle):
        self.send(frame(0, "detach", uint(handle), boolean(True)))
        got = self.expect("detach", skip=("empty", "flow", "transfer"))
        check(got.field(2) == NULL, f"the detach has an error: {frame_text(got)}")

    def credit(self, handle, credit, drain=False, echo=False):
        self.send(frame(0, "flow", uint(0), uint(2048), uint(0), uint(2048), uint(handle),
                        uint(self.received.get(handle, 0)), uint(credit), NULL, boolean(drain), boolean(echo)))

    # Messages.

    def post(self, handle, payload, message_format=0, settled=False, state=NULL):
        number = next(self.sent)
        self.send(frame(0, "transfer", uint(handle), uint(number), binary(b"%d" % number), uint(message_format),
                        boolean(settled), boolean(False), NULL, state, payload=payload))
        return number

    def outcome(self, number):
        """The state in the broker's disposition for a message we sent."""
        got = self.expect("disposition")
        check_fields(got, 6)
        check(got.field(0) == boolean(True), "the disposition must come from the receiver")
        check(got.field(1).value <= number <= (got.field(2).value or got.field(1).value),
              f"the disposition is for another delivery: {frame_text(got)}")
        check(got.field(3) == boolean(True), f"the outcome is not settled: {frame_text(got)}")
        return got.field(4)

    def put(self, address, *payloads):
        """Sends messages that must be accepted, on a link of their own."""
        handle = self.sender(address)
        for payload in payloads:
            state = self.outcome(self.post(handle, payload))
            check(state == ACCEPTED, f"not accepted: {text(state)}")
        self.detach(handle)

    def delivery(self, seconds=5.0):
        frames = [self.expect("transfer", seconds)]
        while frames[-1].field(5) == boolean(True):
            frames.append(self.expect("transfer"))
        handle = self.remote[frames[0].field(0).value]
        self.received[handle] += 1
        return Delivery(frames)

    def take(self, handle, count=1):
        self.credit(handle, count)
        return [self.delivery() for _ in range(count)]

    def settle(self, state, first, last=None, settled=False):
        self.send(frame(0, "disposition", boolean(True), uint(first), NULL if last is None else uint(last),
                        boolean(settled), state))

    def answer(self):
        """The broker's answer to an unsettled disposition: (first, last, state)."""
        got = self.expect("disposition")
        check_fields(got, 6)
        check(got.field(0) == boolean(False), "the answer must come from the sender")
        check(got.field(3) == boolean(True), f"the answer is not settled: {frame_text(got)}")
        first = got.field(1).value
        return first, first if got.field(2) == NULL else got.field(2).value, got.field(4)

    def settled(self, state, delivery):
        """Settles one delivery; the answer must be the same outcome, without an error."""
        self.settle(state, delivery.id)
        first, last, answer = self.answer()
        check(first == last == delivery.id, f"the answer is for {first} to {last}")
        check_same_outcome(answer, state)

    def refused_to_settle(self, state, delivery, condition):
        self.settle(state, delivery.id)
        _, _, answer = self.answer()
        check(answer.kind == "described" and answer.value[0] == ulong(0x25) and answer.value[1].value,
              f"expected rejected with {condition}, got {text(answer)}")
        return check_error(answer.value[1].value[0], condition)

    # Requests.

    def pair(self, entity, reply_to=None):
        """The two links of `<entity>/$management`, made once."""
        if entity not in self.pairs:
            address, reply_to = f"{entity}/$management", reply_to or f"replies-{next(self.handles)}"
            replies = self.attach(True, described(ulong(0x28), list_(string(address))),
                                  described(ulong(0x29), list_(string(reply_to))), (1, 0))
            got = self.attached(replies)
            check(got.field(5) != NULL, f"the response link was refused: {frame_text(got)}")
            self.pairs[entity] = (self.sender(address), replies, reply_to)
            self.credit(replies, 100)
        return self.pairs[entity]

    def ask(self, entity, operation, *body, message_id=None, properties=(), state=NULL):
        """One request; returns its Reply."""
        requests, replies, reply_to = self.pair(entity)
        if self.received[replies] % 50 == 49:
            self.credit(replies, 100)
        number = next(self.sent)
        message_id = message_id or string(f"request-{number}")
        payload = b"".join(map(encode, (
            described(ulong(PROPERTIES), list_(message_id, NULL, NULL, NULL, string(reply_to))),
            described(ulong(APPLICATION),
                      map_((string("operation"), string(f"com.microsoft:{operation}")), *properties)),
            described(ulong(VALUE), map_(*((string(k), v) for k, v in body))))))
        self.send(frame(0, "transfer", uint(requests), uint(number), binary(b"%d" % number), uint(0), boolean(True),
                        boolean(False), NULL, state, payload=payload))
        reply = Reply(self.delivery())
        check(reply.correlation == message_id, f"correlation-id is {text(reply.correlation)}, not {text(message_id)}")
        return reply


class Reply:
    """Checks what every answer of a management node must look like. (contract 6.2)"""

    def __init__(self, delivery):
        self.correlation = delivery.sections[PROPERTIES].value[5]
        self.properties = delivery.map(APPLICATION)
        self.status = check_kind(self.properties["statusCode"], "int", "statusCode")
        check_kind(self.properties["statusDescription"], "string", "statusDescription")
        check("status-code" not in self.properties, "both spellings of the status")
        check(VALUE in delivery.sections, "the body is missing")
        body = delivery.sections[VALUE]
        self.body = {k.value: v for k, v in body.value} if body.kind == "map" else {}
        self.empty = body.kind == "null" or not body.value

    def ok(self):
        check(self.status == 200, f"expected 200, got {self.status} {text(self.properties['statusDescription'])}")
        check("errorCondition" not in self.properties, "errorCondition in a success")
        return self.body

    def failed(self, status, condition):
        got = self.properties.get("errorCondition", NULL)
        check((self.status, got) == (status, symbol(condition)),
              f"expected {status} {condition}, got {self.status} {text(got)}")
        check(self.empty, "the body of a failure is not empty")


def check_same_outcome(answer, state):
    check(isinstance(answer, Value) and answer.kind == "described", f"no outcome in the answer: {answer}")
    check(answer.value[0] == state.value[0], f"asked for {text(state)}, answered {text(answer)}")
    if state.value[0] == ulong(0x25):
        fields = answer.value[1].value
        check(not fields or fields[0] == NULL, f"a rejection that worked has an error: {text(answer)}")


def check_array(value, kind):
    check(value.kind == "array" and value.value[0] == kind and value.value[1] is None,
          f"expected an array of {kind}, got {text(value)}")
    return [v.value for v in value.value[2]]


def now_ms():
    return int(time.time() * 1000)
