"""What the log of a Delta table says of its files: how many rows, and of which times; none of them is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StructField, StructType

from stairwise.declared import TimeUnit
from stairwise.zones import DAY_SECONDS
from stairwise_spark.errors import unless_refused
from stairwise_spark.event_time import MICROS, EventTime
from stairwise_spark.names import quoted, without_wildcards
from stairwise_spark.session import sql

_MOST_DAYS = 20_000
# No event is so far away that its microseconds are no BIGINT.
_MOST_OF: Mapping[TimeUnit | None, int] = {
    TimeUnit.SECONDS: (2**63 - 1) // MICROS,
    TimeUnit.MILLISECONDS: (2**63 - 1) // 1_000,
}
_ACTIONS = (
    "add struct<path: string, stats: string, deletionVector: struct<cardinality: bigint>>, remove struct<path: string>"
)
_CHECKSUM = (
    "tableSizeBytes bigint, numFiles bigint, "
    "metadata struct<id: string, partitionColumns: array<string>, configuration: map<string, string>>, "
    "protocol struct<minWriterVersion: int, readerFeatures: array<string>, writerFeatures: array<string>>"
)
# Protocols of this version list their features; of those before, each has these and those of the ones before it.
_LISTING_WRITER = 7
_OLDER_FEATURES = ((), ("appendOnly", "invariants"), ("checkConstraints",), ("changeDataFeed", "generatedColumns"))
_SCHEMA = "metaData struct<schemaString: string>"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\.\d{10}\.\d{10})?\.parquet$")
_ROWS, _FIRST, _LAST = "_rows", "_first", "_last"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Busy:
    """The rows of one day, or of the files that begin on it.

    Attributes:
        first: The earliest of their times, in microseconds.
        last: The latest.
        rows: How many there are.
    """

    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """What a log says of a table.

    Attributes:
        bytes: How large its files are.
        days: When its rows happened, by the days on which files begin; None if that is not said of each file: somebody
            wrote no statistics, the time is a column without, or the log is kept in a way that is not read here.
    """

    bytes: int
    days: tuple[Busy, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A Delta table as it is now.

    Attributes:
        identity: Its own; a table that comes in its place has another.
        location: Its folder.
        partitions: The columns by whose values its files are sorted.
        properties: What was set for it.
        features: Of the protocol.
        bytes: How large its files are.
        files: How many there are; None: nobody says.
    """

    identity: str
    location: str
    partitions: tuple[str, ...]
    properties: Mapping[str, str]
    features: frozenset[str]
    bytes: int = 0
    files: int | None = None

    @property
    def is_mapped(self) -> bool:
        """Whether its files call columns by other names."""
        return self.properties.get("delta.columnMapping.mode", "none") != "none"


def summed_up(spark: SparkSession, folder: str, version: int) -> Described | None:
    """A Delta table at a version, as whoever wrote that has summed it up beside the commit; None: it does not say.

    To read that file costs a tenth of a look at the table, which has Delta Lake work out all of its state.

    Args:
        spark: The session.
        folder: Of the table.
        version: Of it.
    """
    file = f"{without_wildcards(folder)}/_delta_log/{version:020d}.crc"
    columns = "tableSizeBytes", "numFiles", "metadata.*", "protocol.*"
    said = unless_refused(lambda: spark.read.schema(_CHECKSUM).json(file).select(*columns).collect())
    if not said or None in (said[0]["tableSizeBytes"], said[0]["id"], said[0]["minWriterVersion"]):
        return None
    row = said[0]
    features = _features(row)
    if features is None:
        return None
    return Described(
        identity=row["id"],
        location=folder,
        partitions=tuple(row["partitionColumns"] or ()),
        properties=row["configuration"] or {},
        features=features,
        bytes=row["tableSizeBytes"],
        files=row["numFiles"],
    )


def _features(protocol: Row) -> frozenset[str] | None:
    """What a protocol lists; of older ones that list none, what they have; None: they may have more."""
    writer = protocol["minWriterVersion"]
    if writer == _LISTING_WRITER:
        return frozenset((*(protocol["readerFeatures"] or ()), *(protocol["writerFeatures"] or ())))
    return frozenset(chain(*_OLDER_FEATURES[:writer])) if writer <= len(_OLDER_FEATURES) else None


def described(spark: SparkSession, table: str) -> Described:
    """A Delta table as it is now; no Spark job of ours, but Delta Lake works out its state."""
    detail = sql(spark, f"DESCRIBE DETAIL {table}").collect()[0]
    return Described(
        identity=detail["id"],
        location=detail["location"],
        partitions=tuple(detail["partitionColumns"]),
        properties=detail["properties"],
        features=frozenset(detail["tableFeatures"]),
        bytes=int(detail["sizeInBytes"]),
        files=int(detail["numFiles"]),
    )


def busy_days(bounds: DataFrame) -> tuple[Busy, ...]:
    """When things happened, in order, by day; if there are very many days, those with the most rows.

    Args:
        bounds: For each thing `_first` and `_last` in microseconds, and how many rows it stands for, `_rows`.
    """
    return _busy(_by_day(bounds))


def read_log(spark: SparkSession, table: Described, version: int, time: EventTime) -> Logged:
    """What the log of a table says, of its files at a version."""
    log = without_wildcards(table.location) + "/_delta_log"
    try:
        found = _by_day(_bounds(_live(_actions(spark, log, version)), time))
    except AnalysisException:
        found = []
    is_known = all(row["day"] is not None or not row[_ROWS] for row in found)
    is_whole = sum(row["things"] for row in found) == table.files
    return Logged(bytes=table.bytes, days=_busy(found) if is_known and is_whole else None)


def _in_reach(value: Column, time: EventTime) -> Column:
    """The nearest value of the time's column whose microseconds are a BIGINT; NULL is none."""
    most = _MOST_OF.get(time.unit)
    if most is None:
        return value
    nearest = F.greatest(F.lit(-most), F.least(F.lit(most), value.cast("bigint")))
    return F.when(value.isNotNull(), nearest)  # the least of a number and NULL would be the number


def _by_day(bounds: DataFrame) -> list[Row]:
    """What there is on each day, and on none if that is not known."""
    first = F.col(_FIRST)
    day = first - F.pmod(first, F.lit(DAY_SECONDS * MICROS))
    days = bounds.groupBy(day.alias("day")).agg(
        F.min(_FIRST).alias(_FIRST),
        F.max(_LAST).alias(_LAST),
        F.sum(_ROWS).alias(_ROWS),
        F.count(F.lit(1)).alias("things"),
    )
    return days.orderBy(F.desc(_ROWS), "day").limit(_MOST_DAYS).collect()


def _busy(rows: Iterable[Row]) -> tuple[Busy, ...]:
    return tuple(
        sorted(Busy(first=row[_FIRST], last=row[_LAST], rows=row[_ROWS]) for row in rows if row["day"] is not None)
    )


def _actions(spark: SparkSession, log: str, version: int, schema: str = _ACTIONS) -> DataFrame:
    """What the log says, with the version: the last checkpoint, and the commits behind it."""
    named = spark.read.format("binaryFile").option("pathGlobFilter", "*.checkpoint*.parquet").load(log).inputFiles()
    checkpoints = [(int(found[1]), found[0]) for path in named if (found := _CHECKPOINT.search(path))]
    last = max((each for each, _ in checkpoints if each <= version), default=-1)
    name = F.col("_metadata.file_name")
    commits = spark.read.schema(schema).option("pathGlobFilter", "[0-9]*.json").json(log)
    commits = commits.where((name > f"{last:020d}.json") & (name <= f"{version:020d}.json"))
    actions = commits.select("*", F.substring(name, 1, 20).cast("bigint").alias("version"))
    files = [f"{log}/{name}" for each, name in checkpoints if each == last]
    if not files:
        return actions
    folded = spark.read.schema(schema).parquet(*files)
    return actions.unionByName(folded.select("*", F.lit(last).cast("bigint").alias("version")))


def _live(actions: DataFrame) -> DataFrame:
    """The files that are there, each as it was added last; of one commit, what is added counts."""
    added = F.col("add").isNotNull()
    of_files = actions.where(added | F.col("remove").isNotNull())
    order = F.struct("version", added)
    files = of_files.groupBy(F.coalesce("add.path", "remove.path").alias("path")).agg(
        F.max_by("add", order).alias("add")
    )
    return files.where(F.col("add").isNotNull())


def times_at(spark: SparkSession, location: str, version: int, time: EventTime, name: str | None) -> DataFrame:
    """The `path` of each file that was there at a version, and the `_first` and the `_last` of its times.

    Raises:
        AnalysisException: The log does not reach back so far.
    """
    log = without_wildcards(location) + "/_delta_log"
    files = _live(_actions(spark, log, version)).select(
        "path", F.col("add.stats").alias("stats"), F.col("add.deletionVector.cardinality").alias("deleted")
    )
    return with_bounds(files, time, name).select("path", _FIRST, _LAST)


def schema_at(spark: SparkSession, location: str, version: int) -> str | None:
    """The schema of a table as its log writes it, with the names that columns have in files; None: it is not found."""
    log = without_wildcards(location) + "/_delta_log"
    try:
        known = _actions(spark, log, version, _SCHEMA).where(F.isnotnull("metaData.schemaString"))
    except AnalysisException:
        return None
    found = known.agg(F.max_by("metaData.schemaString", "version")).collect()
    return None if found[0][0] is None else str(found[0][0])


def _bounds(files: DataFrame, time: EventTime) -> DataFrame:
    """For each file its rows with a time, and the first and the last of those times; NULL if the log has none."""
    given = files.select(F.col("add.stats").alias("stats"), F.col("add.deletionVector.cardinality").alias("deleted"))
    return with_bounds(given, time).select(_ROWS, _FIRST, _LAST)


def with_bounds(files: DataFrame, time: EventTime, name: str | None = None) -> DataFrame:
    """The files with how many `_rows` with a time each has, or 1, and the `_first` and the `_last` of those times.

    The times are in microseconds, cut to milliseconds, and NULL if the log has none; so is `_rows` then.

    Args:
        files: With the texts of their `stats`, and how many rows are `deleted`.
        time: Of the source.
        name: What the statistics call its column, if not as the source does.
    """
    theirs = time.name if name is None else name

    def of_time(kind: DataType) -> StructType:
        return StructType([StructField(theirs, kind)])

    schema = StructType(
        [
            StructField("numRecords", LongType()),
            StructField("minValues", of_time(time.type)),
            StructField("maxValues", of_time(time.type)),
            StructField("nullCount", of_time(LongType())),
        ]
    )
    column = quoted(theirs)
    read = files.withColumn("_stats", F.from_json("stats", schema))
    rows = F.col("_stats.numRecords") - F.coalesce(f"_stats.nullCount.{column}", F.lit(0))
    known = read.withColumns(
        {
            _ROWS: F.coalesce(rows - F.coalesce("deleted", F.lit(0)), F.lit(1)),
            "_low": F.col(f"_stats.minValues.{column}"),
            "_high": F.col(f"_stats.maxValues.{column}"),
        }
    ).drop("_stats")
    limits = {each: _in_reach(F.col(each), time) for each in ("_low", "_high")}
    bounds = {bound: replace(time, name=of).micros for bound, of in ((_FIRST, "_low"), (_LAST, "_high"))}
    found = known.withColumns(limits).withColumns(bounds).drop("_low", "_high")
    return found.withColumn(_FIRST, F.when(F.col(_LAST).isNotNull(), F.col(_FIRST)))
