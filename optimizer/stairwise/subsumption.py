"""Window subsumption: chains of windows in which the wider one keeps only what the narrower one lacks.

==============  ===============================================================================================
Input           hopping or tumbling windows over one source with one aggregate
Requirement     partial results of neighbouring intervals merge; a window of equal range ("piggybacked") only filters
                results, and that is right for every aggregate, an exact median too
Time            n windows, g groups, chains of l: O(n g l) for the greedy grouping, O(g l) to embed one window,
                O(n^3) for the fewest groups
Space           O(n); O(n^2) for the fewest groups
First appeared  Patroumpas, Sellis: *Subsuming Multiple Sliding Windows for Shared Stream Computation*, ADBIS 2011
==============  ===============================================================================================

A window fires at the ends of its instances. If the narrower window fires whenever the wider one does, then at those
instants the wider state is the narrower state and the stretch before it: its delta. The edges of a group are those of
its chain: for each window 0 and minus its range, modulo its slide, if it fires at multiples of its slide.

Where the paper as printed is wrong, this module differs: run-time embedding (algorithm 1, lines 30 to 46) does not look
at the window before the new one, so it breaks chains, and its lines 39 and 40 can never embed anything; the window that
replaces a suspended one need not divide the slides of those that follow it, nor of those piggybacked with it; and the
fewest groups, left open as future work, are a chain cover, found by bipartite matching.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.window import FixedWindow


def scope(width: int, slide: int) -> FixedWindow:
    """The paper's window of that range and slide: it fires at the multiples of its slide.

    Windows elsewhere begin at multiples of the slide; that differs if the slide does not divide the range.

    >>> scope(21, 6)
    FixedWindow(range=21, slide=6, origin=3)
    """
    return FixedWindow(width, slide, -width % slide)


def is_subsumable(narrower: FixedWindow, wider: FixedWindow) -> bool:
    """Whether, whenever `wider` fires, `narrower` fires too and looks no further back (definition 1).

    It is a partial order. The paper lets all windows fire at multiples of their slides; here their ends must agree.

    >>> is_subsumable(scope(21, 3), scope(24, 6)), is_subsumable(scope(24, 6), scope(32, 3))
    (True, False)
    >>> is_subsumable(FixedWindow(2, 2, 1), FixedWindow(4, 2, 0))  # fires at odd instants, and at even ones
    False
    """
    apart = (wider.origin + wider.range) - (narrower.origin + narrower.range)
    return wider.range >= narrower.range and wider.slide % narrower.slide == 0 and apart % narrower.slide == 0


@dataclass(frozen=True, slots=True)
class Level:
    """One window of a chain, and those of equal range that take some of its results as they are.

    Attributes:
        window: What is kept and computed.
        piggybacked: By slide; they cost nothing.
    """

    window: FixedWindow
    piggybacked: tuple[FixedWindow, ...] = ()

    def __post_init__(self) -> None:
        for window in self.piggybacked:
            if window.range != self.window.range or not is_subsumable(self.window, window):
                raise PlanError(
                    f"window '{window}' is piggybacked on '{self.window}', "
                    "but its results are not among those of that window.",
                    hint="give it a place in a chain.",
                )
        object.__setattr__(self, "piggybacked", tuple(sorted(self.piggybacked, key=_position)))

    @property
    def quotients(self) -> tuple[int, ...]:
        """For each piggybacked window: it takes every such result (the annotation q of line 21)."""
        return tuple(window.slide // self.window.slide for window in self.piggybacked)


@dataclass(frozen=True, slots=True)
class Group:
    """A chain of windows, narrowest first, each of which is subsumed by all that follow.

    Attributes:
        levels: At least one, with ranges that grow.
    """

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise PlanError("a group holds 0 windows, but it needs 1 as its seed.", hint="leave the group out.")
        for before, after in pairwise(level.window for level in self.levels):
            if before.range == after.range or not is_subsumable(before, after):
                raise PlanError(
                    f"window '{after}' follows '{before}' in a group, but does not subsume it "
                    f"(ranges {before.range} s and {after.range} s, slides {before.slide} s and {after.slide} s).",
                    hint="begin another group.",
                )

    @property
    def seed(self) -> FixedWindow:
        """The narrowest window; its slide is the base slide of the group."""
        return self.levels[0].window

    @property
    def windows(self) -> tuple[FixedWindow, ...]:
        """All windows that the group serves, level by level."""
        return tuple(window for level in self.levels for window in (level.window, *level.piggybacked))

    @property
    def edges(self) -> EdgeSet:
        """The edges of the slices that serve the whole group; piggybacked windows add none."""
        chain = [level.window for level in self.levels]
        begins = ((window.slide, window.origin) for window in chain)
        ends = ((window.slide, window.origin + window.range) for window in chain)
        return EdgeSet.of(*begins, *ends)

    @property
    def deltas(self) -> tuple[tuple[int, int], ...]:
        """What each level keeps: the youngest and the oldest age, in seconds before the level fires.

        >>> Group((Level(scope(10, 2)), Level(scope(12, 4)), Level(scope(20, 4)))).deltas
        ((0, 10), (10, 12), (12, 20))
        """
        return tuple(pairwise((0, *(level.window.range for level in self.levels))))

    def embed(self, window: FixedWindow) -> Group | None:
        """The group with the window in its place; None if the chain would break."""
        levels = _embedded(self.levels, window)
        return None if levels is None else Group(levels)


def subsume_windows(windows: Iterable[FixedWindow]) -> tuple[Group, ...]:
    """Every window is in one group; narrower windows were placed before wider ones (algorithm 1, lines 1 to 16).

    In that order no window is wider than the one to place, so embedding looks at the last window only, as line 10 does.

    >>> for group in subsume_windows((scope(24, 8), scope(32, 4), scope(10, 2), scope(10, 4))):
    ...     print([(window.range, window.slide) for window in group.windows])
    [(10, 2), (10, 4), (24, 8)]
    [(32, 4)]
    """
    none: tuple[Group, ...] = ()
    return reduce(embed_window, sorted(windows, key=_position), none)


def embed_window(groups: Sequence[Group], window: FixedWindow) -> tuple[Group, ...]:
    """The groups with the window in one of them, or in a new one at the end (function `embedWindow`, lines 30 to 46).

    Groups of greater base slide are asked first, and of equal ones the older. A window that is there already changes
    nothing.
    """
    if any(window in group.windows for group in groups):
        return tuple(groups)
    for number in sorted(range(len(groups)), key=lambda number: -groups[number].seed.slide):
        embedded = groups[number].embed(window)
        if embedded is not None:
            return (*groups[:number], embedded, *groups[number + 1 :])
    return (*groups, Group((Level(window),)))


def suspend_window(groups: Sequence[Group], window: FixedWindow) -> tuple[Group, ...]:
    """The groups without the window (section 3.3).

    Of the windows piggybacked on it, the one with the smallest slide takes its place, as far as the chain allows; those
    that cannot stay in the group are embedded anew.

    >>> pool = (scope(12, 2), scope(12, 4), scope(12, 6), scope(20, 4))
    >>> [group.windows for group in suspend_window(subsume_windows(pool), scope(12, 2))] == [
    ...     (scope(12, 4), scope(20, 4)),
    ...     (scope(12, 6),),
    ... ]
    True

    Raises:
        PlanError: If no group has the window.
    """
    number = next((number for number, group in enumerate(groups) if window in group.windows), None)
    if number is None:
        raise PlanError(
            f"window '{window}' is in none of the groups ({len(groups)}), so it cannot be suspended.",
            hint="suspend a window that was embedded before.",
        )
    levels, orphans = _without(groups[number].levels, window)
    homeless: list[FixedWindow] = []
    for orphan in orphans:
        embedded = _embedded(levels, orphan)
        if embedded is None:
            homeless.append(orphan)
        else:
            levels = embedded
    kept = (Group(levels),) if levels else ()
    return reduce(embed_window, homeless, (*groups[:number], *kept, *groups[number + 1 :]))


def minimum_groups(windows: Iterable[FixedWindow]) -> tuple[Group, ...]:
    """As few groups as these windows can be in, by Dilworth's theorem.

    A window that can be piggybacked is, for it can only constrain a chain. The others are covered by chains, as many as
    there are windows without a successor in a maximum matching of windows with successors.

    >>> pool = (scope(1, 1), scope(7, 4), scope(10, 2), scope(11, 4), scope(12, 2))
    >>> len(subsume_windows(pool)), len(minimum_groups(pool))
    (3, 2)
    """
    hosted: dict[FixedWindow, list[FixedWindow]] = {}
    for window in sorted(set(windows), key=_position):
        equals = (host for host in hosted if host.range == window.range and is_subsumable(host, window))
        host = next(equals, None)
        if host is None:
            hosted[window] = []
        else:
            hosted[host].append(window)
    following = _matched({host: [other for other in hosted if _precedes(host, other)] for host in hosted})
    followers = frozenset(following.values())
    groups: list[Group] = []
    for seed in hosted:
        if seed not in followers:
            chain = [seed]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            groups.append(Group(tuple(Level(window, tuple(hosted[window])) for window in chain)))
    return tuple(groups)


def _precedes(narrower: FixedWindow, wider: FixedWindow) -> bool:
    return narrower.range < wider.range and is_subsumable(narrower, wider)


def _embedded(levels: tuple[Level, ...], window: FixedWindow) -> tuple[Level, ...] | None:
    """The levels with the window; None if it does not fit between those before and after it.

    A level of equal range hosts the window (lines 19 to 22), or else the window takes its place and hosts it.
    """
    before = tuple(level for level in levels if level.window.range < window.range)
    equal = tuple(level for level in levels if level.window.range == window.range)
    after = tuple(level for level in levels if level.window.range > window.range)
    if equal and is_subsumable(equal[0].window, window):
        return (*before, Level(equal[0].window, (*equal[0].piggybacked, window)), *after)
    is_chain = all(
        is_subsumable(narrower, wider)
        for narrower, wider in (
            *((level.window, window) for level in before[-1:]),
            *((window, level.window) for level in (*equal, *after[:1])),
        )
    )
    hosted = tuple(each for level in equal for each in (level.window, *level.piggybacked))
    return (*before, Level(window, hosted), *after) if is_chain else None


def _without(levels: tuple[Level, ...], window: FixedWindow) -> tuple[tuple[Level, ...], tuple[FixedWindow, ...]]:
    """The levels without the window, and the windows that were piggybacked on it."""
    orphans = tuple(each for level in levels if level.window == window for each in level.piggybacked)
    kept = (level for level in levels if level.window != window)
    rest = (Level(level.window, tuple(each for each in level.piggybacked if each != window)) for level in kept)
    return tuple(rest), orphans


def _matched(wider: Mapping[FixedWindow, Sequence[FixedWindow]]) -> dict[FixedWindow, FixedWindow]:
    """As many windows as possible, each with a successor of its own among those in `wider`: augmenting paths."""
    following: dict[FixedWindow, FixedWindow] = {}
    leading: dict[FixedWindow, FixedWindow] = {}
    for start in wider:
        free, reached = _free_successor(start, wider, leading)
        while free is not None:
            narrower = reached[free]
            leading[free] = narrower
            following[narrower], free = free, following.get(narrower)
    return following


def _free_successor(
    start: FixedWindow,
    wider: Mapping[FixedWindow, Sequence[FixedWindow]],
    leading: Mapping[FixedWindow, FixedWindow],
) -> tuple[FixedWindow | None, dict[FixedWindow, FixedWindow]]:
    """A successor that nobody has, if there is one along an alternating path; and from where each was reached."""
    reached: dict[FixedWindow, FixedWindow] = {}
    queue = deque((start,))
    while queue:
        narrower = queue.popleft()
        for successor in wider[narrower]:
            if successor not in reached:
                reached[successor] = narrower
                if successor not in leading:
                    return successor, reached
                queue.append(leading[successor])
    return None, reached


def _position(window: FixedWindow) -> tuple[int, int, int]:
    return window.range, window.slide, window.origin
