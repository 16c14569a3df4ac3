"""A file system that becomes read-only under the running broker, and can be written again."""

import asyncio
import pathlib
import shutil
import subprocess
import time

from . import amqp, load
from .amqp import Lost, Received, Receiver, Refused, Sender
from .damage import QUEUE, Scene, accepts_again
from .ledger import ACTIVE, GONE

SOURCE = pathlib.Path(__file__).with_name("read_only.c")
BUSY, UNKNOWN = "com.microsoft:server-busy", "amqp:internal-error"


def preload(folder):
    """The library that makes writes fail, or None with the reason why there is none."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return None, "there is no C compiler"
    library = folder / "read_only.so"
    made = subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"],
                          capture_output=True, text=True)
    return (library, "") if made.returncode == 0 else (None, f"the library cannot be made: {made.stderr[:200]}")


async def refusal(scene):
    """What one send is answered with; None when it was accepted."""
    connection = await amqp.Connection.open(scene.broker.port)
    try:
        link = Sender(connection, QUEUE)
        try:
            await link.ready()
        except Refused as e:
            return e.condition
        step = scene.ledger.begin(scene.ledger.new(QUEUE, 2000), ACTIVE)
        try:
            amqp.check_outcome(await asyncio.wait_for(link.post(load.encoded(step.entry)), 30))
            scene.ledger.done(step)
            return None
        except Refused as e:
            (scene.ledger.unknown if e.condition == UNKNOWN else scene.ledger.refused)(step)
            return e.condition
    finally:
        connection.close()


async def complete_next(scene, link, count):
    for _ in range(count):
        link.give(1)
        delivery = await link.next(10)
        if delivery is None:
            raise Lost("no delivery within 10 s")
        step = scene.ledger.begin(scene.ledger.delivered(QUEUE, Received(delivery.payload)), GONE)
        amqp.check_settled(await link.settle(delivery, amqp.COMPLETE), amqp.COMPLETE)
        scene.ledger.done(step)


async def refuses(scene, seconds=3):
    """Sends while nothing can be written; returns what is wrong."""
    answers = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answers.append(await refusal(scene))
        await asyncio.sleep(0.1)
    troubles = []
    # Who was on the way to the disk cannot be told what became of it; everybody after that can.
    if answers[0] not in (BUSY, UNKNOWN) or set(answers[1:]) != {BUSY}:
        troubles.append(f"sends were answered with {answers[:3]} ... {answers[-1]}")
    if not scene.broker.alive():
        troubles.append("the broker ended")
    if "Read-only file system" not in scene.broker.log():
        troubles.append("the log does not say why")
    return troubles, f"{len(answers)} sends"


async def read_only(arguments, verdicts, folder):
    library, why = preload(folder)
    if library is None:
        verdicts.skip("a read-only file system", why)
        return
    flag = folder / "is-read-only"
    scene = Scene(arguments, folder / "scene", settings={"Shards": 1},
                  wrap=["env", f"LD_PRELOAD={library}", f"READ_ONLY_WHEN={flag}"])
    try:
        await scene.broker.start()
        await scene.send(20)
        connection = await amqp.Connection.open(scene.broker.port)
        link = Receiver(connection, QUEUE)
        await link.attached
        await complete_next(scene, link, 3)
        if library.name not in pathlib.Path(f"/proc/{scene.broker.process.pid}/maps").read_text():
            verdicts.skip("a read-only file system", "the broker is linked statically: nothing can be preloaded")
            return
        flag.touch()
        verdicts.say("a read-only file system refuses", *await refuses(scene))
        flag.unlink()
        verdicts.say("a file system that can be written again accepts, without a restart",
                     [] if await accepts_again(scene) else ["no message was accepted within 30 s"])
        await complete_next(scene, link, 3)
        verdicts.say("a receiver that stayed goes on", [])
        connection.close()
        scene.broker.kill()
        scene.ledger.crashed()
        await scene.broker.start()
        connection = await amqp.Connection.open(scene.broker.port)
        await load.look(connection, scene.ledger)
        connection.close()
        verdicts.say("nothing was lost on a read-only file system", scene.ledger.violations,
                     f"{len(scene.keys())} messages")
        await scene.broker.stop()
    except (Lost, Refused) as e:
        verdicts.say("a read-only file system", [f"{type(e).__name__} {e}\n{scene.broker.log_tail()}"])
    finally:
        scene.broker.kill()
