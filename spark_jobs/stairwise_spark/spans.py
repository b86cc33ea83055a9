"""Disjoint ranges of time in order: what is due, what is there, and what has to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from stairwise.windowing import Interval

Spans = tuple[Interval, ...]
"""Ranges that are not empty, in order, of which no two touch."""


def joined(ranges: Iterable[Interval]) -> Spans:
    """The same ranges in order, neighbours as one.

    >>> joined((Interval(5, 7), Interval(0, 2), Interval(2, 3), Interval(6, 6)))
    (Interval(start=0, end=3), Interval(start=5, end=7))
    """
    found: list[Interval] = []
    for span in sorted(each for each in ranges if each.start < each.end):
        if found and span.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def common(one: Sequence[Interval], other: Sequence[Interval]) -> Spans:
    """What is in both.

    >>> common((Interval(0, 10), Interval(20, 30)), (Interval(5, 25),))
    (Interval(start=5, end=10), Interval(start=20, end=25))
    """
    found: list[Interval] = []
    first, second = 0, 0
    while first < len(one) and second < len(other):
        start, end = max(one[first].start, other[second].start), min(one[first].end, other[second].end)
        if start < end:
            found.append(Interval(start, end))
        if one[first].end < other[second].end:
            first += 1
        else:
            second += 1
    return tuple(found)


def without(one: Sequence[Interval], other: Sequence[Interval]) -> Spans:
    """What is in the first only.

    >>> without((Interval(0, 10),), (Interval(2, 3), Interval(8, 20)))
    (Interval(start=0, end=2), Interval(start=3, end=8))
    """
    if not one or not other:
        return tuple(one)
    least, most = min(one[0].start, other[0].start), max(one[-1].end, other[-1].end)
    edges = [least, *(edge for span in other for edge in span), most]
    outside = [Interval(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
    return common(one, outside)


def hull(ranges: Sequence[Interval]) -> Interval:
    """From the start of the first to the end of the last; empty if there is none."""
    return Interval(ranges[0].start, ranges[-1].end) if ranges else Interval(0, 0)


def merged(ranges: Sequence[Interval], most: int) -> Spans:
    """At most so many ranges that hold these: those nearest to each other become one.

    >>> merged((Interval(0, 1), Interval(2, 3), Interval(9, 10)), 2)
    (Interval(start=0, end=3), Interval(start=9, end=10))
    """
    if len(ranges) <= most:
        return tuple(ranges)
    gaps = sorted((later.start - earlier.end, earlier.end) for earlier, later in pairwise(ranges))
    closed = {end for _, end in gaps[: len(ranges) - most]}
    return joined([*ranges, *(Interval(one.end, other.start) for one, other in pairwise(ranges) if one.end in closed)])
