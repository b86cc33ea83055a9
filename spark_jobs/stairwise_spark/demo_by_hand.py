"""The tables of the demo as somebody writes them without a plan: a query for each window, all of the raw rows.

``python -m stairwise_spark.demo_by_hand EVENTS TARGET FOLDER`` writes them, in a Spark of its own, and prints JSON: of
each how long it took, how many rows and trips are in windows that end in the year, and whether the plan's has as many.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from stairwise.json_fields import Json
from stairwise_spark.demo_rows import YEAR, ZONE
from stairwise_spark.session import SessionOptions, open_session, sql

_UTC, _LOCAL = "pickup_at", f"from_utc_timestamp(pickup_at, '{ZONE}')"
# Days of Paris are windows of what its clocks show.
WINDOWS = {
    "5m": f"window({_UTC}, '5 minutes')",
    "15m": f"window({_UTC}, '15 minutes')",
    "1h": f"window({_UTC}, '1 hour')",
    "90m": f"window({_UTC}, '90 minutes')",
    "day_in_europe_paris": f"window({_LOCAL}, '1 day')",
    "week_in_europe_paris": f"window({_LOCAL}, '7 days', '7 days', '4 days')",
    "month_in_europe_paris": f"named_struct('start', date_trunc('MONTH', {_LOCAL}),"
    f" 'end', date_trunc('MONTH', {_LOCAL}) + INTERVAL 1 MONTH)",
    "last_28_days": f"window({_LOCAL}, '28 days', '1 day')",
}
"""By the name of its table, the windows of a row, in Spark SQL."""


def query(name: str) -> str:
    """The query for a table, over the view ``events``."""
    start, end = "w.start", "w.end"
    if _LOCAL in WINDOWS[name]:
        start, end = (f"to_utc_timestamp({edge}, '{ZONE}')" for edge in (start, end))
    return (
        f"SELECT zone_id, {start} AS window_start, {end} AS window_end,"  # noqa: S608 - of our own words
        " count(*) AS trips, sum(fare) AS revenue, avg(fare) AS mean_fare"
        f" FROM (SELECT *, {WINDOWS[name]} AS w FROM events) GROUP BY zone_id, w"
    )


def main(events: str, target: str, folder: Path) -> None:
    """Write the tables, one after the other, and compare them with those of the plan."""
    spark = open_session(SessionOptions())
    spark.read.format("delta").load(events).createOrReplaceTempView("events")
    took: dict[str, float] = {}
    for name in WINDOWS:
        begun = time.monotonic()
        sql(spark, query(name)).write.format("delta").mode("overwrite").save(str(folder / name))
        took[name] = round(time.monotonic() - begun, 3)
    ours = spark.read.format("delta").load(target)
    found: dict[str, Json] = {}
    for name, seconds in took.items():
        made = spark.read.format("delta").load(str(folder / name))
        rows, trips = _counted(made)
        is_same = (rows, trips) == _counted(ours.where(F.col("window") == name))
        found[name] = {"seconds": seconds, "rows": rows, "trips": trips, "same": is_same}
    print(json.dumps(found))  # noqa: T201 - the answer


def _counted(table: DataFrame) -> tuple[int, int]:
    """Rows of the windows that end in the year, and trips in them."""
    within = f"unix_seconds(window_end) > {YEAR.start} AND unix_seconds(window_end) <= {YEAR.end}"
    (row,) = table.where(within).agg(F.count(F.lit(1)).alias("rows"), F.sum("trips").alias("trips")).collect()
    return row["rows"], row["trips"]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
