"""A bound below every hierarchy, whatever tiers it invents.

Input: the declared tiers, the arcs between them, and prices. Requirement on the prices: a finer parent is not cheaper
to read, a finer tier not cheaper to keep. Time: quadratic in the windows. Space: linear. First appeared: here.

A helper that serves one window only is a cost without a use, so a window that is helped reads, at best, the coarsest
tier that has its own edges and those of one window more. Of all the windows that helpers serve, one is the finest.
Those finer than it pay as if there were no helpers; it and the coarser ones pay at least what such ideal parents would
ask; on top comes a helper that serves it; and something reads the raw rows. The least of this over all choices of the
finest window is a bound, and so is what no helper at all costs.

Where windows may be covered by others that overlap, a helper's range is another freedom, and one reader can be reason
enough for it. Then all that is sure is that a window reads one row for each of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import gcd
from typing import TYPE_CHECKING

from stairwise.aggregate import Sharing
from stairwise.candidates import composite
from stairwise.edges import EdgeSet, union_rate
from stairwise.tiers import How, Kind, Tier

if TYPE_CHECKING:
    from stairwise.cost import CostModel
    from stairwise.graph import Graph
    from stairwise.network import Number


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


def least_cost(graph: Graph, model: CostModel, sharing: Sharing, without_unions: Number | None = None) -> Number:
    """No hierarchy over the graph's declared tiers and any others costs less.

    Args:
        graph: The declared tiers, with any factor windows.
        model: The prices.
        sharing: What the aggregates allow.
        without_unions: What hierarchies of declared tiers and factor windows cannot undercut, if that is known; then
            only the others are looked at.
    """
    found = _covered(graph, model) if sharing is Sharing.OVERLAPPING else _sliced(graph, model)
    readers = sorted(found, key=lambda reader: reader.rate)
    scan = min(min(reader.scanning, reader.raw - reader.helped) for reader in readers)
    alone: Number = sum(reader.alone for reader in readers)
    helped: Number = 0
    costs = [alone if without_unions is None else without_unions]
    finer_scans = list(accumulate((reader.alone == reader.raw for reader in reversed(readers)), initial=False))[::-1]
    for rank, reader in enumerate(readers, 1):
        helped += reader.helped
        alone -= reader.alone
        serving = reader.serving if finer_scans[rank] else min(reader.serving + scan, reader.scanning)
        costs.append(helped + alone + serving)
    return min(costs)


def _sliced(graph: Graph, model: CostModel) -> Iterator[_Reader]:
    """Helpers are slices; those with overlapping results only pass on results of one range, and count as declared."""
    needs = sorted({tier.needs for tier in _declared(graph)}, key=lambda edges: edges.classes)
    moduli = _multiples_only(needs)
    is_slicing = [False, *(tier.kind is not Kind.DECLARED and tier.tiles for tier in graph.tiers)]
    passing = [model.price(tier, None, How.RAW) for tier in graph.tiers if tier.kind is Kind.FACTOR and not tier.tiles]
    for node, tier in enumerate(graph.tiers, 1):
        if tier.kind is Kind.DECLARED:
            ideal, arcs = _ideal_parent(tier, needs, moduli), graph.network.arcs[node]
            alone = next(cost for parent, cost in arcs if not is_slicing[parent])
            yield _Reader(
                rate=ideal.rate,
                alone=alone,
                helped=min(alone, model.price(tier, ideal, How.DISJOINT)),
                raw=next(cost for parent, cost in arcs if not parent),
                serving=model.price(ideal, ideal, How.DISJOINT),
                scanning=min([model.price(ideal, None, How.RAW), *passing]),
            )


def _covered(graph: Graph, model: CostModel) -> Iterator[_Reader]:
    """Helpers are any windows at all."""
    is_helper = [False, *(tier.kind is not Kind.DECLARED for tier in graph.tiers)]
    for node, tier in enumerate(graph.tiers, 1):
        if tier.kind is Kind.DECLARED:
            arcs = graph.network.arcs[node]
            alone = next(cost for parent, cost in arcs if not is_helper[parent])
            yield _Reader(
                rate=tier.rate,
                alone=alone,
                helped=min(alone, model.price(tier, tier, How.EQUAL_RANGE)),
                raw=next(cost for parent, cost in arcs if not parent),
                serving=0,
                scanning=model.least_scan(),
            )


def _declared(graph: Graph) -> list[Tier]:
    return [tier for tier in graph.tiers if tier.kind is Kind.DECLARED]


def _ideal_parent(tier: Tier, needs: Sequence[EdgeSet], moduli: Sequence[int]) -> Tier:
    """The coarsest tier that could serve this one together with another window; of a reader that overlaps, alone."""
    if not tier.tiles or tier.strays:
        return composite(tier.needs)
    added = _added_about(tier.needs, needs, moduli)
    least = min((extra for extra in added if extra > 0), default=0.0) * (1 + 1e-9)
    unions = [tier.needs | other for extra, other in zip(added, needs, strict=True) if 0 < extra <= least]
    return composite(min(unions, key=lambda edges: edges.rate(), default=tier.needs))


def _added_about(edges: EdgeSet, needs: Sequence[EdgeSet], moduli: Sequence[int]) -> list[float]:
    """Edges per second that each of the others adds, to a float's precision; fast, for every pair is asked for."""
    if moduli:
        modulus, _ = next(iter(edges.classes))
        return [(1 - gcd(modulus, other) / modulus) / other for other in moduli]
    own = edges.rate()
    return [float(union_rate(edges, other) - own) for other in needs]


def _multiples_only(needs: Sequence[EdgeSet]) -> list[int]:
    """The moduli, if each of these is the multiples of one number; else nothing."""
    classes = [one for edges in needs for one in edges.classes]
    is_plain = len(classes) == len(needs) and not any(residue for _, residue in classes)
    return [modulus for modulus, _ in classes] if is_plain else []
