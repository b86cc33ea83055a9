"""Rows are added where none are: of two runs that add the same range, one alone succeeds, whoever is faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from stairwise_spark.errors import CONFLICTS
from stairwise_spark.tables import Definition, OccupiedError, Place, TierTable

pytestmark = pytest.mark.spark

PART, COLUMNS = StructField("_part", IntegerType()), StructType([StructField("hour", LongType())])


@pytest.fixture(params=["path", "catalog"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> TierTable:
    definition = Definition(
        owner="trips", plan="p", version="1", comment="", columns=COLUMNS, comments={}, partitions=(PART,)
    )
    if request.param == "path":
        return TierTable.make(spark, Place.at(str(tmp_path / "it's a table")), definition, "new")
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS adding LOCATION '{tmp_path / 'schema'}'")
    return TierTable.make(spark, Place(("adding", f"t{tmp_path.name[-1]}{time.monotonic_ns()}")), definition, "new")


def rows(spark: SparkSession, part: int, hour: int) -> DataFrame:
    return spark.range(100).select(F.lit(hour).cast("bigint").alias("hour"), F.lit(part).alias("_part")).coalesce(1)


def add(table: TierTable, frame: DataFrame, part: int, hour: int) -> None:
    table.add(frame, "note", f"_part = {part}", f"hour = {hour}")


def beside(table: TierTable, tmp_path: Path, slow: tuple[int, int], quick: Callable[[], None]) -> None:
    """Rows are added slowly; meanwhile something else is done."""
    begun, go_on = tmp_path / f"begun {slow}", tmp_path / f"go on {slow}"

    def waited(hour: int) -> int:
        begun.touch()
        until = time.monotonic() + 60
        while not go_on.exists() and time.monotonic() < until:
            time.sleep(0.05)
        return hour

    frame = rows(table.spark, *slow).limit(1).withColumn("hour", F.udf(waited, "bigint", useArrow=False)("hour"))
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add, table, frame, *slow)
        while not begun.exists() and not adding.done():
            time.sleep(0.05)
        try:
            quick()
        finally:
            go_on.touch()
        adding.result()


def test_two_that_add_the_same_range_do_not_both_land(table: TierTable, tmp_path: Path) -> None:
    spark = table.spark

    def replaced() -> None:
        table.replace(rows(spark, 2, 1), "note", "_part = 2")

    with pytest.raises(CONFLICTS):
        beside(table, tmp_path, (1, 7), lambda: add(table, rows(spark, 1, 7), 1, 7))
    with pytest.raises(CONFLICTS):
        beside(table, tmp_path, (2, 1), replaced)
    beside(table, tmp_path, (3, 1), lambda: add(table, rows(spark, 4, 1), 4, 1))
    with pytest.raises(OccupiedError):
        add(table, rows(spark, 1, 7), 1, 7)
    add(table, rows(spark, 1, 8), 1, 8)
    found = table.now().groupBy("_part", "hour").count().collect()
    assert sorted((row[0], row[1], row[2]) for row in found) == [
        (1, 7, 100),
        (1, 8, 100),
        (2, 1, 100),
        (3, 1, 1),
        (4, 1, 100),
    ]
