"""Partitioned queues and topics: statements P1 to P56.

Where a row differs from the document (≠) it proves what we do instead; contracts of the product say why.
"""

import concurrent.futures
import datetime
import time

from azure.servicebus import (NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusMessageState)
from azure.servicebus.exceptions import ServiceBusError, ServiceBusServerBusyError

from rig import (DEAD, DELETE, PARTITIONS, STORES, UTC, drain, key_in, learn_keys, numbered, partition_of, peeked, send, soon,
                 store_of, take, text)
from table import check, raises, same, statement
from transacting import transaction

ALL = [f"P{n}" for n in range(1, 57)]


def fails_without(rig, store, queue, message):
    with rig.without(store), rig.client() as client:
        try:
            send(client, queue, message)
            return False
        except ServiceBusServerBusyError:
            return True


@statement("P1", "An ordinary entity lives in one store, handled by one broker; a partitioned one is spread over several")
def p1(rig):
    needed = [store for store in range(STORES) if fails_without(rig, store, "plain", "x")]
    same(needed, [store_of("plain", 0)], "stores whose loss a plain queue feels")
    with rig.client() as client:
        drain(client, "plain", STORES - 1)
        queue = rig.fresh()
        send(client, queue, *numbered(PARTITIONS))
        same({store_of(queue, partition_of(m)) for m in drain(client, queue, PARTITIONS)}, set(range(STORES)), "stores")


@statement("P2", "Throughput is no longer bounded by one broker or store")
def p2(rig):
    # How much faster is for bench/partitions to say; here: every store takes its share of the bytes.
    queue, size = rig.fresh(), 60_000
    with rig.client() as client:
        send(client, queue, *["x" * size] * (4 * PARTITIONS))
        with client.get_queue_receiver(queue) as receiver:
            per_store = {}
            for message in peeked(receiver):
                store = store_of(queue, partition_of(message))
                per_store[store] = per_store.get(store, 0) + 1
    same(per_store, {store: 4 * PARTITIONS // STORES for store in range(STORES)}, "messages in each store")


@statement("P3", "A store that is down for a while does not make the entity unavailable")
def p3(rig):
    with rig.client() as client:
        for store in range(STORES):
            with rig.without(store):
                send(client, "spread", *numbered(10))
                same(len(drain(client, "spread", 10)), 10, "received meanwhile")


@statement("P4", "All advanced features work on it, transactions and sessions included")
def p4(rig):
    p26(rig)
    p30(rig)
    p32(rig)


@statement("P8", "Each partition is in another store and handled by another broker")
def p8(rig):
    queue = rig.fresh()
    with rig.client() as client:
        send(client, queue, *numbered(PARTITIONS))
        for store in range(STORES):
            with rig.without(store), client.get_queue_receiver(queue) as receiver:
                seen = {partition_of(m) for m in peeked(receiver)}
            gone = {partition for partition in range(PARTITIONS) if store_of(queue, partition) == store}
            same(len(gone), PARTITIONS // STORES, "partitions in one store")
            same(set(range(PARTITIONS)) - seen, gone, f"partitions that went with store {store}")


@statement("P9", "Each message goes to one partition, picked by the service or by a key of the sender")
def p9(rig):
    queue = rig.fresh()
    with rig.client() as client:
        send(client, queue, *numbered(20), *[ServiceBusMessage(f"{n}", partition_key="k") for n in range(20, 30)])
        got = drain(client, queue, 30)
    same(sorted(int(text(m)) for m in got), list(range(30)), "each message once")
    same(len({partition_of(m) for m in got if m.partition_key}), 1, "partitions of the key")


@statement("P10", "A receive asks all partitions and returns the first message found")
def p10(rig):
    with rig.client() as client, client.get_queue_receiver("spread", **DELETE) as receiver:
        for key in (f"k{n}" for n in range(8)):
            send(client, "spread", ServiceBusMessage(key, partition_key=key))
            same([text(m) for m in take(receiver, 1)], [key], "the one message, wherever it is")


@statement("P11", "Further messages found are kept ready for the next receives")
def p11(rig):
    queue = rig.fresh()
    with rig.client() as client:
        send(client, queue, *numbered(2 * PARTITIONS))
        with client.get_queue_receiver(queue, prefetch_count=2 * PARTITIONS, **DELETE) as receiver:
            got = take(receiver, 1)
            time.sleep(0.5)
            with client.get_queue_receiver(queue) as other:
                same(len(other.receive_messages(max_wait_time=0.3)), 0, "all were sent ahead")
            got += take(receiver, 2 * PARTITIONS - 1)
    same(len({text(m) for m in got}), 2 * PARTITIONS, "messages")


@statement("P12", "The client cannot tell: read, complete, defer, dead-letter and prefetch are the same")
def p12(rig):
    seen = {}
    for queue in ("plain", "spread"):
        with rig.client() as client:
            send(client, queue, *[ServiceBusMessage(body, partition_key="k") for body in ("a", "b", "c", "d")])
            with client.get_queue_receiver(queue, prefetch_count=10) as receiver:
                a, b, c, d = take(receiver, 4)
                receiver.complete_message(a)
                receiver.defer_message(b)
                receiver.dead_letter_message(c, reason="why")
                receiver.abandon_message(d)
                again = take(receiver, 1)[0]
                receiver.complete_message(again)
                deferred = receiver.receive_deferred_messages(b.sequence_number)
                receiver.complete_message(deferred[0])
                dead = drain(client, queue, 1, **DEAD)
                seen[queue] = (text(again), again.delivery_count, text(deferred[0]), text(dead[0]),
                               dead[0].dead_letter_reason, len(receiver.peek_messages(10, sequence_number=1)))
    same(seen["spread"], seen["plain"], "what a client sees")


@statement("P13", "Peek on an ordinary entity returns the oldest message")
def p13(rig):
    with rig.client() as client:
        send(client, "plain", *numbered(5))
        with client.get_queue_receiver("plain") as receiver:
            same([text(m) for m in receiver.peek_messages(1, sequence_number=1)], ["0"], "peeked")
        drain(client, "plain", 5)


@statement("P14", "Peek on a partitioned entity returns the oldest of one partition, not surely the oldest of all")
def p14(rig):
    queue = rig.fresh()
    with rig.client() as client:
        keys = learn_keys(client, queue)
        last = max(keys, key=keys.get)
        first = min(keys, key=keys.get)
        send(client, queue, ServiceBusMessage("older", partition_key=last), ServiceBusMessage("younger", partition_key=first))
        with client.get_queue_receiver(queue) as receiver:
            same([text(m) for m in receiver.peek_messages(1, sequence_number=1)], ["younger"], "peeked")
            same([text(m) for m in peeked(receiver)], ["younger", "older"], "all of them")


@statement("P15", "Peek goes by sequence number, which counts per partition")
def p15(rig):
    queue = rig.fresh()
    with rig.client() as client:
        send(client, queue, *numbered(3 * PARTITIONS))
        with client.get_queue_receiver(queue) as receiver:
            seen = peeked(receiver, 7)
    numbers = [m.sequence_number for m in seen]
    same(numbers, sorted(numbers), "order")
    same(numbers, [p << 48 | n for p in range(PARTITIONS) for n in (1, 2, 3)], "numbers")


@statement("P23", "With a key the partition follows from it, without one from an internal method")
def p23(rig):
    queue = rig.fresh()
    with rig.client() as client:
        same(learn_keys(client, queue), learn_keys(client, queue), "partitions of the same keys")
        send(client, queue, *numbered(PARTITIONS))
        same(len({partition_of(m) for m in drain(client, queue, PARTITIONS)}), PARTITIONS, "partitions without a key")


@statement("P24", "Messages with the same key share a partition")
def p24(rig):
    with rig.client() as client:
        send(client, "spread", *[ServiceBusMessage(f"{n}", partition_key="same") for n in range(20)])
        got = drain(client, "spread", 20)
    same(len({partition_of(m) for m in got}), 1, "partitions")
    same([text(m) for m in got], numbered(20), "order")


@statement("P25", "Key given and partition down: the send fails")
def p25(rig):
    with rig.client() as client:
        keys = learn_keys(client, "spread")
        for store in range(STORES):
            with rig.without(store):
                raises(ServiceBusServerBusyError, send, client, "spread",
                       ServiceBusMessage("x", partition_key=key_in("spread", store, keys)))
        with client.get_queue_receiver("spread") as receiver:
            same(receiver.receive_messages(max_wait_time=0.3), [], "what was refused is not there")


@statement("P26", "SessionId, if set, is the key")
def p26(rig):
    queue = rig.fresh(requires_session=True)
    keys = numbered(16, "k")
    with rig.client() as client:
        by_key = learn_keys(client, "spread")
        send(client, queue, *[ServiceBusMessage(key, session_id=key) for key in keys])
        with client.get_queue_receiver(queue, session_id=keys[0]) as receiver:
            seen = {text(m): partition_of(m) for m in peeked(receiver)}
        for key in keys:
            with client.get_queue_receiver(queue, session_id=key, **DELETE) as receiver:
                (got,) = take(receiver, 1)
                seen[text(got)] = partition_of(got)
    same(seen, {key: by_key[key] for key in keys}, "a session goes where the same text as a key goes")


@statement("P27", "So one broker handles a session: order and state are consistent")
def p27(rig):
    with rig.client() as client:
        send(client, "spread-sessions", *[ServiceBusMessage(f"{n}", session_id="s27") for n in range(30)])
        with client.get_queue_receiver("spread-sessions", session_id="s27") as receiver:
            receiver.session.set_state("half")
            got = take(receiver, 15)
            for message in got:
                receiver.complete_message(message)
        with client.get_queue_receiver("spread-sessions", session_id="s27") as receiver:
            same(bytes(receiver.session.get_state()), b"half", "state")
            got += take(receiver, 15)
            for message in got[15:]:
                receiver.complete_message(message)
    same([text(m) for m in got], numbered(30), "order")
    same(len({partition_of(m) for m in got}), 1, "partitions")


@statement("P28", "PartitionKey is the key when there is no SessionId")
def p28(rig):
    with rig.client() as client:
        send(client, "spread", *[ServiceBusMessage("x", partition_key="p28", message_id=f"{n}") for n in range(10)])
        same(len({partition_of(m) for m in drain(client, "spread", 10)}), 1, "partitions")


@statement("P29", "Both set and different: invalid operation")
def p29(rig):
    message = ServiceBusMessage("x", session_id="s")
    message.raw_amqp_message.annotations = {b"x-opt-partition-key": "other"}
    with rig.client() as client:
        refused = raises(ServiceBusError, send, client, "spread-sessions", message)
        check("not-allowed" in refused or "PartitionKey" in refused, refused)
        with client.get_queue_receiver("spread") as receiver:
            same(receiver.receive_messages(max_wait_time=0.3), [], "nothing was taken")


@statement("P30", "PartitionKey serves transactional sends without sessions; one broker handles the transaction")
def p30(rig):
    with rig.client() as client:
        with transaction() as one:
            for n in range(5):
                one.send("spread", f"{n}", partition_key="p30")
            with client.get_queue_receiver("spread") as receiver:
                same(receiver.receive_messages(max_wait_time=0.3), [], "seen before the commit")
            one.commit()
        got = drain(client, "spread", 5)
        same([text(m) for m in got], numbered(5), "order")
        same(len({partition_of(m) for m in got}), 1, "partitions")


@statement("P31", "With duplicate detection and neither of both, MessageId is the key")
def p31(rig):
    with rig.client() as client:
        by_key = learn_keys(client, "spread")
        queue = rig.fresh(requires_duplicate_detection=True)
        send(client, queue, *[ServiceBusMessage(key, message_id=key) for key in by_key])
        same({text(m): partition_of(m) for m in drain(client, queue, len(by_key))}, by_key, "an id goes where a key goes")


@statement("P32", "All copies of a message meet one broker and repeats are found")
def p32(rig):
    queue = rig.fresh(requires_duplicate_detection=True)
    with rig.client() as client:
        for _ in range(3):
            send(client, queue, *[ServiceBusMessage(f"{n}", message_id=f"id {n}") for n in range(20)])
        same(sorted(int(text(m)) for m in drain(client, queue, 20)), list(range(20)), "each once")
        send(client, queue, *numbered(20))
        same(len(drain(client, queue, 20)), 20, "without an id of the application's: the library sets one")


@statement("P33", "Without duplicate detection MessageId is no key")
def p33(rig):
    with rig.client() as client:
        send(client, "spread", *[ServiceBusMessage("x", message_id="always") for _ in range(PARTITIONS)])
        same(len({partition_of(m) for m in drain(client, "spread", PARTITIONS)}), PARTITIONS, "partitions")


@statement("P34", "Without a key messages go round over all partitions")
def p34(rig):
    with rig.client() as client:
        send(client, "spread", *numbered(3 * PARTITIONS))
        counts = {}
        for message in drain(client, "spread", 3 * PARTITIONS):
            counts[partition_of(message)] = counts.get(partition_of(message), 0) + 1
    same(counts, {partition: 3 for partition in range(PARTITIONS)}, "messages in each partition")


@statement("P35", "If the chosen partition is down another takes the message and the send succeeds")
def p35(rig):
    # One of four stores is away all the time, four senders go on: every send succeeds, nothing is lost.
    queue, each = rig.fresh(), 100

    def load(number):
        with rig.client() as client, client.get_queue_sender(queue) as sender:
            failed = 0
            for n in range(each):
                try:
                    sender.send_messages(ServiceBusMessage(f"{number} {n}"))
                except ServiceBusError:
                    failed += 1
            return failed

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(load, number) for number in range(4)]
        for store in range(STORES):
            with rig.without(store):
                time.sleep(0.2)
        with rig.without(1):
            failures = sum(future.result() for future in futures)
    same(failures, 0, f"failed sends of {4 * each}")
    with rig.client() as client:
        got = {text(m) for m in drain(client, queue, 4 * each)}
    same(len(got), 4 * each, "what was accepted is there")


@statement("P36", "Then no order is promised")
def p36(rig):
    # Nothing to refuse: messages of one sender without a key are all there, in whatever order.
    with rig.client() as client:
        send(client, "spread", *numbered(40))
        same(sorted(int(text(m)) for m in drain(client, "spread", 40)), list(range(40)), "messages")


@statement("P37", "Senders should allow more than 15 s, best the default of 60 s, for that change")
def p37(rig):
    # We need far less: a send that meets a store that has just gone is answered at once by another.
    with rig.client() as client, client.get_queue_sender("spread") as sender:
        sender.send_messages(ServiceBusMessage("before"))
        with rig.without(2):
            sender.send_messages([ServiceBusMessage("during")], timeout=15)
        drain(client, "spread", 2)


@statement("P38", "Messages sent in a transaction need a key: SessionId, PartitionKey or MessageId")
def p38(rig):
    queue = rig.fresh(requires_duplicate_detection=True)
    with rig.client() as client:
        with transaction() as one:
            one.send("spread", "by key", partition_key="k")
            one.commit()
        drain(client, "spread", 1)
        with transaction() as one:
            one.send(queue, "by id", message_id="k")
            one.commit()
        drain(client, queue, 1)
        with transaction() as one:
            one.send("spread-sessions", "by session", session_id="p38")
            one.commit()
        with client.get_queue_receiver("spread-sessions", session_id="p38", **DELETE) as receiver:
            take(receiver, 1)


@statement("P39", "All of a transaction need the same key")
def p39(rig):
    with transaction() as one, rig.client() as client:
        for n in range(3):
            one.send("spread", f"{n}", partition_key="p39")
        one.commit()
        same(len({partition_of(m) for m in drain(client, "spread", 3)}), 1, "partitions")


@statement("P40", "A send without a key, or with another key than before, in a transaction: invalid operation")
def p40(rig):
    with transaction() as one:
        one.send_refused("spread", "no key")
    with transaction() as one:
        one.send("spread", "a", partition_key="a")
        one.send_refused("spread", "b", partition_key="b")
    with rig.client() as client, client.get_queue_receiver("spread") as receiver:
        same(peeked(receiver), [], "none of it happened")


@statement("P41", "A key pins the message to its partition with or without a transaction")
def p41(rig):
    with rig.client() as client:
        partition = learn_keys(client, "spread")["k1"]
        send(client, "spread", ServiceBusMessage("plain", partition_key="k1"))
        with transaction() as one:
            one.send("spread", "in a transaction", partition_key="k1")
            one.commit()
        same([partition_of(m) for m in drain(client, "spread", 2)], [partition] * 2, "partitions")


@statement("P42", "A transactional send to a session entity needs SessionId; a PartitionKey must equal it")
def p42(rig):
    with transaction() as one:
        one.send_refused("spread-sessions", "key only", partition_key="p42")
    with transaction() as one:
        one.send_refused("spread-sessions", "differs", partition_key="p42", session_id="other")
    with transaction() as one, rig.client() as client:
        one.send("spread-sessions", "both", partition_key="p42", session_id="p42")
        one.commit()
        with client.get_queue_receiver("spread-sessions", session_id="p42", **DELETE) as receiver:
            same([text(m) for m in take(receiver, 1)], ["both"], "received")


@statement("P43", "One transaction cannot send to several sessions (on ordinary entities it can)")
def p43(rig):
    with transaction() as one:
        one.send("spread-sessions", "a", session_id="p43 a")
        one.send_refused("spread-sessions", "b", session_id="p43 b")
    with transaction() as one, rig.client() as client:
        for session in ("p43 a", "p43 b"):
            one.send("plain-sessions", session, session_id=session)
        one.commit()
        for session in ("p43 a", "p43 b"):
            with client.get_queue_receiver("plain-sessions", session_id=session, **DELETE) as receiver:
                same([text(m) for m in take(receiver, 1)], [session], "received")


@statement("P44", "Auto-forward works from, to and between partitioned entities")
def p44(rig):
    with rig.client() as client:
        for source, target in (("from-plain", "target"), ("from-spread", "target"), ("to-plain", "plain-target")):
            send(client, source, *numbered(20))
            same(sorted(int(text(m)) for m in drain(client, target, 20)), list(range(20)), f"{source} to {target}")


@statement("P45", "ForwardTo on the source queue or subscription turns it on")
def p45(rig):
    with rig.client() as client:
        with client.get_topic_sender("news") as sender:
            sender.send_messages(ServiceBusMessage("from a subscription"))
        same([text(m) for m in drain(client, "plain-target", 1)], ["from a subscription"], "forwarded")
        with client.get_subscription_receiver("news", "all", **DELETE) as receiver:
            take(receiver, 1)
        send(client, "to-plain", "from a queue")
        same([text(m) for m in drain(client, "plain-target", 1)], ["from a queue"], "forwarded")


@statement("P46", "The message's key is used at the destination too")
def p46(rig):
    with rig.client() as client:
        keys = learn_keys(client, "target")
        send(client, "from-spread", *[ServiceBusMessage(key, partition_key=key) for key in keys])
        same({text(m): partition_of(m) for m in drain(client, "target", len(keys))}, keys, "partitions at the target")


@statement("P47", "Sessions, duplicate detection and explicit keys depend on one partition; if it is unhealthy only that part fails")
def p47(rig):
    with rig.client() as client:
        keys = learn_keys(client, "spread")
        for store in range(STORES):
            with rig.without(store):
                for key, partition in keys.items():
                    for queue, message in (
                            ("spread", ServiceBusMessage("x", partition_key=key)),
                            ("spread-sessions", ServiceBusMessage("x", session_id=key)),
                            ("spread-dedup", ServiceBusMessage("x", message_id=f"{key}"))):
                        if store_of(queue, partition) == store:
                            raises(ServiceBusServerBusyError, send, client, queue, message)
                            break
                    else:
                        send(client, "spread", ServiceBusMessage("taken", partition_key=key))
        with client.get_queue_receiver("spread", **DELETE) as receiver:
            while receiver.receive_messages(max_message_count=100, max_wait_time=0.3):
                pass
        for key in keys:
            with client.get_queue_receiver("spread-sessions", session_id=key, **DELETE) as receiver:
                while receiver.receive_messages(max_message_count=100, max_wait_time=0.05):
                    pass


@statement("P51", "≠ A receive finds any available message, however little traffic and many connections there are")
def p51(rig):
    with rig.client() as client:
        for key in numbered(12, "k"):
            send(client, "spread", ServiceBusMessage(key, partition_key=key))
            with rig.client() as other, other.get_queue_receiver("spread", **DELETE) as receiver:
                same([text(m) for m in receiver.receive_messages(max_wait_time=2)], [key], "on a new connection")


@statement("P53", "A peek batch may be smaller than asked; the client repeats until nothing comes")
def p53(rig):
    queue = rig.fresh()
    with rig.client() as client:
        send(client, queue, *["x" * 100_000] * 20)
        with client.get_queue_receiver(queue) as receiver:
            check(len(receiver.peek_messages(20, sequence_number=1)) < 20, "2 MB in one answer")
            same(len(peeked(receiver, 20)), 20, "by repeating")


@statement("P55", "Over AMQP all of it works: send, receive, batches, by sequence number, peek, renew lock, schedule and cancel, "
           "rules, session lock, session state, list of sessions")
def p55(rig):
    with rig.client() as client:
        with client.get_queue_sender("spread") as sender:
            sender.send_messages([ServiceBusMessage(f"{n}") for n in range(10)])
            numbers = sender.schedule_messages([ServiceBusMessage("late") for _ in range(4)], soon(3600))
            sender.cancel_scheduled_messages(numbers)
        with client.get_queue_receiver("spread") as receiver:
            same(len(peeked(receiver)), 10, "peeked")
            got = take(receiver, 10)
            check(receiver.renew_message_lock(got[0]) > datetime.datetime.now(UTC), "the lock was not renewed")
            receiver.defer_message(got[0])
            (back,) = receiver.receive_deferred_messages(got[0].sequence_number)
            same(back.state, ServiceBusMessageState.DEFERRED, "state")
            for message in [back, *got[1:]]:
                receiver.complete_message(message)
        send(client, "spread-sessions", *[ServiceBusMessage(name, session_id=f"p55 {name}") for name in ("a", "b", "c")])
        found = set()
        for _ in range(3):
            with client.get_queue_receiver("spread-sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as receiver:
                receiver.session.set_state(b"x")
                check(receiver.session.renew_lock() > datetime.datetime.now(UTC), "the session lock was not renewed")
                found.add(receiver.session.session_id)
                receiver.complete_message(take(receiver, 1)[0])
        same(found, {"p55 a", "p55 b", "p55 c"}, "sessions")


