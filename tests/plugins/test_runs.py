"""What a task does with the run of a DAG, in a real Airflow, with a program that does no work in the engine's place."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # noqa: TID251 - what a DAG takes

import pytest
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.types import TaskInstanceKey
from airflow.utils.session import create_session
from sqlalchemy import select

from stairwise_airflow.links import ReportLink
from tests.plugins.declared import REPORT, TRIPS, BashRollup, calls, program

pytestmark = pytest.mark.airflow

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
HOURLY = CronDataIntervalTimetable("@hourly", timezone="UTC")
Known = Callable[[DAG], DAG]


def dag_of(name: str, schedule: Any, file: str, **kwargs: Any) -> DAG:  # noqa: ANN401 - whatever Airflow takes
    with DAG(name, schedule=schedule, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False) as dag:
        BashRollup(task_id="rollup", rollup=TRIPS, program=file, bash_command="", **kwargs)
    return dag


def events_since(begun: datetime) -> set[tuple[str, str | None]]:
    with create_session() as session:
        found = select(AssetModel.name, AssetEvent.partition_key).join(AssetModel, AssetEvent.asset_id == AssetModel.id)
        return {(name, key) for name, key in session.execute(found.where(AssetEvent.timestamp >= begun))}


def told(run: DagRun, key: str = "return_value") -> Any:  # noqa: ANN401 - whatever was told
    (instance,) = run.get_task_instances()
    return instance.xcom_pull(task_ids="rollup", key=key)


def test_a_run_writes_its_interval_and_tells_what_it_wrote(known: Known, tmp_path: Path) -> None:
    begun = datetime.now(UTC)
    run = known(dag_of("hourly", HOURLY, program(tmp_path))).test(logical_date=SIX)
    assert run.state == "success"
    assert calls(tmp_path) == [["run", "--since", "2026-03-01T05:00:00Z", "--end", "2026-03-01T06:00:00Z"]]
    assert told(run) == REPORT
    assert told(run, "_link_ReportLink") == (
        f"/dags/hourly/runs/{run.run_id.replace(':', '%3A').replace('+', '%2B')}/plugin/rollup_run"
    )
    # The days were not written, so nobody is told that they have changed.
    assert events_since(begun) == {
        ("trips/15m", None),
        ("trips/1h", None),
        ("trips/1h/windows", "2026-03-01T05:00:00"),
        *(("trips/15m/windows", f"2026-03-01T05:{minute:02}:00") for minute in (0, 15, 30, 45)),
    }


def test_events_say_what_was_written(known: Known, tmp_path: Path) -> None:
    known(dag_of("extra", HOURLY, program(tmp_path))).test(logical_date=SIX)
    with create_session() as session:
        found = select(AssetEvent).join(AssetModel, AssetEvent.asset_id == AssetModel.id)
        event = session.scalars(found.where(AssetModel.name == "trips/15m").order_by(AssetEvent.id.desc())).first()
    assert event is not None
    assert event.extra == {
        "run_id": "20260301T060000000000-0a1b2c3d",
        "windows": 4,
        "rows": 12,
        "version": 1,
        "late_rows": 2,
        "ranges": [["2026-03-01T05:00:00Z", "2026-03-01T06:00:00Z"]],
        "partitions": 4,
    }


def test_windows_without_rows_are_told_too_for_a_day_waits_for_all_of_its_hours(known: Known, tmp_path: Path) -> None:
    document = json.loads(json.dumps(REPORT))
    for tier in document["tiers"][:2]:
        tier |= {"rows_written": 0, "windows_written": 0, "version": None}
    begun = datetime.now(UTC)
    assert known(dag_of("no_rows", HOURLY, program(tmp_path, document))).test(logical_date=SIX).state == "success"
    assert events_since(begun) == {
        ("trips/15m", None),
        ("trips/1h", None),
        ("trips/1h/windows", "2026-03-01T05:00:00"),
        *(("trips/15m/windows", f"2026-03-01T05:{minute:02}:00") for minute in (0, 15, 30, 45)),
    }


def test_a_run_with_a_range_does_that_and_nothing_else(known: Known, tmp_path: Path) -> None:
    dag = known(dag_of("manual", HOURLY, program(tmp_path), tiers=["1h"], restate=True))
    conf = {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}
    assert dag.test(logical_date=SIX, run_conf=conf).state == "success"
    wanted = ["run", "--start", conf["start"], "--end", conf["end"], "--tiers", "1h", "--restate"]
    assert calls(tmp_path) == [wanted]


def test_a_run_without_an_interval_brings_up_to_date_what_is_there(known: Known, tmp_path: Path) -> None:
    run = known(dag_of("now", None, program(tmp_path))).test(logical_date=None)
    assert run.state == "success"
    now = f"{run.run_after:%Y-%m-%dT%H:%M:%S}Z"
    assert calls(tmp_path) == [["run", "--since", now, "--end", now]]


@pytest.mark.parametrize("schedule", ["@hourly", timedelta(hours=1)])
def test_an_empty_interval_fails_before_anything_is_submitted(
    known: Known, tmp_path: Path, schedule: object, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"empty_{type(schedule).__name__}"
    run = known(dag_of(name, schedule, program(tmp_path), retries=3)).test(logical_date=SIX)
    assert run.state == "failed"
    assert calls(tmp_path) == []
    assert "gives its runs an empty data interval, so there is nothing to write." in "".join(capfd.readouterr())


def test_two_ranges_out_of_order_and_one_again(known: Known, tmp_path: Path) -> None:
    dag = known(dag_of("order", HOURLY, program(tmp_path)))
    for hour in (8, 6, 8):
        assert dag.test(logical_date=SIX.replace(hour=hour)).state == "success"
    assert [call[-1] for call in calls(tmp_path)] == [f"2026-03-01T0{hour}:00:00Z" for hour in (8, 6, 8)]


def test_what_the_engine_says_fails_the_task(known: Known, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error: dict[str, object] = {
        "schema": "stairwise.error/1", "kind": "source", "message": "there is no column fare.", "hint": "name one.",
        "data": {},
    }  # fmt: skip
    run = known(dag_of("fails", HOURLY, program(tmp_path, error, 2))).test(logical_date=SIX)
    assert run.state == "failed"
    assert told(run) is None
    said = "".join(capfd.readouterr())
    assert "Bash command failed" in said


@pytest.mark.parametrize(("address", "below"), [("http://host:8080", ""), ("https://host/air/flow/", "/air/flow")])
def test_the_report_is_found_below_another_path_too(monkeypatch: pytest.MonkeyPatch, address: str, below: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", address)
    task = BashRollup(task_id="rollup", rollup=TRIPS, bash_command="")
    key = TaskInstanceKey("far", "rollup", "manual__2026-03-01T05:00:00+00:00")
    assert ReportLink().get_link(task, ti_key=key) == (
        f"{below}/dags/far/runs/manual__2026-03-01T05%3A00%3A00%2B00%3A00/plugin/rollup_run"
    )
