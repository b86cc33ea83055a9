"""What a run is asked for, and which windows that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from stairwise.errors import UsageError
from stairwise.names import nearest
from stairwise.plan import Plan
from stairwise.rollup import Rollup
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.compute import touched
from stairwise_spark.coverage import Coverage, partial_at
from stairwise_spark.due import BEGINNING, available
from stairwise_spark.spans import Spans, joined, without


@dataclass(frozen=True, slots=True)
class History:
    """All windows: those for which the source has events, and those before and since, which are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is new and what has changed, from the first window on that was ever made.

    Attributes:
        until: Windows that end by this instant; None: that have ended by now.
        since: Windows that end after it, though none was ever made before; None: all, if none was ever made.
    """

    until: int | None = None
    since: int | None = None


Scope = Interval | History | Due


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run is asked for.

    Attributes:
        span: The windows that end in (start, end] of a range, all of history, or what is due.
        chunk_s: Event time that is done at once; None: as much as fits.
        newest_first: Whether the last chunk comes first.
        restate: Whether windows are made again that are there.
        tiers: Only these of the declared tiers; none: all.
        is_dry: Whether to say what would be done, and not to do it.
        accepts_deletes: Whether windows may lose their rows, however many they are.
        is_ahead: Whether tables are filled by a plan that does not rule them yet.
    """

    span: Scope = History()
    chunk_s: int | None = None
    newest_first: bool = False
    restate: bool = False
    tiers: tuple[str, ...] = ()
    is_dry: bool = False
    accepts_deletes: bool = False
    is_ahead: bool = False

    def wants(self, tier: str) -> bool:
        """Whether a tier is to be written."""
        return not self.tiers or tier in self.tiers


def check_tiers(tiers: Sequence[str], known: Sequence[str]) -> None:
    """Refuse what is no tier.

    Raises:
        UsageError: One is not; the text says which may be meant.
    """
    for name in tiers:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean '{close}'?" if close else f"there are {', '.join(known)}."
            raise UsageError(f"there is no tier '{name}'.", hint=hint)


def settled(scope: Scope, rollup: Rollup, known: Iterable[Coverage]) -> Interval:
    """What is asked for as one range, as far as windows have ended, and not before the declaration's start.

    Args:
        scope: What was asked for.
        rollup: The declaration.
        known: What tiers reflect.
    """
    now = int(time.time()) - rollup.delay.seconds
    match scope:
        case Interval():
            start, end = scope
        case History():
            start, end = BEGINNING, now
        case Due():
            start, end = _first(scope, known), now if scope.until is None else scope.until
        case _:
            assert_never(scope)
    start = start if rollup.start is None else max(start, rollup.start)
    return Interval(start, max(start, min(end, now)))


def _first(scope: Due, known: Iterable[Coverage]) -> int:
    """Where windows begin that a scheduled run looks after."""
    starts = [coverage.stretches[0].start for coverage in known if coverage.stretches]
    if scope.since is not None:
        starts.append(scope.since)
    return min(starts, default=BEGINNING)


def still_open(
    plan: Plan, request: Request, end: int, version: int, coverage_of: Callable[[str], Coverage]
) -> dict[str, Spans]:
    """The windows that have begun by the end of what is asked for, and end later, as ranges of their ends.

    Not those that are whole already, nor all, if they are as they should.

    Args:
        plan: All tiers; of them those that are declared.
        request: Which of these are wanted.
        end: Of what is asked for.
        version: Of the source.
        coverage_of: What a tier reflects.
    """
    found: dict[str, Spans] = {}
    for step in plan.steps:
        if step.tier.kind is Kind.DECLARED and request.wants(step.tier.name):
            begun = joined([Interval(end, touched(step.tier, Interval(end - 1, end)).end)])
            coverage = coverage_of(step.tier.name)
            begun = joined(gap for span in begun for gap in coverage.gaps(span))
            if without(begun, available(coverage, partial_at(version))):
                found[step.tier.name] = begun
    return found
