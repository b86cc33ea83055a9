"""What differs between two lists of the files of a source, in slices of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.changed import Changes, Way
from stairwise_spark.differences import MOST_SLICES, difference, signed
from stairwise_spark.errors import translating
from stairwise_spark.event_time import MICROS
from stairwise_spark.listing import File, Group, Listing, Part, Stamp, ordered
from stairwise_spark.names import without_wildcards
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import in_whole_slices, meeting

# So many files are named; of more, those are looked into that were written as late.
_MOST_NAMED = 500
_MILLIS = 1_000


def listing_of(source: PinnedSource, before: Listing | None = None) -> Listing:
    """The files of a source as they are now, and when their events happened; only files that are new are opened.

    Args:
        source: One of files.
        before: An earlier list, from which the times are known.

    Raises:
        RunError: Spark cannot look.
    """
    with translating():
        kept, _, new = (before or Listing()).split(_stamps(source))
        times = _times(source, new)
    return ordered([*kept, *(File(each, times.get(each.path)) for each in new)])


def file_changes(
    source: PinnedSource, before: Listing, now: Listing, slices: EdgeSet, within: Sequence[Interval]
) -> Changes:
    """What differs between two lists of the files of a source.

    Args:
        source: As it is now.
        before: What is known.
        now: What :func:`listing_of` gives.
        slices: The edges of the finest slices.
        within: The event time in question.

    Raises:
        RunError: Spark cannot look.
    """
    known, present = set(before.parts), set(now.parts)
    gone = [part for part in before.parts if part not in present]
    new = [part for part in now.parts if part not in known]
    if not gone and not new:
        return Changes(spans=(), way=Way.UNCHANGED, why="the same files are there", late_rows=0, fewer_rows=0)
    if gone:
        times = [part.times for part in (*gone, *new) if part.times is not None]
        return Changes(
            spans=meeting(in_whole_slices(slices, times), within),
            way=Way.LISTING,
            why=f"{_counted(gone)} removed or written again, so all the time of these and of those that came",
        )
    late = [part for part in new if part.times is not None and meeting([part.times], within)]
    if any(isinstance(part, Group) for part in late):
        times = [part.times for part in late if part.times is not None]
        return Changes(
            spans=meeting(in_whole_slices(slices, times), within),
            way=Way.LISTING,
            why=f"{_counted(new)} added, more than are named one by one, so all the time of these",
        )
    if not late:
        why = f"{_counted(new)} added, without rows of the time in question"
        return Changes(spans=(), way=Way.LISTING, why=why, late_rows=0, fewer_rows=0)
    with translating():
        rows = source.rows_of(_picked(source.frame, [part.stamp for part in late if isinstance(part, File)]), within)
        found = difference([signed(rows, 1, is_hashed=False)], slices)
    why = f"{_counted(new)} added, and the times in them were read"
    if not found.is_exact:
        why += f"; of more than {MOST_SLICES:,} slices neighbours were joined"
    return Changes(
        spans=meeting(found.spans, within),
        way=Way.LISTING,
        why=why,
        late_rows=found.more_rows,
        fewer_rows=found.fewer_rows,
        files=len(late),
        bytes=sum(part.stamp.size for part in late if isinstance(part, File)),
    )


def _counted(parts: Sequence[Part]) -> str:
    count = sum(part.count if isinstance(part, Group) else 1 for part in parts)
    return "1 file was" if count == 1 else f"{count:,} files were"


def _stamps(source: PinnedSource) -> list[Stamp]:
    """The files that are there; their contents are not read."""
    paths = [without_wildcards(unquote(file)) for file in source.frame.inputFiles()]
    if not paths:
        return []
    listed = source.frame.sparkSession.read.format("binaryFile").load(paths)
    modified = F.unix_millis("modificationTime").alias("modified")
    path = F.col("_metadata.file_path").alias("path")
    return [
        Stamp(row["modified"], row["path"], row["length"]) for row in listed.select(modified, path, "length").collect()
    ]


def _times(source: PinnedSource, files: Sequence[Stamp]) -> Mapping[str, Interval]:
    """When the events of files happened."""
    if not files:
        return {}
    frame = _picked(source.frame, files)
    time = source.time.micros
    path = F.col("_metadata.file_path").alias("path")
    ends = frame.groupBy(path).agg(F.min(time).alias("first"), F.max(time).alias("last"))
    return {
        row["path"]: Interval(row["first"] // MICROS, row["last"] // MICROS + 1)
        for row in ends.where(F.isnotnull("first")).collect()
    }


def _picked(frame: DataFrame, files: Sequence[Stamp]) -> DataFrame:
    """The rows of files, by a filter that keeps Spark from opening most others."""
    modified = F.col("_metadata.file_modification_time")
    first, last = (datetime.fromtimestamp(each.modified / _MILLIS, tz=UTC) for each in (min(files), max(files)))
    rows = frame.where((modified >= F.lit(first)) & (modified <= F.lit(last)))
    paths = [each.path for each in files]
    path = F.col("_metadata.file_path")
    if len(paths) <= _MOST_NAMED:
        return rows.where(path.isin(paths))
    wanted = frame.sparkSession.createDataFrame([(each,) for each in paths], "_wanted string")
    return rows.join(F.broadcast(wanted), path == F.col("_wanted"), "left_semi")
