"""A DAG of somebody else's that runs for each local day once all of its hours are there, by partition events."""

from __future__ import annotations

from airflow.sdk import DAG, PartitionedAssetTimetable, task

from stairwise_airflow import window_asset
from stairwise_airflow.partitions import rollup_partitions

hours = window_asset("visits", "1h")

with DAG(
    "stairwise_downstream",
    schedule=PartitionedAssetTimetable(
        assets=hours, default_partition_mapper=rollup_partitions("day in Europe/Paris", of="1h")
    ),
    catchup=False,
    tags=["stairwise"],
):

    @task
    def report(partition_key: str | None = None) -> str:
        """The day that is complete, by its start in UTC."""
        return f"the day that began at {partition_key} is complete"

    report()
