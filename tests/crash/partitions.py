"""Partitioned entities under load: a queue and a topic, each with its partitions in both stores.

What one link sends has no order over the partitions; everything else is as with plain entities. Messages with a key
are all in the partition of their key, which their number names.
"""

from . import amqp
from .amqp import Sender
from .ledger import ACTIVE
from .load import encoded, fetch_deferred, receive_dead, receive_work, send_batches, send_singly

QUEUE, TOPIC, KEYED = "spread", "scatter", "keyed"
COPY = f"{TOPIC}/Subscriptions/all"
PLACES = (QUEUE, KEYED, COPY)
KEYS = [f"key {n}" for n in range(8)]
PARTITION_SHIFT = 48


def config_queues(common):
    return [{"Name": name, "Properties": {**common, "EnablePartitioning": True}} for name in (QUEUE, KEYED)]


def config_topics(common):
    return [{"Name": TOPIC, "Properties": {"DefaultMessageTimeToLive": "P1D", "EnablePartitioning": True},
             "Subscriptions": [{"Name": "all", "Properties": common}]}]


class Partitions:
    """What outlives a life of the broker, beside the ledger."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.partition_of = {}  # by key
        self.keyed = {}  # entries by key, of this life

    def actors(self, world):
        return (send_singly(world, QUEUE, by=QUEUE, rest=0.01), send_batches(world, QUEUE, ordered=False),
                receive_work(world, QUEUE, defer=True), receive_work(world, QUEUE, defer=True),
                fetch_deferred(world, QUEUE), receive_dead(world, QUEUE),
                send_singly(world, COPY, by=TOPIC, rest=0.01), receive_work(world, COPY), receive_dead(world, COPY),
                self.send_keyed(world), receive_work(world, KEYED), receive_dead(world, KEYED))

    async def send_keyed(self, world):
        link = Sender(await world.connect(), KEYED)
        while True:
            await link.ready()
            await world.room(KEYED)
            key = world.random.choice(KEYS)
            # What one link sends with one key stays in order.
            entry = world.ledger.new(KEYED, world.random.randint(20, 120), stream=f"{link.name} {key}")
            self.keyed.setdefault(key, []).append(entry)
            future = link.post(encoded(entry, key))
            world.follow(future, amqp.check_outcome, world.ledger.begin(entry, ACTIVE))
            await world.pause(future)

    def looked(self):
        """One key, one partition, in every life of the broker."""
        for key, entries in self.keyed.items():
            for entry in entries:
                if entry.number is None:
                    continue
                partition = entry.number >> PARTITION_SHIFT
                if self.partition_of.setdefault(key, partition) != partition:
                    self.ledger.violation(entry, f"with {key!r} is in partition {partition}, others in "
                                                 f"{self.partition_of[key]}")
        self.keyed.clear()

    def idle(self):
        """Whether the load has not even tried."""
        return len(set(self.partition_of.values())) < 2

    def summary(self):
        return f"{len(self.partition_of)} keys in {len(set(self.partition_of.values()))} partitions"
