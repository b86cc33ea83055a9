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
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from stairwise.windowing import Interval
from stairwise_spark.changed import fewer
from stairwise_spark.delta_log import Described, with_bounds
from stairwise_spark.errors import condition
from stairwise_spark.event_time import MICROS, EventTime
from stairwise_spark.names import without_wildcards

# Up to so many commits are named; of more, the folder is listed.
_MOST_NAMED = 100
_MOST_RANGES = 50
_VERSION = re.compile(r"(\d{20})\.json$")
_PATHS = "path: string, dataChange: boolean, size: bigint, stats: string, partitionValues: map<string, string>"
_VECTOR = "storageType: string, pathOrInlineDv: string, offset: int, cardinality: bigint"
_FILE = f"struct<{_PATHS}, deletionVector: struct<{_VECTOR}>>"
_TABLE = "struct<id: string, schemaString: string, configuration: map<string, string>>"
_LINES = f"add {_FILE}, remove {_FILE}, cdc struct<size: bigint>, metaData {_TABLE}"
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
        times: When its rows happened, in seconds; None: the log does not say.
        bytes: Its size; None: the log does not say.
        partition: The values of the partition columns; None: the log does not say.
    """

    path: str
    is_added: bool
    version: int
    has_vector: bool
    times: Interval | None
    bytes: int | None
    partition: Mapping[str, str | None] | None


def read_commits(spark: SparkSession, table: Described, since: int, version: int) -> DataFrame | None:
    """The lines of the commits after one version and up to another, with the `version` of each; None: some are gone."""
    folder = without_wildcards(table.location) + "/_delta_log"
    wanted = range(since + 1, version + 1)
    reader = spark.read.schema(_LINES)
    name = F.col("_metadata.file_name")
    try:
        if len(wanted) <= _MOST_NAMED:
            lines = reader.json([f"{folder}/{each:020d}.json" for each in wanted])
        else:
            listed = reader.option("pathGlobFilter", "[0-9]" * 20 + ".json").json(folder)
            found = {int(match[1]) for file in listed.inputFiles() if (match := _VERSION.search(file))}
            if not found.issuperset(wanted):
                return None
            lines = listed.where((name >= f"{wanted[0]:020d}.json") & (name <= f"{wanted[-1]:020d}.json"))
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return None
        raise
    return lines.select("*", F.substring(name, 1, 20).cast("bigint").alias("version"))


def changed_files(
    lines: DataFrame, time: EventTime, partitions: Sequence[str], within: Sequence[Interval] | None = None
) -> DataFrame:
    """The files whose rows came or went and may lie within some spans; rows that :func:`file_of` reads."""
    file = F.coalesce("add", "remove")
    vector = file["deletionVector"]
    actions = lines.where(F.isnotnull(file)).select(
        file["path"].alias("path"),
        F.concat_ws("@", vector["storageType"], vector["pathOrInlineDv"], vector["offset"].cast("string")).alias("dv"),
        F.when(F.isnotnull("add"), 1).otherwise(-1).alias("sign"),
        F.coalesce(file["dataChange"], F.lit(True)).alias("changes"),  # noqa: FBT003 - a literal
        *(file[each].alias(each) for each in ("size", "stats", "partitionValues")),
        vector["cardinality"].alias("deleted"),
        "version",
    )
    # Of one commit, what is removed comes before what is added.
    order = F.struct("version", "sign")
    is_added = F.col("sign") > 0
    files = actions.groupBy("path", "dv").agg(
        F.sum(F.when(F.col("changes"), F.col("sign")).otherwise(0)).alias("net"),
        (F.min_by("sign", order) < 0).alias("was_there"),
        (F.max_by("sign", order) > 0).alias("is_there"),
        F.max(F.when(is_added, F.col("version"))).alias("added_in"),
        F.min(F.when(~is_added, F.col("version"))).alias("removed_in"),
        F.max("size").alias("size"),
        F.max("deleted").alias("deleted"),
        *(F.max_by(each, F.struct(F.isnotnull(each), "version")).alias(each) for each in ("stats", "partitionValues")),
    )
    bounded = _with_times(files.where(F.col("net") != 0), time, partitions)
    return bounded.where(_may_be_in(within)) if within is not None else bounded


def _with_times(files: DataFrame, time: EventTime, partitions: Sequence[str]) -> DataFrame:
    """The files with the `_first` and the `_last` of their times in microseconds, NULL where the log has none."""
    if time.name not in partitions:
        return with_bounds(files, time)
    value = files.withColumn("_value", F.col("partitionValues")[time.name].cast(time.type))
    instant = replace(time, name="_value").micros
    return value.withColumns({"_first": instant, "_last": instant}).drop("_value")


def file_of(row: Row, since: int, version: int) -> ChangedFile:
    """The file that a row of :func:`changed_files` is about, where the commits are those between two versions."""
    is_added = row["net"] > 0
    if is_added:
        at = version if row["is_there"] else row["added_in"]
    else:
        at = since if row["was_there"] else row["removed_in"] - 1
    first, last = row["_first"], row["_last"]
    return ChangedFile(
        path=row["path"],
        is_added=is_added,
        version=at,
        has_vector=bool(row["dv"]),
        times=None if first is None else Interval(first // MICROS, (last + _CUT) // MICROS + 1),
        bytes=row["size"],
        partition=row["partitionValues"],
    )


def _may_be_in(spans: Sequence[Interval]) -> Column:
    first, last = F.col("_first"), F.col("_last") + F.lit(_CUT)
    inside = (
        (first < F.lit(each.end * MICROS)) & (last >= F.lit(each.start * MICROS)) for each in fewer(spans, _MOST_RANGES)
    )
    return F.isnull(first) | reduce(lambda left, right: left | right, inside, F.lit(False))  # noqa: FBT003
