"""Start a broker and clients, let things go wrong by seed, look what is left, and let the checker judge the logs."""

import argparse
import asyncio
import collections
import json
import logging
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from crash.broker import Broker, NotReady
from crash.damage import SmallDisk
from crash.main import Verdicts
from runner.toolchains import Failed

from . import falsify, final, merge, scene
from .clients.history import History
from .faults import Faults, Filler
from .fleet import Fleet
from .flood import Flood
from .proxy import Proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHO = "chaos"
DISK_MB = 700
# Where a lock may be told to end a little later than it does, and a client notices late: clocks have milliseconds,
# and a process that waits for its turn on a busy machine is late by more.
SLACK_MS = 2000
# How long a delivery may be under way: a connection stands still for six seconds at most, and the broker for as long.
LATE_MS = 14000
CHECKER_SECONDS = 300


class Run:
    def __init__(self, arguments, verdicts, folder):
        self.arguments, self.verdicts, self.folder = arguments, verdicts, folder
        self.history = History(folder / "chaos.jsonl")
        self.fleet = Fleet(folder)
        self.disk = None
        if shutil.which("unshare") and shutil.which("nsenter"):
            self.disk = SmallDisk(folder / "data", DISK_MB, seconds=arguments.seconds + 3600)
            if not self.disk.ready:
                self.disk.close()
                self.disk = None
        how = {"wrap": self.disk.wrap, "view": self.disk.view} if self.disk else {}
        self.broker = Broker(arguments.binary, folder, scene.config(), settings={"Shards": scene.STORES}, **how)
        self.proxy = Proxy(lambda: self.broker.port, self.closed)
        self.flood = Flood(scene.BULK, self.history)
        self.faults = Faults(arguments.seed, self.broker, self.proxy, Filler(self.disk.view) if self.disk else None,
                             self.flood, self.fault)

    def fault(self, what, note):
        self.history.say(WHO, "fault", what=what, note=note)
        if self.arguments.verbose:
            print(f"  {what}: {note}", flush=True)

    def closed(self, lane):
        self.history.say(WHO, "fault", what="closed", lane=lane)

    async def run(self):
        for entity in scene.entities():
            self.history.say(WHO, "entity", **entity)
        await self.broker.start()
        await self.start_clients()
        began = time.monotonic()
        await self.faults.run(self.arguments.seconds)
        self.verdicts.say("the broker ends only when it is told to", self.faults.troubles,
                          f"{time.monotonic() - began:.0f} s of faults")
        if self.faults.troubles:
            return
        self.fleet.quiet()
        await asyncio.sleep(2)
        self.verdicts.say("clients work to the end", await self.fleet.stop(), f"{len(self.fleet.programs)} processes")
        await asyncio.sleep(scene.SETTLE_SECONDS)
        # One more time, so that what is looked at is what is on disk.
        self.broker.kill()
        self.fault("crash", "kill -9, the last one")
        await self.broker.start()
        total = await final.write(self.broker.port, scene.PLACES, self.history, WHO)
        await self.broker.stop()
        self.judge(total)

    async def start_clients(self):
        roles = scene.roles(self.arguments.rate)
        commands = self.fleet.prepare({kind for kind, _ in roles.values()})
        for name, (kind, parts) in roles.items():
            if kind not in commands:
                self.verdicts.skip(name, self.fleet.missing[kind])
                continue
            lane = await self.proxy.lane(name)
            spec = {"seed": self.arguments.seed, "port": lane.port, "roles": parts, "connection":
                    f"Endpoint=sb://127.0.0.1:{lane.port};SharedAccessKeyName=RootManageSharedAccessKey;"
                    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"}
            self.fleet.start(name, *commands[kind], spec)

    def judge(self, total):
        try:
            events = merge.read(self.folder, self.fleet.killed())
        except merge.Broken as e:
            self.verdicts.say("the logs can be read", [str(e)])
            return
        counted = totals(events)
        print(f"  messages: {counted['sent accepted']} accepted, {counted['sent refused']} refused, "
              f"{counted['sent unknown']} without an answer; {counted['got']} deliveries, "
              f"{counted['settled accepted']} settled; {counted['end accepted']} transactions, "
              f"{counted['end unknown']} without an answer; {total} left")
        kinds = " ".join(f"{what} {number}" for what, number in sorted(self.faults.count.items()))
        print(f"  faults: {kinds}; connections: "
              + " ".join(f"{lane.name} {lane.connections}" for lane in self.proxy.lanes.values()), flush=True)
        idle = [f"nobody got anything from {place}" for place in scene.PLACES
                if not counted[f"got {place}"] and place not in scene.BULK]
        if not counted["end accepted"]:
            idle.append("no transaction was committed")
        self.verdicts.say("there was work", idle)
        self.verdicts.say("no connection is closed for what a library says on it", merge.disputes(self.broker.log()))
        if self.faults.count["full"]:
            self.verdicts.say("a full disk is noticed", [] if self.flood.refused else ["nothing was refused"],
                              f"{self.flood.refused} refusals")
        if self.disk:
            wanted = {"crash", "stop", "restart", "full", "cut", "stall"}
        else:
            wanted = {"crash", "stop", "restart", "cut", "stall"}
            self.verdicts.skip("a full disk", "this user may not mount a file system in a name space of its own")
        if self.arguments.seconds >= 20:
            self.verdicts.say("every kind of fault", [f"no {what}" for what in sorted(wanted - set(self.faults.count))])
        self.check(events)

    def check(self, events):
        if not self.arguments.checker:
            self.verdicts.skip("the checker", "no --checker was given")
            return
        events = merge.merged(events, self.broker.log())
        judged = self.folder / "judged"
        judged.mkdir()
        history = judged / "history.jsonl"
        history.write_text("".join(json.dumps(event) + "\n" for event in events))
        command, code, lines = self.ask(history)
        self.verdicts.say("the checker finds nothing wrong", lines or [f"it ended with code {code}"] if code else [],
                          lines[-1] if lines else "")
        if code:
            print(f"     again: {' '.join(command)}", flush=True)
            return
        for letter, story in falsify.STORIES.items():
            path = judged / f"{story.__name__}.jsonl"
            try:
                falsify.write(events, letter, path)
            except (LookupError, StopIteration, ValueError):
                self.verdicts.skip(f"a {story.__name__} message would be found", "this run has no such message")
                continue
            _, code, lines = self.ask(path)
            found = code == 1 and any(line.startswith(f"{letter} ") for line in lines)
            self.verdicts.say(f"{story.__name__}: would be found", [] if found else [f"{path} has one, and it was not"])

    def ask(self, history):
        """Of the checker: (command, exit code, lines)."""
        command = [self.arguments.checker, str(history), "--slack-ms", str(SLACK_MS), "--late-ms", str(LATE_MS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECKER_SECONDS, check=False)
        return command, done.returncode, (done.stdout + done.stderr).splitlines()


def totals(events):
    """How often each thing happened, over all logs."""
    found = collections.Counter()
    for event in events:
        found[event["do"]] += 1
        for more in ("result", "from"):
            if more in event:
                found[f"{event['do']} {event[more]}"] += 1
    return found


def main(argv):
    parser = argparse.ArgumentParser(prog="run", description="Faults on the real broker while clients work.")
    parser.add_argument("binary", help="the broker, for example build/release/omnibus")
    parser.add_argument("--checker", help="what judges histories, for example build/release/omnibus_history")
    parser.add_argument("--seconds", type=int, default=60, help="how long things go wrong (60)")
    parser.add_argument("--rate", type=float, default=12, help="messages a second of each sender, about (12)")
    parser.add_argument("--seed", type=int, action="append", help="repeat the choices of an earlier run; several: one "
                        "run for each")
    parser.add_argument("--keep", action="store_true", help="keep the folder also when all is well")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per fault")
    arguments = parser.parse_args(argv)
    for name in ("binary", "checker"):
        path = getattr(arguments, name)
        if path is not None and not pathlib.Path(path).is_file():
            parser.error(f"{name.upper()} must name a program")
        setattr(arguments, name, path and str(pathlib.Path(path).resolve()))
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of every write to a broker that is dead

    verdicts = Verdicts(arguments.verbose)
    for seed in arguments.seed or [random.SystemRandom().randrange(2**32)]:
        arguments.seed = seed
        _one(arguments, verdicts)
    print(f"{verdicts.passed} passed, {verdicts.failed} failed, {verdicts.skipped} skipped", flush=True)
    return 1 if verdicts.failed else 0


def _one(arguments, verdicts):
    print(f"seed {arguments.seed}, {arguments.seconds} s", flush=True)
    base = ROOT / "build" / "chaos"
    base.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{arguments.seed}-", dir=base))
    before = verdicts.failed
    try:
        asyncio.run(_guarded(arguments, verdicts, folder))
    except (NotReady, Failed) as e:
        verdicts.say("chaos", [str(e)])
    if verdicts.failed == before and not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"     logs of clients and broker: {folder.relative_to(ROOT)}\n     the same choices again: "
              f"make chaos SECONDS={arguments.seconds} SEED={arguments.seed}", flush=True)


async def _guarded(arguments, verdicts, folder):
    run = Run(arguments, verdicts, folder)
    try:
        await run.run()
    finally:
        run.fleet.kill()
        run.broker.kill()
        run.proxy.close()
        if run.disk:
            run.disk.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
