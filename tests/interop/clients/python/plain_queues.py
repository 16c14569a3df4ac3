"""Qpid Proton (Python) with a queue: links, credit and outcomes. Scenario names: runner/scenarios.py.

Proton settles what it receives without waiting for an answer, so the effect of an outcome is looked for,
not assumed.
"""

import uuid

from proton import Condition, Delivery, Message, Timeout
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, LinkDetached

from report import check, context, scenario

WAIT = 8


def with_queue(name):
    """Registers a function (connection, queue) as the scenario `name`: each has an empty queue of its own."""
    def register(body):
        @scenario(name)
        def run():
            broker = context["brokers"]["queues"]
            connection = BlockingConnection(f"amqp://{broker['host']}:{broker['port']}", timeout=WAIT, reconnect=False,
                                            user=context["rule"], password=context["key"], allowed_mechs="PLAIN",
                                            allow_insecure_mechs=True)
            try:
                return body(connection, context["queues"][name])
            finally:
                connection.close()
        return run
    return register


def same(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def put(connection, queue, *bodies):
    sender = connection.create_sender(queue)
    for body in bodies:
        same(sender.send(Message(body=body)).remote_state, Delivery.ACCEPTED, "outcome")
    sender.close()


def inbox(connection, address, **options):
    """A receiver that gives credit only when asked. Proton would name two of one address alike."""
    return connection.create_receiver(address, credit=0, name=f"inbox-{uuid.uuid4()}", **options)


def take(receiver, count=1):
    receiver.link.flow(count - receiver.link.credit)
    return [receiver.receive(timeout=WAIT) for _ in range(count)]


def settle(connection, receiver, state=None, **how):
    """Settles the oldest message taken, and sees to it that the frame is written."""
    delivery = receiver.fetcher.unsettled.popleft()
    for name, value in how.items():
        setattr(delivery.local, name, value)
    delivery.update(state)
    delivery.settle()
    pause(connection, 0.1)


def pause(connection, seconds=0.5):
    try:
        connection.wait(lambda: False, timeout=seconds)
    except Timeout:
        pass


def nothing(connection, receiver, credit=1):
    if credit:
        receiver.link.flow(credit)
    pause(connection)
    check(not receiver.fetcher.has_message, "expected nothing, a message came")


@with_queue("plain-queue/send-receive")
def send_receive(connection, queue):
    sender = connection.create_sender(queue)
    for number in range(20):
        message = Message(body=f"m{number}", id=f"id-{number}", subject="s", properties={"n": 1.5, "text": "ż"})
        same(sender.send(message).remote_state, Delivery.ACCEPTED, "outcome")
    receiver = inbox(connection, queue)
    for number, got in enumerate(take(receiver, 20)):
        same((got.body, got.id, got.subject, got.properties),
             (f"m{number}", f"id-{number}", "s", {"n": 1.5, "text": "ż"}), "message")
        same(got.annotations["x-opt-sequence-number"], number + 1, "sequence number")
        same(got.delivery_count, 0, "delivery count")
        receiver.accept()
    nothing(connection, receiver)


@with_queue("plain-queue/pre-settled")
def pre_settled(connection, queue):
    sender = connection.create_sender(queue, options=AtMostOnce())
    for body in ("a", "b"):
        sender.send(Message(body=body))
    receiver = inbox(connection, queue, options=AtMostOnce())
    same([m.body for m in take(receiver, 2)], ["a", "b"], "bodies")
    same(len(receiver.fetcher.unsettled), 0, "unsettled deliveries")
    nothing(connection, inbox(connection, queue))


@with_queue("plain-queue/accept")
def accept(connection, queue):
    put(connection, queue, "a", "b")
    receiver, other = inbox(connection, queue), inbox(connection, queue)
    same(take(receiver)[0].body, "a", "first")
    settle(connection, receiver, Delivery.ACCEPTED)
    same(take(other)[0].body, "b", "after the first was accepted")
    settle(connection, other, Delivery.ACCEPTED)
    nothing(connection, other)


@with_queue("plain-queue/release")
def release(connection, queue):
    put(connection, queue, "again")
    receiver = inbox(connection, queue)
    for number in range(3):
        [got] = take(receiver)
        same((got.body, got.delivery_count), ("again", 0), f"delivery {number}")  # a release is not counted
        settle(connection, receiver, Delivery.RELEASED)
    other = inbox(connection, queue)
    [got] = take(other)
    same((got.body, got.delivery_count), ("again", 0), "at another receiver")
    settle(connection, other, Delivery.ACCEPTED)


@with_queue("plain-queue/modify")
def modify(connection, queue):
    put(connection, queue, "failed", "next")
    receiver = inbox(connection, queue)
    for number in range(2):
        [got] = take(receiver)
        same((got.body, got.delivery_count), ("failed", number), f"delivery {number}")
        settle(connection, receiver, Delivery.MODIFIED, failed=True)
    [got] = take(receiver)
    same((got.body, got.delivery_count), ("failed", 2), "last delivery")
    settle(connection, receiver, Delivery.MODIFIED, undeliverable=True)  # this defers it
    same(take(receiver)[0].body, "next", "after the deferral")
    settle(connection, receiver, Delivery.ACCEPTED)
    nothing(connection, receiver)


@with_queue("plain-queue/reject")
def reject(connection, queue):
    put(connection, queue, "bad")
    receiver = inbox(connection, queue)
    take(receiver)
    settle(connection, receiver, Delivery.REJECTED, condition=Condition("my:condition", "my words"))
    nothing(connection, receiver)
    graves = inbox(connection, f"{queue}/$DeadLetterQueue")
    [dead] = take(graves)
    same((dead.body, dead.properties),
         ("bad", {"DeadLetterReason": "my:condition", "DeadLetterErrorDescription": "my words"}), "dead letter")
    settle(connection, graves, Delivery.ACCEPTED)


@with_queue("plain-queue/credit")
def credit(connection, queue):
    bodies = [f"m{n}" for n in range(10)]
    put(connection, queue, *bodies)
    receiver = inbox(connection, queue)
    nothing(connection, receiver, 0)  # no credit, no transfer
    got = take(receiver, 3)
    nothing(connection, receiver, 0)
    receiver.link.flow(20)
    got += [receiver.receive(timeout=WAIT) for _ in range(7)]
    same([m.body for m in got], bodies, "order")
    # 13 of the 20 are left: what comes later comes at once.
    put(connection, queue, "late")
    same(receiver.receive(timeout=WAIT).body, "late", "a message that found credit waiting")


@with_queue("plain-queue/drain")
def drain(connection, queue):
    put(connection, queue, "only")
    receiver = inbox(connection, queue)
    for expected in (["only"], []):
        receiver.link.drain(5)
        connection.wait(lambda: not receiver.link.draining(), timeout=WAIT, msg="the answer to the drain")
        got = []
        while receiver.fetcher.has_message:
            got.append(receiver.fetcher.pop().body)
        same((got, receiver.link.credit), (expected, 0), "drained")
    receiver.link.drain_mode = False
    put(connection, queue, "later")
    same(take(receiver)[0].body, "later", "after the drain")


@with_queue("plain-queue/dlq-address")
def dlq_address(connection, queue):
    dead = f"{queue}/$DeadLetterQueue"
    try:
        connection.create_sender(dead)
        raise AssertionError("a sender to the dead-letter queue was accepted")
    except LinkDetached as e:
        same(e.condition, "amqp:not-allowed", "refusal")
    put(connection, queue, "bad")
    receiver = inbox(connection, queue)
    take(receiver)
    settle(connection, receiver, Delivery.REJECTED)
    for address in (dead, dead.lower(), f"/{dead}"):
        graves = inbox(connection, address)
        same(take(graves)[0].body, "bad", address)
        settle(connection, graves, Delivery.RELEASED)
        graves.close()
