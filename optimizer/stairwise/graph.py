"""Which tier can be computed from which, and what that costs: tiers in, a network for the search out.

Most parents are plain: all their edges are one residue class ``(p, x)``, and whether a reader's edges lie within it is
one remainder of the reader's own coarsest class. So their readers are found by arithmetic on numbers; sets are compared
only for composite tiers, and calendars only with calendars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, islice
from math import gcd
from operator import itemgetter
from typing import TYPE_CHECKING

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet, multiples_among
from stairwise.network import Network
from stairwise.tiers import DAY, How, Kind, Tier, composite_tier, reads
from stairwise.window import FixedWindow

if TYPE_CHECKING:
    from stairwise.cost import Prices
    from stairwise.edges import ResidueClass
    from stairwise.network import Number, Solution

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


def lean(tiers: Iterable[Tier], semantics: Sharing, prices: Prices) -> Graph:
    """The same graph without hopping helpers that no cheapest plan has, whatever unions of edges join them.

    They are read by windows only. If a helper goes, each of these reads what is always there; a helper among them may
    go as well. Where that costs no more altogether than the helper costs at least, nobody misses it. Readers are looked
    at before what they read, so few arcs are priced. Requirement on the prices: a finer parent is not cheaper to read.
    """
    ordered = in_order(tiers)
    helpers = [node for node, tier in enumerate(ordered, 1) if tier.kind is Kind.FACTOR and not tier.tiles]
    others = sorted({*range(1, len(ordered) + 1)}.difference(helpers))
    plain = build((ordered[node - 1] for node in others), semantics, prices)
    required = plain.network.required
    surely = (next(cost for parent, cost in incoming if required[parent]) for incoming in plain.network.arcs[1:])
    worth: dict[int, Number] = dict(zip(others, surely, strict=True))
    windows = _Hopping(ordered, semantics, worth)
    for node in reversed(helpers):
        readers = tuple(windows.readers(node))
        raw, picking, merging, *costs = _prices_of_helper(ordered, node, readers, prices)
        saved: Number = 0
        for (_, child, _), cost in zip(readers, costs, strict=True):
            if cost < worth[child]:
                saved += worth[child] - cost
        if saved > min(raw, picking, merging):
            worth[node] = min(saved, raw)
            windows.add(node)
    return plain if len(worth) == len(others) else build((ordered[node - 1] for node in worth), semantics, prices)


def _prices_of_helper(
    ordered: tuple[Tier, ...], node: int, readers: Sequence[tuple[int, int, How]], prices: Prices
) -> Sequence[Number]:
    """What a helper costs from raw rows, if it picks its results, and from the coarsest slices; and what readers pay.

    To cover its windows by shorter ones is to merge at least as many results as it picks.
    """
    helper = ordered[node - 1]
    tiers = [
        helper,
        composite_tier(f"slices of {helper.name}", helper.needs),
        *(ordered[child - 1] for _, child, _ in readers),
    ]
    own = [(0, 1, How.RAW), (1, 1, How.EQUAL_RANGE), (2, 1, How.DISJOINT)]
    return prices.prices(tiers, [*own, *((1, place, how) for place, (_, _, how) in enumerate(readers, 3))])


def regrown(graph: Graph, nodes: Iterable[int], unions: Sequence[Tier], semantics: Sharing, prices: Prices) -> Graph:
    """The graph over some of its nodes and over unions of edges that it lacks, priced anew.

    Between its own nodes only those arcs stay that a plan may use or show: none that costs more than two from nodes
    that are always there.
    """
    own = {node: graph.tiers[node - 1] for node in nodes}
    ordered = in_order([*own.values(), *unions])
    place = {tier: node for node, tier in enumerate(ordered, 1)}
    hows = {
        (place[own[parent]], place[own[child]]): graph.how(parent, child)
        for child in own
        for parent in _worth_a_look(graph.network, child)
        if parent in own
    }
    if unions:
        fresh = {place[tier] for tier in unions}
        for parent, child, how in _slicing_arcs(ordered, semantics):
            if parent in fresh or child in fresh:
                hows[parent, child] = how
    return assemble(ordered, hows, prices)


def _worth_a_look(network: Network, node: int) -> Iterator[int]:
    """The parents up to the second of those that are always there."""
    always = 0
    for parent, _ in network.arcs[node]:
        yield parent
        always += network.required[parent]
        if always == 2:
            break


def narrowed(graph: Graph, solution: Solution, prices: Prices) -> Graph:
    """The graph over the nodes of a plan, priced anew, with what each node reads and could read next best.

    That is the cheapest of its parents in the plan, and three more, should some of these turn out to be idle.
    """
    place = {node: number for number, node in enumerate(solution.nodes, 1)}
    hows: dict[tuple[int, int], How] = {}
    for child, node in place.items():
        parents = (parent for parent, _ in graph.network.arcs[child] if parent in place)
        hows.update(((place[parent], node), graph.how(parent, child)) for parent in islice(parents, 4))
    return assemble(tuple(graph.tiers[node - 1] for node in place), hows, prices)


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
    yield from _slicing_arcs(ordered, semantics)
    yield from _calendar_arcs(ordered, semantics)
    yield from _hopping_arcs(ordered, semantics)


def _slicing_arcs(ordered: tuple[Tier, ...], semantics: Sharing) -> Iterator[tuple[int, int, How]]:
    """Readers of slices that have an edge wherever they have one."""
    is_holistic = semantics is Sharing.HOLISTIC
    how = How.VALUES if is_holistic else How.DISJOINT
    parents = [index for index, tier in enumerate(ordered) if tier.keeps_values or not is_holistic]
    yield from ((parent, child, how) for parent, child in _plain_arcs(ordered, parents))
    yield from ((parent, child, how) for parent, child in _composite_arcs(ordered, parents))


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
        for multiple in multiples_among(by_modulus, modulus, largest):
            for child in by_modulus[multiple]:
                if child > parent and (classes[child][1] - residue) % modulus == 0:
                    yield parent + 1, child + 1


def _calendar_arcs(ordered: tuple[Tier, ...], semantics: Sharing) -> Iterator[tuple[int, int, How]]:
    """Calendars that read calendars: their edges nest where those of fixed windows do not."""
    calendars = [index for index, tier in enumerate(ordered) if not isinstance(tier.window, FixedWindow | None)]
    for parent, child in combinations(calendars, 2):
        how = reads(ordered[child], ordered[parent], semantics)
        if how is not None:
            yield parent + 1, child + 1, how


class _Hopping:
    """Who can read fixed windows that overlap: keep some of the results, or merge those that cover its own."""

    def __init__(self, ordered: tuple[Tier, ...], semantics: Sharing, nodes: Iterable[int]) -> None:
        self.tiers = ordered
        self.may_overlap = semantics is Sharing.OVERLAPPING
        self.by_slide: dict[int, list[tuple[int, int, int]]] = {}  # node, range and origin
        self.largest = 0
        for node in nodes:
            self.add(node)

    def add(self, node: int) -> None:
        """Let a node be a reader, if it is one of fixed windows."""
        window = self.tiers[node - 1].window
        if isinstance(window, FixedWindow):
            self.by_slide.setdefault(window.slide, []).append((node, window.range, window.origin))
            self.largest = max(self.largest, window.slide)

    def readers(self, parent: int) -> Iterator[tuple[int, int, How]]:
        """(parent, reader, how) for all that come after it and begin wherever it does."""
        finer, keeps_values = self.tiers[parent - 1].window, self.tiers[parent - 1].keeps_values
        if not isinstance(finer, FixedWindow) or finer.is_tumbling:
            return
        length, slide, begin = finer.range, finer.slide, finer.origin
        for multiple in multiples_among(self.by_slide, slide, self.largest):
            for child, reach, origin in self.by_slide[multiple]:
                if child <= parent or (origin - begin) % slide:
                    continue
                if reach == length:
                    if self.tiers[child - 1].keeps_values == keeps_values:
                        yield parent, child, How.EQUAL_RANGE
                elif self.may_overlap and reach > length and (reach - length) % slide == 0:
                    yield parent, child, How.OVERLAPPING


def _hopping_arcs(ordered: tuple[Tier, ...], semantics: Sharing) -> Iterator[tuple[int, int, How]]:
    """Readers of fixed windows that overlap."""
    nodes = range(1, len(ordered) + 1)
    windows = _Hopping(ordered, semantics, nodes)
    for parent in nodes:
        yield from windows.readers(parent)


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
        for multiple in multiples_among(by_modulus, modulus, max(by_modulus))
        for one in by_modulus[multiple]
        if (one[1] - residue) % modulus == 0
    ]
