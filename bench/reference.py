"""Exact optima to compare plans with, worked out otherwise than the planner works.

Nothing here is shared with ``stairwise`` but the window type. ``cheapest_factors`` writes the choice of factor windows
down as an integer program and leaves it to HiGHS; ``cheapest_unions`` goes through all trees of unions of edges. Both
price as the paper does: an instance of a window costs what it reads, over the lcm of the declared ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, lcm
from typing import Literal

from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from stairwise.window import FixedWindow

MOST_UNIONS = 10  # windows; the trees of unions take 4 to that power steps
MOST_LENGTHS = 10


@dataclass(frozen=True, slots=True)
class _Arc:
    """One way to compute a window; parent -1 is the events."""

    parent: int
    child: int
    reads: Fraction


def cheapest_factors(windows: Sequence[FixedWindow], *, overlapping: bool) -> Fraction:
    """The least cost of any hierarchy of the windows and factor windows.

    Tumbling factors are all that divide the slide and range of some window. Where instances may overlap, hopping ones
    join them: each common divisor of two slides, with a range of two slides, or that of a declared window, or, as long
    as the program stays small, one slide less. Read disjointly, windows of different ranges have no use for a hopping
    factor.

    >>> cheapest_factors([FixedWindow(r, r) for r in (20, 30, 40)], overlapping=False)
    Fraction(150, 1)
    """
    nodes = list(dict.fromkeys([*windows, *_factors(windows, overlapping=overlapping)]))
    period = lcm(*(window.range for window in windows))
    arcs = list(_arcs(nodes, len(windows), period, overlapping=overlapping))
    chosen = _solve(arcs, required=len(windows), nodes=len(nodes), scale=period)
    known = {-1, *chosen}
    # Added up exactly here: the solver's own sum is a float.
    return sum(
        (min(arc.reads for arc in arcs if arc.child == node and arc.parent in known) for node in chosen), Fraction()
    )


def _factors(windows: Sequence[FixedWindow], *, overlapping: bool) -> Iterator[FixedWindow]:
    slides = sorted({slide for window in windows for slide in _divisors(window.slide)})
    for slide in slides:
        if any(window.range % slide == window.slide % slide == 0 for window in windows):
            yield FixedWindow(slide, slide)
    if overlapping:
        ranges, longest = {window.range for window in windows}, max(window.range for window in windows)
        for slide in slides:
            if sum(window.slide % slide == 0 for window in windows) == 1:
                continue
            lengths = {2 * slide, *ranges}
            if len(windows) <= MOST_LENGTHS:
                lengths.update([length - slide for length in ranges])
            for length in sorted(lengths):
                if length % slide == 0 and slide < length <= longest:
                    yield FixedWindow(length, slide)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _arcs(nodes: Sequence[FixedWindow], required: int, period: int, *, overlapping: bool) -> Iterator[_Arc]:
    """Every legal way to compute each window that beats what the events and the required windows offer; and that."""
    for child, window in enumerate(nodes):
        instances = 1 + Fraction(period - window.range) // window.slide
        always, most = -1, Fraction(window.range)
        ways: list[tuple[int, Fraction]] = []
        for parent, other in enumerate(nodes):
            reads = _reads(window, other, overlapping=overlapping) if parent != child else Fraction()
            if 0 < reads < most:
                ways.append((parent, reads))
                if parent < required:
                    always, most = parent, reads
        yield _Arc(always, child, instances * most)
        yield from (_Arc(parent, child, instances * reads) for parent, reads in ways if reads < most)


def _reads(window: FixedWindow, parent: FixedWindow, *, overlapping: bool) -> Fraction:
    """Instances of the parent that one of the window reads; 0 if it cannot."""
    if window.slide % parent.slide:
        return Fraction()
    if window.range == parent.range:
        return Fraction(1)
    if parent.range == parent.slide and window.range % parent.range == 0:
        return Fraction(window.range, parent.range)
    if overlapping and window.range > parent.range and (window.range - parent.range) % parent.slide == 0:
        return Fraction(1 + (window.range - parent.range) // parent.slide)
    return Fraction()


def _solve(arcs: Sequence[_Arc], *, required: int, nodes: int, scale: int) -> list[int]:
    """The nodes of a cheapest plan: each of them reads over one arc, and only what is in the plan can be read."""
    variables = nodes + len(arcs)
    reads_one = [(arc.child, nodes + place, 1.0) for place, arc in enumerate(arcs)]
    reads_one += [(node, node, -1.0) for node in range(nodes)]
    from_factor = [(place, arc) for place, arc in enumerate(arcs) if arc.parent >= required]
    only_open = [(row, nodes + place, 1.0) for row, (place, _) in enumerate(from_factor)]
    only_open += [(row, arc.parent, -1.0) for row, (_, arc) in enumerate(from_factor)]
    constraints = [_constraint(reads_one, rows=nodes, columns=variables, least=0)]
    if from_factor:
        constraints.append(_constraint(only_open, rows=len(from_factor), columns=variables, least=-inf))
    kinds: list[Literal[0, 1]] = [1 if place < nodes else 0 for place in range(variables)]
    result = milp(
        [0.0] * nodes + [float(arc.reads / scale) for arc in arcs],
        constraints=constraints,
        bounds=Bounds([1.0] * required + [0.0] * (variables - required), [1.0] * variables),
        integrality=kinds,
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise RuntimeError(result.message)
    return [node for node in range(nodes) if result.x[node] > 0.5]


def _constraint(
    entries: Sequence[tuple[int, int, float]], *, rows: int, columns: int, least: float
) -> LinearConstraint:
    """Each row of the matrix with these entries adds up to something from ``least`` to 0."""
    where, which, values = zip(*entries, strict=True)
    return LinearConstraint(csr_array((values, (where, which)), shape=(rows, columns)), least, 0)


def cheapest_unions(windows: Sequence[FixedWindow]) -> Fraction:
    """The least cost of any hierarchy of tiers that cut time at unions of the windows' edges, read disjointly.

    For windows of different ranges, each a multiple of its slide, so that their edges are the multiples of the slide.
    Sets of windows are bits of a number. Below a parent, the windows fall into blocks; the first tier of a block is one
    of its windows, which the others can read, or a helper with just the edges of the block.

    >>> cheapest_unions([FixedWindow(r, r) for r in (20, 30, 40)])
    Fraction(142, 1)
    """
    trees = _Trees(windows)
    # Costs are worked out times the period, so that they are whole; the events are as one edge a second.
    return Fraction(trees.split(len(trees.edges) - 1, trees.period)) / trees.period


class _Trees:
    """The least costs below a parent with so many edges, a period long."""

    def __init__(self, windows: Sequence[FixedWindow]) -> None:
        self.windows = windows
        self.period = lcm(*(window.range for window in windows))
        self.edges = _block_edges(windows, self.period)
        self.one = cache(self._one)
        self.split = cache(self._split)

    def _split(self, block: int, parent: int) -> int | float:
        """The best partition into blocks; the first of them holds the lowest window."""
        if not block:
            return 0
        lowest = block & -block
        others = rest = block ^ lowest
        least: int | float = inf
        while True:
            least = min(least, self.one(lowest | others, parent) + self.split(rest ^ others, parent))
            if not others:
                return least
            others = (others - 1) & rest

    def _one(self, block: int, parent: int) -> int | float:
        """One tier, and all below it. A helper with as many edges as its parent would be of no use."""
        least: int | float = inf
        if self.edges[block] < parent:
            least = self.period * parent + self.split(block, self.edges[block])
        for bit, window in enumerate(self.windows):
            if block >> bit & 1:
                seconds = (1 + (self.period - window.range) // window.slide) * window.range
                least = min(least, seconds * parent + self._below(window, block ^ 1 << bit))
        return least

    def _below(self, window: FixedWindow, others: int) -> int | float:
        """The others read a window, or, where it hops, a tumbling helper that keeps every k-th of its results."""
        if not others:
            return 0
        if any(other.slide % window.range for bit, other in enumerate(self.windows) if others >> bit & 1):
            return inf
        kept = self.period // window.range
        return self.split(others, kept) + (0 if window.is_tumbling else kept * self.period)


def _block_edges(windows: Sequence[FixedWindow], period: int) -> list[int]:
    """For each set of windows, how many edges they have together."""
    slides = [window.slide for window in windows]
    blocks = range(1 << len(slides))
    return [_edges([slide for bit, slide in enumerate(slides) if block >> bit & 1], period) for block in blocks]


def _edges(slides: Sequence[int], period: int) -> int:
    """How many multiples of any of the slides the period has, by inclusion and exclusion."""
    terms = {1: 0}
    for slide in slides:
        for modulus, sign in list(terms.items()):
            both = lcm(modulus, slide)
            terms[both] = terms.get(both, 0) + (1 if modulus == 1 else -sign)
    return sum(sign * (period // modulus) for modulus, sign in terms.items() if modulus > 1)
