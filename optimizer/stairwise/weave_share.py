"""Weave Share: which windows share a tier of slices, and which are better off with a tier of their own.

==============  ===============================================================================================
Input           hopping or tumbling windows over one source with one aggregate, and the events per second
Requirement     partial results of neighbouring slices merge (count, sum, min, ...); an exact median does not
Time            n windows: O(n^2) edge counts and O(n^2 log n) comparisons; O(n) counts per added window
Space           O(n^2) candidate merges
First appeared  Guirguis, Sharaf, Chrysanthis, Labrinidis: *Optimized Processing of Multiple Aggregate
                Continuous Queries*, CIKM 2011
==============  ===============================================================================================

Every tree reads the raw events once and cuts them at the edges of all its windows. A shared tree saves readings of the
events, and pays for it when it combines slices: each of its windows then sees the edges of all the others.

Where the paper as printed is wrong, this module differs: figure 2 keeps the best reduction of earlier rounds, so it
goes on to merge a pair that is gone; example 3 calls the cost of not sharing 11.6, which is 5.5 by its own equation 3.
The tolerance of equation 6 is one of an extrapolated cost. So it does not limit how far a plan is above the one built
from scratch, as section 7.2 has it, nor does a tolerance of 0 build one at each change, as section 5.2.1 has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count

from stairwise.edges import EdgeSet, union_rate
from stairwise.errors import PlanError
from stairwise.window import FixedWindow


@dataclass(frozen=True, slots=True)
class Tree:
    """Windows that share one tier of slices; a window that was asked for twice is listed twice.

    Attributes:
        windows: By range, slide and origin, at least one.
        edges: Where the tree cuts the events: the begins and ends of all its windows (paired windows, section 3.2).
        edge_rate: Edges per second; of many unrelated windows it is counted on a finite horizon, see `EdgeSet.measure`.

    Example 2 of the paper: windows 12 every 9 and 10 every 6 share 8 edges in 18 seconds.

        >>> Tree((FixedWindow(12, 9), FixedWindow(10, 6))).edge_rate
        Fraction(4, 9)
    """

    windows: tuple[FixedWindow, ...]
    edges: EdgeSet = field(init=False, compare=False, repr=False)
    edge_rate: Fraction = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.windows:
            raise PlanError("a tree holds 0 windows, but it takes 1 to have edges.", hint="leave the tree out.")
        object.__setattr__(self, "windows", tuple(sorted(self.windows, key=_position)))
        begins = ((window.slide, window.origin) for window in self.windows)
        ends = ((window.slide, window.origin + window.range) for window in self.windows)
        object.__setattr__(self, "edges", EdgeSet.of(*begins, *ends))
        object.__setattr__(self, "edge_rate", self.edges.rate())

    @property
    def overlap(self) -> Fraction:
        """How many window instances each slice is combined into (equation 2)."""
        return sum((Fraction(window.range, window.slide) for window in self.windows), Fraction(0))

    def cost(self, input_rate: Fraction) -> Fraction:
        """Aggregations per second: every event into a slice, every slice into its windows (equation 1)."""
        return input_rate + self.edge_rate * self.overlap

    def __or__(self, other: Tree) -> Tree:
        """The tree that serves the windows of both."""
        return Tree(self.windows + other.windows)


@dataclass(frozen=True, slots=True)
class WeavePlan:
    """Trees side by side, each of which reads all the events.

    Attributes:
        input_rate: Events per second.
        trees: By their windows.
    """

    input_rate: Fraction
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        if self.input_rate < 0:
            raise PlanError(
                f"the input rate is {self.input_rate} events per second, but a rate is 0 or more.",
                hint="give the measured number of events per second.",
            )
        object.__setattr__(self, "trees", tuple(sorted(self.trees, key=_positions)))

    @property
    def windows(self) -> tuple[FixedWindow, ...]:
        """All windows of the plan, by range, slide and origin."""
        return tuple(sorted((window for tree in self.trees for window in tree.windows), key=_position))

    @property
    def cost(self) -> Fraction:
        """Aggregations per second of all trees together (equation 3)."""
        return sum((tree.cost(self.input_rate) for tree in self.trees), Fraction(0))


def weaveability(first: Tree, second: Tree) -> Fraction:
    """The share of the two trees' edges that both have: 1 if they are the same edges, 0 if none is (equation 4).

    >>> weaveability(Tree((FixedWindow(12, 9),)), Tree((FixedWindow(10, 6),)))
    Fraction(1, 4)
    """
    together = union_rate(first.edges, second.edges)
    return (first.edge_rate + second.edge_rate - together) / together


def reduction(first: Tree, second: Tree, input_rate: Fraction) -> Fraction:
    """What merging the two trees saves, in aggregations per second; negative if it costs more (equation 5)."""
    apart = first.edge_rate * first.overlap + second.edge_rate * second.overlap
    together = union_rate(first.edges, second.edges) * (first.overlap + second.overlap)
    return input_rate + apart - together


def share_nothing(windows: Iterable[FixedWindow], input_rate: Fraction) -> WeavePlan:
    """One tree per window ("No Share" in section 4.1)."""
    return WeavePlan(input_rate, tuple(Tree((window,)) for window in windows))


def share_everything(windows: Iterable[FixedWindow], input_rate: Fraction) -> WeavePlan:
    """One tree for all windows ("Shared" in section 4.1, which is the shared time slices of earlier work)."""
    gathered = tuple(windows)
    return WeavePlan(input_rate, (Tree(gathered),) if gathered else ())


def weave_share(windows: Iterable[FixedWindow], input_rate: Fraction) -> WeavePlan:
    """A plan in which merging any two trees would cost more: the cheapest merge first, while one pays (figure 2).

    Never dearer than `share_nothing`, but it can be dearer than `share_everything`: a merge of two may cost more where
    a merge of three pays.

    >>> windows = (FixedWindow(16, 4), FixedWindow(10, 5), FixedWindow(8, 4))  # example 3 of the paper
    >>> rate = Fraction(12, 10)
    >>> plan = weave_share(windows, rate)
    >>> [[(window.range, window.slide) for window in tree.windows] for tree in plan.trees]
    [[(8, 4), (16, 4)], [(10, 5)]]
    >>> [float(each.cost) for each in (share_nothing(windows, rate), plan, share_everything(windows, rate))]
    [5.5, 4.3, 4.4]
    """
    return _woven((), share_nothing(windows, input_rate))


def insert_then_weave(windows: Iterable[FixedWindow], input_rate: Fraction) -> WeavePlan:
    """The simpler greedy plan of section 6: each window into the tree it saves most in, then whole trees are merged.

    A window that saves nothing in any tree begins one. The paper inserts in an arbitrary order; here it is by range.
    """
    trees: list[Tree] = []
    for window in sorted(windows, key=_position):
        single = Tree((window,))
        savings = [reduction(tree, single, input_rate) for tree in trees]
        best = max(savings, default=Fraction(0))
        if best > 0:
            chosen = savings.index(best)
            trees[chosen] |= single
        else:
            trees.append(single)
    return _woven((), WeavePlan(input_rate, tuple(trees)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWeave:
    """A plan that follows windows as they come and go, and is rebuilt when it has drifted too far (section 5.2).

    Attributes:
        plan: What runs now.
        tolerance: How far above the expected cost the plan may be, as a share of it; None: it is never rebuilt.
        curve: The plan-cost curve, oldest point first: how many windows a plan built from scratch had, and its cost.
    """

    plan: WeavePlan
    tolerance: Fraction | None
    curve: tuple[tuple[int, Fraction], ...]

    def __post_init__(self) -> None:
        if self.tolerance is not None and self.tolerance < 0:
            raise PlanError(
                f"the tolerance is {self.tolerance} of the expected cost, but it is 0 or more.",
                hint="give 0 to rebuild whenever the plan costs more than expected, None to rebuild never.",
            )

    @classmethod
    def start(
        cls, windows: Iterable[FixedWindow], input_rate: Fraction, *, tolerance: Fraction | None = Fraction(1, 5)
    ) -> RunningWeave:
        """A plan built from scratch; the paper finds that a tolerance of 20 or 30 % balances cost and effort."""
        plan = weave_share(windows, input_rate)
        return cls(plan=plan, tolerance=tolerance, curve=((0, Fraction(0)), (len(plan.windows), plan.cost)))

    def expected_cost(self, windows: int) -> Fraction:
        """What so many windows should cost: the line through the last two points of the curve that differ in number.

        >>> RunningWeave.start((FixedWindow(8, 4), FixedWindow(16, 4)), Fraction(1)).expected_cost(3)
        Fraction(15, 4)
        """
        last, cost = self.curve[-1]
        for earlier, earlier_cost in reversed(self.curve):
            if earlier != last:
                return cost + (cost - earlier_cost) / (last - earlier) * (windows - last)
        return cost

    def add(self, window: FixedWindow) -> RunningWeave:
        """The window is served: by the tree in which it saves most, or by one of its own (section 5.2.1)."""
        changed = WeavePlan(self.plan.input_rate, (Tree((window,)),))
        return self._settled(_woven(self.plan.trees, changed))

    def remove(self, window: FixedWindow) -> RunningWeave:
        """The window, or one of its copies, is served no more, and its former tree merges if that pays (section 5.2.2).

        Raises:
            PlanError: If the plan has no such window.
        """
        former = next((tree for tree in self.plan.trees if window in tree.windows), None)
        if former is None:
            raise PlanError(
                f"window '{window}' is in none of the plan's trees ({len(self.plan.trees)}), so it cannot be removed.",
                hint="remove a window that was added before.",
            )
        kept = list(self.plan.trees)
        kept.remove(former)
        left = Counter(former.windows) - Counter((window,))
        trees = (Tree(tuple(left.elements())),) if left else ()
        return self._settled(_woven(tuple(kept), WeavePlan(self.plan.input_rate, trees)))

    def _settled(self, plan: WeavePlan) -> RunningWeave:
        """The plan, unless equation 6 asks for one built from scratch; then the cheaper of the two."""
        number = len(plan.windows)
        # Multiplied out, so that an expected cost of nothing or less asks for a new plan instead of dividing by it.
        if self.tolerance is None or plan.cost <= (1 + self.tolerance) * self.expected_cost(number):
            return replace(self, plan=plan)
        rebuilt = weave_share(plan.windows, plan.input_rate)
        cheaper = min(plan, rebuilt, key=lambda each: each.cost)
        return replace(self, plan=cheaper, curve=(*self.curve, (number, rebuilt.cost)))


def _woven(settled: tuple[Tree, ...], fresh: WeavePlan) -> WeavePlan:
    """Both together, once no merge saves anything; among `settled` no merge did before, so none is tried.

    A saving is computed once per pair (section 8.1) and waits in a heap; one of a tree that is gone is skipped. Equal
    savings: the pair that came first.
    """
    numbers = count()
    trees = {next(numbers): tree for tree in settled}
    merges: list[tuple[Fraction, int, int]] = []

    def admit(tree: Tree) -> None:
        number = next(numbers)
        for earlier, other in trees.items():
            saved = reduction(other, tree, fresh.input_rate)
            if saved > 0:
                heappush(merges, (-saved, earlier, number))
        trees[number] = tree

    for tree in fresh.trees:
        admit(tree)
    while merges:
        _, first, second = heappop(merges)
        if first in trees and second in trees:
            admit(trees.pop(first) | trees.pop(second))
    return WeavePlan(fresh.input_rate, tuple(trees.values()))


def _position(window: FixedWindow) -> tuple[int, int, int]:
    return window.range, window.slide, window.origin


def _positions(tree: Tree) -> list[tuple[int, int, int]]:
    return [_position(window) for window in tree.windows]
