"""Windows as values: what each kind is, which combinations are legal, and its canonical text.

Equal windows are equal values however they were spelled, and the text of a window parses back to it
(`stairwise.window_text`). Which instants a window covers is `stairwise.windowing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import assert_never

from stairwise.duration import LONGEST_SECONDS, Duration
from stairwise.errors import WindowError
from stairwise.zones import DAY_SECONDS, checked_zone

WEEK_SECONDS = 7 * DAY_SECONDS
MONDAY = 4  # 1970-01-05
WEEKDAYS = ("thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday")  # from 1970-01-01
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
LONGEST_MONTHS = 10_000 * 12
LONGEST_DAYS = 10_000 * 366

_EPOCH = date(1970, 1, 1).toordinal()
# The Gregorian calendar repeats after 400 years.
_CYCLE_MONTHS = 4_800
_CYCLE_DAYS = 146_097


class Unit(Enum):
    """What calendar spans are counted in. Units are numbered from 1970, and days from 1970-01-01."""

    DAY = "day"
    MONTH = "month"

    def first_day(self, index: int) -> int:
        """Returns the day that the unit begins with.

        >>> Unit.MONTH.first_day(-1), Unit.MONTH.first_day(1)
        (-31, 31)
        """
        if self is Unit.DAY:
            return index
        cycles, month = divmod(index, _CYCLE_MONTHS)
        return cycles * _CYCLE_DAYS + date(1970 + month // 12, month % 12 + 1, 1).toordinal() - _EPOCH

    def holding(self, day: int) -> int:
        """Returns the unit that a day is in.

        >>> Unit.MONTH.holding(-1), Unit.MONTH.holding(31)
        (-1, 1)
        """
        if self is Unit.DAY:
            return day
        cycles, rest = divmod(day, _CYCLE_DAYS)
        found = date.fromordinal(rest + _EPOCH)
        return cycles * _CYCLE_MONTHS + (found.year - 1970) * 12 + found.month - 1

    def later(self, day: int, count: int) -> int:
        """Returns the day that lies `count` units after a day: the same day of the month, or the month's last.

        >>> Unit.MONTH.later(30, 1)  # January 31 to February 28
        58
        """
        if self is Unit.DAY:
            return day + count
        month = self.holding(day)
        target = self.first_day(month + count)
        return min(target + day - self.first_day(month), self.first_day(month + count + 1) - 1)


@dataclass(frozen=True, slots=True)
class FixedSpan:
    """A fixed length of time whose multiples, counted from the anchor, are edges.

    Attributes:
        seconds: The length.
        anchor: The first edge at or after 1970-01-01T00:00Z; 4 days for lengths written in weeks.
    """

    seconds: int
    anchor: int = 0

    def __str__(self) -> str:
        """The text of the length alone."""
        return str(Duration(self.seconds))


@dataclass(frozen=True, slots=True)
class CalendarSpan:
    """A whole number of local days or months whose multiples, counted from the anchor, are edges.

    >>> str(CalendarSpan(Unit.DAY, 14, 3)), str(CalendarSpan(Unit.MONTH, 12, 3))
    ('2 weeks from sunday', 'year from april')

    Attributes:
        unit: What is counted.
        count: How many units, one or more.
        anchor: The first unit of 1970 that begins at an edge; for months one of the first twelve.
    """

    unit: Unit
    count: int
    anchor: int = 0

    def __post_init__(self) -> None:
        """Refuses an empty or endless span, and an anchor that is not the first."""
        longest = LONGEST_DAYS if self.unit is Unit.DAY else LONGEST_MONTHS
        text = f"{self.count} {self.unit.value}s"
        if not 1 <= self.count <= longest:
            raise refusal(text, f"a calendar span has between 1 and {longest} {self.unit.value}s.", "try 1 month.")
        anchors = self.count if self.unit is Unit.DAY else min(self.count, 12)
        if not 0 <= self.anchor < anchors:
            raise refusal(text, f"the anchor ({self.anchor}) is not between 0 and {anchors - 1}.")

    def __str__(self) -> str:
        """The canonical text, with an offset in days where the anchor cannot be named."""
        text, days = next(self.spellings())
        return f"{text} offset {Duration(days * DAY_SECONDS)}" if days else text

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Yields each (text, offset in days) that means this span, the canonical one first."""
        match self.unit:
            case Unit.DAY:
                preferred = self.anchor % 7
                others = [day for day in range(7) if day != preferred]
                for weekday in [preferred, *others] if self.count % 7 == 0 else [0]:
                    yield _days_text(self.count, weekday), (self.anchor - weekday) % self.count
            case Unit.MONTH:
                yield _months_text(self.count) + (f" from {MONTHS[self.anchor]}" if self.anchor else ""), 0
            case _:
                assert_never(self.unit)

    def days(self) -> tuple[int, int]:
        """Returns the length of the shortest and of the longest span, in local days.

        >>> CalendarSpan(Unit.MONTH, 3).days()
        (90, 92)
        """
        if self.unit is Unit.DAY:
            return self.count, self.count
        return _months_in_days(self.count, self.anchor, self.count)


Span = FixedSpan | CalendarSpan


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """Windows of one fixed length: [k * slide + origin, k * slide + origin + range) for every integer k.

    >>> str(FixedWindow(604_800, 604_800, 4 * 86_400))
    '1w'

    Attributes:
        range: The length in seconds.
        slide: The distance between two beginnings, in seconds; not longer than the range, which it need not divide.
        origin: The first beginning at or after 1970-01-01T00:00Z, in seconds.
    """

    range: int
    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        """Refuses an empty range or slide, a slide beyond the range, and an origin beyond the slide."""
        text = f"{self.range} s every {self.slide} s"
        if self.range < 1 or self.slide < 1:
            raise refusal(text, "the range and the slide are at least 1 s.", "try 1m or 1h every 15m.")
        if self.range > LONGEST_SECONDS:
            raise refusal(text, f"the range is longer than 10,000 years ({LONGEST_SECONDS} s).")
        if self.slide > self.range:
            rule = f"the slide ({self.slide} s) is longer than the range ({self.range} s)."
            raise refusal(text, rule, f"try {_fixed_text(self.slide, self.range, is_weeks=False)}.")
        if not 0 <= self.origin < self.slide:
            raise refusal(text, f"the origin ({self.origin} s) is not between 0 s and the slide ({self.slide} s).")

    @property
    def is_tumbling(self) -> bool:
        """Whether the windows follow one another without overlap."""
        return self.range == self.slide

    def __str__(self) -> str:
        """The canonical text."""
        text, offset = next(self.spellings())
        return text + _offset_text(offset)

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Yields each (text, offset in seconds) that means this window, the canonical one first."""
        days = (_fixed_text(self.range, self.slide, is_weeks=False), self.origin)
        if self.slide % WEEK_SECONDS:
            yield days
            return
        offset = (self.origin - MONDAY * DAY_SECONDS) % self.slide
        weeks = (_fixed_text(self.range, self.slide, is_weeks=True), offset)
        yield from (weeks, days) if offset < self.origin else (days, weeks)


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """Windows between local midnights of a zone: each begins at an edge of the step and lasts the whole local range.

    >>> str(CalendarWindow(Unit.DAY, 28, CalendarSpan(Unit.DAY, 1), "Europe/Paris"))
    '28 days every day in Europe/Paris'

    Attributes:
        range_unit: What the range is counted in.
        range_count: How many of them a window lasts.
        step: Where the windows begin.
        zone: The IANA zone whose wall clock counts.
        offset: How much later than midnight everything is on the wall clock, in seconds; for steps in days less than
            one day, because whole days are the step's anchor.
    """

    range_unit: Unit
    range_count: int
    step: CalendarSpan
    zone: str = "UTC"
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuses an unknown zone, a step that may be longer than the range, and an offset beyond the step."""
        checked_zone(self.zone)
        text, _ = next(self.spellings())
        self._check_slide(text)
        shortest, _ = self.step.days()
        limit = DAY_SECONDS * (1 if self.step.unit is Unit.DAY else shortest)
        if not 0 <= self.offset < limit:
            raise refusal(text, f"the offset ({self.offset} s) is not between 0 s and {limit} s.")

    def _check_slide(self, text: str) -> None:
        length = CalendarSpan(self.range_unit, self.range_count)
        shortest, _ = length.days()
        _, longest_step = self.step.days()
        if self.range_unit is self.step.unit:
            is_too_long, instead = self.step.count > self.range_count, f"{self.step} every {length}"
        elif self.range_unit is Unit.DAY:
            is_too_long, instead = longest_step > shortest, f"{_counted(longest_step, 'day')} every {self.step}"
        else:
            shortest, _ = _months_in_days(self.range_count, 0, 1)
            is_too_long, instead = longest_step > shortest, f"{length} every {_counted(shortest, 'day')}"
        if is_too_long:
            rule = f"the slide (longest: {longest_step} d) is longer than the range (shortest: {shortest} d)."
            raise refusal(text, rule, f"try {instead}.")

    @property
    def is_tumbling(self) -> bool:
        """Whether the windows follow one another without overlap."""
        return self.range_unit is self.step.unit and self.range_count == self.step.count

    def __str__(self) -> str:
        """The canonical text."""
        text, offset = next(self.spellings())
        return text + _offset_text(offset) + _zone_text(self.zone)

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Yields each (text without zone, offset in seconds) that means this window, the canonical one first."""
        for text, days in self.step.spellings():
            offset = days * DAY_SECONDS + self.offset
            if self.is_tumbling:
                yield text, offset
            elif self.range_unit is Unit.MONTH:
                yield f"{_months_text(self.range_count)} every {text}", offset
            else:
                weekday = MONDAY if "week" in text and self.range_count % 7 == 0 else 0
                yield f"{_days_text(self.range_count, weekday)} every {text}", offset


@dataclass(frozen=True, slots=True)
class CumulateWindow:
    """Windows that grow: each begins with its period and ends at an edge of the step, the last with the period.

    >>> str(CumulateWindow(CalendarWindow(Unit.MONTH, 1, CalendarSpan(Unit.MONTH, 1)), FixedWindow(3_600, 3_600)))
    'month to date every 1h'

    Attributes:
        period: The tumbling window within which the others grow.
        step: The tumbling window whose edges end them; it need not divide the period.
    """

    period: FixedWindow | CalendarWindow
    step: FixedWindow | CalendarWindow

    def __post_init__(self) -> None:
        """Refuses parts that overlap, a step that is no part of the period, and parts that no text can put together."""
        for part in (self.period, self.step):
            if not part.is_tumbling:
                raise refusal(str(part), "the period and the step of a cumulate window do not overlap themselves.")
        shortest_period, _ = tumbling_seconds(self.period)
        _, longest_step = tumbling_seconds(self.step)
        text = f"{next(self.period.spellings())[0]} to date every {next(self.step.spellings())[0]}"
        if self.step == self.period:
            raise refusal(text, "the step is the period.", f"write {self.period}.")
        if longest_step > shortest_period:
            rule = f"the step (up to {longest_step} s) is longer than the period (at least {shortest_period} s)."
            raise refusal(text, rule, "step by a part of the period, as in month to date every day.")
        if len(self.zones()) > 1 or not any(self.spellings()):
            raise refusal(text, "the period and the step have different offsets or zones.", "give them the same ones.")

    @property
    def is_tumbling(self) -> bool:
        """Whether the windows follow one another without overlap: those that grow overlap."""
        return False

    def zones(self) -> frozenset[str]:
        """Returns the zones of the calendar parts."""
        return frozenset(part.zone for part in (self.period, self.step) if isinstance(part, CalendarWindow))

    def __str__(self) -> str:
        """The canonical text."""
        text, offset = next(self.spellings())
        return text + _offset_text(offset) + "".join(_zone_text(zone) for zone in self.zones())

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Yields each (text without zone, offset in seconds) that means this window, the canonical one first."""
        for period, offset in self.period.spellings():
            for step, step_offset in self.step.spellings():
                if step_offset == within_step(self.step, offset):
                    yield f"{period} to date every {step}", offset


Window = FixedWindow | CalendarWindow | CumulateWindow


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Forthcoming: windows of activity that end after a gap without rows, in seconds."""

    gap: int


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Forthcoming: windows of a number of rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class ConditionWindow:
    """Forthcoming: windows that begin and end with rows that fulfil conditions."""

    begins: str
    ends: str


ForthcomingWindow = SessionWindow | CountWindow | ConditionWindow


def hopping(length: Span, step: Span, offset: int = 0, zone: str = "UTC") -> FixedWindow | CalendarWindow:
    """Returns the windows of a length that begin at the step's edges, all moved by an offset in seconds.

    >>> str(hopping(FixedSpan(3_600), FixedSpan(900), 60))
    '1h every 15m offset 1m'

    Raises:
        WindowError: The two are of different kinds, or no legal window together.
    """
    match length, step:
        case FixedSpan(), FixedSpan():
            origin = (step.anchor + offset) % step.seconds if step.seconds else 0
            return FixedWindow(length.seconds, step.seconds, origin)
        case CalendarSpan(), CalendarSpan(unit=Unit.DAY):
            days, rest = divmod(offset, DAY_SECONDS)
            moved = CalendarSpan(Unit.DAY, step.count, (step.anchor + days) % step.count)
            return CalendarWindow(length.unit, length.count, moved, zone, rest)
        case CalendarSpan(), CalendarSpan():
            return CalendarWindow(length.unit, length.count, step, zone, offset)
        case _:
            hint = "make both fixed (28d every 1h) or both calendar spans (28 days every day)."
            raise refusal(f"{length} every {step}", "the range and the slide are of different kinds.", hint)


def within_step(step: FixedWindow | CalendarWindow, offset: int) -> int:
    """Returns the part of an offset that moves the edges of a tumbling window.

    >>> within_step(FixedWindow(3_600, 3_600), 6 * 3_600 + 60)
    60
    """
    match step:
        case FixedWindow(slide=slide):
            return offset % slide
        case CalendarWindow(step=CalendarSpan(unit=Unit.DAY, count=count)):
            return offset % (count * DAY_SECONDS)
        case CalendarWindow():
            return offset
        case _:
            assert_never(step)


def tumbling_seconds(window: FixedWindow | CalendarWindow) -> tuple[int, int]:
    """Returns the length of the shortest and of the longest step, in seconds; a local day counts 24 hours.

    >>> tumbling_seconds(CalendarWindow(Unit.MONTH, 1, CalendarSpan(Unit.MONTH, 1)))
    (2419200, 2678400)
    """
    if isinstance(window, FixedWindow):
        return window.slide, window.slide
    shortest, longest = window.step.days()
    return shortest * DAY_SECONDS, longest * DAY_SECONDS


def refusal(text: str, rule: str, hint: str = "") -> WindowError:
    """Returns the error for a window's text that breaks a rule, which the data carries too."""
    return WindowError(f"window '{text}': {rule}", hint=hint, text=text, rule=rule)


@lru_cache(maxsize=1_024)
def _months_in_days(count: int, anchor: int, every: int) -> tuple[int, int]:
    """The fewest and the most days that `count` months from any `every`-th month have."""
    first = Unit.MONTH.first_day
    starts = range(anchor, anchor + _CYCLE_MONTHS, math.gcd(every, _CYCLE_MONTHS))
    lengths = {first(month + count) - first(month) for month in starts}
    return min(lengths), max(lengths)


@lru_cache(maxsize=1 << 12)
def _fixed_text(length: int, slide: int, *, is_weeks: bool) -> str:
    """A range and its slide, both in weeks where that is asked for and possible."""
    if length != slide:
        return f"{_fixed_text(length, length, is_weeks=is_weeks)} every {_fixed_text(slide, slide, is_weeks=is_weeks)}"
    return f"{length // WEEK_SECONDS}w" if is_weeks and length % WEEK_SECONDS == 0 else str(Duration(length))


def _days_text(count: int, weekday: int) -> str:
    """Days, or weeks where the weekday is not that of 1970-01-01, with which plain days begin."""
    if weekday == 0:
        return _counted(count, "day")
    weeks = _counted(count // 7, "week")
    return weeks if weekday == MONDAY else f"{weeks} from {WEEKDAYS[weekday]}"


def _months_text(count: int) -> str:
    if count % 12 == 0:
        return _counted(count // 12, "year")
    return "quarter" if count == 3 else _counted(count, "month")


def _counted(count: int, noun: str) -> str:
    return noun if count == 1 else f"{count} {noun}s"


def _offset_text(offset: int) -> str:
    return f" offset {Duration(offset)}" if offset else ""


def _zone_text(zone: str) -> str:
    return "" if zone == "UTC" else f" in {zone}"
