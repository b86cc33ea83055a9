from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import DeclarationError, DurationError, NotYetError, WindowError, ZoneError
from stairwise.window import (
    CalendarSpan,
    CalendarWindow,
    ConditionWindow,
    CountWindow,
    CumulateWindow,
    FixedWindow,
    ForthcomingWindow,
    SessionWindow,
    Unit,
    Window,
)
from stairwise.window_text import forthcoming_window, parse_named, parse_window, table_name

DAY = 86_400
WEEK = 7 * DAY
DAILY = CalendarSpan(Unit.DAY, 1)
MONTHLY = CalendarSpan(Unit.MONTH, 1)
PARIS = "Europe/Paris"


def tumbling(unit: Unit, count: int, anchor: int = 0, zone: str = "UTC", offset: int = 0) -> CalendarWindow:
    return CalendarWindow(unit, count, CalendarSpan(unit, count, anchor), zone, offset)


@pytest.mark.parametrize(
    ("text", "window", "canonical"),
    [
        ("5m", FixedWindow(300, 300), "5m"),
        ("90m", FixedWindow(5_400, 5_400), "1h30m"),
        ("1h every 15m", FixedWindow(3_600, 900), "1h every 15m"),
        ("1h every 25m", FixedWindow(3_600, 1_500), "1h every 25m"),
        ("1h every 60m", FixedWindow(3_600, 3_600), "1h"),
        ("1h offset 15m", FixedWindow(3_600, 3_600, 900), "1h offset 15m"),
        ("1d", FixedWindow(DAY, DAY), "1d"),
        ("7d", FixedWindow(WEEK, WEEK), "7d"),
        ("1w", FixedWindow(WEEK, WEEK, 4 * DAY), "1w"),
        ("1w offset 3h", FixedWindow(WEEK, WEEK, 4 * DAY + 10_800), "1w offset 3h"),
        ("1w offset 3d", FixedWindow(WEEK, WEEK), "7d"),
        ("1w0d", FixedWindow(WEEK, WEEK), "7d"),
        ("2w every 1w", FixedWindow(2 * WEEK, WEEK, 4 * DAY), "2w every 1w"),
        ("1w every 7d", FixedWindow(WEEK, WEEK), "7d"),
        ("10d every 1w", FixedWindow(10 * DAY, WEEK, 4 * DAY), "10d every 1w"),
        ("1w every 1d", FixedWindow(WEEK, DAY), "7d every 1d"),
        ("day", tumbling(Unit.DAY, 1), "day"),
        ("1 Day in UTC", tumbling(Unit.DAY, 1), "day"),
        ("DAYS  IN   Etc/UTC", tumbling(Unit.DAY, 1), "day"),
        ("day in Europe/Paris", tumbling(Unit.DAY, 1, 0, PARIS), "day in Europe/Paris"),
        ("7 days", tumbling(Unit.DAY, 7), "7 days"),
        ("week", tumbling(Unit.DAY, 7, 4), "week"),
        ("week from monday", tumbling(Unit.DAY, 7, 4), "week"),
        ("week from thursday", tumbling(Unit.DAY, 7), "7 days"),
        ("7 days offset 4d", tumbling(Unit.DAY, 7, 4), "week"),
        ("2 weeks from sunday", tumbling(Unit.DAY, 14, 3), "2 weeks from sunday"),
        ("2 weeks offset 7d", tumbling(Unit.DAY, 14, 11), "2 weeks offset 7d"),
        ("week offset 3d", tumbling(Unit.DAY, 7), "7 days"),
        ("week every week from sunday", tumbling(Unit.DAY, 7, 3), "week from sunday"),
        ("day offset 6h in Asia/Kathmandu", tumbling(Unit.DAY, 1, 0, "Asia/Kathmandu", 21_600), None),
        ("month", tumbling(Unit.MONTH, 1), "month"),
        ("month from april", tumbling(Unit.MONTH, 1), "month"),
        ("month offset 5d6h", tumbling(Unit.MONTH, 1, 0, "UTC", 5 * DAY + 21_600), "month offset 5d6h"),
        ("3 months", tumbling(Unit.MONTH, 3), "quarter"),
        ("quarter from february", tumbling(Unit.MONTH, 3, 1), "quarter from february"),
        ("quarter from April", tumbling(Unit.MONTH, 3), "quarter"),
        ("2 quarters", tumbling(Unit.MONTH, 6), "6 months"),
        ("4 quarters every 12 months", tumbling(Unit.MONTH, 12), "year"),
        ("year from april", tumbling(Unit.MONTH, 12, 3), "year from april"),
        ("2 years from april", tumbling(Unit.MONTH, 24, 3), "2 years from april"),
        ("28 days every day in Europe/Paris", CalendarWindow(Unit.DAY, 28, DAILY, PARIS), None),
        ("4 weeks every day", CalendarWindow(Unit.DAY, 28, DAILY), "28 days every day"),
        ("2 weeks every week", CalendarWindow(Unit.DAY, 14, CalendarSpan(Unit.DAY, 7, 4)), "2 weeks every week"),
        ("year from april every month", CalendarWindow(Unit.MONTH, 12, MONTHLY), "year every month"),
        ("month every day", CalendarWindow(Unit.MONTH, 1, DAILY), "month every day"),
        ("35 days every month", CalendarWindow(Unit.DAY, 35, MONTHLY), "35 days every month"),
        ("month to date every day", CumulateWindow(tumbling(Unit.MONTH, 1), tumbling(Unit.DAY, 1)), None),
        (
            "month TO DATE every 1h in Europe/Paris",
            CumulateWindow(tumbling(Unit.MONTH, 1, 0, PARIS), FixedWindow(3_600, 3_600)),
            "month to date every 1h in Europe/Paris",
        ),
        (
            "1d to date every day in Europe/Paris",
            CumulateWindow(FixedWindow(DAY, DAY), tumbling(Unit.DAY, 1, 0, PARIS)),
            None,
        ),
        (
            "day to date every 1h offset 6h30m",
            CumulateWindow(tumbling(Unit.DAY, 1, 0, "UTC", 23_400), FixedWindow(3_600, 3_600, 1_800)),
            None,
        ),
        (
            "14d to date every 7d offset 4d",
            CumulateWindow(FixedWindow(2 * WEEK, 2 * WEEK, 4 * DAY), FixedWindow(WEEK, WEEK, 4 * DAY)),
            "2w to date every 1w",
        ),
        (
            "2 weeks from saturday to date every 3 days offset 6d",
            CumulateWindow(tumbling(Unit.DAY, 14, 8), tumbling(Unit.DAY, 3)),
            None,
        ),
        ("day to date every day", tumbling(Unit.DAY, 1), "day"),
        ("2h to date every 120m", FixedWindow(7_200, 7_200), "2h"),
    ],
)
def test_reads_and_prints(text: str, window: Window, canonical: str | None) -> None:
    assert parse_window(text) == window
    assert str(window) == (canonical or text)
    assert parse_window(str(window)) == window


def test_weeks_and_days_are_told_apart() -> None:
    assert len({parse_window(text) for text in ("7d", "1w", "week", "7 days")}) == 4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1h", None),
        ("1h as hourly", "hourly"),
        ("1h AS Every", "Every"),
        ("1h every 15m as in", "in"),
        ("week from sunday in America/New_York as us_week", "us_week"),
        ("5m as 5m", "5m"),
    ],
)
def test_names(text: str, name: str | None) -> None:
    window, found = parse_named(text)
    assert found == name
    assert window == parse_window(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("5m", "5m"),
        ("1h every 15m", "1h_every_15m"),
        ("Day in Europe/Paris", "day_in_europe_paris"),
        ("  28 days  every day in Etc/GMT+8 ", "28_days_every_day_in_etc_gmt_8"),
        ("été", "t"),
        ("...", ""),
    ],
)
def test_table_names(text: str, name: str) -> None:
    assert table_name(text) == name


@pytest.mark.parametrize(
    ("text", "window", "message", "data"),
    [
        (
            "session gap 30m",
            SessionWindow(1_800),
            "sessions are not yet computed. Hint: for now take windows of a fixed length, such as 30m.",
            {"gap": 1_800},
        ),
        (
            "1000 ROWS",
            CountWindow(1_000),
            "windows of a number of rows are not yet computed. Hint: for now take a length of time, such as 5m.",
            {"rows": 1_000},
        ),
        (
            "from state = 'on' until state = 'off'",
            ConditionWindow("state = 'on'", "state = 'off'"),
            (
                "windows between two conditions are not yet computed. Hint: for now take a length of time, such as 5m, "
                "and aggregates with a condition: sum(x) where CONDITION."
            ),
            {"begins": "state = 'on'", "ends": "state = 'off'"},
        ),
    ],
)
def test_forthcoming_windows_are_refused_by_name(
    text: str, window: ForthcomingWindow, message: str, data: dict[str, str | int]
) -> None:
    assert forthcoming_window(text) == window
    with pytest.raises(NotYetError) as caught:
        parse_window(text)
    assert str(caught.value) == f"window '{text}': {message}"
    assert caught.value.data == {"text": text, **data}


EXAMPLES = "try 5m, 1h every 15m or day in Europe/Paris."
GRAMMAR = "write SPAN [every SPAN] [offset DURATION] [in ZONE] [as NAME]."
ZONE = "a zone goes with calendar spans, and fixed lengths are the same in every zone."
FROM = "windows begin where 'every' says, and 'from' before it says otherwise."
BEHIND = "leave 'from' out, or put it behind the span of 'every'."
BOTH = "make both fixed (28d every 1h) or both calendar spans (28 days every day)."
PART = "step by a part of the period, as in month to date every day."
ANCHORS = "'from' goes with weeks (a weekday) and with months, quarters and years (a month)."
NO_ZONE = "leave the zone out, or take a calendar span, as in day in Europe/Paris."


@pytest.mark.parametrize(
    ("text", "rule", "hint"),
    [
        ("1h every 2h", "the slide (7200 s) is longer than the range (3600 s).", "try 2h every 1h."),
        (
            "30 days every month",
            "the slide (longest: 31 d) is longer than the range (shortest: 30 d).",
            "try 31 days every month.",
        ),
        (
            "month every 30 days",
            "the slide (longest: 30 d) is longer than the range (shortest: 28 d).",
            "try month every 28 days.",
        ),
        (
            "month every quarter",
            "the slide (longest: 92 d) is longer than the range (shortest: 28 d).",
            "try quarter every month.",
        ),
        ("hour", "'hour' is not a span.", "try 1h."),
        ("minutes", "'minutes' is not a span.", "try 1m."),
        ("1mo", "'1mo' is not a span.", "try month."),
        ("3mo", "'3mo' is not a span.", "try 3 months."),
        ("2yrs", "'2yrs' is not a span.", "try 2 years."),
        ("28days", "'28days' is not a span.", "try 28 days."),
        ("1day", "'1day' is not a span.", "try day."),
        ("monthly", "'monthly' is not a span.", "try month."),
        ("hourly", "'hourly' is not a span.", "try 1h."),
        ("1M", "'1M' may be minutes or months.", "try 1m for minutes, or month."),
        ("3M", "'3M' may be minutes or months.", "try 3m for minutes, or 3 months."),
        ("mnoth", "'mnoth' is not a span.", "try month."),
        ("2 mnths", "'2 mnths' is not a span.", "try 2 months."),
        ("foo", "'foo' is not a span.", EXAMPLES),
        ("session", "'session' is not a span.", EXAMPLES),
        ("every 5m", "there is no span before 'every'.", "try 5m, or put the range first: SPAN every 5m."),
        ("every", "there is no span.", EXAMPLES),
        ("in UTC", "there is no span.", EXAMPLES),
        ("", "there is no span.", EXAMPLES),
        ("5m every", "nothing follows 'every'.", GRAMMAR),
        ("5m in", "nothing follows 'in'.", GRAMMAR),
        ("5m offset", "nothing follows 'offset'.", GRAMMAR),
        ("5m as", "nothing follows 'as'.", GRAMMAR),
        ("5m every 1m every 1m", "'every' is given twice.", GRAMMAR),
        ("1h offset 5m every 15m", "its parts are out of order.", "try 1h every 15m offset 5m."),
        ("day as x y", "the name 'x y' is not letters, digits and '_', with a letter or digit first.", "try x_y."),
        ("5m in UTC every 1m", "its parts are out of order.", GRAMMAR),
        ("5m each 1m", "'each' has no meaning here.", "try 5m every 1m."),
        ("1h sliding every 15m", "'sliding' has no meaning here.", "try 1h every 15m."),
        ("rolling 7 days in Europe/Berlin", "'rolling' has no meaning here.", "try 7 days every day in Europe/Berlin."),
        ("last 7d", "'last' has no meaning here.", "try 7d every 1d."),
        ("last 90m as recent", "'last' has no meaning here.", "try 90m every 1h as recent."),
        ("rolling nonsense", "'rolling nonsense' is not a span.", EXAMPLES),
        ("tumbling 5m", "'tumbling' has no meaning here.", "try 5m."),
        ("28 days daily", "'daily' has no meaning here.", "try 28 days every day."),
        ("week on sunday", "'on' has no meaning here.", "try week from sunday."),
        ("week starting sunday", "'starting' has no meaning here.", "try week from sunday."),
        (
            "last 28 days every day in Europe/Paris",
            "'last' has no meaning here.",
            "try 28 days every day in Europe/Paris.",
        ),
        ("day tz Paris", "'day tz Paris' is not a span.", EXAMPLES),
        ("5m foo", "'foo' has no meaning here.", "try 5m."),
        ("a b c d e f g h i j k l m n o p q", "'a b c d e f g h i j k l m n o p q' is not a span.", EXAMPLES),
        ("day at 6h", "'at' has no meaning here.", "try day offset 6h."),
        ("90m in Europe/Paris", ZONE, NO_ZONE),
        ("1d in Europe/Paris", ZONE, "try day in Europe/Paris."),
        ("7d every 1d in Europe/Paris", ZONE, "try 7 days every day in Europe/Paris."),
        ("1w in Europe/Paris", ZONE, "try week in Europe/Paris."),
        ("36h in Europe/Paris", ZONE, NO_ZONE),
        ("1h every day in Europe/Paris", ZONE, NO_ZONE),
        ("1d to date every 1h in UTC", ZONE, NO_ZONE),
        (
            "28d every day",
            "the range is fixed, the slide is a calendar span.",
            "try 28d every 1d or 28 days every day.",
        ),
        ("28 days every 1h", "the range is a calendar span, the slide is fixed.", "try 28d every 1h."),
        ("month every 1h", "the range is a calendar span, the slide is fixed.", BOTH),
        ("1h every day", "the range is fixed, the slide is a calendar span.", BOTH),
        ("week from sun", "'sun' is not a weekday.", "try week from sunday."),
        ("week from funday", "'funday' is not a weekday.", "try week from sunday."),
        ("week from", "nothing follows 'from'.", "try week from sunday."),
        ("year from", "nothing follows 'from'.", "try year from april."),
        ("year from sunday", "'sunday' is not a month.", "try year from april."),
        ("year from sep", "'sep' is not a month.", "try year from september."),
        ("day from sunday", ANCHORS, "try week from sunday."),
        ("28 days from x", ANCHORS, "try week from sunday."),
        (
            "1w from sunday",
            "'from' goes with calendar spans, and durations are fixed lengths.",
            "try week from sunday.",
        ),
        ("2 weeks from sunday every week", FROM, BEHIND),
        ("year from april every day", FROM, BEHIND),
        ("0s", "a span is at least 1 s.", EXAMPLES),
        ("0 days", "a span is at least 1 day.", "try day."),
        ("5m every 0s", "a span is at least 1 s.", EXAMPLES),
        ("0 weeks from sunday", "a span is at least 1 week.", "try week."),
        ("1h offset 1h", "the offset (3600 s) is not shorter than the slide (3600 s).", "leave the offset out."),
        (
            "1h offset 90m",
            "the offset (5400 s) is not shorter than the slide (3600 s).",
            "the same edges have offset 30m.",
        ),
        ("day offset 24h", "the offset (86400 s) is not shorter than the slide (86400 s).", "leave the offset out."),
        (
            "week offset 8d",
            "the offset (691200 s) is not shorter than the slide (604800 s).",
            "the same edges have offset 1d.",
        ),
        (
            "month offset 30d",
            "the offset (2592000 s) is not shorter than the slide (at least 2419200 s).",
            "leave the offset out.",
        ),
        (
            "quarter to date every month offset 40d",
            "the offset (3456000 s) is not shorter than the slide (at least 2419200 s).",
            "leave the offset out.",
        ),
        (
            "1d to date every 1h offset 25h",
            "the offset (90000 s) is not shorter than the slide (86400 s).",
            "the same edges have offset 1h.",
        ),
        ("month to date", "'to date' grows by steps, and there are none.", "add the steps, such as every day."),
        ("1d to date", "'to date' grows by steps, and there are none.", "add the steps, such as every 1h."),
        ("day to date every month", "the step (up to 2678400 s) is longer than the period (at least 86400 s).", PART),
        ("1d to date every 7d", "the step (up to 604800 s) is longer than the period (at least 86400 s).", PART),
        (
            "month to date every 2 months",
            "the step (up to 5356800 s) is longer than the period (at least 2419200 s).",
            PART,
        ),
        ("1h every 15m to date", "'15m to date' is not a span.", EXAMPLES),
        (
            "5m as my-window",
            "the name 'my-window' is not letters, digits and '_', with a letter or digit first.",
            "try my_window.",
        ),
        ("5m as _x", "the name '_x' is not letters, digits and '_', with a letter or digit first.", "try x."),
        ("5m as ...", "the name '...' is not letters, digits and '_', with a letter or digit first.", "try by_hour."),
        ("999999999999 days", "a calendar span has between 1 and 3660000 days.", "try 1 month."),
        ("9999999999999 days", "'9999999999999 days' is not a span.", EXAMPLES),
        ("99999 years", "a calendar span has between 1 and 120000 months.", "try 1 month."),
        ("5m every 1m in", "nothing follows 'in'.", GRAMMAR),
        ("day in Europe/Paris as", "nothing follows 'as'.", GRAMMAR),
    ],
)
def test_refuses(text: str, rule: str, hint: str) -> None:
    with pytest.raises(WindowError) as caught:
        parse_window(text)
    assert str(caught.value) == f"window '{text}': {rule}" + (f" Hint: {hint}" if hint else "")
    assert caught.value.data == {"text": text, "rule": rule}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5h every 30m", "duration '1.5h': counts are whole numbers. Hint: try 90m."),
        ("1h every 5min", "duration '5min': units are one letter (w, d, h, m, s), next to their number. Hint: try 5m."),
        (
            "5 minutes",
            "duration '5 minutes': units are one letter (w, d, h, m, s), next to their number. Hint: try 5m.",
        ),
        ("-5m", "duration '-5m': a duration cannot be negative. Hint: leave the sign out."),
        (
            "1h offset 1 day",
            "duration '1 day': units are one letter (w, d, h, m, s), next to their number. Hint: try 1d.",
        ),
        (
            "session gap long",
            "duration 'long': it is not whole numbers with units (w, d, h, m, s). Hint: try 5m, 1h30m or 1d.",
        ),
    ],
)
def test_refuses_durations(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_window(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("zone", "hint"), [("Paris", "try Europe/Paris."), ("New  york", "try America/New_York.")])
def test_refuses_zones(zone: str, hint: str) -> None:
    with pytest.raises(ZoneError) as caught:
        parse_window(f"28 days every day in {zone}")
    shown = " ".join(zone.split())
    assert str(caught.value) == f"zone '{shown}': the zone database has no zone of that name. Hint: {hint}"


WORDS = (
    "1",
    "5m",
    "1h",
    "day",
    "weeks",
    "month",
    "from",
    "sunday",
    "april",
    "to",
    "date",
    "every",
    "offset",
    "in",
    "UTC",
)


@given(st.lists(st.sampled_from((*WORDS, "as", "x", "each", "0", "session", "gap", "rows"))) | st.lists(st.text()))
def test_any_text_is_a_window_or_a_declaration_error(words: list[str]) -> None:
    text = " ".join(words)
    try:
        window = parse_window(text)
    except DeclarationError as error:
        refused = error
    else:
        assert parse_window(str(window)) == window
        return
    assert refused.message.endswith(".")
    assert refused.hint.endswith(".") or not refused.hint
