"""The pipeline as a whole: plans are legal, as cheap as promised, and the same for the same question."""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import optimize
from stairwise.aggregate import Sharing
from stairwise.codec import encode_plan, to_json
from stairwise.network import Number
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import Estimates, Rollup
from stairwise.tiers import How, Kind
from stairwise.window import FixedWindow
from stairwise.workload import Workload
from tests.optimizer.workloads import options, rollup, rollups

ROUNDING = Fraction(1, 10**9)
PAPER = Options(pricing=Pricing.PAPER, tiers=TiersAllowed.FACTOR)
COMPOSITE = Options(pricing=Pricing.PAPER)
SECONDS = (20, 30, 40)


def planned(windows: str, aggregate: str = "sum", how: Options | None = None) -> Plan:
    return plan_workload(Workload.of_windows(windows.split(","), aggregate, Estimates()), how or Options())


def is_at_most(one: Number, other: Number) -> bool:
    """Whether one cost is not above another, but for the rounding of floats."""
    return Fraction(one) <= Fraction(other) * (1 + ROUNDING)


# ---- the same question, the same plan


@settings(max_examples=20)
@given(rollups(), options(), st.data())
def test_order_makes_no_difference(asked: Rollup, how: Options, data: st.DataObject) -> None:
    shuffled = Rollup(
        name=asked.name,
        source=asked.source,
        keys=asked.keys,
        aggregates=dict(data.draw(st.permutations(asked.aggregates))),
        windows=data.draw(st.permutations(asked.windows)),
        target=asked.target,
        start=asked.start,
        estimates=asked.estimates,
    )
    assert to_json(encode_plan(optimize(shuffled, how))) == to_json(encode_plan(optimize(asked, how)))


# ---- names


@pytest.mark.parametrize(
    ("windows", "how", "helper"),
    [
        ("20s,30s,40s", COMPOSITE, "cut_1d2e1ee9"),
        ("20s,30s,40s as cut_1d2e1ee9", COMPOSITE, "cut_1d2e1ee9_tier"),
        ("20s,30s as Cut_1D2E1EE9,40s", COMPOSITE, "cut_1d2e1ee9_tier"),
        ("20s as cut_1d2e1ee9_Tier,30s,40s as CUT_1D2E1EE9", COMPOSITE, "cut_1d2e1ee9_tier_tier"),
        ("20s,30s,40s as 10s", PAPER, "10s_tier"),
        ("20s,30s,40s as 10S", PAPER, "10s_tier"),
        ("20s,30s,40s as 10s", replace(PAPER, algorithm=Algorithm.PAPER_3), "10s_tier"),
        ("20s as 10S,30s,40s", replace(PAPER, algorithm=Algorithm.PAPER_3), "10s_tier"),
    ],
)
def test_helpers_give_way_to_the_names_of_declared_windows(windows: str, how: Options, helper: str) -> None:
    for order in permutations(windows.split(",")):
        plan = planned(",".join(order), how=how)
        assert [step.tier.name for step in plan.steps if step.tier.kind is not Kind.DECLARED] == [helper]
        assert {step.reads for step in plan.steps if step.tier.range_s in {20, 30}} == {helper}
        assert plan.totals == planned("20s,30s,40s", how=how).totals


def test_helpers_that_keep_values_give_way_too() -> None:
    texts = ["1h every 15m", "2h every 15m", "1d as 15M_values"]
    plan = plan_workload(Workload.of_windows(texts, "median", Estimates(distinct_values=20)), Options())
    assert [step.tier.name for step in plan.steps if step.tier.keeps_values] == ["15m_values_tier"]


@settings(max_examples=20)
@given(rollups(), options(), st.data())
def test_a_window_may_have_the_name_of_any_helper(asked: Rollup, how: Options, data: st.DataObject) -> None:
    plan = optimize(asked, how)
    helpers = [step.tier.name for step in plan.steps if step.tier.kind is not Kind.DECLARED]
    wanted = [name.upper() if data.draw(st.booleans()) else name for name in helpers][: len(asked.windows)]
    renamed = [replace(window, name=name) for window, name in zip(asked.windows, wanted, strict=False)]
    again = optimize(replace(asked, windows=(*renamed, *asked.windows[len(renamed) :])), how)
    names = [step.tier.name.lower() for step in again.steps]
    assert len(set(names)) == len(names)
    assert again.totals == plan.totals


# ---- the price


@pytest.mark.parametrize(
    ("windows", "how", "costs"),
    [
        ("10s,20s,30s,40s", PAPER, (150, 480, 150, 150)),
        ("20s,30s,40s", PAPER, (150, 360, 246, 150)),
        ("20s,30s,40s", replace(PAPER, tiers=TiersAllowed.COMPOSITE), (142, 360, 246, 150)),
        ("20s,30s,40s", replace(PAPER, tiers=TiersAllowed.NONE), (246, 360, 246, 150)),
        ("20s,30s,40s", replace(PAPER, algorithm=Algorithm.UNSHARED), (360, 360, 246, 150)),
        ("20s,30s,40s", replace(PAPER, algorithm=Algorithm.PAPER_1), (246, 360, 246, 150)),
        ("20s,30s,40s", replace(PAPER, algorithm=Algorithm.PAPER_3), (150, 360, 246, 150)),
    ],
)
def test_the_worked_examples_of_the_paper(windows: str, how: Options, costs: tuple[int, ...]) -> None:
    totals = planned(windows, how=how).totals
    assert (totals.total, totals.unshared, totals.paper_1, totals.paper_3) == costs


@settings(max_examples=20)
@given(rollups(), options(algorithm=Algorithm.BEST))
def test_a_plan_is_never_dearer_than_what_it_is_compared_with(asked: Rollup, how: Options) -> None:
    totals = optimize(asked, how).totals
    rivals = [totals.unshared, totals.paper_1]
    if how.tiers is not TiersAllowed.NONE:
        rivals.append(totals.paper_3)
    assert all(is_at_most(totals.total, rival) for rival in rivals)


@settings(max_examples=20)
@given(rollups(), options(algorithm=Algorithm.BEST))
def test_more_tiers_allowed_never_cost_more(asked: Rollup, how: Options) -> None:
    costs = [optimize(asked, replace(how, tiers=tiers)).totals.total for tiers in TiersAllowed]
    assert is_at_most(costs[0], costs[1])
    assert is_at_most(costs[1], costs[2])


@settings(max_examples=20)
@given(rollups(), options(algorithm=Algorithm.BEST))
def test_the_bound_is_below_and_a_proof_is_tight(asked: Rollup, how: Options) -> None:
    totals = optimize(asked, how).totals
    assert is_at_most(totals.lower_bound, totals.total)
    assert totals.gap >= 0
    if totals.is_proven_optimal:
        assert is_at_most(totals.total, totals.lower_bound)
        assert totals.gap == 0


@pytest.mark.parametrize("pricing", Pricing)
@settings(max_examples=10)
@given(rollups(most=4), st.integers(1, 2_000))
def test_more_work_never_finds_less(pricing: Pricing, asked: Rollup, steps: int) -> None:
    hasty, patient = (optimize(asked, Options(pricing=pricing, steps=budget)).totals for budget in (steps, 50_000))
    assert is_at_most(patient.total, hasty.total)
    assert is_at_most(hasty.lower_bound, patient.total)


# ---- what the aggregates allow


@settings(max_examples=20)
@given(rollups(), options())
def test_a_plan_computes_the_windows_that_were_asked_for_and_no_other(asked: Rollup, how: Options) -> None:
    plan = optimize(asked, how)
    declared = {step.tier.name: step.tier.window for step in plan.steps if step.tier.kind is Kind.DECLARED}
    assert declared == {window.name: window.window for window in asked.windows}
    assert plan.check("planning") is plan


@pytest.mark.parametrize(
    ("aggregates", "sharing"),
    [
        (("min(fare)", "max(fare)"), Sharing.OVERLAPPING),
        (("min(fare)", "sum(fare)"), Sharing.DISJOINT),
        (("sum(fare)", "median(fare)"), Sharing.HOLISTIC),
        (("min(fare)", "median(fare)"), Sharing.HOLISTIC),
    ],
)
def test_all_columns_of_a_tier_come_one_way(aggregates: tuple[str, ...], sharing: Sharing) -> None:
    asked = rollup([FixedWindow(60, 60), FixedWindow(600, 60)], aggregates)
    assert optimize(asked).search.semantics is sharing


def test_a_minimum_may_read_windows_that_overlap_and_a_sum_may_not() -> None:
    windows = "1h every 5m,2h every 5m,4h every 5m"
    assert How.OVERLAPPING in {step.how for step in planned(windows, "min", PAPER).steps}
    assert How.OVERLAPPING not in {step.how for step in planned(windows, "sum", PAPER).steps}
    forced = replace(PAPER, sharing=Sharing.OVERLAPPING)
    assert planned(windows, "sum", forced).totals == planned(windows, "min", PAPER).totals


@pytest.mark.parametrize("aggregate", ["min", "sum", "median"])
@pytest.mark.parametrize(
    "windows",
    [
        "3000000d,3000001d",
        "3660000d,1830001d,1220000d every 7d",
        "3660000d every 1220001d,3659999d every 3d",
    ],
)
@pytest.mark.parametrize("pricing", Pricing)
def test_no_helper_is_longer_than_a_window_may_be(windows: str, aggregate: str, pricing: Pricing) -> None:
    for algorithm in Algorithm:
        plan = planned(windows, aggregate, Options(pricing=pricing, algorithm=algorithm))
        assert len([step for step in plan.steps if step.tier.kind is Kind.DECLARED]) == len(windows.split(","))


def test_an_exact_median_reads_raw_rows_or_windows_as_long() -> None:
    plan = planned("5m,1h,1h every 5m", "median")
    assert [(step.tier.name, step.reads, step.how) for step in plan.steps] == [
        ("5m", None, How.RAW),
        ("1h_every_5m", None, How.RAW),
        ("1h", "1h_every_5m", How.EQUAL_RANGE),
    ]


def test_a_median_of_few_values_reads_their_counts() -> None:
    workload = Workload.of_windows(["1h every 15m", "2h every 15m", "1d"], "median", Estimates(distinct_values=20))
    plan = plan_workload(workload, Options())
    assert {step.how for step in plan.steps} == {How.RAW, How.VALUES}
    assert [step.tier.name for step in plan.steps if step.tier.keeps_values] == ["15m_values"]


# ---- what a reader should know


def test_what_was_looked_up_of_calendars_is_said_once_a_zone() -> None:
    plan = planned("1h,day in Europe/Paris,week in Europe/Paris,month to date every day in Asia/Kolkata,day")
    assert [note.partition(":")[0] for note in plan.notes if "1970-01-01" in note] == ["Asia/Kolkata", "Europe/Paris"]


NEEDS_ALL = "an exact result needs all values, not the results of parts"


def test_what_cannot_be_merged_is_said() -> None:
    plan = optimize(rollup([FixedWindow(60, 60)], ("median(fare)", "count()", "mode(zone)")))
    assert plan.notes == (f"column_0, column_2: {NEEDS_ALL}; the sketch quantile() merges, at a small error",)


@pytest.mark.parametrize(
    ("aggregate", "sketch"),
    [
        ("median", "the sketch quantile() merges, at a small error; "),
        ("percentile", "the sketch quantile() merges, at a small error; "),
        ("count_distinct", "the sketch approx_distinct() merges, at a small error; "),
        ("mode", ""),
    ],
)
def test_a_sketch_that_would_do_is_named(aggregate: str, sketch: str) -> None:
    assert planned("5m", aggregate).notes[-1] == (
        f"{aggregate}: {NEEDS_ALL}; {sketch}with estimates.distinct_values, tiers that keep values are considered"
    )


def test_all_sketches_are_named_once() -> None:
    plan = optimize(rollup([FixedWindow(60, 60)], ("median(x)", "percentile(x, 0.9)", "count_distinct(x)")))
    assert plan.notes[-1].endswith("; the sketches approx_distinct() and quantile() merge, at a small error")


def test_who_asks_for_raw_rows_knows_why() -> None:
    assert optimize(rollup([FixedWindow(60, 60)]), Options(sharing=Sharing.HOLISTIC)).notes == ()


def test_edges_that_were_not_counted_exactly_are_said() -> None:
    slides = [(7 + 15_485_863 * number // 7 % 10) * (20 + 15_485_863 * number % 381) for number in range(50)]
    windows = [
        f"{slide + 7_919 * number % (3 * slide)}s every {slide}s offset {104_729 * number % slide}s"
        for number, slide in enumerate(slides)
    ]
    plan = planned(",".join(windows), how=Options(pricing=Pricing.PAPER, steps=0))
    assert plan.notes == ("the edges of a composite tier were counted on a finite horizon, to about 0.1 %",)


def test_a_helper_of_the_paper_that_nobody_reads_is_shown_as_such() -> None:
    texts = ("1s", "4s", "6s", "9s", "18s every 6s", "24s every 12s")
    workload = Workload.of_windows(texts, "min", Estimates())
    plan = plan_workload(workload, Options(pricing=Pricing.PAPER, algorithm=Algorithm.PAPER_3))
    assert plan.step("12s").why == "No tier reads it."
    assert (plan.totals.paper_1, plan.totals.paper_3) == (328, 346)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_of_garbage_is_left_as_it_was(*, is_enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        plan_workload(Workload.of_windows(("5m", "1h"), "sum", Estimates()), Options())
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
