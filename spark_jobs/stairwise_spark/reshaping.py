"""Tables of ours changed as a whole: columns added or taken away, emptied, moved, removed.

Each is one commit, or one step of the file system or the catalog, that is done or not, and harmless when done again.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField

from stairwise.evolution import MARK as UNFINISHED
from stairwise_spark.coverage import Claim
from stairwise_spark.delta_log import described
from stairwise_spark.errors import condition
from stairwise_spark.names import column, quoted
from stairwise_spark.session import sql
from stairwise_spark.tables import MARK, Definition, Place, TierTable, literal, type_text

# What statements, which take no options, say of their commits.
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"


def add_columns(table: TierTable, fields: Sequence[StructField], comments: Mapping[str, str]) -> tuple[str, ...]:
    """The table has these columns too; NULL in rows that are there. Those that it had not are told."""
    there = {name.lower() for name in table.now().columns}
    new = [field for field in fields if field.name.lower() not in there]
    if new:
        listed = ", ".join(
            f"{quoted(field.name)} {type_text(field.dataType)} COMMENT {literal(comments.get(field.name, ''))}"
            for field in new
        )
        try:
            sql(table.spark, f"ALTER TABLE {table.place.identifier} ADD COLUMNS ({listed})")
        except AnalysisException as error:  # another apply was faster
            if condition(error) not in {"FIELD_ALREADY_EXISTS", "DELTA_ADD_COLUMN_AT_INDEX_LESS_THAN_ZERO"}:
                raise
    return tuple(field.name for field in new)


def comment_column(table: TierTable, name: str, comment: str) -> None:
    """The column says this of itself."""
    sql(
        table.spark,
        f"ALTER TABLE {table.place.identifier} ALTER COLUMN {quoted(name)} COMMENT {literal(comment)}",
    )


def fill_column(table: TierTable, name: str, value: str) -> None:
    """Where the column is NULL, it is this, as SQL has it."""
    set_ = f"SET {quoted(name)} = {value} WHERE {quoted(name)} IS NULL"
    sql(table.spark, f"UPDATE {table.place.identifier} {set_}")


def take_columns(table: TierTable, names: Sequence[str]) -> None:
    """The table has these columns no more: what is left of its rows is written anew, in one commit.

    Without the mark of windows that have not ended, these go too: nobody could tell them apart any more.

    It stays partitioned as it was. Its bounds are never NULL, but Delta Lake forgets in this that they must not be.
    """
    gone = {name.lower() for name in names}
    kept: list[str] = [name for name in table.now().columns if name.lower() not in gone]
    whole = table.now()
    ended = whole if UNFINISHED not in gone else whole.where(f"NOT coalesce({quoted(UNFINISHED)}, false)")
    rows: DataFrame = ended.select(*map(column, kept))
    partitions = described(table.spark, table.place.identifier).partitions
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*partitions).save(table.location)


def empty(table: TierTable, definition: Definition, claim: Claim) -> None:
    """The table has no row, and is made as somebody wants it now; older versions stay to be read."""
    statement = definition.statement(table.place, table.mark, is_anew=True)
    with _noted(table.spark, claim):
        sql(table.spark, statement)


def empty_window(table: TierTable, tier: str, claim: Claim) -> None:
    """The rows of one tier go from a table that several share."""
    _delete(table, f" WHERE window = {literal(tier)}", claim)


def can_move(place: Place) -> bool:
    """Whether a table can be called otherwise without writing its rows again: in a catalog, or on this machine."""
    return place.path is None or _folder(place) is not None


def move(spark: SparkSession, old: Place, new: Place) -> None:
    """The table is at another place now."""
    source, target = _folder(old), _folder(new)
    if source is not None and target is not None:
        source.rename(target)
    else:
        sql(spark, f"ALTER TABLE {old.identifier} RENAME TO {new.identifier}")


def remove(table: TierTable, claim: Claim) -> None:
    """The table is gone; of a path elsewhere, whoever keeps the store removes the folder, which has no rows.

    Should the tier be declared again before, its claims are worth nothing: the claim says that it was emptied.
    """
    folder = _folder(table.place)
    if folder is not None:
        shutil.rmtree(folder)
    elif table.place.path is None:
        sql(table.spark, f"DROP TABLE {table.place.identifier}")
    else:
        _delete(table, "", claim)


def _delete(table: TierTable, where: str, claim: Claim) -> None:
    with _noted(table.spark, claim):
        sql(table.spark, f"DELETE FROM {table.place.identifier}{where}")  # noqa: S608 - all of it quoted
        # If there was no row, that was no commit, and the claim has to be in one.
        mark = f"{literal(MARK)} = {literal(table.mark)}"
        sql(table.spark, f"ALTER TABLE {table.place.identifier} SET TBLPROPERTIES ({mark})")


def _folder(place: Place) -> Path | None:
    """The folder on this machine where a table is; None: it is elsewhere, or the catalog knows."""
    if place.path is None:
        return None
    folder = Path(place.path.removeprefix("file:"))
    return folder if folder.is_dir() or folder.parent.is_dir() else None


@contextmanager
def _noted(spark: SparkSession, claim: Claim) -> Generator[None]:
    """Within it, commits of statements carry the claim."""
    spark.conf.set(_NOTE, claim.encode())
    try:
        yield
    finally:
        spark.conf.unset(_NOTE)
