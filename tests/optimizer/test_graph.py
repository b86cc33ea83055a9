"""Which tier can be read by which: the fast rules against the plain definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.batch_cost import BatchModel
from stairwise.bound import dual_ascent
from stairwise.cost import CostModel, PaperModel
from stairwise.edges import EdgeSet
from stairwise.exact import branch_and_bound
from stairwise.graph import asked_of_unions, build, coarsest_class, in_order, lean, legal_arcs, narrowed, regrown
from stairwise.network import runner_up, solve_open
from stairwise.tiers import Horizon, How, Kind, Tier, composite_tier, declared_tier, factor_tier, reads
from stairwise.window import FixedWindow
from stairwise.window_text import parse_window

TEXTS = (
    "1m", "5m", "7m", "20m", "1h", "90m", "1d", "1w", "1h every 15m", "1h every 30m", "2h every 15m", "5m offset 2m",
    "1h every 25m", "day", "day in Europe/Paris", "week in Europe/Paris", "month in Europe/Paris",
    "28 days every day in Europe/Paris", "28 days every week in Europe/Paris",
    "month to date every day in Europe/Paris",
    "day in Asia/Kathmandu", "year from april", "quarter", "month", "day offset 6h in Europe/Paris",
    "day offset 30m in Asia/Beirut", "day offset 6h in Pacific/Apia",
)  # fmt: skip


def tier(text: str) -> Tier:
    return declared_tier(text, text, parse_window(text), Horizon())


def arcs(tiers: tuple[Tier, ...], sharing: Sharing) -> set[tuple[str, str, How]]:
    ordered = in_order(tiers)
    return {(ordered[p - 1].name, ordered[c - 1].name, how) for p, c, how in legal_arcs(ordered, sharing)}


@pytest.mark.parametrize("sharing", list(Sharing))
@given(
    chosen=st.sets(st.sampled_from(TEXTS), min_size=2, max_size=8),
    union=st.sets(st.sampled_from(TEXTS[:7]), max_size=3),
)
def test_the_fast_rules_find_what_the_definition_allows(sharing: Sharing, chosen: set[str], union: set[str]) -> None:
    tiers = [tier(text) for text in sorted(chosen)]
    edges = EdgeSet.of(*(one for text in sorted(union) for one in tier(text).needs.classes))
    if len(edges.classes) > 1:
        tiers.append(composite_tier("cut", edges))
    ordered = in_order(tiers)
    expected = {
        (parent.name, child.name)
        for rank, parent in enumerate(ordered)
        for child in ordered[rank + 1 :]
        if reads(child, parent, sharing) is not None
    }
    found = arcs(tuple(tiers), sharing)
    assert {(parent, child) for parent, child, _ in found} == expected


def test_calendars_read_unions_that_hold_their_stray_edges() -> None:
    beirut = tier("day offset 30m in Asia/Beirut")
    without, with_strays = (
        composite_tier(name, edges | EdgeSet.of((25_200, 0)))
        for name, edges in (("without", beirut.needs), ("with", asked_of_unions(beirut)))
    )
    found = arcs((beirut, without, with_strays), Sharing.DISJOINT)
    assert found == {("with", "without", How.DISJOINT), ("with", beirut.name, How.DISJOINT)}
    assert reads(beirut, with_strays, Sharing.DISJOINT) is How.DISJOINT
    assert reads(beirut, without, Sharing.DISJOINT) is None


def test_a_tier_stands_behind_all_that_it_could_read() -> None:
    tiers = [tier(text) for text in TEXTS]
    ordered = in_order(tiers)
    assert ordered == in_order(reversed(tiers))
    for rank, child in enumerate(ordered):
        for later in ordered[rank + 1 :]:
            identical = child.needs == later.needs
            assert identical or reads(child, later, Sharing.DISJOINT) is None, (child.name, later.name)


def test_equal_windows_of_two_kinds_read_one_another_one_way() -> None:
    found = arcs((tier("1d"), tier("day")), Sharing.DISJOINT)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5m", (300, 0)),
        ("1h every 25m", (300, 0)),
        ("5m offset 2m", (300, 120)),
        ("1w", (604_800, 345_600)),
        ("day in Europe/Paris", (3_600, 0)),
        ("day in Asia/Kathmandu", (900, 0)),
        ("month in Europe/Paris", (3_600, 0)),
    ],
)
def test_coarsest_class(text: str, expected: tuple[int, int]) -> None:
    assert coarsest_class(tier(text)) == expected


def test_values_are_read_only_from_tiers_that_keep_them() -> None:
    minutes = factor_tier("5m_values", FixedWindow(300, 300), keeps_values=True)
    found = arcs((minutes, tier("5m"), tier("20m"), tier("1h every 20m"), tier("7m")), Sharing.HOLISTIC)
    assert found == {("5m_values", name, How.VALUES) for name in ("5m", "20m", "1h every 20m")}


def test_the_network_prices_each_arc_and_the_raw_rows() -> None:
    tiers = [declared_tier(f"{r}s", f"{r}s", FixedWindow(r, r), Horizon()) for r in (10, 20, 40)]
    graph = build(tiers, Sharing.DISJOINT, PaperModel.of(tiers, eta=1))
    assert [one.name for one in graph.tiers] == ["10s", "20s", "40s"]
    assert graph.network.arcs == ((), ((0, 40),), ((1, 4), (0, 40)), ((2, 2), (1, 4), (0, 40)))
    assert (graph.how(0, 1), graph.how(1, 2)) == (How.RAW, How.DISJOINT)
    assert all(one.kind is Kind.DECLARED for one in graph.tiers)


@pytest.mark.parametrize("sharing", [Sharing.DISJOINT, Sharing.OVERLAPPING])
@given(
    chosen=st.sets(st.sampled_from(TEXTS[:14]), min_size=2, max_size=8),
    helpers=st.sets(st.sampled_from((60, 300, 600, 900)), max_size=3),
    union=st.sets(st.sampled_from(TEXTS[:7]), max_size=3),
)
def test_a_graph_grown_from_another_holds_the_same_plans(
    sharing: Sharing, chosen: set[str], helpers: set[int], union: set[str]
) -> None:
    tiers = [tier(text) for text in sorted(chosen)]
    tiers += [factor_tier(f"helper_{step}", FixedWindow(2 * step, step)) for step in sorted(helpers)]
    model = PaperModel.of(tiers, eta=1)
    edges = EdgeSet.of(*(one for text in sorted(union) for one in tier(text).needs.classes))
    unions = [composite_tier("cut", edges)] if len(edges.classes) > 1 else []
    known, whole = build(tiers, sharing, model), build([*tiers, *unions], sharing, model)
    grown = regrown(known, range(1, len(tiers) + 1), unions, sharing, model)
    assert grown.tiers == whole.tiers
    for opened in ((), range(1, len(whole.tiers) + 1)):
        plan, other = solve_open(whole.network, opened), solve_open(grown.network, opened)
        assert plan == other
        for node in plan.nodes:
            reads = plan.parents[node] or 0
            assert grown.how(reads, node) is whole.how(reads, node)
            assert runner_up(grown.network, plan, node) == runner_up(whole.network, plan, node)


@given(
    chosen=st.sets(st.sampled_from(TEXTS[:12]), min_size=2, max_size=5),
    sizes=st.sets(st.tuples(st.integers(2, 12), st.sampled_from((60, 300, 600, 900))), max_size=6),
    union=st.sets(st.sampled_from(TEXTS[:7]), max_size=3),
    row_bytes=st.sampled_from((None, 30, 900)),
)
@settings(max_examples=100)
def test_nobody_misses_the_helpers_that_a_lean_graph_lacks(
    chosen: set[str], sizes: set[tuple[int, int]], union: set[str], row_bytes: int | None
) -> None:
    declared = [tier(text) for text in sorted(chosen)]
    helpers = [factor_tier(f"{times}_{step}", FixedWindow(times * step, step)) for times, step in sorted(sizes)]
    model: CostModel = PaperModel.of([*declared, *helpers], eta=1)
    if row_bytes is not None:
        model = BatchModel(
            rows_per_s=0.5, keys=1e5, values=None, row_bytes=row_bytes, is_invertible=False, is_holistic=False,
            commit_s=0,
        )  # fmt: skip
    edges = EdgeSet.of(*(one for text in sorted(union) for one in tier(text).needs.classes))
    unions = [composite_tier("cut", edges)] if len(edges.classes) > 1 else []
    kept = lean([*declared, *helpers], Sharing.OVERLAPPING, model)
    assert {*declared} <= {*kept.tiers}
    assert kept == build(kept.tiers, Sharing.OVERLAPPING, model)
    graphs = [build([*known, *unions], Sharing.OVERLAPPING, model) for known in ([*declared, *helpers], [*kept.tiers])]
    every, some = (
        branch_and_bound(graph.network, solve_open(graph.network, ()), dual_ascent(graph.network), 1_000_000)
        for graph in graphs
    )
    assert every.proven
    assert some.proven
    assert every.solution.cost == pytest.approx(some.solution.cost, rel=1e-9)


def test_a_lean_graph_keeps_helpers_that_may_pay() -> None:
    declared = [tier(f"{length}m") for length in (20, 21, 22, 23)]
    shared, useless = FixedWindow(1_140, 60), FixedWindow(1_500, 60)  # 19m every 1m covers all four
    helpers = [factor_tier(str(window), window) for window in (shared, useless)]
    graph = lean([*declared, *helpers], Sharing.OVERLAPPING, PaperModel.of(declared, eta=10))
    assert [one.name for one in graph.tiers if one.kind is Kind.FACTOR] == ["19m every 1m"]


@pytest.mark.parametrize("sharing", [Sharing.DISJOINT, Sharing.OVERLAPPING])
@given(chosen=st.sets(st.sampled_from(TEXTS[:14]), min_size=1, max_size=10))
def test_a_narrowed_graph_holds_the_plan_and_what_is_next_best(sharing: Sharing, chosen: set[str]) -> None:
    tiers = [tier(text) for text in sorted(chosen)]
    model = PaperModel.of(tiers, eta=1)
    whole = build(tiers, sharing, model)
    plan = solve_open(whole.network, ())
    narrow = narrowed(whole, plan, model)
    assert narrow.tiers == whole.tiers
    assert solve_open(narrow.network, ()) == plan
    assert max(map(len, narrow.network.arcs)) <= 5
    for node in plan.nodes:
        assert narrow.how(plan.parents[node] or 0, node) is whole.how(plan.parents[node] or 0, node)
        assert runner_up(narrow.network, plan, node) == runner_up(whole.network, plan, node)
