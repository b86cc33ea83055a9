"""The demo: its trips have what real ones have, and it refuses what it cannot do. All of it runs as torture."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from stairwise import optimize
from stairwise.cli import main
from stairwise.json_fields import Fields
from stairwise.window_text import parse_window
from stairwise_spark import demo_told as told
from stairwise_spark.demo_by_hand import WINDOWS, query
from stairwise_spark.demo_files import DAYS, declaration
from stairwise_spark.demo_place import Place
from stairwise_spark.demo_rows import GAP, LATE, YEAR, ZONE, ZONES, by_month, seconds, trips
from stairwise_spark.demo_server import Server
from stairwise_spark.demo_story import Story, asked, busiest_days
from stairwise_spark.demo_table import append
from stairwise_spark.errors import RunError

ROWS = 200_000
PARIS = ZoneInfo(ZONE)


@pytest.fixture(scope="module")
def year() -> pa.Table:
    return trips(YEAR, ROWS, 1)


def local(table: pa.Table) -> list[datetime]:
    return [datetime.fromtimestamp(at, PARIS) for at in seconds(table).tolist()]


def hours_of(table: pa.Table, month: int, day: int) -> int:
    """In how many hours of a day of Paris trips begin."""
    moments = zip(seconds(table).tolist(), local(table), strict=True)
    return len({at // 3600 for at, shown in moments if (shown.month, shown.day) == (month, day)})


def test_a_seed_says_all_of_the_trips(year: pa.Table) -> None:
    assert trips(YEAR, ROWS, 1).equals(year)
    assert not trips(YEAR, ROWS, 2).equals(year)


def test_trips_are_of_the_year_in_the_order_of_time(year: pa.Table) -> None:
    begun = seconds(year)
    assert (len(begun), bool(np.all(np.diff(begun) >= 0))) == (ROWS, True)
    assert YEAR.start <= begun[0] < begun[-1] < YEAR.end
    assert {moment.year for moment in local(year)} == {2025}


def test_no_trip_begins_in_the_gap_and_some_do_beside_it(year: pa.Table) -> None:
    around = np.histogram(seconds(year), [GAP.start - 86_400, GAP.start, GAP.end, GAP.end + 86_400])[0]
    assert around[1] == 0
    assert min(around[0], around[2]) > 100


def test_one_zone_has_many_trips_and_one_has_few(year: pa.Table) -> None:
    counts = np.bincount(year["zone_id"].to_numpy())[1:]
    assert len(counts) == ZONES
    assert counts[0] > ROWS / 3
    assert 0 < counts[-1] < ROWS / 15


def test_hours_follow_the_clocks_of_paris(year: pa.Table) -> None:
    assert [hours_of(year, 3, 30), hours_of(year, 10, 26), hours_of(year, 3, 29)] == [23, 25, 24]
    by_hour = np.bincount([moment.hour for moment in local(year)])
    assert by_hour[18] > 3 * by_hour[4]
    assert LATE.end - LATE.start == 60 * 86_400 - 3_600


def test_months_are_those_of_paris_and_nothing_is_lost(year: pa.Table) -> None:
    parts = list(by_month(year))
    assert [{moment.month for moment in local(part)} for part in parts] == [{month} for month in range(1, 13)]
    assert pa.concat_tables(parts).equals(year)


def test_one_day_is_one_part() -> None:
    day = trips(LATE._replace(end=LATE.start + 86_400), 10, 1)
    assert [len(part) for part in by_month(day)] == [10]


def test_the_table_is_one_of_delta_that_others_read(tmp_path: Path, year: pa.Table) -> None:
    few = year.slice(0, 300)
    assert append(tmp_path / "trips", (few.slice(0, 100), few.slice(100, 100)), "pickup_at") == 0
    assert append(tmp_path / "trips", (few.slice(200),), "pickup_at") == 1
    found = DeltaTable(tmp_path / "trips")
    assert (found.version(), len(found.file_uris())) == (1, 3)
    assert (
        pa.table(found.to_pyarrow_table()).sort_by("pickup_at").select(["pickup_at"]).equals(few.select(["pickup_at"]))
    )
    actions = pa.table(found.get_add_actions(flatten=True)).to_pylist()
    assert sorted(each["num_records"] for each in actions) == [100, 100, 100]
    first = min(actions, key=lambda each: each["min.pickup_at"])
    assert [first[f"{edge}.pickup_at"].timestamp() for edge in ("min", "max")] == seconds(few)[[0, 99]].tolist()


def test_there_is_a_query_for_each_window_and_no_other(tmp_path: Path) -> None:
    rollup = declaration(tmp_path / "trips", tmp_path / "out", ROWS)
    assert {declared.name for declared in rollup.windows} == WINDOWS.keys()
    assert DAYS in WINDOWS
    assert "to_utc_timestamp(w.start" in query(DAYS)
    assert "to_utc_timestamp" not in query("5m")


def test_the_plan_is_a_staircase_that_says_what_it_saves(tmp_path: Path) -> None:
    lines = list(told.plan_told(optimize(declaration(tmp_path / "trips", tmp_path / "out", 2_000_000))))
    assert re.sub(r"  +", "  ", "\n".join(lines[:4])) == (
        "trips\n└─ 5m  scans raw rows\n  └─ 15m  merges 3 slices\n  ├─ 1h  merges 4 slices"
    )
    assert len(lines) == 13
    assert lines[-2].startswith("Sharing tiers ")
    assert lines[-1].startswith("Proven optimal. No helper tier pays here")


def test_helpers_are_named() -> None:
    from stairwise import Estimates, Rollup, Source  # noqa: PLC0415

    uneven = Rollup(
        name="uneven",
        source=Source(path="trips", time="at"),
        aggregates={"n": "count()"},
        windows=("15m", "20m", "1h every 10m"),
        target="out",
        estimates=Estimates(rows_per_day=50_000_000, distinct_keys=1),
    )
    *_, last = told.plan_told(optimize(uneven))
    assert re.search(r"Nobody asked for \w+: others become cheaper by it\.$", last)


REPORT = {
    "source": {"rows_read": 900, "found_by": [{"way": "log", "why": "1 file was added"}]},
    "tiers": [
        {"name": "5m", "rows_written": 30, "windows_written": 5, "predicted_rows": 24},
        {"name": "1h", "rows_written": 0, "windows_written": None, "predicted_rows": None},
    ],
    "late_rows": 3,
    "seconds": 2.0,
    "startup_seconds": 0.5,
}


def test_history_is_told_beside_what_was_predicted() -> None:
    assert list(told.history_told(Fields.of(REPORT, "run"), 450)) == [
        "    rows  predicted",
        "5m    30         24  +25.0%",
        "1h     0          ?",
        "450 trips, read 2 times; 2.0 s of work, after 0.5 s to start",
    ]
    assert list(told.history_told(Fields.of(REPORT, "run"), 900))[-1].startswith("900 trips, read once; ")


def test_an_hour_is_told_by_what_it_wrote() -> None:
    assert list(told.hour_told(Fields.of(REPORT, "run"), 7)) == [
        "7 new trips; written: 5 of 5m, and nothing else",
        "2.0 s of work, after 0.5 s to start",
    ]


def test_a_repair_is_exact_if_it_wrote_what_late_trips_are_in_and_what_is_new() -> None:
    lines = list(told.repair_told(Fields.of(REPORT, "run"), {"5m": told.Windows(3, 2, 9), "1h": told.Windows(1, 0, 3)}))
    assert lines[:2] == ["3 trips came late: 1 file was added", "    hold a late trip  new  written         of"]
    assert [line.split()[-2:] for line in lines[2:4]] == [["exact", "9"], ["other", "3"]]


def test_the_comparison_says_if_the_rows_are_the_same() -> None:
    hand = {
        name: Fields.of({"seconds": 3.0, "rows": 30, "same": is_same}, name)
        for name, is_same in (("5m", True), ("1h", False))
    }
    lines = list(told.compared_told(hand, Fields.of(REPORT, "run")))
    assert [line.split()[-1] for line in lines[1:3]] == ["same", "other"]
    assert lines[-1] == "6.0 s by 2 queries, 2.0 s by the plan in section 3: 3.0 times as fast."


def test_the_comparison_does_not_hide_that_the_plan_was_slower() -> None:
    hand = {"5m": Fields.of({"seconds": 0.5, "rows": 30, "same": True}, "5m")}
    *_, last = told.compared_told(hand, Fields.of(REPORT, "run"))
    assert last == (
        "0.5 s by 1 queries, 2.0 s by the plan in section 3: 4.0 times as slow. With few trips it does not pay: "
        "try more, with --rows."
    )


def test_windows_of_late_trips_are_counted_once_and_only_those_that_have_ended() -> None:
    days = parse_window("day in Europe/Paris")
    assert told.windows_touched(days, [LATE.start, LATE.start + 600, LATE.end], LATE.end) == 1


@pytest.fixture
def ended(tmp_path: Path) -> Server:
    """A server that has ended, at a port that nobody has."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process, socket.create_server(("127.0.0.1", 0)) as tried:
        port = int(tried.getsockname()[1])
    return Server(process, port, tmp_path / "spark.log")


def test_a_server_that_ended_is_not_awaited(ended: Server) -> None:
    with pytest.raises(RunError, match=r"^Spark's server does not answer\.") as refused:
        ended.await_ready()
    assert refused.value.hint == f"see what it says in {ended.log}."


def test_programs_find_the_server_and_without_one_a_spark_of_their_own(tmp_path: Path, ended: Server) -> None:
    remote = Place(tmp_path, ended.address).environment()
    assert remote["SPARK_REMOTE"] == ended.address
    assert json.loads(remote["AIRFLOW_CONN_SPARK_DEFAULT"]) == {"conn_type": "spark_connect", "host": ended.address}
    assert "SPARK_REMOTE" not in Place(tmp_path).environment()
    assert json.loads(Place(tmp_path).environment()["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[*]"


def test_a_year_of_few_trips_has_hours_and_late_ones_too(tmp_path: Path, ended: Server) -> None:
    story = Story.of(Place(tmp_path), ended, 10_000)
    assert (len(story.year), [len(hour) for hour in story.hours], len(story.late)) == (10_000, [1, 1], 10)
    assert len(list(story.sections())) == 8


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--rows", "9"], "--rows 9: the demo takes 10,000 to 100,000,000 trips. Hint: choose a number between them."),
        (["--port", "65536"], "--port 65536: ports go up to 65535. Hint: try 8081."),
        (["--ui"], "there is no demo in '{folder}'. Hint: run stairwise demo first."),
        ([], "'{folder}' holds something else than a demo, which would be lost. Hint: name another folder with --dir."),
    ],
)
def test_what_it_cannot_do_is_refused(
    words: list[str], refusal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("dear to me", encoding="utf-8")
    assert main(["demo", "--dir", str(tmp_path), *words]) == 2
    assert capsys.readouterr().err == f"stairwise: {refusal.format(folder=tmp_path)}\n"
    assert (tmp_path / "mine.txt").exists()


def test_a_port_that_is_taken_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "airflow.db").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["demo", "--ui", "--dir", str(tmp_path), "--port", port]) == 2
    assert capsys.readouterr().err.startswith(f"stairwise: port {port} cannot be had: ")


def test_what_is_shown_of_duckdb_is_what_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(tmp_path / "demo")
    place.clear()
    # Days of Paris begin at 23:00 in winter, and at 22:00 in summer.
    days = [datetime(2025, month, 9, 0, tzinfo=PARIS).astimezone(ZoneInfo("UTC")) for month in (1, 2, 7, 8)]
    rows = [
        {"window": window, "window_start": day, "zone_id": zone, "trips": trips * zone}
        for window in (DAYS, "month_in_europe_paris")
        for day, trips in zip(days, (1, 30, 200, 4_000), strict=True)
        for zone in (1, 2)
    ]
    write_deltalake(place.target, pa.Table.from_pylist(rows))
    lines = busiest_days(place.target)
    assert "DeltaTable('demo/lake/rollups')" in lines[1]
    shown = list(asked(place, lines))
    assert shown[: len(lines)] == [f"  {line}" for line in lines]
    assert max(map(len, shown)) <= 100
    found = re.findall(r"(\d{4}-\d\d-\d\d) │ +(\d+) ", "\n".join(shown))
    assert found == [("2025-08-09", "12000"), ("2025-07-09", "600"), ("2025-02-09", "90")]


def test_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    place = Place(tmp_path / "demo")
    place.check()
    place.clear()
    place.picture.touch()
    place.check()
    place.clear()
    assert place.log.exists()
    assert not place.picture.exists()


def test_what_a_program_says_goes_to_the_log_and_its_answer_comes_back(tmp_path: Path) -> None:
    place = Place(tmp_path)
    code = "import sys, os; print('answer'); print('beside', file=sys.stderr); print(os.environ['AIRFLOW_HOME'])"
    assert place.run("python", "-c", code).splitlines() == ["answer", str(tmp_path / "airflow")]
    assert {"answer", "beside"} <= set(place.log.read_text(encoding="utf-8").splitlines())


def test_a_program_that_fails_ends_the_demo_with_its_last_words(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(RunError) as refused:
        place.run("python", "-c", "import sys; sys.exit('no room')")
    assert refused.value.message.startswith("'python -c import sys; sys.exit('no room') ...' ended with 1;")
    assert refused.value.message.endswith("\n  no room\n")
    assert refused.value.hint == f"all of it is in {place.log}."


@pytest.mark.torture
@pytest.mark.airflow
@pytest.mark.spark
def test_all_of_it_is_told_without_a_word_of_others(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "stairwise")
    command = [program, "demo", "--dir", "demo", "--rows", "50000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    sections = re.split(r"^\d  .*$", done.stdout, flags=re.MULTILINE)
    _, _, plan, history, hour, late, proof, by_hand, left = sections
    assert "Proven optimal." in plan
    assert "50,000 trips, read once" in history
    assert re.search(r"5 new trips; written: \d of 5m, \d of 15m, 1 of 1h and 1 of 90m, and nothing else\n", hour)
    assert len(re.findall(r" exact +[\d,]+$", late, re.MULTILINE)) == len(WINDOWS)
    assert len(re.findall(r" equal  ", proof)) == len(WINDOWS)
    assert len(re.findall(r" same$", by_hand, re.MULTILINE)) == len(WINDOWS)
    assert len(re.findall(r"│ 2025-\d\d-\d\d │ +\d+ │", left)) == 3
    assert not re.search(r"WARN|Warning|Traceback|Exception", done.stdout)
