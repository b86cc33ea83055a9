"""The rows of some files of a Delta table, no others: as they lie there, or as the table has them at a version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.commits import ChangedFile, LoggedTime
from stairwise_spark.delta_log import Described
from stairwise_spark.differences import signed
from stairwise_spark.names import column, without_wildcards
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import common, joined, merged

_MOST_RANGES = 20
# With no other features a file holds what the table does, under the same names.
_PLAIN = frozenset(
    {
        *("appendOnly", "changeDataFeed", "checkConstraints", "clustering", "deletionVectors", "domainMetadata"),
        *("generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "rowTracking", "timestampNtz"),
        *("v2Checkpoint", "vacuumProtocolCheck"),
    }
)

_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*:/*"
_ADDED = ("insert", "update_postimage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: which of the slices within some spans differ between two versions.

    Where files call columns by other names, the `schema` has these.
    """

    source: PinnedSource
    table: Described
    time: LoggedTime
    since: int
    version: int
    slices: EdgeSet
    within: Sequence[Interval]
    schema: str | None = None

    @property
    def between(self) -> str:
        """For a text."""
        return f"between versions {self.since} and {self.version}"


class _Group(NamedTuple):
    """Files that are read together: as they lie there, or as the table has them at a version."""

    sign: int
    version: int | None
    files: list[ChangedFile]


def sides(asked: Question, files: Sequence[ChangedFile], *, is_hashed: bool) -> list[DataFrame]:
    """The rows that came and those that went, for a comparison."""
    return [signed(_rows(asked, group), group.sign, is_hashed=is_hashed) for group in _groups(asked, files)]


def rows_of_files(asked: Question, files: Sequence[ChangedFile]) -> list[DataFrame]:
    """The rows of files within the time in question, as the source gives them."""
    return [_rows(asked, group) for group in _groups(asked, files)]


def _groups(asked: Question, files: Sequence[ChangedFile]) -> list[_Group]:
    is_plain = asked.table.features <= _PLAIN and not asked.table.is_mapped
    groups: dict[tuple[int, int | None], list[ChangedFile]] = {}
    for file in files:
        is_direct = is_plain and not file.has_vector and (not asked.table.partitions or file.partition is not None)
        key = (1 if file.is_added else -1, None if is_direct else file.version)
        groups.setdefault(key, []).append(file)
    return [_Group(*key, members) for key, members in groups.items()]


def sides_at_the_ends(asked: Question, files: DataFrame) -> list[DataFrame]:
    """The rows that came and those that went, of very many files that are there at one of the two versions."""
    found: list[DataFrame] = []
    for sign, version in ((-1, asked.since), (1, asked.version)):
        keys = files.where(F.signum("net") == sign).select(_logged_key(asked.table).alias("_key"))
        rows = asked.source.rows_of(_at(asked, keys, version), asked.within)
        found.append(signed(rows, sign, is_hashed=True))
    return found


def fed_sides(asked: Question) -> list[DataFrame]:
    """The rows that came and those that went, by the change data feed."""
    reader = asked.source.frame.sparkSession.read.option("readChangeFeed", "true")
    versions = reader.option("startingVersion", asked.since + 1).option("endingVersion", asked.version)
    feed = versions.table(asked.source.table or "")
    sign = F.when(F.col("_change_type").isin(*_ADDED), 1).otherwise(-1).alias("_side")
    rows = asked.source.rows_of(feed, asked.within, sign)
    return [signed(rows, "_side", is_hashed=True)]


def _rows(asked: Question, group: _Group) -> DataFrame:
    if group.version is None:
        return asked.source.rows_of(_direct(asked, group.files), asked.within)
    keys = [(_key_of(_address(asked.table, file)),) for file in group.files]
    wanted = F.broadcast(asked.source.frame.sparkSession.createDataFrame(keys, "_key string"))
    return asked.source.rows_of(_at(asked, wanted, group.version), _ranges(asked, group.files))


def _ranges(asked: Question, files: Sequence[ChangedFile]) -> Sequence[Interval]:
    """Where in the time in question the rows of files may be."""
    times = [file.times for file in files if file.times is not None]
    if len(times) < len(files):
        return asked.within
    return merged(common(joined(times), asked.within), _MOST_RANGES)


def _direct(asked: Question, files: Sequence[ChangedFile]) -> DataFrame:
    """The rows of files without deletion vectors, as Spark reads them without the log: no other file is touched."""
    spark, fields = asked.source.frame.sparkSession, asked.source.frame.schema.fields
    partitions = asked.table.partitions
    stored = StructType([StructField(each.name, each.dataType) for each in fields if each.name not in partitions])
    paths = [_address(asked.table, file) for file in files]
    reader = spark.read.schema(stored).option("recursiveFileLookup", "true")
    frame = reader.parquet(*map(without_wildcards, paths))
    if not partitions:
        return frame
    keyed = [
        (_key_of(path), *((file.partition or {}).get(each) for each in partitions))
        for path, file in zip(paths, files, strict=True)
    ]
    places = {each: f"_value_{place}" for place, each in enumerate(partitions)}
    schema = StructType([StructField(each, StringType()) for each in ("_key", *places.values())])
    values = F.broadcast(spark.createDataFrame(keyed, schema))
    found = frame.withColumn("_path", _key(F.col("_metadata.file_path"))).join(values, F.col("_path") == F.col("_key"))

    def value(field: StructField) -> Column:
        place = places.get(field.name)
        # What is empty there is NULL.
        return column(field.name) if place is None else F.nullif(F.col(place), F.lit("")).cast(field.dataType)

    return found.select(*(value(each).alias(each.name) for each in fields))


def _at(asked: Question, keys: DataFrame, version: int) -> DataFrame:
    """The rows of files as the table has them at a version, in the columns of the pinned one."""
    frame = asked.source.at(version)
    known = {each.lower() for each in frame.columns}
    files = frame.withColumn("_path", _key(F.col("_metadata.file_path")))
    found = files.join(keys, F.col("_path") == F.col("_key"), "left_semi")

    def value(field: StructField) -> Column:
        return (column(field.name) if field.name.lower() in known else F.lit(None)).cast(field.dataType)

    return found.select(*(value(each).alias(each.name) for each in asked.source.frame.schema.fields))


def _address(table: Described, file: ChangedFile) -> str:
    """Where a file is, as Spark takes a path; the log has it encoded, and relative to the table unless it is whole."""
    path = unquote(file.path)
    return path if re.match(_SCHEME, file.path) or path.startswith("/") else f"{table.location}/{path}"


def _logged_key(table: Described) -> Column:
    """As :func:`_key_of` the address of a file, of the `path` in the log."""
    path = F.col("path")
    decoded = _decoded(path)
    is_whole = path.rlike(_SCHEME) | path.startswith("/")
    return _cut(F.when(is_whole, decoded).otherwise(F.concat(F.lit(table.location + "/"), decoded)))


def _key(path: Column) -> Column:
    """As :func:`_key_of` the address of a file, of the path as Spark shows it."""
    return _cut(_decoded(path))


def _decoded(path: Column) -> Column:
    return F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))


def _cut(address: Column) -> Column:
    return F.concat(F.lit("/"), F.ltrim(F.regexp_replace(address, _SCHEME, ""), F.lit("/")))


def _key_of(address: str) -> str:
    """A file's place, however many slashes follow the scheme."""
    return "/" + re.sub(_SCHEME, "", address).lstrip("/")
