"""The broker under test: started on a data folder, killed without warning, started again."""

import asyncio
import json
import signal
import socket
import subprocess
import time

from runner.broker import chosen_port

READY_SECONDS = 30
STOP_SECONDS = 20


class NotReady(Exception):
    pass


class Broker:
    """`wrap` is a command that runs the rest of its arguments; `view` is where this process sees the data folder;
    `entities` and `settings`, the broker's own, go into Config.json as they are. With `same_port` it listens where it
    did before."""

    def __init__(self, binary, folder, entities, wrap=(), view=None, settings=None, same_port=False):
        self.binary, self.wrap = binary, list(wrap)
        self.data = folder / "data"
        self.view = view or self.data
        self.config = folder / "config.json"
        self.log_path = folder / "broker.log"
        self.config.write_text(json.dumps({"UserConfig": {
            "Namespaces": [{"Name": "sbemulatorns", "Queues": [], "Topics": [], **entities}],
            "Logging": {"Type": "Console"}}, "Omnibus": settings or {}}, indent=1))
        self.log_path.touch()
        self.process = None
        self.port, self.same_port = 0, same_port

    def launch(self):
        (self.view / "listen.json").unlink(missing_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrap, self.binary, "serve", "--data", str(self.data), "--listen",
                 f"127.0.0.1:{self.port if self.same_port else 0}", "--config", str(self.config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    async def cut_start_short(self, seconds):
        """Killed in the middle of what it does at the start."""
        self.launch()
        await asyncio.sleep(seconds)
        self.kill()

    async def start(self):
        """Starts and waits until it listens; returns the seconds that took."""
        started = time.monotonic()
        self.launch()
        while time.monotonic() < started + READY_SECONDS:
            if self.process.poll() is not None:
                raise NotReady(f"the broker ended with code {self.process.returncode}\n{self.log_tail()}")
            try:
                self.port = chosen_port((self.view / "listen.json").read_text())
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        return time.monotonic() - started
            except (OSError, ValueError):
                pass  # not written yet, or only in part
            await asyncio.sleep(0.01)
        self.kill()
        raise NotReady(f"the broker was not ready after {READY_SECONDS} s\n{self.log_tail()}")

    def kill(self):
        """As a power cut would, but for what the kernel already has."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    async def stop(self):
        """SIGTERM; raises unless it ends by itself with code 0."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise NotReady(f"no end within {STOP_SECONDS} s of SIGTERM")
            await asyncio.sleep(0.01)  # our own sockets close in between
        if process.returncode:
            raise NotReady(f"ended with code {process.returncode} after SIGTERM\n{self.log_tail()}")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def log_tail(self, lines=15):
        return "\n".join(f"    | {line}" for line in self.log().splitlines()[-lines:])

    def segments(self):
        """The journal's segments, oldest first, of all stores."""
        found = [p for p in self.view.rglob("*.segment") if p.is_file()]
        return sorted(found, key=lambda p: (str(p.parent), int(p.stem, 16)))
