"""The plan: one value that explain prints, JSON carries, Airflow draws and Spark runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import inf

from stairwise.aggregate import Sharing
from stairwise.cost import Cost
from stairwise.errors import PlanError
from stairwise.final_aggregation import Technique
from stairwise.measured import Measured
from stairwise.network import Number
from stairwise.options import Algorithm, Pricing, TiersAllowed
from stairwise.quantity import quantity
from stairwise.rollup import Rollup
from stairwise.tiers import Horizon, How, Kind, Tier, reads
from stairwise.window import CumulateWindow


@dataclass(frozen=True, slots=True)
class Alternative:
    """The parent that came second, and what the tier would have cost from there.

    Attributes:
        reads: Its name; None: the raw rows.
        cost: In the model's unit.
    """

    reads: str | None
    cost: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tier of the plan, and how it is computed.

    Attributes:
        tier: What is computed.
        reads: The parent's name; None: the raw rows.
        how: How the parent's rows become this tier's.
        final: How overlapping windows are put together from slices; None where windows do not overlap.
        cost: What the step costs over the model's period.
        runner_up: The second-best parent; None if there was no choice.
        why: One sentence: what the step is for.
    """

    tier: Tier
    reads: str | None
    how: How
    final: Technique | None
    cost: Cost
    runner_up: Alternative | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Tiers that one pass over the rows of a parent makes.

    Attributes:
        reads: The name of the tier whose rows are passed over.
        steps: Each reads that tier, or one of the steps before it; a single one has windows that overlap.
    """

    reads: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The price of the plan beside the prices of others for the same windows, all under one cost model.

    Attributes:
        total: The price of the plan.
        unshared: The price if each window is computed from the raw rows.
        paper_1: The price of the plan of Factor Windows without helpers.
        paper_3: The price of its plan with helpers.
        lower_bound: No plan over the allowed tiers costs less than this.
        is_proven_optimal: Whether the plan is known to be the cheapest over the allowed tiers.
        period_s: The seconds of event time that the costs are for.
        unit: What one unit of cost is.
    """

    total: Number
    unshared: Number
    paper_1: Number
    paper_3: Number
    lower_bound: Number
    is_proven_optimal: bool
    period_s: int
    unit: str

    @property
    def gap(self) -> float:
        """How far the plan may be from the optimum: ``total / lower_bound - 1``, infinite without a bound."""
        if self.is_proven_optimal or self.total <= self.lower_bound:
            return 0.0
        return float(Fraction(self.total) / Fraction(self.lower_bound) - 1) if self.lower_bound else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was asked of the planner.

    Attributes:
        semantics: What the aggregates allow.
        cost_model: What priced the steps.
        algorithm: Who planned.
        tiers_allowed: Which tiers could be invented.
    """

    semantics: Sharing
    cost_model: Pricing
    algorithm: Algorithm
    tiers_allowed: TiersAllowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A hierarchy of tiers, parents before the tiers that read them.

    Attributes:
        rollup: The rollup's name.
        declaration: What the plan was made for; None for windows given on the command line.
        search: What was asked of the planner.
        steps: How each tier is computed.
        totals: The price, beside other prices.
        horizon: The span of time for which calendar edges were looked up.
        measured: What was measured of the source; None: nothing.
        notes: What was assumed, for people to read.
    """

    rollup: str
    declaration: Rollup | None
    search: Search
    steps: tuple[Step, ...]
    totals: Totals
    horizon: Horizon
    measured: Measured | None = None
    notes: tuple[str, ...] = ()

    def step(self, name: str) -> Step:
        """The step that computes the tier of that name.

        Raises:
            PlanError: There is none.
        """
        for step in self.steps:
            if step.tier.name == name:
                return step
        raise PlanError(f"plan '{self.rollup}': there is no tier '{name}' in it.")

    def readers(self, name: str | None) -> tuple[Step, ...]:
        """The steps that read the tier of that name; None: the raw rows."""
        return tuple(step for step in self.steps if step.reads == name)

    def passes(self) -> tuple[Pass, ...]:
        """Which tiers are best made together: reading the parent again for each of them would cost more.

        States have to be of fixed width for that, so sketches are merged tier by tier.
        """
        aggregates = () if self.declaration is None else self.declaration.aggregates
        if any(partial.traits.bytes_per_value for _, aggregate in aggregates for partial in aggregate.partials):
            return ()
        roots: dict[str, str] = {}
        steps: dict[str, list[Step]] = {}
        for step in self.steps:
            if step.reads is not None and step.how is How.DISJOINT and not isinstance(step.tier.window, CumulateWindow):
                root = roots[step.tier.name] = roots.get(step.reads, step.reads)
                steps.setdefault(root, []).append(step)
        made = (Pass(reads=root, steps=tuple(of)) for root, of in steps.items())
        return tuple(each for each in made if len(each.steps) > 1 or any(step.final is not None for step in each.steps))

    def check(self, after: str) -> Plan:
        """The plan itself, if it keeps its invariants.

        Raises:
            PlanError: It does not; the text names the pass ``after`` which that was found.
        """
        broken = next(chain(self._broken_steps(), self._unread(), self._broken_totals()), None)
        if broken is not None:
            raise PlanError(f"after {after}: {broken}.")
        return self

    def _broken_steps(self) -> Iterator[str]:
        """Each tier is computed once, after its parent, and in a way that the edges and the aggregates allow."""
        computed: dict[str, Tier] = {}
        names: set[str] = set()
        for step in self.steps:
            name = step.tier.name
            parent = None if step.reads is None else computed.get(step.reads)
            if name.lower() in names:
                yield f"tier '{name}' is computed twice"
            elif parent is None and step.reads is not None:
                yield f"tier '{name}' reads '{step.reads}', which is not computed before it"
            elif step.how is not (legal := self._way(step.tier, parent)):
                wanted = "there is no way to" if legal is None else f"the way is '{legal.value}'"
                yield f"tier '{name}' reads {_parent_text(step.reads)} by '{step.how.value}', but {wanted}"
            if step.cost.total < 0:
                yield f"tier '{name}' has a cost below 0"
            computed[name] = step.tier
            names.add(name.lower())

    def _way(self, tier: Tier, parent: Tier | None) -> How | None:
        return How.RAW if parent is None else reads(tier, parent, self.search.semantics)

    def _unread(self) -> Iterator[str]:
        """A tier that nobody asked for has readers; but the paper's algorithm opens all of its helpers."""
        if self.search.algorithm is Algorithm.PAPER_3:
            return
        read = {step.reads for step in self.steps}
        for step in self.steps:
            if step.tier.kind is not Kind.DECLARED and step.tier.name not in read:
                yield f"nobody reads the tier '{step.tier.name}'"

    def _broken_totals(self) -> Iterator[str]:
        """The total is the steps' sum, and no bound is above it; floats may be off by their rounding."""
        prices = self.totals
        total = sum((Fraction(step.cost.total) for step in self.steps), Fraction(0))
        stated = Fraction(prices.total)
        rounding = total / 10**9
        if min(stated, prices.unshared, prices.paper_1, prices.paper_3, prices.lower_bound) < 0 or prices.period_s < 1:
            yield "a total is below 0, or the period is below 1 s"
        elif prices.total > 0 >= prices.lower_bound:
            yield f"the lower bound is {quantity(prices.lower_bound)}, but the plan costs {quantity(stated)}"
        elif abs(total - stated) > rounding:
            yield f"the steps cost {quantity(total)}, the plan says {quantity(stated)}"
        elif Fraction(prices.lower_bound) > stated + rounding:
            yield f"the lower bound {quantity(prices.lower_bound)} is above the cost {quantity(stated)}"


def _parent_text(name: str | None) -> str:
    return "the raw rows" if name is None else f"'{name}'"
