"""What work costs where Spark runs: the constants of the cost model, each the difference of two queries.

What a query takes for a row is the difference between a large and a small input, so that starting it does not count;
that is a constant of its own. Every query is run several times, and the fastest one counts, for the first ones are
slowed down by a JVM that still compiles. The data are made here; nobody's tables are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from stairwise.constants import Calibration, Constants
from stairwise.window import FixedWindow
from stairwise.windowing import Interval
from stairwise_spark.errors import translating
from stairwise_spark.grid import MICROS, in_windows

ROWS = 8_000_000
TABLES = 8
_FEWER = 8  # a small input is so many times smaller
_EVENTS_PER_ROW = 16  # of a tier
_REPEATS, _ENOUGH_S = 8, 1.0  # a query is run so often, but not again once it has taken so long; at least twice
_WRITERS = 4  # threads that commit at the same time
_KEYS = 1_000
_NARROW = 4  # states of a row of the tier
_WIDE = 12  # more of them
_BOUNDS_AND_KEY = 3
_COPIES = 5  # windows that hold an event
_LEAST = 0.05  # of the built-in constant: a difference may vanish in noise, but no work is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how much is measured.

    Attributes:
        spark: A session in UTC, with Delta Lake.
        folder: For files; what is in it is replaced.
        rows: Events of the large input; a tier has a sixteenth.
        tables: Tables that are committed beside each other.
    """

    spark: SparkSession
    folder: str
    rows: int = ROWS
    tables: int = TABLES


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


@dataclass(frozen=True, slots=True)
class _Sizes:
    """An input, and a small one like it.

    Attributes:
        large: Its rows.
        small: Those of the other.
        more: So many more there are.
    """

    large: DataFrame
    small: DataFrame
    more: int

    def per_row(
        self, query: Callable[[DataFrame], DataFrame], write: Callable[[DataFrame], None] = _to_nowhere
    ) -> float:
        """What a query takes for a row; the small input is first, and warms up."""
        small, large = (_seconds(query(frame), write) for frame in (self.small, self.large))
        return (large - small) / self.more


def calibrate(bench: Bench) -> Calibration:
    """The constants of this place.

    Raises:
        RunError: Spark cannot run the queries.
    """
    with translating():
        # Events last: what it takes to start a query shows in a JVM that has compiled.
        found = {**_of_tiers(bench), **_of_commits(bench), **_of_events(bench)}
        where = f"{bench.spark.conf.get('spark.master', 'a cluster')}, Spark {bench.spark.version}"
    known = Constants().by_name()
    held = {name: max(seconds, known[name] * _LEAST) for name, seconds in found.items()}
    constants = Constants(
        scan_row=held["scan_row"],
        fold_row=held["fold_row"],
        copy_row=held["copy_row"],
        build_row=held["build_row"],
        merge_row=held["merge_row"],
        merge_byte=held["merge_byte"],
        slide_row=held["slide_row"],
        move_row=held["move_row"],
        write_byte=held["write_byte"],
        query=held["query"],
        commit=held["commit"],
        shared_commit=held["shared_commit"],
    )
    return Calibration(constants=constants, where=where, at=int(time.time()))


def _of_events(bench: Bench) -> dict[str, float]:
    """Events of a Delta table in time order: read only, folded into few groups, and copied for several windows."""
    few = max(1, bench.rows // _FEWER)
    small, large = _events(bench, few), _events(bench, bench.rows)
    more = bench.rows - few
    value = F.col("value")
    folds = _named((F.count("*"), F.sum(value), F.min(value), F.max(value)))
    hour = F.floor(F.col("at") / F.lit(few)).alias("hour")
    slide = max(1, few // 10)  # few groups, too
    hopping = FixedWindow(_COPIES * slide, slide)
    spread = in_windows(small, hopping, F.col("at") * F.lit(MICROS), Interval(0, few + hopping.range))
    read, scan = (_seconds(each.agg(F.max("at"), F.max("key"), F.max(value))) for each in (small, large))
    start, fold = (_seconds(each.groupBy("key", hour).agg(*folds)) for each in (small, large))
    copies = _seconds(spread.groupBy("key", "_begin", "_end").agg(*folds))
    return {
        "scan_row": (scan - read) / more,
        "fold_row": (fold - start - scan + read) / more,
        "copy_row": (copies - start) / few / _COPIES,
        "query": start - (fold - start) / more * few,
    }


def _events(bench: Bench, rows: int) -> DataFrame:
    place = f"{bench.folder}/events_{rows}"
    key = F.pmod(F.xxhash64("id"), F.lit(_KEYS))
    made = bench.spark.range(0, rows, 1, 8).select(F.col("id").alias("at"), key.alias("key"), F.rand(7).alias("value"))
    made.write.format("delta").mode("overwrite").save(place)
    return bench.spark.read.format("delta").load(place)


def _of_tiers(bench: Bench) -> dict[str, float]:
    """A tier in memory: rolled up where it lies, made anew row by row, put in order, moved, and written."""
    width, place = 8 * (_BOUNDS_AND_KEY + _NARROW), f"{bench.folder}/tier"
    with _tiers(bench, _NARROW) as loose:
        moved = loose.per_row(lambda tier: _rolled(tier, 1, _NARROW))
        idle = loose.per_row(lambda tier: tier)
        written = loose.per_row(lambda tier: tier, lambda tier: tier.write.mode("overwrite").parquet(place))
    with _tiers(bench, _NARROW, _at_keys) as placed:
        built = placed.per_row(lambda tier: _rolled(tier, 1, _NARROW))
        merged = placed.per_row(lambda tier: _rolled(tier, 100, _NARROW))
        slid = placed.per_row(lambda tier: _in_order(tier, _NARROW))
    with _tiers(bench, _NARROW + _WIDE, _at_keys) as wide:
        widely = wide.per_row(lambda tier: _rolled(tier, 100, _NARROW + _WIDE))
    merge_byte = max(0.0, (widely - merged) / (8 * _WIDE))
    return {
        "merge_byte": merge_byte,
        "merge_row": merged - width * merge_byte,
        "build_row": built - merged,
        "slide_row": slid - built,
        "move_row": moved - built,
        "write_byte": (written - idle) / width,
    }


@contextmanager
def _tiers(
    bench: Bench, states: int, placed: Callable[[DataFrame], DataFrame] = lambda tier: tier
) -> Generator[_Sizes]:
    rows = max(2, bench.rows // _EVENTS_PER_ROW)
    few = max(1, rows // _FEWER)
    with (
        _kept(placed(_tier(bench.spark, rows, states))) as large,
        _kept(placed(_tier(bench.spark, few, states))) as small,
    ):
        yield _Sizes(large, small, rows - few)


def _of_commits(bench: Bench) -> dict[str, float]:
    """Small Delta tables: some beside each other, and as many tiers in a single one."""
    numbers = range(bench.tables)
    tiers = [_small_tier(bench.spark, number) for number in numbers]

    def save(frame: DataFrame, name: str) -> None:
        frame.write.format("delta").mode("append").save(f"{bench.folder}/{name}")

    def apart() -> None:
        with ThreadPoolExecutor(_WRITERS) as pool:
            for done in [pool.submit(save, tiers[number], f"table_{number}") for number in numbers]:
                done.result()

    together = tiers[0]
    for tier in tiers[1:]:
        together = together.unionAll(tier)
    all_in_one = _timed(lambda: save(together, "together"))
    one = _timed(lambda: save(tiers[0], "single"))
    return {
        "commit": _timed(apart) / bench.tables,
        "shared_commit": (all_in_one - one) / max(1, bench.tables - 1),
    }


def _tier(spark: SparkSession, rows: int, states: int) -> DataFrame:
    number = F.col("id")
    begin = F.floor(number / F.lit(_KEYS))
    return spark.range(0, rows).select(
        F.pmod(number, F.lit(_KEYS)).alias("key"),
        begin.alias("begin"),
        (begin + 1).alias("end"),
        *((number * (each + 1)).cast("double").alias(f"s{each}") for each in range(states)),
    )


def _small_tier(spark: SparkSession, number: int) -> DataFrame:
    key = F.pmod("id", F.lit(_KEYS)).alias("key")
    return spark.range(0, 10 * _KEYS, 1, 2).select(key, (F.col("id") + number).alias("total"))


def _at_keys(tier: DataFrame) -> DataFrame:
    """The same rows, those of a key at one place, so that no grouping by it moves them."""
    return tier.repartition("key")


def _rolled(tier: DataFrame, slices: int, states: int) -> DataFrame:
    window = F.floor(F.col("begin") / F.lit(slices)).alias("window")
    return tier.groupBy("key", window).agg(*_named(F.sum(f"s{each}") for each in range(states)))


def _in_order(tier: DataFrame, states: int) -> DataFrame:
    """Windows of 60 rows, as the engine puts them together from what is before and behind the middle of each."""
    block = F.floor(F.col("begin") / F.lit(60))
    forward = Window.partitionBy("key", block).orderBy("begin").rowsBetween(Window.unboundedPreceding, 0)
    backward = Window.partitionBy("key", block).orderBy(F.desc("begin")).rowsBetween(Window.unboundedPreceding, 0)
    along = Window.partitionBy("key").orderBy("begin")
    names = [f"s{each}" for each in range(states)]
    halves = tier.select(
        "key",
        "begin",
        *(F.sum(n).over(side).alias(f"{n}{at}") for n in names for at, side in enumerate((forward, backward))),
    )
    return halves.select("key", "begin", *_named(F.col(f"{n}0") + F.lag(f"{n}1", 59).over(along) for n in names))


def _named(columns: Iterable[Column]) -> list[Column]:
    return [each.alias(f"c{number}") for number, each in enumerate(columns)]


@contextmanager
def _kept(frame: DataFrame) -> Generator[DataFrame]:
    """The frame in memory, for as long as it is needed."""
    kept = frame.persist()
    try:
        kept.count()
        yield kept
    finally:
        kept.unpersist()


def _seconds(frame: DataFrame, write: Callable[[DataFrame], None] = _to_nowhere) -> float:
    """How long it takes to compute the frame, at best."""
    return _timed(lambda: write(frame))


def _timed(action: Callable[[], None]) -> float:
    """How long the fastest of several runs takes; the first one only warms up."""
    action()
    runs: list[float] = []
    while not runs or (len(runs) < _REPEATS - 1 and sum(runs) < _ENOUGH_S):
        began = time.perf_counter()
        action()
        runs.append(time.perf_counter() - began)
    return min(runs)
