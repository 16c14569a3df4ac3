#!/usr/bin/env python3
"""Compares what the rooms say about themselves with what their files do.

    check.py [--root DIR] [--map build/dev/room_map.txt]

Each rule is one test. A broken rule names every place as file:line. The last line is
"N passed, N failed, N skipped"; the exit code is 1 when a rule is broken. Needs no build: without
--map the arrows are read from the CMakeLists.txt of the rooms.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

LINES_MAX = 800
LINES_SOFT = 600

# Rooms that do IO may see Boost; the machines in between stay free of it. JSON is plain data, and so are
# containers, which every room may use.
BOOST_CONTAINERS = re.compile(r"boost/(container|unordered)/")
BOOST_ROOMS = {"net", "node", "admin", "client", "cli", "rest"}
BOOST_JSON_ROOMS = {"auth", "admin", "node", "sim"}

# State belongs to one core there, crossing cores is a message: a mutex would mean that broke.
MUTEX_FREE_ROOMS = {"amqp", "broker", "journal", "rules", "store"}

CODE = {".hpp", ".cpp", ".h", ".cc", ".ipp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
MUTEX = re.compile(
    r"\bstd::\w*mutex\b|\bpthread_mutex|\bpthread_rwlock|\bstd::(lock_guard|unique_lock|scoped_lock|shared_lock)\b"
    r"|\bstd::condition_variable|#\s*include\s*<(mutex|shared_mutex|condition_variable)>"
)
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)


@dataclass(frozen=True)
class Include:
    file: Path
    line: int
    path: str
    quoted: bool


class Tree:
    """The rooms under root/src, their files and their arrows."""

    def __init__(self, root: Path, room_map: str):
        self.root = root
        self.src = root / "src"
        self.may_use = parse_map(room_map)
        self.rooms = sorted(p.name for p in self.src.iterdir() if p.is_dir())
        self.files = {room: sorted(p for p in (self.src / room).rglob("*") if p.is_file()) for room in self.rooms}

    def code(self, room):
        return [f for f in self.files[room] if f.suffix in CODE]

    def includes(self, file):
        found = []
        for number, line in enumerate(without_block_comments(read(file)).split("\n"), 1):
            match = INCLUDE.match(line)
            if match:
                found.append(Include(file, number, match[2], match[1] == '"'))
        return found

    def at(self, file, line=1):
        return f"{file.relative_to(self.root)}:{line}"


def read(file):
    return file.read_text(encoding="utf-8", errors="replace")


def blank(text):
    """Spaces instead of the text, with its line ends, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", text)


def without_block_comments(text):
    def keep(match):
        return blank(match[0]) if match[0].startswith("/*") else match[0]

    return COMMENT_OR_TEXT.sub(keep, text)


def without_comments_and_texts(text):
    return COMMENT_OR_TEXT.sub(lambda match: blank(match[0]), text)


def parse_map(text):
    """Lines "room:use,use"."""
    arrows = {}
    for line in text.splitlines():
        if line.strip():
            room, _, uses = line.strip().partition(":")
            arrows[room] = [use for use in uses.split(",") if use]
    return arrows


def map_from_cmake(root: Path):
    """The same lines, read from the add_room() calls, for a tree that is not configured."""
    keyword = {"SOURCES", "MAY_USE", "LIBRARIES", "TESTS", "TEST_LIBRARIES", "FUZZ", "BENCH", "PCH"}
    lines = []
    for file in sorted((root / "src").glob("*/CMakeLists.txt")):
        text = re.sub(r"#[^\n]*", "", read(file))
        for call in re.finditer(r"\badd_room\s*\(([^)]*)\)", text):
            words = call[1].split()
            uses, section = [], None
            for word in words[1:]:
                if word in keyword:
                    section = word
                elif section == "MAY_USE":
                    uses.append(word)
            lines.append(f"{words[0]}:{','.join(uses)}")
    return "\n".join(lines)


def allowed(path, room, uses):
    """May `room` include `path`? An arrow `amqp` opens the room, `amqp/codec` only that part."""
    return any(path.startswith(use + "/") for use in [room, "base", *uses])


def arrows_match_includes(tree):
    broken = []
    for room in tree.rooms:
        if room not in tree.may_use:
            broken.append(f"src/{room}/CMakeLists.txt:1: room '{room}' has no add_room(), so nobody knows its arrows")
            continue
        uses = tree.may_use[room]
        for file in tree.code(room):
            for inc in tree.includes(file):
                first = inc.path.split("/")[0]
                if first in tree.rooms and "/" in inc.path:
                    if not allowed(inc.path, room, uses):
                        broken.append(
                            f'{tree.at(file, inc.line)}: "{inc.path}" is not among the arrows of '
                            f"'{room}' (MAY_USE {' '.join(uses) or 'nothing'})"
                        )
                elif inc.quoted:
                    broken.append(
                        f'{tree.at(file, inc.line)}: "{inc.path}" does not start with a room; ours are written '
                        f'"{room}/name.hpp", outside headers <so>'
                    )
    return broken


def arrows_have_no_circle(tree):
    broken, done = [], set()

    def visit(room, path):
        if room in path:
            broken.append("arrows go in a circle: " + " -> ".join([*path[path.index(room) :], room]))
            return
        if room in done:
            return
        for use in tree.may_use.get(room, []):
            visit(use.split("/")[0], [*path, room])
        done.add(room)

    for room in tree.may_use:
        visit(room, [])
    return broken


def arrows_lead_somewhere(tree):
    """An arrow at a room or part that does not exist is a typing error."""
    broken = []
    for room, uses in tree.may_use.items():
        for use in uses:
            if not (tree.src / use).exists():
                broken.append(f"src/{room}/CMakeLists.txt:1: MAY_USE {use}: there is no src/{use}")
    return broken


def rooms_have_a_readme(tree):
    return [f"src/{room}/README.md:1: missing" for room in tree.rooms if not (tree.src / room / "README.md").is_file()]


def own_header_comes_first(tree):
    """The source that includes its own header first proves that the header compiles alone."""
    broken = []
    for room in tree.rooms:
        for file in tree.code(room):
            header = file.with_suffix(".hpp")
            if file.suffix != ".cpp" or not header.is_file():
                continue
            expected = header.relative_to(tree.src).as_posix()
            includes = tree.includes(file)
            if not includes or includes[0].path != expected:
                line = includes[0].line if includes else 1
                broken.append(f'{tree.at(file, line)}: the first include is not its own "{expected}"')
    return broken


def boost_stays_at_the_edges(tree):
    broken = []
    for room in tree.rooms:
        for file in tree.code(room):
            for inc in tree.includes(file):
                if not re.match(r"(boost|asio)(/|\.hpp$)", inc.path) or room in BOOST_ROOMS:
                    continue
                if re.match(r"boost/json(/|\.hpp$)", inc.path) and room in BOOST_JSON_ROOMS:
                    continue
                if BOOST_CONTAINERS.match(inc.path):
                    continue
                broken.append(f"{tree.at(file, inc.line)}: <{inc.path}> in '{room}'")
    return broken


def machines_hold_no_mutex(tree):
    broken = []
    for room in sorted(MUTEX_FREE_ROOMS & set(tree.rooms)):
        for file in tree.code(room):
            for number, line in enumerate(without_comments_and_texts(read(file)).split("\n"), 1):
                match = MUTEX.search(line)
                if match:
                    broken.append(f"{tree.at(file, number)}: '{match[0]}' in '{room}'")
    return broken


def files_stay_short(tree):
    broken = []
    for room in tree.rooms:
        for file in tree.files[room]:
            lines = read(file).count("\n")
            if lines > LINES_MAX:
                broken.append(f"{tree.at(file, LINES_MAX)}: {lines} lines, at most {LINES_MAX}")
            elif lines > LINES_SOFT:
                print(f"  warning: {tree.at(file, LINES_SOFT)}: {lines} lines, think about a split from {LINES_SOFT}")
    return broken


def fuzzers_have_a_corpus(tree):
    broken = []
    for room in tree.rooms:
        for file in tree.files[room]:
            corpus = tree.root / "tests" / "corpus" / file.stem
            if file.name.endswith("_fuzz.cpp") and not (corpus.is_dir() and any(corpus.iterdir())):
                broken.append(f"{tree.at(file)}: no seeds in tests/corpus/{file.stem}")
    return broken


RULES = [
    arrows_match_includes,
    arrows_have_no_circle,
    arrows_lead_somewhere,
    rooms_have_a_readme,
    own_header_comes_first,
    boost_stays_at_the_edges,
    machines_hold_no_mutex,
    files_stay_short,
    fuzzers_have_a_corpus,
]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--map", type=Path)
    options = parser.parse_args(arguments)
    room_map = options.map.read_text() if options.map else map_from_cmake(options.root)
    tree = Tree(options.root, room_map)
    if not tree.rooms:
        print(f"rooms: no room under {tree.src}", file=sys.stderr)
        return 1
    failed = 0
    for rule in RULES:
        broken = rule(tree)
        name = rule.__name__.replace("_", " ")
        print(f"{'FAIL' if broken else 'ok  '} {name}")
        for place in broken:
            print(f"  {place}")
        failed += bool(broken)
    print(f"{len(RULES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
