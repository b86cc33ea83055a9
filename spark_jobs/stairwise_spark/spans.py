"""Disjoint ranges of time in order: what is due, what is there, and what has to be read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval

Spans = tuple[Interval, ...]
"""Ranges that are not empty, in order, of which no two touch."""

FEW = 16
"""So many ranges are compared one by one; of more, all are looked up at once."""
_MOST_CELLS = 1_000_000
WORD = 63
"""So many cells are a word: the bits of a BIGINT without its sign."""


class Mask(NamedTuple):
    """Some ranges as cells of a grid, from the start of the first to the end of the last.

    Attributes:
        begin: Where the first cell begins.
        step: How long each is.
        cells: A byte for each, which is 1 if the cell is in one of the ranges, else 0.
    """

    begin: int
    step: int
    cells: bytes

    def words(self) -> Iterator[int]:
        """The cells as numbers of `WORD` bits each, of which the lowest is the first cell."""
        bits = self.cells.translate(_DIGITS)
        return (int(bits[at : at + WORD][::-1], 2) for at in range(0, len(bits), WORD))


_DIGITS = bytes.maketrans(b"\x00\x01", b"01")


def joined(ranges: Iterable[Interval]) -> Spans:
    """The same ranges in order, neighbours as one.

    >>> joined((Interval(5, 7), Interval(0, 2), Interval(2, 3), Interval(6, 6)))
    (Interval(start=0, end=3), Interval(start=5, end=7))
    """
    found: list[Interval] = []
    until = 0
    for span in sorted(ranges):
        start, end = span
        if start >= end:
            continue
        if not found or start > until:
            found.append(span)
            until = end
        elif end > until:
            found[-1] = Interval(found[-1].start, end)
            until = end
    return tuple(found)


def common(one: Sequence[Interval], other: Sequence[Interval]) -> Spans:
    """What is in both.

    >>> common((Interval(0, 10), Interval(20, 30)), (Interval(5, 25),))
    (Interval(start=5, end=10), Interval(start=20, end=25))
    """
    found: list[Interval] = []
    first, second = 0, 0
    while first < len(one) and second < len(other):
        (start, end), (begin, until) = one[first], other[second]
        if begin <= start < end <= until:
            found.append(one[first])
        elif max(start, begin) < min(end, until):
            found.append(Interval(max(start, begin), min(end, until)))
        if end < until:
            first += 1
        else:
            second += 1
    return tuple(found)


def without(one: Sequence[Interval], other: Sequence[Interval]) -> Spans:
    """What is in the first only.

    >>> without((Interval(0, 10),), (Interval(2, 3), Interval(8, 20)))
    (Interval(start=0, end=2), Interval(start=3, end=8))
    """
    if not other:
        return tuple(one)
    found, place = list[Interval](), 0
    for span in one:
        at, end = span
        while place < len(other) and other[place].start < end:
            begin, until = other[place]
            if at < begin:
                found.append(Interval(at, begin))
            at = max(at, until)
            if until > end:
                break
            place += 1
        if at < end:
            found.append(span if at == span.start else Interval(at, end))
    return tuple(found)


@lru_cache(maxsize=32)
def masked(spans: Spans, most: int = _MOST_CELLS) -> Mask | None:
    r"""The ranges as cells of the widest grid that has all their bounds; None: there would be too many.

    >>> mask = masked((Interval(10, 20), Interval(40, 60)))
    >>> mask, [f"{word:b}" for word in mask.words()]
    (Mask(begin=10, step=10, cells=b'\x01\x00\x00\x01\x01'), ['11001'])
    """
    begin, end = hull(spans)
    step = gcd(*(bound - begin for span in spans for bound in span))
    if not step or (end - begin) // step > most:
        return None
    cells = bytearray((end - begin) // step)
    for span in spans:
        first, last = (span.start - begin) // step, (span.end - begin) // step
        cells[first:last] = b"\x01" * (last - first)
    return Mask(begin, step, bytes(cells))


def hull(ranges: Sequence[Interval]) -> Interval:
    """From the start of the first to the end of the last; empty if there is none."""
    return Interval(ranges[0].start, ranges[-1].end) if ranges else Interval(0, 0)


def meeting(spans: Sequence[Interval], others: Sequence[Interval]) -> Spans:
    """The spans of some that meet others, whole.

    >>> meeting([Interval(0, 5), Interval(6, 8)], [Interval(4, 5), Interval(8, 9)])
    (Interval(start=0, end=5),)
    """
    known, found, place = joined(others), list[Interval](), 0
    for each in joined(spans):
        while place < len(known) and known[place].end <= each.start:
            place += 1
        if place < len(known) and known[place].start < each.end:
            found.append(each)
    return tuple(found)


def is_met(span: Interval, others: Sequence[Interval]) -> bool:
    """Whether a range, which is not empty, meets one of some others; these are looked up, however many they are.

    >>> is_met(Interval(2, 4), (Interval(0, 2), Interval(3, 9))), is_met(Interval(2, 4), (Interval(0, 2),))
    (True, False)
    """
    place = bisect_right(others, span.start, key=lambda each: each.end)
    return place < len(others) and others[place].start < span.end


def merged(spans: Iterable[Interval], most: int) -> Spans:
    """At most so many ranges that hold these; the shortest gaps between neighbours are given up.

    >>> merged((Interval(0, 1), Interval(2, 3), Interval(9, 10)), 2)
    (Interval(start=0, end=3), Interval(start=9, end=10))
    """
    known = joined(spans)
    if len(known) <= most:
        return known
    gaps = sorted(range(1, len(known)), key=lambda place: known[place - 1].end - known[place].start)
    cuts = [0, *sorted(gaps[: most - 1]), len(known)]
    return tuple(Interval(known[first].start, known[end - 1].end) for first, end in pairwise(cuts))


def in_whole_slices(slices: EdgeSet, spans: Iterable[Interval]) -> Spans:
    """The spans, each from the last edge before it to the first one behind it.

    >>> in_whole_slices(EdgeSet.of((60, 0)), [Interval(70, 120), Interval(150, 151)])
    (Interval(start=60, end=180),)
    """
    return joined(
        Interval(
            max(each.start - (each.start - residue) % modulus for modulus, residue in slices.classes),
            min(each.end + (residue - each.end) % modulus for modulus, residue in slices.classes),
        )
        for each in spans
    )
