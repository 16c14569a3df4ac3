"""What goes wrong, by seed: the broker's process, its disk, and the connections to it.

Kinds are dealt like cards: each comes once before any comes again, so that a short run has them all.
"""

import asyncio
import collections
import errno
import os
import random
import re
import signal
import time

from crash.broker import NotReady

NO_ROOM = re.compile(r"^.*omnibus: cannot write '[^']*'$", re.MULTILINE)


class Deck:
    def __init__(self, random_, cards):
        self.random, self.cards, self.left = random_, list(cards), []

    def next(self):
        if not self.left:
            self.left = self.random.sample(self.cards, len(self.cards))
        return self.left.pop()


class Filler:
    """A file that takes all the room of a small disk."""

    def __init__(self, folder):
        self.path = folder / "filler"

    def fill(self):
        """In ever smaller pieces, so that nothing is left for anybody else. Takes its time on a busy machine."""
        with open(self.path, "wb", buffering=0) as file:
            for size in (16 << 20, 1 << 20, 1 << 12):
                try:
                    while True:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
                except OSError as e:
                    if e.errno != errno.ENOSPC:
                        raise

    def empty(self):
        self.path.unlink(missing_ok=True)


class Faults:
    """`say(what, note)` writes them down; `disk` is a Filler, or None when there is no disk that may be filled; `flood`
    is what makes the broker notice."""

    def __init__(self, seed, broker, proxy, disk, flood, say):
        self.broker, self.proxy, self.disk, self.flood = broker, proxy, disk, flood
        self.say_ = say
        self.count = collections.Counter()
        self.random = random.Random(f"{seed} broker")
        self.wire_random = random.Random(f"{seed} wire")
        self.troubles = []

    def say(self, what, note):
        self.count[what] += 1
        self.say_(what, note)

    async def run(self, seconds):
        """Until the time is over; then everything is as it should be, and the broker runs."""
        wires = asyncio.create_task(self.of_wires())
        try:
            # What was begun with the process is brought to its end: it may be neither up nor down in between.
            await self.of_the_broker(time.monotonic() + seconds, time.monotonic() + 3 * seconds)
        except (NotReady, OSError) as e:
            self.troubles.append(f"{type(e).__name__}: {e}")
        finally:
            wires.cancel()
            for result in await asyncio.gather(wires, return_exceptions=True):
                if isinstance(result, Exception):
                    self.troubles.append(f"{type(result).__name__}: {result}")
            self.heal()

    def heal(self):
        self.proxy.heal()
        if self.disk:
            self.disk.empty()

    # The broker.

    async def of_the_broker(self, until, latest):
        """On a slow machine it goes on until each kind has come once."""
        kinds = [self.kill, self.kill, self.stop, self.terminate] + ([self.full] if self.disk else [])
        deck, dealt = Deck(self.random, kinds), 0
        while time.monotonic() < (until if dealt >= len(kinds) else latest):
            dealt += 1
            await asyncio.sleep(self.random.uniform(0.5, 3))
            if not self.broker.alive():
                self.troubles.append(f"the broker ended by itself\n{self.broker.log_tail()}")
                self.broker.kill()
                await self.broker.start()
            await deck.next()()

    async def kill(self):
        self.broker.kill()
        self.say("crash", "kill -9")
        while self.random.random() < 0.2:
            self.broker.launch()  # and once more while it starts
            await asyncio.sleep(self.random.random() * 0.2)
            self.broker.kill()
            self.say("crash", "kill -9 while it starts")
        await self.up()

    async def terminate(self):
        await self.broker.stop()
        self.say("restart", "SIGTERM")
        await self.up()

    async def up(self):
        await asyncio.sleep(self.random.random())
        seconds = await self.broker.start()
        self.say_("started", f"ready after {seconds:.2f} s")

    async def stop(self):
        """Sometimes for longer than a lock lasts."""
        seconds = self.random.choice([0.3, 1, 2, 6])
        self.say("stop", f"SIGSTOP for {seconds} s")
        self.broker.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.broker.process.send_signal(signal.SIGCONT)
        self.say_("go on", "SIGCONT")

    async def full(self):
        """Sometimes the broker is killed on the full disk, and starts on it."""
        self.say("full", "the disk is full")
        await asyncio.to_thread(self.disk.fill)
        await self.flood.rise(self.broker.port)
        await asyncio.sleep(self.random.uniform(0.5, 2))
        if self.random.random() < 0.3:
            self.broker.kill()
            self.say("crash", "kill -9 on a full disk")
            await self.up_on_a_full_disk()
        self.disk.empty()
        self.say_("space", "the disk has room again")
        await self.flood.ebb(self.broker.port)

    async def up_on_a_full_disk(self):
        """It starts, or says that it cannot because of the disk, and starts when there is room."""
        try:
            await self.up()
            await asyncio.sleep(self.random.random())
        except NotReady as e:
            if not NO_ROOM.search(str(e)):
                raise
            self.say("no start", "there was no room for what a start writes")
            self.disk.empty()
            await self.up()

    # Connections.

    async def of_wires(self):
        deck = Deck(self.wire_random, [self.cut, self.cut, self.cut_in_chunk, self.stall, self.delay, self.drop])
        while True:
            await asyncio.sleep(self.wire_random.uniform(0.3, 2))
            lanes = list(self.proxy.lanes.values())
            await deck.next()(lanes if self.wire_random.random() < 0.3 else [self.wire_random.choice(lanes)])

    def say_of_wires(self, what, lanes, note=""):
        self.say(what, f"{' '.join(lane.name for lane in lanes)} {note}".strip())

    async def cut(self, lanes):
        for lane in lanes:
            lane.cut()
        self.say_of_wires("cut", lanes)

    async def cut_in_chunk(self, lanes):
        for lane in lanes:
            lane.cut_in_chunk()
        self.say_of_wires("cut", lanes, "in the middle of a frame")
        self.count["cut in a frame"] += 1

    async def stall(self, lanes):
        seconds = self.wire_random.choice([0.5, 1, 3, 6])
        self.say_of_wires("stall", lanes, f"for {seconds} s")
        for lane in lanes:
            lane.open.clear()
        await asyncio.sleep(seconds)
        for lane in lanes:
            lane.open.set()

    async def delay(self, lanes):
        self.say_of_wires("delay", lanes)
        for lane in lanes:
            lane.delay_seconds = self.wire_random.uniform(0.01, 0.2)
        await asyncio.sleep(self.wire_random.uniform(1, 3))
        for lane in lanes:
            lane.delay_seconds = 0

    async def drop(self, lanes):
        for lane in lanes:
            lane.drop()
        self.say_of_wires("drop", lanes, "the broker is not told")
