"""The samples as a picture: picture.py SAMPLES.json REPORT.png. Runs where matplotlib is installed."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main(source, target):
    with open(source, encoding="utf-8") as file:
        run = json.load(file)
    series = [(name, *about) for name, about in run["series"].items()]
    figure, axes = plt.subplots(len(series), 1, sharex=True, figsize=(10, 1.9 * len(series)))
    for axis, (name, title, unit, scale) in zip(axes, series):
        points = [(s["t"], s[name] / scale) for s in run["samples"] if name in s]
        axis.plot([x for x, _ in points], [y for _, y in points], linewidth=1)
        axis.set_title(f"{title}{f' ({unit})' if unit else ''}", loc="left", fontsize=9)
        axis.set_ylim(bottom=0)
        axis.axvline(run["since"], color="gray", linewidth=0.8, linestyle=":")
        for when in run["restarts"]:
            axis.axvline(when, color="tab:red", linewidth=0.6, alpha=0.6)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("seconds; red: restarts; dotted: from here on it must be flat")
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
