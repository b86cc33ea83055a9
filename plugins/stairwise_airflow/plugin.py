"""What Airflow loads in each of its processes: the plugin, and nothing else."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from stairwise_airflow.links import ReportLink
from stairwise_airflow.partitions import RollupWindow, RollupWindowMapper


class StairwisePlugin(AirflowPlugin):
    """Stairwise, as ``airflow plugins`` lists it."""

    name = "stairwise"
    operator_extra_links = [ReportLink()]  # noqa: RUF012 - as Airflow wants it
    partition_mappers = [RollupWindowMapper]  # noqa: RUF012 - as above
    windows = [RollupWindow]  # noqa: RUF012 - as above
