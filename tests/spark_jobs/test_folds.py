"""What NumPy merges is what Python would: group by group, NULLs left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise_spark.folds import FOLDS, Groups, Ints, State, Values

Cells = Sequence[float | None]
GROUPS = st.lists(st.integers(1, 5), min_size=1, max_size=6)
LONGS = st.integers(-(2**62), 2**62) | st.integers(-3, 3)
DOUBLES = st.floats(-1e6, 1e6).map(lambda value: value + 0.0) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
DECIMALS = st.integers(-(10**37), 10**37) | st.integers(-3, 3)


def heads_of(groups: list[int]) -> Ints:
    return np.cumsum([0, *groups[:-1]], dtype=np.int64)


def groups_of(groups: list[int]) -> Groups:
    return Groups.parting(heads_of(groups), sum(groups))


def state_of(cells: Cells, kind: type[np.generic]) -> State:
    there = np.array([cell is not None for cell in cells])
    return State(np.array([7 if cell is None else cell for cell in cells], kind), None if there.all() else there)


def decimal_of(cells: Cells) -> State:
    halves = [(each & (2**64 - 1), each >> 64) for each in (7 if cell is None else int(cell) for cell in cells)]
    values = np.array([(low - 2**64 if low >= 2**63 else low, high) for low, high in halves], np.int64)
    there = np.array([cell is not None for cell in cells])
    return State(values, None if there.all() else there)


def cells_of(state: State) -> list[float | None]:
    found: list[float | None] = [_cell(value) for value in state.values]
    return found if state.there is None else [v if there else None for v, there in zip(found, state.there, strict=True)]


def _cell(value: Values) -> float:
    if value.ndim:
        return (int(value[1]) << 64) + (int(value[0]) & (2**64 - 1))
    cell: float = value.item()
    return cell


def split(cells: Cells, groups: list[int]) -> list[list[float]]:
    starts = heads_of(groups)
    return [
        [c for c in cells[start : start + size] if c is not None] for start, size in zip(starts, groups, strict=True)
    ]


def by_value(cell: float) -> tuple[bool, float]:
    """NaN is greater than all numbers."""
    return (math.isnan(cell), cell)


EXPECTED: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "min": lambda group: min(group, key=by_value),
    "max": lambda group: max(group, key=by_value),
    "bit_and": lambda group: reduce(int.__and__, map(int, group)),
    "bit_or": lambda group: reduce(int.__or__, map(int, group)),
    "bit_xor": lambda group: reduce(int.__xor__, map(int, group)),
}


@given(st.data(), GROUPS, st.sampled_from(sorted(EXPECTED)), st.sampled_from(["long", "double", "decimal"]))
def test_a_fold_is_what_python_makes_of_each_group(
    data: st.DataObject, groups: list[int], name: str, kind: str
) -> None:
    if name.startswith("bit"):
        kind = "long"
    cell = {"long": LONGS, "double": DOUBLES, "decimal": DECIMALS}[kind]
    cells = data.draw(st.lists(cell | st.none(), min_size=sum(groups), max_size=sum(groups)))
    if name == "sum" and kind == "long":
        cells = [None if cell is None else int(cell) // 8 for cell in cells]
    state = decimal_of(cells) if kind == "decimal" else state_of(cells, np.int64 if kind == "long" else np.float64)
    (found,) = FOLDS[name]([state], groups_of(groups))
    for mine, group in zip(cells_of(found), split(cells, groups), strict=True):
        expected = EXPECTED[name](group) if group else None
        if name == "sum" and kind == "double" and expected is not None:
            assert mine == pytest.approx(expected, rel=1e-9, abs=1e-3, nan_ok=True)
        else:
            assert repr(mine) == repr(expected)


@given(st.data(), GROUPS, st.sampled_from(["first", "last"]))
def test_the_first_and_the_last_are_chosen_by_order_and_then_by_value(
    data: st.DataObject, groups: list[int], name: str
) -> None:
    size = sum(groups)
    orders = data.draw(st.lists(st.integers(0, 2) | st.none(), min_size=size, max_size=size))
    values = data.draw(st.lists(st.integers(-(10**30), 10**30) | st.integers(0, 1), min_size=size, max_size=size))
    kept = [None if order is None else value for order, value in zip(orders, values, strict=True)]
    merged = FOLDS[name]([state_of(orders, np.int64), decimal_of(kept)], groups_of(groups))
    pairs = list(zip(orders, kept, strict=True))
    for place, (start, length) in enumerate(zip(heads_of(groups), groups, strict=True)):
        group = [pair for pair in pairs[start : start + length] if pair[0] is not None]
        expected = (max(group) if name == "last" else min(group)) if group else (None, None)
        assert tuple(cells_of(state)[place] for state in merged) == expected


@given(st.data(), GROUPS, st.sampled_from([0.0, 1e6]), st.sampled_from([1, 2]))
def test_moments_are_those_of_all_values(data: st.DataObject, groups: list[int], centre: float, arity: int) -> None:
    """Each part holds some values; what is merged is compared with all of a group's values at once."""
    numbers = st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=4)
    parts = data.draw(st.lists(numbers, min_size=sum(groups), max_size=sum(groups)))
    parts = [[(x + centre, y) for x, y in part] for part in parts]
    columns = [list(column) for column in zip(*(moments(part, arity) for part in parts), strict=True)]
    states = [state_of(column, np.int64 if place == 0 else np.float64) for place, column in enumerate(columns)]
    merged = FOLDS["moments"](states, groups_of(groups))
    for place, (start, length) in enumerate(zip(heads_of(groups), groups, strict=True)):
        expected = moments([pair for part in parts[start : start + length] for pair in part], arity)
        for state, theirs in zip(merged, expected, strict=True):
            assert cells_of(state)[place] == (theirs if theirs is None else pytest.approx(theirs, rel=1e-9, abs=1e-7))


def moments(pairs: list[tuple[float, float]], arity: int) -> list[float | None]:
    n = len(pairs)
    sides = range(arity)
    products = [(0, 0), (1, 1), (0, 1)] if arity == 2 else [(0, 0)]
    if not n:
        return [0, *[None] * (len(sides) + len(products))]
    means = [float(sum(Decimal(pair[side]) for pair in pairs) / n) for side in sides]
    return [n, *means, *(math.fsum((p[x] - means[x]) * (p[y] - means[y]) for p in pairs) for x, y in products)]


def test_what_never_varies_has_no_deviations() -> None:
    n, mean, m2 = state_of([3, 4], np.int64), state_of([0.1, 0.1], np.float64), state_of([0.0, 0.0], np.float64)
    assert [cells_of(state) for state in FOLDS["moments"]([n, mean, m2], groups_of([2]))] == [[7], [0.1], [0.0]]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (state_of([2**63 - 1, 1], np.int64), "[ARITHMETIC_OVERFLOW] the sum of a column is more than a BIGINT holds"),
        (state_of([-(2**63), -1], np.int64), "[ARITHMETIC_OVERFLOW] the sum of a column is more than a BIGINT holds"),
        (
            decimal_of([10**38 - 1, 10**38 - 1]),
            "[NUMERIC_VALUE_OUT_OF_RANGE] the sum of a column is more than a DECIMAL holds",
        ),
        (
            decimal_of([1 - 10**38, -(10**37)]),
            "[NUMERIC_VALUE_OUT_OF_RANGE] the sum of a column is more than a DECIMAL holds",
        ),
    ],
)
def test_a_sum_that_its_type_cannot_hold_is_refused(state: State, error: str) -> None:
    with pytest.raises(OverflowError) as refused:
        FOLDS["sum"]([state], groups_of([2]))
    assert str(refused.value) == error


def test_the_greatest_sums_are_not_refused() -> None:
    long = FOLDS["sum"]([state_of([2**63 - 2, 1, -(2**63), 0], np.int64)], groups_of([2, 2]))
    assert cells_of(long[0]) == [2**63 - 1, -(2**63)]
    wide = FOLDS["sum"]([decimal_of([10**38 - 2, 1, 2 - 10**38, -1])], groups_of([2, 2]))
    assert cells_of(wide[0]) == [10**38 - 1, 1 - 10**38]


@given(st.data(), st.sampled_from(sorted(FOLDS)), st.sampled_from(["long", "double", "decimal"]))
def test_groups_that_overlap_hold_what_each_holds_alone(data: st.DataObject, name: str, kind: str) -> None:
    places = data.draw(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1))
    firsts, beyond = np.array(places, np.int64).cumsum(axis=1).T
    groups = Groups(firsts, beyond)
    size = int(groups.beyond.max())
    states = states_for(data, name, kind, size)
    merged = FOLDS[name](states, groups)
    for place, (first, n) in enumerate(places):
        alone = FOLDS[name]([state.between(first, first + n) for state in states], groups_of([n]))
        for mine, theirs in zip(merged, alone, strict=True):
            expected = cells_of(theirs)[0]
            is_exact = expected is None or (kind != "double" and name != "moments")
            assert cells_of(mine)[place] == (
                expected if is_exact else pytest.approx(expected, rel=1e-9, abs=1e-3, nan_ok=True)
            )


def states_for(data: st.DataObject, name: str, kind: str, size: int) -> list[State]:
    """What a function merges, of so many rows."""

    def drawn(cell: st.SearchStrategy[float]) -> list[float | None]:
        return data.draw(st.lists(cell | st.none(), min_size=size, max_size=size))

    if name == "moments":
        parts = data.draw(
            st.lists(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=3), min_size=size, max_size=size)
        )
        columns = zip(*(moments(part, 2) for part in parts), strict=True)
        return [state_of(column, np.int64 if place == 0 else np.float64) for place, column in enumerate(columns)]
    if name in {"first", "last"}:
        orders = drawn(st.integers(0, 2))
        kept = [None if order is None else 8 * place for place, order in enumerate(orders)]
        return [state_of(orders, np.int64), state_of(kept, np.int64)]
    if name.startswith("bit") or kind == "long":
        return [state_of(drawn(st.integers(-(2**58), 2**58)), np.int64)]
    return (
        [decimal_of(drawn(st.integers(-(10**36), 10**36)))]
        if kind == "decimal"
        else [state_of(drawn(DOUBLES), np.float64)]
    )
