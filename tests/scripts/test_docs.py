"""Every relative link in the documents leads to a file, and an anchor to a heading."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def documents():
    """Those under our own folders; build/ and installed packages hold documents of others."""
    skipped = {"build", "node_modules", ".venv", "target"}
    return [file for file in sorted(ROOT.rglob("*.md")) if not skipped & set(file.relative_to(ROOT).parts)]


def anchors(file):
    found = re.findall(r"^#+ +(.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


def dead_links(file):
    dead = []
    for number, line in enumerate(file.read_text().split("\n"), 1):
        for path, anchor in LINK.findall(line):
            if re.match(r"[a-z]+:", path):
                continue
            target = file.parent / path if path else file
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                dead.append(f"{file}:{number}: {path}{'#' + anchor if anchor else ''}")
    return dead


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        self.assertTrue(documents())
        self.assertEqual([link for file in documents() for link in dead_links(file)], [])

    def test_a_dead_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.md"
            file.write_text("# One two\n[ok](#one-two) [ok](a.md) [ok](https://example.org/x)\n[no](b.md) [no](#three)\n")
            self.assertEqual([link.split(": ")[1] for link in dead_links(file)], ["b.md", "#three"])

    def test_every_word_of_the_makefile_is_helped_with(self):
        words = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
        text = subprocess.run(["make", "-s", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(sorted(re.findall(r"^  make ([\w-]+)", text, re.MULTILINE)), sorted(words))


if __name__ == "__main__":
    unittest.main()
