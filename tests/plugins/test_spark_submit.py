"""The whole way once, with a real spark-submit; and what is killed leaves no JVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowException
from deltalake import DeltaTable, write_deltalake

from stairwise_airflow import RollupOperator
from stairwise_airflow.application import DELTA_CONF, DELTA_COORDINATES
from stairwise_airflow.errors import refusal
from stairwise_airflow.spark_settings import Submission, completed
from stairwise_spark.session import SessionOptions, own_settings  # pyright: ignore[reportPrivateUsage]
from stairwise_spark.versions import DELTA_COORDINATE, SPARK
from tests.plugins.declared import TRIPS, running

pytestmark = pytest.mark.airflow

FIVE = datetime(2026, 3, 1, 5, tzinfo=UTC)
SLEEP = "import time; print('started', flush=True); time.sleep(600)"


def test_a_scheduled_hour_is_in_the_tables(known: Callable[[DAG], DAG], tmp_path: Path) -> None:
    moments = [FIVE + timedelta(minutes=minute) for minute in range(-60, 120)]
    times = pa.array(moments, pa.timestamp("us", tz="UTC"))
    rows = pa.table({"pickup_at": times, "zone_id": [m.minute % 2 for m in moments], "fare": [1.0] * len(moments)})
    write_deltalake(tmp_path / "trips", rows)
    text = TRIPS.replace("lake/trips", f"{tmp_path}/trips").replace("lake/rollups/trips", f"{tmp_path}/out")
    with DAG("real", schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"), catchup=False) as dag:
        RollupOperator(task_id="rollup", rollup=text, conn_id="spark_default", env_vars={"STAIRWISE_TEST": "1"})
    run = known(dag).test(logical_date=FIVE + timedelta(hours=1))
    assert run.state == "success"
    hours = DeltaTable(tmp_path / "out" / "1h").to_pyarrow_table().to_pylist()
    assert {(row["zone_id"], row["window_start"], row["trips"], row["revenue"]) for row in hours} == {
        (zone, FIVE, 30, 30.0) for zone in (0, 1)
    }
    told = run.get_task_instances()[0].xcom_pull(task_ids="rollup")
    assert {tier["name"]: tier["rows_written"] for tier in told["tiers"]} == {
        "15m": 8, "1h": 2, "day_in_europe_paris": 0,
    }  # fmt: skip
    assert len(list((tmp_path / "out" / "_stairwise" / "runs").glob("*.json"))) == 1


def test_what_is_killed_leaves_no_jvm(airflow_db: None, tmp_path: Path) -> None:
    del airflow_db
    program = tmp_path / "sleep.py"
    program.write_text(SLEEP, encoding="utf-8")
    task = RollupOperator(task_id="kill", rollup=TRIPS, conn_id="spark_default")
    task.application, task.application_args = str(program), []
    failed: list[AirflowException] = []

    def submit() -> None:
        try:
            task.submit({})
        except AirflowException as error:
            failed.append(error)

    thread = Thread(target=submit)
    thread.start()
    deadline = time.monotonic() + 240
    while "started" not in task.listener.noise and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "started" in task.listener.noise
    assert running(program)
    task.on_kill()
    thread.join(60)
    assert failed
    while running(program) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not running(program)


def test_one_machine_gets_the_settings_of_a_session_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    ours = own_settings(SessionOptions(master="local[2]"))
    found = completed(Submission(), "local[2]", is_cluster_mode=False)
    for key in ("spark.app.name", "spark.master"):
        del ours[key]
    ours["spark.driver.extraJavaOptions"] = ours["spark.driver.extraJavaOptions"].split()[0]
    assert found.driver_class_path == ours.pop("spark.driver.extraClassPath")
    assert dict(found.conf) == ours
    assert found.packages is None


def test_a_cluster_gets_delta_lake_by_its_coordinate_unless_the_user_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    found = completed(Submission(packages="a:b:1"), "spark://host:7077", is_cluster_mode=True)
    assert found.packages == f"a:b:1,{DELTA_COORDINATE}"
    assert DELTA_COORDINATES[SPARK.rpartition(".")[0]] == DELTA_COORDINATE
    assert found.env_vars == {}
    own = Submission(
        conf={"spark.sql.extensions": "my.Extension"}, packages="io.delta:delta-spark_2.13:9", env_vars={"A": "1"}
    )
    found = completed(own, "yarn", is_cluster_mode=True)
    assert found.packages == own.packages
    assert found.env_vars == own.env_vars
    assert found.conf["spark.sql.extensions"] == f"my.Extension,{DELTA_CONF['spark.sql.extensions']}"


def test_another_spark_is_refused_without_its_delta_lake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "RELEASE").write_text("Spark 3.5.1 built for Hadoop 3.3.4", encoding="utf-8")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(type(refusal("", ""))) as caught:
        completed(Submission(), "yarn", is_cluster_mode=False)
    assert str(caught.value) == (
        "Stairwise was verified with Spark 4.2, and there is Spark 3.5.1. "
        "Hint: name the Delta Lake that goes with it, as in packages='io.delta:...'."
    )
