"""Which slices differ between two sets of rows, whatever the order of the rows in them.

Each row becomes a few numbers that any change of what is used of it changes: hashes, cut into halves that can be summed
without an overflow. Rows of one side count up, those of the other side count down, and a slice whose sums are all 0 is
the same on both sides. No row leaves Spark, and of the slices a bounded number does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.event_time import MICROS
from stairwise_spark.grid import in_slices
from stairwise_spark.halves import all_of, rows_of_all
from stairwise_spark.names import column
from stairwise_spark.spans import Spans, common, joined

MOST_SLICES = 100_000
_SEEDS = (1, 2)
_LOW = 0xFFFF_FFFF
_BOUNDS = ("_begin", "_end")
_SIGN, _NET, _FEWER = "_sign", "_net", "_fewer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The slices that differ.

    Attributes:
        spans: In seconds, in order and apart.
        more_rows: How many rows more there are in those slices that have more.
        fewer_rows: How many fewer in those that have fewer.
        is_exact: Whether there is nothing else in the spans; else there were too many slices to tell them apart.
    """

    spans: tuple[Interval, ...] = ()
    more_rows: int = 0
    fewer_rows: int = 0
    is_exact: bool = True


def signed(rows: DataFrame, sign: int | str, *, is_hashed: bool) -> DataFrame:
    """What is summed of rows that have `_time`: `_sign`, and the parts of their hashes if both sides have rows.

    Args:
        rows: All columns count, but for that of the sign.
        sign: 1 for rows that count up, -1 for those that count down; or the column that says so.
        is_hashed: Whether both sides have rows.
    """
    side = F.lit(sign) if isinstance(sign, int) else F.col(sign)
    parts = _parts(rows.drop(sign) if isinstance(sign, str) else rows) if is_hashed else {}
    return rows.select("_time", side.alias(_SIGN), *(part.alias(name) for name, part in parts.items()))


def difference(sides: Sequence[DataFrame], slices: EdgeSet, most: int = MOST_SLICES) -> Difference:
    """Which slices differ.

    Args:
        sides: What is :func:`signed`, all in one way.
        slices: Their edges.
        most: How many slices may reach the driver.
    """
    found = _summed(sides, slices)
    # What overflows is no longer known to be the same.
    is_same = all_of(F.col(each).eqNullSafe(F.lit(0)) for each in found.columns if each not in _BOUNDS)
    differing = found.where(~is_same).select("_begin", "_end", _NET).persist()
    try:
        few = differing.limit(most + 1).collect()
        if len(few) <= most:
            return Difference(
                spans=joined(Interval(row["_begin"] // MICROS, row["_end"] // MICROS) for row in few),
                more_rows=sum(max(0, row[_NET]) for row in few),
                fewer_rows=sum(max(0, -row[_NET]) for row in few),
            )
        return _in_stretches(differing, most)
    finally:
        differing.unpersist()


def differences(
    sides: Sequence[DataFrame], step: str, slices: EdgeSet, within: Mapping[int, Spans], most: int = MOST_SLICES
) -> dict[int, Difference] | None:
    """Which slices differ by all steps from one on, for each; None: there are too many slices, or sums overflow.

    Args:
        sides: What is :func:`signed`, all in one way, each row with the step that it is of.
        step: The column of the step.
        slices: The edges.
        within: For each step the whole slices in question.
        most: How many slices of steps may reach the driver.
    """
    summed = _summed(sides, slices, step)
    numbers = [name for name in summed.columns if name not in {*_BOUNDS, step}]
    rows = summed.limit(most + 1).collect()
    if len(rows) > most or any(None in row for row in rows):
        return None
    by_step: dict[int, list[Row]] = {}
    for row in rows:
        by_step.setdefault(row[step], []).append(row)
    found: dict[int, Difference] = {}
    sums: dict[Interval, tuple[int, ...]] = {}
    for first in sorted(within, reverse=True):
        for row in by_step.get(first, ()):
            span = Interval(row["_begin"] // MICROS, row["_end"] // MICROS)
            sums[span] = tuple(map(add, sums.get(span, repeat(0)), map(row.__getitem__, numbers)))
        differing = common(sorted(span for span, each in sums.items() if any(each)), within[first])
        nets = [sums[span][0] for span in differing]
        found[first] = Difference(
            spans=joined(differing),
            more_rows=sum(max(0, net) for net in nets),
            fewer_rows=sum(max(0, -net) for net in nets),
        )
    return found


def _summed(sides: Sequence[DataFrame], slices: EdgeSet, *apart: str) -> DataFrame:
    """For each slice, first how many rows more it has, then the sums of their parts; NULL where these overflow."""
    rows = rows_of_all(sides)
    parts = [name for name in rows.columns if name not in {"_time", _SIGN, *apart}]
    sums = [F.try_sum(F.col(_SIGN) * F.col(part)).alias(part) for part in parts]
    return in_slices(rows, slices, F.col("_time")).groupBy(*_BOUNDS, *apart).agg(F.sum(_SIGN).alias(_NET), *sums)


def _in_stretches(differing: DataFrame, most: int) -> Difference:
    """The differing slices as the ends of what there is in as many stretches of time."""
    ends = differing.agg(F.min("_begin"), F.max("_end")).collect()[0]
    length = -(-(ends[1] - ends[0]) // most)
    more = F.sum(F.greatest(F.lit(0), F.col(_NET))).alias(_NET)
    fewer = F.sum(F.greatest(F.lit(0), -F.col(_NET))).alias(_FEWER)
    stretch = F.call_function("div", F.col("_begin") - F.lit(ends[0]), F.lit(length))
    within = differing.groupBy(stretch).agg(F.min("_begin").alias("_begin"), F.max("_end").alias("_end"), more, fewer)
    rows = within.collect()
    return Difference(
        spans=joined(Interval(row["_begin"] // MICROS, row["_end"] // MICROS) for row in rows),
        more_rows=sum(row[_NET] for row in rows),
        fewer_rows=sum(row[_FEWER] for row in rows),
        is_exact=False,
    )


def _parts(rows: DataFrame) -> dict[str, Column]:
    """The halves of two hashes of a row."""
    values = [each for field in rows.schema.fields for each in _hashable(column(field.name), field.dataType)]
    parts: dict[str, Column] = {}
    for seed in _SEEDS:
        whole = F.xxhash64(F.lit(seed), *values)
        parts[f"_high_{seed}"], parts[f"_low_{seed}"] = F.shiftright(whole, 32), whole.bitwiseAND(F.lit(_LOW))
    return parts


def _hashable(value: Column, kind: DataType) -> Iterable[Column]:
    """What to hash for a value, so that different values give different hashes.

    Spark skips NULL, runs the elements of arrays and the fields of structs together, and hashes no maps.
    """
    match kind:
        case ArrayType():
            inner = F.transform(value, lambda each: F.xxhash64(*_hashable(each, kind.elementType)))
            return (value.isNull(), F.size(value), inner)
        case MapType():
            entries = F.transform(
                F.map_entries(value),
                lambda each: F.xxhash64(
                    *_hashable(each["key"], kind.keyType), *_hashable(each["value"], kind.valueType)
                ),
            )
            return (value.isNull(), F.size(value), F.array_sort(entries))
        case StructType():
            fields = (_hashable(value.getField(each.name), each.dataType) for each in kind.fields)
            return (value.isNull(), *(each for field in fields for each in field))
        case VariantType():
            return (value.isNull(), F.to_json(value))
        case StringType():
            # A collation takes different texts for equal.
            return (value.isNull(), value.cast("binary"))
        case _:
            return (value.isNull(), value)
