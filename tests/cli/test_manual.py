"""The manual page and the completions know every word that the program has."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_serve import BINARY, PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/man/omnibus.1").read_text()


def said(*arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


class Manual(unittest.TestCase):
    def test_its_commands_are_those_of_the_program(self):
        written = PAGE.split('.\\" commands begin\n')[1].split('.\\" commands end\n')[0]
        self.assertEqual(written, said("manual"), "scripts/manual brings the page up to date")

    # By another way than the one that makes the page.
    def test_every_verb_is_there(self):
        paths = re.findall(r"'([^']+)'", re.search(r"^set -g __omnibus_paths(.*)$", said("completion", "fish"), re.MULTILINE)[1])
        self.assertGreater(len(paths), 40)
        for path in paths:
            if not any(other.startswith(path + " ") for other in paths):
                self.assertRegex(PAGE, rf"(?m)^\.It Cm {path}( |$)")
        for verb in re.findall(r"(?m)^  ([a-z][a-z-]*)", said("--help").split("Subcommands:")[1]):
            self.assertIn(verb, {path.split()[0] for path in paths})
        self.assertNotIn("manual", paths)

    def test_exit_codes_and_environment_are_there(self):
        codes = re.findall(r"int exit_\w+ = (\d+);", (ROOT / "src/cli/exit_codes.hpp").read_text())
        self.assertEqual(len(codes), 5)
        for code in [*codes, "143"]:
            self.assertIn(f"\n.It {code}\n", PAGE)
        sources = "".join(path.read_text() for path in (ROOT / "src/cli").glob("*.cpp"))
        for name in {*re.findall(r'getenv\("(\w+)"\)', sources), "OMNIBUS_CONNECTION", "SERVICEBUS_CONNECTION_STRING"}:
            self.assertIn(f"\n.It Ev {name}\n", PAGE)

    @unittest.skipUnless(shutil.which("man"), "there is no man here")
    def test_man_has_nothing_to_say_against_it(self):
        shown = subprocess.run(["man", "--warnings", "-l", str(ROOT / "docs/man/omnibus.1")], capture_output=True, text=True,
                               env={**os.environ, "LC_ALL": "C", "PAGER": "cat", "MANWIDTH": "100"}, timeout=PATIENCE, check=True)
        self.assertEqual(shown.stderr, "")
        text = re.sub(r".\x08", "", shown.stdout)
        self.assertRegex(text, r"(?m)^ +queue create NAME$")
        self.assertRegex(text, r"(?m)^ +--lock-duration ")


class Scripts(unittest.TestCase):
    def test_bash_takes_its_script(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
            file.write(said("completion", "bash"))
            file.flush()
            subprocess.run(["bash", "-n", file.name], check=True)


if __name__ == "__main__":
    unittest.main()
