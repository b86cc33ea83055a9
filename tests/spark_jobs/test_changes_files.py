"""What changed in a folder of files, and in what has no files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.rollup import Rollup, Source
from stairwise.span import Lookback
from stairwise.windowing import Interval
from stairwise_spark.changes import Changes, Listing, Recheck, Way, changes, listing_of
from stairwise_spark.expressions import direct
from stairwise_spark.listing import File, Stamp, ordered
from stairwise_spark.source import FILES, PinnedSource, open_source
from tests.spark_jobs.lake import ALWAYS, HOURS, slices

pytestmark = pytest.mark.spark


def opened(spark: SparkSession, source: Source) -> PinnedSource:
    rollup = Rollup(
        name="trips",
        source=source,
        keys=["zone"],
        aggregates={"trips": "count()"},
        windows=["1h"],
        target="lake/rollups",
    )
    return open_source(spark, rollup, direct)


def write(spark: SparkSession, path: Path, *hours: int) -> None:
    """One file, with an event in each of these hours."""
    seconds = spark.createDataFrame([(hour * 3600 + 5,) for hour in hours], "second bigint")
    frame = seconds.selectExpr("1 AS zone", "timestamp_seconds(second) AS at")
    folder = path.parent.with_name("new")
    frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
    (file,) = folder.glob("part-*.parquet")
    file.replace(path)


def found(source: PinnedSource, before: Listing, within: tuple[Interval, ...] = ALWAYS) -> tuple[Changes, Listing]:
    now = listing_of(source, before)
    return changes(source, None, HOURS, within, files=(before, now)), Listing.decode(now.encode())


def test_files_that_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "tr ips%20+"
    lake.mkdir()

    def again() -> PinnedSource:
        return opened(spark, Source(path=str(lake), format="parquet", time="at"))

    write(spark, lake / "a b.parquet", 0, 9)
    write(spark, lake / "b.parquet", 1)
    first = again()
    assert first.identity == FILES
    _, known = found(first, Listing())
    answer, known = found(again(), known)
    assert (answer.way, answer.spans) == (Way.UNCHANGED, ())
    write(spark, lake / "c.parquet", 3, 5, 5)
    answer, later = found(again(), known, (Interval(0, 4 * 3600), Interval(5 * 3600, 10 * 3600)))
    assert (slices(answer), answer.late_rows, answer.files, answer.way) == ({3, 5}, 3, 1, Way.LISTING)
    answer, _ = found(again(), known, (Interval(0, 3 * 3600),))
    assert (answer.spans, answer.late_rows, answer.files) == ((), 0, 0)
    write(spark, lake / "b.parquet", 1)
    os.utime(lake / "b.parquet", (10**9, 10**9))
    (lake / "a b.parquet").unlink()
    answer, _ = found(again(), later)
    assert slices(answer) == set(range(10))
    assert answer.why == "2 files were removed or written again, so all the time of these and of those that came"


def test_of_files_that_came_in_a_group_all_the_time_is_due(spark: SparkSession, tmp_path: Path) -> None:
    """They are not known by name, so they cannot be looked into."""
    write(spark, tmp_path / "a.parquet", 0)
    source = opened(spark, Source(path=str(tmp_path), format="parquet", time="at"))
    files = [File(Stamp(number, f"file:/{number}", 1), Interval(3600, 3700 + number)) for number in range(3_000)]
    many = Listing.decode(ordered(files).encode())
    answer = changes(source, None, HOURS, ALWAYS, files=(Listing(), many))
    assert slices(answer) == {1}
    assert answer.why == "3,000 files were added, more than are named one by one, so all the time of these"
    assert answer.late_rows is None


def test_queries_have_the_lookback_or_nothing(spark: SparkSession) -> None:
    source = opened(spark, Source(sql="SELECT 1 AS zone, timestamp_seconds(id) AS at FROM range(3)", time="at"))
    assert source.identity is None
    within = (Interval(0, 400 * 86_400),)
    found = changes(source, None, HOURS, within)
    assert (found.way, found.spans) == (Way.EVERYTHING, within)
    month = Recheck(lookbacks=(Lookback.parse("1 month weekly"),), now=3 * 86_400, last={"1 month weekly": 0})
    assert changes(source, None, HOURS, within, month).spans == ()
    month = Recheck(lookbacks=month.lookbacks, now=4 * 86_400, last=month.last)
    assert changes(source, None, HOURS, within, month).spans == (Interval(369 * 86_400, 400 * 86_400),)
