"""A small table of events with everything that goes wrong in real ones: a RAW frame, the same for the same seed.

Each key has its own trouble. The times, in microseconds, are before and after 1970 and often equal.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

SCHEMA = """
    key string, _time bigint not null, tiny tinyint, small smallint, whole int, long bigint, single float, real double,
    far double, steady double, money decimal(10, 2), units decimal(20, 0), coins decimal(38, 18), flag boolean,
    word string, raw binary, day date, at timestamp, clock timestamp_ntz, pause interval day to second,
    list array<double>, pair struct<x: double, y: int>, tags map<string, int>
"""
KEYS = ("plain", "wild", "sparse", "equal", "nothing", "single", None)
"""Ordinary values; NaN, infinities and signed zeros; mostly NULL; one value only; NULL only; one row; the NULL key."""

EXAMPLES = {
    "count()": ("count()", "count() where flag"),
    "count(x)": ("count(real)", "count(tags)", "count(word) where whole > 0"),
    "sum(x)": (
        *("sum(tiny)", "sum(long)", "sum(single)", "sum(real)", "sum(money)", "sum(units)", "sum(coins)"),
        *("sum(pause)", "sum(1 / whole) where whole <> 0", "sum(money * 2) where flag"),
    ),
    "avg(x)": (
        *("avg(small)", "avg(long)", "avg(single)", "avg(real)", "avg(money)", "avg(units)", "avg(coins)"),
        *("avg(cast(money as decimal(38, 2)))", "avg(cast(units as decimal(38, 0)))", "avg(pause)"),
        *("avg(cast(whole as decimal(5, 1)))", "avg(cast(coins as decimal(30, 1)))", "avg(money) where whole > 0"),
    ),
    "min(x)": ("min(real)", "min(word)", "min(raw)", "min(day)", "min(at)", "min(clock)", "min(list)", "min(coins)"),
    "max(x)": ("max(real)", "max(single)", "max(word)", "max(flag)", "max(at)", "max(pair)", "max(pause) where flag"),
    "var_pop(x)": ("var_pop(far)", "var_pop(steady)", "var_pop(real)", "var_pop(money)"),
    "var_samp(x)": ("var_samp(far)", "var_samp(whole)"),
    "stddev_pop(x)": ("stddev_pop(far)", "stddev_pop(tiny)"),
    "stddev_samp(x)": ("stddev_samp(far) where flag", "stddev_samp(coins)"),
    "covar_pop(x, y)": ("covar_pop(far, real)", "covar_pop(steady, far)"),
    "covar_samp(x, y)": ("covar_samp(far, whole)", "covar_samp(money, single)"),
    "corr(x, y)": ("corr(far, whole)", "corr(steady, far)", "corr(real, single)", "corr(far, far) where flag"),
    "bool_and(x)": ("bool_and(flag)", "bool_and(whole < 5)"),
    "bool_or(x)": ("bool_or(flag)", "bool_or(real > 900) where flag"),
    "bit_and(x)": ("bit_and(tiny)", "bit_and(long)"),
    "bit_or(x)": ("bit_or(small)",),
    "bit_xor(x)": ("bit_xor(whole)", "bit_xor(long) where flag"),
    "min_by(x, order)": ("min_by(real, whole)", "min_by(word, flag)", "min_by(list, single)", "min_by(raw, day)"),
    "max_by(x, order)": ("max_by(pair, whole)", "max_by(coins, real)", "max_by(at, flag) where whole > 0"),
    "first(x)": ("first(real)", "first(word)", "first(raw)", "first(list)", "first(pause)"),
    "last(x)": ("last(pair)", "last(flag)", "last(money) where flag", "last(at)"),
    "approx_distinct(x[, lgk])": (
        *("approx_distinct(word)", "approx_distinct(real)", "approx_distinct(raw)", "approx_distinct(list, 10)"),
        *("approx_distinct(pair)", "approx_distinct(at) where flag", "approx_distinct(flag)"),
    ),
    "quantile(x, q | [q, ...][, k])": (
        *("quantile(real, [0, 0.25, 0.5, 1])", "quantile(money, 0.5)", "quantile(tiny, 0.9)"),
        *("quantile(single, 0.95, 20) where flag", "quantile(coins, [0.5])"),
    ),
    "top_k(x, k)": ("top_k(word, 2)", "top_k(real, 10000)", "top_k(day, 3) where flag", "top_k(money, 1)"),
    "count_distinct(x)": ("count_distinct(real)", "count_distinct(word) where flag", "count_distinct(list)"),
    "median(x)": ("median(real)", "median(money)", "median(whole)", "median(pause)"),
    "percentile(x, q | [q, ...])": (
        "percentile(real, 0.3)",
        "percentile(long, [0, 0.1, 1])",
        "percentile(pause, [0.7])",
    ),
    "mode(x)": ("mode(word)", "mode(real)", "mode(raw)", "mode(pair)", "mode(day) where flag"),
    "collect_set(x)": ("collect_set(word)", "collect_set(real)", "collect_set(raw)", "collect_set(list)"),
}
"""Calls over these columns by signature: for every entry of the catalogue."""

_WILD = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -1.5, 5e-324)
_WHOLE = ("key", "_time")
_WORDS = ("", "a", "A", "ä", "zebra", "it's `quoted`")


Event = dict[str, object]
"""One row: what each column of the schema holds."""


def event_rows(seed: int, per_key: int = 40) -> list[Event]:
    """So many rows for each key, in random order."""
    source = random.Random(seed)  # noqa: S311 - to be the same again
    rows = [_row(source, key) for key in KEYS for _ in range(1 if key == "single" else per_key)]
    source.shuffle(rows)
    return rows


def events(spark: SparkSession, seed: int, per_key: int = 40) -> DataFrame:
    """The rows as a RAW frame."""
    rows = [tuple(row.values()) for row in event_rows(seed, per_key)]
    return spark.createDataFrame(rows, SCHEMA)  # pyright: ignore[reportUnknownMemberType] - pandas has no types


def _row(source: random.Random, key: str | None) -> Event:
    values = random.Random(7) if key == "equal" else source  # noqa: S311 - as above
    wild = key in ("wild", None)
    real = values.choice(_WILD) if wild else values.uniform(-1000, 1000)
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=values.randint(-(10**16), 10**16))
    row: Event = {
        "key": key,
        "_time": source.randint(-5, 5) * 1_000_000 + source.randint(0, 1),
        "tiny": values.randint(-128, 127),
        "small": values.randint(-(2**15), 2**15 - 1),
        "whole": values.randint(-5, 5),
        "long": values.randint(-(2**62), 2**62) // 1000,
        "single": values.choice(_WILD[:7]) if wild else values.randint(-999, 999) / 8,
        "real": real,
        "far": 1e6 + values.gauss(0, 1),
        "steady": 0.1,
        "money": Decimal(values.randint(-(10**9), 10**9)).scaleb(-2),
        "units": Decimal(values.randint(-(10**20) + 1, 10**20 - 1)),
        "coins": Decimal(values.randint(-(10**30), 10**30)).scaleb(-18),
        "flag": values.random() < 0.5,
        "word": values.choice(_WORDS),
        "raw": values.choice((b"", b"\x00", b"\xff\x00", b"abc")),
        "day": instant.date(),
        "at": instant,
        "clock": instant.replace(tzinfo=None),
        "pause": timedelta(microseconds=values.randint(-(10**12), 10**12)),
        "list": [real, None, values.choice((0.0, -0.0))],
        "pair": (values.choice((0.0, -0.0, None)), values.choice((1, 2, None))),
        "tags": {"a": values.randint(0, 1)},
    }
    return _with_nulls(source, row)


def _with_nulls(source: random.Random, row: Event) -> Event:
    share = {"nothing": 1.0, "sparse": 0.8, "equal": 0.0, "single": 0.0}.get(str(row["key"]), 0.15)
    return {name: None if name not in _WHOLE and source.random() < share else cell for name, cell in row.items()}
