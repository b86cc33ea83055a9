"""States of fixed width as NumPy arrays, and how those of neighbouring rows become one.

Groups are rows that follow each other, and may overlap. A fold gives for each what Spark's own aggregates give: NaN is
greater than every number, what is under a NULL counts for nothing, and a sum that its type cannot hold is an error.

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


Merge = Callable[[Sequence[Values], Sequence[Values]], Sequence[Values]]
"""What two runs of rows that follow each other hold together."""


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

    def beside(self, others: State) -> State:
        """These states, and after them others."""
        sides = (self, others)
        flags = [np.ones(len(each.values), np.bool_) if each.there is None else each.there for each in sides]
        there = None if all(each.there is None for each in sides) else np.concatenate(flags)
        return State(np.concatenate([each.values for each in sides]), there)

    def between(self, first: int, beyond: int) -> State:
        """The states from one place until just before another."""
        return State(self.values[first:beyond], None if self.there is None else self.there[first:beyond])


class Groups(NamedTuple):
    """Runs of rows.

    Attributes:
        first: Where each begins.
        beyond: The row after its last one.
        are_apart: Whether each begins where the one before ends, and all rows are in one.
    """

    first: Ints
    beyond: Ints
    are_apart: bool = False

    @classmethod
    def parting(cls, heads: Ints, rows: int) -> Groups:
        """So many rows in groups that begin at some of them."""
        return cls(heads, np.append(heads[1:], rows), are_apart=True)

    def merged(self, function: np.ufunc, values: Values) -> Values:
        """The values of each group by an associative function."""
        if function is np.add and values.dtype.kind == "i":
            # What overflows in the totals cancels out.
            totals = np.zeros(len(values) + 1, values.dtype)
            np.cumsum(values, out=totals[1:])
            return totals[self.beyond] - totals[self.first]
        if self.are_apart:
            with np.errstate(all="ignore"):
                return function.reduceat(values, self.first)
        return self.folded([values], lambda left, right: [function(left[0], right[0])])[0]

    def folded(self, values: Sequence[Values], merge: Merge) -> list[Values]:
        """The same of several arrays, merged together: runs of 1, 2, 4 and so on rows make up every group."""
        size = self.beyond - self.first
        at, runs, longest = self.first.copy(), list(values), int(size.max())
        found = [np.empty(len(size), each.dtype) for each in values]
        with np.errstate(all="ignore"):
            for length in (1 << power for power in range(longest.bit_length())):
                if length > 1:
                    half = length // 2
                    runs = list(merge([run[:-half] for run in runs], [run[half:] for run in runs]))
                has_run, is_begun = (size & length) > 0, (size & (length - 1)) > 0
                starts, goes_on = np.flatnonzero(has_run & ~is_begun), np.flatnonzero(has_run & is_begun)
                more = merge([each[goes_on] for each in found], [run[at[goes_on]] for run in runs])
                for each, run, merged in zip(found, runs, more, strict=True):
                    each[starts], each[goes_on] = run[at[starts]], merged
                at[has_run] += length
        return found


def _folded(state: State, groups: Groups, function: np.ufunc, neutral: object) -> State:
    """By a function for which `neutral` changes nothing."""
    values = state.values
    if state.there is not None:
        values = np.where(state.there, values, np.array(neutral, values.dtype))
    return State(groups.merged(function, values), _found(state.there, groups))


def _found(there: Flags | None, groups: Groups) -> Flags | None:
    """For which groups there is anything."""
    if there is None:
        return None
    found = groups.merged(np.add, there.astype(np.int64)) > 0
    return None if found.all() else found


def _sum(states: Sequence[State], groups: Groups) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return [_decimal_sum(state, groups)]
    if state.values.dtype.kind == "i":
        widest = max(int(state.values.max()), -int(state.values.min()))
        if widest * len(state.values) >= 1 << 63:
            _check_long(state, groups)
    return [_folded(state, groups, np.add, 0)]


def _check_long(state: State, groups: Groups) -> None:
    """Refuse sums that a BIGINT cannot hold, by their halves, which do not overflow."""
    halves = [State(half, state.there) for half in (state.values & _LOW, state.values >> _LIMB)]
    if _is_beyond(_carried(halves, groups)[-1]):
        raise OverflowError("[ARITHMETIC_OVERFLOW] the sum of a column is more than a BIGINT holds")


def _decimal_sum(state: State, groups: Groups) -> State:
    low, high = state.values[:, 0], state.values[:, 1]
    parts = [low & _LOW, (low >> _LIMB) & _LOW, high & _LOW, high >> _LIMB]
    limbs = _carried([State(part, state.there) for part in parts], groups)
    found = np.empty((len(groups.first), 2), np.int64)
    found[:, 0] = limbs[0] | (limbs[1] << _LIMB)
    found[:, 1] = limbs[2] | (limbs[3] << _LIMB)
    greatest = 10**_DIGITS >> 64
    if _is_beyond(limbs[3]) or ((found[:, 1] < -greatest - 1) | (found[:, 1] > greatest)).any():
        raise OverflowError("[NUMERIC_VALUE_OUT_OF_RANGE] the sum of a column is more than a DECIMAL holds")
    return State(found, _found(state.there, groups))


def _is_beyond(top: Values) -> bool:
    """Whether the highest limb of a sum needs more than its bits."""
    return bool(((top < -(1 << 31)) | (top >= 1 << 31)).any())


def _carried(limbs: Sequence[State], groups: Groups) -> list[Values]:
    """The sums of limbs of 32 bits each, the lowest first; only the highest one may be less than 0 or have more."""
    sums = [_folded(limb, groups, np.add, 0).values for limb in limbs]
    for less, more in pairwise(sums):
        np.add(more, less >> _LIMB, out=more)
        np.bitwise_and(less, _LOW, out=less)
    return sums


def _min(states: Sequence[State], groups: Groups) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return _first(states, groups)
    if state.values.dtype.kind == "f":
        return [_folded(state, groups, np.fmin, np.nan)]
    return [_folded(state, groups, np.minimum, _limits(state.values)[1])]


def _max(states: Sequence[State], groups: Groups) -> list[State]:
    (state,) = states
    if state.values.ndim == 2:
        return _last(states, groups)
    return [_folded(state, groups, np.maximum, _limits(state.values)[0])]


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


def _first(states: Sequence[State], groups: Groups) -> list[State]:
    """The pair with the least order, and among equal ones with the least value."""
    return _chosen(states, groups, np.minimum)


def _last(states: Sequence[State], groups: Groups) -> list[State]:
    """The pair with the greatest order, and among equal ones with the greatest value."""
    return _chosen(states, groups, np.maximum)


def _chosen(states: Sequence[State], groups: Groups, function: np.ufunc) -> list[State]:
    """The states of the first or the last row of each group if all rows were in order; rows that are not there last."""
    order, *_ = states
    weights = [part for state in reversed(states) for part in _comparable(state.values)]
    if order.there is not None:
        weights.append(order.there == (function is np.maximum))
    places = np.lexsort(weights)
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    best = places[groups.merged(function, ranks)]
    return [state.taken(best) for state in states]


def _comparable(values: Values) -> list[Values]:
    """What decides between two values, the least first."""
    return [values] if values.ndim == 1 else [values[:, 0].view(np.uint64), values[:, 1]]


def _moments(states: Sequence[State], groups: Groups) -> list[State]:
    """As `moments` does: what is merged deviates from its mean as each part does, and as the parts' means differ."""
    values = [np.where(states[0].values > 0, state.values, 0) for state in states]
    n, *found = groups.folded(values, _joined)
    there = None if (n > 0).all() else n > 0
    return [State(n, None), *(State(each, there) for each in found)]


def _joined(left: Sequence[Values], right: Sequence[Values]) -> list[Values]:
    """Moments of two parts together: n, one mean or two, and the sums of products of deviations from them."""
    n = left[0] + right[0]
    share = right[0] / np.maximum(n, 1)
    arity = 1 if len(left) == 3 else 2
    means = [_Means.of(left, right, place) for place in range(1, 1 + arity)]
    pairs = [(0, 0)] if arity == 1 else [(0, 0), (1, 1), (0, 1)]
    return [
        n,
        *(mean.left + mean.apart * share for mean in means),
        *(
            left[place] + right[place] + means[x].apart * means[y].apart * (left[0] * share)
            for place, (x, y) in enumerate(pairs, 1 + arity)
        ),
    ]


class _Means(NamedTuple):
    """The mean of one part, and how far that of the next is from it; of an empty part it is that of the other."""

    left: Values
    apart: Values

    @classmethod
    def of(cls, left: Sequence[Values], right: Sequence[Values], place: int) -> _Means:
        one = np.where(left[0] > 0, left[place], right[place])
        other = np.where(right[0] > 0, right[place], left[place])
        return cls(one, np.where(one == other, 0.0, other - one))


def _bitwise(function: np.ufunc, neutral: int) -> Callable[[Sequence[State], Groups], list[State]]:
    return lambda states, groups: [_folded(states[0], groups, function, neutral)]


FOLDS: Mapping[str, Callable[[Sequence[State], Groups], list[State]]] = {
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
