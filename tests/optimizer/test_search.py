from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.bound import dual_ascent
from stairwise.exact import branch_and_bound
from stairwise.network import Network, solve_open
from stairwise.search import improve, search
from tests.optimizer.networks import (
    FLOATS,
    FORK,
    FRACTIONS,
    INTEGERS,
    cheapest,
    dense,
    hopping,
    networks,
    optional_nodes,
    random_ranges,
    tumbling,
)

# Node 2 pays only if it reads node 1, and node 1 pays only if node 2 reads it.
PAIR = Network(
    required=(True, False, False, True, True, True),
    arcs=(
        (),
        ((0, 6),),
        ((1, 2), (0, 20)),
        ((2, 1), (0, 7)),
        ((2, 1), (0, 7)),
        ((1, 5), (0, 7)),
    ),
)

# Either helper serves both readers; the second is cheaper, but does not pay while the first is open.
RIVALS = Network(
    required=(True, False, False, True, True),
    arcs=((), ((0, 8),), ((0, 6),), ((1, 1), (2, 1), (0, 10)), ((1, 1), (2, 1), (0, 10))),
)

# 0.6 + 0.4 + 0.7 is a little less than 1.0 + 0.7 if summed in another order.
ROUNDED = Network(required=(True, False, True, True), arcs=((), ((0, 0.6),), ((1, 0.4), (0, 1.0)), ((0, 0.7),)))

Builder = Callable[[set[int], int], Network]


@pytest.mark.parametrize("start", [[], [1], [2], [1, 2]])
@pytest.mark.parametrize(("network", "cost"), [(FORK, 14), (PAIR, 15), (RIVALS, 8)])
def test_add_drop_swap_and_chain(network: Network, cost: int, start: list[int]) -> None:
    assert improve(network, start).cost == cost == cheapest(network).cost


@given(networks(INTEGERS) | networks(FRACTIONS), st.data())
def test_never_dearer_than_a_start_nor_cheaper_than_the_cheapest(network: Network, data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.sets(st.sampled_from(range(len(network.required)))), max_size=2))
    found = search(network, starts)
    assert found == solve_open(network, found.nodes) == search(network, reversed(starts))
    assert found.cost >= cheapest(network).cost
    for start in ([], optional_nodes(network), *starts):
        assert found.cost <= improve(network, start).cost <= solve_open(network, start).cost


@given(networks(FLOATS), st.data())
def test_rounded_costs_neither_loop_nor_lose_to_a_start(network: Network, data: st.DataObject) -> None:
    start = data.draw(st.sets(st.sampled_from(range(len(network.required)))))
    assert search(network, [start]).cost <= solve_open(network, start).cost


def test_a_saving_that_is_only_rounding_is_no_saving() -> None:
    assert improve(ROUNDED).parents == (None, None, 0, 0)


@given(networks())
def test_integers_stay_integers_and_the_answer_the_same(network: Network) -> None:
    found = search(network)
    assert isinstance(found.cost, int)
    as_fractions = Network(
        required=network.required,
        arcs=tuple(tuple((parent, Fraction(cost)) for parent, cost in incoming) for incoming in network.arcs),
    )
    assert search(as_fractions) == found == search(network)


@pytest.mark.parametrize("one_seed", [True, False])
@pytest.mark.parametrize("build", [tumbling, hopping])
@pytest.mark.parametrize("events", [1, 100])
def test_close_to_the_cheapest_on_the_windows_of_the_paper(build: Builder, events: int, *, one_seed: bool) -> None:
    ratios: list[Fraction] = []
    for seed in range(12):
        network = build(random_ranges(seed, 5 + seed, one_seed=one_seed), events)
        found = search(network)
        best = branch_and_bound(network, found, dual_ascent(network), steps=100_000)
        assert best.proven
        ratios.append(Fraction(found.cost) / Fraction(best.solution.cost))
    assert max(ratios) <= Fraction("1.02")
    assert mean(ratios) <= Fraction("1.003")


def test_a_big_network_follows_the_best_start_only() -> None:
    network = dense(150)
    everything = optional_nodes(network)
    found = search(network, [everything[::2]])
    assert sum(map(len, network.arcs)) > 10_000
    assert dual_ascent(network).value <= found.cost
    for start in ([], everything, everything[::2]):
        assert found.cost <= solve_open(network, start).cost
