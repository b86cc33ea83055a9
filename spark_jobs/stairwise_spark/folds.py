"""States of fixed width as NumPy arrays, and how those of neighbouring rows become one.

Groups are rows that follow each other; `heads` says where each begins. A fold gives for each group what Spark's own
aggregates give: NaN is greater than every number, what is under a NULL counts for nothing, and a sum that its type
cannot hold is an error.

This module travels to Spark's Python workers with the task, so it needs nothing but NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple  # noqa: TID251 - arrays of any number type

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

_LOW = 0xFFFFFFFF
_LIMB = 32
_DIGITS = 38  # of the widest decimal


class State(NamedTuple):
    """A column of states.

    Attributes:
        values: One for each row; a decimal is a row of two halves, the lower one first and without a sign.
        there: Which of them are not NULL; None: all.
    """

    values: Values
    there: Flags | None

    def taken(self, places: Ints) -> State:
        """The states at these places."""
        return State(self.values[places], None if self.there is None else self.there[places])


def _folded(state: State, heads: Ints, function: np.ufunc, neutral: object) -> State:
    """By a function for which `neutral` changes nothing."""
    values = state.values
    if state.there is not None:
        values = np.where(state.there, values, np.array(neutral, values.dtype))
    merged = _added(values, heads) if function is np.add else function.reduceat(values, heads)
    return State(merged, _found(state.there, heads))


def _added(values: Values, heads: Ints) -> Values:
    """The sums of groups; those of integers as differences of totals, which are exact even if the totals are not."""
    if values.dtype.kind != "i":
        return np.add.reduceat(values, heads)
    totals = np.cumsum(values, dtype=values.dtype)[np.append(heads[1:], len(values)) - 1]
    totals[1:] -= totals[:-1].copy()
    return totals


def _found(there: Flags | None, heads: Ints) -> Flags | None:
    """For which groups there is anything."""
    if there is None:
        return None
    found: Flags = np.logical_or.reduceat(there, heads)
    return None if found.all() else found


def _spread(values: Values, heads: Ints, rows: int) -> Values:
    """What is said of each group, for each of its rows."""
    return np.repeat(values, np.diff(np.append(heads, rows)))


def _sum(states: Sequence[State], heads: Ints) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return [_decimal_sum(state, heads)]
    if state.values.dtype.kind == "i":
        widest = max(int(state.values.max()), -int(state.values.min()))
        if widest * len(state.values) >= 1 << 63:
            _check_long(state, heads)
    return [_folded(state, heads, np.add, 0)]


def _check_long(state: State, heads: Ints) -> None:
    """Refuse sums that a BIGINT cannot hold, by their halves, which do not overflow."""
    halves = [State(half, state.there) for half in (state.values & _LOW, state.values >> _LIMB)]
    if _is_beyond(_carried(halves, heads)[-1]):
        raise OverflowError("[ARITHMETIC_OVERFLOW] the sum of a column is more than a BIGINT holds")


def _decimal_sum(state: State, heads: Ints) -> State:
    low, high = state.values[:, 0], state.values[:, 1]
    parts = [low & _LOW, (low >> _LIMB) & _LOW, high & _LOW, high >> _LIMB]
    limbs = _carried([State(part, state.there) for part in parts], heads)
    found = np.empty((len(heads), 2), np.int64)
    found[:, 0] = limbs[0] | (limbs[1] << _LIMB)
    found[:, 1] = limbs[2] | (limbs[3] << _LIMB)
    greatest = 10**_DIGITS >> 64
    if _is_beyond(limbs[3]) or ((found[:, 1] < -greatest - 1) | (found[:, 1] > greatest)).any():
        raise OverflowError("[NUMERIC_VALUE_OUT_OF_RANGE] the sum of a column is more than a DECIMAL holds")
    return State(found, _found(state.there, heads))


def _is_beyond(top: Values) -> bool:
    """Whether the highest limb of a sum needs more than its bits."""
    return bool(((top < -(1 << 31)) | (top >= 1 << 31)).any())


def _carried(limbs: Sequence[State], heads: Ints) -> list[Values]:
    """The sums of limbs of 32 bits each, the lowest first; only the highest one may be less than 0 or have more."""
    sums = [_folded(limb, heads, np.add, 0).values for limb in limbs]
    for less, more in pairwise(sums):
        np.add(more, less >> _LIMB, out=more)
        np.bitwise_and(less, _LOW, out=less)
    return sums


def _min(states: Sequence[State], heads: Ints) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return [_decimal_extreme(state, heads, np.minimum)]
    if state.values.dtype.kind == "f":
        return [_folded(state, heads, np.fmin, np.nan)]
    return [_folded(state, heads, np.minimum, _limits(state.values)[1])]


def _max(states: Sequence[State], heads: Ints) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return [_decimal_extreme(state, heads, np.maximum)]
    return [_folded(state, heads, np.maximum, _limits(state.values)[0])]


def _limits(values: Values) -> tuple[object, object]:
    """What no value is less than, and what none is greater than."""
    match values.dtype.kind:
        case "b":
            return False, True
        case "f":
            return -np.inf, np.nan
        case _:
            limits = np.iinfo(values.dtype.name)
            return limits.min, limits.max


def _decimal_extreme(state: State, heads: Ints, function: np.ufunc) -> State:
    """By the upper halves, and among equal ones by the lower."""
    place = 1 if function is np.minimum else 0
    upper, lower = state.values[:, 1], state.values[:, 0].view(np.uint64)
    best = _folded(State(upper, state.there), heads, function, _limits(upper)[place])
    is_best = upper == _spread(best.values, heads, len(upper))
    if state.there is not None:
        is_best &= state.there
    found = np.empty((len(heads), 2), np.int64)
    found[:, 0] = _folded(State(lower, is_best), heads, function, _limits(lower)[place]).values.view(np.int64)
    found[:, 1] = best.values
    return State(found, best.there)


def _first(states: Sequence[State], heads: Ints) -> list[State]:
    """The pair with the least order, and among equal ones with the least value."""
    places = _in_order(states, heads, is_last=False)
    return [state.taken(places[heads]) for state in states]


def _last(states: Sequence[State], heads: Ints) -> list[State]:
    """The pair with the greatest order, and among equal ones with the greatest value."""
    places = _in_order(states, heads, is_last=True)
    return [state.taken(places[np.append(heads[1:], len(places)) - 1]) for state in states]


def _in_order(states: Sequence[State], heads: Ints, *, is_last: bool) -> Ints:
    """The places of the rows, each group in order; rows that are not there where they are not chosen."""
    order, value = states
    group = _spread(np.arange(len(heads)), heads, len(order.values))
    weights = [part for state in (value, order) for part in _comparable(state.values)]
    if order.there is not None:
        weights.append(order.there == is_last)
    return np.lexsort([*weights, group])


def _comparable(values: Values) -> list[Values]:
    """What decides between two values, the least first."""
    return [values] if values.ndim == 1 else [values[:, 0].view(np.uint64), values[:, 1]]


def _moments(states: Sequence[State], heads: Ints) -> list[State]:
    """As `moments` does: the deviations within the parts, and n times those of their means from the total mean."""
    arity = 1 if len(states) == 3 else 2
    n = states[0].values
    total = np.add.reduceat(n, heads)
    with np.errstate(all="ignore"):
        means = [_Means.of(n, mean.values, total, heads) for mean in states[1 : 1 + arity]]
        pairs = [(0, 0)] if arity == 1 else [(0, 0), (1, 1), (0, 1)]
        sums = [
            np.add.reduceat(np.where(n > 0, within.values, 0.0), heads) + _between(n, means[x], means[y], heads)
            for (x, y), within in zip(pairs, states[1 + arity :], strict=True)
        ]
    there = None if (total > 0).all() else total > 0
    return [State(total, None), *(State(values, there) for values in (*(mean.total for mean in means), *sums))]


class _Means(NamedTuple):
    """Means of parts: their total mean, how far each is from it, and for which groups all are the same."""

    total: Values
    apart: Values
    is_constant: Flags

    @classmethod
    def of(cls, n: Values, means: Values, total: Values, heads: Ints) -> _Means:
        values = np.where(n > 0, means, 0.0)
        least = np.fmin.reduceat(np.where(n > 0, means, np.nan), heads)
        is_constant = least == np.maximum.reduceat(np.where(n > 0, means, -np.inf), heads)
        centre = np.add.reduceat(n * values, heads) / total
        # Rounding leaves the centre a little off; how far, the distances from it tell.
        centre = centre + np.add.reduceat(n * (values - _spread(centre, heads, len(n))), heads) / total
        centre = np.where(is_constant, least, centre)
        return cls(centre, values - _spread(centre, heads, len(n)), is_constant)


def _between(n: Values, x: _Means, y: _Means, heads: Ints) -> Values:
    added = np.add.reduceat(np.where(n > 0, n * x.apart * y.apart, 0.0), heads)
    return np.where(x.is_constant | y.is_constant, 0.0, added)


def _bitwise(function: np.ufunc, neutral: int) -> Callable[[Sequence[State], Ints], list[State]]:
    return lambda states, heads: [_folded(states[0], heads, function, neutral)]


FOLDS: Mapping[str, Callable[[Sequence[State], Ints], list[State]]] = {
    "sum": _sum,
    "min": _min,
    "max": _max,
    "first": _first,
    "last": _last,
    "moments": _moments,
    "bit_and": _bitwise(np.bitwise_and, -1),
    "bit_or": _bitwise(np.bitwise_or, 0),
    "bit_xor": _bitwise(np.bitwise_xor, 0),
}
"""The states of one aggregate, in the order of its columns, become those of each group."""
