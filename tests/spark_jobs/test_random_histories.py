"""Whatever is declared, now or later, and whatever happens to source, runs and tables: each table equals the rows.

That is so after the next run, and no window changes but where the run says that it had a cause. What a run dies of here
is the event that it tells of; real processes are killed in `test_torture`.

Tables may keep some of their rows only, and the source, from some step on, drops its own: then the rows are all those
that ever came. Nobody declares how long he keeps what happened in 1970, so spans are counted anew for each plan.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, optimize
from stairwise.aggregate import Sharing
from stairwise.errors import ChangedError, RollupError
from stairwise.evolution import Permission
from stairwise.plan import Plan
from stairwise.span import Span
from stairwise.windowing import Interval, windows_touching
from stairwise_spark.changing import apply
from stairwise_spark.coverage import expired
from stairwise_spark.difference import difference
from stairwise_spark.engine import History, Request, run
from stairwise_spark.errors import BusyError
from stairwise_spark.maintain import Upkeep, maintain
from stairwise_spark.report import Event, Progress, RunReport, silent
from stairwise_spark.session import sql
from stairwise_spark.spans import Spans, joined, without
from stairwise_spark.status import status
from tests.spark_jobs import oracle
from tests.spark_jobs.declarations import MICROS, Case, drawn

pytestmark = pytest.mark.spark

# Each costs half a minute; STAIRWISE_EXAMPLES=0-100 tries a hundred.
EXPIRING = 219  # tables drop rows, and so does the source
USUAL = (11, EXPIRING)
GIVEN = os.environ.get("STAIRWISE_EXAMPLES", "")
SEEDS = range(*map(int, GIVEN.split("-"))) if GIVEN else USUAL
STEPS = 3
_FAR, _LONG_AGO = 2**33, -(2**62)
_WHILE = 3_600  # longer than a test takes: while it runs, what was so long ago becomes later
# What happens to a table of events, with events that come as the first.
_CHANGES = {
    "update": "UPDATE {table} SET whole = -whole, word = concat(word, 'x'), flag = NOT flag WHERE {some}",
    "delete": "DELETE FROM {table} WHERE {some}",
    "move": "MERGE INTO {table} USING (SELECT happened AS other, truth AS at_then FROM {table} WHERE truth IS NOT NULL "
    "{and_kept} ORDER BY truth LIMIT 1) ON {some} AND truth IS NOT NULL "
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
        kept: The instant before which windows of a table may go, by its name; of others, all stay.
        went: The latest of these that was ever declared, by the same names.
        dropped: The instant before which the source has dropped its events; None: it keeps all.
        lost: The windows that could not be made when they were declared, as ranges of their ends, by the tables' names.
        expired: How many windows have gone that would have had rows.
    """

    spark: SparkSession
    case: Case
    rollup: Rollup
    luck: random.Random
    events: DataFrame
    told: list[str] = field(default_factory=list[str])
    seen: oracle.Cells | None = None
    kept: dict[str, int] = field(default_factory=dict[str, int])
    went: dict[str, int] = field(default_factory=dict[str, int])
    dropped: int | None = None
    lost: dict[str, Spans] = field(default_factory=dict[str, Spans])
    expired: int = 0
    _parts: int = 0

    @property
    def plan(self) -> Plan:
        """How the tables are made."""
        return optimize(self.declared)

    @property
    def declared(self) -> Rollup:
        """What is declared now, with how long rows are kept, counted from now."""
        windows = tuple(replace(each, retain=_ago(self.kept.get(each.name))) for each in self.rollup.windows)
        return replace(self.rollup, windows=windows, source=replace(self.rollup.source, retain=_ago(self.dropped)))

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
            if self.seen is not None and self.is_exact and self.luck.random() < 0.5:
                self.drop()
            for _ in range(self.luck.choice((1, 1, 2, 3))):
                self.change()
            self.trouble()
            self.heal()
            self.check()

    def change(self) -> None:
        """Events come, are corrected or go; or what there is is written anew or comes back."""
        kind = self.luck.choices(("grow", *_CHANGES), _LOTS)[0]
        if kind == "grow" or (kind == "restore" and self.dropped is not None):
            self.grow()
            return
        table = f"delta.`{self.source}`"
        newest = int(sql(self.spark, f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])
        some = f"pmod(xxhash64(truth, word, whole), 5) = {self.luck.randrange(5)} {self._and_kept}"
        version = self.luck.randint(max(0, newest - 3), newest)
        statement = _CHANGES[kind].format(table=table, some=some, and_kept=self._and_kept, version=version)
        self.told.append(statement)
        sql(self.spark, statement).collect()

    @property
    def is_exact(self) -> bool:
        """Whether rows can be merged into all that may be declared, and what is due is found by runs."""
        calls = self._everything.aggregates
        return self.case.span is None and all(each.sharing is not Sharing.HOLISTIC for _, each in calls)

    @property
    def _everything(self) -> Rollup:
        return self.case.rollup(self.source, Path(str(self.rollup.target)))

    @property
    def _gone(self) -> str:
        """Where the events are kept that the source has dropped."""
        return f"{self.source}_gone"

    @property
    def _and_kept(self) -> str:
        """What is true of events in none of the windows of which some were dropped: no others are corrected."""
        if self.dropped is None:
            return ""
        windows = (
            windows_touching(each.window, self.dropped, self.dropped + _WHILE) for each in self._everything.windows
        )
        return f"AND truth >= {max(found.end for each in windows for found in each) * MICROS}"

    def drop(self) -> None:
        """The source drops what is old, and that is declared."""
        history = self.case.history
        earliest = history.begin if self.dropped is None else self.dropped
        self.dropped = self.luck.randint(earliest, max(earliest, history.begin + history.length * 3 // 4))
        old = f"truth < {self.dropped * MICROS}"
        self.told.append(f"the source dropped {old}")
        self.spark.read.format("delta").load(self.source).where(old).write.format("delta").mode("append").save(
            self._gone
        )
        sql(self.spark, f"DELETE FROM delta.`{self.source}` WHERE {old}").collect()  # noqa: S608 - our own
        if not self._can_be_planned():
            self.kept.clear()

    def keep_less(self) -> None:
        """It is declared of some tables from when on they keep their rows."""
        history, self.kept = self.case.history, {}
        for each in self.rollup.windows:
            if self.case.span is None and self.luck.random() < 0.6:
                self.kept[each.name] = history.begin + int(history.length * self.luck.uniform(0.3, 1.3))
                if not self._can_be_planned():
                    del self.kept[each.name]
        self.told.append(f"kept from {self.kept} on")
        for name, since in self.kept.items():
            self.went[name] = max(since, self.went.get(name, since))

    def _can_be_planned(self) -> bool:
        """Whether rows are kept as long as somebody needs them."""
        try:
            return bool(self.plan.steps)
        except RollupError:
            return False

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
        everything = self._everything
        windows = self.luck.sample(everything.windows, self.luck.randint(1, len(everything.windows)))
        calls = self.luck.sample(everything.aggregates, self.luck.randint(1, len(everything.aggregates)))
        self.rollup = replace(self.rollup, windows=tuple(windows), aggregates=tuple(calls))
        self.told.append(f"declared: {windows}, {calls}")
        self.keep_less()
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
        found = difference(self.spark, self.declared)
        if found.evolution.running is not None and found.is_anything:
            for report in apply(self.spark, found, frozenset(Permission), progress).runs:
                self._note(report.lost)

    def _run(self, request: Request, progress: Progress = silent) -> RunReport:
        report = run(self.spark, self.plan, request, progress)
        self._note(report.lost)
        return report

    def _note(self, lost: Mapping[str, Spans]) -> None:
        """Only what is declared anew may lack windows: to all others, late rows can be added."""
        for name, spans in lost.items():
            known = self.lost.get(name, ())
            assert self.seen is None or not without(spans, known), (name, spans, known)
            self.lost[name] = joined((*known, *spans))

    def _check_causes(self, before: oracle.Cells, report: RunReport) -> None:
        """No window changed in which the run has not found anything changed."""
        after = oracle.stored(self.spark, self.rollup).rows
        for place in before.rows.keys() | after.keys():
            if repr(before.rows.get(place)) != repr(after.get(place)):
                begin, end = _bounds(place)
                if place not in after and _is_among(report.expired, place):
                    continue
                causes = [span for span in report.source.changed if span.start < end and begin < span.end]
                assert causes, (place, report.source.changed)

    def check(self) -> None:
        """Every table equals the raw rows, those included that the source has dropped, but for what has expired."""
        rows = self.spark.read.format("delta").load(self.source)
        if self.dropped is not None:
            rows = rows.unionByName(self.spark.read.format("delta").load(self._gone))
        raw = rows.withColumn("_time", F.col("truth")).where("truth is not null")
        raw = raw if self.case.where is None else raw.where(self.case.where)
        wanted = oracle.expected(raw, self.rollup, self.case.listed)
        self.seen = found = oracle.stored(self.spark, self.rollup)
        if self.went or self.dropped is not None:
            wanted = self._known_of(wanted)
            found = replace(
                found, rows={place: row for place, row in found.rows.items() if not _is_among(self.lost, place)}
            )
        assert list(islice(oracle.differences(self.rollup, found, wanted), 5)) == []

    def _known_of(self, wanted: oracle.Cells) -> oracle.Cells:
        """What the tables have to hold of what is wanted, for some of it has expired, or could not be made."""
        state = status(self.spark, self.plan)
        gone = {each.step.tier.name: expired(each.coverage) for each in state.tiers}
        for name in [each.name for each in self.rollup.windows if gone.get(each.name)]:
            assert gone[name][-1].end <= self.went[name] + _WHILE, name
        names = [name for name, _ in self.rollup.aggregates]
        since = [state.valid_from.get(name, _LONG_AGO) for name in names]
        self.expired += sum(_is_among(gone, place) for place in wanted.rows)
        rows = {
            place: [
                *(cell if _bounds(place)[0] >= each else None for cell, each in zip(row, since, strict=False)),
                row[-1],
            ]
            for place, row in wanted.rows.items()
            if not _is_among(gone, place) and not _is_among(self.lost, place)
        }
        return replace(wanted, rows=rows)


def _ago(instant: int | None) -> Span | None:
    """How long ago an instant was; None: that is never."""
    return None if instant is None else Span(seconds=int(time.time()) - instant)


def _bounds(place: tuple[str, ...]) -> tuple[int, int]:
    """When the window of a row begins and ends."""
    return int(place[-2]) // MICROS, int(place[-1]) // MICROS


def _is_among(ranges: Mapping[str, Spans], place: tuple[str, ...]) -> bool:
    """Whether the window of a row ends in one of the ranges of its table."""
    end = _bounds(place)[1]
    return any(
        span.start < end <= span.end for name, spans in ranges.items() if repr(name) == place[0] for span in spans
    )


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
    story.keep_less()
    return story


@pytest.mark.parametrize("seed", SEEDS)
def test_every_table_equals_the_rows_after_whatever_happened(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    story = begun(spark, seed, tmp_path)
    try:
        story.go(STEPS)
    except Exception as error:
        error.add_note(f"{story.told}\n{story.case}")
        raise
    assert seed != EXPIRING or (story.expired > 0 and story.dropped is not None)
