"""What the broker uses, looked at from outside: memory, files, threads, disk, and what its metrics say is waiting."""

import os
import re
import urllib.request

DEPTH = re.compile(r"^omnibus_messages_(?:active|dead_letter|scheduled|transfer_dead_letter)\{[^}]*\} (\S+)$",
                   re.MULTILINE)
TAKEN = re.compile(r"^omnibus_messages_received_total\{[^}]*\} (\S+)$", re.MULTILINE)
# What is told of each: name, unit, and how to show a value.
SERIES = {
    "rss": ("resident memory", "MB", 1e6),
    "files": ("open files", "", 1),
    "threads": ("threads", "", 1),
    "disk": ("disk", "MB", 1e6),
    "segments": ("journal segments", "", 1),
    "depth": ("messages waiting", "", 1),
    "rate": ("messages taken in a second", "", 1),
}


def of_process(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        status = dict(line.split(":", 1) for line in file if ":" in line)
    return {"rss": int(status["VmRSS"].split()[0]) * 1024, "threads": int(status["Threads"]),
            "files": len(os.listdir(f"/proc/{pid}/fd"))}


def of_folder(folder):
    """Allocated bytes, and how many segments. What goes away meanwhile is not counted."""
    total = segments = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                continue
            segments += name.endswith(".segment")
    return {"disk": total, "segments": segments}


def of_metrics(port):
    """(messages there, messages taken since the start)"""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return sum(float(value) for value in DEPTH.findall(text)), sum(float(value) for value in TAKEN.findall(text))
