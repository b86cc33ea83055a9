from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from stairwise.bound import Bound, dual_ascent
from stairwise.network import Network, Number, Solution, solve_open
from stairwise.search import search
from tests.optimizer.networks import (
    FLOATS,
    FORK,
    FRACTIONS,
    INTEGERS,
    cheapest,
    dense,
    networks,
    random_ranges,
    tumbling,
)


def left_on(network: Network, bound: Bound, solution: Solution) -> Number:
    """Returns what is left on the arcs of a plan once the bound is paid."""
    return sum(
        left
        for node, incoming in enumerate(network.arcs)
        for (parent, _), left in zip(incoming, bound.reduced[node], strict=True)
        if solution.parents[node] == parent
    )


@given(networks(INTEGERS) | networks(FRACTIONS))
def test_no_plan_is_cheaper(network: Network) -> None:
    bound = dual_ascent(network)
    best = cheapest(network)
    assert bound.value <= best.cost <= bound.support.cost
    for solution in (best, search(network), solve_open(network, []), bound.support):
        assert solution.cost >= bound.value + left_on(network, bound, solution)


@given(networks(INTEGERS) | networks(FRACTIONS))
def test_what_is_left_is_never_negative_and_never_more_than_the_cost(network: Network) -> None:
    bound = dual_ascent(network)
    for incoming, reduced in zip(network.arcs, bound.reduced, strict=True):
        assert all(0 <= left <= cost for (_, cost), left in zip(incoming, reduced, strict=True))
    assert bound.support == solve_open(network, bound.support.nodes)


@given(networks(FLOATS))
def test_rounded_costs_give_a_bound_up_to_rounding(network: Network) -> None:
    assert dual_ascent(network).value <= cheapest(network).cost * (1 + 1e-12)


@given(networks())
def test_integers_stay_integers(network: Network) -> None:
    bound = dual_ascent(network)
    assert isinstance(bound.value, int)
    assert all(isinstance(left, int) for reduced in bound.reduced for left in reduced)
    assert bound == dual_ascent(network)


@given(networks())
def test_rounds_end_when_the_value_is_enough(network: Network) -> None:
    in_one_round, in_full = dual_ascent(network, enough=0), dual_ascent(network)
    assert in_one_round.value <= in_full.value
    assert dual_ascent(network, enough=in_full.value + 1) == in_full


def test_a_plan_of_free_arcs_costs_what_is_bid() -> None:
    bound = dual_ascent(FORK)
    assert bound.support == Solution(parents=(None, 0, 1, 1), cost=14)
    assert bound.value == 14


@pytest.mark.parametrize("one_seed", [True, False])
def test_close_to_the_cheapest_on_the_windows_of_the_paper(*, one_seed: bool) -> None:
    for seed in range(10):
        network = tumbling(random_ranges(seed, 20, one_seed=one_seed))
        assert Fraction(dual_ascent(network).value) >= Fraction(search(network).cost) * Fraction("0.95")


@pytest.mark.parametrize("seed", [16, 20, 24, 26])
def test_later_rounds_help(seed: int) -> None:
    network = tumbling(random_ranges(seed, 20, one_seed=False))
    assert dual_ascent(network, enough=0).value < dual_ascent(network).value <= search(network).cost


def test_a_big_network_is_bounded_in_one_round() -> None:
    network = dense(150)
    assert dual_ascent(network) == dual_ascent(network, enough=0)


def test_nothing_required_needs_nothing() -> None:
    network = Network(required=(True, False), arcs=((), ((0, 3),)))
    assert dual_ascent(network) == Bound(value=0, reduced=((), (3,)), support=Solution(parents=(None, None), cost=0))


@given(networks(INTEGERS) | networks(FRACTIONS))
def test_past_its_work_it_is_still_a_bound(network: Network) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("stairwise.bound.MOST_WORK", 3)
        bound = dual_ascent(network)
    best = cheapest(network)
    assert bound.value + left_on(network, bound, best) <= best.cost
