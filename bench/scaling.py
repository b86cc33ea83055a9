"""What it costs to have more: windows, events, keys, history, late rows; beside the limit, and what others need.

Of windows, events and keys nothing is written: all sides compute the same rows from the same files. History and late
rows are about tables that are there already, so there Stairwise writes them, and what is beside it computes only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType

from deltalake import CommitProperties, DeltaTable, write_deltalake
from engine_speed import DENSE, FEW, SEQUENCE, TEN_TO_ONE, UNSHARED
from events import FOLDER, Events
from other_engines import DuckDb, Polars
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from runs import AGGREGATES, PACE, SHARING, Row, computed, in_turn, nowhere, one_session, planned
from truth_speed import DAY, HOUR, START, WARMING, WINDOWS, Sorted, Stage, timed

from stairwise import Rollup, Source, optimize
from stairwise.options import Options
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.coverage import Claim, Coverage
from stairwise_spark.engine import Request, run
from stairwise_spark.expressions import direct
from stairwise_spark.source import open_source

LONG_AGO = 30 * 24
"""Hours after which somebody has put the small files of hourly runs together, a week at a time."""
WEEK_H = 7 * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured.

    Attributes:
        windows: Numbers of windows.
        rows: Numbers of events.
        keys: Numbers of keys.
        history: Hours of history.
        late: Parts of the events that come late.
        few: Events where their number is not the point.
        patience: Rivals that read the events again and again get no more than so many of them, times windows.
        late_days: Days over which late rows come.
    """

    windows: Sequence[int] = (1, 5, 20, 50, 100)
    rows: Sequence[int] = (2_000_000, 6_000_000, 20_000_000, 200_000_000)
    keys: Sequence[int] = (1, 100, 10_000, 1_000_000)
    history: Sequence[int] = (24, 30 * 24, 365 * 24, 5 * 365 * 24)
    late: Sequence[float] = (0.000_01, 0.000_1, 0.001, 0.01, 0.1)
    few: int = 2_000_000
    patience: int = 500_000_000
    late_days: int = 30


WHOLE = Size()


@dataclass(frozen=True, slots=True)
class Scaling:
    """What is measured, in one session."""

    spark: SparkSession
    size: Size

    def by_windows(self) -> Iterator[Row]:
        """More and more windows over the same events."""
        events = replace(TEN_TO_ONE, rows=self.size.few)
        for many in self.size.windows:
            windows = [f"{10 * number}s" for number in range(2, many + 2)]
            yield f"{many}", *self._rivals(events, windows, SHARING)

    def by_rows(self) -> Iterator[Row]:
        """More and more events for the same windows."""
        for rows in self.size.rows:
            yield f"{rows:,}", *self._rivals(replace(DENSE, rows=rows), SEQUENCE, SHARING)

    def by_keys(self) -> Iterator[Row]:
        """The same number of events of more and more keys, as the default model plans."""
        for keys in self.size.keys:
            events = Events(f"scaling_keys_{keys}", keys=keys, per_second=10_000, rows=self.size.few)
            yield f"{keys:,}", *self._rivals(events, SEQUENCE[::4], Options())

    def by_history(self) -> Iterator[Row]:
        """One hour more after a longer and longer history of hourly runs."""
        self._warm()
        for hours in self.size.history:
            whole = Stage(self.spark, f"scaling-{hours}-whole", a_minute=A_MINUTE)
            whole.append(whole.events(0, hours), files=2)
            again, _ = timed(partial(whole.run, hours))
            stage = laid_out(whole, Stage(self.spark, f"scaling-{hours}", a_minute=A_MINUTE), hours)
            if (report := stage.run(hours)).wrote_anything:
                raise AssertionError(f"after {hours} hours that were laid out, there was something to do: {report}")
            runs = [stage.next_hour() for _ in range(PACE.rounds + 2)][1:]
            idle = [timed(partial(stage.run, stage.hours))[0] for _ in range(PACE.rounds)]
            now = START + stage.hours * HOUR
            scan, _ = timed(partial(nowhere, _since(self._events(stage), now - HOUR)))
            today = now - HOUR - (now - HOUR) % DAY
            cached, _ = timed(partial(_by_window, _since(self._events(stage), today)))
            every, duck = self._all_again(whole)
            cells = (median(runs), median(idle), cached, every, duck, again, scan)
            yield f"{hours:,}", *(f"{seconds:.2f}" for seconds in cells)

    def by_late_rows(self) -> Iterator[Row]:
        """More and more rows that come late, all over the history."""
        self._warm()
        hours = self.size.late_days * 24
        stage = Stage(self.spark, "scaling-late", a_minute=LATE_A_MINUTE)
        stage.append(stage.events(0, hours), files=2)
        stage.run(hours)
        span = Interval(START, START + hours * HOUR)
        for share in self.size.late:
            stage.append(stage.events(0, hours).where(F.rand(int(1 / share)) < share))
            mended, report = timed(partial(stage.run, hours))
            # Not counted: there are so many that no day is without.
            touched = next(tier.windows for tier in report.tiers if tier.name == "1d") or self.size.late_days
            days = [START + DAY * number for number in range(min(touched, self.size.late_days))]
            late = self._events(stage).where(F.col("ts") < F.timestamp_seconds(F.lit(START + DAY * len(days))))
            cached, _ = timed(partial(_by_window, late))
            every, duck = self._all_again(stage)
            again, _ = timed(partial(run, self.spark, optimize(stage.rollup), Request(span=span, restate=True)))
            scan, _ = timed(partial(nowhere, self._events(stage)))
            cells = (mended, cached, every, duck, again, scan)
            yield f"{100 * share:g} %", *(f"{seconds:.2f}" for seconds in cells)

    def _rivals(self, events: Events, windows: Sequence[str], options: Options) -> Iterator[str]:
        """The cells of all sides; empty where one would read the events too often to wait for."""
        events.make(self.spark)
        ours = planned(events, windows, options)
        apart, together = (planned(events, windows, each) for each in (UNSHARED, SHARING))
        duck, polars = DuckDb(), Polars()
        waits = events.rows * len(windows) <= self.size.patience
        sides: list[Callable[[], object] | None] = [
            partial(computed, self.spark, ours, events),
            partial(_by_texts, events.read(self.spark), windows) if waits else None,
            partial(self._by_hand, events, windows),
            partial(duck.computed, events.path, apart) if waits else None,
            partial(duck.computed, events.path, together),
            partial(polars.computed, events.path, together),
            partial(nowhere, events.read(self.spark)),
        ]
        warmers = {1: partial(_by_texts, events.read(self.spark), windows[::FEW])} if waits else {}
        taken = iter(in_turn(*(side for side in sides if side is not None), warmers=warmers, warm_s=WARM))
        for side in sides:
            yield "" if side is None else f"{next(taken):.2f}"

    def _by_hand(self, events: Events, windows: Sequence[str]) -> None:
        """Slices of ten seconds, kept in memory, and each window from them: what one writes without a planner."""
        start = F.unix_seconds("ts")
        slices = _grouped(events.read(self.spark), start - F.pmod(start, F.lit(10)), _of_events).persist()
        for window in windows:
            begin = F.col("start") - F.pmod("start", F.lit(int(window.rstrip("s"))))
            nowhere(_grouped(slices, begin, _of_slices))
        slices.unpersist()

    def _warm(self) -> None:
        """The JVM has compiled what runs need, if there is time for that."""
        if PACE.is_warm:
            stage = Stage(self.spark, "scaling-warm", a_minute=A_MINUTE).begin(24)
            for _ in range(WARMING):
                stage.next_hour()
                stage.append(stage.events(0, 24).limit(1))
                stage.run(stage.hours)
            _by_window(self._events(stage))

    def _all_again(self, stage: Stage) -> tuple[float, float]:
        """The seconds for all windows from all events: in Spark by a query each, in DuckDB by the tiers of our plan."""
        plan = _tiers(stage)
        files = _only(stage.source, FOLDER / "scaling" / "files")
        every, _ = timed(partial(_by_window, self._events(stage)))
        duck, _ = timed(partial(DuckDb().computed, files, plan))
        return every, duck

    def _events(self, stage: Stage) -> DataFrame:
        return self.spark.read.format("delta").load(str(stage.source))


def scaling(only: Collection[str] = (), size: Size = WHOLE) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other."""
    bench = Scaling(one_session(), size)
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section(bench)


def laid_out(whole: Stage, stage: Stage, hours: int) -> Stage:
    """A stage with the events, rows and claims of a whole, as hourly runs leave them: see `LONG_AGO`."""
    stage.append(stage.events(0, 1))
    stage.run(1)
    events, rows = Sorted.of(whole.source, "ts"), Sorted.of(whole.target, "window_end")
    source, target = DeltaTable(str(stage.source)), DeltaTable(str(stage.target))
    identity = open_source(stage.spark, stage.rollup, direct).identity
    tiers = [step.tier.name for step in optimize(stage.rollup).steps]
    weeks = range(1 + WEEK_H, max(1, hours - LONG_AGO), WEEK_H)
    since = 1
    for until in (*weeks, *range((weeks[-1] if weeks else 1) + 1, hours + 1)):
        span = Interval(START + since * HOUR, START + until * HOUR)
        write_deltalake(source, events.between(span.start, span.end), mode="append")
        covered = Coverage.of(span, source.version())
        claim = Claim(
            run=f"until {until}", plan="", tiers=tuple((name, covered) for name in tiers), is_append=True,
            source=identity,
        )  # fmt: skip
        note = CommitProperties(custom_metadata={"userMetadata": claim.encode()})
        write_deltalake(target, rows.between(span.start + 1, span.end + 1), mode="append", commit_properties=note)
        since = until
        if source.version() % 100 == 0:
            source.create_checkpoint()
            target.create_checkpoint()
    stage.hours = hours
    return stage


def _tiers(stage: Stage) -> Plan:
    """All windows of a stage, as one who keeps nothing would compute them."""
    rollup = Rollup(
        name="again", source=Source(path=str(stage.source), time="ts"), keys=("k",), aggregates=dict(AGGREGATES),
        windows=tuple(WINDOWS), target=str(FOLDER / "ours"), layout="one_table",
        estimates=Estimates(rows_per_day=stage.a_minute * DAY // 60, distinct_keys=stage.keys),
    )  # fmt: skip
    return optimize(rollup, SHARING)


def _only(table: Path, folder: Path) -> Path:
    """A folder with links to those files of a table that belong to its newest version."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, file in enumerate(DeltaTable(str(table)).file_uris()):
        (folder / f"{number}.parquet").symlink_to(file.removeprefix("file://"))
    return folder


def _since(events: DataFrame, instant: int) -> DataFrame:
    return events.where(F.col("ts") >= F.timestamp_seconds(F.lit(instant)))


def _by_window(events: DataFrame) -> None:
    _by_texts(events, [f"{length}s" for length in WINDOWS.values()])


def _by_texts(events: DataFrame, windows: Sequence[str]) -> None:
    """A query for each window, as one writes it by hand."""
    for window in windows:
        nowhere(_grouped(events, F.window("ts", f"{window.rstrip('s')} seconds"), _of_events))


def _grouped(frame: DataFrame, start: Column, states: Callable[[], Sequence[Column]]) -> DataFrame:
    named = (state.alias(name) for state, name in zip(states(), AGGREGATES, strict=True))
    return frame.groupBy("k", start.alias("start")).agg(*named)


def _of_events() -> Sequence[Column]:
    return F.count(F.lit(1)), F.sum("v"), F.min("v"), F.max("v")


def _of_slices() -> Sequence[Column]:
    return F.sum("n"), F.sum("total"), F.min("low"), F.max("high")


A_MINUTE, LATE_A_MINUTE, WARM = 2, 60, 2.0
SECTIONS: Mapping[str, Callable[[Scaling], Iterator[Row]]] = MappingProxyType(
    {
        "by-windows": Scaling.by_windows,
        "by-rows": Scaling.by_rows,
        "by-keys": Scaling.by_keys,
        "by-history": Scaling.by_history,
        "by-late-rows": Scaling.by_late_rows,
    }
)
_SIDES = (
    "Stairwise, s", "a query each, s", "by hand, s", "DuckDB, a query each, s", "DuckDB, the same tiers, s",
    "Polars, the same tiers, s", "one scan, s",
)  # fmt: skip
HEADERS: Mapping[str, Row] = MappingProxyType(
    {
        "by-windows": ("windows", *_SIDES),
        "by-rows": ("events", *_SIDES),
        "by-keys": ("keys", *_SIDES),
        "by-history": (
            "hours of history", "hourly run, s", "nothing to do, s", "daily cache, s", "all again, a query each, s",
            "all again, DuckDB, s", "all again, Stairwise, s", "one scan of the hour, s",
        ),
        "by-late-rows": (
            "late rows, of all", "Stairwise, s", "late days again, s", "all again, a query each, s",
            "all again, DuckDB, s", "all again, Stairwise, s", "one scan, s",
        ),
    }
)  # fmt: skip
