"""How overlapping windows are put together from slices, and what that costs (paper 001).

A window that is r/s slides long shares each slice with r/s - 1 others. The techniques, with n slices per window; time
is states read per slice:

Direct
    Input: slices of tumbling windows. Requirement on the aggregate: none. Time: 1. Space: 1. First appeared: folklore.
Naive
    Input: slices in any order. Requirement: associative. Time: n. Space: n. First appeared: Panes, Li et al. 2005.
Running
    Input: slices in order. Requirement: invertible, and exactly so: subtracting floats leaves dust behind. Time: 2, the
    slice that enters and the one that leaves, or two prefix totals. Space: n. First appeared: R-Int, Arasu and Widom
    2004; subtract-on-evict.
Van Herk
    Input: a sequence cut into blocks of n; columnar: one scan each way and a join. Requirement: associative. Time: 3,
    the suffix of one block, the prefix of the next, and the two together. Space: 2n. First appeared: van Herk 1992, Gil
    and Werman 1993, for images.
Two stacks
    Input: slices in order, one at a time. Requirement: associative. Time: 3 amortised, n at worst. Space: 2n. First
    appeared: as a queue in functional programming; for windows Tangwongsan et al. 2017.
SlickDeque
    Input: slices in order. Requirement: selective, x + y is x or y. Time: 2 - 2/n on average. Space: the harmonic
    number of n on average, n at worst. First appeared: Shein et al. 2018; the invertible kind is Running.
FlatFAT
    Input: slices in order, also late ones. Requirement: associative. Time: 1 + log2 n. Space: 2n. First appeared:
    Tangwongsan et al. 2015; B-Int, Arasu and Widom 2004, before it.

Where the paper is not followed. The average deque is as long as the harmonic number, 5.4 for 128 slices, not the sum of
1/i!, which never passes 1.72: a slice stays as long as none of those after it beats it, so the i-th last stays with
probability 1/i. Equation 4 has the logarithm of P - 1, hence no value at P = 1, where the slice is the answer. And
every formula charges each query at each edge; with mixed slides a query looks up only when it fires
(`operations_per_second`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from stairwise.errors import PlanError


class Technique(Enum):
    """The ways to put windows together from slices; of two that cost the same, the earlier is taken."""

    DIRECT = "direct"
    NAIVE = "naive"
    RUNNING = "running"
    SLICK_DEQUE = "slick_deque"
    VAN_HERK = "van_herk"
    TWO_STACKS = "two_stacks"
    FLAT_FAT = "flat_fat"

    def is_legal(self, overlap: int, *, invertible: bool, selective: bool) -> bool:
        """Whether it gives the right result for such an aggregate over windows that share each slice ``overlap`` times.

        >>> Technique.RUNNING.is_legal(12, invertible=False, selective=True)
        False
        """
        match self:
            case Technique.DIRECT:
                return overlap == 1
            case Technique.RUNNING:
                return invertible
            case Technique.SLICK_DEQUE:
                return selective
            case Technique.NAIVE | Technique.VAN_HERK | Technique.TWO_STACKS | Technique.FLAT_FAT:
                return True
            case _:
                assert_never(self)


def work(technique: Technique, overlap: int) -> Fraction:
    """States read per slice when each window has ``overlap`` slices.

    >>> [str(work(technique, 16)) for technique in (Technique.NAIVE, Technique.FLAT_FAT, Technique.SLICK_DEQUE)]
    ['16', '5', '15/8']
    """
    if overlap < 1:
        raise PlanError(f"final aggregation: a window has at least 1 slice, not {overlap}.")
    match technique:
        case Technique.DIRECT:
            return Fraction(1)
        case Technique.NAIVE:
            return Fraction(overlap)
        case Technique.RUNNING:
            return Fraction(2)
        case Technique.SLICK_DEQUE:
            return 2 - Fraction(2, max(overlap, 2))
        case Technique.VAN_HERK | Technique.TWO_STACKS:
            return Fraction(3)
        case Technique.FLAT_FAT:
            return Fraction(1 + (overlap - 1).bit_length())
        case _:
            assert_never(technique)


@lru_cache(maxsize=1 << 12)
def choose(overlap: int, *, invertible: bool, selective: bool = False) -> Technique:
    """The legal technique with the least work per slice.

    >>> [choose(overlap, invertible=False).value for overlap in (1, 2, 3, 4, 1_000)]
    ['direct', 'naive', 'naive', 'van_herk', 'van_herk']
    >>> choose(96, invertible=True).value, choose(96, invertible=False, selective=True).value
    ('running', 'slick_deque')

    Args:
        overlap: Slices per window.
        invertible: Whether one state can be subtracted from another without a trace, as with counts and exact sums.
        selective: Whether combining two states gives one of them, as with min and max.
    """
    legal = [one for one in Technique if one.is_legal(overlap, invertible=invertible, selective=selective)]
    return min(legal, key=lambda technique: work(technique, overlap))


def omega_naive(overlaps: Iterable[Fraction]) -> Fraction:
    """Equation 3: each query adds range / slide operations per edge.

    >>> omega_naive([Fraction(6, 2), Fraction(8, 4)])
    Fraction(5, 1)
    """
    return sum(overlaps, Fraction(0))


def omega_flat_fat(slices: Iterable[int]) -> Fraction:
    """Equation 4, of the slices that each query's window has; a query of one slice adds nothing.

    >>> omega_flat_fat([16, 11, 1])
    Fraction(131, 16)
    """
    return sum((_tree_nodes(count) for count in slices), Fraction(0))


def omega_flat_fit(queries: int) -> Fraction:
    """Equation 5: each query adds 3 operations per edge."""
    return Fraction(3 * queries)


def omega_running(slices: Iterable[int]) -> Fraction:
    """Equation 6: two operations per edge for each different number of slices.

    >>> omega_running([3, 4, 4])
    Fraction(4, 1)
    """
    return Fraction(2 * len(set(slices)))


def omega_slick_deque(slices: Sequence[int]) -> Fraction:
    """Equation 7 with the true length of the deque: the work at its ends, a step per query, and one walk along it.

    >>> omega_slick_deque([2]), round(float(omega_slick_deque([128])), 1)
    (Fraction(7, 2), 8.4)
    """
    longest = max(slices)
    return work(Technique.SLICK_DEQUE, longest) + len(slices) + deque_length(longest)


def deque_length(slices: int) -> Fraction:
    """The average number of entries of a monotone deque over so many slices in random order: their harmonic number.

    >>> round(float(deque_length(128)), 1)
    5.4
    """
    return sum((Fraction(1, place) for place in range(1, slices + 1)), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A query as a final aggregator meets it.

    Attributes:
        firings: How often it asks, per second: 1 / slide.
        operations: What one answer takes.
    """

    firings: Fraction
    operations: Fraction


def operations_per_second(edge_rate: Fraction, update: Fraction, readers: Iterable[Reader]) -> Fraction:
    """What one shared aggregator does: an update at every edge, and a look-up only where a query fires.

    With one slide for all this is the paper's edge rate times Omega. With mixed slides it ranks plans differently: a
    look-up once an hour is next to nothing beside edges every second.

    >>> hourly = Reader(firings=Fraction(1, 3_600), operations=Fraction(10))
    >>> operations_per_second(Fraction(1), Fraction(2), [hourly])
    Fraction(721, 360)
    """
    return edge_rate * update + sum((one.firings * one.operations for one in readers), Fraction(0))


def _tree_nodes(slices: int) -> Fraction:
    if slices == 1:
        return Fraction(0)
    levels_below, levels = (slices - 1).bit_length() - 1, slices.bit_length() - 1
    return levels_below + Fraction(slices - 1, 2**levels)
