"""Exact lengths of time in whole seconds: read, print, order.

A duration is written with falling units, each at most once: ``1w``, ``1h30m``, ``45s``. A day is 86,400 s here;
local days, whose length varies, are calendar spans and live in `stairwise.window`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stairwise.errors import DurationError

UNIT_SECONDS: Mapping[str, int] = MappingProxyType({"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1})
LONGEST_SECONDS = 10_000 * 366 * 86_400

_DURATION = re.compile("".join(f"(?:([0-9]{{1,12}}){unit})?" for unit in UNIT_SECONDS))
_ITEM = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([^\W\d_]+)\s*")
_SPELLINGS = MappingProxyType(
    {
        "w": ("week", "weeks", "wk", "wks"),
        "d": ("day", "days"),
        "h": ("hour", "hours", "hr", "hrs"),
        "m": ("minute", "minutes", "min", "mins"),
        "s": ("second", "seconds", "sec", "secs"),
    }
)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in whole seconds, zero or more.

    >>> Duration.parse("1h30m") == Duration.parse("90m")
    True
    >>> str(Duration.parse("2w"))
    '14d'

    Attributes:
        seconds: The length.
    """

    seconds: int

    def __post_init__(self) -> None:
        """Refuses a length below zero, or beyond 10,000 years."""
        if not 0 <= self.seconds <= LONGEST_SECONDS:
            raise DurationError(
                f"duration of {self.seconds} s: a duration lies between 0 s and 10,000 years ({LONGEST_SECONDS} s).",
                hint="give a number of seconds between them.",
                seconds=self.seconds,
            )

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Returns the duration that a text such as ``1h30m`` means.

        >>> Duration.parse("1d12h").seconds
        129600

        Raises:
            DurationError: The text is not a duration; the hint names the nearest one.
        """
        match = _DURATION.fullmatch(text.strip())
        if match is None or match.lastindex is None:
            raise _refused(text)
        counts = (int(count or 0) for count in match.groups())
        seconds = sum(count * unit for count, unit in zip(counts, UNIT_SECONDS.values(), strict=True))
        if seconds > LONGEST_SECONDS:
            raise _error(text, f"it is longer than 10,000 years ({LONGEST_SECONDS} s).", "write a shorter one.")
        return cls(seconds)

    def __str__(self) -> str:
        """The canonical text: days, hours, minutes, seconds, those that are not zero."""
        parts: list[str] = []
        rest = self.seconds
        for unit in "dhms":
            count, rest = divmod(rest, UNIT_SECONDS[unit])
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts) or "0s"


def unit_meant(word: str) -> str | None:
    """Returns the unit that a word such as ``minutes``, ``hr`` or ``H`` stands for, or None.

    >>> unit_meant("Hours"), unit_meant("fortnight")
    ('h', None)

    ``M`` is None: it may be a minute or a month.
    """
    if word == "M":
        return None
    small = word.lower()
    return next((unit for unit, words in _SPELLINGS.items() if small == unit or small in words), None)


def _refused(text: str) -> DurationError:
    """The error for a text that is no duration, by the kind of slip it looks like."""
    given = text.strip()
    items = _ITEM.findall(given)
    if not given:
        return _error(text, "there is nothing to read.", "try 5m, 1h30m or 1d.")
    if re.fullmatch("[0-9]+", given):
        shown = given if len(given) <= 6 else "30"
        return _error(text, "a number needs a unit (w, d, h, m or s).", f"try {shown}s, {shown}m or {shown}h.")
    if re.match("-[0-9]", given):
        return _error(text, "a duration cannot be negative.", "leave the sign out.")
    if not items or _ITEM.sub("", given):
        return _error(text, "it is not whole numbers with units (w, d, h, m, s).", "try 5m, 1h30m or 1d.")
    return _refused_items(text, items)


def _refused_items(text: str, items: list[tuple[str, str]]) -> DurationError:
    """The error for numbers with units: an unknown unit, a fraction, a wrong order."""
    units: list[str] = []
    for _, word in items:
        unit = unit_meant(word)
        if unit is None:
            hint = "try 1m for a minute; a month has no fixed length." if word == "M" else "try 5m, 1h30m or 1d."
            return _error(text, f"'{word}' is not a unit (the units are w, d, h, m and s).", hint)
        units.append(unit)
    from fractions import Fraction

    total = sum(Fraction(count) * UNIT_SECONDS[unit] for (count, _), unit in zip(items, units, strict=True))
    if total.denominator != 1:
        return _error(text, "a second is the smallest unit, and counts are whole.", "try 1s.")
    if any("." in count for count, _ in items):
        return _error(text, "counts are whole numbers.", f"try {_in_one_unit(int(total))}.")
    meant = "".join(f"{count}{unit}" for (count, _), unit in zip(items, units, strict=True))
    if _DURATION.fullmatch(meant):
        return _error(text, "units are one letter (w, d, h, m, s), next to their number.", f"try {meant}.")
    rule = "units fall from weeks to seconds (w, d, h, m, s), each at most once."
    return _error(text, rule, f"try {Duration(min(int(total), LONGEST_SECONDS))}.")


def _in_one_unit(seconds: int) -> str:
    """The length in the largest unit that divides it, as ``90m``."""
    unit = next(unit for unit, length in UNIT_SECONDS.items() if seconds % length == 0)
    return f"{seconds // UNIT_SECONDS[unit]}{unit}"


def _error(text: str, rule: str, hint: str) -> DurationError:
    return DurationError(f"duration '{text}': {rule}", hint=hint, text=text)
