"""Overlapping windows from slices, with work per slice that does not follow the overlap.

The windows that end in a span are numbered. A slice lies in a first window, a last one and all between; so it is a row
with two numbers, whatever the kind of window, and no form needs to know that some days are longer than others. No row
stands for a gap: a window comes out iff some slice lies in it.

Exploded
    Input: slices in any order. Requirement on the aggregate: none. Time: the overlap. Space: a hash table of windows.
Running
    Input: slices in order. Requirement: exactly invertible, which is a question of types: what leaves a double does not
    take everything with it. Time: 2, each slice enters once and leaves once. Space: one state; it is always the content
    of a window or of a part of one, so that it overflows where a window does. First appeared: subtract-on-evict.
Blocks
    Input: slices in order, and in the reverse order. Requirement: associative. Time: 3, what a block holds up to a
    slice, what it holds from a slice on, and the two put together. Space: one state. First appeared: van Herk 1992.
Tree
    Input: slices in any order. Requirement: associative. Time: about 2 log2 of the overlap: a slice goes to the few
    nodes of a binary tree that stand for its windows, and a node to each of its windows. Space: as Exploded, twice.
    First appeared: Bentley 1977, segment trees.

In all of them rows that are distributed by the keys stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType
from pyspark.sql.window import WindowSpec

from stairwise.aggregate import ROWS, Invertibility, Partial, Primitive
from stairwise.final_aggregation import Technique
from stairwise.window import Window
from stairwise.windowing import Interval
from stairwise_spark.expressions import combined
from stairwise_spark.grid import bounded, numbered, overlap
from stairwise_spark.names import column

# Up to here making copies is cheaper than sorting. CPU seconds for 400,000 slices of two states on two shared cores:
# copies took 0.7 at overlap 2, 1.2 at 20, 1.4 at 30 and 2.4 at 60; Running and Blocks 1.0 to 1.5, at 2 as at 1,440.
EXPLODED_OVERLAP = 20
_CELL = ("_first", "_last", "_pivot")


def slid(
    frame: DataFrame,
    window: Window,
    keys: Sequence[str],
    partials: Sequence[Partial],
    technique: Technique,
    span: Interval,
) -> DataFrame:
    """The windows that end in the span, put together from slices that no edge of a window cuts.

    Args:
        frame: Slices, as a TIER frame. Distribute it by its keys, and nothing is shuffled here.
        window: Windows that overlap.
        keys: The names of the keys.
        partials: The states to put together; how many rows there are is always one of them.
        technique: The plan's choice; Running also needs exact types, and where windows overlap little all are Exploded.
        span: Seconds, of which the start is excluded and the end included.
    """
    merge = _Merge(tuple(keys), tuple(dict.fromkeys((*partials, ROWS))))
    slices = numbered(frame, window, column("_begin"), span)
    if overlaps_much(window, span):
        # Several slices may lie between the same edges of windows.
        slices = merge.grouped(slices, *_CELL)
    return _windows(slices, window, merge, technique, span)


def slid_from_events(
    rows: DataFrame,
    window: Window,
    keys: Sequence[str],
    partials: Sequence[Partial],
    states: Sequence[Column],
    span: Interval,
) -> DataFrame:
    """The same windows, of events: those between the same edges of windows are merged before they are put together.

    Args:
        rows: Events, as a RAW frame.
        window: Windows that overlap much.
        keys: The names of the keys.
        partials: The states of a window, as of :func:`slid`.
        states: What makes them of events, when these are grouped.
        span: Seconds, of which the start is excluded and the end included.
    """
    merge = _Merge(tuple(keys), tuple(partials))
    cells = numbered(rows, window, column("_time"), span).groupBy(*merge.key_columns, *_CELL).agg(*states)
    return _windows(cells, window, merge, Technique.RUNNING, span)


def overlaps_much(window: Window, span: Interval) -> bool:
    """Whether a copy of a slice for each of its windows costs more than to put them in order."""
    return overlap(window, span) > EXPLODED_OVERLAP


@dataclass(frozen=True, slots=True)
class _Merge:
    """What is put together, and for whom."""

    keys: tuple[str, ...]
    partials: tuple[Partial, ...]

    @property
    def key_columns(self) -> list[Column]:
        return [column(key) for key in self.keys]

    @property
    def states(self) -> list[Column]:
        return [column(name) for partial in self.partials for name in partial.columns]

    def combined(self, over: WindowSpec | None = None) -> list[Column]:
        return [state for partial in self.partials for state in combined(partial, over)]

    def grouped(self, frame: DataFrame, *by: str) -> DataFrame:
        """One row for each key and each of `by`, with the states of all its rows."""
        return frame.groupBy(*self.key_columns, *by).agg(*self.combined())

    def is_invertible(self, frame: DataFrame) -> bool:
        """Whether a row can be taken out of every state of the frame again, exactly."""
        return all(
            partial.traits.invertibility is not Invertibility.NEVER and _is_exact(frame.schema[partial.name].dataType)
            for partial in self.partials
        )


def _is_exact(kind: DataType) -> bool:
    return isinstance(kind, IntegralType | DecimalType)


def _windows(slices: DataFrame, window: Window, merge: _Merge, technique: Technique, span: Interval) -> DataFrame:
    """A TIER frame of what was numbered."""
    found = bounded(_slid(slices, merge, technique, overlap(window, span)), window, span)
    return found.select(*merge.key_columns, "_begin", "_end", *merge.states)


def _slid(slices: DataFrame, merge: _Merge, technique: Technique, copies: int) -> DataFrame:
    """The states of each window, by its `_number`."""
    if copies <= EXPLODED_OVERLAP or technique in {Technique.DIRECT, Technique.NAIVE}:
        return _exploded(slices, merge)
    # States that grow with what is in them are written once for each node, not once for each slice of a block.
    if technique is Technique.FLAT_FAT or any(partial.traits.keeps_values for partial in merge.partials):
        return _by_tree(slices, merge, copies)
    if technique is Technique.RUNNING and merge.is_invertible(slices):
        return _running(slices, merge)
    return _by_blocks(slices, merge)


def _exploded(slices: DataFrame, merge: _Merge) -> DataFrame:
    return merge.grouped(_each(slices, column("_first"), column("_last")), "_number")


def _each(frame: DataFrame, first: Column, last: Column) -> DataFrame:
    """Each row once for each window from the first to the last, which must not come before it."""
    return frame.withColumn("_number", F.explode(F.sequence(first, last)))


def _running(slices: DataFrame, merge: _Merge) -> DataFrame:
    """A slice enters with its first window and leaves after its last one."""
    entering = F.struct(column("_first").alias("_at"), F.lit(1).alias("_sign"))
    leaving = F.struct((column("_last") + F.lit(1)).alias("_at"), F.lit(-1).alias("_sign"))
    events = slices.select(*merge.key_columns, *merge.states, F.inline(F.array(entering, leaving)))
    # Who leaves goes first, so that no total is ever more than a window's.
    order = Rows.partitionBy(*merge.key_columns).orderBy("_at", "_sign")
    before = order.rowsBetween(Rows.unboundedPreceding, Rows.currentRow)
    types = {partial: slices.schema[partial.name].dataType for partial in merge.partials}
    totals = [_total(partial, before).cast(kind).alias(partial.name) for partial, kind in types.items()]
    following = F.lead("_at").over(order).alias("_following")
    found = events.select(*merge.key_columns, "_at", following, *totals)
    held = found.where((column("_at") < column("_following")) & (column(ROWS.name) > 0))
    return _each(held, column("_at"), column("_following") - F.lit(1)).drop("_at", "_following")


def _total(partial: Partial, before: WindowSpec) -> Column:
    """What has entered and not left; NULL if there is none that is not NULL."""
    state, sign = column(partial.name), column("_sign")
    present = F.sum(F.when(state.isNotNull(), sign)).over(before)
    if partial.primitive is Primitive.BIT_XOR:
        return F.when(present > 0, F.bit_xor(state).over(before))
    return F.when(present > 0, F.sum(F.when(sign > 0, state).otherwise(-state)).over(before))


def _by_blocks(slices: DataFrame, merge: _Merge) -> DataFrame:
    """A window is what its first block holds from some slice on, and what the next one holds up to some slice."""
    first, last, pivot = column("_first"), column("_last"), column("_pivot")
    up = Rows.partitionBy(*merge.key_columns, pivot).orderBy(first, last)
    down = Rows.partitionBy(*merge.key_columns, pivot).orderBy(first.desc(), last.desc())
    # By range, so that slices of one cell see each other; only one of them has windows left to serve.
    to_here, from_here = (order.rangeBetween(Rows.unboundedPreceding, Rows.currentRow) for order in (up, down))
    # A window that ends in this block began before its pivot, and holds this slice but not the next.
    ended = F.least(last, pivot - F.lit(1), F.lead(first).over(up) - F.lit(1))
    # A window that begins in this block holds this slice but not the one before.
    begun = F.coalesce(F.lag(last).over(up) + F.lit(1), pivot)
    head = F.struct(first.alias("_from"), ended.alias("_to"), *merge.combined(to_here))
    tail = F.struct(begun.alias("_from"), last.alias("_to"), *merge.combined(from_here))
    halves = slices.select(*merge.key_columns, head.alias("_head"), tail.alias("_tail"))
    parts = halves.select(*merge.key_columns, F.inline(F.array("_head", "_tail")))
    held = parts.where(column("_from") <= column("_to"))
    return merge.grouped(_each(held, column("_from"), column("_to")), "_number")


def _by_tree(slices: DataFrame, merge: _Merge, copies: int) -> DataFrame:
    """A node of the tree is a run of windows whose length is a power of two, and so is the number of its multiple."""
    first, beyond = column("_first"), column("_last") + F.lit(1)
    nodes: list[Column] = []
    for level in range(copies.bit_length()):
        size = 1 << level
        left, right = F.shiftright(first + F.lit(size - 1), level), F.shiftright(beyond, level)
        nodes += [
            F.when((left < right) & (node % 2 == is_odd), _node(node, size))
            for node, is_odd in ((left, 1), (right - F.lit(1), 0))
        ]
    spread = slices.withColumn("_node", F.explode(F.array(*nodes))).where(column("_node").isNotNull())
    grouped = merge.grouped(spread.select("*", "_node.*"), "_from", "_to")
    return merge.grouped(_each(grouped, column("_from"), column("_to")), "_number")


def _node(number: Column, size: int) -> Column:
    begin = number * F.lit(size)
    return F.struct(begin.alias("_from"), (begin + F.lit(size - 1)).alias("_to"))
