"""Which windows an instant is in, which end in a range, which a changed range touches, and where their edges lie.

Pure functions over any window; instants are seconds since 1970-01-01T00:00Z of either sign, ranges are half-open.
Calendar windows follow the wall clock: a boundary that happens twice is the earlier instant, one that never happens is
the instant of the transition, and a day that a zone skipped has no window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, count, groupby, pairwise, takewhile
from typing import NamedTuple, assert_never

from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.zones import DAY_SECONDS, to_instant, to_local


class Interval(NamedTuple):
    """The instants from `start` until just before `end`."""

    start: int
    end: int


def windows_at(window: Window, instant: int) -> tuple[Interval, ...]:
    """Returns the windows that an instant is in, in order; a tumbling window gives exactly one.

    >>> windows_at(FixedWindow(60, 20), 65)
    (Interval(start=20, end=80), Interval(start=40, end=100), Interval(start=60, end=120))
    """
    return tuple(windows_touching(window, instant, instant + 1))


def windows_touching(window: Window, start: int, end: int) -> Iterator[Interval]:
    """Yields the windows that share an instant with [start, end), in order.

    >>> list(windows_touching(FixedWindow(60, 60), 59, 61))
    [Interval(start=0, end=60), Interval(start=60, end=120)]
    """
    if start < end:
        yield from takewhile(lambda found: found.start < end, _ending_after(window, start))


def last_begun(window: CalendarWindow, instant: int) -> Interval:
    """Returns the last of the windows that an instant is in, however many they are.

    >>> from stairwise.window_text import parse_window
    >>> last_begun(parse_window("2 days every day in UTC"), 100_000)
    Interval(start=86400, end=259200)
    """
    day = (to_local(window.zone, instant) - window.offset) // DAY_SECONDS
    falling = (_calendar(window, index) for index in count(_index(window, day + 2), -1))
    return next(found for found in falling if found.start <= instant and found.start < found.end)


def windows_ending(window: Window, start: int, end: int) -> Iterator[Interval]:
    """Yields the windows with start < window end <= end, in order, so that neighbouring ranges share none.

    >>> list(windows_ending(FixedWindow(60, 20), 60, 80))
    [Interval(start=20, end=80)]
    """
    return takewhile(lambda found: found.end <= end, _ending_after(window, start))


def ends_touched(window: Window, ranges: Iterable[Interval]) -> Iterator[Interval]:
    """Yields the windows that share an instant with some ranges, as those that end in (start, end] of others.

    Args:
        window: The window.
        ranges: In order, and none of them empty. One whose windows are known by then is passed over.

    >>> list(ends_touched(FixedWindow(60, 60), [Interval(0, 1), Interval(2, 3), Interval(119, 121)]))
    [Interval(start=0, end=60), Interval(start=60, end=180)]
    """
    until, beyond = None, 0
    for start, end in ranges:
        if until is None or start >= until or end > beyond:
            since, until, beyond = _touched(window, start, end)
            yield Interval(since, until)


def _touched(window: Window, start: int, end: int) -> tuple[int, int, int]:
    """The windows that share an instant with [start, end) end in (first, second]; the next ones begin at the third."""
    if isinstance(window, FixedWindow):
        begun = end - 1 - (end - 1 - window.origin) % window.slide
        since = start - (start - window.origin - window.range) % window.slide
        return since, begun + window.range, begun + window.slide
    first = next(_ending_after(window, start))
    last, following = next(pair for pair in pairwise(_ending_after(window, end - 1)) if pair[1].start >= end)
    return first.start if window.is_tumbling else first.end - 1, last.end, following.start


def edges_in(window: Window, start: int, end: int) -> Iterator[int]:
    """Yields the instants in [start, end) at which a window begins or ends, each once, in order.

    >>> list(edges_in(FixedWindow(50, 20), 0, 60))
    [0, 10, 20, 30, 40, 50]
    """
    begins = (found.start for found in windows_touching(window, start, end) if found.start >= start)
    if window.is_tumbling:
        return begins
    ends = (found.end for found in windows_ending(window, start - 1, end - 1))
    return (edge for edge, _ in groupby(merge(begins, ends)))


def _ending_after(window: Window, instant: int) -> Iterator[Interval]:
    """Every window that ends after an instant, by begin and end."""
    match window:
        case FixedWindow():
            first = (instant - window.origin - window.range) // window.slide + 1
            return (_fixed(window, index) for index in count(first))
        case CalendarWindow():
            found = (_calendar(window, index) for index in count(_first_ending_after(window, instant)))
            # A day that a zone skipped makes windows empty, or two of them equal.
            return (each for each, _ in groupby(found) if each.start < each.end)
        case CumulateWindow(period=period, step=step):
            return chain.from_iterable(_within(each, step, instant) for each in _ending_after(period, instant))
        case _:
            assert_never(window)


def _within(period: Interval, step: FixedWindow | CalendarWindow, instant: int) -> Iterator[Interval]:
    """The windows of one period of a cumulate window that end after an instant."""
    inner = edges_in(step, max(period.start, instant) + 1, period.end)
    return (Interval(period.start, end) for end in chain(inner, (period.end,)))


def _fixed(window: FixedWindow, index: int) -> Interval:
    start = index * window.slide + window.origin
    return Interval(start, start + window.range)


def _calendar(window: CalendarWindow, index: int) -> Interval:
    """The window that begins at an edge of the step; empty where a zone skipped its days."""
    step = window.step
    first = step.unit.first_day(index * step.count + step.anchor)
    last = window.range_unit.later(first, window.range_count)
    zone, offset = window.zone, window.offset
    return Interval(to_instant(zone, first * DAY_SECONDS + offset), to_instant(zone, last * DAY_SECONDS + offset))


def _first_ending_after(window: CalendarWindow, instant: int) -> int:
    """The index of the first window that ends after an instant."""
    longest = window.range_count * (1 if window.range_unit is Unit.DAY else 31)
    day = (to_local(window.zone, instant) - window.offset) // DAY_SECONDS
    # A wall clock may have shown a later time before: it has been set back by up to a whole day.
    indexes = range(_index(window, day - longest), _index(window, day + 2))
    return indexes.start + bisect_right(indexes, instant, key=lambda index: _calendar(window, index).end)


def _index(window: CalendarWindow, day: int) -> int:
    """The index of the last window that begins by a local day."""
    return (window.step.unit.holding(day) - window.step.anchor) // window.step.count
