"""Which windows the rows of a frame belong to.

Fixed windows are integer arithmetic on epoch microseconds. Calendar windows are listed by `stairwise.windowing`, as the
zone database of Python has them, and looked up: a list has two rows or so for each day of the span, however long the
windows are. Spans and windows are in whole seconds, `_begin` and `_end` in microseconds; all ranges are half-open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from stairwise.edges import EdgeSet
from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow, Window
from stairwise.windowing import Interval, windows_at, windows_ending
from stairwise.zones import DAY_SECONDS
from stairwise_spark.halves import any_of
from stairwise_spark.names import column
from stairwise_spark.spans import FEW, WORD, Spans, hull, masked

MICROS = 1_000_000

_LISTED_CELLS = "_day bigint, _from bigint, _to bigint, _first bigint, _last bigint, _pivot bigint"
_LISTED_WINDOWS = "_index bigint, _from bigint, _to bigint"
_LISTED_SPANS = "_day bigint, _from bigint, _to bigint"


class Cell(NamedTuple):
    """A stretch of time within which no window of a list begins or ends.

    Attributes:
        begin: In seconds, as is the end.
        end: Where the next begins.
        first: The number of the first window that holds it.
        last: The number of the last one; it is held by all between them.
        pivot: The number of the first window that begins in its block; see `cells_of`.
    """

    begin: int
    end: int
    first: int
    last: int
    pivot: int


def reach(window: Window, span: Interval) -> Interval:
    """What must be read for the windows that end in (start, end] of a span; empty if there are none.

    >>> reach(FixedWindow(60, 20), Interval(60, 130))
    Interval(start=20, end=120)
    """
    if isinstance(window, FixedWindow):
        begins = fixed_begins(window, span)
        return Interval(begins[0], begins[-1] + window.range) if begins else Interval(span.start, span.start)
    first = next(windows_ending(window, *span), None)
    return Interval(span.start, span.start) if first is None else Interval(first.start, _last_end(window, span))


def in_windows(frame: DataFrame, window: Window, begin: Column, span: Interval) -> DataFrame:
    """Each row once for each window that holds the instant `begin` and ends in the span, as `_begin` and `_end`."""
    match window:
        case FixedWindow():
            return _in_fixed(frame, window, begin, span)
        case CalendarWindow():
            return _in_listed(frame, window, begin, span)
        case CumulateWindow(step=FixedWindow() as step):
            return _in_growing(frame, window, step, begin, span)
        case CumulateWindow():
            return _in_listed(frame, window, begin, span)
        case _:
            assert_never(window)


def in_slices(frame: DataFrame, edges: EdgeSet, begin: Column) -> DataFrame:
    """Each row once, with the slice between neighbouring edges that holds the instant `begin`."""
    last_edges = [floored(begin, modulus, residue) for modulus, residue in edges.classes]
    next_edges = [last + micros(modulus) for last, (modulus, _) in zip(last_edges, edges.classes, strict=True)]
    if len(edges.classes) == 1:
        return frame.withColumns({"_begin": last_edges[0], "_end": next_edges[0]})
    return frame.withColumns({"_begin": F.greatest(*last_edges), "_end": F.least(*next_edges)})


def common_grid(edges: EdgeSet) -> tuple[int, int]:
    """The widest step, and the first instant from 0 on, of a grid that holds all edges.

    >>> common_grid(EdgeSet.of((20, 10), (30, 10)))
    (10, 0)
    """
    _, first = edges.classes[0]
    step = gcd(*(each for modulus, residue in edges.classes for each in (modulus, residue - first)))
    return step, first % step


def picked(frame: DataFrame, window: Window, span: Interval) -> DataFrame:
    """The rows whose own window is one of these that ends in the span."""
    begin, end = column("_begin"), column("_end")
    match window:
        case FixedWindow(range=length, slide=slide, origin=origin):
            is_own = (end - begin == micros(length)) & (_past_edge(begin, slide, origin) == 0)
            return frame.where(_is_within(end, span) & is_own)
        case CumulateWindow(step=FixedWindow() as step):
            return _picked_growing(frame, window, step, span)
        case CalendarWindow() | CumulateWindow():
            windows = _listing(frame, _listed(window, span))
            return frame.join(windows, (begin == column("_from")) & (end == column("_to")), "left_semi")
        case _:
            assert_never(window)


def covered(frame: DataFrame, child: FixedWindow, span: Interval) -> DataFrame:
    """Each row once for each window of the child that holds the whole of its own window and ends in the span."""
    begins = fixed_begins(child, span)
    return _hopped(frame, child, begins, column("_begin"), column("_end")) if begins else _nothing(frame)


def overlap(window: Window, span: Interval) -> int:
    """The most windows among those that end in the span that have an instant in common.

    >>> overlap(FixedWindow(50, 20), Interval(0, 1_000)), overlap(FixedWindow(50, 20), Interval(0, 1))
    (3, 0)
    """
    if isinstance(window, FixedWindow):
        return min(-(-window.range // window.slide), len(fixed_begins(window, span)))
    return max((cell.last - cell.first + 1 for cell in cells_of(_listed(window, span))), default=0)


def numbered(frame: DataFrame, window: Window, begin: Column, span: Interval) -> DataFrame:
    """The rows that are in windows that end in the span, with the numbers of the `_first` and the `_last` of these.

    Between them is every number, and the windows are numbered from 0. `_pivot` is the first window that begins in the
    row's block; blocks are such that each window begins in one block and ends in, or at the end of, the next.
    """
    if not isinstance(window, FixedWindow):
        return _located(frame, cells_of(_listed(window, span)), begin).drop("_from", "_to")
    begins, length, slide = fixed_begins(window, span), window.range, window.slide
    origin = begins[0] if begins else span.start
    held = _held(frame, begin, Interval(origin, begins[-1] + length if begins else origin))
    last = F.call_function("div", floored(begin, slide, origin) - micros(origin), micros(slide))
    left = F.call_function("div", floored(begin - micros(length), slide, origin) - micros(origin), micros(slide))
    # As many slides as fit into the range make a block.
    pivot = last - F.pmod(last, F.lit(length // slide))
    first, last = F.greatest(left + F.lit(1), F.lit(0)), F.least(last, F.lit(len(begins) - 1))
    return held.withColumns({"_first": first, "_last": last, "_pivot": pivot})


def bounded(frame: DataFrame, window: Window, span: Interval) -> DataFrame:
    """The frame with `_begin` and `_end` of each window in place of its `_number`."""
    if not isinstance(window, FixedWindow):
        bounds = {"_begin": column("_from"), "_end": column("_to")}
        listed = _listing(frame, _listed(window, span))
        found = frame.join(listed, column("_number") == column("_index")).withColumns(bounds)
        return found.drop("_number", "_index", "_from", "_to")
    begins = fixed_begins(window, span)
    begin = column("_number") * micros(window.slide) + micros(begins[0] if begins else 0)
    return frame.withColumns({"_begin": begin, "_end": begin + micros(window.range)}).drop("_number")


def within(frame: DataFrame, instant: Column, spans: Spans) -> DataFrame:
    """The rows whose instant, in microseconds, is in one of some ranges of seconds."""
    if len(spans) <= FEW or masked(spans) is not None:
        return frame.where(is_within(instant, spans))
    by_day = [
        (day * DAY_SECONDS * MICROS, span.start * MICROS, span.end * MICROS)
        for span in spans
        for day in range(span.start // DAY_SECONDS, -(-span.end // DAY_SECONDS))
    ]
    listed = _broadcast(frame, by_day, _LISTED_SPANS)
    is_in = (column("_day") == floored(instant, DAY_SECONDS, 0)) & (instant >= column("_from"))
    return frame.join(listed, is_in & (instant < column("_to")), "left_semi")


def is_within(instant: Column, spans: Spans) -> Column:
    """Whether an instant, in microseconds, is in one of some ranges of seconds.

    Of many, all are looked up at once: to plan as many comparisons takes longer than to read the rows.
    """
    mask = masked(spans) if len(spans) > FEW else None
    if mask is not None:
        cell = F.call_function("div", instant - micros(mask.begin), micros(mask.step))
        # An array that depends on no row is made once; what is far from all ranges has no word, which is no error.
        words = F.expr(f"array({', '.join(f'{word}L' for word in mask.words())})")
        word = F.get(words, F.call_function("div", cell, F.lit(WORD)))
        bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), F.pmod(cell, F.lit(WORD)).cast("int"))
        return is_within(instant, (hull(spans),)) & (word.bitwiseAND(bit) != F.lit(0))
    found = ((instant >= micros(span.start)) & (instant < micros(span.end)) for span in spans)
    return any_of(found)


def micros(seconds: int) -> Column:
    """So many seconds in microseconds, as a BIGINT."""
    return F.lit(seconds * MICROS).cast("bigint")


def fixed_begins(window: FixedWindow, span: Interval) -> range:
    """The beginnings of the windows that end in (start, end] of a span.

    >>> list(fixed_begins(FixedWindow(60, 20), Interval(60, 130)))
    [20, 40, 60]
    """
    earliest = span.start - window.range + 1
    return range(earliest + (window.origin - earliest) % window.slide, span.end - window.range + 1, window.slide)


def floored(begin: Column, modulus: int, residue: int) -> Column:
    """The last instant of a residue class, in seconds, that is not after `begin`, also before 1970."""
    return begin - _past_edge(begin, modulus, residue)


def cells_of(windows: Sequence[Interval]) -> Iterator[Cell]:
    """The cells that the edges of windows cut, where there is a window; begins and ends must both be in order.

    Cells form blocks such that each window begins in one block and ends in or at the end of the next.

    >>> [cell[2:] for cell in cells_of([Interval(0, 20), Interval(10, 30), Interval(20, 40)])]
    [(0, 0, 0), (0, 1, 0), (1, 2, 2), (2, 2, 2)]
    """
    begins, ends = [each.start for each in windows], [each.end for each in windows]
    pivot, block_end = 0, ends[0] if ends else 0
    for begin, end in pairwise(sorted({*begins, *ends})):
        if begin == block_end:
            pivot = bisect_left(begins, begin)
            block_end = ends[min(pivot, len(ends) - 1)]
        first, last = bisect_right(ends, begin), bisect_right(begins, begin) - 1
        if first <= last:
            yield Cell(begin, end, first, last, pivot)


def _broadcast(frame: DataFrame, rows: Sequence[tuple[int, ...]], schema: str) -> DataFrame:
    return F.broadcast(frame.sparkSession.createDataFrame(rows, schema))


def _past_edge(instant: Column, modulus: int, residue: int) -> Column:
    """How long the last edge of a class is ago; `pmod`, because `%` and `div` go towards zero."""
    return F.pmod(instant - micros(residue), micros(modulus))


def _last_end(window: Window, span: Interval) -> int:
    """The end of the last window that ends in the span; the span's start if there is none."""
    match window:
        case FixedWindow():
            begins = fixed_begins(window, span)
            return begins[-1] + window.range if begins else span.start
        case CalendarWindow():
            return _last_listed(window, span)
        case CumulateWindow(period=period, step=step):
            return max(_last_end(period, span), _last_end(step, span))
        case _:
            assert_never(window)


def _last_listed(window: CalendarWindow, span: Interval) -> int:
    """The end of the last one of those that end in a span, without listing them all; the span's start without any."""
    width = 64 * DAY_SECONDS
    while True:
        start = max(span.start, span.end - width)
        end = max((each.end for each in windows_ending(window, start, span.end)), default=span.start)
        if end > span.start or start == span.start:
            return end
        width *= 8


def _in_fixed(frame: DataFrame, window: FixedWindow, begin: Column, span: Interval) -> DataFrame:
    begins = fixed_begins(window, span)
    if not begins:
        return _nothing(frame)
    held = _held(frame, begin, Interval(begins[0], begins[-1] + window.range))
    if window.is_tumbling:
        start = floored(begin, window.slide, window.origin)
        return held.withColumns({"_begin": start, "_end": start + micros(window.range)})
    return _hopped(held, window, begins, begin, begin + F.lit(1))


def _held(frame: DataFrame, begin: Column, interval: Interval) -> DataFrame:
    return frame.where((begin >= micros(interval.start)) & (begin < micros(interval.end)))


def _hopped(frame: DataFrame, window: FixedWindow, begins: range, begin: Column, end: Column) -> DataFrame:
    """Each row once for each of the windows that hold [begin, end)."""
    slide, length = micros(window.slide), micros(window.range)
    earliest = end - length + F.pmod(micros(window.origin) + length - end, slide)
    first = F.greatest(earliest, micros(begins[0]))
    last = F.least(floored(begin, window.slide, window.origin), micros(begins[-1]))
    # A sequence that ends before it begins would count backwards, or fail.
    hopped = frame.where(first <= last).withColumn("_begin", F.explode(F.sequence(first, last, slide)))
    return hopped.withColumn("_end", column("_begin") + length)


def _in_listed(frame: DataFrame, window: CalendarWindow | CumulateWindow, begin: Column, span: Interval) -> DataFrame:
    if window.is_tumbling:
        bounds = {"_begin": column("_from"), "_end": column("_to")}
        found = _located(frame, cells_of(_listed(window, span)), begin).withColumns(bounds)
        return found.drop("_from", "_to", "_first", "_last", "_pivot")
    within = numbered(frame, window, begin, span)
    each = within.withColumn("_number", F.explode(F.sequence("_first", "_last"))).drop("_first", "_last", "_pivot")
    return bounded(each, window, span)


@lru_cache(maxsize=8)
def _listed(window: CalendarWindow | CumulateWindow, span: Interval) -> tuple[Interval, ...]:
    """The windows that end in the span, which one computation asks for several times."""
    return tuple(windows_ending(window, *span))


def _listing(frame: DataFrame, windows: Sequence[Interval]) -> DataFrame:
    listed = [(index, each.start * MICROS, each.end * MICROS) for index, each in enumerate(windows)]
    return _broadcast(frame, listed, _LISTED_WINDOWS)


def _located(frame: DataFrame, cells: Iterable[Cell], begin: Column) -> DataFrame:
    """The rows whose instant `begin` is in a cell, with that cell as `_from`, `_to`, `_first`, `_last` and `_pivot`."""
    by_day = [
        (day * DAY_SECONDS * MICROS, cell.begin * MICROS, cell.end * MICROS, cell.first, cell.last, cell.pivot)
        for cell in cells
        for day in range(cell.begin // DAY_SECONDS, -(-cell.end // DAY_SECONDS))
    ]
    listed = _broadcast(frame, by_day, _LISTED_CELLS)
    is_within = (
        (column("_day") == floored(begin, DAY_SECONDS, 0)) & (begin >= column("_from")) & (begin < column("_to"))
    )
    return frame.join(listed, is_within).drop("_day")


def _in_growing(
    frame: DataFrame, window: CumulateWindow, step: FixedWindow, begin: Column, span: Interval
) -> DataFrame:
    """By way of the period: the windows are those from the next edge of the step to the period's end."""
    at, end, slide = column("_at"), column("_end"), micros(step.slide)
    periods = in_windows(frame.withColumn("_at", begin), window.period, at, _of_periods(window, span))
    first = floored(F.greatest(at, micros(span.start)), step.slide, step.origin) + slide
    last = F.least(end - F.lit(1), micros(span.end))
    none = F.array().cast("array<bigint>")
    inner = F.when(first <= last, F.sequence(first, last, slide)).otherwise(none)
    whole = F.when(_is_within(end, span), F.array(end)).otherwise(none)
    return periods.withColumn("_end", F.explode(F.concat(inner, whole))).drop("_at")


def _of_periods(window: CumulateWindow, span: Interval) -> Interval:
    """The span within which each period ends that has a window that ends in the given span."""
    if span.start >= span.end:
        return span
    return Interval(span.start, windows_at(window.period, span.end - 1)[0].end)


def _picked_growing(frame: DataFrame, window: CumulateWindow, step: FixedWindow, span: Interval) -> DataFrame:
    own_begin, own_end, end = column("_own_begin"), column("_own_end"), column("_end")
    own = frame.withColumns({"_own_begin": column("_begin"), "_own_end": end})
    periods = in_windows(own, window.period, own_begin, _of_periods(window, span))
    is_edge = (own_end < end) & (_past_edge(own_end, step.slide, step.origin) == 0)
    is_own = (own_begin == column("_begin")) & ((own_end == end) | is_edge)
    found = periods.where(is_own & _is_within(own_end, span))
    return found.withColumn("_end", own_end).drop("_own_begin", "_own_end")


def _is_within(end: Column, span: Interval) -> Column:
    """Whether an end is in (start, end] of a span."""
    return (end > micros(span.start)) & (end <= micros(span.end))


def _nothing(frame: DataFrame) -> DataFrame:
    return frame.where(F.lit(False)).withColumns({"_begin": micros(0), "_end": micros(0)})  # noqa: FBT003 - a literal
