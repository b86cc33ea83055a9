"""What tables of ours hold, by their logs alone: files, rows and bytes by part; and who committed what, and when.

No data file is opened. The files that are there are the last checkpoint and the commits behind it; one Spark job finds
them for all tables of a target, however many there are. Another one reads the newest commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from stairwise_spark.coverage import Claim
from stairwise_spark.halves import any_of, rows_of_all
from stairwise_spark.names import numbered_files, without_wildcards
from stairwise_spark.tables import TierTable

_NAME = re.compile(r"(\d{20})\.(?:json|checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet)")
_FILE = "path: string, partitionValues: map<string, string>, size: bigint, stats: string"
_ACTIONS = f"add struct<{_FILE}>, remove struct<path: string>"
_COMMIT = f"add struct<{_FILE}>, commitInfo struct<timestamp: bigint, operation: string, userMetadata: string>"
_STATISTICS = "numRecords bigint, minValues struct<window_end: string>, maxValues struct<window_end: string>"
_CHECKPOINTS = "[0-9]*.checkpoint*.parquet"
# Behind a checkpoint are fewer commits, as our tables are made; and so many files Spark looks for one by one.
_BEHIND, _FEW = 100, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The files of a partition of a table, or those that a commit added to it.

    Attributes:
        window: Its value of the column ``window``; None where there is no such column.
        part: Its value of the column ``_part``; None where there is none.
        files: How many there are.
        bytes: Their size.
        rows: The rows in them; None: somebody wrote no statistics.
        ends: The seconds of the first and of the last window's end in them; None: of one of them the log does not say.
    """

    window: str | None
    part: int | None
    files: int
    bytes: int
    rows: int | None
    ends: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A commit of a table.

    Attributes:
        version: The version that it made.
        at: When, in seconds.
        operation: What Delta Lake calls it.
        claim: What it says of itself; None: it is not ours.
        added: The files that it added, by partition.
    """

    version: int
    at: int
    operation: str
    claim: Claim | None
    added: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """The files of a table's log.

    Attributes:
        commits: The versions whose commits are there, in order.
        checkpoint: The version of the last checkpoint that is there with all of its parts; -1: there is none.
        parts: The addresses of its files.
    """

    commits: tuple[int, ...]
    checkpoint: int
    parts: tuple[str, ...]

    @property
    def newest(self) -> int:
        """The version of the table."""
        return max([*self.commits[-1:], self.checkpoint])

    @property
    def is_whole(self) -> bool:
        """Whether all that is in the table can be found by them."""
        return {*range(self.checkpoint + 1, self.newest + 1)} <= {*self.commits}


def log_files(tables: Iterable[TierTable]) -> dict[TierTable, LogFiles]:
    """The files of the logs of some tables of one target; they are listed only, so that a year of them takes no job."""
    known = list(dict.fromkeys(tables))
    found = _listed(known, "[0-9]*") if known else {}
    return {table: _log_files(found.get(table.key, ())) for table in known}


def newest_files(tables: Iterable[TierTable], reached: int = 0) -> dict[TierTable, LogFiles]:
    """Of the files of logs those by which :func:`contents` are found: checkpoints, and what came after them.

    Args:
        tables: Of one target.
        reached: A version that each of them has: the folders are listed once then, where checkpoints are as usual.
    """
    known = list(dict.fromkeys(tables))
    if not known:
        return {}
    newest = numbered_files(max(0, reached - _BEHIND))
    found = _listed(known, f"{{{_CHECKPOINTS},{newest}}}" if reached else _CHECKPOINTS)
    logs = {table: _log_files(found.get(table.key, ())) for table in known}
    if reached and all(log.is_whole and log.newest >= reached for log in logs.values()):
        return logs
    behind = min(log.checkpoint for log in logs.values()) + 1
    commits = _listed(known, numbered_files(behind))
    return {table: replace(log, commits=_log_files(commits.get(table.key, ())).commits) for table, log in logs.items()}


def contents(logs: Mapping[TierTable, LogFiles]) -> dict[TierTable, tuple[Part, ...] | None]:
    """What is in tables of one target, by partition; None: the log is kept in a way that is not read here."""
    whole = {table: log for table, log in logs.items() if log.is_whole}
    if not whole:
        return dict.fromkeys(logs)
    rows = _by_part(_live(_actions(whole)), F.col("key")).collect()
    found: dict[str, list[Part]] = {}
    for row in rows:
        found.setdefault(row["key"], []).append(_part(row))
    return {table: tuple(found.get(table.key, ())) if table in whole else None for table in logs}


def entries(since: Mapping[TierTable, int]) -> dict[TierTable, tuple[Entry, ...]]:
    """The commits of tables of one target from versions on, in order, as far as the log still has them."""
    if not since:
        return {}
    spark = next(iter(since)).spark
    lines = _lines(spark, since, _COMMIT)
    by = (F.col("key"), F.col("version"))
    said = F.col("commitInfo.timestamp").alias("timestamp"), "commitInfo.operation", "commitInfo.userMetadata"
    commits = lines.where(F.isnotnull("commitInfo")).select(*by, *said).collect()
    added = _by_part(lines.where(F.isnotnull("add")), *by).collect()
    parts: dict[tuple[str, int], list[Part]] = {}
    for row in added:
        parts.setdefault((row["key"], row["version"]), []).append(_part(row))
    found: dict[str, list[Entry]] = {}
    for row in sorted(commits, key=lambda each: int(each["version"])):
        key, version = row["key"], int(row["version"])
        entry = Entry(
            version=version,
            at=int(row["timestamp"] or 0) // 1_000,
            operation=row["operation"] or "",
            claim=Claim.decode(row["userMetadata"]),
            added=tuple(parts.get((key, version), ())),
        )
        found.setdefault(key, []).append(entry)
    return {table: tuple(found.get(table.key, ())) for table in since}


def together(parts: Sequence[Part]) -> Part:
    """All of some parts as one."""
    ends = [each.ends for each in parts if each.ends is not None]
    rows = [each.rows for each in parts if each.rows is not None]
    return Part(
        window=None,
        part=None,
        files=sum(each.files for each in parts),
        bytes=sum(each.bytes for each in parts),
        rows=sum(rows) if len(rows) == len(parts) else None,
        ends=(min(first for first, _ in ends), max(last for _, last in ends)) if ends else None,
    )


def _listed(tables: Sequence[TierTable], names: str) -> dict[str, list[str]]:
    """The files in the logs of tables whose names are of a pattern, by table."""
    reader = tables[0].spark.read.format("binaryFile").option("pathGlobFilter", names)
    found: dict[str, list[str]] = {}
    for path in reader.load([_folder(table) for table in tables]).inputFiles():
        found.setdefault(_key(path), []).append(path)
    return found


def _log_files(paths: Sequence[str]) -> LogFiles:
    commits: list[int] = []
    checkpoints: dict[int, dict[int, str]] = {}
    wanted: dict[int, int] = {}
    for path in paths:
        name = _NAME.fullmatch(unquote(path).rpartition("/")[2])
        if name is None:
            continue
        version = int(name[1])
        if path.endswith(".json"):
            commits.append(version)
        else:
            checkpoints.setdefault(version, {})[int(name[2] or 1)] = path
            wanted[version] = int(name[3] or 1)
    whole = [version for version, parts in checkpoints.items() if len(parts) == wanted[version]]
    last = max(whole, default=-1)
    parts = tuple(checkpoints[last].values()) if whole else ()
    return LogFiles(commits=tuple(sorted(commits)), checkpoint=last, parts=parts)


def _actions(logs: Mapping[TierTable, LogFiles]) -> DataFrame:
    """What was added and removed, with table and version: the last checkpoints, and the commits behind them."""
    spark = next(iter(logs)).spark
    checkpoints = [without_wildcards(unquote(part)) for log in logs.values() for part in log.parts]
    behind = [(table, each) for table, log in logs.items() for each in log.commits if each > log.checkpoint]
    found: list[DataFrame] = []
    if checkpoints:
        found.append(_placed(spark.read.schema(_ACTIONS).parquet(*checkpoints)))
    # Of a log that is being made there is no file yet: Spark reads an empty folder, but no empty list.
    if len(behind) > _FEW or not (behind or checkpoints):
        found.append(_lines(spark, {table: log.checkpoint + 1 for table, log in logs.items()}, _ACTIONS))
    elif behind:
        commits = [f"{_folder(table)}/{version:020d}.json" for table, version in behind]
        found.append(_placed(spark.read.schema(_ACTIONS).json(commits)))
    return rows_of_all(found)


def _lines(spark: SparkSession, since: Mapping[TierTable, int], schema: str) -> DataFrame:
    """The lines of the commits of tables from versions on, each with its table and its version."""
    # Whole folders: if each file were named, even by a pattern, Spark would look after thousands of them one by one.
    reader = spark.read.option("pathGlobFilter", numbered_files(min(since.values())))
    name = F.col("_metadata.file_name")
    # Of nothing but the files' names: so the others are not opened.
    wanted = [(_key_column() == table.key) & (name >= f"{first:020d}.json") for table, first in since.items()]
    return _placed(reader.schema(schema).json([_folder(table) for table in since]).where(any_of(wanted)))


def _placed(lines: DataFrame) -> DataFrame:
    version = F.substring(F.col("_metadata.file_name"), 1, 20).cast("bigint")
    return lines.withColumns({"key": _key_column(), "version": version})


def _live(actions: DataFrame) -> DataFrame:
    """The files that are there, each as it was added last; of one commit, what is added counts."""
    added = F.col("add").isNotNull()
    of_files = actions.where(added | F.col("remove").isNotNull())
    files = of_files.groupBy("key", F.coalesce("add.path", "remove.path").alias("path")).agg(
        F.max_by("add", F.struct("version", added)).alias("add")
    )
    return files.where(F.isnotnull("add"))


def _by_part(files: DataFrame, *by: Column) -> DataFrame:
    """What is in files, for each partition: files, bytes, rows, how many have no statistics, and the windows' ends."""
    known, values = F.col("known"), F.col("add.partitionValues")
    first, last, rows = known["minValues"]["window_end"], known["maxValues"]["window_end"], known["numRecords"]
    are_told = F.bool_and(last.isNotNull() | rows.eqNullSafe(F.lit(0)))
    # All at once: one by one, Spark would read the text three times.
    read = files.withColumn("known", F.from_json("add.stats", _STATISTICS))
    return read.groupBy(*by, values["window"].alias("window"), values["_part"].cast("int").alias("part")).agg(
        F.count(F.lit(1)).alias("files"),
        F.sum("add.size").alias("bytes"),
        F.sum(rows).alias("rows"),
        F.count_if(rows.isNull()).alias("unknown"),
        F.when(are_told, F.min(F.unix_seconds(first.cast("timestamp")))).alias("first_end"),
        F.when(are_told, F.max(F.unix_seconds(last.cast("timestamp")))).alias("last_end"),
    )


def _part(row: Row) -> Part:
    first, last = row["first_end"], row["last_end"]
    return Part(
        window=row["window"],
        part=row["part"],
        files=row["files"],
        bytes=row["bytes"] or 0,
        rows=None if row["unknown"] else row["rows"],
        ends=None if first is None or last is None else (first, last),
    )


def _folder(table: TierTable) -> str:
    return f"{without_wildcards(table.location.rstrip('/'))}/_delta_log"


def _key(path: str) -> str:
    return unquote(path).split("/")[-3]


def _key_column() -> Column:
    """The folder of the table whose log a file is of, as its address has it, decoded."""
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return F.element_at(F.split(path, "/"), -3)
