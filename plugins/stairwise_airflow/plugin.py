"""What Airflow loads in each of its processes: the plugin, and nothing else."""

from __future__ import annotations

from stairwise_airflow.required import check_airflow

# Another Airflow lacks what is imported next; it shows this error instead, as that of the plugin.
check_airflow()

from airflow.plugins_manager import AirflowPlugin  # noqa: E402

from stairwise_airflow.lazy_web import LazyApp  # noqa: E402
from stairwise_airflow.links import ROUTE, ReportLink  # noqa: E402
from stairwise_airflow.partitions import RollupWindow, RollupWindowMapper  # noqa: E402


class StairwisePlugin(AirflowPlugin):
    """Stairwise, as ``airflow plugins`` lists it."""

    name = "stairwise"
    # Addresses without a leading slash: they are right where Airflow itself is below another path.
    fastapi_apps = [{"app": LazyApp(), "url_prefix": "/stairwise", "name": "Stairwise"}]  # noqa: RUF012 - Airflow's
    external_views = [  # noqa: RUF012 - as above
        {
            "name": "Rollups",
            "href": "stairwise/rollups",
            "destination": "nav",
            "url_route": "rollups",
            "category": "browse",
        },
        {"name": "Rollups", "href": "stairwise/dags/{DAG_ID}", "destination": "dag", "url_route": "rollups_dag"},
        {
            "name": "Rollups",
            "href": "stairwise/dags/{DAG_ID}/runs/{RUN_ID}",
            "destination": "dag_run",
            "url_route": ROUTE,
        },
    ]
    operator_extra_links = [ReportLink()]  # noqa: RUF012 - as above
    partition_mappers = [RollupWindowMapper]  # noqa: RUF012 - as above
    windows = [RollupWindow]  # noqa: RUF012 - as above
