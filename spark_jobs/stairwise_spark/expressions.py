"""Aggregates as Spark expressions: lifted from rows, combined from finer slices, lowered to results.

A state has a type that combining does not change: what was lifted may be combined any number of times, in any grouping.
Only lowering makes the type that Spark SQL gives for the plain call. What an aggregate means stands in the catalogue of
`stairwise.aggregate`; this module says how Spark does it, primitive by primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, DecimalType, StringType, StructType
from pyspark.sql.window import WindowSpec

from stairwise.aggregate import Aggregate, Partial, Primitive
from stairwise_spark.formulas import TRACKED, quotient, ranks, result, sketched, wide_sum
from stairwise_spark.inputs import Types, argument_types, inputs, ordered
from stairwise_spark.kept_values import added, counted, distinct
from stairwise_spark.moments import combined_moments, lifted_moments
from stairwise_spark.names import column

__all__ = ["Types", "argument_types", "combined", "direct", "lifted", "lowered"]

_Function = Callable[[Column], Column]

_FOLDS: Mapping[Primitive, _Function] = {
    Primitive.MIN: F.min,
    Primitive.MAX: F.max,
    Primitive.BOOL_AND: F.bool_and,
    Primitive.BOOL_OR: F.bool_or,
    Primitive.BIT_AND: F.bit_and,
    Primitive.BIT_OR: F.bit_or,
    Primitive.BIT_XOR: F.bit_xor,
    Primitive.ARG_MIN: F.min,
    Primitive.ARG_MAX: F.max,
    Primitive.FIRST: F.min,
    Primitive.LAST: F.max,
}
_MICROS = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_EXACT_JSON = {"ignoreNullFields": "false", "timestampFormat": _MICROS, "timestampNTZFormat": _MICROS}


def lifted(partial: Partial, types: Types) -> tuple[Column, ...]:
    """The partial's columns over the RAW frame: aggregate expressions, named and in its own order."""
    return _named(partial, _lifted(partial, types))


def combined(partial: Partial, over: WindowSpec | None = None) -> tuple[Column, ...]:
    """The partial's columns over TIER rows of finer slices: the same names and types as theirs.

    Args:
        partial: What is combined.
        over: The frame of rows that is combined; without one the expressions are for a grouping.
    """

    def fold(aggregated: Column) -> Column:
        return aggregated if over is None else aggregated.over(over)

    return _named(partial, _combined(partial, _columns(partial), fold))


def lowered(aggregate: Aggregate, types: Types) -> Column:
    """The aggregate's result over the partial columns of TIER rows, in the type that Spark gives for the plain call."""
    return result(aggregate, types, _columns)


def direct(aggregate: Aggregate, types: Types) -> Column:
    """The aggregate over the RAW frame for a grouping: Spark's own function, or the formula where Spark has none."""
    name = aggregate.definition.name
    match inputs(aggregate.arguments, aggregate.condition, types):
        case (value,) if name == "percentile":
            return F.percentile(value, ranks(aggregate.parameters[0]))
        case (value,) if name == "mode" and isinstance(types[aggregate.arguments[0]], BinaryType):
            # Spark's mode takes each binary value for another.
            return F.unhex(F.mode(F.hex(value), deterministic=True))
        case (value,) if name in _ONE_ARGUMENT:
            return _ONE_ARGUMENT[name](value)
        case (first, second) if name in _TWO_ARGUMENTS:
            return _TWO_ARGUMENTS[name](first, second)
        case _:
            return result(aggregate, types, lambda partial: _lifted(partial, types))


def _columns(partial: Partial) -> tuple[Column, ...]:
    return tuple(map(column, partial.columns))


def _named(partial: Partial, states: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(state.alias(name) for state, name in zip(states, partial.columns, strict=True))


def _lifted(partial: Partial, types: Types) -> tuple[Column, ...]:
    values = inputs(partial.arguments, partial.condition, types)
    match partial.primitive:
        case Primitive.COUNT_ROWS:
            row = F.lit(1)
            return (F.count(row if partial.condition is None else F.when(F.expr(partial.condition), row)),)
        case Primitive.COUNT_VALUES:
            return (F.count(values[0]),)
        case Primitive.MEAN_M2 | Primitive.CO_MOMENTS:
            return lifted_moments([value.cast("double") for value in values])
        case Primitive.ARG_MIN | Primitive.ARG_MAX:
            return _chosen(_FOLDS[partial.primitive](ordered(values[1], values[0])))
        case Primitive.FIRST | Primitive.LAST:
            return _chosen(_FOLDS[partial.primitive](ordered(column("_time"), values[0])))
        case _:
            return (_lifted_by_type(partial, values[0], types[partial.arguments[0]]),)


def _lifted_by_type(partial: Partial, value: Column, kind: DataType) -> Column:
    match partial.primitive:
        case Primitive.SUM:
            return F.sum(value.cast(wide_sum(kind)) if isinstance(kind, DecimalType) else value)
        case Primitive.HLL_SKETCH:
            return F.hll_sketch_agg(_hashed(value, kind), partial.parameter)
        case Primitive.KLL_SKETCH:
            return F.kll_sketch_agg_double(sketched(value, kind), partial.parameter)
        case Primitive.TOP_K_SKETCH:
            return F.call_function("approx_top_k_accumulate", value, F.lit(TRACKED))
        case Primitive.VALUE_SET:
            # Spark has no sets of collated strings.
            values = F.collect_list(value) if _is_collated(kind) else F.collect_set(value)
            return distinct(F.sort_array(values))
        case Primitive.VALUE_COUNTS:
            return counted(F.sort_array(F.collect_list(value)))
        case primitive:
            return _FOLDS[primitive](value)


def _combined(partial: Partial, states: tuple[Column, ...], fold: _Function) -> tuple[Column, ...]:
    state = states[0]
    match partial.primitive:
        case Primitive.COUNT_ROWS | Primitive.COUNT_VALUES | Primitive.SUM:
            return (fold(F.sum(state)),)
        case Primitive.MEAN_M2 | Primitive.CO_MOMENTS:
            return combined_moments(states, fold)
        case Primitive.ARG_MIN | Primitive.ARG_MAX | Primitive.FIRST | Primitive.LAST:
            return _chosen(fold(_FOLDS[partial.primitive](ordered(*states))))
        case Primitive.HLL_SKETCH:
            return (fold(F.hll_union_agg(state)),)
        case Primitive.KLL_SKETCH:
            return (fold(F.kll_merge_agg_double(state, partial.parameter)),)
        case Primitive.TOP_K_SKETCH:
            return (fold(F.call_function("approx_top_k_combine", state, F.lit(TRACKED))),)
        case Primitive.VALUE_SET:
            return (distinct(F.sort_array(F.flatten(fold(F.collect_list(state))))),)
        case Primitive.VALUE_COUNTS:
            return (added(fold(F.collect_list(state))),)
        case primitive:
            return (fold(_FOLDS[primitive](state)),)


def _chosen(row: Column) -> tuple[Column, ...]:
    return row["order"], row["value"]


def _hashed(value: Column, kind: DataType) -> Column:
    """What a sketch of distinct values takes: equal exactly if the values are, and never empty, which it would skip."""
    match kind:
        case StringType() if _is_collated(kind):
            return F.concat(F.lit("."), value)
        case ArrayType() | StructType():
            # A hash of a nested value does not see where in it a NULL is.
            return F.when(value.isNotNull(), F.to_json(F.struct(value), _EXACT_JSON))
        case _:
            return F.when(value.isNotNull(), F.xxhash64(value))


def _is_collated(kind: DataType) -> bool:
    return isinstance(kind, StringType) and not kind.isUTF8BinaryCollation()


def _correlation(x: Column, y: Column) -> Column:
    """NULL if a side does not vary, where Spark's own corr divides by zero or by what rounding left."""
    varies = (F.max(x) - F.min(x) != F.lit(0)) & (F.max(y) - F.min(y) != F.lit(0))
    return F.when(varies, quotient(F.covar_pop(x, y), F.stddev_pop(x) * F.stddev_pop(y)))


_ONE_ARGUMENT: Mapping[str, _Function] = {
    "count": F.count,
    "sum": F.sum,
    "avg": F.avg,
    "min": F.min,
    "max": F.max,
    "var_pop": F.var_pop,
    "var_samp": F.var_samp,
    "stddev_pop": F.stddev_pop,
    "stddev_samp": F.stddev_samp,
    "bool_and": F.bool_and,
    "bool_or": F.bool_or,
    "bit_and": F.bit_and,
    "bit_or": F.bit_or,
    "bit_xor": F.bit_xor,
    "first": lambda value: F.min_by(value, ordered(column("_time"), value)),
    "last": lambda value: F.max_by(value, ordered(column("_time"), value)),
    "count_distinct": F.count_distinct,
    "median": F.median,
    "mode": lambda value: F.mode(value, deterministic=True),
    "collect_set": lambda value: F.sort_array(F.collect_set(value)),
}
_TWO_ARGUMENTS: Mapping[str, Callable[[Column, Column], Column]] = {
    "covar_pop": F.covar_pop,
    "covar_samp": F.covar_samp,
    "corr": _correlation,
    "min_by": lambda value, order: F.min_by(value, ordered(order, value)),
    "max_by": lambda value, order: F.max_by(value, ordered(order, value)),
}
