"""What a run begins with: the source at one version, the plan that rules the tables, and what is known of these."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from stairwise.errors import PlanError
from stairwise.plan import Plan
from stairwise.rollup import Rollup
from stairwise_spark.applied import going_on
from stairwise_spark.expressions import direct
from stairwise_spark.ledger import new_run
from stairwise_spark.source import PinnedSource, open_source
from stairwise_spark.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What was looked at, for a run.

    Attributes:
        run_id: Names the run; made before anything was looked at, so that it knows what was done by then.
        rollup: What is declared.
        plan: The plan that it goes by.
        source: The source.
        storage: The tables.
        is_made: Whether all of them are there.
        beside: Does what nothing waits for as yet.
    """

    run_id: str
    rollup: Rollup
    plan: Plan
    source: PinnedSource
    storage: Storage
    is_made: bool
    beside: ThreadPoolExecutor


def opened(
    spark: SparkSession,
    plan: Plan,
    beside: ThreadPoolExecutor,
    *,
    is_ahead: bool = False,
    there: Storage | None = None,
) -> Opened:
    """What a run of a plan begins with; no row is read, and nothing is made.

    Args:
        spark: A session in UTC.
        plan: What is declared; the tables go on with the plan that they were made by, if that is of the same.
        beside: Looks at the bookkeeping while the source is opened.
        is_ahead: Whether the plan does not rule the tables yet, and is gone by all the same.
        there: Its tables, if they were found just now, and what they are to be about.

    Raises:
        PlanError: There is no declaration in it.
        ChangedError: The tables were filled with something else.
        SourceError: The declaration does not fit the source.
    """
    rollup = plan.declaration
    if rollup is None:
        raise PlanError(f"plan '{plan.rollup}': there is no declaration in it, so there is no target.")
    run_id = new_run()
    storage = replace(Storage.of(spark, plan), is_ruling=not is_ahead)
    looking = beside.submit(storage.ledger.summaries) if there is None else None
    source = open_source(spark, rollup, direct)
    if there is not None and there.wanted.source == source.identity:
        storage = there
    else:
        storage = replace(storage, wanted=replace(storage.wanted, source=source.identity))
    is_made = storage.is_made(None if looking is None else looking.result())
    if storage.is_ruling and storage.ledger.summary.plan != storage.plan:
        running = going_on(storage.ledger.load_plan(), plan)
        if running is not plan:
            plan, storage = running, Storage.of(spark, running, source.identity)
            is_made = storage.is_made()
    return Opened(
        run_id=run_id, rollup=rollup, plan=plan, source=source, storage=storage, is_made=is_made, beside=beside
    )
