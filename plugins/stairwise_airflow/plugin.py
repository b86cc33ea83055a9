"""What Airflow loads in each of its processes: the plugin, and nothing else."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class StairwisePlugin(AirflowPlugin):
    """Stairwise, as ``airflow plugins`` lists it."""

    name = "stairwise"
