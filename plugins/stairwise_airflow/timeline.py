"""The coverage of a tier over time, as cells of a picture; computed from the reports of runs alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import NamedTuple, TypeVar

from stairwise.windowing import Interval
from stairwise_airflow.reports import Report

_Mark = TypeVar("_Mark")


class State(Enum):
    """What a stretch of time is like, for a tier."""

    WRITTEN = "written"
    STALE = "stale"
    GAP = "gap"
    OPEN = "open"
    NOTHING = "nothing"

    @property
    def meaning(self) -> str:
        """In words."""
        return _MEANINGS[self]


_MEANINGS = {
    State.WRITTEN: "written: all windows that ended in it are there",
    State.STALE: "stale: what it is made of was written again since",
    State.GAP: "gap: between times that are there",
    State.OPEN: "open: not written yet",
    State.NOTHING: "before the first window",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """Some neighbouring stretches that are alike.

    Attributes:
        span: From when to when.
        state: What they are like; the worst thing that is true of a part.
        is_rewritten: Whether a part has been written again.
    """

    span: Interval
    state: State
    is_rewritten: bool


EARLIER = -1
"""Instead of the number of a run: one of which no report is here."""


class Written(NamedTuple):
    """A stretch of time, and the number of the last run that wrote it, or EARLIER."""

    start: int
    end: int
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What runs have written of a tier.

    Attributes:
        last: In order and disjoint: by which run each stretch was written last.
        covered: The same, neighbours as one.
        rewritten: What was written more than once.
        reach: What each run was for that has written something of it: there, it has left nothing to do.
    """

    last: tuple[Written, ...]
    covered: tuple[Interval, ...]
    rewritten: tuple[Interval, ...]
    reach: Mapping[int, Interval] = field(default_factory=dict[int, Interval])

    @property
    def gaps(self) -> tuple[Interval, ...]:
        """Between what is covered."""
        return tuple(Interval(one.end, other.start) for one, other in zip(self.covered, self.covered[1:], strict=False))

    @property
    def end(self) -> int | None:
        """How far it reaches; None: nothing was written."""
        return self.covered[-1].end if self.covered else None

    def run_at(self, start: int, end: int) -> int | None:
        """The last run that wrote the windows that end in a range, or EARLIER; None: a part of it was not written."""
        if not any(span.start <= start and end <= span.end for span in self.covered):
            return None
        return max((each.run for each in self.last if each.start < end and start < each.end), default=None)


def coverages(
    reports: Sequence[Report], tiers: Iterable[str], known: Mapping[str, Iterable[Interval]] | None = None
) -> dict[str, Coverage]:
    """What the reports of runs say of tiers, the oldest first; what else is known to be there was written earlier.

    Work: what is written behind all before takes constant time; what lies between takes a search.
    """
    found = {tier: _Fold() for tier in tiers}
    for run, report in enumerate(reports):
        for done in report.tiers:
            fold = found.get(done.name)
            if fold is not None:
                for span in done.covered:
                    fold.add(run, report.span, span)
    return {tier: fold.coverage((known or {}).get(tier, ())) for tier, fold in found.items()}


@dataclass(slots=True)
class _Fold:
    """The coverage of a tier, as far as reports have been read."""

    last: list[Written] = field(default_factory=list[Written])
    rewritten: list[Interval] = field(default_factory=list[Interval])
    reach: dict[int, Interval] = field(default_factory=dict[int, Interval])

    def add(self, run: int, reach: Interval, span: Interval) -> None:
        """A run has written the windows that end in a range."""
        start, end = span
        if start >= end:
            return
        self.reach[run] = reach
        last = self.last
        if not last or last[-1].end <= start:
            last.append(Written(start, end, run))
            return
        first = bisect_right(last, start, key=lambda each: each.end)
        after = bisect_left(last, end, key=lambda each: each.start)
        old = last[first:after]
        self.rewritten += [Interval(max(each.start, start), min(each.end, end)) for each in old]
        left = [Written(each.start, start, each.run) for each in old if each.start < start]
        right = [Written(end, each.end, each.run) for each in old if each.end > end]
        last[first:after] = [*left, Written(start, end, run), *right]

    def coverage(self, known: Iterable[Interval]) -> Coverage:
        """What it is by now, with what else is known to be there."""
        written = union(each[:2] for each in self.last)
        earlier = [Written(*span, EARLIER) for span in _without(union(known), written)]
        return Coverage(
            last=tuple(sorted([*earlier, *self.last])),
            covered=union((*(each[:2] for each in earlier), *written)),
            rewritten=union(self.rewritten),
            reach=self.reach,
        )


def _without(spans: Iterable[Interval], others: Sequence[Interval]) -> Iterator[Interval]:
    """What of ranges is in none of others; both in order and disjoint."""
    for start, end in spans:
        at = start
        for other in others[bisect_right(others, start, key=lambda each: each.end) :]:
            if other.start >= end:
                break
            if at < other.start:
                yield Interval(at, other.start)
            at = other.end
        if at < end:
            yield Interval(at, end)


def union(spans: Iterable[tuple[int, int]]) -> tuple[Interval, ...]:
    """The same ranges in order, neighbours as one.

    >>> union([Interval(5, 7), Interval(0, 2), Interval(2, 3)])
    (Interval(start=0, end=3), Interval(start=5, end=7))
    """
    ordered = sorted(spans)
    if not ordered:
        return ()
    found: list[Interval] = []
    begin, reached = ordered[0]
    for start, end in ordered:
        if start > reached:
            found.append(Interval(begin, reached))
            begin = start
        reached = max(reached, end)
    return (*found, Interval(begin, reached))


def stale(tier: Coverage, parent: Coverage) -> tuple[Interval, ...]:
    """Where the parent was written by a later run than the tier, one that left the tier as it was.

    What a run has written of the parent need not change all that is made of it: where it looked after the tier too, it
    knew.

    >>> parent = Coverage(last=(Written(0, 3, 0), Written(3, 4, 2), Written(4, 9, 0)), covered=(), rewritten=())
    >>> stale(Coverage(last=(Written(0, 9, 1),), covered=(), rewritten=()), parent)
    (Interval(start=3, end=4),)
    >>> stale(Coverage(last=(Written(0, 9, 1),), covered=(), rewritten=(), reach={2: Interval(0, 9)}), parent)
    ()
    """
    found: list[Interval] = []
    first = 0
    for own in tier.last:
        while first < len(parent.last) and parent.last[first].end <= own.start:
            first += 1
        at = first
        while at < len(parent.last) and parent.last[at].start < own.end:
            other = parent.last[at]
            at += 1
            if other.run > own.run:
                both = Interval(max(own.start, other.start), min(own.end, other.end))
                found += _outside(both, tier.reach.get(other.run))
    return union(found)


def _outside(span: Interval, other: Interval | None) -> Iterator[Interval]:
    """What of a range is not in another one."""
    ends = span.end if other is None else min(span.end, other.start)
    begins = span.end if other is None else max(span.start, other.end)
    return (each for each in (Interval(span.start, ends), Interval(begins, span.end)) if each.start < each.end)


def cells(tier: Coverage, is_stale: Sequence[Interval], span: Interval, number: int) -> list[Cell]:
    """A range as so many stretches of equal length, neighbours that are alike as one."""
    states = [State.OPEN] * number
    if tier.covered:
        begin, end = tier.covered[0].start, tier.covered[-1].end
        _mark(states, span, Interval(span.start, begin), mark=State.NOTHING)
        _mark(states, span, Interval(begin, min(end, span.end)), mark=State.WRITTEN)
    for state, spans in ((State.STALE, is_stale), (State.GAP, tier.gaps)):
        for each in spans:
            _mark(states, span, each, mark=state)
    again = [False] * number
    for each in tier.rewritten:
        _mark(again, span, each, mark=True)
    edges = [span.start + (span.end - span.start) * index // number for index in range(number + 1)]
    found = [Cell(Interval(edges[index], edges[index + 1]), states[index], again[index]) for index in range(number)]
    return [_merged(list(alike)) for _, alike in groupby(found, key=lambda cell: (cell.state, cell.is_rewritten))]


def _mark(marks: list[_Mark], span: Interval, part: Interval, *, mark: _Mark) -> None:
    """Mark each stretch that shares an instant with a part of the range."""
    length = span.end - span.start
    start, end = max(part.start, span.start) - span.start, min(part.end, span.end) - span.start
    if start < end:
        for index in range(start * len(marks) // length, -(-end * len(marks) // length)):
            marks[index] = mark


def _merged(alike: Sequence[Cell]) -> Cell:
    return Cell(Interval(alike[0].span.start, alike[-1].span.end), alike[0].state, alike[0].is_rewritten)
