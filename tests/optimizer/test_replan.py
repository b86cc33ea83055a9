"""Going on from a running plan: what is there stays, what is new finds a parent, and no way is longer than it pays."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import optimize
from stairwise.codec import decode_plan, encode_plan, to_json
from stairwise.constants import Constants
from stairwise.cost import Cost
from stairwise.errors import PlanError, UsageError
from stairwise.measured import Measured
from stairwise.network import Number
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.pipeline import free_name, plan_workload
from stairwise.plan import Plan, Step
from stairwise.replan import Fill, Replanned, kept_plan, replanned, replanned_workload, sameness
from stairwise.rollup import Catalog, DeclaredWindow, Estimates, Rollup, Source
from stairwise.rules import meaning
from stairwise.tiers import How, Kind, Tier
from stairwise.window import FixedWindow, Window
from stairwise.windowing import Interval
from stairwise.workload import Workload
from tests.optimizer.workloads import aggregates, options, related_windows, rollup
from tests.strategies import windows

ROUNDING = Fraction(1, 10**9)
PAPER = Options(pricing=Pricing.PAPER)
BUSY = Estimates(rows_per_day=50_000_000, distinct_keys=500)


def declared(*texts: str | DeclaredWindow, **others: object) -> Rollup:
    given: dict[str, object] = {
        "name": "trips",
        "source": Source(table="lake.trips", time="pickup_at"),
        "keys": ("zone_id",),
        "aggregates": {"fares": "sum(fare)"},
        "windows": texts,
        "target": "lake/rollups/trips",
        "estimates": BUSY,
    }
    return Rollup(**{**given, **others})  # type: ignore[arg-type]


def named(text: str, name: str) -> DeclaredWindow:
    return replace(DeclaredWindow.parse(text), name=name)


def parents(plan: Plan) -> dict[str, str | None]:
    return {step.tier.name: step.reads for step in plan.steps}


def helpers(plan: Plan) -> list[str]:
    return [step.tier.name for step in plan.steps if step.tier.kind is not Kind.DECLARED]


def is_at_most(one: Number, other: Number) -> bool:
    """Whether one cost is not above another, but for the rounding of floats."""
    return Fraction(one) <= Fraction(other) * (1 + ROUNDING)


# ---- what stays, what comes, what goes


def test_the_same_declaration_goes_on_as_it_is() -> None:
    running = optimize(declared("20m", "30m", "40m", "45m"))
    again = replanned(running, declared("20m", "30m", "40m", "45m"))
    assert parents(again.plan) == parents(running)
    assert again.plan.totals.total == running.totals.total
    assert again.is_kept
    assert (again.fills, again.fill_cost, again.proposes_rebuild) == ((), 0, False)
    assert again.standing == tuple((name, name) for name in parents(running))


def test_a_new_window_reads_the_cheapest_of_what_is_there() -> None:
    running = optimize(declared("5m", "1h"))
    more = replanned(running, declared("5m", "1h", "2h"))
    assert parents(more.plan) == {"5m": None, "1h": "5m", "2h": "1h"}
    (fill,) = more.fills
    assert (fill.tier, fill.reads) == ("2h", "1h")
    assert more.fill_cost == fill.cost.total > 0
    assert more.is_kept
    assert more.fresh is None
    assert more.why == "What is there goes on: no plan costs less."


def test_a_helper_that_is_there_serves_a_new_window() -> None:
    running = optimize(declared("20m", "30m", "50m"), PAPER)
    (helper,) = helpers(running)
    more = replanned(running, declared("20m", "30m", "50m", "1h"), PAPER, tolerance=Fraction(10))
    assert helpers(more.plan) == [helper]
    assert [fill.tier for fill in more.fills] == ["1h"]


def test_a_rename_is_seen_by_what_the_window_means() -> None:
    running = optimize(declared("5m", "1h", "day"))
    renamed = replanned(running, declared("5m", named("60m", "hourly"), named("1d", "daily")))
    assert parents(renamed.plan) == {"5m": None, "hourly": "5m", "daily": "hourly"}
    assert renamed.standing == (("5m", "5m"), ("1h", "hourly"), ("day", "daily"))
    assert renamed.fills == ()


def test_a_helper_that_was_declared_since_is_no_helper_any_more() -> None:
    running = optimize(declared("20s", "30s", "40s"), replace(PAPER, tiers=TiersAllowed.FACTOR))
    assert helpers(running) == ["10s"]
    asked = replanned(running, declared("20s", "30s", "40s", named("10s", "ten")), PAPER)
    assert helpers(asked.plan) == []
    assert ("10s", "ten") in asked.standing
    assert asked.fills == ()


def test_a_window_that_is_declared_no_more_goes() -> None:
    running = optimize(declared("5m", "1h", "2h"))
    less = replanned(running, declared("5m", "2h"))
    assert parents(less.plan) == {"5m": None, "2h": "5m"}
    assert less.standing == (("5m", "5m"), ("2h", "2h"))


def test_a_window_that_is_declared_no_more_lives_on_where_it_pays_and_says_so() -> None:
    running = optimize(declared(named("10m", "Fine"), "20m", "30m", "50m"))
    less = replanned(running, declared("20m", "30m", "50m"), tolerance=Fraction(1))
    assert parents(less.plan) == {"Fine": None, "20m": "Fine", "30m": "Fine", "50m": "Fine"}
    assert less.plan.step("Fine").tier.kind is Kind.FACTOR
    assert less.is_kept
    assert less.why.endswith(" Declared no more, but worth keeping as 1 helper: Fine.")


def test_a_window_longer_than_all_that_are_asked_for_goes() -> None:
    least = {"least": "min(fare)"}
    running = optimize(declared("10s", "20s every 10s", "10m every 10s", aggregates=least), PAPER)
    less = replanned(running, declared("10s", aggregates=least), PAPER)
    assert parents(less.plan) == {"10s": None}
    assert less.standing == (("10s", "10s"),)


def test_a_calendar_that_is_declared_no_more_goes_though_others_read_it() -> None:
    running = optimize(declared("day in Europe/Paris", "week in Europe/Paris"))
    less = replanned(running, declared("week in Europe/Paris"))
    assert parents(less.plan) == {"week_in_europe_paris": None}


def test_a_helper_gives_way_to_a_window_of_its_name() -> None:
    running = optimize(declared(named("10m", "fine"), "20m", "30m", "50m"))
    less = replanned(running, declared(named("20m", "Fine"), "30m", "50m"), tolerance=Fraction(1))
    assert ("fine", "fine_tier") in less.standing
    assert ("20m", "Fine") in less.standing


def test_helpers_are_dropped_that_the_options_do_not_allow() -> None:
    windows = ("20m", "30m", "40m", "45m")
    running = optimize(declared(*windows))
    (mixed,) = helpers(running)
    assert mixed.startswith("cut_")
    assert not {mixed}.intersection(
        helpers(replanned(running, declared(*windows), Options(tiers=TiersAllowed.FACTOR)).plan)
    )
    alone = replanned(running, declared(*windows), Options(tiers=TiersAllowed.NONE))
    assert helpers(alone.plan) == []
    assert alone.plan.totals.is_proven_optimal
    assert alone.why == "What is there goes on: no plan costs less."


# ---- other aggregates


def test_stricter_aggregates_part_windows_that_covered_each_other() -> None:
    windows = ("3m every 1m", "4m every 1m", "5m every 1m")
    running = optimize(declared(*windows, aggregates={"least": "min(fare)"}), PAPER)
    assert How.OVERLAPPING in {step.how for step in running.steps}
    stricter = replanned(running, declared(*windows, aggregates={"least": "min(fare)", "fares": "sum(fare)"}), PAPER)
    assert How.OVERLAPPING not in {step.how for step in stricter.plan.steps}


def test_a_median_parts_what_was_merged_and_values_are_given_up_with_it() -> None:
    known = replace(BUSY, distinct_values=20)
    windows = ("20m", "30m", "50m")
    merging = optimize(declared(*windows, estimates=known))
    exact = replanned(merging, declared(*windows, aggregates={"middle": "median(fare)"}, estimates=known))
    assert {step.how for step in exact.plan.steps} <= {How.RAW, How.VALUES}
    assert any(step.tier.keeps_values for step in exact.plan.steps)
    assert not exact.is_kept
    again = replanned(exact.plan, declared(*windows, aggregates={"middle": "median(fare)"}, estimates=known))
    assert parents(again.plan) == parents(exact.plan)
    back = replanned(exact.plan, declared(*windows, estimates=known))
    assert not any(step.tier.keeps_values for step in back.plan.steps)


# ---- the way and the goal


def test_another_hierarchy_is_taken_where_it_pays_with_its_filling() -> None:
    running = optimize(declared("20m", "30m"))
    other = replanned(running, declared("20m", "30m", "35m", "45m", "50m", "55m"))
    assert not other.is_kept
    assert other.fresh is not None
    assert is_at_most(other.plan.totals.total, other.fresh.totals.total * 1.01)
    assert other.why.startswith("Another hierarchy pays: within 8,760 periods it saves ")
    assert other.why.endswith(" s, filling its tables included.")


def test_what_is_there_goes_on_where_filling_does_not_pay() -> None:
    asked = declared("20m", "30m", "35m", "45m", "50m", "55m")
    running = optimize(asked, Options(tiers=TiersAllowed.NONE))
    soon = replanned(running, asked, horizon_periods=1, held_s=365 * 86_400)
    assert parents(soon.plan) == parents(running)
    assert soon.is_kept
    assert soon.proposes_rebuild
    assert soon.fresh is not None
    assert soon.plan.totals.total > Fraction(6, 5) * Fraction(soon.fresh.totals.total)
    assert soon.why.startswith("What is there goes on: a plan from scratch would cost ")
    assert soon.why.endswith(" % less, but what has to be filled for it does not pay within 1 period.")
    patient = replanned(running, asked, horizon_periods=1, tolerance=Fraction(50))
    assert not patient.proposes_rebuild
    assert patient.fresh is None
    assert patient.why.startswith("What is there goes on: no plan costs over ")
    later = replanned(running, asked)
    assert not later.is_kept
    assert not later.proposes_rebuild


def test_what_is_there_goes_on_where_a_fresh_plan_costs_no_less() -> None:
    running = optimize(declared("7s", "10s", "12s", "15s", "18s", "20s", "24s"), PAPER)
    same = replanned(running, declared("7s", "10s", "12s", "15s", "18s", "20s", "24s"), PAPER)
    assert same.fresh is not None
    assert same.plan.totals.lower_bound == same.fresh.totals.lower_bound
    assert not same.proposes_rebuild
    assert same.why == "What is there goes on: a plan from scratch would cost no less."


def test_to_fill_a_table_costs_one_commit_however_long_history_is() -> None:
    running = optimize(declared("5m"))
    empty, year, two = (
        float(replanned(running, declared("5m", "1h"), held_s=days * 86_400).fill_cost) for days in (0, 365, 730)
    )
    assert empty == 0
    assert 2 * year - two == pytest.approx(Constants().commit)
    assert year > 2 * Constants().commit


def test_a_price_is_known_for_tiers_that_have_a_table_too() -> None:
    again = replanned(optimize(declared("5m")), declared("5m", "1h"), held_s=30 * 86_400)
    assert [fill.tier for fill in again.anew] == ["5m", "1h"]
    assert [fill.tier for fill in again.fills] == ["1h"]
    rows = [fill.cost.rows_written or 0 for fill in again.anew]
    assert rows[0] > rows[1] > 0


def test_the_papers_pay_as_much_for_history_as_for_what_comes() -> None:
    running = optimize(declared("20s"), PAPER)
    more = replanned(running, declared("20s", "40s"), PAPER, held_s=400)
    assert more.fill_cost == 20  # ten windows of two slices each


def test_a_new_helper_does_not_take_the_name_of_one_that_is_there() -> None:
    factor = replace(PAPER, tiers=TiersAllowed.FACTOR)
    running = optimize(declared(named("10m", "1m"), "20m", "30m", "50m"), factor)
    other = replanned(running, declared("20m", "30m", "50m", "13m", "17m", "19m", "23m", "29m"), factor)
    assert [name for name in helpers(other.plan) if name.startswith("1m")] == ["1m_tier", "1m"]
    assert {"1m"} == {now for before, now in other.standing if before == "1m"}


@pytest.mark.parametrize("algorithm", [Algorithm.PAPER_1, Algorithm.PAPER_3, Algorithm.UNSHARED])
def test_the_algorithms_of_others_know_of_no_running_plan(algorithm: Algorithm) -> None:
    how = Options(algorithm=algorithm)
    asked = declared("20m", "30m", "50m")
    other = replanned(optimize(asked), asked, how)
    assert other.plan == other.fresh == optimize(asked, how)
    assert other.why == f"The plan is new: {algorithm.value} plans from scratch, whatever is running."


@pytest.mark.parametrize(
    "others",
    [
        {"source": Source(table="lake.others", time="pickup_at")},
        {"keys": ("zone_id", "payment")},
        {"target": Catalog("rollups")},
        {"layout": "one_table"},
    ],
)
def test_where_no_table_goes_on_everything_is_filled(others: dict[str, object]) -> None:
    running = optimize(declared("5m", "1h"))
    anew = replanned(running, declared("5m", "1h", **others))
    assert anew.plan == anew.fresh
    assert anew.standing == ()
    assert [fill.tier for fill in anew.fills] == ["5m", "1h"]
    assert anew.why == "The plan is new: no table goes on: another source, other keys or another place."


def test_a_source_that_drops_old_rows_is_no_other_source() -> None:
    shorter = Source(table="lake.trips", time="pickup_at", retain="90 days")
    assert replanned(optimize(declared("5m", "1h")), declared("5m", "1h", source=shorter)).fills == ()


def test_what_was_measured_counts_as_long_as_the_source_is_the_same() -> None:
    measured = Measured(
        rows=1_000, span=Interval(0, 86_400), estimates=Estimates(rows_per_day=1_000, distinct_keys=9), sample=1_000
    )
    asked = declared("5m", "1h")
    running = plan_workload(
        replace(Workload.of(asked), measured=measured, estimates=measured.estimates.over(asked.estimates)), Options()
    )
    assert replanned(running, asked).plan.steps == running.steps
    elsewhere = declared("5m", "1h", source=Source(table="lake.others", time="pickup_at"))
    assert replanned(running, elsewhere).plan.measured is None


def test_windows_without_a_declaration_go_on_too() -> None:
    few, more = (Workload.of_windows(texts, "sum", Estimates()) for texts in (["5m"], ["5m", "1h"]))
    assert replanned_workload(plan_workload(few, Options()), more, Options()).standing == (("5m", "5m"),)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"horizon_periods": 0}, "the horizon is 0 periods, below 1. Hint: leave it out for a year."),
        ({"tolerance": Fraction(-1, 5)}, "the tolerance is -1/5, below 0. Hint: leave it out for a fifth."),
        ({"held_s": -1}, "the history is -1 s long, below 0. Hint: leave it out for that of the horizon."),
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, int], text: str) -> None:
    asked = declared("5m")
    with pytest.raises(UsageError) as error:
        replanned(optimize(asked), asked, **wrong)  # type: ignore[arg-type]
    assert str(error.value) == text


def test_what_stands_and_what_is_priced_are_tiers_of_the_plan() -> None:
    plan = optimize(declared("5m"))
    for anew, standing in (((), ()), ((Fill("5m", None, Cost(total=1)),), (("5m", "1h"),))):
        with pytest.raises(PlanError) as error:
            Replanned(plan=plan, anew=anew, standing=standing, fresh=None, proposes_rebuild=False, why="")
        assert str(error.value) == "replanning 'trips': what stands and what is filled is not the plan."


# ---- whatever is running, whatever is asked


@st.composite
def changes(draw: st.DrawFn) -> tuple[Rollup, Rollup]:
    """Two declarations that have windows in common, under any names."""
    several = st.lists(related_windows(), min_size=1, max_size=7, unique=True) | st.lists(
        windows(), min_size=1, max_size=6, unique_by=meaning
    )
    pool = draw(several)

    def some() -> list[Window]:
        return draw(st.lists(st.sampled_from(pool), min_size=1, unique=True))

    calls = draw(aggregates())
    other = draw(st.just(calls) | aggregates())
    return rollup(some(), calls), rollup(some(), other)


def naive_cost(running: Plan, workload: Workload, how: Options) -> Number:
    """What the running plan would cost, extended naively: what it lacks, or can read no more, reads the raw rows."""
    problem = workload.problem(how)
    now = {sameness(tier): tier for tier in problem.declared}
    kept: dict[str, tuple[Tier, Step]] = {}
    for step in running.steps:
        asked = now.get(sameness(step.tier))
        if asked is not None or step.tier.kind is not Kind.DECLARED:
            kept[step.tier.name] = asked or step.tier, step
        elif isinstance(step.tier.window, FixedWindow) and how.tiers is not TiersAllowed.NONE:
            kept[step.tier.name] = replace(step.tier, kind=Kind.FACTOR), step
    needed = {tier: step for tier, step in kept.values() if tier.kind is Kind.DECLARED}
    total: Number = sum(problem.model.price(tier, None, How.RAW) for tier in problem.declared if tier not in needed)
    waiting = list(needed.items())
    for tier, step in waiting:
        parent = None if step.reads is None or step.reads not in kept else kept[step.reads]
        if parent is not None and parent[0] not in needed:
            needed[parent[0]] = parent[1]
            waiting.append(parent)
        total += problem.model.price(tier, parent and parent[0], step.how if parent else How.RAW)
    return total


@settings(max_examples=60)
@given(changes(), options(algorithm=Algorithm.BEST))
def test_a_plan_to_go_on_with_is_a_plan(change: tuple[Rollup, Rollup], how: Options) -> None:
    before, now = change
    running = optimize(before, how)
    result = replanned(running, now, how)
    plan = result.plan.check("the test")
    assert decode_plan(to_json(encode_plan(plan))) == plan
    asked = {(window.name, meaning(window.window)) for window in now.windows}
    made = {
        (step.tier.name, meaning(step.tier.window))
        for step in plan.steps
        if step.tier.kind is Kind.DECLARED and step.tier.window is not None
    }
    assert made == asked
    taken = {name.lower() for name, _ in asked}
    for old, new in result.standing:
        assert sameness(running.step(old).tier) == sameness(plan.step(new).tier)
        if plan.step(new).tier.kind is not Kind.DECLARED:
            assert new == free_name(old, taken)


@settings(max_examples=60)
@given(changes(), options(algorithm=Algorithm.BEST))
def test_what_is_kept_costs_no_more_than_new_windows_from_raw(change: tuple[Rollup, Rollup], how: Options) -> None:
    before, now = change
    running, workload = optimize(before, how), Workload.of(now)
    kept = kept_plan(running, workload, how)
    there = {sameness(step.tier) for step in running.steps}
    assert all(step.tier.kind is Kind.DECLARED or sameness(step.tier) in there for step in kept.steps)
    assert is_at_most(kept.totals.lower_bound, optimize(now, how).totals.total)
    if kept.search.semantics is running.search.semantics:
        assert is_at_most(kept.totals.total, naive_cost(running, workload, how))


@settings(max_examples=60)
@given(changes(), options(algorithm=Algorithm.BEST))
def test_nothing_new_changes_nothing(change: tuple[Rollup, Rollup], how: Options) -> None:
    asked, _ = change
    running = optimize(asked, how)
    again = replanned(running, asked, how)
    assert again.is_kept
    assert again.fills == ()
    assert {sameness(step.tier) for step in again.plan.steps} == {sameness(step.tier) for step in running.steps}
    assert is_at_most(again.plan.totals.total, running.totals.total)
    assert is_at_most(running.totals.total, again.plan.totals.total)
