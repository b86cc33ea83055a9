"""What Airflow adds: the seconds until a DAG is parsed, and those of a task around the work of Spark in it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any  # noqa: TID251 - what JSON holds

import pyarrow as pa
from deltalake import write_deltalake
from events import FOLDER
from runs import Row, slower

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

HOME = FOLDER / "airflow"
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
HOURS, A_MINUTE = 5, 2_000
"""So many hourly runs, of so many events a minute."""
GOAL_PARSED_MS = {20: "100 ms"}


def airflow_speed(only: Collection[str] = ()) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other."""
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "dags").mkdir(parents=True)
    # Airflow reads its settings when it is first imported.
    os.environ |= {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    }
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section()


def parsing() -> Iterator[Row]:
    """A DAG of an operator, and of a group with a task for each tier, made and serialised."""
    from airflow.serialization.serialized_objects import DagSerialization

    for windows in (1, 20, 100):
        texts = [f"{5 * (number + 1)}m" for number in range(windows)]
        for is_group in (False, True):
            seconds: list[float] = []
            for _ in range(7):
                started = time.perf_counter()
                DagSerialization.to_dict(_dag(texts, is_group=is_group))  # pyright: ignore[reportUnknownMemberType]
                seconds.append(time.perf_counter() - started)
            what = "a task for each tier" if is_group else "one task"
            goal = "" if is_group else GOAL_PARSED_MS.get(windows, "")
            yield (
                f"a DAG of {windows} windows with {what}: parsed and serialised, ms",
                f"{1000 * median(seconds):.1f}",
                "",
                "",
                goal,
            )


def hourly_tasks() -> Iterator[Row]:
    """Hours by spark-submit on this machine, each with a JVM of its own."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.db import initdb

    initdb()
    moments = [MIDNIGHT + timedelta(seconds=60 * number / A_MINUTE) for number in range(HOURS * 60 * A_MINUTE)]
    rows = {
        "at": pa.array(moments, pa.timestamp("us", tz="UTC")),
        "k": [number % 100 for number in range(len(moments))],
    }
    write_deltalake(HOME / "events", pa.table(rows))
    dag = _dag(["1m", "5m", "15m", "1h"], is_group=False)
    DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]  # as Airflow has it
    bag = DagBag(collect_dags=False, dag_folder=os.devnull)
    bag.bag_dag(dag)
    sync_bag_to_db(bag, "dags-folder", None)
    found = [_hour(dag, MIDNIGHT + timedelta(hours=hour + 1)) for hour in range(HOURS)][1:]
    whole, session, work, first = (median(each) for each in zip(*found, strict=True))
    yield "from the task's start to its first tier", f"{first:.2f}", "", "", ""
    yield slower("an hourly run, its whole task / the work of the engine in it", whole, work, "")
    yield slower("the same / that and the start of the JVM and its session", whole, work + session, "")


def _hour(dag: DAG, until: datetime) -> tuple[float, float, float, float]:
    """The seconds of the task, of the session's start, of the engine's work, and from the task's start to a tier."""
    run: DagRun = dag.test(logical_date=until)  # pyright: ignore[reportUnknownMemberType]  # as Airflow has it
    (task,) = run.get_task_instances()
    report: dict[str, Any] = task.xcom_pull(task_ids="rollup")
    if task.start_date is None or task.end_date is None:
        raise AssertionError(f"{task} has not run.")
    whole = (task.end_date - task.start_date).total_seconds()
    first = min(tier["seconds"] for tier in report["tiers"] if tier["rows_written"])
    before = whole - report["seconds"]
    return whole, report["startup_seconds"], report["seconds"], before + first


def _dag(windows: list[str], *, is_group: bool) -> DAG:
    from airflow.sdk import DAG, CronDataIntervalTimetable

    from stairwise import Rollup, Source
    from stairwise_airflow import RollupOperator, RollupTaskGroup

    hourly = CronDataIntervalTimetable("@hourly", timezone="UTC")
    with DAG("bench", schedule=hourly, start_date=MIDNIGHT, catchup=False) as dag:
        rollup = Rollup(
            name="bench", source=Source(path=str(HOME / "events"), time="at"), keys=("k",), aggregates={"n": "count()"},
            windows=tuple(windows), target=str(HOME / "tables"), layout="one_table",
        )  # fmt: skip
        if is_group:
            RollupTaskGroup(rollup=rollup)
        else:
            RollupOperator(task_id="rollup", rollup=rollup)
    return dag


SECTIONS: Mapping[str, Any] = MappingProxyType({"parsing": parsing, "hourly-tasks": hourly_tasks})
