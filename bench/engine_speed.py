"""How fast tiers come from events: against one query per window, against a single tier, and against other engines.

All in one warm process, the sides in turn, and only ratios of their medians are shown beside a target. Events are made
once and kept in ``target/bench``: 20 million rows, 100 keys; in a slice of ten seconds, ``dense`` ones have 1,000 rows
for each key, ``10:1`` ones ten. The aggregates are count, sum, min and max of a double.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from generators import Generator, Recipe, Seeding, Shape, draw
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.options import Options, Pricing
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.compute import Content
from stairwise_spark.engine import Request, run
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.session import SessionOptions, open_session
from stairwise_spark.source import open_source
from stairwise_spark.storage import Storage
from stairwise_spark.together import can_go_together
from stairwise_spark.work import Work

HEADER = ("work", "ours, s", "beside it, s", "ratio", "target")
FOLDER = Path(__file__).resolve().parent.parent / "target" / "bench"
ROWS = 20_000_000
FIRST = 1_700_000_000
AGGREGATES = {"n": "count()", "total": "sum(v)", "low": "min(v)", "high": "max(v)"}
SEQUENCE = tuple(f"{seconds}s" for seconds in range(20, 211, 10))
ROUNDS = 3
SAMPLE = 50  # of so many keys one, where Spark's own windows would not finish


@dataclass(frozen=True, slots=True)
class Events:
    """A table of events.

    Attributes:
        name: That of its folder.
        keys: So many, each as likely as the others.
        per_second: Events of all keys in a second.
        rows: How many there are.
    """

    name: str
    keys: int
    per_second: int
    rows: int = ROWS

    @property
    def path(self) -> Path:
        """Where the table is."""
        return FOLDER / self.name

    @property
    def span(self) -> Interval:
        """All time in which there are events, and some more."""
        return Interval(FIRST - FIRST % 86_400, FIRST + self.rows // self.per_second + 86_400)

    def make(self, spark: SparkSession) -> None:
        """Write the table in order of time, unless it is there."""
        if (self.path / "_delta_log").exists():
            return
        instant = F.lit(FIRST * 1_000_000) + F.floor(F.col("id") * F.lit(1_000_000) / F.lit(self.per_second))
        frame = spark.range(0, self.rows, 1, max(8, self.rows // 2_500_000)).select(
            F.timestamp_micros(instant).alias("ts"),
            (F.rand(1) * self.keys).cast("int").alias("k"),
            F.round(F.rand(2) * 100, 2).alias("v"),
        )
        frame.write.format("delta").mode("overwrite").save(str(self.path))

    def read(self, spark: SparkSession) -> DataFrame:
        """All events."""
        return spark.read.format("delta").load(str(self.path))


DENSE = Events("dense", keys=100, per_second=10_000)
TEN_TO_ONE = Events("ten_to_one", keys=100, per_second=100)
MILLION_KEYS = Events("million_keys", keys=1_000_000, per_second=100_000)
MANY = Events("many", keys=100, per_second=10_000, rows=10 * ROWS)


def engine_speed() -> Iterator[tuple[str, ...]]:
    """The rows of the table."""
    spark = open_session(SessionOptions(master="local[2]", conf=(("spark.driver.memory", "6g"),)))
    for events in (DENSE, TEN_TO_ONE, MILLION_KEYS):
        events.make(spark)
    bench = Bench(spark)
    for events, goals in ((DENSE, ("20 x", "1.5")), (TEN_TO_ONE, ("6 x", "2.5"))):
        yield from bench.computing(events, goals)
    yield from bench.random_sets()
    for events, goals in ((DENSE, ("7 x", "16 x")), (TEN_TO_ONE, ("3 x", "4.5 x"))):
        yield from bench.writing(events, goals)
    yield from bench.hopping()
    yield from bench.without_reduction()
    MANY.make(spark)
    yield from bench.ten_times_as_much()


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured, in one session."""

    spark: SparkSession

    def computing(self, events: Events, goals: tuple[str, str]) -> Iterator[tuple[str, ...]]:
        """Twenty windows without writing them."""
        all_windows = _planned(events, SEQUENCE)
        ours, theirs, finest, scan = _in_turn(
            lambda: self.computed(all_windows),
            lambda: self.by_window(events, SEQUENCE),
            lambda: _nowhere(_grouped(events.read(self.spark), _bucket(10))),
            lambda: _nowhere(events.read(self.spark)),
        )
        yield _times(f"20 windows, {events.name}, nothing written / one window() query each", ours, theirs, goals[0])
        yield _share(f"the same / the finest tier alone, {events.name}", ours, finest, goals[1])
        yield _share(f"the finest tier / a scan that keeps nothing, {events.name}", finest, scan, "")

    def random_sets(self) -> Iterator[tuple[str, ...]]:
        """Windows with few divisors in common."""
        recipe = Recipe(generator=Generator.RANDOM, shape=Shape.TUMBLING, seeding=Seeding.PER_WINDOW, size=20)
        windows = tuple(f"{window.range}s" for window in draw(recipe, 0))
        plan = _planned(DENSE, windows)
        ours, theirs = _in_turn(lambda: self.computed(plan), lambda: self.by_window(DENSE, windows))
        yield _times("20 windows of RandomGen, dense, nothing written / one window() query each", ours, theirs, "8 x")

    def writing(self, events: Events, goals: tuple[str, str]) -> Iterator[tuple[str, ...]]:
        """Twenty Delta tables from a Delta table, and one with all."""
        plans = [_planned(events, SEQUENCE, layout) for layout in ("tables", "one_table")]
        *ours, theirs = _in_turn(
            *(lambda plan=plan: self.run(plan, events) for plan in plans),
            lambda: self.by_window(events, SEQUENCE, FOLDER / "theirs"),
        )
        for layout, seconds, goal in zip(("tables", "one_table"), ours, goals, strict=True):
            name = f"20 windows, {events.name}, Delta to Delta, layout {layout} / one query and table each"
            yield _times(name, seconds, theirs, goal)

    def hopping(self) -> Iterator[tuple[str, ...]]:
        """Overlapping windows against Spark's own, which are asked for a few of the keys only."""
        plans = {overlap: _planned(TEN_TO_ONE, (f"{10 * overlap}s every 10s",)) for overlap in (2, 60, 1_440)}
        few = TEN_TO_ONE.read(self.spark).where(F.col("k") < F.lit(TEN_TO_ONE.keys // SAMPLE))
        few.persist().count()
        own = {n: F.window("ts", f"{10 * n} seconds", "10 seconds") for n in (60, 1_440)}
        *ours, sixty, many = _in_turn(
            *(lambda plan=plan: self.computed(plan) for plan in plans.values()),
            *(lambda window=window: _nowhere(_grouped(few, window)) for window in own.values()),
        )
        few.unpersist()
        for overlap, seconds, theirs, goal in ((60, ours[1], sixty, "12 x"), (1_440, ours[2], many, "200 x")):
            name = f"hopping, overlap {overlap:,} / Spark's window() on 1 of {SAMPLE} keys, times {SAMPLE}"
            yield _times(name, seconds, theirs * SAMPLE, goal)
        yield _share("hopping, overlap 1,440 / overlap 2", ours[2], ours[0], "1.3")

    def without_reduction(self) -> Iterator[tuple[str, ...]]:
        """Almost every event is a group of its own: nothing is to be gained by sharing."""
        windows = ("1s", "2s", "3s", "5s")
        plan = _planned(MILLION_KEYS, windows, pricing=Pricing.BATCH)
        ours, theirs = _in_turn(lambda: self.computed(plan), lambda: self.by_window(MILLION_KEYS, windows), rounds=2)
        yield _share("4 windows, a million keys / one window() query each", ours, theirs, "1.05")

    def ten_times_as_much(self) -> Iterator[tuple[str, ...]]:
        """Twenty tables again, of 200 million rows."""
        small, large = (_planned(events, SEQUENCE) for events in (DENSE, MANY))
        ours, theirs = _in_turn(lambda: self.run(large, MANY), lambda: self.run(small, DENSE), rounds=2)
        yield _share("200 million rows, dense, Delta to Delta / 20 million", ours, theirs, "11")
        yield "peak memory of the JVM with 200 million rows, GB", f"{_peak_memory():.1f}", "", "", "6"

    def computed(self, plan: Plan) -> None:
        """All declared tiers of a plan, as a run computes them."""
        rollup = _rollup(plan)
        source = open_source(self.spark, rollup, direct)
        types = argument_types(source.rows(), [aggregate for _, aggregate in rollup.aggregates])
        content = Content(keys=rollup.keys, aggregates=rollup.aggregates, types=types)
        work = Work(
            plan=plan, content=content, source=source, storage=Storage.of(self.spark, plan), versions={},
            covers=lambda _tier, _span: False, chunk=_span(rollup),
            due=[step for step in plan.steps if step.tier.kind is Kind.DECLARED],
            goes_together=can_go_together(source.rows(), content),
        )  # fmt: skip
        found = {id(rows.frame): rows.frame for name, rows in work.frames().items() if _is_declared(plan, name)}
        for frame in found.values():
            _nowhere(frame)
        work.release()

    def run(self, plan: Plan, events: Events) -> None:
        """A whole run into an empty target."""
        shutil.rmtree(str(_rollup(plan).target), ignore_errors=True)
        run(self.spark, plan, Request(span=events.span))

    def by_window(self, events: Events, windows: Sequence[str], target: Path | None = None) -> None:
        """A query for each window, as one writes it by hand."""
        if target is not None:
            shutil.rmtree(target, ignore_errors=True)
        for window in windows:
            found = _grouped(events.read(self.spark), F.window("ts", f"{window.rstrip('s')} seconds"))
            if target is None:
                _nowhere(found)
            else:
                found.select("k", "window.start", "window.end", *AGGREGATES).write.format("delta").save(
                    str(target / window)
                )


def _planned(
    events: Events, windows: Sequence[str], layout: str = "one_table", pricing: Pricing = Pricing.PAPER
) -> Plan:
    """The plan; by default of the paper's model, which always shares."""
    rollup = Rollup(
        name="bench", source=Source(path=str(events.path), time="ts"), keys=("k",), aggregates=AGGREGATES,
        windows=tuple(windows), target=str(FOLDER / "ours"), layout=layout,
        estimates=Estimates(rows_per_day=events.per_second * 86_400, distinct_keys=events.keys),
    )  # fmt: skip
    return optimize(rollup, Options(pricing=pricing))


def _rollup(plan: Plan) -> Rollup:
    if plan.declaration is None:
        raise ValueError(plan.rollup)
    return plan.declaration


def _span(rollup: Rollup) -> Interval:
    (events,) = (each for each in (DENSE, TEN_TO_ONE, MILLION_KEYS, MANY) if str(each.path) == rollup.source.path)
    return events.span


def _is_declared(plan: Plan, name: str) -> bool:
    return plan.step(name).tier.kind is Kind.DECLARED


def _bucket(seconds: int) -> Column:
    micros = F.unix_micros("ts")
    return (micros - F.pmod(micros, F.lit(seconds * 1_000_000))).alias("bucket")


def _grouped(frame: DataFrame, window: Column) -> DataFrame:
    v = F.col("v")
    states = (F.count(F.lit(1)), F.sum(v), F.min(v), F.max(v))
    return frame.groupBy("k", window).agg(*(s.alias(name) for s, name in zip(states, AGGREGATES, strict=True)))


def _nowhere(frame: DataFrame) -> None:
    """Compute all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def _in_turn(*sides: Callable[[], None], rounds: int = ROUNDS) -> list[float]:
    """The median seconds of each side; the first round warms up and does not count."""
    seconds: list[list[float]] = [[] for _ in sides]
    for number, (place, side) in itertools.product(range(rounds + 1), enumerate(sides)):
        started = time.perf_counter()
        side()
        if number:
            seconds[place].append(time.perf_counter() - started)
    return [median(each) for each in seconds]


def _times(name: str, ours: float, theirs: float, goal: str) -> tuple[str, ...]:
    return name, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f} x", goal


def _share(name: str, ours: float, theirs: float, goal: str) -> tuple[str, ...]:
    return name, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", goal


def _peak_memory() -> float:
    """Gigabytes that the largest Java process has ever held."""
    peaks = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended
        if lines["Name"].strip() == "java":
            peaks.append(int(lines.get("VmHWM", "0").split()[0]))
    return max(peaks) / 1024**2


def _main() -> None:
    for row in engine_speed():
        print("  ".join(row), flush=True)


if __name__ == "__main__":
    _main()
