"""Counts, sizes and times that administration clients show, compared with what is really there."""

import datetime

from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient, SqlRuleFilter

from admin import connected, data, has, name, same, take
from report import check, context, scenario


def recent(moment, what):
    age = datetime.datetime.now(datetime.timezone.utc) - moment
    check(abs(age) < datetime.timedelta(minutes=2), f"{what} {age} ago")


def queue_counts(active, dead, scheduled, transfer, transfer_dead):
    return {"active_message_count": active, "dead_letter_message_count": dead, "scheduled_message_count": scheduled,
            "transfer_message_count": transfer, "transfer_dead_letter_message_count": transfer_dead,
            "total_message_count": active + dead + scheduled + transfer + transfer_dead}


def subscription_counts(active, dead):
    return {"active_message_count": active, "dead_letter_message_count": dead, "transfer_message_count": 0,
            "transfer_dead_letter_message_count": 0, "total_message_count": active + dead}


@scenario("admin/counts")
def counts():
    with connected() as admin, data() as client:
        on = name("counts")
        admin.create_topic(on)
        admin.create_subscription(on, "a")
        admin.create_subscription(on, "b")
        admin.create_rule(on, "b", "r", filter=SqlRuleFilter("n = 1"))
        admin.delete_rule(on, "b", "$Default")
        with client.get_topic_sender(on) as sender:
            sender.send_messages([ServiceBusMessage("x" * 1000, application_properties={"n": n}) for n in range(4)])
            later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
            sender.schedule_messages([ServiceBusMessage("later") for _ in range(2)], later)
        with client.get_subscription_receiver(on, "a") as receiver:
            one, two = take(receiver, 2)
            receiver.dead_letter_message(one)
            receiver.defer_message(two)
        topic = admin.get_topic_runtime_properties(on)
        has(topic, {"subscription_count": 2, "scheduled_message_count": 2})
        check(4000 <= topic.size_in_bytes < 8000, f"size {topic.size_in_bytes}")
        recent(topic.created_at_utc, "created")
        recent(topic.accessed_at_utc, "accessed")
        listed = next(t for t in admin.list_topics_runtime_properties() if t.name == on)
        has(listed, {"subscription_count": 2, "scheduled_message_count": 2, "size_in_bytes": topic.size_in_bytes})
        # A deferred message is an active one.
        wanted = {"a": subscription_counts(3, 1), "b": subscription_counts(1, 0)}
        for subscription, expected in wanted.items():
            found = admin.get_subscription_runtime_properties(on, subscription)
            has(found, expected)
            recent(found.created_at_utc, "created")
        recent(admin.get_subscription_runtime_properties(on, "a").accessed_at_utc, "accessed")
        listed = {s.name: s for s in admin.list_subscriptions_runtime_properties(on)}
        same(sorted(listed), ["a", "b"], "listed")
        for subscription, expected in wanted.items():
            has(listed[subscription], expected)
        admin.delete_topic(on)


@scenario("admin/transfer-counts")
def transfer_counts():
    """What the raw client left there before anybody came; see raw/counted.py."""
    own = context["brokers"]["counts"]
    expected = queue_counts(*context["counted"]["counts"])
    with ServiceBusAdministrationClient.from_connection_string(own["tls"], retry_total=0) as admin:
        found = admin.get_queue_runtime_properties(context["counted"]["queue"])
        has(found, expected)
        check(found.size_in_bytes > 0, "size")
        check(found.created_at_utc <= found.updated_at_utc and found.created_at_utc <= found.accessed_at_utc, "times")
        listed = next(q for q in admin.list_queues_runtime_properties() if q.name == found.name)
        has(listed, {**expected, "size_in_bytes": found.size_in_bytes})
