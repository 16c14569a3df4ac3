"""`omnibus purge`: what was there is gone, whatever the clocks say, and what is left is said."""

import json
import unittest

from test_client import ClientTest


class Purge(ClientTest):
    flags = ("--test-clock",)

    def test_it_asks_first(self):
        self.good("queue", "create", "full")
        self.good("send", "full", "x", "--count", "1200")
        self.assertEqual(self.run_verb("purge", "full").returncode, 2)
        self.assertEqual(self.active("full"), 1200)
        self.assertEqual(self.json_of("purge", "full", "--yes"), {"purged": 1200, "left": 0})
        self.assertEqual(self.active("full"), 0)
        self.assertEqual(self.json_of("purge", "full", "--yes"), {"purged": 0, "left": 0})
        self.assertEqual(self.run_verb("purge", "nowhere", "--yes").returncode, 3)

    # The clock of this machine is an hour behind that of the messages.
    def test_it_needs_no_clock_of_its_own(self):
        self.good("queue", "create", "ahead", "--max-delivery-count", "1")
        self.good("queue", "create", "spread", "--enable-partitioning")
        for _ in range(2):
            self.good("send", "ahead", "x", "--count", "7")
            self.good("send", "spread", "x", "--count", "100")
            self.assertEqual(self.ask("POST", "/$omnibus/clock", json.dumps({"advance": "PT1H"}))[0], 200)
        self.good("send", "ahead", "x", "--count", "7")
        self.good("receive", "ahead", "--count", "3", "--ack", "abandon")
        self.assertEqual(self.json_of("purge", "ahead", "--yes"), {"purged": 18, "left": 0})
        self.assertEqual(self.json_of("purge", "ahead", "--dead-letter", "--yes"), {"purged": 3, "left": 0})
        self.assertEqual(self.json_of("purge", "spread", "--yes"), {"purged": 200, "left": 0})
        self.assertEqual(self.lines_of("peek", "spread"), [])

    def test_what_is_left_is_said(self):
        self.good("queue", "create", "held")
        self.good("send", "held", "x", "--count", "5")
        self.good("send", "held", "later", "--schedule", "1d", "--count", "2")
        self.assertEqual(self.ask("POST", "/held/messages/head?timeout=5")[0], 201)  # locks one
        result = self.run_verb("purge", "held", "--yes", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)), (1, {"purged": 4, "left": 3}))
        self.assertIn("left in 'held': 1 that receivers hold, 2 scheduled", result.stderr)


if __name__ == "__main__":
    unittest.main()
