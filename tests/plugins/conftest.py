"""A real Airflow for the tests of its side: its own home, its own database, made once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG

# Airflow reads its settings when it is first imported, which the modules beside this one do when they are.
HOME = Path(tempfile.mkdtemp(prefix="stairwise-airflow-"))
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(HOME / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of sixty-four bytes, for tests alone, never used elsewhere",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    "AIRFLOW_CONN_CONNECT": '{"conn_type": "spark_connect", "host": "connect.test", "port": 15002, "password": "t"}',
}


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Not even imported where no test that needs Airflow is to run: that takes seconds."""
    return True if "not airflow" in str(config.getoption("markexpr")) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Airflow warns of itself, and of what it uses."""
    item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Airflow's database, with its tables."""
    (HOME / "dags").mkdir(exist_ok=True)
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def known(airflow_db: None) -> Callable[[DAG], DAG]:
    """Makes Airflow know a DAG that a test has declared."""
    del airflow_db
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    def sync(dag: DAG) -> DAG:
        DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]  # as Airflow has it
        bag = DagBag(collect_dags=False, dag_folder=os.devnull)
        bag.bag_dag(dag)
        sync_bag_to_db(bag, "dags-folder", None)
        return dag

    return sync
