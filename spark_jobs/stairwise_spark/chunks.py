"""A range in chunks: each is computed and committed before the next, so that memory and lost work do not grow with it.

Whoever says how long a chunk is gets that. Otherwise a chunk has as many bytes of the source as the tasks of the
session can take, and ends where a window does, of the coarsest tier that fits: then it needs nothing of its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stairwise.plan import Plan
from stairwise.window import Window
from stairwise.windowing import Interval, windows_at
from stairwise_spark.delta_log import Busy
from stairwise_spark.event_time import MICROS
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, hull, joined, masked

# Twice what Spark gives a task to read: columns that are not needed are in it, and tiers have fewer rows.
BYTES_A_TASK = 256 * 1024**2
# So many ranges of a tier are replaced by one commit, if they can only be told one by one in its predicate.
_MOST_SPANS = 400


def equal(span: Interval, length: int) -> Iterator[Interval]:
    """The span in pieces, which begin at multiples of their length.

    >>> [tuple(piece) for piece in equal(Interval(5, 25), 10)]
    [(5, 10), (10, 20), (20, 25)]
    """
    if span.start >= span.end:
        return
    cuts = [span.start]
    while (cut := (cuts[-1] // length + 1) * length) < span.end:
        cuts.append(cut)
    yield from (Interval(one, other) for one, other in pairwise([*cuts, span.end]))


def pieces(
    plan: Plan,
    source: PinnedSource,
    span: Interval,
    ends: Mapping[str, Spans],
    read: Spans,
    tasks: int,
    length: int | None,
) -> list[Interval]:
    """A range of ends of windows in pieces, each of which is done before the next begins.

    Args:
        plan: What is made.
        source: What it is made of.
        span: The range.
        ends: For each tier, the ranges of which the windows that end in them have to be computed.
        read: When the events happened that have to be read for it.
        tasks: That run side by side.
        length: How long a piece is, in seconds; None: as much as fits.
    """
    whole = hull(joined(each for spans in ends.values() for each in spans))
    found = fitting(plan, source, whole, tasks, read) if length is None else equal(whole, length)
    cuts = {piece.end for piece in found}
    most = max((spans for spans in ends.values() if masked(spans) is None), key=len, default=())
    cuts |= {each.end for each in most[_MOST_SPANS - 1 :: _MOST_SPANS]}
    inner = sorted(cut for cut in cuts if whole.start < cut < whole.end)
    return [Interval(*each) for each in pairwise([span.start, *inner, span.end])]


def fitting(plan: Plan, source: PinnedSource, span: Interval, tasks: int, read: Spans) -> Iterator[Interval]:
    """The span in pieces that so many tasks can take at once; one, if nobody knows how much there is to read."""
    if span.start >= span.end:
        return
    most = tasks * BYTES_A_TASK
    size = source.about_bytes(read, most)
    if size is None or size <= most:
        yield span
        return
    pace = _pace(source)
    yield from paced(span, pace, (pace.until(span.end) - pace.until(span.start)) * most / size, _tumbling(plan))


@dataclass(frozen=True, slots=True, eq=False)
class Pace:
    """How many rows there are until an instant, as a line through some points.

    Attributes:
        seconds: Where the points are.
        rows: How many rows there are until each of them.
    """

    seconds: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, days: Iterable[Busy]) -> Pace:
        """The pace of rows that are spread evenly between the first and the last of a day."""
        changes: dict[float, float] = {}
        for day in days:
            first, last = day.first / MICROS, max(day.last, day.first + MICROS) / MICROS
            rate = day.rows / (last - first)
            changes[first] = changes.get(first, 0.0) + rate
            changes[last] = changes.get(last, 0.0) - rate
        seconds = np.array(sorted(changes))
        rates = np.cumsum([changes[second] for second in seconds])
        return cls(seconds, np.concatenate(([0.0], np.cumsum(rates[:-1] * np.diff(seconds)))))

    @property
    def total(self) -> float:
        """All rows."""
        return float(self.rows[-1])

    def until(self, second: int) -> float:
        """How many rows there are before an instant."""
        return float(np.interp(second, self.seconds, self.rows))

    def reached(self, rows: float) -> int:
        """The second at which there have been so many rows."""
        return int(np.interp(rows, self.rows, self.seconds))


def paced(span: Interval, pace: Pace, most_rows: float, windows: Sequence[Window]) -> Iterator[Interval]:
    """The span in pieces of at most so many rows, unless a window of the finest tier has more.

    Args:
        span: What is cut.
        pace: How many rows there are, and when.
        most_rows: In a piece.
        windows: Tumbling ones, the coarsest first; pieces end where one of them does.
    """
    start = span.start
    while pace.until(start) + most_rows < pace.until(span.end):
        end = min(_end(start, pace.reached(pace.until(start) + most_rows), windows), span.end)
        yield Interval(start, end)
        start = end
    if start < span.end:
        yield Interval(start, span.end)


def _end(start: int, latest: int, windows: Sequence[Window]) -> int:
    """Where a piece that ends at the latest there had best end, without wasting half of what fits."""
    for window in windows:
        (around,) = windows_at(window, latest)
        if around.start > (start + latest) // 2:
            return around.start
    if not windows:
        return max(latest, start + 1)
    (around,) = windows_at(windows[-1], max(latest, start))
    return around.start if around.start > start else around.end


def _pace(source: PinnedSource) -> Pace:
    """By the log of a Delta table; without one, rows are taken to be spread evenly."""
    logged = source.logged()
    if logged is not None and logged.days:
        return Pace.of(logged.days)
    extent = source.extent() or Interval(0, 1)
    return Pace.of([Busy(first=extent.start * MICROS, last=extent.end * MICROS, rows=extent.end - extent.start)])


def _tumbling(plan: Plan) -> list[Window]:
    """The tumbling windows of a plan, the coarsest first."""
    tiers = sorted((step.tier for step in plan.steps if step.tier.tiles), key=lambda tier: (tier.rate, tier.name))
    return [tier.window for tier in tiers if tier.window is not None]
