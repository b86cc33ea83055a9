"""Whole runs: every table equals what Spark computes of the raw rows, window by window."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.aggregate import Aggregate
from stairwise.errors import StairwiseError
from stairwise.instant import parse_instant
from stairwise.plan import Plan
from stairwise.rollup import DeclaredWindow, Estimates
from stairwise.tiers import How
from stairwise.windowing import Interval, windows_ending
from stairwise_spark import chunks as chunks_by_size
from stairwise_spark.engine import Request, run
from stairwise_spark.errors import RunError
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.report import ChunkBegun, ChunkDone, Event, RunBegun, TierWritten
from stairwise_spark.scope import Due
from stairwise_spark.session import shuffle_tasks
from stairwise_spark.spans import joined
from tests.changed import but
from tests.spark_jobs.events import events

pytestmark = pytest.mark.spark

NOON = parse_instant("2024-03-30T12:00Z")  # the next night Paris loses an hour
SPAN = Interval(NOON - 3 * 86_400, NOON + 4 * 86_400)
Cells = Mapping[tuple[object, ...], tuple[object, ...]]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Events of five days around the change of the clocks, as a Delta table of two versions."""
    path = str(tmp_path_factory.mktemp("source") / "events")
    within_a_day = F.pmod(F.coalesce(F.col("long"), F.lit(0)), F.lit(70_000)) * 1_000_000
    moved = F.col("_time") * 30_000 + within_a_day + F.lit(NOON * 1_000_000)
    rows = events(spark, seed=11, per_key=60).withColumn("happened", F.timestamp_micros(moved)).drop("_time", "pause")
    rows.where("whole > 0").write.format("delta").save(path)
    rows.where("whole <= 0 or whole is null").write.format("delta").mode("append").save(path)
    return path


MANY_ROWS = Estimates(rows_per_day=10_000_000, distinct_keys=50)


@dataclass(frozen=True)
class Story:
    """What is declared, and which ways of computing tiers it shows."""

    windows: tuple[str, ...]
    aggregates: tuple[str, ...]
    hows: frozenset[How]
    layout: str = "tables"
    estimates: Estimates = MANY_ROWS


STORIES = {
    "sums in every kind of window": Story(
        windows=(
            "20m", "1h", "1h every 20m", "90m offset 30m", "2h every 50m", "day in Europe/Paris", "day in Asia/Kolkata",
            "2 days every day in Europe/Paris", "day to date every 1h", "week in Europe/Paris", "6h every 20m",
        ),
        aggregates=("count()", "sum(money)", "avg(real)", "max(at)", "var_pop(far)", "sum(whole) where flag"),
        hows=frozenset({How.RAW, How.DISJOINT}),
    ),
    "minima may overlap": Story(
        windows=("1h every 20m", "2h every 20m", "3h every 20m", "6h", "day in Europe/Paris"),
        aggregates=("min(word)", "max_by(raw, day)", "bit_or(small)", "approx_distinct(long)"),
        hows=frozenset({How.OVERLAPPING}),
    ),
    "exact results of one range, and of values": Story(
        windows=("1h", "2h", "6h every 1h", "6h every 2h", "day in Europe/Paris"),
        aggregates=("median(whole)", "count_distinct(word)", "sum(units)", "mode(tiny)"),
        hows=frozenset({How.EQUAL_RANGE, How.VALUES}),
        estimates=Estimates(rows_per_day=100_000_000, distinct_keys=10, distinct_values=5),
    ),
    "one table, and tiers that cut time unevenly": Story(
        windows=("35m", "45m", "55m", "day in Europe/Paris", "month in Europe/Paris"),
        aggregates=("count()", "first(word)", "stddev_samp(steady)"),
        hows=frozenset({How.RAW, How.DISJOINT}),
        layout="one_table",
        estimates=Estimates(rows_per_day=1_000_000_000, distinct_keys=50),
    ),
}  # fmt: skip


FEW = Story(
    windows=("20m", "1h", "2h every 20m", "day in Europe/Paris", "week in Europe/Paris"),
    aggregates=("count()", "sum(money)", "max(at)"),
    hows=frozenset({How.DISJOINT}),
)


def declared(story: Story, source: str, target: Path) -> Rollup:
    return Rollup(
        name="trips",
        source=Source(path=source, time="happened"),
        keys=("key",),
        aggregates={f"column_{number}": text for number, text in enumerate(story.aggregates)},
        windows=story.windows,
        target=str(target),
        layout=story.layout,
        estimates=story.estimates,
    )


def table(spark: SparkSession, rollup: Rollup, name: str) -> DataFrame:
    if rollup.layout.value == "one_table":
        return spark.read.format("delta").load(str(rollup.target)).where(F.col("window") == name)
    return spark.read.format("delta").load(f"{rollup.target}/{name}")


def cells(frame: DataFrame, rollup: Rollup) -> Cells:
    """The results, by key and bounds in seconds."""
    names = [F.col(f"`{name}`") for name, _ in rollup.aggregates]
    bounds = [F.unix_micros(bound) / 1_000_000 for bound in ("window_start", "window_end")]
    rows = frame.select("key", *bounds, *names).collect()
    found = {tuple(row[:3]): tuple(row[3:]) for row in rows}
    assert len(found) == len(rows)
    return found


def from_raw(spark: SparkSession, rollup: Rollup, span: Interval) -> dict[str, Cells]:
    """The same of the raw rows: each window that Python lists, joined with the rows in it."""
    raw = spark.read.format("delta").load(str(rollup.source.path)).withColumn("_time", F.unix_micros("happened"))
    types = argument_types(raw, [aggregate for _, aggregate in rollup.aggregates])
    listed = [(each.name, *found) for each in rollup.windows for found in windows_ending(each.window, *span)]
    windows = spark.createDataFrame(listed, "name string, start bigint, end bigint")  # pyright: ignore[reportUnknownMemberType]
    is_in = (raw["_time"] >= windows["start"] * 1_000_000) & (raw["_time"] < windows["end"] * 1_000_000)
    joined = raw.join(F.broadcast(windows), is_in)
    bounds = [F.timestamp_seconds(bound).alias(f"window_{bound}") for bound in ("start", "end")]
    results = [direct(aggregate, types).alias(name) for name, aggregate in rollup.aggregates]
    whole = joined.groupBy("name", "key", *bounds).agg(*results).persist()
    found = {each.name: cells(whole.where(F.col("name") == each.name), rollup) for each in rollup.windows}
    whole.unpersist()
    return found


def is_same(left: object, right: object) -> bool:
    match left, right:
        case (float(), float()) if not math.isnan(left):
            return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
        case _:
            return repr(left) == repr(right)


def is_near(left: object, right: object) -> bool:
    """Sketches of some hundred values at most: far within their bounds."""
    return isinstance(left, int) and isinstance(right, int) and abs(left - right) <= 1 + right // 20


def differences(found: Cells, expected: Cells, sketched: Iterable[int] = ()) -> list[object]:
    wrong: list[object] = [("missing or too many", key) for key in found.keys() ^ expected.keys()]
    for key in found.keys() & expected.keys():
        for place, (mine, theirs) in enumerate(zip(found[key], expected[key], strict=True)):
            if not (is_near if place in sketched else is_same)(mine, theirs):
                wrong.append((key, place, mine, theirs))
    return wrong


def check(spark: SparkSession, rollup: Rollup, span: Interval) -> None:
    expected = from_raw(spark, rollup, span)
    sketched = [place for place, (_, aggregate) in enumerate(rollup.aggregates) if aggregate.bound is not None]
    for window in rollup.windows:
        found = cells(table(spark, rollup, window.name), rollup)
        assert differences(found, expected[window.name], sketched)[:3] == [], window.name
        assert found or not expected[window.name]


def planned(story: Story, source: str, target: Path) -> tuple[Rollup, Plan]:
    rollup = declared(story, source, target)
    return rollup, optimize(rollup)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_every_table_equals_the_raw_rows(story: Story, spark: SparkSession, source: str, tmp_path: Path) -> None:
    rollup, plan = planned(story, source, tmp_path / "target")
    assert story.hows <= {step.how for step in plan.steps}
    report = run(spark, plan, Request(span=SPAN))
    assert report.wrote_anything
    check(spark, rollup, SPAN)
    if rollup.layout.value == "one_table":
        rows = spark.read.format("delta").load(str(rollup.target)).groupBy("window").agg(F.count_distinct("window_end"))
        windows = {tier.name: tier.windows for tier in report.tiers}
        assert {row[0]: row[1] for row in rows.collect()}.items() <= windows.items()
    again = run(spark, plan, Request(span=SPAN))
    assert not again.wrote_anything


def test_a_range_in_chunks_is_the_same_and_goes_on_where_it_stopped(
    spark: SparkSession, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollup, plan = planned(FEW, source, tmp_path / "target")
    early = Interval(SPAN.start, NOON)
    run(spark, plan, Request(span=early))
    told: list[Event] = []
    report = run(spark, plan, Request(span=SPAN, chunk_s=2 * 86_400, newest_first=True), told.append)
    begun, *others = told
    chunks = [event for event in others if isinstance(event, ChunkBegun)]
    assert begun == RunBegun(
        span=Interval(NOON, SPAN.end), chunks=len(chunks), tiers=tuple(step.tier.name for step in plan.steps)
    )
    assert [event.number for event in chunks] == [event.number for event in others if isinstance(event, ChunkDone)]
    assert joined(event.span for event in chunks) == (Interval(NOON, SPAN.end),)  # the first days were there
    check(spark, rollup, SPAN)
    for tier in report.tiers:
        assert tier.rows == sum(
            each.rows for each in others if isinstance(each, TierWritten) and each.tier == tier.name
        )
    for window in rollup.windows:
        tier = next(tier for tier in report.tiers if tier.name == window.name)
        late = table(spark, rollup, window.name).where(F.unix_seconds("window_end") > tier.ranges[0].start)
        assert tier.windows == late.select("window_start", "window_end").distinct().count()
    assert report.source.rows > 0
    sizes = [file.stat().st_size for file in Path(source).glob("*.parquet")]
    assert (report.source.version, report.source.files, report.source.bytes) == (1, len(sizes), sum(sizes))
    # As many chunks as it takes, if nobody says how long one is.
    monkeypatch.setattr(chunks_by_size, "BYTES_A_TASK", sum(sizes) // 2 // shuffle_tasks(spark))
    told.clear()
    restated = run(spark, plan, Request(span=SPAN, restate=True), told.append)
    assert all(tier.wrote for tier in restated.tiers)
    assert sum(isinstance(event, ChunkDone) for event in told) > 1
    check(spark, rollup, SPAN)


def test_what_is_there_at_the_version_is_read_and_not_computed_again(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    rollup, plan = planned(FEW, source, tmp_path / "target")
    run(spark, plan, Request(span=Interval(SPAN.start, NOON)))
    report = run(spark, plan, Request(span=Interval(NOON, NOON + 3_600)))
    hour = spark.read.format("delta").load(source).where(f"happened >= timestamp_seconds({NOON - 7 * 3_600})").count()
    assert 0 < report.source.rows < hour
    check(spark, rollup, Interval(SPAN.start, NOON + 3_600))


def test_a_dry_run_says_what_would_be_done_and_makes_nothing(spark: SparkSession, source: str, tmp_path: Path) -> None:
    _, plan = planned(FEW, source, tmp_path / "target")
    told: list[Event] = []
    report = run(spark, plan, Request(span=SPAN, is_dry=True), told.append)
    assert (report.is_dry, told) == (True, [])
    assert all(tier.predicted_rows for tier in report.tiers)
    assert not (tmp_path / "target").exists()


def test_only_some_tiers(spark: SparkSession, source: str, tmp_path: Path) -> None:
    rollup, plan = planned(STORIES["minima may overlap"], source, tmp_path / "target")
    report = run(spark, plan, Request(span=SPAN, tiers=("6h",)))
    assert [tier.name for tier in report.tiers if tier.wrote] == ["6h"]
    found = cells(table(spark, rollup, "6h"), rollup)
    assert differences(found, from_raw(spark, rollup, SPAN)["6h"], sketched=[3]) == []
    assert table(spark, rollup, "1h_every_20m").count() == 0
    with pytest.raises(StairwiseError) as caught:
        run(spark, plan, Request(span=SPAN, tiers=("1h_every_20",)))
    assert str(caught.value) == "there is no tier '1h_every_20'. Hint: did you mean '1h_every_20m'?"


def read(calls: Mapping[str, str]) -> tuple[tuple[str, Aggregate], ...]:
    return tuple((name, Aggregate.parse(call)) for name, call in calls.items())


def test_tables_that_were_filled_with_something_else_are_left_alone(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    rollup, plan = planned(FEW, source, tmp_path / "target")
    run(spark, plan, Request(span=Interval(NOON, NOON + 3_600)))
    other = {name: str(call).replace("money", "units") for name, call in rollup.aggregates}
    wanted = replace(rollup, windows=(*rollup.windows, DeclaredWindow.parse("2h")), aggregates=read(other))
    with pytest.raises(StairwiseError) as caught:
        run(spark, optimize(wanted), Request(span=SPAN))
    assert str(caught.value) == (
        "rollup 'trips': its declaration has changed since the tables were filled: fill column_1, add 2h. "
        "Hint: stairwise diff FILE shows what that means and costs, stairwise apply FILE does it; "
        "--apply-additive does it before the run, if nothing goes."
    )


def test_no_events_and_no_window_that_ended(spark: SparkSession, source: str, tmp_path: Path) -> None:
    rollup, plan = planned(FEW, source, tmp_path / "target")
    long_ago = Interval(0, 86_400)
    report = run(spark, plan, Request(span=long_ago))
    assert not report.wrote_anything
    assert all(not cells(table(spark, rollup, window.name), rollup) for window in rollup.windows)
    minute = Interval(NOON + 60, NOON + 120)
    assert not run(spark, plan, Request(span=minute)).wrote_anything


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_rows_without_a_time_fail_a_run_before_it_writes(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    folder, target = tmp_path / "events", tmp_path / "tables"
    rollup = Rollup(
        name="trips",
        source=Source(path=str(folder), format=kind, time="at"),
        aggregates={"trips": "count()"},
        windows=("1h", "day"),
        target=str(target / "first"),
    )

    def add(hours: range, *, with_null: bool) -> None:
        rows = spark.range(hours.start, hours.stop, 1, 1).select(F.timestamp_seconds(F.col("id") * 3_600).alias("at"))
        none = spark.range(int(with_null)).select(F.lit(None).cast("timestamp").alias("at"))
        rows.unionByName(none).coalesce(1).write.format(kind).mode("append").save(str(folder))

    def written() -> set[Path]:
        return {file for file in target.rglob("*") if file.is_file()}

    add(range(30), with_null=False)
    assert run(spark, optimize(rollup), Request(span=Due(until=30 * 3_600))).wrote_anything
    add(range(30, 32), with_null=True)
    before = written()
    for declared, until in (
        (rollup, 32 * 3_600),
        (rollup, 30 * 3_600 + 1_800),  # in which no window ends
        (but(rollup, deletes="20%"), 32 * 3_600),  # which is another plan
        (but(rollup, target=str(target / "second")), 32 * 3_600),  # where nothing is
    ):
        with pytest.raises(RunError, match="1 row has no time: at is NULL"):
            run(spark, optimize(declared), Request(span=Due(until=until)))
        assert written() == before
    report = run(spark, optimize(but(rollup, null_time="skip")), Request(span=Due(until=32 * 3_600)))
    assert (report.wrote_anything, report.null_times) == (True, 1)
