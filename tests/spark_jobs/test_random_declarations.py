"""Whatever is declared, over whatever events: each table equals the raw rows, with sharing and without."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise import optimize
from stairwise.options import Algorithm, Options
from stairwise_spark.engine import History, Request, run
from tests.spark_jobs import oracle
from tests.spark_jobs.declarations import drawn

pytestmark = pytest.mark.spark

# Each costs seconds; STAIRWISE_EXAMPLES=0-1000 tries a thousand.
USUAL = (8, 41)
GIVEN = os.environ.get("STAIRWISE_EXAMPLES", "")
SEEDS = range(*map(int, GIVEN.split("-"))) if GIVEN else USUAL


@pytest.mark.parametrize("seed", SEEDS)
def test_every_table_equals_the_raw_rows(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    case = drawn(seed)
    source = str(tmp_path / "source")
    events = case.events(spark)
    save(events.drop("_time"), case.stored_as, source)
    counted = events.where("_time is not null")
    raw = counted if case.where is None else counted.where(case.where)
    request = Request(span=case.span or History(), chunk_s=case.chunk_s, newest_first=seed % 2 == 0)
    wanted = oracle.expected(raw, case.rollup(source, tmp_path / "target"), case.listed)
    for algorithm in (Algorithm.BEST, Algorithm.UNSHARED):
        rollup = case.rollup(source, tmp_path / algorithm.value)
        run(spark, optimize(rollup, Options(algorithm=algorithm)), request)
        found = oracle.stored(spark, rollup)
        assert list(islice(oracle.differences(rollup, found, wanted), 5)) == [], (algorithm, case)


def save(events: DataFrame, stored_as: str, path: str) -> None:
    """The events as files, or as a Delta table of two versions."""
    if stored_as == "parquet":
        events.write.parquet(path)
        return
    is_early = F.expr("coalesce(whole > 0, false)")
    for part in (events.where(is_early), events.where(~is_early)):
        part.coalesce(1).write.format("delta").mode("append").save(path)
