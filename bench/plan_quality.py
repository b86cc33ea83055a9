"""How good the plans are: what they cost over the optimum, and whether what they say about it is true.

Ten sets of each recipe, in the paper's model with one event a second. The optima come from ``reference``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import fmean

from generators import Generator, Recipe, Seeding, Shape, draw
from reference import MOST_UNIONS, cheapest_factors, cheapest_unions

from stairwise.aggregate import Sharing
from stairwise.options import Options, Pricing, TiersAllowed
from stairwise.planner import Found, as_in_paper, best, unshared
from stairwise.rollup import Estimates
from stairwise.window import FixedWindow
from stairwise.workload import Workload

SIZES = (5, 10, 15, 20)
SEEDS = 10
SOLVER_TOLERANCE = Fraction(1, 10**6)  # HiGHS closes its gap to that much of the raw rows
MEAN_OVER_OPTIMUM, MAX_OVER_OPTIMUM = 1.005, 1.03

HEADER = (
    "set", "N", "cost / optimum, mean", "max", "proven", "algorithm 3 / optimum, mean", "max",
    "algorithm 3 / composite, mean", "composite / its bound, mean", "composite proven", "composite / optimum, mean",
    "max",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The plans for one set, and its optima.

    Attributes:
        optimum: The least cost with factor windows.
        union_optimum: The least cost with any unions; None where it was not worked out.
    """

    windows: tuple[FixedWindow, ...]
    sharing: Sharing
    unshared: Fraction
    paper_1: Fraction
    paper_3: Fraction
    factor: Found
    composite: Found
    optimum: Fraction
    union_optimum: Fraction | None

    @property
    def over_optimum(self) -> float:
        """What the plan with factor windows costs, the optimum being 1."""
        return float(_cost(self.factor) / self.optimum)

    def slips(self) -> Iterator[str]:
        """Whatever is wrong with the plans."""
        factor, composite = _cost(self.factor), _cost(self.composite)
        known = {"unshared": self.unshared, "paper-1": self.paper_1, "paper-3": self.paper_3}
        yield from (f"factor {factor} above {name} {cost}" for name, cost in known.items() if factor > cost)
        if composite > factor:
            yield f"composite {composite} above factor {factor}"
        yield from _false_claims("factor", self.factor, self.optimum)
        if self.union_optimum is not None:
            yield from _false_claims("composite", self.composite, self.union_optimum)
        elif (bound := Fraction(self.composite.lower_bound)) > composite:
            yield f"composite: bound {bound} above the plan's own {composite}"


def _cost(found: Found) -> Fraction:
    return Fraction(found.solution.cost)


def _false_claims(name: str, found: Found, optimum: Fraction) -> Iterator[str]:
    cost, bound = _cost(found), Fraction(found.lower_bound)
    if cost < optimum * (1 - SOLVER_TOLERANCE):
        yield f"{name} {cost} below the optimum {optimum}: either the plan is not legal or the reference is wrong"
    if bound > min(optimum, cost):
        yield f"{name}: bound {bound} above the optimum {optimum}"
    if found.is_proven and cost > optimum:
        yield f"{name} {cost} called optimal, but {optimum} is"


def measure(windows: tuple[FixedWindow, ...], sharing: Sharing) -> Measured:
    """Plan a set in all ways."""
    texts = tuple(f"{window.range}s every {window.slide}s" for window in windows)
    options = Options(pricing=Pricing.PAPER, sharing=sharing)
    problem = Workload.of_windows(texts, "min", Estimates()).problem(options)
    paper_3 = as_in_paper(problem, has_factors=True)
    has_union_optimum = sharing is Sharing.DISJOINT and len(windows) <= MOST_UNIONS
    return Measured(
        windows=windows,
        sharing=sharing,
        unshared=_cost(unshared(problem)),
        paper_1=_cost(as_in_paper(problem, has_factors=False)),
        paper_3=_cost(paper_3),
        factor=best(problem, TiersAllowed.FACTOR, paper_3),
        composite=best(problem, TiersAllowed.COMPOSITE, paper_3),
        optimum=cheapest_factors(windows, overlapping=sharing is Sharing.OVERLAPPING),
        union_optimum=cheapest_unions(windows) if has_union_optimum else None,
    )


@dataclass(frozen=True, slots=True)
class Quality:
    """The table, and what was wrong."""

    rows: tuple[tuple[str, ...], ...]
    slips: tuple[str, ...]


def quality(sizes: Sequence[int] = SIZES, seeds: int = SEEDS) -> Quality:
    """Measure every recipe, in both readings of the seed and, for hopping windows, with and without overlap."""
    rows: list[tuple[str, ...]] = []
    slips: list[str] = []
    for generator, seeding, (shape, sharing), size in product(Generator, Seeding, _KINDS, sizes):
        recipe = Recipe(generator=generator, shape=shape, seeding=seeding, size=size)
        name = f"{recipe}, {sharing.value}"
        sets = [measure(draw(recipe, seed), sharing) for seed in range(seeds)]
        rows.append(_row(name.replace(f"-{size}", "", 1), size, sets))
        slips += [f"{name}: {slip}: {_text(one.windows)}" for one in sets for slip in one.slips()]
        ratios = [one.over_optimum for one in sets]
        if fmean(ratios) > MEAN_OVER_OPTIMUM or max(ratios) > MAX_OVER_OPTIMUM:
            slips.append(f"{name}: cost over optimum {fmean(ratios):.4f} on average, {max(ratios):.4f} at most")
        print("  ".join(rows[-1]), flush=True)
    return Quality(tuple(rows), tuple(slips))


_KINDS = (
    (Shape.TUMBLING, Sharing.DISJOINT), (Shape.HOPPING, Sharing.DISJOINT), (Shape.HOPPING, Sharing.OVERLAPPING),
)  # fmt: skip


def _row(name: str, size: int, sets: Sequence[Measured]) -> tuple[str, ...]:
    factor = [one.over_optimum for one in sets]
    paper = [float(one.paper_3 / one.optimum) for one in sets]
    gain = [float(one.paper_3 / _cost(one.composite)) for one in sets]
    gaps = [float(_cost(one.composite) / Fraction(one.composite.lower_bound)) for one in sets]
    unions = [float(_cost(one.composite) / one.union_optimum) for one in sets if one.union_optimum is not None]
    return (
        name, str(size), f"{fmean(factor):.4f}", f"{max(factor):.4f}", _share(one.factor.is_proven for one in sets),
        f"{fmean(paper):.2f}", f"{max(paper):.2f}", f"{fmean(gain):.2f}", f"{fmean(gaps):.3f}",
        _share(one.composite.is_proven for one in sets), f"{fmean(unions):.4f}" if unions else "",
        f"{max(unions):.4f}" if unions else "",
    )  # fmt: skip


def _share(answers: Iterator[bool]) -> str:
    told = list(answers)
    return f"{sum(told)}/{len(told)}"


def _text(windows: Sequence[FixedWindow]) -> str:
    return ",".join(f"{window.range}s every {window.slide}s" for window in windows)
