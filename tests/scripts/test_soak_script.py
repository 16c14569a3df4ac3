"""scripts/soak takes totals over, and runs the simulator only when there is one."""

import contextlib
import importlib.machinery
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/soak"
LOADER = importlib.machinery.SourceFileLoader("omnibus_soak_script", str(SCRIPT))
script = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(script)


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.addCleanup(setattr, script, "ROOT", script.ROOT)
        script.ROOT = self.home

    def quietly(self, action, *arguments):
        with contextlib.redirect_stdout(io.StringIO()):
            return str(action(*arguments))

    def test_the_total_of_a_part_is_taken_over(self):
        for body, expected in [("echo '2 passed, 0 failed, 1 skipped'", "2 passed, 0 failed, 1 skipped"),
                               ("echo '2 passed, 1 failed, 0 skipped'; exit 1", "2 passed, 1 failed, 0 skipped"),
                               ("exit 0", "0 passed, 1 failed, 0 skipped"),
                               ("sleep 60", "0 passed, 1 failed, 0 skipped")]:
            self.assertEqual(self.quietly(script.follow, "x", ["bash", "-c", body], 1), expected, body)

    def test_a_simulator_that_is_not_there_is_skipped_and_one_that_fails_fails(self):
        for makefile, expected in [("test:\n\ttrue\n", "0 passed, 0 failed, 1 skipped"),
                                   ("sim:\n\t@test -n '$(RUNS)'\n", "1 passed, 0 failed, 0 skipped"),
                                   ("sim:\n\t@false\n", "0 passed, 1 failed, 0 skipped")]:
            (self.home / "Makefile").write_text(makefile)
            self.assertEqual(self.quietly(script.sim, None), expected, makefile)


if __name__ == "__main__":
    unittest.main()
