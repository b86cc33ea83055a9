from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import PlanError
from stairwise.network import (
    Arc,
    Network,
    Solution,
    essential,
    net_saving,
    runner_up,
    solve_open,
    without_idle,
)
from tests.optimizer.networks import FLOATS, FORK, FRACTIONS, INTEGERS, cheapest, networks, optional_nodes


@pytest.mark.parametrize(
    ("required", "arcs", "text"),
    [
        ((True, True), ((),), "network: 2 nodes but 1 lists of arcs."),
        ((), (), "network: node 0 must be the root: required and without a parent."),
        ((False,), ((),), "network: node 0 must be the root: required and without a parent."),
        ((True,), (((0, 1),),), "network: node 0 must be the root: required and without a parent."),
        ((True, True), ((), ()), "network: node 1 cannot be computed from the root."),
        ((True, True), ((), ((0, 1), (1, 1))), "network: node 1 has a parent that does not come before it."),
        ((True, True), ((), ((-1, 1), (0, 1))), "network: node 1 has a parent that does not come before it."),
        ((True, True), ((), ((0, 1), (0, 2))), "network: node 1 has two arcs from one parent."),
        ((True, True), ((), ((0, -1),)), "network: the arc from node 0 to node 1 costs -1, not a finite amount."),
        (
            (True, True),
            ((), ((0, float("inf")),)),
            "network: the arc from node 0 to node 1 costs inf, not a finite amount.",
        ),
        (
            (True, True),
            ((), ((0, float("nan")),)),
            "network: the arc from node 0 to node 1 costs nan, not a finite amount.",
        ),
        (
            (True, True, True),
            ((), ((0, 1),), ((0, 2), (1, 1))),
            "network: the arcs of node 2 are not sorted by cost, then parent.",
        ),
        (
            (True, True, True),
            ((), ((0, 1),), ((1, 1), (0, 1))),
            "network: the arcs of node 2 are not sorted by cost, then parent.",
        ),
    ],
)
def test_an_existing_network_is_a_legal_one(
    required: tuple[bool, ...], arcs: tuple[tuple[Arc, ...], ...], text: str
) -> None:
    with pytest.raises(PlanError) as caught:
        Network(required=required, arcs=arcs)
    assert str(caught.value) == text


def test_readers_are_the_arcs_seen_from_the_parent() -> None:
    assert FORK.readers == (((1, 0), (2, 1), (3, 1)), ((2, 0), (3, 0)), (), ())


def test_helpers_of_helpers_without_a_reader_are_left_out() -> None:
    chain_of_helpers = Network(
        required=(True, False, False, True), arcs=((), ((0, 5),), ((1, 5), (0, 9)), ((0, 3), (1, 4), (2, 4)))
    )
    assert solve_open(chain_of_helpers, [1, 2]) == Solution(parents=(None, None, None, 0), cost=3)


def test_the_first_of_equal_parents_is_read() -> None:
    network = Network(
        required=(True, True, True, True), arcs=((), ((0, 1),), ((0, 1), (1, 1)), ((1, 1), (2, 1), (0, 2)))
    )
    assert solve_open(network, []).parents == (None, 0, 0, 1)


def test_nothing_to_compute_costs_nothing() -> None:
    assert solve_open(Network(required=(True,), arcs=((),)), []) == Solution(parents=(None,), cost=0)
    assert solve_open(FORK, [0, 1, 2]).nodes == (1, 2, 3)


@pytest.mark.parametrize(("opened", "node", "expected"), [([1], 2, (0, 10)), ([], 2, None), ([], 1, (0, 10))])
def test_runner_up_is_in_the_plan_and_not_read(opened: list[int], node: int, expected: Arc | None) -> None:
    assert runner_up(FORK, solve_open(FORK, opened), node) == expected


@given(st.one_of(networks(INTEGERS), networks(FRACTIONS), networks(FLOATS)), st.data())
def test_a_solution_is_a_tree_of_cheapest_parents(network: Network, data: st.DataObject) -> None:
    nodes = range(len(network.required))
    opened = data.draw(st.sets(st.sampled_from(nodes)))
    solution = solve_open(network, opened)
    available = opened.union(node for node in nodes if network.required[node])
    read = set(solution.parents)
    for node in nodes[1:]:
        if solution.parents[node] is None:
            assert not network.required[node]
            assert node not in read
        else:
            assert network.required[node] or (node in opened and node in read)
            assert solution.parents[node] == next(parent for parent, _ in network.arcs[node] if parent in available)
    costs = chain.from_iterable(
        (cost for parent, cost in network.arcs[node] if parent == solution.parents[node]) for node in nodes
    )
    assert solution.cost == sum(costs)
    assert solve_open(network, solution.nodes) == solution


@pytest.mark.parametrize(
    ("own", "arcs"),
    [
        (15, FORK.arcs[1:]),
        (16, (((0, 16),), ((0, 10),), ((0, 10),))),
        (17, (((0, 17),), ((0, 10),), ((0, 10),))),
    ],
)
def test_nobody_need_read_what_costs_as_much_as_it_saves_all_its_readers(
    own: int, arcs: tuple[tuple[Arc, ...], ...]
) -> None:
    fork = Network(required=FORK.required, arcs=((), ((0, own),), *FORK.arcs[2:]))
    assert essential(fork).arcs[2:] == arcs[1:]


def test_where_few_optional_nodes_are_idle_all_stay() -> None:
    helpers: tuple[tuple[Arc, ...], ...] = (((0, 1),), ((0, 99),))
    readers: tuple[tuple[Arc, ...], ...] = (((1, 1), (2, 1), (0, 10)),) * 2
    network = Network(required=(True, False, False, True, True), arcs=((), *helpers, *readers))
    assert essential(network) == network


@given(st.one_of(networks(INTEGERS), networks(FRACTIONS)))
def test_what_is_essential_holds_a_cheapest_plan(network: Network) -> None:
    part = essential(network)
    assert cheapest(part).cost == cheapest(network).cost
    assert part == Network(required=part.required, arcs=part.arcs)
    for kept, every in zip(part.arcs, network.arcs, strict=True):
        assert set(kept) <= {*every, *((0, cost) for parent, cost in every if network.required[parent])}


@given(st.one_of(networks(INTEGERS), networks(FRACTIONS)), st.data())
def test_a_plan_of_what_is_essential_costs_the_same_in_the_whole(network: Network, data: st.DataObject) -> None:
    part = essential(network)
    solution = solve_open(part, data.draw(st.sets(st.sampled_from(range(len(network.required))))))
    assert solve_open(network, solution.nodes).cost == solution.cost


@given(networks(), st.data())
def test_a_saving_is_what_a_plan_without_the_node_costs_more(network: Network, data: st.DataObject) -> None:
    solution = solve_open(network, data.draw(st.sets(st.sampled_from(range(len(network.required))))))
    for node in {*solution.nodes}.intersection(optional_nodes(network)):
        rest = [other for other in solution.nodes if other != node]
        without = sum(
            next(cost for parent, cost in network.arcs[other] if parent == 0 or parent in rest) for other in rest
        )
        assert net_saving(network, solution, node) == without - solution.cost


@given(networks(), st.data())
def test_idle_nodes_go_one_by_one_readers_first(network: Network, data: st.DataObject) -> None:
    opened = data.draw(st.sets(st.sampled_from(range(len(network.required)))))
    expected = solution = solve_open(network, opened)
    for node in reversed(solution.nodes):
        is_optional = expected.parents[node] is not None and not network.required[node]
        if is_optional and net_saving(network, expected, node) <= 0:
            expected = solve_open(network, [other for other in expected.nodes if other != node])
    assert without_idle(network, solution) == expected
    assert expected.cost <= solution.cost


def test_a_chain_of_idle_nodes_goes_as_a_whole() -> None:
    chain_of_helpers = Network(
        required=(True, False, False, True), arcs=((), ((0, 3),), ((1, 2), (0, 5)), ((2, 1), (0, 3)))
    )
    assert without_idle(chain_of_helpers, solve_open(chain_of_helpers, [1, 2])).nodes == (3,)
