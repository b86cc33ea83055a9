"""What the tables have come to hold, beside which a plan can be judged."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import optimize
from stairwise.aggregate import ROWS
from stairwise.drift import Counted
from stairwise.errors import UsageError
from stairwise.plan import Plan
from stairwise.rollup import Rollup
from stairwise.windowing import Interval
from stairwise_spark.errors import translating
from stairwise_spark.target import Target


def counted(spark: SparkSession, rollup: Rollup) -> tuple[Plan, Counted]:
    """The plan that rules the tables of a rollup, and the rows of each in the time that all of them hold.

    Raises:
        UsageError: There are no rows to count.
    """
    target = Target.found(spark, optimize(rollup))
    with translating():
        rows = {tier: target.storage.stored(tier, state.version) for tier, state in target.states.items()}
        ends = {tier: _ends(each) for tier, each in rows.items()}
        known = [each for each in ends.values() if each is not None]
        span = Interval(max((each.start for each in known), default=0), min((each.end for each in known), default=0))
        if span.start >= span.end:
            raise UsageError(
                f"rollup '{rollup.name}': its tables hold no time in common, so there is nothing to count.",
                hint="run stairwise backfill FILE first.",
            )
        within = {tier: _within(each, span) for tier, each in rows.items() if ends[tier] is not None}
        tiles = [step.tier for step in target.plan.steps if step.tier.tiles and step.tier.name in within]
        coarsest = min(tiles, key=lambda tier: tier.rate, default=None)
        events = None if coarsest is None else within[coarsest.name].agg(F.sum(ROWS.name)).collect()[0][0]
        return target.plan, Counted(
            span=span, tiers={tier: each.count() for tier, each in within.items()}, events=events
        )


def _ends(rows: DataFrame) -> Interval | None:
    """The ends of the first window and of the last one; None: there is none."""
    bounds = rows.agg(*(F.unix_seconds(each("window_end")) for each in (F.min, F.max))).collect()[0]
    return None if bounds[0] is None else Interval(bounds[0], bounds[1])


def _within(rows: DataFrame, span: Interval) -> DataFrame:
    end = F.unix_seconds("window_end")
    return rows.where((end > span.start) & (end <= span.end))
