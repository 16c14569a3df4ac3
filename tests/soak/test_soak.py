"""What is flat and what grows, and how it is drawn."""

import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "interop")]
from soak import checked, report, samples, trend  # noqa: E402


def run(value, name="rss", count=100):
    return [{"t": float(t), name: value(t)} for t in range(count)]


class Trends(unittest.TestCase):
    def test_a_line_is_found(self):
        slope, mean = trend.line([(0, 1), (1, 3), (2, 5)])
        self.assertAlmostEqual(slope, 2)
        self.assertAlmostEqual(mean, 3)
        self.assertEqual(trend.line([(4, 7)]), (0, 7))

    def test_a_constant_and_a_sawtooth_are_flat(self):
        self.assertTrue(trend.judge(run(lambda t: 100e6), "rss", 33).flat)
        self.assertTrue(trend.judge(run(lambda t: 100e6 + t % 10 * 3e6), "rss", 33).flat)

    def test_a_leak_is_not(self):
        verdict = trend.judge(run(lambda t: 100e6 + t * 1e6), "rss", 33)
        self.assertFalse(verdict.flat)
        self.assertAlmostEqual(verdict.growth, 66e6, delta=1)

    def test_at_the_limit_and_one_past_it(self):
        for files, flat in ((trend.BOUNDS["files"].amount, True), (trend.BOUNDS["files"].amount + 1, False)):
            grown = run(lambda t, files=files: t / 99 * files, "files")
            self.assertEqual(trend.judge(grown, "files", 0).flat, flat, files)

    def test_growth_before_does_not_count(self):
        self.assertTrue(trend.judge(run(lambda t: min(t, 30) * 10e6), "rss", 33).flat)


class Drawing(unittest.TestCase):
    def test_a_plot_has_its_scale_and_goes_up(self):
        lines = report.plot([(0, 0), (1, 10)], width=10, height=3)
        self.assertEqual(len(lines), 5)
        self.assertTrue(lines[0].rstrip().endswith("*") and "10" in lines[0], lines)
        self.assertIn("|*", lines[2])

    def test_one_value_and_none_can_be_drawn(self):
        self.assertIn("*", "\n".join(report.plot([(3, 5)])))
        self.assertEqual(report.plot([]), ["(no samples)"])

    def test_the_report_names_what_grows(self):
        grown = [{"t": float(t), **{name: 1.0 + t * 1e9 for name in samples.SERIES}} for t in range(10)]
        text = report.text(grown, [trend.judge(grown, "rss", 0)], 0, ["a head"])
        self.assertIn("GROWS resident memory", text)
        self.assertTrue(text.startswith("a head\n"))


class CheckedQueues(unittest.TestCase):
    EVENTS = [{"do": "sent", "result": "accepted"}, {"do": "settled", "result": "accepted"},
              *({"do": "left", "from": place} for place in checked.PLACES)]

    def test_a_history_in_which_nothing_happened_is_no_proof(self):
        self.assertEqual(checked.trouble_of(self.EVENTS), [])
        for missing in range(len(self.EVENTS)):
            self.assertTrue(checked.trouble_of(self.EVENTS[:missing] + self.EVENTS[missing + 1:]), missing)

    def test_every_queue_is_sent_to_and_received_from(self):
        parts = [part for _, several in checked.roles().values() for part in several]
        for place in checked.PLACES:
            self.assertTrue(any(part.get("to") == place for part in parts), place)
            self.assertTrue(any(part.get("from") == place for part in parts), place)


if __name__ == "__main__":
    unittest.main()
