"""The planner against brute force over every hierarchy that small workloads allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import composite as composites
from stairwise import planner
from stairwise.aggregate import Sharing
from stairwise.batch_cost import BatchModel
from stairwise.candidates import composite
from stairwise.composite import all_unions
from stairwise.cost import CostModel, PaperModel
from stairwise.errors import PlanError
from stairwise.graph import build
from stairwise.network import Number, solve_open
from stairwise.options import TiersAllowed
from stairwise.planner import Found, Problem, as_in_paper, best, unshared
from stairwise.tiers import Horizon, Kind, Tier, declared_tier, factor_tier
from stairwise.window import FixedWindow
from stairwise.window_text import parse_window

_T = TypeVar("_T")
BATCH = BatchModel(
    rows_per_s=500.0, keys=200, values=None, row_bytes=60, is_invertible=False, is_holistic=False, commit_s=0.02
)


def problem(
    windows: Iterable[FixedWindow], sharing: Sharing = Sharing.DISJOINT, *, eta: int = 1, model: CostModel | None = None
) -> Problem:
    declared = tuple(declared_tier(str(window), str(window), window, Horizon()) for window in sorted(windows, key=str))
    return Problem(
        declared=declared, sharing=sharing, model=model or PaperModel.of(declared, eta=eta), eta=eta, steps=50_000
    )


def plan(asked: Problem, allowed: TiersAllowed) -> Found:
    return best(asked, allowed, as_in_paper(asked, has_factors=True))


def subsets(things: Iterable[_T]) -> Iterable[tuple[_T, ...]]:
    given_things = tuple(things)
    return chain.from_iterable(combinations(given_things, size) for size in range(len(given_things) + 1))


def cheapest(asked: Problem, helpers: list[Tier]) -> Number:
    """The optimum over all choices of helpers, each tier reading where that is cheapest."""
    graph = build([*asked.declared, *helpers], asked.sharing, asked.model)
    optional = [node for node, tier in enumerate(graph.tiers, 1) if tier.kind is not Kind.DECLARED]
    return min(solve_open(graph.network, opened).cost for opened in subsets(optional))


tumbling = st.integers(2, 24).map(lambda length: FixedWindow(length, length))


@st.composite
def hopping_windows(draw: st.DrawFn) -> FixedWindow:
    slide = draw(st.integers(2, 12))
    return FixedWindow(slide * draw(st.integers(1, 3)), slide, draw(st.sampled_from((0, 0, 0, 1, 5))) % slide)


hopping = hopping_windows()


def divisors_of(windows: Iterable[FixedWindow]) -> list[int]:
    sizes = [size for window in windows for size in (window.range, window.slide)]
    return sorted({one for size in sizes for one in range(1, size + 1) if size % one == 0})


@settings(max_examples=60)
@given(st.sets(tumbling, min_size=1, max_size=4), st.sampled_from((1, 7)))
def test_factor_windows_against_all_tumbling_tiers(windows: set[FixedWindow], eta: int) -> None:
    asked = problem(windows, eta=eta)
    every = [FixedWindow(length, length) for length in divisors_of(windows)]
    optimum = cheapest(asked, [factor_tier(f"f{w.range}", w) for w in every if w not in windows][-11:])
    found = plan(asked, TiersAllowed.FACTOR)
    assert found.solution.cost <= optimum
    assert found.is_proven
    assert found.lower_bound == found.solution.cost


@settings(max_examples=40)
@given(st.sets(hopping, min_size=2, max_size=3), st.sampled_from((Sharing.DISJOINT, Sharing.OVERLAPPING)))
def test_factor_windows_against_all_small_windows(windows: set[FixedWindow], sharing: Sharing) -> None:
    asked = problem(windows, sharing)
    longest = max(window.range for window in windows)
    every = [
        FixedWindow(length, slide)
        for slide in divisors_of(windows)
        for length in range(slide, longest + 1, slide)
        if any(window.slide % slide == 0 for window in windows)
    ]
    found = plan(asked, TiersAllowed.FACTOR)
    assert found.is_proven
    for pair in combinations([window for window in every if window not in windows], 2):
        graph = build([*asked.declared, *(factor_tier(str(w), w) for w in pair)], sharing, asked.model)
        for opened in subsets([node for node, tier in enumerate(graph.tiers, 1) if tier.kind is Kind.FACTOR]):
            assert found.lower_bound <= solve_open(graph.network, opened).cost


@pytest.mark.parametrize("few", [6, 0], ids=["all unions", "merging"])
@settings(max_examples=40)
@given(windows=st.sets(st.one_of(tumbling, hopping), min_size=2, max_size=4), is_batch=st.booleans())
def test_composite_tiers_against_all_trees_of_unions(few: int, windows: set[FixedWindow], *, is_batch: bool) -> None:
    asked = problem(windows, model=BATCH if is_batch else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "FEW", few)
        found = plan(asked, TiersAllowed.COMPOSITE)
    unions = {composite(edges).needs for edges in all_unions(composites.distinct_needs(asked.declared))}
    pair_tiers = {tier.needs for tier in asked.declared if not tier.tiles}
    offered = {tier.provides for tier in asked.declared}
    helpers = [composite(edges) for edges in sorted((unions | pair_tiers) - offered, key=lambda edges: edges.classes)]
    if len(helpers) > 11:
        return
    optimum = cheapest(asked, helpers)
    slack = 0 if isinstance(optimum, int | Fraction) else 1e-9 * optimum
    assert found.lower_bound <= optimum + slack
    assert found.solution.cost >= found.lower_bound - slack
    if found.is_proven:
        assert found.solution.cost <= optimum + slack


@settings(max_examples=60)
@given(
    st.sets(st.one_of(tumbling, hopping), min_size=1, max_size=9),
    st.sampled_from((Sharing.DISJOINT, Sharing.OVERLAPPING, Sharing.HOLISTIC)),
    st.sampled_from((1, 50)),
    st.booleans(),
)
def test_more_freedom_never_costs(windows: set[FixedWindow], sharing: Sharing, eta: int, is_batch: bool) -> None:  # noqa: FBT001
    asked = problem(windows, sharing, eta=eta, model=BATCH if is_batch else None)
    paper_1, paper_3 = (as_in_paper(asked, has_factors=has_factors) for has_factors in (False, True))
    none, factor, union = (plan(asked, allowed).solution.cost for allowed in reversed(TiersAllowed))
    assert union <= factor <= none <= paper_1.solution.cost <= unshared(asked).solution.cost
    assert factor <= paper_3.solution.cost


@pytest.mark.parametrize(
    ("lengths", "costs"),
    [
        ((10, 20, 30, 40), (480, 150, 150, 150, 150)),
        ((20, 30, 40), (360, 246, 150, 150, 142)),
        ((2, 3, 8, 12), (96, 68, 72, 68, 68)),
    ],
)
def test_worked_examples(lengths: tuple[int, ...], costs: tuple[int, ...]) -> None:
    asked = problem(FixedWindow(length, length) for length in lengths)
    found = (
        unshared(asked), as_in_paper(asked, has_factors=False), as_in_paper(asked, has_factors=True),
        plan(asked, TiersAllowed.FACTOR), plan(asked, TiersAllowed.COMPOSITE),
    )  # fmt: skip
    assert tuple(one.solution.cost for one in found) == costs


def test_windows_that_have_no_divisor_in_common_share_their_edges() -> None:
    asked = problem(FixedWindow(length, length) for length in (15, 17, 19))
    assert plan(asked, TiersAllowed.FACTOR).solution.cost == 3 * asked.model.period_s
    found = plan(asked, TiersAllowed.COMPOSITE)
    assert found.is_proven
    assert float(found.solution.cost / asked.model.period_s) == pytest.approx(1.503, abs=0.001)


def test_many_windows_are_planned_in_rounds_and_bounded() -> None:
    asked = problem(FixedWindow(length, length) for length in (14, 15, 22, 26, 33, 35, 39, 55, 65, 77, 91))
    found = plan(asked, TiersAllowed.COMPOSITE)
    factor = plan(asked, TiersAllowed.FACTOR)
    assert found.solution.cost < Fraction(factor.solution.cost) * 6 / 10
    assert 0 < found.lower_bound < found.solution.cost
    assert not found.is_proven


@pytest.mark.parametrize(
    ("sharing", "windows", "cost"),
    [
        (Sharing.DISJOINT, ((12, 12), (12, 4), (12, 6), (12, 8), (24, 24), (24, 12), (24, 3), (24, 4)), 84),
        (
            Sharing.DISJOINT,
            ((12, 11), (12, 12), (36, 6), (36, 9), (36, 12), (36, 15), (36, 18)),
            Fraction(991, 11),
        ),
        (
            Sharing.OVERLAPPING,
            ((30, 9), (30, 16), (30, 30), (60, 2), (60, 3), (60, 8), (60, 15), (60, 28)),
            Fraction(2974, 15),
        ),
    ],
    ids=["beside each other", "one below the other", "covering"],
)
def test_hopping_helpers_and_unions_are_chosen_together(
    sharing: Sharing, windows: tuple[tuple[int, int], ...], cost: Number
) -> None:
    asked = problem((FixedWindow(length, slide) for length, slide in windows), sharing)
    assert plan(asked, TiersAllowed.COMPOSITE).solution.cost == cost


def test_stray_edges_do_not_keep_a_calendar_from_mixed_tiers() -> None:
    texts = ("day offset 30m in Asia/Beirut", "7h", "450m", "11h")
    declared = tuple(declared_tier(text, text, parse_window(text), Horizon()) for text in texts)
    asked = Problem(declared=declared, sharing=Sharing.DISJOINT, model=BATCH, eta=1, steps=1_000)
    found = plan(asked, TiersAllowed.COMPOSITE)
    parents = {found.solution.parents[node] for node, tier in enumerate(found.graph.tiers, 1) if tier.strays}
    assert all(parent and found.graph.tiers[parent - 1].kind is Kind.COMPOSITE for parent in parents)
    assert not found.is_proven


def test_calendars_and_offsets_are_planned_together() -> None:
    texts = ("5m", "20m offset 5m", "day in Europe/Paris", "day offset 30m in Asia/Beirut", "month in Europe/Paris")
    declared = tuple(declared_tier(text, text, parse_window(text), Horizon()) for text in texts)
    asked = Problem(declared=declared, sharing=Sharing.DISJOINT, model=BATCH, eta=1, steps=1_000)
    found = plan(asked, TiersAllowed.COMPOSITE)
    reads = {
        found.graph.tiers[node - 1].name: parent and found.graph.tiers[parent - 1].name
        for node, parent in enumerate(found.solution.parents) if node and parent is not None
    }  # fmt: skip
    assert reads["month in Europe/Paris"] == "day in Europe/Paris"
    assert reads["day offset 30m in Asia/Beirut"] == "5m"


def test_a_closure_that_was_cut_short_is_bounded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stairwise.candidates.CLOSURE_LIMIT", -20)
    found = plan(problem(FixedWindow(n, n) for n in (30, 42, 70, 105)), TiersAllowed.FACTOR)
    assert (found.lower_bound, found.solution.cost, found.is_proven) == (230, 840, False)


def test_values_are_kept_where_that_is_cheaper_than_the_raw_rows() -> None:
    windows = [FixedWindow(60 * n, 60 * n) for n in (1, 5, 15, 60)]
    known = BatchModel(
        rows_per_s=5_000.0, keys=10, values=5, row_bytes=60, is_invertible=False, is_holistic=True, commit_s=0.02
    )
    found = plan(problem(windows, Sharing.HOLISTIC, model=known), TiersAllowed.FACTOR)
    keepers = [tier for tier in found.tiers if tier.keeps_values]
    assert [tier.name for tier in keepers] == ["1m_values"]
    unknown = plan(problem(windows, Sharing.HOLISTIC, model=BATCH), TiersAllowed.FACTOR)
    assert all(tier.kind is Kind.DECLARED for tier in unknown.tiers)


def test_one_round_may_be_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(FixedWindow(length, length) for length in (14, 15, 22, 26, 33, 35, 39, 55, 65, 77, 91))
    thorough = plan(asked, TiersAllowed.COMPOSITE)
    monkeypatch.setattr(planner, "MERGED", 0)
    found = plan(asked, TiersAllowed.COMPOSITE)
    assert thorough.solution.cost <= found.solution.cost < as_in_paper(asked, has_factors=True).solution.cost
    assert found.lower_bound == thorough.lower_bound


@settings(max_examples=15)
@given(st.sets(hopping, min_size=7, max_size=12))
def test_many_windows_that_may_overlap_are_bounded(windows: set[FixedWindow]) -> None:
    asked = problem(windows, Sharing.OVERLAPPING)
    factor, found = (plan(asked, allowed) for allowed in (TiersAllowed.FACTOR, TiersAllowed.COMPOSITE))
    assert 0 < found.lower_bound <= found.solution.cost <= factor.solution.cost
    assert found.lower_bound <= factor.lower_bound


def test_a_bound_below_all_that_cover_holds_for_unions_too() -> None:
    asked = problem((FixedWindow(minutes, minutes) for minutes in range(10, 50)), Sharing.OVERLAPPING)
    factors, mixed = (plan(asked, allowed) for allowed in (TiersAllowed.FACTOR, TiersAllowed.COMPOSITE))
    assert not factors.is_whole
    assert mixed.lower_bound == factors.lower_bound < mixed.solution.cost < factors.solution.cost


def test_many_windows_of_one_range_are_picked_from_one() -> None:
    asked = problem(FixedWindow(60, slide) for slide in (4, 6, 10, 12, 15, 20, 30))
    found = plan(asked, TiersAllowed.COMPOSITE)
    assert "1m every 2s" in {str(tier.window) for tier in found.graph.tiers}
    assert found.lower_bound <= found.solution.cost


def test_calendars_with_stray_edges_are_merged_with_many_others() -> None:
    texts = (
        "7m",
        "11m",
        "13m",
        "day offset 30m in Asia/Beirut",
        "day offset 45m in Asia/Beirut",
        "17m",
        "19m",
        "23m",
        "29m",
    )
    declared = tuple(declared_tier(text, text, parse_window(text), Horizon()) for text in texts)
    asked = Problem(
        declared=declared, sharing=Sharing.DISJOINT, model=PaperModel.of(declared, eta=100), eta=100, steps=1_000
    )
    found = plan(asked, TiersAllowed.COMPOSITE)
    beirut = [node for node, tier in enumerate(found.graph.tiers, 1) if tier.strays]
    parents = {found.graph.tiers[(found.solution.parents[node] or 1) - 1].kind for node in beirut}
    assert parents == {Kind.COMPOSITE}


def test_a_helper_that_hops_is_not_cut_down_among_many() -> None:
    asked = problem(FixedWindow(360, slide) for slide in range(14, 66, 2))
    found = plan(asked, TiersAllowed.COMPOSITE)
    assert [tier.name for tier in found.tiers if tier.kind is not Kind.DECLARED] == ["6m_every_2s"]


def test_many_windows_of_values_share_unions_that_keep_values() -> None:
    asked = problem(
        (FixedWindow(60 * n, 60 * n) for n in (7, 8, 9, 10, 11, 12, 13)),
        Sharing.HOLISTIC,
        model=BatchModel(
            rows_per_s=50_000.0, keys=10, values=5, row_bytes=60, is_invertible=False, is_holistic=True, commit_s=0.02
        ),
    )
    factor, found = (plan(asked, allowed) for allowed in (TiersAllowed.FACTOR, TiersAllowed.COMPOSITE))
    assert 0 < found.lower_bound <= found.solution.cost < factor.solution.cost
    helpers = [tier for tier in found.tiers if tier.kind is Kind.COMPOSITE]
    assert helpers
    assert all(tier.keeps_values for tier in helpers)


def test_a_bound_above_the_plan_goes_no_further() -> None:
    found = plan(problem([FixedWindow(10, 10), FixedWindow(20, 20)]), TiersAllowed.FACTOR)
    with pytest.raises(PlanError) as caught:
        replace(found, lower_bound=found.solution.cost + 1)
    assert str(caught.value) == "planning: the lower bound 23 is above the cost 22."
