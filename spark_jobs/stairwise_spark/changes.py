"""What differs between two versions of a source, in the slices of a rollup, by the most exact way that there is.

The log of a Delta table says which files came and went, or its change data feed which rows did; files are listed. Where
neither is to be had, the declared lookback says what to recheck, and without one everything is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from stairwise.edges import EdgeSet
from stairwise.span import Cadence, Lookback, Span
from stairwise.window import Unit
from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.changed import Changes, Way
from stairwise_spark.delta_changes import delta_changes
from stairwise_spark.errors import translating
from stairwise_spark.file_changes import file_changes, listing_of
from stairwise_spark.listing import Listing
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import common, in_whole_slices, joined

__all__ = ["Changes", "Listing", "Recheck", "Way", "after", "before", "changes", "listing_of"]

# 1970-01-01 was a Thursday.
_MONDAY = 4 * DAY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """What is rechecked where the source cannot tell what changed.

    Attributes:
        lookbacks: As declared.
        now: When the run is, in seconds.
        last: For each lookback, by its text, when it was last done; none: never.
    """

    lookbacks: tuple[Lookback, ...] = ()
    now: int = 0
    last: Mapping[str, int] = field(default_factory=dict[str, int])

    def due(self) -> tuple[Lookback, ...]:
        """Those that are due: each run, or in the first run of an hour, a day or a week from Monday, in UTC."""
        return tuple(each for each in self.lookbacks if self._is_due(each))

    def _is_due(self, lookback: Lookback) -> bool:
        last = self.last.get(str(lookback))
        return (
            lookback.cadence is Cadence.RUN
            or last is None
            or _period(lookback.cadence, last) < _period(lookback.cadence, self.now)
        )


def changes(
    source: PinnedSource,
    since: int | None,
    slices: EdgeSet,
    within: Sequence[Interval],
    recheck: Recheck | None = None,
    files: tuple[Listing, Listing] | None = None,
) -> Changes:
    """What differs between a version of the source and the pinned one.

    Args:
        source: As it is now.
        since: The version that is known; None: there are no versions, or it is not comparable.
        slices: The edges of the finest slices.
        within: The event time in question; what happened at other times is not looked at.
        recheck: What to recheck where the source cannot tell.
        files: Of a source of files what is known, and what :func:`listing_of` gives by that.

    Raises:
        RunError: Spark cannot look.
    """
    asked = joined(within)
    if not asked:
        return Changes(spans=(), way=Way.UNCHANGED, why="nothing was asked for", late_rows=0, fewer_rows=0)
    if source.version is None and files is not None:
        return file_changes(source, *files, slices, asked)
    if source.version is None or since is None:
        return _looked_back(slices, asked, recheck or Recheck(), "the source has no versions")
    if since == source.version:
        return Changes(
            spans=(), way=Way.UNCHANGED, why=f"the source is still at version {since}", late_rows=0, fewer_rows=0
        )
    with translating():
        found = delta_changes(source, since, source.version, slices, asked)
    return found if isinstance(found, Changes) else _looked_back(slices, asked, recheck or Recheck(), found.why)


def _looked_back(slices: EdgeSet, within: Sequence[Interval], recheck: Recheck, reason: str) -> Changes:
    """What the lookbacks that are due cover, counted back from the end of the time in question."""
    if not recheck.lookbacks:
        return Changes(spans=tuple(within), way=Way.EVERYTHING, why=f"{reason}, and no lookback is declared")
    due = recheck.due()
    end = within[-1].end
    spans = common(in_whole_slices(slices, [Interval(before(end, each.span), end) for each in due]), within)
    said = " and ".join(str(each) for each in due) or "no lookback is due"
    return Changes(
        spans=spans,
        way=Way.LOOKBACK,
        why=f"{reason}, so what is declared as lookback: {said}",
        rechecked=tuple(str(each) for each in due),
    )


def _period(cadence: Cadence, instant: int) -> int:
    """The number of the hour, day or week of an instant; each run is one of its own."""
    match cadence:
        case Cadence.RUN:
            return instant
        case Cadence.HOURLY:
            return instant // 3_600
        case Cadence.DAILY:
            return instant // DAY_SECONDS
        case Cadence.WEEKLY:
            return (instant - _MONDAY) // (7 * DAY_SECONDS)
        case _:
            assert_never(cadence)


def after(start: int, span: Span) -> int:
    """The instant a span after another; months go on to the same day of a month in UTC, or to its last one."""
    if not span.months:
        return start + span.seconds
    day, second = divmod(start, DAY_SECONDS)
    return Unit.MONTH.later(day, span.months) * DAY_SECONDS + second


def before(end: int, span: Span) -> int:
    """The instant a span before another; months go back to the same day of a month in UTC, or to its last one."""
    if not span.months:
        return end - span.seconds
    day, second = divmod(end, DAY_SECONDS)
    return Unit.MONTH.later(day, -span.months) * DAY_SECONDS + second
