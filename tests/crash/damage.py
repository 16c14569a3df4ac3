"""Files that were damaged while the broker was stopped, and a disk that is full."""

import asyncio
import os
import pathlib
import re
import shutil
import subprocess
import time

from . import amqp, load
from .amqp import Lost, Management, Received, Receiver, Refused, Sender
from .broker import Broker
from .ledger import ACTIVE, GONE, Ledger, body_of

QUEUE = load.IDLE
REPORTED = re.compile(r"damage at \d+:\d+: \d+ bytes")
CUT_OFF = re.compile(r"\d+ bytes are cut off at \d+:\d+, the end of the log")
# Enough for two segments of the one store and a bit, and what is given back when the disk was full.
DISK_MB, FILLER_MB = 260, 80
LEFT_MB = 4  # for the one store, as docs/guide/durability.md has it


class Scene:
    """A broker and the messages it accepted, one by one."""

    def __init__(self, arguments, folder, **how):
        folder.mkdir(parents=True, exist_ok=True)
        self.broker = Broker(arguments.binary, folder, {"Queues": load.config_queues()}, **how)
        self.ledger = Ledger()

    async def send(self, count, size=2000):
        connection = await amqp.Connection.open(self.broker.port)
        try:
            link = Sender(connection, QUEUE)
            for _ in range(count):
                await link.ready()
                entry = self.ledger.new(QUEUE, size)
                step = self.ledger.begin(entry, ACTIVE)
                amqp.check_outcome(await link.post(load.encoded(entry)))
                self.ledger.done(step)
        finally:
            connection.close()

    async def peek(self):
        connection = await amqp.Connection.open(self.broker.port)
        try:
            return await load.peek_all(Management(connection, QUEUE))
        finally:
            connection.close()

    async def receive_all(self, seconds=2):
        """Completes what comes, until nothing comes any more."""
        connection = await amqp.Connection.open(self.broker.port)
        got = []
        try:
            link = Receiver(connection, QUEUE)
            await link.attached
            while True:
                link.give(50)
                delivery = await link.next(seconds)
                if delivery is None:
                    return got
                got.append(Received(delivery.payload))
                amqp.check_settled(await link.settle(delivery, amqp.COMPLETE), amqp.COMPLETE)
        finally:
            connection.close()

    def wrong(self, seen):
        """Keys of messages with a body that was never sent."""
        sizes = {e.key: e.size for e in self.ledger.entries.values()}
        return [m.key for m in seen if m.key not in sizes or m.body != body_of(m.key, sizes[m.key])]

    def keys(self):
        return [e.key for e in self.ledger.entries.values() if e.places == {ACTIVE}]


def place_of(segments, key):
    """(segment, offset) of a message's body."""
    needle = f"{key} 2000 {key} ".encode()
    for segment in reversed(segments):
        offset = segment.read_bytes().find(needle)
        if offset >= 0:
            return segment, offset
    raise RuntimeError(f"the body of {key} is in no segment: is it stored as it came?")


def flip(segments, key):
    segment, offset = place_of(segments, key)
    with open(segment, "r+b") as file:
        file.seek(offset)
        original = file.read(16)
        file.seek(offset)
        file.write(bytes(b ^ 0x55 for b in original))


def cut(segments, key):
    segment, offset = place_of(segments, key)
    with open(segment, "r+b") as file:
        file.truncate(offset + 10)


async def judge(scene, may_be_missing, reported, log_before):
    """Starts the broker on the damaged files; returns what is wrong."""
    troubles = []
    await scene.broker.start()
    seen = await scene.peek()
    if scene.wrong(seen):
        troubles.append(f"peek serves damaged bytes: {scene.wrong(seen)[:5]}")
    missing = set(scene.keys()) - {m.key for m in seen}
    if not missing <= may_be_missing:
        troubles.append(f"{len(missing - may_be_missing)} undamaged messages are missing, "
                        f"for example {sorted(missing - may_be_missing)[0]}")
    if not may_be_missing & missing:
        troubles.append("the damaged message was served, from where?")
    await scene.send(5)
    got = await scene.receive_all()
    if scene.wrong(got):
        troubles.append(f"a receiver got damaged bytes: {scene.wrong(got)[:5]}")
    lost = set(scene.keys()) - missing - {m.key for m in got}
    if lost:
        troubles.append(f"{len(lost)} messages could be seen or were sent, and were not delivered")
    if len(got) != len({m.key for m in got}):
        troubles.append("a message was delivered twice")
    if not reported.search(scene.broker.log()[log_before:]):
        troubles.append("the log says nothing of the damage")
    await scene.broker.stop()
    return troubles, f"{len(missing)} of {len(scene.keys())} missing"


async def damaged_files(arguments, verdicts, folder):
    """Each case: 60 accepted messages in two segments, the last ones not closed cleanly, then one wound."""
    # What may be missing: the wounded message, and after a cut the ones behind it.
    cases = {
        "flipped bytes in an old segment": (flip, 10, lambda n: {n}, REPORTED),
        "flipped bytes in the newest segment": (flip, 40, lambda n: {n}, REPORTED),
        "flipped bytes in the last message": (flip, 59, lambda n: {n}, CUT_OFF),
        "a newest segment cut short": (cut, 50, lambda n: set(range(n, 60)), CUT_OFF),
    }
    for number, (name, (wound, victim, victims, reported)) in enumerate(cases.items()):
        scene = Scene(arguments, folder / str(number))
        try:
            await scene.broker.start()
            await scene.send(30)
            await scene.broker.stop()
            await scene.broker.start()
            await scene.send(30)
            scene.broker.kill()
            keys = scene.keys()
            log_before = len(scene.broker.log())
            wound(scene.broker.segments(), keys[victim])
            troubles, detail = await judge(scene, {keys[v] for v in victims(victim)}, reported, log_before)
            verdicts.say(name, troubles, detail)
        except (Lost, Refused) as e:
            verdicts.say(name, [f"{type(e).__name__} {e}\n{scene.broker.log_tail()}"])
        finally:
            scene.broker.kill()


class SmallDisk:
    """A file system in memory that only its own name space sees; it goes away with the process that holds it."""

    def __init__(self, folder, megabytes=DISK_MB, seconds=600):
        self.folder = folder
        folder.mkdir(parents=True)
        mount = f"mount -t tmpfs -o size={megabytes}m tmpfs '{folder}' && echo ready && exec sleep {seconds}"
        self.holder = subprocess.Popen(["unshare", "-rm", "sh", "-c", mount], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
        self.ready = self.holder.stdout.readline() == b"ready\n"
        self.view = pathlib.Path(f"/proc/{self.holder.pid}/root{folder}")
        self.wrap = ["nsenter", "-t", str(self.holder.pid), "-U", "-m", "--preserve-credentials", "--"]

    def close(self):
        self.holder.kill()
        self.holder.wait()


async def fill(scene):
    """Sends until the broker refuses; returns the condition, or None when it never does."""
    connection = await amqp.Connection.open(scene.broker.port)
    size, ledger = 900_000, scene.ledger
    try:
        link = Sender(connection, QUEUE)
        for _ in range(DISK_MB * 1_000_000 // size + 50):
            await link.ready()
            entry = ledger.new(QUEUE, size)
            step = ledger.begin(entry, ACTIVE)
            try:
                amqp.check_outcome(await asyncio.wait_for(link.post(load.encoded(entry)), 30))
                ledger.done(step)
            except Refused as e:
                # After an internal error nobody knows whether it was stored.
                (ledger.unknown if e.condition == "amqp:internal-error" else ledger.refused)(step)
                return e.condition
        return None
    finally:
        connection.close()


async def take_some(scene, count):
    """Receives and completes so many; what the broker refuses is raised."""
    connection = await amqp.Connection.open(scene.broker.port)
    try:
        link = Receiver(connection, QUEUE)
        await link.attached
        link.give(count)
        for _ in range(count):
            delivery = await link.next(10)
            if delivery is None:
                raise Lost("no delivery within 10 s")
            entry = scene.ledger.delivered(QUEUE, Received(delivery.payload))
            step = scene.ledger.begin(entry, GONE)
            amqp.check_settled(await link.settle(delivery, amqp.COMPLETE), amqp.COMPLETE)
            scene.ledger.done(step)
    finally:
        connection.close()


async def start_when_full(scene, disk, rest):
    """Stops, leaves so many bytes of the disk, and starts: there is no room for a segment."""
    await scene.broker.stop()
    state = os.statvfs(disk.view)
    with open(rest, "wb") as file:
        file.write(bytes(state.f_bavail * state.f_frsize - (LEFT_MB << 20)))
    await scene.broker.start()
    await take_some(scene, 3)
    troubles = []
    condition = await fill(scene)
    if condition != "com.microsoft:server-busy":
        troubles.append(f"a send was answered with {condition}")
    scene.broker.kill()
    scene.ledger.crashed()
    await scene.broker.start()
    await take_some(scene, 3)
    return troubles


async def accepts_again(scene, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            await scene.send(1)
            return True
        except (Refused, Lost):
            for entry in list(scene.ledger.entries.values()):
                for step in list(entry.pending):
                    scene.ledger.unknown(step)
            await asyncio.sleep(0.5)
    return False


async def full_disk(arguments, verdicts, folder):
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        verdicts.skip("a full disk", "unshare and nsenter are not installed")
        return
    disk = SmallDisk(folder / "scene" / "data")
    if not disk.ready:
        disk.close()
        verdicts.skip("a full disk", "this user may not mount a file system in a name space of its own")
        return
    scene = Scene(arguments, folder / "scene", wrap=disk.wrap, view=disk.view, settings={"Shards": 1})
    filler = disk.view / "filler"
    try:
        with open(filler, "wb") as file:
            file.write(bytes(FILLER_MB << 20))
        await scene.broker.start()
        condition = await fill(scene)
        accepted = len(scene.keys())
        troubles = []
        if condition is None:
            troubles.append(f"{accepted} messages of 900 kB were accepted on a disk of {DISK_MB} MB")
        elif condition not in ("amqp:internal-error", "com.microsoft:server-busy", "amqp:resource-limit-exceeded"):
            troubles.append(f"the refusal was {condition}")
        if not scene.broker.alive():
            troubles.append("the broker ended")
        verdicts.say("a full disk refuses", troubles, f"{condition} after {accepted} messages")

        rest = disk.view / "rest"
        verdicts.say("a start on a full disk gives messages away and settles them",
                     await start_when_full(scene, disk, rest))
        filler.unlink()
        rest.unlink()
        verdicts.say("a disk with room again accepts",
                     [] if await accepts_again(scene) else ["no message was accepted within 30 s"])
        scene.broker.kill()
        scene.ledger.crashed()
        await scene.broker.start()
        connection = await amqp.Connection.open(scene.broker.port)
        await load.look(connection, scene.ledger)
        connection.close()
        verdicts.say("nothing was lost on a full disk", scene.ledger.violations, f"{accepted} messages")
        await scene.broker.stop()
    except (Lost, Refused) as e:
        verdicts.say("a full disk", [f"{type(e).__name__} {e}\n{scene.broker.log_tail()}"])
    finally:
        scene.broker.kill()
        disk.close()
