"""The example DAGs as users start them: Airflow runs their tasks, a Spark server works for all, and tables come out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG
from airflow.sdk.definitions.dag import _run_task  # pyright: ignore[reportPrivateUsage]  # as its DAG.test does
from airflow.utils.session import create_session
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import select

from tests.spark_jobs.torture.fleet import HERE, Server

pytestmark = pytest.mark.airflow

MIDNIGHT = datetime(2026, 3, 28, tzinfo=UTC)
MINUTES, ZONES = 3 * 24 * 60, 2
Held = dict[tuple[datetime, int], int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything runs: the declarations name their sources and targets from there. Two events a minute."""
    found = tmp_path_factory.mktemp("examples")
    instants = [MIDNIGHT + timedelta(minutes=minute) for minute in range(MINUTES) for _ in range(ZONES)]
    times, keys = pa.array(instants, pa.timestamp("us", tz="UTC")), [*range(ZONES)] * MINUTES
    trips = {"pickup_at": times, "zone_id": keys, "fare": pa.array([1.5] * len(keys))}
    visits = {"entered_at": times, "shop_id": keys, "minutes": [7] * len(keys), "visitor_id": keys}
    for name, rows in (("quick_start/trips", trips), ("visits/visits", visits)):
        (found / "lake" / name).mkdir(parents=True)
        write_deltalake(found / "lake" / name, pa.table(rows))
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    started = Server(folder)
    started.start()
    yield started
    started.kill()


@pytest.fixture
def examples(
    airflow_db: None,
    repository: Path,
    folder: Path,
    server: Server,
    known: Callable[[DAG], DAG],
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, DAG]:
    """The examples as they are, where ``spark_default`` is the server."""
    del airflow_db
    monkeypatch.chdir(folder)
    connection = {"conn_type": "spark_connect", "host": HERE, "port": server.port}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    bag = DagBag(str(repository / "dags"))
    assert bag.import_errors == {}
    return {name: known(dag) for name, dag in bag.dags.items()}


def held(table: str, column: str, key: str) -> Held:
    """What a table holds in a column, by window and key."""
    rows = DeltaTable(Path("lake") / table).to_pyarrow_table().to_pylist()
    found = {(row["window_start"], row[key]): row[column] for row in rows}
    assert len(found) == len(rows)
    return found


def counted(start: datetime, end: datetime, every: timedelta) -> Held:
    """How many events there are in each window of a range, by key."""
    minutes = (start + timedelta(minutes=at) for at in range((end - start) // timedelta(minutes=1)))
    return Counter((start + (at - start) // every * every, key) for at in minutes for key in range(ZONES))


def test_history_is_filled_once_and_the_quick_start_goes_on_from_there(examples: dict[str, DAG]) -> None:
    end = MIDNIGHT + timedelta(days=2)
    conf = {"start": MIDNIGHT.isoformat(), "end": end.isoformat()}
    hour = timedelta(hours=1)
    for _ in range(2):  # the second one finds nothing to do
        run = examples["stairwise_history"].test(logical_date=end, run_conf=conf)
        assert run.state == "success"
        assert DeltaTable("lake/quick_start/rollups/1h").version() == 1
    assert held("quick_start/rollups/1h", "trips", "zone_id") == counted(MIDNIGHT, end, hour)
    assert held("quick_start/rollups/day", "trips", "zone_id") == counted(MIDNIGHT, end, timedelta(days=1))

    assert examples["stairwise_quick_start"].test(logical_date=end + hour).state == "success"
    assert held("quick_start/rollups/1h", "trips", "zone_id") == counted(MIDNIGHT, end + hour, hour)
    assert held("quick_start/rollups/5m", "trips", "zone_id") == counted(MIDNIGHT, end + hour, hour / 12)
    assert set(held("quick_start/rollups/1h_every_15m", "revenue", "zone_id").values()) >= {90.0}


def test_airflow_s_command_line_says_what_the_tables_hold(server: Server, repository: Path, folder: Path) -> None:
    file = str(repository / "dags" / "rollups" / "quick_start.yaml")
    done = airflow(folder, "status", file, "--remote", server.url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)  # one document, and nothing else
    assert {tier["name"] for tier in told["tiers"]} == {"5m", "1h_every_15m", "1h", "day"}
    end = MIDNIGHT + timedelta(hours=49)
    assert {tuple(each) for tier in told["tiers"] if tier["name"] == "1h" for each in tier["covered"]} == {
        tuple(at.strftime("%Y-%m-%dT%H:%M:%SZ") for at in (MIDNIGHT, end))
    }


def test_airflow_s_command_line_plans_and_refuses_as_ours_does(repository: Path, folder: Path) -> None:
    done = airflow(folder, "plan", str(repository / "dags" / "rollups" / "quick_start.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("quick_start: 4 windows for ")
    refused = airflow(folder, "status", "missing.yaml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "missing.yaml: the file cannot be read (No such file or directory). Hint: check the path.\n"
    )


def airflow(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What ``airflow stairwise`` answers, in a home of its own that nobody has prepared."""
    program = str(Path(sys.executable).with_name("airflow"))
    around = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK", "PYTEST"))}
    return subprocess.run(
        [program, "stairwise", *words], cwd=folder, env=around | {"AIRFLOW_HOME": str(folder / "home")},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_local_days_are_whole_and_start_what_waits_for_a_day_of_23_hours(examples: dict[str, DAG]) -> None:
    downstream = examples["stairwise_downstream"]
    with create_session() as session:
        waiting = session.scalars(select(DagModel).where(DagModel.dag_id == downstream.dag_id)).one()
        waiting.is_paused = False
    begins, ends = MIDNIGHT + timedelta(hours=23), MIDNIGHT + timedelta(hours=46)
    assert examples["stairwise_local_days"].test(logical_date=ends).state == "success"
    days = held("visits/rollups/day_in_europe_paris", "visits", "shop_id")
    assert days == {(begins, shop): 23 * 60 for shop in range(ZONES)}
    assert held("visits/rollups/1h", "visits", "shop_id") == counted(begins, ends, timedelta(hours=1))
    # Each task wrote a tier, and the last one left what all of them have come to.
    covered = json.loads(Path("lake/visits/rollups/_stairwise/covered.json").read_text(encoding="utf-8"))
    day = [[at.strftime("%Y-%m-%dT%H:%M:%SZ") for at in (begins, ends)]]
    assert (covered["tiers"]["1h"], covered["tiers"]["day_in_europe_paris"]) == (day, day)
    # Seven days by the clocks of Paris, of which there are events on the last two.
    assert set(held("visits/rollups/last_7_days", "visits", "shop_id").values()) == {(23 + 23) * 60}

    with create_session() as session:
        scheduler = SchedulerJobRunner(job=Job())  # type: ignore[no-untyped-call]  # as Airflow has it
        scheduler._create_dagruns_for_partitioned_asset_dags(session)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - one round of it
    key = begins.strftime("%Y-%m-%dT%H:%M:%S")
    with create_session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.dag_id == downstream.dag_id)).all()
        (run,) = [each for each in runs if each.partition_key == key]
        (task,) = run.get_task_instances(session=session)
        result = _run_task(ti=task, task=downstream.get_task("report"))
        assert result is not None
        assert task.xcom_pull(task_ids="report", session=session) == f"the day that began at {key} is complete"
