"""A lower bound on every plan of a network, by dual ascent.

Input: a network (see ``network``). Output: a number that no plan can beat, and what is left of the costs of the arcs
once it has been paid. Each required node in turn bids for its way to the root: it pays the price of the cheapest way
there is, and what it paid comes off the arcs of all ways, so that the next bidder finds shared arcs cheaper.

Any order of bidders gives a bound. Those with few possible parents go first, since they have the least choice. The arcs
that end up paid off form a plan; a bidder who paid more on the arcs of that plan than its price came too early, and
goes last in the next round. If there is none, plan and bound cost the same.

Time: per round and required node, the arcs between its ancestors; once a round has taken much work, bidders pay no more
than their own arcs ask for, which makes a lower bound, but still one. Space: what each bidder paid for each arc. First
appeared: Wong, "A dual ascent approach for Steiner tree problems on a directed graph", Mathematical Programming 28
(1984), where bidders take turns in smaller bids; the rounds are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from stairwise.network import Network, Number, Solution, solve_open

Payment = tuple[int, int, Number]  # node, place of the arc among the node's, how much

_MOST_ROUNDS = 8
_MOST_ARCS = 10_000
MOST_WORK = 3_000_000  # arcs that bidders look at in one round: half a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A lower bound, with its proof and the plan that it points at.

    Attributes:
        value: No plan costs less.
        reduced: Per node and arc, in the order of the network's arcs, the cost that is left. A plan costs at least
            ``value`` plus what is left on its own arcs.
        support: A plan of arcs on which little is left; a good start for a search.
        work: How many arcs bidders looked at to find it out, in all rounds.
    """

    value: Number
    reduced: tuple[tuple[Number, ...], ...]
    support: Solution
    work: int = field(default=0, compare=False)


def dual_ascent(network: Network, enough: Number | None = None) -> Bound:
    """Returns a lower bound on the cost of every plan.

    The bigger the network, the fewer rounds are tried; one at least.

    Args:
        network: The problem.
        enough: A value that needs no further rounds.

    >>> network = Network(
    ...     required=(True, False, True, True),
    ...     arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))),
    ... )
    >>> bound = dual_ascent(network)
    >>> bound.value, bound.reduced
    (14, ((), (0,), (0, 0), (0, 6)))
    """
    bidders = [node for node, is_required in enumerate(network.required) if is_required and node]
    bidders.sort(key=lambda node: len(network.arcs[node]))
    best, early = _ascend(network, bidders)
    work = best.work
    arcs = sum(map(len, network.arcs))
    for _ in range(1, min(_MOST_ROUNDS, _MOST_ARCS // max(arcs, 1))):
        if not early or (enough is not None and best.value >= enough):
            break
        bidders.sort(key=early.__contains__)
        bound, early = _ascend(network, bidders)
        work += bound.work
        if bound.value > best.value:
            best = bound
    return replace(best, work=work)


def _ascend(network: Network, bidders: list[int]) -> tuple[Bound, set[int]]:
    """Lets each node bid in turn; returns the bound and who came too early."""
    parents = [[parent for parent, _ in incoming] for incoming in network.arcs]
    reduced: list[list[Number]] = [[cost for _, cost in incoming] for incoming in network.arcs]
    bids: list[tuple[int, Number, list[Payment]]] = []
    work = 0
    for bidder in bidders:
        if work < MOST_WORK:
            price, distances = _distances(bidder, parents, reduced)
        else:
            price, distances = min(reduced[bidder]), {bidder: 0}
        bids.append((bidder, price, _paid(price, distances, parents, reduced)))
        work += sum(len(parents[node]) for node in distances)
    support = solve_open(network, _paid_off(parents, reduced))
    early: set[int] = set()
    for bidder, price, payments in bids:
        on_plan = sum(paid for node, place, paid in payments if support.parents[node] == parents[node][place])
        if on_plan > price:
            early.add(bidder)
    value = sum(price for _, price, _ in bids)
    return Bound(value=value, reduced=tuple(map(tuple, reduced)), support=support, work=work), early


def _paid_off(parents: list[list[int]], reduced: list[list[Number]]) -> list[int]:
    """Returns the nodes that can be computed from the root over arcs on which nothing is left."""
    is_reached = [True] + [False] * (len(parents) - 1)
    for node, lefts in enumerate(reduced):
        for parent, left in zip(parents[node], lefts, strict=True):
            if left <= 0 and is_reached[parent]:
                is_reached[node] = True
                break
    return [node for node, reached in enumerate(is_reached) if reached]


def _paid(
    price: Number, distances: Mapping[int, Number], parents: list[list[int]], reduced: list[list[Number]]
) -> list[Payment]:
    """Takes a price off all ways from the root that are as cheap, given how far from the bidder nodes are."""
    payments: list[Payment] = []
    for node, distance in distances.items():
        if distance < price:
            for place, parent in enumerate(parents[node]):
                farther = distances.get(parent, price)
                if farther > distance:
                    paid = min(farther, price) - distance
                    reduced[node][place] -= paid
                    payments.append((node, place, paid))
    return payments


def _distances(bidder: int, parents: list[list[int]], reduced: list[list[Number]]) -> tuple[Number, dict[int, Number]]:
    """Returns how far the root is from the bidder, and each node nearer than that.

    Nodes come up in falling order, readers before parents, so a distance is final when its node comes up. Those as far
    as the root cannot be on a cheapest way; a few may be listed.
    """
    price = reduced[bidder][parents[bidder].index(0)]
    distances: dict[int, Number] = {bidder: 0}
    heap = [-bidder]
    while heap:
        node = -heappop(heap)
        distance = distances[node]
        if distance >= price:
            continue
        for parent, left in zip(parents[node], reduced[node], strict=True):
            through = distance + left
            if through >= price:
                continue
            if parent == 0:
                price = through
                continue
            if parent not in distances:
                heappush(heap, -parent)
            elif distances[parent] <= through:
                continue
            distances[parent] = through
    return price, distances
