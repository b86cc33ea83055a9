"""A range in chunks: by a length, or as much as tasks can take, cut where windows end."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from stairwise import Rollup, Source, optimize
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_at
from stairwise_spark import chunks
from stairwise_spark.chunks import Pace, equal, fitting, paced
from stairwise_spark.delta_log import Busy
from stairwise_spark.event_time import MICROS
from stairwise_spark.expressions import direct
from stairwise_spark.source import PinnedSource, open_source

DAY = 86_400
WINDOWS = tuple(map(parse_window, ("month in Europe/Paris", "day in Europe/Paris", "1h")))
ALL_TIME = Interval(0, 60 * DAY)


def busy(first: int, last: int, rows: int) -> Busy:
    return Busy(first=first * MICROS, last=last * MICROS, rows=rows)


def lasting(start: int, seconds: int) -> Interval:
    return Interval(start, start + seconds)


def test_equal_chunks_begin_at_multiples_of_their_length() -> None:
    assert list(equal(Interval(-25, 20), 10)) == [
        Interval(-25, -20), Interval(-20, -10), Interval(-10, 0), Interval(0, 10), Interval(10, 20)
    ]  # fmt: skip
    assert list(equal(Interval(20, 20), 10)) == []


def test_a_pace_adds_what_happens_at_the_same_time() -> None:
    pace = Pace.of([busy(0, 100, 100), busy(50, 100, 100), busy(200, 200, 7)])
    assert [round(pace.until(second)) for second in (-9, 0, 50, 75, 100, 200, 201, 999)] == [
        0, 0, 50, 125, 200, 200, 207, 207
    ]  # fmt: skip
    assert [pace.reached(rows) for rows in (0.0, 50.0, 125.0)] == [0, 50, 75]


@pytest.mark.parametrize(
    ("rows_a_day", "most_rows", "begins"),
    [
        pytest.param(1_000, 60_001, [0], id="all of it fits"),
        pytest.param(1_000, 40_000, [0, 31 * DAY - 3_600], id="a month fits"),
        pytest.param(1_000, 20_000, [0, 20 * DAY - 3_600, 31 * DAY - 3_600, 51 * DAY - 3_600], id="days, or a month"),
    ],
)
def test_chunks_end_where_the_coarsest_window_does_that_fits(
    rows_a_day: int, most_rows: int, begins: list[int]
) -> None:
    pace = Pace.of([busy(0, 60 * DAY, 60 * rows_a_day)])
    assert [each.start for each in paced(ALL_TIME, pace, most_rows, WINDOWS)] == begins


@given(
    days=st.lists(
        st.builds(busy, st.integers(0, 40 * DAY), st.integers(0, 60 * DAY), st.integers(1, 10**9)), min_size=1
    ),
    share=st.floats(0.01, 2),
    span=st.builds(lasting, st.integers(-DAY, 50 * DAY), st.integers(1, 60 * DAY)),
)
def test_chunks_are_the_range_and_fit(days: list[Busy], share: float, span: Interval) -> None:
    pace = Pace.of(days)
    most_rows = max(share * pace.total, 1.0)
    found = list(paced(span, pace, most_rows, WINDOWS))
    assert (found[0].start, found[-1].end) == (span.start, span.end)
    assert all(one.end == other.start for one, other in pairwise(found))
    hours = parse_window("1h")
    for each in found[:-1]:
        assert windows_at(hours, each.end)[0].start == each.end
        is_one_hour = each.end - each.start <= 3_600
        assert is_one_hour or pace.until(each.end) - pace.until(each.start) <= most_rows * 1.000001 + 1


def test_where_no_window_tumbles_chunks_end_anywhere() -> None:
    pace = Pace.of([busy(0, 100, 100)])
    assert [tuple(each) for each in paced(Interval(0, 100), pace, 40, [])] == [(0, 40), (40, 80), (80, 100)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_source_of_many_bytes_is_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = str(tmp_path / "events")
    rows = spark.range(0, 10 * DAY, 600).selectExpr("timestamp_seconds(id) AS at", "uuid() AS text")
    rows.repartitionByRange(5, "at").write.format(kind).save(path)
    rollup = Rollup(
        name="trips", source=Source(path=path, time="at", format=kind), aggregates={"n": "count()"},
        windows=("1h", "day in UTC"), target=str(tmp_path / "target"),
    )  # fmt: skip
    source = open_source(spark, rollup, direct)
    plan, span = optimize(rollup), Interval(0, 10 * DAY)
    assert list(fitting(plan, source, span, 8, (span,))) == [span]
    size = source.about_bytes((span,))
    assert size is not None
    assert size == source.files((span,)).bytes
    monkeypatch.setattr(chunks, "BYTES_A_TASK", size // 16)
    found = list(fitting(plan, source, span, 8, (span,)))
    assert [each.start for each in found] == [0, 4 * DAY, 8 * DAY]


@pytest.mark.spark
def test_a_source_that_says_nothing_is_not_cut(spark: SparkSession, tmp_path: Path) -> None:
    rollup = Rollup(
        name="trips", source=Source(sql="SELECT timestamp_seconds(id) AS at FROM range(10)", time="at"),
        aggregates={"n": "count()"}, windows=("1h",), target=str(tmp_path),
    )  # fmt: skip
    source: PinnedSource = open_source(spark, rollup, direct)
    assert list(fitting(optimize(rollup), source, ALL_TIME, 1, (ALL_TIME,))) == [ALL_TIME]
    assert list(fitting(optimize(rollup), source, Interval(0, 0), 1, ())) == []
