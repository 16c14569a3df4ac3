"""`omnibus journal check` and `dump`: what they say about good and damaged stores, and that they only look."""

import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_serve import BINARY, PATIENCE, Broker

CONFIG = '{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "orders"}, {"Name": "invoices"}]}]}, "Omnibus": {"Shards": 2}}'


def run(*arguments):
    return subprocess.run([BINARY, "journal", *arguments], capture_output=True, text=True, timeout=PATIENCE)


def contents(folder):
    """Every file below a folder: its bytes and the time of its last change."""
    return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(folder.rglob("*")) if file.is_file()}


class Journal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        config = Path(self.folder.name) / "config.json"
        config.write_text(CONFIG)
        self.config = str(config)
        self.data = Path(self.folder.name) / "data"

    def broker(self):
        return Broker(self.folder.name, "--config", self.config)

    def make_stores(self):
        with self.broker() as broker:
            broker.ready()
            self.assertEqual(broker.end(signal.SIGTERM)[0], 0)

    def test_good_stores_are_said_to_be_good_and_nothing_changes(self):
        self.make_stores()
        before = contents(self.data)
        result = run("check", str(self.data))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for name in ("store-0", "store-1"):
            self.assertIn(name, result.stdout)
        self.assertEqual(result.stdout.count("good: "), 2)
        self.assertEqual(run("dump", str(self.data)).returncode, 0)
        self.assertEqual(contents(self.data), before)

    def test_a_killed_broker_leaves_good_stores(self):
        with self.broker() as broker:
            broker.ready()
            broker.process.kill()
            broker.process.wait(PATIENCE)
        (self.data / "listen.json").unlink()  # of the one that was killed
        self.assertEqual(run("check", str(self.data)).returncode, 0)
        self.make_stores()

    def test_dump_shows_records_up_to_a_limit_and_of_one_store(self):
        self.make_stores()
        everything = run("dump", str(self.data))
        lines = [line for line in everything.stdout.splitlines() if " kind " in line]
        self.assertGreaterEqual(len(lines), 2, "two queues were made")
        one = run("dump", str(self.data), "--store", "1")
        self.assertNotIn("store-0:", one.stdout)
        self.assertIn("store-1:", one.stdout)
        none = run("dump", str(self.data), "--limit", "0")
        self.assertEqual([line for line in none.stdout.splitlines() if " kind " in line], [])
        self.assertIn(" more", none.stdout)

    def test_a_flipped_byte_is_damage_and_1(self):
        self.make_stores()
        segments = [file for file in self.data.glob("store-*/*.segment") if b"orders" in file.read_bytes()]
        self.assertTrue(segments, "a segment holds the name of the queue")
        with open(segments[0], "r+b") as file:
            file.seek(segments[0].read_bytes().find(b"orders"))
            file.write(b"ORDERS")
        result = run("check", str(self.data))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("DAMAGE", result.stdout)

    def test_a_running_broker_keeps_its_stores_to_itself(self):
        with self.broker() as broker:
            broker.ready()
            for verb in ("check", "dump"):
                result = run(verb, str(self.data))
                self.assertEqual(result.returncode, 2)
                self.assertIn("in use", result.stderr)

    def test_wrong_arguments_and_missing_folders_are_2(self):
        self.make_stores()
        for arguments in (
            ["check"], ["check", str(self.data / "nowhere")], ["check", self.folder.name], ["mend", str(self.data)],
            ["dump", str(self.data), "--store", "7"], ["dump", str(self.data), "--limit", "many"],
        ):
            self.assertEqual(run(*arguments).returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
