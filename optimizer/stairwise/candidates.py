"""Tiers that nobody asked for but that may pay: factor windows, and unions of edges.

Among tumbling tiers, those worth having are few: if a tier is replaced by the coarsest class of edges that still
serves all its readers, no reader pays more. So the closure of the declared windows' own coarsest classes under
"coarsest common class" (for windows without an offset: the gcd) holds an optimal choice.

Where windows overlap, others join them (see ``hopping``). For these there is no such argument in general, only in the
cases that ``factor_candidates`` says; elsewhere a choice may be missing, and is not called optimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, assert_never

from stairwise.aggregate import Sharing
from stairwise.edges import common_classes, common_instant
from stairwise.graph import coarsest_class
from stairwise.hopping import all_covering, best_covering, of_one_range, sparser
from stairwise.tiers import How, Tier, composite_tier, factor_tier
from stairwise.window import FixedWindow
from stairwise.window_text import table_name

if TYPE_CHECKING:
    from stairwise.cost import CostModel
    from stairwise.edges import EdgeSet, ResidueClass
    from stairwise.network import Number

CLOSURE_LIMIT = 4  # classes per declared window; generated workloads have at most 1.7


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tiers to consider.

    Attributes:
        tiers: The tiers, coarsest first.
        is_whole: Whether an optimal choice of factor windows is among them, but for the unseen ones.
        unseen: What hopping helpers that are not among them cost at least; None if none could pay.
    """

    tiers: tuple[Tier, ...]
    is_whole: bool
    unseen: Number | None


def factor_candidates(declared: Sequence[Tier], sharing: Sharing, model: CostModel) -> Candidates:
    """The factor windows worth considering for these tiers.

    >>> from stairwise.cost import PaperModel
    >>> from stairwise.tiers import Horizon, declared_tier
    >>> tiers = [declared_tier(f"{r}s", "", FixedWindow(r, r), Horizon()) for r in (20, 30, 40)]
    >>> [tier.name for tier in factor_candidates(tiers, Sharing.DISJOINT, PaperModel.of(tiers, eta=1)).tiers]
    ['10s']
    """
    match sharing:
        case Sharing.DISJOINT:
            return _for_slices(declared, model)
        case Sharing.OVERLAPPING:
            return _for_covering(declared)
        case Sharing.HOLISTIC:
            return _for_values(declared, model)
        case _:
            assert_never(sharing)


def _for_slices(declared: Sequence[Tier], model: CostModel) -> Candidates:
    """Tumbling windows, and hopping ones of one range.

    A hopping helper passes on its results to two windows of its range or more. If all edges are on one grid, a tumbling
    helper's origin follows from its range, so one of the two was declared. If not, there may be two helpers that differ
    in their origins. That pays nobody who pays for every window of a hopping tier, as long as slides divide ranges.
    """
    generators = sorted({coarsest_class(tier) for tier in declared})
    classes, is_closed = closure(declared)
    windows, fixed = _tumbling(classes), _fixed(declared)
    if common_instant(generators) is not None:
        passing, unseen = of_one_range(fixed, generators), None
    else:
        passing = of_one_range([*fixed, *windows], generators)
        never_pays = model.pays_per_window and all(window.range % window.slide == 0 for window in fixed)
        unseen = None if never_pays else _least_passing(generators, model, keeps_values=False)
    return Candidates(_named({*windows, *passing}, declared), is_whole=is_closed, unseen=unseen)


def _least_passing(classes: Sequence[ResidueClass], model: CostModel, *, keeps_values: bool) -> Number:
    """What three helpers of one range cost at least: a hopping one, and two of different origins that pick from it."""
    length = max(
        gcd(modulus, other)
        for (modulus, residue), (other, start) in combinations(classes, 2)
        if (residue - start) % gcd(modulus, other)
    )
    hopping = factor_tier("hopping", FixedWindow(length, max(1, length // 2)), keeps_values=keeps_values)
    tumbling = factor_tier("tumbling", FixedWindow(length, length), keeps_values=keeps_values)
    return sum(model.price(tier, tier, How.EQUAL_RANGE) for tier in (hopping, tumbling, tumbling))


def _for_covering(declared: Sequence[Tier]) -> Candidates:
    """Also hopping windows that cover others: all that there are, if these are few and there are no calendars."""
    fixed = _fixed(declared)
    generators = sorted({coarsest_class(tier) for tier in declared})
    classes, _ = closure(declared)
    every = all_covering(fixed)
    passing = sorted(of_one_range(fixed, generators), key=str)
    hopping = [*passing, *(best_covering(fixed) if every is None else sorted(every, key=str))]
    overlapping = [window for window in (*fixed, *hopping) if not window.is_tumbling]
    windows = {*_tumbling(classes), *hopping, *sparser(overlapping, generators)}
    is_whole = every is not None and len(fixed) == len(declared)
    return Candidates(_named(windows, declared), is_whole=is_whole, unseen=None if is_whole else 0)


def _for_values(declared: Sequence[Tier], model: CostModel) -> Candidates:
    """Hopping windows that pass on results, and tumbling ones that keep values, if the model can price them."""
    passing = _named(of_one_range(_fixed(declared), ()), declared)
    if not model.counts_values:
        return Candidates(passing, is_whole=True, unseen=None)
    classes, is_closed = closure(declared)
    keepers = tuple(
        factor_tier(f"{table_name(str(window))}_values", window, keeps_values=True) for window in _tumbling(classes)
    )
    generators = sorted({coarsest_class(tier) for tier in declared})
    aligned = common_instant(generators) is not None
    unseen = None if aligned else _least_passing(generators, model, keeps_values=True)
    return Candidates((*passing, *keepers), is_whole=is_closed, unseen=unseen)


def _tumbling(classes: Iterable[ResidueClass]) -> list[FixedWindow]:
    return [FixedWindow(modulus, modulus, residue) for modulus, residue in classes]


def _named(windows: set[FixedWindow], declared: Sequence[Tier]) -> tuple[Tier, ...]:
    taken = {tier.window for tier in declared}
    fresh = sorted(windows - taken, key=lambda window: (-window.slide, -window.range, window.origin))
    return tuple(factor_tier(table_name(str(window)), window) for window in fresh)


def closure(declared: Iterable[Tier]) -> tuple[tuple[ResidueClass, ...], bool]:
    """The coarsest common classes of all subsets of the tiers; and whether these are all, or more than the limit.

    >>> from stairwise.tiers import Horizon, declared_tier
    >>> tiers = [declared_tier(f"{r}s", "", FixedWindow(r, r), Horizon()) for r in (12, 18, 30)]
    >>> closure(tiers)
    (((30, 0), (18, 0), (12, 0), (6, 0)), True)
    """
    generators = {coarsest_class(tier) for tier in declared}
    return common_classes(generators, CLOSURE_LIMIT * len(generators) + 64)


def _fixed(declared: Iterable[Tier]) -> list[FixedWindow]:
    return [tier.window for tier in declared if isinstance(tier.window, FixedWindow)]


@lru_cache(maxsize=1 << 12)
def composite(edges: EdgeSet, *, keeps_values: bool = False) -> Tier:
    """The tier that cuts time at these edges, named by them, so that the same edges always have the same name."""
    digest = sha256(repr(edges.classes).encode()).hexdigest()[:8]
    return composite_tier(f"cut_{digest}{'_values' if keeps_values else ''}", edges, keeps_values=keeps_values)
