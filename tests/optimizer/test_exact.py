from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.bound import dual_ascent
from stairwise.exact import branch_and_bound
from stairwise.network import Network, solve_open
from stairwise.search import search
from tests.optimizer.networks import (
    FLOATS,
    FRACTIONS,
    INTEGERS,
    cheapest,
    hopping,
    networks,
    optional_nodes,
    random_ranges,
    tumbling,
)

Builder = Callable[[set[int], int], Network]

ENOUGH = 1_000_000


@st.composite
def incumbents(draw: st.DrawFn, network: Network) -> list[int]:
    """Draws the nodes of some plan, good or bad."""
    nodes = st.sampled_from(range(len(network.required)))
    return draw(st.sampled_from([[], optional_nodes(network), [*search(network).nodes], [*draw(st.sets(nodes))]]))


@given(networks(INTEGERS) | networks(FRACTIONS), st.data())
def test_with_enough_steps_the_plan_is_the_cheapest(network: Network, data: st.DataObject) -> None:
    incumbent = solve_open(network, data.draw(incumbents(network)))
    outcome = branch_and_bound(network, incumbent, dual_ascent(network), ENOUGH)
    assert outcome.proven
    assert outcome.lower_bound == outcome.solution.cost == cheapest(network).cost
    assert outcome.solution == solve_open(network, outcome.solution.nodes)


@given(networks(INTEGERS) | networks(FRACTIONS), st.data(), st.integers(0, 200))
def test_stopped_early_it_says_what_it_knows(network: Network, data: st.DataObject, steps: int) -> None:
    incumbent = solve_open(network, data.draw(incumbents(network)))
    bound = dual_ascent(network)
    outcome = branch_and_bound(network, incumbent, bound, steps)
    best = cheapest(network)
    assert bound.value <= outcome.lower_bound <= best.cost <= outcome.solution.cost <= incumbent.cost
    assert outcome.proven == (outcome.lower_bound == outcome.solution.cost)
    assert outcome == branch_and_bound(network, incumbent, bound, steps)


@given(networks(FLOATS), st.data(), st.integers(0, 200) | st.just(ENOUGH))
def test_with_rounded_costs_proven_means_up_to_rounding(network: Network, data: st.DataObject, steps: int) -> None:
    incumbent = solve_open(network, data.draw(incumbents(network)))
    outcome = branch_and_bound(network, incumbent, dual_ascent(network), steps)
    best = cheapest(network)
    assert outcome.lower_bound <= best.cost <= outcome.solution.cost <= incumbent.cost
    assert outcome.proven or steps < ENOUGH
    if outcome.proven:
        assert outcome.solution.cost <= best.cost + best.cost * 1e-12
        assert outcome.lower_bound >= outcome.solution.cost * (1 - 2e-12)


@given(networks())
def test_integers_stay_integers(network: Network) -> None:
    outcome = branch_and_bound(network, solve_open(network, []), dual_ascent(network), ENOUGH)
    assert isinstance(outcome.solution.cost, int)
    assert isinstance(outcome.lower_bound, int)


@pytest.mark.parametrize("one_seed", [True, False])
@pytest.mark.parametrize("build", [tumbling, hopping])
def test_twenty_windows_are_always_proven(build: Builder, *, one_seed: bool) -> None:
    for seed in range(15):
        network = build(random_ranges(seed, 20, one_seed=one_seed), 1)
        outcome = branch_and_bound(network, search(network), dual_ascent(network), steps=20_000)
        assert outcome.proven
        assert outcome.lower_bound == outcome.solution.cost


def test_without_steps_the_incumbent_and_the_bound_are_compared() -> None:
    windows = (hopping(random_ranges(seed, 8, one_seed=True), 1) for seed in range(100))
    network = next(network for network in windows if dual_ascent(network).value < search(network).cost)
    incumbent, bound = search(network), dual_ascent(network)
    outcome = branch_and_bound(network, incumbent, bound, 0)
    assert (outcome.solution, outcome.lower_bound, outcome.proven) == (incumbent, bound.value, False)
    assert branch_and_bound(network, incumbent, bound, ENOUGH).proven


def test_with_nothing_to_decide_the_only_plan_is_the_cheapest() -> None:
    twice_paid = Network(
        required=(True,) * 7,
        arcs=(
            (),
            *[((0, 9),)] * 3,
            *[((0, 5), (1, 6), (2, 6), (3, 6))] * 2,
            ((4, 1), (5, 1), (0, 9)),
        ),
    )
    weak = dual_ascent(twice_paid, enough=0)
    outcome = branch_and_bound(twice_paid, solve_open(twice_paid, []), weak, ENOUGH)
    assert (weak.value, outcome.lower_bound, outcome.proven) == (33, 38, True)
