"""Which windows a run of a DAG writes: settled before Spark starts, from what Airflow knows of the run.

A scheduled run brings up to date all that is due by its interval's end, late rows of earlier intervals among it. A
backfill run, and one that was given a start, does its range and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from stairwise.errors import DeclarationError
from stairwise.instant import format_instant, parse_instant
from stairwise.window_text import parse_window
from stairwise.windowing import windows_at
from stairwise_airflow.errors import refusal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Extent(Enum):
    """How far back a scheduled run reaches."""

    COVERED = "covered"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Range:
    """The windows that end in (start, end], whatever was done before."""

    start: int
    end: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the engine's command takes it."""
        return ("--start", format_instant(self.start), "--end", format_instant(self.end))

    def __str__(self) -> str:
        """The range for people."""
        return f"windows that end from {format_instant(self.start)} to {format_instant(self.end)}"


@dataclass(frozen=True, slots=True)
class UpTo:
    """All that is due by `end`, back to `since` or to what tables hold already, whichever is earlier."""

    since: int
    end: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the engine's command takes it."""
        return ("--since", format_instant(self.since), "--end", format_instant(self.end))

    def __str__(self) -> str:
        """The reach for people."""
        return f"all that is new or changed until {format_instant(self.end)}"


@dataclass(frozen=True, slots=True)
class Everything:
    """All that is due by `end`, back to the first event."""

    end: int

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the engine's command takes it."""
        return ("--end", format_instant(self.end))

    def __str__(self) -> str:
        """The reach for people."""
        return f"everything until {format_instant(self.end)}"


Reach = Range | UpTo | Everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What Airflow knows of a run.

    Attributes:
        start: What the task or the one who triggered it named as the start; None or empty: nothing.
        end: And as the end.
        interval: The data interval; None: the run has none.
        partition: The date of its partition; None: it has none.
        due: When the run was due.
        is_backfill: Whether a backfill made it.
        cron: The cron expression or period of a timetable that gives no intervals; None: it does, or need not.
    """

    start: str | None
    end: str | None
    interval: tuple[datetime, datetime] | None
    partition: datetime | None
    due: datetime
    is_backfill: bool
    cron: str | None


def settle(occasion: Occasion, grain: str | None, extent: Extent) -> Reach:
    """The windows that the run writes.

    Raises:
        AirflowFailException: The run names no range, or one that is empty.
    """
    given_start, given_end = instant(occasion.start, "start"), instant(occasion.end, "end")
    if given_start is not None:
        return _range(given_start, seconds(occasion.due) if given_end is None else given_end)
    if given_end is not None:
        return UpTo(given_end, given_end)
    if occasion.partition is not None:
        found = _partition(occasion.partition, grain)
    elif occasion.interval is not None:
        found = Range(*map(seconds, occasion.interval))
    else:
        found = Range(seconds(occasion.due), seconds(occasion.due))
    if found.start == found.end and occasion.partition is None and occasion.cron is not None:
        raise _no_interval(occasion.cron)
    if occasion.is_backfill:
        return _range(found.start, found.end)
    return Everything(found.end) if extent is Extent.EVERYTHING else UpTo(found.start, found.end)


def _range(start: int, end: int) -> Range:
    if start >= end:
        raise refusal(
            f"the range from {format_instant(start)} to {format_instant(end)} is empty.",
            hint="let end be later than start.",
        )
    return Range(start, end)


def _partition(date: datetime, grain: str | None) -> Range:
    if grain is None:
        raise refusal(
            f"the run is for the partition of {format_instant(seconds(date))}, and nothing says how long that is.",
            hint="RollupOperator(grain='1h'), with the window that a partition is.",
        )
    (found, *_) = windows_at(parse_window(grain), seconds(date))
    return Range(found.start, found.end)


def _no_interval(cron: str) -> Exception:
    return refusal(
        f"the schedule '{cron}' gives its runs an empty data interval, so there is nothing to write.",
        hint=f'schedule=CronDataIntervalTimetable("{cron}", timezone="UTC"), from airflow.sdk.'
        if not cron.startswith("every ")
        else "schedule=DeltaDataIntervalTimetable(...), from airflow.sdk.",
    )


def instant(text: str | None, name: str) -> int | None:
    """The instant that a text names; None: it names nothing, as a template that has nothing to show.

    Raises:
        AirflowFailException: It names something else.
    """
    if not text or text == "None":
        return None
    try:
        # Date pickers write fractions of a second that are none.
        return parse_instant(re.sub(r"\.0+(?=Z|[+-]|$)", "", text))
    except DeclarationError as error:
        raise refusal(f"{name}: {error.message}", error.hint) from error


def seconds(moment: datetime) -> int:
    """The instant of a moment of Airflow's, in whole seconds."""
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(seconds=1)
