"""Rollups with their events, drawn at random: small, and as strange as they may be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source
from stairwise.aggregate import Aggregate, Invertibility, Sharing
from stairwise.errors import DeclarationError
from stairwise.instant import parse_instant
from stairwise.rollup import Estimates
from stairwise.window import Window
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_ending, windows_touching
from tests.spark_jobs.events import EXAMPLES, KEYS, SCHEMA, event_rows
from tests.strategies import ZONES

MICROS = 1_000_000
_MOST = 600  # windows of one kind
_LONG_CHUNK = 200 * 86_400
_NOT_KEPT = "pause"  # Delta Lake has no intervals
_CALLS = [text for texts in EXAMPLES.values() for text in texts if _NOT_KEPT not in text]


def _subtracts(text: str) -> bool:
    return all(each.traits.invertibility is not Invertibility.NEVER for each in Aggregate.parse(text).partials)


# In each of the others all calls can be computed in one more way.
_LIKE = (
    _CALLS,
    *([text for text in _CALLS if Aggregate.parse(text).sharing is sharing] for sharing in Sharing),
    [text for text in _CALLS if _subtracts(text)],
)
_KEYS = (
    (),
    ("key",),
    ("key", "flag"),
    ("real",),
    ("day", "tiny", "key"),
    ("raw",),
    ("pair",),
    ("list",),
    ("coins", "at"),
)
# Around here, clocks are moved, days are left out, or numbers change their sign.
_ANCHORS = (
    "2024-03-31T01:00Z", "2024-10-27T01:00Z", "1970-01-01T00:00Z", "1969-12-01T12:00Z", "2011-12-30T10:00Z",
    "2024-03-10T07:00Z", "2023-10-28T21:00Z", "1994-12-31T10:00Z", "2024-02-29T00:00Z", "2000-01-01T00:00Z",
)  # fmt: skip
_BASES = (3_600, 1_200, 300, 60, 7, 5_400, 14_400, 86_400)
_FIXED = ("{n}", "{n} every {s}", "{n} every {s} offset {o}", "{n} offset {o}", "{n} to date every {s}")
_CALENDAR = (
    "day", "week", "month", "2 days every day", "28 days every day", "day to date every 1h", "week to date every 6h",
    "month to date every day", "3 months every month", "week from sunday", "year from april", "5 days", "quarter",
    "2 weeks every week", "30 days every week", "year to date every month", "day offset 6h", "7 days every 2 days",
    "day to date every 37m", "2 weeks to date every day",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What the source's time column is."""

    kind: str
    zone: str = "UTC"
    unit: str | None = None


_CLOCKS = (
    Clock(kind="timestamp"),
    Clock(kind="bigint", unit="ms"),
    Clock(kind="bigint", unit="ns"),
    Clock(kind="bigint", unit="us"),
    Clock(kind="int", unit="s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Events: which, and when on the wall clock; the same for the same numbers.

    Attributes:
        seed: Of everything that is not said here.
        count: How many events.
        keys: How many of the seven kinds of values.
        begin: The first second that there may be an event in.
        length: For how many seconds.
        grain: Of how many microseconds each time is a multiple.
        clusters: Events happen around so many times only; 0: anywhere.
        timeless: Whether some have no time.
    """

    seed: int
    count: int
    keys: int
    begin: int
    length: int
    grain: int
    clusters: int
    timeless: bool

    def times(self) -> list[int | None]:
        """In microseconds, one for each event."""
        source = random.Random(self.seed)  # noqa: S311 - to be the same again
        first, last = self.begin * MICROS, (self.begin + self.length) * MICROS - 1
        centres = [source.randint(first, last) for _ in range(self.clusters)]
        width = self.length * MICROS // 50

        def drawn() -> int | None:
            if self.timeless and source.random() < 0.1:
                return None
            at = source.choice(centres) + source.randint(-width, width) if centres else source.randint(first, last)
            return at // self.grain * self.grain

        return [drawn() for _ in range(self.count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A declaration, its events, and what is asked for."""

    windows: tuple[str, ...]
    calls: tuple[str, ...]
    keys: tuple[str, ...]
    clock: Clock
    stored_as: str
    layout: str
    where: str | None
    history: History
    span: Interval | None
    in_chunks: bool
    estimates: Estimates

    @property
    def is_legal(self) -> bool:
        """Whether it can be declared, and no window is too short for the range."""
        try:
            rollup = self.rollup("source", Path("target"))
        except DeclarationError:
            return False
        return all(len(list(islice(self.listed(each.window), _MOST + 1))) <= _MOST for each in rollup.windows)

    @property
    def chunk_s(self) -> int | None:
        """The length of a chunk: some of them make the range, since each costs seconds."""
        if not self.in_chunks:
            return None
        return _LONG_CHUNK if self.span is None else (self.span.end - self.span.start) // 2 + 1

    @property
    def has_results(self) -> bool:
        """Whether there is an event in a window."""
        times = [instant / MICROS for instant in self.instants() if instant is not None]
        spans = (found for text in self.windows for found in self.listed(parse_window(text)))
        return any(found.start <= time < found.end for found in spans for time in times)

    def listed(self, window: Window) -> Iterator[Interval]:
        """The windows that a run writes: those that end in the range, or all that events can be in."""
        if self.span is not None:
            return windows_ending(window, *self.span)
        known = [instant // MICROS for instant in self.instants() if instant is not None] or [0]
        return windows_touching(window, min(known), max(known) + 1)

    def rollup(self, source: str, target: Path) -> Rollup:
        """The declaration."""
        is_query = self.stored_as == "query"
        events = Source(
            sql=f"TABLE delta.`{source}`" if is_query else None,
            path=None if is_query else source,
            format="delta" if is_query else self.stored_as,
            time="happened",
            unit=self.clock.unit,
            zone=self.clock.zone,
            where=self.where,
        )
        return Rollup(
            name="drawn",
            source=events,
            keys=self.keys,
            aggregates={f"a{number}": call for number, call in enumerate(self.calls)},
            windows=[{"window": text, "name": f"w{number}"} for number, text in enumerate(self.windows)],
            target=str(target),
            layout=self.layout,
            null_time="skip",
            estimates=self.estimates,
        )

    def instants(self) -> list[int | None]:
        """When the events happened, in microseconds since 1970, as Python reads the clock."""
        return [None if time is None else self._instant(time) for time in self.history.times()]

    def _instant(self, time: int) -> int:
        if self.clock.unit is not None:
            per_second = {"s": 1, "ms": 1_000}.get(self.clock.unit, MICROS)
            return time * per_second // MICROS * (MICROS // per_second)
        if self.clock.kind == "date":
            time = time // (86_400 * MICROS) * 86_400 * MICROS
        shown = datetime(1970, 1, 1) + timedelta(microseconds=time)  # noqa: DTZ001 - the zone comes next
        local = shown.replace(tzinfo=ZoneInfo(self.clock.zone))
        return (local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def events(self, spark: SparkSession) -> DataFrame:
        """The events with `happened` as the source has it, and `_time` as it has to be read."""
        values = [row for row in event_rows(self.history.seed, self.history.count) if row["key"] in self._kinds()]
        rows = [
            (*(row | {"_time": instant}).values(), time)
            for row, instant, time in zip(values, self.instants(), self.history.times(), strict=False)
        ]
        schema = SCHEMA.replace("_time bigint not null", "_time bigint") + ", _shown bigint"
        frame = spark.createDataFrame(rows, schema)
        return frame.withColumn("happened", F.expr(self._happened())).drop("_shown", _NOT_KEPT)

    def _kinds(self) -> Sequence[str | None]:
        return KEYS[: self.history.keys]

    def _happened(self) -> str:
        match self.clock:
            case Clock(unit=None, kind=kind):
                return f"CAST(timestamp_micros(_shown) AS {kind})"
            case Clock(unit="ns"):
                return "_shown * 1000 + 999"
            case Clock(unit=unit, kind=kind):
                per = {"s": MICROS, "ms": 1_000}.get(unit or "", 1)
                return f"CAST(floor(_shown / {per}) AS {kind})"


def drawn(seed: int) -> Case:
    """Anything that may be declared, over few events; the same for the same seed.

    It is not drawn by Hypothesis: an example costs seconds, and most of Hypothesis's are variants of an earlier one.
    """
    source = random.Random(seed)  # noqa: S311 - to be the same again
    while True:
        case = _drawn(source)
        if case.is_legal and (case.has_results or source.random() < 0.1):
            return case


def _drawn(source: random.Random) -> Case:
    base, zone = source.choice(_BASES), source.choice(ZONES)
    history = _history(source, base)
    calls = source.choice(_LIKE)
    return Case(
        windows=_windows(source, base, zone),
        calls=tuple(dict.fromkeys(source.choice(calls) for _ in range(source.randint(1, 4)))),
        keys=source.choice(_KEYS),
        clock=source.choice((*_CLOCKS, Clock(kind="timestamp_ntz", zone=zone), Clock(kind="date", zone=zone))),
        stored_as=source.choice(("delta", "delta", "parquet", "query")),
        layout=source.choice(("tables", "one_table")),
        where=source.choice((None, None, "whole <> 0 or whole is null", "flag")),
        history=history,
        span=_span(source, history, base),
        in_chunks=source.choice((False, False, True)),
        estimates=Estimates(
            rows_per_day=source.choice((10**5, 10**8, 10**9, 10**11)),
            distinct_keys=source.choice((1, 10, 1_000)),
            distinct_values=source.choice((1, 5, 10_000)),
        ),
    )


def _history(source: random.Random, base: int) -> History:
    length = base * source.choice((4, 40, 200, 600))
    anchor = parse_instant(source.choice(_ANCHORS)) + source.randint(-2, 2) * base
    return History(
        seed=source.randrange(10**6),
        count=source.choice((0, 1, 10, 30, 60, 60, 90, 150)),
        keys=source.randint(1, len(KEYS)),
        begin=anchor - length * source.randint(0, 4) // 4,
        length=length,
        grain=source.choice((1, MICROS, base * MICROS, base * MICROS // 2)),
        clusters=source.choice((0, 0, 2, 5)),
        timeless=source.random() < 0.5,
    )


def _windows(source: random.Random, base: int, zone: str) -> tuple[str, ...]:
    """Windows of any kind, or such that hop by one step or have one range, which can be read from each other."""
    slides, lengths = source.sample((1, 2, 3, 4, 6, 12), 3), source.sample((12, 24, 36, 60, 120, 7, 13), 3)
    shape = source.choice(("any", "any", "one slide", "one range"))

    def text() -> str:
        match shape:
            case "one slide":
                return f"{base * source.choice(lengths)}s every {base * slides[0]}s"
            case "one range":
                return f"{12 * base * slides[0]}s every {base * source.choice(slides)}s"
            case _:
                return _window(source, base, zone)

    return tuple(dict.fromkeys(text() for _ in range(source.randint(2, 5))))


def _window(source: random.Random, base: int, zone: str) -> str:
    if source.random() < 0.4:
        return f"{source.choice(_CALENDAR)} in {source.choice((zone, zone, 'UTC', 'Europe/Paris'))}"
    form = source.choice(_FIXED)
    slide = base * source.choice((1, 2, 3, 4, 5, 6, 9, 12))
    length = slide * source.choice((1, 2, 3, 4, 6, 24, 90))
    if "every" in form:
        length += base * source.choice((0, 0, 0, 1, 5))
    offset = source.choice((base // 2, base, 1, slide - 1))
    return form.format(n=f"{length}s", s=f"{slide}s", o=f"{offset}s")


def _span(source: random.Random, history: History, base: int) -> Interval | None:
    """All, some, or rarely nothing of the time of the events; at edges or not."""
    begin, end = history.begin, history.begin + history.length
    start = source.randint(begin - base, end - base)
    some = Interval(start, start + source.randint(base, history.length + base))
    wide = Interval(begin - 40 * base, end + 40 * base)
    nothing = source.choice((Interval(begin, begin), Interval(end + 400 * 86_400, end + 401 * 86_400)))
    return source.choice((None, None, None, wide, wide, wide, some, some, some, nothing))
