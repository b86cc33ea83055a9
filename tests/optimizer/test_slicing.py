"""The slicing techniques against the papers' figures, against each other, and against slices counted one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.edges import EdgeSet
from stairwise.slicing import Slicing, by_begins, edges_by_inclusion_exclusion, shared, slices_held, stored_ratio
from stairwise.window import FixedWindow


def fixed_window(slide: int, extra: int, origin: int) -> FixedWindow:
    return FixedWindow(range=slide + extra, slide=slide, origin=origin % slide)


windows = st.builds(fixed_window, st.integers(1, 12), st.integers(0, 40), st.integers(0, 11))
positions = st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.parametrize(
    ("slicing", "length", "slide", "slices"),
    [
        (Slicing.PANES, 4, 1, 4),  # 001, figure 2
        (Slicing.PAIRS, 14, 8, 3),  # 001, figure 3
        (Slicing.CUTTY, 5, 3, 2),  # 001, figure 4
        (Slicing.PANES, 10, 3, 10),  # 002, figure 7
        (Slicing.PAIRS, 10, 3, 7),
        (Slicing.CUTTY, 10, 3, 4),
        (Slicing.PANES, 6, 2, 3),  # 001, example 2
        (Slicing.PAIRS, 8, 4, 2),
    ],
)
def test_the_papers_figures(slicing: Slicing, length: int, slide: int, slices: int) -> None:
    window = FixedWindow(range=length, slide=slide)
    assert slicing.slices_per_window(window) == slices
    assert len(list(slicing.edges(window).between(0, length))) == slices


def test_the_fragments_of_pairs() -> None:
    """001, figure 3: the fragments of 14 every 8 are 6 and 2 long, in turn."""
    edges = list(Slicing.PAIRS.edges(FixedWindow(range=14, slide=8)).between(0, 17))
    assert [after - before for before, after in pairwise(edges)] == [6, 2, 6, 2]


def test_shared_begins() -> None:
    """002, figure 5: 4 every 2 and 5 every 3; both begin at record 0, and the first window ends as record 4 comes."""
    both = [FixedWindow(range=4, slide=2), FixedWindow(range=5, slide=3)]
    assert list(shared(Slicing.CUTTY, both).between(0, 10)) == [0, 2, 3, 4, 6, 8, 9]
    assert [begin for begin in range(10) if all(begin in Slicing.CUTTY.edges(window) for window in both)] == [0, 6]
    assert 4 in shared(Slicing.PAIRS, both)


def test_a_dynamic_window_in_slices() -> None:
    """002, figure 4: s[3,8] is put together from s[3,5], s[6,7] and s[8,8]."""
    emissions = list(by_begins("123456789", [(0, 5), (0, 6), (2, 8), (5, 9), (7, 9)], str.__add__))
    assert [(one.window, one.result, one.slices) for one in emissions] == [
        ((0, 5), "12345", 2),
        ((0, 6), "123456", 3),
        ((2, 8), "345678", 3),
        ((5, 9), "6789", 2),
        ((7, 9), "89", 2),
    ]


def test_records_outside_of_all_windows() -> None:
    assert [one.result for one in by_begins("abcdefgh", [(1, 3), (6, 7)], str.__add__)] == ["bc", "g"]


@given(st.lists(positions, max_size=8, unique=True))
def test_slices_at_begins_give_every_window(chosen: list[tuple[int, int]]) -> None:
    records = "abcdefghijklmnopqrstuvwxyz0123456789"
    emissions = list(by_begins(records, chosen, str.__add__))
    assert sorted(one.window for one in emissions) == sorted(chosen)
    assert all(one.result == records[slice(*one.window)] for one in emissions)


@given(windows)
def test_counts_are_those_of_the_edges(window: FixedWindow) -> None:
    begin = window.origin + 5 * window.slide
    for slicing in Slicing:
        inside = list(slicing.edges(window).between(begin, begin + window.range))
        assert inside[0] == begin
        assert slicing.slices_per_window(window) == len(inside) <= slicing.stored_at_most(window)


@given(windows)
def test_each_technique_refines_the_next(window: FixedWindow) -> None:
    panes, pairs, cutty = (slicing.edges(window) for slicing in Slicing)
    assert cutty <= pairs <= panes
    assert pairs.rate() in {cutty.rate(), 2 * cutty.rate()}
    assert 1 <= stored_ratio(window) < 2


@given(windows)
def test_only_cutty_needs_the_open_slice(window: FixedWindow) -> None:
    ends = EdgeSet.of((window.slide, window.origin + window.range))
    assert ends <= Slicing.PAIRS.edges(window) <= Slicing.PANES.edges(window)
    assert (ends <= Slicing.CUTTY.edges(window)) == (window.range % window.slide == 0)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_f1_counts_the_edges(slides: list[int]) -> None:
    composite = lcm(*slides)
    edges = EdgeSet.of(*((slide, 0) for slide in slides))
    assert edges_by_inclusion_exclusion(slides) == composite * edges.rate()


@pytest.mark.parametrize(("slides", "edges"), [((2, 4), 2), ((20, 30, 40), 8), ((15, 17, 19), 813), ((7,), 1)])
def test_f1(slides: tuple[int, ...], edges: int) -> None:
    assert edges_by_inclusion_exclusion(slides) == edges


@given(windows, st.integers(0, 200))
def test_one_query_holds_no_more_slices_than_windows_are_active(window: FixedWindow, instant: int) -> None:
    begins = range(window.origin - 100 * window.slide, instant, window.slide)
    active = sum(1 for begin in begins if begin + window.range > instant - 1)
    assert slices_held([window], instant) == active <= Slicing.CUTTY.stored_at_most(window)


def test_several_queries_hold_more() -> None:
    long, short = FixedWindow(range=100, slide=100), FixedWindow(range=2, slide=2)
    assert (slices_held([long], 100), slices_held([short], 100)) == (1, 1)
    assert slices_held([long, short], 100) == 50


def test_the_saving_of_cutty_nears_a_half() -> None:
    assert stored_ratio(FixedWindow(range=10_001, slide=10)) == Fraction(2_001, 1_001)
