"""The example DAGs import as they are, and run in a real Airflow with a program in the engine's place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from stairwise_spark.demo_files import DAG_ID, DAGS, HISTORY_ID, declaration
from tests.plugins.declared import REPORT, calls, program

pytestmark = pytest.mark.airflow

EXAMPLES = ("stairwise_downstream", "stairwise_history", "stairwise_local_days", "stairwise_quick_start")
RANGE = {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}
MIDNIGHT = datetime(2026, 3, 1, 23, tzinfo=UTC)


@pytest.fixture
def examples(airflow_db: None, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, DAG]:
    """The examples, where another program than the engine's is configured."""
    del airflow_db
    equal: dict[str, object] = {"schema": "stairwise.verify/1", "equal": True, "windows_checked": 5, "differences": []}
    monkeypatch.setenv("AIRFLOW__STAIRWISE__APPLICATION", program(tmp_path, {**REPORT, **equal, **REPORT_SCHEMA}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark_connect", "host": "connect.test"}')
    bag = DagBag(str(repository / "dags"))
    assert bag.import_errors == {}
    return dict(bag.dags)


REPORT_SCHEMA = {"schema": "stairwise.run/1"}


def test_airflow_reads_the_dags_of_the_demo(airflow_db: None, tmp_path: Path) -> None:
    del airflow_db
    (tmp_path / "rollups").mkdir()
    declared = declaration(tmp_path / "trips", tmp_path / "out", 1_000_000)
    (tmp_path / "rollups" / "demo.yaml").write_text(declared.to_yaml(), encoding="utf-8")
    (tmp_path / "stairwise_demo.py").write_text(DAGS, encoding="utf-8")
    bag = DagBag(str(tmp_path))
    assert bag.import_errors == {}
    assert set(bag.dags) == {DAG_ID, HISTORY_ID}


def test_they_are_what_is_there(examples: dict[str, DAG]) -> None:
    assert tuple(sorted(examples)) == EXAMPLES


@pytest.mark.parametrize(
    ("name", "conf", "commands"),
    [
        ("stairwise_quick_start", {}, ["run"]),
        ("stairwise_local_days", RANGE, ["run", "run", "run", "run", "run", "verify"]),
        ("stairwise_history", RANGE, ["backfill"]),
        ("stairwise_downstream", {}, []),
    ],
)
def test_they_run(
    known: Callable[[DAG], DAG],
    examples: dict[str, DAG],
    tmp_path: Path,
    name: str,
    conf: dict[str, str],
    commands: list[str],
) -> None:
    assert known(examples[name]).test(logical_date=MIDNIGHT, run_conf=conf).state == "success"
    assert [call[0] for call in calls(tmp_path)] == commands
