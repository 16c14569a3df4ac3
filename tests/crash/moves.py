"""Transactions under load: messages are moved from a queue to another one and to a topic, in different stores.

A commit that was answered has happened, all of it. One without an answer has happened as a whole or not at all:
the message is gone from its source exactly when both new ones are there. What was rolled back was never there.
"""

import asyncio

from . import amqp
from .amqp import Controller, Lost, Received, Receiver, Refused, Sender
from .flows import store_of
from .ledger import ABSENT, ACTIVE, DEAD, GONE
from .load import encoded, receive_dead, receive_work, send_singly

SOURCE, TARGET, FEED = "outbox", "inbox", "feed"
COPY = f"{FEED}/Subscriptions/all"
PLACES = (SOURCE, TARGET, COPY)
ROLLBACK = "amqp:transaction:rollback"
MOVERS = 5
KILLS_ENOUGH = 50  # for one of them to come between a commit and its answer

assert store_of(SOURCE) != store_of(TARGET)


def config_queues(common):
    return [{"Name": name, "Properties": common} for name in (SOURCE, TARGET)]


def config_topics(common):
    return [{"Name": FEED, "Properties": {"DefaultMessageTimeToLive": "P1D"},
             "Subscriptions": [{"Name": "all", "Properties": common}]}]


class Moves:
    """What outlives a life of the broker, beside the ledger."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.undecided = []  # commits without an answer: the message that left, and those that came for it
        self.committed = self.rolled_back = self.decided = 0

    def actors(self, world):
        return (send_singly(world, SOURCE, rest=0.01), *(self.move(world) for _ in range(MOVERS)),
                receive_work(world, TARGET), receive_work(world, COPY),
                *(receive_dead(world, place) for place in PLACES))

    async def move(self, world):
        connection = await world.connect()
        controller, source = Controller(connection), Receiver(connection, SOURCE)
        senders = {TARGET: Sender(connection, TARGET), COPY: Sender(connection, FEED)}
        await source.attached
        while True:
            await world.room(TARGET)
            await world.room(COPY)
            if source.credit < 2:
                source.give(5)
            delivery = await source.next(1)
            if delivery is None:
                continue
            entry = world.ledger.delivered(SOURCE, Received(delivery.payload))
            if entry:
                await self._move_one(world, controller, senders, source, delivery, entry)

    async def _move_one(self, world, controller, senders, source, delivery, entry):
        """All of a transaction is written at once; the broker is to keep the order."""
        ledger, transaction = world.ledger, await controller.declare()
        await controller.ready()
        for sender in senders.values():
            await sender.ready()
        fails, dies = world.random.random() < 0.3, world.random.random() < 0.2
        key = f"{entry.key} moved {ledger.new_key('move')}"
        new, answers = [], []
        for place, sender in senders.items():
            size = world.random.randint(20, 120)
            new.append(_Unborn(key, size) if fails else ledger.new(place, size, key=key))
            answers.append(sender.post(encoded(new[-1]), state=amqp.in_transaction(transaction)))
        outcome = amqp.dead_letter("moved", "a description") if dies else amqp.COMPLETE
        answers.append(source.settle(delivery, amqp.in_transaction(transaction, outcome)))
        if not fails:
            entry.reason = ("moved", "a description") if dies else None
            steps = [ledger.begin(entry, DEAD if dies else GONE), *(ledger.begin(one, ACTIVE) for one in new)]
        discharged = controller.discharge(transaction, fails)
        if not fails:
            discharged.add_done_callback(lambda done: self._ended(done, entry, new, steps))
        else:
            discharged.add_done_callback(self._rolled_back)
        for answer in answers:
            answer.add_done_callback(lambda done: self._enlisted(done, transaction))
        if world.random.random() < 0.3:  # otherwise the next one begins meanwhile
            await asyncio.wait([discharged])

    def _enlisted(self, done, transaction):
        try:
            amqp.check_enlisted(done.result(), transaction)
        except (Lost, asyncio.CancelledError):
            pass
        except Refused as e:
            self.ledger.violation("transactions", f"a part was refused: {e}")

    def _rolled_back(self, done):
        try:
            amqp.check_outcome(done.result())
            self.rolled_back += 1
        except (Lost, asyncio.CancelledError):
            pass
        except Refused as e:
            self.ledger.violation("transactions", f"a rollback was refused: {e}")

    def _ended(self, done, entry, new, steps):
        try:
            amqp.check_outcome(done.result())
        except (Lost, asyncio.CancelledError):
            for step in steps:
                self.ledger.unknown(step)
            self.undecided.append((entry, new))
            return
        except Refused as e:
            for step in steps:
                self.ledger.refused(step)
            if e.condition != ROLLBACK or "lock" not in str(e):
                self.ledger.violation(entry, f"its transaction was refused: {e}")
            return
        for step in steps:
            self.ledger.done(step)
        self.committed += 1

    def looked(self):
        """Everything has been looked at: what was undecided is decided, and all of it alike."""
        undecided, self.undecided = self.undecided, []
        self.decided += len(undecided)
        for entry, new in undecided:
            left = ACTIVE not in entry.places
            came = [one.places != {ABSENT} for one in new]
            if set(came) != {left}:
                self.ledger.violation(entry, f"was moved in part: it {'left' if left else 'is there'}, and of "
                                             f"{len(new)} new messages {sum(came)} came")


    def summary(self):
        return (f"{self.committed} transactions were committed, {self.rolled_back} rolled back, "
                f"{self.decided} decided by a crash")

    def idle(self, kills):
        """Why the load has proved nothing: it has to commit, and of many kills one at least has to come in between a commit
        and its answer."""
        if not self.committed:
            return [f"nothing was committed: {self.summary()}"]
        if kills >= KILLS_ENOUGH and not self.decided:
            return [f"no commit was in doubt when the broker was killed: {self.summary()}"]
        return []


class _Unborn:
    """A message that is never committed: the ledger does not know it, so that it is a violation to see it."""

    session = due = None

    def __init__(self, key, size):
        self.key, self.size = key, size
