"""Going on from where we stand: what a changed declaration makes of the plan that is running.

==============  ===============================================================================================
Input           the plan that runs, the declaration as it is now, how much history there is, how long it will be used
Requirement     none; ways between tiers are worked out anew, for aggregates and calendars may have changed as well
Time            of the plan that is kept: that of a network of its own tiers, with the papers' plans and a bound beside
                it; of any other: that of planning from scratch, and of a search over the tiers of both
Space           the networks'
First appeared  lazily woven plans with a tolerance: Guirguis and others, 2011 (see ``weave_share``); here for any
                hierarchy, with a proven bound in place of an extrapolated cost, and with the price of the way
==============  ===============================================================================================

Two prices are kept apart. The *goal* is what a plan costs by the cost model, as everywhere. The *way* is what is still
to be paid from here: each tier's share of the schedule for a horizon, and for tiers without a table the history that
they have to be filled with. What runs is kept unless another plan is better by both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter

from stairwise.aggregate import Sharing
from stairwise.cost import Cost, DetailedPrices
from stairwise.errors import PlanError, UsageError
from stairwise.graph import Graph, build
from stairwise.network import Network, Number, Solution, essential, solve_open, without_idle
from stairwise.options import Algorithm, Options, TiersAllowed
from stairwise.pipeline import Rivals, as_plan, free_name, plan_workload, without_collections
from stairwise.plan import Plan, Step
from stairwise.planner import Found, Problem, as_in_paper
from stairwise.quantity import ROUNDING, counted, percent, quantity
from stairwise.relaxation import least_with_others
from stairwise.rollup import Rollup
from stairwise.rules import meaning
from stairwise.search import improve
from stairwise.tiers import How, Kind, Tier, factor_tier
from stairwise.window import FixedWindow
from stairwise.workload import Workload

PERIODS = 8_760  # a year of hourly runs
TOLERANCE = Fraction(1, 5)  # what the authors of Weave Share found to balance cost and effort


@dataclass(frozen=True, slots=True)
class Fill:
    """What it takes to fill a tier of the plan with the history that there is.

    Attributes:
        tier: Its name.
        reads: The parent's name; None: the raw rows.
        cost: The price, with the rows that are read and written.
    """

    tier: str
    reads: str | None
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """The plan to go on with, and how it compares with a plan from scratch.

    Attributes:
        plan: The plan to go on with.
        anew: What it would take to fill each tier of it, whether it has a table or not, parents first.
        standing: What has a table: its name in the running plan, and in this one; what neither names is given up.
        fresh: The plan from scratch; None if none could be better by more than the tolerance.
        proposes_rebuild: Whether the plan from scratch is better by more than the tolerance.
        why: What was decided, and why.
    """

    plan: Plan
    anew: tuple[Fill, ...]
    standing: tuple[tuple[str, str], ...]
    fresh: Plan | None
    proposes_rebuild: bool
    why: str

    def __post_init__(self) -> None:
        """Refuse prices of other tiers than the plan's, and another's tier that stands."""
        names = [step.tier.name for step in self.plan.steps]
        if [fill.tier for fill in self.anew] != names or not {name for _, name in self.standing} <= {*names}:
            raise PlanError(f"replanning '{self.plan.rollup}': what stands and what is filled is not the plan.")

    @property
    def fills(self) -> tuple[Fill, ...]:
        """What has no table yet, parents first."""
        there = {name for _, name in self.standing}
        return tuple(fill for fill in self.anew if fill.tier not in there)

    @property
    def is_kept(self) -> bool:
        """Whether no helper is new: every tier stands, or was asked for."""
        return all(self.plan.step(fill.tier).tier.kind is Kind.DECLARED for fill in self.fills)

    @property
    def fill_cost(self) -> Number:
        """What it takes to fill all that has no table, in the model's unit."""
        return sum(fill.cost.total for fill in self.fills)


def replanned(
    running: Plan,
    rollup: Rollup,
    options: Options | None = None,
    *,
    horizon_periods: int = PERIODS,
    tolerance: Fraction = TOLERANCE,
    held_s: int | None = None,
) -> Replanned:
    """The plan to go on with when the declaration has changed.

    What was measured for the running plan counts as long as the source is the same.

    Args:
        running: The plan that the tables were filled by.
        rollup: The declaration as it is now.
        options: How to plan; None: as ``optimize`` does.
        horizon_periods: For so many runs of the schedule a way has to pay.
        tolerance: How far above the bound what runs may be, as a share of it, before anything else is looked for.
        held_s: Seconds of history that new tables are filled with; None: as many as the horizon has.

    Raises:
        UsageError: A horizon without a period, or a tolerance or a history below 0.
    """
    workload = Workload.of(rollup)
    known, before = running.measured, running.declaration
    if known is not None and before is not None and before.source == rollup.source:
        workload = replace(workload, estimates=known.estimates.over(workload.estimates), measured=known)
    return replanned_workload(
        running,
        workload,
        options or Options(),
        horizon_periods=horizon_periods,
        tolerance=tolerance,
        held_s=held_s,
    )


def replanned_workload(
    running: Plan,
    workload: Workload,
    options: Options,
    *,
    horizon_periods: int = PERIODS,
    tolerance: Fraction = TOLERANCE,
    held_s: int | None = None,
) -> Replanned:
    """The same for any workload; see ``replanned``."""
    _check(horizon_periods, tolerance, held_s)
    with without_collections():
        here = _Here.of(running, workload, options, horizon_periods, held_s)
        if options.algorithm is not Algorithm.BEST:
            return here.from_scratch(f"{options.algorithm.value} plans from scratch, whatever is running.")
        if not here.way.stands:
            return here.from_scratch("no table goes on: another source, other keys or another place.")
        kept = here.kept()
        least = kept.totals.lower_bound
        if not _is_above(kept.totals.total, (1 + tolerance) * Fraction(least)):
            return here.gone_on_with(kept, None, tolerance, f"What is there goes on: {_nearness(kept)}.")
        fresh = plan_workload(workload, options)
        kept = _with_bound(kept, fresh)
        if not _is_above(kept.totals.total, fresh.totals.total):
            why = "What is there goes on: a plan from scratch would cost no less."
            return here.gone_on_with(kept, fresh, tolerance, why)
        return here.by_the_way(kept, fresh, tolerance)


def kept_plan(running: Plan, workload: Workload, options: Options) -> Plan:
    """The cheapest plan over the workload's windows and the helpers that are there; nobody else is looked for.

    A window that is declared no more counts as a helper: it goes unless it pays as one, and unless it has a fixed
    length it goes anyway. Helpers that nobody reads go as well, and so do those that cost what they save.
    """
    with without_collections():
        return _Here.of(running, workload, options, PERIODS, None).kept()


def _check(horizon_periods: int, tolerance: Fraction, held_s: int | None) -> None:
    if horizon_periods < 1:
        raise UsageError(f"the horizon is {horizon_periods} periods, below 1.", hint="leave it out for a year.")
    if tolerance < 0:
        raise UsageError(f"the tolerance is {tolerance}, below 0.", hint="leave it out for a fifth.")
    if held_s is not None and held_s < 0:
        raise UsageError(f"the history is {held_s} s long, below 0.", hint="leave it out for that of the horizon.")


Sameness = tuple[object, bool]


def sameness(tier: Tier) -> Sameness:
    """What tiers have in common that may be one table, whatever they are called: where they cut time, what they hold.

    >>> from stairwise.window_text import parse_window
    >>> hour, sixty = (factor_tier(name, FixedWindow(3_600, 3_600)) for name in ("1h", "60m"))
    >>> sameness(hour) == sameness(sixty), sameness(hour) == sameness(factor_tier("1h", FixedWindow(3_600, 1_800)))
    (True, False)
    """
    return tier.needs.classes if tier.window is None else meaning(tier.window), tier.keeps_values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """What is still to be paid for a tier: its schedule for the horizon, and its history if it has no table.

    Attributes:
        stands: What tables go on, and under which names.
        periods: For so many runs of the schedule a way has to pay.
        ahead: Prices of that schedule.
        filling: Prices of filling a table.
    """

    stands: dict[Sameness, str]
    periods: int
    ahead: DetailedPrices
    filling: DetailedPrices

    @property
    def horizon(self) -> str:
        """The horizon in words."""
        return counted(self.periods, "period")

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> list[Number]:
        """See ``Prices``."""
        arcs = tuple(arcs)
        stands = [True, *(sameness(tier) in self.stands for tier in tiers)]
        ahead, filled = self.ahead.prices(tiers, arcs), self.filling.prices(tiers, arcs)
        return [
            cost if stands[child] else cost + fill
            for cost, fill, (_, child, _) in zip(ahead, filled, arcs, strict=True)
        ]

    def standing(self, plan: Plan) -> tuple[tuple[str, str], ...]:
        """The names of what has a table: the one that it had, and the one that it has in a plan."""
        named = ((self.stands.get(sameness(step.tier)), step.tier.name) for step in plan.steps)
        return tuple((before, name) for before, name in named if before is not None)

    def anew(self, plan: Plan) -> tuple[Fill, ...]:
        """What it would take to fill each tier."""
        return tuple(
            Fill(step.tier.name, step.reads, self.filling.detail(step.tier, parent, step.how))
            for step, parent in _with_parents(plan)
        )

    def cost(self, plan: Plan) -> Number:
        """What is still to be paid for a plan."""
        arcs = [(step.tier, parent, step.how) for step, parent in _with_parents(plan)]
        ahead: Number = sum(self.ahead.detail(*arc).total for arc in arcs)
        return ahead + sum(self.filling.detail(*arc).total for arc in arcs if sameness(arc[0]) not in self.stands)


def _with_parents(plan: Plan) -> Iterator[tuple[Step, Tier | None]]:
    tiers = {step.tier.name: step.tier for step in plan.steps}
    return ((step, None if step.reads is None else tiers[step.reads]) for step in plan.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    """Where we stand: what is asked, what is there, and what is still to be paid.

    Attributes:
        workload: What is asked.
        problem: The same for the planner.
        options: How to plan.
        rivals: What others would cost.
        running: The plan that the tables were filled by.
        way: What is still to be paid for a tier.
    """

    workload: Workload
    problem: Problem
    options: Options
    rivals: Rivals
    running: Plan
    way: _Way

    @classmethod
    def of(cls, running: Plan, workload: Workload, options: Options, periods: int, held_s: int | None) -> _Here:
        problem = workload.problem(options)
        horizon_s = periods * problem.model.interval_s
        goes_on = _goes_on(running.declaration, workload.declaration)
        way = _Way(
            stands={sameness(step.tier): step.tier.name for step in running.steps} if goes_on else {},
            periods=periods,
            ahead=problem.model.spread(history_s=0, schedule_s=horizon_s),
            filling=problem.model.spread(history_s=horizon_s if held_s is None else held_s, schedule_s=0),
        )
        paper_1 = as_in_paper(problem, has_factors=False)
        rivals = Rivals(
            unshared=sum(dict(incoming)[0] for incoming in paper_1.graph.network.arcs[1:]),
            paper_1=paper_1.solution.cost,
            paper_3=as_in_paper(problem, has_factors=True).solution.cost,
        )
        return cls(workload=workload, problem=problem, options=options, rivals=rivals, running=running, way=way)

    def kept(self) -> Plan:
        """See ``kept_plan``."""
        sharing, model = self.problem.sharing, self.problem.model
        graph = build([*self.problem.declared, *self._helpers()], sharing, model)
        opened = improve(essential(graph.network), _helper_nodes(graph)).nodes
        solution = without_idle(graph.network, solve_open(graph.network, opened))
        is_all = self.options.tiers is TiersAllowed.NONE
        least = solution.cost if is_all else least_with_others(graph, model, sharing)
        is_proven = not _is_above(solution.cost, least)
        return self._plan(Found(graph=graph, solution=solution, lower_bound=least, is_proven=is_proven))

    def from_scratch(self, why: str) -> Replanned:
        """With the plan that somebody would make who sees no tables."""
        fresh = plan_workload(self.workload, self.options)
        return self.gone_on_with(fresh, fresh, Fraction(0), f"The plan is new: {why}")

    def by_the_way(self, kept: Plan, fresh: Plan, tolerance: Fraction) -> Replanned:
        """With what is cheapest from here, if it is cheaper in the long run too, else with what is there."""
        found = self._cheapest_way(kept, fresh)
        if found is None:
            saved = percent(1 - Fraction(fresh.totals.total) / Fraction(kept.totals.total))
            pays = f"but what has to be filled for it does not pay within {self.way.horizon}"
            why = f"What is there goes on: a plan from scratch would cost {saved} less, {pays}."
            return self.gone_on_with(kept, fresh, tolerance, why)
        plan = self._plan(found)
        gain = Fraction(self.way.cost(kept)) - Fraction(self.way.cost(plan))
        amount = f"{quantity(gain)} {plan.totals.unit}"
        why = f"Another hierarchy pays: within {self.way.horizon} it saves {amount}, filling its tables included."
        return self.gone_on_with(plan, fresh, tolerance, why)

    def gone_on_with(self, plan: Plan, fresh: Plan | None, tolerance: Fraction, why: str) -> Replanned:
        """The answer for one plan."""
        is_worse = fresh is not None and _is_above(plan.totals.total, (1 + tolerance) * Fraction(fresh.totals.total))
        return Replanned(
            plan=plan,
            anew=self.way.anew(plan),
            standing=self.way.standing(plan),
            fresh=fresh,
            proposes_rebuild=is_worse,
            why=" ".join([why, *self._living_on(plan)]),
        )

    def _living_on(self, plan: Plan) -> Iterator[str]:
        """Windows that are declared no more, but pay as helpers."""
        declared = {sameness(step.tier) for step in self.running.steps if step.tier.kind is Kind.DECLARED}
        helpers = (step.tier for step in plan.steps if step.tier.kind is not Kind.DECLARED)
        names = [tier.name for tier in helpers if sameness(tier) in declared]
        if names:
            yield f"Declared no more, but worth keeping as {counted(len(names), 'helper')}: {', '.join(names)}."

    def _plan(self, found: Found) -> Plan:
        return as_plan(self.workload, self.problem, self.options, found, self.rivals)

    def _helpers(self) -> Iterator[Tier]:
        """The tiers that are there, but not asked for, as far as what is asked has a use for them.

        Nobody reads windows that are longer than those that are asked for, and the papers' period may end amid them.
        """
        allowed = self.options.tiers
        holds_values = self.problem.sharing is Sharing.HOLISTIC and self.problem.model.counts_values
        declared = {sameness(tier) for tier in self.problem.declared}
        longest = max(tier.range_s or 0 for tier in self.problem.declared)
        for tier in (step.tier for step in self.running.steps):
            is_useless = (tier.range_s or 0) > longest or (tier.keeps_values and not holds_values)
            if is_useless or sameness(tier) in declared:
                continue
            if tier.window is None and allowed is TiersAllowed.COMPOSITE:
                yield tier
            elif isinstance(tier.window, FixedWindow) and allowed is not TiersAllowed.NONE:
                yield factor_tier(tier.name, tier.window, keeps_values=tier.keeps_values)

    def _cheapest_way(self, kept: Plan, fresh: Plan) -> Found | None:
        """The plan over the tiers of both that is cheapest from here; None if that is what is kept.

        It is searched by the prices of the way. What is found is read as those of the goal say, and priced again.
        """
        graph = build(self._tiers_of_both(fresh), self.problem.sharing, self.problem.model)
        way = build(graph.tiers, self.problem.sharing, self.way).network
        starts = [_nodes(graph, kept), _nodes(graph, fresh)]
        opened = [starts[1], *(improve(essential(way), start).nodes for start in starts)]
        plans = [without_idle(graph.network, solve_open(graph.network, nodes)) for nodes in opened]
        cheaper = [(_cost(way, plan), plan.cost, plan) for plan in plans if _is_above(kept.totals.total, plan.cost)]
        cost, _, best = min(cheaper, key=itemgetter(0, 1))
        if not _is_above(self.way.cost(kept), cost):
            return None
        known = fresh.totals
        is_proven = known.is_proven_optimal and not _is_above(best.cost, known.total)
        return Found(graph=graph, solution=best, lower_bound=known.lower_bound, is_proven=is_proven)

    def _tiers_of_both(self, fresh: Plan) -> list[Tier]:
        """All tiers of a fresh plan and all that are there; new helpers do not take the names of these."""
        tiers = {sameness(tier): tier for tier in (*self.problem.declared, *self._helpers())}
        taken = {tier.name.lower() for tier in tiers.values()}
        for tier in (step.tier for step in fresh.steps):
            if sameness(tier) not in tiers:
                name = free_name(tier.name, taken)
                tiers[sameness(tier)] = replace(tier, name=name)
                taken.add(name.lower())
        return list(tiers.values())


def _goes_on(before: Rollup | None, now: Rollup | None) -> bool:
    """Whether tables can go on that an earlier declaration has filled: they hold the same events, in the same place."""
    if before is None or now is None:
        return True
    old, new = ((replace(each.source, retain=None), each.keys, each.target, each.layout) for each in (before, now))
    return old == new


def _helper_nodes(graph: Graph) -> list[int]:
    return [node for node, tier in enumerate(graph.tiers, 1) if tier.kind is not Kind.DECLARED]


def _nodes(graph: Graph, plan: Plan) -> list[int]:
    """The nodes of a plan's helpers."""
    wanted = {sameness(step.tier) for step in plan.steps}
    return [node for node in _helper_nodes(graph) if sameness(graph.tiers[node - 1]) in wanted]


def _cost(network: Network, solution: Solution) -> Number:
    """What a solution costs by the prices of another network over the same nodes."""
    arcs = ((dict(network.arcs[node]), solution.parents[node]) for node in solution.nodes)
    return sum(costs[parent] for costs, parent in arcs if parent is not None)


def _with_bound(plan: Plan, fresh: Plan) -> Plan:
    """The plan with what is known of all plans since one was made from scratch."""
    mine, known = plan.totals, fresh.totals
    is_proven = mine.is_proven_optimal or (known.is_proven_optimal and not _is_above(mine.total, known.total))
    least = max(mine.lower_bound, known.lower_bound)
    return replace(plan, totals=replace(mine, lower_bound=least, is_proven_optimal=is_proven)).check("replanning")


def _nearness(plan: Plan) -> str:
    """How near the bound a plan is, as the end of a sentence."""
    totals = plan.totals
    if totals.is_proven_optimal:
        return "no plan costs less"
    return f"no plan costs over {percent(1 - Fraction(totals.lower_bound) / Fraction(totals.total))} less"


def _is_above(one: Number, other: Number) -> bool:
    """Whether a cost is higher than another by more than rounding."""
    return Fraction(one) > Fraction(other) * (1 + ROUNDING)
