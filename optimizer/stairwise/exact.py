"""The cheapest plan of a network, proven, if a given amount of work suffices.

Input: a network, a plan, and a bound (see ``network``, ``search``, ``bound``). A plan better than the one at hand
cannot afford an arc if what is left of its cost, and of those of a way to it and on from it, eats up the gap between
bound and plan: such arcs go. Then some optional node is tried both ways, required and removed; each branch is a smaller
network, with a bound and a search of its own. The branch with the lowest bound is always next.

Time: limited by the caller in steps, not seconds, so that every machine finds the same plan. Space: a network per open
branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from stairwise.bound import Bound, dual_ascent
from stairwise.network import Network, Number, Solution, solve_open
from stairwise.search import improve

_ROUNDING = 5e-13
_LOOKS_A_STEP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What branch and bound found out.

    Attributes:
        solution: The best plan known.
        lower_bound: No plan costs less.
        proven: Whether the plan is the cheapest; if costs are floats, to within a relative 1e-12.
    """

    solution: Solution
    lower_bound: Number
    proven: bool


def branch_and_bound(network: Network, incumbent: Solution, bound: Bound, steps: int) -> Outcome:
    """Returns the cheapest plan, or the best one that so many steps lead to.

    Args:
        network: The problem.
        incumbent: A plan of it.
        bound: A lower bound on it.
        steps: How much work to do: a branch takes as many steps as it has arcs, or more if its bound took more work.
            With none, only the incumbent and the bound are compared.

    >>> network = Network(
    ...     required=(True, False, True, True),
    ...     arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))),
    ... )
    >>> outcome = branch_and_bound(network, solve_open(network, []), dual_ascent(network), steps=100)
    >>> outcome.solution.cost, outcome.lower_bound, outcome.proven
    (14, 14, True)
    """
    rounding = _ROUNDING if any(isinstance(cost, float) for arcs in network.arcs for _, cost in arcs) else 0
    best = min(incumbent, bound.support, key=_cost)
    goal = best.cost - best.cost * rounding
    branches = [(bound.value, 0, network, bound)]
    made = 0
    while steps > 0 and branches and branches[0][0] < goal:
        value, _, branch, bound = heappop(branches)
        branch = _affordable(branch, bound, goal - bound.value)
        found = [solve_open(branch, ())]
        for child in _children(branch):
            bound = dual_ascent(child, enough=goal)
            steps -= max(sum(map(len, child.arcs)), bound.work // _LOOKS_A_STEP)
            if bound.value < goal:
                found.append(improve(child, bound.support.nodes))
                made += 1
                heappush(branches, (max(value, bound.value), made, child, bound))
        best = min(best, *(solve_open(network, solution.nodes) for solution in found), key=_cost)
        goal = best.cost - best.cost * rounding
    left = min(branches[0][0], goal) if branches else goal
    return Outcome(solution=best, lower_bound=left - left * rounding, proven=left >= goal)


def _cost(solution: Solution) -> Number:
    return solution.cost


def _affordable(network: Network, bound: Bound, gap: Number) -> Network:
    """Returns the network without the arcs that no plan within the gap can use; those from the root stay.

    A plan that uses an arc also uses a way from the root to it, and from it a way on to a required node.
    """
    before: list[Number] = [0]
    for incoming, reduced in zip(network.arcs[1:], bound.reduced[1:], strict=True):
        before.append(min(before[parent] + left for (parent, _), left in zip(incoming, reduced, strict=True)))
    after: list[Number] = [0 if required else gap for required in network.required]
    for node in range(len(after) - 1, 0, -1):
        for (parent, _), left in zip(network.arcs[node], bound.reduced[node], strict=True):
            after[parent] = min(after[parent], left + after[node])
    arcs = tuple(
        tuple(
            arc
            for arc, left in zip(incoming, reduced, strict=True)
            if arc[0] == 0 or before[arc[0]] + left + after[node] < gap
        )
        for node, (incoming, reduced) in enumerate(zip(network.arcs, bound.reduced, strict=True))
    )
    return Network(required=network.required, arcs=arcs, is_part=True)


def _children(network: Network) -> tuple[Network, ...]:
    """Returns the network with one optional node required, and without it; nothing if no optional node can be of use.

    The node is the one that most required nodes could read: either way, much is settled.
    """
    demand = [
        0 if is_required else sum(network.required[reader] for reader, _ in readers)
        for is_required, readers in zip(network.required, network.readers, strict=True)
    ]
    node = demand.index(max(demand))
    if demand[node] == 0:
        return ()
    required = tuple(is_required or other == node for other, is_required in enumerate(network.required))
    arcs = tuple(tuple(arc for arc in incoming if arc[0] != node) for incoming in network.arcs)
    return (
        Network(required=required, arcs=network.arcs, is_part=True),
        Network(required=network.required, arcs=arcs, is_part=True),
    )
