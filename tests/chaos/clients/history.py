"""What a client saw, one JSON object per line: docs/formats/history.md."""

import json
import os
import time


def now():
    """Microseconds of the one clock that all files share, which is also that of `locked until`."""
    return time.time_ns() // 1000


class History:
    """Appends to a file that others may append to as well: a line is one write. Threads may share it."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, who, do, **fields):
        known = {name: value for name, value in fields.items() if value is not None}
        line = json.dumps({"t": now(), "who": who, "do": do, **known}, separators=(",", ":"))
        os.write(self.file, line.encode() + b"\n")
