"""A bound below every hierarchy, whatever tiers it invents.

Input: the declared tiers, the arcs between them, and prices. Requirement on the prices: a finer parent is not cheaper
to read, a finer tier not cheaper to keep. Time: quadratic in the windows. Space: linear. First appeared: here.

Whatever a declared window reads, it pays at least its *least price*: what it pays without helpers, what merging the
coarsest slices that it can be cut from would ask, or picking its results from those of an invented window.

Where helpers are slices (and hopping windows only pass on results of declared ranges) more can be said. A helper of one
window only is a cost without a use, so what is helped reads at best the coarsest slices that have its own edges and
those of one window more. Of all the windows that helpers serve, one is the finest. Those finer than it pay as if there
were no helpers; on top of it and the coarser ones comes a helper that serves it; and something reads the raw rows. The
least of this over all choices of the finest window is a bound, and so is what no helper at all costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import gcd, inf
from typing import TYPE_CHECKING

from stairwise.aggregate import Sharing
from stairwise.candidates import composite
from stairwise.edges import EdgeSet, common_instant, union_rate
from stairwise.graph import coarsest_class
from stairwise.hopping import of_one_range
from stairwise.tiers import How, Kind, Tier
from stairwise.window import FixedWindow

if TYPE_CHECKING:
    from stairwise.cost import CostModel
    from stairwise.graph import Graph
    from stairwise.network import Number


_Group = tuple[tuple[int, ...], list[EdgeSet]]  # sets of edges by the moduli of their classes
_SURELY = 1 - 1e-9  # less by more than rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """What a declared tier costs at least.

    Attributes:
        rate: How fine it is, and what serves it at least.
        alone: Its least cost where no helper serves it.
        helped: Its least cost at all.
        raw: Its cost from the raw rows.
        serving: The least cost of a helper that serves it and reads a tier.
        scanning: The same if the helper reads the raw rows.
    """

    rate: Fraction
    alone: Number
    helped: Number
    raw: Number
    serving: Number
    scanning: Number


def _by_rate(reader: _Reader) -> tuple[float, Fraction]:
    """Floats first, which nearly always differ already and compare ten times faster."""
    return float(reader.rate), reader.rate


def least_with_slices(graph: Graph, model: CostModel, sharing: Sharing, without_unions: Number | None = None) -> Number:
    """No hierarchy over the graph's tiers and any others that are slices costs less.

    Hopping helpers, and tumbling ones that pick from them, are those of the graph.

    Args:
        graph: The declared tiers, with any factor windows.
        model: The prices.
        sharing: What the aggregates allow.
        without_unions: What hierarchies of declared tiers and factor windows cannot undercut, if that is known; then
            only the others are looked at.
    """
    readers = sorted(_readers_of_slices(graph, model, sharing), key=_by_rate)
    scanning = min(reader.scanning for reader in readers)
    finer_scan = [inf, *accumulate((reader.raw - reader.alone for reader in reversed(readers)), min)][::-1]
    alone: Number = sum(reader.alone for reader in readers)
    helped: Number = 0
    costs = [alone if without_unions is None else without_unions]
    for rank, reader in enumerate(readers, 1):
        helped += reader.helped
        alone -= reader.alone
        scanning = min(scanning, reader.raw - reader.helped)
        scan = min(scanning, finer_scan[rank])
        costs.append(helped + alone + min(reader.serving + scan, reader.scanning))
    return min(costs)


def least_with_others(graph: Graph, model: CostModel, sharing: Sharing) -> Number:
    """No hierarchy costs less, whichever helpers the graph lacks: the better of two bounds, as far as both are sure.

    Helpers are slices where rows count once, unless windows of one range could pick from a hopping one that is not
    there, or stand on different grids.
    """
    if sharing is Sharing.DISJOINT:
        declared = [tier for tier in graph.tiers if tier.kind is Kind.DECLARED]
        grids = {coarsest_class(tier) for tier in declared}
        fixed = [tier.window for tier in declared if isinstance(tier.window, FixedWindow)]
        known = {tier.window for tier in graph.tiers}
        if common_instant(grids) is not None and known.issuperset(of_one_range(fixed, sorted(grids))):
            return least_with_slices(graph, model, sharing)
    return least_with_anything(graph, model, sharing)


def least_with_anything(graph: Graph, model: CostModel, sharing: Sharing) -> Number:
    """No hierarchy over the graph's declared tiers and any others at all costs less.

    One reader can be reason enough for a helper, so all that is sure is what each window pays at least, and that
    something reads the raw rows.
    """
    is_helper = [False, *(tier.kind is not Kind.DECLARED for tier in graph.tiers)]
    how, scan = _slices_how(sharing), model.least_scan()
    total: Number = 0
    for node, tier in enumerate(graph.tiers, 1):
        if tier.kind is Kind.DECLARED:
            slices = composite(tier.needs, keeps_values=sharing is Sharing.HOLISTIC)
            least = min(
                next(cost for parent, cost in graph.network.arcs[node] if not is_helper[parent]),
                model.price(tier, tier, How.EQUAL_RANGE),
                model.price(tier, slices, how),
            )
            total += least
            scan = min(scan, model.price(tier, None, How.RAW) - least)
    return total + scan


def _readers_of_slices(graph: Graph, model: CostModel, sharing: Sharing) -> list[_Reader]:
    """Helpers are slices; those that hop, or pick from what hops, only pass on results, and count as declared."""
    declared = [tier for tier in graph.tiers if tier.kind is Kind.DECLARED]
    has_strays = any(tier.strays for tier in declared)  # only finer slices hold them, and how much finer is not known
    groups = in_groups(() if has_strays else sorted({tier.needs for tier in declared}, key=lambda one: one.classes))
    hopping = {node for node, tier in enumerate(graph.tiers, 1) if not tier.tiles}
    is_slicing = [False] + [
        tier.kind is not Kind.DECLARED and tier.tiles and hopping.isdisjoint(parent for parent, _ in incoming)
        for tier, incoming in zip(graph.tiers, graph.network.arcs[1:], strict=True)
    ]
    passing = [
        model.price(tier, None, How.RAW)
        for node, tier in enumerate(graph.tiers, 1)
        if tier.kind is not Kind.DECLARED and not is_slicing[node]
    ]
    readers: list[_Reader] = []
    for node, tier in enumerate(graph.tiers, 1):
        if tier.kind is Kind.DECLARED:
            ideal, how = _ideal_parent(tier, sharing, groups), _slices_how(sharing)
            alone = next(cost for parent, cost in graph.network.arcs[node] if not is_slicing[parent])
            readers.append(
                _Reader(
                    rate=ideal.rate,
                    alone=alone,
                    helped=min(alone, model.price(tier, ideal, how)),
                    raw=model.price(tier, None, How.RAW),
                    serving=model.price(ideal, ideal, how),
                    scanning=min([model.price(ideal, None, How.RAW), *passing]),
                )
            )
    return readers


def _slices_how(sharing: Sharing) -> How:
    return How.VALUES if sharing is Sharing.HOLISTIC else How.DISJOINT


def _ideal_parent(tier: Tier, sharing: Sharing, groups: Sequence[_Group]) -> Tier:
    """The coarsest slices that could serve this tier together with another window.

    A tier that offers no such slices itself may be reason enough for a helper with its own edges.
    """
    if sharing is Sharing.HOLISTIC:
        return composite(tier.needs, keeps_values=True)
    if tier.provides != tier.needs:
        return composite(tier.needs)
    return composite(least_union(tier.needs, groups))


def in_groups(needs: Iterable[EdgeSet]) -> list[_Group]:
    """The sets by the moduli of their classes, those with the coarsest class first."""
    groups: dict[tuple[int, ...], list[EdgeSet]] = {}
    for edges in needs:
        groups.setdefault(tuple(modulus for modulus, _ in edges.classes), []).append(edges)
    return sorted(groups.items(), key=lambda group: group[0][::-1], reverse=True)


def least_union(edges: EdgeSet, groups: Iterable[_Group]) -> EdgeSet:
    """The union of one class with another set that adds the fewest edges, but some; the class alone if none adds any.

    A class of another set adds nothing, or the half of its edges at least, and all of them unless it thins out the one:
    so the coarsest sets come first, and few need to be looked at.
    """
    best, least = edges, inf
    ((modulus, _),) = edges.classes
    for moduli, sets in groups:
        widest = moduli[-1]
        if 0.5 / widest >= least:
            break
        fewest = (1 - gcd(modulus, widest) / modulus or 1) / widest
        if len(moduli) > 1:
            fewest = min((1 - gcd(modulus, other) / modulus or 1) / other for other in moduli)
        for other in sets:
            if fewest >= least:
                break
            added = _added(edges, other)
            if 0 < added < least * _SURELY:
                best, least = other, added
    return edges | best


def _added(edges: EdgeSet, other: EdgeSet) -> float:
    """Edges per second that another set adds to one class."""
    ((modulus, residue),) = edges.classes
    width, _ = other.classes[0]
    if width != other.classes[-1][0]:
        return float(union_rate(edges, other) - edges.rate())
    common = gcd(
        modulus, width
    )  # classes of one modulus are disjoint, so what each of them adds does not depend on others
    held = sum((place - residue) % common == 0 for _, place in other.classes)
    return (len(other.classes) - held * common / modulus) / width
