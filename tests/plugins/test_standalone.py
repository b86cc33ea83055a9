"""A whole Airflow, started once: hours of a schedule, history out of order, an hour again, and what looks after tables.

Every task is a process of Airflow's that starts the engine's command line, against real tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.plugins.declared import TRIPS, running
from tests.plugins.standalone import Instance, awaited, standalone

pytestmark = [pytest.mark.airflow, pytest.mark.torture]  # minutes

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
HOURS = 5
TIERS = ("15m", "1h")
DAGS = """\
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, CronDataIntervalTimetable, chain
from stairwise_airflow import RollupMaintenanceOperator, RollupOperator, RollupStatusSensor, RollupVerifyOperator

ROLLUP, SLOW = {rollup!r}, {slow!r}

for name, first, last, catchup in (("schedule", 0, 1, True), ("history", 2, 4, False)):
    with DAG(
        name,
        schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
        start_date=datetime(2026, 3, 1, first, tzinfo=UTC),
        end_date=datetime(2026, 3, 1, last, tzinfo=UTC),
        catchup=catchup,
        max_active_runs=2,
    ):
        RollupOperator(task_id="rollup", rollup=ROLLUP, retries=1, retry_delay=timedelta(seconds=1))

with DAG("care", schedule=None):
    chain(
        RollupStatusSensor(
            task_id="sealed", rollup=ROLLUP, until="2026-03-01T05:00:00Z", tiers=["15m", "1h"], poke_interval=10
        ),
        RollupVerifyOperator(task_id="verify", rollup=ROLLUP),
        RollupMaintenanceOperator(task_id="maintain", rollup=ROLLUP),
    )

for name, connection in (("slow", "spark_default"), ("slow_here", "here")):
    with DAG(name, schedule=None):
        RollupOperator(task_id="rollup", rollup=ROLLUP, program=SLOW, conn_id=connection)
"""
SLOW = """\
import os
from pathlib import Path
from pyspark.sql import SparkSession
from stairwise_spark.launch import interruptible

with interruptible():
    session = SparkSession.builder.getOrCreate()
    Path(__file__).with_name("slow_here" if "PYSPARK_GATEWAY_PORT" in os.environ else "slow").touch()
    session.sql("SELECT java_method('java.lang.Thread', 'sleep', 1000L) FROM range(0, 600, 1, 2)").collect()
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("standalone")
    moments = [MIDNIGHT + timedelta(minutes=minute) for minute in range(HOURS * 60)]
    times = pa.array(moments, pa.timestamp("us", tz="UTC"))
    rows = pa.table({"pickup_at": times, "zone_id": [m.minute % 2 for m in moments], "fare": [1.0] * len(moments)})
    write_deltalake(folder / "trips", rows)
    text = TRIPS.replace("lake/trips", f"{folder}/trips").replace("lake/rollups/trips", f"{folder}/out")
    (folder / "dags").mkdir()
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    dags = DAGS.replace("{rollup!r}", repr(text)).replace("{slow!r}", repr(str(folder / "slow.py")))
    (folder / "dags" / "trips.py").write_text(dags, encoding="utf-8")
    with standalone(folder) as started:
        yield started


def held(instance: Instance, tier: str) -> set[tuple[datetime, int, int]]:
    """Of each window and key the number of trips."""
    rows = DeltaTable(instance.folder / "out" / tier).to_pyarrow_table().to_pylist()
    assert len(rows) == len({(row["window_start"], row["zone_id"]) for row in rows})
    return {(row["window_start"], row["zone_id"], row["trips"]) for row in rows}


def wanted(tier: str, hours: int) -> set[tuple[datetime, int, int]]:
    """What the events of so many hours give."""
    length = timedelta(minutes={"15m": 15, "1h": 60}[tier])
    moments = (timedelta(minutes=minute) for minute in range(hours * 60))
    counted = Counter((MIDNIGHT + moment // length * length, moment.seconds // 60 % 2) for moment in moments)
    return {(start, zone, trips) for (start, zone), trips in counted.items()}


def versions(instance: Instance) -> dict[str, int]:
    return {tier: DeltaTable(instance.folder / "out" / tier).version() for tier in TIERS}


def lineage(folder: Path) -> set[tuple[tuple[str, str], tuple[str, str], int]]:
    """Each source and table that OpenLineage was told of, with the rows that were written."""
    lines = (folder / "lineage").read_text(encoding="utf-8").splitlines()
    return {
        (_named(read), _named(wrote), wrote["outputFacets"]["outputStatistics"]["rowCount"])
        for event in map(json.loads, lines)
        if event["eventType"] == "COMPLETE" and event["job"]["name"] == "schedule.rollup"
        for read in event["inputs"]
        for wrote in event["outputs"]
    }


def _named(dataset: Mapping[str, str]) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


def test_schedule_history_and_what_is_done_again_end_in_true_tables(instance: Instance) -> None:
    for dag in ("schedule", "care", "history"):
        instance.unpause(dag)
    scheduled = instance.ended("schedule", 2)
    assert {run["run_type"] for run in scheduled} == {"scheduled"}
    for tier in TIERS:
        assert held(instance, tier) >= wanted(tier, 2)
    assert lineage(instance.folder) >= {
        (("file", f"{instance.folder}/trips"), ("file", f"{instance.folder}/out/{tier}"), rows)
        for tier, rows in (("15m", 8), ("1h", 2))
    }
    # It waits until history is there.
    instance.triggered("care")
    backfill = {
        "dag_id": "history", "from_date": "2026-03-01T02:00:00Z", "to_date": "2026-03-01T04:00:00Z",
        "run_backwards": True, "max_active_runs": 2, "reprocess_behavior": "none", "dag_run_conf": {},
    }  # fmt: skip
    awaited(lambda: instance.asked("backfills", backfill), instance.said)
    instance.ended("history", 3)
    times = sorted((task["start_date"], task["end_date"], task["logical_date"]) for task in instance.tasks("history"))
    assert any(begun < end for (_, end, _), (begun, _, _) in pairwise(times)), "no two ran at once"
    assert [day for *_, day in times] != sorted(day for *_, day in times), "they ran in order"
    for tier in TIERS:
        assert held(instance, tier) == wanted(tier, HOURS)
    instance.ended("care", 1)
    ends = {task["task_id"]: task["end_date"] for task in instance.tasks("care")}
    assert ends["sealed"] > max(end for _, end, _ in times)
    for tier in TIERS:
        assert held(instance, tier) == wanted(tier, HOURS)
    # One hour again: all is there already.
    before, again = versions(instance), scheduled[0]["dag_run_id"]
    instance.asked(f"dags/schedule/dagRuns/{again}/clear", {"dry_run": False})
    instance.ended("schedule", 2)
    assert [task["try_number"] for task in instance.tasks("schedule") if task["dag_run_id"] == again] == [2]
    assert versions(instance) == before


def test_a_table_that_is_not_true_fails_the_check_with_what_differs(instance: Instance) -> None:
    DeltaTable(instance.folder / "out" / "1h").delete("zone_id = 1 AND window_start = '2026-03-01T01:00:00Z'")
    instance.triggered("care")
    instance.ended("care", 2, well=False)
    states = {task["task_id"]: task["state"] for task in instance.tasks("care") if task["state"] != "success"}
    assert states == {"verify": "failed", "maintain": "upstream_failed"}
    assert "The tables differ from the source in 1 places." in instance.said("verify")
    assert "1h at 2026-03-01T01:00:00Z" in instance.said("verify")


@pytest.mark.parametrize("dag", ["slow", "slow_here"])
def test_a_task_that_is_marked_as_failed_leaves_nothing_behind(instance: Instance, dag: str) -> None:
    instance.unpause(dag)
    run, program = instance.triggered(dag), instance.folder / "slow.py"
    awaited((instance.folder / dag).exists, instance.said)
    # On the server, or in a JVM of its own.
    awaited(lambda: instance.spark.is_busy() or len(running(program)) > 1, instance.said)
    instance.asked(f"dags/{dag}/dagRuns/{run}/taskInstances/rollup", {"new_state": "failed"}, "PATCH")
    awaited(lambda: not running(program) and not instance.spark.is_busy(), instance.said)
    instance.ended(dag, 1, well=False)
