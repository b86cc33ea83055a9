"""Periodic sets of instants: what a tier is, as far as the optimizer cares.

A tier's slices lie between neighbouring edges, and its edges are a union of residue classes ``(modulus, residue)``: all
instants ``residue + k * modulus``, in seconds. Three questions decide every plan, and all are answered without walking
the common period, which for twenty windows is longer than history:

* Can tier A be computed from tier B? Iff the edges of A are among those of B: ``a <= b``.
* Which is the coarsest tier that serves both? ``a | b``.
* How many slices does it have? ``rate()`` edges per second.

Counting the union
    Input: any residue classes. Requirement on the aggregate: none. Time: n*n per step for n classes; the steps grow
    with the prime powers that the moduli share, and end at a budget. Space: one answer per step. First appeared: here;
    bit sets (paper 003) and inclusion-exclusion (paper 001, in ``slicing``) came before it.

Count what no class holds. Classes whose moduli share no prime are independent by the Chinese remainder theorem, so the
shares they leave over multiply. Where a prime p is shared, sort the instants by their remainder modulo p: only those
remainders that some class asks for differ, and all the others leave over alike. Each step takes a factor p out of the
moduli, so the moduli soon come apart.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, repeat
from math import gcd, lcm, prod

from stairwise.errors import PlanError

ResidueClass = tuple[int, int]
WORK_BUDGET = 50_000  # classes looked at: a third of a second at most; 50 unrelated windows take a tenth of it
HORIZON_EDGES = 400_000


@dataclass(frozen=True, slots=True)
class Rate:
    """How many edges a second a set has, and whether that is exact or counted on a finite horizon."""

    value: Fraction
    is_exact: bool


@dataclass(frozen=True, slots=True)
class EdgeSet:
    """A union of residue classes, written in one way: no class lies within another, and complete systems are one class.

    >>> EdgeSet.of((6, 0), (6, 2), (6, 4), (3, 0), (12, 9)).classes
    ((2, 0), (3, 0))

    Sets written alike are equal. The same instants can be written in two ways only where several classes together hold
    another that none of them holds alone; ``a <= b <= a`` sees through that too:

    >>> plain, spare = EdgeSet.of((6, 0), (10, 5)), EdgeSet.of((6, 0), (10, 5), (15, 0))
    >>> plain == spare, plain <= spare <= plain
    (False, True)
    """

    classes: tuple[ResidueClass, ...] = ()

    def __post_init__(self) -> None:
        for modulus, residue in self.classes:
            if modulus < 1:
                raise PlanError(f"edge class ({modulus}, {residue}): the modulus ({modulus} s) must be at least 1 s.")
        object.__setattr__(self, "classes", _canonical((modulus, rest % modulus) for modulus, rest in self.classes))

    @classmethod
    def of(cls, *classes: ResidueClass) -> EdgeSet:
        """The instants of all these classes; residues may be any integers.

        >>> EdgeSet.of((60, 80), (60, -60))
        EdgeSet(classes=((60, 0), (60, 20)))
        """
        return cls(classes)

    def __or__(self, other: EdgeSet) -> EdgeSet:
        """The edges of the coarsest tier that serves the readers of both.

        >>> (EdgeSet.of((20, 0)) | EdgeSet.of((30, 0)) | EdgeSet.of((40, 0))).classes
        ((20, 0), (30, 0))
        """
        return EdgeSet(self.classes + other.classes)

    def __le__(self, other: EdgeSet) -> bool:
        """Whether every instant of this set is one of the other's, so that its tier can be computed from the other's.

        A class that only several classes of the other hold together is proven held by counting. The count is limited;
        where it ends undecided the answer is no, for a tier that was not proven to serve must not be read.

        >>> EdgeSet.of((15, 0)) <= EdgeSet.of((6, 0), (10, 5)), EdgeSet.of((15, 5)) <= EdgeSet.of((6, 0), (10, 5))
        (True, False)
        """
        return all(_is_held(one, other.classes) for one in self.classes)

    def __contains__(self, instant: int) -> bool:
        """Whether the instant is an edge."""
        return any((instant - residue) % modulus == 0 for modulus, residue in self.classes)

    def contains(self, instant: int) -> bool:
        """Whether the instant is an edge; the same as ``instant in edges``."""
        return instant in self

    def between(self, start: int, end: int) -> Iterator[int]:
        """The edges e with start <= e < end, in order, each once.

        >>> list(EdgeSet.of((20, 0), (30, 0)).between(-20, 61))
        [-20, 0, 20, 30, 40, 60]
        """
        progressions = (range(start + (residue - start) % modulus, end, modulus) for modulus, residue in self.classes)
        return (instant for instant, _ in groupby(heapq.merge(*progressions)))

    def shifted(self, by: int) -> EdgeSet:
        """The same edges, all later by that many seconds.

        >>> EdgeSet.of((10, 0), (10, 8)).shifted(5).classes
        ((10, 3), (10, 5))
        """
        return EdgeSet(tuple((modulus, residue + by) for modulus, residue in self.classes))

    def __and__(self, other: EdgeSet) -> EdgeSet:
        """The instants that are edges of both sets.

        >>> (EdgeSet.of((4, 0), (6, 1)) & EdgeSet.of((6, 4), (10, 3))).classes
        ((12, 4), (30, 13))
        """
        met = (_intersection(one, another) for one in self.classes for another in other.classes)
        return EdgeSet(tuple(common for common in met if common is not None))

    def rate(self) -> Fraction:
        """Edges per second; see ``measure`` for whether it is exact.

        >>> EdgeSet.of((20, 0), (30, 0), (40, 0)).rate()
        Fraction(1, 15)
        """
        return self.measure().value

    def by_rate(self) -> tuple[float, Fraction, tuple[ResidueClass, ...]]:
        """A key to sort by, fewest edges first; as floats rates compare ten times faster, and nearly always differ."""
        rate = self.rate()
        return float(rate), rate, self.classes

    def measure(self, work_budget: int = WORK_BUDGET) -> Rate:
        """Edges per second and whether that is exact; past the budget they are counted on a horizon, to about 0.1 %.

        >>> EdgeSet.of((15, 0), (17, 0), (19, 0)).measure()
        Rate(value=Fraction(271, 1615), is_exact=True)
        """
        return _measured_relative(self.classes, work_budget)


def union_rate(left: EdgeSet, right: EdgeSet) -> Fraction:
    """Edges per second of the union, without building it: ``(left | right).rate()``, faster.

    >>> union_rate(EdgeSet.of((2, 0)), EdgeSet.of((3, 0)))
    Fraction(2, 3)
    """
    return _measured_relative(_maximal(left.classes + right.classes), WORK_BUDGET).value


def common_classes(classes: Iterable[ResidueClass], limit: int) -> tuple[tuple[ResidueClass, ...], bool]:
    """The coarsest classes that subsets of these have in common; and whether these are all, or more than the limit.

    >>> common_classes([(12, 0), (18, 6), (30, 0)], 10)
    (((30, 0), (18, 6), (12, 0), (6, 0)), True)
    >>> common_classes([(60, 10), (60, 30)], 10)
    (((60, 30), (60, 10), (20, 10)), True)
    """
    given = set(classes)
    instant = common_instant(given)
    if instant is not None:
        moduli = _common_divisors({modulus for modulus, _ in given}, limit)
        return tuple((modulus, instant % modulus) for modulus in sorted(moduli, reverse=True)), len(moduli) <= limit
    known = set(given)
    for modulus, residue in sorted(given, reverse=True):
        if len(known) > limit:
            break
        widths = {gcd(modulus, other, residue - start) for other, start in known}
        known |= {(width, residue % width) for width in widths}
    return tuple(sorted(known, reverse=True)), len(known) <= limit


def _common_divisors(numbers: set[int], limit: int) -> set[int]:
    """The same where all classes hold one instant: plain numbers are several times faster."""
    known, closed = set(numbers), set[int]()
    for number in sorted(numbers, reverse=True):
        if len(known) > limit:
            break
        fresh = {number, *map(gcd, closed, repeat(number))}
        closed |= fresh
        known |= fresh
    return known


def common_instant(classes: Iterable[ResidueClass]) -> int | None:
    """An instant that all the classes hold; None if there is none.

    >>> common_instant([(60, 10), (90, 40)]), common_instant([(60, 10), (90, 30)])
    (130, None)
    """
    instant, period = 0, 1
    for modulus, residue in classes:
        shared = gcd(period, modulus)
        if (residue - instant) % shared:
            return None
        step = modulus // shared
        instant += period * ((residue - instant) // shared * pow(period // shared, -1, step) % step)
        period *= step
    return instant


def multiples_among(known: Collection[int], number: int, largest: int) -> Iterable[int]:
    """The known multiples of a number: by walking them, or by trying all that are known, whichever is shorter.

    >>> [list(multiples_among([4, 6, 9], number, largest=9)) for number in (2, 4)]
    [[4, 6], [4]]
    """
    if largest // number < len(known):
        return [multiple for multiple in range(number, largest + 1, number) if multiple in known]
    return [other for other in known if other % number == 0]


def _canonical(classes: Iterable[ResidueClass]) -> tuple[ResidueClass, ...]:
    maximal = _maximal(classes)
    if _are_multiples(maximal):
        return maximal
    while (wider := _widened(maximal)) is not None:
        maximal = _maximal((*maximal, wider))
    return maximal


def _are_multiples(classes: Iterable[ResidueClass]) -> bool:
    """Whether all contain 0; then no class is held together that none holds alone: a prime times its gcd escapes."""
    return not any(residue for _, residue in classes)


def _maximal(classes: Iterable[ResidueClass]) -> tuple[ResidueClass, ...]:
    """The classes, sorted, without those that lie within another; plain loops, for the search spends its time here."""
    kept: list[ResidueClass] = []
    for modulus, residue in sorted(set(classes)):
        for kept_modulus, kept_residue in kept:
            if modulus % kept_modulus == 0 and residue % kept_modulus == kept_residue:
                break
        else:
            kept.append((modulus, residue))
    return tuple(kept)


def _widened(classes: Sequence[ResidueClass]) -> ResidueClass | None:
    """A class p times as dense as one of these that they fill, each of its p parts within a single one of them."""
    for modulus, residue in classes:
        for prime in _primes(modulus):
            # Each part lies in a class of its own, or some class would hold the whole: p parts take p classes.
            if prime > len(classes):
                break
            wider = modulus // prime
            parts = ((modulus, (residue + part * wider) % modulus) for part in range(1, prime))
            if all(_holds_alone(classes, part) for part in parts):
                return wider, residue % wider
    return None


def _holds_alone(classes: Iterable[ResidueClass], part: ResidueClass) -> bool:
    modulus, residue = part
    return any(modulus % wider == 0 and residue % wider == wanted for wider, wanted in classes)


def _is_held(part: ResidueClass, classes: Sequence[ResidueClass]) -> bool:
    """Whether the classes together hold the part: seen from inside it, nothing is left over."""
    if _holds_alone(classes, part):
        return True
    if _are_multiples(classes):
        return False
    inside = _maximal(seen for one in classes if (seen := _seen_from(part, one)) is not None)
    if sum(Fraction(1, modulus) for modulus, _ in inside) < 1:
        return False
    try:
        left_over, _ = _Count(WORK_BUDGET).left_over(inside)
    except _WorkBudgetSpentError:
        return False
    return left_over == 0


def _seen_from(place: ResidueClass, seen: ResidueClass) -> ResidueClass | None:
    """The numbers k for which the place's k-th instant is in the seen class, as a class; None: there are none."""
    modulus, residue = place
    common = gcd(modulus, seen[0])
    distance = seen[1] - residue
    if distance % common:
        return None
    inner = seen[0] // common
    return inner, distance // common * pow(modulus // common, -1, inner) % inner


def _intersection(one: ResidueClass, other: ResidueClass) -> ResidueClass | None:
    seen = _seen_from(one, other)
    return None if seen is None else (one[0] * seen[0], one[1] + one[0] * seen[1])


@lru_cache(maxsize=1 << 14)
def _measured_relative(classes: tuple[ResidueClass, ...], work_budget: int) -> Rate:
    if not classes:
        return Rate(Fraction(0), is_exact=True)
    unit, relative = _relative(classes)
    rate = _measured(relative, work_budget)
    return Rate(rate.value / unit, rate.is_exact)


def _relative(classes: Sequence[ResidueClass]) -> tuple[int, tuple[ResidueClass, ...]]:
    """The classes seen from an instant of the first, in the largest unit that fits all: equal patterns become equal."""
    origin = classes[0][1]
    moved = [(modulus, (residue - origin) % modulus) for modulus, residue in classes]
    unit = gcd(*(number for pair in moved for number in pair))
    return unit, tuple(sorted((modulus // unit, residue // unit) for modulus, residue in moved))


@lru_cache(maxsize=1 << 14)
def _measured(classes: tuple[ResidueClass, ...], work_budget: int) -> Rate:
    try:
        left_over, period = _Count(work_budget).left_over(classes)
    except _WorkBudgetSpentError:
        return Rate(_counted_on_horizon(classes), is_exact=False)
    return Rate(1 - Fraction(left_over, period), is_exact=True)


class _WorkBudgetSpentError(Exception):
    """The exact count would take more work than it was given."""


class _Count:
    """One exact count: the answers so far, by relative classes, and the work that is left."""

    def __init__(self, work_budget: int) -> None:
        self._answers: dict[tuple[ResidueClass, ...], tuple[int, int]] = {}
        self._work_left = work_budget

    def left_over(self, classes: Sequence[ResidueClass]) -> tuple[int, int]:
        """How many instants of a common period none of the (maximal) classes holds, and that period."""
        if not classes:
            return 1, 1
        if len(classes) == 1:
            return classes[0][0] - 1, classes[0][0]
        if len(classes) == 2:
            return _left_over_by_two(*classes)
        unit, relative = _relative(classes)
        if relative not in self._answers:
            self._work_left -= len(relative)
            if self._work_left < 0:
                raise _WorkBudgetSpentError
            components = _components(relative)
            if len(components) == 1:
                answer = self._by_remainder(relative)
            else:
                parts = [self.left_over(component) for component in components]
                answer = prod(count for count, _ in parts), prod(period for _, period in parts)
            self._answers[relative] = answer
        count, period = self._answers[relative]
        return (unit - 1) * period + count, unit * period

    def _by_remainder(self, classes: Sequence[ResidueClass]) -> tuple[int, int]:
        """The same for classes that hang together: one branch per remainder asked for, and one for all the others."""
        shares = Counter(prime for modulus, _ in classes for prime in _primes(modulus))
        prime = max(shares, key=lambda candidate: (shares[candidate], candidate))
        free = [one for one in classes if one[0] % prime]
        asked: dict[int, list[ResidueClass]] = {}
        for modulus, residue in classes:
            if modulus % prime == 0:
                asked.setdefault(residue % prime, []).append((modulus // prime, residue // prime))
        branches = [(prime - len(asked), self.left_over(free))]
        for remainder, held in asked.items():
            moved = [(modulus, (residue - remainder) * pow(prime, -1, modulus) % modulus) for modulus, residue in free]
            branches.append((1, self.left_over(_maximal(held + moved))))
        period = lcm(*(length for _, (_, length) in branches))
        return sum(weight * count * (period // length) for weight, (count, length) in branches), prime * period


def _left_over_by_two(one: ResidueClass, other: ResidueClass) -> tuple[int, int]:
    """How many instants of the common period neither class holds, and that period: they meet once in it, or never."""
    (modulus, residue), (width, place) = one, other
    period = lcm(modulus, width)
    meets = (place - residue) % gcd(modulus, width) == 0
    return period - period // modulus - period // width + meets, period


def _components(classes: Sequence[ResidueClass]) -> list[list[ResidueClass]]:
    """The classes in groups, such that the moduli of different groups share no prime."""
    groups: list[tuple[int, list[ResidueClass]]] = []
    for one in classes:
        product, members = one[0], [one]
        apart: list[tuple[int, list[ResidueClass]]] = []
        for group in groups:
            if gcd(group[0], one[0]) > 1:
                product *= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (product, members)]
    return [members for _, members in groups]


def _counted_on_horizon(classes: Sequence[ResidueClass]) -> Fraction:
    horizon = int(HORIZON_EDGES / sum(Fraction(1, modulus) for modulus, _ in classes))
    edges: set[int] = set()
    for modulus, residue in classes:
        edges.update(range(residue, horizon, modulus))
    return Fraction(len(edges), horizon)


@lru_cache(maxsize=1 << 12)
def _primes(number: int) -> tuple[int, ...]:
    """The primes that divide the number, rising."""
    primes: list[int] = []
    candidate = 2
    while candidate * candidate <= number:
        if number % candidate == 0:
            primes.append(candidate)
            while number % candidate == 0:
                number //= candidate
        candidate += 1
    return (*primes, number) if number > 1 else tuple(primes)
