"""A Delta table whose history is known: what differs between two of its versions, found in Python from all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from stairwise.edges import EdgeSet
from stairwise.rollup import Rollup, Source
from stairwise.windowing import Interval
from stairwise_spark.changes import Changes, changes
from stairwise_spark.expressions import direct
from stairwise_spark.session import sql
from stairwise_spark.source import PinnedSource, open_source

ALWAYS = (Interval(-(10**10), 10**10),)
LENGTH = 3_600
HOURS = EdgeSet.of((LENGTH, 0))
_Rows = dict[int, Counter[object]]


@dataclass(slots=True)
class Lake:
    """A Delta table in a folder of its own, with the columns id, zone, at and fare, and what is declared of it."""

    spark: SparkSession
    path: Path
    declared: dict[str, str] = field(default_factory=dict[str, str])
    _known: dict[int, _Rows] = field(default_factory=dict[int, _Rows])
    _newest: PinnedSource | None = None

    @property
    def table(self) -> str:
        return f"delta.`{self.path}`"

    def do(self, *statements: str) -> None:
        self._newest = None
        for each in statements:
            sql(self.spark, each.format(t=self.table))

    def append(self, rows: DataFrame) -> None:
        self._newest = None
        rows.coalesce(1).write.format("delta").mode("append").save(str(self.path))

    def source(self) -> PinnedSource:
        if self._newest is None:
            declared = Source(path=str(self.path), **({"time": "at"} | self.declared))
            rollup = Rollup(
                name="trips",
                source=declared,
                keys=["zone"],
                aggregates={"revenue": "sum(fare)"},
                windows=["1h"],
                target="lake/rollups",
            )
            self._newest = open_source(self.spark, rollup, direct)
        return self._newest

    @property
    def version(self) -> int:
        version = self.source().version
        assert version is not None
        return version

    def changes(self, since: int, within: Sequence[Interval] = ALWAYS) -> Changes:
        return changes(self.source(), since, HOURS, within)

    def differing(self, since: int) -> dict[int, int]:
        """The slices that differ, and how many rows more each has."""
        before, now = self._rows(since), self._rows(self.version)
        none: Counter[object] = Counter()
        return {
            each: now.get(each, none).total() - before.get(each, none).total()
            for each in before.keys() | now.keys()
            if before.get(each) != now.get(each)
        }

    def _rows(self, version: int) -> _Rows:
        if version not in self._known:
            found: _Rows = {}
            rows = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path))
            kept = rows.where(self.declared.get("where", "true"))
            for row in kept.select("zone", "fare", self.source().time.micros.alias("at")).collect():
                if row["at"] is not None:
                    found.setdefault(row["at"] // (LENGTH * 10**6), Counter())[tuple(row)] += 1
            self._known[version] = found
        return self._known[version]


def slices(found: Changes) -> set[int]:
    return {each for span in found.spans for each in range(span.start // LENGTH, span.end // LENGTH)}


def check(lake: Lake, since: int) -> Changes:
    """What was found is exactly what differs."""
    found, wanted = lake.changes(since), lake.differing(since)
    assert slices(found) == set(wanted), found.why
    assert found.late_rows == sum(max(0, each) for each in wanted.values())
    return found
