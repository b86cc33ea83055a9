"""The cheapest plan of a network, proven, if a given amount of work suffices.

Input: a network, a plan, and a bound (see ``network``, ``search``, ``bound``). A plan better than the one at hand
cannot afford an arc if what is left of its cost, and of those of a way to it and on from it, eats up the gap between
bound and plan: such arcs go. Then some optional node is tried both ways, required and removed. Either way it becomes
clear what some nodes read; each branch is the smaller network of the others, with a bound and a search of its own. The
branch with the lowest bound is always next.

Time: limited by the caller in steps, not seconds, so that every machine finds the same plan. Space: a network per open
branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from stairwise.bound import Bound, dual_ascent
from stairwise.network import Arc, Network, Number, Solution, cheaper_than_required, may_pay, solve_open
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """What is left to decide once some optional nodes are.

    Attributes:
        network: What is left; only nodes whose parent is not settled yet.
        nodes: Per node, which one it is in the whole network.
        opened: The nodes of the whole network that were optional and are required here.
        paid: What the nodes cost that are settled.
        bound: A lower bound on what is left.
    """

    network: Network
    nodes: tuple[int, ...]
    opened: tuple[int, ...]
    paid: Number
    bound: Bound

    @property
    def least(self) -> Number:
        """No plan of this branch costs less."""
        return self.paid + self.bound.value

    @property
    def steps(self) -> int:
        """What it took to make the branch."""
        return max(sum(map(len, self.network.arcs)), self.bound.work // _LOOKS_A_STEP)


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
    whole = _Branch(network=network, nodes=tuple(range(len(network.required))), opened=(), paid=0, bound=bound)
    branches = [(bound.value, 0, whole)]
    made = 0
    while steps > 0 and branches and branches[0][0] < goal:
        value, _, branch = heappop(branches)
        found = [branch.opened]
        for child in _children(branch, goal):
            steps -= child.steps
            if child.least < goal:
                better = improve(child.network, child.bound.support.nodes)
                found.append((*child.opened, *(child.nodes[node] for node in better.nodes)))
                made += 1
                heappush(branches, (max(value, child.least), made, child))
        best = min(best, *(solve_open(network, nodes) for nodes in found), key=_cost)
        goal = best.cost - best.cost * rounding
    left = min(branches[0][0], goal) if branches else goal
    return Outcome(solution=best, lower_bound=left - left * rounding, proven=left >= goal)


def _cost(solution: Solution) -> Number:
    return solution.cost


def _children(branch: _Branch, goal: Number) -> Iterator[_Branch]:
    """The branch with one optional node required, and without it; nothing if no optional node can be of use."""
    required = branch.network.required
    arcs = _affordable(branch.network, branch.bound, goal - branch.least)
    node = _most_doubtful(branch, arcs)
    if node:
        chosen = tuple(is_required or other == node for other, is_required in enumerate(required))
        yield _settled(branch, chosen, arcs, (*branch.opened, branch.nodes[node]), goal)
        rest = [tuple(arc for arc in incoming if arc[0] != node) for incoming in arcs]
        yield _settled(branch, required, rest, branch.opened, goal)


def _most_doubtful(branch: _Branch, arcs: Sequence[tuple[Arc, ...]]) -> int:
    """The optional node that most nodes may read or may not, if the bound tells; 0 if no required node can read any.

    Nothing is left on its arc to such a node, nor on another one. Of equals, the one that most required nodes could
    read: either way, much is settled.
    """
    required = branch.network.required
    doubts, demand = [0] * len(required), [0] * len(required)
    for incoming, reduced in zip(branch.network.arcs, branch.bound.reduced, strict=True):
        paid_off = [parent for (parent, _), left in zip(incoming, reduced, strict=True) if left <= 0]
        if len(paid_off) > 1:
            for parent in paid_off:
                doubts[parent] += 1
    for is_required, incoming in zip(required, arcs, strict=True):
        if is_required:
            for parent, _ in incoming:
                demand[parent] += 1
    optional = (node for node, is_required in enumerate(required) if demand[node] and not is_required)
    return max(optional, key=lambda node: (doubts[node], demand[node]), default=0)


def _affordable(network: Network, bound: Bound, gap: Number) -> list[tuple[Arc, ...]]:
    """Returns the arcs but those that no plan within the gap can use; those from the root stay.

    A plan that uses an arc also uses a way from the root to it, and from it a way on to a required node.
    """
    before: list[Number] = [0]
    for incoming, reduced in zip(network.arcs[1:], bound.reduced[1:], strict=True):
        before.append(min(before[parent] + left for (parent, _), left in zip(incoming, reduced, strict=True)))
    after: list[Number] = [0 if required else gap for required in network.required]
    for node in range(len(after) - 1, 0, -1):
        for (parent, _), left in zip(network.arcs[node], bound.reduced[node], strict=True):
            after[parent] = min(after[parent], left + after[node])
    return [
        tuple(
            arc
            for arc, left in zip(incoming, reduced, strict=True)
            if arc[0] == 0 or before[arc[0]] + left + after[node] < gap
        )
        for node, (incoming, reduced) in enumerate(zip(network.arcs, bound.reduced, strict=True))
    ]


def _settled(
    branch: _Branch, required: Sequence[bool], arcs: Sequence[tuple[Arc, ...]], opened: tuple[int, ...], goal: Number
) -> _Branch:
    """The branch with these arcs only, without the nodes of which it is clear what they read, or that none need read.

    Args:
        branch: Where the nodes come from.
        required: Per node.
        arcs: Per node.
        opened: The nodes of the whole network that were optional and are required now.
        goal: A bound that high is good enough.
    """
    cheap = [cheaper_than_required(incoming, required) for incoming in arcs]
    useful = may_pay(cheap, required)
    place, paid = {0: 0}, branch.paid
    left: list[tuple[Arc, ...]] = [()]
    for node in range(1, len(cheap)):
        if useful[node]:
            incoming = tuple((place[parent], cost) for parent, cost in cheap[node] if not parent or useful[parent])
            if required[node] and len(incoming) == 1:
                paid += incoming[0][1]
            else:
                place[node] = len(left)
                left.append(incoming)
    network = Network(required=tuple(required[node] for node in place), arcs=tuple(left), is_part=True)
    return _Branch(
        network=network,
        nodes=tuple(branch.nodes[node] for node in place),
        opened=opened,
        paid=paid,
        bound=dual_ascent(network, enough=goal - paid),
    )
