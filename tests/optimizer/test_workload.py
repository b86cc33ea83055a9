"""What the planner is asked: windows that were declared or typed, and what is assumed of the events."""

from __future__ import annotations

import pytest

from stairwise.aggregate import CATALOGUE, Aggregate, Sharing
from stairwise.batch_cost import BatchModel
from stairwise.constants import Constants
from stairwise.cost import PaperModel
from stairwise.errors import AggregateError, RollupError, UsageError, WindowError
from stairwise.options import Options, Pricing
from stairwise.rollup import Estimates, Layout, Rollup
from stairwise.tiers import DAY, Horizon
from stairwise.workload import DISTINCT_KEYS, ROWS_PER_DAY, Workload
from tests.optimizer.workloads import SOURCE


def declared(
    *aggregates: str,
    windows: tuple[str, ...] = ("5m", "1h"),
    keys: tuple[str, ...] = ("zone_id",),
    start: str | None = None,
    layout: Layout = Layout.TABLES,
    estimates: Estimates | None = None,
) -> Workload:
    rollup = Rollup(
        name="trips",
        source=SOURCE,
        keys=keys,
        aggregates={f"column_{number}": text for number, text in enumerate(aggregates or ("count()",))},
        windows=windows,
        target="lake/rollups/trips",
        start=start,
        layout=layout,
        estimates=estimates,
    )
    workload = Workload.of(rollup)
    assert workload.declaration == rollup.in_order()
    return workload


def batch(workload: Workload, options: Options | None = None) -> BatchModel:
    model = workload.problem(options or Options()).model
    assert isinstance(model, BatchModel)
    return model


# ---- options


def test_a_rate_below_one_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        Options(eta=-3)
    assert str(raised.value) == "eta is -3, below 1 event per second. Hint: leave it out for 1."


# ---- from a declaration


def test_a_declaration_becomes_a_workload() -> None:
    known = Estimates(rows_per_day=7, distinct_keys=3)
    workload = declared("count()", "sum(fare)", keys=("a", "b"), layout=Layout.ONE_TABLE, estimates=known)
    assert (workload.name, workload.keys, workload.layout, workload.estimates) == ("trips", 2, Layout.ONE_TABLE, known)
    assert [window.name for window in workload.windows] == ["1h", "5m"]
    assert [(name, str(aggregate)) for name, aggregate in workload.aggregates] == [
        ("column_0", "count()"),
        ("column_1", "sum(fare)"),
    ]


def in_some_order(keys: tuple[str, ...], *, is_reversed: bool) -> Workload:
    step = -1 if is_reversed else 1
    return Workload.of(
        Rollup(
            name="trips",
            source=SOURCE,
            keys=keys,
            aggregates=dict([("b", "median(x)"), ("a", "mode(x)")][::step]),
            windows=("5m", "1h")[::step],
            lookback=("7 days daily", "1 day every run")[::step],
            target="lake",
        )
    )


def test_the_order_of_the_declaration_makes_no_difference_but_for_the_keys() -> None:
    workload = in_some_order(("z", "y"), is_reversed=False)
    assert workload == in_some_order(("z", "y"), is_reversed=True)
    assert workload != in_some_order(("y", "z"), is_reversed=False)
    assert workload.declaration is not None
    assert workload.declaration.keys == ("z", "y")


@pytest.mark.parametrize(
    ("start", "horizon"),
    [
        (None, Horizon()),
        ("1969-12-31", Horizon(start=-DAY)),
        ("2024-01-01", Horizon(start=1_704_067_200)),
        ("2300-01-01", Horizon(start=Horizon().end - DAY)),
    ],
)
def test_calendars_are_looked_up_from_where_the_data_begins(start: str | None, horizon: Horizon) -> None:
    assert declared(start=start).horizon == horizon


# ---- from windows that were typed


def test_typed_windows_become_a_workload() -> None:
    workload = Workload.of_windows(["20s", "30s as half"], "min", Estimates(rows_per_day=9))
    assert (workload.name, workload.declaration, workload.keys) == ("windows", None, 1)
    assert [(window.name, window.text) for window in workload.windows] == [("20s", "20s"), ("half", "30s")]
    assert workload.aggregates == (("min", Aggregate.parse("min(x)")),)
    assert (workload.layout, workload.horizon) == (Layout.TABLES, Horizon())
    assert workload.estimates == Estimates(rows_per_day=9)


@pytest.mark.parametrize("name", sorted({definition.name for definition in CATALOGUE}))
def test_every_aggregate_may_be_named_alone(name: str) -> None:
    _, aggregate = Workload.of_windows(["5m"], name, Estimates()).aggregates[0]
    assert aggregate.definition.name == name


def test_an_aggregate_may_be_a_whole_call() -> None:
    workload = Workload.of_windows(["5m"], "sum(tip) where payment = 'card'", Estimates())
    assert [str(aggregate) for _, aggregate in workload.aggregates] == ["sum(tip) where payment = 'card'"]


@pytest.mark.parametrize(
    ("windows", "aggregate", "kind", "text"),
    [
        (["90m", "1h30m"], "sum", RollupError, "window '1h30m': the same as '90m'. Hint: keep one of the two."),
        (
            ["5m as a", "1h as A"],
            "sum",
            RollupError,
            "window '1h': its table is called A, like that of '5m'. Hint: name one of them: {window: 1h, name: NAME}.",
        ),
        (
            ["1h every 2h"],
            "sum",
            WindowError,
            "window '1h every 2h': the slide (7200 s) is longer than the range (3600 s). Hint: try 2h every 1h.",
        ),
        (["1d", "day"], "sum", RollupError, "window 'day': the same as '1d'. Hint: keep one of the two."),
        (["5m"], "", AggregateError, "aggregate '': it is empty. Hint: name one, such as sum."),
        (["5m"], " \t", AggregateError, "aggregate ' \\t': it is empty. Hint: name one, such as sum."),
        (
            ["5m"],
            "mean",
            AggregateError,
            "aggregate 'mean(x)': there is no aggregate mean. Hint: try avg(x).",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(
    windows: list[str], aggregate: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        Workload.of_windows(windows, aggregate, Estimates())
    assert str(raised.value) == text


# ---- what the aggregates allow


@pytest.mark.parametrize(
    ("aggregates", "sharing", "is_invertible"),
    [
        (("min(fare)", "max(fare)"), Sharing.OVERLAPPING, False),
        (("count()", "count(fare)"), Sharing.DISJOINT, True),
        (("count()", "min(fare)"), Sharing.DISJOINT, False),
        (("count()", "sum(fare)"), Sharing.DISJOINT, False),
        (("median(fare)",), Sharing.HOLISTIC, False),
        (("median(fare)", "count()"), Sharing.HOLISTIC, False),
    ],
)
def test_all_aggregates_together_decide(aggregates: tuple[str, ...], sharing: Sharing, *, is_invertible: bool) -> None:
    workload = declared(*aggregates)
    assert workload.sharing is sharing
    assert workload.is_invertible is is_invertible
    assert workload.problem(Options()).sharing is sharing
    assert batch(workload).is_holistic is (sharing is Sharing.HOLISTIC)


def test_the_command_line_may_overrule_the_aggregates() -> None:
    assert declared("min(fare)").problem(Options(sharing=Sharing.DISJOINT)).sharing is Sharing.DISJOINT


@pytest.mark.parametrize(
    ("aggregates", "sharing", "text"),
    [
        (
            ("min(fare)", "sum(fare)"),
            Sharing.OVERLAPPING,
            "semantics overlapping: sum(fare) would count rows twice.",
        ),
        (
            ("count()", "median(fare)"),
            Sharing.DISJOINT,
            "semantics disjoint: median(fare) cannot be merged from results of slices.",
        ),
    ],
)
def test_nobody_may_ask_for_wrong_results(aggregates: tuple[str, ...], sharing: Sharing, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        declared(*aggregates).problem(Options(sharing=sharing))
    assert raised.value.message == text


def test_anything_may_be_asked_to_read_raw_rows() -> None:
    assert declared("sum(fare)").problem(Options(sharing=Sharing.HOLISTIC)).sharing is Sharing.HOLISTIC


# ---- the cost models


def test_the_model_of_the_paper_is_asked_for() -> None:
    problem = declared().problem(Options(pricing=Pricing.PAPER, eta=7, steps=11))
    assert problem.model == PaperModel(period_s=3_600, eta=7)
    assert (problem.eta, problem.steps) == (7, 11)
    assert [tier.name for tier in problem.declared] == ["1h", "5m"]


def test_the_batch_model_knows_what_the_declaration_says() -> None:
    model = batch(declared("count()", estimates=Estimates(rows_per_day=2 * DAY, distinct_keys=5, distinct_values=9)))
    assert (model.rows_per_s, model.keys, model.values) == (2, 5, 9)
    assert model.commit_s == Constants().commit


def test_the_batch_model_assumes_what_nobody_says() -> None:
    model = batch(declared())
    assert (model.rows_per_s * DAY, model.keys, model.values) == (ROWS_PER_DAY, DISTINCT_KEYS, None)


def test_a_rollup_without_keys_has_one_group() -> None:
    assert batch(declared(keys=(), estimates=Estimates(distinct_keys=5))).keys == 1


def test_tiers_in_one_table_share_a_commit() -> None:
    assert batch(declared(layout=Layout.ONE_TABLE)).commit_s == Constants().shared_commit


def test_a_row_holds_keys_bounds_and_each_partial_once() -> None:
    assert batch(declared("count()", keys=("a", "b"))).row_bytes == 8 * (2 + 2 + 1)
    one, both = (
        batch(declared(*texts)).row_bytes for texts in (("sum(fare)", "count(fare)"), ("avg(fare)", "sum(fare)"))
    )
    assert one == both


@pytest.mark.parametrize(
    ("estimates", "keys", "notes"),
    [
        (
            Estimates(),
            ("zone_id",),
            (
                "10,000,000 rows a day were assumed; say otherwise with --rows-per-day or estimates.rows_per_day",
                "1,000 distinct keys were assumed; say otherwise with --distinct-keys or estimates.distinct_keys",
            ),
        ),
        (
            Estimates(rows_per_day=1),
            ("zone_id",),
            ("1,000 distinct keys were assumed; say otherwise with --distinct-keys or estimates.distinct_keys",),
        ),
        (Estimates(rows_per_day=1), (), ()),
        (Estimates(rows_per_day=1, distinct_keys=1), ("zone_id",), ()),
    ],
)
def test_what_is_assumed_is_said(estimates: Estimates, keys: tuple[str, ...], notes: tuple[str, ...]) -> None:
    workload = declared(keys=keys, estimates=estimates)
    assert workload.assumptions(Options()) == notes
    assert workload.assumptions(Options(pricing=Pricing.PAPER)) == ()
