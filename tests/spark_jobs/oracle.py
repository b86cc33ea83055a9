"""What the tables of a rollup have to hold: each window that Python lists, over the raw rows, as Spark aggregates them.

Nothing of the engine is used but the plain call of Spark for an aggregate. Results are compared bit for bit, to
1e-9 for what is made of sums of doubles, and within its bound for a sketch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeGuard

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup
from stairwise.aggregate import Aggregate
from stairwise.call import Value
from stairwise.declared import Layout
from stairwise.window import Window
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.expressions import Types, argument_types, direct

Listed = Callable[[Window], Iterable[Interval]]
"""Gives the windows that have to be there, if they have rows."""

_ROUNDED = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")
_BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Cells:
    """The type of each result; and the results, with the number of rows as the last, by window, keys and bounds."""

    types: Mapping[str, str]
    rows: Mapping[tuple[str, ...], Sequence[object]]


def ending_in(span: Interval) -> Listed:
    """The windows that a run over a range writes."""
    return lambda window: windows_ending(window, *span)


def expected(raw: DataFrame, rollup: Rollup, listed: Listed) -> Cells:
    """The results of the raw rows, which have `_time` in microseconds; of a sketch what it is held against."""
    aggregates = dict(rollup.aggregates)
    types = argument_types(raw, aggregates.values())
    rows = [(each.name, found.start, found.end) for each in rollup.windows for found in listed(each.window)]
    bounds = [f"timestamp_seconds({name}) AS {name}" for name in _BOUNDS]
    windows = _made(raw.sparkSession, rows).selectExpr("window", *bounds)
    begin, end = (F.unix_micros(name) for name in _BOUNDS)
    placed = raw.join(F.broadcast(windows), (raw["_time"] >= begin) & (raw["_time"] < end))
    results = [_exact(each, types).alias(name) for name, each in aggregates.items()]
    keys = [_quoted(name) for name in (*rollup.keys, "window", *_BOUNDS)]
    return _cells(placed.groupBy(*keys).agg(*results, F.count(F.lit(1)).alias("_rows")), rollup)


def stored(spark: SparkSession, rollup: Rollup) -> Cells:
    """What the tables hold."""

    def table(name: str) -> DataFrame:
        frame = spark.read.format("delta").load(f"{rollup.target}/{name}")
        return frame.withColumn("window", F.lit(name))

    if rollup.layout is Layout.ONE_TABLE:
        return _cells(spark.read.format("delta").load(str(rollup.target)), rollup)
    columns = [_quoted(name) for name in (*rollup.keys, "window", *_BOUNDS, *dict(rollup.aggregates), "_rows")]
    frames = [table(each.name).select(*columns) for each in rollup.windows]
    return _cells(reduce(DataFrame.union, frames), rollup)


def differences(rollup: Rollup, found: Cells, wanted: Cells) -> Iterator[str]:
    """What is not as it has to be, in words."""
    aggregates = dict(rollup.aggregates)
    for name, aggregate in aggregates.items():
        if aggregate.bound is None and found.types[name] != wanted.types[name]:
            yield f"{aggregate} is {found.types[name]}, not {wanted.types[name]}"
    for place in sorted(wanted.rows.keys() - found.rows.keys()):
        yield f"{place} is missing"
    for place in sorted(found.rows.keys() - wanted.rows.keys()):
        yield f"{place} is too many"
    for place in sorted(found.rows.keys() & wanted.rows.keys()):
        *mine, count = found.rows[place]
        *theirs, rows = wanted.rows[place]
        if count is not None and count != rows:  # it is NULL in tiers of windows that overlap
            yield f"{place}: _rows is {count}, not {rows}"
        for aggregate, cell, exact in zip(aggregates.values(), mine, theirs, strict=True):
            if not agrees(aggregate, cell, exact):
                yield f"{place}: {aggregate} is {cell!r}, not {exact!r}"


def agrees(aggregate: Aggregate, cell: object, exact: object) -> bool:
    """Whether a result is what it has to be."""
    name, bound = aggregate.definition.name, aggregate.bound
    if bound is not None and name == "quantile" and _is_list(exact):
        return _stand_at(aggregate.parameters[0], cell, exact, 1.5 * bound.error)
    match cell, exact:
        case (int(), int()) if bound is not None and name == "approx_distinct":
            return abs(cell - exact) <= 4 * bound.error * exact
        case (float(), float()) if name in _ROUNDED and math.isfinite(exact):
            return math.isclose(cell, exact, rel_tol=1e-9, abs_tol=1e-6 if name.startswith("covar") else 1e-9)
        case _:
            return repr(cell) == repr(exact)


def _stand_at(wanted: Value, cell: object, values: Sequence[object], error: float) -> bool:
    """Whether values stand in the sorted list of all of them where they should; without any there is none."""
    ranks = wanted if isinstance(wanted, tuple) else (wanted,)
    found = cell if _is_list(cell) else [cell]
    if not values:
        return cell is None
    texts = list(map(repr, values))
    for value, rank in zip(map(repr, found), ranks, strict=True):
        if value not in texts:
            return False
        lowest, highest = texts.index(value) / len(texts), 1 - texts[::-1].index(value) / len(texts)
        if not lowest - error <= float(rank) <= highest + error:
            return False
    return True


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _exact(aggregate: Aggregate, types: Types) -> Column:
    """The plain call; for a sketch of distinct values their number, for one of quantiles all values in order."""
    match aggregate.definition.name:
        case "approx_distinct":
            condition = "" if aggregate.condition is None else f" where {aggregate.condition}"
            return direct(Aggregate.parse(f"count_distinct({aggregate.arguments[0]}){condition}"), types)
        case "quantile":
            value = F.expr(aggregate.arguments[0]).cast("double") + F.lit(0.0)
            kept = value if aggregate.condition is None else F.when(F.expr(aggregate.condition), value)
            return F.sort_array(F.collect_list(kept))
        case _:
            return direct(aggregate, types)


def _cells(frame: DataFrame, rollup: Rollup) -> Cells:
    names = dict(rollup.aggregates)
    bounds = [F.unix_micros(name) for name in _BOUNDS]
    keys, results = [_quoted(name) for name in rollup.keys], [_quoted(name) for name in names]
    selected = frame.select(F.col("window"), *keys, *bounds, *results, F.col("_rows"))
    first = 1 + len(keys) + len(bounds)
    found = selected.collect()
    rows = {tuple(map(repr, row[:first])): list(row[first:]) for row in found}
    assert len(rows) == len(found), "a window has two rows of one key"
    kinds = [field.dataType.simpleString() for field in selected.schema.fields[first:-1]]
    return Cells(dict(zip(names, kinds, strict=True)), rows)


def _quoted(name: str) -> Column:
    return F.col(f"`{name}`")


def _made(spark: SparkSession, windows: Sequence[tuple[str, int, int]]) -> DataFrame:
    return spark.createDataFrame(windows, "window string, window_start bigint, window_end bigint")
