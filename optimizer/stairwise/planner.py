"""The search for the cheapest hierarchy: from tiers to a found plan, with a bound on how much better any could be.

Everything here is decided by one network of tiers and priced arcs (``graph``): not sharing opens no arc but those from
the raw rows, the papers' planners open the arcs that they know of, and the planner itself opens tiers that nobody asked
for wherever they pay. Work is limited in steps, never in seconds, so that the same declaration gives the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from stairwise import factor_windows
from stairwise.aggregate import Sharing
from stairwise.bound import dual_ascent
from stairwise.candidates import composite, factor_candidates
from stairwise.composite import FEW, all_but_one, all_unions, distinct_needs, merged, union
from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.exact import branch_and_bound
from stairwise.graph import Graph, asked_of_unions, assemble, build, in_order, lean, legal_arcs, narrowed, regrown
from stairwise.network import Solution, essential, solve_open, without_idle
from stairwise.options import TiersAllowed
from stairwise.relaxation import least_with_anything, least_with_slices
from stairwise.search import improve, search
from stairwise.tiers import How, Kind, Tier, factor_tier
from stairwise.window import FixedWindow
from stairwise.window_text import table_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stairwise.cost import CostModel
    from stairwise.network import Number


ROUNDS = 2  # refinements of a plan, at most
WIDE = 12  # different sets of edges for which refinement looks wider: for more unions, from scratch, with spare helpers
SPARE = 16  # helpers that a plan did not use and that may be used yet
SOME = 24  # windows that are merged with each other whatever they read, not only those that read one tier
NEARLY = Fraction(10**9 + 1, 10**9)  # as good as the bound: what is left is for the proof to find
MERGED = 300  # windows in all rounds together: many windows get one round


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan over a graph, and what is known of better ones.

    Attributes:
        graph: The tiers that were considered.
        solution: The plan, over the graph's nodes.
        lower_bound: No plan over the allowed tiers costs less.
        is_proven: Whether none costs less than this one.
        unseen: What hopping helpers that the graph lacks cost at least; None if none could pay.
        is_whole: Whether the graph is known to hold a cheapest plan of those without unseen helpers.
    """

    graph: Graph
    solution: Solution
    lower_bound: Number = 0
    is_proven: bool = False
    unseen: Number | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        """Refuse a bound above the plan, so that no pass can hand on a wrong proof."""
        if not _reaches(self.solution.cost, self.lower_bound):
            raise PlanError(f"planning: the lower bound {self.lower_bound} is above the cost {self.solution.cost}.")

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers in the plan, finer ones first."""
        return tuple(self.graph.tiers[node - 1] for node in self.solution.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be planned.

    Attributes:
        declared: The tiers that the user asked for.
        sharing: What the aggregates allow.
        model: What prices the steps.
        eta: Events per second, for the papers' planners.
        steps: How much work the proof may take.
    """

    declared: tuple[Tier, ...]
    sharing: Sharing
    model: CostModel
    eta: int
    steps: int


def unshared(problem: Problem) -> Found:
    """Every window from the raw rows."""
    graph = assemble(in_order(problem.declared), {}, problem.model)
    return Found(graph=graph, solution=solve_open(graph.network, ()))


def as_in_paper(problem: Problem, *, has_factors: bool) -> Found:
    """What Factor Windows would do, with or without factor windows, priced by the model at hand.

    The paper knows windows of fixed length only; the others read whatever tier serves them.
    """
    windows = [tier.window for tier in problem.declared if isinstance(tier.window, FixedWindow)]
    if problem.sharing is Sharing.HOLISTIC:
        return unshared(problem)
    overlapping = problem.sharing is Sharing.OVERLAPPING
    paper = (
        factor_windows.with_factors(windows, overlapping=overlapping, eta=problem.eta)
        if has_factors
        else factor_windows.without_factors(windows, overlapping=overlapping)
    )
    factors = [factor_tier(table_name(str(window)), window) for window in paper.factors]
    ordered = in_order([*problem.declared, *factors])
    node = {tier.window: index for index, tier in enumerate(ordered, 1)}
    hows = {
        (node[parent], node[child]): How.DISJOINT if parent.is_tumbling else How.OVERLAPPING
        for parent, child in paper.arcs
        if parent is not None
    }
    if len(windows) < len(problem.declared):
        for parent, child, how in legal_arcs(ordered, problem.sharing):
            if how is not How.EQUAL_RANGE and not isinstance(ordered[child - 1].window, FixedWindow):
                hows[parent, child] = how
    graph = assemble(ordered, hows, problem.model, keeps_helpers=True)
    return Found(graph=graph, solution=solve_open(graph.network, ()))


def best(problem: Problem, allowed: TiersAllowed, paper: Found) -> Found:
    """The cheapest hierarchy known, never dearer than the paper's if its tiers are allowed."""
    if allowed is TiersAllowed.NONE:
        graph = build(problem.declared, problem.sharing, problem.model)
        solution = solve_open(graph.network, ())
        return Found(graph=graph, solution=solution, lower_bound=solution.cost, is_proven=True)
    found = _with_factors(problem, paper)
    if allowed is TiersAllowed.COMPOSITE and (problem.sharing is not Sharing.HOLISTIC or problem.model.counts_values):
        found = _with_composites(problem, found)
    return found


def _with_factors(problem: Problem, paper: Found) -> Found:
    """Declared tiers, factor windows, and the paper's own, which serve as a start."""
    candidates = factor_candidates(problem.declared, problem.sharing, problem.model)
    known = {tier.window for tier in candidates.tiers}
    theirs = {tier.window: tier for tier in paper.tiers if tier.kind is Kind.FACTOR}
    tiers = [*problem.declared, *candidates.tiers, *(theirs[window] for window in theirs if window not in known)]
    of_tiers = lean if problem.sharing is Sharing.OVERLAPPING else build
    graph = of_tiers(tiers, problem.sharing, problem.model)
    start = [node for node, tier in enumerate(graph.tiers, 1) if tier.kind is Kind.FACTOR and tier.window in theirs]
    return _solved(problem, graph, start, is_whole=candidates.is_whole, unseen=candidates.unseen)


def _solved(problem: Problem, graph: Graph, start: Iterable[int], *, is_whole: bool, unseen: Number | None) -> Found:
    """Search, bound and, as far as the steps go, the optimum of a graph; of all graphs, if it is whole."""
    network = essential(graph.network)
    bound = dual_ascent(network)
    solution = search(network, [start, bound.support.nodes], enough=bound.value * NEARLY)
    arcs = sum(map(len, network.arcs))
    outcome = branch_and_bound(network, solution, bound, problem.steps if arcs < problem.steps // 20 else 0)
    found = Found(
        graph=graph,
        solution=without_idle(graph.network, solve_open(graph.network, outcome.solution.nodes)),
        lower_bound=outcome.lower_bound,
        is_proven=outcome.proven,
        unseen=unseen,
        is_whole=is_whole,
    )
    return found if is_whole and unseen is None else _relaxed(problem, found)


def _relaxed(problem: Problem, found: Found) -> Found:
    """The same plan with a bound that holds for factor windows and unions that its graph lacks, too."""
    graph, model, sharing = found.graph, problem.model, problem.sharing
    lower_bound = found.lower_bound if found.is_whole else least_with_slices(graph, model, sharing)
    if found.unseen is not None:
        lower_bound = min(lower_bound, least_with_anything(graph, model, sharing) + found.unseen)
    return _bounded(found, lower_bound)


def _bounded(found: Found, lower_bound: Number) -> Found:
    """The same plan with another bound."""
    return replace(found, lower_bound=lower_bound, is_proven=_reaches(lower_bound, found.solution.cost))


def _with_composites(problem: Problem, factors: Found) -> Found:
    """Unions of edges beside the tiers of a plan that was found without them.

    The coarsest tier that serves all readers of a helper cuts time at the union of their edges; so if all unions are
    there, of declared windows and of helpers that hop, a cheapest plan is. (Stray edges might be held by coarser
    ones.)
    """
    needs = distinct_needs(tier for tier in factors.graph.tiers if tier.kind is Kind.DECLARED or not tier.tiles)
    if len(needs) <= FEW:
        graph = build([*factors.graph.tiers, *_tiers(problem, all_unions(needs))], problem.sharing, problem.model)
        return _solved(
            problem,
            graph,
            _nodes(graph, factors.tiers),
            is_whole=factors.is_whole and not any(tier.strays for tier in problem.declared),
            unseen=factors.unseen,
        )
    needs = distinct_needs(problem.declared)
    found, pool = factors, set[EdgeSet]()
    if len(needs) <= SOME:
        pool.update(all_unions(needs) if len(needs) <= FEW else merged(needs))
    is_wide = len(needs) <= WIDE
    spare = _spare(factors) if is_wide else ()
    for _ in range(max(1, min(ROUNDS, MERGED // len(needs)))):
        pool.update(_refinements(found, is_wide=is_wide))
        refined = _refined(problem, factors.graph, found, pool, spare, is_wide=is_wide)
        if not refined.solution.cost < found.solution.cost:
            break
        found, pool = refined, set[EdgeSet]()
    if not factors.is_whole:
        return _bounded(found, factors.lower_bound)  # that holds for unions, too
    return _bounded(found, least_with_slices(factors.graph, problem.model, problem.sharing, factors.lower_bound))


def _spare(factors: Found) -> tuple[Tier, ...]:
    """Helpers of the ranges in which windows hop: what these have to offer is more than their edges."""
    helpers = [tier for tier in factors.graph.tiers if tier.kind is Kind.FACTOR]
    used, ranges = set(factors.tiers), {tier.range_s for tier in factors.graph.tiers if not tier.tiles}
    return tuple([tier for tier in helpers if tier.range_s in ranges and tier not in used][-SPARE:])


def _refined(
    problem: Problem, known: Graph, found: Found, unions: set[EdgeSet], spare: Sequence[Tier], *, is_wide: bool
) -> Found:
    """The best plan near the found one over its own tiers, these unions and spare helpers; or far from it, if wide.

    All tiers but unions are among the known ones, and so are the arcs between them.
    """
    sharing, model = problem.sharing, problem.model
    cut = _tiers(problem, unions.union(tier.needs for tier in found.tiers if tier.kind is Kind.COMPOSITE))
    rough = regrown(known, _nodes(known, (*found.tiers, *spare)), cut, sharing, model.rounded())
    network, starts = essential(rough.network), [_nodes(rough, found.tiers), *([[]] if is_wide else [])]
    better = min((improve(network, start) for start in starts), key=lambda solution: solution.cost)
    graph = narrowed(rough, better, model)
    solution = solve_open(graph.network, range(1, len(graph.tiers) + 1))
    return Found(graph=graph, solution=without_idle(graph.network, solution))


def _tiers(problem: Problem, unions: Iterable[EdgeSet]) -> list[Tier]:
    """Composite tiers for the unions that no declared tier offers anyway."""
    keeps_values = problem.sharing is Sharing.HOLISTIC
    offered = {tier.provides for tier in problem.declared if not keeps_values}
    fresh = sorted({edges for edges in unions if edges not in offered}, key=lambda edges: edges.classes)
    return [composite(edges, keeps_values=keeps_values) for edges in fresh]


def _nodes(graph: Graph, tiers: Iterable[Tier]) -> list[int]:
    """The nodes of those of the tiers that a graph has."""
    wanted = set(tiers)
    return [node for node, tier in enumerate(graph.tiers, 1) if tier in wanted]


def _refinements(found: Found, *, is_wide: bool) -> Iterator[EdgeSet]:
    """Unions that could do better than a plan: helpers cut down to their readers, and readers of one parent merged."""
    edges: dict[int, EdgeSet] = {}
    readers: dict[int, list[int]] = {}
    for child in reversed(found.solution.nodes):
        tier = found.graph.tiers[child - 1]
        below = readers.get(child, [])
        if tier.kind is Kind.DECLARED or (is_wide and not tier.tiles):
            edges[child] = asked_of_unions(tier)
        elif all(found.graph.how(child, one) in {How.DISJOINT, How.VALUES} and one in edges for one in below):
            edges[child] = union(edges[one] for one in below)
            yield edges[child]
        readers.setdefault(found.solution.parents[child] or 0, []).append(child)
    for below in readers.values():
        sets = sorted({edges[one] for one in below if one in edges}, key=EdgeSet.by_rate)
        yield from merged(sets)
        if is_wide:
            yield from all_but_one(sets)


def _reaches(one: Number, other: Number) -> bool:
    """Whether one cost is as high as another; sums of floats in another order may differ in their last digits."""
    return not one < (other * (1 - 1e-9) if isinstance(other, float) else other)
