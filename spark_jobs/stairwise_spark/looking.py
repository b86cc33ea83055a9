"""What columns a table has that nobody has declared yet."""

from __future__ import annotations

from pyspark.sql import SparkSession

from stairwise_spark.errors import translating, unless_said
from stairwise_spark.guesses import Field
from stairwise_spark.source import located


def looked(spark: SparkSession, place: str, *, is_path: bool) -> tuple[dict[str, str], list[Field]]:
    """What the source is, as a declaration has it, and its columns; no row is read.

    Raises:
        SourceError: There is nothing, or nothing that can be read.
        RunError: It could not be looked at.
    """
    with translating(place):
        if not is_path:
            frame = spark.table(place)
            return {"table": place}, [Field(each.name, each.dataType.simpleString()) for each in frame.schema.fields]
        reader, path = spark.read, located(place)
        delta = unless_said(("DELTA_",), lambda: reader.format("delta").load(path).schema)
        schema = delta if delta is not None else spark.read.format("parquet").load(path).schema
        kind = {"path": place} if delta is not None else {"path": place, "format": "parquet"}
        return kind, [Field(each.name, each.dataType.simpleString()) for each in schema.fields]
