"""Which tier can be computed from which, and what that costs: tiers in, a network for the search out.

Most parents are plain: all their edges are one residue class ``(p, x)``, and whether a reader's edges lie within it is
one remainder of the reader's own coarsest class. So their readers are found by arithmetic on numbers; sets are compared
only for composite tiers, and calendars only with calendars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

from stairwise.aggregate import Sharing
from stairwise.network import Network
from stairwise.tiers import How, Kind, Tier, reads
from stairwise.window import FixedWindow

if TYPE_CHECKING:
    from stairwise.cost import Prices
    from stairwise.edges import ResidueClass
    from stairwise.network import Number

_KINDS = {Kind.DECLARED: 0, Kind.FACTOR: 1, Kind.COMPOSITE: 2}


@dataclass(frozen=True, slots=True)
class Graph:
    """Tiers, finer ones first, and the network over them: tier i is node i + 1, the raw rows are node 0."""

    tiers: tuple[Tier, ...]
    network: Network
    hows: dict[tuple[int, int], How]

    def how(self, parent: int, child: int) -> How:
        """How a node is computed from another."""
        return self.hows.get((parent, child), How.DISJOINT) if parent else How.RAW


def build(tiers: Iterable[Tier], semantics: Sharing, prices: Prices) -> Graph:
    """The graph of everything that these tiers could read."""
    ordered = in_order(tiers)
    hows = {(parent, child): how for parent, child, how in legal_arcs(ordered, semantics)}
    return assemble(ordered, hows, prices)


def assemble(ordered: tuple[Tier, ...], hows: dict[tuple[int, int], How], prices: Prices) -> Graph:
    """The graph over tiers in order with these arcs, and one from the raw rows to each tier."""
    arcs: list[list[tuple[int, Number]]] = [[], *([(0, prices.price(tier, None, How.RAW))] for tier in ordered)]
    for (parent, child), how in hows.items():
        arcs[child].append((parent, prices.price(ordered[child - 1], ordered[parent - 1], how)))
    network = Network(
        required=(True, *(tier.kind is Kind.DECLARED for tier in ordered)),
        arcs=tuple(tuple(sorted(incoming, key=_by_cost)) for incoming in arcs),
    )
    return Graph(ordered, network, hows)


def _by_cost(arc: tuple[int, Number]) -> tuple[Number, int]:
    return arc[1], arc[0]


def in_order(tiers: Iterable[Tier]) -> tuple[Tier, ...]:
    """The tiers in one order, whatever order they came in: a tier stands behind all that it could read."""
    return tuple(sorted(tiers, key=_order))


def _order(tier: Tier) -> tuple[float, Fraction, float, bool, int, tuple[ResidueClass, ...], str]:
    """Rates first as floats, which nearly always differ already and compare ten times faster."""
    length = float(1 / tier.rate if tier.range_s is None else tier.range_s)
    kind = _KINDS[tier.kind]
    return -float(tier.rate), -tier.rate, length, not tier.keeps_values, kind, tier.needs.classes, tier.name


def coarsest_class(tier: Tier) -> ResidueClass:
    """The sparsest single class that holds every edge at which the tier's windows begin or end.

    >>> from stairwise.tiers import Horizon, declared_tier
    >>> from stairwise.window_text import parse_window
    >>> coarsest_class(declared_tier("d", "", parse_window("day in Europe/Paris"), Horizon(0)))
    (3600, 0)
    """
    modulus, residue = tier.needs.classes[0]
    for other, place in tier.needs.classes[1:]:
        modulus = gcd(modulus, other, residue - place)
    for stray in tier.strays:
        modulus = gcd(modulus, residue - stray)
    return modulus, residue % modulus


def legal_arcs(ordered: tuple[Tier, ...], semantics: Sharing) -> Iterator[tuple[int, int, How]]:
    """(parent, child, how) for all legal pairs; a pair that two rules find is the same pair."""
    is_holistic = semantics is Sharing.HOLISTIC
    how = How.VALUES if is_holistic else How.DISJOINT
    parents = [index for index, tier in enumerate(ordered) if tier.keeps_values or not is_holistic]
    yield from ((parent, child, how) for parent, child in _plain_arcs(ordered, parents))
    yield from ((parent, child, how) for parent, child in _composite_arcs(ordered, parents))
    yield from _special_arcs(ordered, semantics)


def _plain_arcs(ordered: tuple[Tier, ...], parents: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Readers of those parents whose edges are one class."""
    classes = [coarsest_class(tier) for tier in ordered]
    by_modulus: dict[int, list[int]] = {}
    for index, (modulus, _) in enumerate(classes):
        by_modulus.setdefault(modulus, []).append(index)
    for parent in parents:
        if len(ordered[parent].provides.classes) != 1:
            continue
        modulus, residue = ordered[parent].provides.classes[0]
        for multiple in _multiples(modulus, by_modulus):
            for child in by_modulus[multiple]:
                if child > parent and (classes[child][1] - residue) % modulus == 0:
                    yield parent + 1, child + 1


def _multiples(modulus: int, known: dict[int, list[int]]) -> Iterable[int]:
    """The known multiples of a number: by walking them, or by trying all numbers, whichever is shorter."""
    largest = max(known)
    if largest // modulus < len(known):
        return [multiple for multiple in range(modulus, largest + 1, modulus) if multiple in known]
    return [number for number in known if number % modulus == 0]


def _special_arcs(ordered: tuple[Tier, ...], semantics: Sharing) -> Iterator[tuple[int, int, How]]:
    """Readers of calendars, and of windows that overlap."""
    calendars = [index for index, tier in enumerate(ordered) if not isinstance(tier.window, FixedWindow | None)]
    fixed = [(index, tier.window) for index, tier in enumerate(ordered) if isinstance(tier.window, FixedWindow)]
    of_range: dict[int, list[int]] = {}
    for index, one in fixed:
        of_range.setdefault(one.range, []).append(index)
    for parent, tier in enumerate(ordered):
        match tier.window:
            case None:
                readers = []
            case FixedWindow(range=length, slide=slide):
                readers = [] if tier.tiles else of_range[length]
                if semantics is Sharing.OVERLAPPING and not tier.tiles:
                    readers = [index for index, window in fixed if window.slide % slide == 0]
            case _:
                readers = calendars
        for child in readers:
            if child > parent and (how := reads(ordered[child], tier, semantics)) is not None:
                yield parent + 1, child + 1, how


def _composite_arcs(ordered: tuple[Tier, ...], candidates: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Readers of those parents whose edges are several classes, by bit sets over all the classes that occur.

    A reader each of whose classes lies within one of the parent's: the same as ``<=`` for edges written canonically,
    but for classes that only several others hold together, and those arcs are not needed for a good plan.
    """
    parents = [index for index in candidates if len(ordered[index].provides.classes) > 1]
    universe = {
        one: 1 << bit for bit, one in enumerate(sorted({one for tier in ordered for one in tier.needs.classes}))
    }
    wanted = [sum(universe[one] for one in tier.needs.classes) for tier in ordered]
    held = {
        one: _held_by(one, universe) for one in {one for index in parents for one in ordered[index].provides.classes}
    }
    for parent in parents:
        offered = 0
        for one in ordered[parent].provides.classes:
            offered |= held[one]
        missing = ~offered
        for child in range(parent + 1, len(ordered)):
            if not wanted[child] & missing and not ordered[child].strays:
                yield parent + 1, child + 1


def _held_by(place: ResidueClass, universe: dict[ResidueClass, int]) -> int:
    """The classes of the universe that lie within one class."""
    modulus, residue = place
    return sum(
        bit for (other, start), bit in universe.items() if other % modulus == 0 and (start - residue) % modulus == 0
    )
