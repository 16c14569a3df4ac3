"""azure-servicebus with a topic and its subscriptions. Names: runner/scenarios.py, shapes: runner/topics.py."""

import datetime
import threading

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import MessageNotFoundError, MessagingEntityNotFoundError, ServiceBusError

from queues import DEAD, DELETE, UTC, nothing, raises, same, sees, soon, take, take_one, text, with_queue
from report import check, context


def message(body, **options):
    properties = options.pop("properties", None)
    return ServiceBusMessage(body, application_properties=properties, **options)


def publish(client, topic, *messages):
    with client.get_topic_sender(topic) as sender:
        for one in messages:
            sender.send_messages(one if not isinstance(one, str) else ServiceBusMessage(one))


def subscription(client, topic, name, **options):
    return client.get_subscription_receiver(topic, name, **options)


def holds(client, topic, name, *expected, **options):
    """Takes and completes exactly these messages, in this order; nothing else is in the subscription."""
    with subscription(client, topic, name, **options) as receiver:
        got = take(receiver, len(expected)) if expected else []
        same([text(m) for m in got], list(expected), f"'{name}'")
        for one in got:
            receiver.complete_message(one)
        sees(receiver, [])
    return got


def properties_of(received):
    """The SDK gives strings back as bytes."""
    return {k.decode(): v.decode() if isinstance(v, bytes) else v
            for k, v in (received.application_properties or {}).items()}


def not_allowed(call, *arguments, **options):
    why = raises(ServiceBusError, call, *arguments, **options)
    check("amqp:not-allowed" in why, f"refused for another reason: {why}")
    return why


def receive(client, topic, name):
    with subscription(client, topic, name) as receiver:
        return receiver.receive_messages(max_wait_time=1)


@with_queue("topic/publish")
def publish_(client, topic):
    publish(client, topic, message("one", message_id="m1", subject="s", properties={"kept": "yes"}), "two")
    for name in ("a", "b"):
        one, two = holds(client, topic, name, "one", "two")
        same((one.message_id, one.subject, properties_of(one)), ("m1", "s", {"kept": "yes"}), "message")
        same([(m.sequence_number, m.enqueued_sequence_number, m.delivery_count) for m in (one, two)],
             [(1, 1, 0), (2, 2, 0)], "numbers")
    publish(client, topic, "three")
    holds(client, topic, "b", "three")
    holds(client, topic, "a", "three")


@with_queue("topic/batch")
def batch_(client, topic):
    numbers = [str(n) for n in range(100)]
    with client.get_topic_sender(topic) as sender:
        batch = sender.create_message_batch()
        for number in numbers:
            batch.add_message(ServiceBusMessage(number, message_id=f"id-{number}"))
        sender.send_messages(batch)
    for name in ("a", "b"):
        got = holds(client, topic, name, *numbers)
        same([m.message_id for m in got], [f"id-{n}" for n in numbers], "message ids")
        same([m.sequence_number for m in got], list(range(1, 101)), "sequence numbers")


@with_queue("topic/settle")
def settle(client, topic):
    publish(client, topic, "complete", "abandon", "defer", "dead-letter")
    with subscription(client, topic, "a") as receiver:
        complete, abandon, defer, dead_letter = take(receiver, 4)
        receiver.complete_message(complete)
        receiver.abandon_message(abandon)
        receiver.defer_message(defer)
        receiver.dead_letter_message(dead_letter, reason="r", error_description="d")
        again = take_one(receiver)
        same((text(again), again.delivery_count), ("abandon", 1), "abandoned")
        receiver.complete_message(again)
        (deferred,) = receiver.receive_deferred_messages(defer.sequence_number)
        same((text(deferred), deferred.state), ("defer", ServiceBusMessageState.DEFERRED), "deferred")
        receiver.complete_message(deferred)
        sees(receiver, [])
    (letter,) = holds(client, topic, "a", "dead-letter", **DEAD)
    same((letter.dead_letter_reason, letter.dead_letter_error_description), ("r", "d"), "why")


@with_queue("topic/receive-and-delete")
def receive_and_delete(client, topic):
    publish(client, topic, "one", "two")
    with subscription(client, topic, "a", **DELETE) as receiver:
        same([text(m) for m in take(receiver, 2)], ["one", "two"], "bodies")
    holds(client, topic, "a")
    holds(client, topic, "b", "one", "two")


@with_queue("topic/dead-letter")
def dead_letter_(client, topic):
    publish(client, topic, message("poison", message_id="p", properties={"kept": "yes"}))
    with subscription(client, topic, "a") as receiver:
        got = take_one(receiver)
        receiver.dead_letter_message(got, reason="a reason", error_description="more")
        sees(receiver, [])
    holds(client, topic, "b", **DEAD)
    (letter,) = holds(client, topic, "a", "poison", **DEAD)
    same((letter.message_id, letter.sequence_number, properties_of(letter)["kept"]), ("p", got.sequence_number, "yes"),
         "message")
    same((letter.dead_letter_reason, letter.dead_letter_error_description), ("a reason", "more"), "why")
    holds(client, topic, "b", "poison")  # its own copy


@with_queue("topic/session")
def session(client, topic):
    publish(client, topic, message("x1", session_id="x"), "nobody's", message("y1", session_id="y"),
            message("x2", session_id="x"))
    with subscription(client, topic, "s", session_id="x") as receiver:
        same(receiver.session.session_id, "x", "session id")
        receiver.session.set_state("halfway")
        got = take(receiver, 2)
        same([(text(m), m.session_id) for m in got], [("x1", "x"), ("x2", "x")], "session x")
        for one in got:
            receiver.complete_message(one)
        same(receiver.session.get_state(), b"halfway", "state")
        receiver.session.renew_lock()
        sees(receiver, [])  # complete() of the older SDK waits for no answer
    with subscription(client, topic, "s", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as receiver:
        same(receiver.session.session_id, "y", "the other session")
        got = take_one(receiver)
        same(text(got), "y1", "body")
        receiver.complete_message(got)
    (letter,) = holds(client, topic, "s", "nobody's", **DEAD)
    same(letter.dead_letter_reason, "Session ID is null.", "why")
    holds(client, topic, "p", "x1", "nobody's", "y1", "x2")  # it has no sessions
    return not_allowed(receive, client, topic, "s")


@with_queue("topic/defer")
def defer_(client, topic):
    publish(client, topic, "later", "now")
    with subscription(client, topic, "a") as receiver, subscription(client, topic, "b") as other:
        first = take_one(receiver)
        receiver.defer_message(first)
        second = take_one(receiver)
        same(text(second), "now", "after the deferral")
        receiver.complete_message(second)
        nothing(receiver, 0.3)
        sees(receiver, ["later"])
        states = [m.state for m in receiver.peek_messages(10, sequence_number=1)]
        same(states, [ServiceBusMessageState.DEFERRED], "peek")
        raises(MessageNotFoundError, other.receive_deferred_messages, first.sequence_number)
        (got,) = receiver.receive_deferred_messages(first.sequence_number)
        same((text(got), got.sequence_number), ("later", first.sequence_number), "by number")
        receiver.complete_message(got)
        sees(receiver, [])
    holds(client, topic, "b", "later", "now")


@with_queue("topic/peek")
def peek(client, topic):
    expected = [f"m{n}" for n in range(12)]
    publish(client, topic, *expected)
    with subscription(client, topic, "a") as receiver, subscription(client, topic, "b") as other:
        same([text(m) for m in receiver.peek_messages(5)], expected[:5], "first page")
        same([text(m) for m in receiver.peek_messages(50)], expected[5:], "the rest")
        same(receiver.peek_messages(5), [], "after the last")
        first = take_one(receiver)
        sees(receiver, ["m0", "m1"], 2)  # a locked message is still seen
        receiver.complete_message(first)
        sees(receiver, ["m1", "m2"], 2)
        sees(other, ["m0", "m1"], 2)


@with_queue("topic/schedule")
def schedule(client, topic):
    due = soon(2)
    with client.get_topic_sender(topic) as sender, subscription(client, topic, "a") as receiver:
        numbers = sender.schedule_messages([ServiceBusMessage("one"), ServiceBusMessage("two")], due)
        same(len(numbers), 2, "sequence numbers")
        sees(receiver, [])  # copies are made when it is due
    for name in ("a", "b"):
        got = holds(client, topic, name, "one", "two")
        check(datetime.datetime.now(UTC) >= due, "it came before its time")
        for one in got:
            same(one.scheduled_enqueue_time_utc, due, "scheduled time")
            check(one.enqueued_time_utc >= due, f"enqueued at {one.enqueued_time_utc}, due {due}")
    dated = soon(1)
    publish(client, topic, message("dated", scheduled_enqueue_time_utc=dated))
    for name in ("a", "b"):
        holds(client, topic, name, "dated")
    check(datetime.datetime.now(UTC) >= dated, "it came before its time")


@with_queue("topic/cancel-scheduled")
def cancel_scheduled(client, topic):
    with client.get_topic_sender(topic) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage("no"), ServiceBusMessage("yes")], soon(2))
        sender.cancel_scheduled_messages(numbers[0])
        raises(MessageNotFoundError, sender.cancel_scheduled_messages, numbers[0])
        for name in ("a", "b"):
            holds(client, topic, name, "yes")
        raises(MessageNotFoundError, sender.cancel_scheduled_messages, numbers[1])


@with_queue("topic/duplicates")
def duplicates(client, topic):
    publish(client, topic, message("first", message_id="a"), message("repeated", message_id="a"))
    with client.get_topic_sender(topic) as sender:
        sender.send_messages([message("second", message_id="b"), message("in a batch", message_id="a"),
                              message("twice in it", message_id="b")])
    holds(client, topic, "a", "first", "second")
    publish(client, topic, message("after the completion", message_id="a"), message("third", message_id="c"))
    holds(client, topic, "a", "third")
    holds(client, topic, "b", "first", "second", "third")


@with_queue("topic/sql-filter")
def sql_filter(client, topic):
    publish(client, topic,
            message("m1", subject="order-1", properties={"color": "red", "quantity": 5}),
            message("m2", subject="order-2", properties={"color": "blue", "quantity": 50}),
            message("m3", subject="other", properties={"quantity": 1}),
            message("m4", subject="Order", properties={"color": "RED", "quantity": 20}))
    holds(client, topic, "red", "m1")
    holds(client, topic, "large", "m2")
    holds(client, topic, "colorless", "m3")
    holds(client, topic, "either", "m2", "m3", "m4")  # one copy, however many rules match


@with_queue("topic/correlation-filter")
def correlation_filter(client, topic):
    publish(client, topic,
            message("m1", subject="order", correlation_id="c-1", properties={"region": "eu", "n": 2}),
            message("m2", subject="Order", correlation_id="c-1", properties={"region": "us", "n": "2"}),
            message("m3", message_id="m-1", to="there", reply_to="back", content_type="text/x"))
    holds(client, topic, "label", "m1")
    holds(client, topic, "two-fields", "m1")
    holds(client, topic, "number", "m1")
    holds(client, topic, "identity", "m3")


@with_queue("topic/true-false-filter")
def true_false_filter(client, topic):
    publish(client, topic, "m1", message("m2", properties={"wanted": "yes"}))
    holds(client, topic, "yes", "m1", "m2")
    holds(client, topic, "both", "m1", "m2")
    holds(client, topic, "no")


@with_queue("topic/nobody")
def nobody(client, topic):
    publish(client, topic, "unwanted")  # accepted and dropped
    with client.get_topic_sender(topic) as sender:
        sender.send_messages([ServiceBusMessage("u1"), ServiceBusMessage("u2")])
    holds(client, topic, "no")


@with_queue("topic/action")
def action(client, topic):
    properties = {"color": "red", "quantity": 7, "kept": "yes"}
    publish(client, topic, message("m", subject="label", message_id="id", properties=properties))
    (plain,) = holds(client, topic, "plain", "m")
    same((plain.subject, properties_of(plain)), ("label", properties), "another subscription's copy")
    (changed,) = holds(client, topic, "changed", "m")
    same((changed.subject, changed.message_id), ("relabelled", "id"), "system properties")
    same(properties_of(changed), {"quantity": 14, "kept": "yes", "added": "by rule", "RuleName": "change"}, "changed")
    copies = holds(client, topic, "copies", "m", "m", "m")
    same([properties_of(m) for m in copies],
         [properties, {**properties, "mark": 1, "RuleName": "marked-1"},
          {**properties, "mark": 2, "RuleName": "marked-2"}], "one copy for each action")
    same([m.sequence_number for m in copies], [1, 2, 3], "numbers")


@with_queue("topic/filter-error")
def filter_error(client, topic):
    publish(client, topic, message("bad", properties={"quantity": 0}), message("good", properties={"quantity": 10}))
    holds(client, topic, "strict", "good")
    holds(client, topic, "other", "bad", "good")
    (letter,) = holds(client, topic, "strict", "bad", **DEAD)
    same(letter.dead_letter_reason, "FilterException", "why")
    why = letter.dead_letter_error_description
    check("division" in why, f"no rule: {why}")
    return why


@with_queue("topic/ttl")
def ttl(client, topic):
    hour = datetime.timedelta(hours=1)
    publish(client, topic, "by default", message("wanted longer", time_to_live=hour))
    for letter in holds(client, topic, "short", "by default", "wanted longer", **DEAD):
        same((letter.dead_letter_reason, letter.dead_letter_error_description),
             ("TTLExpiredException", "The message expired and was dead lettered."), "why")
    holds(client, topic, "short")
    holds(client, topic, "long", "by default", "wanted longer")


@with_queue("topic/stream")
def stream(client, topic):
    expected, came = [f"m{n}" for n in range(60)], []
    with subscription(client, topic, "a", max_wait_time=5, prefetch_count=10) as receiver:
        publisher = threading.Thread(target=publish, args=(client, topic, *expected))
        publisher.start()
        for one in receiver:
            came.append(text(one))
            receiver.complete_message(one)
            if len(came) == len(expected):
                break
        publisher.join()
        same(came, expected, "what came")
        sees(receiver, [])
    with subscription(client, topic, "b") as other:
        sees(other, expected, 100)


@with_queue("topic/forward-to-queue")
def forward_to_queue(client, topic):
    publish(client, topic, message("onward", message_id="f", properties={"kept": "yes"}))
    with client.get_queue_receiver(context["destinations"]["topic/forward-to-queue"]) as receiver:
        got = take_one(receiver)
        same((text(got), got.message_id, properties_of(got)), ("onward", "f", {"kept": "yes"}), "forwarded")
        receiver.complete_message(got)
    holds(client, topic, "b", "onward")
    return not_allowed(receive, client, topic, "a")


@with_queue("topic/forward-from-queue")
def forward_from_queue(client, topic):
    with client.get_queue_sender(context["sources"]["topic/forward-from-queue"]) as sender:
        sender.send_messages(message("onward", message_id="f", properties={"kept": "yes"}))
    for name in ("a", "b"):
        (got,) = holds(client, topic, name, "onward")
        same((got.message_id, properties_of(got)), ("f", {"kept": "yes"}), "forwarded")


@with_queue("topic/wrong-direction")
def wrong_direction(client, topic):
    not_allowed(publish, client, f"{topic}/Subscriptions/a", "x")
    not_allowed(publish, client, f"{topic}/Subscriptions/a/$DeadLetterQueue", "x")
    not_allowed(client.get_queue_receiver(topic).receive_messages, max_wait_time=1)
    return raises(MessagingEntityNotFoundError, receive, client, topic, "no-such")


@with_queue("topic/letter-case")
def letter_case(client, topic):
    publish(client, topic.upper(), "shouted")
    with subscription(client, topic.replace("topic", "ToPiC"), "aUDIT") as receiver:
        got = take_one(receiver)
        same(text(got), "shouted", "body")
        receiver.dead_letter_message(got)
        sees(receiver, [])
    holds(client, topic.upper(), "AUDIT", "shouted", **DEAD)


@with_queue("exchange/sdk")
def exchange_(client, exchange):
    publish(client, exchange, message("m1", subject="order.eu.paid"), message("m2", subject="order.us.open"), "m3")
    holds(client, exchange, "paid", "m1")
    holds(client, exchange, "eu", "m1")
    got = holds(client, exchange, "all", "m1", "m2", "m3")
    same([m.subject for m in got], ["order.eu.paid", "order.us.open", None], "subjects")
    annotations = [m.raw_amqp_message.annotations for m in got]
    same([(a[b"x-exchange"], a[b"x-routing-key"]) for a in annotations],
         [(exchange.encode(), key) for key in (b"order.eu.paid", b"order.us.open", b"")], "annotations")
