"""Tables and plots of a run. Where an aim is missed, the table says so.

bench/peers/report.py [RESULTS.json]     writes build/peers/report.md and docs/benchmarks.md from it
"""

import json
import statistics
import sys
from pathlib import Path

import plots

OURS, RELAY = "omnibus", "relay"
BEGIN, END = "<!-- bench-peers: begin -->", "<!-- bench-peers: end -->"
THROUGHPUT_AIM, CPU_AIM, MEMORY_AIM = 5, 10, 0.1
RELAY_THROUGHPUT_AIM, RELAY_CPU_AIM = 0.5, 1.0


def size_name(size):
    return f"{size // 1024} KiB" if size >= 1024 else f"{size} B"


def number(value):
    """Three digits are more than the machine's moods allow."""
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e3:
        return f"{value / 1e3:.3g} k" if value < 1e5 else f"{value / 1e3:.0f} k"
    return f"{value:.3g}"


def spread(values):
    """(median, least, most), or None when there is nothing."""
    return (statistics.median(values), min(values), max(values)) if values else None


def cell_text(seen, show=number):
    if not seen:
        return "not measured"
    middle, least, most = seen
    return show(middle) if least == most else f"{show(middle)} ({show(least)} to {show(most)})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Report:
    def __init__(self, results):
        self.results = results
        self.titles = {name: about["title"] for name, about in results["brokers"].items()}
        self.peers = [name for name in self.titles if name not in (OURS, RELAY)]
        self.verdicts = []  # (aim, held cells, missed cells with the figure)

    def values(self, part, name, figure, **key):
        return [
            figure(record)
            for record in self.results["records"]
            if record["part"] == part
            and record["broker"] == name
            and all(record[field] == value for field, value in key.items())
        ]

    def keys(self, part, *fields):
        """The cells of a part in the order in which they were measured."""
        seen = [tuple(r[field] for field in fields) for r in self.results["records"] if r["part"] == part]
        return list(dict.fromkeys(seen))

    # ---- aims ----
    def against_peers(self, seen, best, held, digits=1):
        """The ratio to the best peer as text, and whether the aim is held."""
        peers = [seen[name][0] for name in self.peers if seen.get(name)]
        if not peers or not seen.get(OURS):
            return "not measured", None
        ratio = seen[OURS][0] / best(peers)
        good = held(ratio)
        return f"{ratio:.{digits}f}x" if good else f"**{ratio:.{digits}f}x, missed**", good

    def verdict(self, aim, cells):
        """cells: (name of the cell, text, held or None)."""
        cells = [cell for cell in cells if cell[2] is not None]
        if cells:
            self.verdicts.append((aim, cells))

    def throughput_table(self, figure, aim, words, to_relay):
        names = [OURS, *self.peers, RELAY]
        names = [name for name in names if name in self.titles]
        rows, cells, relays = [], [], []
        for shape, size in self.keys("throughput", "shape", "bytes"):
            seen = {
                name: spread(self.values("throughput", name, lambda r: r[figure], shape=shape, bytes=size))
                for name in names
            }
            text, good = self.against_peers(seen, max, lambda ratio: ratio >= aim)
            where = f"{shape}, {size_name(size)}"
            cells.append((where, text.strip("*"), good))
            if seen.get(RELAY) and seen.get(OURS):
                relays.append((where, seen[OURS][0] / seen[RELAY][0]))
            shown = [cell_text(seen[name]) if seen[name] else "-" for name in names]
            rows.append([where, *shown, text])
        self.verdict(f"{words} at least {aim}x that of the best peer, in every durable cell", cells)
        relay_cells = [
            (where, f"{ratio:.2f}" + ("" if ratio >= to_relay else ", missed"), ratio >= to_relay)
            for where, ratio in relays
            if where == "1+1, 1 KiB"
        ]
        self.verdict(f"{words} at least {to_relay:g} of the memory-only relay's, 1+1, 1 KiB", relay_cells)
        head = ["cell", *[self.titles[name] for name in names], f"Omnibus to the best peer (aim {aim}x)"]
        return table(head, rows)

    def latency_table(self, which, judged):
        """`which` is latency_ms (to the receipt) or outcome_ms (to the confirmation)."""
        names = [name for name in [OURS, *self.peers, RELAY] if name in self.titles]
        rows, cells = [], []
        for shape, size, rate in self.keys("latency", "shape", "bytes", "rate"):
            key = {"shape": shape, "bytes": size, "rate": rate}
            seen = {
                name: {
                    part: spread(self.values("latency", name, lambda r: r[which][part], **key))
                    for part in ("p50", "p99", "p999")
                }
                for name in names
            }
            p99 = {name: parts["p99"] for name, parts in seen.items() if parts["p99"]}
            text, good = self.against_peers(p99, min, lambda ratio: ratio < 1, 2)
            where = f"{shape}, {size_name(size)}, {rate:,}/s"
            cells.append((where, text.strip("*"), good))
            shown = []
            for name in names:
                parts = seen[name]
                if not parts["p99"]:
                    shown.append("-")
                    continue
                reached = statistics.median(self.values("latency", name, lambda r: r["reached"], **key))
                late = "" if reached > 0.97 else f", {reached:.0%} of the rate"
                shown.append(" / ".join(f"{parts[p][0]:.2f}" for p in ("p50", "p99", "p999")) + late)
            rows.append([where, *shown, text])
        self.verdict(judged, cells)
        head = ["cell", *[self.titles[name] for name in names], "p99 of Omnibus to the best peer's (aim below 1)"]
        return table(head, rows)

    def cost_table(self):
        names = [name for name in [OURS, *self.peers] if name in self.titles]
        most = max((count for (count,) in self.keys("held", "connections")), default=0)
        deepest = max((depth for (depth,) in self.keys("depth", "depth")), default=0)

        def mega(value):
            return f"{value / 1e6:,.1f} MB"

        def kibi(value):
            return f"{value / 1024:,.1f} KiB"

        def plain(value):
            return f"{value:,.0f}"

        flow = {"shape": "1+1", "bytes": 1024}
        lines = [
            ("RSS idle", mega, lambda n: self.values("start", n, lambda r: r["rss_bytes"]), MEMORY_AIM),
            (
                "RSS under load, the most of all throughput cells",
                mega,
                lambda n: [max(self.values("throughput", n, lambda r: r["broker_rss_bytes"]), default=0)],
                MEMORY_AIM,
            ),
            (
                f"RSS per idle connection, of {most:,}",
                kibi,
                lambda n: self.values("held", n, lambda r: r["rss_per_connection"], connections=most),
                MEMORY_AIM,
            ),
            (
                f"RSS with {deepest:,} messages of 1 KiB waiting",
                mega,
                lambda n: self.values("disk", n, lambda r: r["rss_bytes"], depth=deepest),
                MEMORY_AIM,
            ),
            (
                "start, exec to the first answer in AMQP",
                lambda v: f"{v:.2f} s",
                lambda n: self.values("start", n, lambda r: r["seconds"]),
                None,
            ),
            (
                f"disk per waiting message of 1 KiB, {deepest:,} deep, bytes",
                plain,
                lambda n: self.values("disk", n, lambda r: r["disk_per_message"], depth=deepest),
                None,
            ),
            (
                "written to disk per message of 1 KiB, 1+1, bytes",
                plain,
                lambda n: self.values("throughput", n, lambda r: r["written_per_message"], **flow),
                None,
            ),
        ]
        rows, cells = [], []
        for what, show, take, aim in lines:
            seen = {name: spread([value for value in take(name) if value]) for name in names}
            if not any(seen.values()):
                continue
            text = ""
            if aim:
                text, good = self.against_peers(seen, min, lambda ratio: ratio <= aim, 2)
                cells.append((what, text.strip("*"), good))
            else:
                text = self.against_peers(seen, min, lambda ratio: True, 2)[0]
            rows.append([what, *[cell_text(seen[name], show) if seen[name] else "-" for name in names], text])
        self.verdict("a tenth of the memory of the best peer", cells)
        head = ["what", *[self.titles[name] for name in names], "Omnibus to the best peer (aim for memory 0.1x)"]
        return table(head, rows)

    def growth_table(self, part, field, more):
        names = [name for name in [OURS, *self.peers] if name in self.titles]
        rows = []
        for (count,) in self.keys(part, field):
            row = [f"{count:,}"]
            for name in names:
                records = self.values(part, name, lambda r: r, **{field: count})
                row.append(
                    f"{number(records[0]['per_second'])}/s; {number(records[0]['per_cpu_second'])} per CPU s; {more(records[0])}"
                    if records
                    else "-"
                )
            rows.append(row)
        return table([field, *[self.titles[name] for name in names]], rows)

    def held(self, record):
        of = self.values("held", record["broker"], lambda r: r, connections=record["connections"])
        if record["connections"] < 100:
            return "memory too small to tell"
        if not of:
            return "memory not measured"
        return f"{of[0]['rss_per_connection'] / 1024:,.1f} KiB each, opened {number(of[0]['opened_per_second'])}/s"

    # ---- the whole ----
    def summary(self):
        rows = []
        for aim, cells in self.verdicts:
            missed = [f"{where}: {text.replace(', missed', '')}" for where, text, good in cells if not good]
            held = len(cells) - len(missed)
            word = "held" if not missed else f"**missed in {len(missed)} of {len(cells)}**"
            rows.append([aim, word if missed else f"held in all {held}", "; ".join(missed)])
        return table(["aim", "seen", "where it is missed, and what is there"], rows)

    def text(self, plots_folder):
        r, m = self.results, self.results["machine"]
        has = {record["part"] for record in r["records"]}
        tables = []
        if "throughput" in has:
            tables += [
                "### Throughput\n\nMessages received per second (of a fan-out: copies), all senders and receivers as fast as"
                " the broker lets them.\n",
                self.throughput_table("per_second", THROUGHPUT_AIM, "throughput", RELAY_THROUGHPUT_AIM),
                f"![throughput]({plots_folder}/throughput.svg)\n",
                "### Messages per CPU second of the broker\n",
                self.throughput_table("per_cpu_second", CPU_AIM, "messages per broker CPU second", RELAY_CPU_AIM),
                f"![per CPU second]({plots_folder}/cpu.svg)\n",
            ]
        if "latency" in has:
            tables += [
                "### Latency\n\nFrom the moment a message was due to its receipt, p50 / p99 / p99.9 in ms, medians of the"
                " rounds; rates are those of all senders together. Omnibus hands a message out once it is safe on disk."
                " RabbitMQ's classic queues hand it to a waiting receiver at once and write it behind.\n",
                self.latency_table(
                    "latency_ms", "p99 to the receipt lower than that of the best peer, in every latency cell"
                ),
                f"![latency]({plots_folder}/latency.svg)\n",
                "### Latency of the confirmation\n\nThe same, to the sender's outcome `accepted`.\n",
                self.latency_table(
                    "outcome_ms", "p99 to the confirmation lower than that of the best peer, in every latency cell"
                ),
            ]
        if has & {"start", "connections", "depth"}:
            tables += ["### Memory, start, disk\n", self.cost_table()]
        if "connections" in has:
            tables += [
                "### As connections grow\n\nIdle connections (one session, one link each), and one more pair that sends and"
                " receives 1 KiB beside them. Memory is that of a broker that has carried no message. RabbitMQ's connections"
                " were measured once, with classic queues.\n",
                self.growth_table("connections", "connections", self.held),
                f"![connections]({plots_folder}/connections.svg)\n",
            ]
        if "depth" in has:
            tables += [
                "### As a queue gets deep\n\nOne pair through a queue in which so many messages of 1 KiB wait.\n",
                self.growth_table("depth", "depth", lambda r: f"{r['broker_rss_bytes'] / 1e6:,.0f} MB"),
                f"![depth]({plots_folder}/depth.svg)\n",
            ]
        alone = ", ".join(
            f"{number(speed)}/s of {size_name(int(size))}" for size, speed in r["generator_per_second"].items()
        )
        out = [
            BEGIN,
            "",
            "## Seen\n",
            f"{r['date']}, commit {r['commit']}; `{r['command']}`, {r['minutes']} minutes; {r['rounds']} round{'s' if r['rounds'] > 1 else ''}"
            f" with {r['seconds']:g} s per cell; medians, and in brackets the range of the rounds.",
            f"{m['processor']}, {m['cores']} cores, {m['memory_gib']} GiB, Linux {m['kernel']}, {m['file_system']};"
            f" load before the run {m['load_before']:.1f}. Generator, receivers and broker share the cores.",
            f"The generator alone, against a peer that only accepts: {alone}.\n",
            "### Aims\n",
            "",  # filled below: the tables find out what is held
            *tables,
        ]
        out[out.index("### Aims\n") + 1] = self.summary()
        if r["troubles"]:
            out.append("### What could not be measured\n")
            out += [
                f"- {self.titles.get(t['broker'], t['broker'])}, {t['what']}: {' '.join(t['why'].split())[:300]}"
                for t in r["troubles"]
            ]
            out.append("")
        out.append("### Brokers and their settings\n")
        for about in r["brokers"].values():
            out.append(f"- **{about['title']}** {about['version']}: " + "; ".join(about["settings"]) + ".")
        out += ["", END]
        return "\n".join(out) + "\n"

    def plots(self):
        """File name to SVG."""
        names = [(name, self.titles[name]) for name in [OURS, *self.peers, RELAY] if name in self.titles]
        made = {}
        for file, figure, title in (
            ("throughput.svg", "per_second", "Messages per second"),
            ("cpu.svg", "per_cpu_second", "Messages per CPU second of the broker"),
        ):
            values, groups = {}, []
            for shape, size in self.keys("throughput", "shape", "bytes"):
                groups.append(f"{shape}, {size_name(size)}")
                for name, _ in names:
                    seen = spread(self.values("throughput", name, lambda r: r[figure], shape=shape, bytes=size))
                    if seen:
                        values[groups[-1], name] = seen
            if values:
                made[file] = plots.bars(title, groups, names, values)
        values, groups = {}, []
        for shape, size, rate in self.keys("latency", "shape", "bytes", "rate"):
            groups.append(f"{shape}, {size_name(size)}, {rate}/s")
            for name, _ in names:
                key = {"shape": shape, "bytes": size, "rate": rate}
                seen = spread(self.values("latency", name, lambda r: r["latency_ms"]["p99"], **key))
                if seen:
                    values[groups[-1], name] = seen
        if values:
            made["latency.svg"] = plots.bars("p99 of the latency, ms", groups, names, values)
        for part, field, title in (
            ("connections", "connections", "1+1, 1 KiB: messages per CPU second beside idle connections"),
            ("depth", "depth", "1+1, 1 KiB: messages per CPU second through a deep queue"),
        ):
            points = {name: self.values(part, name, lambda r: (r[field], r["per_cpu_second"])) for name, _ in names}
            points = {name: series for name, series in points.items() if series}
            if points:
                made[f"{part}.svg"] = plots.lines(title, names, points)
        return made


def put_section(document, section):
    """The document with what is between the markers replaced."""
    begin, end = document.index(BEGIN), document.index(END) + len(END)
    return document[:begin] + section.strip("\n") + document[end:]


def write(results, work, docs):
    """build/peers/report.md with its plots, and with `docs` the section of docs/benchmarks.md."""
    made = Report(results)
    for folder in [work / "plots", *([docs / "benchmarks"] if docs else [])]:
        folder.mkdir(parents=True, exist_ok=True)
        for file, svg in made.plots().items():
            (folder / file).write_text(svg)
    (work / "report.md").write_text(made.text("plots"))
    if docs:
        file = docs / "benchmarks.md"
        file.write_text(put_section(file.read_text(), Report(results).text("benchmarks")))


if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/peers/results.json"
    write(json.loads(source.read_text()), ROOT / "build/peers", ROOT / "docs")
