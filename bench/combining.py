"""How often states are combined to put overlapping windows together from slices: counted, not worked out.

Each technique of paper 001 gives the maximum of every ``length`` neighbours; `stairwise.final_aggregation` says what
each of them is. Running is for sums, which can be subtracted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from stairwise.final_aggregation import Technique

Combine = Callable[[int, int], int]
LENGTHS = 8
"""What is counted are as many slices as this many windows have, after as many others."""


@dataclass(slots=True)
class Counted:
    """Something that is done with two states, and how often it was."""

    do: Combine
    times: int = 0

    def __call__(self, left: int, right: int) -> int:
        """Do it once more."""
        self.times += 1
        return self.do(left, right)


def per_slice(technique: Technique, length: int) -> float:
    """How often two states are combined for each slice, once it goes on steadily.

    >>> [per_slice(technique, 16) for technique in (Technique.NAIVE, Technique.FLAT_FAT, Technique.RUNNING)]
    [15.0, 4.0, 2.0]

    Raises:
        AssertionError: The technique gives wrong results.
    """
    random = Random(length)
    slices = [random.randrange(10**9) for _ in range(2 * LENGTHS * length)]
    half = len(slices) // 2
    return (_times(technique, slices, length) - _times(technique, slices[:half], length)) / half


def _times(technique: Technique, slices: Sequence[int], length: int) -> int:
    if technique is Technique.RUNNING:
        add, subtract = Counted(int.__add__), Counted(int.__sub__)
        found = _running(slices, length, add, subtract)
        expected = [sum(slices[end - length : end]) for end in range(length, len(slices) + 1)]
        times = add.times + subtract.times
    else:
        combine = Counted(max)
        found = WAYS[technique](slices, length, combine)
        expected = [max(slices[end - length : end]) for end in range(length, len(slices) + 1)]
        times = combine.times
    if found != expected:
        raise AssertionError(f"{technique.value} over {length} slices gives wrong results.")
    return times


def _running(slices: Sequence[int], length: int, add: Combine, subtract: Combine) -> list[int]:
    total, results = 0, list[int]()
    for place, one in enumerate(slices):
        total = add(total, one)
        if place >= length:
            total = subtract(total, slices[place - length])
        if place >= length - 1:
            results.append(total)
    return results


def _naive(slices: Sequence[int], length: int, combine: Combine) -> list[int]:
    results = list[int]()
    for end in range(length, len(slices) + 1):
        total = slices[end - length]
        for one in slices[end - length + 1 : end]:
            total = combine(total, one)
        results.append(total)
    return results


def _flat_fat(slices: Sequence[int], length: int, combine: Combine) -> list[int]:
    """A tree over the slices of a window, in a ring of leaves; its root is the window."""
    leaves = 1 << (length - 1).bit_length()
    nodes: list[int | None] = [None] * (2 * leaves)
    results = list[int]()
    for place, one in enumerate(slices):
        node = leaves + place % length
        nodes[node] = one
        while node > 1:
            node //= 2
            left, right = nodes[2 * node], nodes[2 * node + 1]
            nodes[node] = right if left is None else left if right is None else combine(left, right)
        root = nodes[1]
        if place >= length - 1 and root is not None:
            results.append(root)
    return results


def _two_stacks(slices: Sequence[int], length: int, combine: Combine) -> list[int]:
    front, back, results = list[int](), list[int](), list[int]()
    total = 0
    for one in slices:
        if len(front) + len(back) == length:
            if not front:
                for state in reversed(back):
                    front.append(combine(state, front[-1]) if front else state)
                back.clear()
            front.pop()
        total = combine(total, one) if back else one
        back.append(one)
        if len(front) + len(back) == length:
            results.append(combine(front[-1], total) if front else total)
    return results


def _van_herk(slices: Sequence[int], length: int, combine: Combine) -> list[int]:
    prefixes, suffixes = list(slices), list(slices)
    for place in range(len(slices)):
        if place % length:
            prefixes[place] = combine(prefixes[place - 1], slices[place])
    for place in reversed(range(len(slices) - 1)):
        if (place + 1) % length:
            suffixes[place] = combine(slices[place], suffixes[place + 1])
    starts = range(len(slices) - length + 1)
    return [
        combine(suffixes[start], prefixes[start + length - 1]) if start % length else suffixes[start]
        for start in starts
    ]


def _slick_deque(slices: Sequence[int], length: int, combine: Combine) -> list[int]:
    """Only slices that none after them beats."""
    entries: deque[tuple[int, int]] = deque()
    results = list[int]()
    for place, one in enumerate(slices):
        if entries and entries[0][0] == place - length:
            entries.popleft()
        while entries and combine(entries[-1][1], one) == one:
            entries.pop()
        entries.append((place, one))
        if place >= length - 1:
            results.append(entries[0][1])
    return results


WAYS: Mapping[Technique, Callable[[Sequence[int], int, Combine], list[int]]] = MappingProxyType(
    {
        Technique.NAIVE: _naive,
        Technique.FLAT_FAT: _flat_fat,
        Technique.TWO_STACKS: _two_stacks,
        Technique.VAN_HERK: _van_herk,
        Technique.SLICK_DEQUE: _slick_deque,
    }
)
