from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.errors import WindowError, ZoneError
from stairwise.window import (
    CalendarSpan,
    CalendarWindow,
    CumulateWindow,
    FixedSpan,
    FixedWindow,
    Unit,
    Window,
    hopping,
    tumbling_seconds,
)
from stairwise.window_text import parse_window
from tests.strategies import windows

DAY = 86_400
EPOCH = date(1970, 1, 1)
DAILY = CalendarSpan(Unit.DAY, 1)
MONTHLY = CalendarSpan(Unit.MONTH, 1)
MONTH = CalendarWindow(Unit.MONTH, 1, MONTHLY)


@given(windows())
def test_text_reads_back(window: Window) -> None:
    assert parse_window(str(window)) == window


@given(windows())
@settings(max_examples=50)
def test_every_spelling_reads_back(window: Window) -> None:
    for text, offset in window.spellings():
        zones = window.zones() if isinstance(window, CumulateWindow) else {getattr(window, "zone", "UTC")}
        moved = f"{text} offset {offset}s" if offset else text
        assert parse_window(moved + "".join(f" in {zone}" for zone in zones - {"UTC"})) == window


@given(st.dates(date(3, 1, 1), date(9_990, 1, 1)))
def test_units_agree_with_dates(day: date) -> None:
    index = (day - EPOCH).days
    month = Unit.MONTH.holding(index)
    assert Unit.DAY.first_day(Unit.DAY.holding(index)) == index
    assert month == (day.year - 1970) * 12 + day.month - 1
    assert EPOCH + timedelta(Unit.MONTH.first_day(month)) == day.replace(day=1)
    later = EPOCH + timedelta(Unit.MONTH.later(index, 1))
    assert later.month == day.month % 12 + 1
    assert later.day == day.day or (later + timedelta(1)).day == 1


def test_months_go_on_beyond_the_years_of_datetime() -> None:
    for cycle in (-10, 10):
        assert Unit.MONTH.first_day(cycle * 4_800 + 1) == cycle * 146_097 + 31
        assert Unit.MONTH.holding(cycle * 146_097 + 31) == cycle * 4_800 + 1


@pytest.mark.parametrize(
    ("span", "days"),
    [
        (CalendarSpan(Unit.DAY, 28), (28, 28)),
        (MONTHLY, (28, 31)),
        (CalendarSpan(Unit.MONTH, 2), (59, 62)),
        (CalendarSpan(Unit.MONTH, 3), (90, 92)),
        (CalendarSpan(Unit.MONTH, 3, 1), (89, 92)),
        (CalendarSpan(Unit.MONTH, 12), (365, 366)),
        (CalendarSpan(Unit.MONTH, 48), (1_460, 1_461)),
    ],
)
def test_calendar_spans_know_their_days(span: CalendarSpan, days: tuple[int, int]) -> None:
    assert span.days() == days
    lengths = [
        span.unit.first_day(after * span.count + span.anchor) - span.unit.first_day(before * span.count + span.anchor)
        for before, after in pairwise(range(-400, 400))
    ]
    assert (min(lengths), max(lengths)) == days


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (DAILY, "day"),
        (CalendarSpan(Unit.DAY, 3, 1), "3 days offset 1d"),
        (CalendarSpan(Unit.DAY, 7), "7 days"),
        (CalendarSpan(Unit.DAY, 7, 4), "week"),
        (CalendarSpan(Unit.DAY, 7, 3), "week from sunday"),
        (CalendarSpan(Unit.DAY, 14, 4), "2 weeks"),
        (CalendarSpan(Unit.DAY, 14, 11), "2 weeks offset 7d"),
        (MONTHLY, "month"),
        (CalendarSpan(Unit.MONTH, 3), "quarter"),
        (CalendarSpan(Unit.MONTH, 3, 1), "quarter from february"),
        (CalendarSpan(Unit.MONTH, 6), "6 months"),
        (CalendarSpan(Unit.MONTH, 12, 3), "year from april"),
        (CalendarSpan(Unit.MONTH, 24, 3), "2 years from april"),
    ],
)
def test_spans_have_one_canonical_text(span: CalendarSpan, text: str) -> None:
    assert str(span) == text


@pytest.mark.parametrize(
    ("window", "is_tumbling"),
    [
        (FixedWindow(60, 60), True),
        (FixedWindow(60, 25), False),
        (MONTH, True),
        (CalendarWindow(Unit.MONTH, 1, DAILY), False),
        (CalendarWindow(Unit.DAY, 31, MONTHLY), False),
        (CalendarWindow(Unit.MONTH, 2, MONTHLY), False),
        (CumulateWindow(MONTH, FixedWindow(60, 60)), False),
    ],
)
def test_tumbling_windows_say_so(window: Window, is_tumbling: bool) -> None:  # noqa: FBT001
    assert window.is_tumbling is is_tumbling


def test_windows_are_values() -> None:
    assert len({FixedWindow(60, 60), FixedWindow(60, 60, 0), MONTH, CalendarWindow(Unit.MONTH, 1, MONTHLY, "UTC")}) == 2


def test_lengths_in_seconds() -> None:
    assert tumbling_seconds(FixedWindow(60, 60)) == (60, 60)
    assert tumbling_seconds(MONTH) == (28 * DAY, 31 * DAY)


SLIDE = "the range and the slide are at least 1 s. Hint: try 1m or 1h every 15m."
CUMULATE = "the period and the step of a cumulate window do not overlap themselves."
DIFFERENT = "the period and the step have different offsets or zones. Hint: give them the same ones."
PARTS = "Hint: step by a part of the period, as in month to date every day."


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FixedWindow(0, 0), f"window '0 s every 0 s': {SLIDE}"),
        (lambda: FixedWindow(60, -1), f"window '60 s every -1 s': {SLIDE}"),
        (
            lambda: FixedWindow(3_600, 7_200),
            (
                "window '3600 s every 7200 s': "
                "the slide (7200 s) is longer than the range (3600 s). Hint: try 2h every 1h."
            ),
        ),
        (
            lambda: FixedWindow(10**12, 1),
            "window '1000000000000 s every 1 s': the range is longer than 10,000 years (316224000000 s).",
        ),
        (
            lambda: FixedWindow(60, 20, 20),
            "window '60 s every 20 s': the origin (20 s) is not between 0 s and the slide (20 s).",
        ),
        (
            lambda: FixedWindow(60, 20, -1),
            "window '60 s every 20 s': the origin (-1 s) is not between 0 s and the slide (20 s).",
        ),
        (
            lambda: CalendarSpan(Unit.DAY, 0),
            "window '0 days': a calendar span has between 1 and 3660000 days. Hint: try 1 month.",
        ),
        (
            lambda: CalendarSpan(Unit.MONTH, 120_001),
            "window '120001 months': a calendar span has between 1 and 120000 months. Hint: try 1 month.",
        ),
        (lambda: CalendarSpan(Unit.DAY, 7, 7), "window '7 days': the anchor (7) is not between 0 and 6."),
        (lambda: CalendarSpan(Unit.MONTH, 24, 12), "window '24 months': the anchor (12) is not between 0 and 11."),
        (
            lambda: CalendarWindow(Unit.DAY, 30, MONTHLY),
            (
                "window '30 days every month': the slide (longest: 31 d) is longer than the range (shortest: 30 d). "
                "Hint: try 31 days every month."
            ),
        ),
        (
            lambda: CalendarWindow(Unit.MONTH, 1, CalendarSpan(Unit.DAY, 29)),
            (
                "window 'month every 29 days': the slide (longest: 29 d) is longer than the range (shortest: 28 d). "
                "Hint: try month every 28 days."
            ),
        ),
        (
            lambda: CalendarWindow(Unit.MONTH, 1, CalendarSpan(Unit.MONTH, 3)),
            (
                "window 'month every quarter': the slide (longest: 92 d) is longer than the range (shortest: 28 d). "
                "Hint: try quarter every month."
            ),
        ),
        (
            lambda: CalendarWindow(Unit.DAY, 1, DAILY, "UTC", DAY),
            "window 'day': the offset (86400 s) is not between 0 s and 86400 s.",
        ),
        (
            lambda: CalendarWindow(Unit.MONTH, 1, MONTHLY, "UTC", -1),
            "window 'month': the offset (-1 s) is not between 0 s and 2419200 s.",
        ),
        (lambda: CumulateWindow(FixedWindow(60, 20), FixedWindow(20, 20)), f"window '1m every 20s': {CUMULATE}"),
        (lambda: CumulateWindow(FixedWindow(60, 60), FixedWindow(20, 10)), f"window '20s every 10s': {CUMULATE}"),
        (
            lambda: CumulateWindow(FixedWindow(60, 60), MONTH),
            (
                "window '1m to date every month': "
                f"the step (up to 2678400 s) is longer than the period (at least 60 s). {PARTS}"
            ),
        ),
        (
            lambda: CumulateWindow(MONTH, MONTH),
            "window 'month to date every month': the step is the period. Hint: write month.",
        ),
        (
            lambda: CumulateWindow(FixedWindow(60, 60, 5), FixedWindow(20, 20)),
            f"window '1m to date every 20s': {DIFFERENT}",
        ),
        (
            lambda: CumulateWindow(MONTH, CalendarWindow(Unit.DAY, 1, DAILY, "Europe/Paris")),
            f"window 'month to date every day': {DIFFERENT}",
        ),
        (
            lambda: hopping(FixedSpan(60), DAILY),
            (
                "window '1m every day': the range and the slide are of different kinds. "
                "Hint: make both fixed (28d every 1h) or both calendar spans (28 days every day)."
            ),
        ),
        (lambda: hopping(FixedSpan(0), FixedSpan(0)), f"window '0 s every 0 s': {SLIDE}"),
    ],
)
def test_refuses_what_is_no_window(build: Callable[[], object], message: str) -> None:
    with pytest.raises(WindowError) as caught:
        build()
    assert str(caught.value) == message


def test_refuses_an_unknown_zone() -> None:
    with pytest.raises(ZoneError) as caught:
        CalendarWindow(Unit.DAY, 1, DAILY, "Europe/Pari")
    assert (
        str(caught.value) == "zone 'Europe/Pari': the zone database has no zone of that name. Hint: try Europe/Paris."
    )
