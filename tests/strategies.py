"""Hypothesis strategies for declarations: zones and every kind of window."""

from __future__ import annotations

from hypothesis import strategies as st

from stairwise.window import (
    CalendarSpan,
    CalendarWindow,
    CumulateWindow,
    FixedSpan,
    FixedWindow,
    Span,
    Unit,
    Window,
    hopping,
    tumbling_seconds,
    within_step,
)

# Each is here for a reason: see tests/optimizer/test_windowing.py and docs/windows.md.
ZONES = (
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/Asuncion",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Manila",
    "America/Juneau",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/Paris",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kwajalein",
)
DAY_SECONDS = 86_400
_NICE_SECONDS = (1, 7, 20, 60, 90, 300, 900, 3_600, 5_400, DAY_SECONDS, 3 * DAY_SECONDS, 7 * DAY_SECONDS)


def zones() -> st.SearchStrategy[str]:
    return st.sampled_from(ZONES)


def instants() -> st.SearchStrategy[int]:
    """Whole seconds between 1800 and 2200, half of them from the years with the strangest clocks."""
    return st.integers(-5_364_662_400, 7_258_118_400) | st.integers(0, 1_735_689_600)


def fixed_windows() -> st.SearchStrategy[FixedWindow]:
    seconds = st.sampled_from(_NICE_SECONDS) | st.integers(1, 100_000)

    def below(slide: int) -> st.SearchStrategy[FixedWindow]:
        ranges = st.just(slide) | st.integers(slide, 12 * slide)
        return st.builds(FixedWindow, ranges, st.just(slide), st.just(0) | st.integers(0, slide - 1))

    return seconds.flatmap(below)


@st.composite
def calendar_windows(draw: st.DrawFn) -> CalendarWindow:
    step = draw(_calendar_spans())
    shortest, longest = step.days()
    zone = draw(zones())
    offset = draw(st.just(0) | _offsets(DAY_SECONDS if step.unit is Unit.DAY else shortest * DAY_SECONDS))
    if draw(st.booleans()):
        return CalendarWindow(step.unit, step.count, step, zone, offset)
    if draw(st.booleans()):
        return CalendarWindow(Unit.DAY, draw(st.integers(longest, longest + 28)), step, zone, offset)
    if step.unit is Unit.MONTH:
        return CalendarWindow(Unit.MONTH, draw(st.integers(step.count, step.count + 4)), step, zone, offset)
    return CalendarWindow(Unit.MONTH, draw(st.integers(-(-longest // 28), 4)), step, zone, offset)


@st.composite
def cumulate_windows(draw: st.DrawFn) -> CumulateWindow:
    period, step = draw(_spans()), draw(_spans())
    zone = draw(zones())
    shortest, _ = tumbling_seconds(hopping(period, period))
    shortest_step, longest_step = tumbling_seconds(hopping(step, step))
    if longest_step > shortest or shortest > 200 * shortest_step:
        step = FixedSpan(max(shortest // draw(st.integers(2, 40)), 1))
        shortest_step = step.seconds
    offset = draw(st.just(0) | _offsets(shortest))
    within = within_step(hopping(step, step), offset)
    if within >= shortest_step:
        offset = within = 0
    parts = hopping(period, period, offset, zone), hopping(step, step, within, zone)
    if parts[0] == parts[1]:
        return CumulateWindow(FixedWindow(DAY_SECONDS, DAY_SECONDS), FixedWindow(3_600, 3_600))
    return CumulateWindow(*parts)


def windows() -> st.SearchStrategy[Window]:
    return fixed_windows() | calendar_windows() | cumulate_windows()


def tumbling_windows() -> st.SearchStrategy[FixedWindow | CalendarWindow]:
    return st.one_of(fixed_windows(), calendar_windows()).map(_tumbling)


def _tumbling(window: FixedWindow | CalendarWindow) -> FixedWindow | CalendarWindow:
    if isinstance(window, FixedWindow):
        return FixedWindow(window.slide, window.slide, window.origin)
    return CalendarWindow(window.step.unit, window.step.count, window.step, window.zone, window.offset)


def _offsets(limit: int) -> st.SearchStrategy[int]:
    """Offsets below a limit, quarter hours among them."""
    return st.integers(0, (limit - 1) // 900).map(lambda quarters: 900 * quarters) | st.integers(0, limit - 1)


def _calendar_spans() -> st.SearchStrategy[CalendarSpan]:
    def anchored(unit: Unit, count: int) -> st.SearchStrategy[CalendarSpan]:
        anchors = st.integers(0, (count if unit is Unit.DAY else min(count, 12)) - 1)
        return st.builds(CalendarSpan, st.just(unit), st.just(count), anchors)

    days = (st.sampled_from((1, 7, 14)) | st.integers(1, 30)).flatmap(lambda count: anchored(Unit.DAY, count))
    months = st.sampled_from((1, 2, 3, 5, 12, 18)).flatmap(lambda count: anchored(Unit.MONTH, count))
    return days | months


def _spans() -> st.SearchStrategy[Span]:
    """Spans whose anchor has a name."""
    return st.builds(FixedSpan, st.sampled_from(_NICE_SECONDS)) | _calendar_spans().map(_named)


def _named(span: CalendarSpan) -> CalendarSpan:
    if span.unit is Unit.MONTH:
        return span
    return CalendarSpan(Unit.DAY, span.count, 0 if span.count % 7 else span.anchor % 7)
