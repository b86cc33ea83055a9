"""The pipeline, on one screen: a workload becomes a problem, the problem is solved, the solution becomes a plan."""

from __future__ import annotations

import gc
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, gcd

from stairwise.aggregate import Sharing
from stairwise.final_aggregation import Technique, choose
from stairwise.graph import coarsest_class
from stairwise.instant import format_instant
from stairwise.network import Number, net_saving, runner_up
from stairwise.options import SKETCHES, Algorithm, Options, TiersAllowed
from stairwise.plan import Alternative, Plan, Search, Step, Totals
from stairwise.planner import Found, Problem, as_in_paper, best, unshared
from stairwise.quantity import percent
from stairwise.tiers import Horizon, How, Kind, Tier
from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow
from stairwise.workload import Workload


def plan_workload(workload: Workload, options: Options) -> Plan:
    """The plan for any workload."""
    with without_collections():
        return _planned(workload, options)


@contextmanager
def without_collections() -> Generator[None]:
    """Within it no garbage is looked for: a plan makes millions of small values and no cycles of them.

    To look at them again and again costs a fifth of the time, and more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _planned(workload: Workload, options: Options) -> Plan:
    problem = workload.problem(options)
    naive = unshared(problem)
    paper_1 = as_in_paper(problem, has_factors=False)
    paper_3 = as_in_paper(problem, has_factors=True)
    allowed = options.tiers
    if options.algorithm is Algorithm.PAPER_3 and allowed is TiersAllowed.NONE:
        allowed = TiersAllowed.FACTOR
    found = best(problem, allowed, paper_3)
    chosen = {
        Algorithm.BEST: found, Algorithm.PAPER_1: paper_1, Algorithm.PAPER_3: paper_3, Algorithm.UNSHARED: naive,
    }[options.algorithm]  # fmt: skip
    is_proven = found.is_proven and not found.solution.cost < chosen.solution.cost
    chosen = replace(chosen, lower_bound=found.lower_bound, is_proven=is_proven)
    rivals = Rivals(*(rival.solution.cost for rival in (naive, paper_1, paper_3)))
    return as_plan(workload, problem, replace(options, tiers=allowed), chosen, rivals)


@dataclass(frozen=True, slots=True)
class Rivals:
    """What the plans of others cost."""

    unshared: Number
    paper_1: Number
    paper_3: Number


def as_plan(workload: Workload, problem: Problem, options: Options, found: Found, rivals: Rivals) -> Plan:
    """What was found, as a plan, beside what others would cost."""
    chosen = _with_free_names(found)
    return Plan(
        rollup=workload.name,
        declaration=workload.declaration,
        search=Search(
            semantics=problem.sharing,
            cost_model=options.pricing,
            algorithm=options.algorithm,
            tiers_allowed=options.tiers,
        ),
        steps=_steps(problem, chosen, is_invertible=workload.is_invertible),
        totals=Totals(
            total=chosen.solution.cost,
            unshared=rivals.unshared,
            paper_1=rivals.paper_1,
            paper_3=rivals.paper_3,
            lower_bound=chosen.lower_bound,
            is_proven_optimal=chosen.is_proven,
            period_s=problem.model.period_s,
            unit=problem.model.unit,
        ),
        horizon=workload.horizon,
        measured=workload.measured,
        notes=(*workload.assumptions(options), *_notes(workload, problem, chosen)),
    ).check("planning")


def _with_free_names(found: Found) -> Found:
    """The same plan, where each invented tier has a name that no other tier has, whatever its case.

    The planners name tiers by what they are, and that may be the name that a declared window has been given.
    """
    tiers = list(found.graph.tiers)
    taken = {tier.name.lower() for tier in found.tiers if tier.kind is Kind.DECLARED}
    for node in found.solution.nodes:
        tier = tiers[node - 1]
        if tier.kind is not Kind.DECLARED:
            name = free_name(tier.name, taken)
            tiers[node - 1] = replace(tier, name=name)
            taken.add(name.lower())
    return replace(found, graph=replace(found.graph, tiers=tuple(tiers)))


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with something behind it as long as it is among those that are taken, in lower case.

    >>> free_name("10S", {"10s"})
    '10S_tier'
    """
    while name.lower() in taken:
        name += "_tier"
    return name


def _steps(problem: Problem, found: Found, *, is_invertible: bool) -> tuple[Step, ...]:
    return tuple(_step(problem, found, node, is_invertible=is_invertible) for node in found.solution.nodes)


def _step(problem: Problem, found: Found, node: int, *, is_invertible: bool) -> Step:
    graph, solution = found.graph, found.solution
    tier = graph.tiers[node - 1]
    reads = solution.parents[node] or 0
    parent = graph.tiers[reads - 1] if reads else None
    how = graph.how(reads, node)
    second = runner_up(graph.network, solution, node)
    return Step(
        tier=tier,
        reads=None if parent is None else parent.name,
        how=how,
        final=_technique(tier, parent, how, is_invertible=is_invertible),
        cost=problem.model.detail(tier, parent, how),
        runner_up=second and Alternative(graph.tiers[second[0] - 1].name if second[0] else None, second[1]),
        why=_why(found, node),
    )


def _technique(tier: Tier, parent: Tier | None, how: How, *, is_invertible: bool) -> Technique | None:
    """How windows that overlap are put together from the parent's slices."""
    if parent is None or tier.tiles or tier.range_s is None or isinstance(tier.window, CumulateWindow):
        return None
    if how not in {How.DISJOINT, How.VALUES}:
        return None
    return choose(ceil(tier.range_s * parent.rate), invertible=is_invertible)


def _why(found: Found, node: int) -> str:
    """What a tier is for."""
    tier = found.graph.tiers[node - 1]
    if tier.kind is Kind.DECLARED:
        return "You asked for it."
    readers = found.solution.parents.count(node)
    if not readers:
        return "No tier reads it."
    who = "1 tier reads" if readers == 1 else f"{readers} tiers read"
    saving = _share(net_saving(found.graph.network, found.solution, node), found.solution.cost)
    return f"{who} it; without it, the plan would cost {percent(abs(saving))} {'more' if saving > 0 else 'less'}."


def _share(part: Number, whole: Number) -> float:
    """One number over another, rounded once; as fractions, numbers of a thousand digits would be reduced first."""
    (many, per), (all_many, all_per) = part.as_integer_ratio(), whole.as_integer_ratio()
    return many * all_per / (per * all_many)


def _notes(workload: Workload, problem: Problem, found: Found) -> tuple[str, ...]:
    """What a reader of the plan should know of how it came about."""
    notes = _calendar_notes(found.tiers, workload.horizon)
    if problem.sharing is Sharing.HOLISTIC:
        notes += _holistic_notes(workload, counts_values=problem.model.counts_values)
    if any(not tier.needs.measure().is_exact for tier in found.tiers if tier.kind is Kind.COMPOSITE):
        notes.append("the edges of a composite tier were counted on a finite horizon, to about 0.1 %")
    return tuple(notes)


def _holistic_notes(workload: Workload, *, counts_values: bool) -> Iterator[str]:
    """Which aggregates need all values, and what would do instead."""
    holistic = [(name, each) for name, each in workload.aggregates if each.sharing is Sharing.HOLISTIC]
    if not holistic:
        return
    parts = [f"{', '.join(name for name, _ in holistic)}: an exact result needs all values, not the results of parts"]
    names = (each.definition.name for _, each in holistic)
    sketches = sorted({SKETCHES[name] for name in names if name in SKETCHES})
    if sketches:
        merge = (
            f"the sketch {sketches[0]} merges" if len(sketches) == 1 else f"the sketches {' and '.join(sketches)} merge"
        )
        parts.append(f"{merge}, at a small error")
    if not counts_values:
        parts.append("with estimates.distinct_values, tiers that keep values are considered")
    yield "; ".join(parts)


def _calendar_notes(tiers: tuple[Tier, ...], horizon: Horizon) -> list[str]:
    """For which span of time the edges of each zone were looked up, and which tiers can be cut at them."""
    grains: dict[str, int] = {}
    for tier in tiers:
        window = tier.window.period if isinstance(tier.window, CumulateWindow) else tier.window
        if isinstance(window, CalendarWindow) and window.zone != "UTC":
            grains[window.zone] = gcd(grains.get(window.zone, 0), *coarsest_class(tier))
    span = f"from {format_instant(horizon.start)} to {format_instant(horizon.end)}".replace("T00:00:00Z", "")
    return [
        f"{zone}: {span}, its days begin on multiples of {FixedWindow(grain, grain)}, so tiers that cut time there can "
        "serve them"
        for zone, grain in sorted(grains.items())
    ]
