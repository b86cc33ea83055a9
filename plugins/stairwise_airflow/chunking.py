"""A long range in pieces, each for one Spark application: about so many rows, cut where windows end."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from stairwise import Rollup
from stairwise.duration import Duration
from stairwise.window import CumulateWindow, Window
from stairwise.windowing import Interval, windows_at
from stairwise.zones import DAY_SECONDS

MOST_CHUNKS = 24
ROWS_PER_CHUNK = 1_000_000_000
# Of a source whose rows nobody has estimated.
_DAYS_PER_CHUNK = 90


def chunks(rollup: Rollup, span: Interval, chunk: Duration | None, rows_per_chunk: int) -> list[Interval]:
    """The range in order, in pieces of the length that is asked for, or that holds so many rows.

    A piece ends at an edge of the coarsest declared window without overlap that fits into one.

    >>> from stairwise import Source
    >>> trips = Rollup(name="trips", source=Source(table="trips", time="at"), aggregates={"n": "count()"},
    ...                windows=["1h", "day"], target="lake/out")
    >>> days = [(each.start / 86400, each.end / 86400)
    ...         for each in chunks(trips, Interval(43200, 950400), Duration.parse("4d"), ROWS_PER_CHUNK)]
    >>> days
    [(0.5, 4.0), (4.0, 8.0), (8.0, 11.0)]
    """
    if chunk is not None:
        return _cut(rollup, span, chunk.seconds)
    length = _length(rollup, span, rows_per_chunk)
    # Pieces that end at edges are shorter than that, so there may be some too many.
    while len(found := _cut(rollup, span, length)) > MOST_CHUNKS:
        length += ceil(length / MOST_CHUNKS)
    return found


def _length(rollup: Rollup, span: Interval, rows_per_chunk: int) -> int:
    a_day = rollup.estimates.rows_per_day
    days = _DAYS_PER_CHUNK if a_day is None else max(1, rows_per_chunk // max(1, a_day))
    return max(days * DAY_SECONDS, ceil((span.end - span.start) / MOST_CHUNKS))


def _cut(rollup: Rollup, span: Interval, length: int) -> list[Interval]:
    fitting = [each for each in _tumbling(rollup) if _lasts(each, span.start) <= length]
    coarsest = max(fitting, key=lambda window: _lasts(window, span.start), default=None)
    return list(_pieces(span, length, coarsest))


def _pieces(span: Interval, length: int, window: Window | None) -> Iterator[Interval]:
    start = span.start
    while start < span.end:
        end = min(start + length, span.end)
        if end < span.end and window is not None:
            edge = windows_at(window, end)[0].start
            end = edge if edge > start else end
        yield Interval(start, end)
        start = end


def _tumbling(rollup: Rollup) -> list[Window]:
    windows = (declared.window for declared in rollup.windows)
    return [window for window in windows if window.is_tumbling and not isinstance(window, CumulateWindow)]


def _lasts(window: Window, instant: int) -> int:
    found = windows_at(window, instant)[0]
    return found.end - found.start
