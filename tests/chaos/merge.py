"""The logs of all clients and of the run itself as one history, with what only the run knows.

A client tells of a message when its library gives it out, and of a lost connection when its library says so, both later
than it happened. Where that matters, the history says what a client may count on:

- what is told while the broker is gone, and shortly after it is back, may have come from the life before: such a lock is
  not counted on, no more than one taken while a store fails (the broker says in its log that one did);
- a session is lost the moment its connection is, and what its client tells of it afterwards is not counted on.
"""

import datetime
import json
import re

# From the arrival of a message to the line about it, when the connection is gone or the machine is busy.
LATE = 1_500_000
FAILED = re.compile(r"^(\S+) error store=(\d+) failed: (.*)", re.MULTILINE)
GONE = ("crash", "restart")


def read(folder):
    """All lines in the order of time; of a line that was cut off with its writer nothing is read."""
    events = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
    return sorted(events, key=lambda event: event["t"])


def failures(log):
    """`fail` lines for stores that closed and opened again, by the broker's log."""
    for when, store, why in FAILED.findall(log):
        t = int(datetime.datetime.fromisoformat(when).timestamp() * 1_000_000)
        yield {"t": t, "who": "broker", "do": "fault", "what": "fail", "note": f"store {store}: {why}"}


def periods(events):
    """(begin, end) of the times in which a lock that is told may be of the past; they may overlap."""
    gone, found = None, []
    for event in events:
        what = event.get("what") if event["do"] == "fault" else None
        if what in GONE:
            gone = gone or event["t"]
        elif what == "started" and gone:
            found.append((gone, event["t"] + LATE))
            gone = None
        elif what == "fail":
            found.append((event["t"] - LATE, event["t"] + LATE))
    if gone:
        found.append((gone, events[-1]["t"]))
    return found


def merged(events, log=""):
    events = sorted([*events, *failures(log)], key=lambda event: event["t"])
    doubtful, result, held = periods(events), [], {}
    for event in events:
        event = dict(event)
        do, key = event["do"], (event.get("who"), event.get("from"), event.get("session"))
        if do == "locked":
            held[key] = True
        elif do == "unlocked":
            held.pop(key, None)
        elif do == "fault" and event["what"] == "closed":
            # Named by the client whose connection it was; its roles are called after it.
            for who, place, session in [k for k in held if k[0].rpartition("-")[0] == event["lane"]]:
                del held[who, place, session]
                result.append({"t": event["t"], "who": who, "do": "unlocked", "from": place, "session": session})
        elif do in ("got", "renewed") and "until" in event:
            if any(begin <= event["t"] <= end for begin, end in doubtful) or ("session" in event and key not in held):
                event["until"] = min(event["until"], event["t"])
        result.append(event)
    return result
