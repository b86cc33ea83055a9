"""Who writes to a table takes turns: of two at once, one alone succeeds, whoever is faster."""

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
from stairwise_spark.tables import Definition, Place, TierTable, Turn

pytestmark = pytest.mark.spark

PART, COLUMNS = StructField("_part", IntegerType()), StructType([StructField("hour", LongType())])


@pytest.fixture(params=["path", "catalog"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> TierTable:
    definition = Definition(
        owner="trips", plan="p", version="1", comment="", columns=COLUMNS, comments={}, partitions=(PART,)
    )
    if request.param == "path":
        return TierTable.make(spark, Place.at(str(tmp_path / "it's a table")), definition)
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS turns LOCATION '{tmp_path / 'schema'}'")
    return TierTable.make(spark, Place(("turns", "t")), definition)


def rows(spark: SparkSession, part: int, hour: int) -> DataFrame:
    return spark.range(100).select(F.lit(hour).cast("bigint").alias("hour"), F.lit(part).alias("_part")).coalesce(1)


def add_slowly(table: TierTable, tmp_path: Path, number: int, meanwhile: Callable[[], None]) -> None:
    """A row is added as the turn of a number; when it has begun, something else is done."""
    begun, go_on = tmp_path / f"begun {number}", tmp_path / f"go on {number}"

    def waited(hour: int) -> int:
        begun.touch()
        until = time.monotonic() + 60
        while not go_on.exists() and time.monotonic() < until:
            time.sleep(0.05)
        return hour

    frame = rows(table.spark, 9, number).limit(1).withColumn("hour", F.udf(waited, "bigint", useArrow=False)("hour"))
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(table.append, frame, "slow", Turn("t", number))
        while not begun.exists() and not adding.done():
            time.sleep(0.05)
        try:
            meanwhile()
        finally:
            go_on.touch()
        adding.result()


def test_of_two_at_once_one_succeeds(table: TierTable, tmp_path: Path) -> None:
    spark = table.spark
    with pytest.raises(CONFLICTS):
        add_slowly(table, tmp_path, 1, lambda: table.append(rows(spark, 1, 7), "quick", Turn("t", 1)))
    with pytest.raises(CONFLICTS):
        add_slowly(table, tmp_path, 2, lambda: table.replace(rows(spark, 2, 1), "quick", "_part = 2", Turn("t", 2)))
    add_slowly(table, tmp_path, 3, lambda: None)
    # Too late is passed over.
    table.append(rows(spark, 1, 7), "late", Turn("t", 3))
    table.append(rows(spark, 1, 8), "next", Turn("t", 4))
    found = table.now().groupBy("_part", "hour").count().collect()
    assert sorted(tuple(row) for row in found) == [(1, 7, 100), (1, 8, 100), (2, 1, 100), (9, 3, 1)]
