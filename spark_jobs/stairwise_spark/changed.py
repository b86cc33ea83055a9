"""What differs between two versions of a source: the answer, however it was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval


class Way(Enum):
    """How it was found out what changed, the most exact way first."""

    UNCHANGED = "unchanged"
    LOG = "log"
    FEED = "change data feed"
    LISTING = "listing"
    STATISTICS = "statistics"
    LOOKBACK = "lookback"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs between two versions of a source.

    Attributes:
        spans: Event time in whole seconds, in order and apart; outside of them no row that the rollup uses differs.
        way: How it was found out.
        why: One short sentence for people.
        late_rows: How many more rows there are in the slices that have more than before; None: nobody counted.
        files: How many files were opened for it; None: nobody says.
        bytes: How large these are.
        rechecked: The lookbacks that were due, as they are declared; whoever keeps when must do so once all is written.
    """

    spans: tuple[Interval, ...]
    way: Way
    why: str
    late_rows: int | None = None
    files: int | None = 0
    bytes: int | None = 0
    rechecked: tuple[str, ...] = ()


def joined(spans: Iterable[Interval]) -> tuple[Interval, ...]:
    """The spans in order, those that overlap or touch as one, without empty ones.

    >>> joined([Interval(5, 6), Interval(0, 2), Interval(2, 4), Interval(3, 3)])
    (Interval(start=0, end=4), Interval(start=5, end=6))
    """
    found: list[Interval] = []
    for each in sorted(spans):
        if each.start >= each.end:
            continue
        if found and each.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, each.end))
        else:
            found.append(each)
    return tuple(found)


def fewer(spans: Sequence[Interval], most: int) -> tuple[Interval, ...]:
    """At most so many spans, that hold the given ones; the shortest gaps between neighbours are given up.

    >>> fewer([Interval(0, 1), Interval(5, 6), Interval(8, 9)], 2)
    (Interval(start=0, end=1), Interval(start=5, end=9))
    """
    known = joined(spans)
    if len(known) <= most:
        return known
    gaps = sorted(range(1, len(known)), key=lambda place: known[place - 1].end - known[place].start)
    cuts = [0, *sorted(gaps[: most - 1]), len(known)]
    return tuple(Interval(known[first].start, known[end - 1].end) for first, end in pairwise(cuts))


def common(spans: Sequence[Interval], within: Sequence[Interval]) -> tuple[Interval, ...]:
    """The spans of some that meet others, whole.

    >>> common([Interval(0, 5), Interval(6, 8)], [Interval(4, 5), Interval(8, 9)])
    (Interval(start=0, end=5),)
    """
    others, found, place = joined(within), list[Interval](), 0
    for each in joined(spans):
        while place < len(others) and others[place].end <= each.start:
            place += 1
        if place < len(others) and others[place].start < each.end:
            found.append(each)
    return tuple(found)


def cut(spans: Sequence[Interval], within: Sequence[Interval]) -> tuple[Interval, ...]:
    """What spans have in common with others.

    >>> cut([Interval(0, 5), Interval(6, 8)], [Interval(4, 7), Interval(8, 9)])
    (Interval(start=4, end=5), Interval(start=6, end=7))
    """
    left, right, found = joined(spans), joined(within), list[Interval]()
    i = j = 0
    while i < len(left) and j < len(right):
        found.append(Interval(max(left[i].start, right[j].start), min(left[i].end, right[j].end)))
        if left[i].end <= right[j].end:
            i += 1
        else:
            j += 1
    return joined(found)


def in_whole_slices(slices: EdgeSet, spans: Iterable[Interval]) -> tuple[Interval, ...]:
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
