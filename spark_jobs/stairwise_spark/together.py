"""Several tiers by one pass over the rows of their common parent, in Spark's Python workers.

The plan says which tiers may go together. Whether they do is a question of types: a worker handles states of fixed
width, as NumPy has them. What it cannot handle is computed tier by tier.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from stairwise.aggregate import Primitive
from stairwise.plan import Step
from stairwise.tiers import Tier
from stairwise.window import FixedWindow
from stairwise.windowing import Interval, windows_ending
from stairwise_spark import arrays, folds
from stairwise_spark.arrays import GROUP, OF, Branch, Cut, Fold, Hops, Pass
from stairwise_spark.compute import Content
from stairwise_spark.expressions import lifted
from stairwise_spark.grid import MICROS, fixed_begins
from stairwise_spark.halves import rows_of_all
from stairwise_spark.names import column
from stairwise_spark.rows import NUMBER
from stairwise_spark.spans import Spans, hull

SWITCH = "spark.stairwise.arrow.enabled"
"""The setting that says whether workers may do it: they need Python with NumPy and PyArrow, as pandas functions do."""

_Kinds = tuple[type[DataType], ...]
_NUMBERS: _Kinds = (IntegralType, FloatType, DoubleType, DecimalType)
_FIXED: _Kinds = (*_NUMBERS, BooleanType, DateType, TimestampType, TimestampNTZType)
_FOLDS: Mapping[Primitive, tuple[str, _Kinds]] = {
    Primitive.COUNT_ROWS: ("sum", (LongType,)),
    Primitive.COUNT_VALUES: ("sum", (LongType,)),
    Primitive.SUM: ("sum", _NUMBERS),
    Primitive.MIN: ("min", _FIXED),
    Primitive.MAX: ("max", _FIXED),
    Primitive.BOOL_AND: ("min", (BooleanType,)),
    Primitive.BOOL_OR: ("max", (BooleanType,)),
    Primitive.BIT_AND: ("bit_and", (IntegralType,)),
    Primitive.BIT_OR: ("bit_or", (IntegralType,)),
    Primitive.BIT_XOR: ("bit_xor", (IntegralType,)),
    Primitive.MEAN_M2: ("moments", (LongType, DoubleType)),
    Primitive.CO_MOMENTS: ("moments", (LongType, DoubleType)),
    Primitive.ARG_MIN: ("first", _FIXED),
    Primitive.ARG_MAX: ("last", _FIXED),
    Primitive.FIRST: ("first", _FIXED),
    Primitive.LAST: ("last", _FIXED),
}

# Without this the workers of a cluster would have to have this package.
for _module in (arrays, folds):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]  # it has no types


def can_go_together(raw: DataFrame, content: Content) -> bool:
    """Whether a worker can tell the keys of RAW rows apart and merge their states; Spark analyses, and runs nothing."""
    if raw.sparkSession.conf.get(SWITCH, "true") != "true":
        return False
    partials = content.partials(keeps_values=False)
    states = [state for partial in partials for state in lifted(partial, content.types)]
    rows = raw.groupBy(*map(column, content.keys)).agg(*states).schema
    return all(_is_plain(rows[key].dataType) for key in content.keys) and all(
        partial.primitive in _FOLDS
        and all(isinstance(rows[name].dataType, _FOLDS[partial.primitive][1]) for name in partial.columns)
        for partial in partials
    )


def distributed(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The frame with all rows of a key in one place."""
    return frame.repartition(*map(column, keys)) if keys else frame.repartition(1)


def made_together(
    rows: DataFrame,
    content: Content,
    steps: Sequence[Step],
    ends: Mapping[str, Spans],
    wanted: Collection[str],
    stored: Mapping[str, DataFrame] = MappingProxyType({}),
) -> DataFrame:
    """The wanted tiers of some steps as one TIER frame, with the `NUMBER` of each row's tier.

    Args:
        rows: The TIER frame of what the first step reads; distributed by its keys, if nothing is stored.
        content: What they hold.
        steps: Parents before their children; each reads the rows that come in, or one of the steps before.
        ends: For each tier, ranges of seconds: its windows that end in (start, end] of one of them are made.
        wanted: The names of tiers; the others are only read here.
        stored: The TIER frames of windows of some of these tiers that are read too, and are there already.
    """
    keys, partials = content.keys, content.partials(keeps_values=False)
    numbers = {step.tier.name: number for number, step in enumerate(steps, 1)}
    work = Pass(
        keys=keys,
        folds=tuple(Fold(partial.columns, _FOLDS[partial.primitive][0]) for partial in partials),
        branches=tuple(_branch(step, numbers, ends[step.tier.name], wanted) for step in steps),
        has_stored=bool(stored),
    )
    states = [name for partial in partials for name in partial.columns]
    made = rows.select(*map(column, (*keys, "_begin", "_end", *states))).schema
    # By one number Spark sorts several times as fast as by columns.
    group = F.xxhash64(*map(column, keys)) if keys else F.lit(0).cast("bigint")
    columns = (*keys, "_begin", *states)
    if stored:
        sides = {0: rows, **{numbers[name]: frame for name, frame in stored.items()}}
        apart = (side.select(*map(column, columns), F.lit(number).alias(OF)) for number, side in sides.items())
        rows, columns = distributed(rows_of_all(apart), keys), (*columns, OF)
    grouped = rows.select(group.alias(GROUP), *map(column, columns)).sortWithinPartitions(GROUP)
    return grouped.mapInArrow(work, StructType([StructField(NUMBER, IntegerType()), *made.fields]))


def _is_plain(kind: DataType) -> bool:
    """Whether values are equal exactly if they are the same."""
    if isinstance(kind, StringType):
        return kind.isUTF8BinaryCollation()
    return isinstance(kind, (*_FIXED, BinaryType))


def _branch(step: Step, numbers: Mapping[str, int], ends: Spans, wanted: Collection[str]) -> Branch:
    span = hull(ends)
    return Branch(
        number=numbers[step.tier.name],
        reads=numbers.get(step.reads or "", 0),
        cut=_cut(step.tier, span) if step.final is None else _hops(step.tier, span),
        after=tuple(each.start * MICROS for each in ends),
        until=tuple(each.end * MICROS for each in ends),
        is_asked_for=step.tier.name in wanted,
    )


def _cut(tier: Tier, span: Interval) -> Cut:
    window = tier.window
    if window is None or isinstance(window, FixedWindow):
        edges = tier.needs
        return Cut(classes=tuple((modulus * MICROS, residue * MICROS) for modulus, residue in edges.classes))
    listed = list(windows_ending(window, *span))
    return Cut(begins=tuple(each.start * MICROS for each in listed), ends=tuple(each.end * MICROS for each in listed))


def _hops(tier: Tier, span: Interval) -> Hops:
    if isinstance(tier.window, FixedWindow):
        begins = fixed_begins(tier.window, span)
        first, beyond, slide, length = (n * MICROS for n in (begins.start, begins.stop, begins.step, tier.window.range))
        return Hops(range(first, beyond, slide), range(first + length, beyond + length, slide))
    listed = _cut(tier, span)
    return Hops(listed.begins, listed.ends)
