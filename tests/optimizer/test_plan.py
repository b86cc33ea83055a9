"""A plan keeps its invariants, and says which one it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf

import pytest

from stairwise import Rollup, Source, optimize
from stairwise.cost import Cost
from stairwise.errors import PlanError
from stairwise.network import Number
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan, Step, Totals
from stairwise.rollup import Estimates
from stairwise.tiers import How
from stairwise.workload import Workload

PAPER = Options(pricing=Pricing.PAPER, tiers=TiersAllowed.FACTOR)
TYPED = Workload.of_windows(["20s", "30s", "40s"], "sum", Estimates())
PLAN = plan_workload(TYPED, PAPER)
PAPER_3 = plan_workload(TYPED, replace(PAPER, algorithm=Algorithm.PAPER_3))


def test_a_plan_finds_its_steps_and_their_readers() -> None:
    assert [step.tier.name for step in PLAN.steps] == ["10s", "20s", "30s", "40s"]
    assert PLAN.step("30s") is PLAN.steps[2]
    assert [step.tier.name for step in PLAN.readers("10s")] == ["20s", "30s"]
    assert PLAN.readers(None) == (PLAN.steps[0],)
    assert PLAN.readers("40s") == ()


def test_tiers_below_one_parent_are_made_in_one_pass() -> None:
    (found,) = PLAN.passes()
    assert (found.reads, found.steps) == ("10s", PLAN.steps[1:])


def passes(aggregate: str, *windows: str, options: Options | None = None) -> list[tuple[str, list[str]]]:
    rollup = Rollup(
        name="trips", source=Source(path="trips", time="at"), keys=("zone",), aggregates={"column": aggregate},
        windows=windows, target="rollups", estimates=Estimates(rows_per_day=10**9, distinct_keys=10),
    )  # fmt: skip
    plan = optimize(rollup, options or Options())
    return [(each.reads, [step.tier.name for step in each.steps]) for each in plan.passes()]


def test_windows_that_overlap_are_made_in_one_pass_with_others() -> None:
    windows = ("1m", "5m", "1h every 5m", "day in Europe/Paris")
    assert passes("sum(fare)", *windows) == [("1m", ["5m", "1h_every_5m", "day_in_europe_paris"])]
    assert passes("sum(fare)", "5m", "1h every 5m") == [("5m", ["1h_every_5m"])]
    assert passes("sum(fare)", "day in Europe/Paris", "30 days every day in Europe/Paris") != []


def test_neither_single_ones_nor_sketches_nor_growing_ones_nor_windows_from_others_are() -> None:
    assert passes("sum(fare)", "1m", "5m") == []
    assert passes("approx_distinct(rider)", "1m", "5m", "1h every 5m") == []
    assert passes("sum(fare)", "5m", "day to date every 5m in UTC") == []
    # The last two each read the one before.
    found = passes("min(fare)", "40s every 10s", "60s every 30s", "120s every 30s", options=PAPER)
    assert found == [("10s", ["40s_every_10s"])]


def test_a_tier_that_is_not_in_a_plan_is_not_found() -> None:
    with pytest.raises(PlanError) as raised:
        PLAN.step("50s")
    assert str(raised.value) == "plan 'windows': there is no tier '50s' in it."


def test_a_plan_that_keeps_its_invariants_is_itself() -> None:
    assert PLAN.check("planning") is PLAN


def with_steps(*steps: Step) -> Plan:
    return replace(PLAN, steps=steps)


def with_step(name: str, change: Callable[[Step], Step]) -> Plan:
    return with_steps(*(change(step) if step.tier.name == name else step for step in PLAN.steps))


def with_totals(change: Callable[[Totals], Totals]) -> Plan:
    return replace(PLAN, totals=change(PLAN.totals))


TEN, TWENTY, THIRTY, FORTY = PLAN.steps


@pytest.mark.parametrize(
    ("plan", "broken"),
    [
        (with_steps(TEN, TWENTY, TWENTY, THIRTY, FORTY), "tier '20s' is computed twice"),
        (
            with_steps(TEN, TWENTY, replace(THIRTY, tier=replace(THIRTY.tier, name="20S")), FORTY),
            "tier '20S' is computed twice",
        ),
        (with_steps(TEN, THIRTY, FORTY, TWENTY), "tier '40s' reads '20s', which is not computed before it"),
        (with_steps(*PLAN.steps[1:]), "tier '20s' reads '10s', which is not computed before it"),
        (
            with_step("30s", lambda step: replace(step, reads="20s")),
            "tier '30s' reads '20s' by 'merge disjoint', but there is no way to",
        ),
        (
            with_step("30s", lambda step: replace(step, how=How.RAW)),
            "tier '30s' reads '10s' by 'from raw rows', but the way is 'merge disjoint'",
        ),
        (
            with_step("30s", lambda step: replace(step, reads=None)),
            "tier '30s' reads the raw rows by 'merge disjoint', but the way is 'from raw rows'",
        ),
        (with_step("30s", lambda step: replace(step, cost=Cost(total=-1))), "tier '30s' has a cost below 0"),
        (
            with_steps(TEN, *(replace(step, reads=None, how=How.RAW) for step in (TWENTY, THIRTY, FORTY))),
            "nobody reads the tier '10s'",
        ),
        (with_totals(lambda totals: replace(totals, total=151)), "the steps cost 150, the plan says 151"),
        (with_totals(lambda totals: replace(totals, lower_bound=151)), "the lower bound 151 is above the cost 150"),
        (with_totals(lambda totals: replace(totals, lower_bound=0)), "the lower bound is 0, but the plan costs 150"),
        (with_totals(lambda totals: replace(totals, paper_3=-1)), "a total is below 0, or the period is below 1 s"),
        (with_totals(lambda totals: replace(totals, period_s=0)), "a total is below 0, or the period is below 1 s"),
    ],
)
def test_a_broken_invariant_is_named_with_the_pass_that_broke_it(plan: Plan, broken: str) -> None:
    with pytest.raises(PlanError) as raised:
        plan.check("merging")
    assert str(raised.value) == f"after merging: {broken}."


def test_the_algorithm_of_the_paper_may_open_tiers_that_nobody_reads() -> None:
    raw = (replace(step, reads=None, how=How.RAW, cost=Cost(total=120)) for step in PAPER_3.steps)
    totals = replace(PAPER_3.totals, total=480)
    plan = replace(PAPER_3, steps=tuple(raw), totals=totals)
    assert plan.check("planning") is plan


def test_floats_may_be_off_by_their_rounding() -> None:
    cost, noise = Cost(total=0.1), 1e-12
    plan = replace(
        PLAN,
        steps=tuple(replace(step, cost=cost) for step in PLAN.steps),
        totals=replace(PLAN.totals, total=0.4 - noise, lower_bound=0.4 + noise),
    )
    assert plan.check("planning") is plan


@pytest.mark.parametrize(
    ("total", "lower_bound", "is_proven", "gap"),
    [
        (150, 120, False, 0.25),
        (Fraction(3, 2), Fraction(1), False, 0.5),
        (150, 150, True, 0.0),
        (150.0, 149.999, True, 0.0),
        (150, 0, False, inf),
        (0, 0, False, 0.0),
        (149, 150, False, 0.0),
        (10**400 * 3, 10**400 * 2, False, 0.5),
    ],
    ids=["integers", "fractions", "proven", "proven but for rounding", "no bound", "free", "tiers not allowed", "huge"],
)
def test_the_gap_is_how_far_the_optimum_may_be(total: Number, lower_bound: Number, is_proven: bool, gap: float) -> None:  # noqa: FBT001
    totals = replace(PLAN.totals, total=total, lower_bound=lower_bound, is_proven_optimal=is_proven)
    assert totals.gap == gap
