"""Tables of events to measure with: made once, in order of time, and kept in ``target/bench``."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise.windowing import Interval

FOLDER = Path(__file__).resolve().parent.parent / "target" / "bench"
FIRST = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Events:
    """A Delta table of instants ``ts``, keys ``k`` and doubles ``v``.

    Attributes:
        name: What it is called.
        keys: So many, each as likely as the others.
        per_second: Events of all keys in a second.
        rows: How many there are.
    """

    name: str
    keys: int
    per_second: int
    rows: int

    @property
    def path(self) -> Path:
        """Where the table is."""
        return FOLDER / f"{self.name}-{self.rows}"

    @property
    def seconds(self) -> int:
        """The time from the first event to the last."""
        return max(1, self.rows // self.per_second)

    @property
    def span(self) -> Interval:
        """All time in which there are events, and some more."""
        return Interval(FIRST - FIRST % 86_400, FIRST + self.seconds + 86_400)

    def make(self, spark: SparkSession) -> None:
        """Write the table, unless it is there."""
        if (self.path / "_delta_log" / f"{0:020}.json").exists():
            return
        print(f"making {self.path.name}", file=sys.stderr, flush=True)
        shutil.rmtree(self.path, ignore_errors=True)  # others read all files that lie there
        instant = F.lit(FIRST * 1_000_000) + F.floor(F.col("id") * F.lit(1_000_000) / F.lit(self.per_second))
        frame = spark.range(0, self.rows, 1, max(8, self.rows // 2_500_000)).select(
            F.timestamp_micros(instant).alias("ts"),
            (F.rand(1) * self.keys).cast("int").alias("k"),
            F.round(F.rand(2) * 100, 2).alias("v"),
        )
        frame.write.format("delta").save(str(self.path))

    def read(self, spark: SparkSession) -> DataFrame:
        """All events."""
        return spark.read.format("delta").load(str(self.path))

    def few(self, spark: SparkSession, share: int) -> DataFrame:
        """About one of so many events: those of a key or more, from the beginning on."""
        keys = max(1, self.keys // share)
        until = FIRST + self.seconds * self.keys // (share * keys)
        return self.read(spark).where((F.col("k") < keys) & (F.col("ts") < F.timestamp_seconds(F.lit(until))))
