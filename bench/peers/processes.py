"""What a broker costs, seen from outside: /proc of its process and of all that descend from it."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


def stat_of(pid):
    """(parent, CPU seconds) of a process, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS


def tree_of(roots):
    """The processes and all their descendants, those that were adopted by init left out."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            seen = stat_of(int(entry))
            if seen:
                parents[int(entry)] = seen[0]
    tree = [pid for pid in roots if pid in parents]
    for pid in tree:
        tree += [child for child, parent in parents.items() if parent == pid and child not in tree]
    return tree


def written_bytes(pid):
    """What a process caused to be written to the disk, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def resident_bytes(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


class Sample:
    """The cost of a tree at one moment; `later - earlier` is what lies between."""

    def __init__(self, roots):
        tree = tree_of(roots)
        self.time = time.monotonic()
        self.cpu = sum(seen[1] for seen in map(stat_of, tree) if seen)
        self.written = sum(map(written_bytes, tree))
        self.rss = sum(map(resident_bytes, tree))


def disk_bytes(folder):
    """What the files of a folder take of the disk: blocks, so that reserved space counts as it does for df."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether something at this port of the machine speaks AMQP 1.0 with SASL."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(SASL_HEADER)
            link.settimeout(2)
            return link.recv(8) == SASL_HEADER
    except OSError:
        return False


def stop(process, at_most=30):
    """Ends a process of ours and waits; kills its whole session when it does not go."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(at_most)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
