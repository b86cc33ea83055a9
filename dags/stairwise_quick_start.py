"""The quick start: every tier of a declaration, once an hour."""

from __future__ import annotations

from airflow.sdk import DAG, CronDataIntervalTimetable

from stairwise_airflow import RollupOperator

with DAG(
    "stairwise_quick_start",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["stairwise"],
):
    RollupOperator(task_id="rollup", rollup="rollups/quick_start.yaml", conn_id="spark_default")
