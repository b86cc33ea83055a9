"""How a tier comes of its parent: functions of a step and a frame, which read nothing, write nothing and run nothing.

A TIER frame has the keys, `_begin` and `_end` in microseconds, and the states of all aggregates that merge. Those that
do not merge are results under their own names, or states too in a tier that keeps values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from stairwise.aggregate import ROWS, Aggregate, Partial, Sharing, partial_columns
from stairwise.evolution import MARK
from stairwise.plan import Plan, Step
from stairwise.tiers import How, Kind, Tier
from stairwise.window import FixedWindow
from stairwise.windowing import Interval, ends_touched, windows_at
from stairwise_spark.expressions import combined, direct, lifted, lowered
from stairwise_spark.grid import common_grid, covered, floored, in_slices, in_windows, micros, picked, reach
from stairwise_spark.inputs import Types
from stairwise_spark.names import column
from stairwise_spark.rows import NUMBER, Rows
from stairwise_spark.sliding import overlaps_much, slid, slid_from_events
from stairwise_spark.spans import Spans, hull, in_whole_slices, joined

_BOUNDS = ("_begin", "_end")
IS_PARTIAL = MARK
"""The column that says of a window, where the declaration wants both kinds, that it has not ended."""
# The share of a grid's instants that are edges, from which on to merge twice costs less than to look for edges.
_ENOUGH_OF_A_GRID = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the rows of all tiers of a rollup hold.

    Attributes:
        keys: The columns by which events are grouped.
        aggregates: What is computed of each group, by name.
        types: The types of what the aggregates take.
        valid_from: Where the first window begins of which a result is known, by its name; of others, of all of them.
    """

    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    types: Types
    valid_from: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def results(self) -> tuple[tuple[str, Aggregate], ...]:
        """The aggregates that do not merge."""
        return tuple((name, each) for name, each in self.aggregates if each.sharing is Sharing.HOLISTIC)

    def partials(self, *, keeps_values: bool) -> tuple[Partial, ...]:
        """The states of a row, with or without those that hold the values themselves."""
        kept = [each for _, each in self.aggregates if keeps_values or each.sharing is not Sharing.HOLISTIC]
        return tuple(dict.fromkeys((*partial_columns(kept), ROWS)))


def held(tier: Tier, span: Interval) -> Interval:
    """From the begin of the first window that ends in the span to the end of the last; empty if none does."""
    if tier.window is not None:
        return reach(tier.window, span)
    first, last = (
        max(second - (second - residue) % modulus for modulus, residue in tier.needs.classes) for second in span
    )
    return Interval(first, max(first, last))


def held_by(tier: Tier, at: int) -> tuple[Interval, ...]:
    """The windows of a tier that hold an instant; of a tier of slices, the slice."""
    if tier.window is not None:
        return windows_at(tier.window, at)
    begin = max(at - (at - residue) % modulus for modulus, residue in tier.needs.classes)
    end = min(at + modulus - (at - residue) % modulus for modulus, residue in tier.needs.classes)
    return (Interval(begin, end),)


@lru_cache(maxsize=32)
def events(tier: Tier, ends: Spans) -> Spans:
    """When the events happen that are in the windows of a tier that end in some ranges; a run asks several times."""
    return joined(held(tier, span) for span in ends)


def touched(tier: Tier, span: Interval) -> Interval:
    """The windows that share an instant with a range, which is not empty, as those that end in (start, end]."""
    return hull(all_touched(tier, (span,)))


def all_touched(tier: Tier, spans: Spans) -> Spans:
    """The windows that share an instant with one of some ranges, as those that end in (start, end] of others."""
    return in_whole_slices(tier.needs, spans) if tier.window is None else joined(ends_touched(tier.window, spans))


def computed(step: Step, parent: DataFrame, content: Content, span: Interval) -> DataFrame:
    """The step's tier, its windows that end in the span.

    Args:
        step: What is computed, and how.
        parent: The RAW frame, or the TIER frame of what the step reads.
        content: What the rows hold.
        span: Seconds, of which the start is excluded and the end included.
    """
    tier, states = step.tier, content.partials(keeps_values=step.tier.keeps_values)
    match step.how:
        case How.RAW if tier.window is not None and _merges(tier, content) and overlaps_much(tier.window, span):
            made = _from_rows(tier, content)
            return slid_from_events(parent, tier.window, content.keys, states, made, span)
        case How.RAW:
            return _grouped(placed(parent, tier, column("_time"), span), content, _from_rows(tier, content))
        case How.EQUAL_RANGE if tier.window is not None:
            return picked(parent, tier.window, span)
        case How.OVERLAPPING if isinstance(tier.window, FixedWindow):
            return _uncounted(_grouped(covered(parent, tier.window, span), content, _merged(states)))
        case How.DISJOINT if step.final is not None and tier.window is not None:
            return slid(parent, tier.window, content.keys, states, step.final, span)
        case How.DISJOINT:
            return _grouped(placed(parent, tier, column("_begin"), span), content, _merged(states))
        case How.VALUES:
            return _of_values(placed(parent, tier, column("_begin"), span), tier, content)
        case How.EQUAL_RANGE | How.OVERLAPPING:
            raise AssertionError(f"{tier.name}: slices are no windows of one range")
        case _:
            assert_never(step.how)


def is_finer_cheaper(step: Step) -> bool:
    """Whether :func:`finer` costs less than the step's own slices: several classes of edges, few of a grid's left out.

    To find the slice of an event takes two divisions for each class.
    """
    tier = step.tier
    if step.how is not How.RAW or tier.window is not None or len(tier.needs.classes) == 1:
        return False
    width, _ = common_grid(tier.needs)
    return tier.rate * width >= _ENOUGH_OF_A_GRID


def finer(step: Step, events: DataFrame, content: Content, span: Interval) -> DataFrame:
    """The rows of finer slices than the step's, on a grid that holds all its edges: to be merged once more."""
    tier = step.tier
    width, origin = common_grid(tier.needs)
    within, time = held(tier, span), column("_time")
    rows = events.where((time >= micros(within.start)) & (time < micros(within.end)))
    keys = *map(column, content.keys), floored(time, width, origin).alias("_begin")
    made = rows.groupBy(*keys).agg(*_from_rows(tier, content))
    return made.withColumn("_end", column("_begin") + micros(width))


def stored(tier: Tier, rows: Rows, content: Content, *, is_partial: bool | None = None) -> DataFrame:
    """The windows as readers find them: bounds as timestamps, results by name, then the states.

    In a frame of several tiers, those of all that are declared or not as this one is.

    Args:
        tier: One of those in the frame.
        rows: The frame.
        content: What the rows hold.
        is_partial: Whether the windows have not ended; None: the tables do not say.
    """
    results = {name for name, _ in content.results}
    lowest = [
        _where_valid(column(name) if name in results else lowered(aggregate, content.types), name, content)
        for name, aggregate in content.aggregates
    ]
    states = [name for each in content.partials(keeps_values=tier.keeps_values) for name in each.columns]
    return rows.frame.select(
        *map(column, content.keys),
        F.timestamp_micros(column("_begin")).alias("window_start"),
        F.timestamp_micros(column("_end")).alias("window_end"),
        *(lowest if tier.kind is Kind.DECLARED else ()),
        *((F.lit(is_partial).alias(IS_PARTIAL),) if tier.kind is Kind.DECLARED and is_partial is not None else ()),
        *map(column, states),
        *(() if rows.number is None else (column(NUMBER),)),
    )


def _where_valid(result: Column, name: str, content: Content) -> Column:
    """The result, but for windows of which the events were gone before anybody asked for it."""
    since = content.valid_from.get(name)
    return (result if since is None else F.when(column("_begin") >= micros(since), result)).alias(name)


def schemas(plan: Plan, rows: DataFrame, content: Content, *, is_marked: bool) -> Mapping[str, StructType]:
    """The columns of the table of each tier, of which Spark analyses one of each kind, and runs nothing.

    They do not follow the windows, nor what a tier is computed from.

    Args:
        plan: All tiers.
        rows: The RAW frame.
        content: What the rows hold.
        is_marked: Whether tables say of windows that they have not ended.
    """
    found: dict[tuple[bool, bool], StructType] = {}
    schemas: dict[str, StructType] = {}
    for step in plan.steps:
        kind = step.tier.kind is Kind.DECLARED, step.tier.keeps_values
        if kind not in found:
            frame = computed(replace(step, reads=None, how=How.RAW), rows, content, Interval(0, 0))
            found[kind] = stored(step.tier, Rows(frame), content, is_partial=False if is_marked else None).schema
        schemas[step.tier.name] = found[kind]
    return schemas


def placed(frame: DataFrame, tier: Tier, begin: Column, span: Interval) -> DataFrame:
    """Each row once for each window of the tier that it is in."""
    if tier.window is not None:
        return in_windows(frame, tier.window, begin, span)
    within = held(tier, span)
    rows = frame.where((begin >= micros(within.start)) & (begin < micros(within.end)))
    return in_slices(rows, tier.needs, begin)


def _grouped(frame: DataFrame, content: Content, columns: list[Column]) -> DataFrame:
    return frame.groupBy(*map(column, (*content.keys, *_BOUNDS))).agg(*columns)


def _uncounted(frame: DataFrame) -> DataFrame:
    """Windows that overlap hold some rows twice, so nobody knows how many there are."""
    return frame.withColumn(ROWS.name, F.lit(None).cast("bigint"))


def _from_rows(tier: Tier, content: Content) -> list[Column]:
    partials = content.partials(keeps_values=tier.keeps_values)
    columns = [each for partial in partials for each in lifted(partial, content.types)]
    if tier.keeps_values:
        return columns
    return columns + [direct(aggregate, content.types).alias(name) for name, aggregate in content.results]


def _merges(tier: Tier, content: Content) -> bool:
    """Whether all that its rows hold can be merged."""
    return tier.keeps_values or not content.results


def _merged(partials: tuple[Partial, ...]) -> list[Column]:
    return [each for partial in partials for each in combined(partial)]


def _of_values(frame: DataFrame, tier: Tier, content: Content) -> DataFrame:
    """Merged values; results and the states that merge, unless the tier keeps the values too."""
    whole = _grouped(frame, content, _merged(content.partials(keeps_values=True)))
    if tier.keeps_values:
        return whole
    return whole.select(
        *map(column, (*content.keys, *_BOUNDS)),
        *(column(name) for partial in content.partials(keeps_values=False) for name in partial.columns),
        *(lowered(aggregate, content.types).alias(name) for name, aggregate in content.results),
    )
