"""Days, months and rolling ranges by the clocks of Paris, a task for each tier, and a check of a few windows a day."""

from __future__ import annotations

from airflow.sdk import DAG, CronDataIntervalTimetable

from stairwise_airflow import RollupTaskGroup, RollupVerifyOperator

with DAG(
    "stairwise_local_days",
    # The schedule's zone is Airflow's business, the windows' the declaration's; here both are Paris.
    schedule=CronDataIntervalTimetable("@daily", timezone="Europe/Paris"),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["stairwise"],
):
    tiers = RollupTaskGroup(rollup="rollups/visits.yaml", conn_id="spark_default")
    tiers >> RollupVerifyOperator(
        task_id="verify", rollup="rollups/visits.yaml", conn_id="spark_default", sample=5, witness=True
    )
