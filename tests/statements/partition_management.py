"""Partitioned queues and topics: what an administrator asks for and is told."""

from azure.core.exceptions import HttpResponseError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import SqlRuleFilter

from rig import DEAD, DELETE, PARTITIONS, drain, numbered, partition_of, send, soon, take, text
from table import check, raises, same, statement
from transacting import transaction


@statement("P5", "Partitioning is chosen when the entity is created")
def p5(rig):
    queue = rig.fresh()
    with rig.admin() as admin:
        same(admin.get_queue(queue).enable_partitioning, True, "EnablePartitioning")
        same(admin.get_topic("news").enable_partitioning, True, "EnablePartitioning of a topic")


@statement("P6", "≠ Partitioned entities are there whatever else an entity wants, large messages too")
def p6(rig):
    queue = rig.fresh(max_message_size_in_kilobytes=10240)
    with rig.client() as client:
        send(client, queue, "x" * 2_000_000)
        same(len(text(drain(client, queue, 1)[0])), 2_000_000, "bytes")


@statement("P7", "The option of an existing entity cannot be changed")
def p7(rig):
    with rig.admin() as admin:
        for name, wish in (("spread", False), ("plain", True)):
            queue = admin.get_queue(name)
            queue.enable_partitioning = wish
            refused = raises(HttpResponseError, admin.update_queue, queue)
            check("40000" in refused or "Partitioning" in refused, refused)
            same(admin.get_queue(name).enable_partitioning, not wish, f"EnablePartitioning of {name}")


@statement("P16", "HTTP requests need api-version 2013-10 or later (we take partitioning with any)")
def p16(rig):
    for version in ("2012-03", "2013-10", "2021-05"):
        with rig.raw_admin(version) as get:
            check("<EnablePartitioning>true</EnablePartitioning>" in get("/spread"), f"not told with {version}")


@statement("P17", "Standard sizes are 1 to 5 GB, default 1")
def p17(rig):
    with rig.admin() as admin:
        same(admin.get_queue(rig.fresh(enable_partitioning=False)).max_size_in_megabytes, 1024, "default")
        for size in (1024, 2048, 3072, 4096, 5120):
            same(admin.get_queue(rig.fresh(enable_partitioning=False, max_size_in_megabytes=size)).max_size_in_megabytes, size,
                 "size")
        raises(HttpResponseError, rig.fresh, max_size_in_megabytes=1000)


@statement("P18", "16 partitions are made, each of the size asked for")
def p18(rig):
    queue = rig.fresh(max_size_in_megabytes=1024)
    with rig.client() as client, rig.admin() as admin:
        send(client, queue, *numbered(5 * PARTITIONS))
        same(len({partition_of(m) for m in drain(client, queue, 5 * PARTITIONS)}), 16, "partitions")
        same(admin.get_queue(queue).max_size_in_megabytes, 16 * 1024, "size of all")


@statement("P19", "So 5 GB shows as 80 GB")
def p19(rig):
    with rig.admin() as admin:
        same(admin.get_queue(rig.fresh(max_size_in_megabytes=5120)).max_size_in_megabytes, 80 * 1024, "size")


@statement("P20", "Premium sizes are 1-5, 10, 20, 40, 80 GB, default 1")
def p20(rig):
    with rig.admin() as admin:
        for size in (10240, 20480, 40960, 81920):
            same(admin.get_queue(rig.fresh(enable_partitioning=False, max_size_in_megabytes=size)).max_size_in_megabytes, size,
                 "size")


@statement("P21", "EnablePartitioning in the description of a queue or topic turns it on")
def p21(rig):
    with rig.client() as client, rig.admin() as admin:
        topic = f"{rig.fresh()}-topic"
        admin.create_topic(topic, enable_partitioning=True)
        admin.create_subscription(topic, "s")
        with client.get_topic_sender(topic) as sender:
            for body in numbered(PARTITIONS):
                sender.send_messages(ServiceBusMessage(body))
        with client.get_subscription_receiver(topic, "s", **DELETE) as receiver:
            same(len({partition_of(m) for m in take(receiver, PARTITIONS)}), PARTITIONS, "partitions")


@statement("P22", "In the portal it is on by default (the API default is off)")
def p22(rig):
    with rig.admin() as admin:
        name = f"{rig.fresh()}-default"
        same(admin.create_queue(name).enable_partitioning, False, "EnablePartitioning when nothing is said")


@statement("P48", "Create, update and delete act on all partitions and fail if one is unhealthy")
def p48(rig):
    queue = rig.fresh()
    with rig.admin() as admin, rig.without(3):
        raises(HttpResponseError, rig.fresh)
        described = admin.get_queue(queue)
        described.max_delivery_count = 3
        raises(HttpResponseError, admin.update_queue, described)
        raises(HttpResponseError, admin.delete_queue, queue)
    with rig.admin() as admin, rig.client() as client:
        same(admin.get_queue(queue).max_delivery_count, 10, "after an update that failed")
        described.max_delivery_count = 3
        admin.update_queue(described)
        send(client, queue, *[ServiceBusMessage(key, partition_key=key) for key in numbered(8, "k")])
        with client.get_queue_receiver(queue) as receiver:
            for _ in range(3):
                for message in take(receiver, 8):
                    receiver.abandon_message(message)
        same(len(drain(client, queue, 8, **DEAD)), 8, "the new limit counts in every partition")
        admin.delete_queue(queue)
        raises(ServiceBusError, send, client, queue, "x")


@statement("P49", "Reading an entity sums up counts over the partitions")
def p49(rig):
    queue = rig.fresh()
    with rig.admin() as admin, rig.client() as client:
        send(client, queue, *numbered(3 * PARTITIONS))
        with client.get_queue_sender(queue) as sender:
            for n in range(PARTITIONS):
                sender.schedule_messages(ServiceBusMessage(f"{n}"), soon(3600))
        with client.get_queue_receiver(queue) as receiver:
            for message in take(receiver, PARTITIONS):
                receiver.dead_letter_message(message)
            counts = admin.get_queue_runtime_properties(queue)
            same((counts.active_message_count, counts.dead_letter_message_count, counts.scheduled_message_count,
                  counts.total_message_count), (2 * PARTITIONS, PARTITIONS, PARTITIONS, 4 * PARTITIONS), "counts")
            check(counts.size_in_bytes >= 4 * PARTITIONS, f"{counts.size_in_bytes} bytes")


@statement("P50", "With an unhealthy partition the availability status is Limited")
def p50(rig):
    with rig.admin() as admin:
        same(admin.get_queue("spread").availability_status, "Available", "status")
        with rig.without(0):
            same(admin.get_queue("spread").availability_status, "Limited", "status without a store")
            same(admin.get_topic("news").availability_status, "Limited", "status of a topic without a store")
        same(admin.get_queue("spread").availability_status, "Available", "status after it is back")


@statement("P52", "HTTP keep-alive is advised")
def p52(rig):
    with rig.raw_admin("2021-05") as get:
        for _ in range(5):
            check("EnablePartitioning" in get("/spread"), "not on the same connection")


@statement("P54", "Rules can be added and removed on partitioned entities, but not inside a transaction")
def p54(rig):
    with rig.admin() as admin, rig.client() as client:
        admin.create_subscription("news", "s54")
        admin.create_rule("news", "s54", "red", filter=SqlRuleFilter("color = 'red'"))
        admin.delete_rule("news", "s54", "$Default")
        with client.get_topic_sender("news") as sender:
            for n in range(2 * PARTITIONS):
                sender.send_messages(ServiceBusMessage(f"{n}", application_properties={"color": "red" if n % 2 else "blue"}))
        with client.get_subscription_receiver("news", "s54", **DELETE) as receiver:
            same(sorted(int(text(m)) for m in take(receiver, PARTITIONS)), list(range(1, 2 * PARTITIONS, 2)), "matched")
        with client.get_subscription_receiver("news", "all", **DELETE) as receiver:
            take(receiver, 2 * PARTITIONS)
        drain(client, "plain-target", 2 * PARTITIONS)
        with transaction() as one:
            one.add_rule_refused("news/Subscriptions/s54", "late", "color = 'blue'")
        admin.delete_subscription("news", "s54")


@statement("P56", "At most 100 partitioned queues and topics in a namespace, each counting among its 10,000 entities")
def p56(rig):
    with rig.admin() as admin:
        made = []
        try:
            for n in range(101):
                made.append(admin.create_queue(f"many-{n}", enable_partitioning=True).name)
            refused = None
        except HttpResponseError as e:
            refused = e
        there = [queue for queue in admin.list_queues() if queue.enable_partitioning]
        there += [topic for topic in admin.list_topics() if topic.enable_partitioning]
        same(len(there), 100, "partitioned entities when one more was refused")
        same(refused.status_code if refused else None, 403, "status of the refusal")
        for name in made:
            admin.delete_queue(name)
        check(rig.fresh(), "there is room again")
