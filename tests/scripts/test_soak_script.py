"""scripts/soak takes totals over, and runs the simulator only when there is one."""

import argparse
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
            with contextlib.redirect_stdout(io.StringIO()):
                total, _ = script.follow("x", ["bash", "-c", body], 1)
            self.assertEqual(str(total), expected, body)

    def test_a_simulator_that_is_not_there_is_skipped_and_one_that_fails_fails(self):
        for makefile, expected in [("test:\n\ttrue\n", "0 passed, 0 failed, 1 skipped"),
                                   ("sim:\n\t@test -n '$(RUNS)' -a -z '$(SEED)' && echo 1 passed, 0 failed, 0 skipped\n",
                                    "1 passed, 0 failed, 0 skipped"),
                                   ("sim:\n\t@false\n", "0 passed, 1 failed, 0 skipped")]:
            (self.home / "Makefile").write_text(makefile)
            self.assertEqual(self.quietly(script.sim, None), expected, makefile)

    def interop(self, first, alone, race=False):
        """Of a runner whose whole run prints `first`, and that of one scenario `alone`."""
        runner = self.home / "tests/interop/run"
        runner.parent.mkdir(parents=True)
        logs = self.home / "build/interop/logs"
        report = f"mkdir -p {logs}; echo 'WARNING: ThreadSanitizer: data race' > {logs}/broker-main.log" if race else ":"
        runner.write_text(f"#!/bin/bash\n{report}\n[[ $* == *--only* ]] && {{ printf '{alone}'; exit; }}\nprintf '{first}'\n")
        runner.chmod(0o755)
        self.addCleanup(setattr, script.stages, "build", script.stages.build)
        script.stages.build = lambda *_: True
        return self.quietly(script.interop, argparse.Namespace(scenario=""))

    def test_what_failed_is_tried_once_more_alone(self):
        self.assertEqual(self.interop("FAIL js queue/x: late\\n1 passed, 1 failed, 0 skipped\\n",
                                      "1 passed, 0 failed, 0 skipped\\n"), "2 passed, 0 failed, 0 skipped")

    def test_what_fails_twice_has_failed(self):
        self.assertEqual(self.interop("FAIL js queue/x: wrong\\n1 passed, 1 failed, 0 skipped\\n",
                                      "0 passed, 1 failed, 0 skipped\\n"), "1 passed, 1 failed, 0 skipped")

    def test_a_race_is_a_failure_although_every_client_is_content(self):
        self.assertEqual(self.interop("2 passed, 0 failed, 0 skipped\\n", "", race=True), "2 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
