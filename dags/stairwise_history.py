"""History on purpose: trigger it with a range, and it is filled in chunks, the newest first."""

from __future__ import annotations

from stairwise_airflow import backfill_dag

history = backfill_dag(
    "rollups/quick_start.yaml", dag_id="stairwise_history", conn_id="spark_default", newest_first=True
)
