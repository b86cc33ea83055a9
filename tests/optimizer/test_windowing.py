from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime
from itertools import chain, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.window import CalendarSpan, CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.window_text import parse_window
from stairwise.windowing import (
    Interval,
    edges_in,
    ends_touched,
    last_begun,
    windows_at,
    windows_ending,
    windows_touching,
)
from tests.optimizer.test_zones import first_instant
from tests.strategies import calendar_windows, instants, tumbling_windows, windows

DAY = 86_400


def seconds(text: str) -> int:
    """The instant of an ISO text, UTC unless it says otherwise."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def shown(windows_: tuple[Interval, ...]) -> list[tuple[str, str]]:
    return [
        (datetime.fromtimestamp(a, UTC).isoformat()[:19], datetime.fromtimestamp(b, UTC).isoformat()[:19])
        for a, b in windows_
    ]


def months_later(day: date, count: int) -> date:
    """The same day of a later month, or the month's last day: by trying."""
    index = day.year * 12 + day.month - 1 + count
    for last in range(day.day, 27, -1):
        try:
            return date(index // 12, index % 12 + 1, last)
        except ValueError:
            continue
    return date(index // 12, index % 12 + 1, day.day)


def by_calendar(window: CalendarWindow, low: date, high: date) -> set[Interval]:
    """The windows that begin on a local day between two days, from datetime alone."""
    found: set[Interval] = set()
    for ordinal in range(low.toordinal(), high.toordinal() + 1):
        day = date.fromordinal(ordinal)
        index = ordinal - date(1970, 1, 1).toordinal()
        if window.step.unit is Unit.MONTH:
            if day.day > 1:
                continue
            index = (day.year - 1970) * 12 + day.month - 1
        if index % window.step.count != window.step.anchor:
            continue
        is_days = window.range_unit is Unit.DAY
        last = date.fromordinal(ordinal + window.range_count) if is_days else months_later(day, window.range_count)
        start, end = (
            first_instant(window.zone, (edge.toordinal() - date(1970, 1, 1).toordinal()) * DAY + window.offset)
            for edge in (day, last)
        )
        if start < end:
            found.add(Interval(start, end))
    return found


def brute_force(window: Window, start: int, end: int) -> set[Interval]:
    """At least the windows that touch [start, end), without the tested functions."""
    match window:
        case FixedWindow():
            begins = range((start - window.range) // window.slide * window.slide + window.origin, end, window.slide)
            return {
                Interval(begin, begin + window.range) for begin in range(begins.start - window.slide, end, window.slide)
            }
        case CalendarWindow():
            longest = 31 * window.range_count if window.range_unit is Unit.MONTH else window.range_count
            days = (
                datetime.fromtimestamp(t, UTC).date()
                for t in (start - window.offset - (longest + 40) * DAY, end + 3 * DAY)
            )
            return by_calendar(window, *days)
        case CumulateWindow():
            found: set[Interval] = set()
            for period in brute_force(window.period, start, end):
                ends = {inner.end for inner in brute_force(window.step, *period)}
                found |= {
                    Interval(period.start, inner) for inner in ends | {period.end} if period.start < inner <= period.end
                }
            return found


def slide_of(window: Window) -> int:
    """About how far apart windows begin or end."""
    match window:
        case FixedWindow():
            return window.slide
        case CalendarWindow():
            return window.step.days()[1] * DAY
        case CumulateWindow():
            return slide_of(window.step)


@st.composite
def windows_and_ranges(draw: st.DrawFn) -> tuple[Window, int, int]:
    window, start = draw(windows()), draw(instants())
    return window, start, start + draw(st.integers(-1, 6 * slide_of(window)))


@given(windows_and_ranges())
@settings(max_examples=50)
def test_touching_is_what_overlaps(case: tuple[Window, int, int]) -> None:
    window, start, end = case
    overlapping = {w for w in brute_force(window, start, end) if w.start < end and w.end > start and start < end}
    assert list(windows_touching(window, start, end)) == sorted(overlapping, key=lambda found: (found.start, found.end))


@given(windows_and_ranges())
@settings(max_examples=50)
def test_ending_is_what_ends_there(case: tuple[Window, int, int]) -> None:
    window, start, end = case
    ending = {found for found in brute_force(window, start, end + 1) if start < found.end <= end}
    assert list(windows_ending(window, start, end)) == sorted(ending, key=lambda found: (found.start, found.end))


@st.composite
def windows_and_many_ranges(draw: st.DrawFn) -> tuple[Window, list[Interval]]:
    """Ranges in order, far from one another and near, of which few or many share a window."""
    window, end = draw(windows()), draw(instants())
    slide = slide_of(window)
    lengths = st.integers(1, max(slide // draw(st.sampled_from((1, 10, 100))), 1))
    ranges: list[Interval] = []
    for gap, length in draw(st.lists(st.tuples(st.just(0) | lengths, lengths | st.just(3 * slide)), max_size=8)):
        ranges.append(Interval(end + gap, end + gap + length))
        end += gap + length
    return window, ranges


def touched_one_by_one(window: Window, start: int, end: int) -> Interval:
    """The windows that touch one range, from where the one before the first may have ended to the end of the last."""
    found = [each for each in brute_force(window, start, end) if each.start < end and each.end > start]
    first, last = min(found), max(found)
    if isinstance(window, FixedWindow):
        return Interval(first.end - window.slide, last.end)
    return Interval(first.start if window.is_tumbling else first.end - 1, last.end)


def together(ranges: Iterable[Interval]) -> list[Interval]:
    """The same instants as ranges in order, neighbours as one."""
    found: list[Interval] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(end, found[-1].end))
        else:
            found.append(Interval(start, end))
    return found


@given(windows_and_many_ranges())
def test_what_many_ranges_touch_is_what_each_of_them_does(case: tuple[Window, list[Interval]]) -> None:
    window, ranges = case
    found = list(ends_touched(window, ranges))
    assert found == sorted(found)
    assert together(found) == together(touched_one_by_one(window, *each) for each in ranges)


def test_ranges_in_windows_that_are_known_are_passed_over() -> None:
    minutes = [Interval(at, at + 60) for at in range(-DAY, DAY, 120)]
    for text, days in {"1d": 2, "day in UTC": 2, "day to date every 6h": 2, "3 days every day in UTC": 2}.items():
        assert len(list(ends_touched(parse_window(text), minutes))) == days


@given(windows_and_ranges())
@settings(max_examples=50)
def test_edges_are_the_begins_and_ends(case: tuple[Window, int, int]) -> None:
    window, start, end = case
    edges = set(chain.from_iterable(brute_force(window, start - 1, end + 1)))
    assert list(edges_in(window, start, end)) == sorted(edge for edge in edges if start <= edge < end)


@given(windows(), instants())
@settings(max_examples=50)
def test_an_instant_is_in_the_windows_around_it(window: Window, instant: int) -> None:
    around = {found for found in brute_force(window, instant, instant + 1) if found.start <= instant < found.end}
    assert set(windows_at(window, instant)) == around
    assert around


@given(calendar_windows(), instants())
@settings(max_examples=50)
def test_the_last_begun_is_the_last_around(window: CalendarWindow, instant: int) -> None:
    assert last_begun(window, instant) == windows_at(window, instant)[-1]


@given(tumbling_windows(), instants())
@settings(max_examples=50)
def test_an_instant_is_in_one_tumbling_window(window: FixedWindow | CalendarWindow, instant: int) -> None:
    assert len(windows_at(window, instant)) == 1


@given(tumbling_windows(), instants())
@settings(max_examples=50)
def test_tumbling_windows_tile_the_line(window: FixedWindow | CalendarWindow, instant: int) -> None:
    found = list(islice(windows_touching(window, instant, 2**40), 40))
    assert all(one.end == other.start for one, other in pairwise(found))
    assert list(edges_in(window, found[0].start, found[-1].end)) == [each.start for each in found]


@given(windows_and_ranges(), st.floats(0, 1))
@settings(max_examples=50)
def test_neighbouring_ranges_share_no_window(case: tuple[Window, int, int], share: float) -> None:
    window, start, end = case
    middle = start + int(share * max(end - start, 0))
    halves = (*windows_ending(window, start, middle), *windows_ending(window, middle, end))
    assert halves == tuple(windows_ending(window, start, end))


@given(windows(), instants())
@settings(max_examples=50)
def test_order_is_by_begin_and_by_end(window: Window, instant: int) -> None:
    found = list(islice(windows_touching(window, instant, 2**40), 60))
    assert found == sorted(set(found))
    assert [each.end for each in found] == sorted(each.end for each in found) or isinstance(window, CumulateWindow)


@pytest.mark.parametrize(
    ("text", "instant", "start", "end"),
    [
        ("1d", "1969-12-31T23:59:59", "1969-12-31T00:00:00", "1970-01-01T00:00:00"),
        ("1w", "1970-01-01T00:00:00", "1969-12-29T00:00:00", "1970-01-05T00:00:00"),
        ("7d", "1970-01-01T00:00:00", "1970-01-01T00:00:00", "1970-01-08T00:00:00"),
        ("week", "2024-05-15T12:00:00", "2024-05-13T00:00:00", "2024-05-20T00:00:00"),
        ("week from sunday", "2024-05-15T12:00:00", "2024-05-12T00:00:00", "2024-05-19T00:00:00"),
        ("7 days", "2024-05-15T12:00:00", "2024-05-09T00:00:00", "2024-05-16T00:00:00"),
        ("2 weeks", "1970-01-05T00:00:00", "1970-01-05T00:00:00", "1970-01-19T00:00:00"),
        ("quarter", "2024-05-15T12:00:00", "2024-04-01T00:00:00", "2024-07-01T00:00:00"),
        ("year from april", "2024-03-31T23:59:59", "2023-04-01T00:00:00", "2024-04-01T00:00:00"),
        ("2 years", "1969-06-01T00:00:00", "1968-01-01T00:00:00", "1970-01-01T00:00:00"),
        # 23 and 25 hours
        ("day in Europe/Paris", "2024-03-31T12:00:00", "2024-03-30T23:00:00", "2024-03-31T22:00:00"),
        ("day in Europe/Paris", "2024-10-27T12:00:00", "2024-10-26T22:00:00", "2024-10-27T23:00:00"),
        ("day in America/New_York", "2024-11-03T12:00:00", "2024-11-03T04:00:00", "2024-11-04T05:00:00"),
        # half and quarter hours
        ("day in Asia/Kathmandu", "2024-01-01T12:00:00", "2023-12-31T18:15:00", "2024-01-01T18:15:00"),
        ("day in Pacific/Chatham", "2024-01-01T00:00:00", "2023-12-31T10:15:00", "2024-01-01T10:15:00"),
        ("day in Australia/Lord_Howe", "2024-04-06T20:00:00", "2024-04-06T13:00:00", "2024-04-07T13:30:00"),
        # midnight does not exist: the day begins with the transition
        ("day in America/Sao_Paulo", "2018-11-04T12:00:00", "2018-11-04T03:00:00", "2018-11-05T02:00:00"),
        ("day in Asia/Beirut", "2024-03-31T12:00:00", "2024-03-30T22:00:00", "2024-03-31T21:00:00"),
        ("day in Africa/Monrovia", "1972-01-07T12:00:00", "1972-01-07T00:44:30", "1972-01-08T00:00:00"),
        # midnight happens twice: the day begins with the first
        ("day in America/Havana", "2024-11-03T12:00:00", "2024-11-03T04:00:00", "2024-11-04T05:00:00"),
        ("day in America/St_Johns", "2006-10-29T03:00:00", "2006-10-29T02:30:00", "2006-10-30T03:30:00"),
        # days that a zone skipped, or had twice
        ("day in Pacific/Apia", "2011-12-30T09:59:59", "2011-12-29T10:00:00", "2011-12-30T10:00:00"),
        ("day in Pacific/Apia", "2011-12-30T10:00:00", "2011-12-30T10:00:00", "2011-12-31T10:00:00"),
        ("day in Pacific/Kwajalein", "1993-08-21T12:00:00", "1993-08-21T12:00:00", "1993-08-22T12:00:00"),
        ("day in Pacific/Apia", "1892-07-05T00:00:00", "1892-07-03T11:26:56", "1892-07-05T11:26:56"),
        # before and at the end of local mean time
        ("day in Europe/Paris", "1900-01-01T12:00:00", "1899-12-31T23:50:39", "1900-01-01T23:50:39"),
        ("day in Europe/Paris", "1911-03-10T12:00:00", "1911-03-09T23:50:39", "1911-03-11T00:00:00"),
        ("day in Europe/Paris", "0001-01-02T12:00:00", "0001-01-01T23:50:39", "0001-01-02T23:50:39"),
        # an offset moves the wall clock, not the instant
        ("day offset 6h in Europe/Paris", "2024-03-31T12:00:00", "2024-03-31T04:00:00", "2024-04-01T04:00:00"),
        ("day offset 2h30m in Europe/Paris", "2024-03-31T12:00:00", "2024-03-31T01:00:00", "2024-04-01T00:30:00"),
        ("quarter offset 89d", "2023-06-29T00:00:00", "2023-06-29T00:00:00", "2023-09-28T00:00:00"),
    ],
)
def test_the_tumbling_window_of_an_instant(text: str, instant: str, start: str, end: str) -> None:
    assert shown(windows_at(parse_window(text), seconds(instant))) == [(start, end)]


def test_a_rolling_range_has_whole_local_days() -> None:
    window = parse_window("28 days every day in Europe/Paris")
    found = windows_at(window, seconds("2024-03-31T12:00:00"))
    assert len(found) == 28
    assert {each.end - each.start for each in found} == {28 * DAY - 3_600}


def test_a_rolling_month_ends_with_a_shorter_month() -> None:
    window = CalendarWindow(Unit.MONTH, 1, CalendarSpan(Unit.DAY, 1))
    ending = windows_ending(window, seconds("2023-02-27T00:00:00"), seconds("2023-03-01T00:00:00"))
    assert shown(tuple(ending)) == [
        ("2023-01-28T00:00:00", "2023-02-28T00:00:00"),
        ("2023-01-29T00:00:00", "2023-02-28T00:00:00"),
        ("2023-01-30T00:00:00", "2023-02-28T00:00:00"),
        ("2023-01-31T00:00:00", "2023-02-28T00:00:00"),
        ("2023-02-01T00:00:00", "2023-03-01T00:00:00"),
    ]


def test_a_skipped_day_makes_no_window_and_no_window_twice() -> None:
    days = parse_window("day in Pacific/Apia")
    week = windows_touching(days, seconds("2011-12-27T10:00:00"), seconds("2012-01-02T10:00:00"))
    assert len(list(week)) == 6
    rolling = parse_window("2 months every day in Pacific/Apia")
    # The 30th and the 31st begin at one instant, and both end on February 29.
    first = "2011-12-30T10:00:00"
    found = tuple(each for each in windows_at(rolling, seconds(first)) if each.start == seconds(first))
    assert shown(found) == [(first, "2012-02-28T10:00:00")]


def test_cumulate_grows_by_the_step_and_ends_with_the_period() -> None:
    window = parse_window("week to date every 3 days")
    ending = windows_ending(window, seconds("2024-05-13T00:00:00"), seconds("2024-05-20T00:00:00"))
    assert shown(tuple(ending)) == [
        ("2024-05-13T00:00:00", "2024-05-14T00:00:00"),
        ("2024-05-13T00:00:00", "2024-05-17T00:00:00"),
        ("2024-05-13T00:00:00", "2024-05-20T00:00:00"),
    ]


def test_cumulate_names_a_shared_edge_once() -> None:
    window = parse_window("1d to date every 6h")
    assert [each.end for each in windows_ending(window, 0, DAY)] == [21_600, 43_200, 64_800, 86_400]
    assert windows_at(window, 43_200) == (Interval(0, 64_800), Interval(0, 86_400))


def test_years_of_days_are_quick() -> None:
    """Bounded by the work, not the clock: a range of a century far away costs no walk to it."""
    window = parse_window("10 years every day in Europe/Paris")
    assert len(windows_at(window, seconds("2150-06-01T00:00:00"))) == 3_652
    assert next(windows_ending(window, 2**41, 2**42)).end > 2**41


def test_before_the_year_1_and_after_9999_windows_still_tile() -> None:
    window = parse_window("month in Europe/Paris")
    for instant in (-(2**40), 2**40):
        found = list(islice(windows_touching(window, instant, 2**41), 30))
        assert all(one.end == other.start for one, other in pairwise(found))
        assert bisect_right(found, (instant, 2**62)) == 1
