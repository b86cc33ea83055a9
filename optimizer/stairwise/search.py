"""Local search over the optional nodes of a network: good plans, fast.

Input: a network (see ``network``). Output: a plan that no single move improves. A move toggles one optional node
(opens it if closed, closes it if open), then settles: as long as toggling another node saves something, the one that
saves most is toggled, found by a lazy heap. Opening alone is the greedy add, closing alone the drop; closing and
settling is the swap; opening a node that does not pay by itself and settling finds chains, helpers of helpers.

Time: a move touches the neighbourhood of what it toggles, never the whole plan; moves end with a budget of work, which
only networks in which everything reads everything exhaust. Space: the network's, per start.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from stairwise.network import Network, Number, Solution, solve_open

_MOST_ARCS = 10_000
_WORK = 1_500  # arcs looked at for gains, for each required node


def search(network: Network, starts: Iterable[Iterable[int]] = (), enough: Number | None = None) -> Solution:
    """Returns the best plan found from no optional node, from all of them, and from each of the given starts.

    Never dearer than any start, and the same in whatever order they come. The bigger the network, the fewer starts are
    followed to the end, the best first; one at least.

    Args:
        network: The problem.
        starts: Sets of nodes to begin from as well, such as the running plan.
        enough: A cost that needs no further starts, such as a lower bound.

    >>> network = Network(
    ...     required=(True, False, True, True),
    ...     arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))),
    ... )
    >>> search(network)
    Solution(parents=(None, 0, 1, 1), cost=14)
    """
    optional = _optional(network)
    opened = {tuple(sorted(set(start).intersection(optional))) for start in ((), optional, *starts)}
    most = _MOST_ARCS // max(1, sum(map(len, network.arcs)))
    followed = sorted(opened, key=lambda start: (solve_open(network, start).cost, start))[: max(1, most)]
    best = improve(network, followed[0])
    for start in followed[1:]:
        if enough is not None and best.cost <= enough:
            break
        best = min(best, improve(network, start), key=_rank)
    return best


def improve(network: Network, start: Iterable[int] = ()) -> Solution:
    """Returns a plan that no move improves, never dearer than the one that ``start`` opens.

    Args:
        network: The problem.
        start: The optional nodes that are open at first.
    """
    start = tuple(start)
    draft = _Draft(network, start)
    draft.explore()
    return min(solve_open(network, draft.opened()), solve_open(network, start), key=_rank)


def _optional(network: Network) -> list[int]:
    """The nodes to decide on: those that are not required and could be read."""
    return [node for node, readers in enumerate(network.readers) if readers and not network.required[node]]


def _rank(solution: Solution) -> tuple[Number, tuple[int, ...]]:
    return solution.cost, solution.nodes


class _Draft:
    """A plan being edited: which nodes are open, and at which place of its arcs each node finds its parent.

    An open node pays for its parent whether anybody reads it or not; settling closes it then. A closed node pays
    nothing.
    """

    def __init__(self, network: Network, opened: Iterable[int]) -> None:
        self.required = network.required
        self.optional = _optional(network)
        self.readers = network.readers
        self.parents = [[parent for parent, _ in incoming] for incoming in network.arcs]
        self.costs: list[list[Number]] = [[cost for _, cost in incoming] for incoming in network.arcs]
        self.offers = [[(reader, self.costs[reader][at]) for reader, at in readers] for readers in network.readers]
        self.is_open = list(network.required)
        for node in opened:
            self.is_open[node] = True
        self.place = [self._open_place(node, 0) if node else 0 for node in range(len(self.is_open))]
        self.paid = [self._price(node) if is_open else 0 for node, is_open in enumerate(self.is_open)]
        self.cost: Number = 0
        self.work = _WORK * sum(network.required)

    def opened(self) -> list[int]:
        """Returns the open optional nodes."""
        return [node for node in self.optional if self.is_open[node]]

    def explore(self) -> None:
        """Makes every move that pays, until none does or the work is done."""
        self._settle(self.optional)
        self.cost = self._total()
        waiting = dict.fromkeys(self.optional)
        while waiting and self.work > 0:
            node = next(iter(waiting))
            del waiting[node]
            waiting.update(dict.fromkeys(self._attempt(node)))

    def _attempt(self, node: int) -> list[int]:
        """Toggles the node and settles; takes everything back unless that made the plan cheaper.

        The running cost may have gathered rounding errors, which could make moves go in circles; the true cost of a
        plan cannot fall in a circle.

        Returns:
            The optional nodes around those toggled, which deserve another attempt.
        """
        before = self.cost
        toggled = [node, *self._settle(self._toggle(node), node)]
        if self.cost < before:
            self.cost = self._total()
            if self.cost < before:
                return [near for other in toggled for near in self._near(other)]
        for other in toggled:
            self._toggle(other)
        self.cost = before
        return []

    def _settle(self, candidates: Iterable[int], fixed: int = 0) -> list[int]:
        """Toggles what pays, best first, until nothing does; returns the nodes toggled.

        Heap entries go stale: a node's true gain is computed anew when it surfaces. Toggling pushes every node whose
        gain may have risen, so no entry is ever too low. No node is opened again after it was closed, nor ``fixed``
        touched: that ends the loop even if rounded costs contradict each other.
        """
        toggled: list[int] = []
        done = {fixed}
        heap = [(-gain, node) for node in dict.fromkeys(candidates) if (gain := self._gain(node)) > 0]
        heapify(heap)
        while heap:
            stale, node = heappop(heap)
            gain = self._gain(node)
            if node in done or gain <= 0:
                continue
            if -gain > stale:
                heappush(heap, (-gain, node))
                continue
            toggled.append(node)
            if self.is_open[node]:
                done.add(node)
            for other in dict.fromkeys(self._toggle(node)):
                if other not in done and (gain := self._gain(other)) > 0:
                    heappush(heap, (-gain, other))
        return toggled

    def _toggle(self, node: int) -> list[int]:
        """Opens or closes the node; returns all nodes whose gain may have risen, some of them twice."""
        is_open, place = self.is_open, self.place
        is_open[node] = not is_open[node]
        if is_open[node]:
            self.paid[node] = self._price(node)
            self.cost += self.paid[node]
            affected = self.parents[node][: place[node]]
            for reader, at in self.readers[node]:
                if is_open[reader]:
                    affected.append(self.parents[reader][place[reader]])
                elif place[reader] > at:
                    affected.append(reader)
                if place[reader] > at:
                    self._move(reader, at)
        else:
            self.cost -= self.paid[node]
            self.paid[node] = 0
            affected = [self.parents[node][place[node]]]
            for reader, at in self.readers[node]:
                if place[reader] == at:
                    self._move(reader, self._open_place(reader, at + 1))
                    if is_open[reader]:
                        affected.append(reader)
                        affected += self.parents[reader][: place[reader]]
        return affected

    def _move(self, reader: int, place: int) -> None:
        self.place[reader] = place
        if self.is_open[reader]:
            before, self.paid[reader] = self.paid[reader], self._price(reader)
            self.cost += self.paid[reader] - before

    def _gain(self, node: int) -> Number:
        """Returns what toggling the node alone would save, or some number up to zero if it would save nothing."""
        if self.required[node]:
            return 0
        offers, paid = self.offers[node], self.paid
        self.work -= len(offers)
        if self.is_open[node]:
            return self._saved_by_closing(node)
        saved = -self.costs[node][self.place[node]]
        for reader, cost in offers:
            if paid[reader] > cost:
                saved += paid[reader] - cost
        return saved

    def _saved_by_closing(self, node: int) -> Number:
        is_open, place, saved = self.is_open, self.place, self.paid[node]
        for reader, at in self.readers[node]:
            if place[reader] == at and is_open[reader]:
                costs, parents, other = self.costs[reader], self.parents[reader], at + 1
                while not is_open[parents[other]]:
                    other += 1
                saved -= costs[other] - costs[at]
                if saved <= 0:
                    break
        return saved

    def _price(self, node: int) -> Number:
        """Returns what the node pays for its parent while it is open; the root pays nothing."""
        return self.costs[node][self.place[node]] if node else 0

    def _total(self) -> Number:
        return sum(self.paid)

    def _open_place(self, node: int, place: int) -> int:
        parents, is_open = self.parents[node], self.is_open
        while not is_open[parents[place]]:
            place += 1
        return place

    def _near(self, node: int) -> list[int]:
        near = {node, *self.parents[node]}
        for reader, _ in self.readers[node]:
            near.update((reader, *self.parents[reader]))
        return sorted(other for other in near if not self.required[other])
