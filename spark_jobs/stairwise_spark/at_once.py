"""What differs between each of many versions of a Delta table and the newest one, by one look at its log.

Slices are compared by sums over their rows, and sums add up: what changed since a version is what changed until the
next one that somebody asks about, and what changed since that one. So the log is read once, and each file that came or
went in between is opened once; the answers are those to questions one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from pyspark.sql import Row
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise_spark.changed import Changes, Way
from stairwise_spark.commits import ChangedFile, changed_files, file_of
from stairwise_spark.delta_changes import GONE, MOST_FILES, Untold, open_log
from stairwise_spark.delta_rows import Question, sides
from stairwise_spark.differences import MOST_SLICES, Difference, differences
from stairwise_spark.errors import translating, unless_said
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, common, in_whole_slices, joined

# So many versions are compared one by one, and no more by one look: each may add a scan to its query.
_FEW = 2
_MOST = 200
_STEP = "_step"


def changes_at_once(
    source: PinnedSource,
    slices: EdgeSet,
    within: Mapping[int, Spans],
    most_files: int = MOST_FILES,
    most_slices: int = MOST_SLICES,
    most_versions: int = _MOST,
) -> dict[int, Changes]:
    """What differs between versions of the source and the pinned one, of those that are told by one look.

    One look tells of no version whose time in question ends within a slice, and of none where the log has gaps, says
    something of the schema, or names too many files, or such that are gone. A few versions are not worth it.

    Args:
        source: As it is now.
        slices: The edges of the finest slices.
        within: The event time in question, for each version that is known.
        most_files: So many files are named.
        most_slices: So many slices are told apart.
        most_versions: So many versions are told by one look.

    Raises:
        RunError: Spark cannot look.
    """
    if source.version is None:
        return {}
    whole = [since for since in sorted(within) if in_whole_slices(slices, within[since]) == within[since]]
    found: dict[int, Changes] = {}
    with translating():
        for first in range(0, len(whole) if len(whole) > _FEW else 0, most_versions):
            part = {since: within[since] for since in whole[first : first + most_versions]}
            found |= _looked(source, source.version, slices, part, most_files, most_slices) or {}
    return found


def _looked(
    source: PinnedSource, version: int, slices: EdgeSet, within: Mapping[int, Spans], most_files: int, most_slices: int
) -> dict[int, Changes] | None:
    everything = joined(span for spans in within.values() for span in spans)
    opened = open_log(source, min(within), version, slices, everything)
    if isinstance(opened, Untold) or max(within) >= version:
        return None
    asked, lines = opened
    last_known = F.array_max(F.filter(F.lit([*within]), lambda each: each < F.col("version")))
    files = changed_files(lines.withColumn(_STEP, last_known), asked.time, everything, _STEP)
    rows = files.limit(most_files + 1).collect()
    if len(rows) > most_files or any(row["path"] is None for row in rows):
        return None
    return unless_said(GONE, lambda: _told(asked, within, _by_step(asked, within, rows), most_slices))


def _by_step(asked: Question, within: Mapping[int, Spans], rows: Sequence[Row]) -> dict[int, list[ChangedFile]]:
    """The files that came or went after each version, until the next one; without those that no version asks for."""
    ends = dict(pairwise([*within, asked.version]))
    reached = dict(zip(within, accumulate(within.values(), lambda one, other: joined((*one, *other))), strict=True))
    found: dict[int, list[ChangedFile]] = {since: [] for since in within}
    for row in rows:
        since = row[_STEP]
        file = file_of(row, since, ends[since], asked.time.slack)
        if file.times is None or common(reached[since], [file.times]):
            found[since].append(file)
    return found


def _told(
    asked: Question, within: Mapping[int, Spans], files: Mapping[int, Sequence[ChangedFile]], most: int
) -> dict[int, Changes] | None:
    opened = [file for each in files.values() for file in each]
    is_hashed = not all(file.is_added for file in opened)
    frames = [
        side.withColumn(_STEP, F.lit(since))
        for since, each in files.items()
        for side in sides(asked, each, is_hashed=is_hashed)
    ]
    found = differences(frames, _STEP, asked.slices, within, most) if frames else dict.fromkeys(within, Difference())
    if found is None:
        return None
    sizes = [file.bytes for file in opened]
    why = f"the rows of the files that the log {asked.between} added and removed were compared"
    answers = {
        since: Changes(
            spans=found[since].spans,
            way=Way.LOG,
            why=f"{why}, for {len(within)} versions at once",
            late_rows=found[since].more_rows,
            fewer_rows=found[since].fewer_rows,
        )
        for since in within
    }
    # The oldest version needs all that was opened, and is said to.
    bytes_ = None if None in sizes else sum(each or 0 for each in sizes)
    return answers | {asked.since: replace(answers[asked.since], files=len(sizes), bytes=bytes_)}
