"""Statistics of a source: counted whole or over stretches of time, with and without a log that knows its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from stairwise import Rollup, Source
from stairwise.cli import main
from stairwise.instant import parse_instant
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.delta_log import read_log
from stairwise_spark.errors import RunError
from stairwise_spark.expressions import direct
from stairwise_spark.measure import measure
from stairwise_spark.session import sql
from stairwise_spark.source import open_source

pytestmark = pytest.mark.spark

BEGIN = parse_instant("2024-01-01")
WEEK = 7 * 86_400


def events(spark: SparkSession, rows: int, every_s: int, key: str = "id % 8") -> DataFrame:
    at = f"timestamp_seconds({BEGIN} + {every_s} * id) AS at"
    return spark.range(rows).selectExpr(at, f"{key} AS zone", "CAST(id % 5 AS INT) AS kind")


def saved(frame: DataFrame, path: Path, kind: str = "delta") -> Path:
    frame.coalesce(1).write.format(kind).mode("append").save(str(path))
    return path


def rollup(path: Path, *, kind: str = "delta", keys: tuple[str, ...] = ("zone",), **more: str) -> Rollup:
    where, aggregate = more.get("where"), more.get("aggregate", "count()")
    return Rollup(
        name="trips",
        source=Source(path=str(path), format=kind, time="at", where=where),
        keys=keys,
        aggregates={"total": aggregate},
        windows=("10m", "1h"),
        target=f"{path}_rollup",
    )


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week with an event each minute, in two files; eight keys."""
    path = tmp_path_factory.mktemp("measure") / "events"
    frame = events(spark, WEEK // 60, 60)
    saved(frame.where("at < '2024-01-05'"), path)
    return saved(frame.where("at >= '2024-01-05'"), path)


def test_a_small_table_is_counted_whole(spark: SparkSession, table: Path) -> None:
    found = measure(spark, rollup(table, aggregate="count_distinct(kind)"))
    assert (found.rows, found.sample, found.version) == (WEEK // 60, WEEK // 60, 1)
    assert found.span == Interval(BEGIN, BEGIN + WEEK - 60 + 1)
    assert found.estimates == Estimates(rows_per_day=1_440, distinct_keys=8, distinct_values=5)
    assert found.bytes is not None
    assert [each.seconds for each in found.slices] == [600, 3_600, 21_600]
    assert [each.rows for each in found.slices] == pytest.approx([10, 60, 360], rel=0.01)
    assert [each.keys for each in found.slices] == pytest.approx([8, 8, 8], rel=0.03)


def test_of_a_larger_one_stretches_of_time_are(spark: SparkSession, table: Path) -> None:
    """Eight whole hours or less of the week, and the rest by what the log says."""
    found = measure(spark, rollup(table), sample_rows=500)
    assert (found.rows, found.sample) == (WEEK // 60, 8 * 60)
    assert found.estimates == Estimates(rows_per_day=1_440, distinct_keys=8)
    assert [(each.seconds, each.rows) for each in found.slices] == [(600, 10), (3_600, 60)]
    assert [each.keys for each in found.slices] == pytest.approx([8, 8], rel=0.03)
    filtered = measure(spark, rollup(table, where="zone < 4"), sample_rows=500)
    assert (filtered.estimates.rows_per_day, filtered.estimates.distinct_keys) == (720, 4)


def test_files_without_a_log_say_it_by_their_time_column(spark: SparkSession, tmp_path: Path) -> None:
    path = saved(events(spark, 1_000, 60), tmp_path / "events", "parquet")
    found = measure(spark, rollup(path, kind="parquet", keys=(), where="kind > 0"))
    assert (found.rows, found.version, found.slices) == (800, None, ())
    assert found.estimates == Estimates(rows_per_day=1_153)
    assert found.bytes == sum(file.stat().st_size for file in path.glob("*.parquet"))


def test_keys_that_never_come_again_go_on_to_grow(spark: SparkSession, tmp_path: Path) -> None:
    path = saved(events(spark, 20_000, 60, key="id"), tmp_path / "events")
    found = measure(spark, rollup(path), sample_rows=2_000)
    assert found.sample < 2_100
    assert found.estimates.distinct_keys == pytest.approx(20_000, rel=0.1)


def test_times_far_from_all_others_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    path = saved(events(spark, 10_000, 60), tmp_path / "events")
    saved(events(spark, 1, 60).selectExpr("timestamp'1970-01-01' AS at", "zone", "kind"), path)
    found = measure(spark, rollup(path))
    assert (found.rows, found.estimates.rows_per_day) == (10_000, 1_440)


def test_the_log_is_read_from_its_checkpoint_on(spark: SparkSession, tmp_path: Path) -> None:
    """Ten commits and a fold behind some of them; what was deleted is not there."""
    path = tmp_path / "a [b] events"
    for day in range(4):
        frame = events(spark, 24, 3_600).selectExpr(f"at + INTERVAL {day} DAYS AS at", "zone", "kind")
        frame.coalesce(1).write.format("delta").mode("append").option("delta.checkpointInterval", "2").save(str(path))
    sql(spark, f"DELETE FROM delta.`{path}` WHERE at < '2024-01-02'")  # noqa: S608 - of our own making
    assert list((path / "_delta_log").glob("*.checkpoint.parquet"))
    source = open_source(spark, rollup(path), direct)
    assert source.delta is not None
    days = read_log(spark, source.delta, source.version or 0, source.time).days
    assert days is not None
    assert [(each.first // 1_000_000 - BEGIN, each.rows) for each in days] == [(86_400 * day, 24) for day in (1, 2, 3)]


def test_a_log_that_does_not_know_the_times_is_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events"
    writer = events(spark, 100, 60).write.format("delta").option("delta.dataSkippingNumIndexedCols", "0")
    writer.save(str(path))
    source = open_source(spark, rollup(path), direct)
    assert source.delta is not None
    assert read_log(spark, source.delta, 0, source.time).days is None
    assert source.told_extent() is None
    assert measure(spark, rollup(path)).rows == 100


def test_a_source_without_rows_cannot_be_measured(spark: SparkSession, table: Path) -> None:
    with pytest.raises(RunError) as caught:
        measure(spark, rollup(table, where="zone > 100"))
    assert str(caught.value) == "there are no rows to measure. Hint: plan without --measure."


def test_a_plan_is_made_of_what_was_measured(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trips.yaml"
    file.write_text(rollup(table).to_yaml(), encoding="utf-8")
    assert main(["plan", str(file), "--measure", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["measured"]["rows"], document["measured"]["rows_per_day"]) == (WEEK // 60, 1_440)
    assert [note.partition(" ")[0] for note in document["notes"]] == ["measured:"] * 3
    assert main(["plan", str(file), "--measure", "--distinct-keys", "9"]) == 0
    assert "measured: to keep it, declare estimates: {rows_per_day: 1440, distinct_keys: 8}" in capsys.readouterr().out
