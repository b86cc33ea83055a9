"""The button of a task that leads to what its run did."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.types import TaskInstanceKey

ROUTE = "rollup_run"
"""The place of the page in the interface, below a run of a DAG."""


class ReportLink(BaseOperatorLink):
    """Leads to the page of the run."""

    @property
    def name(self) -> str:
        """What the button says."""
        return "Rollup report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The path of the page; Airflow may itself be below another one."""
        del operator
        below = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
        return f"{below}/dags/{quote(ti_key.dag_id, safe='')}/runs/{quote(ti_key.run_id, safe='')}/plugin/{ROUTE}"
