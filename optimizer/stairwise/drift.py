"""Whether a plan still suits its source: what was predicted beside what was counted, and what would be planned now.

A plan rests on a number of events a day and on how many keys so many events show. Its tiers have counted both since: a
table's rows are its windows times the keys in one. So each table is a point of the curve of keys, the plan can be
priced again with these numbers, and the search can be asked whether it would still come to the same hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf

from stairwise.errors import UsageError
from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.measured import Measured, Slice
from stairwise.network import Number
from stairwise.options import Algorithm, Options, Pricing
from stairwise.plan import Plan
from stairwise.planner import Problem
from stairwise.quantity import ROUNDING, beside, percent, quantity
from stairwise.replan import PERIODS, TOLERANCE, Replanned, replanned_workload
from stairwise.rollup import Estimates
from stairwise.tiers import DAY
from stairwise.windowing import Interval
from stairwise.wording import Prices, columns, printable, shortened
from stairwise.workload import ROWS_PER_DAY, Workload

DRIFT_SCHEMA = "stairwise.drift/1"
SOURCE = "raw rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What runs have counted.

    Attributes:
        span: The event time in which it was counted.
        tiers: Rows of each tier, by its name, for the windows of that span; a tier may be left out.
        events: Rows of the source in it; None: not known.
        keys: Different keys in it; None: not known.
    """

    span: Interval
    tiers: Mapping[str, float]
    events: float | None = None
    keys: int | None = None

    def __post_init__(self) -> None:
        """Refuse counts of nothing, and numbers that count nothing."""
        if self.span.start >= self.span.end:
            raise UsageError("what was counted: its span ends before it begins.", hint="count at least one window.")
        numbers = {**self.tiers, SOURCE: self.events or 0, "keys": self.keys or 0}
        for name, number in numbers.items():
            if not 0 <= number < inf:
                raise UsageError(f"what was counted: {number} for '{name}'.", hint="a count is 0 or more.")

    @property
    def days(self) -> float:
        """How long the span is."""
        return (self.span.end - self.span.start) / DAY


@dataclass(frozen=True, slots=True)
class Part:
    """Rows a day, as the plan said and as they were counted.

    Attributes:
        tier: The tier's name; None: the source.
        predicted: What the plan said.
        counted: What there was.
        is_off: Whether the two differ by more than the tolerance, either way.
    """

    tier: str | None
    predicted: float
    counted: float
    is_off: bool

    @property
    def factor(self) -> float | None:
        """So many times what was predicted; None if that was nothing."""
        return self.counted / self.predicted if self.predicted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Where a plan and its source have parted, and what that is worth.

    Attributes:
        plan: The plan that runs, as it was made.
        counted: What runs have counted.
        parts: Source first, then the tiers in the order of the plan, as far as they were counted.
        running: What the running hierarchy costs by the counted numbers.
        now: What would be planned by them, from here.
    """

    plan: Plan
    counted: Counted
    parts: tuple[Part, ...]
    running: Number
    now: Replanned

    @property
    def is_off(self) -> bool:
        """Whether anything counted differs from what was predicted by more than the tolerance."""
        return any(part.is_off for part in self.parts)

    @property
    def best(self) -> Plan:
        """The cheapest hierarchy that is known now, whatever it takes to get there."""
        plans = (self.now.plan, *([] if self.now.fresh is None else [self.now.fresh]))
        return min(plans, key=lambda plan: Fraction(plan.totals.total))

    @property
    def saving(self) -> float:
        """What share of its cost the running hierarchy would save by being the best one; 0 if it is."""
        running, least = Fraction(self.running), Fraction(self.best.totals.total)
        return float(1 - least / running) if running * (1 - ROUNDING) > least else 0.0

    @property
    def pays(self) -> bool:
        """Whether it pays to leave the running hierarchy for the one to go on with, filling included."""
        return Fraction(self.now.plan.totals.total) < Fraction(self.running) * (1 - ROUNDING)


def drifted(
    plan: Plan,
    counted: Counted,
    options: Options | None = None,
    *,
    horizon_periods: int = PERIODS,
    tolerance: Fraction = TOLERANCE,
    held_s: int | None = None,
) -> Drift:
    """Where a plan and its source have parted.

    Args:
        plan: The plan that runs.
        counted: What its runs have counted.
        options: How to plan; None: as ``optimize`` does.
        horizon_periods: For so many runs of the schedule another hierarchy has to pay.
        tolerance: How far a number may be from what was predicted, either way, as a share of the smaller one.
        held_s: Seconds of history that new tables are filled with; None: as many as the horizon has.

    Raises:
        UsageError: The plan is for no declaration, predicts no rows, or lacks a tier that was counted.
    """
    options = options or Options()
    workload = _workload(plan, counted, options)
    problem = workload.problem(options)
    now = replanned_workload(
        plan, workload, options, horizon_periods=horizon_periods, tolerance=Fraction(0), held_s=held_s
    )
    return Drift(
        plan=plan,
        counted=counted,
        parts=tuple(_parts(plan, counted, float(tolerance))),
        running=_priced_again(plan, problem),
        now=now,
    )


def _workload(plan: Plan, counted: Counted, options: Options) -> Workload:
    """What the plan was made for, with what was counted in place of what was assumed."""
    if plan.declaration is None:
        raise UsageError(
            f"plan '{plan.rollup}' is for no declaration, so no run has filled its tiers.", hint="plan a FILE."
        )
    if options.pricing is Pricing.PAPER or plan.search.cost_model is Pricing.PAPER:
        raise UsageError(
            "the cost model of the papers counts no rows, so nothing can be off.", hint="plan with --cost-model batch."
        )
    if options.algorithm is not Algorithm.BEST:
        raise UsageError(f"{options.algorithm.value} plans from no statistics.", hint="leave --algorithm out.")
    unknown = sorted(set(counted.tiers) - {step.tier.name for step in plan.steps})
    if unknown:
        raise UsageError(
            f"plan '{plan.rollup}': there is no tier '{unknown[0]}' in it, but it was counted.",
            hint="count the tables of this plan.",
        )
    workload = Workload.of(plan.declaration)
    before = workload.estimates if plan.measured is None else plan.measured.estimates.over(workload.estimates)
    measured = _measured(plan, counted, before)
    return replace(workload, estimates=measured.estimates, measured=measured)


def _measured(plan: Plan, counted: Counted, before: Estimates) -> Measured:
    """What was counted, as statistics of the source: each tier is a point on the curve of keys."""
    per_day = before.rows_per_day or ROWS_PER_DAY
    if counted.events:
        per_day = ceil(counted.events / counted.days)
    slices: list[Slice] = []
    for step in plan.steps:
        if step.tier.name in counted.tiers and not step.tier.keeps_values:
            windows = float(step.tier.rate) * DAY * counted.days
            seconds = step.tier.range_s or round(1 / step.tier.rate)
            rows = per_day * seconds / DAY
            slices.append(Slice(seconds, rows, min(rows, counted.tiers[step.tier.name] / windows)))
    known = max((each.keys for each in slices), default=0.0)
    keys = counted.keys or max(before.distinct_keys or 0, ceil(known)) or None
    rows_in_all = max(1, round(per_day * counted.days))
    return Measured(
        rows=rows_in_all,
        span=counted.span,
        estimates=Estimates(
            rows_per_day=per_day,
            distinct_keys=None if keys is None else max(keys, ceil(known)),
            distinct_values=before.distinct_values,
        ),
        slices=tuple(sorted(slices)),
        sample=rows_in_all,
    )


def _parts(plan: Plan, counted: Counted, tolerance: float) -> Iterator[Part]:
    """Predicted beside counted; of the source the plan's own number, as it was declared, measured or assumed."""

    def part(name: str | None, predicted: float, rows: float) -> Part:
        per_day = rows / counted.days
        low, high = sorted((predicted, per_day))
        return Part(name, predicted, per_day, is_off=high > (1 + tolerance) * low)

    if counted.events is not None:
        yield part(None, _events_per_day(plan), counted.events)
    for step in plan.steps:
        if step.tier.name in counted.tiers and step.cost.rows_written is not None:
            yield part(
                step.tier.name, step.cost.rows_written * DAY / plan.totals.period_s, counted.tiers[step.tier.name]
            )


def _events_per_day(plan: Plan) -> float:
    """What the plan was made for."""
    known = None if plan.measured is None else plan.measured.estimates.rows_per_day
    declared = None if plan.declaration is None else plan.declaration.estimates.rows_per_day
    return known or declared or ROWS_PER_DAY


def _priced_again(plan: Plan, problem: Problem) -> Number:
    """What the same tiers cost by other prices, each from the parent that it has."""
    tiers = {step.tier.name: step.tier for step in plan.steps}
    return sum(
        problem.model.price(step.tier, None if step.reads is None else tiers[step.reads], step.how)
        for step in plan.steps
    )


def explain_drift(drift: Drift) -> str:
    """The drift as text, for people."""
    plan, counted = drift.plan, drift.counted
    first, end = (format_instant(instant) for instant in counted.span)
    lines = [f"{printable(plan.rollup)}: counted from {first} to {end}", ""]
    rows = [("rows a day", "predicted", "counted", ""), *(_cells(part) for part in drift.parts)]
    names, *widths = (max(map(columns, column)) for column in zip(*(row[:3] for row in rows), strict=True))
    for name, *numbers, change in rows:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
        lines.append("  ".join([name + " " * (names - columns(name)), *cells, change]).rstrip())
    return "\n".join([*lines, "", *_verdict(drift)]) + "\n"


def _cells(part: Part) -> tuple[str, str, str, str]:
    name = SOURCE if part.tier is None else printable(part.tier)
    change = beside(part.counted, part.predicted) if part.is_off else "as predicted"
    return shortened(name, 48), quantity(part.predicted), quantity(part.counted), change


def _verdict(drift: Drift) -> Iterator[str]:
    prices = Prices.of(drift.plan)
    running = f"By what was counted the running hierarchy costs {prices.text(drift.running)}"
    if not drift.saving:
        yield f"{running}, and none is known that costs less."
        return
    yield f"{running}; one that costs {percent(drift.saving)} less is known."
    if drift.pays:
        now, fill = drift.now.plan.totals.total, drift.now.fill_cost
        yield f"To go on with: one of {prices.text(now)}, for {prices.text(fill)} of filling tables."
    yield drift.now.why


def encode_drift(drift: Drift) -> dict[str, Json]:
    """The drift as a document, for programs."""
    totals, now = drift.plan.totals, drift.now
    return {
        "schema": DRIFT_SCHEMA,
        "rollup": drift.plan.rollup,
        "range": [format_instant(instant) for instant in drift.counted.span],
        "rows_per_day": [
            {
                "tier": part.tier,
                "predicted": part.predicted,
                "counted": part.counted,
                "factor": part.factor,
                "is_off": part.is_off,
            }
            for part in drift.parts
        ],
        "is_off": drift.is_off,
        "cost": {
            "running": float(drift.running),
            "now": float(now.plan.totals.total),
            "best": float(drift.best.totals.total),
            "saving": drift.saving,
            "fill": float(now.fill_cost),
            "period_s": totals.period_s,
            "unit": totals.unit,
        },
        "pays": drift.pays,
        "tiers": [{"name": step.tier.name, "reads": step.reads} for step in now.plan.steps],
        "why": now.why,
    }
