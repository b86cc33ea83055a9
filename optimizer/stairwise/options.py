"""How to plan: who plans, over which tiers, at which prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from stairwise.aggregate import Aggregate, Sharing
from stairwise.constants import Calibration
from stairwise.errors import UsageError

# Sketches that answer about what a holistic aggregate answers exactly, and that merge.
SKETCHES: Mapping[str, str] = {
    "median": "quantile()",
    "percentile": "quantile()",
    "count_distinct": "approx_distinct()",
}


class Algorithm(Enum):
    """Who plans."""

    BEST = "best"
    PAPER_1 = "paper-1"
    PAPER_3 = "paper-3"
    UNSHARED = "unshared"


class Pricing(Enum):
    """Which cost model prices the plan."""

    BATCH = "batch"
    PAPER = "paper"


class TiersAllowed(Enum):
    """Which tiers may be invented."""

    COMPOSITE = "composite"
    FACTOR = "factor"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to plan.

    >>> Options(eta=0)
    Traceback (most recent call last):
    stairwise.errors.UsageError: eta is 0, below 1 event per second. Hint: leave it out for 1.

    Attributes:
        algorithm: Who plans.
        tiers: Which tiers may be invented.
        pricing: Which cost model prices the plan.
        sharing: What the aggregates allow; None: as they say themselves.
        eta: Events per second in the paper's model.
        calibration: Whose constants the batch model takes; None: those of this version.
        steps: How much work the proof of optimality may take; work, not time, so that plans do not depend on machines.
    """

    algorithm: Algorithm = Algorithm.BEST
    tiers: TiersAllowed = TiersAllowed.COMPOSITE
    pricing: Pricing = Pricing.BATCH
    sharing: Sharing | None = None
    eta: int = 1
    calibration: Calibration | None = None
    steps: int = 50_000

    def __post_init__(self) -> None:
        """Refuse a rate that is none."""
        if self.eta < 1:
            raise UsageError(f"eta is {self.eta}, below 1 event per second.", hint="leave it out for 1.")

    def check_sharing(self, aggregates: Iterable[Aggregate], *, is_declared: bool) -> None:
        """Refuse what would make wrong results of these aggregates.

        Windows that nobody declared are never computed, so whatever merges may be planned for them as if it overlapped.

        Raises:
            UsageError: An aggregate does not merge at all, or a declared one would count rows twice.
        """
        if self.sharing is None or self.sharing is Sharing.HOLISTIC:
            return
        for aggregate in aggregates:
            if aggregate.sharing is Sharing.HOLISTIC:
                sketch = SKETCHES.get(aggregate.definition.name)
                raise UsageError(
                    f"semantics {self.sharing.value}: {aggregate} cannot be merged from results of slices.",
                    hint=f"leave --semantics out{f', or take a sketch: {sketch}' if sketch else ''}.",
                )
            if is_declared and self.sharing is Sharing.OVERLAPPING and aggregate.sharing is Sharing.DISJOINT:
                raise UsageError(
                    f"semantics overlapping: {aggregate} would count rows twice.",
                    hint="leave --semantics out, or try it on --windows, which nothing computes.",
                )
