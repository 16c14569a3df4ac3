"""azure-servicebus with a queue: send, receive, settle, schedule, peek. Scenario names: runner/scenarios.py.

Each scenario has a queue of its own, empty at the start. Nothing is retried by the SDK: what the
broker answers first is what counts.
"""

import datetime
import os
import time
import uuid

from azure.servicebus import (ServiceBusClient, ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode,
                              ServiceBusSubQueue)
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError, MessageSizeExceededError

from report import check, context, scenario

LOCK = context["lock_seconds"]
DEAD = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER}
DELETE = {"receive_mode": ServiceBusReceiveMode.RECEIVE_AND_DELETE}
UTC = datetime.timezone.utc


def connected():
    return ServiceBusClient.from_connection_string(context["brokers"]["queues"]["emulator"], retry_total=0,
                                                   socket_timeout=10)


def with_queue(name):
    """Registers a function (client, queue) as the scenario `name`."""
    def register(body):
        @scenario(name)
        def run():
            with connected() as client:
                return body(client, context["queues"][name])
        return run
    return register


def send(client, queue, *messages):
    with client.get_queue_sender(queue) as sender:
        for message in messages:
            sender.send_messages(message if not isinstance(message, str) else ServiceBusMessage(message))


def take(receiver, count=1, seconds=10):
    """Exactly `count` messages, however many calls that needs."""
    got, deadline = [], time.monotonic() + seconds
    while len(got) < count:
        left = deadline - time.monotonic()
        check(left > 0, f"{len(got)} of {count} messages came within {seconds} s")
        got += receiver.receive_messages(max_message_count=count - len(got), max_wait_time=left)
    return got


def take_one(receiver, seconds=10):
    return take(receiver, 1, seconds)[0]


def nothing(receiver, seconds=1):
    got = receiver.receive_messages(max_message_count=1, max_wait_time=seconds)
    check(not got, f"expected nothing, got {[text(m) for m in got]}")


def text(message):
    return b"".join(message.body).decode()


def same(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def sees(receiver, expected, count=10):
    """Peek shows these bodies. SDKs up to 7.14 do not wait for the answer to a settlement: soon is good enough."""
    deadline = time.monotonic() + 3
    while True:
        seen = [text(m) for m in receiver.peek_messages(count, sequence_number=1)]
        if seen == expected:
            return
        check(time.monotonic() < deadline, f"peek: expected {expected}, got {seen}")
        time.sleep(0.05)


def gone(client, queue, **options):
    """Nothing at all is in the queue, not even locked or deferred."""
    with client.get_queue_receiver(queue, **options) as receiver:
        sees(receiver, [])


def raises(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as e:
        return str(e)
    except Exception as e:
        raise AssertionError(f"expected {kind.__name__}, got {type(e).__name__}: {e}") from e
    raise AssertionError(f"expected {kind.__name__}, but it worked")


def soon(seconds):
    """A time to come, in whole milliseconds as the wire has them."""
    due = datetime.datetime.now(UTC) + datetime.timedelta(seconds=seconds)
    return due.replace(microsecond=due.microsecond // 1000 * 1000)


@with_queue("queue/send-receive-complete")
def send_receive_complete(client, queue):
    before = datetime.datetime.now(UTC) - datetime.timedelta(seconds=1)
    send(client, queue, "hello")
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(text(got), "hello", "body")
        same(got.sequence_number, 1, "sequence number")
        same(got.delivery_count, 0, "delivery count")
        same(got.state, ServiceBusMessageState.ACTIVE, "state")
        now = datetime.datetime.now(UTC) + datetime.timedelta(seconds=1)
        check(before <= got.enqueued_time_utc <= now, f"enqueued at {got.enqueued_time_utc}, now it is {now}")
        check(got.locked_until_utc > now, f"locked until {got.locked_until_utc}, now it is {now}")
        check(got.lock_token, "no lock token")
        check(got.message_id, "no message id")
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/batch")
def batch_(client, queue):
    count = 250
    with client.get_queue_sender(queue) as sender:
        batch = sender.create_message_batch()
        for number in range(count):
            batch.add_message(ServiceBusMessage(f"{number} " + "x" * 100, message_id=f"id-{number}"))
        sender.send_messages(batch)
        sender.send_messages([ServiceBusMessage("list 0"), ServiceBusMessage("list 1")])
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, count + 2)
        same([text(m).split()[0] for m in got[:count]], [str(n) for n in range(count)], "order")
        same([m.message_id for m in got[:count]], [f"id-{n}" for n in range(count)], "message ids")
        same([m.sequence_number for m in got], list(range(1, count + 3)), "sequence numbers")
        same([text(m) for m in got[count:]], ["list 0", "list 1"], "the list")
        for message in got:
            receiver.complete_message(message)
    gone(client, queue)


@with_queue("queue/receive-and-delete")
def receive_and_delete(client, queue):
    send(client, queue, "a", "b", "c")
    with client.get_queue_receiver(queue, **DELETE) as receiver:
        got = take(receiver, 3)
        same([text(m) for m in got], ["a", "b", "c"], "bodies")
        same([m.lock_token for m in got], [None] * 3, "lock tokens")
    gone(client, queue)


@with_queue("queue/abandon")
def abandon(client, queue):
    send(client, queue, "again", "second")
    with client.get_queue_receiver(queue) as receiver:
        for count in range(3):
            got = take_one(receiver)
            # A returned message regains its place, so it is before the second one.
            same((text(got), got.delivery_count, got.sequence_number), ("again", count, 1), f"delivery {count}")
            if count < 2:
                receiver.abandon_message(got)
        receiver.complete_message(got)
        got = take_one(receiver)
        same((text(got), got.delivery_count), ("second", 0), "the other message")
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/defer")
def defer(client, queue):
    send(client, queue, "later", "now")
    with client.get_queue_receiver(queue) as receiver:
        first = take_one(receiver)
        receiver.defer_message(first)
        second = take_one(receiver)
        same(text(second), "now", "after the deferral")
        receiver.complete_message(second)
        nothing(receiver)
        state = [(text(m), m.state) for m in receiver.peek_messages(10, sequence_number=1)]
        same(state, [("later", ServiceBusMessageState.DEFERRED)], "peek")
        got = receiver.receive_deferred_messages(first.sequence_number)
        same([(text(m), m.sequence_number, m.state) for m in got],
             [("later", first.sequence_number, ServiceBusMessageState.DEFERRED)], "by number")
        receiver.complete_message(got[0])
        raises(MessageNotFoundError, receiver.receive_deferred_messages, first.sequence_number)
    gone(client, queue)


@with_queue("queue/dead-letter")
def dead_letter(client, queue):
    send(client, queue, ServiceBusMessage("poison", application_properties={"kept": "yes"}, message_id="p"))
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        receiver.dead_letter_message(got, reason="a reason", error_description="what was wrong with it")
    gone(client, queue)
    with client.get_queue_receiver(queue, **DEAD) as receiver:
        dead = take_one(receiver)
        same((text(dead), dead.message_id, dead.sequence_number), ("poison", "p", got.sequence_number), "message")
        same((dead.dead_letter_reason, dead.dead_letter_error_description), ("a reason", "what was wrong with it"),
             "why")
        same(dead.dead_letter_source, None, "source")
        same(dead.application_properties[b"kept"], b"yes", "property")
        send(client, queue, ServiceBusMessage(text(dead) + ", mended"))
        receiver.complete_message(dead)
    gone(client, queue, **DEAD)
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(text(got), "poison, mended", "resubmitted")
        receiver.complete_message(got)
    gone(client, queue)


def arrives_when_due(client, queue, expected, due):
    """The messages are there as scheduled, then come out, at their time and not before."""
    with client.get_queue_receiver(queue) as receiver:
        peeked = receiver.peek_messages(10)
        same([(text(m), m.state) for m in peeked], [(e, ServiceBusMessageState.SCHEDULED) for e in expected], "peek")
        nothing(receiver, 0.5)
        got = take(receiver, len(expected))
        check(datetime.datetime.now(UTC) >= due, "it came before its time")
        same([text(m) for m in got], expected, "bodies")
        for message in got:
            same(message.scheduled_enqueue_time_utc, due, "scheduled time")
            check(message.enqueued_time_utc >= due, f"enqueued at {message.enqueued_time_utc}, due {due}")
            receiver.complete_message(message)
    gone(client, queue)
    return peeked


@with_queue("queue/schedule")
def schedule(client, queue):
    due = soon(3)
    with client.get_queue_sender(queue) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage("one"), ServiceBusMessage("two")], due)
    same(len(numbers), 2, "sequence numbers")
    peeked = arrives_when_due(client, queue, ["one", "two"], due)
    same([m.sequence_number for m in peeked], numbers, "numbers in peek")


@with_queue("queue/cancel-scheduled")
def cancel_scheduled(client, queue):
    with client.get_queue_sender(queue) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage("no"), ServiceBusMessage("yes")], soon(3))
        sender.cancel_scheduled_messages(numbers[0])
        raises(MessageNotFoundError, sender.cancel_scheduled_messages, numbers[0])
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(text(got), "yes", "what was not cancelled")
        receiver.complete_message(got)
        nothing(receiver)
    gone(client, queue)


@with_queue("queue/schedule-by-annotation")
def schedule_by_annotation(client, queue):
    due = soon(3)
    send(client, queue, ServiceBusMessage("dated", scheduled_enqueue_time_utc=due))
    arrives_when_due(client, queue, ["dated"], due)


@with_queue("queue/peek")
def peek(client, queue):
    send(client, queue, *(f"m{n}" for n in range(25)))
    with client.get_queue_receiver(queue) as receiver:
        pages = []
        while True:
            page = receiver.peek_messages(10)
            check(len(page) <= 10, f"a page of {len(page)}")
            if not page:
                break
            pages += page
        same([text(m) for m in pages], [f"m{n}" for n in range(25)], "all pages")
        numbers = [m.sequence_number for m in pages]
        check(numbers == sorted(set(numbers)), f"not ascending: {numbers}")
        same([m.delivery_count for m in pages], [0] * 25, "delivery counts")
        middle = receiver.peek_messages(2, sequence_number=numbers[7])
        same([text(m) for m in middle], ["m7", "m8"], "from a number on")
        first = take_one(receiver)  # a locked message is still seen
        sees(receiver, ["m0", "m1"], 2)
        receiver.complete_message(first)
        sees(receiver, ["m1", "m2"], 2)


@with_queue("queue/renew-lock")
def renew_lock(client, queue):
    send(client, queue, "mine")
    with client.get_queue_receiver(queue) as receiver, client.get_queue_receiver(queue) as other:
        got = take_one(receiver)
        until, end = got.locked_until_utc, time.monotonic() + LOCK + 3
        while time.monotonic() < end:
            time.sleep(1.5)
            renewed = receiver.renew_message_lock(got)
            check(renewed > until, f"the lock ended {until}, renewed until {renewed}")
            same(got.locked_until_utc, renewed, "the message's lock")
            until = renewed
        nothing(other)
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/lock-lost")
def lock_lost(client, queue):
    """The SDK looks at its own clock before it asks the broker; the return of the message is the broker's word."""
    send(client, queue, "slow")
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(got.delivery_count, 0, "delivery count")
        time.sleep(LOCK + 0.7)
        raises(MessageLockLostError, receiver.complete_message, got)
        raises(MessageLockLostError, receiver.renew_message_lock, got)
        again = take_one(receiver)
        same((text(again), again.delivery_count), ("slow", 1), "second delivery")
        check(again.lock_token != got.lock_token, "the same lock token")
        receiver.complete_message(again)
    gone(client, queue)


@with_queue("queue/max-delivery")
def max_delivery(client, queue):
    send(client, queue, "unwanted")
    with client.get_queue_receiver(queue) as receiver:
        for _ in range(2):
            receiver.abandon_message(take_one(receiver))
        nothing(receiver)
    with client.get_queue_receiver(queue, **DEAD) as receiver:
        dead = take_one(receiver)
        same((text(dead), dead.dead_letter_reason, dead.dead_letter_error_description, dead.delivery_count),
             ("unwanted", "MaxDeliveryCountExceeded", "Message could not be consumed after 2 delivery attempts.", 2),
             "dead letter")
        receiver.complete_message(dead)
    gone(client, queue)
    gone(client, queue, **DEAD)


@with_queue("queue/ttl-dead-letter")
def ttl_dead_letter(client, queue):
    hour = datetime.timedelta(hours=1)
    send(client, queue, "by default", ServiceBusMessage("wanted longer", time_to_live=hour))
    with client.get_queue_receiver(queue, **DEAD) as receiver:
        got = take(receiver, 2)
        same([text(m) for m in got], ["by default", "wanted longer"], "expired")
        for dead in got:
            same((dead.dead_letter_reason, dead.dead_letter_error_description),
                 ("TTLExpiredException", "The message expired and was dead lettered."), "why")
            receiver.complete_message(dead)
    gone(client, queue)


@with_queue("queue/duplicates")
def duplicates(client, queue):
    def message(identity, body):
        return ServiceBusMessage(body, message_id=identity)

    with client.get_queue_sender(queue) as sender:
        sender.send_messages(message("a", "first"))
        sender.send_messages(message("a", "repeated"))
        sender.send_messages([message("b", "second"), message("a", "in a batch"), message("b", "twice in it")])
    with client.get_queue_receiver(queue) as receiver:
        got = take(receiver, 2)
        same([text(m) for m in got], ["first", "second"], "without duplicates")
        for one in got:
            receiver.complete_message(one)
        send(client, queue, message("a", "after the completion"), message("c", "third"))
        got = take_one(receiver)
        same(text(got), "third", "after the completion")
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/large-message")
def large_message(client, queue):
    body = os.urandom(900 * 1024)
    send(client, queue, ServiceBusMessage(body))
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        check(b"".join(got.body) == body, "the body came back different")
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/too-large")
def too_large(client, queue):
    with client.get_queue_sender(queue) as sender:
        why = raises(MessageSizeExceededError, sender.send_messages, ServiceBusMessage(b"x" * (1200 * 1024)))
        sender.send_messages(ServiceBusMessage("small"))
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(text(got), "small", "after the refusal")
        receiver.complete_message(got)
    gone(client, queue)
    return why


@with_queue("queue/properties-round-trip")
def properties_round_trip(client, queue):
    # The SDK sends every int as a 32-bit one, and gives strings back as bytes, dates as milliseconds.
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=UTC)
    properties = {"text": "zażółć 漢字 🚀", "empty": "", "yes": True, "no": False, "zero": 0, "int": 42,
                  "negative": -7, "largest": 2**31 - 1, "double": 3.141592653589793, "tiny": 5e-324,
                  "uuid": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), "date": moment, "none": None,
                  "klucz ż": "in the key too"}
    received = {**properties, "date": int(moment.timestamp() * 1000)}
    send(client, queue, ServiceBusMessage(
        "body ż", application_properties=properties, message_id="the id", correlation_id="the correlation",
        content_type="text/plain; charset=utf-8", subject="subject ż", to="to/somewhere", reply_to="reply/to",
        reply_to_session_id="reply session", partition_key="key", time_to_live=datetime.timedelta(minutes=5)))
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        same(text(got), "body ż", "body")
        for name, value in (("message_id", "the id"), ("correlation_id", "the correlation"),
                            ("content_type", "text/plain; charset=utf-8"), ("subject", "subject ż"),
                            ("to", "to/somewhere"), ("reply_to", "reply/to"),
                            ("reply_to_session_id", "reply session"), ("partition_key", "key"), ("session_id", None),
                            ("time_to_live", datetime.timedelta(minutes=5))):
            same(getattr(got, name), value, name)
        expires = got.enqueued_time_utc + datetime.timedelta(minutes=5)
        check(abs(got.expires_at_utc - expires) < datetime.timedelta(milliseconds=2), f"expires {got.expires_at_utc}")
        back = {key.decode(): value.decode() if isinstance(value, bytes) else value
                for key, value in got.application_properties.items()}
        same(back, received, "application properties")
        for name, value in received.items():
            check(type(back[name]) is type(value), f"{name} came back as {type(back[name]).__name__}")
        receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/body-kinds")
def body_kinds(client, queue):
    bodies = (({"value_body": {"a": 1, "b": [1, "x", True]}}, AmqpMessageBodyType.VALUE,
               {b"a": 1, b"b": [1, b"x", True]}),
              ({"value_body": "a string"}, AmqpMessageBodyType.VALUE, b"a string"),
              ({"sequence_body": [[1, "two", 3.5], ["x"]]}, AmqpMessageBodyType.SEQUENCE, [[1, b"two", 3.5], [b"x"]]),
              ({"data_body": [b"one", b"", b"three"]}, AmqpMessageBodyType.DATA, [b"one", b"", b"three"]),
              ({"data_body": [b""]}, AmqpMessageBodyType.DATA, [b""]))
    with client.get_queue_sender(queue) as sender:
        for sent, _, _ in bodies:
            sender.send_messages(AmqpAnnotatedMessage(**sent))
    with client.get_queue_receiver(queue) as receiver:
        for got, (_, kind, expected) in zip(take(receiver, len(bodies)), bodies):
            same(got.body_type, kind, "kind of body")
            same(got.body if kind is AmqpMessageBodyType.VALUE else list(got.body), expected, "body")
            receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/empty-receive")
def empty_receive(client, queue):
    with client.get_queue_receiver(queue) as receiver:
        for number in range(2):
            nothing(receiver)
            send(client, queue, f"m{number}")
            got = take_one(receiver)
            same((text(got), got.delivery_count), (f"m{number}", 0), "after the empty receive")
            receiver.complete_message(got)
    gone(client, queue)


@with_queue("queue/forward")
def forward(client, queue):
    send(client, queue, ServiceBusMessage("onward", message_id="f", application_properties={"kept": "yes"}))
    with client.get_queue_receiver(context["destinations"]["queue/forward"]) as receiver:
        got = take_one(receiver)
        same((text(got), got.message_id, got.application_properties[b"kept"]), ("onward", "f", b"yes"), "forwarded")
        same((got.sequence_number, got.enqueued_sequence_number), (1, 1), "numbers")
        receiver.complete_message(got)


@with_queue("queue/forward-dead-letters")
def forward_dead_letters(client, queue):
    send(client, queue, "poison")
    with client.get_queue_receiver(queue) as receiver:
        receiver.dead_letter_message(take_one(receiver), reason="r", error_description="d")
    with client.get_queue_receiver(context["destinations"]["queue/forward-dead-letters"]) as receiver:
        got = take_one(receiver)
        same((text(got), got.dead_letter_reason, got.dead_letter_error_description, got.dead_letter_source),
             ("poison", "r", "d", queue), "forwarded dead letter")
        receiver.complete_message(got)
    gone(client, queue)
