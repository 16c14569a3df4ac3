"""The logs of all clients and of the run itself as one history, with what only the run knows.

A client tells of a message when its library gives it out, and of a lost connection when its library says so, both
later than it happened. Where that matters, the history says what a client may count on:

- a lock says when it was taken, by when it ends; one that was taken before the broker was gone, or a store failed (its
  log says when), and is told after it, is not counted on;
- a session is lost the moment its connection is, and what its client tells of it afterwards is not counted on.
"""

import bisect
import contextlib
import datetime
import json
import re

from .scene import LOCK_SECONDS

LOCK = LOCK_SECONDS * 1_000_000
FAILED = re.compile(r"^(\S+) error store=(\d+) failed: (.*)", re.MULTILINE)
CLOSED = re.compile(r"^\S+ \S+ connection=.* closed condition=(\S+) .*", re.MULTILINE)
UNDOES = ("crash", "restart", "fail")


class Broken(Exception):
    """A log says something that no writer can have meant: nothing can be concluded from it."""


def read(folder, killed=()):
    """All lines in the order of time. Only who was killed, by name, may have left its last line without an end."""
    events = []
    for file in sorted(folder.glob("*.jsonl")):
        *lines, rest = file.read_bytes().split(b"\n")
        events += [event_of(line, f"{file.name}:{number}") for number, line in enumerate(lines, 1)]
        if not rest:
            continue
        if file.stem not in killed:
            raise Broken(f"{file.name}:{len(lines) + 1}: has no end, and its writer was not killed")
        with contextlib.suppress(Broken):
            events.append(event_of(rest, file.name))
    return sorted(events, key=lambda event: event["t"])


def event_of(line, where):
    try:
        event = json.loads(line)
    except ValueError as e:
        raise Broken(f"{where}: {e}") from e
    if not isinstance(event, dict) or not isinstance(event.get("t"), int) or not isinstance(event.get("do"), str):
        raise Broken(f"{where}: is no event")
    return event


def failures(log):
    """`fail` lines for stores that closed and opened again, by the broker's log."""
    for when, store, why in FAILED.findall(log):
        t = int(datetime.datetime.fromisoformat(when).timestamp() * 1_000_000)
        yield {"t": t, "who": "broker", "do": "fault", "what": "fail", "note": f"store {store}: {why}"}


def disputes(log):
    """Lines of connections that one side closed because of what the other said. `forced` is what faults lead to."""
    return [line[0] for line in CLOSED.finditer(log) if line[1] != "amqp:connection:forced"]


def merged(events, log=""):
    events = sorted([*events, *failures(log)], key=lambda event: event["t"])
    undone = [event["t"] for event in events if event["do"] == "fault" and event["what"] in UNDOES]
    closed, result, held = {}, [], set()

    def is_of_the_past(event):
        """Whether the broker forgot the lock between taking it and this line."""
        at = bisect.bisect_left(undone, event["until"] - LOCK)
        return at < len(undone) and undone[at] <= event["t"]

    for event in events:
        event = dict(event)
        do, key = event["do"], (event.get("who"), event.get("from"), event.get("session"))
        lane = event.get("who", "").rpartition("-")[0]
        if do == "locked":
            if is_of_the_past(event) or event["until"] - LOCK <= closed.get(lane, -1):
                continue
            held.add(key)
        elif do == "unlocked":
            held.discard(key)
        elif do == "fault" and event["what"] == "closed":
            # Named by the client whose connection it was; its roles are called after it.
            closed[event["lane"]] = event["t"]
            for who, place, session in [k for k in held if k[0].rpartition("-")[0] == event["lane"]]:
                held.discard((who, place, session))
                result.append({"t": event["t"], "who": who, "do": "unlocked", "from": place, "session": session})
        elif do in ("got", "renewed") and "until" in event:
            if key not in held if "session" in event else is_of_the_past(event):
                event["until"] = min(event["until"], event["t"])
        result.append(event)
    return result
