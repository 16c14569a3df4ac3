"""The load: senders, receivers, a scheduler, workers on sessions, deferred messages and dead letters.

Everything is asked of the ledger before it is written to the socket, and told to it when the answer is
read. An actor ends when its connection does. Refusals that a working broker has no reason for are
violations too.
"""

import asyncio
import time

from wire.values import NULL, array, binary, int_, list_, long_, map_, string, uint, uuid

from . import amqp
from .amqp import Lost, Management, Received, Receiver, Refused, Sender
from .ledger import ACTIVE, DEAD, DEFERRED, GONE, SCHEDULED, body_of

WORK, DELETED, SESSIONS, IDLE = "work", "deleted", "sessions", "idle"
QUEUES = (WORK, DELETED, SESSIONS, IDLE)
SESSION_NAMES = [f"s{n}" for n in range(6)]
LOCK_SECONDS = 5
# How much may wait in a queue before its senders rest: looking at everything takes time.
LIVE_MAX = {WORK: 500, DELETED: 150, SESSIONS: 150}
FAR_SECONDS, FAR_MAX = 3600, 60
BENIGN = ("com.microsoft:message-lock-lost", "com.microsoft:session-lock-lost", "com.microsoft:server-busy",
          "amqp:connection:forced")


# Message locks are as short as they can be, delivery counts as high.
COMMON = {"LockDuration": f"PT{LOCK_SECONDS}S", "MaxDeliveryCount": 2000, "DefaultMessageTimeToLive": "P1D"}


def config_queues():
    """`Queues` of Config.json."""
    return [{"Name": name, "Properties": {**COMMON, "RequiresSession": name == SESSIONS}} for name in QUEUES]


class World:
    """The clients of one life of the broker."""

    def __init__(self, port, ledger, random):
        self.port, self.ledger, self.random = port, ledger, random
        self.connections, self.deleting = [], []
        self.tasks = []

    async def connect(self):
        connection = await amqp.Connection.open(self.port)
        self.connections.append(connection)
        return connection

    def start(self, *actors):
        self.tasks += [asyncio.create_task(self._guard(actor)) for actor in actors]

    async def _guard(self, actor):
        try:
            await actor
        except Lost:
            pass
        except Refused as e:
            if e.condition not in BENIGN:
                self.ledger.violation(actor.__name__, f"was refused: {e}")

    async def finish(self):
        """The broker is dead: reads what it still had written, and marks everything else as unknown."""
        for connection in self.connections:
            try:
                await asyncio.wait_for(asyncio.shield(connection.task), 10)
            except asyncio.TimeoutError as e:
                raise RuntimeError("a connection outlives the broker") from e
        for task in self.tasks:
            task.cancel()
        for result in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        await asyncio.sleep(0)  # callbacks of the last answers
        self.ledger.vanishing[DELETED] = sum(max(0, link.credit) for link in self.deleting)
        for connection in self.connections:
            connection.close()

    # Telling the ledger.

    def follow(self, future, check, *steps, group=None, then=None):
        """When the answer comes, or will not come, tells the ledger about the steps."""
        def answered(done):
            try:
                check(done.result())
            except (Lost, asyncio.CancelledError):
                for step in steps:
                    self.ledger.unknown(step)
                return
            except Refused as e:
                for step in steps:
                    self.ledger.refused(step)
                if group is not None:
                    self.ledger.group_answered(group)
                if e.condition not in BENIGN:
                    self.ledger.violation(steps[0].entry if steps else "load", f"was refused: {e}")
                return
            for step in steps:
                self.ledger.done(step)
            if group is not None:
                self.ledger.group_answered(group)
            if then:
                then()
        future.add_done_callback(answered)

    async def room(self, queue, most=150):
        while len(self.ledger.live.get(queue, ())) >= LIVE_MAX.get(queue, most):
            await asyncio.sleep(0.02)
            if self.connections[0].lost.done():
                raise Lost

    async def pause(self, future):
        """Sometimes until it is answered; otherwise several are on the way."""
        if self.random.random() < 0.3:
            await asyncio.wait([future])
        await asyncio.sleep(0)

    def size(self):
        kind = self.random.random()
        if kind < 0.03:
            return self.random.randint(70_000, 250_000)  # several frames
        return self.random.randint(20, 120) if kind < 0.9 else self.random.randint(1_000, 9_000)


def encoded(entry, partition_key=None):
    return amqp.message(entry.key, body_of(entry.key, entry.size), entry.session, entry.due,
                        partition_key=partition_key)


async def send_singly(world, queue, by=None, rest=0, **how):
    """To `queue`, or to `by`, which forwards there."""
    link = Sender(await world.connect(), by or queue)
    while True:
        await asyncio.sleep(world.random.random() * rest)
        await link.ready()
        await world.room(queue)
        session = world.random.choice(SESSION_NAMES) if queue == SESSIONS else None
        entry = world.ledger.new(queue, world.size(), session=session, stream=None if by else link.name, **how)
        step = world.ledger.begin(entry, ACTIVE)
        future = link.post(encoded(entry))
        world.follow(future, amqp.check_outcome, step)
        await world.pause(future)


async def send_batches(world, queue, ordered=True):
    link = Sender(await world.connect(), queue)
    while True:
        await link.ready()
        await world.room(queue)
        group = f"{link.name}-{link.count}"
        entries = [world.ledger.new(queue, world.random.randint(20, 120), group=group,
                                    stream=link.name if ordered else None)
                   for _ in range(world.random.randint(2, 30))]
        steps = [world.ledger.begin(entry, ACTIVE) for entry in entries]
        future = link.post(amqp.batch([encoded(entry) for entry in entries]), amqp.BATCH_FORMAT)
        world.follow(future, amqp.check_outcome, *steps, group=group)
        await asyncio.wait([future])
        await asyncio.sleep(world.random.random() * 0.02)


def settle(world, link, delivery, entry, defer):
    """One of the ways to be done with a locked message."""
    ledger, choice = world.ledger, world.random.random()
    if choice < 0.60:
        world.follow(link.settle(delivery, amqp.COMPLETE), lambda a: amqp.check_settled(a, amqp.COMPLETE),
                     ledger.begin(entry, GONE))
    elif choice < 0.72:
        def counted():
            entry.abandoned += 1
        world.follow(link.settle(delivery, amqp.ABANDON), lambda a: amqp.check_settled(a, amqp.ABANDON), then=counted)
    elif choice < 0.80 and defer:
        world.follow(link.settle(delivery, amqp.DEFER), lambda a: amqp.check_settled(a, amqp.DEFER),
                     ledger.begin(entry, DEFERRED))
    elif choice < 0.88:
        entry.reason = (f"reason of {entry.key}", "a description")
        state = amqp.dead_letter(*entry.reason)
        world.follow(link.settle(delivery, state), lambda a: amqp.check_settled(a, state), ledger.begin(entry, DEAD))
    elif choice < 0.92:
        world.follow(link.settle(delivery, amqp.RELEASE), lambda a: amqp.check_settled(a, amqp.RELEASE))
    elif choice < 0.96:
        link.settle(delivery, amqp.COMPLETE, settled=True)  # nobody will answer
        ledger.unknown(ledger.begin(entry, GONE))
    # else: it stays locked until the lock runs out


async def receive_work(world, queue=WORK, defer=None):
    """`defer`: some are; the work queue has somebody who fetches them."""
    link = Receiver(await world.connect(), queue)
    await link.attached
    link.give(20)
    while True:
        delivery = await link.next(1)
        if link.credit < 10:
            link.give(20)
        if delivery is None:
            continue
        entry = world.ledger.delivered(queue, Received(delivery.payload))
        if world.random.random() < 0.1:
            await asyncio.sleep(world.random.random() * 0.05)
        if entry:
            settle(world, link, delivery, entry, defer=queue == WORK if defer is None else defer)


async def receive_dead(world, queue=WORK):
    link = Receiver(await world.connect(), f"{queue}/$DeadLetterQueue")
    await link.attached
    while True:
        await asyncio.sleep(0.05)  # some should be there when the broker dies
        link.give(1)
        delivery = await link.next(1)
        if delivery:
            entry = world.ledger.delivered(queue, Received(delivery.payload), DEAD)
            if entry:
                world.follow(link.settle(delivery, amqp.COMPLETE), lambda a: amqp.check_settled(a, amqp.COMPLETE),
                             world.ledger.begin(entry, GONE))


async def receive_and_delete(world):
    link = Receiver(await world.connect(), DELETED, delete=True)
    world.deleting.append(link)
    await link.attached
    while True:
        link.give(10)
        delivery = await link.next(1)
        if delivery:
            entry = world.ledger.delivered(DELETED, Received(delivery.payload))
            if entry:
                world.ledger.removed(entry)


async def fetch_deferred(world, queue=WORK):
    management = Management(await world.connect(), queue)
    await management.ready()
    while True:
        await asyncio.sleep(0.03)
        ready = [e for e in world.ledger.live.get(queue, {}).values()
                 if e.places == {DEFERRED} and not e.pending and e.number is not None]
        if len(ready) < 20:  # some should be there when the broker dies
            continue
        entry = world.random.choice(ready)
        try:
            body = await management.request("receive-by-sequence-number",
                                            ("sequence-numbers", array("long", long_(entry.number))),
                                            ("receiver-settle-mode", uint(1)))
        except Refused as e:
            if e.condition != "com.microsoft:message-not-found":  # a lock of the life before may still hold it
                raise
            continue
        found = {k.value: v for k, v in body["messages"].value[0].value}
        world.ledger.delivered(queue, Received(found["message"].value), DEFERRED)
        tokens = ("lock-tokens", array("uuid", uuid(found["lock-token"].value)))
        if world.random.random() < 0.8:
            step = world.ledger.begin(entry, GONE)
            world.follow(management.post("update-disposition", ("disposition-status", string("completed")), tokens),
                         lambda a: Management.checked(*a), step)
        else:
            def counted(entry=entry):
                entry.abandoned += 1
            world.follow(management.post("update-disposition", ("disposition-status", string("abandoned")), tokens),
                         lambda a: Management.checked(*a), then=counted)


def schedule_request(entries):
    return ("messages", list_(*(map_((string("message-id"), string(e.key)), (string("message"), binary(encoded(e))))
                                for e in entries)))


async def schedule(world):
    management = Management(await world.connect(), WORK)
    await management.ready()
    ledger = world.ledger
    while True:
        await asyncio.sleep(world.random.random() * 0.08)
        far = [e for e in ledger.live.get(WORK, {}).values()
               if e.places == {SCHEDULED} and not e.pending and e.due > time.time() + 60 and e.scheduled_number]
        if len(far) > FAR_MAX / 2 and world.random.random() < 0.5 or len(far) > FAR_MAX:
            entry = world.random.choice(far)
            world.follow(management.post("cancel-scheduled-message",
                                         ("sequence-numbers", array("long", long_(entry.scheduled_number)))),
                         lambda a: Management.checked(*a), ledger.begin(entry, GONE))
            continue
        await world.room(WORK)
        wait = FAR_SECONDS if world.random.random() < 0.5 else 0.2 + world.random.random()
        due = int((time.time() + wait) * 1000) / 1000
        entries = [ledger.new(WORK, world.random.randint(20, 120), due=due)
                   for _ in range(world.random.randint(1, 3))]
        steps = [ledger.begin(entry, SCHEDULED) for entry in entries]

        def numbered(answer, entries=entries):
            numbers = [n.value for n in Management.checked(*answer)["sequence-numbers"].value[2]]
            for entry, number in zip(entries, numbers, strict=True):
                if entry.scheduled_number is None:
                    entry.scheduled_number = number
        world.follow(management.post("schedule-message", schedule_request(entries)), numbered, *steps)


async def work_on_sessions(world):
    connection = await world.connect()
    management = Management(connection, SESSIONS)
    await management.ready()
    ledger = world.ledger
    while True:
        name = world.random.choice(SESSION_NAMES)
        link = Receiver(connection, SESSIONS, session=name)
        try:
            await link.attached
        except Refused as e:
            if e.condition != "com.microsoft:session-cannot-be-locked":
                raise
            await asyncio.sleep(0.05)
            continue
        session = ("session-id", string(name))
        state = (await management.request("get-session-state", session))["session-state"]
        ledger.state_seen(name, state.value)
        link.give(10)
        last = 0
        for _ in range(world.random.randint(1, 10)):
            delivery = await link.next(0.05)
            if delivery is None:
                break
            seen = Received(delivery.payload)
            entry = ledger.delivered(SESSIONS, seen)
            if seen.session != name or seen.number <= last:
                ledger.violation(SESSIONS, f"{seen.key} of {seen.session} came to {name} after number {last}")
            last = seen.number
            if entry:
                step = ledger.begin(entry, GONE)
                future = link.settle(delivery, amqp.COMPLETE)
                world.follow(future, lambda a: amqp.check_settled(a, amqp.COMPLETE), step)
                await asyncio.wait([future])
        value = None if world.random.random() < 0.2 else f"{name} at {last}".encode()
        ledger.state_begin(name, value)
        await management.request("set-session-state", session, ("session-state", binary(value) if value else NULL))
        ledger.state_done(name, value)
        link.detach()
        await asyncio.sleep(0.01)


async def fill_idle(world, count=60):
    """Messages nobody touches, in every place they can be in without a receiver."""
    link = Sender(await world.connect(), IDLE)
    futures = []
    for _ in range(count):
        await link.ready()
        entry = world.ledger.new(IDLE, world.size(), stream=link.name)
        futures.append(link.post(encoded(entry)))
        world.follow(futures[-1], amqp.check_outcome, world.ledger.begin(entry, ACTIVE))
    await asyncio.wait(futures)


def everything(world):
    return (send_singly(world, WORK), send_singly(world, WORK), send_batches(world, WORK), receive_work(world),
            receive_work(world), receive_work(world), receive_dead(world), fetch_deferred(world), schedule(world),
            send_singly(world, DELETED), receive_and_delete(world), send_singly(world, SESSIONS),
            work_on_sessions(world), work_on_sessions(world))


# Looking at everything, and taking everything out.

async def peek_all(management):
    seen, start = [], 1
    while True:
        body = await management.request("peek-message", ("from-sequence-number", long_(start)),
                                        ("message-count", int_(200)))
        page = [Received(dict((k.value, v) for k, v in m.value)["message"].value)
                for m in body["messages"].value] if "messages" in body else []
        if not page:
            return seen
        seen += page
        start = page[-1].number + 1


async def look(connection, ledger, places=QUEUES):
    """Compares all there is in these with the ledger. Returns how many messages there are."""
    total = 0
    for place in places:
        main = await peek_all(Management(connection, place))
        dead = await peek_all(Management(connection, f"{place}/$DeadLetterQueue"))
        ledger.look(place, main, dead)
        total += len(main) + len(dead)
    return total


async def drain(connection, ledger, places=(WORK, DELETED, IDLE), seconds=30):
    """Receives everything that is active and completes it: what is left then is what is kept aside."""
    deadline = time.monotonic() + seconds
    for place in places:
        link = Receiver(connection, place)
        await link.attached
        while ledger.count(place, ACTIVE):
            if time.monotonic() > deadline:
                ledger.violation(place, f"{ledger.count(place, ACTIVE)} messages were not delivered in {seconds} s")
                return
            link.give(50)
            delivery = await link.next(1)
            entry = ledger.delivered(place, Received(delivery.payload)) if delivery else None
            if entry:
                step = ledger.begin(entry, GONE)
                amqp.check_settled(await link.settle(delivery, amqp.COMPLETE), amqp.COMPLETE)
                ledger.done(step)
        link.detach()


async def look_at_sessions(connection, ledger, seconds=30):
    """The state of each session, once its lock of the life before has run out."""
    deadline = time.monotonic() + seconds
    management = Management(connection, SESSIONS)
    for name in SESSION_NAMES:
        while True:
            link = Receiver(connection, SESSIONS, session=name)
            try:
                await link.attached
                break
            except Refused as e:
                if e.condition != "com.microsoft:session-cannot-be-locked" or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
        ledger.state_seen(name, (await management.request("get-session-state", ("session-id", string(name))))
                          ["session-state"].value)
        link.detach()
