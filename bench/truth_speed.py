"""How fast tables stay true over time: runs of an hour, runs with nothing to do, late rows, changes, long logs.

All in one warm session. A year of runs of an hour is not waited for: its windows are computed at once, and then written
hour by hour with the claims of as many runs, by a writer of Delta tables that takes milliseconds for each.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from events import FIRST, FOLDER
from laid import commit, next_version
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from runs import AGGREGATES, Row, one_session, slower

from stairwise import Rollup, Source, optimize
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark import compacting
from stairwise_spark.coverage import Claim, Coverage
from stairwise_spark.engine import Due, Request, run
from stairwise_spark.expressions import direct
from stairwise_spark.ledger import new_run
from stairwise_spark.report import RunReport
from stairwise_spark.session import sql
from stairwise_spark.source import open_source
from stairwise_spark.status import status
from stairwise_spark.storage import Storage

_T = TypeVar("_T")

MINUTE, HOUR, DAY = 60, 3_600, 86_400
WINDOWS: Mapping[str, int] = MappingProxyType(
    {"1m": MINUTE, "5m": 5 * MINUTE, "10m": 10 * MINUTE, "15m": 15 * MINUTE, "30m": 30 * MINUTE}
    | {"1h": HOUR, "2h": 2 * HOUR, "6h": 6 * HOUR, "12h": 12 * HOUR, "1d": DAY}
)
START = FIRST - FIRST % DAY - 3 * 365 * DAY  # so that five years have passed
WARMING, ROUNDS = 4, 8
"""So many runs of an hour warm the session, so many are measured."""
FEW = 20
"""Events in a minute, where it is not them that take time."""
LATE_ROUNDS = 3
"""So often late rows come, and these days are made again, after one that warms the session."""
A_YEAR, LATE_DAYS, COMMITS, GIGABYTE = 365 * 24, 60, 10_000, 10**9
UPKEEP, LOG_HOURS = compacting.COMMITS, 30 * 24
"""After so many hours each, a run looks after the tables; commits stay so long in a log."""
LONG_SINCE = 200
"""So many hours before the last one that was the last time."""
_BOUNDS = ("window_start", "window_end", "k")


def truth_speed(only: Collection[str] = ()) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other."""
    spark = one_session()
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section(spark)


@dataclass(slots=True)
class Stage:
    """A source that grows hour by hour, and the tables made of it, in folders of their own, which are empty at first.

    Attributes:
        spark: The session.
        name: What it is called.
        layout: Of the tables.
        a_minute: Events in a minute.
        keys: Of so many keys.
        hours: So far are the tables.
    """

    spark: SparkSession
    name: str
    layout: str = "one_table"
    a_minute: int = 600
    keys: int = 20
    hours: int = 0

    def __post_init__(self) -> None:
        for folder in (self.source, self.target):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def source(self) -> Path:
        """Where the events are."""
        return FOLDER / "truth" / self.name / "events"

    @property
    def target(self) -> Path:
        """Where the tables are."""
        return FOLDER / "truth" / self.name / "tables"

    @property
    def rollup(self) -> Rollup:
        """Ten windows over the source."""
        return Rollup(
            name="truth", source=Source(path=str(self.source), time="ts"), keys=("k",), aggregates=dict(AGGREGATES),
            windows=tuple(WINDOWS), target=str(self.target), layout=self.layout,
            estimates=Estimates(rows_per_day=self.a_minute * DAY // 60, distinct_keys=self.keys),
        )  # fmt: skip

    def events(self, first: int, last: int) -> DataFrame:
        """All events of some hours."""
        ids = self.spark.range(first * 60 * self.a_minute, last * 60 * self.a_minute, 1, 2)
        micros = F.lit(START * 1_000_000) + F.floor(F.col("id") * F.lit(60_000_000) / self.a_minute)
        return ids.select(
            F.timestamp_micros(micros).alias("ts"),
            (F.col("id") % self.keys).cast("int").alias("k"),
            F.round(F.rand(2) * 100, 2).alias("v"),
        )

    def append(self, events: DataFrame, files: int = 1) -> None:
        """Put events to the source."""
        events.coalesce(files).write.format("delta").mode("append").save(str(self.source))

    def begin(self, hours: int) -> Stage:
        """The first hours, made at once."""
        self.append(self.events(0, hours), files=2)
        self.run(hours)
        return self

    def run(self, hours: int) -> RunReport:
        """What is new or changed, as far as so many hours."""
        self.hours = hours
        return run(self.spark, optimize(self.rollup), Request(span=Due(until=START + hours * HOUR)))

    def next_hour(self) -> float:
        """The seconds that the run of an hour takes whose events have come."""
        self.append(self.events(self.hours, self.hours + 1))
        seconds, report = timed(partial(self.run, self.hours + 1))
        finest = next(tier for tier in report.tiers if tier.name == "1m")
        if finest.windows != HOUR // MINUTE:
            raise AssertionError(f"{self.name}, hour {self.hours}: {finest}")
        return seconds


def hourly(spark: SparkSession) -> Iterator[Row]:
    """A run of an hour after a day of them and after a year, and a run with nothing to do."""
    day, hours = Stage(spark, "day", a_minute=FEW).begin(24), _laid_out(spark, A_YEAR)
    year = hours.stage
    short, long = in_turn(day.next_hour, year.next_hour)
    yield slower("hourly run of 10 tiers, after a year of hourly runs / after a day of them", long, short, "1.3")
    name = f"looking after the files, which one hourly run in {UPKEEP} does as well, but for those of the bookkeeping"
    yield name, f"{median(hours.upkeep):.2f}", "", "", ""
    idle = [timed(partial(year.run, year.hours)) for _ in range(ROUNDS)]
    if any(report.wrote_anything or report.source.rows for _, report in idle):
        raise AssertionError("a run with nothing to do has read or written something.")
    yield (
        "run of 10 tiers with nothing to do, after that year",
        f"{median(each for each, _ in idle):.2f}",
        "",
        "",
        "1.0 s",
    )


def year_of_runs(spark: SparkSession, hours: int) -> Stage:
    """Tables as a year of runs leaves them, and a source as a year of hours does; or as fewer hours do."""
    return _laid_out(spark, hours).stage


def upkeeps(hours: int) -> range:
    """The hours after which a run looks after the tables, if it is soon to do so again after so many hours."""
    return range((hours - LONG_SINCE) % UPKEEP, hours - LONG_SINCE + 1, UPKEEP)


def _laid_out(spark: SparkSession, hours: int) -> Hours:
    whole = Stage(spark, "whole", a_minute=FEW).begin(hours)
    year = Hours.of(whole, Stage(spark, "year", a_minute=FEW).begin(1))
    for hour in upkeeps(hours):
        year.write(hour)
        year.keep()
    year.write(hours - hours % 50)
    year.checkpoint()
    year.write(hours)
    year.stage.run(hours)
    return year


@dataclass(slots=True, kw_only=True)
class Hours:
    """A source and tables that are laid out hour by hour, as runs of an hour leave them.

    Claims say what the bookkeeping knows after the last of them: that no hour touched an earlier one.

    Attributes:
        stage: Where; its first hour was made by a run.
        events: All events of the time in question.
        rows: All rows of the tables.
        identity: Of the source, as claims have it.
        files: So many files were added to the tables.
        checkpoints: The hours after which a run looked after the tables, and the versions of the two then.
        upkeep: The seconds that it took.
    """

    stage: Stage
    events: Sorted
    rows: Sorted
    identity: str | None
    files: int = 0
    checkpoints: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    upkeep: list[float] = field(default_factory=list[float])

    @classmethod
    def of(cls, whole: Stage, stage: Stage) -> Hours:
        """The first hour of a whole is there."""
        return cls(
            stage=stage,
            events=Sorted.of(whole.source, "ts"),
            rows=Sorted.of(whole.target, "window_end"),
            identity=open_source(stage.spark, stage.rollup, direct).identity,
        )

    def write(self, hours: int) -> None:
        """So many hours are there."""
        stage, tiers = self.stage, [step.tier.name for step in optimize(self.stage.rollup).steps]
        of_source, of_target = self.versions()
        for hour in range(stage.hours, hours):
            span = Interval(START + hour * HOUR, START + (hour + 1) * HOUR)
            covered = Coverage.of(span, hours - 1)  # as the ledger has it, once a run has found that nothing changed
            claim = Claim(
                run=f"hour {hour}",
                plan="",
                tiers=tuple((name, covered) for name in tiers),
                is_append=True,
                source=self.identity,
            )
            of_source, of_target = of_source + 1, of_target + 1
            commit(stage.source, of_source, self.events.between(span.start, span.end), known=["ts"])
            rows = self.rows.between(span.start + 1, span.end + 1)
            self.files += commit(stage.target, of_target, rows, ["_part", "window"], _BOUNDS, claim.encode())
        self.stage.hours = hours

    def keep(self) -> None:
        """A run has looked after the tables, and what is older than Delta Lake keeps it has left the logs."""
        storage = Storage.of(self.stage.spark, optimize(self.stage.rollup), self.identity)
        states, due = storage.states(), START + self.stage.hours * HOUR
        storage.ledger.summary = replace(
            storage.ledger.summary, looked_after=dict.fromkeys(states, -compacting.COMMITS)
        )
        self.upkeep.append(timed(partial(compacting.look_after, storage, due))[0])
        storage.record(new_run(), {})  # as its report does
        if any(state.coverage.stretches[0].start > START for state in states.values()):
            raise AssertionError(f"after {self.stage.hours} hours, tables know no more how far they go back: {states}")
        self.checkpoint()
        self.checkpoints.append((self.stage.hours, *self.versions()))
        for hour, *versions in self.checkpoints:
            if hour <= self.stage.hours - LOG_HOURS:
                for folder, version in zip((self.stage.source, self.stage.target), versions, strict=True):
                    _expire(folder / "_delta_log", version)

    def checkpoint(self) -> None:
        """Both logs are folded, as Delta Lake does it every so many commits."""
        for folder in (self.stage.source, self.stage.target):
            DeltaTable(str(folder)).create_checkpoint()

    def versions(self) -> tuple[int, int]:
        """The newest versions of the source and of the tables."""
        source, target = (DeltaTable(str(folder)).version() for folder in (self.stage.source, self.stage.target))
        return source, target

    def partitions(self) -> Counter[str]:
        """How many files there are in each partition of the tables."""
        return Counter(str(Path(file).parent) for file in DeltaTable(str(self.stage.target)).file_uris())

    def commits(self) -> int:
        """So many commits are in the log of the tables."""
        return len([*(self.stage.target / "_delta_log").glob("*.json")])


def _expire(log: Path, version: int) -> None:
    """What came before a checkpoint has left a log, as Delta Lake removes it when its time is over."""
    for file in log.glob("[0-9]*"):
        if int(file.name[:20]) < version:
            file.unlink()


def kept(spark: SparkSession) -> Iterator[Row]:
    """A year of hourly runs, which look after their files: how many there are, and what it takes to look at them."""
    whole = Stage(spark, "kept-whole", a_minute=FEW).begin(A_YEAR)
    hours = Hours.of(whole, Stage(spark, "kept", a_minute=FEW).begin(1))
    most, early = 0, _Looked(0, 0.0, 0.0)
    for hour in upkeeps(A_YEAR):
        hours.write(hour)
        most = max(most, hours.partitions().total())
        hours.keep()
        if hour <= 3 * UPKEEP:
            early = _Looked.at(hours)
    hours.write(A_YEAR)
    late, files = _Looked.at(hours), hours.partitions()
    name = f"files in {len(files):,} partitions after a year of hourly runs / if nobody looked after them"
    yield name, f"{files.total():,}", f"{hours.files:,}", f"{files.total() / hours.files:.3f}", ""
    yield "most files at any time of that year", f"{most:,}", "", "", ""
    name = "commits in the log, after that year / after a month of it"
    yield name, f"{late.commits:,}", f"{early.commits:,}", f"{late.commits / early.commits:.2f}", "1.3"
    yield slower("status, after that year / after a month of it", late.status, early.status, "1.3")
    yield slower("run with nothing to do, after that year / after a month of it", late.idle, early.idle, "1.3")
    day = Stage(spark, "kept-day", a_minute=FEW).begin(24)
    short, long = in_turn(day.next_hour, hours.stage.next_hour)
    yield slower("hourly run of 10 tiers, after that year / after a day of hourly runs", long, short, "1.3")


@dataclass(frozen=True, slots=True)
class _Looked:
    """What there was to look at, and how long it took: the status of the tables, and a run with nothing to do."""

    commits: int
    status: float
    idle: float

    @classmethod
    def at(cls, hours: Hours) -> _Looked:
        stage, plan = hours.stage, optimize(hours.stage.rollup)
        found = [timed(partial(stage.run, stage.hours)) for _ in range(ROUNDS)]
        if any(report.wrote_anything for _, report in found):
            raise AssertionError(f"after {stage.hours} hours, a run had something to do.")
        looks = [timed(partial(status, stage.spark, plan))[0] for _ in range(ROUNDS)]
        return cls(hours.commits(), median(looks), median(each for each, _ in found))


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows in the order of a time."""

    rows: pa.Table
    seconds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, folder: Path, time_: str) -> Sorted:
        """All rows of a Delta table."""
        rows = DeltaTable(str(folder)).to_pyarrow_table().sort_by(time_)  # pyright: ignore[reportUnknownMemberType]
        return cls(rows, rows[time_].to_numpy().astype("datetime64[s]").astype(np.int64))

    def between(self, start: int, end: int) -> pa.Table:
        """Those from one second on, until another one."""
        first, last = np.searchsorted(self.seconds, [start, end])
        return self.rows.slice(first, last - first)


def bookkeeping(spark: SparkSession) -> Iterator[Row]:
    """A run of an hour beside the same tiers, computed and written without a question asked."""
    for layout in ("one_table", "tables"):
        stage = Stage(spark, f"bookkeeping-{layout}", layout, a_minute=100_000, keys=100).begin(6)
        by_hand = Stage(spark, f"by-hand-{layout}", layout, a_minute=100_000, keys=100)
        for _ in range(6):
            _hour_by_hand(by_hand)
        ours, theirs = in_turn(stage.next_hour, partial(_hour_by_hand, by_hand))
        name = f"hourly run of 10 tiers, {stage.a_minute * 60:,} events, {layout} / computed and written by hand"
        yield slower(name, ours, theirs, "1.25")


def _hour_by_hand(stage: Stage) -> float:
    """The next hour as one writes it by hand: the finest tier from the events, the others from it, one append each."""
    stage.append(stage.events(stage.hours, stage.hours + 1))
    stage.hours += 1
    until = START + stage.hours * HOUR

    def write() -> None:
        events = stage.spark.read.format("delta").load(str(stage.source))
        since, to = (F.timestamp_seconds(F.lit(each)) for each in (until - HOUR, until))
        new = events.where((F.col("ts") >= since) & (F.col("ts") < to)).withColumn("start", F.unix_seconds("ts"))
        finest = _grouped(new, MINUTE, (F.count(F.lit(1)), F.sum("v"), F.min("v"), F.max("v"))).persist()
        rows = {
            window: _by_hand(stage, finest, length, until) for window, length in WINDOWS.items() if not until % length
        }
        if stage.layout == "one_table":
            parts = [frame.withColumn("window", F.lit(window)) for window, frame in rows.items()]
            _append(reduce(DataFrame.unionByName, parts), stage.target, "window")
        else:
            for window, frame in rows.items():
                _append(frame, stage.target / window)
        finest.unpersist()

    return timed(write)[0]


def _by_hand(stage: Stage, finest: DataFrame, length: int, until: int) -> DataFrame:
    """The windows of a length that end in the hour before an instant."""
    if length == MINUTE:
        return finest
    if length > HOUR and stage.hours > 1:
        is_one = stage.layout == "one_table"
        hours = stage.spark.read.format("delta").load(str(stage.target if is_one else stage.target / "1h"))
        hours = hours.where("window = '1h'").drop("window") if is_one else hours
        finest = finest.unionByName(hours.where(F.col("start") >= until - length))
    return _grouped(finest, length, (F.sum("n"), F.sum("total"), F.min("low"), F.max("high")))


def _grouped(frame: DataFrame, length: int, states: Sequence[Column]) -> DataFrame:
    start = F.col("start") - F.pmod("start", F.lit(length))
    named = (state.alias(name) for state, name in zip(states, AGGREGATES, strict=True))
    return frame.groupBy("k", start.alias("start")).agg(*named)


def _append(frame: DataFrame, folder: Path, *partitions: str) -> None:
    frame.coalesce(1).write.format("delta").mode("append").partitionBy(*partitions).save(str(folder))


def late(spark: SparkSession) -> Iterator[Row]:
    """Late rows all over sixty days, beside making these days again."""
    hours = LATE_DAYS * 24
    stage = Stage(spark, "late", a_minute=600).begin(hours)
    days = Request(span=Interval(START, START + hours * HOUR), restate=True)
    rebuilt = median([timed(partial(run, spark, optimize(stage.rollup), days))[0] for _ in range(1 + LATE_ROUNDS)][1:])
    few = [_late(stage, stage.events(7, 8).limit(1)) for _ in range(1 + WARMING)]
    fixed = median(seconds for seconds, _ in few[1:])
    found = [_late(stage, stage.events(0, hours).where(f"rand({seed}) < 0.001")) for seed in range(1 + LATE_ROUNDS)]
    seconds, slices = (median(each) for each in zip(*found[1:], strict=True))
    part = slices * MINUTE / (hours * HOUR)
    name = f"0.1 % late rows over {LATE_DAYS} days, which touch {part:.1%} of the finest slices"
    yield name, f"{seconds:.2f}", "", "", ""
    yield (
        "the same without what a single late row takes / rebuild of these days, times that part",
        *slower("", seconds - fixed, rebuilt * part, "1.5")[1:],
    )


def _late(stage: Stage, events: DataFrame) -> tuple[float, int]:
    """The seconds until the tables hold some late rows, and how many finest slices that touched."""
    stage.append(events)
    seconds, report = timed(partial(stage.run, stage.hours))
    if not report.wrote_anything:
        raise AssertionError(f"late rows changed nothing: {report}")
    return seconds, events.select(F.floor(F.unix_seconds("ts") / MINUTE)).distinct().count()


def changed(spark: SparkSession) -> Iterator[Row]:
    """One row in a large file is updated."""
    stage = Stage(spark, "changed", a_minute=5_500)
    noise = [F.unhex(F.sha2(F.rand(seed).cast("string"), 512)).alias(f"noise{seed}") for seed in (1, 2)]
    stage.append(stage.events(0, 24).select("*", *noise))
    stage.run(24)
    (size,) = (file.stat().st_size for file in stage.source.glob("*.parquet"))
    if size < GIGABYTE:
        raise AssertionError(f"the file has {size:,} bytes only.")
    update = "UPDATE {0} SET v = v + 1 WHERE k = 0 AND ts = timestamp_seconds({1})"
    sql(spark, update.format(f"delta.`{stage.source}`", START + 7 * HOUR))
    seconds, report = timed(partial(stage.run, 24))
    slices = next(tier.windows for tier in report.tiers if tier.name == "1m")
    yield f"UPDATE of one row in a file of {size / GIGABYTE:.1f} GB: slices written again", f"{slices}", "", "", "1"
    yield "the run that found it", f"{seconds:.2f}", "", "", ""


def long_log(spark: SparkSession) -> Iterator[Row]:
    """Very many commits since the last run."""
    stage = Stage(spark, "log").begin(24)
    events = (
        stage.events(0, 24)
        .orderBy(F.rand(3))
        .limit(COMMITS // 2)
        .unionByName(stage.events(24, 25).orderBy(F.rand(4)).limit(COMMITS // 2))
        .toArrow()
    )
    version = next_version(stage.source)
    for row in range(COMMITS):
        commit(stage.source, version + row, events.slice(row, 1), known=["ts"])
    DeltaTable(str(stage.source)).create_checkpoint()  # as Delta Lake makes them itself, every ten commits
    seconds, _ = timed(partial(stage.run, 25))
    yield f"run after {COMMITS:,} commits to the source, half of them late", f"{seconds:.2f}", "", "", "10 s"


def timed(do: Callable[[], _T]) -> tuple[float, _T]:
    """The seconds that it takes, and what it gives."""
    started = time.perf_counter()
    done = do()
    return time.perf_counter() - started, done


def in_turn(*sides: Callable[[], float]) -> list[float]:
    """The median of what each side says, in turn, once it is warm."""
    found = [[side() for side in sides] for _ in range(WARMING + ROUNDS)][WARMING:]
    return [median(each) for each in zip(*found, strict=True)]


SECTIONS: Mapping[str, Callable[[SparkSession], Iterator[Row]]] = MappingProxyType(
    {"hourly": hourly, "kept": kept, "bookkeeping": bookkeeping, "late": late, "changed": changed, "long-log": long_log}
)
