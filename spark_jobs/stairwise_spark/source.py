"""The source as one run sees it: checked against the declaration, and pinned to one version."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from stairwise.declared import NullTime
from stairwise.rollup import Rollup, Source
from stairwise.windowing import Interval
from stairwise_spark.delta_log import Described, Logged, described, read_log, summed_up
from stairwise_spark.errors import RunError, SourceError, condition, said, translated, translating, unless_refused
from stairwise_spark.event_time import MICROS, EventTime
from stairwise_spark.grid import within
from stairwise_spark.names import column, quoted, without_wildcards
from stairwise_spark.session import sql
from stairwise_spark.source_checks import Direct, check_source, expressions, named_field, needed_fields
from stairwise_spark.spans import Spans, hull, merged

# What DESCRIBE HISTORY says of what is no Delta table: a view, or a table of another format.
_NO_DELTA = ("EXPECT_TABLE_NOT_VIEW", "DELTA_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION")
_VECTORS = "deletionVectors"
FILES = "files"
"""The identity of a source of files."""
# The folder of a partition, which may be left out when the files are read; nothing tells beforehand.
_PARTITION = re.compile(r"/[^/]+=[^/]*/")
_END_OF_TIME = 253_402_214_400  # 9999-12-31T00:00Z: what Spark shows as a year of four digits
# Files are skipped by so many ranges of time; more are joined for that.
_MOST_COMPARED = 64
# Ranges that cover so much of the time between the first and the last skip no file worth the comparisons.
_ALMOST_ALL = 0.9
# Of so many files the system is asked how large they are: it takes a second.
_MOST_ASKED = 1_000


@dataclass(frozen=True, slots=True)
class Files:
    """Files that have to be read: how many, and how large; None: nobody says."""

    count: int | None = 0
    bytes: int | None = 0


class LeftOut(NamedTuple):
    """How many rows are in no window: those without a time, and those that are dated too far ahead."""

    null_times: int = 0
    future_rows: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PinnedSource:
    """The rows of the source that a run reads, however often it does.

    A Delta table stays at the version it had; files stay those that were listed. A query is as constant as what it
    reads, Delta tables among it too: read it once.

    Attributes:
        frame: The rows that count, with the source's own columns.
        time: When they happened.
        columns: What the rollup needs of each row, under the names that it uses.
        version: The version of a Delta table; None for everything else.
        table: The Delta table as Spark SQL names it; None for everything else.
        where: The filter by which rows count; None: all do.
        identity: What stays the same while versions of this source can be compared: the id of a Delta table, which
            another one in its place does not have; one word for all files. None: nothing can be compared.
        delta: What the table says of itself, if it is a Delta table.
    """

    frame: DataFrame
    time: EventTime
    columns: tuple[Column, ...]
    version: int | None
    table: str | None
    where: str | None = None
    identity: str | None = None
    delta: Described | None = None
    _listings: dict[Spans, list[str] | None] = field(
        default_factory=dict[Spans, list[str] | None], init=False, repr=False
    )

    def rows(self, spans: Spans | None = None, counted: Observation | None = None) -> DataFrame:
        """The rows of some spans, each with `_time` in microseconds; of all time without them.

        Args:
            spans: In seconds.
            counted: Gets their number as ``rows`` once an action has read all of them; it costs no job.
        """
        has_time = column(self.time.name).isNotNull()
        kept = self.frame.where(has_time) if spans is None else self._near(self.frame, spans)
        rows = kept.select(*self.columns, self.time.micros.alias("_time"))
        if spans is not None and (self.time.is_local or _compared(spans) != spans):
            rows = within(rows, F.col("_time"), spans)
        return rows if counted is None else rows.observe(counted, F.count(F.lit(1)).alias("rows"))

    def rows_of(self, frame: DataFrame, spans: Sequence[Interval], *others: Column) -> DataFrame:
        """The rows of some spans in a frame that has the columns of the source, as :meth:`rows` gives them.

        Args:
            frame: Without a filter.
            spans: In seconds.
            others: Columns of it that are kept beside those of the rollup.
        """
        kept = frame if self.where is None else frame.where(F.expr(self.where))
        rows = self._near(kept, tuple(spans)).select(*self.columns, self.time.micros.alias("_time"), *others)
        return within(rows, F.col("_time"), tuple(spans))

    def at(self, version: int) -> DataFrame:
        """All rows and columns of the Delta table, without a filter, as they were at a version."""
        spark = self.frame.sparkSession
        return spark.read.option("versionAsOf", version).table(self.table or "")

    def _near(self, frame: DataFrame, spans: Spans) -> DataFrame:
        """The rows that may be in some spans, by a filter on the source's own column, by which files are skipped."""
        return frame.where(self.time.may_be_in(_compared(spans)))

    def used(self) -> frozenset[str]:
        """The names of the columns that the rollup looks at, in lower case."""
        given = needed_fields([self.where] if self.where is not None else [], self.frame.schema.fields)
        names = [self.time.name, *self.rows().columns, *(field.name for field in given)]
        return frozenset(name.lower() for name in names)

    def files(self, spans: Spans) -> Files:
        """The files that have to be read for some spans; none of them is opened.

        Of a Delta table those that its log does not rule out; without a log, all are looked into.
        """
        found = self._listed(spans)
        hides_some = spans and self.version is None and (not found or any(map(_PARTITION.search, found)))
        if found is None or hides_some:
            return Files(None, None)
        return Files(len(found), self._size(found) if len(found) <= _MOST_ASKED else None)

    def about_bytes(self, spans: Spans, enough: int = 0) -> int | None:
        """About how large the files of some spans are at most: of very many, some are asked; None: nobody says.

        If all files together are not larger than what is enough to know, the size of all.
        """
        if self.delta is not None and self.delta.bytes <= enough:
            return self.delta.bytes
        found = self._listed(spans)
        if not found:
            return None if self.version is None else 0
        asked = found[:: ceil(len(found) / _MOST_ASKED)]
        size = self._size(asked)
        return None if size is None else size * len(found) // len(asked)

    def logged(self) -> Logged | None:
        """What the log of a Delta table says; None for everything else."""
        if self.delta is None or self.version is None:
            return None
        return read_log(self.frame.sparkSession, self.delta, self.version, self.time)

    def _listed(self, spans: Spans) -> list[str] | None:
        """The files that have to be read for some spans; None: nobody says, which is no reason for a run to fail."""
        if spans not in self._listings:
            self._listings[spans] = unless_refused(lambda: sorted(self.rows(spans).inputFiles()))
        return self._listings[spans]

    def _size(self, files: Sequence[str]) -> int | None:
        return unless_refused(lambda: _size(self.frame.sparkSession, files))

    def extent(self) -> Interval | None:
        """From the second of the earliest event until after that of the latest; None if there is no event."""
        with translating():
            ends = self.frame.agg(F.min(self.time.micros), F.max(self.time.micros)).first()
        if ends is None or ends[0] is None:
            return None
        return Interval(ends[0] // MICROS, ends[1] // MICROS + 1)

    def told_extent(self) -> Interval | None:
        """The same by the log of a Delta table, whose events are not read for it; None: it does not say, or of none.

        Not where rows are in its files that do not count, nor where these may call the time otherwise.
        """
        if self.where is not None or self.time.is_local or self.delta is None:
            return None
        if self.delta.is_mapped or _VECTORS in self.delta.features:
            return None
        logged = self.logged()
        if logged is None or not logged.days:
            return None
        return Interval(logged.days[0].first // MICROS, max(day.last for day in logged.days) // MICROS + 1)

    def count_after(self, instant: int) -> int:
        """How many events there are from an instant on; files that hold none by their statistics are skipped."""
        with translating():
            return self.rows((Interval(instant, _END_OF_TIME),)).count()

    def null_times(self) -> int:
        """How many rows have no time; files whose statistics say that they have none are skipped."""
        with translating():
            return self.frame.where(column(self.time.name).isNull()).count()

    def left_out(self, policy: NullTime, horizon: int | None) -> LeftOut:
        """How many rows are in no window, where the policy for those without a time allows for them.

        Args:
            policy: For rows without a time.
            horizon: From this second on rows are dated too far ahead; None: none is.

        Raises:
            RunError: There are rows without a time, and the policy is to fail.
        """
        return LeftOut(self.check_null_times(policy), 0 if horizon is None else self.count_after(horizon))

    def check_null_times(self, policy: NullTime) -> int:
        """How many rows have no time, where the policy is to leave them out.

        Raises:
            RunError: There are some, and the policy is to fail.
        """
        count = self.null_times()
        if count and policy is NullTime.FAIL:
            rows = "1 row has" if count == 1 else f"{count:,} rows have"
            raise RunError(
                f"{rows} no time: {self.time.name} is NULL.",
                hint="correct them, leave them out by where:, or declare null_time: skip.",
                rows=count,
            )
        return count


def open_source(spark: SparkSession, rollup: Rollup, direct: Direct) -> PinnedSource:
    """The source at its newest version, once the declaration fits it.

    Args:
        spark: A session in UTC.
        rollup: What was declared.
        direct: Makes the plain call of Spark for an aggregate, tried on each of them.

    Raises:
        SourceError: There is no such source, or something in the declaration does not fit it.
        RunError: Spark cannot look.
    """
    source = rollup.source
    with translating():
        frame, version = _found(spark, source)
        table = source.table if source.table is not None else f"delta.{quoted(located(source.path or ''))}"
        time = check_source(frame, rollup, direct)
        fields = frame.schema.fields
        texts = [text for _, aggregate in rollup.aggregates for text in expressions(aggregate)]
        names = {named_field("", key, fields).name: key for key in rollup.keys}
        names |= {field.name: field.name for field in needed_fields(texts, fields) if field.name not in names}
        delta = None if version is None else _described(spark, source, table, version)
        return PinnedSource(
            frame=frame if source.where is None else frame.where(F.expr(source.where)),
            time=time,
            columns=tuple(column(name).alias(ours) for name, ours in names.items() if not ours.startswith("_")),
            version=version,
            table=None if version is None else table,
            where=source.where,
            identity=_files_identity(frame, source) if delta is None else delta.identity,
            delta=delta,
        )


def _described(spark: SparkSession, source: Source, table: str, version: int) -> Described:
    summed = None if source.path is None else summed_up(spark, located(source.path), version)
    return summed or described(spark, table)


def _compared(spans: Spans) -> Spans:
    """The ranges of time by which files are skipped, which hold these."""
    found, whole = merged(spans, _MOST_COMPARED), hull(spans)
    is_almost_all = sum(each.end - each.start for each in found) >= _ALMOST_ALL * (whole.end - whole.start)
    return (whole,) if found and is_almost_all else found


def _files_identity(frame: DataFrame, source: Source) -> str | None:
    """One word for whatever is read from files as they are; None for everything else: a query, a view, a database."""
    if source.sql is not None:
        return None
    if source.table is not None and frame.sparkSession.catalog.getTable(source.table).tableType.endswith("VIEW"):
        return None
    try:
        _ = frame.select("_metadata.file_path").schema
    except AnalysisException:
        return None
    return FILES


def _found(spark: SparkSession, source: Source) -> tuple[DataFrame, int | None]:
    try:
        return _opened(spark, source)
    except AnalysisException as error:
        raise SourceError(f"source: {said(error)}.", hint=translated(error).hint, condition=condition(error)) from error


def _opened(spark: SparkSession, source: Source) -> tuple[DataFrame, int | None]:
    if source.sql is not None:
        return _queried(spark, source.sql), None
    if source.table is not None:
        return _table(spark, source.table)
    return _files(spark, located(source.path or ""), source.format)


def located(path: str) -> str:
    """The path as Spark takes it: a relative one begins at this process's folder, not at the JVM's."""
    return path if ":" in path.partition("/")[0] else os.path.abspath(path)  # noqa: PTH100 - a text, as it was given


def _queried(spark: SparkSession, query: str) -> DataFrame:
    # Inside another query nothing but a query can be: a command would run as soon as Spark reads it.
    try:
        return sql(spark, f"SELECT * FROM (\n{query}\n)")  # noqa: S608 - the user's own query
    except ParseException as error:
        raise SourceError(
            f"sql: it is not one query ({said(error)}).", hint="write one SELECT; its own text begins on line 2."
        ) from error


def _table(spark: SparkSession, name: str) -> tuple[DataFrame, int | None]:
    frame = spark.table(name)  # first: it says best what is wrong with a name
    version = _version(spark, name)
    return (frame, None) if version is None else (spark.read.option("versionAsOf", version).table(name), version)


def _files(spark: SparkSession, path: str, kind: str) -> tuple[DataFrame, int | None]:
    reader = spark.read.format(kind)
    frame = reader.load(path)
    version = _version(spark, f"delta.{quoted(path)}") if kind == "delta" else None
    return (frame, None) if version is None else (reader.option("versionAsOf", version).load(path), version)


def _size(spark: SparkSession, files: Sequence[str]) -> int:
    """The size of files, which have to be there: these are addresses, where Spark takes paths with wildcards."""
    if not files:
        return 0
    paths = [without_wildcards(unquote(file)) for file in files]
    total = spark.read.format("binaryFile").load(paths).agg(F.sum("length")).first()
    return 0 if total is None else int(total[0])


def _version(spark: SparkSession, table: str) -> int | None:
    """The newest version of a Delta table; None if it is none."""
    try:
        row = sql(spark, f"DESCRIBE HISTORY {table} LIMIT 1").select("version").first()
    except AnalysisException as error:
        if condition(error).startswith(_NO_DELTA):
            return None
        raise
    return None if row is None else int(row[0])
