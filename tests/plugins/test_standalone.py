"""A whole Airflow once, in processes of its own: scheduler, API, DAG processor; and the engine itself behind it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any  # noqa: TID251 - what JSON holds

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.plugins.declared import TRIPS

pytestmark = pytest.mark.airflow

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
LONGEST = 600  # seconds, on a machine that is busy with other things
DAGS = """\
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, CronDataIntervalTimetable
from stairwise_airflow import RollupOperator

for name, first, last, catchup in (("schedule", 0, 2, True), ("history", 2, 6, False)):
    with DAG(
        name,
        schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
        start_date=datetime(2026, 3, 1, first, tzinfo=UTC),
        end_date=datetime(2026, 3, 1, last, tzinfo=UTC),
        catchup=catchup,
        max_active_runs=2,
        is_paused_upon_creation=False,
    ):
        RollupOperator(task_id="rollup", rollup={rollup!r}, retries=1, retry_delay=timedelta(seconds=1))
"""


@dataclass(frozen=True, slots=True)
class Instance:
    """An Airflow that runs, and where its events and tables are."""

    folder: Path
    address: str
    token: str

    def asked(self, path: str, body: object = None, method: str = "") -> Any:  # noqa: ANN401 - what was answered
        """The answer of its API."""
        request = urllib.request.Request(  # noqa: S310 - our own
            f"{self.address}/api/v2/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method or ("GET" if body is None else "POST"),
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own
            return json.loads(answer.read())

    def ended(self, dag: str, count: int) -> list[Any]:
        """The runs of a DAG, once so many have succeeded, and no other one goes on."""

        def look() -> list[Any] | None:
            runs = self.asked(f"dags/{dag}/dagRuns")["dag_runs"]
            states = [run["state"] for run in runs]
            assert "failed" not in states, self.log()
            return runs if states == ["success"] * count else None

        return list(awaited(look, self.log))

    def tasks(self, dag: str) -> list[Any]:
        """The tasks of all runs of a DAG."""
        return list(self.asked(f"dags/{dag}/dagRuns/~/taskInstances")["task_instances"])

    def log(self) -> str:
        """What it has said, and its tasks."""
        files = [self.folder / "airflow.log", *sorted((self.folder / "home" / "logs").rglob("attempt=*.log"))]
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-4_000:]}" for file in files if file.is_file())

    def rows(self, tier: str) -> set[tuple[datetime, int, int]]:
        """Of each window and key the number of trips."""
        rows = DeltaTable(self.folder / "out" / tier).to_pyarrow_table().to_pylist()
        assert len(rows) == len({(row["window_start"], row["zone_id"]) for row in rows})
        return {(row["window_start"], row["zone_id"], row["trips"]) for row in rows}


def awaited(look: Callable[[], Any], log: Callable[[], str]) -> Any:  # noqa: ANN401 - whatever is looked for
    """What is found, as soon as it is there."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        with suppress(OSError):
            if found := look():
                return found
        time.sleep(0.5)
    raise AssertionError(log())


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("standalone")
    moments = [MIDNIGHT + timedelta(minutes=minute) for minute in range(6 * 60)]
    times = pa.array(moments, pa.timestamp("us", tz="UTC"))
    rows = pa.table({"pickup_at": times, "zone_id": [m.minute % 2 for m in moments], "fare": [1.0] * len(moments)})
    write_deltalake(folder / "trips", rows)
    text = TRIPS.replace("lake/trips", f"{folder}/trips").replace("lake/rollups/trips", f"{folder}/out")
    (folder / "dags").mkdir()
    (folder / "dags" / "trips.py").write_text(DAGS.replace("{rollup!r}", repr(text)), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home, address = folder / "home", f"http://127.0.0.1:{port}"
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": "0",
        "AIRFLOW__TRIGGERER__TRIGGERER_LOG_SERVER_PORT": "0",
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(folder / "lineage"), "append": True}
        ),
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
    }
    with (folder / "airflow.log").open("wb") as log:
        # Standalone ends its parts on an interrupt only, which what was started in the background does not heed.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("airflow")), "standalone"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            cwd=folder, env=os.environ | settings, start_new_session=True,
        )  # fmt: skip
        signal.signal(signal.SIGINT, before)
        try:
            token = awaited(lambda: _token(address), (folder / "airflow.log").read_text)
            yield Instance(folder, address, token)
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _token(address: str) -> str:
    with urllib.request.urlopen(f"{address}/auth/token", timeout=10) as answer:  # noqa: S310 - our own
        return str(json.loads(answer.read())["access_token"])


def wanted(tier: str, hours: int) -> set[tuple[datetime, int, int]]:
    """What the events of so many hours give."""
    length = timedelta(minutes={"15m": 15, "1h": 60}[tier])
    moments = (timedelta(minutes=minute) for minute in range(hours * 60))
    counted = Counter((MIDNIGHT + moment // length * length, moment.seconds // 60 % 2) for moment in moments)
    return {(start, zone, trips) for (start, zone), trips in counted.items()}


def lineage(folder: Path) -> set[tuple[tuple[str, str], tuple[str, str], int]]:
    """Each source and table that OpenLineage was told of, with the rows that were written."""
    lines = (folder / "lineage").read_text(encoding="utf-8").splitlines()
    return {
        (_named(read), _named(wrote), wrote["outputFacets"]["outputStatistics"]["rowCount"])
        for event in map(json.loads, lines)
        if event["eventType"] == "COMPLETE" and event["job"]["name"] == "schedule.rollup"
        for read in event["inputs"]
        for wrote in event["outputs"]
    }


def _named(dataset: Mapping[str, str]) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


def test_schedule_backfill_and_what_is_done_again_end_in_true_tables(instance: Instance) -> None:
    scheduled = instance.ended("schedule", 3)
    assert {run["run_type"] for run in scheduled} == {"scheduled"}
    for tier in ("15m", "1h"):
        assert instance.rows(tier) == wanted(tier, 3)
    assert lineage(instance.folder) >= {
        (("file", f"{instance.folder}/trips"), ("file", f"{instance.folder}/out/{tier}"), rows)
        for tier, rows in (("15m", 8), ("1h", 2))
    }
    # Intervals out of order, two at a time.
    instance.asked(
        "backfills",
        {
            "dag_id": "history", "from_date": "2026-03-01T02:00:00Z", "to_date": "2026-03-01T06:00:00Z",
            "run_backwards": True, "max_active_runs": 2, "reprocess_behavior": "none", "dag_run_conf": {},
        },
    )  # fmt: skip
    awaited(lambda: len(instance.asked("dags/history/dagRuns")["dag_runs"]) > 2, instance.log)
    runs = instance.asked("dags/history/dagRuns")["dag_runs"]
    instance.ended("history", len(runs))
    times = sorted((task["start_date"], task["end_date"]) for task in instance.tasks("history"))
    assert any(begun < end for (_, end), (begun, _) in pairwise(times))
    for tier in ("15m", "1h"):
        assert instance.rows(tier) == wanted(tier, 6)
    # One of them again: all is there already.
    before = {tier: DeltaTable(instance.folder / "out" / tier).version() for tier in ("15m", "1h")}
    run = scheduled[0]["dag_run_id"]
    instance.asked(f"dags/schedule/dagRuns/{run}/clear", {"dry_run": False})
    instance.ended("schedule", 3)
    assert [task["try_number"] for task in instance.tasks("schedule") if task["dag_run_id"] == run] == [2]
    assert {tier: DeltaTable(instance.folder / "out" / tier).version() for tier in before} == before
