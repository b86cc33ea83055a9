"""A backfill wherever Spark is: ``python -m tests.spark_jobs.smoke FOLDER LAYOUT [--master URL | --remote URL]``.

It has a session of its own, so it is a process of its own. What it found is printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.errors.exceptions.connect import EXCEPTION_CLASS_MAPPING
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.declared import Layout
from stairwise.instant import parse_instant
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.engine import Request, run
from stairwise_spark.errors import CONFLICTS
from stairwise_spark.halves import any_of, rows_of_all
from stairwise_spark.session import SessionOptions, is_connect, open_session
from stairwise_spark.verify import Check, verify
from tests.spark_jobs import oracle
from tests.spark_jobs.events import events

_NIGHT = parse_instant("2024-03-31T01:00Z")  # Paris loses an hour
_SPAN = Interval(_NIGHT - 86_400, _NIGHT + 2 * 86_400)
_WINDOWS = ("20m", "10h every 20m", "2 days every day in Europe/Paris", "day to date every 1h")
_CALLS = (
    "count()",
    "sum(money)",
    "var_pop(far)",
    "max_by(word, day)",
    "last(real)",
    "approx_distinct(long)",
)


class _Given(argparse.Namespace):
    folder: Path
    layout: Layout
    master: str | None
    remote: str | None
    conf: list[str]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("layout", type=Layout)
    parser.add_argument("--master")
    parser.add_argument("--remote")
    parser.add_argument("--conf", action="append", default=[])
    given = parser.parse_args(namespace=_Given())
    conf = [(key, value) for key, _, value in (each.partition("=") for each in given.conf)]
    spark = open_session(SessionOptions(master=given.master, remote=given.remote, conf=tuple(conf), quick=True))
    try:
        sys.stdout.write(json.dumps(_found(spark, given.folder, given.layout)) + "\n")
        sys.stdout.flush()
    finally:
        spark.stop()


def _found(spark: SparkSession, folder: Path, layout: Layout) -> dict[str, object]:
    raw = events(spark, seed=5, per_key=30)
    moved = (
        F.col("_time") * 10_000 + F.pmod(F.coalesce("long", F.lit(0)), F.lit(50_000)) * 1_000_000 + _NIGHT * 1_000_000
    )
    raw = raw.withColumn("_time", moved).withColumn("happened", F.timestamp_micros("_time"))
    source = str(folder / "source")
    raw.drop("_time", "pause").write.format("delta").save(source)
    rollup = Rollup(
        name="smoke",
        source=Source(path=source, time="happened"),
        keys=("key",),
        aggregates={f"a{number}": call for number, call in enumerate(_CALLS)},
        windows=_WINDOWS,
        target=str(folder / "target"),
        layout=layout,
        estimates=Estimates(rows_per_day=10**9, distinct_keys=10),
    )
    wanted = oracle.expected(raw, rollup, oracle.ending_in(_SPAN))
    return {
        "shares": any(step.reads for step in optimize(rollup).steps),
        **_of_python(spark),
        "knows_conflicts": _knows_conflicts(spark),
        "many": _of_many(spark),
        **_filled(spark, rollup, wanted),
    }


def _filled(spark: SparkSession, rollup: Rollup, wanted: oracle.Cells) -> dict[str, object]:
    """What a run and another one did."""
    plan = optimize(rollup)
    reports = [run(spark, plan, Request(span=_SPAN)) for _ in range(2)]
    found = oracle.stored(spark, rollup)
    return {
        "wrote": [report.wrote_anything for report in reports],
        "rows": len(found.rows),
        "wrong": list(oracle.differences(rollup, found, wanted))[:5],
        "verified": verify(spark, plan, Check()).total,
    }


def _of_many(spark: SparkSession) -> list[int]:
    """What comes of more conditions, and more frames, than a server takes if they are joined one after the other."""
    numbers = spark.range(9)
    found = numbers.where(any_of(F.col("id") == F.lit(number) for number in range(300)))
    return [found.count(), rows_of_all([numbers] * 150).count()]


def _knows_conflicts(spark: SparkSession) -> bool:
    """Whether a commit that lost a race raises what Delta Lake's own documentation says."""
    if not is_connect(spark):
        return True
    known = EXCEPTION_CLASS_MAPPING.items()
    found = {name.rpartition(".")[2] for name, each in known if issubclass(each, CONFLICTS)}
    return found >= {each.__name__ for each in CONFLICTS}


def _of_python(spark: SparkSession) -> dict[str, object]:
    """What two tasks in Python make of a part of the rows each, and how many executors they ran on."""

    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = sum(number or 0 for batch in batches for number in batch.column("id").to_numpy().tolist())
        # The folder is that of the executor.
        yield pa.RecordBatch.from_pydict({"total": [total], "folder": [str(Path.cwd())]})

    rows = spark.range(0, 10, 1, 2).mapInArrow(summed, "total bigint, folder string").collect()
    return {"totals": sorted(row["total"] for row in rows), "executors": len({row["folder"] for row in rows})}


if __name__ == "__main__":
    main()
