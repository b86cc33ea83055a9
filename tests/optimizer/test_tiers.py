"""Edges of every kind of window, and which tier can be read by which: against the windows themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import chain
from math import lcm

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.tiers import (
    DAY,
    MONTH,
    Horizon,
    How,
    Kind,
    LocalEdges,
    Tier,
    composite_tier,
    declared_tier,
    factor_tier,
    reads,
)
from stairwise.window import CalendarSpan, CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.window_text import parse_window
from stairwise.windowing import edges_in, windows_at, windows_touching
from tests.strategies import (
    calendar_windows,
    cumulate_windows,
    fixed_windows,
    instants,
    tumbling_windows,
    windows,
    zones,
)

SINCE_1900 = Horizon(start=-2_208_988_800)
QUARTER, HALF, HOUR = 900, 1_800, 3_600


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def tier(window: str | Window, horizon: Horizon | None = None) -> Tier:
    parsed = parse_window(window) if isinstance(window, str) else window
    return declared_tier("tier", str(parsed), parsed, horizon or Horizon())


def slices(seconds: int) -> Tier:
    return factor_tier("slices", FixedWindow(seconds, seconds))


def merges(child: str, parent: str, horizon: Horizon | None = None) -> How | None:
    return reads(tier(child, horizon), tier(parent, horizon), Sharing.DISJOINT)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("5m", ((300, 0),)),
        ("1h every 25m", ((1_500, 0), (1_500, 600))),
        ("5m offset 30s", ((300, 30),)),
        ("1w", ((7 * DAY, 4 * DAY),)),
        ("day", ((DAY, 0),)),
        ("week", ((7 * DAY, 4 * DAY),)),
        ("28 days every 2 days", ((2 * DAY, 0),)),
        ("3 days every 2 days", ((DAY, 0),)),
        ("month", ((DAY, 0),)),
        ("31 days every month", ((DAY, 0),)),
        ("month every day", ((DAY, 0),)),
        ("day offset 6h in Asia/Tokyo", ((DAY, 21 * HOUR),)),
        ("day in Europe/Paris", ((DAY, 22 * HOUR), (DAY, 23 * HOUR))),
        ("year in Europe/Paris", ((DAY, 22 * HOUR), (DAY, 23 * HOUR))),
        ("day in Asia/Kathmandu", ((DAY, DAY - 20_700), (DAY, DAY - 19_800))),
        ("1h to date every 20m", ((1_200, 0),)),
        ("month in Europe/Paris to date every 1h".replace(" in Europe/Paris", "") + " in Europe/Paris", ((HOUR, 0),)),
    ],
)
def test_edges(text: str, classes: tuple[tuple[int, int], ...]) -> None:
    assert tier(text).needs.classes == classes
    assert tier(text).strays == ()


@pytest.mark.parametrize(
    ("text", "provided"),
    [
        ("5m", True),
        ("1h every 20m", False),
        ("week", True),
        ("2 days in Asia/Tokyo", True),
        ("28 days every day", False),
        ("month", False),
        ("day in Europe/Paris", False),
        ("day to date every 1h", False),
    ],
)
def test_only_what_tiles_the_line_at_known_edges_provides_them(text: str, provided: bool) -> None:  # noqa: FBT001
    assert tier(text).provides == (tier(text).needs if provided else EdgeSet())


@pytest.mark.parametrize(
    ("text", "range_s", "slide_s"),
    [
        ("1h every 25m", 3_600, 1_500),
        ("day", DAY, DAY),
        ("quarter", 3 * MONTH, 3 * MONTH),
        ("28 days every week", 28 * DAY, 7 * DAY),
        ("month every day", MONTH, DAY),
        ("day to date every 1h", (DAY + HOUR) // 2, HOUR),
    ],
)
def test_mean_lengths(text: str, range_s: int, slide_s: int) -> None:
    assert (tier(text).range_s, tier(text).slide_s, tier(text).rate) == (range_s, slide_s, Fraction(1, slide_s))


def test_a_mean_month_is_a_twelfth_of_a_mean_year() -> None:
    assert (datetime(2370, 1, 1) - datetime(1970, 1, 1)) // timedelta(seconds=4_800) == MONTH  # noqa: DTZ001


def test_kinds_of_tiers() -> None:
    values = factor_tier("ten", FixedWindow(10, 10), keeps_values=True)
    assert (values.kind, values.text, values.keeps_values, values.tiles) == (Kind.FACTOR, "10s", True, True)
    mixed = composite_tier("mixed", EdgeSet.of((20, 0), (30, 0)))
    assert (mixed.kind, mixed.rate, mixed.tiles, mixed.range_s) == (Kind.COMPOSITE, Fraction(1, 15), True, None)
    assert mixed.provides == mixed.needs
    assert not tier("1h every 20m").tiles
    assert tier("day").kind is Kind.DECLARED


def test_what_is_no_tier_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        composite_tier("none", EdgeSet())
    assert str(caught.value) == "tier 'none': it has no edges, so it never ends a slice."
    with pytest.raises(PlanError) as caught:
        Horizon(5, 5)
    assert str(caught.value) == "horizon from 5 to 5: it ends before it begins."


@pytest.mark.parametrize(
    ("text", "seconds", "since_1970", "since_1900"),
    [
        ("day in Europe/Paris", HOUR, True, False),
        ("day in Europe/Paris", QUARTER, True, False),  # until 1911 Paris was 9 minutes 21 seconds ahead
        ("day in Europe/Paris", 3, True, True),
        ("day in Europe/Paris", DAY, False, False),
        ("day in Asia/Kathmandu", QUARTER, True, False),
        ("day in Asia/Kathmandu", HALF, False, False),
        ("month in Asia/Kolkata", HALF, True, False),
        ("month in Asia/Kolkata", HOUR, False, False),
        ("year in America/Sao_Paulo", HOUR, True, False),
        ("day in Asia/Beirut", HOUR, True, True),
        ("day in Africa/Monrovia", QUARTER, False, False),  # 44 minutes 30 seconds behind until 1972
        ("day in Africa/Monrovia", 30, True, False),
        ("day in Pacific/Apia", HOUR, True, False),
        ("day in Australia/Lord_Howe", HALF, True, True),
        ("day in Australia/Lord_Howe", HOUR, False, False),
        ("month", DAY, True, True),
    ],
)
def test_what_a_calendar_can_be_cut_from_is_decided_for_the_horizon(
    text: str,
    seconds: int,
    since_1970: bool,  # noqa: FBT001
    since_1900: bool,  # noqa: FBT001
) -> None:
    for horizon, expected in ((Horizon(), since_1970), (SINCE_1900, since_1900)):
        assert (reads(tier(text, horizon), slices(seconds), Sharing.DISJOINT) is How.DISJOINT) == expected


def test_the_first_window_counts_with_the_offset_of_its_begin() -> None:
    """Liberia left its 44 minutes 30 seconds on 1972-01-07: the week before has an edge with them, the year too."""
    after = Horizon(at("1972-01-07T12:00"), at("1973-01-01T00:00"))
    assert reads(tier("day in Africa/Monrovia", after), slices(HOUR), Sharing.DISJOINT) is None
    later = Horizon(at("1972-01-09T12:00"), at("1973-01-01T00:00"))
    assert reads(tier("day in Africa/Monrovia", later), slices(HOUR), Sharing.DISJOINT) is How.DISJOINT
    assert reads(tier("month in Africa/Monrovia", later), slices(HOUR), Sharing.DISJOINT) is None


def test_windows_that_share_an_instant_with_a_million_others_are_not_listed() -> None:
    """Bounded by the work, not the clock."""
    assert tier("3660000 days every day in UTC").needs.classes == ((DAY, 0),)


def test_an_edge_that_a_clock_jumps_over_strays() -> None:
    """In Beirut clocks go forward at midnight, so half past midnight is midnight once a year: no edge of 30 minutes."""
    year = Horizon(at("2021-06-01T00:00"), at("2022-06-01T00:00"))
    shifted = tier("day offset 30m in Asia/Beirut", year)
    assert shifted.needs.classes == ((DAY, 77_400), (DAY, 81_000))
    assert shifted.strays == (at("2022-03-26T22:00"),)
    assert reads(shifted, slices(HALF), Sharing.DISJOINT) is How.DISJOINT
    odd = factor_tier("odd", FixedWindow(HOUR, HOUR, HALF))
    assert shifted.needs <= odd.provides
    assert reads(shifted, odd, Sharing.DISJOINT) is None
    assert tier("week offset 30m in Asia/Beirut", year).strays == ()  # it was a Sunday
    assert tier("week from sunday offset 30m in Asia/Beirut", year).strays == shifted.strays
    assert tier("month offset 30m in Asia/Beirut", year).strays == ()
    grown = tier("week from sunday to date every day offset 30m in Asia/Beirut", year)
    assert grown.strays == shifted.strays


def test_a_month_that_begins_in_a_gap_strays() -> None:
    """In 1957 Beirut's clocks went forward as May began."""
    year = Horizon(at("1957-01-01T00:00"), at("1958-01-01T00:00"))
    assert tier("month offset 30m in Asia/Beirut", year).strays == (at("1957-04-30T22:00"),)
    assert tier("quarter offset 30m in Asia/Beirut", year).strays == ()


def test_a_day_that_a_zone_skipped() -> None:
    """Samoa had no 30 December 2011: what was to begin then began with the 31st."""
    winter = Horizon(at("2011-12-01T00:00"), at("2012-02-01T00:00"))
    skipped = (at("2011-12-30T10:00"),)
    assert tier("day in Pacific/Apia", winter).strays == ()  # that is a midnight by either clock
    assert tier("day offset 6h in Pacific/Apia", winter).strays == skipped
    assert tier("2 days offset 6h in Pacific/Apia", winter).strays == skipped
    assert tier("2 days offset 30h in Pacific/Apia", winter).strays == ()
    assert tier("month offset 6h in Pacific/Apia", winter).strays == ()


@pytest.mark.parametrize(
    "zone", ["Europe/Paris", "Pacific/Apia", "America/Sao_Paulo", "Asia/Beirut", "Africa/Monrovia"]
)
def test_calendars_of_one_zone_nest(zone: str) -> None:
    for coarse in (
        "week",
        "month",
        "quarter",
        "year",
        "2 weeks",
        "28 days every day",
        "31 days every month",
        "month every week",
    ):
        assert merges(f"{coarse} in {zone}", f"day in {zone}", SINCE_1900) is How.DISJOINT
        assert merges(f"day in {zone}", f"{coarse} in {zone}", SINCE_1900) is None
    assert merges(f"year in {zone}", f"quarter in {zone}", SINCE_1900) is How.DISJOINT
    assert merges(f"2 years from april in {zone}", f"quarter in {zone}", SINCE_1900) is How.DISJOINT
    assert merges(f"year from february in {zone}", f"quarter in {zone}", SINCE_1900) is None
    assert merges(f"month in {zone}", f"week in {zone}", SINCE_1900) is None
    assert merges(f"28 days in {zone}", f"week in {zone}", SINCE_1900) is None  # the first begins on a Thursday
    assert merges(f"week in {zone}", "day in Asia/Tokyo", SINCE_1900) is None
    assert merges(f"week offset 6h in {zone}", f"day in {zone}", SINCE_1900) is None
    assert merges(f"week offset 6h in {zone}", f"day offset 6h in {zone}", SINCE_1900) is How.DISJOINT
    assert merges(f"month offset 30h in {zone}", f"day offset 6h in {zone}", SINCE_1900) is How.DISJOINT
    assert merges(f"quarter offset 30h in {zone}", f"month offset 6h in {zone}", SINCE_1900) is None


@pytest.mark.parametrize(
    ("child", "parent", "expected"),
    [
        ("day to date every 1h", "1h", How.DISJOINT),
        ("day to date every 1h", "2h", None),
        ("month to date every day in Europe/Paris", "day in Europe/Paris", How.DISJOINT),
        ("month to date every day in Europe/Paris", "month in Europe/Paris", None),
        ("month to date every week in Europe/Paris", "day in Europe/Paris", How.DISJOINT),
        ("month to date every week in Europe/Paris", "week in Europe/Paris", None),
        ("year to date every month in Europe/Paris", "month in Europe/Paris", How.DISJOINT),
        ("month to date every day offset 30h in Europe/Paris", "day offset 6h in Europe/Paris", How.DISJOINT),
        ("year to date every month offset 30h in Europe/Paris", "month offset 30h in Europe/Paris", How.DISJOINT),
        ("month to date every 2 days offset 60h in Europe/Paris", "day in Europe/Paris", None),
        ("month to date every 6h in Europe/Paris", "day in Europe/Paris", None),
        ("month to date every 6h in Europe/Paris", "1h", How.DISJOINT),
        ("month", "month to date every day", None),
        ("day to date every 1h", "day to date every 20m", How.EQUAL_RANGE),
        ("month to date every week in Europe/Paris", "month to date every day in Europe/Paris", How.EQUAL_RANGE),
        ("month to date every day in Europe/Paris", "month to date every 6h in Europe/Paris", None),
        ("day to date every 1h", "week to date every 20m", None),
    ],
)
def test_windows_that_grow(child: str, parent: str, expected: How | None) -> None:
    assert merges(child, parent) is expected


@pytest.mark.parametrize(
    ("child", "parent", "expected"),
    [
        ("1h every 30m", "1h every 10m", How.EQUAL_RANGE),
        ("1h every 30m offset 5m", "1h every 10m", None),
        ("1h every 25m", "1h every 10m", None),
        ("31 days every month in Europe/Paris", "31 days every day in Europe/Paris", How.EQUAL_RANGE),
        ("28 days every week in Europe/Paris", "28 days every day in Europe/Paris", How.EQUAL_RANGE),
        ("28 days every day in Europe/Paris", "28 days every day in Asia/Tokyo", None),
        ("28 days every day offset 6h in Europe/Paris", "28 days every day in Europe/Paris", None),
        ("4 weeks every week in Europe/Paris", "27 days every day in Europe/Paris", None),
        ("month every week in Europe/Paris", "31 days every day in Europe/Paris", None),
        ("quarter every 2 months", "quarter every month", How.EQUAL_RANGE),
        ("day", "1d", None),  # of two kinds; they merge
        ("day to date every 1h", "1d every 1h", None),
    ],
)
def test_every_kth_window(child: str, parent: str, expected: How | None) -> None:
    """Legal for each aggregate."""
    assert reads(tier(child), tier(parent), Sharing.HOLISTIC) is expected


def test_values_are_merged_only_from_tiers_that_keep_them() -> None:
    hour, day = tier("1h"), tier("day")
    values = factor_tier("values", FixedWindow(HOUR, HOUR), keeps_values=True)
    finer = factor_tier("finer", FixedWindow(QUARTER, QUARTER), keeps_values=True)
    assert reads(day, values, Sharing.HOLISTIC) is How.VALUES
    assert reads(hour, values, Sharing.HOLISTIC) is How.VALUES
    assert reads(values, finer, Sharing.HOLISTIC) is How.VALUES
    assert reads(values, values, Sharing.HOLISTIC) is How.EQUAL_RANGE
    assert reads(day, hour, Sharing.HOLISTIC) is None
    overlapping = factor_tier("overlapping", FixedWindow(DAY, HOUR), keeps_values=True)
    assert reads(tier("week"), overlapping, Sharing.HOLISTIC) is None


def test_overlapping_windows() -> None:
    assert reads(tier("1h every 20m"), tier("40m every 20m"), Sharing.OVERLAPPING) is How.OVERLAPPING
    assert reads(tier("1h every 20m"), tier("40m every 20m"), Sharing.DISJOINT) is None
    assert reads(tier("1h every 20m"), tier("20m"), Sharing.OVERLAPPING) is How.DISJOINT
    assert (
        reads(tier("28 days every day"), tier("7 days every day"), Sharing.OVERLAPPING) is None
    )  # calendars: not known
    assert reads(tier("1h"), composite_tier("c", EdgeSet.of((20, 0), (30, 0))), Sharing.OVERLAPPING) is How.DISJOINT


def test_local_edges() -> None:
    local = LocalEdges(zone="UTC", offset=0, days=EdgeSet.of((7, 4)), months=EdgeSet.of((3, 0)))
    assert local.holds_any(range(4, 5))
    assert local.holds_any(range(89, 91))  # 1970-04-01 is day 90
    assert not local.holds_any(range(5, 11))
    assert not local.holds_any(range(31, 32))  # February begins no quarter
    assert not local.holds_any(range(0))


@st.composite
def readers(draw: st.DrawFn) -> tuple[Window, Window]:
    """A child and a tumbling parent, more often related than not."""
    parent = draw(tumbling_windows())
    if draw(st.booleans()):
        return draw(windows()), parent
    if isinstance(parent, FixedWindow):
        zone = draw(zones())
        unit = draw(st.sampled_from(Unit))
        calendar = CalendarWindow(unit, 1, CalendarSpan(unit, 1), zone, draw(st.sampled_from((0, HALF, HOUR))))
        size = draw(st.sampled_from((1, 30, QUARTER, HALF, HOUR, DAY)))
        return calendar, FixedWindow(size, size)
    child = draw(calendar_windows())
    return _moved(child, parent), parent


def _moved(child: CalendarWindow, parent: CalendarWindow) -> CalendarWindow:
    offset = parent.offset % DAY
    return CalendarWindow(child.range_unit, child.range_count, child.step, parent.zone, offset)


@given(readers(), instants())
def test_a_disjoint_reader_is_a_union_of_its_parents_windows(pair: tuple[Window, Window], start: int) -> None:
    """Tumbling windows tile the line, so it is enough that windows of the parent begin at both ends."""
    child, parent = pair
    horizon = Horizon(start, start + 400 * DAY)
    assume(reads(tier(child, horizon), tier(parent, horizon), Sharing.DISJOINT) is How.DISJOINT)
    starts = [start, start + 200 * DAY, *jumps(child, horizon), horizon.end - 1]
    for instant in starts:
        for window in windows_at(child, instant)[:40]:
            assert all(windows_at(parent, edge)[0].start == edge for edge in window)


def jumps(window: Window, horizon: Horizon) -> tuple[int, ...]:
    return tier(window, horizon).strays


@given(windows(), instants())
def test_needs_hold_all_edges_in_the_horizon(window: Window, start: int) -> None:
    horizon = Horizon(start, start + 800 * DAY)
    found = tier(window, horizon)
    for count, edge in enumerate(edges_in(window, start, horizon.end)):
        assert edge in found.needs or edge in found.strays
        if count == 1_000:
            break
    for touching in (*windows_at(window, start)[:5], *windows_at(window, horizon.end - 1)[-5:]):
        assert all(edge in found.needs or edge in found.strays for edge in touching)


def is_counted_in_one_unit(window: CalendarWindow) -> bool:
    """Not so for a month every day: any day could end it, as far as a tier knows."""
    return window.range_unit is window.step.unit


@given(calendar_windows().filter(is_counted_in_one_unit) | cumulate_windows(), st.integers(-110, 60))
def test_strays_are_edges_that_needs_do_not_hold(window: CalendarWindow | CumulateWindow, year: int) -> None:
    start = year * 366 * DAY
    found = tier(window, Horizon(start, start + 1_000 * DAY))
    for stray in found.strays:
        assert stray not in found.needs
        assert stray in {*edges_in(window, stray, stray + 1), *chain.from_iterable(windows_at(window, stray - 1))}


def slide_pairs(parents: st.SearchStrategy[FixedWindow]) -> st.SearchStrategy[tuple[FixedWindow, FixedWindow]]:
    return st.tuples(small_windows(), parents)


def small_windows() -> st.SearchStrategy[FixedWindow]:
    def window(slide: int, extra: int, origin: int) -> FixedWindow:
        return FixedWindow(slide + extra, slide, origin % slide)

    return st.builds(
        window,
        st.sampled_from((1, 2, 3, 4, 6, 8, 12)),
        st.sampled_from((0, 0, 1, 2, 4, 6, 12, 15)),
        st.sampled_from((0, 0, 1, 2, 4)),
    )


def tumbled(window: FixedWindow) -> FixedWindow:
    return FixedWindow(window.slide, window.slide, window.origin)


@given(slide_pairs(small_windows().map(tumbled)))
def test_fixed_windows_that_cannot_be_cut_have_a_window_that_is_not(pair: tuple[FixedWindow, FixedWindow]) -> None:
    child, parent = pair
    answer = reads(tier(child), tier(parent), Sharing.DISJOINT)
    period = range(lcm(child.slide, parent.slide))
    unions = all(
        windows_at(parent, edge)[0].start == edge
        for window in windows_touching(child, period.start, period.stop)
        for edge in window
    )
    assert (answer is not None) == unions


@given(slide_pairs(small_windows()))
def test_fixed_windows_that_are_not_covered_have_a_window_that_is_not(pair: tuple[FixedWindow, FixedWindow]) -> None:
    """Overlapping, all windows of the parent within one of the child must hold each instant of it."""
    child, parent = pair
    answer = reads(tier(child), tier(parent), Sharing.OVERLAPPING)
    instances = windows_touching(child, 0, lcm(child.slide, parent.slide))
    inside = [
        (
            whole,
            [part for part in windows_touching(parent, *whole) if whole.start <= part.start and part.end <= whole.end],
        )
        for whole in instances
    ]
    is_union = all({i for part in parts for i in range(*part)} == {*range(*whole)} for whole, parts in inside)
    assert (answer is not None) == is_union
    if answer is How.EQUAL_RANGE:
        assert all(whole in parts for whole, parts in inside)


@st.composite
def equal_ranges(draw: st.DrawFn) -> tuple[CalendarWindow, CalendarWindow]:
    """A window and one of the same range whose steps are some of its own."""
    unit = draw(st.sampled_from(Unit))
    count, factor = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    anchor, moved = draw(st.integers(0, count - 1)), draw(st.integers(0, factor - 1))
    steps = CalendarSpan(unit, count * factor, anchor + moved * count), CalendarSpan(unit, count, anchor)
    length = count * factor + draw(st.integers(0, 30))
    zone, offset = draw(zones()), draw(st.sampled_from((0, HALF, 6 * HOUR)))
    child, parent = (CalendarWindow(unit, length, step, zone, offset) for step in steps)
    return child, parent


@given(equal_ranges(), instants())
def test_every_kth_calendar_window_is_one_of_the_parents(
    pair: tuple[CalendarWindow, CalendarWindow], start: int
) -> None:
    child, parent = pair
    assert reads(tier(child), tier(parent), Sharing.HOLISTIC) is How.EQUAL_RANGE
    assert (reads(tier(parent), tier(child), Sharing.HOLISTIC) is not None) == (child == parent)
    for window in windows_at(child, start)[:20]:
        assert window in windows_at(parent, window.start)


@given(st.lists(st.sampled_from((10, 12, 15, 20, 30)), min_size=2, max_size=3), fixed_windows())
def test_composite_tiers_serve_those_whose_edges_they_hold(lengths: list[int], window: FixedWindow) -> None:
    mixed = composite_tier("mixed", EdgeSet.of(*((length, 0) for length in lengths)))
    answer = reads(tier(window), mixed, Sharing.DISJOINT)
    edges = {edge for whole in windows_touching(window, 0, 60 * 15) for edge in whole}
    if answer:
        assert all(edge in mixed.provides for edge in edges)
    assert all(reads(slices(length), mixed, Sharing.DISJOINT) is How.DISJOINT for length in lengths)
