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
