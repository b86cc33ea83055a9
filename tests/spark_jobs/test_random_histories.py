"""Whatever is declared, now or later, and whatever happens to source, runs and tables: each table equals the rows.

That is so after the next run, and no window changes but where the run says that it had a cause. What a run dies of here
is the event that it tells of; real processes are killed in `test_torture`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, optimize
from stairwise.errors import ChangedError
from stairwise.evolution import Permission
from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark.changing import apply
from stairwise_spark.difference import difference
from stairwise_spark.engine import History, Request, run
from stairwise_spark.errors import BusyError
from stairwise_spark.maintain import Upkeep, maintain
from stairwise_spark.report import Event, Progress, RunReport, silent
from stairwise_spark.session import sql
from tests.spark_jobs import oracle
from tests.spark_jobs.declarations import Case, drawn

pytestmark = pytest.mark.spark

# Each costs half a minute; STAIRWISE_EXAMPLES=0-100 tries a hundred.
USUAL = (11, 21)
GIVEN = os.environ.get("STAIRWISE_EXAMPLES", "")
SEEDS = range(*map(int, GIVEN.split("-"))) if GIVEN else USUAL
STEPS = 3
_FAR = 2**33
# What happens to a table of events, with events that come as the first.
_CHANGES = {
    "update": "UPDATE {table} SET whole = -whole, word = concat(word, 'x'), flag = NOT flag WHERE {some}",
    "delete": "DELETE FROM {table} WHERE {some}",
    "move": "MERGE INTO {table} USING (SELECT happened AS other, truth AS at_then FROM {table} WHERE truth IS NOT NULL "
    "ORDER BY truth LIMIT 1) ON {some} AND truth IS NOT NULL "
    "WHEN MATCHED THEN UPDATE SET happened = other, truth = at_then",
    "optimize": "OPTIMIZE {table}",
    "restore": "RESTORE TABLE {table} TO VERSION AS OF {version}",
}
_LOTS = (5, 2, 2, 1, 1, 1)


class DiedError(BaseException):
    """The end of a run that is no more."""


@dataclass(slots=True)
class Story:
    """A source that changes, and the tables that are made of it.

    Attributes:
        spark: The session.
        case: What is declared, and all events that may ever come.
        rollup: What is declared now.
        luck: Decides what happens.
        events: The events, each with its time as `truth`, and in which part of them it comes.
        told: What has happened, for whoever has to find out why a table is wrong.
        seen: What the tables held after the last run, if they are still declared so.
    """

    spark: SparkSession
    case: Case
    rollup: Rollup
    luck: random.Random
    events: DataFrame
    told: list[str] = field(default_factory=list[str])
    seen: oracle.Cells | None = None
    _parts: int = 0

    @property
    def plan(self) -> Plan:
        """How the tables are made."""
        return optimize(self.rollup)

    @property
    def source(self) -> str:
        """The table of events."""
        return str(self.rollup.source.path)

    def request(self) -> Request:
        """Everything that is declared, in chunks or at once."""
        span = self.case.span or History()
        return Request(
            span=span, chunk_s=self.case.chunk_s, newest_first=self.luck.random() < 0.5, accepts_deletes=True
        )

    def grow(self) -> None:
        """Some events come."""
        self.told.append(f"part {self._parts} came")
        new = self.events.where(F.col("part") == self._parts).drop("part").coalesce(1)
        new.write.format("delta").mode("append").save(self.source)
        self._parts += 1

    def go(self, steps: int) -> None:
        """So often, things happen, and all has to be well after the next run."""
        for _ in range(steps):
            for _ in range(self.luck.choice((1, 1, 2, 3))):
                self.change()
            self.trouble()
            self.heal()
            self.check()

    def change(self) -> None:
        """Events come, are corrected or go; or what there is is written anew or comes back."""
        kind = self.luck.choices(("grow", *_CHANGES), _LOTS)[0]
        if kind == "grow":
            self.grow()
            return
        table = f"delta.`{self.source}`"
        newest = int(sql(self.spark, f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])
        some = f"pmod(xxhash64(truth, word, whole), 5) = {self.luck.randrange(5)}"
        version = self.luck.randint(max(0, newest - 3), newest)
        statement = _CHANGES[kind].format(table=table, some=some, version=version)
        self.told.append(statement)
        sql(self.spark, statement).collect()

    def trouble(self) -> None:
        """A run dies, or two race, somebody packs the tables or declares something else; or nothing of it."""
        kinds: tuple[Callable[[], None], ...] = (self._dies, self._dies, self._race, self._pack)
        if self.seen is not None and self.case.span is None:  # else nobody knows how far new windows go back
            kinds = (*kinds, self._redeclares, self._redeclares)
        if self.luck.random() < 0.8:
            self.luck.choice(kinds)()

    def _dies(self) -> None:
        self.told.append("a run died")
        with suppress(DiedError):
            self._run(self.request(), self._death())

    def _death(self) -> Progress:
        """Who tells of some event dies of it."""
        left = self.luck.randint(0, 8)
        self.told.append(f"at event {left}")

        def tell(_: Event) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise DiedError

        return tell

    def _redeclares(self) -> None:
        """Some of what may be declared is; who applies that dies, or races a run of what was declared until then."""
        before, self.seen = self.plan, None
        everything = self.case.rollup(self.source, Path(str(self.rollup.target)))
        windows = self.luck.sample(everything.windows, self.luck.randint(1, len(everything.windows)))
        calls = self.luck.sample(everything.aggregates, self.luck.randint(1, len(everything.aggregates)))
        self.rollup = replace(self.rollup, windows=tuple(windows), aggregates=tuple(calls))
        self.told.append(f"declared: {windows}, {calls}")
        if self.luck.random() < 0.5:
            with suppress(DiedError):
                self._apply(self._death())
            return
        self.told.append("a race with a run")
        with ThreadPoolExecutor(2) as pool:
            for each in (pool.submit(self._apply), pool.submit(run, self.spark, before, self.request())):
                try:
                    each.result()
                except (BusyError, ChangedError) as error:
                    self.told.append(f"one ended: {error}")

    def _race(self) -> None:
        history = self.case.history
        whole = self.case.span or Interval(history.begin - history.length, history.begin + 2 * history.length)
        middle = self.luck.randint(*whole)
        spans = (Interval(whole.start, middle), Interval(middle, whole.end), whole)
        requests = [
            Request(span=span, accepts_deletes=True) for span in self.luck.sample(spans, 2) if span.start < span.end
        ]
        self.told.append(f"a race of {requests}")
        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(self._run, request) for request in requests]:
                try:
                    each.result()
                except BusyError:
                    self.told.append("one was busy")

    def _pack(self) -> None:
        self.told.append("the tables were packed")
        maintain(self.spark, self.plan, Upkeep(), now=_FAR)

    def heal(self) -> None:
        """What is declared is applied, and a run that nothing happens to."""
        self.told.append("a run")
        if self.seen is None:
            self._apply()
        before = None if self.seen is None else oracle.stored(self.spark, self.rollup)
        report = self._run(self.request())
        if before is not None:
            self._check_causes(before, report)

    def _apply(self, progress: Progress = silent) -> None:
        found = difference(self.spark, self.rollup)
        if found.evolution.running is not None and found.is_anything:
            apply(self.spark, found, frozenset(Permission), progress)

    def _run(self, request: Request, progress: Progress = silent) -> RunReport:
        return run(self.spark, self.plan, request, progress)

    def _check_causes(self, before: oracle.Cells, report: RunReport) -> None:
        """No window changed in which the run has not found anything changed."""
        after = oracle.stored(self.spark, self.rollup).rows
        for place in before.rows.keys() | after.keys():
            if repr(before.rows.get(place)) != repr(after.get(place)):
                begin, end = (int(bound) // 1_000_000 for bound in place[-2:])
                causes = [span for span in report.source.changed if span.start < end and begin < span.end]
                assert causes, (place, report.source.changed)

    def check(self) -> None:
        """Every table equals the raw rows."""
        rows = self.spark.read.format("delta").load(self.source)
        raw = rows.withColumn("_time", F.col("truth")).where("truth is not null")
        raw = raw if self.case.where is None else raw.where(self.case.where)
        wanted = oracle.expected(raw, self.rollup, self.case.listed)
        self.seen = found = oracle.stored(self.spark, self.rollup)
        assert list(islice(oracle.differences(self.rollup, found, wanted), 5)) == []


def begun(spark: SparkSession, seed: int, folder: Path) -> Story:
    """A source with its first events, and no tables."""
    luck = random.Random(seed)  # noqa: S311 - to be the same again
    case = drawn(seed)
    while case.history.count < 10 or not case.has_results:
        case = drawn(luck.randrange(10**6))
    case = replace(case, stored_as="delta")
    parts = 3 * STEPS
    anywhere = F.expr(f"pmod(xxhash64(_time, word, whole), {parts})")
    width = case.history.length * 1_000_000 // parts + 1
    in_order = F.expr(f"coalesce(greatest(0, least({parts - 1}, (_time - {case.history.begin}000000) DIV {width})), 0)")
    events = case.events(spark).withColumn("part", in_order if luck.random() < 0.5 else anywhere)
    rollup = case.rollup(str(folder / "source"), folder / "target")
    story = Story(spark, case, rollup, luck, events.withColumnRenamed("_time", "truth"))
    story.grow()
    return story


@pytest.mark.parametrize("seed", SEEDS)
def test_every_table_equals_the_rows_after_whatever_happened(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    story = begun(spark, seed, tmp_path)
    try:
        story.go(STEPS)
    except Exception as error:
        error.add_note(f"{story.told}\n{story.case}")
        raise
