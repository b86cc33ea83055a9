"""Tiers that nobody asked for but that may pay: factor windows, and unions of edges.

Among tumbling tiers, those worth having are few: if a tier is replaced by the coarsest class of edges that still
serves all its readers, no reader pays more. So the closure of the declared windows' own coarsest classes under
"coarsest common class" (for windows without an offset: the gcd) holds an optimal choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import gcd, lcm
from typing import TYPE_CHECKING, assert_never

from stairwise.aggregate import Sharing
from stairwise.factor_windows import divisors, instances
from stairwise.graph import coarsest_class
from stairwise.tiers import Tier, composite_tier, factor_tier
from stairwise.window import FixedWindow
from stairwise.window_text import table_name

if TYPE_CHECKING:
    from stairwise.edges import EdgeSet, ResidueClass

CLOSURE_LIMIT = 4  # classes per declared window; generated workloads have at most 1.7
COVERING_LIMIT = 200  # hopping helpers that are all looked at; beyond that, those at the ends of their ranges


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tiers to consider, coarsest first, and whether an optimal choice is surely among them."""

    tiers: tuple[Tier, ...]
    is_whole: bool


def factor_candidates(declared: Sequence[Tier], semantics: Sharing) -> Candidates:
    """The factor windows worth considering for these tiers.

    >>> from stairwise.tiers import Horizon, declared_tier
    >>> tiers = [declared_tier(f"{r}s", "", FixedWindow(r, r), Horizon()) for r in (20, 30, 40)]
    >>> [tier.name for tier in factor_candidates(tiers, Sharing.DISJOINT).tiers]
    ['10s']
    """
    picked = set(_equal_range(declared))
    match semantics:
        case Sharing.HOLISTIC:
            return Candidates(_named(picked, declared), is_whole=True)
        case Sharing.DISJOINT:
            classes, is_whole = closure(declared)
        case Sharing.OVERLAPPING:
            classes, is_whole = closure(declared)
            every = _every_covering(declared)
            picked.update(_covering(declared) if every is None else every)
            is_whole = is_whole and every is not None
        case _:
            assert_never(semantics)
    windows = {FixedWindow(modulus, modulus, residue) for modulus, residue in classes}
    sparser = (_sparser if semantics is Sharing.OVERLAPPING else _end_to_end)(declared, picked)
    return Candidates(_named(windows | picked | set(sparser), declared), is_whole)


def _named(windows: set[FixedWindow], declared: Sequence[Tier]) -> tuple[Tier, ...]:
    taken = {tier.window for tier in declared}
    unique = _Names(tier.name for tier in declared)
    fresh = sorted(windows - taken, key=lambda window: (-window.slide, -window.range, window.origin))
    return tuple(factor_tier(unique.name(table_name(str(window))), window) for window in fresh)


def value_tiers(declared: Sequence[Tier]) -> tuple[Tier, ...]:
    """Tumbling tiers that keep each value with its count, from which holistic aggregates can be read."""
    unique = _Names(tier.name for tier in declared)
    windows = [FixedWindow(modulus, modulus, residue) for modulus, residue in closure(declared)[0]]
    return tuple(
        factor_tier(unique.name(f"{table_name(str(window))}_values"), window, keeps_values=True) for window in windows
    )


class _Names:
    """Names for new tiers that no declared one has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.lower() for name in taken}

    def name(self, wanted: str) -> str:
        name = wanted
        while name.lower() in self._taken:
            name = f"{name}_tier"
        self._taken.add(name.lower())
        return name


def closure(declared: Iterable[Tier]) -> tuple[tuple[ResidueClass, ...], bool]:
    """The coarsest common classes of all subsets of the tiers; and whether these are all, or more than the limit.

    >>> from stairwise.tiers import Horizon, declared_tier
    >>> tiers = [declared_tier(f"{r}s", "", FixedWindow(r, r), Horizon()) for r in (12, 18, 30)]
    >>> closure(tiers)
    (((30, 0), (18, 0), (12, 0), (6, 0)), True)
    """
    generators = sorted({coarsest_class(tier) for tier in declared}, reverse=True)
    limit = CLOSURE_LIMIT * len(generators) + 64
    if not any(residue for _, residue in generators):
        found = _divisors_in_common((modulus for modulus, _ in generators), limit)
        return tuple((modulus, 0) for modulus in sorted(found, reverse=True)), len(found) <= limit
    known = set(generators)
    for place in generators:
        if len(known) > limit:
            break
        known |= _commons(place, known)
    return tuple(sorted(known, reverse=True)), len(known) <= limit


def _commons(place: ResidueClass, known: set[ResidueClass]) -> set[ResidueClass]:
    """The coarsest class that holds both the place and another, for each known other."""
    modulus, residue = place
    common = {gcd(modulus, other, residue - start) for other, start in known}
    return {(wider, residue % wider) for wider in common}


def _divisors_in_common(numbers: Iterable[int], limit: int) -> set[int]:
    """The same where every class holds 0: plain numbers are several times faster."""
    known = set(numbers)
    for number in sorted(known, reverse=True):
        if len(known) > limit:
            break
        known |= {gcd(number, other) for other in known}
    return known


def _equal_range(declared: Sequence[Tier]) -> Iterator[FixedWindow]:
    """One hopping window for several of one range: each of them keeps every k-th of its results."""
    windows = _fixed(declared)
    for length in sorted({window.range for window in windows}):
        group = [window for window in windows if window.range == length]
        if len(group) > 1:
            yield from (FixedWindow(length, slide, origin) for slide, origin in _slides(group))


def _every_covering(declared: Sequence[Tier]) -> set[FixedWindow] | None:
    """All windows from which some declared one could be covered; None if there are more than the limit.

    Edges of the declared windows are multiples of one unit, and so are those of helpers that are worth their cost.
    """
    windows = _fixed(declared)
    start = windows[0].origin if windows else 0
    unit = gcd(*(size for window in windows for size in (window.range, window.slide, window.origin - start)))
    found: set[FixedWindow] = set()
    for window in windows:
        for slide in divisors(window.slide // unit):
            lengths = range(window.range, slide * unit - 1, -slide * unit)
            if len(lengths) > COVERING_LIMIT:
                return None
            found.update(FixedWindow(length, slide * unit, window.origin % (slide * unit)) for length in lengths)
        if len(found) > COVERING_LIMIT:
            return None
    return found


def _covering(declared: Sequence[Tier]) -> Iterator[FixedWindow]:
    """Hopping helpers for readers that may overlap: with each common slide, those at the ends of their ranges.

    With the slide and the parent given, cost is a concave function of a helper's range, so that only the shortest and
    the longest matter: the slide itself or just longer than the parent, and as long as a reader.
    """
    windows = _fixed(declared)
    lengths = sorted({window.range for window in windows})
    for slide, origin, rest in _phases(windows):
        shortest = slide + rest
        ends = {length + (rest - length) % slide for length in (shortest, *lengths)}
        for length in sorted(end for end in ends if end >= slide):
            helper = FixedWindow(length, slide, origin)
            if _may_pay(helper, [window for window in windows if _is_served(window, helper)], windows):
                yield helper


def _phases(windows: Sequence[FixedWindow]) -> list[tuple[int, int, int]]:
    """The coarsest (slide, origin, range modulo slide) that subsets of the windows have in common."""
    known = {(window.slide, window.origin, window.range % window.slide) for window in windows}
    for slide, origin, rest in sorted(known, reverse=True):
        common = {(gcd(slide, other, origin - start, rest - end), origin, rest) for other, start, end in known}
        known |= {(width, begin % width, end % width) for width, begin, end in common}
        if len(known) > CLOSURE_LIMIT * len(windows) + 64:
            break
    return sorted(known, reverse=True)


def _sparser(declared: Sequence[Tier], hopping: Iterable[FixedWindow]) -> Iterator[FixedWindow]:
    """Sparser windows of a hopping one's range: picking them from its results is all that they cost.

    For each reader that fires less often than the range is long, the sparsest that it can read.
    """
    classes = sorted({coarsest_class(tier) for tier in declared})
    for window in _overlapping(declared, hopping):
        for modulus, residue in classes:
            slides = range(window.range - window.range % window.slide, window.slide, -window.slide)
            slide = next((slide for slide in slides if modulus % slide == 0), None)
            if slide is not None and (residue - window.origin) % window.slide == 0:
                yield FixedWindow(window.range, slide, residue % slide)


def _end_to_end(declared: Sequence[Tier], hopping: Iterable[FixedWindow]) -> Iterator[FixedWindow]:
    """Of a hopping one's windows those that follow one another, for readers that must not count twice."""
    classes = sorted({coarsest_class(tier) for tier in declared})
    for window in _overlapping(declared, hopping):
        if window.range % window.slide == 0:
            for residue in [residue for modulus, residue in classes if modulus % window.range == 0]:
                if (residue - window.origin) % window.slide == 0:
                    yield FixedWindow(window.range, window.range, residue % window.range)


def _overlapping(declared: Sequence[Tier], hopping: Iterable[FixedWindow]) -> list[FixedWindow]:
    return [window for window in (*_fixed(declared), *hopping) if not window.is_tumbling]


def _fixed(declared: Iterable[Tier]) -> list[FixedWindow]:
    return [tier.window for tier in declared if isinstance(tier.window, FixedWindow)]


def _nests(window: FixedWindow, helper: FixedWindow) -> bool:
    return window.slide % helper.slide == 0 and (window.origin - helper.origin) % helper.slide == 0


def _is_served(window: FixedWindow, helper: FixedWindow) -> bool:
    longer = window.range - helper.range
    return longer >= 0 and longer % helper.slide == 0 and _nests(window, helper)


def _may_pay(helper: FixedWindow, readers: Sequence[FixedWindow], windows: Sequence[FixedWindow]) -> bool:
    """Whether a hopping helper is likely to beat the tumbling one of its slide, which serves the same readers.

    It does only if it has fewer instances than its readers have together, unless other helpers read it too, or a
    declared window's results hold its own.
    """
    if any(window.range == helper.range and _nests(helper, window) for window in windows):
        return True
    period = lcm(*(window.range for window in windows))
    return sum(instances(reader, period) for reader in readers) >= instances(helper, period) - 1


def _slides(windows: Sequence[FixedWindow]) -> tuple[ResidueClass, ...]:
    """The closure of the windows' begins."""
    begins = sorted({(window.slide, window.origin) for window in windows}, reverse=True)
    known = set(begins)
    for place in begins:
        known |= _commons(place, known)
    return tuple(sorted(known, reverse=True))


def composite(edges: EdgeSet) -> Tier:
    """The tier that cuts time at these edges, named by them, so that the same edges always have the same name."""
    digest = sha256(repr(edges.classes).encode()).hexdigest()[:8]
    return composite_tier(f"cut_{digest}", edges)
