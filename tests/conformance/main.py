"""Holds the table against the tests there are, and writes the page from it.

    tests/conformance/run                      every proof is a test that exists, and docs/conformance.md is up to date
    tests/conformance/run --write              writes docs/conformance.md
    tests/conformance/run --results FOLDER     every proof has passed in the runs whose output is in the folder, and every
                                               client has run as many scenarios as the page says

The last line is `N passed, N failed, N skipped`: one for each statement, and one for the page.
"""

import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
sys.path.insert(0, str(ROOT / "tests" / "interop"))

from runner import scenarios  # noqa: E402

from . import clients, guide, subscription, table  # noqa: E402,F401  pylint: disable=unused-import

DOCUMENTS = {"G": "The AMQP protocol guide", "P": "Partitioned queues and topics", "S": "Subscription"}
COUNTS = {"G": 106, "P": 56, "S": 37}
ALSO = {  # what the row in tests/statements does not reach
    "P48": ["unit ServerAdmin.NothingChangesWhileAPartitionIsDown"],
    "P56": ["unit ServerAdmin.QuotasHold"],
}
DIFFERENT = {  # the page of the contract that says why is told there
    "P6": "partitioning is there in every profile",
    "P51": "a receive finds any message that is available, whichever connection asks",
}


def partition_rows():
    """The rows of tests/statements prove themselves."""
    for file in sorted((ROOT / "tests" / "statements").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "statement":
                identity, text = (ast.literal_eval(argument) for argument in node.args)
                note = table.differs(DIFFERENT[identity]) if identity in DIFFERENT else (table.KEPT, "")
                table.row(identity, text, f"statement {identity}", *ALSO.get(identity, ()), note=note)


def unit_tests():
    """Suite.Name of every test in the sources."""
    found = set()
    for file in (ROOT / "src").rglob("*_test.cpp"):
        for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(), re.MULTILINE):
            found.add(f"{suite}.{name}")
    return found


class Proofs:
    """Which there are, and which have passed."""

    def __init__(self, results):
        self.units = unit_tests()
        self.passed = self._read(results) if results else None
        self.skipped = self._skipped(results) if results else set()

    def untold(self):
        """What nobody has told us, in words."""
        if self.passed is None:
            yield "whether the tests have passed: this run has no --results"
        elif "unit" in self.skipped:
            yield "whether unit tests have passed: there is no unit.txt among the results"

    @staticmethod
    def _read(folder):
        passed = set()
        for name, kind, pattern in (("interop", "", r"^PASS (\S+ \S+)"), ("statements", "statement ", r"^ok\s+([GPS]\d+) "),
                                    ("unit", "unit ", r"^PASS (\S+)$")):
            file = folder / f"{name}.txt"
            lines = file.read_text(errors="replace") if file.exists() else ""
            passed |= {kind + one.rstrip(":") for one in re.findall(pattern, lines, re.MULTILINE)}
        crash = folder / "crash.txt"
        if crash.exists() and re.search(r"^\d+ passed, 0 failed", crash.read_text(errors="replace"), re.MULTILINE):
            passed.add("crash kills")
        return passed

    @staticmethod
    def _skipped(folder):
        """Clients and scenarios that could not run here, which the run has said; and the unit tests, when they did not run."""
        file = folder / "interop.txt"
        lines = file.read_text(errors="replace") if file.exists() else ""
        skipped = set(re.findall(r"^SKIP ([^\s:]+(?: [^\s:]+)?):", lines, re.MULTILINE))
        return skipped if (folder / "unit.txt").exists() else skipped | {"unit"}

    def is_skipped(self, proof):
        return proof in self.skipped or proof.partition(" ")[0] in self.skipped

    def trouble(self, proof):
        kind, _, name = proof.partition(" ")
        if kind == "unit":
            known = name in self.units
        elif kind == "statement":
            known = name in table.ROWS
        elif kind == "crash":
            known = name == "kills"
        else:
            known = name in scenarios.CLIENTS.get(kind, ())
        if not known:
            return f"there is no test '{proof}'"
        if self.passed is not None and proof not in self.passed and not self.is_skipped(proof):
            return f"'{proof}' has not passed"
        return None

    def unrun(self):
        """(client, scenarios that the page counts and the run did not see pass), of each client that ran."""
        for client, wanted in scenarios.CLIENTS.items() if self.passed is not None else ():
            missing = sorted(one for one in wanted
                             if f"{client} {one}" not in self.passed and not self.is_skipped(f"{client} {one}"))
            if missing:
                yield client, missing


def ordered(letter):
    return sorted((one for one in table.ROWS if one[0] == letter), key=lambda one: int(one[1:]))


def page():
    states = {letter: [table.ROWS[one][2] for one in ordered(letter)] for letter in DOCUMENTS}
    lines = [
        "# Conformance", "",
        "What the product was asked for, statement by statement, and the test that fails when a statement does not hold. This page",
        "is written by `tests/conformance/run --write` and checked by `make test`, which also sees that every test named here has",
        "passed. `unit` is a unit test, `statement` a row of `tests/statements`, `crash` the load of `tests/crash`; everything else is a",
        "client of `tests/interop` and a scenario that it runs.", "",
        "| document | statements | " + " | ".join((table.KEPT, table.DIFFERS, table.PART, table.MISSING)) + " |",
        "|---|---|---|---|---|---|",
    ]
    for letter, name in DOCUMENTS.items():
        counts = [str(states[letter].count(state)) for state in (table.KEPT, table.DIFFERS, table.PART, table.MISSING)]
        lines.append(f"| {name} | {len(states[letter])} | " + " | ".join(counts) + " |")
    lines += ["", "## Clients", "", "| client | version | scenarios |", "|---|---|---|"]
    lines += [f"| {name} | {version} | {count} |" for name, version, count in clients.all_clients()]
    for letter, name in DOCUMENTS.items():
        lines += ["", f"## {name}", "", "| | statement | state | proof |", "|---|---|---|---|"]
        for identity in ordered(letter):
            text, proofs, state, why = table.ROWS[identity]
            told = f"{state}: {why}" if why else state
            cells = (identity, text, told, ", ".join(f"`{one}`" for one in proofs))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="run", description="The statements and their proofs.")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--results", type=pathlib.Path, help="the output of the runs: unit.txt, interop.txt, statements.txt, crash.txt")
    options = parser.parse_args()
    partition_rows()
    if options.write:
        PAGE.write_text(page())
    proofs, passed, failed, skipped = Proofs(options.results), 0, 0, 0
    for untold in proofs.untold():
        print(f"not looked at: {untold}")
    for client, missing in proofs.unrun():
        failed += 1
        print(f"FAIL {client}: {len(missing)} of its scenarios on the page have not passed: {', '.join(missing[:5])}")
    for letter, count in COUNTS.items():
        for identity in (f"{letter}{number}" for number in range(1, count + 1)):
            troubles = ["nothing is said about it"]
            if identity in table.ROWS:
                troubles = [trouble for trouble in map(proofs.trouble, table.ROWS[identity][1]) if trouble]
            for trouble in troubles:
                print(f"FAIL {identity}: {trouble}")
            unproved = [] if troubles else [one for one in table.ROWS[identity][1] if proofs.is_skipped(one)]
            for proof in unproved:
                print(f"skipped: {identity}: '{proof}' could not run here")
            failed += bool(troubles)
            skipped += bool(unproved)
            passed += not troubles and not unproved
    if PAGE.exists() and PAGE.read_text() == page():
        passed += 1
    else:
        failed += 1
        print("FAIL docs/conformance.md is not what the table says: tests/conformance/run --write")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
