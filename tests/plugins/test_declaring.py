"""A DAG with rollups is parsed without Spark, comes out the same each time, and says what is wrong in our words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stairwise_airflow
from tests.plugins.declared import TRIPS

pytestmark = pytest.mark.airflow

DAG_FILE = """\
from airflow.sdk import DAG, CronDataIntervalTimetable
from stairwise_airflow import RollupOperator, RollupTaskGroup, backfill_dag

with DAG("trips", schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"), catchup=False):
    RollupOperator(task_id="rollup", rollup="rollups/trips.yaml", conn_id="spark_default")
    RollupTaskGroup(rollup="rollups/trips.yaml", group_id="tiers", conn_id="spark_default")

history = backfill_dag("rollups/trips.yaml", conn_id="spark_default")
"""
SHOW = """\
import json, sys
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
bag = DagBag(sys.argv[1], safe_mode=False)
engines = sorted({"pyspark", "delta", "numpy", "pandas"} & set(sys.modules))
shown = {name: json.dumps(DagSerialization.to_dict(dag), sort_keys=True) for name, dag in bag.dags.items()}
print("\\n" + json.dumps([shown, list(bag.import_errors.values()), engines]))
"""
PARSE_TIME = """\
import time
from airflow.sdk import DAG
from stairwise import Rollup, Source
from stairwise_airflow import RollupOperator
windows = [f"{minutes}m" for minutes in range(5, 105, 5)]
def build(name):
    rollup = Rollup(name=name, source=Source(table="trips", time="at"), aggregates={"n": "count()"}, windows=windows,
                    target="lake/out")
    with DAG(name, schedule=None):
        RollupOperator(task_id="rollup", rollup=rollup.to_yaml())
build("first")
taken = []
for number in range(5):
    begun = time.process_time()
    build(f"trips{number}")
    taken.append(time.process_time() - begun)
print(min(taken))
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    finished = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, check=False, cwd=Path(sys.prefix)
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()[-1]


def parsed(folder: Path, **environment: str) -> tuple[dict[str, str], list[str], list[str]]:
    shown, errors, engines = json.loads(run(SHOW, str(folder), **environment))
    return shown, errors, engines


@pytest.fixture
def folder(tmp_path: Path, airflow_db: None) -> Path:
    del airflow_db
    (tmp_path / "rollups").mkdir()
    (tmp_path / "rollups" / "trips.yaml").write_text(TRIPS, encoding="utf-8")
    (tmp_path / "stairwise_trips.py").write_text(DAG_FILE, encoding="utf-8")
    return tmp_path


def test_a_dag_is_parsed_without_an_engine_and_the_same_each_time(folder: Path) -> None:
    shown, errors, engines = parsed(folder, PYTHONHASHSEED="1")
    again, _, _ = parsed(folder, PYTHONHASHSEED="2")
    assert errors == engines == []
    assert sorted(shown) == ["trips", "trips_backfill"]
    assert shown == again
    assert "rollup: trips" in shown["trips"]


def test_what_is_wrong_in_a_declaration_is_the_import_error(folder: Path) -> None:
    file = folder / "rollups" / "trips.yaml"
    file.write_text(TRIPS.replace("sum(fare)", "sum()"), encoding="utf-8")
    shown, errors, _ = parsed(folder)
    assert shown == {}
    assert len(errors) == 1
    assert f"{file}:4:" in errors[0]
    assert "Hint:" in errors[0]


def test_a_file_that_is_not_there_is_named_from_the_folder_of_the_dag(folder: Path) -> None:
    (folder / "rollups" / "trips.yaml").unlink()
    _, (error,), _ = parsed(folder)
    assert f"{folder}/rollups/trips.yaml: the file cannot be read (No such file or directory)." in error


def test_twenty_windows_are_parsed_in_a_tenth_of_a_second() -> None:
    assert float(run(PARSE_TIME)) < 0.1


@pytest.mark.parametrize(
    "code",
    [
        "import airflow, stairwise_airflow; from stairwise_airflow import RollupOperator",
        "from stairwise_airflow import RollupOperator, RollupTaskGroup; import airflow",
        (
            "from airflow.providers_manager import ProvidersManager; ProvidersManager().initialize_providers_list(); "
            "from stairwise_airflow import backfill_dag"
        ),
    ],
)
def test_names_are_there_whoever_comes_first(code: str) -> None:
    assert run(f"{code}; print('done')") == "done"


def test_each_name_is_found_in_its_module() -> None:
    assert stairwise_airflow.__all__ == sorted(stairwise_airflow.__all__)
    for name in stairwise_airflow.__all__:
        found = getattr(stairwise_airflow, name)
        assert found.__name__ == name
        assert found.__module__.startswith("stairwise_airflow.")
    with pytest.raises(AttributeError, match="module 'stairwise_airflow' has no attribute 'RollupOperators'"):
        _ = stairwise_airflow.RollupOperators  # pyright: ignore[reportAttributeAccessIssue]
