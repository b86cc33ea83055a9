"""What was measured of a source, and how many keys a window of it shows: skewed ones show fewer than a formula says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log
from typing import NamedTuple

from stairwise.duration import Duration
from stairwise.errors import PlanError
from stairwise.instant import format_instant
from stairwise.quantity import quantity, size
from stairwise.rollup import Estimates
from stairwise.windowing import Interval

_APART = 1 + 1e-6  # points that are nearer say nothing of the slope between them


@dataclass(frozen=True, slots=True)
class KeyCurve:
    """How many different keys are among so many events that follow each other.

    Between two points, and only there, the number grows as a power of the events: a line on paper with two logarithmic
    scales. It never falls, and never grows faster than the events do; behind the last point it stays.

    >>> curve = KeyCurve.of([(100, 10), (10_000, 1_000)])
    >>> [round(curve.at(events), 3) for events in (0.5, 1, 10, 100, 1_000, 10_000, 10**9)]
    [0.5, 1, 3.162, 10.0, 100.0, 1000, 1000]

    Attributes:
        points: Events, and keys among them; the first is (1, 1).
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Refuse points that no events could have."""
        if self.points[:1] != ((1.0, 1.0),):
            raise PlanError("key curve: it begins with one key in one event.")
        for (events, keys), (more, found) in pairwise(self.points):
            if not (events * _APART < more < inf and keys <= found <= keys * (more / events) * (1 + 1e-9)):
                raise PlanError(f"key curve: {found} keys in {more} events after {keys} in {events}.")

    @classmethod
    def of(cls, measured: Iterable[tuple[float, float]]) -> KeyCurve:
        """The curve through what was measured, as near as a curve may: counts by sketches are off a little."""
        points = [(1.0, 1.0)]
        for events, keys in sorted(measured):
            fewer, known = points[-1]
            if events > fewer * _APART:
                points.append((events, min(max(keys, known), known * (events / fewer))))
        return cls(tuple(points))

    def at(self, events: float) -> float:
        """Keys among so many events."""
        if events <= 1:
            return events
        place = bisect_right(self.points, (events, inf))
        fewer, known = self.points[place - 1]
        if place == len(self.points):
            return known
        more, found = self.points[place]
        return min(events, known * exp(log(events / fewer) * log(found / known) / log(more / fewer)))


class Slice(NamedTuple):
    """What slices of one length hold on average, empty ones counted.

    Attributes:
        seconds: Their length.
        rows: Events in one.
        keys: Different keys among them.
    """

    seconds: int
    rows: float
    keys: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of a source.

    Attributes:
        rows: Events in it.
        span: From the first event until after the last one, but for a few that are far from all others.
        estimates: What was declared so far, now counted.
        slices: How many keys there are in slices of some lengths.
        sample: How many events were looked at; as many as there are, or fewer.
        bytes: Size of the source; None: not known.
        version: The version of a Delta table; None for everything else.
    """

    rows: int
    span: Interval
    estimates: Estimates
    slices: tuple[Slice, ...] = ()
    sample: int
    bytes: int | None = None
    version: int | None = None

    def __post_init__(self) -> None:
        """Refuse a source without events, and slices without time or with fewer than no keys."""
        if not 1 <= self.sample <= self.rows or self.span.start >= self.span.end:
            raise PlanError(f"measured: {self.sample} of {self.rows} rows in {self.span.end - self.span.start} s.")
        for seconds, rows, keys in self.slices:
            if seconds < 1 or not 0 <= keys < inf or not 0 <= rows < inf:
                raise PlanError(f"measured: {keys} keys in {rows} rows of {seconds} s.")

    @property
    def curve(self) -> KeyCurve | None:
        """Keys among events; None if there were no slices to count them in."""
        keys = self.estimates.distinct_keys
        if not self.slices or keys is None:
            return None
        return KeyCurve.of([*((each.rows, each.keys) for each in self.slices), (float(self.rows), float(keys))])

    def notes(self) -> tuple[str, ...]:
        """What was measured, as sentences."""
        return tuple(f"measured: {text}" for text in (self._events(), *self._groups(), self._declared()))

    def _events(self) -> str:
        first, end = (format_instant(instant) for instant in self.span)
        parts = [f"{quantity(self.rows)} rows from {first} to {end}"]
        if self.estimates.rows_per_day is not None:
            parts.append(f"{quantity(self.estimates.rows_per_day)} a day")
        if self.bytes is not None:
            parts.append(size(self.bytes))
        if self.version is not None:
            parts.append(f"version {self.version}")
        return ", ".join(parts)

    def _groups(self) -> list[str]:
        found: list[str] = []
        if self.estimates.distinct_keys is not None:
            slices = [f"{quantity(each.keys)} in {Duration(each.seconds)}" for each in self.slices]
            among = f", on average {', '.join(slices)}" if slices else ""
            found.append(f"{quantity(self.estimates.distinct_keys)} distinct keys{among}")
        if self.estimates.distinct_values is not None:
            found.append(f"{quantity(self.estimates.distinct_values)} distinct values for each key")
        if self.sample < self.rows:
            found.append(f"keys and values are those of {quantity(self.sample)} rows, at several times")
        return found

    def _declared(self) -> str:
        known = (
            ("rows_per_day", self.estimates.rows_per_day),
            ("distinct_keys", self.estimates.distinct_keys),
            ("distinct_values", self.estimates.distinct_values),
        )
        text = ", ".join(f"{name}: {number}" for name, number in known if number is not None)
        return f"to keep it, declare estimates: {{{text}}}"
