"""What aggregates take from a row: their arguments, with one form for equal values, NULL where a row is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NumericType,
    StructType,
    VariantType,
)

from stairwise.aggregate import Aggregate, Primitive
from stairwise.call import refusal
from stairwise_spark.halves import all_of

Types = Mapping[str, DataType]
"""The type of each expression that aggregates take, as the RAW frame has it."""

_COMPARING = {
    *(Primitive.MIN, Primitive.MAX, Primitive.ARG_MIN, Primitive.ARG_MAX, Primitive.FIRST, Primitive.LAST),
    *(Primitive.HLL_SKETCH, Primitive.TOP_K_SKETCH, Primitive.VALUE_SET, Primitive.VALUE_COUNTS),
}


def argument_types(raw: DataFrame, aggregates: Iterable[Aggregate]) -> Types:
    """The types of all expressions that the aggregates take, by one analysis of the RAW frame; nothing runs.

    Raises:
        AggregateError: An aggregate has to compare values that Spark cannot compare, or needs a number.
        AnalysisException: Spark cannot resolve an expression.
    """
    given = tuple(aggregates)
    expressions = tuple(dict.fromkeys(each for aggregate in given for each in aggregate.arguments))
    schema = raw.select(*(F.expr(each).alias(f"_{index}") for index, each in enumerate(expressions))).schema
    types = {each: field.dataType for each, field in zip(expressions, schema.fields, strict=True)}
    for aggregate in given:
        _check(aggregate, types)
    return types


def inputs(arguments: Sequence[str], condition: str | None, types: Types) -> tuple[Column, ...]:
    """The arguments; NULL in each row for which the condition is not true, or of which one argument is NULL."""
    values = [F.expr(each) for each in arguments]
    rules = [F.expr(condition)] if condition is not None else []
    if len(values) > 1:
        rules += [value.isNotNull() for value in values]
    unified = [_unified(value, types[each]) for value, each in zip(values, arguments, strict=True)]
    if not rules:
        return tuple(unified)
    kept = all_of(rules)
    return tuple(F.when(kept, value) for value in unified)


def ordered(order: Column, value: Column) -> Column:
    """What decides between rows, the value where the order does not; NULL if one of the two is."""
    return F.when(value.isNotNull() & order.isNotNull(), F.struct(order.alias("order"), value.alias("value")))


def _check(aggregate: Aggregate, types: Types) -> None:
    primitives = set(aggregate.definition.primitives)
    for argument in aggregate.arguments:
        kind = types[argument]
        said = f"{argument} is of type {kind.simpleString()}"
        if primitives & _COMPARING and not _is_comparable(kind):
            raise refusal(str(aggregate), f"{said}, whose values cannot be compared", "take a part of it, or cast it.")
        if Primitive.KLL_SKETCH in primitives and not isinstance(kind, NumericType):
            raise refusal(str(aggregate), f"{said}, and quantiles are of numbers", "cast it to a number.")


def _is_comparable(kind: DataType) -> bool:
    match kind:
        case MapType() | VariantType() | CalendarIntervalType():
            return False
        case ArrayType():
            return _is_comparable(kind.elementType)
        case StructType():
            return all(_is_comparable(field.dataType) for field in kind.fields)
        case _:
            return True


def _unified(value: Column, kind: DataType) -> Column:
    """The value with 0.0 for each -0.0 in it."""
    match kind:
        case FloatType() | DoubleType():
            return value + F.lit(0.0).cast(kind)
        case ArrayType() if _has_fractions(kind):
            return F.transform(value, lambda element: _unified(element, kind.elementType))
        case StructType() if _has_fractions(kind):
            parts = [_unified(value.getField(each.name), each.dataType).alias(each.name) for each in kind.fields]
            return F.when(value.isNotNull(), F.struct(*parts))
        case _:
            return value


def _has_fractions(kind: DataType) -> bool:
    match kind:
        case FloatType() | DoubleType():
            return True
        case ArrayType():
            return _has_fractions(kind.elementType)
        case StructType():
            return any(_has_fractions(field.dataType) for field in kind.fields)
        case _:
            return False
