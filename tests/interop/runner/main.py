"""The interop run: prepare clients, start brokers, let each client run its scenarios, count."""

import argparse
import pathlib
import shutil
import sys
import tempfile

from . import context, counted, process, scenarios
from .broker import Broker, BrokerError
from .toolchains import Failed, Missing, Toolchains

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Run:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.build = ROOT / "build" / "interop"
        self.logs = self.build / "logs"
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)
        self.folder = folder
        self.material = context.Material(folder)
        self.toolchains = Toolchains(self.build)
        self.brokers, self.broken = {}, {}
        self.passed = self.failed = self.skipped = 0

    def verdict(self, client, scenario, ok, detail=""):
        if ok == "skip":
            self.skipped += 1
            word = "SKIP"
        elif ok:
            self.passed += 1
            word = "PASS"
        else:
            self.failed += 1
            word = "FAIL"
        show = word != "PASS" or self.arguments.verbose
        print(f"{word} {client} {scenario}" + (f": {detail}" if detail and show else ""), flush=True)

    def broker(self, profile):
        """The running broker of a profile; raises BrokerError, also later, when it cannot start."""
        if profile in self.broken:
            raise BrokerError(self.broken[profile])
        if profile not in self.brokers:
            broker = Broker(self.arguments.binary, profile, self.folder, self.material, self.logs)
            try:
                broker.start()
                if profile == "counts":
                    counted.prepare(broker, self.toolchains.prepare("raw")[0], self.folder, self.material, self.logs)
            except BrokerError as e:
                broker.kill()
                self.broken[profile] = str(e)
                print(f"  {e}\n{broker.log_tail()}", flush=True)
                raise
            self.brokers[profile] = broker
        broker = self.brokers[profile]
        if not broker.alive():
            print(f"  {broker.stop()}; starting it again\n{broker.log_tail()}", flush=True)
            self.verdict("broker", profile, False, "it died during the run")
            broker.start()
        return broker

    def client(self, name, wanted):
        try:
            command, environment = self.toolchains.prepare(name)
        except Missing as e:
            for scenario in wanted:
                self.skipped += 1
            print(f"SKIP {name}: {e} ({len(wanted)} scenarios)", flush=True)
            return
        except Failed as e:
            for scenario in wanted:
                self.verdict(name, scenario, False, "the client could not be prepared")
            print(f"  {e}", flush=True)
            return

        runnable, needed = [], {}
        for scenario in wanted:
            profile = scenarios.profile(scenario)
            try:
                if profile is not None:
                    needed[profile] = self.broker(profile)
                runnable.append(scenario)
            except BrokerError as e:
                self.verdict(name, scenario, False, str(e))
        if not runnable:
            return

        path = self.folder / f"context-{name}.json"
        trusted = context.trust(self.folder, needed)
        context.write(path, name, needed, self.material, trusted, runnable, binary=self.arguments.binary,
                      log=str(self.logs / f"broker-of-{name}.log"))
        # Node takes further CAs from the environment only.
        environment = {**environment, "NODE_EXTRA_CA_CERTS": str(trusted[0])}
        log = self.logs / f"{name}.log"
        open_scenarios, failures = list(runnable), []

        def on_verdict(message):
            scenario = message["scenario"]
            if scenario not in open_scenarios:
                self.verdict(name, scenario, False, "an unexpected verdict")
                return
            open_scenarios.remove(scenario)
            ok = "skip" if message.get("skip") else bool(message["ok"])
            if ok is False:
                failures.append(scenario)
            self.verdict(name, scenario, ok, message.get("detail", ""))

        def on_ask(message):
            broker = needed[message["broker"]]
            if message["ask"] == "stop":
                trouble = broker.stop()
                if trouble:
                    self.verdict("broker", f"{broker.profile}/stop", False, trouble)
            else:
                broker.start()

        trouble = process.run(command, environment, path, log, self.arguments.seconds, on_ask, on_verdict)
        for scenario in open_scenarios:
            self.verdict(name, scenario, False, f"no verdict: the client {trouble or 'ended early'}")
        if trouble and not open_scenarios:
            self.verdict(name, "exit", False, f"the client {trouble}")
        if failures or open_scenarios or trouble:
            print(f"  log of {name}: {log.relative_to(ROOT)}", flush=True)
            for profile in sorted({scenarios.profile(s) for s in failures + open_scenarios} & needed.keys()):
                print(f"  broker '{profile}' wrote:\n{needed[profile].log_tail()}", flush=True)

    def finish(self):
        for profile, broker in self.brokers.items():
            was_running = broker.process is not None
            trouble = broker.stop()
            if was_running:
                self.verdict("broker", f"{profile}/exit", trouble is None, trouble or "")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0

    def kill(self):
        for broker in self.brokers.values():
            broker.kill()


def main(argv):
    parser = argparse.ArgumentParser(prog="run", description="Real clients against the real broker.")
    parser.add_argument("binary", nargs="?", help="the broker, for example build/release/omnibus")
    parser.add_argument("--only", default="", help="client[,client]: run these only")
    parser.add_argument("--scenario", default="", help="run only scenarios whose name contains this text")
    parser.add_argument("--list", action="store_true", help="print clients and scenarios, run nothing")
    parser.add_argument("--prepare", action="store_true", help="install and build the clients, run nothing")
    parser.add_argument("--seconds", type=float, default=300, help="time limit of one client (300)")
    parser.add_argument("-v", "--verbose", action="store_true", help="details of passed scenarios too")
    arguments = parser.parse_args(argv)

    chosen = [c for c in arguments.only.split(",") if c] or list(scenarios.CLIENTS)
    unknown = [c for c in chosen if c not in scenarios.CLIENTS]
    if unknown:
        parser.error(f"no such client: {', '.join(unknown)}; known: {', '.join(scenarios.CLIENTS)}")
    plan = {c: [s for s in scenarios.CLIENTS[c] if arguments.scenario in s] for c in chosen}
    if not any(plan.values()):
        parser.error(f"no scenario contains '{arguments.scenario}'")
    if arguments.list:
        for client, wanted in plan.items():
            for scenario in wanted:
                print(client, scenario)
        return 0
    if arguments.prepare:
        return _prepare(plan)
    if not arguments.binary or not pathlib.Path(arguments.binary).is_file():
        parser.error("BINARY must name the broker's executable")
    arguments.binary = str(pathlib.Path(arguments.binary).resolve())

    # On a real disk: a temporary folder may be memory, and one queue holds a gigabyte.
    base = ROOT / "build" / "interop"
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=base) as folder:
        run = Run(arguments, pathlib.Path(folder))
        try:
            for client, wanted in plan.items():
                if wanted:
                    run.client(client, wanted)
            return run.finish()
        finally:
            run.kill()


def _prepare(plan):
    toolchains, bad = Toolchains(ROOT / "build" / "interop"), 0
    for client in plan:
        try:
            toolchains.prepare(client)
            print(f"ready {client}", flush=True)
        except Missing as e:
            print(f"SKIP {client}: {e}", flush=True)
        except Failed as e:
            bad = 1
            print(f"FAIL {client}: {e}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
