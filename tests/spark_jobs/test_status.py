"""``stairwise status``: what is covered, missing, out of date and open, and how it is drawn."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.cli import main
from stairwise.declared import Catalog
from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark.contents import Part, contents, log_files, newest_files, together
from stairwise_spark.coverage import Coverage
from stairwise_spark.due import BEGINNING
from stairwise_spark.session import sql
from stairwise_spark.status import Clock, LastRun, Reason, Status, TierStatus, status
from stairwise_spark.status_text import Cell, heat, instant, screen, told
from stairwise_spark.storage import Storage
from stairwise_spark.terminal import Screen
from tests.spark_jobs.proving import DAY, HOUR, add_events, declared, filled, hours, on_disk, planned

PLAN = planned(declared("events", Path("rollup"), windows=("1h", "day in Europe/Paris")))
NOW = DAY + 10 * HOUR + 900


def tier(
    coverage: Coverage,
    *,
    now: int = NOW,
    delay: int = 0,
    start: int | None = None,
    version: int | None = 3,
    place: int = 0,
) -> TierStatus:
    clock = Clock(now=now, due=now - delay, start=start, version=version)
    holds = Part(window=None, part=None, files=3, bytes=4_000, rows=12, ends=(DAY + HOUR, DAY + 9 * HOUR))
    last = LastRun(run="r", at=DAY, version=2, wrote=replace(holds, rows=4))
    declared_steps = [step for step in PLAN.steps if step.tier.window is not None]
    return TierStatus(
        step=declared_steps[place],
        table="rollup/1h",
        is_there=True,
        coverage=coverage,
        holds=holds,
        last=last,
        clock=clock,
    )


def of(*tiers: TierStatus) -> Status:
    return Status(rollup="trips", tiers=tiers, clock=tiers[0].clock, report=None, notes=("A note.",))


def span(first: int, last: int) -> Interval:
    return Interval(DAY + first * HOUR, DAY + last * HOUR)


def over(*ranges: tuple[Interval, int]) -> Coverage:
    return Coverage.over((each.start, each.end, version) for each, version in ranges)


def test_a_gap_is_a_hole_or_what_is_missing_after_the_start() -> None:
    holed = over((span(0, 2), 3), (span(4, 6), 3))
    assert tier(holed).gaps == (span(2, 4),)
    assert tier(holed, start=DAY - HOUR).gaps == (span(-1, 0), span(2, 4))
    assert tier(Coverage.of(span(0, 2), 3)).gaps == ()
    assert tier(Coverage()).gaps == ()
    assert tier(Coverage(), start=DAY).gaps == (Interval(DAY, NOW),)
    doubtful = over((span(0, 2), 3), (span(2, 3), -1))
    assert (tier(doubtful).covered, tier(doubtful).gaps) == ((span(0, 2),), (span(2, 3),))


def test_older_than_the_source_is_stale() -> None:
    known = over((span(0, 2), 2), (span(2, 4), 1), (span(4, 6), 3))
    assert tier(known).stale == (span(0, 4),)
    assert tier(known, version=None).stale == ()
    assert tier(known).covered == (span(0, 6),)


def test_what_is_not_sealed_has_its_reason() -> None:
    found = tier(over((span(0, 6), 3), (span(6, 7), -1)), delay=7_200).unsealed
    assert [(each.span, each.reason) for each in found] == [
        (span(6, 7), Reason.DOUBTFUL),
        (Interval(DAY + 6 * HOUR, NOW - 7_200), Reason.DUE),
        (Interval(NOW - 7_200, NOW), Reason.DELAY),
        (Interval(NOW, DAY + 11 * HOUR), Reason.OPEN),
    ]
    # In the last quarter of an hour no window has ended.
    ended = tier(Coverage.of(span(0, 10), 3)).unsealed
    assert [each.reason for each in ended] == [Reason.OPEN]
    assert tier(Coverage.of(span(0, 10), 3)).lag_s == 900
    assert tier(Coverage()).lag_s is None


def test_the_line_of_time_shows_the_worst_of_each_stretch() -> None:
    known = over((span(0, 4), 3), (span(5, 6), 2), (span(6, 8), 3))
    drawn = heat(tier(known), span(0, 10), 10)
    full, stale, gap, later = Cell.COVERED, Cell.STALE, Cell.GAP, Cell.OPEN
    assert drawn == [full, full, full, full, gap, stale, full, full, later, later]
    assert heat(tier(known), span(0, 10), 2) == [gap, stale]


@pytest.mark.parametrize("width", [16, 20, 28, 40, 60, 100])
def test_whatever_the_width_no_line_is_wider(width: int) -> None:
    known = over((span(0, 4), 3), (span(5, 6), 2))
    for is_colored in (False, True):
        shown = told(of(tier(known), tier(known, place=1)), Screen(columns=width, lines=9, is_colored=is_colored))
        plain = shown
        for code in ("\033[0m", "\033[2m", "\033[31m", "\033[32m", "\033[33m"):
            plain = plain.replace(code, "")
        assert max(map(len, plain.splitlines())) <= width
        assert ("\033" in shown) == (is_colored and width > 16)


def test_characters_tell_what_colours_tell() -> None:
    known = over((span(0, 4), 3), (span(5, 6), 2), (span(6, 9), 3))
    shown = told(of(tier(known)), Screen(columns=99, lines=9, blocks=("#", ".")))
    assert "  1h  ##################" in shown
    assert "# covered   . not yet   ~ covered, but the source is newer   ! gap" in shown
    assert "gap: 2024-01-01T04:00Z to 2024-01-01T05:00Z (1h)" in shown
    assert shown.splitlines()[0] == "trips: 1 gap, 1 tier older than the source; the source is at version 3"
    assert shown.splitlines()[-1] == "  A note."
    ascii_only = screen(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert (ascii_only.blocks, ascii_only.is_colored, ascii_only.columns) == (("#", "."), False, 100)


def test_all_of_the_past_is_the_beginning() -> None:
    assert instant(BEGINNING) == "the beginning"
    whole = tier(Coverage.of(Interval(BEGINNING, DAY + 9 * HOUR), 3))
    shown = told(of(whole), Screen(columns=80, lines=9))
    assert "2024-01-01" in next(line for line in shown.splitlines() if line.startswith("      2"))
    document = whole.to_json()
    assert document["covered"] == [["0001-01-01T00:00:00Z", "2024-01-01T09:00:00Z"]]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("source") / "events")
    add_events(spark, path, 0, 600)
    return path


@pytest.mark.spark
@pytest.mark.parametrize("layout", ["tables", "one_table"])
def test_the_tables_are_told_as_they_are(
    spark: SparkSession, source: str, tmp_path: Path, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rollup = declared(source, tmp_path / "rollup", layout, aggregates={"trips": "count()"}, windows=("20m", "1h"))
    file = on_disk(rollup, tmp_path)
    assert main(["status", file, "--fail-on-gaps"]) == 0
    assert capsys.readouterr().out.startswith("trips: nothing was made yet; the source is at version 0.")
    filled(spark, rollup, hours(0, 2), hours(3, 4))
    written = sorted((tmp_path / "rollup").rglob("*"))
    assert main(["status", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert sorted((tmp_path / "rollup").rglob("*")) == written
    assert (document["schema"], document["source"], document["notes"]) == ("stairwise.status/1", {"version": 0}, [])
    tiers = {each["name"]: each for each in document["tiers"]}
    gap = ["2024-01-01T02:00:00Z", "2024-01-01T03:00:00Z"]
    for name, rows in {"20m": 36, "1h": 12}.items():
        found = tiers[name]
        assert found["covered"] == [["2024-01-01T00:00:00Z", gap[0]], [gap[1], "2024-01-01T04:00:00Z"]]
        assert (found["kind"], found["rows"], found["gaps"], found["stale"]) == ("declared", rows, [gap], [])
        assert found["table"] == str(tmp_path / "rollup" / ("" if layout == "one_table" else name))
        assert found["last_run"]["run_id"] == document["last_run"]["run_id"]
        assert found["last_run"]["rows_written"] == rows // 3
        assert [each["reason"] for each in found["unsealed"]] == [Reason.DUE.value, Reason.OPEN.value]
    folder = tmp_path / "rollup"
    size = sum(each.stat().st_size for name in ("20m", "1h") for each in folder.rglob("*.parquet") if name in str(each))
    if layout == "tables":
        assert tiers["20m"]["bytes"] + tiers["1h"]["bytes"] == size
    assert main(["status", file, "--fail-on-gaps"]) == 1
    shown = capsys.readouterr().out
    assert "gap: 2024-01-01T02:00Z to 2024-01-01T03:00Z (20m, 1h)" in shown or "(1h" in shown


@pytest.mark.spark
def test_a_catalog_and_a_source_that_is_gone(spark: SparkSession, source: str, tmp_path: Path) -> None:
    sql(spark, "CREATE SCHEMA IF NOT EXISTS standing")
    copied = tmp_path / "events"
    shutil.copytree(source, copied)
    rollup = declared(str(copied), Catalog("standing"), aggregates={"trips": "count()"}, windows=("1h",))
    plan = filled(spark, rollup, hours(0, 2))
    shutil.rmtree(copied)
    found = status(spark, plan, now=DAY + 3 * HOUR)
    assert [(each.table, each.covered, each.lag_s) for each in found.tiers] == [("standing.1h", (hours(0, 2),), HOUR)]
    assert found.tiers[0].holds is not None
    assert found.tiers[0].holds.rows == 8
    assert found.clock.version is None
    assert found.notes[0].startswith("The source could not be asked for its version, so nothing is told to be stale:")


@pytest.mark.spark
def test_after_a_checkpoint_nothing_is_counted_twice_and_what_is_lost_is_said(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    rollup = declared(source, tmp_path / "rollup", aggregates={"trips": "count()"}, windows=("1h",))
    plan = filled(spark, rollup, hours(0, 2))
    table, log = f"delta.`{rollup.target}/1h`", tmp_path / "rollup" / "1h" / "_delta_log"
    sql(spark, f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    filled(spark, rollup, hours(2, 4))
    before = status(spark, plan)
    assert (rows(before), before.notes) == (16, ())
    last = max(int(each.name[:20]) for each in log.glob("*.checkpoint.parquet"))
    assert of_newest_files(spark, plan) == 16
    for commit in log.glob("*.json"):
        if commit.name[:20].isdigit() and int(commit.name[:20]) < last:
            commit.unlink()
    after = status(spark, plan)
    assert of_newest_files(spark, plan) == 16
    # The bookkeeping knew all by then.
    assert (rows(after), after.tiers[0].covered, after.notes) == (16, (hours(0, 4),), ())
    shutil.rmtree(tmp_path / "rollup" / "_stairwise")
    lost = status(spark, plan)
    assert rows(lost) == 16
    assert lost.notes == (
        (
            f"Tier 1h: the log of its table begins with version {last}, and the bookkeeping knows nothing of the "
            "versions before. What they covered counts as missing; a backfill makes it again."
        ),
    )


def of_newest_files(spark: SparkSession, plan: Plan) -> int | None:
    """The rows of the tables by the files that come after their checkpoints, which are the same as by all."""
    storage = Storage.of(spark, plan)
    reached = min(state.version for state in storage.states().values())
    tables = storage.tables().values()
    every = log_files(tables)
    found = contents(every)
    for logs in (newest_files(tables), newest_files(tables, reached)):
        assert {log.checkpoint for log in logs.values()} == {log.checkpoint for log in every.values()} != {-1}
        assert contents(logs) == found
    return together([part for parts in found.values() for part in parts or ()]).rows


def rows(found: Status) -> int | None:
    holds = found.tiers[0].holds
    return None if holds is None else holds.rows
