"""The windows of a tier as the raw rows give them, by one plain aggregation: no tier is read, no state is merged.

Beside each result stands what it takes to judge a stored one: how much a sum of doubles may be off by the order of its
rows, and for a sketch the exact answer, or the values between which a quantile has to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType

from stairwise.aggregate import Aggregate
from stairwise.tiers import Tier
from stairwise.window import FixedWindow
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, held
from stairwise_spark.expressions import Types, direct
from stairwise_spark.formulas import ranks, sketched
from stairwise_spark.grid import MICROS, floored, in_slices, in_windows, micros
from stairwise_spark.halves import any_of
from stairwise_spark.inputs import inputs
from stairwise_spark.names import column, quoted
from stairwise_spark.source import PinnedSource

ROWS = "_rows"
BOUNDS = ("window_start", "window_end")
_OWN_BOUNDS = ("_begin", "_end")
# Results that are sums of doubles, which come out otherwise in another order of the rows.
SUMMED = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")
# What a sketch says may be off by so many standard errors: beyond, it is wrong, but for one window in 10,000.
ERRORS = 4
_LITTLE = 1e-12
_LEAST = 1e-16  # of two numbers, what is left of their product where nothing deviates


@dataclass(frozen=True, slots=True)
class Judged:
    """A result, and what a stored one is judged by.

    Attributes:
        name: Of the result.
        aggregate: What it is.
        kind: Its type.
    """

    name: str
    aggregate: Aggregate
    kind: DataType

    @property
    def is_summed(self) -> bool:
        """Whether it is a double made of sums."""
        return self.aggregate.definition.name in SUMMED and isinstance(self.kind, DoubleType | FloatType)

    @property
    def is_sketch(self) -> bool:
        """Whether it is read off a sketch."""
        return self.aggregate.bound is not None

    @property
    def is_ranked(self) -> bool:
        """Whether that sketch is one of quantiles."""
        return self.is_sketch and self.aggregate.definition.name == "quantile"


def windowed(source: PinnedSource, tier: Tier, spans: Sequence[Interval]) -> DataFrame:
    """The raw rows, each once for each window of the tier that holds it and ends in one of some ranges."""
    raw = _raw(source, [held(tier, span) for span in spans])
    return placed(raw, tier, spans)


def placed(raw: DataFrame, tier: Tier, spans: Sequence[Interval]) -> DataFrame:
    """Rows that have `_time`, each once for each window of the tier that holds it and ends in one of some ranges."""
    whole = Interval(spans[0].start, spans[-1].end)
    begin, end = column("_time"), column("_end")
    found = in_slices(raw, tier.needs, begin) if tier.window is None else in_windows(raw, tier.window, begin, whole)
    return found.where(any_of((end > micros(each.start)) & (end <= micros(each.end)) for each in spans))


def listed(source: PinnedSource, windows: Sequence[Interval]) -> DataFrame:
    """The raw rows, each once for each of some windows that holds it; files without one of them are not opened."""
    rows = [(start * MICROS, end * MICROS) for start, end in windows]
    raw = _raw(source, merged(windows))
    bounds = F.broadcast(raw.sparkSession.createDataFrame(rows, "_begin bigint, _end bigint"))
    time = column("_time")
    return raw.join(bounds, (time >= column("_begin")) & (time < column("_end")))


def _raw(source: PinnedSource, spans: Sequence[Interval]) -> DataFrame:
    """The rows of some spans of time, and perhaps some around them."""
    kept = source.frame.where(source.time.may_be_in(spans))
    return kept.select(*source.columns, source.time.micros.alias("_time"))


def merged(windows: Sequence[Interval]) -> list[Interval]:
    """The instants of some windows, without overlap."""
    found: list[Interval] = []
    for start, end in sorted(windows):
        if found and start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, end))
        else:
            found.append(Interval(start, end))
    return found


def aggregated(rows: DataFrame, content: Content, judged: Sequence[Judged]) -> DataFrame:
    """Keys, bounds and results of rows that have their windows, with `_rows` and what each result is judged by."""
    results = [direct(each.aggregate, content.types).alias(each.name) for each in judged if not each.is_sketch]
    proofs = [found.alias(name) for each in judged for name, found in _proofs(each, content.types).items()]
    ranked = {proof(each.name, "value"): _number(each.aggregate, content.types) for each in judged if each.is_ranked}
    # Spark Connect does not take no column at all.
    with_numbers = rows.withColumns(ranked) if ranked else rows
    return _bounded(with_numbers, content.keys, [*results, *proofs, F.count(F.lit(1)).alias(ROWS)])


def counted(source: PinnedSource, tier: Tier, content: Content, spans: Sequence[Interval]) -> DataFrame:
    """Keys, bounds and `_rows` alone; rows are counted before they are copied into windows that overlap."""
    window = tier.window
    if not isinstance(window, FixedWindow) or window.is_tumbling:
        return count_of(windowed(source, tier, spans), content)
    raw = _raw(source, [held(tier, span) for span in spans])
    grain = gcd(window.range, window.slide, window.origin)
    grains = raw.withColumn("_time", floored(column("_time"), grain, 0))
    counts = grains.groupBy(*map(column, (*content.keys, "_time"))).agg(F.count(F.lit(1)).alias(ROWS))
    return _bounded(placed(counts, tier, spans), content.keys, [F.sum(ROWS).alias(ROWS)])


def count_of(rows: DataFrame, content: Content) -> DataFrame:
    """Keys, bounds and `_rows` of rows that have their windows."""
    return _bounded(rows, content.keys, [F.count(F.lit(1)).alias(ROWS)])


def _bounded(rows: DataFrame, keys: Sequence[str], columns: Sequence[Column]) -> DataFrame:
    grouped = rows.groupBy(*map(column, (*keys, *_OWN_BOUNDS))).agg(*columns)
    bounds = {name: F.timestamp_micros(column(own)) for name, own in zip(BOUNDS, _OWN_BOUNDS, strict=True)}
    return grouped.withColumns(bounds).drop(*_OWN_BOUNDS)


def proof(name: str, what: str) -> str:
    """The name of the column that holds what a result is judged by."""
    return f"_{what} of {name}"


def _proofs(judged: Judged, types: Types) -> Mapping[str, Column]:
    """What a stored result is judged by, as aggregate expressions."""
    name = judged.name
    if judged.is_sketch:
        return {proof(name, what): each for what, each in _exact(judged, types).items()}
    return {proof(name, "scale"): _scale(judged.aggregate, types)} if judged.is_summed else {}


def _scale(aggregate: Aggregate, types: Types) -> Column:
    """How large the numbers are of which a result is the sum, where they may have cancelled each other out."""
    values = [each.cast("double") for each in inputs(aggregate.arguments, aggregate.condition, types)]
    match aggregate.definition.name:
        case "sum":
            return F.sum(F.abs(values[0]))
        case "avg":
            return F.avg(F.abs(values[0]))
        case "corr":
            return F.lit(1_000.0)
        case _:
            return _spread(values[0], values[-1])


def _spread(x: Column, y: Column) -> Column:
    """As above of what deviates from a mean: each deviation is as exact as the numbers are large."""
    large_x, large_y = F.max(F.abs(x)), F.max(F.abs(y))
    return large_x * F.stddev_pop(y) + large_y * F.stddev_pop(x) + large_x * large_y * F.lit(_LEAST)


def _exact(judged: Judged, types: Types) -> Mapping[str, Column]:
    """What a sketch estimates."""
    aggregate = judged.aggregate
    match aggregate.definition.name:
        case "approx_distinct":
            condition = "" if aggregate.condition is None else f" where {aggregate.condition}"
            return {"exact": direct(Aggregate.parse(f"count_distinct({aggregate.arguments[0]}){condition}"), types)}
        case "quantile":
            return _ranked(judged)
        case _:
            count = F.count(inputs(aggregate.arguments, aggregate.condition, types)[0])
            return {"exact": direct(aggregate, types), "count": count}


def _number(aggregate: Aggregate, types: Types) -> Column:
    """What a sketch of quantiles takes of a row."""
    return sketched(inputs(aggregate.arguments, aggregate.condition, types)[0], types[aggregate.arguments[0]])


def _ranked(judged: Judged) -> Mapping[str, Column]:
    """Between which values of the rows each quantile has to be: those of the ranks that the bound allows."""
    value, error = quoted(proof(judged.name, "value")), rank_error(judged.aggregate)
    wanted = ranks(judged.aggregate.parameters[0])
    given = wanted if isinstance(wanted, list) else [wanted]
    # The least value that so many are not above; upwards, the least that more than so many are not above.
    lows = [_at(value, max(0.0, rank - error - _LITTLE)) for rank in given]
    highs = [_at(value, min(1.0, rank + error + _LITTLE)) for rank in given]
    return {"low": F.array(*lows), "high": F.array(*highs)}


def _at(value: str, rank: float) -> Column:
    return F.expr(f"percentile_disc({rank!r}D) WITHIN GROUP (ORDER BY {value})")


def rank_error(aggregate: Aggregate) -> float:
    """By how much a rank may be off: more than what 99 in 100 answers keep to."""
    bound = aggregate.bound
    return 0.0 if bound is None else 1.5 * bound.error
