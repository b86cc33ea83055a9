"""What changed in a source: every operation of a Delta table against all rows of both versions, compared in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.rollup import Rollup, Source
from stairwise.windowing import Interval
from stairwise_spark.changes import Changes, Way, changes
from stairwise_spark.expressions import direct
from stairwise_spark.session import sql
from stairwise_spark.source import PinnedSource, open_source

pytestmark = pytest.mark.spark

MINUTE = EdgeSet.of((60, 0))
ALWAYS = (Interval(-(10**10), 10**10),)
# Slices 0, 1 and 2, then 10; a time of its own in each row.
ROWS = (
    "SELECT id, id % 3 AS zone, timestamp_millis(id * 20000 + 999) AS at, CAST(id AS DOUBLE) AS fare FROM range({}, {})"
)


class Lake(NamedTuple):
    """A Delta table in a folder of its own."""

    spark: SparkSession
    path: Path

    @property
    def table(self) -> str:
        return f"delta.`{self.path}`"

    def do(self, *statements: str) -> None:
        for each in statements:
            sql(self.spark, each.format(t=self.table))

    def add(self, first: int, end: int) -> None:
        self.append(sql(self.spark, ROWS.format(first, end)))

    def append(self, rows: DataFrame, **options: str) -> None:
        rows.coalesce(1).write.format("delta").mode("append").options(**options).save(str(self.path))

    def opened(self, **source: str) -> PinnedSource:
        declared = Source(**({"path": str(self.path), "time": "at"} | source))
        rollup = Rollup(
            name="trips",
            source=declared,
            keys=["zone"],
            aggregates={"revenue": "sum(fare)"},
            windows=["1m"],
            target="lake/rollups",
        )
        return open_source(self.spark, rollup, direct)

    def changes(self, since: int, within: Sequence[Interval] = ALWAYS, **source: str) -> Changes:
        return changes(self.opened(**source), since, MINUTE, within)

    def differing(self, since: int, where: str = "true") -> dict[int, int]:
        """By brute force the slices that differ, and how many rows more each has."""
        before, now = self._slices(since, where), self._slices(self.opened().version or 0, where)
        return {
            each: sum(now.get(each, Counter()).values()) - sum(before.get(each, Counter()).values())
            for each in before.keys() | now.keys()
            if before.get(each) != now.get(each)
        }

    def _slices(self, version: int, where: str) -> dict[int, Counter[object]]:
        found: dict[int, Counter[object]] = {}
        rows = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path)).where(where)
        for row in rows.select("zone", "fare", F.unix_micros(F.col("at").cast("timestamp")).alias("at")).collect():
            if row["at"] is not None:
                found.setdefault(row["at"] // 60_000_000, Counter())[tuple(row)] += 1
        return found


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "tr ips%20+")


def slices(found: Changes) -> set[int]:
    return {each for span in found.spans for each in range(span.start // 60, span.end // 60)}


def check(lake: Lake, since: int, way: Way = Way.LOG, where: str = "true") -> Changes:
    """What was found is exactly what differs."""
    found, wanted = lake.changes(since, where=where), lake.differing(since, where)
    assert found.way is way, found.why
    assert slices(found) == set(wanted)
    assert found.late_rows == sum(max(0, each) for each in wanted.values())
    return found


DV = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
MERGE = """MERGE INTO {t} AS t USING (SELECT 4L AS id UNION ALL SELECT 50L) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET fare = 0
WHEN NOT MATCHED THEN INSERT (id, zone, at, fare) VALUES (50, 1, timestamp_seconds(6000), 7)"""
OPERATIONS = {
    "append": ["INSERT INTO {t} " + ROWS.format(30, 31)],
    "update": ["UPDATE {t} SET fare = 100 WHERE id = 4"],
    "update that changes nothing": ["UPDATE {t} SET fare = fare WHERE id = 4"],
    "update of what is not used": ["UPDATE {t} SET id = -id"],
    "delete": ["DELETE FROM {t} WHERE id = 7"],
    "delete of files": ["DELETE FROM {t} WHERE id < 9"],
    "merge": [MERGE],
    "overwrite": ["INSERT OVERWRITE {t} " + ROWS.format(6, 15)],
    "restore": ["DELETE FROM {t} WHERE id = 7", "RESTORE {t} TO VERSION AS OF {v}"],
    "restore of some": ["UPDATE {t} SET fare = 1 WHERE id = 3", "RESTORE {t} TO VERSION AS OF 0"],
    "append and compact": ["INSERT INTO {t} " + ROWS.format(30, 31), "OPTIMIZE {t}", "DELETE FROM {t} WHERE id = 2"],
    "columns": ["ALTER TABLE {t} ADD COLUMN extra INT", "INSERT INTO {t} (id, zone, at, fare) " + ROWS.format(3, 4)],
    "no time": ["INSERT INTO {t} VALUES (1, 1, NULL, 1)", "UPDATE {t} SET at = NULL WHERE id = 4"],
    "swapped": ["UPDATE {t} SET zone = CAST(fare AS INT), fare = zone WHERE id BETWEEN 4 AND 6"],
    "columns of NULL": ["UPDATE {t} SET zone = NULL WHERE id = 3", "UPDATE {t} SET fare = NULL WHERE id = 4"],
}


@pytest.mark.parametrize("kind", ["plain", "vectors"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_exactly_the_slices_that_differ_are_found(lake: Lake, name: str, kind: str) -> None:
    lake.add(0, 9)
    lake.add(5, 15)
    if kind == "vectors":
        lake.do(DV)
    since = lake.opened().version or 0
    lake.do(*(each.replace("{v}", str(since)) for each in OPERATIONS[name]))
    check(lake, since)
