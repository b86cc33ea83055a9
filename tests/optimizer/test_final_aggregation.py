"""The techniques give equal results with the work that is claimed, and paper 001's formulas are what they should be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from math import factorial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import PlanError
from stairwise.final_aggregation import (
    Reader,
    Technique,
    choose,
    deque_length,
    omega_flat_fat,
    omega_flat_fit,
    omega_naive,
    omega_running,
    omega_slick_deque,
    operations_per_second,
    work,
)

Combine = Callable[[int, int], int]

OVERLAPS = (1, 2, 3, 4, 5, 8, 100, 5_000)


def naive(slices: list[int], length: int, combine: Combine) -> list[int]:
    return [reduce(combine, slices[end - length : end]) for end in range(length, len(slices) + 1)]


def prefix_differences(slices: list[int], length: int) -> list[int]:
    totals = [0]
    for one in slices:
        totals.append(totals[-1] + one)
    return [totals[end] - totals[end - length] for end in range(length, len(slices) + 1)]


def van_herk(slices: list[int], length: int, combine: Combine) -> list[int]:
    prefixes, suffixes = list(slices), list(slices)
    for place in range(len(slices)):
        if place % length:
            prefixes[place] = combine(prefixes[place - 1], slices[place])
    for place in reversed(range(len(slices) - 1)):
        if (place + 1) % length:
            suffixes[place] = combine(slices[place], suffixes[place + 1])
    windows = ((end - length, end - 1) for end in range(length, len(slices) + 1))
    return [prefixes[end] if begin % length == 0 else combine(suffixes[begin], prefixes[end]) for begin, end in windows]


def two_stacks(slices: list[int], length: int, combine: Combine) -> list[int]:
    front: list[int] = []
    back: list[int] = []
    results: list[int] = []
    total = 0
    for one in slices:
        if len(front) + len(back) == length:
            if not front:
                front = list(accumulate(reversed(back), lambda later, earlier: combine(earlier, later)))
                back = []
            front.pop()
        total = combine(total, one) if back else one
        back.append(one)
        if len(front) + len(back) == length:
            results.append(combine(front[-1], total) if front else total)
    return results


def deques(slices: list[int], length: int) -> Iterator[deque[tuple[int, int]]]:
    """The monotone deque of (place, slice) for max after each slice."""
    entries: deque[tuple[int, int]] = deque()
    for place, one in enumerate(slices):
        if entries and entries[0][0] == place - length:
            entries.popleft()
        while entries and entries[-1][1] <= one:
            entries.pop()
        entries.append((place, one))
        yield entries


def first_and_last(left: int, right: int) -> int:
    """Associative but not commutative: an order that is not kept shows."""
    return left // 100 * 100 + right % 100


slice_lists = st.lists(st.integers(-500, 500), min_size=1, max_size=40)


@given(slice_lists, st.integers(1, 12))
def test_all_techniques_agree(slices: list[int], length: int) -> None:
    assert prefix_differences(slices, length) == naive(slices, length, int.__add__)
    assert [entries[0][1] for entries in deques(slices, length)][length - 1 :] == naive(slices, length, max)
    for combine in (int.__add__, max, first_and_last):
        expected = naive(slices, length, combine)
        assert van_herk(slices, length, combine) == expected
        assert two_stacks(slices, length, combine) == expected


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("invertible", [True, False])
@pytest.mark.parametrize("selective", [True, False])
def test_the_choice_is_legal_and_nothing_legal_is_cheaper(overlap: int, *, invertible: bool, selective: bool) -> None:
    chosen = choose(overlap, invertible=invertible, selective=selective)
    legal = [one for one in Technique if one.is_legal(overlap, invertible=invertible, selective=selective)]
    assert chosen in legal
    assert all(work(chosen, overlap) <= work(other, overlap) for other in legal)


@pytest.mark.parametrize(
    ("overlap", "invertible", "technique"),
    [
        (1, True, Technique.DIRECT),
        (1, False, Technique.DIRECT),
        (2, True, Technique.NAIVE),
        (3, True, Technique.RUNNING),
        (3, False, Technique.NAIVE),
        (4, False, Technique.VAN_HERK),
        (10_000, True, Technique.RUNNING),
        (10_000, False, Technique.VAN_HERK),
    ],
)
def test_choices(overlap: int, invertible: bool, technique: Technique) -> None:  # noqa: FBT001 - a table of cases
    assert choose(overlap, invertible=invertible) is technique


@given(st.integers(1, 10_000), st.booleans())
def test_work_does_not_grow_with_the_overlap(overlap: int, invertible: bool) -> None:  # noqa: FBT001 - drawn
    assert work(choose(overlap, invertible=invertible), overlap) <= min(3, overlap)


@pytest.mark.parametrize("technique", list(Technique))
def test_a_window_has_a_slice(technique: Technique) -> None:
    with pytest.raises(PlanError) as caught:
        work(technique, 0)
    assert str(caught.value) == "final aggregation: a window has at least 1 slice, not 0."


def test_the_deque_holds_a_harmonic_number_of_slices() -> None:
    random = Random(7)  # noqa: S311 - a seeded workload
    lengths = [len(entries) for entries in deques([random.randrange(10**9) for _ in range(30_000)], 128)][128:]
    printed = sum(Fraction(1, factorial(place)) for place in range(1, 129))
    measured = sum(lengths) / len(lengths)
    assert measured == pytest.approx(float(deque_length(128)), rel=0.02)
    assert measured > 3 * float(printed)


def test_the_papers_example_2() -> None:
    """6 every 2 and 8 every 4: slices of 2, three to the first window, four to the second."""
    assert omega_naive([Fraction(6, 2), Fraction(8, 4)]) == 5
    assert omega_flat_fat([3, 4]) == (1 + Fraction(2, 2)) + (1 + Fraction(3, 4))
    assert omega_flat_fit(2) == 6
    assert omega_running([3, 4]) == 4
    assert omega_slick_deque([3, 4]) == (2 - Fraction(1, 2)) + 2 + Fraction(25, 12)


@pytest.mark.parametrize("slices", [1, 2, 3, 16, 17, 1_000])
def test_equation_4_lies_near_the_logarithm(slices: int) -> None:
    assert 0 <= omega_flat_fat([slices]) <= slices.bit_length() + 1
    assert omega_flat_fat([1]) == 0


@given(st.integers(1, 60), st.lists(st.integers(1, 64), min_size=1, max_size=6))
def test_with_one_slide_the_rate_is_edge_rate_times_omega(slide: int, slices: list[int]) -> None:
    edge_rate = Fraction(1, slide)
    readers = [Reader(firings=edge_rate, operations=omega_flat_fat([count])) for count in slices]
    assert operations_per_second(edge_rate, Fraction(0), readers) == edge_rate * omega_flat_fat(slices)


def test_with_mixed_slides_the_ranking_by_omega_is_wrong() -> None:
    """60 hourly questions over minute slices: Omega prefers one running total each, firing rates the tree."""
    edge_rate, firings, slices = Fraction(1, 60), Fraction(1, 3_600), range(100, 160)
    readers = [Reader(firings=firings, operations=omega_flat_fat([count])) for count in slices]
    assert omega_running(slices) < omega_flat_fat(slices)
    tree = operations_per_second(edge_rate, work(Technique.FLAT_FAT, max(slices)), readers)
    assert tree < edge_rate * omega_running(slices)
