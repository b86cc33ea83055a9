"""The problem underneath every plan: which nodes to open, and whom each open node reads.

Input: a directed acyclic graph whose node 0 is the root (the raw events), finite, non-negative costs on its arcs, and
for each node whether it is required. A plan opens all required nodes and any of the others; each open node reads one
open parent and pays for that arc. Cost of a plan: the sum of what its nodes pay. (A minimum-cost Steiner arborescence;
seen from the optional nodes, a hierarchical facility location.)

Time: ``solve_open`` looks at each arc at most once. Space: twice the arcs. Costs are only added, subtracted and
compared, so integers and fractions stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import inf

from stairwise.errors import PlanError

Number = int | float | Fraction
Arc = tuple[int, Number]
Readers = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A checked problem: every node can be computed from the root, and no node from itself.

    Attributes:
        required: Per node, whether every plan contains it. Node 0 is the root, which is always there.
        arcs: Per node, its possible parents as (parent, cost), parents before children, sorted by cost, then parent.
            Every node but the root has an arc from the root.
    """

    required: tuple[bool, ...]
    arcs: tuple[tuple[Arc, ...], ...]
    is_part: InitVar[bool] = False
    _readers: list[Readers] = field(default_factory=list["Readers"], init=False, repr=False, compare=False)

    def __post_init__(self, is_part: bool) -> None:
        """Refuse what is no problem, but for a part of one that was checked already: some of its arcs."""
        if len(self.required) != len(self.arcs):
            raise PlanError(f"network: {len(self.required)} nodes but {len(self.arcs)} lists of arcs.")
        if not self.required or not self.required[0] or self.arcs[0]:
            raise PlanError("network: node 0 must be the root: required and without a parent.")
        if not is_part:
            for node, incoming in enumerate(self.arcs):
                _check_arcs(node, incoming)

    @property
    def readers(self) -> Readers:
        """Per node, its possible children as (child, place): ``arcs[child][place]`` is the arc between them.

        Worked out when first asked for: of many networks only the arcs are looked at.
        """
        if not self._readers:
            readers: list[list[tuple[int, int]]] = [[] for _ in self.required]
            for node, incoming in enumerate(self.arcs):
                for place, (parent, _) in enumerate(incoming):
                    readers[parent].append((node, place))
            self._readers.append(tuple(map(tuple, readers)))
        return self._readers[0]


def _check_arcs(node: int, incoming: tuple[Arc, ...]) -> None:
    parents = {parent for parent, _ in incoming}
    if node and 0 not in parents:
        raise PlanError(f"network: node {node} cannot be computed from the root.")
    if parents and not 0 <= min(parents) <= max(parents) < node:
        raise PlanError(f"network: node {node} has a parent that does not come before it.")
    if len(parents) < len(incoming):
        raise PlanError(f"network: node {node} has two arcs from one parent.")
    for parent, cost in incoming:
        if not 0 <= cost < inf:
            raise PlanError(f"network: the arc from node {parent} to node {node} costs {cost}, not a finite amount.")
    if any(after[1] <= arc[1] and (after[1], after[0]) < (arc[1], arc[0]) for arc, after in pairwise(incoming)):
        raise PlanError(f"network: the arcs of node {node} are not sorted by cost, then parent.")


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan: whom each node reads, and what that costs altogether.

    Attributes:
        parents: Per node, the parent that it reads; None for the root and for a node that is not in the plan.
        cost: The sum of the costs of the arcs in the plan.
    """

    parents: tuple[int | None, ...]
    cost: Number

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes in the plan, without the root."""
        return tuple(node for node, parent in enumerate(self.parents) if parent is not None)


def essential(network: Network) -> Network:
    """Returns the network without the arcs that no cheapest plan needs; whoever reads a required node reads the root.

    Required nodes are always there. So a node never reads a dearer parent than the cheapest of these, and for what is
    to be decided that one is as good as the root, at its price. An optional node saves each of its readers at most the
    difference to that; if all of them together save no more than it costs itself, nobody need read it. (Where less than
    two thirds of them would go, all stay: local search finds ways through them.) A plan of this network opens the same
    optional nodes in the whole one, at the same cost.

    >>> network = Network(
    ...     required=(True, True, False, True),
    ...     arcs=((), ((0, 10),), ((0, 10),), ((2, 1), (1, 2), (0, 10))),
    ... )
    >>> essential(network).arcs
    ((), ((0, 10),), ((0, 10),), ((0, 2),))
    """
    required = network.required
    cheap = tuple(cheaper_than_required(incoming, required) for incoming in network.arcs)
    useful = may_pay(cheap, required)
    if 3 * (sum(useful) - sum(required)) >= len(required) - sum(required):
        return Network(required=required, arcs=cheap, is_part=True)
    arcs = (
        tuple(arc for arc in incoming if arc[0] == 0 or (useful[node] and useful[arc[0]]))
        for node, incoming in enumerate(cheap)
    )
    return Network(required=required, arcs=tuple(arcs), is_part=True)


def cheaper_than_required(incoming: tuple[Arc, ...], required: Sequence[bool]) -> tuple[Arc, ...]:
    """The arcs that are cheaper than the cheapest from a required node, and that one, as if it came from the root.

    >>> cheaper_than_required(((3, 1), (2, 3), (1, 3), (0, 10)), (True, True, False, False))
    ((3, 1), (0, 3))
    """
    if not incoming:
        return ()
    least = next(cost for parent, cost in incoming if required[parent])
    return (*(arc for arc in incoming if arc[1] < least), (0, least))


def may_pay(arcs: Sequence[tuple[Arc, ...]], required: Sequence[bool]) -> list[bool]:
    """Per node, whether it is required, or its readers may save more by it than it costs; readers come first.

    Args:
        arcs: Per node, see ``cheaper_than_required``.
        required: Per node.
    """
    saved: list[Number] = [0] * len(arcs)
    useful = list(required)
    for node in range(len(arcs) - 1, 0, -1):
        incoming = arcs[node]
        useful[node] = required[node] or saved[node] > incoming[0][1]
        if useful[node]:
            surely = incoming[-1][1]
            for parent, cost in incoming[:-1]:
                saved[parent] += surely - cost
    return useful


def solve_open(network: Network, opened: Iterable[int]) -> Solution:
    """Returns the cheapest plan that uses no optional node but the opened ones, each read where it is cheapest.

    A node reads its cheapest open parent, the first of equals. An optional node that nobody reads is left out, and so
    on upwards.

    >>> network = Network(
    ...     required=(True, False, True, True),
    ...     arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))),
    ... )
    >>> solve_open(network, []).cost, solve_open(network, [1]).cost
    (20, 14)
    """
    is_open = list(network.required)
    for node in opened:
        is_open[node] = True
    choices = [
        next(arc for arc in incoming if is_open[arc[0]]) if node and is_open[node] else None
        for node, incoming in enumerate(network.arcs)
    ]
    is_read = list(network.required)
    for node in range(len(choices) - 1, 0, -1):
        choice = choices[node]
        if choice is None or not is_read[node]:
            choices[node] = None
        else:
            is_read[choice[0]] = True
    return Solution(
        parents=tuple(choice and choice[0] for choice in choices),
        cost=sum(choice[1] for choice in choices if choice is not None),
    )


def runner_up(network: Network, solution: Solution, node: int) -> Arc | None:
    """Returns the cheapest parent in the plan that the node does not read, with its cost; None if there is none.

    >>> network = Network(required=(True, True, True), arcs=((), ((0, 10),), ((1, 2), (0, 10))))
    >>> solution = solve_open(network, [])
    >>> runner_up(network, solution, 2), runner_up(network, solution, 1)
    ((0, 10), None)
    """
    return next(_elsewhere(network, solution.parents, node), None)


def net_saving(network: Network, solution: Solution, node: int) -> Number:
    """Returns what the plan would cost more without an optional node, if its readers went to their next best parents.

    >>> network = Network(
    ...     required=(True, False, True, True),
    ...     arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))),
    ... )
    >>> net_saving(network, solve_open(network, [1]), 1)
    6
    """
    return _net_saving(network, solution.parents, node)


def without_idle(network: Network, solution: Solution) -> Solution:
    """Returns the same plan without optional nodes that cost exactly what they save, or more.

    Readers come first: where one of them goes, what it read may have become idle, but no other node has.

    >>> network = Network(required=(True, False, True), arcs=((), ((0, 10),), ((1, 2), (0, 10))))
    >>> without_idle(network, solve_open(network, [1]))
    Solution(parents=(None, None, 0), cost=10)
    """
    parents = list(solution.parents)
    for node in reversed(solution.nodes):
        is_optional = parents[node] is not None and not network.required[node]
        if is_optional and not _net_saving(network, parents, node) > 0:
            for reader, _ in network.readers[node]:
                if parents[reader] == node:
                    parents[reader], _ = next(_elsewhere(network, parents, reader))
            _close_unread(network, parents, node)
    return solve_open(network, [node for node, parent in enumerate(parents) if parent is not None])


def _net_saving(network: Network, parents: Sequence[int | None], node: int) -> Number:
    saved: Number = 0
    for reader, place in network.readers[node]:
        if parents[reader] == node:
            _, elsewhere = next(_elsewhere(network, parents, reader))
            saved += elsewhere - network.arcs[reader][place][1]
    return saved - next(cost for parent, cost in network.arcs[node] if parent == parents[node])


def _elsewhere(network: Network, parents: Sequence[int | None], node: int) -> Iterator[Arc]:
    """The arcs to what else is in the plan, cheapest first."""
    read = parents[node]
    return (arc for arc in network.arcs[node] if arc[0] != read and (arc[0] == 0 or parents[arc[0]] is not None))


def _close_unread(network: Network, parents: list[int | None], node: int) -> None:
    """Takes an optional node that nobody reads out of the plan, and so on upwards."""
    above: int | None = node
    while (
        above and not network.required[above] and all(parents[reader] != above for reader, _ in network.readers[above])
    ):
        parents[above], above = None, parents[above]
