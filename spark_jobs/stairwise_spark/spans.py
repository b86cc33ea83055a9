"""Disjoint ranges of time in order: what is due, what is there, and what has to be read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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
WORD, _BYTES = 56, 7
"""So many cells are a word: as many whole bytes as a BIGINT has without its sign."""


class Mask(NamedTuple):
    """Some ranges as cells of a grid, from the start of the first to the end of the last.

    Attributes:
        begin: Where the first cell begins.
        step: How long each is.
        cells: A bit for each, which is 1 if the cell is in one of the ranges; the first cell is the lowest bit.
    """

    begin: int
    step: int
    cells: int

    @property
    def words(self) -> str:
        """The cells in SQL, as an array of numbers, each of which holds `WORD` of them.

        It does not depend on a row, so it is made once, and to look into it makes nothing new.
        """
        size = max(1, -(-self.cells.bit_length() // WORD)) * _BYTES
        cells = self.cells.to_bytes(size, "little")
        words = (int.from_bytes(cells[at : at + _BYTES], "little") for at in range(0, size, _BYTES))
        return f"array({', '.join(f'{word}L' for word in words)})"


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
    """The ranges as cells of the widest grid that has all their bounds; None: there would be too many.

    >>> mask = masked((Interval(10, 20), Interval(40, 60)))
    >>> mask.begin, mask.step, f"{mask.cells:b}"
    (10, 10, '11001')
    """
    begin, end = hull(spans)
    step = gcd(*(bound - begin for span in spans for bound in span))
    if not step or (end - begin) // step > most:
        return None
    cells = bytearray(b"0" * ((end - begin) // step))
    for span in spans:
        first, last = (span.start - begin) // step, (span.end - begin) // step
        cells[first:last] = b"1" * (last - first)
    return Mask(begin, step, int(cells[::-1], 2))


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
    """Whether a range meets one of some others, which are looked up, however many they are.

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
