"""The broker of the profile "counts": one queue that holds a number of messages of each kind, no two alike.

Messages that wait to be transferred need a destination that is full, which is a gigabyte: it is filled once, by the
broker's own command line, before the first client that wants to see the counts.
"""

import subprocess

from . import context, process
from .broker import BrokerError
from .scenarios import COUNTED_FULL

# Ever smaller ones into what is left; the transfers are larger than the last.
FILLING = [(102399 * 1024, 12), (1024 * 1024, 30), (8 * 1024, 140)]
FILLING_SECONDS_MAX = 240


def prepare(broker, command, folder, material, logs):
    """`command` starts the raw client, which leaves the messages there."""
    for size, count in FILLING:
        body = folder / "filling"
        body.write_bytes(bytes(size))
        try:
            done = subprocess.run(
                [broker.binary, "send", COUNTED_FULL, "--connection", context.emulator_string(broker), "--file", str(body),
                 "--count", str(count), "--batch", "1"], capture_output=True, timeout=FILLING_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired:
            raise BrokerError(f"'{COUNTED_FULL}' was not filled within {FILLING_SECONDS_MAX} s") from None
        finally:
            body.unlink()
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode == 0 or "is full" not in said:
            raise BrokerError(f"'{COUNTED_FULL}' was not filled: code {done.returncode}, {said.strip()[-300:]}")
    path = folder / "context-counted.json"
    brokers = {broker.profile: broker}
    context.write(path, "raw", brokers, material, context.trust(folder, brokers), ["counts/prepared"])
    verdicts = []
    trouble = process.run(command, {}, path, logs / "counted.log", 60, lambda _: None, verdicts.append)
    if trouble or not verdicts or not verdicts[0]["ok"]:
        raise BrokerError(f"the messages were not left there: {trouble or verdicts}")
