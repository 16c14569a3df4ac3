"""Load, restarts, samples; then a report that says whether anything grew."""

import argparse
import asyncio
import json
import logging
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

from chaos import scene
from chaos.fleet import Fleet
from crash.broker import Broker, NotReady
from crash.main import Verdicts
from runner.toolchains import Failed, Missing

from . import checked, report, samples, trend

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BENCH = "bench"
RESTARTS = 6  # all of them in the first third: what grows slowly shows only in a long life
SAMPLES = 360
CONNECTION = ("Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=RootManageSharedAccessKey;"
              "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;")


class Bench:
    """`omnibus bench`, again and again: a restart of the broker ends it."""

    def __init__(self, binary, port, rate, folder):
        self.command = [binary, "bench", BENCH, "--connection", CONNECTION.format(port=port), "--rate", str(rate),
                        "--duration", "30", "--size", "2000", "--timeout", "10"]
        self.log = folder / "bench.log"
        self.process, self.rounds, self.broken = None, 0, 0

    async def run(self):
        while True:
            with open(self.log, "ab") as log:
                self.process = await asyncio.create_subprocess_exec(*self.command, stdin=subprocess.DEVNULL, stdout=log,
                                                                    stderr=log)
                code = await self.process.wait()
            self.rounds += code == 0
            self.broken += code != 0
            await asyncio.sleep(1)

    def kill(self):
        if self.process and self.process.returncode is None:
            self.process.kill()


class Run:
    def __init__(self, arguments, verdicts, folder):
        self.arguments, self.verdicts, self.folder = arguments, verdicts, folder
        self.random = random.Random(arguments.seed)
        entities = scene.config()
        entities["Queues"] += [{"Name": BENCH, "Properties": scene.COMMON}, *checked.config_queues()]
        self.broker = Broker(arguments.binary, folder, entities, settings={"Shards": scene.STORES}, same_port=True)
        self.fleet = Fleet(folder)
        self.checked = checked.Checked(arguments.checker, folder / "checked")
        self.samples, self.restarts = [], []
        self.began, self.taken = 0, None  # at the last sample: (when, how many)

    def now(self):
        return time.monotonic() - self.began

    async def run(self):
        await self.broker.start()
        self.start_clients()
        bench = Bench(self.arguments.binary, self.broker.port, self.arguments.bench_rate, self.folder)
        self.began = time.monotonic()
        tasks = [asyncio.create_task(part) for part in (bench.run(), self.sample(), self.restart())]
        troubles = []
        try:
            while self.now() < self.arguments.seconds:
                await asyncio.sleep(1)
                troubles = [f"{p.name} ended\n{p.tail()}" for p in (*self.fleet.ended(), *self.checked.fleet.ended())]
                if not self.broker.alive() and not self.restarting:
                    troubles.append(f"the broker ended by itself\n{self.broker.log_tail()}")
                troubles += [f"{type(t.exception()).__name__}: {t.exception()}" for t in tasks if t.done()]
                if troubles:
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            bench.kill()
        for fleet in (self.fleet, self.checked.fleet):
            fleet.quiet()
            troubles += await fleet.stop()
        self.verdicts.say("broker and clients work to the end", troubles,
                          f"{self.now():.0f} s, {len(self.restarts)} restarts, {bench.rounds} rounds of bench")
        if not troubles:
            await asyncio.sleep(scene.SETTLE_SECONDS)
            await self.broker.stop()
            self.checked.fault("restart", "the last one")
            await self.broker.start()  # and all that was written can be read
            await self.look()
            await self.broker.stop()
        self.judge(bench)

    async def look(self):
        if not self.checked.fleet.programs:
            self.verdicts.skip("nothing is lost, doubled or out of order", "the clients that are checked did not run")
        elif not self.arguments.checker:
            self.verdicts.skip("nothing is lost, doubled or out of order", "no --checker was given")
        else:
            await self.checked.look(self.broker.port)
            troubles, detail = await asyncio.to_thread(self.checked.judge, self.broker.log())
            self.verdicts.say("nothing is lost, doubled or out of order", troubles, detail)

    def start_clients(self):
        self.start_fleet(self.fleet, scene.roles(self.arguments.rate), log=os.devnull)
        self.start_fleet(self.checked.fleet, checked.roles())

    def start_fleet(self, fleet, roles, **more):
        commands = fleet.prepare({kind for kind, _ in roles.values()})
        for name, (kind, parts) in roles.items():
            if kind not in commands:
                self.verdicts.skip(name, fleet.missing[kind])
                continue
            fleet.start(name, *commands[kind], {
                "seed": self.arguments.seed, "port": self.broker.port, "roles": parts,
                "connection": CONNECTION.format(port=self.broker.port), **more})

    restarting = False

    async def restart(self):
        """SIGTERM and SIGKILL in turn."""
        third = self.arguments.seconds / 3
        for number in range(RESTARTS):
            await asyncio.sleep(third / RESTARTS * self.random.uniform(0.7, 1))
            self.restarting = True
            self.restarts.append(self.now())
            if number % 2:
                self.broker.kill()
            else:
                await self.broker.stop()
            self.checked.fault("crash" if number % 2 else "restart", f"number {number + 1}")
            await self.broker.start()
            self.taken = None
            self.restarting = False
        await asyncio.Event().wait()

    async def sample(self):
        interval = max(2.0, self.arguments.seconds / SAMPLES)
        while True:
            await asyncio.sleep(interval)
            if self.restarting or not self.broker.alive():
                continue
            pid, port, when = self.broker.process.pid, self.broker.port, self.now()
            try:
                one = {"t": when, **samples.of_process(pid), **samples.of_folder(self.broker.view)}
                depth, taken = await asyncio.to_thread(samples.of_metrics, port)
            except OSError:
                if self.broker.alive() and self.broker.process.pid == pid and not self.restarting:
                    raise
                continue  # it was restarted meanwhile
            one["depth"] = depth
            if self.taken and taken >= self.taken[1]:
                one["rate"] = (taken - self.taken[1]) / (when - self.taken[0])
            self.taken = (when, taken)
            self.samples.append(one)

    def judge(self, bench):
        since = self.arguments.seconds / 3
        enough = [s for s in self.samples if s["t"] >= since and "rate" in s]
        if len(enough) < 10:
            self.verdicts.say("samples", [f"only {len(enough)} in the last two thirds"])
            return
        judged = [trend.judge(self.samples, name, since) for name in trend.BOUNDS]
        for verdict in judged:
            title = samples.SERIES[verdict.name][0]
            grown, limit = (report.shown(verdict.name, value) for value in (verdict.growth, verdict.limit))
            self.verdicts.say(f"flat: {title}", [] if verdict.flat else [f"{grown} grown, {limit} allowed"],
                              f"{grown} grown, {limit} allowed, mean {report.shown(verdict.name, verdict.mean)}")
        rate = sum(s["rate"] for s in enough) / len(enough)
        facts = [f"Soak: {self.now():.0f} s, seed {self.arguments.seed}, {rate:.0f} messages a second, "
                 f"{len(self.restarts)} restarts in the first third, {bench.rounds} rounds of bench "
                 f"({bench.broken} ended by a restart), clients: {' '.join(p.name for p in self.fleet.programs)}"]
        (self.folder / "report.txt").write_text(report.text(self.samples, judged, since, facts))
        (self.folder / "samples.json").write_text(json.dumps(
            {"seconds": self.arguments.seconds, "seed": self.arguments.seed, "since": since, "restarts": self.restarts,
             "series": samples.SERIES, "samples": self.samples}, indent=1))
        self.picture()

    def picture(self):
        try:
            python = self.fleet.toolchains.venv(HERE / "requirements.txt") / "bin" / "python"
        except (Missing, Failed) as e:
            self.verdicts.skip("report.png", f"matplotlib could not be installed: {str(e).splitlines()[0]}")
            return
        done = subprocess.run([python, HERE / "picture.py", self.folder / "samples.json", self.folder / "report.png"],
                              capture_output=True, text=True, check=False)
        self.verdicts.say("report.png", done.stderr.splitlines()[-3:] if done.returncode else [])


async def _guarded(arguments, verdicts, folder):
    run = Run(arguments, verdicts, folder)
    try:
        await run.run()
    except (NotReady, Failed) as e:
        verdicts.say("soak", [str(e)])
    finally:
        run.fleet.kill()
        run.checked.fleet.kill()
        run.broker.kill()


def main(argv):
    parser = argparse.ArgumentParser(prog="run", description="Mixed load for a long time, and what grows meanwhile.")
    parser.add_argument("binary", help="the broker, for example build/release/omnibus")
    parser.add_argument("--checker", help="what judges histories, for example build/release/omnibus_history")
    parser.add_argument("--seconds", type=int, default=3600, help="how long (3600)")
    parser.add_argument("--rate", type=float, default=10, help="messages a second of each sender, about (10)")
    parser.add_argument("--bench-rate", type=float, default=300, help="messages a second of `omnibus bench` (300)")
    parser.add_argument("--seed", type=int, default=1, help="of the clients' choices (1)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "soak",
                        help="of the report (build/soak)")
    arguments = parser.parse_args(argv)
    for name in ("binary", "checker"):
        path = getattr(arguments, name)
        if path is not None and not pathlib.Path(path).is_file():
            parser.error(f"{name.upper()} must name a program")
        setattr(arguments, name, path and str(pathlib.Path(path).resolve()))
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    verdicts = Verdicts(verbose=True)
    asyncio.run(_guarded(arguments, verdicts, arguments.folder.resolve()))
    if not verdicts.failed:
        shutil.rmtree(arguments.folder / "data", ignore_errors=True)
    print(f"the report: {arguments.folder}/report.txt, report.png, samples.json", flush=True)
    print(f"{verdicts.passed} passed, {verdicts.failed} failed, {verdicts.skipped} skipped", flush=True)
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
