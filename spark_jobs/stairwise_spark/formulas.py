"""An aggregate's formula as a Spark expression over its states' columns, in the type of Spark's plain call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    YearMonthIntervalType,
)

from stairwise.aggregate import TOP_K_ITEMS, Aggregate, Applied, Field, Formula, Operation, Partial, Primitive
from stairwise.call import Value
from stairwise_spark.inputs import Types
from stairwise_spark.kept_values import at_rank, entry, most_frequent

TRACKED = TOP_K_ITEMS + 1
"""How many items a sketch tracks: Spark counts NULL as one, and has no way to leave it out."""

_SUM = Field(Primitive.SUM, "sum")
_DIGITS = 38  # of the widest decimal
_FEWEST_DECIMALS = 6  # of a quotient of wide decimals
_GREATEST = 1.7976931348623157e308
_SECONDS = DecimalType(20, 6)  # of an interval, exact


def sketched(value: Column, kind: DataType) -> Column:
    """The number as a quantile sketch takes it: a double, with infinity for NaN, which sketches ignore.

    What was infinite before is the greatest double then; :func:`result` reads both back.
    """
    number = value.cast("double")
    if not isinstance(kind, FloatType | DoubleType):
        return number
    infinite = number == F.lit(math.inf)
    return F.when(F.isnan(number), F.lit(math.inf)).when(infinite, F.lit(_GREATEST)).otherwise(number)


def wide_sum(kind: DecimalType) -> DecimalType:
    """The type of a decimal sum that may be summed again without growing."""
    return DecimalType(_DIGITS, kind.scale)


def ranks(value: Value) -> float | list[float]:
    """A parameter that is one rank or several, as Spark takes it."""
    return [float(each) for each in value] if isinstance(value, tuple) else float(value)


def quotient(numerator: Column, denominator: Column) -> Column:
    """The quotient; NULL if the denominator is 0, for which Spark would raise."""
    return F.when(denominator != F.lit(0), numerator / denominator)


def _product(left: Column, right: Column) -> Column:
    """The product; 0 if one of the two is, whatever the other is: what does not vary goes with nothing, NaN neither."""
    zero = F.lit(0)
    return F.when((left == zero) | (right == zero), F.lit(0.0)).otherwise(left * right)


def result(aggregate: Aggregate, types: Types, read: Callable[[Partial], tuple[Column, ...]]) -> Column:
    """What the formula comes to; `read` gives the columns of a state."""
    return _Reader(aggregate, types, read).result()


@dataclass(frozen=True, slots=True)
class _Reader:
    aggregate: Aggregate
    types: Types
    read: Callable[[Partial], tuple[Column, ...]]

    @property
    def kind(self) -> DataType:
        """The type of the first argument."""
        return self.types[self.aggregate.arguments[0]]

    def result(self) -> Column:
        formula = self.aggregate.definition.lower
        value = self.evaluated(formula)
        if formula == _SUM and isinstance(self.kind, DecimalType):
            return value.cast(DecimalType(min(_DIGITS, self.kind.precision + 10), self.kind.scale))
        return value

    def evaluated(self, formula: Formula) -> Column:
        if isinstance(formula, Applied):
            return self.applied(formula)
        partial = next(each for each in self.aggregate.partials if each.primitive is formula.primitive)
        return self.read(partial)[partial.traits.fields.index(formula.name)]

    def applied(self, formula: Applied) -> Column:
        first, *others = (self.evaluated(each) for each in formula.operands)
        match formula.operation:
            case Operation.LESS_ONE:
                return first - F.lit(1)
            case Operation.TIMES:
                return _product(first, others[0])
            case Operation.OVER if formula.operands[0] == _SUM and isinstance(self.kind, DecimalType):
                return _decimal_mean(first, others[0], self.kind)
            case Operation.OVER:
                return quotient(first, others[0])
            case Operation.ROOT:
                return F.sqrt(first)
            case operation:
                return self.read_off(operation, first)

    def read_off(self, operation: Operation, state: Column) -> Column:
        """What one state that is not a number says."""
        match operation:
            case Operation.ESTIMATE:
                return F.hll_sketch_estimate(state)
            case Operation.QUANTILES:
                return _quantiles(state, ranks(self.aggregate.parameters[0]), self.kind)
            case Operation.TOP:
                return _top(state, self.aggregate.parameters[0])
            case Operation.MEDIAN:
                return _percentiles(state, 0.5, self.kind)
            case Operation.PERCENTILE:
                return _percentiles(state, ranks(self.aggregate.parameters[0]), self.kind)
            case Operation.MODE:
                return most_frequent(state)
            case Operation.SIZE:
                return F.size(state).cast("bigint")
            case Operation.SORTED:
                return state
            case _:
                raise NotImplementedError(operation)


def _decimal_mean(total: Column, count: Column, kind: DecimalType) -> Column:
    """The mean in the type of Spark's avg, rounded once.

    A quotient has as many digits before the point as its dividend can have, and the rest behind it. So the dividend is
    narrowed to the digits that a mean can have; a total that needs more, 10^(34 - scale), loses digits at the end.
    """
    scale = min(_DIGITS, kind.scale + 4)
    mean = DecimalType(min(_DIGITS, kind.precision + 4), scale)
    rows = count.cast(DecimalType(20, 0))
    fits = F.abs(total) < _decimal(Decimal(10 ** (_DIGITS - scale)))
    if scale >= _FEWEST_DECIMALS:
        exact = total.cast(DecimalType(_DIGITS, scale)) / rows
    else:
        # Spark would keep 6 decimals and round twice: divide a hundredth or less of it instead.
        power = Decimal(10 ** (_FEWEST_DECIMALS - scale))
        part = (total * _decimal(1 / power)).cast(DecimalType(_DIGITS, _FEWEST_DECIMALS))
        exact = part / rows * _decimal(power)
    return F.when(rows != F.lit(0), F.when(fits, exact.cast(mean)).otherwise((total / rows).cast(mean)))


def _decimal(value: Decimal) -> Column:
    """The literal in the narrowest type that holds it."""
    decimals = max(0, -int(value.as_tuple().exponent))
    digits = max(len(value.as_tuple().digits), decimals)
    return F.lit(f"{value:f}").cast(DecimalType(digits, decimals))


def _quantiles(sketch: Column, wanted: float | list[float], kind: DataType) -> Column:
    filled = F.kll_sketch_get_n_double(sketch) > F.lit(0)
    if isinstance(wanted, list):
        values = F.kll_sketch_get_quantile_double(sketch, F.array(*map(F.lit, wanted)))
        return F.when(filled, F.transform(values, lambda value: _unsketched(value, kind)))
    return F.when(filled, _unsketched(F.kll_sketch_get_quantile_double(sketch, F.lit(wanted)), kind))


def _unsketched(number: Column, kind: DataType) -> Column:
    if not isinstance(kind, FloatType | DoubleType):
        return number
    finite = F.when(number == F.lit(_GREATEST), F.lit(math.inf)).otherwise(number)
    return F.when(number == F.lit(math.inf), F.lit(math.nan)).otherwise(finite)


def _top(sketch: Column, most: Value) -> Column:
    """The items with the highest counts, the smallest first of several; Spark's own order is none."""
    items = F.call_function("approx_top_k_estimate", sketch, F.lit(TRACKED))
    present = F.filter(items, lambda each: each["item"].isNotNull())
    by_count = F.transform(present, lambda each: F.struct((-each["count"]).alias("rank"), each["item"].alias("item")))
    best = F.slice(F.array_sort(by_count), 1, F.lit(most))
    return F.transform(best, lambda each: F.struct(each["item"].alias("item"), (-each["rank"]).alias("count")))


def _percentiles(entries: Column, wanted: float | list[float], kind: DataType) -> Column:
    numbers = F.transform(entries, lambda each: entry(_number(each["value"], kind), each["count"]))
    if isinstance(wanted, list):
        values = F.array(*(_from_number(at_rank(numbers, rank), kind) for rank in wanted))
        return F.when(F.size(entries) > F.lit(0), values)
    return _from_number(at_rank(numbers, wanted), kind)


def _number(value: Column, kind: DataType) -> Column:
    """The value as a double; an interval in its smallest unit."""
    match kind:
        case DayTimeIntervalType():
            return value.cast(DayTimeIntervalType(3, 3)).cast(_SECONDS).cast("double") * F.lit(1e6)
        case YearMonthIntervalType():
            return value.cast(YearMonthIntervalType(1, 1)).cast("int").cast("double")
        case _:
            return value.cast("double")


def _from_number(number: Column, kind: DataType) -> Column:
    """An interval again, cut to its smallest unit as Spark does; every other value stays a double."""
    match kind:
        case DayTimeIntervalType():
            seconds = number.cast("bigint") * _decimal(Decimal("0.000001"))
            return seconds.cast(_SECONDS).cast(DayTimeIntervalType(3, 3)).cast(DayTimeIntervalType())
        case YearMonthIntervalType():
            return number.cast("int").cast(YearMonthIntervalType(1, 1)).cast(YearMonthIntervalType())
        case _:
            return number
