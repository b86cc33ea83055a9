"""Statistics of a source: how many events a day, how many keys, and how many of those in slices of several lengths.

A source of a few million rows is read whole. Of a larger one some stretches of time are, spread as its rows are. When
those happened is said by the log of a Delta table, else by the time column alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise.aggregate import partial_columns
from stairwise.measured import Measured, Slice
from stairwise.names import MOST_COUNTED
from stairwise.rollup import Estimates, Rollup
from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.delta_log import Busy, busy_days
from stairwise_spark.errors import RunError, translating
from stairwise_spark.event_time import MICROS
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.halves import all_of, rows_of_all
from stairwise_spark.inputs import inputs
from stairwise_spark.names import column
from stairwise_spark.source import PinnedSource, located, open_source

SAMPLE_ROWS = 4_000_000
STRETCHES = 8
# Each divides the next, so that a stretch of one length is made of whole slices of all shorter ones.
LENGTHS = (1, 10, 60, 600, 3_600, 21_600, DAY_SECONDS, 7 * DAY_SECONDS, 28 * DAY_SECONDS)
_CUT_OFF = 20  # a slice is at most this part of what is read whole: few are cut off at its ends
_STRAY = 1_000  # at each end, this part of the rows may be far from all others
_LGK = 14  # of the sketches: 0.8 % off


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What is looked at: stretches of time in seconds, in slices of some lengths."""

    stretches: tuple[Interval, ...]
    lengths: tuple[int, ...]
    is_all: bool

    @property
    def seconds(self) -> int:
        return sum(each.end - each.start for each in self.stretches)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extent:
    """What is known of the source before its rows are looked at; whether some of them are left out by its filter."""

    days: tuple[Busy, ...]
    bytes: int | None
    version: int | None
    is_filtered: bool


def measure(spark: SparkSession, rollup: Rollup, sample_rows: int = SAMPLE_ROWS) -> Measured:
    """What there is in the source of a rollup.

    Args:
        spark: A session in UTC.
        rollup: What was declared.
        sample_rows: About how many rows to look at.

    Raises:
        SourceError: The declaration does not fit the source.
        RunError: The source is empty, or Spark cannot look.
    """
    with translating():
        source = open_source(spark, rollup, direct)
        extent = _extent(spark, rollup, source)
        sample = _sample(extent.days, sample_rows)
        found = _counted(source, rollup, sample)
    if not found["rows"]:
        raise RunError("there are no rows to measure.", hint="plan without --measure.")
    return _measured(extent, sample, found)


def _extent(spark: SparkSession, rollup: Rollup, source: PinnedSource) -> _Extent:
    logged = source.logged()
    days = None if logged is None else logged.days
    time = F.col("_time")
    if days is None:
        days = busy_days(source.rows().select(time.alias("_first"), time.alias("_last"), F.lit(1).alias("_rows")))
    return _Extent(
        days=_without_strays(days),
        bytes=_size(spark, rollup) if logged is None else logged.bytes,
        version=source.version,
        is_filtered=rollup.source.where is not None,
    )


def _size(spark: SparkSession, rollup: Rollup) -> int | None:
    """Bytes of the source, if it is one of files."""
    if rollup.source.path is None:
        return None
    files = spark.read.format("binaryFile").load(located(rollup.source.path))
    total = files.agg(F.sum("length")).collect()[0][0]
    return None if total is None else int(total)


def _without_strays(days: Sequence[Busy]) -> tuple[Busy, ...]:
    """The days but for the first and the last ones that together have few rows: times that are wrong, most likely."""
    spare = sum(day.rows for day in days) // _STRAY

    def behind(ordered: Sequence[Busy]) -> list[Busy]:
        left = spare
        for place, day in enumerate(ordered):
            left -= day.rows
            if left < 0:
                return list(ordered[place:])
        return []

    return tuple(reversed(behind(behind(days)[::-1])))


def _span(days: Sequence[Busy]) -> Interval:
    if not days:
        return Interval(0, 0)
    return Interval(days[0].first // MICROS, max(day.last for day in days) // MICROS + 1)


def _sample(days: Sequence[Busy], sample_rows: int) -> _Sample:
    """All of it, or stretches that begin where the rows are, as long as one of the lengths."""
    span, rows = _span(days), sum(day.rows for day in days)
    seconds = span.end - span.start
    if rows <= sample_rows:
        return _Sample(
            stretches=(span,),
            lengths=tuple(each for each in LENGTHS if each * _CUT_OFF <= seconds),
            is_all=True,
        )
    wanted = seconds * sample_rows / rows / STRETCHES
    length = max((each for each in LENGTHS if each <= wanted), default=LENGTHS[0])
    starts = sorted({instant // length * length for instant in _spread(days)})
    return _Sample(
        stretches=tuple(Interval(start, start + length) for start in starts),
        lengths=tuple(each for each in LENGTHS if each <= length),
        is_all=False,
    )


def _spread(days: Sequence[Busy]) -> Iterator[int]:
    """Instants between which there are equally many rows."""
    rows = sum(day.rows for day in days)
    for number in range(STRETCHES):
        left = rows * (2 * number + 1) // (2 * STRETCHES)
        for day in days:
            if left < day.rows:
                yield (day.first + (day.last - day.first) * left // day.rows) // MICROS
                break
            left -= day.rows


def _counted(source: PinnedSource, rollup: Rollup, sample: _Sample) -> dict[str, int]:
    """The rows of the sample, and sketches of the keys among them: of all, of each slice, with each value."""
    rows = rows_of_all(source.rows((each,)) for each in sample.stretches)
    keys = [column(key) for key in rollup.keys]
    times = {f"keys_{each}": _slice(each) for each in sample.lengths}
    in_slices = {name: F.xxhash64(slice_, *keys) for name, slice_ in times.items()} if keys else {}
    counted = {"keys": F.xxhash64(*keys), **in_slices} if keys else {}
    counted |= {f"values_{number}": each for number, each in enumerate(_values(rows, rollup, keys))}
    # The other sketch of Spark, approx_count_distinct, has thousands of columns for a state of this precision.
    sketches = [
        F.hll_sketch_estimate(F.hll_sketch_agg(each, F.lit(_LGK))).alias(name) for name, each in counted.items()
    ]
    return rows.agg(F.count(F.lit(1)).alias("rows"), *sketches).collect()[0].asDict()


def _slice(seconds: int) -> Column:
    time = F.col("_time")
    return time - F.pmod(time, F.lit(seconds * MICROS))


def _values(rows: DataFrame, rollup: Rollup, keys: Sequence[Column]) -> Iterator[Column]:
    """Keys with a value, for each state that grows with its values; NULL where a row is left out."""
    aggregates = [aggregate for _, aggregate in rollup.aggregates]
    types = argument_types(rows, aggregates)
    for partial in partial_columns(aggregates):
        if partial.traits.bytes_per_value:
            values = inputs(partial.arguments, partial.condition, types)
            is_there = all_of(value.isNotNull() for value in values)
            yield F.when(is_there, F.xxhash64(*keys, *values))


def _measured(extent: _Extent, sample: _Sample, found: Mapping[str, int]) -> Measured:
    days = extent.days
    seen, span = found["rows"], _span(days)
    seconds = span.end - span.start
    rows = seen if sample.is_all else max(seen, sum(day.rows for day in days))
    if extent.is_filtered and not sample.is_all:
        rows = max(seen, min(rows, round(seen / sample.seconds * seconds)))
    slices = tuple(
        Slice(seconds=each, rows=seen * each / sample.seconds, keys=found[f"keys_{each}"] * each / sample.seconds)
        for each in sample.lengths
        if f"keys_{each}" in found
    )
    keys = found.get("keys")
    pairs = [found[name] for name in found if name.startswith("values_")]
    return Measured(
        rows=rows,
        span=span,
        estimates=Estimates(
            rows_per_day=_whole(_daily(days, rows)),
            distinct_keys=None if keys is None else _whole(_all_keys(keys, seen, rows, slices)),
            distinct_values=max((_whole(each / (keys or 1)) for each in pairs), default=None),
        ),
        slices=tuple(each for each in slices if each.rows >= 2),
        sample=seen,
        bytes=extent.bytes,
        version=extent.version,
    )


def _daily(days: Sequence[Busy], rows: int) -> float:
    """Events in a day: what lies between the first and the last, by the time between those."""
    micros = max(day.last for day in days) - days[0].first
    return (rows - 1) * DAY_SECONDS * MICROS / micros if micros else rows


def _all_keys(keys: int, seen: int, rows: int, slices: Sequence[Slice]) -> float:
    """The keys of all rows, of which some were seen: they grow on as they did from a slice to all that was seen."""
    longest = slices[-1] if slices else None
    if rows == seen or longest is None or not 1 <= longest.keys < keys or longest.rows >= seen:
        return keys
    growth = min(1.0, log(keys / longest.keys) / log(seen / longest.rows))
    return keys * exp(growth * log(rows / seen))


def _whole(number: float) -> int:
    """The nearest number that may be declared."""
    return max(1, min(MOST_COUNTED, round(number)))
