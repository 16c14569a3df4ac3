"""Plots as SVG text: grouped bars and lines, on a logarithmic scale where brokers lie far apart."""

import math
from xml.sax.saxutils import escape

COLOURS = {
    "omnibus": "#1b6ca8",
    "rabbitmq-classic": "#e07b39",
    "rabbitmq-quorum": "#f2b880",
    "artemis": "#7a4d8b",
    "relay": "#9aa0a6",
}
LEFT, TOP, HEIGHT = 70, 46, 240


def short(value):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


class Scale:
    """Logarithmic, from a whole power of ten to the next one above."""

    def __init__(self, values):
        values = [value for value in values if value > 0] or [1]
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)

    def y(self, value):
        share = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return TOP + HEIGHT * (1 - share)

    def lines(self, width):
        out = []
        for power in range(self.low, self.high + 1):
            y = self.y(10.0**power)
            out.append(f'<line x1="{LEFT}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(text(LEFT - 6, y + 4, short(10.0**power), "end"))
        return out


def frame(title, width, parts, names):
    """`names` are pairs of a broker's name and its title."""
    legend, x = [], LEFT
    for name, label in names:
        legend.append(f'<rect x="{x}" y="{TOP + HEIGHT + 34}" width="10" height="10" fill="{COLOURS[name]}"/>')
        legend.append(text(x + 14, TOP + HEIGHT + 43, label, "start"))
        x += 34 + 7 * len(label)
    width = max(width, x)
    height = TOP + HEIGHT + 56
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="11" fill="#333"><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, text(LEFT, 20, title, "start", ' font-size="14"'), *parts, *legend, "</svg>"]) + "\n"


def bars(title, groups, names, values):
    """values[(group, name)] is (middle, least, most); what is missing has no bar."""
    bar, gap = 16, 18
    step = bar * len(names) + gap
    width = LEFT + step * len(groups) + 20
    scale = Scale([part for value in values.values() for part in value])
    parts = scale.lines(width)
    for at, group in enumerate(groups):
        x = LEFT + gap / 2 + at * step
        parts.append(text(x + (step - gap) / 2, TOP + HEIGHT + 16, group))
        for index, (name, _) in enumerate(names):
            if (group, name) not in values:
                continue
            middle, least, most = values[group, name]
            left, top = x + index * bar, scale.y(middle)
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{bar - 2}" height="{TOP + HEIGHT - top:.1f}"'
                f' fill="{COLOURS[name]}"><title>{escape(name)}: {short(middle)}</title></rect>'
            )
            centre = left + bar / 2 - 1
            parts.append(
                f'<line x1="{centre:.1f}" x2="{centre:.1f}" y1="{scale.y(least):.1f}" y2="{scale.y(most):.1f}"'
                ' stroke="#333"/>'
            )
    return frame(title, width, parts, names)


def lines(title, names, points):
    """points[name] is a list of (x, y), x on a logarithmic scale too."""
    width = 560
    xs = sorted({x for series in points.values() for x, _ in series})
    low, high = math.log10(xs[0]), max(math.log10(xs[-1]), math.log10(xs[0]) + 1)
    scale = Scale([y for series in points.values() for _, y in series])
    parts = scale.lines(width)

    def place(x):
        return LEFT + 20 + (width - LEFT - 50) * (math.log10(x) - low) / (high - low)

    for x in xs:
        parts.append(text(place(x), TOP + HEIGHT + 16, short(x)))
    for name, _ in names:
        series = [(place(x), scale.y(y)) for x, y in points.get(name, [])]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in series)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"/>' for x, y in series]
    return frame(title, width, parts, [pair for pair in names if pair[0] in points])
