"""scripts/test counts right: pretended test programs and fuzzers end in every way a real one can."""

import contextlib
import importlib.machinery
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/test"
LOADER = importlib.machinery.SourceFileLoader("omnibus_test_script", str(SCRIPT))
SPEC = importlib.util.spec_from_loader(LOADER.name, LOADER)
script = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(script)

PASSED = '<testcase name="A" classname="S" status="run" result="completed"/>'
FAILED = '<testcase name="B" classname="S" status="run" result="completed"><failure message="m">it broke</failure></testcase>'
SKIPPED = '<testcase name="C" classname="S" status="run" result="skipped"><skipped message="f:1&#x0A;no such clock"/></testcase>'
DISABLED = '<testcase name="DISABLED_D" classname="S" status="notrun" result="suppressed"/>'


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        for name in ("ROOT", "BUILD"):
            before = getattr(script, name)
            setattr(script, name, self.home)
            self.addCleanup(setattr, script, name, before)

    def program(self, body):
        file = self.home / "program"
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)
        return str(file)

    def gtest(self, *cases, then="exit 0"):
        report = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
        body = f"""for a in "$@"; do case $a in --gtest_output=xml:*) echo '{report}' > "${{a#--gtest_output=xml:}}";; esac; done"""
        tally, lines = script.run_gtest("dev", "x_test", self.program(f"{body}\n{then}"), [])
        return str(tally), "\n".join(lines)

    def test_cases_are_counted_by_the_report(self):
        tally, lines = self.gtest(PASSED, PASSED, FAILED, SKIPPED, DISABLED, then="exit 1")
        self.assertEqual(tally, "2 passed, 1 failed, 2 skipped")
        self.assertIn("FAIL x_test: S.B\n  | it broke", lines)
        self.assertIn("skipped: x_test: S.C: no such clock", lines)
        self.assertIn("skipped: x_test: S.DISABLED_D: disabled in the source", lines)

    def test_the_names_of_what_passed_are_left_as_the_source_has_them(self):
        with_parameters = '<testcase name="E/{}" classname="All/S" status="run" result="completed">{}</testcase>'
        self.gtest(PASSED, FAILED, SKIPPED, DISABLED, with_parameters.format(0, ""), with_parameters.format(1, ""),
                   with_parameters.replace("E/", "F/").format(0, ""),
                   with_parameters.replace("E/", "F/").format(1, '<failure message="m">no</failure>'),
                   '<testcase name="G" classname="S/0" status="run" result="completed"/>', then="exit 1")
        left = self.home / "dev/test-logs/x_test.passed"
        self.assertEqual(left.read_text().split("\n"), ["PASS S.A", "PASS S.E", "PASS S.G", ""])
        script.run_gtest("dev", "x_test", self.program("exit 1"), [])
        self.assertFalse(left.exists(), "of a run that left no report")

    def test_a_leak_found_at_the_end_is_a_failure(self):
        tally, lines = self.gtest(PASSED, then="echo LeakSanitizer; exit 23")
        self.assertEqual(tally, "1 passed, 1 failed, 0 skipped")
        self.assertIn("| LeakSanitizer", lines)

    def test_a_program_without_tests_is_a_failure(self):
        self.assertEqual(self.gtest()[0], "0 passed, 1 failed, 0 skipped")

    def test_a_crash_is_a_failure_that_names_the_case(self):
        program = self.program('echo "[ RUN      ] Queue.LosesItsHead"; kill -SEGV $$')
        tally, lines = script.run_gtest("dev", "x_test", program, [])
        self.assertEqual(str(tally), "0 passed, 1 failed, 0 skipped")
        self.assertIn("in Queue.LosesItsHead", lines[0])

    def test_a_report_of_an_earlier_run_does_not_count(self):
        self.gtest(PASSED)
        tally, _ = script.run_gtest("dev", "x_test", self.program("exit 1"), [])
        self.assertEqual(str(tally), "0 passed, 1 failed, 0 skipped")

    def test_a_program_that_does_not_exist_is_a_failure(self):
        tally, _ = script.run_gtest("dev", "x_test", str(self.home / "nothing"), [])
        self.assertEqual(tally.failed, 1)

    def test_a_fuzzer_passes_only_when_it_ran_inputs(self):
        for body, passes in [
            ('echo "stat::number_of_executed_units: 120"', True),
            ('echo "stat::number_of_executed_units: 0"', False),
            ("exit 0", False),
            ('echo "stat::number_of_executed_units: 120"; exit 77', False),
        ]:
            tally, _ = script.run_fuzzer("x_fuzz", self.program(body))
            self.assertEqual((tally.passed, tally.failed), (int(passes), int(not passes)), body)

    def test_what_a_fuzzer_found_is_not_hidden_by_its_progress(self):
        body = 'echo "check failed: x"; for i in $(seq 200); do echo "#$i REDUCE cov: 3"; done; exit 77'
        _, lines = script.run_fuzzer("x_fuzz", self.program(body))
        self.assertIn("  | check failed: x", lines)

    def test_two_processes_have_to_agree_about_every_seed(self):
        (self.home / "release").mkdir()
        results = script.RESULTS
        script.RESULTS = self.home / "results"
        self.addCleanup(setattr, script, "RESULTS", results)
        many = "".join(f"hash {seed} {seed:016x}\\n" for seed in range(1, script.SIM_RUNS_COMPARED + 1))
        if script.addresses_are_steady():
            self.skipTest("there is nothing to compare here")
        for body, expected, told in [
            (f"printf '{many}'", (1, 0), "the same run"),
            (f"printf '{many[:-7]}%05d\\n' $(( $$ % 100000 ))", (0, 1), "another run"),
            (f"printf '{many}' | head -n 3", (0, 1), "3 and 3 of"),
        ]:
            Path(self.program(body)).rename(self.home / "release/omnibus_sim")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                tally = script.same_in_another_process()
            self.assertEqual((tally.passed, tally.failed), expected, body[:60])
            self.assertIn(told, said.getvalue())

    def test_the_total_of_another_script_is_taken_over(self):
        for output, code, expected in [
            ("x\n3 passed, 0 failed, 2 skipped\n", 0, "3 passed, 0 failed, 2 skipped"),
            ("1 passed, 0 failed, 0 skipped\n2 passed, 1 failed, 0 skipped", 1, "2 passed, 1 failed, 0 skipped"),
            ("3 passed, 0 failed, 0 skipped", 9, "3 passed, 1 failed, 0 skipped"),
            ("all is well", 0, "0 passed, 1 failed, 0 skipped"),
        ]:
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(str(script.count_from(output, code, "interop")), expected)


if __name__ == "__main__":
    unittest.main()
