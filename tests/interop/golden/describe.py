#!/usr/bin/env python3
"""Gives golden lines their meaning, or checks it, with the independent decoder in ../wire.

  describe.py fill  KIND < lines   adds the meaning to lines `name hex` that have none
  describe.py check FILE...        fails if a file's bytes do not mean what the file says

KIND (in a file's name the part after the underscore) is values, messages, frames or captured.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from wire import frames, values  # noqa: E402


def meaning(kind, data):
    if kind == "values":
        return values.text(values.decode(data))
    if kind == "messages":
        return frames.message_text(data)
    items, rest = frames.split(data)
    if len(items) != 1 or rest:
        raise values.WireError(f"{len(items)} frames and {len(rest)} bytes")
    return frames.frame_text(items[0])


def fill(kind, lines):
    for line in lines:
        words = line.rstrip("\n").split(" ", 2)
        if len(words) == 2:
            words.append(meaning(kind, bytes.fromhex(words[1])))
        print(" ".join(words))


def check(path):
    kind = path.stem.split("_", 1)[1]
    names, wrong = set(), 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        name, data, expected = line.split(" ", 2)
        actual = meaning(kind, bytes.fromhex(data))
        if name in names or actual != expected:
            wrong += 1
            print(f"{path.name}:{number} {name}\n  says    {expected}\n  decodes {actual}")
        names.add(name)
    print(f"{path.name}: {len(names)} lines, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], sys.stdin)
    else:
        sys.exit(1 if sum(check(pathlib.Path(p)) for p in sys.argv[2:]) else 0)
