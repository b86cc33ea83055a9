"""The planner of "Factor Windows" (Wu, Bernstein, Raizman, Pavlopoulou; paper 000), as a reference to compare with.

Input: windows of fixed range and slide, and whether those that are read may overlap (min, max) or not (sum, count).
Output: which window reads which, without helper windows (algorithm 1) and with them (algorithm 3, which asks algorithm
2 or 5 for the best helper below each window).
Requirement on the aggregate: it merges; for overlapping windows also that counting a row twice does no harm.
Time: quadratic in the windows, times the divisors of their slides. Space: the arcs. First appeared: 2022.

The print is followed but for its slips: a window is covered only by a shorter one (theorem 1); a helper for hopping
readers must divide their slides too (algorithm 5), and none but the coarsest can win, so that nothing is left to decide
for theorem 9, whose sign is wrong; one reader with a single instance gains nothing (algorithm 4 divides by zero); below
the virtual root stand only the windows that no other one covers, and the root itself is never charged (algorithm 3).
What remains is the paper's own: one helper for all windows below another, no helpers of helpers, each judged alone, and
kept even where in the end nobody reads it. So a plan with helpers can cost more than one without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from math import gcd, isqrt, lcm

from stairwise.window import FixedWindow

Arc = tuple[FixedWindow | None, FixedWindow]
ROOT = FixedWindow(1, 1)  # the paper's virtual window of one time unit, below which the uncovered windows stand


@dataclass(frozen=True, slots=True)
class Graph:
    """A window coverage graph: the declared windows, the helpers, and who may read whom (None: the events)."""

    declared: tuple[FixedWindow, ...]
    factors: tuple[FixedWindow, ...]
    arcs: tuple[Arc, ...]

    @property
    def period(self) -> int:
        """The paper's R: the least common multiple of the declared ranges."""
        return lcm(*(window.range for window in self.declared))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one window reads in a plan (None: the events), and what that costs in a period."""

    window: FixedWindow
    parent: FixedWindow | None
    cost: int


def nests_in(coarser: FixedWindow, finer: FixedWindow) -> bool:
    """Whether an instance of ``finer`` begins wherever one of ``coarser`` does.

    >>> nests_in(FixedWindow(12, 6), FixedWindow(9, 3)), nests_in(FixedWindow(12, 6, 1), FixedWindow(9, 3))
    (True, False)
    """
    return coarser.slide % finer.slide == 0 and (coarser.origin - finer.origin) % finer.slide == 0


def is_covered(coarser: FixedWindow, finer: FixedWindow) -> bool:
    """Whether instances of ``finer`` make up each instance of ``coarser``, overlapping or not (theorem 1).

    >>> is_covered(FixedWindow(10, 2), FixedWindow(8, 2)), is_covered(FixedWindow(8, 2), FixedWindow(10, 2))
    (True, False)
    """
    if coarser.range <= finer.range:
        return coarser == finer
    return (coarser.range - finer.range) % finer.slide == 0 and nests_in(coarser, finer)


def is_partitioned(coarser: FixedWindow, finer: FixedWindow) -> bool:
    """Whether disjoint instances of ``finer`` make up each instance of ``coarser`` (theorem 4).

    >>> is_partitioned(FixedWindow(10, 2), FixedWindow(8, 2)), is_partitioned(FixedWindow(10, 2), FixedWindow(2, 2))
    (False, True)
    """
    return finer.is_tumbling and is_covered(coarser, finer)


def multiplier(coarser: FixedWindow, finer: FixedWindow) -> int:
    """Instances of ``finer`` within one of ``coarser`` (theorem 3).

    >>> multiplier(FixedWindow(10, 2), FixedWindow(8, 2))
    2
    """
    return 1 + (coarser.range - finer.range) // finer.slide


def instances(window: FixedWindow, period: int) -> int:
    """Complete instances of a window within the period (equation 1).

    >>> instances(FixedWindow(10, 2), 120)
    56
    """
    return 1 + (period - window.range) // window.slide


def instance_cost(window: FixedWindow, parent: FixedWindow | None, eta: int) -> int:
    """What one instance reads: the parent's instances, or ``eta`` events per time unit (observation 1)."""
    return window.range * eta if parent is None else multiplier(window, parent)


def without_factors(windows: Iterable[FixedWindow], *, overlapping: bool) -> Graph:
    """The coverage graph of the windows alone.

    >>> graph = without_factors([FixedWindow(r, r) for r in (20, 30, 40)], overlapping=False)
    >>> [(str(child), str(parent)) for parent, child in graph.arcs if parent]
    [('40s', '20s')]
    """
    ordered = sorted(set(windows), key=lambda window: (window.range, window.slide, window.origin))
    return _coverage(tuple(ordered), overlapping=overlapping)


@lru_cache(maxsize=4)
def _coverage(declared: tuple[FixedWindow, ...], *, overlapping: bool) -> Graph:
    """The same graph, worked out once for the planner without factor windows and the one with them."""
    arcs = (
        (finer, coarser)
        for place, finer in enumerate(declared, 1)
        if overlapping or finer.is_tumbling
        for coarser in declared[place:]
        if coarser.slide % finer.slide == 0 and is_covered(coarser, finer)
    )
    return Graph(declared, (), (*((None, window) for window in declared), *arcs))


def with_factors(windows: Iterable[FixedWindow], *, overlapping: bool, eta: int = 1) -> Graph:
    """The coverage graph with the helpers of algorithm 3.

    >>> [str(f) for f in with_factors([FixedWindow(r, r) for r in (20, 30, 40)], overlapping=False).factors]
    ['10s']
    """
    graph = without_factors(windows, overlapping=overlapping)
    best = best_covering if overlapping else best_partitioning
    period = graph.period
    arcs = dict.fromkeys(graph.arcs)
    factors: dict[FixedWindow, None] = {}
    for parent, below in _downstream(graph):
        factor = best(Place(parent=parent, below=below, period=period, eta=eta))
        if factor is not None:
            factors[factor] = None
            arcs.update(dict.fromkeys([(None, factor), (parent, factor)]))
            arcs.update(dict.fromkeys((factor, window) for window in below if window != factor))
    return Graph(graph.declared, tuple(window for window in factors if window not in graph.declared), tuple(arcs))


def _downstream(graph: Graph) -> Iterator[tuple[FixedWindow | None, tuple[FixedWindow, ...]]]:
    """Each window with those below it; first the root, below which stand the windows that no other one covers."""
    below: dict[FixedWindow | None, list[FixedWindow]] = {}
    covered: set[FixedWindow] = set()
    for parent, child in graph.arcs:
        if parent is not None:
            below.setdefault(parent, []).append(child)
            covered.add(child)
    below[None] = [window for window in graph.declared if window not in covered]
    return ((parent, tuple(below[parent])) for parent in (None, *graph.declared) if below.get(parent))


def cheapest_parents(graph: Graph, *, eta: int = 1) -> tuple[Reading, ...]:
    """What each window of the graph reads where that costs least, the first of equals (algorithm 1).

    >>> graph = without_factors([FixedWindow(r, r) for r in (20, 30, 40)], overlapping=False)
    >>> [(str(reading.window), str(reading.parent), reading.cost) for reading in cheapest_parents(graph)]
    [('20s', 'None', 120), ('30s', 'None', 120), ('40s', '20s', 6)]
    """
    period, best = graph.period, dict[FixedWindow, Reading]()
    for parent, child in graph.arcs:
        cost = instances(child, period) * instance_cost(child, parent, eta)
        if child not in best or cost < best[child].cost:
            best[child] = Reading(window=child, parent=parent, cost=cost)
    return tuple(best[window] for window in (*graph.declared, *graph.factors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a helper could stand: below a window and above those that it covers (figure 9).

    Attributes:
        parent: The window that the helper would read; None for the events, which the paper's root stands for.
        below: The windows that would read the helper.
        period: The time that costs are for.
        eta: Events per time unit.
    """

    parent: FixedWindow | None
    below: tuple[FixedWindow, ...]
    period: int
    eta: int = 1
    _count: int = field(init=False, repr=False, compare=False)  # of the instances below
    _seconds: int = field(init=False, repr=False, compare=False)  # that these last altogether
    _cost: int = field(init=False, repr=False, compare=False)  # of what they read without a helper

    def __post_init__(self) -> None:
        """Add up what is below, once for all helpers that could stand here."""
        counts = [instances(window, self.period) for window in self.below]
        below = list(zip(counts, self.below, strict=True))
        object.__setattr__(self, "_count", sum(counts))
        object.__setattr__(self, "_seconds", sum(count * window.range for count, window in below))
        object.__setattr__(self, "_cost", sum(count * self._reads(window) for count, window in below))

    @property
    def above(self) -> FixedWindow:
        """The parent, or the root."""
        return self.parent or ROOT

    def benefit(self, factor: FixedWindow) -> int:
        """What a helper that covers all the windows below saves (equation 2); below zero if it costs more.

        >>> readers = FixedWindow(20, 20), FixedWindow(30, 30)
        >>> Place(parent=None, below=readers, period=120).benefit(FixedWindow(10, 10))
        96
        """
        reads = self._count + (self._seconds - self._count * factor.range) // factor.slide
        return self._cost - reads - instances(factor, self.period) * self._reads(factor)

    def _reads(self, window: FixedWindow) -> int:
        return instance_cost(window, self.parent, self.eta)

    def is_beneficial(self, factor: FixedWindow) -> bool:
        """Whether a tumbling helper costs no more than it saves (algorithm 4).

        With two readers it always does. The print's cases for a single one are all the comparison of what the helper
        reads with lambda / (lambda - 1), where lambda is the reader's instances by those of a tumbling window.

        >>> Place(parent=None, below=(FixedWindow(10, 10),), period=120).is_beneficial(FixedWindow(5, 5))
        False
        """
        reader, *others = self.below
        if others:
            return True
        count = instances(reader, self.period)
        return self._reads(factor) * (count - self.period // reader.range) >= count

    def common(self, sizes: Iterable[int]) -> int:
        """The greatest length that divides the sizes and the distances between the readers' origins."""
        return reduce(gcd, (*sizes, *(window.origin - self.below[0].origin for window in self.below)))

    def window(self, length: int, slide: int) -> FixedWindow:
        """The window that begins with the readers."""
        return FixedWindow(length, slide, self.below[0].origin % slide)


def best_covering(place: Place) -> FixedWindow | None:
    """The helper that saves most where instances may overlap (algorithm 2); None if none saves anything.

    For one slide, what is saved is a convex function of the range: the readers' share is linear, and the helper's own
    cost is a number of instances that falls with the range times reads that rise with it. So the shortest and the
    longest legal ranges are all that need to be looked at.

    >>> str(best_covering(Place(parent=None, below=(FixedWindow(10, 2), FixedWindow(12, 4)), period=60)))
    '2s'
    """
    best, most = None, 0
    for slide in divisors(place.common(window.slide for window in place.below)):
        for length in _extreme_ranges(place, slide):
            factor = place.window(length, slide)
            benefit = place.benefit(factor)
            if benefit > most and _fits(factor, place):
                best, most = factor, benefit
    return best


def _fits(factor: FixedWindow, place: Place) -> bool:
    return is_covered(factor, place.above) and all(is_covered(window, factor) for window in place.below)


def _extreme_ranges(place: Place, slide: int) -> Sequence[int]:
    """The multiples of the slide next to the parent's range and to the shortest reader's, which may be the helper."""
    longest = min(window.range for window in place.below) // slide * slide
    shortest = (place.above.range // slide + 1) * slide
    return sorted({length for length in (shortest, longest - slide, longest) if shortest <= length <= longest})


def best_partitioning(place: Place) -> FixedWindow | None:
    """The tumbling helper below a tumbling window (algorithm 5); None if it would cost more than it saves.

    The coarser a helper, the more it saves, so there is nothing to choose from.

    >>> str(best_partitioning(Place(parent=None, below=(FixedWindow(20, 10), FixedWindow(40, 20)), period=40)))
    '10s'
    """
    length = place.common(size for window in place.below for size in (window.range, window.slide))
    if length % place.above.range or length == place.above.range:
        return None
    factor = place.window(length, length)
    return factor if place.is_beneficial(factor) else None


@lru_cache(maxsize=1 << 12)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, rising."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*small, *(number // divisor for divisor in small)}))
