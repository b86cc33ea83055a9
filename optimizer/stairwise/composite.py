"""Tiers that cut time at any union of edges, found by merging.

The coarsest tier that serves a set of readers cuts time at the union of their edges, so the candidates are the unions
of the declared windows' edges: with six windows or fewer all of them, else those that merging brings up.

Input: the declared tiers, later also a plan to refine. Requirement on the aggregate: it merges. Time: quadratic in the
windows that are merged with each other, on bit sets; the rates of what is found are exact. Space: the bit sets. First
appeared: unions for one tier below all windows in shared time slices; a hierarchy of them is ours.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING

from stairwise.edges import EdgeSet
from stairwise.graph import asked_of_unions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stairwise.tiers import Tier

FEW = 6  # windows whose unions are all looked at
MANY = 96  # windows that are merged with each other, at most
HORIZON = 1 << 13  # time units over which merging counts edges; what it finds is measured exactly


def all_unions(edges: Sequence[EdgeSet]) -> Iterator[EdgeSet]:
    """Every union of these sets, each by itself too; as many as 2 to the number of sets, so for ``FEW`` of them."""
    for size in range(1, len(edges) + 1):
        for chosen in combinations(edges, size):
            yield union(chosen)


def union(sets: Iterable[EdgeSet]) -> EdgeSet:
    """The edges of all the sets."""
    return EdgeSet(tuple(one for edges in sets for one in edges.classes))


def all_but_one(edges: Sequence[EdgeSet]) -> Iterator[EdgeSet]:
    """The unions of three sets or more, each without one of them, which may find another parent."""
    if len(edges) > 2:
        yield from (union(other for other in edges if other != left_out) for left_out in edges)


def distinct_needs(tiers: Iterable[Tier]) -> tuple[EdgeSet, ...]:
    """The edges that composite tiers may have to offer, coarsest first."""
    needs = {asked_of_unions(tier) for tier in tiers}
    return tuple(sorted(needs, key=EdgeSet.by_rate))


def merged(edges: Sequence[EdgeSet]) -> Iterator[EdgeSet]:
    """The sets themselves, and the unions that come up when they are merged two by two until one is left.

    Each time those two are merged whose union has the fewest edges for what it adds to the finer of them, so that sets
    with much in common come together early, and coarse ones before fine ones.
    """
    group = edges[:MANY]
    sets = dict(enumerate(_bit_sets(group)))
    members: dict[int, tuple[int, ...]] = {index: (index,) for index in sets}
    counts = {index: bits.bit_count() for index, bits in sets.items()}
    heap = [_entry(sets, counts, one, other) for one, other in combinations(sets, 2)]
    heapify(heap)
    yield from group
    while len(sets) > 1:
        _, both, one, other = heappop(heap)
        if one not in sets or other not in sets:
            continue
        fresh = len(members)
        members[fresh] = members[one] + members[other]
        sets[fresh], counts[fresh] = sets.pop(one) | sets.pop(other), both
        yield union(group[index] for index in members[fresh])
        for rest in sets:
            if rest != fresh:
                heappush(heap, _entry(sets, counts, rest, fresh))


def _entry(sets: dict[int, int], counts: dict[int, int], one: int, other: int) -> tuple[int, int, int, int]:
    both = (sets[one] | sets[other]).bit_count()
    return 2 * both - max(counts[one], counts[other]), both, one, other


def _bit_sets(edges: Sequence[EdgeSet]) -> list[int]:
    """Each set as the bits of one integer, a bit for each time unit of the horizon; the unit fits all edges."""
    if not edges:
        return []
    origin = edges[0].classes[0][1]
    numbers = [number for one in edges for modulus, residue in one.classes for number in (modulus, residue - origin)]
    unit = gcd(*numbers)
    mask = (1 << HORIZON) - 1
    bits: list[int] = []
    for one in edges:
        total = 0
        for modulus, residue in one.classes:
            total |= _progression((residue - origin) // unit % (modulus // unit), modulus // unit)
        bits.append(total & mask)
    return bits


def _progression(first: int, step: int) -> int:
    """Bits first, first + step, first + 2 * step, ... within the horizon, by doubling."""
    if first >= HORIZON:
        return 0
    bits, length = 1 << first, step
    while length < HORIZON:
        bits |= bits << length
        length *= 2
    return bits
