"""What is old goes, by the source and by tables, and no history with it; too much that goes at once stops a run."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Aggregate, Rollup, Source, optimize
from stairwise.evolution import Permission
from stairwise.rollup import DeclaredWindow, Estimates
from stairwise.share import Share
from stairwise.span import Span
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_airflow.history import History as Shown
from stairwise_airflow.history import history
from stairwise_spark.changing import apply
from stairwise_spark.coverage import expired, trusted
from stairwise_spark.difference import difference
from stairwise_spark.engine import Due, History, Request, run
from stairwise_spark.errors import DeletesError
from stairwise_spark.maintain import Kept, Upkeep, maintain
from stairwise_spark.report import ChunkBegun, RunReport
from stairwise_spark.status import status
from stairwise_spark.target import Target
from stairwise_spark.terminal import summary
from stairwise_spark.verify import Check, verify

pytestmark = pytest.mark.spark

DAY = 86_400
DAYS = 12


@dataclass(frozen=True)
class World:
    """Some days of events until this morning, by a rollup."""

    spark: SparkSession
    rollup: Rollup
    today: int

    def add(self, days_ago: int, count: int = 48, value: int = 1, days: int = 1) -> None:
        """Events of some days, evenly, with a file for each day."""
        begin = self.today - days_ago * DAY
        rows = self.spark.range(0, days * count, 1, 1).select(
            F.timestamp_seconds(F.lit(begin) + F.col("id") * (DAY // count)).alias("at"),
            (F.col("id") % 2).cast("string").alias("zone"),
            (F.col("id") % count + value).alias("fare"),
        )
        writer = rows.write.format("delta").mode("append").option("maxRecordsPerFile", count)
        writer.save(str(self.rollup.source.path))

    def delete(self, condition: str) -> None:
        """Events that go."""
        self.spark.sql(f"DELETE FROM delta.`{self.rollup.source.path}` WHERE {condition}")  # noqa: S608 - our own

    def older_than(self, days_ago: int) -> str:
        """Of the events before a day."""
        return f"at < timestamp_seconds({self.today - days_ago * DAY})"

    def run(self, rollup: Rollup | None = None, *, all_of_it: bool = False, accepts: bool = False) -> RunReport:
        request = Request(span=History() if all_of_it else Due(), accepts_deletes=accepts)
        return run(self.spark, optimize(rollup or self.rollup), request)

    def table(self, tier: str) -> DataFrame:
        return self.spark.read.format("delta").load(f"{self.rollup.target}/{tier}")

    def total(self, tier: str) -> int:
        return int(self.table(tier).agg(F.sum("trips")).collect()[0][0] or 0)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    rollup = Rollup(
        name="trips",
        source=Source(path=str(tmp_path / "trips"), time="at"),
        keys=("zone",),
        aggregates={"trips": "count()", "revenue": "sum(fare)"},
        windows=("1h", "day", "4 days"),
        target=str(tmp_path / "tables"),
        # Of so many keys, a part of the hours is a day, on whatever weekday this runs.
        estimates=Estimates(rows_per_day=1_000_000_000, distinct_keys=20_000),
    )
    world = World(spark, rollup, int(time.time()) // DAY * DAY)
    world.add(DAYS, days=DAYS)
    return world


def kept(rollup: Rollup, span: str, **windows: str) -> Rollup:
    """The same, over a source that drops what is older, into tables that do."""
    declared = tuple(DeclaredWindow.parse(each.text, retain=windows.get(f"of_{each.name}")) for each in rollup.windows)
    source = replace(rollup.source, retain=Span.parse(span)) if span else rollup.source
    return replace(rollup, source=source, windows=declared)


def test_what_the_source_drops_within_its_retention_is_history(world: World) -> None:
    """Neither run nor late rows make windows of half of their events; a late row there is merged."""
    rollup = kept(world.rollup, "5 days")
    world.run(rollup, all_of_it=True)
    before = world.total("1h")
    world.delete(world.older_than(5))
    report = world.run(rollup)
    assert (report.wrote_anything, report.unrepairable_rows) == (False, 0)
    world.add(9, count=3)
    world.add(1, count=4)
    report = world.run(rollup)
    assert (report.late_rows, report.repaired_rows, report.unrepairable_rows) == (7, 3, 0)
    assert world.total("1h") == world.total("day") == before + 7
    assert "3 rows came for windows of which the source has dropped rows, and were merged" in _told(report)
    assert verify(world.spark, optimize(rollup), Check()).total == 0


def test_a_window_more_has_all_of_history_where_a_finer_table_has(world: World) -> None:
    rollup = kept(world.rollup, "5 days")
    world.run(rollup, all_of_it=True)
    world.delete(world.older_than(5))
    wanted = replace(rollup, windows=(*rollup.windows, DeclaredWindow.parse("2 days")))
    apply(world.spark, difference(world.spark, wanted))
    assert world.total("2_days") >= 48 * (DAYS - 2)


def test_a_column_of_events_that_are_gone_says_from_when_on_it_is_filled(world: World) -> None:
    rollup = kept(world.rollup, "5 days")
    world.run(rollup, all_of_it=True)
    before = {tier: world.total(tier) for tier in ("1h", "day", "4_days")}
    world.delete(world.older_than(5))
    wanted = replace(rollup, aggregates=(*rollup.aggregates, ("most", Aggregate.parse("max(fare)"))))
    apply(world.spark, difference(world.spark, wanted))
    assert {tier: world.total(tier) for tier in before} == before
    said = status(world.spark, optimize(wanted)).to_json()["valid_from"]
    assert isinstance(said, dict)
    assert list(said) == ["most"]
    since = F.to_timestamp(F.lit(said["most"]))
    hours = world.table("1h")
    assert hours.where((F.col("window_start") < since) & F.isnotnull("most")).isEmpty()
    assert hours.where((F.col("window_start") >= since) & F.isnull("most")).isEmpty()
    assert hours.where(F.isnotnull("most")).count() >= 4 * 48
    assert "of windows from" in str(hours.schema["most"].metadata["comment"])
    world.add(1, count=4, value=1_000)
    world.add(9, count=2, value=2_000)
    assert world.run(wanted).repaired_rows == 2
    assert world.table("4_days").where((F.col("window_start") < since) & F.isnotnull("most")).isEmpty()
    hours = world.table("1h").where(F.col("window_start") < since)
    (state,) = (name for name in hours.columns if name.startswith("_max"))
    assert hours.where(F.isnotnull("most") | F.isnotnull(state)).isEmpty()
    assert hours.where(F.col("revenue") >= 2_000).count() == 2
    assert verify(world.spark, optimize(wanted), Check()).total == 0
    assert not difference(world.spark, wanted).is_anything


def test_tables_drop_what_was_kept_long_enough_and_coarser_ones_stay(world: World) -> None:
    rollup = kept(world.rollup, "", of_1h="6 days")
    world.run(rollup, all_of_it=True)
    assert world.total("day") == 48 * DAYS
    report = world.run(rollup)
    assert not report.wrote_anything
    assert 48 * 6 <= world.total("1h") < 48 * 8
    assert "expired" in status(world.spark, optimize(rollup)).to_json()["tiers"][0]  # type: ignore[index, operator]
    world.add(10, count=4)
    world.run(rollup)
    assert world.total("day") == 48 * DAYS + 4
    assert world.total("1h") < 48 * 8
    assert verify(world.spark, optimize(rollup), Check()).total == 0


def check_page(world: World, rollup: Rollup, *others: Shown) -> None:
    """What the page of Airflow shows, by its files and otherwise, is what the commits of the tables say."""
    states = Target.found(world.spark, optimize(rollup)).states
    for shown in (history(rollup), *others):
        assert states.keys() == shown.tiers.keys()
        for tier, state in states.items():
            found = shown.tiers[tier]
            assert (tier, found.covered) == (tier, trusted(state.coverage))
            assert (tier, found.expired) == (tier, expired(state.coverage))


def test_the_page_of_airflow_shows_what_expired_by_files_and_by_reports_alone(world: World) -> None:
    rollup = kept(world.rollup, "", of_1h="6 days")
    folder = Path(str(rollup.target), "_stairwise")

    def beside(event: object) -> None:
        if isinstance(event, ChunkBegun) and not ran:
            ran.append(world.run(rollup))

    def check() -> None:
        told = [json.loads(file.read_text()) for file in sorted((folder / "runs").iterdir())]
        (folder / "covered.json").rename(folder / "away.json")
        by_reports = history(rollup), history(replace(rollup, target="s3://elsewhere"), told)
        (folder / "away.json").rename(folder / "covered.json")
        check_page(world, rollup, *by_reports)

    ran: list[RunReport] = []
    world.run(rollup, all_of_it=True)
    assert history(rollup).tiers["1h"].expired
    world.add(10, count=4)
    world.add(2, count=4)
    run(world.spark, optimize(rollup), Request(span=Due()), beside)
    assert ran
    check()
    old = Interval(world.today - 10 * DAY, world.today - 9 * DAY)
    run(world.spark, optimize(rollup), Request(span=old, restate=True))
    assert len(history(rollup).tiers["1h"].covered) == 2
    check()
    world.run(rollup)
    assert len(history(rollup).tiers["1h"].covered) == 1
    check()


def test_the_page_of_airflow_shows_what_a_rebuild_emptied_as_not_there(world: World) -> None:
    fine = DeclaredWindow.parse("1h", retain="6 days")
    first, wanted = (
        replace(world.rollup, windows=(fine, DeclaredWindow.parse("day"), DeclaredWindow.parse(long, name="long")))
        for long in ("2 days", "3 days")
    )
    world.run(first, all_of_it=True)
    seen: list[Shown] = []

    def meanwhile(event: object) -> None:
        if isinstance(event, ChunkBegun):
            seen.append(history(wanted))

    for each in (wanted, replace(wanted, keys=())):
        apply(world.spark, difference(world.spark, each), frozenset({Permission.REBUILD}), meanwhile)
        check_page(world, each)
        world.run(each)
        check_page(world, each)
    assert [bool(seen[0].tiers[tier].covered) for tier in ("1h", "day", "long")] == [True, True, False]
    assert not any(tier.covered for tier in seen[-1].tiers.values())


def test_a_helper_keeps_its_rows_as_long_as_a_table_that_is_made_of_them(world: World) -> None:
    rollup = replace(world.rollup, windows=tuple(map(DeclaredWindow.parse, ("40m", "1h", "day"))))
    (helper,) = [step.tier.name for step in optimize(rollup).steps if step.tier.kind is not Kind.DECLARED]

    def since(tier: str) -> float:
        """How many days ago the first window begins."""
        begin = world.table(tier).agg(F.min(F.unix_seconds("window_start"))).collect()[0][0]
        return float((world.today - begin) / DAY)

    world.run(rollup, all_of_it=True)
    rollup = kept(rollup, "", of_40m="6 days")
    world.run(rollup)
    world.run(rollup)
    assert (since("40m") < 8, since(f"_tiers/{helper}")) == (True, DAYS)  # the hours are kept for ever
    rollup = kept(rollup, "", of_40m="6 days", of_1h="4 days")
    world.run(rollup)
    assert (since("1h") < 6, since(f"_tiers/{helper}")) == (True, DAYS)
    report = world.run(rollup)
    assert list(report.expired) == [helper]
    assert since("40m") <= since(f"_tiers/{helper}") < 10
    world.add(10, count=4)
    world.add(6, count=5)
    world.add(3, count=6)
    world.run(rollup)
    assert world.total("day") == 48 * DAYS + 15
    assert verify(world.spark, optimize(rollup), Check(helpers=True)).total == 0
    assert not world.run(rollup).wrote_anything


def test_housekeeping_beside_expiry_takes_nothing_from_readers_and_runs(world: World) -> None:
    """Before, in the middle of and beside a run that expires: it is only when files may go at once that they do."""
    world.run(all_of_it=True)
    rollup = kept(world.rollup, "", of_1h="6 days")
    plan, careful = optimize(rollup), Upkeep(vacuum=True)
    newest = world.spark.sql(f"DESCRIBE HISTORY delta.`{rollup.target}/1h` LIMIT 1").collect()[0]["version"]
    reader = world.spark.read.format("delta").option("versionAsOf", newest).load(f"{rollup.target}/1h")
    kept_in_the_middle: list[Kept] = []

    def meanwhile(event: object) -> None:
        if isinstance(event, ChunkBegun):
            kept_in_the_middle.append(maintain(world.spark, plan, careful))

    world.add(2, count=4)
    report = run(world.spark, plan, Request(span=Due()), meanwhile)
    assert kept_in_the_middle
    assert list(report.expired) == ["1h"]
    assert world.total("1h") < 48 * 8
    maintain(world.spark, plan, careful)
    assert reader.agg(F.sum("trips")).collect()[0][0] == 48 * DAYS

    world.add(3, count=4)
    with ThreadPoolExecutor(2) as pool:
        beside = pool.submit(maintain, world.spark, plan, careful)
        assert world.run(rollup).wrote_anything
        assert beside.result().tables
    maintain(world.spark, plan, Upkeep(vacuum=True, retain_hours=0, is_forced=True))
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        reader.agg(F.sum("revenue")).collect()
    world.add(10, count=4)
    world.add(1, count=4)
    world.run(rollup)
    assert world.total("day") == 48 * DAYS + 16
    assert verify(world.spark, plan, Check()).total == 0


def test_a_source_that_was_emptied_stops_the_run_until_somebody_says_so(world: World) -> None:
    world.run(all_of_it=True)
    before = world.total("1h")
    world.delete("zone = '1'")  # a customer who is forgotten: each window has others
    assert world.run().wrote_anything
    assert world.total("1h") == before // 2
    world.delete(world.older_than(4))
    for share in ("10%", "66.5%"):
        rollup = replace(world.rollup, deletes=Share.parse(share))
        with pytest.raises(DeletesError, match=rf"^192 of 288 windows of 1h would lose .* rows, more than {share}: "):
            world.run(rollup)
    assert world.total("1h") == before // 2
    world.run(replace(world.rollup, deletes=Share.parse("67%")))  # two of three
    assert world.total("1h") == world.total("day") == 24 * 4
    world.delete(world.older_than(2))
    with pytest.raises(DeletesError, match="48 of 96 windows"):
        world.run()
    world.run(accepts=True)
    assert world.total("1h") == world.total("day") == 24 * 2


def test_a_source_that_was_emptied_stops_the_run_also_where_the_finest_table_has_dropped_its_rows(world: World) -> None:
    rollup = kept(world.rollup, "", of_1h="4 days")
    world.run(rollup, all_of_it=True)
    world.delete(world.older_than(7))
    with pytest.raises(DeletesError, match=r"^5 of 12 windows of day would lose"):
        world.run(rollup)
    assert world.total("day") == 48 * DAYS
    world.run(rollup, accepts=True)
    assert world.total("day") == 48 * 7


def _told(report: RunReport) -> str:
    return summary(report)
