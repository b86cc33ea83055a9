"""The page on Airflow is run, and says of the configuration what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any  # noqa: TID251 - whatever a page names

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

from stairwise_airflow import Application
from stairwise_airflow.application import DELTA_CONF
from stairwise_airflow.provider import OPTIONS
from tests.plugins.declared import TRIPS

pytestmark = pytest.mark.airflow

APPLICATION = Application(file="s3://jobs/run_plan.py", arguments=("run", "plan:AAAA", "--end", "2026-03-01T06:00:00Z"))
ARGUMENTS = list(APPLICATION.arguments)
PACKAGES = "io.delta:delta-spark_4.2_2.13:4.4.0"


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "airflow.md").read_text(encoding="utf-8")


@pytest.fixture
def names(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's Python names, once all of it has run."""
    (tmp_path / "rollups").mkdir()
    (tmp_path / "rollups" / "trips.yaml").write_text(TRIPS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, str(tmp_path / "page.py"), "exec"), found)  # noqa: S102 - what the page shows
    return found


def test_what_the_page_shows_can_be_declared(names: dict[str, Any]) -> None:
    assert isinstance(names["history"], DAG)
    assert names["task"].declaration.name == "trips"
    assert names["days"].window.window == "day in Europe/Paris"


def test_each_platform_gets_the_program_and_its_arguments(names: dict[str, Any]) -> None:
    databricks = SimpleNamespace(json={"tasks": [{"task_key": "rollup", "spark_python_task": {}}]})
    names["on_databricks"](databricks, APPLICATION)
    assert databricks.json["tasks"] == [
        {
            "task_key": "rollup",
            "spark_python_task": {"python_file": "s3://jobs/run_plan.py", "parameters": ARGUMENTS},
        }
    ]
    emr = SimpleNamespace()
    names["on_emr"](emr, APPLICATION)
    words = emr.steps[0]["HadoopJarStep"]["Args"]
    assert words[:3] == ["spark-submit", "--packages", PACKAGES]
    assert words[-5:] == ["s3://jobs/run_plan.py", *ARGUMENTS]
    livy = SimpleNamespace(spark_params={"file": None, "conf": {"spark.executor.cores": "4"}})
    names["on_livy"](livy, APPLICATION)
    assert livy.spark_params["file"] == "s3://jobs/run_plan.py"
    assert livy.spark_params["args"] == ARGUMENTS
    assert livy.spark_params["conf"] == {
        **DELTA_CONF,
        "spark.jars.packages": PACKAGES,
        "spark.executor.cores": "4",
    }
    own = {"sparkVersion": "4.2.0", "sparkConf": {"spark.ui.enabled": "false"}}
    kubernetes = SimpleNamespace(template_spec={"spark": {"spec": own}})
    names["on_kubernetes"](kubernetes, APPLICATION)
    assert kubernetes.template_spec["spark"]["spec"] == {
        "sparkVersion": "4.2.0",
        "mainApplicationFile": "s3://jobs/run_plan.py",
        "arguments": ARGUMENTS,
        "sparkConf": {**DELTA_CONF, "spark.ui.enabled": "false"},
        "deps": {"packages": [PACKAGES]},
    }
    bash = BashOperator(task_id="bash", bash_command="")
    names["in_bash"](bash, APPLICATION)
    assert bash.bash_command == f"python s3://jobs/run_plan.py {' '.join(ARGUMENTS)}"


def test_every_option_is_on_the_page(text: str) -> None:
    _, _, section = text.partition("\n## Configuration\n")
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(OPTIONS)
