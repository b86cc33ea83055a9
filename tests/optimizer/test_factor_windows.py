"""The paper's examples, its theorems against single intervals, its algorithms against brute force, and its errata."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stairwise.factor_windows import (
    ROOT,
    Place,
    best_covering,
    best_partitioning,
    cheapest_parents,
    instances,
    is_covered,
    is_partitioned,
    multiplier,
    nests_in,
    with_factors,
    without_factors,
)
from stairwise.window import FixedWindow
from stairwise.windowing import Interval

COVERED = FixedWindow(10, 2)
COVERING = FixedWindow(8, 2)


def tumbling(*lengths: int) -> tuple[FixedWindow, ...]:
    return tuple(FixedWindow(length, length) for length in lengths)


def some_windows(longest_slide: int = 12, most: int = 30) -> st.SearchStrategy[FixedWindow]:
    def window(slide: int, extra: int, origin: int) -> FixedWindow:
        return FixedWindow(slide + extra, slide, origin % slide)

    return st.builds(
        window,
        st.integers(1, longest_slide),
        st.just(0) | st.integers(0, most),
        st.just(0) | st.integers(0, longest_slide),
    )


def related_windows() -> st.SearchStrategy[FixedWindow]:
    """Windows that often cover each other."""

    def window(unit: int, slide: int, extra: int) -> FixedWindow:
        return FixedWindow(unit * (slide + extra), unit * slide)

    return st.builds(window, st.sampled_from((1, 2, 3, 6)), st.integers(1, 4), st.integers(0, 6))


def pairs() -> st.SearchStrategy[tuple[FixedWindow, FixedWindow]]:
    return st.tuples(some_windows(), some_windows()) | st.tuples(related_windows(), related_windows())


def intervals(window: FixedWindow, start: int, end: int) -> list[Interval]:
    """The instances that lie within [start, end)."""
    first = -((window.origin - start) // window.slide)
    begins = range(first * window.slide + window.origin, end - window.range + 1, window.slide)
    return [Interval(begin, begin + window.range) for begin in begins]


def each_covering_set(coarser: FixedWindow, finer: FixedWindow) -> Iterable[tuple[Interval, list[Interval]]]:
    """Each instance of a common period with its covering set (definition 2)."""
    for whole in intervals(coarser, 0, lcm(coarser.slide, finer.slide) + coarser.range + coarser.slide):
        yield whole, intervals(finer, whole.start, whole.end)


def is_covered_by_definition(coarser: FixedWindow, finer: FixedWindow) -> bool:
    """Definition 1."""
    if coarser == finer:
        return True
    return coarser.range > finer.range and all(
        parts and parts[0].start == whole.start and parts[-1].end == whole.end and len(parts) > 1
        for whole, parts in each_covering_set(coarser, finer)
    )


def is_partitioned_by_definition(coarser: FixedWindow, finer: FixedWindow) -> bool:
    """Definitions 4 and 5."""
    return is_covered_by_definition(coarser, finer) and all(
        one.end <= other.start for _, parts in each_covering_set(coarser, finer) for one, other in pairwise(parts)
    )


@given(pairs())
def test_theorem_1_covers(pair: tuple[FixedWindow, FixedWindow]) -> None:
    coarser, finer = pair
    assert is_covered(coarser, finer) == is_covered_by_definition(coarser, finer)
    if is_covered(coarser, finer):
        assert nests_in(coarser, finer)


@given(related_windows(), related_windows(), related_windows())
def test_theorem_2_is_a_partial_order(one: FixedWindow, other: FixedWindow, third: FixedWindow) -> None:
    assert is_covered(one, one)
    assert one == other or not (is_covered(one, other) and is_covered(other, one))
    if is_covered(one, other) and is_covered(other, third):
        assert is_covered(one, third)


@given(pairs())
def test_theorem_3_counts_the_covering_set(pair: tuple[FixedWindow, FixedWindow]) -> None:
    coarser, finer = pair
    assume(is_covered(coarser, finer))
    assert {len(parts) for _, parts in each_covering_set(coarser, finer)} == {multiplier(coarser, finer)}


@given(pairs())
def test_theorem_4_partitions(pair: tuple[FixedWindow, FixedWindow]) -> None:
    coarser, finer = pair
    if coarser != finer:  # a hopping window is covered by itself, and no theorem asks whether it is partitioned
        assert is_partitioned(coarser, finer) == is_partitioned_by_definition(coarser, finer)


@given(pairs(), st.lists(st.integers(-100, 100), min_size=150, max_size=150))
def test_theorems_5_and_6_merge(pair: tuple[FixedWindow, FixedWindow], events: list[int]) -> None:
    """Sums merge over partitions, minima over covers; the events are one a unit."""
    coarser, finer = pair
    for whole, parts in each_covering_set(coarser, finer) if is_covered(coarser, finer) else ():
        if whole.end <= len(events):
            assert min(min(events[slice(*part)]) for part in parts) == min(events[slice(*whole)])
            if is_partitioned(coarser, finer):
                assert sum(sum(events[slice(*part)]) for part in parts) == sum(events[slice(*whole)])


def cost(windows: Iterable[FixedWindow], *, has_factors: bool, overlapping: bool = False, eta: int = 1) -> int:
    if has_factors:
        graph = with_factors(windows, overlapping=overlapping, eta=eta)
    else:
        graph = without_factors(windows, overlapping=overlapping)
    return sum(reading.cost for reading in cheapest_parents(graph, eta=eta))


def unshared(windows: tuple[FixedWindow, ...], eta: int = 1) -> int:
    period = lcm(*(window.range for window in windows))
    return sum(instances(window, period) * window.range * eta for window in windows)


@pytest.mark.parametrize(
    ("lengths", "naive", "algorithm_1", "algorithm_3"),
    [
        ((10, 20, 30, 40), 480, 150, 150),  # example 6
        ((20, 30, 40), 360, 246, 150),  # examples 1 and 7
        ((15, 17, 19), 3 * 4_845, 3 * 4_845, 3 * 4_845),  # section III.B: no two share anything
    ],
)
def test_the_papers_costs(lengths: tuple[int, ...], naive: int, algorithm_1: int, algorithm_3: int) -> None:
    windows = tumbling(*lengths)
    assert unshared(windows) == naive
    for overlapping in (False, True):  # the same for tumbling windows
        assert cost(windows, has_factors=False, overlapping=overlapping) == algorithm_1
        assert cost(windows, has_factors=True, overlapping=overlapping) == algorithm_3


def test_examples_2_to_5() -> None:
    assert intervals(COVERED, 0, 12) == [(0, 10), (2, 12)]
    assert intervals(COVERING, 0, 12) == [(0, 8), (2, 10), (4, 12)]
    assert [parts for _, parts in each_covering_set(COVERED, COVERING)][:2] == [[(0, 8), (2, 10)], [(2, 10), (4, 12)]]
    assert is_covered(COVERED, COVERING)
    assert multiplier(COVERED, COVERING) == 2
    assert not is_partitioned(COVERED, COVERING)


def test_example_6_who_reads_whom() -> None:
    graph = without_factors(tumbling(10, 20, 30, 40), overlapping=False)
    ten, twenty, thirty, forty = tumbling(10, 20, 30, 40)
    assert set(graph.arcs[4:]) == {(ten, twenty), (ten, thirty), (ten, forty), (twenty, forty)}
    parents = {reading.window: (reading.parent, reading.cost) for reading in cheapest_parents(graph)}
    assert parents == {ten: (None, 120), twenty: (ten, 12), thirty: (ten, 12), forty: (twenty, 6)}


def test_example_8() -> None:
    """Three candidates save something; two of them cover the third, which is the best."""
    place = Place(parent=None, below=tumbling(20, 30), period=120)  # K = 2: another window covers 40
    assert [place.is_beneficial(one) for one in tumbling(10, 5, 2)] == [True] * 3
    assert [place.benefit(one) for one in tumbling(10, 5, 2)] == [96, 72, 0]
    assert best_partitioning(place) == FixedWindow(10, 10)
    assert with_factors(tumbling(20, 30, 40), overlapping=False).factors == tumbling(10)


@pytest.mark.parametrize(
    ("window", "period", "count"), [(FixedWindow(10, 10), 120, 12), (FixedWindow(60, 25), 120, 3), (COVERED, 10, 1)]
)
def test_equation_1_counts_complete_instances(window: FixedWindow, period: int, count: int) -> None:
    assert instances(window, period) == count == len(intervals(window, 0, period))


def places(*, is_tumbling: bool = False) -> st.SearchStrategy[Place]:
    """A parent or the root, and one to three readers that it covers; all begin where the parent does."""

    def of(slide: int, parent_slides: int, origin: int, below: list[tuple[int, int]], eta: int) -> Place:
        above = FixedWindow(slide * parent_slides, slide, origin % slide)
        length = 1 if eta else slide
        readers = tuple({(n * length, (n + more) * length): 0 for n, more in below})
        if is_tumbling:
            above = FixedWindow(slide, slide, origin % slide)
        windows = tuple(FixedWindow(total, step, (origin if eta else above.origin) % step) for step, total in readers)
        parent = None if eta else above
        return Place(parent=parent, below=windows, period=lcm(*(window.range for window in windows)), eta=eta or 1)

    sizes = st.tuples(st.integers(1, 12), st.sampled_from((0, 0, 1, 2, 3, 6, 12, 24)) | st.integers(0, 12))
    return st.builds(
        of,
        st.integers(1, 4),
        st.integers(1, 4),
        st.integers(0, 40),
        st.lists(sizes, min_size=1, max_size=3, unique=True),
        st.sampled_from((0, 1, 2, 100)),
    ).filter(lambda place: all(is_covered(window, place.above) for window in place.below))


def all_helpers(place: Place) -> Iterable[FixedWindow]:
    """Every legal helper with a range that its slide divides, at any origin, in the order of the print."""
    shortest = min(window.range for window in place.below)
    for slide in range(1, gcd(*(window.slide for window in place.below)) + 1):
        for length in range(slide, shortest + 1, slide):
            for origin in range(slide):
                helper = FixedWindow(length, slide, origin)
                above = is_covered(helper, place.above) and helper != place.above
                if above and all(is_covered(window, helper) for window in place.below):
                    yield helper


@given(places())
def test_algorithm_2_against_all_ranges_and_slides(place: Place) -> None:
    best, most = None, 0
    for helper in all_helpers(place):
        if place.benefit(helper) > most:
            best, most = helper, place.benefit(helper)
    assert best_covering(place) == best


@given(places())
def test_the_benefit_is_convex_in_the_range(place: Place) -> None:
    by_slide: dict[int, list[FixedWindow]] = {}
    for helper in all_helpers(place):
        by_slide.setdefault(helper.slide, []).append(helper)
    for helpers in by_slide.values():
        for before, here, after in zip(helpers, helpers[1:], helpers[2:], strict=False):
            if before.range + after.range == 2 * here.range:
                assert 2 * place.benefit(here) <= place.benefit(before) + place.benefit(after)


@given(places())
def test_equation_2_is_the_difference_that_a_helper_makes(place: Place) -> None:
    def total(helper: FixedWindow | None) -> int:
        reads = {window: multiplier(window, helper) if helper else price(window) for window in place.below}
        own = instances(helper, place.period) * price(helper) if helper else 0
        return own + sum(instances(window, place.period) * count for window, count in reads.items())

    def price(window: FixedWindow) -> int:
        return multiplier(window, place.parent) if place.parent else window.range * place.eta

    for helper in all_helpers(place):
        assert place.benefit(helper) == total(None) - total(helper)


@given(places(is_tumbling=True))
def test_algorithm_4_against_equation_2(place: Place) -> None:
    for helper in all_helpers(place):
        if helper.is_tumbling and all(is_partitioned(window, helper) for window in place.below):
            assert place.is_beneficial(helper) == (place.benefit(helper) >= 0)


@given(places(is_tumbling=True))
def test_algorithm_4_against_its_print(place: Place) -> None:
    assume(place.eta == 1 and all(window.range % window.slide == 0 for window in place.below))
    reader = place.below[0]
    overlap, count = Fraction(reader.range, reader.slide), Fraction(place.period, reader.range)
    for helper in all_helpers(place):
        if not (helper.is_tumbling and all(is_partitioned(window, helper) for window in place.below)):
            continue
        if len(place.below) > 1:
            printed = True
        elif overlap == 1 or count == 1:  # the print divides by zero where the count is 1
            printed = False
        elif overlap >= 3 and count >= 3:
            printed = True
        else:
            limit = 1 + count / ((count - 1) * (overlap - 1))
            printed = Fraction(helper.range, place.above.range) >= limit
        assert place.is_beneficial(helper) == printed


@given(places(is_tumbling=True))
def test_algorithm_5_against_all_tumbling_helpers(place: Place) -> None:
    helpers = [one for one in all_helpers(place) if all(is_partitioned(window, one) for window in place.below)]
    useful = [one for one in helpers if place.benefit(one) >= 0]
    best = max(useful, key=lambda one: (place.benefit(one), one.range), default=None)
    assert best_partitioning(place) == best


@pytest.mark.parametrize(
    ("parent", "below", "best"),
    [
        (None, (FixedWindow(24, 12), FixedWindow(28, 12)), FixedWindow(4, 4)),  # not the coarsest slide, 12
        (FixedWindow(1, 1), (FixedWindow(6, 1), FixedWindow(5, 2)), FixedWindow(4, 1)),  # the longest range
        (FixedWindow(2, 2), (FixedWindow(8, 4), FixedWindow(12, 8)), FixedWindow(4, 4)),
        (None, tumbling(15, 17), None),
    ],
)
def test_the_best_of_algorithm_2(
    parent: FixedWindow | None, below: tuple[FixedWindow, ...], best: FixedWindow | None
) -> None:
    assert best_covering(Place(parent=parent, below=below, period=lcm(*(window.range for window in below)))) == best


def test_a_root_among_the_windows_is_no_helper() -> None:
    graph = with_factors((ROOT, *tumbling(20, 30)), overlapping=False, eta=5)
    assert graph.factors == tumbling(10)
    assert cost((ROOT, *tumbling(20, 30)), has_factors=True, eta=5) == 5 * 60 + 60 + 6 + 6
    assert with_factors(tumbling(2, 3), overlapping=False, eta=100).factors == ()
    assert with_factors(tumbling(2, 3), overlapping=True, eta=100).factors == ()


def test_nothing_comes_of_nothing() -> None:
    assert with_factors([], overlapping=False) == without_factors([], overlapping=True)
    assert cheapest_parents(without_factors([], overlapping=False)) == ()


def test_a_helper_may_be_a_declared_window() -> None:
    graph = with_factors(tumbling(10, 20, 40, 60), overlapping=False)
    assert graph.factors == ()
    assert set(graph.arcs) == set(without_factors(tumbling(10, 20, 40, 60), overlapping=False).arcs)


@given(st.sets(some_windows(8, 12), max_size=5), st.booleans(), st.sampled_from((1, 7)))
def test_any_order_gives_the_same_graph_and_legal_arcs(windows: set[FixedWindow], overlapping: bool, eta: int) -> None:  # noqa: FBT001
    graph = with_factors(windows, overlapping=overlapping, eta=eta)
    assert graph == with_factors(sorted(windows, key=str), overlapping=overlapping, eta=eta)
    legal = is_covered if overlapping else is_partitioned
    assert all(legal(child, parent) and child != parent for parent, child in graph.arcs if parent)
    assert {child for parent, child in graph.arcs if parent is None} == {*graph.declared, *graph.factors}
    assert len(set(graph.arcs)) == len(graph.arcs)
    assert not {*graph.factors} & windows
    assert cost(windows, has_factors=False, overlapping=overlapping, eta=eta) <= unshared(graph.declared, eta)


def test_erratum_theorem_1_needs_the_ranges_to_differ() -> None:
    """By the print, a shorter window would be covered by a longer one."""
    shorter, longer = FixedWindow(8, 2), FixedWindow(10, 2)
    assert shorter.slide % longer.slide == 0
    assert (shorter.range - longer.range) % longer.slide == 0
    assert not is_covered(shorter, longer)


def test_erratum_algorithm_5_must_divide_the_slides() -> None:
    windows = FixedWindow(20, 10), FixedWindow(40, 20)
    as_printed = FixedWindow(20, 20)
    assert not is_partitioned(windows[0], as_printed)
    assert best_partitioning(Place(parent=None, below=windows, period=40)) == FixedWindow(10, 10)


def test_erratum_algorithm_5_has_nothing_to_choose_from() -> None:
    """The coarsest helper is covered by each other one, and it saves more than they do."""
    place = Place(parent=None, below=tumbling(24, 36), period=72)
    helpers = [helper for helper in all_helpers(place) if helper.is_tumbling]
    assert all(is_covered(FixedWindow(12, 12), helper) for helper in helpers)
    assert max(helpers, key=place.benefit) == FixedWindow(12, 12) == best_partitioning(place)


def test_erratum_theorem_9_prefers_the_dearer_helper() -> None:
    """Its inequality holds for 4 and 6 as a pair of independent helpers, but 6 costs less."""
    place = Place(parent=None, below=tumbling(12, 24), period=24)
    four, six = FixedWindow(4, 4), FixedWindow(6, 6)
    sharing = Fraction(2)  # lambda of two tumbling readers
    assert Fraction(four.range, six.range) >= (sharing - four.range) / (sharing - six.range)
    assert place.benefit(six) > place.benefit(four)


def test_erratum_algorithm_4_divides_by_zero() -> None:
    """The only reader has one instance in the period: what would be saved is spent on the helper."""
    place = Place(parent=None, below=(FixedWindow(20, 10),), period=20)
    assert not place.is_beneficial(FixedWindow(10, 10))
    assert place.benefit(FixedWindow(10, 10)) < 0


def test_erratum_algorithm_3_can_be_worse_than_algorithm_1() -> None:
    windows = tumbling(2, 3, 8, 12)
    assert cost(windows, has_factors=False) == 68
    assert with_factors(windows, overlapping=False).factors == tumbling(4)
    assert cost(windows, has_factors=True) == 72


def test_erratum_the_root_is_not_charged() -> None:
    """The print adds the root's eta * R = 120 to nothing: 150 is 120 for W(10, 10), 12, 12 and 6."""
    readings = cheapest_parents(with_factors(tumbling(20, 30, 40), overlapping=False))
    assert [reading.cost for reading in readings] == [12, 12, 6, 120]
