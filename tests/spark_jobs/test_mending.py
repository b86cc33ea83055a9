"""Late rows for windows of which the source has dropped rows: merged once, by all tiers, or counted and left."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.edges import EdgeSet
from stairwise.rollup import Estimates, Layout
from stairwise.windowing import Interval, windows_touching
from stairwise_spark.additions import additions
from stairwise_spark.engine import Due, History, Request, run
from stairwise_spark.expressions import direct
from stairwise_spark.report import Event, Progress, RunBegun, RunReport, TierWritten, silent
from stairwise_spark.session import sql
from stairwise_spark.source import open_source
from stairwise_spark.terminal import summary

pytestmark = pytest.mark.spark

HOUR, DAY = 3_600, 86_400
TODAY = int(time.time()) // DAY * DAY
# Of the windows of 4 days, one began before the source keeps its rows, and goes on for a day or more.
KEPT = next(days for days in (5, 6, 7) if (TODAY // DAY - days) % 4 in (1, 2))
DAYS = 12


@dataclass(frozen=True, order=True)
class Trip:
    """An event: when, in which zone, how much."""

    at: int
    zone: str
    fare: int


class DiedError(BaseException):
    """The end of a run that is no more."""


@dataclass
class World:
    """A folder with a source that drops what is old, the tables of a rollup over it, and all events that ever were."""

    spark: SparkSession
    folder: Path
    rollup: Rollup
    seen: list[Trip] = field(default_factory=list[Trip])

    @property
    def table(self) -> str:
        return f"delta.`{self.folder}/{self.rollup.source.path}`"

    def add(self, *events: Trip) -> None:
        """Events come, by one commit."""
        rows = self.spark.createDataFrame(
            [(each.at, each.zone, each.fare) for each in events], "at long, z string, f int"
        )
        named = rows.select(F.timestamp_seconds("at").alias("at"), F.col("z").alias("zone"), F.col("f").alias("fare"))
        named.coalesce(1).write.format("delta").mode("append").save(f"{self.folder}/{self.rollup.source.path}")
        self.seen.extend(events)

    def expire(self) -> None:
        """What the source does not keep goes."""
        self.say(f"DELETE FROM {{table}} WHERE at < timestamp_seconds({TODAY - KEPT * DAY})")  # noqa: S608 - our own

    def correct(self, trip: Trip) -> None:
        """An event turns out to have cost one more."""
        when = f"at = timestamp_seconds({trip.at}) AND zone = '{trip.zone}'"
        self.say(f"UPDATE {{table}} SET fare = fare + 1 WHERE {when}")  # noqa: S608 - our own
        self.seen[self.seen.index(trip)] = replace(trip, fare=trip.fare + 1)

    def say(self, statement: str) -> None:
        """Something is done to the source."""
        sql(self.spark, statement.format(table=self.table)).collect()

    def run(self, progress: Progress = silent, *, all_of_it: bool = False) -> RunReport:
        request = Request(span=History() if all_of_it else Due())
        return run(self.spark, optimize(self.rollup), request, progress)

    def stored(self, window: str) -> list[Row]:
        """The rows of a window's table: key, bounds, results."""
        if self.rollup.layout is Layout.ONE_TABLE:
            rows = self.spark.read.format("delta").load(f"{self.folder}/tables").where(F.col("window") == window)
        else:
            rows = self.spark.read.format("delta").load(f"{self.folder}/tables/{window}")
        results = [name for name, _ in self.rollup.aggregates]
        bounds = [F.unix_seconds("window_start").alias("start"), F.unix_seconds("window_end").alias("end")]
        return sorted(rows.select("zone", *bounds, *results, "_rows").collect())

    def check(self) -> None:
        """Every table equals the windows of all events that there ever were."""
        for declared in self.rollup.windows:
            wanted: dict[tuple[str, int, int], list[Trip]] = {}
            for each in self.seen:
                for window in windows_touching(declared.window, each.at, each.at + 1):
                    if window.end <= TODAY:
                        wanted.setdefault((each.zone, window.start, window.end), []).append(each)
            found = {tuple(row[:3]): row[3:] for row in self.stored(declared.name) if row["end"] <= TODAY}
            assert found.keys() == wanted.keys(), declared.name
            for key, events in wanted.items():
                fares = [each.fare for each in events]
                last = max(events).fare
                expected = (
                    len(fares),
                    sum(fares),
                    pytest.approx(sum(fares) / len(fares)),
                    max(fares),
                    last,
                    len(fares),
                )
                assert found[key] == expected, (declared.name, key)


def some(days_ago: int, *hours: int, zone: str = "a", fare: int = 10) -> list[Trip]:
    """An event at each of some hours of a day."""
    return [Trip(TODAY - days_ago * DAY + hour * HOUR, zone, fare + hour) for hour in hours]


def world_in(spark: SparkSession, folder: Path, **declared: object) -> World:
    rollup = Rollup(
        name="trips",
        source=Source(path="trips", time="at", retain=f"{KEPT} days"),
        keys=("zone",),
        aggregates={
            "trips": "count()",
            "revenue": "sum(fare)",
            "mean": "avg(fare)",
            "most": "max(fare)",
            "final": "last(fare)",
        },
        windows=("1h", "6h every 3h", "day in Asia/Kolkata", "4 days"),
        target="tables",
        estimates=Estimates(rows_per_day=1_000_000, distinct_keys=2),
    )
    return World(spark, folder, replace(rollup, **declared))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=["tables", "one_table"])
def filled(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Some days in one file, in all tables; then what is old was dropped, so that the file was written anew."""
    world = world_in(spark, tmp_path_factory.mktemp("filled"), layout=Layout(request.param))
    world.add(*(each for days in range(1, DAYS + 1) for zone in "ab" for each in some(days, 1, 9, 22, zone=zone)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world.folder)
        world.run(all_of_it=True)
    world.expire()
    return world


@pytest.fixture
def world(filled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A copy of it, in another folder."""
    shutil.copytree(filled.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return replace(filled, folder=tmp_path, seen=list(filled.seen))


def test_late_rows_are_merged_once_into_windows_that_cannot_be_made_again(world: World) -> None:
    """Into fixed, overlapping and calendar windows; also if the source has dropped the rows again meanwhile."""
    world.add(*some(9, 1, 9, 10), *some(9, 5, zone="new"), *some(1, 3))
    report = world.run()
    world.check()
    assert (report.late_rows, report.repaired_rows, report.unrepairable_rows) == (5, 4, 0)
    assert report.lost == {}
    assert "4 rows came for windows of which the source has dropped rows, and were merged" in summary(report)
    assert not world.run().wrote_anything
    world.add(*some(9, 9), *some(KEPT + 1, 9))
    world.expire()
    world.add(*some(8, 23, fare=-50))
    world.correct(some(KEPT - 1, 22)[0])  # coarse windows are made of what was mended, and of what was made again
    faster: list[RunReport] = []

    def overtaken(event: Event) -> None:
        if isinstance(event, RunBegun):
            faster.append(world.run())

    assert (world.run(overtaken).repaired_rows, faster[0].repaired_rows) == (0, 3)
    world.check()
    report = world.run()
    assert (report.wrote_anything, report.late_rows, report.repaired_rows) == (False, 0, 0)


@pytest.mark.parametrize("filled", ["tables"], indirect=True)  # elsewhere all tiers are one commit
def test_a_run_that_dies_between_tiers_merges_nothing_twice(world: World) -> None:
    for deaths in (1, 2):
        world.add(*some(9, 9, 17 + deaths))
        for death in range(deaths):
            with suppress(DiedError):
                world.run(dying_after(death))
    world.run()
    world.check()


def dying_after(writes: int) -> Progress:
    """The end of a run as soon as so many tiers more have been written."""
    left = iter(range(writes))

    def tell(event: Event) -> None:
        if isinstance(event, TierWritten) and next(left, None) is None:
            raise DiedError

    return tell


def test_where_something_was_corrected_windows_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update in the kept part of a window that nothing finer gives, and late rows before; others are mended."""
    monkeypatch.chdir(tmp_path)
    world = world_in(spark, tmp_path, windows=("4 days",), aggregates={"most": "max(fare)", "trips": "count()"})
    world.add(*(each for days in range(1, DAYS + 1) for each in some(days, 1, 22)))
    world.run(all_of_it=True)
    world.expire()
    begin = TODAY - KEPT * DAY
    straddling = next(windows_touching(world.rollup.windows[0].window, begin, begin + 1))
    before = {row["start"]: row for row in world.stored("4_days")}
    world.add(Trip(straddling.start + HOUR, "a", 77), Trip(straddling.start - HOUR, "a", 78))
    world.correct(Trip(TODAY - (KEPT - 1) * DAY + 22 * HOUR, "a", 32))
    report = world.run()
    assert (report.repaired_rows, report.unrepairable_rows) == (1, 1)
    assert list(report.lost) == ["4_days"]
    after = {row["start"]: row for row in world.stored("4_days")}
    assert after[straddling.start] == before[straddling.start]
    mended, was = (rows[straddling.start - 4 * DAY] for rows in (after, before))
    assert (mended["most"], mended["trips"]) == (78, was["trips"] + 1)
    assert not world.run().wrote_anything


def test_results_that_do_not_merge_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    world = world_in(spark, tmp_path, windows=("day",), aggregates={"middle": "median(fare)"})
    world.add(*(each for days in range(1, DAYS + 1) for each in some(days, 1, 9)))
    world.run(all_of_it=True)
    before = world.stored("day")
    world.expire()
    world.add(*some(9, 12), *some(1, 12))
    report = world.run()
    assert (report.late_rows, report.repaired_rows, report.unrepairable_rows) == (2, 0, 1)
    assert list(report.lost) == ["day"]
    after = world.stored("day")
    assert [row for row in after if row["start"] < TODAY - DAY] == [row for row in before if row["start"] < TODAY - DAY]
    assert after != before


@dataclass(frozen=True)
class Log:
    """A table of events and what is said of its commits."""

    spark: SparkSession
    world: World

    def touches(self, since: int, most: int = 100) -> list[tuple[int, int, bool]]:
        """The days ago of the slices that rows came to, how many, and whether they were corrected."""
        source = open_source(self.spark, self.world.rollup, direct)
        whole = (Interval(TODAY - DAYS * DAY, TODAY),)
        found = additions(source, since, EdgeSet.of((DAY, 0)), whole, TODAY - KEPT * DAY, most)
        assert found is not None
        return [((TODAY - each.span.start) // DAY, each.rows, each.is_corrected) for each in reversed(found.touches)]


def test_additions_are_told_from_whatever_else_commits_do(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = Log(spark, world_in(spark, tmp_path))
    log.world.add(*some(9, 1, 9), *some(2, 1, 9), *some(1, 9))  # version 0
    log.world.add(*some(9, 2, 3), *some(8, 1))
    assert log.touches(0) == [(8, 1, False), (9, 2, False)]
    log.world.say("OPTIMIZE {table}")
    log.world.expire()
    assert log.touches(0) == [(8, 1, False), (9, 2, False)]
    assert log.touches(1) == []
    assert log.touches(0, most=1) == [(9, 3, False)]
    log.world.say("RESTORE TABLE {table} TO VERSION AS OF 1")  # brings back what nobody shall merge again
    assert log.touches(3) == [(8, 1, True), (9, 4, True)]
    log.world.say("UPDATE {table} SET fare = 0 WHERE hour(at) = 1 AND at >= current_timestamp() - INTERVAL 3 DAYS")
    assert log.touches(4) == [(2, 0, True)]
