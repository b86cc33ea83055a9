"""One Delta table of ours: made with what says whose it is, written by single commits, read at a version.

All by SQL, writer options and the files of the log: the Python API of Delta Lake does not work over Spark Connect.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from stairwise_spark.errors import CONFLICTS, RunError, condition
from stairwise_spark.names import column, quoted
from stairwise_spark.session import sql

OWNER, PLAN, VERSION, MARK = "stairwise.rollup", "stairwise.plan", "stairwise.version", "stairwise.table"
KEYS = "stairwise.keys"
# What anything can read, and a fold of the log every 50 commits.
_PROPERTIES = {
    "delta.checkpointInterval": "50",
    "delta.enableDeletionVectors": "false",
}
# The last one: nothing in a folder of a partitioned table.
_NOTHING_THERE = (
    "DELTA_MISSING_DELTA_TABLE",
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_INVALID_PARTITION_PATH",
)
_SOMETHING_THERE = ("DELTA_CREATE_TABLE_", "DELTA_TABLE_ALREADY_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS")
# Seconds within which another process has made its table, if it is about to; and between two looks at it.
_UNTIL_MADE, _LOOK = 10.0, 0.2
_OCCUPIED = "stairwise: there are rows in the range"
_WITH_STATISTICS = (NumericType, StringType, DateType, TimestampType, TimestampNTZType)


class OccupiedError(Exception):
    """Rows are where none should be; raised and caught in this package only."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"{place}: there are rows in the range")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is: a path, or a name in the session's catalog.

    >>> Place.at("/lake/5m").identifier, Place(("lake", "5m")).identifier
    ('delta.`/lake/5m`', '`lake`.`5m`')

    Attributes:
        name: The parts of its name; a path is a name after ``delta``.
    """

    name: tuple[str, ...]

    @classmethod
    def at(cls, path: str) -> Place:
        """The place of a path; a relative one begins where this process runs."""
        return cls(("delta", path if "://" in path or path.startswith("file:") else str(Path(path).absolute())))

    @property
    def path(self) -> str | None:
        """The path; None: the catalog knows it."""
        return self.name[1] if self.name[0] == "delta" else None

    def is_at(self, location: str) -> bool:
        """Whether a table that was found at a location is at this place; of the catalog's, any may be.

        >>> Place.at("/lake/5m").is_at("file:/lake/5m"), Place.at("/copy/5m").is_at("file:/lake/5m")
        (True, False)
        """
        return self.path is None or _bare(self.path) == _bare(location)

    @property
    def identifier(self) -> str:
        """The name in SQL."""
        first, *rest = self.name
        return ".".join([first if self.path is not None else quoted(first), *map(quoted, rest)])

    def __str__(self) -> str:
        """The name as people write it."""
        return self.path or ".".join(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a table is made with.

    Attributes:
        owner: The rollup that it belongs to.
        plan: The digest of the plan that fills it.
        version: The version of Stairwise.
        comment: What it holds, for people.
        columns: Its columns without the partitions, all but ``required`` ones nullable.
        comments: What is in a column, for people, by name.
        keys: For how many different keys its partitions are laid out; None: for many.
        required: The columns that are never NULL.
        partitions: Names and types of the partition columns.
    """

    owner: str
    plan: str
    version: str
    comment: str
    columns: StructType
    comments: Mapping[str, str]
    keys: int | None = None
    required: tuple[str, ...] = ()
    partitions: tuple[StructField, ...] = ()

    @property
    def fields(self) -> tuple[StructField, ...]:
        """All columns in order."""
        return (*self.columns.fields, *self.partitions)

    def statement(self, place: Place, mark: str, *, is_anew: bool = False) -> str:
        """The SQL that makes the table, with its mark; or makes one anew that is there, and fails if none is.

        Otherwise it fails if one is there, which has another mark.
        """
        columns = ", ".join(self._column(field) for field in self.fields)
        parted = ", ".join(quoted(field.name) for field in self.partitions)
        return (
            f"{'REPLACE' if is_anew else 'CREATE'} TABLE {place.identifier} ({columns}) USING delta "
            f"{f'PARTITIONED BY ({parted}) ' if parted else ''}COMMENT {literal(self.comment)} "
            f"TBLPROPERTIES ({_assigned(self.properties(mark))})"
        )

    def properties(self, mark: str) -> Mapping[str, str]:
        """What the table says of itself, with its mark."""
        found = {OWNER: self.owner, PLAN: self.plan, VERSION: self.version, MARK: mark, **_PROPERTIES}
        if self.keys is not None:
            found[KEYS] = str(self.keys)
        if self.required:
            found["delta.dataSkippingStatsColumns"] = ",".join(map(quoted, self._indexed()))
        return found

    def _column(self, field: StructField) -> str:
        required = " NOT NULL" if field.name in self.required else ""
        comment = f" COMMENT {literal(self.comments[field.name])}" if field.name in self.comments else ""
        return f"{quoted(field.name)} {type_text(field.dataType)}{required}{comment}"

    def _indexed(self) -> list[str]:
        """The columns to keep bounds of: the window, and the keys, which stand before it."""
        names = self.columns.names
        keys = self.columns.fields[: names.index(self.required[0])]
        return [*self.required, *(field.name for field in keys if isinstance(field.dataType, _WITH_STATISTICS))]


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table that is there and ours.

    Attributes:
        spark: The session.
        place: Where it is.
    """

    spark: SparkSession
    place: Place

    @classmethod
    def owned(cls, spark: SparkSession, place: Place, owner: str) -> Table | None:
        """The table of a rollup; None: nothing is there. It takes no Spark job, however much was written.

        Raises:
            RunError: Something else is there.
        """
        properties = _properties(spark, place)
        if properties is None:
            return None
        _check_owner(place, properties, owner)
        return cls(spark, place)

    def append(self, frame: DataFrame, note: str, once: tuple[str, int] | None = None) -> None:
        """The rows are added, in one commit that carries the note; where there is no row, without a commit.

        Args:
            frame: The rows.
            note: What the commit says of itself.
            once: A name and a number: nothing is added if a commit of that name and number, or a later one, is there.
        """
        writer = frame.write.format("delta").mode("append").option("userMetadata", note)
        if once is not None:
            writer = writer.option("txnAppId", once[0]).option("txnVersion", once[1])
        self._save(writer)

    def replace(self, frame: DataFrame, note: str, predicate: str) -> None:
        """The rows for which the predicate is true are these now, in one commit that carries the note.

        Where nothing was and nothing comes, without a commit; with a txnAppId, Delta Lake would make an empty one.
        """
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", predicate)
        self._save(writer.option("userMetadata", note))

    def now(self) -> DataFrame:
        """The rows of the newest version."""
        return self.spark.table(self.place.identifier)

    def _save(self, writer: DataFrameWriter) -> None:
        if self.place.path is None:
            writer.saveAsTable(self.place.identifier)
        else:
            writer.save(self.place.path)


@dataclass(frozen=True, slots=True)
class TierTable(Table):
    """A table whose log and older versions are read.

    Attributes:
        location: The folder of its files and its log.
        mark: What tells it from a table that was there before, or will be.
        keys: For how many different keys its partitions were laid out; None: for many.
    """

    location: str
    mark: str
    keys: int | None

    @classmethod
    def make(
        cls, spark: SparkSession, place: Place, definition: Definition, mark: str, *, is_ruling: bool = True
    ) -> TierTable:
        """The table, which now is there; one that was there before is kept as it is, but for the plan that rules it.

        A new one has the mark.

        Raises:
            RunError: Something else is there, or a table of ours with other columns or for another rollup.
        """
        there = _made(spark, place, definition, mark)
        if there is None:
            _clear(place)
            there = _made(spark, place, definition, mark)
        if there is None:
            raise _refusal(place, "there are files that are no Delta table")
        if there.mark != mark:
            _check(spark, place, there.properties, definition)
            if is_ruling and there.properties.get(PLAN) != definition.plan:
                texts = {PLAN: definition.plan, VERSION: definition.version}
                sql(spark, f"ALTER TABLE {place.identifier} SET TBLPROPERTIES ({_assigned(texts)})")
        return cls(spark, place, there.location, there.mark, there.keys)

    @classmethod
    def find(cls, spark: SparkSession, place: Place, owner: str) -> TierTable | None:
        """The table of a rollup; None: nothing is there.

        Raises:
            RunError: Something else is there.
        """
        there = _there(spark, place)
        if there is None:
            return None
        _check_owner(place, there.properties, owner)
        return cls(spark, place, there.location, there.mark, there.keys)

    @property
    def key(self) -> str:
        """The last part of its location, which tells the tables of one target from each other."""
        return self.location.rstrip("/").rpartition("/")[2]

    def add(self, frame: DataFrame, note: str, part: str, range_: str) -> None:
        """The rows are added where no row is, in one commit that carries the note; no rows, no commit.

        The commit looks at the range itself, so that Delta Lake refuses it if another one puts rows there meanwhile:
        of two that add the same range, one fails.

        Args:
            frame: The rows.
            note: What the commit says of itself.
            part: What is true of the partitions of the range, by which Delta Lake tells conflicts.
            range_: What is true of the rows in it.

        Raises:
            OccupiedError: There are rows.
        """
        there = self.spark.read.format("delta").load(self.location).where(f"({part}) AND ({range_})")
        occupied = F.when(F.expr(range_), F.raise_error(F.lit(_OCCUPIED)).isNull()).otherwise(F.lit(False))  # noqa: FBT003 - a literal
        guarded = frame.unionByName(there.where(occupied).select(*map(column, frame.columns)))
        try:
            guarded.write.format("delta").mode("append").option("userMetadata", note).save(self.location)
        except PySparkException as error:
            if _OCCUPIED in str(error):
                raise OccupiedError(self.place) from error
            raise

    def at(self, version: int) -> DataFrame:
        """The rows that the table had at a version."""
        return self.spark.read.format("delta").option("versionAsOf", version).load(self.location)


def new_mark() -> str:
    """What no other table has."""
    return uuid4().hex[:16]


def _bare(path: str) -> str:
    """A path of this machine without what says so."""
    return re.sub("^file:/+", "/", unquote(path)).rstrip("/")


def literal(text: str) -> str:
    r"""The text as a string of Spark SQL.

    >>> print(literal("it's a \\"))
    'it\'s a \\'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def type_text(data: DataType) -> str:
    """The type in SQL, with the names in it quoted."""
    match data:
        case ArrayType():
            return f"ARRAY<{type_text(data.elementType)}>"
        case MapType():
            return f"MAP<{type_text(data.keyType)}, {type_text(data.valueType)}>"
        case StructType():
            fields = (f"{quoted(field.name)}: {type_text(field.dataType)}" for field in data.fields)
            return f"STRUCT<{', '.join(fields)}>"
        case _:
            return data.simpleString()


class _There(NamedTuple):
    """What is known of a table that is there."""

    location: str
    properties: Mapping[str, str]

    @property
    def mark(self) -> str:
        """What tells it from others."""
        return self.properties.get(MARK, "")

    @property
    def keys(self) -> int | None:
        """For how many keys its partitions were laid out."""
        known = self.properties.get(KEYS)
        return None if known is None else int(known)


def _there(spark: SparkSession, place: Place) -> _There | None:
    properties = _properties(spark, place)
    if properties is None:
        return None
    location = place.path or sql(spark, f"DESCRIBE DETAIL {place.identifier}").collect()[0]["location"]
    return _There(location, properties)


def _properties(spark: SparkSession, place: Place) -> Mapping[str, str] | None:
    """What a table says of itself; without a Spark job, however much was written to it. None: there is none."""
    try:
        rows = sql(spark, f"SHOW TBLPROPERTIES {place.identifier}").collect()
    except AnalysisException as error:
        if condition(error).startswith(_NOTHING_THERE):
            return None
        raise
    return {row["key"]: row["value"] for row in rows}


def _made(spark: SparkSession, place: Place, definition: Definition, mark: str) -> _There | None:
    """The table that is there now; None: files are that are no table, or not yet."""
    try:
        sql(spark, definition.statement(place, mark))
    except CONFLICTS:
        pass  # another run made it at the same instant
    except AnalysisException as error:
        if condition(error) == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES":
            raise RunError(
                f"table {place}: the name of a column or of a field in it holds one of ' ,;{{}}()=' or a line end, "
                "and Delta Lake takes none of them.",
                hint="rename it in the source: sql: SELECT ... AS name.",
            ) from error
        # That files are there, or that a table is, which has another mark.
        if not condition(error).startswith(_SOMETHING_THERE):
            raise
    else:
        if place.path is not None:
            return _There(place.path, definition.properties(mark))
    return _there(spark, place)


def _clear(place: Place) -> None:
    """If there is nothing but the log of a table that was never finished, as a full disk leaves it, it goes.

    If another run is about to finish it, that is waited for.
    """
    if place.path is None:
        return
    folder = Path(place.path)
    until = time.monotonic() + _UNTIL_MADE
    while _is_unfinished(folder, log := folder / "_delta_log"):
        if time.monotonic() > until:
            shutil.rmtree(log)
            return
        time.sleep(_LOOK)


def _is_unfinished(folder: Path, log: Path) -> bool:
    """Whether there is a log without a commit, and no data."""
    found = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    return found == [log.name] and all(each.name.startswith((".", "_")) for each in log.iterdir())


def _check(spark: SparkSession, place: Place, properties: Mapping[str, str], definition: Definition) -> None:
    _check_owner(place, properties, definition.owner)
    check_columns(spark, place, definition)


def check_columns(spark: SparkSession, place: Place, definition: Definition) -> None:
    """Refuse a table that is there if a column is missing, or of another type; without a Spark job.

    Raises:
        RunError: It is.
    """
    wanted = {field.name: type_text(field.dataType) for field in definition.fields}
    found = {field.name: type_text(field.dataType) for field in spark.table(place.identifier).schema.fields}
    differing = [name for name, kind in wanted.items() if kind != found.get(name)]
    if differing:
        name = differing[0]
        raise RunError(
            f"table {place}: its column {name} is {found.get(name, 'missing')}, "
            f"and the declaration says {wanted[name]}.",
            hint="stairwise diff FILE says what that means, stairwise apply FILE changes it.",
            columns=", ".join(differing),
        )


def _check_owner(place: Place, properties: Mapping[str, str], owner: str) -> None:
    found = properties.get(OWNER)
    if found is None:
        raise _refusal(place, "there is a table that Stairwise did not make")
    if found != owner:
        raise _refusal(place, f"it belongs to the rollup {found}, not to {owner}")


def _refusal(place: Place, found: str) -> RunError:
    return RunError(f"table {place}: {found}.", hint="choose another target, or remove what is there.")


def _assigned(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(text)}" for key, text in properties.items())
