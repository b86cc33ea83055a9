"""Where earlier techniques cut the stream for hopping windows, as edge sets (papers 001 and 002).

A window of range r every s is put together from slices; the fewer there are, the less is stored and combined. Space is
slices per window, time is edges per second; each technique works for any associative aggregate.

Panes
    Input: one hopping window. Requirement on the aggregate: associative. Time: 1 / gcd(r, s). Space: r / gcd(r, s).
    First appeared: Li et al. 2005.
Pairs
    Input: one hopping window. Requirement: associative. Time: 2 / s, 1 / s if s divides r. Space: 2 * floor(r / s) + 1,
    r / s if s divides r. First appeared: Krishnamurthy, Wu and Franklin 2006.
Shared pairs
    Input: several hopping windows. Requirement: associative. Time: edges of the union. Space: those within the longest
    range. First appeared: as Pairs.
Cutty
    Input: windows that say, at each record, whether one begins or ends there; they need not be periodic. Requirement:
    associative. Time: 1 / s. Space: ceil(r / s), the last of them still open. First appeared: Carbone et al. 2016.

Cutty cuts at begins only: a window that ends amid a slice reads that slice while it is being filled. A batch engine
meets each slice only once it is complete, when it also holds what came after the window's end. So it cuts at the ends
too, which is Pairs; what Cutty saves is not to be had there.

Where paper 002 is not followed. Its algorithm 1 drops slices before the window that still needs them is put together:
the drop must come after. Its claim of no more slices than active windows holds for one query: of several, the oldest
active window keeps every begin of the others since (``slices_held``). Its table doubles Pairs also where s divides r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import gcd, lcm
from typing import Generic, TypeVar, assert_never

from stairwise.edges import EdgeSet
from stairwise.window import FixedWindow

State = TypeVar("State")
Positions = tuple[int, int]


class Slicing(Enum):
    """The ways to cut the stream for one hopping window."""

    PANES = "panes"
    PAIRS = "pairs"
    CUTTY = "cutty"

    def edges(self, window: FixedWindow) -> EdgeSet:
        """Where the slices meet.

        >>> window = FixedWindow(range=14, slide=8)
        >>> [slicing.edges(window).classes for slicing in Slicing]
        [((2, 0),), ((8, 0), (8, 6)), ((8, 0),)]
        """
        match self:
            case Slicing.PANES:
                return EdgeSet.of((gcd(window.range, window.slide), window.origin))
            case Slicing.PAIRS:
                return EdgeSet.of((window.slide, window.origin), (window.slide, window.origin + window.range))
            case Slicing.CUTTY:
                return EdgeSet.of((window.slide, window.origin))
            case _:
                assert_never(self)

    def slices_per_window(self, window: FixedWindow) -> int:
        """How many slices a window is put together from (001, table 1).

        >>> [slicing.slices_per_window(FixedWindow(range=10, slide=3)) for slicing in Slicing]
        [10, 7, 4]
        """
        whole, rest = divmod(window.range, window.slide)
        match self:
            case Slicing.PANES:
                return window.range // gcd(window.range, window.slide)
            case Slicing.PAIRS:
                return 2 * whole + 1 if rest else whole
            case Slicing.CUTTY:
                return whole + bool(rest)
            case _:
                assert_never(self)

    def stored_at_most(self, window: FixedWindow) -> int:
        """How many slices are kept at once, as paper 002 bounds it (table 1, lazy; a tree over them doubles it).

        >>> [slicing.stored_at_most(FixedWindow(range=10, slide=3)) for slicing in Slicing]
        [10, 7, 5]
        """
        match self:
            case Slicing.PANES:
                return self.slices_per_window(window)
            case Slicing.PAIRS:
                return -(-2 * window.range // window.slide)
            case Slicing.CUTTY:
                return -(-window.range // window.slide) + 1
            case _:
                assert_never(self)


def shared(slicing: Slicing, windows: Iterable[FixedWindow]) -> EdgeSet:
    """The edges of one slice tier for all the windows.

    >>> shared(Slicing.PAIRS, [FixedWindow(range=4, slide=2), FixedWindow(range=5, slide=3)]).classes
    ((2, 0), (3, 0), (3, 2))
    """
    return EdgeSet(tuple(one for window in windows for one in slicing.edges(window).classes))


def edges_by_inclusion_exclusion(slides: Sequence[int]) -> int:
    """Formula F1 (001, equation 2): the edges in one composite slide of slides that begin together.

    Its terms are the 2^n - 1 groups of slides; ``EdgeSet.rate`` gives the same number and needs a few dozen steps.

    >>> slides = (20, 30, 40)
    >>> edges_by_inclusion_exclusion(slides), 120 * EdgeSet.of(*((slide, 0) for slide in slides)).rate()
    (8, Fraction(8, 1))
    """
    composite = lcm(*slides)
    return sum(
        (-1) ** (size + 1) * composite // lcm(*group)
        for size in range(1, len(slides) + 1)
        for group in combinations(slides, size)
    )


def slices_held(windows: Sequence[FixedWindow], instant: int) -> int:
    """How many slices Cutty holds just before the instant: each begin since that of the oldest active window.

    One day-long window makes it keep a slice for every minute of the other query, of which one is active:

    >>> slices_held([FixedWindow(range=1_440, slide=1_440), FixedWindow(range=1, slide=1)], 1_440)
    1440
    """
    last = instant - 1
    oldest = min(_oldest_begin(window, last) for window in windows)
    return sum(1 for _ in shared(Slicing.CUTTY, windows).between(oldest, instant))


def _oldest_begin(window: FixedWindow, instant: int) -> int:
    earliest = instant - window.range + 1
    return earliest + (window.origin - earliest) % window.slide


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission(Generic[State]):
    """A window's result and how many slices, the open one included, were held when it was put together."""

    window: Positions
    result: State
    slices: int


def by_begins(
    records: Sequence[State], windows: Iterable[Positions], combine: Callable[[State, State], State]
) -> Iterator[Emission[State]]:
    """Cutty's algorithm 1, corrected: each window [begin, end) of record positions is emitted when it ends.

    The windows may be any, as long as each is known to begin when its first record comes, and each holds a record.

    >>> [emission.result for emission in by_begins("abcdefg", [(0, 3), (1, 7)], str.__add__)]
    ['abc', 'bcdefg']
    """
    ordered = sorted(windows, key=lambda window: (window[1], window[0]))
    begins = {begin for begin, _ in ordered}
    slices: list[tuple[int, State]] = []
    for position in range(len(records) + 1):
        for window in (window for window in ordered if window[1] == position):
            states = (state for start, state in slices if start >= window[0])
            yield Emission(window=window, result=reduce(combine, states), slices=len(slices))
        oldest = min((begin for begin, end in ordered if begin < position < end), default=position)
        slices = [one for one in slices if one[0] >= oldest]
        if position < len(records) and slices and position not in begins:
            start, state = slices[-1]
            slices[-1] = start, combine(state, records[position])
        elif position < len(records):
            slices.append((position, records[position]))


def stored_ratio(window: FixedWindow) -> Fraction:
    """How many times as many slices Pairs needs as Cutty: nearly 2, but 1 where the slide divides the range.

    >>> stored_ratio(FixedWindow(range=10, slide=3)), stored_ratio(FixedWindow(range=9, slide=3))
    (Fraction(7, 4), Fraction(1, 1))
    """
    return Fraction(Slicing.PAIRS.slices_per_window(window), Slicing.CUTTY.slices_per_window(window))
