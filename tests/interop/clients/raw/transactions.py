"""Transactions frame by frame: the controller link, states, errors, what ends them (contract 7)."""

import time

from management import messages_of, peek, tokens
from peer import check_error
from report import ask, check, context, scenario
from talk import (ACCEPTED, ANNOTATIONS, BATCH_FORMAT, DATA, DEFERRED, MODIFIED, VALUE, Message, Talk, check_array,
                  message, now_ms, rejected)
from wire.frames import frame, frame_text
from wire.values import (NULL, array, binary, boolean, described, encode, list_, long_, map_, string, symbol, text,
                         timestamp, ubyte, uint, ulong)

COORDINATOR, DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL, REJECTED = 0x30, 0x31, 0x32, 0x33, 0x34, 0x25
UNKNOWN, ROLLBACK, LIMIT = "amqp:transaction:unknown-id", "amqp:transaction:rollback", "amqp:resource-limit-exceeded"
NOT_ALLOWED = "amqp:not-allowed"
VIA = "com.microsoft:transfer-destination-address"


def with_queues(name):
    """Registers a function (talk, queue, partner): a connection, and two queues in different stores."""
    def register(body):
        @scenario(name)
        def run():
            with Transacting() as talk:
                return body(talk, context["queues"][name], context["partners"][name])
        return run
    return register


def in_transaction(transaction, *outcome):
    return described(ulong(TRANSACTIONAL), list_(binary(transaction), *outcome))


def control(code, *fields):
    return encode(described(ulong(VALUE), described(ulong(code), list_(*fields))))


class Transacting(Talk):
    def __init__(self):
        super().__init__()
        self.controls = None

    def controller(self):
        """A controller link; returns its handle and the attach that answered."""
        handle = self.attach(False, described(ulong(0x28), list_(string("raw"))),
                             described(ulong(COORDINATOR), list_()), (2, 0))
        got = self.attached(handle)
        credit = self.frame("flow").field(6).value
        check(credit >= 100, f"a credit of {credit}")
        return handle, got

    def begin_one(self):
        if self.controls is None:
            self.controls, _ = self.controller()
        return self.declared(self.outcome(self.post(self.controls, control(DECLARE, NULL))))

    @staticmethod
    def declared(state):
        check(state.kind == "described" and state.value[0] == ulong(DECLARED), f"not declared: {text(state)}")
        transaction = state.value[1].value[0]
        check(transaction.kind == "binary" and 0 < len(transaction.value) <= 32, f"the id is {text(transaction)}")
        return transaction.value

    def discharge(self, transaction, fail):
        return self.outcome(self.post(self.controls, control(DISCHARGE, binary(transaction), boolean(fail))))

    def commit(self, transaction):
        state = self.discharge(transaction, False)
        check(state == ACCEPTED, f"the commit was refused: {text(state)}")

    def roll_back(self, transaction):
        state = self.discharge(transaction, True)
        check(state == ACCEPTED, f"the rollback was refused: {text(state)}")

    def commit_fails(self, transaction, condition=ROLLBACK):
        return was_rejected(self.discharge(transaction, False), condition)

    def send_in(self, transaction, handle, payload, message_format=0):
        state = self.outcome(self.post(handle, payload, message_format, state=in_transaction(transaction)))
        check(state == in_transaction(transaction, ACCEPTED), f"not enlisted: {text(state)}")

    def send_fails(self, transaction, handle, payload, condition, message_format=0):
        state = self.outcome(self.post(handle, payload, message_format, state=in_transaction(transaction)))
        return was_rejected(state, condition)

    def settle_in(self, transaction, delivery, outcome):
        self.settle(in_transaction(transaction, outcome), delivery.id)
        first, last, answer = self.answer()
        check(first == last == delivery.id, f"the answer is for {first} to {last}")
        check(answer.kind == "described" and answer.value[0] == ulong(TRANSACTIONAL), f"the answer is {text(answer)}")
        named, echoed = answer.value[1].value
        check(named == binary(transaction), f"another transaction: {text(answer)}")
        check(echoed.kind == "described" and echoed.value[0] == outcome.value[0], f"another outcome: {text(answer)}")

    def there(self, queue):
        """Bodies of all messages, whatever their state."""
        reply = peek(self, queue, count=200)
        return [Message(m["message"].value).body for m in messages_of(reply.body)] if reply.status == 200 else []

    def holds(self, queue, *bodies):
        got = self.there(queue)
        check(got == list(bodies), f"{queue} holds {got}, not {list(bodies)}")


def was_rejected(state, condition):
    check(state.kind == "described" and state.value[0] == ulong(REJECTED), f"expected {condition}, got {text(state)}")
    return check_error(state.value[1].value[0], condition)


@with_queues("transaction/coordinator")
def coordinator(talk, _queue, _partner):
    _, got = talk.controller()
    target = got.field(6)
    check(target.kind == "described" and target.value[0] == ulong(COORDINATOR), f"the target is {text(target)}")
    capabilities = set(check_array(target.value[1].value[0], "symbol"))
    check(capabilities == {"amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"},
          f"capabilities {capabilities}")
    check(got.field(13).kind == "map", "the properties are missing")
    # As .NET attaches: no initial-delivery-count, and with capabilities.
    handle = next(talk.handles)
    talk.send(frame(0, "attach", string("net"), uint(handle), boolean(False), NULL, NULL,
                    described(ulong(0x28), list_(string("x"))),
                    described(ulong(COORDINATOR), list_(symbol("amqp:local-transactions")))))
    got = talk.attached(handle)
    check(got.field(6) != NULL, f"refused: {frame_text(got)}")
    ids = set()
    talk.controls = handle
    for _ in range(3):
        ids.add(talk.begin_one())
    check(len(ids) == 3, "ids repeat")
    for transaction in ids:
        talk.commit(transaction)  # of nothing


@with_queues("transaction/control-errors")
def control_errors(talk, queue, _partner):
    transaction = talk.begin_one()

    def refused(payload, *conditions):
        state = talk.outcome(talk.post(talk.controls, payload))
        check(state.value[0] == ulong(REJECTED), f"not rejected: {text(state)}")
        check_error(state.value[1].value[0], *conditions)
    refused(b"\x00\x53\x77\xa1\x05hello", "amqp:decode-error")
    refused(b"garbage", "amqp:decode-error")
    refused(control(0x24), "amqp:decode-error")
    refused(control(DISCHARGE), "amqp:decode-error", "amqp:invalid-field")
    refused(control(DECLARE, binary(b"global")), "amqp:not-implemented")
    refused(control(DISCHARGE, binary(b"nobody"), boolean(False)), UNKNOWN)
    refused(control(DISCHARGE, binary(b"n" * 4000), boolean(True)), UNKNOWN)
    # The link has survived all of it; a settled control message it does not.
    handle = talk.sender(queue)
    talk.send_in(transaction, handle, message(b"never"))
    talk.post(talk.controls, control(DISCHARGE, binary(transaction), boolean(False)), settled=True)
    detach = talk.expect("detach")
    check_error(detach.field(2), NOT_ALLOWED)
    talk.send(frame(0, "detach", uint(talk.controls), boolean(True)))
    talk.holds(queue)


@with_queues("transaction/commit")
def commit(talk, queue, partner):
    here, there = talk.sender(queue), talk.sender(partner)
    transaction = talk.begin_one()
    talk.send_in(transaction, here, message(b"one"))
    talk.send_in(transaction, there, message(b"two"))
    batch = b"".join(encode(described(ulong(DATA), binary(message(b)))) for b in (b"three", b"four"))
    talk.send_in(transaction, here, batch, BATCH_FORMAT)
    talk.post(here, message(b"five"), settled=True, state=in_transaction(transaction))
    talk.holds(queue)
    talk.holds(partner)
    talk.commit(transaction)
    talk.holds(queue, b"one", b"three", b"four", b"five")
    talk.holds(partner, b"two")
    was_rejected(talk.discharge(transaction, False), UNKNOWN)


@with_queues("transaction/rollback")
def rollback(talk, queue, partner):
    talk.put(queue, message(b"work"))
    there, receiver = talk.sender(partner), talk.receiver(queue)
    [delivery] = talk.take(receiver)
    transaction = talk.begin_one()
    talk.send_in(transaction, there, message(b"never"))
    talk.settle_in(transaction, delivery, ACCEPTED)
    talk.roll_back(transaction)
    talk.holds(partner)
    # Still locked: it can be settled by its token, now for good. Here it is left to its lock.
    other = talk.receiver(queue)
    talk.credit(other, 1)
    talk.silent(0.5)
    [again] = [talk.delivery(context["lock_seconds"] + 5)]
    check((again.body, again.count) == (b"work", 1), f"came back as {again.body}, {again.count}")
    transaction = talk.begin_one()
    talk.settle_in(transaction, again, ACCEPTED)
    talk.roll_back(transaction)
    talk.ask(queue, "update-disposition", ("disposition-status", string("completed")), tokens(again.token)).ok()
    talk.holds(queue)


@with_queues("transaction/unknown-id")
def unknown_id(talk, queue, _partner):
    talk.put(queue, message(b"work"))
    handle, receiver = talk.sender(queue), talk.receiver(queue)
    [delivery] = talk.take(receiver)
    for transaction in (b"", b"nobody", b"n" * 16, b"n" * 1000):
        talk.send_fails(transaction, handle, message(b"x"), UNKNOWN)
    talk.refused_to_settle(in_transaction(b"n" * 16, ACCEPTED), delivery, UNKNOWN)
    # An id is of one connection.
    with Transacting() as other:
        transaction = other.begin_one()
        talk.send_fails(transaction, handle, message(b"x"), UNKNOWN)
    state = talk.outcome(talk.post(handle, message(b"x"), state=described(ulong(TRANSACTIONAL), list_())))
    check(state.value[0] == ulong(REJECTED), f"a state without an id: {text(state)}")
    talk.holds(queue, b"work")


@with_queues("transaction/limit")
def limit(talk, queue, _partner):
    handle = talk.sender(queue)
    transaction = talk.begin_one()
    batch = b"".join(encode(described(ulong(DATA), binary(message(b"m")))) for _ in range(99))
    talk.send_in(transaction, handle, batch, BATCH_FORMAT)
    talk.send_in(transaction, handle, message(b"m"))
    talk.send_fails(transaction, handle, message(b"m"), LIMIT)
    talk.commit(transaction)
    check(len(talk.there(queue)) == 100, "not all are there")
    open_ones = []
    for _ in range(100):
        open_ones.append(talk.begin_one())
    was_rejected(talk.outcome(talk.post(talk.controls, control(DECLARE, NULL))), LIMIT)
    for transaction in open_ones:
        talk.roll_back(transaction)


@with_queues("transaction/settle")
def settle(talk, queue, _partner):
    outcomes = {b"complete": ACCEPTED, b"abandon": MODIFIED, b"defer": DEFERRED, b"dead": rejected()}
    talk.put(queue, *(message(body) for body in outcomes))
    receiver = talk.receiver(queue)
    deliveries = talk.take(receiver, 4)
    transaction = talk.begin_one()
    for delivery in deliveries:
        talk.settle_in(transaction, delivery, outcomes[delivery.body])
    talk.holds(queue, *outcomes)
    talk.holds(f"{queue}/$DeadLetterQueue")
    # What is settled already cannot be settled again, in a transaction or not.
    talk.refused_to_settle(in_transaction(transaction, MODIFIED), deliveries[0], "com.microsoft:message-lock-lost")
    talk.refused_to_settle(ACCEPTED, deliveries[0], "com.microsoft:message-lock-lost")
    talk.ask(queue, "update-disposition", ("disposition-status", string("abandoned")), tokens(deliveries[0].token),
             state=in_transaction(transaction)).failed(410, "com.microsoft:message-lock-lost")
    talk.commit(transaction)
    talk.holds(f"{queue}/$DeadLetterQueue", b"dead")
    [again] = talk.take(receiver)
    check((again.body, again.count) == (b"abandon", 1), f"came back as {again.body}, {again.count}")
    talk.settled(ACCEPTED, again)
    talk.holds(queue, b"defer")


@with_queues("transaction/commit-fails")
def commit_fails(talk, queue, partner):
    talk.put(queue, message(b"work"))
    receiver, there = talk.receiver(queue), talk.sender(partner)
    [delivery] = talk.take(receiver)
    transaction = talk.begin_one()
    talk.settle_in(transaction, delivery, ACCEPTED)
    talk.send_in(transaction, there, message(b"never"))
    time.sleep(context["lock_seconds"] + 1)
    talk.commit_fails(transaction)
    talk.holds(queue, b"work")
    talk.holds(partner)


@with_queues("transaction/sessions")
def sessions(talk, queue, partner):
    """The controller on one session, a sender on another: an id holds on the connection."""
    talk.send(frame(1, "begin", NULL, uint(0), uint(2048), uint(2048), uint(100)))
    talk.expect("begin")
    talk.send(frame(1, "attach", string("elsewhere"), uint(0), boolean(False), ubyte(2), ubyte(0),
                    described(ulong(0x28), list_(string("raw"))), described(ulong(0x29), list_(string(partner))), NULL,
                    NULL, uint(0)))
    talk.expect("attach")
    handle = talk.sender(queue)
    transaction = talk.begin_one()
    talk.send_in(transaction, handle, message(b"one"))
    talk.send(frame(1, "transfer", uint(0), uint(0), binary(b"t"), uint(0), boolean(False), boolean(False), NULL,
                    in_transaction(transaction), payload=message(b"two")))
    state = talk.expect("disposition").field(4)
    check(state == in_transaction(transaction, ACCEPTED), f"not enlisted: {text(state)}")
    talk.commit(transaction)
    talk.holds(queue, b"one")
    talk.holds(partner, b"two")


@with_queues("transaction/controller-gone")
def controller_gone(talk, queue, _partner):
    handle = talk.sender(queue)
    transaction = talk.begin_one()
    talk.send_in(transaction, handle, message(b"never"))
    talk.detach(talk.controls)
    talk.send_fails(transaction, handle, message(b"x"), UNKNOWN)
    talk.controls, _ = talk.controller()
    was_rejected(talk.discharge(transaction, False), UNKNOWN)
    talk.holds(queue)


@with_queues("transaction/connection-lost")
def connection_lost(talk, queue, partner):
    talk.put(queue, message(b"work"))
    with Transacting() as other:
        receiver, there = other.receiver(queue), other.sender(partner)
        [delivery] = other.take(receiver)
        transaction = other.begin_one()
        other.settle_in(transaction, delivery, ACCEPTED)
        other.send_in(transaction, there, message(b"never"))
    time.sleep(0.3)
    talk.holds(queue, b"work")
    talk.holds(partner)


@with_queues("transaction/management")
def management(talk, queue, partner):
    talk.put(queue, message(b"work"))
    [delivery] = talk.take(talk.receiver(queue))

    def schedule(transaction, body):
        due = message(body, annotations={"x-opt-scheduled-enqueue-time": timestamp(now_ms() + 3600_000)})
        return talk.ask(partner, "schedule-message", ("messages", list_(map_((string("message"), binary(due))))),
                        state=in_transaction(transaction))
    transaction = talk.begin_one()
    [number] = check_array(schedule(transaction, b"later").ok()["sequence-numbers"], "long")
    talk.ask(queue, "update-disposition", ("disposition-status", string("completed")), tokens(delivery.token),
             state=in_transaction(transaction)).ok()
    talk.holds(queue, b"work")
    talk.holds(partner)
    talk.ask(queue, "peek-message", ("from-sequence-number", long_(1)), ("message-count", long_(1)),
             state=in_transaction(transaction)).failed(400, NOT_ALLOWED)
    talk.commit(transaction)
    talk.holds(queue)
    talk.holds(partner, b"later")
    talk.ask(partner, "cancel-scheduled-message", ("sequence-numbers", array("long", long_(number)))).ok()
    talk.holds(partner)
    transaction = talk.begin_one()
    schedule(transaction, b"never").ok()
    talk.roll_back(transaction)
    talk.holds(partner)
    schedule(transaction, b"never").failed(400, UNKNOWN)


@with_queues("transaction/partition-keys")
def partition_keys(talk, queue, partner):
    handle, plain = talk.sender(queue), talk.sender(partner)

    def keyed(body, key):
        return message(body, annotations={"x-opt-partition-key": string(key)})
    transaction = talk.begin_one()
    talk.send_in(transaction, handle, keyed(b"one", "k"))
    talk.send_in(transaction, handle, keyed(b"two", "k"))
    talk.send_in(transaction, plain, message(b"three"))
    talk.commit(transaction)
    talk.holds(queue, b"one", b"two")
    for wrong in (message(b"x"), keyed(b"x", "other"), message(b"x", session="s")):
        transaction = talk.begin_one()
        talk.send_in(transaction, handle, keyed(b"never", "k"))
        talk.send_fails(transaction, handle, wrong, NOT_ALLOWED)
        talk.send_fails(transaction, plain, message(b"x"), ROLLBACK)
        talk.commit_fails(transaction)
    transaction = talk.begin_one()
    talk.send_fails(transaction, handle, message(b"x"), NOT_ALLOWED)
    talk.roll_back(transaction)
    talk.holds(queue, b"one", b"two")
    talk.holds(partner, b"three")


@with_queues("transaction/via")
def via(talk, queue, partner):
    properties = map_((symbol(VIA), string(partner)))
    refused = talk.attach(False, described(ulong(0x28), list_(string("raw"))),
                          described(ulong(0x29), list_(string(queue))), (2, 0), map_((symbol(VIA), string("nowhere"))))
    talk.refused(refused, "amqp:not-found")
    handle = talk.attach(False, described(ulong(0x28), list_(string("raw"))),
                         described(ulong(0x29), list_(string(queue))), (2, 0), properties)
    got = talk.attached(handle)
    echoed = {k.value: v for k, v in got.field(13).value}
    check(echoed.get(VIA) == string(partner), f"the destination is not echoed: {text(got.field(13))}")
    talk.frame("flow")
    state = talk.outcome(talk.post(handle, message(b"outside")))
    check(state == ACCEPTED, f"not accepted: {text(state)}")
    receiver = talk.receiver(partner)
    [delivery] = talk.take(receiver)
    check(delivery.body == b"outside", f"came as {delivery.body}")
    talk.settled(ACCEPTED, delivery)
    transaction = talk.begin_one()
    talk.send_in(transaction, handle, message(b"inside"))
    talk.credit(receiver, 1)
    talk.silent(0.5)
    talk.commit(transaction)
    delivery = talk.delivery()
    check(delivery.body == b"inside", f"came as {delivery.body}")
    check("x-opt-sequence-number" in delivery.map(ANNOTATIONS), "no number")
    talk.settled(ACCEPTED, delivery)


@scenario("transaction/restart")
def restart():
    """What was committed survives a restart, and what was not is gone with it."""
    queue, partner = context["queues"]["transaction/restart"], context["partners"]["transaction/restart"]
    with Transacting() as talk:
        talk.put(queue, message(b"work"))
        [delivery] = talk.take(talk.receiver(queue))
        here, there = talk.sender(queue), talk.sender(partner)
        done, lost = talk.begin_one(), talk.begin_one()
        talk.settle_in(done, delivery, ACCEPTED)
        for transaction, body in ((done, b"done"), (lost, b"lost")):
            talk.send_in(transaction, here, message(body))
            talk.send_in(transaction, there, message(body))
        talk.commit(done)
    ask("stop", "queues")
    ask("start", "queues")
    with Transacting() as talk:
        talk.holds(queue, b"done")
        talk.holds(partner, b"done")
