"""Edge sets against brute force over their common period, their laws, and what happens past the budget."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise import edges
from stairwise.edges import EdgeSet, Rate, union_rate
from stairwise.errors import PlanError

MODULI = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18, 20, 30)
PERIOD = lcm(*MODULI)

residue_classes = st.tuples(st.sampled_from(MODULI[1:]), st.integers(-40, 40))
edge_sets = st.lists(residue_classes, max_size=6).map(lambda classes: EdgeSet.of(*classes))
tumbling_sets = st.lists(st.sampled_from(MODULI), max_size=6).map(lambda moduli: EdgeSet.of(*((m, 0) for m in moduli)))


def instants(edge_set: EdgeSet) -> frozenset[int]:
    return frozenset(instant for modulus, residue in edge_set.classes for instant in range(residue, PERIOD, modulus))


def are_the_same_instants(left: EdgeSet, right: EdgeSet) -> bool:
    return left <= right <= left


@pytest.mark.parametrize(
    ("given_classes", "written"),
    [
        ((), ()),
        (((2, 0), (2, 1)), ((1, 0),)),
        (((6, 0), (6, 2), (6, 4)), ((2, 0),)),
        (((4, 1), (2, 0), (8, 3), (8, 7)), ((1, 0),)),
        (((3, 0), (6, 2), (6, 4)), ((2, 0), (3, 0))),
        (((60, 0), (60, 20), (60, 30), (60, 40)), ((20, 0), (30, 0))),
        (((20, 0), (40, 0), (30, 0)), ((20, 0), (30, 0))),
        (((10, 3), (20, 13), (7, -1)), ((7, 6), (10, 3))),
    ],
)
def test_one_way_of_writing(given_classes: tuple[tuple[int, int], ...], written: tuple[tuple[int, int], ...]) -> None:
    assert EdgeSet.of(*given_classes).classes == written
    assert EdgeSet(given_classes) == EdgeSet(written)
    assert hash(EdgeSet(given_classes)) == hash(EdgeSet(written))


@pytest.mark.parametrize("modulus", [0, -5])
def test_a_modulus_is_positive(modulus: int) -> None:
    with pytest.raises(PlanError) as caught:
        EdgeSet.of((60, 0), (modulus, 3))
    assert str(caught.value) == f"edge class ({modulus}, 3): the modulus ({modulus} s) must be at least 1 s."


@pytest.mark.parametrize(
    ("classes", "rate"),
    [
        ((), Fraction(0)),
        (((1, 0),), Fraction(1)),
        (((20, 0), (30, 0), (40, 0)), Fraction(1, 15)),
        (((15, 0), (17, 0), (19, 0)), Fraction(271, 1615)),
        (((10, 0), (10, 5), (6, 3)), Fraction(1, 5) + Fraction(1, 6) - Fraction(1, 30)),
        (((86_400 * 7, 345_600), (86_400, 0)), Fraction(1, 86_400)),
        (((86_400 * 30, 0), (86_400 * 7, 345_600)), Fraction(36, 86_400 * 210)),
    ],
)
def test_rates(classes: tuple[tuple[int, int], ...], rate: Fraction) -> None:
    assert EdgeSet.of(*classes).measure() == Rate(rate, is_exact=True)


@given(edge_sets)
def test_the_rate_is_the_density(edge_set: EdgeSet) -> None:
    assert edge_set.measure() == Rate(Fraction(len(instants(edge_set)), PERIOD), is_exact=True)


@given(edge_sets, edge_sets)
def test_the_set_operations_are_those_of_the_instants(left: EdgeSet, right: EdgeSet) -> None:
    assert instants(left | right) == instants(left) | instants(right)
    assert instants(left & right) == instants(left) & instants(right)
    assert (left <= right) == (instants(left) <= instants(right))
    assert union_rate(left, right) == (left | right).rate()


@given(edge_sets, st.integers(-200, 200), st.integers(0, 200))
def test_membership_and_listing_agree(edge_set: EdgeSet, start: int, length: int) -> None:
    listed = list(edge_set.between(start, start + length))
    held = instants(edge_set)
    assert listed == [instant for instant in range(start, start + length) if instant % PERIOD in held]
    assert all(instant in edge_set and edge_set.contains(instant) for instant in listed)


@given(edge_sets, st.integers(-100, 100))
def test_shifting_moves_every_edge(edge_set: EdgeSet, by: int) -> None:
    moved = edge_set.shifted(by)
    assert instants(moved) == {(instant + by) % PERIOD for instant in instants(edge_set)}
    assert moved.rate() == edge_set.rate()
    assert are_the_same_instants(moved.shifted(-by), edge_set)


@given(st.lists(residue_classes, max_size=6))
def test_the_written_form(classes: list[tuple[int, int]]) -> None:
    edge_set = EdgeSet.of(*classes)
    assert edge_set == EdgeSet.of(*reversed(classes), *classes)
    assert edge_set == EdgeSet(edge_set.classes)
    assert list(edge_set.classes) == sorted(edge_set.classes)
    for one in edge_set.classes:
        others = EdgeSet(tuple(other for other in edge_set.classes if other != one))
        assert not any(EdgeSet.of(one) <= EdgeSet.of(other) for other in others.classes)
        for prime in (2, 3, 5):
            siblings = {(one[0], (one[1] + part * one[0] // prime) % one[0]) for part in range(prime)}
            assert one[0] % prime or not siblings <= set(edge_set.classes)


@given(edge_sets, edge_sets, edge_sets)
def test_laws(left: EdgeSet, middle: EdgeSet, right: EdgeSet) -> None:
    assert left | left == left
    assert left | middle == middle | left
    assert are_the_same_instants((left | middle) | right, left | (middle | right))
    assert left <= left | middle
    assert left & middle <= left
    assert EdgeSet() <= left
    assert left | EdgeSet() == left


@given(tumbling_sets, tumbling_sets, tumbling_sets)
def test_tumbling_unions_are_written_alike_in_any_order(left: EdgeSet, middle: EdgeSet, right: EdgeSet) -> None:
    assert (left | middle) | right == left | (middle | right)
    assert (left == right) == are_the_same_instants(left, right)


@pytest.mark.parametrize("count", [10, 20, 40])
def test_past_the_budget_the_rate_is_counted_and_says_so(count: int) -> None:
    edge_set = EdgeSet.of(*((400 + 12 * number, 37 * number) for number in range(count)))
    exact, counted = edge_set.measure(), edge_set.measure(work_budget=5)
    assert (exact.is_exact, counted.is_exact) == (True, False)
    assert abs(counted.value / exact.value - 1) < Fraction(1, 1000)


def test_what_the_budget_leaves_undecided_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    part, whole = EdgeSet.of((105, 0)), EdgeSet.of((6, 0), (20, 5), (28, 7))
    assert part <= whole
    monkeypatch.setattr(edges, "WORK_BUDGET", 0)
    assert not part <= whole
    assert whole <= EdgeSet.of((6, 0), (20, 5), (28, 7), (11, 3))
