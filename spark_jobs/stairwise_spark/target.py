"""The tables of a rollup as somebody finds them who looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from stairwise.errors import UsageError
from stairwise.names import nearest
from stairwise.plan import Plan, Step
from stairwise.rollup import Rollup
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.applied import going_on
from stairwise_spark.coverage import DOUBTFUL, Coverage, State
from stairwise_spark.errors import translating
from stairwise_spark.spans import joined
from stairwise_spark.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is there, and what it reflects.

    Attributes:
        plan: The plan that filled the tables; where none did, the one that will.
        storage: Where the tables are.
        states: What is known of the tiers whose tables are there.
        recorded: Up to which version of a tier's table the bookkeeping alone knows all, by tier.
    """

    plan: Plan
    storage: Storage
    states: Mapping[str, State]
    recorded: Mapping[str, int]

    @classmethod
    def found(cls, spark: SparkSession, plan: Plan, source: str | None = None) -> Target:
        """What is in the target of a plan's declaration.

        Args:
            spark: A session in UTC.
            plan: Of the declaration.
            source: The identity of the source: what was made of another one is doubtful. None: nobody has asked, so it
                is the one that the bookkeeping knows.

        Raises:
            ChangedError: The tables were filled with something else.
            RunError: There is something that is not ours.
        """
        with translating():
            storage = Storage.of(spark, plan, source)
            plan = going_on(storage.ledger.load_plan(), plan)
            storage = Storage.of(spark, plan, source)
            recorded: dict[str, int] = {}
            summaries = storage.ledger.summaries()
            if source is None:
                wanted = replace(storage.wanted, source=storage.ledger.summary.source)
                storage = replace(storage, wanted=wanted)
            for summary in summaries:
                for tier, known in summary.tiers.items():
                    if known.record is not None:
                        recorded[tier] = max(recorded.get(tier, 0), known.record.version)
        return cls(plan=plan, storage=storage, states=storage.states(), recorded=recorded)

    @property
    def rollup(self) -> Rollup:
        """The declaration."""
        return self.storage.rollup

    def coverage(self, tier: str) -> Coverage:
        """What a tier reflects; nothing if its table is not there."""
        return self.states[tier].coverage if tier in self.states else Coverage()

    def steps(self, tiers: Sequence[str] = (), *, helpers: bool = False) -> tuple[Step, ...]:
        """The tiers of these names; without any, those that were declared, and if asked for, the helpers too.

        Raises:
            UsageError: There is no such tier.
        """
        known = {step.tier.name: step for step in self.plan.steps}
        for name in tiers:
            if name not in known:
                close = nearest(name, list(known))
                hint = f"did you mean '{close}'?" if close else f"there are {', '.join(known)}."
                raise UsageError(f"there is no tier '{name}'.", hint=hint)
        if tiers:
            return tuple(known[name] for name in dict.fromkeys(tiers))
        return tuple(step for step in self.plan.steps if helpers or step.tier.kind is Kind.DECLARED)


def doubtful(coverage: Coverage) -> tuple[Interval, ...]:
    """The ranges that two runs have filled at once, so that rows in them may be there twice."""
    return tuple(Interval(each.start, each.end) for each in coverage.stretches if each.version == DOUBTFUL)


def older(coverage: Coverage, version: int | None) -> tuple[Interval, ...]:
    """The ranges that reflect a version of the source before this one; none for a source without versions."""
    if version is None:
        return ()
    found = (Interval(each.start, each.end) for each in coverage.stretches if DOUBTFUL < each.version < version)
    return joined(tuple(found))


def unfinished(coverage: Coverage) -> tuple[Interval, ...]:
    """The ranges of windows that were written before they ended, and count for nothing until then."""
    return joined(tuple(Interval(each.start, each.end) for each in coverage.stretches if each.version < DOUBTFUL))
