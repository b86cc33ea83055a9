"""The page: who may see it, what is on it, and that nothing on it was written by a stranger as HTML."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.sdk import DAG
from fastapi.testclient import TestClient

from stairwise import Rollup, optimize
from stairwise.codec import encode_plan, to_json
from stairwise.instant import format_instant
from stairwise.quantity import size
from stairwise_airflow import RollupOperator
from stairwise_airflow.history import MOST_REPORTS, history
from stairwise_airflow.page import View, rollup_section
from tests.plugins.declared import REPORT, TRIPS, program

pytestmark = pytest.mark.airflow

Known = Callable[[DAG], DAG]
MARCH = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
HOUR = 3600


@pytest.fixture(scope="module")
def app(airflow_db: None) -> Iterator[TestClient]:
    del airflow_db
    with TestClient(create_app(apps="core")) as client:
        yield client


def header(role: str | None) -> dict[str, str]:
    user = SimpleAuthManagerUser(username="u", role=role)
    return {"Authorization": f"Bearer {get_auth_manager().generate_jwt(user)}"}


def page(app: TestClient, path: str) -> str:
    answer = app.get(path, headers=header("viewer"))
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def report(hour: int, number: int, tiers: list[str], run: str = "", **told: object) -> dict[str, object]:
    """A report of a run for an hour of March, which wrote these tiers; of each of them it tells that too."""
    span = [format_instant(MARCH + hour * HOUR), format_instant(MARCH + (hour + 1) * HOUR)]
    written = [
        {
            "name": name, "reads": None, "windows_written": 1, "rows_written": 3, "files_written": 1,
            "bytes_written": 1000, "version": number, "seconds": 0.5, "predicted_rows": 4, "covered": [span], **told,
        }
        for name in tiers
    ]  # fmt: skip
    run_id = run or f"20260302T{number:06}000000-0a1b2c3d"
    return {**REPORT, "run_id": run_id, "range": span, "tiers": written, "rollup": "trips"}


def fill(target: Path, rollup: Rollup, reports: list[dict[str, object]]) -> None:
    folder = target / "_stairwise" / "runs"
    folder.mkdir(parents=True)
    (folder.parent / "plan.json").write_text(to_json(encode_plan(optimize(rollup))), encoding="utf-8")
    for each in reports:
        (folder / f"{each['run_id']}.json").write_text(json.dumps(each), encoding="utf-8")


def dag_of(name: str, rollup: Rollup, file: str = "run_plan.py") -> DAG:
    with DAG(name, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        RollupOperator(task_id="rollup", rollup=rollup, conn_id="connect", program=file)
    return dag


def at(target: Path, text: str = TRIPS) -> Rollup:
    return Rollup.from_yaml(text.replace("lake/rollups/trips", str(target)))


def test_strangers_see_nothing_and_users_what_they_may(app: TestClient, known: Known, tmp_path: Path) -> None:
    known(dag_of("seen", at(tmp_path)))
    for path in ("/stairwise/rollups", "/stairwise/dags/seen", "/stairwise/dags/seen/runs/x"):
        assert app.get(path).status_code == 401
        assert app.get(path, headers={"Authorization": "Bearer forged"}).status_code in {401, 403}
        assert app.get(path, headers=header("viewer")).status_code == 200
    assert app.get("/stairwise/dags/seen", headers=header(None)).status_code == 403
    assert "dags/seen" not in app.get("/stairwise/rollups", headers=header(None)).text
    assert '<a href="dags/seen">seen</a>: trips' in page(app, "/stairwise/rollups")
    assert app.get("/stairwise/dags/unknown", headers=header("viewer")).status_code == 404
    for path in ("/stairwise/docs", "/stairwise/openapi.json", "/stairwise/redoc", "/stairwise/"):
        assert app.get(path, headers=header("admin")).status_code == 404


def test_it_asks_for_nothing_else_and_runs_no_script_of_others(app: TestClient, known: Known, tmp_path: Path) -> None:
    known(dag_of("alone", at(tmp_path)))
    answer = app.get("/stairwise/dags/alone", headers=header("viewer"))
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "src=" not in answer.text
    assert "http" not in answer.text.partition("</style>")[2]


def test_it_shows_the_staircase_the_coverage_and_the_runs(app: TestClient, known: Known, tmp_path: Path) -> None:
    rollup = at(tmp_path / "target")
    # Hour 2 is missing; hour 0 was written again in the finest tier alone, so that what is made of it is stale.
    every = ["15m", "1h"]
    reports = [report(hour, number, every) for number, hour in enumerate((0, 1, 3, 4))] + [report(0, 9, ["15m"])]
    fill(tmp_path / "target", rollup, reports)
    known(dag_of("full", rollup))
    shown = page(app, "/stairwise/dags/full")
    for text in (
        "15m: written from 2026-03-01 to 2026-03-01 05:00, 1 gap, written again in 1 range.",
        "1h: written from 2026-03-01 to 2026-03-01 05:00, 1 gap, stale in 1 range.",
        "day in Europe/Paris: nothing is written.",
        "2026-03-01 02:00",
        "gap: between times that are there",
        "stale: what it is made of was written again since",
        "20260302T000009000000-0a1b2c3d",
        "Next best: from the raw rows",
    ):
        assert text in shown
    assert "notice" not in shown.partition("</style>")[2]
    # The run of 15m and 1h: both as many rows as was predicted of each, at the bytes and seconds of the plan.
    costs = [optimize(rollup).step(name).cost for name in every]
    seconds = sum(4 / (cost.rows_written or 0) * float(cost.total) for cost in costs)
    wanted = ("6", "8", "2.00 kB", size(sum(4 / (c.rows_written or 0) * (c.bytes_written or 0) for c in costs)), "1.2")
    row = "".join(f'<td class="number">{number}</td>' for number in (*wanted, f"{seconds:,.1f}", "2", "60"))
    assert row in shown


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("tier=1h&at=2026-03-01T01:30Z", ["It was written last by run 20260302T000001000000-0a1b2c3d"]),
        ("tier=1h&at=2026-03-01T00:30Z", ["It is stale: &#x27;15m&#x27; was written again since."]),
        ("tier=1h&at=2026-03-01T02:30Z", ["it is in a gap between times that are."]),
        ("tier=1h&at=2026-03-01T05:30Z", ["runs have come to 2026-03-01T05:00:00Z, and it ends later."]),
        ("tier=1h&at=2026-02-01T05:30Z", ["history is filled from 2026-03-01T00:00:00Z on."]),
        ("tier=1h&at=2926-03-01T05:30Z", ["It is not there yet: it is over at 2926-03-01T06:00:00Z."]),
        ("tier=day_in_europe_paris&at=2026-03-01", ["nothing is written of this tier."]),
        ("tier=1h&at=", ["&#x27;1h&#x27; reads &#x27;15m&#x27;; next best: to read the raw rows, "]),
        ("tier=day_in_europe_paris&at=9999-12-31T23:59:59Z", ["Its window is not within the years 1 to 9999"]),
        ("tier=day_in_europe_paris&at=0001-01-01", ["Its window is not within the years 1 to 9999"]),
        ("tier=1h&at=never", ["it is neither a date nor a date with a time"]),
        ("tier=<b>&at=", ["There is no tier &#x27;&lt;b&gt;&#x27;."]),
    ],
)
def test_it_says_why(app: TestClient, known: Known, tmp_path: Path, asked: str, answers: list[str]) -> None:
    rollup = at(tmp_path / "target")
    reports = [report(hour, number, ["15m", "1h"]) for number, hour in enumerate((0, 1, 3, 4))]
    fill(tmp_path / "target", rollup, [*reports, report(0, 9, ["15m"])])
    known(dag_of("why", rollup))
    shown = page(app, f"/stairwise/dags/why?{asked}")
    for text in answers:
        assert text in shown.partition('role="status"')[2]


def test_a_run_is_pointed_out_and_its_report_is_taken_from_the_task_where_files_are_not_to_be_read(
    app: TestClient, known: Known, tmp_path: Path
) -> None:
    rollup = Rollup.from_yaml(TRIPS.replace("lake/rollups/trips", "s3://lake/rollups/trips"))
    run = known(dag_of("far", rollup, program(tmp_path))).test()
    assert run.state == "success"
    shown = page(app, f"/stairwise/dags/far/runs/{run.run_id.replace('+', '%2B')}")
    told = (
        "The target s3://lake/rollups/trips is not in a folder of this machine. What tasks have told Airflow is shown"
    )
    assert told in shown
    assert '<tr class="chosen"><th scope="row"><code>20260301T060000000000-0a1b2c3d</code>' in shown


@pytest.mark.parametrize("part", ["", "runs", "runs/20260302T000001000000-0a1b2c3d.json"])
def test_what_may_not_be_read_is_said(part: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        rollup = at(Path(place) / "target")
        fill(Path(place) / "target", rollup, [report(0, 1, ["15m"])])
        folder = Path(place) / "target" / "_stairwise"
        assert len(history(rollup).reports) == 1
        (folder / part).chmod(0o300)
        with unprivileged():
            known = history(rollup)
        assert known.problem == f"{folder} cannot be read here (Permission denied)."
        assert known.reports == ()
        (folder / part).chmod(0o755)


@contextmanager
def unprivileged() -> Generator[None]:
    """As a user who may not read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_strangers_wrote_is_text(app: TestClient, known: Known, tmp_path: Path) -> None:
    target = tmp_path / "<script>alert(1)</script>"
    hostile = TRIPS.replace("{path: lake/trips, time: pickup_at}", "{path: '<img src=x onerror=alert(2)>', time: at}")
    rollup = at(target, hostile.replace("day in Europe/Paris", "{window: 1d, name: d}"))
    fill(target, rollup, [report(0, 1, ["15m"], run="<b>bold<")])
    (target / "_stairwise" / "runs" / "broken.json").write_text('{"schema": "stairwise.run/1"', encoding="utf-8")
    (target / "_stairwise" / "runs" / "other.json").write_text("[" * 100_000, encoding="utf-8")
    known(dag_of("hostile", rollup))
    shown = page(app, "/stairwise/dags/hostile?span=<script>&tier=<script>&at=<script>")
    assert "<script>alert" not in shown
    assert "<img" not in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;bold&lt;" in shown


def test_reports_that_no_run_has_left_are_left_out(app: TestClient, known: Known, tmp_path: Path) -> None:
    rollup = at(tmp_path / "target")
    endless = [["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]]
    fill(tmp_path / "target", rollup, [report(0, 1, ["15m", "1h"])])
    strange = [
        report(0, 2, ["15m"], "true", covered=endless),
        report(0, 2, ["15m"], "large", bytes_written=10**400),
        {**report(0, 2, ["15m"], "late"), "late_rows": -1},
    ]
    runs = tmp_path / "target" / "_stairwise" / "runs"
    for each in strange:
        (runs / f"{each['run_id']}.json").write_text(json.dumps(each), encoding="utf-8")
    os.mkfifo(runs / "pipe.json")
    known(dag_of("left_out", rollup))
    shown = page(app, "/stairwise/dags/left_out")
    assert "<code>true</code>" in shown
    assert "15m: written up to 9999-12-31 23:59:59, no gap, written again in 1 range." in shown
    assert "<code>late</code>" not in shown
    assert "<code>large</code>" not in shown


def test_of_many_runs_the_newest_are_read_and_the_rest_is_what_the_last_one_has_left(
    app: TestClient, known: Known, tmp_path: Path
) -> None:
    rollup = at(tmp_path / "target")
    every = ["15m", "1h"]
    fill(tmp_path / "target", rollup, [report(hour, hour, every) for hour in range(MOST_REPORTS + 100)])
    known(dag_of("many", rollup))
    shown = page(app, "/stairwise/dags/many")
    end = format_instant(MARCH + (MOST_REPORTS + 100) * HOUR).replace("T", " ").removesuffix(":00Z")
    assert f"1h: written from 2026-03-05 04:00 to {end}, no gap." in shown
    assert "This is told by the newest 1,000 of 1,100 runs; what was written before is not shown." in shown
    assert "And 1,075 earlier ones." in shown

    spans = [[format_instant(MARCH), format_instant(MARCH + 90 * HOUR)]]
    covered = {"schema": "stairwise.covered/1", "tiers": dict.fromkeys(every, spans)}
    kept = tmp_path / "target" / "_stairwise" / "covered.json"
    kept.write_text(json.dumps(covered), encoding="utf-8")
    shown = page(app, "/stairwise/dags/many?tier=1h&at=2026-03-01T05:30Z")
    assert f"1h: written from 2026-03-01 to {end}, 1 gap." in shown
    assert "What is stale or written again is told by the newest 1,000 of 1,100 runs." in shown
    assert "It was written by a run whose report is none of the newest 1,000, which are read here." in shown

    for text in ("[" * 100_000, '{"schema": "stairwise.covered/1", "tiers": {"1h": 7}}', '{"tiers": {}}'):
        kept.write_text(text, encoding="utf-8")
        assert "what was written before is not shown" in page(app, "/stairwise/dags/many")


def test_runs_for_all_that_there_is_show_nothing_before_the_first_event(tmp_path: Path) -> None:
    always = ["0001-01-01T00:00:00Z", "2026-03-01T05:00:00Z"]
    changed = [always, ["2026-02-28T23:00:00Z", "2026-03-01T05:00:00Z"]]
    first = report(0, 0, ["15m", "1h"], covered=[always]) | {"range": always}
    read = {"version": 7, "rows_read": 60, "files_read": 1, "bytes_read": 1000}
    first["source"] = read | {"changed_ranges": changed}
    rollup = at(tmp_path / "target")
    fill(tmp_path / "target", rollup, [first, report(5, 1, ["15m"])])
    shown = rollup_section(history(rollup), View(now=MARCH + 6 * HOUR))
    assert "15m: written up to 2026-03-01 06:00, no gap." in shown
    assert "<span>2026-02-28 23:00</span>" in shown
    assert "<td>up to 2026-03-01 05:00</td>" in shown
    assert "0001-01-01" not in shown


KEPT = TRIPS.replace("windows: [15m,", "windows: [{window: 15m, retain: 6 days},")
EXPIRED = {"15m": [["2026-03-01T00:00:00Z", "2026-03-01T02:00:00Z"]]}


@pytest.mark.parametrize("is_readable", [True, False])
def test_what_expired_is_told_apart(tmp_path: Path, *, is_readable: bool) -> None:
    reports = [report(hour, hour, ["15m", "1h"]) for hour in range(5)]
    reports[-1]["expired"] = EXPIRED
    rollup = at(tmp_path / "target", KEPT)
    if is_readable:
        fill(tmp_path / "target", rollup, reports)
    shown = rollup_section(history(rollup, reports), View(now=MARCH + 5 * HOUR))
    assert ("There is no folder" in shown) is not is_readable
    assert "15m: written from 2026-03-01 02:00 to 2026-03-01 05:00, expired up to 2026-03-01 02:00, no gap." in shown
    assert "1h: written from 2026-03-01 to 2026-03-01 05:00, no gap." in shown
    assert shown.count('class="cell expired"') == 2  # in one ribbon, and in the legend
    assert 'title="2026-03-01 to 2026-03-01 02:00: expired: kept as long as was declared"' in shown


def test_it_says_why_a_window_is_there_no_more(app: TestClient, known: Known, tmp_path: Path) -> None:
    windows = "windows: [{window: 2h every 1h, name: two, retain: 6 days},"
    text = TRIPS.replace("windows: [15m, 1h,", windows)
    rollup = at(tmp_path / "target", f"{text}estimates: {{rows_per_day: 1000000000, distinct_keys: 20000}}\n")
    reports = [report(hour, hour, ["1h", "two", "day_in_europe_paris"]) for hour in range(25)]
    reports[-1]["expired"] = {"1h": EXPIRED["15m"], "two": EXPIRED["15m"]}
    fill(tmp_path / "target", rollup, reports)
    known(dag_of("expired_why", rollup))
    for asked, said in {
        "two&at=2026-03-01T00:30Z": "It is not there any more: it has expired, for windows are kept for 6d, as is",
        "1h&at=2026-03-01T00:30Z": "it has expired, once no window was kept any longer that was made of it.",
        "day_in_europe_paris&at=2026-03-01T00:30Z": "&#x27;1h&#x27; holds not all of its time any more: what expired",
    }.items():
        assert said in page(app, f"/stairwise/dags/expired_why?tier={asked}")


def test_what_a_rebuild_emptied_is_not_there(app: TestClient, known: Known, tmp_path: Path) -> None:
    rollup = at(tmp_path / "target")
    fill(tmp_path / "target", rollup, [report(hour, hour, ["15m", "1h"]) for hour in range(5)])
    spans = [[format_instant(MARCH + hour * HOUR), format_instant(MARCH + (hour + 1) * HOUR)] for hour in (0, 3)]
    told = {
        "schema": "stairwise.covered/1",
        "run_id": "20260302T120000000000-0a1b2c3d-apply",
        "tiers": {"1h": spans},
        "expired": {},
    }
    kept = tmp_path / "target" / "_stairwise" / "covered.json"
    kept.write_text(json.dumps(told), encoding="utf-8")
    known(dag_of("emptied", rollup))
    shown = page(app, "/stairwise/dags/emptied?tier=1h&at=2026-03-01T01:30Z")
    assert "15m: nothing is written." in shown
    assert "1h: written from 2026-03-01 to 2026-03-01 04:00, 1 gap." in shown
    assert "it is in a gap between times that are." in shown
    # A run that has come since knows better.
    newer = report(7, 7, ["15m"], "20260302T130000000000-0a1b2c3d")
    (kept.parent / "runs" / f"{newer['run_id']}.json").write_text(json.dumps(newer), encoding="utf-8")
    assert "15m: written from 2026-03-01 07:00 to 2026-03-01 08:00, no gap." in page(app, "/stairwise/dags/emptied")


def test_a_path_from_the_browser_is_no_path(app: TestClient) -> None:
    for name in ("..%2f..%2fetc%2fpasswd", "%2e%2e", "a%00b"):
        assert app.get(f"/stairwise/dags/{name}", headers=header("viewer")).status_code == 404


def test_forty_tiers_and_three_years_are_shown_without_delay(app: TestClient, known: Known, tmp_path: Path) -> None:
    windows = ", ".join(f"{minutes}m" for minutes in range(5, 205, 5))
    rollup = at(tmp_path / "target", TRIPS.replace("15m, 1h, day in Europe/Paris", windows))
    names = [step.tier.name for step in optimize(rollup).steps]
    # A run for each day of three years.
    reports = [report(day * 24, day, names) for day in range(3 * 365)]
    fill(tmp_path / "target", rollup, reports)
    known(dag_of("large", rollup))
    shown = page(app, "/stairwise/dags/large")
    # What a view takes follows what it reads and what it shows; three years have more runs than are read.
    assert len(history(rollup).reports) == MOST_REPORTS
    assert len(shown) < 300_000
