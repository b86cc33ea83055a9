"""Runs over the life of a source: what is new or changed is brought up to date, and nothing else is touched."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.rollup import DeclaredWindow, Estimates
from stairwise.span import Lookback, Span
from stairwise.windowing import Interval
from stairwise_spark.coverage import expired, trusted
from stairwise_spark.engine import Due, Request, run
from stairwise_spark.errors import DeletesError
from stairwise_spark.maintain import Upkeep, maintain
from stairwise_spark.report import RunReport
from stairwise_spark.spans import hull
from stairwise_spark.storage import Storage
from tests.spark_jobs import oracle

pytestmark = pytest.mark.spark

DAY, HOUR = 86_400, 3_600
FIRST = 1_711_497_600  # 2024-03-27T00:00Z, a Wednesday; on Sunday Paris loses an hour


@dataclass(frozen=True)
class Life:
    """A source and the tables made of it."""

    spark: SparkSession
    rollup: Rollup

    @property
    def path(self) -> str:
        return str(self.rollup.source.path)

    def append(self, *spans: tuple[float, float], every: int = 600, keys: int = 3) -> None:
        """One event for each key and so many seconds of some spans, in hours since the first day."""
        self.events(spans, every, keys).write.format("delta").mode("append").save(self.path)

    def events(self, spans: Sequence[tuple[float, float]], every: int, keys: int) -> DataFrame:
        rows = [
            (FIRST + second, key, (second // 7 + key) % 100)
            for start, end in spans
            for second in range(int(start * HOUR), int(end * HOUR), every)
            for key in range(keys)
        ]
        frame = self.spark.createDataFrame(rows, "at bigint, k int, v int")  # pyright: ignore[reportUnknownMemberType]
        return frame.select(F.timestamp_seconds("at").alias("at"), "k", "v").coalesce(1)

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("SOURCE", f"delta.`{self.path}`").replace("FIRST", f"{FIRST}"))

    def run(self, hours: float | None = None, **more: object) -> RunReport:
        """A run without a start, until so many hours since the first day."""
        until = None if hours is None else FIRST + int(hours * HOUR)
        return run(self.spark, optimize(self.rollup), Request(span=Due(until=until), **more))  # type: ignore[arg-type]

    def check(self, hours: float, files: str = "") -> None:
        """All windows that ended by then equal what the raw rows give, of a Delta table or of files."""
        read = self.spark.read.parquet(files) if files else self.spark.read.format("delta").load(self.path)
        raw = read.withColumn("_time", F.unix_micros("at"))
        span = Interval(FIRST - 40 * DAY, FIRST + int(hours * HOUR))
        wanted = oracle.expected(raw, self.rollup, oracle.ending_in(span))
        assert list(oracle.differences(self.rollup, oracle.stored(self.spark, self.rollup), wanted)) == []

    def versions(self) -> dict[str, int]:
        """The newest version of each table, helpers too."""
        logs = Path(str(self.rollup.target)).rglob("_delta_log")
        return {
            str(log.parent): max(int(file.stem) for file in log.glob("*.json"))
            for log in logs
            if "_stairwise" not in str(log)
        }


def written(report: RunReport) -> dict[str, int | None]:
    return {tier.name: tier.windows for tier in report.tiers if tier.wrote}


@pytest.fixture(params=["tables", "one_table"])
def life(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Life:
    rollup = Rollup(
        name="trips",
        source=Source(path=str(tmp_path / "events"), time="at"),
        keys=("k",),
        aggregates={"n": "count()", "total": "sum(v)", "high": "max(v)"},
        windows=("10m", "90m", "2h every 30m", "day in Europe/Paris"),
        target=str(tmp_path / "target"),
        layout=request.param,
        estimates=Estimates(rows_per_day=10_000_000, distinct_keys=50),
    )
    return Life(spark, rollup)


def test_a_life(life: Life) -> None:
    life.append((0, 30))
    first = life.run(30)
    life.check(30)
    assert first.late_rows == 0
    before = life.versions()
    again = life.run(30)
    assert not again.wrote_anything
    assert life.versions() == before
    # the next hours
    life.append((30, 33))
    report = life.run(33)
    life.check(33)
    assert report.late_rows == 0
    assert written(report)["10m"] == 18
    # late rows of one slice, and of one before everything
    life.append((5.02, 5.03), keys=1)
    life.append((-50, -49.9), keys=1)
    report = life.run(33)
    life.check(33)
    assert report.late_rows == 2
    assert (written(report)["10m"], written(report)["90m"]) == (2, 2)
    # an update that changes one slice, a delete, and a compaction
    life.sql("UPDATE SOURCE SET v = v + 1 WHERE k = 1 AND at = timestamp_seconds(FIRST + 7 * 3600)")
    report = life.run(33)
    life.check(33)
    assert written(report)["10m"] == 1
    life.sql(
        "DELETE FROM SOURCE WHERE at >= timestamp_seconds(FIRST + 43200) AND at < timestamp_seconds(FIRST + 46800)"
    )
    life.run(33)
    life.check(33)
    before = life.versions()
    life.sql("OPTIMIZE SOURCE")
    assert not life.run(33).wrote_anything
    assert life.versions() == before
    # a late row and new hours at once, and a day that is whole
    life.append((20.5, 20.6), (33, 60))
    life.run(60)
    life.check(60)


FEW = ("10m", "day in Europe/Paris")


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> Life:
    rollup = Rollup(
        name="trips",
        source=Source(path=str(tmp_path / "events"), time="at"),
        keys=("k",),
        aggregates={"n": "count()", "total": "sum(v)"},
        windows=FEW,
        target=str(tmp_path / "target"),
        layout="one_table",
        estimates=Estimates(rows_per_day=10_000_000, distinct_keys=50),
    )
    return Life(spark, rollup)


def test_windows_that_have_not_ended_are_marked(small: Life) -> None:
    life = replace(small, rollup=replace(small.rollup, partial=True))
    life.append((0, 30))
    life.run(26)

    def partial() -> list[tuple[str, int]]:
        found = life.spark.read.format("delta").load(str(life.rollup.target)).where("is_partial")
        return sorted((row[0], row[1]) for row in found.groupBy("window").agg(F.sum("n")).collect())

    # Of Thursday in Paris, which began at 23:00Z, all that there is; no window of ten minutes has only begun.
    assert partial() == [("day_in_europe_paris", 7 * 6 * 3)]
    assert not life.run(26).wrote_anything
    life.append((30, 31))
    assert written(life.run(26)) == {"day_in_europe_paris": 1}
    assert partial() == [("day_in_europe_paris", 8 * 6 * 3)]
    # What has ended stays as it is, even if one asks for less than was asked for before.
    assert not life.run(23).wrote_anything
    life.run(47)
    assert partial() == []
    assert not life.run(26).wrote_anything
    life.check(47)


def test_rows_that_come_too_late_are_counted_once_and_change_nothing(small: Life) -> None:
    life = replace(small, rollup=replace(small.rollup, lateness=Span.parse("10h"), future=Span.parse("1d")))
    life.append((0, 30))
    life.run(30)
    life.append((5, 5.1), (25, 25.1), keys=2)
    report = life.run(30)
    assert (report.late_rows, report.ignored_rows) == (4, 2)
    assert written(report)["10m"] == 1
    report = life.run(30)
    assert (report.late_rows, report.wrote_anything) == (0, False)
    life.events([(1_000_000, 1_000_000.1)], 600, 1).write.format("delta").mode("append").save(life.path)
    life.append((30, 31))
    assert life.run(31).future_rows == 1


def test_parts_of_many_versions_are_brought_up_to_date_by_one_look(small: Life) -> None:
    small.append((0, 1))
    plan = optimize(small.rollup)
    for hour in range(1, 6):
        part = Interval(FIRST + (hour - 1) * HOUR, FIRST + hour * HOUR)
        assert run(small.spark, plan, Request(span=part)).wrote_anything
        small.append((hour, hour + 1), (hour / 2, hour / 2 + 0.1))
    report = small.run(6)
    ((way, why),) = report.source.found
    assert (way, why.rpartition(", ")[2]) == ("log", "for 5 versions at once")
    assert report.late_rows == 5 * 3
    small.check(6)
    assert not small.run(6).wrote_anything


@pytest.mark.parametrize("kind", ["parquet", "sql"])
def test_sources_without_a_log(small: Life, kind: str) -> None:
    source = Source(path=small.path, time="at", format="parquet")
    if kind == "sql":
        source = Source(sql=f"SELECT * FROM parquet.`{small.path}`", time="at")  # noqa: S608 - a path of this test
    rollup = replace(small.rollup, source=source, lookback=(Lookback.parse("12h every run"),) if kind == "sql" else ())
    life = Life(small.spark, rollup)

    def append(*spans: tuple[float, float]) -> None:
        life.events(spans, 600, 3).write.mode("append").parquet(small.path)

    append((0, 30))
    life.run(30)
    append((29, 29.5), (30, 31))
    report = life.run(31)
    life.check(31, small.path)
    ways = [way for way, _ in report.source.found]
    assert ways == (["listing"] if kind == "parquet" else ["lookback"])
    if kind == "parquet":
        assert (report.late_rows, written(report)["10m"]) == (9, 9)
        assert not life.run(31).wrote_anything


def test_what_has_expired_is_no_version_of_a_source(small: Life) -> None:
    """One without versions gets numbers of our own; a claim of more than what expired counts for nothing."""
    rollup = replace(
        small.rollup,
        source=Source(sql=f"SELECT * FROM parquet.`{small.path}`", time="at"),  # noqa: S608 - a path of this test
        lookback=(Lookback.parse("12h every run"),),
        windows=(DeclaredWindow.parse("10m", retain="6 days"), DeclaredWindow.parse("1h")),
    )
    life, plan = Life(small.spark, rollup), optimize(rollup)
    for hour in range(30, 33):
        life.events([(0 if hour == 30 else hour - 1, hour)], 600, 3).write.mode("append").parquet(small.path)
        life.run(hour)
    coverage = {tier: state.coverage for tier, state in Storage.of(small.spark, plan).states().items()}
    assert hull(trusted(coverage["1h"])).end == FIRST + 32 * HOUR
    assert expired(coverage["10m"])
    assert {each.version for each in coverage["1h"].stretches} <= {1, 2, 3}


def test_only_who_looked_at_everything_has_looked_back(small: Life) -> None:
    rollup = replace(
        small.rollup,
        source=Source(sql=f"SELECT * FROM parquet.`{small.path}`", time="at"),  # noqa: S608 - a path of this test
        lookback=(Lookback.parse("1 day weekly"),),
    )
    life = Life(small.spark, rollup)
    life.events([(0, 30)], 600, 3).write.parquet(small.path)
    part: Sequence[dict[str, object]] = ({"tiers": ("10m",)}, {"span": Interval(FIRST + 29 * HOUR, FIRST + 30 * HOUR)})
    life.run(30)
    for more in part:
        run(life.spark, optimize(rollup), Request(**{"span": Due(until=FIRST + 30 * HOUR), **more}))  # type: ignore[arg-type]
    assert life.run(30).wrote_anything
    assert not life.run(30).wrote_anything


def test_a_source_that_was_made_anew_is_another_one(small: Life) -> None:
    small.append((0, 10))
    small.run(10)
    shutil.rmtree(small.path)
    small.append((0, 5), every=1200)
    small.append((5, 10), every=1800)
    with pytest.raises(DeletesError, match="35 of 60 windows of 10m would lose all of their rows"):
        small.run(10)
    small.run(10, accepts_deletes=True)
    small.check(10)


def test_housekeeping_does_not_believe_what_was_claimed_of_a_source_that_is_gone(small: Life) -> None:
    for end in (4, 8, 12):
        small.append((end - 4, end))
        small.run(end)
    shutil.rmtree(small.path)
    small.append((0, 12), every=1200)
    plan = optimize(small.rollup)
    part = Request(span=Interval(FIRST, FIRST + 2 * HOUR), accepts_deletes=True)
    assert run(small.spark, plan, part).wrote_anything
    maintain(small.spark, plan, Upkeep(vacuum=True))  # which sums up what the logs say
    assert small.run(12, accepts_deletes=True).wrote_anything
    small.check(12)


def test_ranges_side_by_side_all_end_well_and_compute_once(small: Life) -> None:
    small.append((0, 24))
    small.run(1)
    plan = optimize(small.rollup)
    hours = [Interval(FIRST + hour * HOUR, FIRST + (hour + 2) * HOUR) for hour in range(1, 9, 2)]
    with ThreadPoolExecutor(len(hours)) as pool:
        runs = [pool.submit(run, small.spark, plan, Request(span=span)) for span in hours]
        reports = [each.result() for each in runs]
    assert [written(report)["10m"] for report in reports] == [12] * len(hours)
    small.check(9)
