"""The report of a run: a text with plots of letters, and the samples for everybody who wants more."""

from .samples import SERIES
from .trend import BOUNDS

WIDTH, HEIGHT = 72, 8


def plot(points, width=WIDTH, height=HEIGHT):
    """Lines of text: the highest and the lowest value of each column, and the scale at the left."""
    if not points:
        return ["(no samples)"]
    low, high = min(y for _, y in points), max(y for _, y in points)
    begin, end = points[0][0], points[-1][0]
    columns = [[] for _ in range(width)]
    for x, y in points:
        columns[min(width - 1, int((x - begin) / (end - begin) * width) if end > begin else 0)].append(y)

    def row_of(y):
        return round((y - low) / (high - low) * (height - 1)) if high > low else 0

    rows = [[" "] * width for _ in range(height)]
    for number, values in enumerate(columns):
        for value in values:
            rows[row_of(value)][number] = "*"
    lines = []
    for number in reversed(range(height)):
        scale = low + (high - low) * number / (height - 1)
        label = f"{scale:10.4g} " if number in (0, height - 1) or number == height // 2 else " " * 11
        lines.append(label + "|" + "".join(rows[number]).rstrip())
    lines.append(" " * 11 + "+" + "-" * width)
    lines.append(" " * 12 + f"{begin:.0f} s".ljust(width - 10) + f"{end:.0f} s".rjust(10))
    return lines


def shown(name, value):
    _, unit, scale = SERIES[name]
    return f"{value / scale:.1f} {unit}".strip() if scale > 1 else f"{value:.1f}"


def text(samples, verdicts, since, facts):
    """`facts`: lines for the head of it."""
    out = [*facts, "", f"Flat? From {since:.0f} s on, by the line through the samples:", ""]
    for verdict in verdicts:
        title = SERIES[verdict.name][0]
        out.append(f"  {'ok' if verdict.flat else 'GROWS':5} {title:26} {shown(verdict.name, verdict.growth):>12} grown, "
                   f"{shown(verdict.name, verdict.limit):>10} allowed; mean {shown(verdict.name, verdict.mean)} "
                   f"({BOUNDS[verdict.name].why})")
    for name, (title, unit, scale) in SERIES.items():
        points = [(s["t"], s[name] / scale) for s in samples if name in s]
        out += ["", f"{title}{f', {unit}' if unit else ''}", *plot(points)]
    return "\n".join(out) + "\n"
