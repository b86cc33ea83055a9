"""Unions of edges that merging brings up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stairwise.composite import HORIZON, MANY, all_but_one, all_unions, distinct_needs, merged, union
from stairwise.edges import EdgeSet
from stairwise.tiers import Horizon, declared_tier
from stairwise.window import FixedWindow
from stairwise.window_text import parse_window


def sets(*moduli: int) -> list[EdgeSet]:
    return [EdgeSet.of((modulus, 0)) for modulus in moduli]


def test_all_unions() -> None:
    found = list(all_unions(sets(20, 30, 50)))
    assert found == [
        union(sets(*chosen)) for chosen in ((20,), (30,), (50,), (20, 30), (20, 50), (30, 50), (20, 30, 50))
    ]


def test_merging_begins_with_what_is_coarse_and_has_much_in_common() -> None:
    given_sets = sets(7, 90, 60, 11)
    found = [edges.classes for edges in merged(given_sets)]
    assert found[:4] == [edges.classes for edges in given_sets]
    assert found[4:] == [((60, 0), (90, 0)), ((11, 0), (60, 0), (90, 0)), ((7, 0), (11, 0), (60, 0), (90, 0))]


def test_nothing_to_merge() -> None:
    assert list(merged([])) == []
    assert list(merged(sets(60))) == sets(60)


@given(st.lists(st.tuples(st.integers(1, 3 * HORIZON), st.integers(0, 10_000)), min_size=2, max_size=12, unique=True))
def test_merging_ends_with_everything(classes: list[tuple[int, int]]) -> None:
    edges = [EdgeSet.of(one) for one in classes]
    found = list(merged(edges))
    assert len(found) == 2 * len(edges) - 1
    assert found[-1] == union(edges)
    assert all(one <= union(edges) for one in found)


def test_only_so_many_windows_are_merged_with_each_other() -> None:
    assert len(list(merged(sets(*range(100, 100 + 2 * MANY))))) == 2 * MANY - 1


def test_needs_are_distinct_and_coarse_ones_come_first() -> None:
    texts = ("20s", "1m every 20s", "50s", "day in Europe/Paris", "week in Europe/Paris")
    found = distinct_needs([declared_tier(text, text, parse_window(text), Horizon()) for text in texts])
    assert [edges.classes for edges in found] == [((86_400, 79_200), (86_400, 82_800)), ((50, 0),), ((20, 0),)]


def test_stray_edges_are_asked_for_by_their_time_of_day() -> None:
    beirut = declared_tier("d", "d", parse_window("day offset 30m in Asia/Beirut"), Horizon())
    assert beirut.strays
    found = distinct_needs([beirut, declared_tier("m", "m", FixedWindow(60, 60), Horizon())])
    assert found == (EdgeSet.of((86_400, 77_400), (86_400, 79_200), (86_400, 81_000)), EdgeSet.of((60, 0)))
    assert all(stray in found[0] for stray in beirut.strays)


def test_one_of_three_or_more_is_left_out() -> None:
    assert list(all_but_one(sets(20, 30))) == []
    found = list(all_but_one(sets(20, 30, 50)))
    assert found == [union(sets(*chosen)) for chosen in ((30, 50), (20, 50), (20, 30))]
