"""Every aggregate of the catalogue keeps the laws that its primitives claim."""

from __future__ import annotations

import doctest
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregate import (
    CATALOGUE,
    ROWS,
    TRAITS,
    Aggregate,
    Applied,
    Definition,
    Field,
    Invertibility,
    Operation,
    Partial,
    Primitive,
    Sharing,
    by_sharing,
    partial_columns,
    strictest,
)
from stairwise.errors import AggregateError
from tests.optimizer.aggregate_reference import (
    Cell,
    Result,
    Row,
    State,
    combine,
    interpolated,
    lift,
    lower,
    nearest,
    one,
    order,
    subtract,
)

EXAMPLES = {"q": "[0, 0.5, 0.9]", "k": "10", "lgk": "10"}


def call(definition: Definition) -> str:
    """A call of the definition, on columns that are named like its arguments."""
    return (
        f"{definition.name}({', '.join((*definition.arguments, *(EXAMPLES[p.name] for p in definition.parameters)))})"
    )


ALL = tuple(Aggregate.parse(call(definition)) for definition in CATALOGUE)
CONDITIONAL = tuple(Aggregate.parse(f"{aggregate} where keep") for aggregate in ALL)
PARTIALS = {aggregate.partials[0].primitive: aggregate.partials[0] for aggregate in ALL} | {
    each.primitive: each for aggregate in ALL for each in aggregate.partials
}
ANY_AGGREGATE = pytest.mark.parametrize("aggregate", ALL, ids=str)

BITS = st.none() | st.integers(-6, 6)
FLAGS = st.none() | st.booleans()
NUMBERS = BITS | st.sampled_from([-0.0, 0.0, 0.25, -1.5, math.nan])
ROWS_OF_ALL_KINDS = st.lists(
    st.fixed_dictionaries(
        {"bit": BITS, "bool": FLAGS, "number": NUMBERS, "y": NUMBERS, "time": st.integers(0, 5), "keep": FLAGS}
    ).map(lambda row: {**row, "order": row["y"]}),
    max_size=8,
)


def taken(primitive: Primitive, rows: Sequence[Row]) -> list[Row]:
    """The rows with values that the primitive takes in the place of ``x``."""
    prefix = primitive.value.partition("_")[0]
    return [{**row, "x": row[prefix if prefix in ("bit", "bool") else "number"]} for row in rows]


def alike(left: Result, right: Result) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(alike(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, tuple) or isinstance(right, tuple):
        return False
    if left is None or right is None:
        return left is right
    both_nan = math.isnan(left) and math.isnan(right)
    return both_nan or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)


def same(left: State, right: State) -> bool:
    return alike(left.cells, right.cells) and alike(left.counts, right.counts)


def test_every_primitive_is_described_and_used() -> None:
    assert set(TRAITS) == set(PARTIALS) == set(Primitive)
    assert repr(ALL[:2]) == "(Aggregate.parse('count()'), Aggregate.parse('count(x)'))"


@given(ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS)
def test_a_state_of_all_rows_is_the_combination_of_its_parts(first: list[Row], second: list[Row]) -> None:
    for primitive, partial in PARTIALS.items():
        a, b, both = (lift(partial, taken(primitive, rows)) for rows in (first, second, first + second))
        together = combine(primitive, a, b)
        assert same(together, both), primitive
        assert len(together.cells) in (0, len(TRAITS[primitive].fields)), primitive


@given(st.tuples(ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS))
def test_combine_is_associative_and_commutative_and_has_a_neutral_state(parts: tuple[list[Row], ...]) -> None:
    for primitive, partial in PARTIALS.items():
        a, b, c, empty = (lift(partial, taken(primitive, rows)) for rows in (*parts, []))
        rightward = combine(primitive, a, combine(primitive, b, c))
        assert same(rightward, combine(primitive, combine(primitive, a, b), c)), primitive
        assert same(combine(primitive, a, b), combine(primitive, b, a)), primitive
        assert combine(primitive, a, empty) == combine(primitive, empty, a) == a, primitive


@given(ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS)
def test_an_overlapping_state_takes_the_same_rows_twice(first: list[Row], shared: list[Row], last: list[Row]) -> None:
    for primitive, partial in PARTIALS.items():
        if TRAITS[primitive].sharing is Sharing.OVERLAPPING:
            slices = first + shared, shared + last, first + shared + last
            a, b, whole = (lift(partial, taken(primitive, rows)) for rows in slices)
            assert same(combine(primitive, a, b), whole), primitive


@pytest.mark.parametrize(
    "primitive", [each for each in Primitive if TRAITS[each].sharing is Sharing.DISJOINT], ids=lambda each: each.value
)
def test_a_disjoint_state_does_not(primitive: Primitive) -> None:
    state = lift(PARTIALS[primitive], [{"x": 3, "y": 2, "order": 1, "time": 0}])
    assert combine(primitive, state, state) != state


@given(ROWS_OF_ALL_KINDS, ROWS_OF_ALL_KINDS)
def test_an_invertible_state_gives_a_slice_back(kept: list[Row], dropped: list[Row]) -> None:
    left, gone = (taken(Primitive.BIT_XOR, rows) for rows in (kept, dropped))
    for primitive, partial in PARTIALS.items():
        if TRAITS[primitive].invertibility is not Invertibility.NEVER:
            rest = subtract(primitive, lift(partial, left + gone), lift(partial, gone))
            is_emptied = partial.witness is not None and lift(partial.witness, left).cells == (0,)
            assert (State((None,)) if is_emptied else rest) == lift(partial, left), primitive


def sample(spread: Callable[[Sequence[float]], float], least: int) -> Callable[[Sequence[float]], Result]:
    def result(values: Sequence[float]) -> Result:
        if len(values) < least:
            return None
        return math.nan if any(map(math.isnan, values)) else spread(values)

    return result


def ranked(pick: Callable[[Sequence[float], Decimal], Cell]) -> Callable[[Sequence[float]], Result]:
    return lambda values: tuple(pick(values, Decimal(rank)) for rank in ("0", "0.5", "0.9"))


def most_frequent(values: Sequence[float]) -> list[tuple[float, int]]:
    return sorted(Counter(values).items(), key=lambda item: (-item[1], order(item[0])))


def folded(function: Callable[[int, int], int]) -> Callable[[Sequence[float]], Result]:
    def result(values: Sequence[float]) -> Result:
        bits = [int(value) for value in values]
        total = bits[0] if bits else None
        for each in bits[1:]:
            total = function(total or 0, each)
        return total

    return result


OF_VALUES: Mapping[str, Callable[[Sequence[float]], Result]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "avg": sample(statistics.fmean, 1),
    "min": lambda values: values[0] if values else None,
    "max": lambda values: values[-1] if values else None,
    "var_pop": sample(statistics.pvariance, 1),
    "var_samp": sample(statistics.variance, 2),
    "stddev_pop": sample(statistics.pstdev, 1),
    "stddev_samp": sample(statistics.stdev, 2),
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    "bit_and": folded(lambda left, right: left & right),
    "bit_or": folded(lambda left, right: left | right),
    "bit_xor": folded(lambda left, right: left ^ right),
    "approx_distinct": lambda values: len(set(values)),
    "quantile": ranked(nearest),
    "top_k": lambda values: tuple(most_frequent(values)[:10]),
    "count_distinct": lambda values: len(set(values)),
    "median": lambda values: interpolated(values, Decimal("0.5")),
    "percentile": ranked(interpolated),
    "mode": lambda values: most_frequent(values)[0][0] if values else None,
    "collect_set": lambda values: tuple(dict.fromkeys(values)),
}


def co_moment(pairs: Sequence[tuple[float, float]]) -> float:
    mean_x, mean_y = (statistics.fmean(column) for column in zip(*pairs, strict=True))
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)


def correlation(pairs: Sequence[tuple[float, float]]) -> Result:
    xs, ys = zip(*pairs, strict=True)
    deviations = statistics.pstdev(xs) * statistics.pstdev(ys) * len(pairs)
    return co_moment(pairs) / deviations if deviations else None


def of_pairs(name: str, pairs: Sequence[tuple[float, float]]) -> Result:
    """The result of an aggregate of two arguments, from its pairs without NULL, straight from its definition."""
    by_order = sorted(((second, first) for first, second in pairs), key=lambda pair: (order(pair[0]), order(pair[1])))
    has_nan = any(math.isnan(x) or math.isnan(y) for x, y in pairs)
    match name:
        case "min_by" | "first":
            return by_order[0][1] if pairs else None
        case "max_by" | "last":
            return by_order[-1][1] if pairs else None
        case "covar_samp" if len(pairs) < 2:
            return None
        case _ if not pairs or has_nan:
            return math.nan if pairs else None
        case "corr":
            return correlation(pairs)
        case _:
            return co_moment(pairs) / (len(pairs) - (name == "covar_samp"))


def straight(aggregate: Aggregate, rows: Sequence[Row]) -> Result:
    """The result without partials."""
    name, arguments = aggregate.definition.name, aggregate.arguments
    if not arguments:
        return len(rows)
    columns = (arguments[0], "time") if name in ("first", "last") else arguments
    cells = [[one(cell) for column in columns if (cell := row[column]) is not None] for row in rows]
    whole = [each for each in cells if len(each) == len(columns)]
    if len(columns) == 2:
        return of_pairs(name, [(each[0], each[1]) for each in whole])
    return OF_VALUES[name](sorted((each[0] for each in whole), key=order))


def computed(aggregate: Aggregate, rows: Sequence[Row]) -> Result:
    return lower(aggregate, {each.primitive: lift(each, rows) for each in aggregate.partials})


@given(ROWS_OF_ALL_KINDS)
def test_the_result_of_the_partials_is_the_result_of_the_rows(rows: list[Row]) -> None:
    for aggregate in ALL:
        own = taken(aggregate.partials[0].primitive, rows)
        assert alike(computed(aggregate, own), straight(aggregate, own)), aggregate


@given(ROWS_OF_ALL_KINDS)
def test_a_condition_leaves_out_rows_for_which_it_is_false_or_null(rows: list[Row]) -> None:
    for aggregate, conditional in zip(ALL, CONDITIONAL, strict=True):
        own = taken(aggregate.partials[0].primitive, rows)
        kept = [row for row in own if row["keep"] is True]
        assert alike(computed(conditional, own), computed(aggregate, kept)), aggregate


@ANY_AGGREGATE
def test_nothing_is_null_but_a_count_or_a_list(aggregate: Aggregate) -> None:
    expected: dict[str, Result] = dict.fromkeys(("count", "approx_distinct", "count_distinct"), 0)
    expected |= dict.fromkeys(("top_k", "collect_set"), ())
    expected |= dict.fromkeys(("quantile", "percentile"), (None, None, None))
    nulls: Row = {"x": None, "y": None, "order": None, "time": 0}
    assert computed(aggregate, []) == expected.get(aggregate.definition.name)
    if aggregate.arguments:
        assert computed(aggregate, [nulls]) == expected.get(aggregate.definition.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("first(x)", 1),
        ("last(x)", 3),
        ("min_by(x, order)", 2),
        ("max_by(x, order)", 4),
        ("mode(x)", 1),
        ("collect_set(x)", (1, 2, 3, 4)),
    ],
)
def test_ties_are_settled_by_the_value(text: str, expected: Result) -> None:
    table = [(1, 0, 5), (2, 0, 0), (3, 9, 0), (1, 9, 9), (4, 5, 9), (3, 5, 5), (None, -1, -1), (None, 10, 10)]
    rows: list[Row] = [{"x": x, "time": time, "order": at} for x, time, at in table]
    assert computed(Aggregate.parse(text), rows) == expected
    assert computed(Aggregate.parse(text), rows[::-1]) == expected


@pytest.mark.parametrize("text", ["corr(x, y)", "var_samp(x)", "stddev_samp(x)", "covar_samp(x, y)"])
def test_what_one_row_cannot_say_is_null(text: str) -> None:
    assert computed(Aggregate.parse(text), [{"x": 3, "y": 4}]) is None


@pytest.mark.parametrize(
    ("text", "sharing", "invertibility"),
    [
        ("count()", Sharing.DISJOINT, Invertibility.ALWAYS),
        ("avg(x)", Sharing.DISJOINT, Invertibility.EXACT_TYPES),
        ("bit_xor(x)", Sharing.DISJOINT, Invertibility.ALWAYS),
        ("var_samp(x)", Sharing.DISJOINT, Invertibility.NEVER),
        ("quantile(x, 0.5)", Sharing.DISJOINT, Invertibility.NEVER),
        ("top_k(x, 3)", Sharing.DISJOINT, Invertibility.NEVER),
        ("max(x)", Sharing.OVERLAPPING, Invertibility.NEVER),
        ("first(x)", Sharing.OVERLAPPING, Invertibility.NEVER),
        ("approx_distinct(x)", Sharing.OVERLAPPING, Invertibility.NEVER),
        ("count_distinct(x)", Sharing.HOLISTIC, Invertibility.NEVER),
        ("median(x)", Sharing.HOLISTIC, Invertibility.NEVER),
    ],
)
def test_sharing_and_invertibility(text: str, sharing: Sharing, invertibility: Invertibility) -> None:
    aggregate = Aggregate.parse(text)
    assert (aggregate.sharing, aggregate.invertibility) == (sharing, invertibility)


def test_the_classes_of_a_set() -> None:
    texts = ("median(x)", "min(x)", "sum(x)", "max(x)")
    median, least, total, most = aggregates = tuple(map(Aggregate.parse, texts))
    groups = {Sharing.OVERLAPPING: (least, most), Sharing.DISJOINT: (total,), Sharing.HOLISTIC: (median,)}
    assert by_sharing(aggregates) == groups
    assert list(by_sharing(aggregates)) == list(groups)
    assert by_sharing(()) == {}
    assert strictest(aggregates) is Sharing.DISJOINT
    assert strictest((median, least)) is Sharing.OVERLAPPING
    assert strictest((median,)) is Sharing.HOLISTIC


@pytest.mark.parametrize(
    ("text", "error", "meaning"),
    [
        ("approx_distinct(x)", 0.01625, "relative standard error"),
        ("approx_distinct(x, 10)", 0.0325, "relative standard error"),
        ("quantile(x, 0.5)", 0.0133, "rank error, of all values, at 99 % confidence"),
        ("quantile(x, 0.5, 800)", 0.0035, "rank error, of all values, at 99 % confidence"),
        ("top_k(x, 3)", 0.000214, "count error, of all values, at most"),
    ],
)
def test_a_sketch_states_its_bound(text: str, error: float, meaning: str) -> None:
    bound = Aggregate.parse(text).bound
    assert bound is not None
    assert bound.error == pytest.approx(error, rel=0.02)
    assert bound.meaning == meaning


def test_only_sketches_are_approximate() -> None:
    assert [str(each) for each in ALL if each.bound is not None] == [
        "approx_distinct(x, 10)",
        "quantile(x, [0, 0.5, 0.9], 10)",
        "top_k(x, 10)",
    ]


@pytest.mark.parametrize(
    ("text", "small", "large"),
    [
        ("count()", 8, 8),
        ("avg(x)", 24, 24),
        ("corr(x, y)", 48, 48),
        ("approx_distinct(x)", 520, 4_136),
        ("quantile(x, 0.5)", 520, 3_240),
        ("top_k(x, 3)", 1_000, 160_040),
        ("count_distinct(x)", 488, 8_000_008),
        ("mode(x)", 968, 16_000_008),
    ],
)
def test_the_weight_of_a_state(text: str, small: int, large: int) -> None:
    partials = Aggregate.parse(text).partials
    assert [sum(each.state_bytes(values) for each in partials) for values in (60, 10**6)] == [small, large]


def names(*texts: str) -> list[str]:
    return [each.name for each in partial_columns(map(Aggregate.parse, texts))]


def test_aggregates_share_partials() -> None:
    assert names("avg(fare)", "sum(fare)", "count(fare)") == names("avg( fare )")
    assert len(names("quantile(x, 0.5)", "quantile(x, [0.9, 1])", "top_k(x, 3)", "top_k(x, 5)")) == 2
    assert len(names("var_pop(x)", "stddev_samp(x)", "median(x)", "mode(x)", "percentile(x, 0.1)")) == 2
    assert names("count()", "count(*)") == ["_rows"]


def test_what_differs_is_kept_apart() -> None:
    texts = ("sum(x)", "sum(y)", "sum(x) where y > 0", "sum(X)", "min(x)", "count() where y > 0")
    assert len(set(names(*texts))) == len(texts)
    assert len(names("approx_distinct(x)", "approx_distinct(x, 10)", "quantile(x, 0.5, 8)", "quantile(x, 0.5)")) == 4


def test_columns_are_identifiers_in_an_order_of_their_own() -> None:
    every = partial_columns(ALL)
    assert every == partial_columns(reversed(ALL))
    columns = [column for each in every for column in each.columns]
    assert len(set(columns)) == len(columns)
    assert all(re.fullmatch("_[a-z0-9_]{1,60}", column) for column in columns)
    assert (
        Partial(primitive=Primitive.MIN, arguments=("größe[0]['Ä b']" * 20,)).name
        == "_min_gr_e_0_b_gr_e_0_b_gr_e_0_b_g_8ab95ad2"
    )


def test_a_witness_counts_the_same_values() -> None:
    total = Aggregate.parse("sum(x) where keep").partials[0]
    assert total.witness == Aggregate.parse("count(x) where keep").partials[0]
    assert total.witness is not None
    assert total.witness.witness is ROWS.witness is Aggregate.parse("max(x)").partials[0].witness is None


def test_an_aggregate_is_checked_when_built() -> None:
    total, sketch = Aggregate.parse("sum(x) where y"), Aggregate.parse("quantile(x, 0.5)")
    wrong: list[Callable[[], Aggregate]] = [
        lambda: replace(total, arguments=()),
        lambda: replace(total, arguments=("x  ",)),
        lambda: replace(total, arguments=("x, y",)),
        lambda: replace(total, condition=""),
        lambda: replace(total, parameters=(1,)),
        lambda: replace(sketch, parameters=(Decimal(2), 200)),
        lambda: replace(sketch, parameters=(Decimal("0.5"),)),
    ]
    for build in wrong:
        with pytest.raises(AggregateError, match="build it with Aggregate"):
            build()


@pytest.mark.parametrize(("primitive", "size"), [(Primitive.SUM, 3), (Primitive.HLL_SKETCH, 0)])
def test_a_partial_is_checked_when_built(primitive: Primitive, size: int) -> None:
    with pytest.raises(AggregateError) as error:
        Partial(primitive=primitive, arguments=("x",), parameter=size)
    rule, hint = f"a size of {size} is given", "a sketch has a size above 0, and nothing else has one."
    assert str(error.value) == f"aggregate '{primitive.value}': {rule}. Hint: {hint}"


def test_a_new_aggregate_is_one_entry() -> None:
    slope = Definition(
        name="regr_slope",
        arguments=("y", "x"),
        lower=Applied(Operation.OVER, (Field(Primitive.CO_MOMENTS, "c"), Field(Primitive.CO_MOMENTS, "m2_y"))),
        meaning="slope of the regression line",
    )
    aggregate = Aggregate.parse("Regr_Slope(fare, miles)", (*CATALOGUE, slope))
    rows: list[Row] = [{"fare": 5.0 + 2.0 * miles, "miles": miles} for miles in (1.0, 4.0, 9.0)]
    assert computed(aggregate, rows) == pytest.approx(2.0)
    assert (str(aggregate), aggregate.sharing, aggregate.bound) == ("regr_slope(fare, miles)", Sharing.DISJOINT, None)
    assert aggregate.partials == Aggregate.parse("corr(fare, miles)").partials


def described(definition: Definition) -> str:
    aggregate = Aggregate.parse(call(definition))
    states = ", ".join(f"`{each.value}`" for each in definition.primitives)
    exact = "exact" if aggregate.bound is None else "approximate"
    signature = definition.signature.replace("|", "\\|")
    cells = (f"`{signature}`", definition.meaning, aggregate.sharing.value, aggregate.invertibility.value)
    return f"| {' | '.join((*cells, exact, states))} |"


def test_the_page_lists_the_catalogue(repository: Path) -> None:
    page = (repository / "docs" / "aggregates.md").read_text(encoding="utf-8")
    table = page.partition("<!-- catalogue -->\n")[2].partition("\n<!-- end -->")[0]
    head = "| call | result | sharing | subtractable | exact | states |\n|---|---|---|---|---|---|"
    assert table.strip() == "\n".join((head, *map(described, CATALOGUE)))


def test_the_examples_of_the_page_run(repository: Path) -> None:
    assert doctest.testfile(str(repository / "docs" / "aggregates.md"), module_relative=False).failed == 0
