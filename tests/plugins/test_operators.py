"""The operators in a real Airflow: a server of Spark Connect that nobody asks, and a program in the engine's place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable

from stairwise_airflow import (
    RollupMaintenanceOperator,
    RollupOperator,
    RollupStatusSensor,
    RollupTaskGroup,
    RollupVerifyOperator,
    backfill_dag,
)
from tests.plugins.declared import REPORT, TRIPS, calls, program

pytestmark = pytest.mark.airflow

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
RANGE = {"start": "2026-01-01T00:00:00Z", "end": "2026-03-01T00:00:00Z"}
Known = Callable[[DAG], DAG]


def hourly(name: str) -> DAG:
    timetable = CronDataIntervalTimetable("@hourly", timezone="UTC")
    return DAG(name, schedule=timetable, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False)


def test_history_comes_in_chunks_newest_first(known: Known, tmp_path: Path) -> None:
    dag = known(backfill_dag(TRIPS, conn_id="connect", chunk="30d", program=program(tmp_path)))
    run = dag.test(run_conf=RANGE)
    assert run.state == "success"
    # The scheduler takes mapped tasks in this order; what the test drives takes them in any.
    wanted = [
        {"start": "2026-01-30T23:00:00Z", "end": "2026-03-01T00:00:00Z"},
        {"start": "2026-01-01T00:00:00Z", "end": "2026-01-30T23:00:00Z"},
    ]
    assert run.get_task_instances()[0].xcom_pull(task_ids="chunks") == wanted
    assert sorted(calls(tmp_path)) == sorted(["backfill", "--start", c["start"], "--end", c["end"]] for c in wanted)


def test_a_group_has_a_task_for_each_tier_with_the_edges_of_the_plan(known: Known, tmp_path: Path) -> None:
    with hourly("group") as dag:
        RollupTaskGroup(rollup=TRIPS, conn_id="connect", program=program(tmp_path))
    edges = {(task.task_id, child) for task in dag.tasks for child in task.downstream_task_ids}
    assert edges == {("trips.15m", "trips.1h"), ("trips.1h", "trips.day_in_europe_paris")}
    assert known(dag).test(logical_date=SIX).state == "success"
    assert [call[call.index("--tiers") + 1] for call in calls(tmp_path)] == ["15m", "1h", "day_in_europe_paris"]


def test_a_tier_that_fails_is_made_again_alone(known: Known, tmp_path: Path) -> None:
    file = program(tmp_path)
    (tmp_path / "fails once").write_text("day_in_europe_paris", encoding="utf-8")
    with hourly("again") as dag:
        RollupTaskGroup(rollup=TRIPS, conn_id="connect", program=file, retries=1, retry_delay=timedelta())
    run = known(dag).test(logical_date=SIX)
    assert run.state == "success"
    tries = {task.task_id: task.try_number for task in run.get_task_instances()}
    assert tries == {"trips.15m": 1, "trips.1h": 1, "trips.day_in_europe_paris": 2}
    tiers = [call[call.index("--tiers") + 1] for call in calls(tmp_path)]
    assert tiers == ["15m", "1h", "day_in_europe_paris", "day_in_europe_paris"]


def test_an_error_of_the_declaration_is_not_tried_again(
    known: Known, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: dict[str, object] = {"kind": "source", "message": "there is no column fare.", "hint": "name one.", "data": {}}
    file = program(tmp_path, {"schema": "stairwise.error/1", **said}, 2)
    with hourly("wrong") as dag:
        RollupOperator(task_id="rollup", rollup=TRIPS, conn_id="connect", program=file, retries=2)
    assert known(dag).test(logical_date=SIX).state == "failed"
    assert len(calls(tmp_path)) == 1
    printed = "".join(capfd.readouterr())
    assert "there is no column fare. Hint: name one." in printed
    assert "noise of Spark" in printed


def test_the_log_is_quiet(known: Known, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with hourly("quiet") as dag:
        RollupOperator(task_id="rollup", rollup=TRIPS, conn_id="connect", program=program(tmp_path))
    assert known(dag).test(logical_date=SIX).state == "success"
    printed = "".join(capfd.readouterr())
    for line in (
        "trips: all that is new or changed until 2026-03-01T06:00:00Z",
        "chunk 1 of 1: 15m: 12 rows, 2.7 kB, 0.3 s",
        "1h: 3 rows, 1,000 bytes, 0.5 s",
        "15 rows written, 60 rows read, 2 rows were late; 4.0 s to start, 1.2 s to work",
    ):
        assert line in printed
    assert "noise of Spark" not in printed


def test_a_report_is_read_where_the_program_left_it(known: Known, tmp_path: Path) -> None:
    file = program(tmp_path)
    with hourly("reports") as dag:
        RollupOperator(
            task_id="rollup", rollup=TRIPS, conn_id="connect", program=file, reports=str(tmp_path / "reports")
        )
    run = known(dag).test(logical_date=SIX)
    assert run.state == "success"
    (call,) = calls(tmp_path)
    place = Path(call[call.index("--report") + 1])
    assert place.parent == tmp_path / "reports"
    assert place.name.startswith("reports~rollup~manual__")
    assert run.get_task_instances()[0].xcom_pull(task_ids="rollup") == REPORT


def test_verify_fails_with_the_witness(known: Known, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = {
        "tier": "1h", "window_start": "2026-03-01T05:00:00Z", "keys": {"zone_id": 7}, "column": "revenue",
        "stored": 12, "recomputed": 13,
    }  # fmt: skip
    answer = {"schema": "stairwise.verify/1", "equal": False, "windows_checked": 4, "differences": [one]}
    with hourly("verify") as dag:
        RollupVerifyOperator(
            task_id="verify", rollup=TRIPS, conn_id="connect", program=program(tmp_path, answer, 1),
            start="{{ data_interval_start }}", sample=3, witness=True,
        )  # fmt: skip
    assert known(dag).test(logical_date=SIX).state == "failed"
    assert calls(tmp_path) == [["verify", "--start", "2026-03-01T05:00:00Z", "--sample", "3", "--witness"]]
    assert "1h at 2026-03-01T05:00:00Z, {'zone_id': 7}: revenue is 12, and should be 13." in "".join(capfd.readouterr())


def test_verify_and_maintenance_succeed(known: Known, tmp_path: Path) -> None:
    file = program(tmp_path, {"schema": "stairwise.verify/1", "equal": True, "windows_checked": 4, "differences": []})
    with hourly("keeping") as dag:
        verify = RollupVerifyOperator(task_id="verify", rollup=TRIPS, conn_id="connect", program=file)
        verify.set_downstream(
            RollupMaintenanceOperator(task_id="maintain", rollup=TRIPS, conn_id="connect", program=file)
        )
    assert known(dag).test(logical_date=SIX).state == "success"
    assert calls(tmp_path) == [["verify"], ["maintain"]]


@pytest.mark.parametrize(
    ("covered", "is_there"),
    [
        ([["2026-02-01T00:00:00Z", "2026-03-01T06:00:00Z"]], True),
        ([["2026-02-01T00:00:00Z", "2026-03-01T05:00:00Z"]], False),
        ([["2026-02-01T00:00:00Z", "2026-02-10T00:00:00Z"], ["2026-02-11T00:00:00Z", "2026-03-01T06:00:00Z"]], False),
        ([], False),
    ],
)
def test_the_sensor_waits_for_tiers_without_a_gap(
    known: Known, tmp_path: Path, covered: list[list[str]], *, is_there: bool
) -> None:
    answer = {"schema": "stairwise.status/1", "tiers": [{"name": "1h", "covered": covered}]}
    with hourly(f"sensor_{is_there}_{len(covered)}") as dag:
        RollupStatusSensor(
            task_id="wait", rollup=TRIPS, conn_id="connect", program=program(tmp_path, answer), tiers=["1h"],
            mode="poke", timeout=0.01, poke_interval=0.01,
        )  # fmt: skip
    assert known(dag).test(logical_date=SIX).state == ("success" if is_there else "failed")


def test_the_sensor_of_a_run_without_an_interval_waits_until_that_was_due(known: Known, tmp_path: Path) -> None:
    answer = {"schema": "stairwise.status/1", "tiers": [{"name": "1h", "covered": [["2026-02-01", "2926-03-01"]]}]}
    with DAG("sensor_now", schedule=None) as dag:
        RollupStatusSensor(
            task_id="wait", rollup=TRIPS, conn_id="connect", program=program(tmp_path, answer), tiers=["1h"],
            mode="poke", timeout=0.01, poke_interval=0.01,
        )  # fmt: skip
    assert known(dag).test(logical_date=None).state == "success"


def test_the_sensor_waits_for_no_tier_that_there_is_not(
    known: Known, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer: dict[str, object] = {"schema": "stairwise.status/1", "tiers": []}
    with hourly("sensor_unknown") as dag:
        RollupStatusSensor(
            task_id="wait", rollup=TRIPS, conn_id="connect", program=program(tmp_path, answer), tiers=["2h"]
        )
    assert known(dag).test(logical_date=SIX).state == "failed"
    wanted = "there is no tier '2h'; the tiers are 15m, 1h, day_in_europe_paris. Hint: name one of them."
    assert wanted in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("", "the connection 'other' is not there or cannot be read"),
        ("spark://local[*]", "the connection 'other' is not there or cannot be read"),
        ("local://", "the connection 'other': local:// is no address of Spark."),
        ("postgres://somewhere", "the connection 'other' is of the type 'postgres', not spark or spark_connect."),
        ('{"conn_type": "spark"}', "the connection 'other' names no host."),
        ("k8s://cluster", "the connection 'other' names Kubernetes, and its provider is not installed."),
    ],
)
def test_spark_is_never_looked_for_on_yarn_in_silence(
    known: Known,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    variable: str,
    text: str,
) -> None:
    if variable:
        monkeypatch.setenv("AIRFLOW_CONN_OTHER", variable)
    with hourly("yarn") as dag:
        RollupOperator(task_id="rollup", rollup=TRIPS, conn_id="other", program=program(tmp_path))
    assert known(dag).test(logical_date=SIX).state == "failed"
    assert calls(tmp_path) == []
    assert text in "".join(capfd.readouterr())


def test_the_report_is_the_result(known: Known, tmp_path: Path) -> None:
    with hourly("result") as dag:
        RollupOperator(task_id="rollup", rollup=TRIPS, conn_id="connect", program=program(tmp_path))
    run = known(dag).test(logical_date=SIX)
    assert run.get_task_instances()[0].xcom_pull(task_ids="rollup") == REPORT
