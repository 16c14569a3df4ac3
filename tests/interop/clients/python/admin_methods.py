"""Every public method of both ServiceBusAdministrationClients is called here, and what it says is looked at."""

import asyncio
import inspect

from azure.core.exceptions import ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient as AsyncClient
from azure.servicebus.management import ServiceBusAdministrationClient, SqlRuleFilter

from admin import broker, name, same
from report import check, scenario


class Noting:
    """A client or its class that notes what we call; what it calls of itself does not count."""

    def __init__(self, target, called):
        self.target, self.called = target, called

    def __getattr__(self, method):
        member = getattr(self.target, method)

        def call(*given, **named):
            self.called.add(method)
            return member(*given, **named)
        return call


async def done(value):
    """What a call of either client gives in the end; a listing as a list."""
    if inspect.isawaitable(value):
        return await value
    if hasattr(value, "__aiter__"):
        return [one async for one in value]
    return list(value) if hasattr(value, "by_page") else value


async def missing(value):
    """`value` makes a call; what it names is gone."""
    try:
        found = await done(value())
    except ResourceNotFoundError:
        return
    raise AssertionError(f"it is still there: {found}")


async def tour(kind, case):
    called = set()
    clients = Noting(kind, called)
    admin = Noting(clients.from_connection_string(broker()["tls"], retry_total=0), called)
    queue, topic = name(case), name(case + "-t")

    async def names(listing):
        return [one.name for one in await done(listing) if one.name.startswith(queue)]

    same((await done(admin.get_namespace_properties())).name, "sbemulatorns", "namespace")

    same((await done(admin.create_queue(queue, max_delivery_count=3))).max_delivery_count, 3, "create_queue")
    found = await done(admin.get_queue(queue))
    same(found.name, queue, "get_queue")
    found.max_delivery_count = 4
    await done(admin.update_queue(found))
    same((await done(admin.get_queue(queue))).max_delivery_count, 4, "update_queue")
    same((await done(admin.get_queue_runtime_properties(queue))).total_message_count, 0, "runtime of a queue")
    same(await names(admin.list_queues()), [queue], "list_queues")
    same(await names(admin.list_queues_runtime_properties()), [queue], "list_queues_runtime_properties")

    same((await done(admin.create_topic(topic, user_metadata="a"))).user_metadata, "a", "create_topic")
    found = await done(admin.get_topic(topic))
    same(found.name, topic, "get_topic")
    found.user_metadata = "b"
    await done(admin.update_topic(found))
    same((await done(admin.get_topic(topic))).user_metadata, "b", "update_topic")
    same((await done(admin.get_topic_runtime_properties(topic))).subscription_count, 0, "runtime of a topic")
    same(await names(admin.list_topics()), [topic], "list_topics")
    same(await names(admin.list_topics_runtime_properties()), [topic], "list_topics_runtime_properties")

    same((await done(admin.create_subscription(topic, "s", max_delivery_count=5))).max_delivery_count, 5,
         "create_subscription")
    found = await done(admin.get_subscription(topic, "s"))
    same(found.name, "s", "get_subscription")
    found.max_delivery_count = 6
    await done(admin.update_subscription(topic, found))
    same((await done(admin.get_subscription(topic, "s"))).max_delivery_count, 6, "update_subscription")
    same((await done(admin.get_subscription_runtime_properties(topic, "s"))).total_message_count, 0,
         "runtime of a subscription")
    same([s.name for s in await done(admin.list_subscriptions(topic))], ["s"], "list_subscriptions")
    same([s.name for s in await done(admin.list_subscriptions_runtime_properties(topic))], ["s"],
         "list_subscriptions_runtime_properties")

    same((await done(admin.create_rule(topic, "s", "r", filter=SqlRuleFilter("a = 1")))).name, "r", "create_rule")
    found = await done(admin.get_rule(topic, "s", "r"))
    same(found.filter.sql_expression, "a = 1", "get_rule")
    found.filter = SqlRuleFilter("a = 2")
    await done(admin.update_rule(topic, "s", found))
    same((await done(admin.get_rule(topic, "s", "r"))).filter.sql_expression, "a = 2", "update_rule")
    same([r.name for r in await done(admin.list_rules(topic, "s"))], ["$Default", "r"], "list_rules")

    await done(admin.delete_rule(topic, "s", "r"))
    await missing(lambda: admin.get_rule(topic, "s", "r"))
    await done(admin.delete_subscription(topic, "s"))
    await missing(lambda: admin.get_subscription(topic, "s"))
    await done(admin.delete_topic(topic))
    await missing(lambda: admin.get_topic(topic))
    await done(admin.delete_queue(queue))
    await missing(lambda: admin.get_queue(queue))
    await done(admin.close())

    wanted = sorted(m for m, _ in inspect.getmembers(kind, callable) if not m.startswith("_"))
    check(len(wanted) > 25, f"{len(wanted)} methods found")
    same(sorted(called), wanted, "the methods that were called")
    return f"{len(wanted)} methods"


@scenario("admin/methods")
def methods():
    return asyncio.run(tour(ServiceBusAdministrationClient, "methods"))


@scenario("admin/async-methods")
def async_methods():
    return asyncio.run(tour(AsyncClient, "async-methods"))
