"""What the tests of the commands that prove something have in common: events, a declaration, and tables to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from stairwise import Options, Rollup, Source, optimize
from stairwise.declared import Catalog
from stairwise.instant import parse_instant
from stairwise.options import TiersAllowed
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.engine import Request, run
from stairwise_spark.session import sql

DAY = parse_instant("2024-01-01")
HOUR = 3_600
EVENTS = """
    SELECT timestamp_seconds(1704067200 + 60 * id) AS at, CASE WHEN id % 4 < 3 THEN id % 4 END AS zone,
        CAST(id % 100 AS INT) AS fare, IF(id % 500 = 7, double('NaN'), id / 7) AS tip,
        CAST(id % 100 AS DECIMAL(10, 2)) AS coin, concat('r', id % 50) AS rider
    FROM range({first}, {last})
"""
AGGREGATES = {
    "trips": "count()",
    "revenue": "sum(fare)",
    "mean_tip": "avg(tip)",
    "coins": "sum(coin)",
    "riders": "approx_distinct(rider)",
    "middle": "quantile(fare, 0.5)",
    "top": "top_k(rider, 3)",
}


def add_events(spark: SparkSession, path: str, first: int, last: int) -> None:
    """One event a minute from 2024 on, of these minutes."""
    rows = sql(spark, EVENTS.format(first=first, last=last)).coalesce(1)
    rows.write.format("delta").mode("append").save(path)


def declared(
    source: str,
    target: Path | Catalog,
    layout: str = "tables",
    *,
    aggregates: Mapping[str, str] = AGGREGATES,
    windows: tuple[str, ...] = ("20m", "30m", "1h every 30m"),
    delay: str = "0s",
) -> Rollup:
    """A rollup of these events."""
    return Rollup(
        name="trips",
        source=Source(path=source, time="at"),
        keys=("zone",),
        aggregates=aggregates,
        windows=windows,
        target=target if isinstance(target, Catalog) else str(target),
        delay=delay,
        layout=layout,
        estimates=Estimates(rows_per_day=10**9, distinct_keys=4),
    )


def planned(rollup: Rollup) -> Plan:
    """A plan with helpers, if there are any worth it."""
    return optimize(rollup, Options(tiers=TiersAllowed.FACTOR))


def hours(first: int, last: int) -> Interval:
    """From one hour of the first day of 2024 to another."""
    return Interval(DAY + first * HOUR, DAY + last * HOUR)


def filled(spark: SparkSession, rollup: Rollup, *spans: Interval) -> Plan:
    """The plan by which the tables were filled for some ranges."""
    plan = planned(rollup)
    for span in spans:
        run(spark, plan, Request(span=span))
    return plan


def on_disk(rollup: Rollup, tmp_path: Path) -> str:
    """The declaration as a file."""
    file = tmp_path / "trips.yaml"
    file.write_text(rollup.to_yaml(), encoding="utf-8")
    return str(file)
