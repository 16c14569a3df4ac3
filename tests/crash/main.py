"""Start, load, kill, look; again and again. Then damaged files, a full disk and one that is read-only."""

import argparse
import asyncio
import logging
import pathlib
import random
import shutil
import tempfile
import time

from . import (alternates, damage, flows, ledger_test, load, moves, namespaces, partitioned_changes, partitions,
               read_only, topics)
from .amqp import Connection, Lost, Refused
from .broker import Broker, NotReady
from .ledger import DUE_SECONDS, Ledger

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Verdicts:
    def __init__(self, verbose):
        self.verbose = verbose
        self.passed = self.failed = self.skipped = 0

    def say(self, name, troubles, detail=""):
        """A check that passes when there are no troubles."""
        if troubles:
            self.failed += 1
            print(f"FAIL {name}: {troubles[0]}", flush=True)
            for trouble in troubles[1:8]:
                print(f"     {trouble}", flush=True)
            if len(troubles) > 8:
                print(f"     and {len(troubles) - 8} more", flush=True)
        else:
            self.passed += 1
            if self.verbose:
                print(f"PASS {name}" + (f": {detail}" if detail else ""), flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIP {name}: {why}", flush=True)


class Run:
    def __init__(self, arguments, verdicts, folder):
        self.arguments, self.verdicts = arguments, verdicts
        self.random = random.Random(arguments.seed)
        self.ledger = Ledger()
        self.flows, self.topics = flows.Flows(self.ledger), topics.Topics(self.ledger)
        self.alternates, self.moves = alternates.Alternates(self.ledger), moves.Moves(self.ledger)
        self.partitions = partitions.Partitions(self.ledger)
        entities = topics.config(load.COMMON)
        entities["Exchanges"] += alternates.config_exchanges(load.COMMON)
        entities["Queues"] += load.config_queues() + flows.config_queues(load.COMMON) + moves.config_queues(load.COMMON)
        entities["Queues"] += partitions.config_queues(load.COMMON)
        entities["Topics"] += moves.config_topics(load.COMMON) + partitions.config_topics(load.COMMON)
        self.broker = Broker(arguments.binary, folder, entities, settings={"Shards": flows.STORES})

    async def kills(self):
        """Returns True when everything was as the broker had said."""
        killed = 0
        while killed < self.arguments.kills and not self.verdicts.failed:
            if self.random.random() < 0.15 and killed:
                # In the middle of recovery, before anybody could connect.
                await self.broker.cut_start_short(self.random.random() * 0.2)
                killed += 1
                self.verdicts.say(f"kill {killed}", [], "while it was starting")
            else:
                await self.life(killed)
                killed += 1
        if self.verdicts.failed:
            return False
        await self.start_and_look("the last kill")
        await self.broker.stop()
        await self.start_and_look("a clean stop")
        self.ledger.crashed()  # deliveries of connections that were closed may have been counted
        await asyncio.sleep(DUE_SECONDS)  # what is due soon has come, what is mortal has expired
        connection = await Connection.open(self.broker.port)
        try:
            await self.look(connection)
            await load.drain(connection, self.ledger)
            await load.look_at_sessions(connection, self.ledger)
            await load.drain(connection, self.ledger, flows.DRAINED)
            await load.drain(connection, self.ledger, (*topics.PLACES, *alternates.PLACES, *moves.PLACES,
                                                       *partitions.PLACES))
            await self.topics.cancel_all(connection)
            await self.look(connection)
        finally:
            connection.close()
        self.verdicts.say("everything can be received", self.take_violations())
        self.verdicts.say("transactions", self.moves.idle(self.arguments.kills), self.moves.summary())
        self.verdicts.say("partitions", [self.partitions.summary()] if self.partitions.idle() else [],
                          self.partitions.summary())
        await self.broker.stop()
        return not self.verdicts.failed

    def take_violations(self):
        violations, self.ledger.violations = self.ledger.violations, []
        return violations

    async def start_and_look(self, after):
        seconds = await self.broker.start()
        self.ledger.started()
        started = time.monotonic()
        connection = await Connection.open(self.broker.port)
        try:
            total = await self.look(connection)
        finally:
            connection.close()
        self.verdicts.say(f"look after {after}", self.take_violations(),
                          f"{total} messages, ready in {seconds:.2f} s, looked for {time.monotonic() - started:.2f} s")

    async def look(self, connection):
        await flows.wait_until_empty(connection, self.ledger, (flows.NEAR[0], flows.FAR[0], *topics.SOURCES))
        places = (*load.QUEUES, *flows.PLACES, *topics.PLACES, *alternates.PLACES, *moves.PLACES,
                  *partitions.PLACES)
        total = await load.look(connection, self.ledger, places)
        await self.topics.look_at_rules(connection)
        self.moves.looked()
        self.partitions.looked()
        self.ledger.looked()
        self.topics.looked()
        return total

    async def life(self, killed):
        if killed:
            await self.start_and_look(f"kill {killed}")
            if self.verdicts.failed:
                return
        else:
            await self.broker.start()
        before = self.ledger.answered
        world = load.World(self.broker.port, self.ledger, random.Random(self.random.random()))
        if not killed:
            await load.fill_idle(world)
        world.start(*load.everything(world), *self.flows.actors(world), *self.topics.actors(world),
                    *self.alternates.actors(world), *self.moves.actors(world), *self.partitions.actors(world))
        await asyncio.sleep(self.random.random() * self.arguments.seconds_each)
        gone_by_itself = not self.broker.alive()
        self.broker.kill()
        await world.finish()
        self.ledger.crashed()
        troubles = self.take_violations()
        if gone_by_itself:
            troubles.insert(0, f"the broker ended by itself\n{self.broker.log_tail()}")
        self.verdicts.say(f"kill {killed + 1}", troubles, f"after {self.ledger.answered - before} answers")


def main(argv):
    parser = argparse.ArgumentParser(prog="run", description="Kills the broker under load and checks what survived.")
    parser.add_argument("binary", help="the broker, for example build/release/omnibus")
    parser.add_argument("--kills", type=int, default=50, help="how often to kill it (50)")
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of an earlier run")
    parser.add_argument("--seconds-each", type=float, default=1.0, help="load before a kill, at most (1)")
    parser.add_argument("--only", choices=["kills", "damage", "disk", "read-only", "namespaces", "changes"],
                        help="one part only")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per kill")
    arguments = parser.parse_args(argv)
    if not pathlib.Path(arguments.binary).is_file():
        parser.error("BINARY must name the broker's executable")
    arguments.binary = str(pathlib.Path(arguments.binary).resolve())
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(2**32)
    print(f"seed {arguments.seed}", flush=True)

    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of every write to a broker that is dead

    verdicts = Verdicts(arguments.verbose)
    verdicts.say("the ledger notices what is wrong", ledger_test.failures(), f"{len(ledger_test.STORIES)} stories")
    parts = {"kills": _kills, "damage": damage.damaged_files, "disk": damage.full_disk,
             "read-only": read_only.read_only, "namespaces": namespaces.kills,
             "changes": partitioned_changes.kills}
    for name, part in parts.items():
        if arguments.only in (None, name):
            _in_folder(name, part, arguments, verdicts)
    print(f"{verdicts.passed} passed, {verdicts.failed} failed, {verdicts.skipped} skipped", flush=True)
    return 1 if verdicts.failed else 0


async def _kills(arguments, verdicts, folder):
    run = Run(arguments, verdicts, folder)
    try:
        await run.kills()
    finally:
        run.broker.kill()


def _in_folder(name, part, arguments, verdicts):
    """Runs a part in a folder on a real disk; what failed is kept for those who want to know why."""
    base = ROOT / "build" / "crash"
    base.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
    before = verdicts.failed
    try:
        asyncio.run(part(arguments, verdicts, folder))
    except (NotReady, Lost, Refused, asyncio.TimeoutError, RuntimeError) as e:
        verdicts.say(name, [f"{type(e).__name__}: {e}"])
    if verdicts.failed == before:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"     seed {arguments.seed}; data and log: {folder.relative_to(ROOT)}", flush=True)
