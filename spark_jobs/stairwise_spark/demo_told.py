"""What the demo prints: the plan and the reports of its runs, in few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

from stairwise.json_fields import Fields
from stairwise.plan import Plan
from stairwise.quantity import beside
from stairwise.tiers import Kind
from stairwise.window import Window
from stairwise.windowing import Interval, windows_at
from stairwise.wording import Prices, bound, verdict, way
from stairwise.zones import DAY_SECONDS
from stairwise_spark.demo_rows import ZONE

_WIDE = 42  # of the tree, as far as names go


class Windows(NamedTuple):
    """How many windows of a tier there are.

    Attributes:
        late: Of those that late trips are in.
        new: Of those that ended in the hour of a run, and hold trips.
        ended: Of all that had ended by then.
    """

    late: int
    new: int
    ended: int


def plan_told(plan: Plan) -> Iterator[str]:
    """The staircase, what it saves, and whether helpers would."""
    yield "trips"
    yield from _stairs(plan, None, "")
    yield ""
    prices, days = Prices.of(plan), plan.totals.period_s // DAY_SECONDS
    yield f"{days} days of it, one half at once and the other hour by hour, cost {prices.text(plan.totals.total)}."
    yield verdict(plan, prices)
    yield f"{bound(plan, prices)} {_helpers(plan)}"


def _stairs(plan: Plan, parent: str | None, margin: str) -> Iterator[str]:
    """The tiers below one of them, or below the raw rows."""
    steps = plan.readers(parent)
    above = None if parent is None else plan.step(parent).tier
    for step in steps:
        is_last = step is steps[-1]
        name = f"{margin}{'└─' if is_last else '├─'} {step.tier.name}"
        yield f"{name:{_WIDE}}{way(step.tier, above, step.how)}"
        yield from _stairs(plan, step.tier.name, f"{margin}{'   ' if is_last else '│  '}")


def _helpers(plan: Plan) -> str:
    """What is to be said of tiers that nobody asked for."""
    invented = [step for step in plan.steps if step.tier.kind is not Kind.DECLARED]
    if invented:
        return f"Nobody asked for {', '.join(step.tier.name for step in invented)}: others become cheaper by it."
    with_helpers = beside(Fraction(plan.totals.paper_3), Fraction(plan.totals.total))
    return f"No helper tier pays here: with those of 'Factor Windows' it is {with_helpers}."


def history_told(report: Fields, rows: int) -> Iterator[str]:
    """What was written, beside what the plan expected."""
    tiers = report.list_of_fields("tiers")
    table = [("", "rows", "predicted", "")]
    for tier in tiers:
        written, predicted = tier.integer("rows_written"), tier.optional_integer("predicted_rows")
        off = "" if not predicted else f"{(written - predicted) / predicted:+.1%}"
        table.append((tier.text("name"), _number(written), _number(predicted), off))
    yield from columns(table)
    source = report.fields("source")
    read = source.integer("rows_read")
    scans = f"{read / rows:.3g} times" if read != rows else "once"
    yield f"{rows:,} trips, read {scans}; {_time(report)}"


def hour_told(report: Fields, rows: int) -> Iterator[str]:
    """What a scheduled run wrote."""
    written = [
        f"{_number(each.optional_integer('windows_written'))} of {each.text('name')}" for each in _active(report)
    ]
    *most, last = written
    named = f"{', '.join(most)} and {last}" if most else last
    yield f"{rows:,} new trips; written: {named}, and nothing else"
    yield _time(report)


def repair_told(report: Fields, counted: Mapping[str, Windows]) -> Iterator[str]:
    """Which windows were written again, beside those that late trips are in.

    Args:
        report: Of the run.
        counted: The windows of each tier, counted without the engine.
    """
    source = report.fields("source")
    why = "; ".join(each.text("why") for each in source.list_of_fields("found_by"))
    yield f"{_number(report.optional_integer('late_rows'))} trips came late: {why}"
    table: list[tuple[str, ...]] = [("", "hold a late trip", "new", "written", "", "of")]
    for tier in report.list_of_fields("tiers"):
        windows, written = counted[tier.text("name")], tier.optional_integer("windows_written")
        judged = "exact" if written == windows.late + windows.new else "other"
        numbers = (_number(each) for each in (windows.late, windows.new, written))
        table.append((tier.text("name"), *numbers, judged, _number(windows.ended)))
    yield from columns(table)
    yield f"{source.integer('rows_read'):,} trips read; {_time(report)}"


def compared_told(by_hand: Mapping[str, Fields], report: Fields) -> Iterator[str]:
    """A query for each window, beside the run that made all of them."""
    table = [("", "rows", "seconds", "")]
    for name, told in by_hand.items():
        numbers = (f"{told.integer('rows'):,}", f"{told.real('seconds'):.1f}")
        table.append((name, *numbers, "same" if told.truth("same") else "other"))
    yield from columns(table)
    seconds, ours = sum(told.real("seconds") for told in by_hand.values()), report.real("seconds")
    yield f"{seconds:.1f} s by {len(by_hand)} queries, {ours:.1f} s by the plan in section 3: {_ratio(seconds, ours)}"


def _ratio(theirs: float, ours: float) -> str:
    """How fast the plan was beside the queries, whichever was faster."""
    if theirs >= ours:
        return f"{theirs / ours:.1f} times as fast."
    return f"{ours / theirs:.1f} times as slow. With few trips it does not pay: try more, with --rows."


def windows_touched(window: Window, instants: Iterable[int], until: int) -> int:
    """How many windows that end by then hold one of some instants.

    >>> from stairwise.window_text import parse_window
    >>> windows_touched(parse_window("1h every 30m"), [0, 600, 3600], until=7200)
    4
    """
    found: set[Interval] = set()
    for instant in instants:
        found |= {each for each in windows_at(window, instant) if each.end <= until}
    return len(found)


def columns(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells as lines: names to the left, numbers to the right.

    >>> list(columns([("", "rows"), ("5m", "12"), ("15m", "4")]))
    ['     rows', '5m     12', '15m     4']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *rest in table:
        cells = (f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([f"{first:{widths[0]}}", *cells]).rstrip()


def days_of(span: Interval) -> str:
    """The days of Paris in a span.

    >>> from stairwise_spark.demo_rows import LATE
    >>> days_of(LATE)
    '1 March to 29 April'
    """
    first, last = (datetime.fromtimestamp(at, ZoneInfo(ZONE)) for at in (span.start, span.end - 1))
    return f"{first.day} {first:%B} to {last.day} {last:%B}"


def _active(report: Fields) -> list[Fields]:
    return [each for each in report.list_of_fields("tiers") if each.integer("rows_written")]


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _time(report: Fields) -> str:
    return f"{report.real('seconds'):.1f} s of work, after {report.real('startup_seconds'):.1f} s to start"
