"""Exchanges in a row under load: what one does not match goes to the next, by the sender's link or by itself.

`switch` has the alternate `branch` in its own store, and that one `terminus` in the other. What is sent alone, or
with others of the same key, walks on with its sender waiting: it is where it matches exactly once. Of a transfer with
several keys the first exchange that matches any keeps all and sends the rest on by itself, as what is scheduled
when it is due: exactly once within a store, at least once into the other. Until it has arrived nobody can see it.
"""

import asyncio
import time

from . import amqp
from .amqp import Sender
from .flows import store_of
from .ledger import ACTIVE, SCHEDULED, body_of
from .load import receive_work

SWITCH, BRANCH, TERMINUS = EXCHANGES = ("switch", "branch", "terminus")
# Keys and what they match. `goods` comes to the other store with its sender waiting, `mail` by itself.
BINDINGS = {"local": (SWITCH, "local"), "near": (BRANCH, "near"), "goods": (TERMINUS, "goods"),
            "mail": (TERMINUS, "mail")}
PLACE = {key: f"{exchange}/Subscriptions/{name}" for key, (exchange, name) in BINDINGS.items()}
PLACES = tuple(PLACE.values())
ALONE, BY_ITSELF = ("local", "near", "goods", "nobody"), ("local", "near", "mail", "nobody")

assert store_of(SWITCH) == store_of(BRANCH) != store_of(TERMINUS)


def config_exchanges(common):
    return [{"Name": exchange, "Type": "Direct",
             "Subscriptions": [{"Name": name, "RoutingKey": name, "Broker": common}
                               for of, name in BINDINGS.values() if of == exchange],
             **({"AlternateExchange": after} if after else {})}
            for exchange, after in zip(EXCHANGES, (*EXCHANGES[1:], None))]


class Alternates:
    """What outlives a life of the broker is in the ledger."""

    def __init__(self, ledger):
        self.ledger = ledger
        ledger.repeating.add(PLACE["mail"])

    def actors(self, world):
        return (self.send(world), self.send(world), self.send_mixed(world), self.schedule(world),
                *(receive_work(world, place) for place in PLACES))

    def message(self, world, key, target, group=None, due=None, moment=None):
        """The encoded message, and the steps of its entry: none when nobody wants it."""
        name, size = self.ledger.new_key(SWITCH), world.random.randint(20, 120)
        steps = []
        if key in PLACE:
            # What may be there more than once is no part of the whole.
            entry = self.ledger.new(PLACE[key], size, name, group=None if key == "mail" else group, routing_key=key,
                                    **({"due": moment or due, "hidden": True} if target == SCHEDULED else {}))
            steps.append(self.ledger.begin(entry, target))
        return amqp.message(name, body_of(name, size), due=due, subject=key), steps

    async def room(self, world):
        for place in PLACES:
            await world.room(place)

    async def send(self, world):
        """One message, or several of one key: all of the transfer is in one place when it is accepted."""
        link = Sender(await world.connect(), SWITCH)
        while True:
            await link.ready()
            await self.room(world)
            key, group = world.random.choice(ALONE), f"{link.name}-{link.count}"
            count = 1 if world.random.random() < 0.8 else world.random.randint(2, 5)
            made = [self.message(world, key, ACTIVE, group) for _ in range(count)]
            self.post(world, link, made, group)
            await asyncio.sleep(world.random.random() * 0.02)

    async def send_mixed(self, world):
        link = Sender(await world.connect(), SWITCH)
        while True:
            await link.ready()
            await self.room(world)
            group, now = f"{link.name}-{link.count}", int(time.time() * 1000) / 1000
            keys = [world.random.choice(BY_ITSELF) for _ in range(world.random.randint(2, 6))]
            at = [EXCHANGES.index(BINDINGS[key][0]) for key in keys if key in BINDINGS]
            if len(set(at)) < 2:
                continue
            made = [self.message(world, key, ACTIVE if key in BINDINGS and EXCHANGES.index(BINDINGS[key][0]) == min(at)
                                 else SCHEDULED, group, moment=now) for key in keys]
            self.post(world, link, made, group)
            await asyncio.sleep(world.random.random() * 0.05)

    async def schedule(self, world):
        link = Sender(await world.connect(), SWITCH)
        while True:
            await link.ready()
            await self.room(world)
            due = int((time.time() + 0.1 + world.random.random() / 2) * 1000) / 1000
            self.post(world, link, [self.message(world, world.random.choice(BY_ITSELF), SCHEDULED, due=due)])
            await asyncio.sleep(world.random.random() * 0.05)

    @staticmethod
    def post(world, link, made, group=None):
        payloads = [payload for payload, _ in made]
        steps = [step for _, mine in made for step in mine]
        future = link.post(amqp.batch(payloads), amqp.BATCH_FORMAT) if len(payloads) > 1 else link.post(payloads[0])
        world.follow(future, amqp.check_outcome, *steps, group=group)
