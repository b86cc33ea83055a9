"""The coverage of a tier over time, as cells of a picture; computed from what runs have left.

Whether the windows that end in a second are there, says the last report that speaks of them, as long as its run may
have been at work when the run of ``covered.json`` looked. Else that file says it, which also knows what runs did of
which no report is here, and what was emptied since.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby, pairwise
from typing import NamedTuple, TypeVar

from stairwise.windowing import Interval
from stairwise_airflow.reports import Covered, Report

_Mark = TypeVar("_Mark")
_EVER = 2**63  # beyond every instant


class State(Enum):
    """What a stretch of time is like, for a tier."""

    WRITTEN = "written"
    EXPIRED = "expired"
    STALE = "stale"
    GAP = "gap"
    OPEN = "open"
    NOTHING = "nothing"

    @property
    def meaning(self) -> str:
        """In words."""
        return _MEANINGS[self]


_MEANINGS = {
    State.WRITTEN: "written: all windows that ended in it are there, but for those that have expired",
    State.EXPIRED: "expired: kept as long as was declared",
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
        state: What they are like; the worst that is true of a part, and written where nothing is wrong and a part is.
        is_rewritten: Whether a part has been written again.
    """

    span: Interval
    state: State
    is_rewritten: bool


EARLIER = -1
"""Instead of the number of a run: one of which no report is here."""


class _Event(NamedTuple):
    """A stretch of time, the last run that tells of it, and whether it has written the windows, or they have gone."""

    start: int
    end: int
    run: int
    is_there: bool


class Written(NamedTuple):
    """A stretch of time, and the number of the last run that wrote it, or EARLIER."""

    start: int
    end: int
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What runs have written of a tier, and is there.

    Attributes:
        last: In order and disjoint: by which run each stretch was written last.
        covered: The same, neighbours as one.
        rewritten: What of that was written more than once.
        reach: What each run was for that has written something of it: there, it has left nothing to do.
        expired: What has gone, since it was kept as long as was declared.
    """

    last: tuple[Written, ...]
    covered: tuple[Interval, ...]
    rewritten: tuple[Interval, ...]
    reach: Mapping[int, Interval] = field(default_factory=dict[int, Interval])
    expired: tuple[Interval, ...] = ()

    @property
    def done(self) -> tuple[Interval, ...]:
        """What is covered or has expired: nobody has to do anything there."""
        return union((*self.covered, *self.expired)) if self.expired else self.covered

    @property
    def gaps(self) -> tuple[Interval, ...]:
        """Between what is done."""
        return tuple(Interval(one.end, other.start) for one, other in pairwise(self.done))

    @property
    def end(self) -> int | None:
        """How far it reaches; None: nothing was written."""
        return self.done[-1].end if self.done else None

    def run_at(self, start: int, end: int) -> int | None:
        """The last run that wrote the windows that end in a range, or EARLIER; None: a part of it was not written."""
        if not any(span.start <= start and end <= span.end for span in self.covered):
            return None
        return max((each.run for each in self.last if each.start < end and start < each.end), default=None)


def coverages(reports: Sequence[Report], tiers: Iterable[str], told: Covered | None = None) -> dict[str, Coverage]:
    """What is there of tiers, by the reports of runs, the oldest first, and by what one of them has told of all.

    Work: what is written behind all before takes constant time; what lies between takes a search.
    """
    found = {tier: _Fold() for tier in tiers}
    for run, report in enumerate(reports):
        for tier, spans in ((done.name, done.covered) for done in report.tiers if done.name in found):
            for span in spans:
                found[tier].write(run, report.span, span)
        for tier, spans in ((tier, spans) for tier, spans in report.expired if tier in found):
            for span in spans:
                found[tier].add(run, span, is_there=False)
    if told is None:
        return {tier: fold.coverage(fold.events) for tier, fold in found.items()}
    newer = {run for run, report in enumerate(reports) if not told.knows(report)}
    held, gone = dict(told.tiers), dict(told.expired)
    return {
        tier: fold.coverage(_ruled(fold.events, newer, union(held.get(tier, ())), union(gone.get(tier, ()))))
        for tier, fold in found.items()
    }


@dataclass(slots=True)
class _Fold:
    """What became of a tier, as far as reports have been read."""

    events: list[_Event] = field(default_factory=list[_Event])
    rewritten: list[Interval] = field(default_factory=list[Interval])
    reach: dict[int, Interval] = field(default_factory=dict[int, Interval])

    def write(self, run: int, reach: Interval, span: Interval) -> None:
        """A run has written the windows that end in a range."""
        if span.start < span.end:
            self.reach[run] = reach
            self.rewritten += [Interval(*each[:2]) for each in self.add(run, span, is_there=True) if each.is_there]

    def add(self, run: int, span: Interval, *, is_there: bool) -> Sequence[_Event]:
        """A run tells this of a range; what was told of it before."""
        start, end = span
        events, new = self.events, _Event(start, end, run, is_there)
        if start >= end:
            return ()
        if not events or events[-1].end <= start:
            events.append(new)
            return ()
        first = bisect_right(events, start, key=lambda each: each.end)
        after = bisect_left(events, end, key=lambda each: each.start)
        old = events[first:after]
        left = [each._replace(end=start) for each in old if each.start < start]
        right = [each._replace(start=end) for each in old if each.end > end]
        events[first:after] = [*left, new, *right]
        return [each._replace(start=max(each.start, start), end=min(each.end, end)) for each in old]

    def coverage(self, events: Sequence[_Event]) -> Coverage:
        """What it comes to, if this is true by now."""
        last = tuple(Written(*each[:3]) for each in events if each.is_there)
        covered = union(each[:2] for each in last)
        again = _events(union(self.rewritten), is_there=True)
        return Coverage(
            last=last,
            covered=covered,
            rewritten=tuple(Interval(*each[:2]) for each in _within(again, covered)),
            reach=self.reach,
            expired=union(each[:2] for each in events if not each.is_there),
        )


def _ruled(
    events: Sequence[_Event], newer: Collection[int], held: Sequence[Interval], gone: Sequence[Interval]
) -> list[_Event]:
    """What is true after a run looked: what it saw, but where newer runs tell of something.

    Args:
        events: What all runs tell.
        newer: Those runs of which it may not have seen all.
        held: What was there.
        gone: What had expired.
    """
    written = [each for each in events if each.is_there and each.run not in newer]
    seen = _over(_over(_events(gone, is_there=False), _events(held, is_there=True)), [*_within(written, held)])
    return _over(seen, [each for each in events if each.run in newer])


def _events(spans: Iterable[Interval], *, is_there: bool) -> list[_Event]:
    return [_Event(*span, EARLIER, is_there) for span in spans]


def _over(events: Sequence[_Event], newer: Sequence[_Event]) -> list[_Event]:
    """What is told last; each is in order and disjoint."""
    edges = [-_EVER, *(edge for span in union(each[:2] for each in newer) for edge in span), _EVER]
    silent = [Interval(*span) for span in zip(edges[::2], edges[1::2], strict=True)]
    return sorted((*_within(events, silent), *newer))


def _within(events: Iterable[_Event], spans: Sequence[Interval]) -> Iterator[_Event]:
    """What of them is in ranges; each is in order and disjoint."""
    first = 0
    for event in events:
        while first < len(spans) and spans[first].end <= event.start:
            first += 1
        at = first
        while at < len(spans) and spans[at].start < event.end:
            yield event._replace(start=max(event.start, spans[at].start), end=min(event.end, spans[at].end))
            at += 1


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
    if tier.done:
        _mark(states, span, Interval(span.start, tier.done[0].start), mark=State.NOTHING)
    found = {State.EXPIRED: tier.expired, State.WRITTEN: tier.covered, State.STALE: is_stale, State.GAP: tier.gaps}
    for state, spans in found.items():
        for each in spans:
            _mark(states, span, each, mark=state)
    again = [False] * number
    for each in tier.rewritten:
        _mark(again, span, each, mark=True)
    edges = [span.start + (span.end - span.start) * index // number for index in range(number + 1)]
    every = [Cell(Interval(edges[index], edges[index + 1]), states[index], again[index]) for index in range(number)]
    return [_merged(list(alike)) for _, alike in groupby(every, key=lambda cell: (cell.state, cell.is_rewritten))]


def _mark(marks: list[_Mark], span: Interval, part: Interval, *, mark: _Mark) -> None:
    """Mark each stretch that shares an instant with a part of the range."""
    length = span.end - span.start
    start, end = max(part.start, span.start) - span.start, min(part.end, span.end) - span.start
    if start < end:
        for index in range(start * len(marks) // length, -(-end * len(marks) // length)):
            marks[index] = mark


def _merged(alike: Sequence[Cell]) -> Cell:
    return Cell(Interval(alike[0].span.start, alike[-1].span.end), alike[0].state, alike[0].is_rewritten)
