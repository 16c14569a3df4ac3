"""What a queue does by itself, across crashes: forwarding, dropping duplicates, letting messages expire.

A message that is forwarded within a store leaves and arrives in one batch of records: it is at its target
exactly once. Into another store it arrives at least once: a crash between the two records sends it again,
at most once per crash. What is in which store follows from the names.
"""

import asyncio
import time

from . import amqp
from .amqp import Management, Sender
from .ledger import ABSENT, ACTIVE
from .load import encoded, peek_all, receive_dead, receive_work, send_singly

NEAR, FAR = ("relay", "arrived"), ("posted", "handed")  # source and target
ONCE, MORTAL = "once", "mortal"
BARRIERS = ("that", "this")  # a queue in each store
MORTAL_SECONDS = 1
STORES = 2
PLACES = (NEAR[1], FAR[1], ONCE, MORTAL)
DRAINED = (NEAR[1], FAR[1], ONCE)
EMPTY_SECONDS = 15


def store_of(name):
    """Where the broker puts a new entity: FNV-1a of its name."""
    value = 0xcbf29ce484222325
    for byte in name.lower().encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value % STORES


assert {store_of(name) for name in BARRIERS} == set(range(STORES))
assert store_of(NEAR[0]) == store_of(NEAR[1]) and store_of(FAR[0]) != store_of(FAR[1])


def config_queues(common):
    return [
        {"Name": NEAR[0], "Properties": {**common, "ForwardTo": NEAR[1]}},
        {"Name": FAR[0], "Properties": {**common, "ForwardTo": FAR[1]}},
        *({"Name": name, "Properties": common} for name in (NEAR[1], FAR[1], *BARRIERS)),
        {"Name": ONCE, "Properties": {**common, "RequiresDuplicateDetection": True,
                                      "DuplicateDetectionHistoryTimeWindow": "P1D"}},
        {"Name": MORTAL, "Properties": {**common, "DefaultMessageTimeToLive": f"PT{MORTAL_SECONDS}S",
                                        "DeadLetteringOnMessageExpiration": True}},
    ]


class Flows:
    """What outlives a life of the broker, beside the ledger."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.once = []  # everything that was sent to ONCE
        ledger.repeating.add(FAR[1])

    def actors(self, world):
        return (send_singly(world, NEAR[1], by=NEAR[0], rest=0.01), receive_work(world, NEAR[1]),
                send_singly(world, FAR[1], by=FAR[0], rest=0.01), receive_work(world, FAR[1]),
                self.send_again(world), receive_work(world, ONCE),
                send_singly(world, MORTAL, rest=0.03, ttl=MORTAL_SECONDS), receive_dead(world, MORTAL))

    async def send_again(self, world):
        """New messages, and old ones once more: those that were taken are dropped, whatever became of them."""
        link = Sender(await world.connect(), ONCE)
        # First of all what the last life took, and what it did not answer: by now the look has decided.
        again = self.once[-40:]
        while True:
            await asyncio.sleep(world.random.random() * 0.01)
            await link.ready()
            await world.room(ONCE)
            steps = []
            if again:
                entry = again.pop()
            elif self.once and world.random.random() < 0.3:
                entry = world.random.choice(self.once)
            else:
                entry = world.ledger.new(ONCE, world.random.randint(20, 120))
                self.once.append(entry)
            if entry.pending:
                continue  # not answered yet
            if entry.places == {ABSENT}:
                world.ledger.revive(entry)
                steps = [world.ledger.begin(entry, ACTIVE)]
            world.follow(link.post(encoded(entry)), amqp.check_outcome, *steps)


async def wait_until_empty(connection, ledger, sources):
    """What was on its way has arrived; nothing of it has become a dead letter."""
    deadline = time.monotonic() + EMPTY_SECONDS
    for source in sources:
        management = Management(connection, source)
        while rest := await peek_all(management):
            if time.monotonic() > deadline:
                ledger.violation(source, f"{len(rest)} messages are still there: {rest[0].key}")
                break
            await asyncio.sleep(0.02)
        if dead := await peek_all(Management(connection, f"{source}/$DeadLetterQueue")):
            ledger.violation(source, f"could not forward {dead[0].key}: {dead[0].reason}, {dead[0].description}")
    # It leaves its source at once and is seen at the target when that is durable; so is everything before this.
    for name in BARRIERS:
        link = Sender(connection, name)
        await link.ready()
        amqp.check_outcome(await link.post(amqp.message("barrier", b"")))
