"""What differs between two versions of a Delta table, in slices of time: by its log, and the files that this names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.changed import Changes, Way
from stairwise_spark.commits import ChangedFile, LoggedTime, changed_files, feed_bytes, file_of, read_commits, seconds
from stairwise_spark.delta_log import described, schema_at, times_at
from stairwise_spark.delta_rows import Question, fed_sides, sides, sides_at_the_ends
from stairwise_spark.differences import MOST_SLICES, Difference, difference
from stairwise_spark.errors import unless_said
from stairwise_spark.physical import is_replaced, physical_name
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import in_whole_slices, joined, meeting

MOST_FILES = 10_000
GONE = (
    *("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "DELTA_VERSION_NOT_FOUND", "DELTA_LOG_FILE_NOT_FOUND"),
    *("DELTA_FILE_NOT_FOUND", "DELTA_TRUNCATED_TRANSACTION_LOG", "DELTA_STATE_RECOVER_ERROR"),
    "DELTA_NO_REPRODUCIBLE_HISTORY_FOUND",
)
"""What Spark says of a file, or of a version, that is no longer there."""
_NOT_FED = (*GONE, "DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE")


class Untold(NamedTuple):
    """Why the log does not tell what changed."""

    why: str


def delta_changes(
    source: PinnedSource,
    since: int,
    version: int,
    slices: EdgeSet,
    within: Sequence[Interval],
    most_files: int = MOST_FILES,
) -> Changes | Untold:
    """What differs between a version of a Delta table and the pinned one; or why that cannot be told.

    Args:
        source: As it is now.
        since: The version that is known.
        version: The pinned one.
        slices: The edges of the finest slices.
        within: The event time in question, in order and apart.
        most_files: So many files are named; more are found by a join.
    """
    opened = open_log(source, since, version, slices, within)
    if isinstance(opened, Untold):
        return opened
    asked, lines = opened
    files = changed_files(lines, asked.time, within).persist()
    try:
        rows = files.limit(most_files + 1).collect()
        if has_replaced(asked, rows):
            return Untold(f"a column was replaced by another one of its name {asked.between}")
        known = [file_of(row, since, version, asked.time.slack) for row in rows if row["path"] is not None]
        return _told(asked, _Logged(lines, files, known, is_all=len(rows) <= most_files))
    finally:
        files.unpersist()


def open_log(
    source: PinnedSource, since: int, version: int, slices: EdgeSet, within: Sequence[Interval]
) -> tuple[Question, DataFrame] | Untold:
    """What is asked of the commits after one version and up to another, and their lines; or why they do not tell."""
    spark, name = source.frame.sparkSession, source.time.name
    if since > version:
        return Untold(f"the source is at version {version}, before version {since}")
    table = source.delta or described(spark, source.table or "")
    lines = read_commits(spark, table, since, version)
    if lines is None:
        return Untold(f"the log no longer has all commits between versions {since} and {version}")
    schema = schema_at(spark, table.location, version) if table.is_mapped else None
    time = LoggedTime(
        time=source.time,
        name=physical_name(schema, name) if table.is_mapped else name,
        is_partition=name in table.partitions,
    )
    asked = Question(
        source=source,
        table=table,
        time=time,
        since=since,
        version=version,
        slices=slices,
        within=within,
        schema=schema,
    )
    return asked, lines


class _Logged(NamedTuple):
    """What the log says: its lines, the files that changed, these as far as they are named, and whether that is all."""

    lines: DataFrame
    files: DataFrame
    known: Sequence[ChangedFile]
    is_all: bool


def has_replaced(asked: Question, rows: Sequence[Row]) -> bool:
    """Whether a column that is used has given its name to another one, by the rows of changed files."""
    schemas = [text for row in rows if row["path"] is None for text in row["schemas"]]
    if asked.schema is None or not schemas:
        return False
    used = asked.source.used()
    if not is_replaced(used, asked.schema, schemas):
        return False
    # A column that is only new has no rows with another value.
    return {each.lower() for each in asked.source.at(asked.since).columns} >= used


def _told(asked: Question, logged: _Logged) -> Changes:
    if not logged.known:
        return _nothing(asked, logged.lines)
    found = unless_said(GONE, lambda: _read(asked, logged))
    return found or _by_statistics(asked, logged.files, "some of these files are gone")


def _read(asked: Question, logged: _Logged) -> Changes:
    """What differs by the files, or by what stands for them."""
    if not logged.is_all:
        return _of_very_many(asked, logged.files)
    if all(file.is_added for file in logged.known):
        return _of_added(asked, logged.known)
    return _fed(asked, logged) or _of_both(asked, logged)


def _nothing(asked: Question, lines: DataFrame) -> Changes:
    changing = lines.where(F.coalesce("add.dataChange", "remove.dataChange"))
    if changing.isEmpty():
        return Changes(
            spans=(), way=Way.UNCHANGED, why=f"no commit {asked.between} changed a row", late_rows=0, fewer_rows=0
        )
    why = f"by the log, no file that changed {asked.between} has rows of the time in question"
    return Changes(spans=(), way=Way.LOG, why=why, late_rows=0, fewer_rows=0)


def _of_added(asked: Question, files: Sequence[ChangedFile]) -> Changes:
    """What differs where rows only came: the slices that these are in."""
    slices = [(file, _only_slice(asked, file)) for file in files]
    told = [(file.rows, only) for file, only in slices if only is not None]
    opened = [file for file, only in slices if only is None]
    rows = sides(asked, opened, is_hashed=False)
    found = difference(rows, asked.slices) if rows else Difference()
    found = Difference(
        spans=joined([*found.spans, *(only for _, only in told)]),
        more_rows=found.more_rows + sum(count for count, _ in told),
        is_exact=found.is_exact,
    )
    why = f"the times in the files that the log {asked.between} added were read"
    return _answer(
        asked, Way.LOG, why if opened else f"the log {asked.between} says when its rows happened", found, opened
    )


def _only_slice(asked: Question, file: ChangedFile) -> Interval | None:
    """The slice that all rows of a file are in, if the log says that, and that the file has rows that count."""
    if asked.source.where is not None or asked.time.slack or file.has_vector or file.times is None or not file.rows:
        return None
    if not any(each.start <= file.times.start and file.times.end <= each.end for each in asked.within):
        return None
    first = in_whole_slices(asked.slices, [Interval(file.times.start, file.times.start + 1)])[0]
    return first if file.times.end <= first.end else None


def _of_both(asked: Question, logged: _Logged) -> Changes:
    found = difference(sides(asked, logged.known, is_hashed=True), asked.slices)
    why = f"the rows of the files that the log {asked.between} added and removed were compared"
    return _answer(asked, Way.LOG, why, found, logged.known)


def _of_very_many(asked: Question, files: DataFrame) -> Changes:
    is_left_out = F.when(F.col("net") > 0, ~F.col("is_there")).otherwise(~F.col("was_there"))
    if not files.where(F.isnotnull("path") & is_left_out).isEmpty():
        return _by_statistics(asked, files, "there are very many")
    found = difference(sides_at_the_ends(asked, files.where(F.isnotnull("path"))), asked.slices)
    total = files.agg(F.count("path"), F.sum("size")).collect()[0]
    why = f"the rows of the {total[0]:,} files that the log {asked.between} added and removed were compared"
    return Changes(
        spans=meeting(found.spans, asked.within),
        way=Way.LOG,
        why=_said(why, found),
        late_rows=found.more_rows,
        fewer_rows=found.fewer_rows,
        files=total[0],
        bytes=total[1],
    )


def _fed(asked: Question, logged: _Logged) -> Changes | None:
    """What differs by the change data feed, if there is one that is shorter than the files."""
    if asked.table.properties.get("delta.enableChangeDataFeed", "").lower() != "true":
        return None
    bytes_ = feed_bytes(logged.lines)
    if bytes_ is None or bytes_ >= sum(file.bytes or 0 for file in logged.known):
        return None
    found = unless_said(_NOT_FED, lambda: difference(fed_sides(asked), asked.slices))
    if found is None:
        return None
    return Changes(
        spans=meeting(found.spans, asked.within),
        way=Way.FEED,
        why=_said(f"the change data feed {asked.between} was read", found),
        late_rows=found.more_rows,
        fewer_rows=found.fewer_rows,
        files=None,
        bytes=bytes_,
    )


def _answer(asked: Question, way: Way, why: str, found: Difference, opened: Sequence[ChangedFile]) -> Changes:
    sizes = [file.bytes for file in opened]
    return Changes(
        spans=meeting(found.spans, asked.within),
        way=way,
        why=_said(why, found),
        late_rows=found.more_rows,
        fewer_rows=found.fewer_rows,
        files=len(opened),
        bytes=None if None in sizes else sum(each or 0 for each in sizes),
    )


def _said(why: str, found: Difference) -> str:
    return why if found.is_exact else f"{why}, and of more than {MOST_SLICES:,} slices neighbours were joined"


def _by_statistics(asked: Question, files: DataFrame, reason: str) -> Changes:
    """Wherever a file that changed may have rows, by the log; of removed files where these were added."""
    times = _known_times(asked, files)
    is_known = times is not None
    spans = asked.within if times is None else meeting(in_whole_slices(asked.slices, times), asked.within)
    which = (
        "all the time of the files that changed" if is_known else "everything, as files changed whose time is unknown,"
    )
    return Changes(
        spans=tuple(spans), way=Way.STATISTICS, why=f"{which} {asked.between}: {reason}", files=None, bytes=None
    )


def _known_times(asked: Question, files: DataFrame) -> Sequence[Interval] | None:
    """When the rows of files happened at most, by days; None: of one nobody knows."""
    known = files.where(F.isnotnull("path")).select("path", "_first", "_last")
    unknown = known.where(F.isnull("_first"))
    if not unknown.isEmpty():
        try:
            before = times_at(
                asked.source.frame.sparkSession, asked.table.location, asked.since, asked.source.time, asked.time.name
            )
        except AnalysisException:
            return None
        found = unknown.select("path").join(before, "path", "left")
        known = known.where(F.isnotnull("_first")).unionByName(found)
    day = F.call_function("div", F.col("_first"), F.lit(86_400_000_000))
    rows = (
        known.groupBy(day).agg(F.min("_first").alias("_first"), F.max("_last").alias("_last")).limit(100_001).collect()
    )
    times = [seconds(row, asked.time.slack) for row in rows]
    if len(times) > 100_000:
        return None
    given = [each for each in times if each is not None]
    return given if len(given) == len(times) else None
