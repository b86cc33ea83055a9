from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.window import FixedWindow, Window
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_at, windows_ending
from stairwise_spark import grid
from stairwise_spark.grid import cells_of, covered, in_slices, in_windows, is_within, picked, reach, within
from stairwise_spark.spans import WORD, hull, joined, masked
from tests.strategies import instants, windows

pytestmark = pytest.mark.spark

DAY = 86_400
YEAR_2024 = 1_704_067_200
SKIPPED_DAY = 1_325_239_200  # 2011-12-30T10:00Z, when 2011-12-31 began in Apia
MICROS = 1_000_000
Found = list[tuple[int, int, int]]

# Each with an instant around which something happens to it.
WINDOWS = [
    ("1m", 0),
    ("7s offset 3s", YEAR_2024),
    ("1w", -5 * DAY),
    ("1h every 15m", 0),
    ("50s every 20s offset 7s", -1_000_000_000),
    ("25h every 7h", 0),
    ("day in Europe/Paris", 1_711_846_800),  # 2024-03-31T01:00Z: clocks forward
    ("day in America/New_York", 1_730_613_600),  # 2024-11-03T06:00Z: clocks back
    ("day in Asia/Kolkata", -876_634_200),
    ("day in Australia/Lord_Howe", 1_712_415_600),  # by half an hour
    ("day in Pacific/Apia", SKIPPED_DAY),
    ("day in America/Sao_Paulo", 1_541_300_400),  # 2018-11-04T03:00Z: no midnight
    ("day in Europe/Paris", -1_855_958_961),  # 1911: the end of local mean time
    ("day offset 6h in America/Havana", 1_520_744_400),
    ("week from sunday in America/New_York", 1_710_054_000),
    ("month in Europe/Paris", 0),
    ("3 days every day in Europe/Paris", 1_711_846_800),
    ("28 days every day in Europe/Paris", 1_729_990_800),
    ("2 days every day in Pacific/Apia", SKIPPED_DAY),
    ("28 days every week in America/New_York", -3_000_000_000),
    ("month every day in Australia/Lord_Howe", 1_709_164_800),
    ("35 days every month", YEAR_2024),
    ("quarter every month in Asia/Kolkata", YEAR_2024),
    ("1d to date every 1h", -DAY),
    ("1d to date every 7h", 0),
    ("week to date every day in Europe/Paris", 1_711_846_800),
    ("month to date every week in Pacific/Apia", SKIPPED_DAY),
    ("month to date every 5h", YEAR_2024 + 31 * DAY),
    ("day to date every 5h in America/New_York", 1_730_613_600),
]


def window(text: str) -> Window:
    return parse_window(text)


def longest(one: Window) -> int:
    ending = windows_ending(one, 0, 800 * DAY)
    return max(end - start for start, end in (next(ending) for _ in range(3)))


def instants_around(one: Window, middle: int) -> list[int]:
    """Microseconds: edges, just before and after, and any others."""
    near = [windows_at(one, middle + shift * longest(one) // 2) for shift in (-2, -1, 0, 1, 2)]
    edges = [edge * MICROS for group in near for each in (group[0], group[-1]) for edge in each]
    low, high = ((middle + side * 3 * longest(one)) * MICROS for side in (-1, 1))
    return sorted({*(edge + shift for edge in edges for shift in (-1, 0, 1)), *range(low, high, (high - low) // 37)})


def by_hand(one: Window, span: Interval, instants: Iterable[int]) -> Found:
    return sorted(
        (instant, start * MICROS, end * MICROS)
        for instant in instants
        for start, end in windows_at(one, instant // MICROS)
        if span.start < end <= span.end
    )


def frame_of(spark: SparkSession, rows: Iterable[tuple[int | str | float, ...]], schema: str) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def found_in(frame: DataFrame, *columns: str) -> Found:
    rows = frame.select(*columns).collect()
    return sorted((int(row[0]), int(row[1]), int(row[2])) for row in rows)


@pytest.mark.parametrize(("text", "middle"), WINDOWS)
def test_each_row_is_in_the_windows_that_hold_its_instant_and_end_in_the_span(
    spark: SparkSession, text: str, middle: int
) -> None:
    one = window(text)
    instants = instants_around(one, middle)
    span = Interval(middle - 2 * longest(one) - 1, middle + 2 * longest(one) + 1)
    frame = frame_of(spark, [(instant,) for instant in instants], "_time bigint")
    found = found_in(in_windows(frame, one, F.col("_time"), span), "_time", "_begin", "_end")
    assert found == by_hand(one, span, instants)
    assert found


EDGE_CASES = [
    "20s",
    "50s every 20s offset 7s",
    "day in Europe/Paris",
    "3 days every day in Europe/Paris",
    "1d to date every 7h",
    "week to date every day in Europe/Paris",
]


@pytest.mark.parametrize("text", EDGE_CASES)
def test_a_window_belongs_to_the_span_that_it_ends_in_and_to_no_other(spark: SparkSession, text: str) -> None:
    one = window(text)
    start, end = windows_at(one, 0)[0]
    spans = [Interval(end - 1, end), Interval(end, end), Interval(end - 1, end - 1), Interval(start - 1, end + 1)]
    instants = instants_around(one, 0)
    frame = frame_of(spark, [(instant,) for instant in instants], "_begin bigint").withColumn("_time", F.col("_begin"))
    for span in spans:
        found = found_in(in_windows(frame, one, F.col("_begin"), span), "_time", "_begin", "_end")
        assert found == by_hand(one, span, instants)
        ending = list(windows_ending(one, *span))
        assert reach(one, span) == (Interval(ending[0].start, ending[-1].end) if ending else (span.start, span.start))


@pytest.mark.parametrize(("text", "middle"), WINDOWS)
def test_what_must_be_read_goes_from_the_first_begin_to_the_last_end(text: str, middle: int) -> None:
    one = window(text)
    span = Interval(middle - 2 * longest(one) - 1, middle + 2 * longest(one) + 1)
    ending = list(windows_ending(one, *span))
    assert reach(one, span) == (min(start for start, _ in ending), max(end for _, end in ending))


@pytest.mark.parametrize(
    "edges",
    [
        EdgeSet.of((60, 7)),
        EdgeSet.of((20, 0), (30, 5)),
        EdgeSet.of((DAY, 3_600), (DAY, 7_200), (7 * DAY, 4 * DAY), (1_800, 60)),
    ],
)
def test_each_row_is_in_the_slice_between_the_edges_around_it(spark: SparkSession, edges: EdgeSet) -> None:
    span = Interval(-2 * DAY, 2 * DAY) if len(edges.classes) > 2 else Interval(-400, 400)
    cuts = list(edges.between(*span))
    wanted = [
        (instant, a * MICROS, b * MICROS)
        for a, b in pairwise(cuts)
        for instant in (a * MICROS, a * MICROS + 1, b * MICROS - 1)
    ]
    frame = frame_of(spark, [(instant,) for instant, _, _ in wanted], "_time bigint")
    assert found_in(in_slices(frame, edges, F.col("_time")), "_time", "_begin", "_end") == sorted(wanted)


PICKED = [
    ("1h every 15m", "1h every 45m offset 30m"),
    ("1h every 15m", "1h"),
    ("28 days every day in Europe/Paris", "28 days every week in Europe/Paris"),
    ("1d to date every 1h", "1d to date every 6h"),
    ("month to date every 1h in Europe/Paris", "month to date every 5h in Europe/Paris"),
    ("month to date every day in Europe/Paris", "month to date every week in Europe/Paris"),
]


@pytest.mark.parametrize(("parent", "child"), PICKED)
def test_picked_rows_are_those_of_the_childs_own_windows(spark: SparkSession, parent: str, child: str) -> None:
    span = Interval(YEAR_2024 + 80 * DAY, YEAR_2024 + 95 * DAY)
    rows = [(a * MICROS, b * MICROS) for a, b in windows_ending(window(parent), span.start - DAY, span.end + DAY)]
    # What is no window of the parent is none of the child either, however near it comes.
    others = [(a + MICROS, b + MICROS) for a, b in rows[:3]] + [(a, b + MICROS) for a, b in rows[:3]]
    frame = frame_of(spark, rows + others, "_begin bigint, _end bigint")
    found = found_in(picked(frame, window(child), span), "_begin", "_begin", "_end")
    assert found == sorted((a * MICROS, a * MICROS, b * MICROS) for a, b in windows_ending(window(child), *span))
    assert found


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("20s", "60s every 20s"),
        ("50s every 10s", "90s every 30s offset 10s"),
        ("40s every 20s", "2m"),
        ("25s every 7s", "55s every 14s"),
    ],
)
def test_covered_rows_go_to_each_window_that_holds_the_whole_of_theirs(
    spark: SparkSession, parent: str, child: str
) -> None:
    whole, span = window(child), Interval(-301, 305)
    assert isinstance(whole, FixedWindow)
    rows = list(windows_ending(window(parent), -500, 500))
    listed = [(number, a * MICROS, b * MICROS) for number, (a, b) in enumerate(rows)]
    frame = frame_of(spark, listed, "number bigint, _begin bigint, _end bigint")
    wanted = sorted(
        (number, begin * MICROS, end * MICROS)
        for begin, end in windows_ending(whole, *span)
        for number, (a, b) in enumerate(rows)
        if begin <= a and b <= end
    )
    assert found_in(covered(frame, whole, span), "number", "_begin", "_end") == wanted
    assert found_in(covered(frame, whole, Interval(0, 0)), "number", "_begin", "_end") == []


def test_other_columns_stay_and_the_lists_columns_do_not(spark: SparkSession) -> None:
    frame = frame_of(spark, [(0, 1, "x", 0.5)], "_time bigint, _begin bigint, key string, value double")
    span = Interval(-40 * DAY, 40 * DAY)
    for text in (
        "1h",
        "1h every 15m",
        "day in Europe/Paris",
        "3 days every day",
        "1d to date every 1h",
        "month to date every day",
    ):
        columns = in_windows(frame, window(text), F.col("_time"), span).columns
        assert columns == ["_time", "_begin", "key", "value", "_end"], text


def test_a_long_span_of_long_windows_is_a_short_list() -> None:
    listed = list(windows_ending(window("28 days every day in Europe/Paris"), 0, 3_650 * DAY))
    cells = list(cells_of(listed))
    assert len(cells) == 3_650 + 27
    assert max(cell.last - cell.first for cell in cells) == 27


@settings(max_examples=40)
@given(one=windows(), start=instants())
def test_a_cell_lies_in_the_windows_from_its_first_to_its_last(one: Window, start: int) -> None:
    listed = list(islice(windows_ending(one, start, start + 10**12), 40))
    cells = list(cells_of(listed))
    edges = sorted({edge for each in listed for edge in each})
    held = [
        (begin, end, holders)
        for begin, end in pairwise(edges)
        if (holders := [number for number, each in enumerate(listed) if each.start <= begin and end <= each.end])
    ]
    assert [(cell.begin, cell.end, list(range(cell.first, cell.last + 1))) for cell in cells] == held


@settings(max_examples=40)
@given(one=windows(), start=instants())
def test_a_window_is_the_end_of_a_block_and_the_beginning_of_the_next(one: Window, start: int) -> None:
    listed = list(islice(windows_ending(one, start, start + 10**12), 40))
    cells = list(cells_of(listed))
    blocks = [list(group) for _, group in groupby(cells, key=lambda cell: cell.pivot)]
    for number in range(len(listed)):
        own = [cell for cell in cells if cell.first <= number <= cell.last]
        older = [block for block in blocks if block[0].pivot <= number][-1]
        younger = [cell for block in blocks if block[0].pivot > number for cell in block]
        begun = [cell for cell in own if cell.pivot <= number]
        ended = [cell for cell in own if cell.pivot > number]
        assert begun + ended == own
        assert begun == older[len(older) - len(begun) :]
        assert ended == younger[: len(ended)]


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 6)), min_size=1, max_size=40),
    st.sampled_from([1, 7, 60]),
    st.sampled_from([10, 10_000]),
)
def test_ranges_as_a_mask(ranges: list[tuple[int, int]], step: int, most: int) -> None:
    spans = joined(Interval(start * step, (start + length) * step) for start, length in ranges)
    mask = masked(spans, most)
    if mask is None:
        assert (hull(spans).end - hull(spans).start) // step > most
        return
    cells = range(mask.begin, mask.begin + len(mask.cells) * mask.step, mask.step)
    marked = joined(Interval(at, at + mask.step) for at, byte in zip(cells, mask.cells, strict=True) if byte)
    assert marked == spans
    words = [*mask.words()]
    assert [words[cell // WORD] >> cell % WORD & 1 for cell in range(len(mask.cells))] == [*mask.cells]
    assert all(0 <= word < 1 << WORD for word in words)


@pytest.mark.parametrize("most", [1_000_000, 1], ids=["looked up", "compared or joined"])
def test_instants_in_many_ranges(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Before 1970 too, and outside of all of them, however far."""
    monkeypatch.setattr(grid, "masked", partial(masked, most=most))
    spans = tuple(Interval(at * 30 - 600, at * 30 - 600 + 10 + at % 2 * 10) for at in range(40))
    instants = range(-700 * MICROS, 700 * MICROS, 2_500_000)
    frame = spark.range(instants.start, instants.stop, instants.step).withColumnRenamed("id", "at")
    found = {row[0] for row in frame.where(is_within(F.col("at"), spans)).collect()}
    assert found == {each for each in instants for span in spans if span.start * MICROS <= each < span.end * MICROS}
    assert within(frame, F.col("at"), spans).count() == len(found)
    far = spark.createDataFrame([(sign * 2**60,) for sign in (1, -1)], "at bigint")
    assert far.where(~is_within(F.col("at"), spans)).count() == 2
