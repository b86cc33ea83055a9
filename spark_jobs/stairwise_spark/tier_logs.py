"""What the logs of our tables say: their commits with the claims, and the files that these added."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote, unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row

from stairwise_spark.coverage import Claim, Commit
from stairwise_spark.errors import condition
from stairwise_spark.names import numbered_files, without_wildcards
from stairwise_spark.tables import MARK, TierTable, literal

_T = TypeVar("_T")
_LOG = (
    "add struct<partitionValues: map<string, string>, size: bigint, stats: string>, "
    "commitInfo struct<userMetadata: string>, metaData struct<configuration: map<string, string>>"
)
_OF_COMMITS = {
    "is_table": "metaData IS NOT NULL",
    "is_commit": "commitInfo IS NOT NULL",
    "userMetadata": "commitInfo.userMetadata",
    "mark": f"metaData.configuration[{literal(MARK)}]",
}
_OF_FILES = {
    "is_file": "add IS NOT NULL",
    "window": "add.partitionValues['window']",
    "rows": "bigint(get_json_object(add.stats, '$.numRecords'))",
    "bytes": "add.size",
    "first_end": "unix_seconds(timestamp(get_json_object(add.stats, '$.minValues.window_end')))",
    "last_end": "unix_seconds(timestamp(get_json_object(add.stats, '$.maxValues.window_end')))",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file that a commit added.

    Attributes:
        window: Its value of the partition column of that name; None if there is none.
        rows: How many rows are in it.
        bytes: Its size.
        ends: The second of the first and of the last window's end in it; None if the log does not say.
    """

    window: str | None
    rows: int
    bytes: int
    ends: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Log:
    """The newer part of a table's log.

    Attributes:
        mark: That of the table whose log it is; None: the log no longer reaches back to where it says so.
        commits: In order.
        files: What each of them added, by its version, if that was asked for.
    """

    mark: str | None
    commits: tuple[Commit, ...]
    files: Mapping[int, Sequence[File]] = field(default_factory=dict[int, Sequence[File]])


def logs(since: Mapping[TierTable, int], *, with_files: bool = False) -> dict[TierTable, Log] | None:
    """The logs of some tables of one target, each from a version on; one Spark job. None: a table is not there."""
    if not since:
        return {}
    rows = _if_there(lambda: _entries(_lines(since), with_files=with_files).collect())
    if rows is None:
        return None
    marks: dict[str, tuple[int, str]] = {}
    commits: dict[str, list[Commit]] = {table.key: [] for table in since}
    files: dict[str, dict[int, list[File]]] = {table.key: {} for table in since}
    for row in rows:
        key, version = _place_of(row["file"])
        if row["is_table"]:
            marks[key] = max(marks.get(key, (-1, "")), (version, row["mark"] or ""))
        if row["is_commit"]:
            commits[key].append(Commit(version, Claim.decode(row["userMetadata"])))
        if with_files and row["is_file"]:
            files[key].setdefault(version, []).append(_file(row))
    silent = {key for key, each in commits.items() if not each and key not in marks}
    if silent and not silent <= _found(since):
        return None
    return {
        table: Log(
            mark=marks[table.key][1] if table.key in marks else None,
            commits=_ordered(commits[table.key], first),
            files=files[table.key],
        )
        for table, first in since.items()
    }


def _found(tables: Collection[TierTable]) -> set[str]:
    """The keys of those tables of which there are any commits."""
    files = _if_there(lambda: _commits(tables, numbered_files(0)).inputFiles())
    return {_place_of(file)[0] for file in files or ()}


def _if_there(look: Callable[[], _T]) -> _T | None:
    """What is found; None: one of the folders is not there."""
    try:
        return look()
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return None
        raise


def _entries(lines: DataFrame, *, with_files: bool) -> DataFrame:
    """What is wanted of the lines of logs, each of which is a table's, a commit's or a file's."""
    wanted = _OF_COMMITS | (_OF_FILES if with_files else {})
    kinds = " OR ".join(said for name, said in wanted.items() if name.startswith("is_"))
    return lines.where(kinds).selectExpr("file", *(f"{said} AS {name}" for name, said in wanted.items()))


def _file(row: Row) -> File:
    first = row["first_end"]
    return File(row["window"], row["rows"] or 0, row["bytes"] or 0, None if first is None else (first, row["last_end"]))


def _lines(since: Mapping[TierTable, int]) -> DataFrame:
    """The lines of the log files from versions on, and of the first one, which names the table; with their files."""
    # Of nothing but the files' names: so the others are not opened.
    wanted = " OR ".join(
        f"contains(_metadata.file_path, {literal(f'/{key}/_delta_log/')}) AND "
        f"(_metadata.file_name >= '{_log_file(first)}' OR _metadata.file_name = '{_log_file(0)}')"
        for table, first in since.items()
        for key in sorted(_spellings(table.key))
    )
    lines = _commits(since, numbered_files(min(since.values()), 0))
    return lines.where(wanted).selectExpr("*", "_metadata.file_path AS file")


def _commits(tables: Collection[TierTable], names: str) -> DataFrame:
    """The lines of the commits of tables whose names are of a pattern."""
    # Whole folders: if each file were named, even by a pattern, Spark would look after thousands of them one by one.
    folders = [f"{without_wildcards(table.location)}/_delta_log" for table in tables]
    return next(iter(tables)).spark.read.option("pathGlobFilter", names).schema(_LOG).json(folders)


def _spellings(key: str) -> set[str]:
    """How a name may stand in an address: systems differ in which characters they leave as they are."""
    return {key, quote(key), quote(key, safe="!$&'()*+,;=:@~")}


def _ordered(found: Iterable[Commit], since: int) -> tuple[Commit, ...]:
    return tuple(sorted((each for each in found if each.version >= since), key=lambda each: each.version))


def _log_file(version: int) -> str:
    return f"{version:020d}.json"


def _place_of(file: str) -> tuple[str, int]:
    """The key of the table and the version of a file of a log."""
    *_, key, _, name = unquote(file).split("/")
    return key, int(name.removesuffix(".json"))
