"""Is it flat? A line through the samples says how much a value grew, and a bound how much it may.

A sample is taken at some moment of a sawtooth (a segment is full, a cache is filled), so it is the line that counts,
not the last sample.
"""

from dataclasses import dataclass

from chaos.scene import STORES


@dataclass(frozen=True)
class Bound:
    """How much a value may grow from the first of the samples to the last: a fixed amount, or a share of its mean."""
    amount: float
    share: float = 0.0
    why: str = ""

    def limit(self, mean):
        return max(self.amount, self.share * mean)


# A store writes 256 MiB before it makes a checkpoint and removes what that has made useless, and keeps a segment ready.
SEGMENT_BYTES = 64 << 20
TEETH = STORES * (4 + 1)

# Over the last two thirds of a run, in which the broker is not restarted.
BOUNDS = {
    "rss": Bound(24e6, 0.10, "a cache that fills, the heap's own habits"),
    "files": Bound(8, 0, "connections that come and go"),
    "threads": Bound(1, 0, "there is a fixed number"),
    "disk": Bound(TEETH * SEGMENT_BYTES, 0, "a tooth of each store's saw, which may be all of a short run"),
    "segments": Bound(TEETH, 0, "as the disk"),
    "depth": Bound(400, 0.25, "or the load is more than the receivers can take, and the rest means nothing"),
}


def line(points):
    """(slope, mean) of the least squares line through (x, y) points."""
    if not points:
        raise ValueError("no samples")
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return slope, mean_y


@dataclass(frozen=True)
class Verdict:
    name: str
    growth: float  # by the line, over the time that was looked at
    mean: float
    limit: float

    @property
    def flat(self):
        return self.growth <= self.limit


def judge(samples, name, since):
    """Of the samples from `since` on."""
    points = [(s["t"], s[name]) for s in samples if s["t"] >= since and name in s]
    slope, mean = line(points)
    return Verdict(name, slope * (points[-1][0] - points[0][0]), mean, BOUNDS[name].limit(mean))
