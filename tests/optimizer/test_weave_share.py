from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import PlanError
from stairwise.weave_share import (
    RunningWeave,
    Tree,
    WeavePlan,
    insert_then_weave,
    reduction,
    share_everything,
    share_nothing,
    weave_share,
    weaveability,
)
from stairwise.window import FixedWindow

EXAMPLE_2 = (FixedWindow(12, 9), FixedWindow(10, 6))
EXAMPLE_3 = (FixedWindow(16, 4), FixedWindow(10, 5), FixedWindow(8, 4))
EXAMPLE_3_RATE = Fraction(12, 10)


@st.composite
def fixed_windows(draw: st.DrawFn) -> FixedWindow:
    slide = draw(st.integers(1, 12))
    return FixedWindow(draw(st.integers(slide, 40)), slide, draw(st.integers(0, slide - 1)))


workloads = st.lists(fixed_windows(), max_size=6).map(tuple)
rates = st.fractions(0, 20, max_denominator=10)


def counted_edges(windows: tuple[FixedWindow, ...]) -> tuple[int, int]:
    """Distinct edges in a composite slide, walked one by one, and its length."""
    composite = lcm(*(window.slide for window in windows))
    edges: set[int] = set()
    for window in windows:
        for begin in range(window.origin, composite, window.slide):
            edges |= {begin, (begin + window.range) % composite}
    return len(edges), composite


def partitions(windows: tuple[FixedWindow, ...]) -> Iterator[list[tuple[FixedWindow, ...]]]:
    if not windows:
        yield []
        return
    first, *rest = windows
    for partition in partitions(tuple(rest)):
        yield [(first,), *partition]
        for number, block in enumerate(partition):
            yield [*partition[:number], (first, *block), *partition[number + 1 :]]


def figure_2(windows: tuple[FixedWindow, ...], rate: Fraction, *, is_reset: bool) -> list[Tree]:
    """Figure 2, transcribed line by line; as printed, the best reduction is set to 0 only once (line 6)."""
    trees = list(share_nothing(windows, rate).trees)
    best, first, second = Fraction(0), Tree((FixedWindow(1, 1),)), Tree((FixedWindow(1, 1),))
    while True:
        if is_reset:
            best = Fraction(0)
        for one, other in combinations(trees, 2):
            saved = reduction(one, other, rate)
            if saved > best:
                best, first, second = saved, one, other
        if best <= 0:
            return trees
        trees.remove(first)
        trees.remove(second)
        trees.append(first | second)


def test_example_2_edges_of_a_composite_slide() -> None:
    alone = [Tree((window,)) for window in EXAMPLE_2]
    assert [tree.edge_rate for tree in alone] == [Fraction(2, 9), Fraction(2, 6)]
    shared = alone[0] | alone[1]
    assert list(shared.edges.between(1, 19)) == [3, 4, 6, 9, 10, 12, 16, 18]
    assert shared.edge_rate == Fraction(8, 18)
    assert weaveability(*alone) == Fraction(2, 8)


def test_example_3_costs() -> None:
    costs = [plan(EXAMPLE_3, EXAMPLE_3_RATE).cost for plan in (share_nothing, weave_share, share_everything)]
    assert costs == [Fraction(55, 10), Fraction(43, 10), Fraction(44, 10)]


def test_example_3_trees() -> None:
    plan = weave_share(EXAMPLE_3, EXAMPLE_3_RATE)
    assert plan == WeavePlan(EXAMPLE_3_RATE, (Tree(EXAMPLE_3[1:2]), Tree(EXAMPLE_3[::2])))
    assert [tree.overlap for tree in plan.trees] == [6, 2]
    assert weaveability(Tree((EXAMPLE_3[0],)), Tree((EXAMPLE_3[2],))) == 1


def test_example_4_common_edges() -> None:
    first, second = Tree((FixedWindow(7, 5),)), Tree((FixedWindow(3, 3),))
    assert [edge for edge in first.edges.between(1, 16) if second.edges.contains(edge)] == [12, 15]
    assert (first | second).edge_rate == Fraction(11 - 2, 15)


def test_figure_2_as_printed_merges_a_pair_that_is_gone() -> None:
    with pytest.raises(ValueError, match=r"^list\.remove\(x\): x not in list$"):
        figure_2(EXAMPLE_3, EXAMPLE_3_RATE, is_reset=False)
    assert set(figure_2(EXAMPLE_3, EXAMPLE_3_RATE, is_reset=True)) == {Tree(EXAMPLE_3[1:2]), Tree(EXAMPLE_3[::2])}


def test_sharing_pays_at_high_rates_only() -> None:
    breakeven = Fraction(4, 9) * 3 - Fraction(2, 9) * Fraction(4, 3) - Fraction(1, 3) * Fraction(5, 3)
    assert weave_share(EXAMPLE_2, breakeven) == share_nothing(EXAMPLE_2, breakeven)
    above = breakeven + Fraction(1, 1000)
    assert weave_share(EXAMPLE_2, above) == share_everything(EXAMPLE_2, above)


def test_a_window_asked_for_twice_is_two_windows_of_one_tree() -> None:
    plan = weave_share((EXAMPLE_2[0],) * 2, Fraction(1))
    assert plan.windows == (EXAMPLE_2[0],) * 2
    assert plan.cost == 1 + Fraction(2, 9) * 2 * Fraction(12, 9)


@pytest.mark.parametrize("planner", [share_nothing, share_everything, weave_share, insert_then_weave])
def test_no_windows_cost_nothing(planner: Callable[[tuple[FixedWindow, ...], Fraction], WeavePlan]) -> None:
    assert planner((), Fraction(5)) == WeavePlan(Fraction(5), ())
    assert planner((), Fraction(5)).cost == 0


def test_greedy_merging_can_miss_that_three_together_pay() -> None:
    windows = tuple(FixedWindow(4, 3, origin) for origin in range(3))
    rate = Fraction(3, 4)
    assert weave_share(windows, rate) == share_nothing(windows, rate)
    assert share_everything(windows, rate).cost == Fraction(19, 4) < Fraction(59, 12) == weave_share(windows, rate).cost


@given(workloads.filter(bool))
def test_edge_rate_counts_the_edges_of_a_composite_slide(windows: tuple[FixedWindow, ...]) -> None:
    assert Tree(windows).edge_rate == Fraction(*counted_edges(windows))


@given(workloads, rates)
def test_weave_share_is_figure_2_with_the_reset(windows: tuple[FixedWindow, ...], rate: Fraction) -> None:
    assert weave_share(windows, rate) == WeavePlan(rate, tuple(figure_2(windows, rate, is_reset=True)))


@given(workloads, rates)
def test_plans_lie_between_the_best_grouping_and_no_sharing(windows: tuple[FixedWindow, ...], rate: Fraction) -> None:
    best = min(WeavePlan(rate, tuple(map(Tree, partition))).cost for partition in partitions(windows))
    assert best <= weave_share(windows, rate).cost <= share_nothing(windows, rate).cost
    assert best <= insert_then_weave(windows, rate).cost <= share_nothing(windows, rate).cost


@given(workloads, rates)
def test_no_merge_of_two_trees_pays_any_more(windows: tuple[FixedWindow, ...], rate: Fraction) -> None:
    for plan in (weave_share(windows, rate), insert_then_weave(windows, rate)):
        for first, second in combinations(plan.trees, 2):
            saved = first.cost(rate) + second.cost(rate) - (first | second).cost(rate)
            assert reduction(first, second, rate) == saved <= 0


@given(workloads.flatmap(lambda windows: st.tuples(st.just(windows), st.permutations(windows).map(tuple))), rates)
def test_the_order_of_the_windows_is_irrelevant(
    both: tuple[tuple[FixedWindow, ...], tuple[FixedWindow, ...]], rate: Fraction
) -> None:
    for planner in (share_nothing, share_everything, weave_share, insert_then_weave):
        assert planner(both[0], rate) == planner(both[1], rate)


def test_a_new_window_goes_where_it_saves_most() -> None:
    running = RunningWeave.start(EXAMPLE_3, EXAMPLE_3_RATE, tolerance=None).add(FixedWindow(5, 5))
    assert running.plan.trees == (Tree((FixedWindow(5, 5), FixedWindow(10, 5))), Tree(EXAMPLE_3[::2]))


def test_a_new_window_can_make_two_trees_merge() -> None:
    apart = (FixedWindow(4, 3, 0), FixedWindow(4, 3, 1))
    running = RunningWeave.start(apart, Fraction(3, 4), tolerance=None)
    assert running.plan.trees == (Tree(apart[:1]), Tree(apart[1:]))
    assert running.add(FixedWindow(1, 1)).plan.trees == (Tree((*apart, FixedWindow(1, 1))),)


def test_a_removed_window_leaves_its_tree_which_may_then_merge() -> None:
    running = RunningWeave.start(EXAMPLE_3, EXAMPLE_3_RATE, tolerance=None).remove(FixedWindow(8, 4))
    assert running.plan.trees == (Tree((FixedWindow(10, 5), FixedWindow(16, 4))),)
    running = running.remove(FixedWindow(16, 4))
    assert running.plan.trees == (Tree((FixedWindow(10, 5),)),)
    assert running.remove(FixedWindow(10, 5)).plan.trees == ()


def test_one_copy_of_a_window_is_removed() -> None:
    running = RunningWeave.start((EXAMPLE_2[0],) * 2, Fraction(1)).remove(EXAMPLE_2[0])
    assert running.plan.windows == (EXAMPLE_2[0],)


def test_the_expected_cost_follows_the_last_two_points() -> None:
    plan = weave_share(EXAMPLE_2, Fraction(1))
    points = ((0, Fraction(0)), (10, Fraction(30)), (20, Fraction(40)), (20, Fraction(44)))
    running = RunningWeave(plan=plan, tolerance=Fraction(1, 5), curve=points)
    assert running.expected_cost(25) == 44 + Fraction(14, 10) * 5
    assert RunningWeave.start((), Fraction(1)).expected_cost(3) == 0


DRIFTING = (FixedWindow(1, 1), FixedWindow(1, 1), FixedWindow(6, 3))


@pytest.mark.parametrize(
    ("tolerance", "cost", "points"),
    [(None, Fraction(15, 2), 2), (Fraction(1, 5), Fraction(15, 2), 2), (Fraction(0), Fraction(20, 3), 3)],
)
def test_a_plan_that_drifts_too_far_is_rebuilt(tolerance: Fraction | None, cost: Fraction, points: int) -> None:
    start = RunningWeave.start(DRIFTING, Fraction(3, 2), tolerance=tolerance)
    assert start.expected_cost(4) == Fraction(22, 3)
    grown = start.add(FixedWindow(18, 6))
    assert grown.plan.cost == cost
    assert len(grown.curve) == points
    assert grown.curve[-1] == ((3, start.plan.cost) if points == 2 else (4, cost))


def test_a_rebuilt_plan_that_is_dearer_is_not_taken() -> None:
    windows = (FixedWindow(2, 2), FixedWindow(5, 5), FixedWindow(9, 3), FixedWindow(2, 1))
    start = RunningWeave.start(windows, Fraction(3, 2), tolerance=Fraction(0))
    assert start.expected_cost(5) == Fraction(59, 6)
    grown = start.add(FixedWindow(2, 1))
    assert grown.plan.cost == Fraction(148, 15)
    assert grown.curve[-1] == (5, Fraction(10))


def test_the_expected_cost_is_no_bound_on_how_far_a_plan_may_be_off() -> None:
    """Section 7.2 says that the relative error never exceeds the tolerance; it is measured against another number."""
    running = RunningWeave.start((FixedWindow(6, 6), FixedWindow(1, 1)), Fraction(1), tolerance=Fraction(1, 5))
    for window in (FixedWindow(6, 6), FixedWindow(6, 3)):
        running = running.add(window)
    assert len(running.curve) == 2
    fresh = weave_share(running.plan.windows, Fraction(1)).cost
    assert (running.plan.cost, fresh) == (Fraction(17, 3), Fraction(13, 3))
    assert running.plan.cost > Fraction(13, 10) * fresh


def test_without_tolerance_a_plan_is_not_rebuilt_each_time() -> None:
    """Section 5.2.1 says that it is; but a plan that costs what was expected, or less, stays."""
    running = RunningWeave.start((FixedWindow(4, 4), FixedWindow(6, 6)), Fraction(5), tolerance=Fraction(0))
    grown = running.add(FixedWindow(4, 4))
    assert grown.plan.cost <= running.expected_cost(3)
    assert grown.curve == running.curve


steps = st.lists(st.tuples(fixed_windows(), st.booleans()), max_size=8)


@given(workloads, rates, steps, st.sampled_from([None, Fraction(0), Fraction(1, 5)]))
def test_a_running_plan_serves_what_it_should_within_its_tolerance(
    windows: tuple[FixedWindow, ...],
    rate: Fraction,
    changes: list[tuple[FixedWindow, bool]],
    tolerance: Fraction | None,
) -> None:
    running = RunningWeave.start(windows, rate, tolerance=tolerance)
    served = list(windows)
    for window, is_removal in changes:
        if is_removal and served:
            running = running.remove(served.pop())
        else:
            served.append(window)
            running = running.add(window)
        assert sorted(map(repr, running.plan.windows)) == sorted(map(repr, served))
        assert all(reduction(*pair, rate) <= 0 for pair in combinations(running.plan.trees, 2))
        if tolerance is not None:
            allowed = (1 + tolerance) * running.expected_cost(len(served))
            assert running.plan.cost <= max(allowed, weave_share(served, rate).cost)


def test_what_is_not_a_plan_is_refused() -> None:
    with pytest.raises(PlanError) as error:
        Tree(())
    assert str(error.value) == "a tree holds 0 windows, but it takes 1 to have edges. Hint: leave the tree out."
    with pytest.raises(PlanError) as error:
        WeavePlan(Fraction(-1, 2), ())
    assert str(error.value) == (
        "the input rate is -1/2 events per second, but a rate is 0 or more. "
        "Hint: give the measured number of events per second."
    )


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(PlanError) as error:
        RunningWeave.start(EXAMPLE_3, EXAMPLE_3_RATE, tolerance=Fraction(-1, 5))
    assert str(error.value) == (
        "the tolerance is -1/5 of the expected cost, but it is 0 or more. "
        "Hint: give 0 to rebuild whenever the plan costs more than expected, None to rebuild never."
    )


def test_a_window_that_is_not_there_cannot_be_removed() -> None:
    running = RunningWeave.start(EXAMPLE_3, EXAMPLE_3_RATE)
    with pytest.raises(PlanError) as error:
        running.remove(FixedWindow(10, 10))
    assert str(error.value) == (
        "window '10s' is in none of the plan's trees (2), so it cannot be removed. "
        "Hint: remove a window that was added before."
    )
