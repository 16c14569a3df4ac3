"""A proof counts when it has passed in the run whose results are given, and not before."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from conformance import main  # noqa: E402

UNIT = "QueueLocks.LockEndsExactlyAtItsTime"


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def proofs(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.txt").write_text(text)
        return main.Proofs(self.folder)

    def test_a_unit_test_that_exists_is_no_proof_before_it_has_passed(self):
        self.assertIsNone(main.Proofs(None).trouble(f"unit {UNIT}"))
        self.assertIn("no test", main.Proofs(None).trouble("unit Queue.FliesToTheMoon"))
        proofs = self.proofs(unit=f"PASS {UNIT}\nPASS Queue.FliesToTheMoon\n")
        self.assertIsNone(proofs.trouble(f"unit {UNIT}"))
        self.assertIn("no test", proofs.trouble("unit Queue.FliesToTheMoon"))
        self.assertIn("has not passed", proofs.trouble("unit QueueLocks.ReleaseDoesNotCount"))

    def test_without_the_names_of_unit_tests_it_says_so(self):
        self.assertEqual(len(list(main.Proofs(None).untold())), 1)
        proofs = self.proofs(interop="")
        self.assertIn("unit.txt", " ".join(proofs.untold()))
        self.assertTrue(proofs.is_skipped(f"unit {UNIT}"))
        self.assertFalse(list(self.proofs(unit="").untold()))

    def test_scenarios_are_counted_by_what_ran(self):
        wanted = list(main.scenarios.CLIENTS["rhea"])
        lines = [f"PASS rhea {one}" for one in wanted[2:]] + [f"SKIP rhea {wanted[1]}: no clock", "SKIP go: no compiler"]
        missing = dict(self.proofs(unit="", interop="\n".join(lines)).unrun())
        self.assertEqual(missing["rhea"], wanted[:1])
        self.assertNotIn("go", missing)
        self.assertIn("js", missing)


if __name__ == "__main__":
    unittest.main()
