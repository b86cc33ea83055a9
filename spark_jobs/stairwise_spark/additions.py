"""What was only added to a Delta table since a version, apart from what was dropped or corrected meanwhile.

Of time of which the source has dropped rows, windows cannot be made again: but rows that came since can still be merged
into what is stored of them. So the commits of the log are told apart. Those that brought rows and did nothing else are
additions. All the others are looked at together, row by row: where they only took rows from the time of which the
source drops them, that is expiry, and changed nothing; wherever else they made a difference, something was corrected,
and nobody can tell any more what the window would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.changed import Changes, Way
from stairwise_spark.commits import ChangedFile, changed_files, file_of, seconds, told_apart
from stairwise_spark.delta_changes import GONE, MOST_FILES, Untold, has_replaced, open_log
from stairwise_spark.delta_log import times_at
from stairwise_spark.delta_rows import Question, rows_of_files, sides
from stairwise_spark.differences import MOST_SLICES
from stairwise_spark.errors import translating, unless_said
from stairwise_spark.event_time import MICROS
from stairwise_spark.grid import in_slices, micros
from stairwise_spark.halves import rows_of_all
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, common, is_met, joined

_SIDE, _NET, _ROWS, _IS_WRONG = "_sign", "_net", "_rows", "_is_wrong"


class Touch(NamedTuple):
    """A slice that rows came to: how many, and whether anything else was done to it than to add them."""

    span: Interval
    rows: int
    is_corrected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What was added between two versions.

    Attributes:
        asked: The versions, and the time in question.
        files: Those that were added, and hold rows of that time.
        touches: The slices that rows came to, or that were corrected, in order; of very many, neighbours are one.
        changes: The same as an answer to what changed.
    """

    asked: Question
    files: tuple[ChangedFile, ...]
    touches: tuple[Touch, ...]
    changes: Changes

    @property
    def spans(self) -> Spans:
        """When the rows happened that came."""
        return joined(each.span for each in self.touches)

    @property
    def corrected(self) -> Spans:
        """Where more was done than to add rows."""
        return joined(each.span for each in self.touches if each.is_corrected)

    def count(self, spans: Sequence[Interval]) -> int:
        """How many rows came to some ranges, of which none ends within a slice."""
        return sum(each.rows for each in self.touches if is_met(each.span, spans))

    def rows(self, spans: Sequence[Interval]) -> DataFrame:
        """The rows that were added, those of some ranges, as the source gives them."""
        asked = replace(self.asked, within=common(self.asked.within, spans))
        return rows_of_all(rows_of_files(asked, self.files))


def additions(
    source: PinnedSource,
    since: int,
    slices: EdgeSet,
    within: Sequence[Interval],
    kept_since: int,
    most_slices: int = MOST_SLICES,
) -> Additions | None:
    """What was added between a version of the source and the pinned one; None: there is no log that tells it.

    Args:
        source: As it is now.
        since: The version that is known.
        slices: The edges of the finest slices.
        within: The event time in question.
        kept_since: The event time from which on the source has all of its rows still, an edge.
        most_slices: So many slices are told apart.

    Raises:
        RunError: Spark cannot look.
    """
    if source.version is None or not within:
        return None
    with translating():
        opened = open_log(source, since, source.version, slices, within)
        if isinstance(opened, Untold):
            return None
        asked, lines = opened
        rows = changed_files(told_apart(lines), asked.time, within, "is_append").limit(MOST_FILES + 1).collect()
        if len(rows) > MOST_FILES or has_replaced(asked, rows):
            return None
        return unless_said(GONE, lambda: _told(asked, rows, kept_since, most_slices))


def _told(asked: Question, rows: Sequence[Row], kept_since: int, most_slices: int) -> Additions:
    known = [(_file(asked, row), row["is_append"]) for row in rows if row["path"] is not None]
    added = [file for file, is_append in known if is_append]
    others = _not_expired(asked, [file for file, is_append in known if not is_append], added, kept_since)
    touches = _touches(asked, added, others, kept_since, most_slices)
    sizes = [file.bytes for file in (*added, *others)]
    dropped = [each for each in touches if each.span.start < kept_since]
    changes = Changes(
        spans=joined(each.span for each in dropped),
        way=Way.LOG,
        why=f"what the log {asked.between} only added where the source has dropped rows was told from all else",
        late_rows=sum(each.rows for each in dropped),
        files=len(sizes),
        bytes=None if None in sizes else sum(each or 0 for each in sizes),
    )
    return Additions(asked=asked, files=tuple(added), touches=touches, changes=changes)


def _file(asked: Question, row: Row) -> ChangedFile:
    """A file at a version at which it was there: since then, others may have removed it, or moved its rows."""
    file = file_of(row, asked.since, asked.version, asked.time.slack)
    return replace(file, version=row["added_in"] if file.is_added else row["removed_in"] - 1)


def _not_expired(
    asked: Question, files: Sequence[ChangedFile], added: Sequence[ChangedFile], kept_since: int
) -> Sequence[ChangedFile]:
    """Without files that went and held nothing that is kept: these need not be opened, nor be there any more.

    But if others came for that time, all have to be compared: files may be written anew for the sake of a few rows.
    """
    if any(file.is_added and (file.times is None or file.times.start < kept_since) for file in files):
        return files
    timed = _timed(asked, files, added)
    return [file for file in timed if file.is_added or file.times is None or file.times.end > kept_since]


def _timed(asked: Question, files: Sequence[ChangedFile], added: Sequence[ChangedFile]) -> Sequence[ChangedFile]:
    """The files with their times, also those of which only what added them says when their rows happened."""
    known = {file.path: file.times for file in added}
    unknown = [file.path for file in files if file.times is None and known.get(file.path) is None]
    if unknown:
        spark, time = asked.source.frame.sparkSession, asked.time
        wanted = F.broadcast(spark.createDataFrame([(each,) for each in unknown], "path string"))
        try:
            before = times_at(spark, asked.table.location, asked.since, time.time, time.name)
            known |= {row["path"]: seconds(row, time.slack) for row in before.join(wanted, "path").collect()}
        except AnalysisException:
            return files  # the log does not reach back so far
    return [replace(file, times=file.times or known.get(file.path)) for file in files]


def _touches(
    asked: Question, added: Sequence[ChangedFile], others: Sequence[ChangedFile], kept_since: int, most: int
) -> tuple[Touch, ...]:
    parts = [
        *([_came(asked, added)] if added else ()),
        *([_corrected(asked, others, kept_since)] if others else ()),
    ]
    if not parts:
        return ()
    sums = F.sum(_ROWS).alias(_ROWS), F.bool_or(_IS_WRONG).alias(_IS_WRONG)
    found = rows_of_all(parts).groupBy("_begin", "_end").agg(*sums).persist()
    try:
        few = found.limit(most + 1).collect()
        if len(few) > most:
            ends = found.agg(F.min("_begin"), F.max("_end")).collect()[0]
            length = -(-(ends[1] - ends[0]) // most)
            stretch = F.call_function("div", F.col("_begin") - F.lit(ends[0]), F.lit(length))
            bounds = F.min("_begin").alias("_begin"), F.max("_end").alias("_end")
            few = found.groupBy(stretch).agg(*bounds, *sums).collect()
    finally:
        found.unpersist()
    return tuple(
        sorted(
            Touch(Interval(row["_begin"] // MICROS, row["_end"] // MICROS), row[_ROWS], row[_IS_WRONG]) for row in few
        )
    )


def _came(asked: Question, files: Sequence[ChangedFile]) -> DataFrame:
    """The slices that hold rows of files that were added, and how many."""
    rows = rows_of_all(sides(asked, files, is_hashed=False))
    found = in_slices(rows, asked.slices, F.col("_time")).groupBy("_begin", "_end").agg(F.sum(_SIDE).alias(_ROWS))
    return found.withColumn(_IS_WRONG, F.lit(False))  # noqa: FBT003 - a literal


def _corrected(asked: Question, files: Sequence[ChangedFile], kept_since: int) -> DataFrame:
    """The slices in which files that came and went make a difference that is no expiry, and how many rows more."""
    rows = rows_of_all(sides(asked, files, is_hashed=True))
    parts = [name for name in rows.columns if name not in {"_time", _SIDE}]
    each = in_slices(rows, asked.slices, F.col("_time")).groupBy("_begin", "_end", *parts)
    net = F.col(_NET)
    is_wrong = (net > 0) | ((net < 0) & (F.col("_begin") >= micros(kept_since)))
    found = each.agg(F.sum(_SIDE).alias(_NET)).groupBy("_begin", "_end")
    sums = F.greatest(F.lit(0), F.sum(net)).alias(_ROWS), F.bool_or(is_wrong).alias(_IS_WRONG)
    return found.agg(*sums).where(_IS_WRONG)
