"""How fast tables follow a declaration that changes: against making all of them anew, and over a year of history.

The events are the dense ones of ``engine_speed``. Each round fills tables, changes them twice, and fills others as the
last declaration has them, of the events and into an empty folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from engine_speed import DENSE, ROWS
from events import FOLDER
from pyspark.sql import SparkSession
from runs import AGGREGATES, Row, faster, one_session
from truth_speed import A_YEAR, START, timed, year_of_runs

from stairwise import Aggregate, Rollup, Source, optimize
from stairwise.rollup import DeclaredWindow, Estimates
from stairwise_spark.changing import apply
from stairwise_spark.difference import Applied, difference
from stairwise_spark.engine import History, Request, run

WINDOWS = ("10s", "30s", "1m", "5m")
MORE = ("2m", "10m")
WARMING, ROUNDS = 1, 3
DIFFERENCES = 8
"""So often nothing but a look is taken; twice as often before, until Java has compiled what it needs."""


def change_speed(only: Collection[str] = (), rows: int = ROWS) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other.

    Args:
        only: The sections that are wanted; empty for all of them.
        rows: Of the table of events; the history of a year is shortened by as much.
    """
    spark = one_session()
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section(spark, rows)


def more(spark: SparkSession, rows: int) -> Iterator[Row]:
    """Windows and an aggregate more, of what tables hold."""
    events = replace(DENSE, rows=rows)
    events.make(spark)
    rounds = [_round(spark, _declared(events.path.name, "old", WINDOWS)) for _ in range(WARMING + ROUNDS)][WARMING:]
    rebuilt = median(each["rebuilt"].seconds for each in rounds)
    for name in ("two windows more", "an aggregate more, of states that are there"):
        ours = median(each[name].seconds for each in rounds)
        yield faster(f"{name}, {rows:,} dense events / all tables of the events", ours, rebuilt, "20 x")
        read, of_all = rounds[-1][name].rows, rounds[-1]["rebuilt"].rows
        yield f"rows read for {name} / for all tables", f"{read:,}", f"{of_all:,}", f"{of_all / read:.3g} x", "20 x"


def _declared(source: str, target: str, windows: tuple[str, ...]) -> Rollup:
    return Rollup(
        name="bench", source=Source(path=str(FOLDER / source), time="ts"), keys=("k",), windows=windows,
        aggregates={**AGGREGATES, "mean": "avg(v)"}, target=str(FOLDER / "changed" / target),
        estimates=Estimates(rows_per_day=DENSE.per_second * 86_400, distinct_keys=DENSE.keys),
    )  # fmt: skip


class _Taken(NamedTuple):
    """What a change took, or what takes its place: seconds, and the rows that it read."""

    seconds: float
    rows: int


def _round(spark: SparkSession, first: Rollup) -> Mapping[str, _Taken]:
    """What each change took, and what it takes to make all tables anew."""
    shutil.rmtree(FOLDER / "changed", ignore_errors=True)
    run(spark, optimize(first), Request(span=History()))
    wider = replace(first, windows=(*first.windows, *map(DeclaredWindow.parse, MORE)))
    # An average is made of a sum and of how many values there are.
    last = replace(wider, aggregates=(*first.aggregates, ("known", Aggregate.parse("count(v)"))))
    more_windows, applied = _changed(spark, wider)
    held = {
        str(window.name): spark.read.format("delta").load(f"{wider.target}/{window.name}").count()
        for window in wider.windows
    }
    parents = {tier.reads for each in applied.runs for tier in each.tiers if tier.rows and tier.reads}
    # Of an aggregate more, each row is written again with its column.
    another, _ = _changed(spark, last)
    anew = replace(last, target=f"{first.target}-anew")
    seconds, report = timed(partial(run, spark, optimize(anew), Request(span=History())))
    return {
        "two windows more": _Taken(more_windows, sum(held[parent] for parent in parents)),
        "an aggregate more, of states that are there": _Taken(another, sum(held.values())),
        "rebuilt": _Taken(seconds, report.source.rows),
    }


def _changed(spark: SparkSession, wanted: Rollup) -> tuple[float, Applied]:
    """The seconds until the tables are those of a declaration, which no event is read for."""

    def change() -> Applied:
        return apply(spark, difference(spark, wanted))

    seconds, applied = timed(change)
    if any(each.source.rows for each in applied.runs):
        raise AssertionError("a change that tables can supply has read events.")
    return seconds, applied


def looked_at(spark: SparkSession, rows: int) -> Iterator[Row]:
    """What is to be done, and what it costs, over a year of runs of an hour."""
    hours = max(24, A_YEAR * rows // ROWS)
    rollup = year_of_runs(spark, hours).rollup
    wanted = replace(rollup, windows=(*rollup.windows, DeclaredWindow.parse("3h")))
    found = [timed(partial(difference, spark, wanted)) for _ in range(3 * DIFFERENCES)][-DIFFERENCES:]
    if not all(each.is_anything and each.held_s > (hours - 2) * 3_600 for _, each in found):
        raise AssertionError(f"the difference of a declaration is not that of {hours} hours since {START}.")
    yield f"diff after {hours:,} hourly runs", f"{median(seconds for seconds, _ in found):.2f}", "", "", "1 s"


SECTIONS: Mapping[str, Callable[[SparkSession, int], Iterator[Row]]] = MappingProxyType(
    {"more": more, "diff": looked_at}
)
