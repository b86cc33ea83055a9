"""Lengths of time without a place on the line: how long rows are kept, how late they may be, how far to look back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from stairwise.duration import Duration
from stairwise.errors import DurationError

_DAY = 86_400
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_COUNTED = re.compile(r"(?:(?P<count>\d{1,5}) )?(?P<unit>day|week|month|quarter|year)s?", re.ASCII)
_NUMBER = re.compile("[0-9]")
_CALENDAR = re.compile("day|week|month|quarter|year")
_HINT = "write a duration such as 36h or 7d, or count days, weeks, months, quarters or years, such as 5 years."


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time: seconds, or whole months, which are never 30 days.

    Days and weeks of a span have 24 hours each; days of a zone belong to windows.

    Attributes:
        seconds: The length of a span that has one; 0 if it is counted in months.
        months: Whole months; 0 if the span is counted in seconds.
    """

    seconds: int = 0
    months: int = 0

    def __post_init__(self) -> None:
        """Refuse what no text means."""
        Duration(self.seconds)
        if self.months < 0 or (self.seconds and self.months):
            raise DurationError(
                f"span of {self.seconds} s and {self.months} months: seconds or months, and none below 0.",
                hint="give one of the two.",
            )

    @classmethod
    def parse(cls, text: str) -> Span:
        """Return the span that a text means.

        >>> Span.parse("5 years"), Span.parse("28 days") == Span.parse("4w")
        (Span(seconds=0, months=60), True)
        """
        words = " ".join(text.split()).lower()
        if counted := _COUNTED.fullmatch(words):
            count, unit = int(counted["count"] or 1), counted["unit"]
            return cls(months=count * _MONTHS[unit]) if unit in _MONTHS else cls(count * _DAYS[unit] * _DAY)
        if not _NUMBER.match(words) or _CALENDAR.search(words):
            raise DurationError(f"span {text!r}: it is not a length of time.", hint=_HINT, text=text)
        return cls(Duration.parse(words).seconds)

    @property
    def is_empty(self) -> bool:
        """Whether it is no time at all."""
        return not (self.seconds or self.months)

    def __str__(self) -> str:
        """One text that parses to this span."""
        for unit in ("year", "quarter", "month"):
            count, rest = divmod(self.months, _MONTHS[unit])
            if count and not rest:
                return f"{count} {unit}{'s' if count > 1 else ''}"
        return str(Duration(self.seconds))


def parse_limit(text: str) -> Span | None:
    """Return the span that limits something, or None for ``any``, which is no limit.

    >>> parse_limit("any"), parse_limit("7d")
    (None, Span(seconds=604800, months=0))
    """
    return None if text.strip() == "any" else Span.parse(text)


class Cadence(Enum):
    """How often a lookback is due."""

    RUN = "every run"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"


@dataclass(frozen=True, slots=True)
class Lookback:
    """How far back to recheck, and how often, where a source cannot tell what changed in it."""

    span: Span
    cadence: Cadence

    def __post_init__(self) -> None:
        if self.span.is_empty:
            raise DurationError(
                f"lookback '{self}': its span is not longer than 0 s.", hint="write a longer span, or leave it out."
            )

    @classmethod
    def parse(cls, text: str) -> Lookback:
        """Return the lookback that a text means.

        >>> print(Lookback.parse("1 week daily"))
        7d daily
        """
        words = " ".join(text.split())
        for cadence in Cadence:
            span, found, rest = words.rpartition(f" {cadence.value}")
            if found and not rest:
                return cls(Span.parse(span), cadence)
        raise DurationError(
            f"lookback {text!r}: it does not end with how often (every run, hourly, daily or weekly).",
            hint="try 1 day every run or 7 days daily.",
            text=text,
        )

    def __str__(self) -> str:
        return f"{self.span} {self.cadence.value}"
