"""What differs between two versions of a Delta table, in slices of time: by its log, and the files that this names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from stairwise.edges import EdgeSet
from stairwise.windowing import Interval
from stairwise_spark.changed import Changes, Way, common, cut, fewer, in_whole_slices
from stairwise_spark.commits import ChangedFile, changed_files, file_of, read_commits
from stairwise_spark.delta_log import Described, described
from stairwise_spark.differences import MOST_SLICES, difference, signed
from stairwise_spark.errors import condition
from stairwise_spark.names import column, without_wildcards
from stairwise_spark.source import PinnedSource

_MOST_FILES = 10_000
_MOST_VERSIONS = 8
_MOST_RANGES = 20
# Of these, what is in a file is what Spark finds there under the name of the column.
_PLAIN = frozenset(
    {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "deletionVectors"}
    | {
        "timestampNtz",
        "domainMetadata",
        "rowTracking",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "inCommitTimestamp",
        "identityColumns",
        "clustering",
    }
)
_GONE = (
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "PATH_NOT_FOUND",
    "DELTA_FILE_NOT_FOUND",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_LOG_FILE_NOT_FOUND",
)
_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*:/*"


class Untold(NamedTuple):
    """Why the log does not tell what changed."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked: which of the slices within some spans differ since a version."""

    source: PinnedSource
    table: Described
    since: int
    version: int
    slices: EdgeSet
    within: Sequence[Interval]

    @property
    def between(self) -> str:
        return f"between versions {self.since} and {self.version}"


def delta_changes(
    source: PinnedSource, since: int, version: int, slices: EdgeSet, within: Sequence[Interval]
) -> Changes | Untold:
    """What differs between a version of a Delta table and the pinned one; or why that cannot be told."""
    spark = source.frame.sparkSession
    table = described(spark, source.table or "")
    if since > version:
        return Untold(f"version {since} is newer than version {version}")
    lines = read_commits(spark, table, since, version)
    if lines is None:
        return Untold(f"the log no longer has all commits between versions {since} and {version}")
    asked = _Question(source=source, table=table, since=since, version=version, slices=slices, within=within)
    files = changed_files(lines, source.time, table.partitions, within).persist()
    try:
        rows = files.limit(_MOST_FILES + 1).collect()
        found = [file_of(row, since, version) for row in rows]
    finally:
        files.unpersist()
    if not found:
        return _nothing(asked, lines)
    return _compared(asked, found)


def _nothing(asked: _Question, lines: DataFrame) -> Changes:
    changing = lines.where(F.coalesce("add.dataChange", "remove.dataChange"))
    if changing.isEmpty():
        return Changes(
            spans=(), way=Way.UNCHANGED, why=f"no commit {asked.between} changed a row", late_rows=0, bytes=0
        )
    return Changes(
        spans=(),
        way=Way.LOG,
        why=f"by the log, no file that changed {asked.between} has rows of the time in question",
        late_rows=0,
    )


def _compared(asked: _Question, files: Sequence[ChangedFile]) -> Changes:
    is_hashed = not all(file.is_added for file in files)
    groups = _groups(asked, files)
    try:
        if len(groups) > _MOST_VERSIONS:
            return _by_statistics(asked, files, "its files come from too many versions to be read")
        sides = [signed(_rows(asked, group), group.sign, is_hashed=is_hashed) for group in groups]
        found = difference(sides, asked.slices)
    except PySparkException as error:
        if not condition(error).startswith(_GONE):
            raise
        return _by_statistics(asked, files, "some of them are gone")
    how = (
        "the rows of the files that the log {} added and removed were compared"
        if is_hashed
        else ("the times of the files that the log {} added were read")
    )
    why = how.format(asked.between)
    if not found.is_exact:
        why += f", and of more than {MOST_SLICES:,} slices that differ neighbours were joined"
    return Changes(
        spans=common(found.spans, asked.within),
        way=Way.LOG,
        why=why,
        late_rows=found.more_rows,
        files=len(files),
        bytes=_bytes(files),
    )


class _Group(NamedTuple):
    """Files that are read together: directly, or as the table has them at a version."""

    sign: int
    version: int | None
    files: list[ChangedFile]


def _groups(asked: _Question, files: Sequence[ChangedFile]) -> list[_Group]:
    is_plain = _is_plain(asked.table)
    groups: dict[tuple[int, int | None], list[ChangedFile]] = {}
    for file in files:
        is_direct = is_plain and not file.has_vector and (not asked.table.partitions or file.partition is not None)
        key = (1 if file.is_added else -1, None if is_direct else file.version)
        groups.setdefault(key, []).append(file)
    return [_Group(sign, version, found) for (sign, version), found in groups.items()]


def _is_plain(table: Described) -> bool:
    return table.features <= _PLAIN and table.properties.get("delta.columnMapping.mode", "none") == "none"


def _rows(asked: _Question, group: _Group) -> DataFrame:
    if group.version is None:
        frame, within = _direct(asked, group.files), asked.within
    else:
        frame, within = _at(asked, group.files, group.version), _ranges(asked, group.files)
    return asked.source.rows_of(frame, within)


def _ranges(asked: _Question, files: Sequence[ChangedFile]) -> Sequence[Interval]:
    """Where in the time in question the rows of files may be."""
    times = [file.times for file in files if file.times is not None]
    if len(times) < len(files):
        return asked.within
    return fewer(cut(times, asked.within), _MOST_RANGES)


def _direct(asked: _Question, files: Sequence[ChangedFile]) -> DataFrame:
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
    names = [f"_{place}" for place in range(len(partitions))]
    schema = StructType([StructField(each, StringType()) for each in ("_key", *names)])
    values = F.broadcast(spark.createDataFrame(keyed, schema))
    joined = frame.withColumn("_path", _key(F.col("_metadata.file_path"))).join(values, F.col("_path") == F.col("_key"))
    places = dict(zip(partitions, names, strict=True))
    return joined.select(
        *(
            (
                F.nullif(F.col(places[each.name]), F.lit("")).cast(each.dataType)
                if each.name in places
                else column(each.name)
            ).alias(each.name)
            for each in fields
        )
    )


def _at(asked: _Question, files: Sequence[ChangedFile], version: int) -> DataFrame:
    """The rows of files as the table has them at a version, in the columns of the pinned one."""
    spark = asked.source.frame.sparkSession
    frame = asked.source.at(version)
    known = {each.name.lower() for each in frame.schema.fields}
    keys = [(_key_of(_address(asked.table, file)),) for file in files]
    wanted = F.broadcast(spark.createDataFrame(keys, "_key string"))
    picked = frame.withColumn("_path", _key(F.col("_metadata.file_path"))).join(
        wanted, F.col("_path") == F.col("_key"), "left_semi"
    )
    return picked.select(
        *(
            (column(each.name) if each.name.lower() in known else F.lit(None)).cast(each.dataType).alias(each.name)
            for each in asked.source.frame.schema.fields
        )
    )


def _address(table: Described, file: ChangedFile) -> str:
    """Where a file is, as Spark takes a path."""
    path = unquote(file.path)
    return path if ":/" in file.path or file.path.startswith("/") else f"{table.location}/{path}"


def _key_of(address: str) -> str:
    return "/" + re.sub(_SCHEME, "", address).lstrip("/")


def _key(path: Column) -> Column:
    """As :func:`_key_of`, of the path as Spark shows it."""
    decoded = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    return F.concat(F.lit("/"), F.ltrim(F.regexp_replace(decoded, _SCHEME, ""), F.lit("/")))


def _by_statistics(asked: _Question, files: Sequence[ChangedFile], reason: str) -> Changes:
    """Wherever a file that changed may have rows, by the log."""
    times = [file.times for file in files if file.times is not None]
    is_known = len(times) == len(files)
    spans = in_whole_slices(asked.slices, times) if is_known else tuple(asked.within)
    where = (
        "the times that the log gives for files" if is_known else "all, as the log does not give the times of all files"
    )
    return Changes(
        spans=common(spans, asked.within),
        way=Way.STATISTICS,
        why=f"{where} that changed {asked.between}, since {reason}",
    )


def _bytes(files: Iterable[ChangedFile]) -> int | None:
    sizes = [file.bytes for file in files if file.bytes is not None]
    return sum(sizes)
