"""What changed in a Delta table: every operation, against all rows of both versions compared in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.windowing import Interval
from stairwise_spark.changes import Way
from tests.spark_jobs.lake import Lake, check, slices

pytestmark = pytest.mark.spark

# Three rows an hour, in one file.
ROWS = (
    "SELECT /*+ COALESCE(1) */ id, id % 3 AS zone, timestamp_millis(id * 1200000 + 999) AS at, "
    "CAST(id AS DOUBLE) AS fare "
    "FROM range({}, {})"
)


def rows(first: int, end: int) -> str:
    return ROWS.format(first, end)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    found = Lake(spark, tmp_path / "tr ips%20+")
    found.do(f"CREATE TABLE {{t}} USING delta AS {rows(0, 12)}")
    return found


MERGE = """MERGE INTO {t} AS t USING (SELECT 4L AS id UNION ALL SELECT 50L) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET fare = -1
WHEN NOT MATCHED THEN INSERT (id, zone, at, fare) VALUES (50, 1, timestamp_seconds(600000), 7)"""
# What is done, and the hours that differ by it; None: whatever Python finds.
STEPS: tuple[tuple[list[str], set[int] | None], ...] = (
    (["INSERT INTO {t} " + rows(9, 24), "INSERT INTO {t} " + rows(40, 41)], {3, 4, 5, 6, 7, 13}),
    (["UPDATE {t} SET fare = 100 WHERE id = 4", "DELETE FROM {t} WHERE id = 13", "UPDATE {t} SET id = -id"], {1, 4}),
    (["UPDATE {t} SET fare = fare", "UPDATE {t} SET id = -id"], set()),
    ([MERGE, "INSERT INTO {t} " + rows(30, 31), "OPTIMIZE {t}", "DELETE FROM {t} WHERE id IN (2, 30)"], {0, 1, 166}),
    (["ALTER TABLE {t} ADD COLUMN extra INT", "INSERT INTO {t} (id, zone, at, fare) " + rows(6, 7)], {2}),
    (["INSERT INTO {t} (id, zone, at, fare) VALUES (1, 1, NULL, 1)", "UPDATE {t} SET at = NULL WHERE id = 5"], {1}),
    (["UPDATE {t} SET zone = NULL, fare = zone WHERE id = 8", "DELETE FROM {t} WHERE id = 20"], {2, 6}),
    (["DELETE FROM {t} WHERE id < 3", "RESTORE {t} TO VERSION AS OF 1"], None),
    (["INSERT OVERWRITE {t} (id, zone, at, fare) " + rows(3, 15)], None),
)


@pytest.mark.parametrize("has_vectors", [False, True], ids=["plain", "vectors"])
def test_exactly_the_slices_that_differ_are_found(lake: Lake, *, has_vectors: bool) -> None:
    if has_vectors:
        lake.do("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    first = lake.version
    for statements, wanted in STEPS if has_vectors else STEPS[:3]:
        since = lake.version
        lake.do(*statements)
        answer = check(lake, since)
        assert answer.way is Way.LOG
        assert wanted is None or slices(answer) == wanted
    check(lake, first)
    lake.do("OPTIMIZE {t} ZORDER BY (zone)", "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")
    answer = lake.changes(lake.version - 2)
    assert (answer.way, answer.spans, answer.late_rows) == (Way.UNCHANGED, (), 0)
    assert lake.changes(lake.version).way is Way.UNCHANGED


def test_only_files_of_the_time_in_question_are_opened(lake: Lake) -> None:
    since = lake.version
    lake.do("INSERT INTO {t} " + rows(0, 1), "INSERT INTO {t} " + rows(12, 18), "INSERT INTO {t} " + rows(18, 19))
    found = lake.changes(since, [Interval(0, 3600), Interval(5 * 3600, 6 * 3600)])
    assert (slices(found), found.late_rows, found.files) == ({0, 5}, 4, 1)
    found = lake.changes(since, [Interval(0, 3 * 3600)])
    assert (slices(found), found.late_rows, found.files) == ({0}, 1, 0)
    found = lake.changes(since, [Interval(-3600, 0), Interval(10**6, 10**7)])
    assert (found.way, found.spans, found.late_rows, found.files) == (Way.LOG, (), 0, 0)
    assert lake.changes(since, []).way is Way.UNCHANGED
