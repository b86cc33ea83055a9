from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from stairwise.aggregate import ROWS, Aggregate, Partial, partial_columns
from stairwise.final_aggregation import Technique
from stairwise.window import Window
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.expressions import argument_types, combined, lifted, lowered
from stairwise_spark.grid import in_windows
from stairwise_spark.sliding import overlaps_much, slid, slid_from_events

pytestmark = pytest.mark.spark

DAY = 86_400
MICROS = 1_000_000
EXACT = ("count()", "count(few)", "sum(small)", "sum(money)", "bit_xor(few)")
ORDERED = (
    *EXACT,
    "sum(real)",
    "min(real)",
    "max(word)",
    "bool_and(small > 3)",
    "stddev_pop(real)",
    "max_by(word, small)",
)
MERGING = ("count()", "approx_distinct(small)", "quantile(real, 0.5)", "top_k(few, 3)")
KEPT = (*MERGING, "count_distinct(small)", "median(small)")


def frame_of(spark: SparkSession, rows: Iterable[tuple[object, ...]], schema: str) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def rows_with_gaps(spark: SparkSession, span: Interval, step: int) -> DataFrame:
    """Rows at uneven instants, five keys of which one is NULL and one has two rows a long way apart."""
    length = (span.end - span.start) * MICROS
    times = [span.start * MICROS + (number * number * 7_919_000_003) % length for number in range(260)]
    rows = [
        (
            time,
            None if number % 4 == 3 else number % 4,
            number % 13 - 6,
            Decimal(number % 101) / 100,
            (number % 17) / 7 if number % 5 else float("nan") if number % 35 == 0 else None,
            f"w{number % 29}",
            number % 7 if number % 3 else None,
        )
        for number, time in enumerate(times)
    ]
    rows += [(edge * MICROS, 9, 1, Decimal(1), 1.0, "alone", None) for edge in (span.start + step, span.end - 5 * step)]
    schema = "_time bigint, key int, small bigint, money decimal(12, 2), real double, word string, few int"
    return frame_of(spark, rows, schema)


def sliced(
    raw: DataFrame, slices: Window, span: Interval, states: Sequence[Partial], calls: Sequence[Aggregate]
) -> DataFrame:
    types = argument_types(raw, calls)
    lifts = [state for partial in states for state in lifted(partial, types)]
    return in_windows(raw, slices, F.col("_time"), span).groupBy("key", "_begin", "_end").agg(*lifts)


def merged(frame: DataFrame, window: Window, states: Sequence[Partial], span: Interval) -> DataFrame:
    """The plain way: a copy of each slice for each window."""
    copies = in_windows(frame, window, F.col("_begin"), span)
    return copies.groupBy("key", "_begin", "_end").agg(*(each for partial in states for each in combined(partial)))


RUNNING, BLOCKS, TREE = Technique.RUNNING, Technique.VAN_HERK, Technique.FLAT_FAT
CASES = [
    ("3h every 5m", "5m", [(ORDERED, RUNNING), (MERGING, BLOCKS), (KEPT, BLOCKS)]),
    (
        "131m every 4m offset 3m",
        "1m",
        [(EXACT, RUNNING), (ORDERED, BLOCKS), (EXACT, BLOCKS), (EXACT, RUNNING)],
    ),
    ("20m every 10m", "5m", [(KEPT, BLOCKS)]),
    ("35 days every day in Europe/Paris", "day in Europe/Paris", [(ORDERED, BLOCKS), (EXACT, RUNNING)]),
    ("35 days every day in Pacific/Apia", "1h", [(ORDERED, BLOCKS), (EXACT, RUNNING), (EXACT, TREE)]),
    ("2 months every day in America/New_York", "day in America/New_York", [(ORDERED, BLOCKS), (EXACT, RUNNING)]),
    ("quarter to date every day", "1d", [(ORDERED, BLOCKS), (EXACT, RUNNING), (EXACT, TREE)]),
]
SPANS = {"every day in Europe": (1_695_000_000, 110), "Apia": (1_320_000_000, 110), "New_York": (1_706_000_000, 130)}


def span_for(text: str) -> Interval:
    for part, (start, days) in SPANS.items():
        if part in text:
            return Interval(start, start + days * DAY)
    return Interval(-70 * DAY, 60 * DAY) if "quarter" in text else Interval(-36_000, 50_000)


def content(
    frame: DataFrame, names: Sequence[str], results: Iterable[Column]
) -> dict[tuple[object, ...], list[object]]:
    rows = frame.select("key", "_begin", "_end", *names, *results).collect()
    return {tuple(row[:3]): list(row[3:]) for row in rows}


def is_alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return one == other


@pytest.mark.parametrize(("text", "slices", "forms"), CASES)
def test_each_window_is_as_if_its_slices_had_been_copied_to_it(
    spark: SparkSession, text: str, slices: str, forms: list[tuple[tuple[str, ...], Technique]]
) -> None:
    window, span = parse_window(text), span_for(text)
    calls = dict.fromkeys(call for names, _ in forms for call in names)
    aggregates = [Aggregate.parse(call) for call in calls]
    raw = rows_with_gaps(spark, span, (span.end - span.start) // 100)
    types = argument_types(raw, aggregates)
    tier = sliced(raw, parse_window(slices), span, partial_columns(aggregates), aggregates).localCheckpoint()
    # The slices at both ends lie in windows of which some end outside the span.
    inner = Interval(span.start + (span.end - span.start) // 3 + 7, span.end - (span.end - span.start) // 7)
    wanted = merged(tier, window, partial_columns(aggregates), inner).localCheckpoint()
    for names, technique in forms:
        chosen = [Aggregate.parse(name) for name in names]
        states = partial_columns(chosen)
        found = slid(tier, window, ["key"], states, technique, inner)
        columns = [name for partial in states for name in partial.columns]
        assert found.columns == ["key", "_begin", "_end", *columns]
        assert [field.dataType for field in found.schema] == [wanted.schema[name].dataType for name in found.columns]
        shown = [name for name in columns if not isinstance(wanted.schema[name].dataType, BinaryType | StructType)]
        results = [lowered(each, types).alias(str(index)) for index, each in enumerate(chosen)]
        ours, theirs = (content(frame, shown, results) for frame in (found, wanted))
        assert ours.keys() == theirs.keys()
        assert [(at, ours[at], theirs[at]) for at in theirs if not all(map(is_alike, ours[at], theirs[at]))] == []
        assert len(ours) > 100


@pytest.mark.parametrize(
    "text", ["131m every 4m offset 3m", "35 days every day in Pacific/Apia", "quarter to date every day"]
)
def test_events_come_to_the_same_as_their_slices(spark: SparkSession, text: str) -> None:
    window, span = parse_window(text), span_for(text)
    raw = rows_with_gaps(spark, span, (span.end - span.start) // 100)
    aggregates = [Aggregate.parse(call) for call in ORDERED]
    states = partial_columns(aggregates)  # how many rows there are is one of them
    lifts = [state for partial in states for state in lifted(partial, argument_types(raw, aggregates))]
    inner = Interval(span.start + (span.end - span.start) // 3 + 7, span.end - (span.end - span.start) // 7)
    assert overlaps_much(window, inner)
    found = slid_from_events(raw, window, ["key"], states, lifts, inner)
    copies = in_windows(raw, window, F.col("_time"), inner)
    wanted = copies.groupBy("key", "_begin", "_end").agg(*lifts)
    assert [(each.name, each.dataType) for each in found.schema] == [(e.name, e.dataType) for e in wanted.schema]
    names = [name for name in found.columns[3:] if not isinstance(found.schema[name].dataType, StructType)]
    ours, theirs = (content(frame, names, ()) for frame in (found, wanted))
    assert ours.keys() == theirs.keys()
    assert [(at, ours[at], theirs[at]) for at in theirs if not all(map(is_alike, ours[at], theirs[at]))] == []
    assert len(ours) > 100


def counted(spark: SparkSession, rows: Sequence[tuple[int, int, int]]) -> tuple[DataFrame, Aggregate]:
    """A tier of 1m slices with a sum: keys, minutes and sums."""
    total = Aggregate.parse("sum(x)")
    name = total.partials[0].name
    listed = [(key, minute * 60 * MICROS, (minute + 1) * 60 * MICROS, value, 1) for key, minute, value in rows]
    return frame_of(spark, listed, f"key bigint, _begin bigint, _end bigint, {name} bigint, _rows bigint"), total


@pytest.mark.parametrize("technique", [RUNNING, BLOCKS])
def test_no_total_overflows_that_the_windows_do_not(spark: SparkSession, technique: Technique) -> None:
    large = 2**62
    tier, total = counted(spark, [(0, minute, large) for minute in range(0, 400, 40)])
    found = slid(tier, parse_window("40m every 1m"), ["key"], total.partials, technique, Interval(0, 24_000))
    assert [tuple(row) for row in found.select(total.partials[0].name, "_rows").distinct().collect()] == [(large, 1)]


@pytest.mark.parametrize("technique", [RUNNING, BLOCKS, TREE])
def test_rows_that_are_distributed_by_the_keys_stay_where_they_are(
    spark: SparkSession, technique: Technique, capsys: pytest.CaptureFixture[str]
) -> None:
    tier, total = counted(spark, [(key, minute, 1) for key in range(3) for minute in range(50)])
    found = slid(
        tier.repartition("key"), parse_window("40m every 1m"), ["key"], total.partials, technique, Interval(0, 12_000)
    )
    found.explain()
    assert capsys.readouterr().out.count("Exchange hashpartitioning") == 1


@pytest.mark.parametrize("text", ["40m every 1m", "40 days every day in Europe/Paris", "1h every 30m"])
def test_without_keys_there_is_one_row_for_a_window_and_without_windows_none(spark: SparkSession, text: str) -> None:
    tier, total = counted(spark, [(key, minute, key) for key in (1, 2) for minute in (3, 4, 4_000)])
    slices = (
        tier.drop("key")
        .groupBy("_begin", "_end")
        .agg(*(each for state in (*total.partials, ROWS) for each in combined(state)))
    )
    for technique in (RUNNING, BLOCKS):
        span = Interval(0, 50 * DAY)
        found = slid(slices, parse_window(text), [], total.partials, technique, span)
        held = [
            (begin * MICROS, end * MICROS, 3 * inside, 2 * inside)
            for begin, end in windows_ending(parse_window(text), *span)
            if (inside := sum(begin <= minute * 60 < end for minute in (3, 4, 4_000)))
        ]
        assert sorted((row[0], row[1], row[2], row[3]) for row in found.collect()) == held
        none = slid(slices, parse_window(text), [], total.partials, technique, Interval(0, 0))
        assert (none.columns, none.collect()) == (found.columns, [])
