"""How fast tiers come from events: against one query per window, against a single tier, and against other engines.

All in one warm process, the sides in turn, and only ratios of their medians are shown beside a target. Events are made
once and kept in ``target/bench``: 20 million rows, 100 keys; in a slice of ten seconds, ``dense`` ones have 1,000 rows
for each key, ``10:1`` ones ten. The aggregates are count, sum, min and max of a double.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import predicted
from events import FOLDER, Events
from generators import Generator, Recipe, Seeding, Shape, draw
from other_engines import DuckDb, OtherEngine, Polars
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from runs import AGGREGATES, SHARING, Row, computed, declared, faster, in_turn, nowhere, one_session, planned, slower

from stairwise.options import Algorithm, Options
from stairwise.plan import Plan
from stairwise_spark.engine import Request, run

ROWS = 20_000_000
SEQUENCE = tuple(f"{seconds}s" for seconds in range(20, 211, 10))
# Spark's own windows make a copy of an event for each of them: of so many events one, where they would not finish.
SAMPLES = {60: 200, 1_440: 5_000}

FEW = 5
"""Each fifth window has the same code as all of them, and warms it up sooner."""


class Goals(NamedTuple):
    """What is aimed at for some events.

    Attributes:
        computing: Times as fast as a query for each window, nothing written.
        finest: Times as long as the finest tier alone.
        tables: Times as fast as a query and a table for each window, in a table each.
        one_table: The same, in one table.
    """

    computing: str
    finest: str
    tables: str
    one_table: str


DENSE = Events("dense", keys=100, per_second=10_000, rows=ROWS)
TEN_TO_ONE = Events("ten_to_one", keys=100, per_second=100, rows=ROWS)
MILLION_KEYS = Events("million_keys", keys=1_000_000, per_second=100_000, rows=ROWS)
GOALS_HOPPING = {60: "12 x", 1_440: "200 x"}
GOALS = ((DENSE, Goals("20 x", "1.5", "7 x", "16 x")), (TEN_TO_ONE, Goals("6 x", "2.5", "3 x", "4.5 x")))


def engine_speed(only: Collection[str] = (), rows: int = ROWS) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other.

    Args:
        only: The sections that are wanted; empty for all of them.
        rows: Of the tables of events; one section takes ten times as many, and that of predictions a quarter.
    """
    bench = Bench(one_session(), rows)
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section(bench)


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured, in one session, over tables of so many rows."""

    spark: SparkSession
    rows: int

    def computing(self) -> Iterator[Row]:
        """Twenty windows without writing them."""
        for kind, goals in GOALS:
            events = self._made(kind)
            plan = planned(events, SEQUENCE)
            ours, theirs, finest, scan = in_turn(
                partial(computed, self.spark, plan, events),
                partial(self._by_window, events, SEQUENCE),
                partial(nowhere, _grouped(events.read(self.spark), _bucket(10))),
                partial(nowhere, events.read(self.spark)),
                warmers={1: partial(self._by_window, events, SEQUENCE[::FEW])},
            )
            name = f"20 windows, {events.name}, nothing written"
            yield faster(f"{name} / one window() query each", ours, theirs, goals.computing)
            yield slower(f"{name} / the finest tier alone", ours, finest, goals.finest)
            yield slower(f"the finest tier, {events.name} / a scan that keeps nothing", finest, scan, "")

    def random(self) -> Iterator[Row]:
        """Windows with few divisors in common."""
        recipe = Recipe(generator=Generator.RANDOM, shape=Shape.TUMBLING, seeding=Seeding.PER_WINDOW, size=20)
        windows = tuple(f"{window.range}s" for window in draw(recipe, 0))
        dense = self._made(DENSE)
        plan = planned(dense, windows)
        ours, theirs = in_turn(
            partial(computed, self.spark, plan, dense),
            partial(self._by_window, dense, windows),
            warmers={1: partial(self._by_window, dense, windows[::FEW])},
        )
        yield faster("20 windows of RandomGen, dense, nothing written / one window() query each", ours, theirs, "8 x")

    def writing(self) -> Iterator[Row]:
        """Twenty Delta tables from a Delta table, and one with all."""
        for kind, goals in GOALS:
            events = self._made(kind)
            layouts = {"tables": goals.tables, "one_table": goals.one_table}
            plans = [planned(events, SEQUENCE, Options(), layout=layout) for layout in layouts]
            *ours, theirs = in_turn(
                *(partial(self._run, plan, events) for plan in plans),
                partial(self._by_window, events, SEQUENCE, FOLDER / "theirs"),
                warmers={2: partial(self._by_window, events, SEQUENCE[::FEW], FOLDER / "theirs")},
            )
            for (layout, goal), seconds in zip(layouts.items(), ours, strict=True):
                name = f"20 windows, {events.name}, Delta to Delta, layout {layout} / one query and table each"
                yield faster(name, seconds, theirs, goal)

    def hopping(self) -> Iterator[Row]:
        """Overlapping windows against Spark's own, which are asked for a few of the events only."""
        events = self._made(TEN_TO_ONE)
        plans = [planned(events, (f"{10 * overlap}s every 10s",), Options()) for overlap in (2, *SAMPLES)]
        least, *ours = in_turn(*(partial(computed, self.spark, plan, events) for plan in plans))
        for (overlap, share), seconds in zip(SAMPLES.items(), ours, strict=True):
            few = events.few(self.spark, share).persist()
            times = events.rows / few.count()
            (own,) = in_turn(partial(nowhere, _grouped(few, F.window("ts", f"{10 * overlap} seconds", "10 seconds"))))
            few.unpersist()
            name = f"hopping, overlap {overlap:,} / Spark's window() on 1 of {times:,.0f} events, times that"
            yield faster(name, seconds, own * times, GOALS_HOPPING[overlap])
        yield slower("hopping, overlap 1,440 / overlap 2", ours[-1], least, "1.3")

    def without_reduction(self) -> Iterator[Row]:
        """Almost every event is a group of its own: nothing is to be gained by sharing."""
        windows = ("1s", "2s", "3s", "5s")
        events = self._made(MILLION_KEYS)
        plan = planned(events, windows, Options())
        ours, theirs = in_turn(
            partial(computed, self.spark, plan, events),
            partial(self._by_window, events, windows),
        )
        yield slower("4 windows, a million keys, nothing written / one window() query each", ours, theirs, "1.05")

    def others(self) -> Iterator[Row]:
        """Twenty windows, without writing them, by engines that need no cluster."""
        engines: tuple[OtherEngine, ...] = (DuckDb(), Polars())
        for kind, _ in GOALS:
            events = self._made(kind)
            plans = {"a query each": planned(events, SEQUENCE, UNSHARED), "the same tiers": planned(events, SEQUENCE)}
            sides = [(engine, way) for engine in engines for way in plans]
            counted = {engine.computed(events.path, plans[way]) for engine, way in sides}
            if len(counted) > 1:
                raise AssertionError(f"{events.name}: other engines find {sorted(counted)} rows.")
            ours, *theirs = in_turn(
                partial(computed, self.spark, plans["the same tiers"], events),
                *(partial(engine.computed, events.path, plans[way]) for engine, way in sides),
            )
            for (engine, way), beside in zip(sides, theirs, strict=True):
                yield faster(f"20 windows, {events.name}, nothing written / {engine.name}, {way}", ours, beside, "")

    def predicted(self) -> Iterator[Row]:
        """Predicted seconds beside measured ones."""
        found = list(predicted.pairs(self.spark, self.rows * predicted.ROWS // ROWS))
        name = f"predicted against measured cost over {len(found)} workloads, Pearson r"
        yield name, "", "", f"{predicted.pearson(found):.3f}", "0.9"

    def ten_times(self) -> Iterator[Row]:
        """Twenty tables again, of ten times as many rows."""
        small, large = self._made(DENSE), self._made(DENSE, 10)
        plans = [planned(events, SEQUENCE, Options()) for events in (small, large)]
        theirs, ours = in_turn(
            partial(self._run, plans[0], small),
            partial(self._run, plans[1], large),
            warmers={1: partial(self._run, plans[0], small)},
        )
        yield slower(f"20 windows, dense, Delta to Delta, {large.rows:,} rows / {small.rows:,}", ours, theirs, "11")
        yield f"peak memory of the JVM with {large.rows:,} rows, GB", f"{_peak_memory():.1f}", "", "", "6"

    def _made(self, kind: Events, times: int = 1) -> Events:
        """A table of the kind, of as many rows as are wanted."""
        events = replace(kind, rows=self.rows * times)
        events.make(self.spark)
        return events

    def _run(self, plan: Plan, events: Events) -> None:
        """A whole run into an empty target."""
        shutil.rmtree(str(declared(plan).target), ignore_errors=True)
        run(self.spark, plan, Request(span=events.span))

    def _by_window(self, events: Events, windows: Sequence[str], target: Path | None = None) -> None:
        """A query for each window, as one writes it by hand."""
        if target is not None:
            shutil.rmtree(target, ignore_errors=True)
        for window in windows:
            found = _grouped(events.read(self.spark), F.window("ts", f"{window.rstrip('s')} seconds"))
            if target is None:
                nowhere(found)
            else:
                named = found.select("k", "window.start", "window.end", *AGGREGATES)
                named.write.format("delta").save(str(target / window))


UNSHARED = replace(SHARING, algorithm=Algorithm.UNSHARED)
SECTIONS: Mapping[str, Callable[[Bench], Iterator[Row]]] = MappingProxyType(
    {
        "computing": Bench.computing,
        "random": Bench.random,
        "writing": Bench.writing,
        "hopping": Bench.hopping,
        "without-reduction": Bench.without_reduction,
        "others": Bench.others,
        "predicted": Bench.predicted,
        "ten-times": Bench.ten_times,
    }
)


def _bucket(seconds: int) -> Column:
    micros = F.unix_micros("ts")
    return (micros - F.pmod(micros, F.lit(seconds * 1_000_000))).alias("bucket")


def _grouped(frame: DataFrame, window: Column) -> DataFrame:
    v = F.col("v")
    states = (F.count(F.lit(1)), F.sum(v), F.min(v), F.max(v))
    return frame.groupBy("k", window).agg(*(s.alias(name) for s, name in zip(states, AGGREGATES, strict=True)))


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
