"""The frames of a chunk: what is kept in memory of them, and how."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.tiers import Tier
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, touched
from stairwise_spark.engine import Request, run
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.session import having, planned_once, shuffle_tasks
from stairwise_spark.source import open_source
from stairwise_spark.spans import Spans, joined
from stairwise_spark.storage import Storage
from stairwise_spark.work import Work

pytestmark = pytest.mark.spark

ADAPTIVE, TASKS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
DAY = Interval(0, 86_400)


def chain(folder: Path, length: int) -> Plan:
    """Tiers that are made of each other, one after the other."""
    windows = [f"{2**number}m" for number in range(length)]
    rollup = Rollup(
        name="chain", source=Source(path=str(folder), time="at"), keys=["k"], aggregates={"n": "count()"},
        windows=windows, target=str(folder) + "-tables", estimates=Estimates(rows_per_day=10_000_000, distinct_keys=10),
    )  # fmt: skip
    plan = optimize(rollup)
    assert [step.reads for step in plan.steps[1:]] == [step.tier.name for step in plan.steps[:-1]]
    return plan


def described(spark: SparkSession, plan: Plan, capsys: pytest.CaptureFixture[str]) -> int:
    """How long Spark's description is of the coarsest tier, where all tiers have been made and are kept."""
    assert plan.declaration is not None
    source = open_source(spark, plan.declaration, direct)
    aggregates = plan.declaration.aggregates
    work = Work(
        plan=plan,
        content=Content(
            keys=("k",),
            aggregates=aggregates,
            types=argument_types(source.rows(), [each for _, each in aggregates]),
        ),
        source=source,
        storage=Storage.of(spark, plan),
        versions={},
        available={},
        due={step.tier.name: (DAY,) for step in plan.steps},
        goes_together=False,
    )
    try:
        coarsest = work.frames()[plan.steps[-1].tier.name].frame
        assert [row["n"] for row in coarsest.groupBy("k").agg(F.sum("_rows").alias("n")).collect()] == [1440] * 10
        capsys.readouterr()
        coarsest.explain()
    finally:
        work.release()
    return len(capsys.readouterr().out)


def test_a_chain_of_tiers_is_described_in_proportion_to_its_length(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = spark.range(14_400).select(
        F.timestamp_seconds(F.col("id") * 6).alias("at"), (F.col("id") % 10).alias("k")
    )
    minutes.write.format("delta").save(str(tmp_path / "events"))
    # Each tier more once doubled it.
    three, six = (described(spark, chain(tmp_path / "events", length), capsys) for length in (3, 6))
    assert six < 3 * three


def test_what_is_kept_is_planned_once_and_nothing_else(spark: SparkSession) -> None:
    tasks = shuffle_tasks(spark)
    before = spark.conf.get(ADAPTIVE, None)
    with planned_once(spark, 1):
        assert (spark.conf.get(ADAPTIVE), shuffle_tasks(spark)) == ("false", 1)
    with planned_once(spark, tasks + 1):
        assert shuffle_tasks(spark) == tasks
    assert (spark.conf.get(ADAPTIVE, None), shuffle_tasks(spark)) == (before, tasks)


def test_settings_come_back_as_they_were(spark: SparkSession) -> None:
    unknown = "spark.stairwise.test"
    tasks = shuffle_tasks(spark)
    with having(spark, {TASKS: "1", unknown: "yes"}):
        assert (shuffle_tasks(spark), spark.conf.get(unknown)) == (1, "yes")
    assert (shuffle_tasks(spark), spark.conf.get(unknown, None)) == (tasks, None)


def test_a_late_row_is_one_query_however_many_tiers_it_touches(spark: SparkSession, tmp_path: Path) -> None:
    """What is read beside what is made goes through the same pass, so nothing is kept in memory but its result."""
    plan = chain(tmp_path / "events", 6)
    assert plan.declaration is not None
    minutes = spark.range(14_400).select(
        F.timestamp_seconds(F.col("id") * 6).alias("at"), (F.col("id") % 10).alias("k")
    )
    minutes.write.format("delta").save(str(tmp_path / "events"))
    run(spark, plan, Request(span=DAY))
    minutes.where("id IN (1000, 9000)").write.format("delta").mode("append").save(str(tmp_path / "events"))
    names = [step.tier.name for step in plan.steps]
    storage = Storage.of(spark, plan)
    states = storage.states()
    source = open_source(spark, plan.declaration, direct)
    aggregates = plan.declaration.aggregates
    due = {step.tier.name: touched_by(step.tier, 6_000, 54_000) for step in plan.steps}
    work = Work(
        plan=plan,
        content=Content(
            keys=("k",), aggregates=aggregates, types=argument_types(source.rows(), [each for _, each in aggregates])
        ),
        source=source,
        storage=storage,
        versions={name: state.version for name, state in states.items()},
        available=dict.fromkeys(names, (DAY,)),
        due=due,
        goes_together=True,
    )
    try:
        rows = work.written(work.frames())
        assert len({id(rows[name].frame) for name in names}) == 1
        found = (
            rows[names[0]].frame.groupBy("_tier").agg(F.count_distinct("_end").alias("n"), F.sum("_rows").alias("r"))
        )
        assert sorted((row[0], row[1], row[2]) for row in found.collect()) == [
            (number, 2, 2 * 10 * 2**number // 2 + 2) for number in range(1, 7)
        ]
    finally:
        work.release()


def touched_by(tier: Tier, *seconds: int) -> Spans:
    """The windows of a tier that hold some instants, as ranges of their ends."""
    return joined(touched(tier, Interval(second, second + 1)) for second in seconds)
