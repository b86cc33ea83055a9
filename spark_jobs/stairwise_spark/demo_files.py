"""What the demo writes for Airflow: a declaration, and the DAGs that carry it out."""

from __future__ import annotations

from pathlib import Path

from stairwise import Estimates, Rollup, Source
from stairwise.zones import DAY_SECONDS
from stairwise_spark.demo_rows import YEAR, ZONE, ZONES

DAG_ID, HISTORY_ID = "stairwise_demo", "stairwise_demo_history"
DAYS = f"day_in_{ZONE.replace('/', '_').lower()}"
"""The name of the days in the table."""
DAGS = f'''\
"""Trips of taxis: what is due, once an hour; and history, when somebody asks for a range of it."""

from __future__ import annotations

from airflow.sdk import DAG, CronDataIntervalTimetable
from stairwise_airflow import RollupOperator, backfill_dag

with DAG(
    "{DAG_ID}",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["stairwise"],
):
    RollupOperator(task_id="rollup", rollup="rollups/demo.yaml", conn_id="spark_default")

history = backfill_dag("rollups/demo.yaml", dag_id="{HISTORY_ID}", conn_id="spark_default")
'''


def declaration(events: Path, target: Path, rows: int) -> Rollup:
    """What is declared of a year of so many trips."""
    return Rollup(
        name="demo",
        source=Source(path=str(events), time="pickup_at"),
        keys=("zone_id",),
        aggregates={"trips": "count()", "revenue": "sum(fare)", "mean_fare": "avg(fare)"},
        windows=(
            "5m",
            "15m",
            "1h",
            "90m",
            f"day in {ZONE}",
            f"week in {ZONE}",
            f"month in {ZONE}",
            f"28 days every day in {ZONE} as last_28_days",
        ),
        target=str(target),
        # One commit a run: most of an hour's work would be commits of eight tables.
        layout="one_table",
        estimates=Estimates(rows_per_day=rows * DAY_SECONDS // (YEAR.end - YEAR.start), distinct_keys=ZONES),
    )
