"""What the commits of a Delta table between two versions did to its files, all in all; none of the files is opened.

A commit says of each file that it adds or removes whether rows changed by that. What merely moves rows, as OPTIMIZE
does, says no, and counts for nothing here: the rows of all files that were added so, less those of the files that were
removed so, are what changed, even where a file of the first kind was compacted later and is gone. What was added and
removed again counts for nothing either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.delta_log import Described, with_bounds
from stairwise_spark.errors import condition
from stairwise_spark.event_time import MICROS, EventTime
from stairwise_spark.halves import any_of
from stairwise_spark.names import numbered_files, without_wildcards
from stairwise_spark.spans import merged

# Up to so many commits are named; of more, the folder is listed.
_MOST_NAMED = 100
# To open a file as lines of JSON copies all of Hadoop's settings, which takes longer than to read a commit of a few
# files: one that is so small is read as it is, and taken apart after.
_SMALL = 1024**2
_MOST_RANGES = 50
_PATHS = "path: string, dataChange: boolean, size: bigint, stats: string, partitionValues: map<string, string>"
_VECTOR = "storageType: string, pathOrInlineDv: string, offset: int, cardinality: bigint"
_FILE = f"struct<{_PATHS}, deletionVector: struct<{_VECTOR}>>"
_TABLE = "struct<id: string, schemaString: string, configuration: map<string, string>>"
_INFO = "struct<operation: string>"
_LINES = f"add {_FILE}, remove {_FILE}, cdc struct<size: bigint>, metaData {_TABLE}, commitInfo {_INFO}"
_OF_COMMIT = re.compile(r"(\d{20})\.json$")
_VECTOR_OF = "coalesce(add, remove).deletionVector"
_OF_AN_ACTION = (
    "coalesce(add, remove).path AS path",
    f"concat_ws('@', {_VECTOR_OF}.storageType, {_VECTOR_OF}.pathOrInlineDv, string({_VECTOR_OF}.offset)) AS dv",
    "if(add IS NULL, -1, 1) AS sign",
    "coalesce(coalesce(add, remove).dataChange, true) AS changes",
    *(f"coalesce(add, remove).{each} AS {each}" for each in ("size", "stats", "partitionValues")),
    f"{_VECTOR_OF}.cardinality AS deleted",
    "metaData.schemaString AS schema",
)
# Of one commit, what is removed comes before what is added. What removes a file may say less of it than what added it.
_OF_A_FILE = (
    "sum(if(changes, sign, 0)) AS net",
    "min_by(sign, struct(version, sign)) < 0 AS was_there",
    "max_by(sign, struct(version, sign)) > 0 AS is_there",
    "max(if(sign > 0, version, NULL)) AS added_in",
    "min(if(sign > 0, NULL, version)) AS removed_in",
    "max(size) AS size",
    "max(deleted) AS deleted",
    "collect_set(schema) AS schemas",
    """max_by(stats, struct(contains(stats, '"minValues"'), version)) AS stats""",
    "max_by(partitionValues, struct(partitionValues IS NOT NULL, version)) AS partitionValues",
)
# What brings rows that were not there before, if it only adds files; RESTORE brings back old ones.
_BRINGING = ("WRITE", "STREAMING UPDATE", "MERGE", "COPY INTO")
# Statistics cut times to milliseconds.
_CUT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file whose rows came or went, at one state of its deletion vector.

    Attributes:
        path: As the log has it.
        is_added: Whether its rows came; else they went.
        version: One at which the table has it.
        has_vector: Whether some of its rows are deleted.
        times: When its rows happened at most, in seconds; None: the log does not say.
        rows: How many rows have a time, if the log gives times and it has no vector.
        bytes: Its size; None: the log does not say.
        partition: The values of the partition columns; None: the log does not say.
    """

    path: str
    is_added: bool
    version: int
    has_vector: bool
    times: Interval | None
    rows: int
    bytes: int | None
    partition: Mapping[str, str | None] | None


def read_commits(
    spark: SparkSession, table: Described, since: int, version: int, small: int = _SMALL
) -> DataFrame | None:
    """The lines of the commits after one version and up to another, with the `version` of each; None: some are gone.

    Args:
        spark: The session.
        table: Whose commits they are.
        since: The version before the first of them.
        version: That of the last of them.
        small: Files of at most so many bytes are in memory as a whole, in each task one at a time, if there are many.
    """
    folder = without_wildcards(table.location) + "/_delta_log"
    wanted = range(since + 1, version + 1)
    try:
        lines = _named(spark, folder, wanted) if len(wanted) <= _MOST_NAMED else _listed(spark, folder, wanted, small)
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return None
        raise
    return lines


def _version() -> Column:
    """The version of the commit that a line is of."""
    return F.substring(F.col("_metadata.file_name"), 1, 20).cast("bigint").alias("version")


def _named(spark: SparkSession, folder: str, wanted: range) -> DataFrame:
    files = [f"{folder}/{each:020d}.json" for each in wanted]
    return spark.read.schema(_LINES).json(files).select("*", _version())


def _listed(spark: SparkSession, folder: str, wanted: range, small: int) -> DataFrame | None:
    """The lines of very many commits, by a look at the folder that has them; None: it does not have all."""
    names = numbered_files(wanted[0])
    whole = spark.read.format("binaryFile").option("pathGlobFilter", names).load(folder)
    # What is known of a file without a look at it: in a store elsewhere, each look is a question of its own.
    found = {int(match[1]) for file in whole.inputFiles() if (match := _OF_COMMIT.search(file))}
    if not found.issuperset(wanted):
        return None
    is_wanted = F.col("_metadata.file_name").between(f"{wanted[0]:020d}.json", f"{wanted[-1]:020d}.json")
    is_small = F.col("_metadata.file_size") <= small
    text = F.split(F.col("content").cast("string"), "\n")
    parsed = F.transform(F.filter(text, lambda line: line != ""), lambda line: F.from_json(line, _LINES))
    lines = whole.where(is_wanted & is_small).select(_version(), F.inline(parsed))
    if whole.where(is_wanted & ~is_small).isEmpty():
        return lines
    large = spark.read.schema(_LINES).option("pathGlobFilter", names).json(folder).where(is_wanted & ~is_small)
    return lines.unionByName(large.select("*", _version()))


def told_apart(lines: DataFrame) -> DataFrame:
    """The lines, each with `is_append`: whether its commit brought rows, and did nothing else to any."""
    file = F.coalesce("add", "remove")
    is_whole = F.isnotnull("add") & F.isnull("add.deletionVector.storageType")
    commits = lines.groupBy(F.col("version").alias("_of")).agg(
        F.max("commitInfo.operation").isin(*_BRINGING).alias("_brings"),
        F.bool_and(F.when(F.isnotnull(file) & _changes(file), is_whole)).alias("_adds"),
    )
    is_append = F.coalesce(F.col("_brings") & F.col("_adds"), F.lit(False))  # noqa: FBT003 - a literal
    apart = lines.join(F.broadcast(commits), F.col("version") == F.col("_of"))
    return apart.withColumn("is_append", is_append).drop("_of", "_brings", "_adds")


def _changes(file: Column) -> Column:
    """Whether rows changed by what is said of a file."""
    return F.coalesce(file["dataChange"], F.lit(True))  # noqa: FBT003 - a literal


def changed_files(lines: DataFrame, time: LoggedTime, within: Sequence[Interval], *apart: str) -> DataFrame:
    """The files whose rows came or went and may lie within some spans; rows that :func:`file_of` reads.

    The one without a path has all that the commits say of the table's `schemas`.

    Args:
        lines: Of the commits.
        time: Of the events.
        within: The spans.
        apart: Columns of the lines; what they tell apart counts by itself.
    """
    actions = lines.where("add IS NOT NULL OR remove IS NOT NULL OR metaData IS NOT NULL").selectExpr(
        *_OF_AN_ACTION, "version", *apart
    )
    files = actions.groupBy("path", "dv", *apart).agg(*map(F.expr, _OF_A_FILE)).where("net <> 0 OR path IS NULL")
    return time.bounded(files).where(F.expr("path IS NULL") | _may_be_in(within, time.slack))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTime:
    """The time of the events as the log gives it.

    Attributes:
        time: Of the source.
        name: What the files and the log call its column; None: nobody knows.
        is_partition: Whether the files are sorted by it.
    """

    time: EventTime
    name: str | None
    is_partition: bool

    @property
    def slack(self) -> int:
        """So many seconds before and after those of the log there may be events: clocks are set forward and back."""
        return DAY_SECONDS if self.time.is_local and self.time.zone != "UTC" else 0

    def bounded(self, files: DataFrame) -> DataFrame:
        """The files with the `_first` and the `_last` of their times in microseconds, NULL where the log has none."""
        if self.name is None:
            return files.withColumns({each: F.lit(None).cast("bigint") for each in ("_first", "_last", "_rows")})
        if not self.is_partition:
            return with_bounds(files, self.time, self.name)
        # What is empty there is NULL.
        text = F.nullif(F.col("partitionValues")[self.name], F.lit(""))
        value = files.withColumn("_value", text.cast(self.time.type))
        instant = replace(self.time, name="_value").micros
        rows = F.get_json_object("stats", "$.numRecords").cast("bigint")
        return value.withColumns({"_first": instant, "_last": instant, "_rows": rows}).drop("_value")


def feed_bytes(lines: DataFrame) -> int | None:
    """How large what a change data feed reads is; None: it was switched off by one of the commits."""
    file = F.coalesce("add", "remove")
    changed = F.sum(F.when(file["dataChange"], file["size"]))
    is_on = F.lower(F.coalesce(F.col("metaData.configuration")["delta.enableChangeDataFeed"], F.lit(""))) == "true"
    commits = lines.groupBy("version").agg(
        F.coalesce(F.sum("cdc.size"), changed, F.lit(0)).alias("bytes"),
        F.sum(F.when(F.isnotnull("metaData") & ~is_on, 1)).alias("off"),
    )
    total = commits.agg(F.sum("bytes"), F.count("off")).collect()[0]
    return None if total[1] else int(total[0])


def file_of(row: Row, since: int, version: int, slack: int) -> ChangedFile:
    """The file that a row of :func:`changed_files` is about, where the commits are those between two versions."""
    is_added = row["net"] > 0
    if is_added:
        at = version if row["is_there"] else row["added_in"]
    else:
        at = since if row["was_there"] else row["removed_in"] - 1
    return ChangedFile(
        path=row["path"],
        is_added=is_added,
        version=at,
        has_vector=bool(row["dv"]),
        times=seconds(row, slack),
        rows=row["_rows"] or 0,
        bytes=row["size"],
        partition=row["partitionValues"],
    )


def seconds(row: Row, slack: int) -> Interval | None:
    """When the rows of a file happened at most: statistics cut times to milliseconds, which stay in their second."""
    first, last = row["_first"], row["_last"]
    return None if first is None else Interval(first // MICROS - slack, last // MICROS + 1 + slack)


def _may_be_in(spans: Sequence[Interval], slack: int) -> Column:
    first, last = F.col("_first"), F.col("_last")
    inside = (
        (first < F.lit((each.end + slack) * MICROS)) & (last >= F.lit((each.start - slack) * MICROS - _CUT))
        for each in merged(spans, _MOST_RANGES)
    )
    return F.isnull(first) | any_of(inside)
