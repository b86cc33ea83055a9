"""Helpers whose windows overlap: for readers of one range, and for readers that may count a row twice.

Input: windows of fixed range and slide. Output: windows that may pay as helpers, some of them declared ones again.

Each window of a range is some result of a hopping one that begins wherever it does, whatever the aggregate. Where rows
may be counted twice (min, max), a window also covers longer ones. Time: quadratic in the windows. Space: what comes
out, which is limited. First appeared: covering in Factor Windows (2022), with helpers of the readers' ranges only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from math import gcd, lcm
from typing import TYPE_CHECKING

from stairwise.edges import common_classes, multiples_among
from stairwise.factor_windows import divisors, instances, nests_in
from stairwise.window import FixedWindow

if TYPE_CHECKING:
    from stairwise.edges import ResidueClass

COVERING_LIMIT = 200  # helpers that cover others: all there are, or the most promising
PHASES_PER_WINDOW = 4
_Phase = tuple[int, int, int]  # slide, origin, range modulo slide


def of_one_range(windows: Iterable[FixedWindow], classes: Sequence[ResidueClass]) -> set[FixedWindow]:
    """Windows that pass on results of one range: a hopping one for several, and of a hopping one those that tile.

    >>> found = of_one_range([FixedWindow(60, 20), FixedWindow(60, 30)], [(180, 0)])
    >>> sorted(str(window) for window in found)
    ['1m', '1m every 10s', '1m every 20s', '1m every 30s']

    Args:
        windows: Who has which range.
        classes: Where readers of tiling windows have their edges.
    """
    groups: dict[int, list[FixedWindow]] = {}
    for window in windows:
        groups.setdefault(window.range, []).append(window)
    residues: dict[int, list[int]] = {}
    for modulus, residue in classes:
        residues.setdefault(modulus, []).append(residue)
    largest = max(residues, default=0)
    found: set[FixedWindow] = set()
    for length, group in groups.items():
        begins = {(window.slide, window.origin) for window in group}
        if not all(window.is_tumbling for window in group):
            for multiple in multiples_among(residues, length, largest):
                begins.update((length, residue % length) for residue in residues[multiple])
        common, _ = common_classes(begins, PHASES_PER_WINDOW * len(begins) + 64)
        found.update(FixedWindow(length, slide, origin) for slide, origin in common)
    return found


def all_covering(windows: Sequence[FixedWindow]) -> set[FixedWindow] | None:
    """All windows from which some of these could be covered; None if there are more than the limit.

    Edges of the windows are multiples of one unit, and so are those of helpers that are worth their cost.
    """
    start = windows[0].origin if windows else 0
    unit = gcd(*(size for window in windows for size in (window.range, window.slide, window.origin - start)))
    found: set[FixedWindow] = set()
    for window in windows:
        for slide in divisors(window.slide // unit):
            lengths = range(window.range, slide * unit - 1, -slide * unit)
            if len(found) + len(lengths) > 2 * COVERING_LIMIT:
                return None
            found.update(FixedWindow(length, slide * unit, window.origin % (slide * unit)) for length in lengths)
    return found if len(found) <= COVERING_LIMIT else None


def best_covering(windows: Sequence[FixedWindow]) -> list[FixedWindow]:
    """The most promising covering windows: with each common slide, those at the ends of their ranges.

    With the slide and the parent given, cost is a concave function of a helper's range, so that only the shortest and
    the longest matter: the slide itself or just longer than the parent, and as long as a reader.
    """
    promise: dict[FixedWindow, float] = {}
    of_slide: dict[int, list[FixedWindow]] = {}
    for window in windows:
        of_slide.setdefault(window.slide, []).append(window)
    ranges = {window.range for window in windows}
    period = lcm(*ranges)
    for phase in _phases(windows):
        promise.update(_promising(phase, of_slide, ranges, period))
    return nlargest(COVERING_LIMIT, promise, key=lambda one: (promise[one], one.slide, one.range, one.origin))


def _promising(
    phase: _Phase, of_slide: Mapping[int, Sequence[FixedWindow]], ranges: Iterable[int], period: int
) -> Iterator[tuple[FixedWindow, float]]:
    """The helpers of one phase that may beat the tumbling one of its slide, and about what they save of their cost.

    Such a helper has fewer windows than its readers have together, unless a declared window's results hold its own.
    """
    slide, origin, rest = phase
    begin = FixedWindow(slide, slide, origin)
    coarser = (window for multiple in multiples_among(of_slide, slide, max(of_slide)) for window in of_slide[multiple])
    served = sorted(
        (window.range, instances(window, period))
        for window in coarser
        if window.range % slide == rest and nests_in(window, begin)
    )
    finer = (window for step, group in of_slide.items() if slide % step == 0 for window in group)
    lengths = held = {window.range for window in finer if window.range % slide == rest and nests_in(begin, window)}
    longest, _ = served[-1]
    if sum(count for _, count in served) >= (period - longest) // slide:
        lengths = {length + (rest - length) % slide for length in (slide + rest, *ranges) if length >= slide}
    wanted = 0
    for length in sorted((length for length in lengths if slide <= length <= longest), reverse=True):
        while served and served[-1][0] >= length:
            _, count = served.pop()
            wanted += count
        helper = FixedWindow(length, slide, origin)
        own = instances(helper, period)
        if wanted >= own - 1 or length in held:
            yield helper, (length / slide - 1) * (wanted / own)


def _phases(windows: Sequence[FixedWindow]) -> list[_Phase]:
    """The coarsest phases that subsets of the windows have in common."""
    known = {(window.slide, window.origin, window.range % window.slide) for window in windows}
    for slide, origin, rest in sorted(known, reverse=True):
        common = {(gcd(slide, other, origin - start, rest - end), origin, rest) for other, start, end in known}
        known |= {(width, begin % width, end % width) for width, begin, end in common}
        if len(known) > PHASES_PER_WINDOW * len(windows) + 64:
            break
    return sorted(known, reverse=True)


def sparser(hopping: Iterable[FixedWindow], classes: Sequence[ResidueClass]) -> set[FixedWindow]:
    """Sparser windows of a hopping one's range: picking them from its results is all that they cost.

    For each reader that fires less often than the range is long, the sparsest that it can read, up to the limit.
    """
    found: set[FixedWindow] = set()
    for window in hopping:
        if len(found) > COVERING_LIMIT:
            break
        for modulus, residue in classes:
            if modulus % window.slide == 0 and (residue - window.origin) % window.slide == 0:
                slides = [window.slide * times for times in divisors(modulus // window.slide)]
                slide = max(slide for slide in slides if slide <= window.range)
                found.add(FixedWindow(window.range, slide, residue % slide))
    return found
