"""azure-servicebus with a partitioned queue: what can be told from a plain one, and what must not be."""

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError, ServiceBusError

from queues import (DEAD, DELETE, gone, nothing, raises, same, send, soon, take, take_one, text, with_queue)
from report import check, context

PARTITIONS = 16


def partition_of(message):
    return message.sequence_number >> 48


def peeked(receiver, at_once=3):
    """Everything there is, as clients go through it: on from the last number until nothing comes."""
    seen, following = [], 1
    while True:
        page = receiver.peek_messages(at_once, sequence_number=following)
        if not page:
            return seen
        seen += page
        following = page[-1].sequence_number + 1


@with_queue("partition/send-receive")
def send_receive(client, queue):
    count = 2 * PARTITIONS
    send(client, queue, *[f"{n}" for n in range(count)])
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, count)
        same(sorted(int(text(m)) for m in got), list(range(count)), "bodies")
        same({partition_of(m) for m in got}, set(range(PARTITIONS)), "partitions")
        same({m.sequence_number & (1 << 48) - 1 for m in got}, {1, 2}, "counters")
        for message in got:
            receiver.complete_message(message)
    gone(client, queue)


@with_queue("partition/keyed-order")
def keyed_order(client, queue):
    keys = [f"key {n}" for n in range(8)]
    with client.get_queue_sender(queue) as sender:
        for number in range(10):
            for key in keys:
                sender.send_messages(ServiceBusMessage(f"{number}", partition_key=key))
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, 80)
        for key in keys:
            mine = [m for m in got if m.partition_key == key]
            same([text(m) for m in mine], [f"{n}" for n in range(10)], f"order of {key}")
            same(len({partition_of(m) for m in mine}), 1, f"partitions of {key}")


@with_queue("partition/batch")
def batch_(client, queue):
    with client.get_queue_sender(queue) as sender:
        batch = sender.create_message_batch()
        for number in range(100):
            batch.add_message(ServiceBusMessage(f"{number}"))
        sender.send_messages(batch)
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, 100)
        same([text(m) for m in got], [f"{n}" for n in range(100)], "order")
        same(len({partition_of(m) for m in got}), 1, "partitions")


@with_queue("partition/mixed-batch")
def mixed_batch(client, queue):
    with client.get_queue_sender(queue) as sender:
        batch = [ServiceBusMessage("a", partition_key="a"), ServiceBusMessage("b", partition_key="b")]
        raises(ServiceBusError, sender.send_messages, batch)
    gone(client, queue)


@with_queue("partition/receive-and-delete")
def receive_and_delete(client, queue):
    send(client, queue, *[f"{n}" for n in range(20)])
    with client.get_queue_receiver(queue, **DELETE) as receiver:
        same(sorted(int(text(m)) for m in take(receiver, 20)), list(range(20)), "bodies")
    gone(client, queue)


@with_queue("partition/settle")
def settle(client, queue):
    send(client, queue, "a", "b", "c")
    with client.get_queue_receiver(queue) as receiver:
        by_text = {text(m): m for m in take(receiver, 3)}
        receiver.complete_message(by_text["a"])
        receiver.dead_letter_message(by_text["b"], reason="why", error_description="because")
        receiver.abandon_message(by_text["c"])
        again = take_one(receiver)
        same((text(again), again.delivery_count), ("c", 1), "abandoned")
        receiver.complete_message(again)
    with client.get_queue_receiver(queue, **DEAD) as receiver:
        dead = take_one(receiver)
        same((text(dead), dead.dead_letter_reason), ("b", "why"), "dead letter")
        receiver.complete_message(dead)
    gone(client, queue)


@with_queue("partition/peek")
def peek(client, queue):
    send(client, queue, *[f"{n}" for n in range(40)])
    with client.get_queue_receiver(queue) as receiver:
        seen = peeked(receiver)
        same(sorted(int(text(m)) for m in seen), list(range(40)), "bodies")
        numbers = [m.sequence_number for m in seen]
        same(numbers, sorted(numbers), "order of numbers")
        same(len(take(receiver, 40)), 40, "none was locked by it")


@with_queue("partition/schedule")
def schedule(client, queue):
    with client.get_queue_sender(queue) as sender:
        later = [sender.schedule_messages(ServiceBusMessage(f"{n}"), soon(3600))[0] for n in range(6)]
        check(len({number >> 48 for number in later}) > 1, f"all in one partition: {later}")
        sender.cancel_scheduled_messages(later[:5])
        raises(MessageNotFoundError, sender.cancel_scheduled_messages, later[0])
        sender.schedule_messages([ServiceBusMessage("due", partition_key="k") for _ in range(2)], soon(1))
    with client.get_queue_receiver(queue) as receiver:
        same([m.state for m in peeked(receiver) if text(m) == "5"], [ServiceBusMessageState.SCHEDULED], "state")
        same([text(m) for m in take(receiver, 2)], ["due", "due"], "due messages")


@with_queue("partition/defer")
def defer(client, queue):
    send(client, queue, *[f"{n}" for n in range(8)])
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, 8)
        numbers = [m.sequence_number for m in got]
        for message in got:
            receiver.defer_message(message)
        nothing(receiver)
        raises(MessageNotFoundError, receiver.receive_deferred_messages, numbers[:2] + [numbers[2] + 1000])
        back = receiver.receive_deferred_messages(numbers)
        same([m.sequence_number for m in back], numbers, "numbers, as asked")
        for message in back:
            receiver.complete_message(message)
    gone(client, queue)


@with_queue("partition/renew-lock")
def renew_lock(client, queue):
    send(client, queue, *[f"{n}" for n in range(4)])
    with client.get_queue_receiver(queue) as receiver:
        for message in take(receiver, 4):
            before = message.locked_until_utc
            check(receiver.renew_message_lock(message) >= before, "the lock got shorter")
            receiver.complete_message(message)
    gone(client, queue)


@with_queue("partition/duplicates")
def duplicates(client, queue):
    for _ in range(3):
        send(client, queue, *[ServiceBusMessage(f"{n}", message_id=f"id-{n}") for n in range(10)])
    with client.get_queue_receiver(queue) as receiver:
        same(sorted(int(text(m)) for m in take(receiver, 10)), list(range(10)), "bodies")
        nothing(receiver)


@with_queue("partition/empty-receive")
def empty_receive(client, queue):
    with client.get_queue_receiver(queue) as receiver:
        nothing(receiver)
        send(client, queue, "late")
        same(text(take_one(receiver)), "late", "body")


@with_queue("partition/forward")
def forward(client, queue):
    target = context["destinations"]["partition/forward"]
    send(client, queue, *[ServiceBusMessage(f"{n}", partition_key="k") for n in range(10)])
    with client.get_queue_receiver(target) as receiver:
        got = take(receiver, 10)
        same(sorted(int(text(m)) for m in got), list(range(10)), "bodies")
        same({m.partition_key for m in got}, {"k"}, "keys")


@with_queue("partition-session/accept-named")
def accept_named(client, queue):
    names = [f"session {n}" for n in range(6)]
    with client.get_queue_sender(queue) as sender:
        for number in range(3):
            for name in names:
                sender.send_messages(ServiceBusMessage(f"{number}", session_id=name))
    for name in names:
        with client.get_queue_receiver(queue, session_id=name) as receiver:
            got = take(receiver, 3)
            same([text(m) for m in got], ["0", "1", "2"], f"order of {name}")
            for message in got:
                receiver.complete_message(message)


@with_queue("partition-session/accept-next")
def accept_next(client, queue):
    with client.get_queue_sender(queue) as sender:
        for number in range(6):
            sender.send_messages(ServiceBusMessage(f"{number}", session_id=f"session {number}"))
    seen = []
    for _ in range(6):
        with client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as receiver:
            message = take_one(receiver)
            same(receiver.session.session_id, message.session_id, "session")
            seen.append(text(message))
            receiver.complete_message(message)
    same(sorted(seen), [f"{n}" for n in range(6)], "sessions")


@with_queue("partition-session/state")
def state(client, queue):
    for name in ("a", "b", "c"):
        with client.get_queue_receiver(queue, session_id=name) as receiver:
            receiver.session.set_state(f"of {name}")
            receiver.session.renew_lock()
    for name in ("a", "b", "c"):
        with client.get_queue_receiver(queue, session_id=name) as receiver:
            same(receiver.session.get_state(), f"of {name}".encode(), "state")
            receiver.session.set_state(None)
