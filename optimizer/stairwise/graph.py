"""Which tier can be computed from which, and what that costs: tiers in, a network for the search out.

Most parents are plain: all their edges are one residue class ``(p, x)``, and whether a reader's edges lie within it is
one remainder of the reader's own coarsest class. So their readers are found by arithmetic on numbers; sets are compared
only for composite tiers, and calendars only with calendars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import gcd
from operator import itemgetter
from typing import TYPE_CHECKING

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet
from stairwise.network import Network
from stairwise.tiers import DAY, How, Kind, Tier, reads
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


def assemble(
    ordered: tuple[Tier, ...], hows: dict[tuple[int, int], How], prices: Prices, *, keeps_helpers: bool = False
) -> Graph:
    """The graph over tiers in order with these arcs, and one from the raw rows to each tier.

    Args:
        ordered: The tiers, see ``in_order``.
        hows: How a node can be computed from another, by (parent, child).
        prices: What that costs.
        keeps_helpers: Whether every tier is required, whoever wants it.
    """
    pairs = [(0, child, How.RAW) for child in range(1, len(ordered) + 1)]
    pairs += ((parent, child, how) for (parent, child), how in hows.items())
    arcs: list[list[tuple[int, Number]]] = [[] for _ in range(len(ordered) + 1)]
    for (parent, child, _), cost in zip(pairs, prices.prices(ordered, pairs), strict=True):
        arcs[child].append((parent, cost))
    network = Network(
        required=(True, *(keeps_helpers or tier.kind is Kind.DECLARED for tier in ordered)),
        arcs=tuple(tuple(sorted(incoming, key=itemgetter(1, 0))) for incoming in arcs),
    )
    return Graph(ordered, network, hows)


def in_order(tiers: Iterable[Tier]) -> tuple[Tier, ...]:
    """The tiers in one order, whatever order they came in: a tier stands behind all that it could read."""
    return tuple(sorted(tiers, key=_order))


def _order(tier: Tier) -> tuple[float, int | Fraction, float, bool, int, tuple[ResidueClass, ...], str]:
    """Steps first as floats, which nearly always differ already and compare ten times faster."""
    step = tier.slide_s or 1 / tier.rate
    about = float(step)
    length = about if tier.range_s is None else float(tier.range_s)
    return about, step, length, not tier.keeps_values, _KINDS[tier.kind], tier.needs.classes, tier.name


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


def asked_of_unions(tier: Tier) -> EdgeSet:
    """The edges that a composite tier has to offer a tier; a stray edge brings its time of day on all days.

    >>> from stairwise.tiers import Horizon, declared_tier
    >>> from stairwise.window_text import parse_window
    >>> beirut = declared_tier("d", "", parse_window("day offset 30m in Asia/Beirut"), Horizon())
    >>> beirut.needs.classes, asked_of_unions(beirut).classes
    (((86400, 77400), (86400, 81000)), ((86400, 77400), (86400, 79200), (86400, 81000)))
    """
    return tier.needs | EdgeSet(tuple((DAY, stray) for stray in tier.strays)) if tier.strays else tier.needs


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
    largest = max(by_modulus)
    for parent in parents:
        if len(ordered[parent].provides.classes) != 1:
            continue
        modulus, residue = ordered[parent].provides.classes[0]
        for multiple in _multiples(modulus, by_modulus, largest):
            for child in by_modulus[multiple]:
                if child > parent and (classes[child][1] - residue) % modulus == 0:
                    yield parent + 1, child + 1


def _multiples(modulus: int, known: Collection[int], largest: int) -> Iterable[int]:
    """The known multiples of a number: by walking them, or by trying all numbers, whichever is shorter."""
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
    """Readers of those parents whose edges are several classes, by counting which of their classes a parent holds.

    A reader each of whose classes lies within one of the parent's: the same as ``<=`` for edges written canonically,
    but for classes that only several others hold together, and those arcs are not needed for a good plan.
    """
    asked = [asked_of_unions(tier) for tier in ordered]
    wanting: dict[ResidueClass, list[int]] = {}
    for index, edges in enumerate(asked):
        for one in edges.classes:
            wanting.setdefault(one, []).append(index)
    by_modulus: dict[int, list[ResidueClass]] = {}
    for one in wanting:
        by_modulus.setdefault(one[0], []).append(one)
    held: dict[ResidueClass, list[ResidueClass]] = {}
    for parent in candidates:
        classes = ordered[parent].provides.classes
        if len(classes) > 1:
            for one in classes:
                if one not in held:
                    held[one] = _held_by(one, by_modulus)
            within = {other for one in classes for other in held[one]}
            count = Counter(chain.from_iterable(wanting[other] for other in within))
            for child, classes_held in count.items():
                if child > parent and classes_held == len(asked[child].classes):
                    yield parent + 1, child + 1


def _held_by(place: ResidueClass, by_modulus: dict[int, list[ResidueClass]]) -> list[ResidueClass]:
    """The known classes that lie within one class."""
    modulus, residue = place
    return [
        one
        for multiple in _multiples(modulus, by_modulus, max(by_modulus))
        for one in by_modulus[multiple]
        if (one[1] - residue) % modulus == 0
    ]
