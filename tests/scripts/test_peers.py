"""bench/peers tells the truth about pretended runs: medians, aims held and missed, cells that are not there."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
import brokers  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402

TITLES = {"omnibus": "Omnibus", "rabbitmq-classic": "RabbitMQ classic", "artemis": "Artemis", "relay": "relay"}


def throughput(broker, per_second, per_cpu_second, number=0, shape="1+1", size=1024):
    return {
        "broker": broker,
        "part": "throughput",
        "round": number,
        "shape": shape,
        "bytes": size,
        "per_second": per_second,
        "per_cpu_second": per_cpu_second,
        "broker_rss_bytes": 1e7,
        "written_per_message": 1200,
    }


def latency(broker, p99, reached=1.0):
    return {
        "broker": broker,
        "part": "latency",
        "round": 0,
        "shape": "1+1",
        "bytes": 1024,
        "rate": 1000,
        "latency_ms": {"p50": p99 / 2, "p99": p99, "p999": p99 * 2},
        "outcome_ms": {"p50": p99 / 2, "p99": p99, "p999": p99 * 2},
        "reached": reached,
    }


def results(*records, troubles=()):
    return {
        "date": "2026-01-01 00:00 UTC",
        "commit": "abc",
        "command": "make bench-peers",
        "minutes": 1,
        "machine": {
            "processor": "one",
            "cores": 2,
            "memory_gib": 4,
            "kernel": "6",
            "file_system": "ext4",
            "load_before": 0.1,
        },
        "rounds": 1,
        "seconds": 1,
        "generator_per_second": {100: 1e6},
        "brokers": {
            name: {"title": title, "version": "1", "settings": ["as it comes"]} for name, title in TITLES.items()
        },
        "records": list(records),
        "troubles": list(troubles),
    }


def text_of(*records, **more):
    return report.Report(results(*records, **more)).text("plots")


class Report(unittest.TestCase):
    def test_the_median_and_the_range_of_the_rounds_are_told(self):
        text = text_of(*[throughput("omnibus", value, 1, number) for number, value in enumerate([3000, 1000, 2000])])
        self.assertIn("2 k (1 k to 3 k)", text)

    def test_the_best_peer_decides_and_a_missed_aim_is_named(self):
        text = text_of(
            throughput("omnibus", 60_000, 90_000),
            throughput("rabbitmq-classic", 8_000, 9_000),
            throughput("artemis", 10_000, 8_000),
        )
        self.assertIn("| 6.0x |", text)
        self.assertIn("throughput at least 5x that of the best peer, in every durable cell | held in all 1", text)
        self.assertIn("10.0x", text)
        text = text_of(throughput("omnibus", 49_000, 90_000), throughput("artemis", 10_000, 9_100))
        self.assertIn("**4.9x, missed**", text)
        self.assertIn("**missed in 1 of 1** | 1+1, 1 KiB: 4.9x", text)
        self.assertIn("**9.9x, missed**", text)

    def test_the_relay_is_no_peer(self):
        text = text_of(throughput("omnibus", 60, 60), throughput("artemis", 10, 5), throughput("relay", 100, 61))
        self.assertIn("12.0x", text)
        self.assertIn("at least 0.5 of the memory-only relay's, 1+1, 1 KiB | held in all 1", text)
        self.assertIn(
            "at least 1 of the memory-only relay's, 1+1, 1 KiB | **missed in 1 of 1** | 1+1, 1 KiB: 0.98", text
        )

    def test_a_latency_equal_to_the_best_peers_is_missed(self):
        self.assertIn("**1.00x, missed**", text_of(latency("omnibus", 2), latency("artemis", 2)))
        self.assertIn(
            "| 0.50x |", text_of(latency("omnibus", 1), latency("artemis", 2), latency("rabbitmq-classic", 9))
        )

    def test_a_rate_that_was_not_reached_is_told(self):
        self.assertIn("80% of the rate", text_of(latency("omnibus", 1), latency("artemis", 2, reached=0.8)))

    def test_what_is_not_there_is_no_victory(self):
        text = text_of(
            throughput("omnibus", 60, 60), troubles=[{"broker": "artemis", "what": "start", "why": "no\nheap"}]
        )
        self.assertIn("not measured", text)
        self.assertNotIn("held", text)
        self.assertIn("- Artemis, start: no heap", text)

    def test_the_section_is_replaced_and_the_rest_stays(self):
        document = f"# Title\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n"
        once = report.put_section(document, f"{report.BEGIN}\nnew\n{report.END}\n")
        self.assertEqual(once, f"# Title\n\n{report.BEGIN}\nnew\n{report.END}\n\nafter\n")
        with self.assertRaises(ValueError):
            report.put_section("# no markers\n", "x")

    def test_plots_are_xml_and_small(self):
        records = [throughput("omnibus", 50_000, 60_000), throughput("artemis", 5_000, 1_000), latency("omnibus", 1.5)]
        made = report.Report(results(*records)).plots()
        self.assertEqual(sorted(made), ["cpu.svg", "latency.svg", "throughput.svg"])
        for svg in made.values():
            ElementTree.fromstring(svg)
            self.assertLess(len(svg), 20_000)

    def test_the_page_has_the_markers(self):
        page = (ROOT / "docs/benchmarks.md").read_text()
        self.assertEqual((page.count(report.BEGIN), page.count(report.END)), (1, 1))


class Processes(unittest.TestCase):
    def test_a_tree_counts_the_children(self):
        command = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
        parent = subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, start_new_session=True)
        try:
            end = time.monotonic() + 20
            while len(processes.tree_of([parent.pid])) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            tree = processes.tree_of([parent.pid])
            self.assertEqual(len(tree), 2)
            self.assertNotIn(os.getpid(), tree)
            self.assertGreater(processes.Sample([parent.pid]).rss, processes.resident_bytes(parent.pid))
        finally:
            processes.stop(parent, at_most=0.1)
            parent.stdin.close()
        self.assertEqual(processes.tree_of([parent.pid]), [])

    def test_a_process_that_is_gone_costs_nothing(self):
        self.assertEqual(processes.tree_of([2**22 + 1]), [])
        self.assertEqual((processes.resident_bytes(2**22 + 1), processes.written_bytes(2**22 + 1)), (0, 0))

    def test_disk_counts_blocks(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(Path(folder) / "sparse", "wb") as file:
                file.truncate(1 << 20)
            self.assertLess(processes.disk_bytes(folder), 1 << 20)
            with open(Path(folder) / "full", "wb") as file:
                file.write(b"x" * (1 << 20))
                file.flush()
                os.fsync(file.fileno())
            self.assertGreaterEqual(processes.disk_bytes(folder), 1 << 20)


class Brokers(unittest.TestCase):
    def test_artemis_gets_every_entity_durable(self):
        xml = '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><addresses/></core></configuration>'
        broker = brokers.Artemis(Path("/nowhere"), {})
        tree = ElementTree.fromstring(brokers.with_addresses(xml, broker))
        space = "{urn:activemq:core}"
        queues = tree.findall(f".//{space}queue")
        self.assertEqual(len(queues), brokers.QUEUES + 1 + brokers.FAN_OUT)
        self.assertTrue(all(queue.find(f"{space}durable").text == "true" for queue in queues))
        self.assertEqual(len(tree.findall(f".//{space}multicast/{space}queue")), brokers.FAN_OUT)

    def test_every_broker_has_a_colour_and_tells_its_settings(self):
        for kind in brokers.ALL:
            broker = kind(Path("/nowhere"), {})
            self.assertIn(broker.name, report.plots.COLOURS)
            self.assertTrue(broker.settings())


if __name__ == "__main__":
    unittest.main()
