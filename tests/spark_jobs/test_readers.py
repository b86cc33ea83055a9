"""What others than Spark read of the tables: the same columns, types and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, Source, optimize
from stairwise.instant import parse_instant
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.engine import Request, run
from tests.spark_jobs.events import events

pytestmark = pytest.mark.spark

_NOON = parse_instant("2024-03-30T12:00Z")
_SPAN = Interval(_NOON - 86_400, _NOON + 86_400)
_TYPES = {
    "count()": "int64",
    "sum(money)": "decimal128(20, 2)",
    "avg(real)": "double",
    "min(single)": "float",
    "min(word)": "string",
    "max(raw)": "binary",
    "max(day)": "date32[day]",
    "max(happened)": "timestamp[us, tz=UTC]",
    "min(clock)": "timestamp[us]",
    "bool_or(flag)": "bool",
    "bit_or(tiny)": "int8",
    "collect_set(word)": "list<element: string>",
    "max(pair)": "struct<x: double, y: int32>",
    "quantile(real, [0, 1])": "list<element: double>",
}


def _with_delta_rs(path: str) -> pa.Table:
    found: pa.Table = DeltaTable(path).to_pyarrow_table()
    return found


def _with_duckdb(path: str) -> pa.Table:
    """The files that the log names, as its schema says: DuckDB itself reads a log with an extension to be fetched."""
    schema = _with_delta_rs(path).schema
    with duckdb.connect() as connection:
        files = connection.read_parquet(DeltaTable(path).file_uris(), hive_partitioning=True)
        found: pa.Table = files.to_arrow_table()
    return found.select(schema.names).cast(schema)


_READERS: Mapping[str, Callable[[str], pa.Table]] = {"delta-rs": _with_delta_rs, "DuckDB": _with_duckdb}


@pytest.fixture(scope="module", params=["tables", "one_table"])
def rollup(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rollup:
    """A rollup that is filled, and written to twice."""
    folder = tmp_path_factory.mktemp("read")
    at = F.timestamp_micros(F.col("_time") * 8_000 + F.lit(_NOON * 1_000_000))
    rows = events(spark, seed=3, per_key=20).withColumn("happened", at).drop("_time", "pause")
    rows.write.format("delta").save(str(folder / "source"))
    filled = Rollup(
        name="read",
        source=Source(path=str(folder / "source"), time="happened"),
        keys=("key",),
        aggregates={f"a{number}": call for number, call in enumerate(_TYPES)},
        windows=("4h", "12h every 4h"),
        target=str(folder / "target"),
        layout=request.param,
        estimates=Estimates(rows_per_day=10**9, distinct_keys=10),
    )
    for is_again in (False, True):
        run(spark, optimize(filled), Request(span=_SPAN, restate=is_again))
    return filled


@pytest.mark.parametrize("reader", _READERS)
def test_others_read_what_spark_reads(reader: str, rollup: Rollup, spark: SparkSession) -> None:
    is_one = rollup.layout.value == "one_table"
    path = str(rollup.target) + ("" if is_one else "/12h_every_4h")
    order = ["window"] * is_one + ["window_start", "window_end", "key"]
    columns = [*order, *dict(rollup.aggregates), "_rows"]
    theirs = _READERS[reader](path).select(columns).sort_by([(name, "ascending") for name in order])
    ours = spark.read.format("delta").load(path).select(columns).toArrow()
    ours = ours.sort_by([(name, "ascending") for name in order])
    found = dict(zip(theirs.column_names, map(str, theirs.schema.types), strict=True))
    assert [found[name] for name in dict(rollup.aggregates)] == list(_TYPES.values())
    assert ours.num_rows > 20
    for name in columns:
        assert repr(theirs.column(name).to_pylist()) == repr(ours.column(name).to_pylist()), name
