"""What lift, combine and lower come to, in plain Python: the meaning that an engine has to reproduce.

A row is a mapping from column to cell; arguments are bare column names, a condition is the name of a boolean column,
and the source's time stands in ``time``. A sketch is played by what it approximates: the set or the multiset of values.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from stairwise.aggregate import Aggregate, Applied, Field, Formula, Operation, Partial, Primitive

Cell = int | float | None
Row = Mapping[str, Cell]
Result = Cell | tuple["Result", ...]


@dataclass(frozen=True, slots=True)
class State:
    """The cells of a state's fields, or the values it keeps with their counts (of a set: 1), in order."""

    cells: tuple[Cell, ...] = ()
    counts: tuple[tuple[float, int], ...] = ()


def one(value: float) -> float:
    """The value that stands for all that Spark holds equal: one NaN, and 0.0 for -0.0."""
    return math.nan if math.isnan(value) else value + 0


def order(value: float) -> tuple[bool, float]:
    """A sort key that puts NaN last, as Spark does."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def pair_order(pair: tuple[float, float]) -> tuple[tuple[bool, float], ...]:
    return order(pair[0]), order(pair[1])


_FOLDS: Mapping[Primitive, Callable[[float, float], float]] = {
    Primitive.COUNT_ROWS: operator.add,
    Primitive.COUNT_VALUES: operator.add,
    Primitive.SUM: operator.add,
    Primitive.MIN: lambda left, right: min(left, right, key=order),
    Primitive.MAX: lambda left, right: max(left, right, key=order),
    Primitive.BOOL_AND: lambda left, right: bool(left and right),
    Primitive.BOOL_OR: lambda left, right: bool(left or right),
    Primitive.BIT_AND: lambda left, right: int(left) & int(right),
    Primitive.BIT_OR: lambda left, right: int(left) | int(right),
    Primitive.BIT_XOR: lambda left, right: int(left) ^ int(right),
}
_SETS = (Primitive.VALUE_SET, Primitive.HLL_SKETCH)
_MULTISETS = (Primitive.VALUE_COUNTS, Primitive.KLL_SKETCH, Primitive.TOP_K_SKETCH)
_SMALLEST = (Primitive.ARG_MIN, Primitive.FIRST)
_LARGEST = (Primitive.ARG_MAX, Primitive.LAST)


def lift(partial: Partial, rows: Iterable[Row]) -> State:
    """The state of these rows, computed at one go and without ``combine``."""
    kept = [row for row in rows if partial.condition is None or row[partial.condition] is True]
    by_time = partial.primitive in (Primitive.FIRST, Primitive.LAST)
    columns = (*partial.arguments, "time") if by_time else partial.arguments
    tuples = [cells for row in kept if (cells := _numbers(row, columns)) is not None]
    firsts = [one(cells[0]) for cells in tuples if cells]
    match partial.primitive:
        case Primitive.COUNT_ROWS | Primitive.COUNT_VALUES:
            return State((len(tuples),))
        case Primitive.MEAN_M2:
            return State(_mean_m2(firsts))
        case Primitive.CO_MOMENTS:
            return State(_moments([(one(cells[0]), one(cells[1])) for cells in tuples]))
        case primitive if primitive in _SETS:
            return State(counts=_sorted(dict.fromkeys(firsts, 1)))
        case primitive if primitive in _MULTISETS:
            return State(counts=_sorted(Counter(firsts)))
        case primitive if primitive in _SMALLEST + _LARGEST:
            pairs = [(one(cells[1]), one(cells[0])) for cells in tuples]
            chosen = (min if primitive in _SMALLEST else max)(pairs, key=pair_order, default=(None, None))
            return State(chosen)
        case primitive:
            return State((reduce(_FOLDS[primitive], firsts) if firsts else None,))


def combine(primitive: Primitive, left: State, right: State) -> State:
    """The state of the rows of both."""
    match primitive:
        case Primitive.MEAN_M2 | Primitive.CO_MOMENTS:
            return State(_pairwise(left.cells, right.cells))
        case primitive if primitive in _SETS:
            return State(counts=_sorted({**dict(left.counts), **dict(right.counts)}))
        case primitive if primitive in _MULTISETS:
            return State(counts=_sorted(Counter(dict(left.counts)) + Counter(dict(right.counts))))
        case primitive if primitive in _SMALLEST + _LARGEST:
            if None in left.cells or None in right.cells:
                return right if None in left.cells else left
            ordered = sorted((left, right), key=lambda state: [order(cell or 0) for cell in state.cells])
            return ordered[0] if primitive in _SMALLEST else ordered[1]
        case primitive:
            (first,), (second,) = left.cells, right.cells
            if first is None or second is None:
                return right if first is None else left
            return State((_FOLDS[primitive](first, second),))


def subtract(primitive: Primitive, whole: State, slice_: State) -> State:
    """The state without the slice's rows, of which some value is left; only for what is invertible."""
    (first,), (second,) = whole.cells, slice_.cells
    if first is None or second is None:
        return whole
    return State((int(first) ^ int(second) if primitive is Primitive.BIT_XOR else first - second,))


def lower(aggregate: Aggregate, states: Mapping[Primitive, State]) -> Result:
    """The aggregate's result."""
    return _evaluate(aggregate.definition.lower, aggregate, states)


def _evaluate(formula: Formula, aggregate: Aggregate, states: Mapping[Primitive, State]) -> Result:
    if isinstance(formula, Field):
        partial = next(each for each in aggregate.partials if each.primitive is formula.primitive)
        return states[formula.primitive].cells[partial.traits.fields.index(formula.name)]
    operand = formula.operands[0]
    if isinstance(operand, Field) and not states[operand.primitive].cells:
        return _read(formula.operation, states[operand.primitive].counts, aggregate)
    return _arithmetic(formula, aggregate, states)


def _arithmetic(formula: Applied, aggregate: Aggregate, states: Mapping[Primitive, State]) -> Result:
    numbers = [_evaluate(operand, aggregate, states) for operand in formula.operands]
    cells = [number for number in numbers if isinstance(number, int | float)]
    if len(cells) < len(numbers):
        return None
    match formula.operation:
        case Operation.LESS_ONE:
            return cells[0] - 1
        case Operation.TIMES:
            return cells[0] * cells[1]
        case Operation.OVER:
            return cells[0] / cells[1] if cells[1] else None
        case Operation.ROOT:
            return math.sqrt(cells[0])
        case operation:
            raise ValueError(operation)


def _read(operation: Operation, counts: Sequence[tuple[float, int]], aggregate: Aggregate) -> Result:
    values = [value for value, count in counts for _ in range(count)]
    literal = aggregate.parameters[0] if aggregate.parameters else 0
    match operation:
        case Operation.ESTIMATE | Operation.SIZE:
            return len(counts)
        case Operation.SORTED:
            return tuple(value for value, _ in counts)
        case Operation.MODE:
            return max(counts, key=lambda pair: pair[1], default=(None, 0))[0]
        case Operation.TOP:
            return tuple(sorted(counts, key=lambda pair: -pair[1])[: int(str(literal))])
        case Operation.MEDIAN:
            return interpolated(values, Decimal("0.5"))
        case Operation.QUANTILES | Operation.PERCENTILE:
            pick = interpolated if operation is Operation.PERCENTILE else nearest
            ranks = literal if isinstance(literal, tuple) else (Decimal(literal),)
            results = tuple(pick(values, rank) for rank in ranks)
            return results if isinstance(literal, tuple) else results[0]
        case _:
            raise ValueError(operation)


def interpolated(values: Sequence[float], rank: Decimal) -> Cell:
    """The value at that rank of sorted values, between its neighbours."""
    if not values:
        return None
    position = rank * (len(values) - 1)
    below, share = int(position), float(position % 1)
    return values[below] if not share else values[below] * (1 - share) + values[below + 1] * share


def nearest(values: Sequence[float], rank: Decimal) -> Cell:
    """The smallest of sorted values that so large a part of them does not exceed."""
    return values[max(0, math.ceil(rank * len(values)) - 1)] if values else None


def _numbers(row: Row, columns: Sequence[str]) -> tuple[float, ...] | None:
    cells = [row[column] for column in columns]
    numbers = tuple(cell for cell in cells if cell is not None)
    return numbers if len(numbers) == len(cells) else None


def _sorted(counts: Mapping[float, int]) -> tuple[tuple[float, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: order(item[0])))


def _mean_m2(values: Sequence[float]) -> tuple[Cell, ...]:
    n, mean, _, m2, _, _ = _moments([(value, value) for value in values])
    return n, mean, m2


def _moments(pairs: Sequence[tuple[float, float]]) -> tuple[Cell, ...]:
    n = len(pairs)
    if n == 0:
        return (0, None, None, None, None, None)
    mean_x, mean_y = (sum(column) / n for column in zip(*pairs, strict=True))
    deviations = [(x - mean_x, y - mean_y) for x, y in pairs]
    sums = (sum(x * x for x, _ in deviations), sum(y * y for _, y in deviations), sum(x * y for x, y in deviations))
    return (n, mean_x, mean_y, *sums)


def _pairwise(left: Sequence[Cell], right: Sequence[Cell]) -> tuple[Cell, ...]:
    """Counts add up; means and sums of deviations are corrected by the distance of the means."""
    if not left[0] or not right[0]:
        return tuple(left if left[0] else right)
    if len(left) == 3:
        n, mean, _, m2, _, _ = _pairwise(_doubled(left), _doubled(right))
        return n, mean, m2
    a, mean_x, mean_y, *left_sums = (cell or 0 for cell in left)
    b, other_x, other_y, *right_sums = (cell or 0 for cell in right)
    dx, dy, n = other_x - mean_x, other_y - mean_y, a + b
    added = [first + second for first, second in zip(left_sums, right_sums, strict=True)]
    moved = [product * a * b / n for product in (dx * dx, dy * dy, dx * dy)]
    sums = (first + second for first, second in zip(added, moved, strict=True))
    return (n, mean_x + dx * b / n, mean_y + dy * b / n, *sums)


def _doubled(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    n, mean, m2 = cells
    return n, mean, mean, m2, m2, m2
