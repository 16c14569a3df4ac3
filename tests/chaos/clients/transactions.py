"""Moves messages in transactions: one is completed at a queue, and new ones come to another queue and to a topic, which
are in other stores. Written with the small client of tests/crash; commands as the other clients have them."""

import asyncio
import json
import os
import pathlib
import random
import sys

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "interop")]
from crash import amqp  # noqa: E402
from crash.amqp import Controller, Lost, Received, Receiver, Refused, Sender  # noqa: E402
from history import History, now  # noqa: E402

ANSWER_SECONDS = 8
# A settled disposition and the outcome of a discharge that say so, not a link that went away.
ROLLED_BACK = "amqp:transaction:rollback"


class Mover:
    def __init__(self, spec, history, how, number):
        self.how, self.history = how, history
        self.who = f"{spec['name']}-{number}"
        self.random = random.Random(f"{spec['seed']} {self.who}")
        self.port = spec["port"]
        self.count = 0
        self.troubles = {}

    def say(self, do, **fields):
        self.history.say(self.who, do, **fields)

    async def run(self, stop):
        while not stop.is_set():
            connection = None
            try:
                connection = await amqp.Connection.open(self.port)
                await self.work(connection, stop)
            except (Lost, Refused, asyncio.TimeoutError) as e:
                name = getattr(e, "condition", type(e).__name__)
                self.troubles[name] = self.troubles.get(name, 0) + 1
                await asyncio.sleep(0.1 + self.random.random() * 0.3)
            finally:
                if connection:
                    connection.close()

    async def work(self, connection, stop):
        controller, source = Controller(connection), Receiver(connection, self.how["from"])
        senders = {to: Sender(connection, to) for to in self.how["to"]}
        await asyncio.wait_for(source.attached, ANSWER_SECONDS)
        while not stop.is_set():
            if source.credit < 1:
                source.give(3)
            delivery = await source.next(0.5)
            if delivery:
                await asyncio.wait_for(self.move(controller, senders, source, delivery), 3 * ANSWER_SECONDS)

    async def move(self, controller, senders, source, delivery):
        message = Received(delivery.payload)
        until = message.locked_until * 1000
        if until <= now():
            return  # it was under way for longer than its lock lasts
        what = {"id": message.body.decode().split()[0], "from": self.how["from"], "seq": message.number}
        self.say("got", **what, count=(message.count or 0) + 1, until=until)
        self.count += 1
        tx, how = f"{self.who}.t{self.count}", "rollback" if self.random.random() < 0.3 else "commit"
        transaction = await controller.declare()
        await controller.ready()
        for sender in senders.values():
            await sender.ready()
        self.say("begin", tx=tx)
        answers = []
        for number, (to, sender) in enumerate(senders.items()):
            new = f"{tx}.{number}"
            self.say("send", id=new, to=to, tx=tx)
            answer = sender.post(amqp.message(new, f"{new} moved".encode()), state=amqp.in_transaction(transaction))
            answers.append(self.enlisted(answer, transaction, "sent", id=new))
        self.say("settle", **what, how="complete", tx=tx)
        answer = source.settle(delivery, amqp.in_transaction(transaction, amqp.COMPLETE))
        answers.append(self.enlisted(answer, transaction, "settled", **what, how="complete"))
        result = "unknown"
        try:
            ended = await controller.discharge(transaction, how == "rollback")
            result = "refused"
            amqp.check_outcome(ended)
            result = "accepted"
        except Refused as e:
            # Only this condition says that nothing happened; others, such as a store that closed, say nothing.
            if e.condition != ROLLED_BACK:
                result = "unknown"
        finally:
            self.say("end", tx=tx, how=how, result=result)
            for answer in answers:
                answer.cancel()

    def enlisted(self, answer, transaction, do, **what):
        """Tells when a part has become part of the transaction. The broker answers these before the end."""
        def answered(done):
            if done.cancelled():
                return
            try:
                amqp.check_enlisted(done.result(), transaction)
                self.say(do, **what, result="accepted")
            except (Lost, Refused):
                pass  # the end of the transaction says more
        answer.add_done_callback(answered)
        return answer


async def main(path):
    spec = json.loads(pathlib.Path(path).read_text())
    history, stop = History(spec["log"]), asyncio.Event()
    movers = [Mover(spec, history, how, f"{number}.{each}") for number, how in enumerate(spec["roles"])
              for each in range(how["movers"])]

    def command():
        words = os.read(0, 4096)  # not readline: it might keep the next one to itself
        if not words or b"stop" in words:
            stop.set()
            asyncio.get_running_loop().remove_reader(0)

    asyncio.get_running_loop().add_reader(0, command)
    await asyncio.gather(*(mover.run(stop) for mover in movers))
    for mover in movers:
        print(f"{mover.who} move: {mover.troubles}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
