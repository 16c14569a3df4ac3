"""The client programs: prepared as tests/interop prepares them, started, told to be quiet, told to stop."""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys

from runner.toolchains import Missing, Toolchains

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STOP_SECONDS = 40


class Program:
    """One process. `command` runs it; `log` is where it writes its history, `path` what it prints."""

    def __init__(self, name, command, environment, spec, folder):
        self.name = name
        self.log, self.path = folder / f"{name}.jsonl", folder / f"{name}.log"
        self.log.touch()
        file = folder / f"{name}.json"
        file.write_text(json.dumps({"name": name, "log": str(self.log), **spec}, indent=1))
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([*command, str(file)], stdin=subprocess.PIPE, stdout=out, stderr=out,
                                            env={**os.environ, **environment})

    def tell(self, word):
        try:
            self.process.stdin.write(word.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it is gone; its exit code tells

    async def stop(self):
        """None when it ended well, else what was wrong."""
        self.tell("stop")
        for _ in range(STOP_SECONDS * 10):
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.1)
        else:
            self.kill()
            return f"{self.name} did not end within {STOP_SECONDS} s\n{self.tail()}"
        code = self.process.returncode
        return f"{self.name} ended with code {code}\n{self.tail()}" if code else None

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def tail(self, lines=15):
        return "\n".join(f"    | {line}" for line in self.path.read_text(errors="replace").splitlines()[-lines:])


class Fleet:
    """`kinds`: how to run a program of each kind, or why it cannot be run."""

    def __init__(self, folder):
        self.folder = folder
        self.toolchains = Toolchains(ROOT / "build" / "interop")
        self.programs, self.missing = [], {}

    def command(self, kind):
        if kind == "raw":
            return [sys.executable, str(HERE / "clients/transactions.py")], {}
        if kind == "java":
            (java, *rest), environment = self.toolchains.java([HERE / "clients/java/Mover.java"], "chaos.Mover")
            return [java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *rest], environment
        if kind == "go":
            return self.toolchains.go([HERE / "clients/go/main.go"])
        command, environment = self.toolchains.prepare(kind)
        program = {"python": "azure_python.py", "js": "azure_js.js"}[kind]
        return [command[0], str(HERE / "clients" / program)], environment

    def prepare(self, kinds):
        """The commands by kind. What this machine lacks the tools for is in `missing`."""
        commands = {}
        for kind in kinds:
            try:
                commands[kind] = self.command(kind)
            except Missing as e:
                self.missing[kind] = str(e)
        return commands

    def start(self, name, command, environment, spec):
        self.programs.append(Program(name, command, environment, spec, self.folder))

    def quiet(self):
        for program in self.programs:
            program.tell("quiet")

    async def stop(self):
        """What was wrong with those that did not end well."""
        return [trouble for trouble in await asyncio.gather(*(p.stop() for p in self.programs)) if trouble]

    def ended(self):
        return [p for p in self.programs if p.process.poll() is not None]

    def killed(self):
        """The names of those that a signal ended."""
        return {p.name for p in self.ended() if p.process.returncode < 0}

    def kill(self):
        for program in self.programs:
            program.kill()
