from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.aggregate import Aggregate
from stairwise.declared import TimeUnit
from stairwise.duration import LONGEST_SECONDS, Duration
from stairwise.errors import DeclarationError, DeclarationProblems, DurationError, RollupError
from stairwise.instant import format_instant, parse_instant
from stairwise.names import text_of
from stairwise.rollup import Catalog, DeclaredWindow, Estimates, Late, Layout, NullTime, Rollup, Source
from stairwise.rules import meaning
from stairwise.share import Share, parse_most
from stairwise.span import Cadence, Lookback, Span
from stairwise.window import CumulateWindow, Window
from stairwise.window_text import parse_window
from stairwise.windowing import windows_at
from tests.strategies import instants, windows, zones

FULL = """\
rollup: trips
source:
  path: lake/trips
  format: parquet
  time: pickup_at
  zone: Europe/Paris
  where: fare >= 0
  retain: 2 years
keys: [zone_id]
aggregates:
  trips: count()
  tips: sum(tip) where payment = 'card'
windows:
  - 1h every 15m
  - day in Europe/Paris
  - {window: week from sunday, name: us_week, retain: 5 years}
target:
  catalog: lake.rollups
lateness: 7d
late: ignore
deletes: 2.5%
null_time: skip
partial: true
delay: 10m
future: 1d
lookback:
  - 1d every run
  - 7d daily
start: 2024-01-01T00:00:00Z
layout: one_table
estimates:
  rows_per_day: 1000000
  distinct_keys: 200
"""


TRIPS = Rollup(
    name="trips",
    source=Source(table="lake.trips", time="pickup_at"),
    keys=("zone_id",),
    aggregates={"trips": "count()"},
    windows=("1h",),
    target="lake/rollups/trips",
)


def trips(
    *,
    source: Source = TRIPS.source,
    keys: Iterable[str] = TRIPS.keys,
    aggregates: Mapping[str, str] | None = None,
    windows: Iterable[str] = ("1h",),
    target: str | Catalog = TRIPS.target,
    late: str = "correct",
) -> Rollup:
    return Rollup(
        name="trips",
        source=source,
        keys=keys,
        aggregates={"trips": "count()"} if aggregates is None else aggregates,
        windows=windows,
        target=target,
        late=late,
    )


def test_python_and_yaml_declare_the_same_value() -> None:
    declared = Rollup(
        name="trips",
        source=Source(
            path="lake/trips",
            format="parquet",
            time="pickup_at",
            zone="Europe/Paris",
            where="fare >= 0",
            retain="2 years",
        ),
        keys=["zone_id"],
        aggregates={"trips": "count()", "tips": "sum(tip) where payment = 'card'"},
        windows=[
            "1h every 15m",
            "day in Europe/Paris",
            {"window": "week from sunday", "name": "us_week", "retain": "5 years"},
        ],
        target=Catalog("lake.rollups"),
        lateness="7 days",
        late="ignore",
        deletes="2.50 %",
        null_time="skip",
        partial=True,
        delay="10m",
        future="1d",
        lookback=["1 day every run", "7 days daily"],
        start="2024-01-01",
        layout="one_table",
        estimates=Estimates(rows_per_day=1_000_000, distinct_keys=200),
    )
    assert declared == Rollup.from_yaml(FULL)
    assert hash(declared) == hash(Rollup.from_yaml(FULL))
    assert declared.to_yaml() == FULL


def test_fields_hold_values_and_not_texts() -> None:
    rollup = Rollup.from_yaml(FULL)
    assert rollup.aggregates[0] == ("trips", Aggregate.parse("count()"))
    assert rollup.windows[2] == DeclaredWindow(
        window=parse_window("week from sunday"), text="week from sunday", name="us_week", retain=Span(months=60)
    )
    assert (rollup.lateness, rollup.late, rollup.null_time) == (Span(604_800), Late.IGNORE, NullTime.SKIP)
    assert (rollup.delay, rollup.future, rollup.start) == (Duration(600), Span(86_400), 1_704_067_200)
    assert rollup.lookback == (Lookback(Span(86_400), Cadence.RUN), Lookback(Span(604_800), Cadence.DAILY))
    assert (rollup.layout, rollup.deletes) == (Layout.ONE_TABLE, Share(Fraction(1, 40)))


def test_values_may_stand_for_their_texts() -> None:
    rollup = Rollup.from_yaml(FULL)
    assert dataclasses.replace(rollup) == rollup


def test_defaults_may_be_written_or_left_out() -> None:
    written = """\
rollup: trips
source: {table: lake.trips, format: delta, time: pickup_at, unit: null, zone: UTC, where: null, retain: any}
keys: [zone_id]
aggregates: {trips: count()}
windows: [1h]
target: lake/rollups/trips
lateness: any
late: correct
deletes: 10%
null_time: fail
partial: false
delay: 0s
future: any
lookback: null
start: null
layout: tables
estimates: {rows_per_day: null, distinct_keys: null}
"""
    assert Rollup.from_yaml(written) == TRIPS
    assert TRIPS.to_yaml() == (
        "rollup: trips\nsource:\n  table: lake.trips\n  time: pickup_at\nkeys: [zone_id]\n"
        "aggregates:\n  trips: count()\nwindows: [1h]\ntarget: lake/rollups/trips\n"
    )


def test_a_query_of_several_lines_stays_readable() -> None:
    source = Source(sql="SELECT *\n\nFROM trips -- all: of them\n", time="at", unit="ms")
    rollup = trips(source=source)
    assert "  sql: |-\n    SELECT *\n\n    FROM trips -- all: of them\n  time: at\n  unit: ms\n" in rollup.to_yaml()
    assert Rollup.from_yaml(rollup.to_yaml()) == rollup
    assert source.unit is TimeUnit.MILLISECONDS


def test_a_window_has_the_same_name_however_it_is_given() -> None:
    assert DeclaredWindow.parse("1h every 15m  as quarter") == DeclaredWindow.parse("1h every 15m", name="quarter")
    assert DeclaredWindow.parse("day  in Europe/Paris").name == "day_in_europe_paris"


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: trips(windows=()), "windows are empty: at least one is needed. Hint: add one, such as 1h."),
        (
            lambda: trips(aggregates={}),
            "aggregates are empty: at least one is needed. Hint: add one, such as trips: count().",
        ),
        (
            lambda: trips(keys="zone_id"),
            "keys is 'zone_id', where a list is wanted. Hint: write keys=['zone_id'].",
        ),
        (lambda: trips(windows="5m"), "windows is '5m', where a list is wanted. Hint: write windows=['5m']."),
        (
            lambda: DeclaredWindow.of({"window": "5m", "title": "fine"}),
            (
                "a window has the keys window, title: window is needed, name and retain are known beside it. "
                "Hint: write such as {'window': '5m', 'name': 'fine'}."
            ),
        ),
        (lambda: text_of(3, "a key"), "a key is 3, where text is wanted. Hint: give a string."),
        (lambda: trips(windows=["90m", "1h30m"]), "window '1h30m': the same as '90m'. Hint: keep one of the two."),
        (
            lambda: trips(late="ignore"),
            (
                "late is ignore, but lateness is any: no row is ever too late. "
                "Hint: give lateness a span such as 7 days, or remove late."
            ),
        ),
        (
            lambda: trips(source=Source(path="lake", time="t")),
            (
                "target 'lake/rollups/trips': table lake/rollups/trips/1h and the source lake lie within each other. "
                "Hint: choose a directory beside the source's."
            ),
        ),
    ],
)
def test_python_is_checked_as_yaml_is(build: Callable[[], object], error: str) -> None:
    with pytest.raises(RollupError) as raised:
        build()
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "retain", "error"),
    [
        ("1h", "59m", "window '1h': retain 59m is shorter than the range 1h. Hint: write 1h or longer, or any."),
        (
            "day in Europe/Paris",
            "23h",
            "window 'day in Europe/Paris': retain 23h is shorter than the range 1d. Hint: write 1d or longer, or any.",
        ),
        (
            "28 days every day",
            "1 week",
            "window '28 days every day': retain 7d is shorter than the range 28d. Hint: write 28d or longer, or any.",
        ),
        (
            "30 days every day",
            "1 month",
            (
                "window '30 days every day': retain 1 month is shorter than the range 30d. "
                "Hint: write 30d or longer, or any."
            ),
        ),
        (
            "month",
            "30d",
            "window 'month': retain 30d is shorter than the range 1 month. Hint: write 1 month or longer, or any.",
        ),
        (
            "year to date every day",
            "3 quarters",
            (
                "window 'year to date every day': retain 3 quarters is shorter than the range 1 year. "
                "Hint: write 1 year or longer, or any."
            ),
        ),
    ],
)
def test_a_table_keeps_windows_until_they_end(text: str, retain: str, error: str) -> None:
    with pytest.raises(RollupError) as raised:
        DeclaredWindow.parse(text, retain=retain)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "retain"),
    [
        ("1h", "1h"),
        ("day", "1d"),
        ("28 days", "1 month"),
        ("month", "31d"),
        ("month", "1 month"),
        ("year", "9999 years"),
        ("1h", "any"),
    ],
)
def test_a_table_may_keep_just_one_window(text: str, retain: str) -> None:
    assert DeclaredWindow.parse(text, retain=retain).window == parse_window(text)


@pytest.mark.parametrize("text", ["year 1", "the end"])
def test_start_may_be_any_instant_that_can_be_written(text: str) -> None:
    instant = parse_instant({"year 1": "0001-01-01", "the end": "9999-12-31T23:59:59Z"}[text])
    rollup = dataclasses.replace(TRIPS, start=instant)
    assert Rollup.from_yaml(rollup.to_yaml()) == rollup


@pytest.mark.parametrize(
    ("windows", "is_clash"),
    [
        (["day in Asia/Kolkata", "day in Asia/Calcutta"], True),
        (["28 days every day in US/Pacific", "28 days every day in America/Los_Angeles"], True),
        (["month to date every day in Asia/Calcutta", "month to date every day in Asia/Kolkata"], True),
        (["month to date every 1h in Europe/Kiev", "month to date every 1h in Europe/Kyiv"], True),
        (["day in Europe/Oslo", "day in Europe/Berlin"], False),
        (["day in Asia/Kolkata", "week in Asia/Calcutta", "1h"], False),
    ],
)
def test_a_zone_has_one_meaning_under_its_former_name(windows: list[str], *, is_clash: bool) -> None:
    if is_clash:
        with pytest.raises(RollupError) as raised:
            trips(windows=windows)
        assert str(raised.value) == f"window '{windows[1]}': the same as '{windows[0]}'. Hint: keep one of the two."
    else:
        assert [declared.text for declared in trips(windows=windows).windows] == windows


@pytest.mark.parametrize(
    "windows",
    [
        ["1d", "day"],
        ["24h", "day in Etc/UTC"],
        ["day", "1d"],
        ["1w", "week"],
        ["7d", "7 days"],
        ["2d", "2 days"],
        ["2w", "2 weeks"],
        ["7d offset 3d", "week from sunday"],
        ["1d offset 6h", "day offset 6h"],
        ["28d every 1d", "28 days every day"],
        ["4w every 1w offset 1h30m", "28 days every week offset 90m"],
        ["1d offset 23h", "day in Etc/GMT-1"],
        ["1w offset 5h", "week in Etc/GMT+5"],
        ["day offset 1h", "day in Etc/GMT+1"],
        ["1w to date every 1d", "week to date every day"],
        ["week to date every 6h", "1w to date every 6h"],
        ["month to date every 1d", "month to date every day"],
        ["2 weeks from sunday to date every 5 days", "2 weeks from sunday to date every 5d"],
        ["day to date every 1d", "1d"],
    ],
)
def test_days_that_always_have_24_hours_are_a_fixed_length(windows: list[str]) -> None:
    with pytest.raises(RollupError) as raised:
        trips(windows=windows)
    assert str(raised.value) == f"window '{windows[1]}': the same as '{windows[0]}'. Hint: keep one of the two."


@pytest.mark.parametrize(
    "windows",
    [
        ["1d", "day in Europe/Paris"],
        ["1d", "day in Africa/Abidjan"],
        ["7d", "week"],
        ["1d", "day in Etc/GMT-1", "day offset 1h"],
        ["28d every 1d", "28 days every 2 days"],
        ["31d every 28d", "31 days every month"],
        ["month every 7 days", "28 days every 7 days"],
        ["1w to date every 1d", "week to date every 12h", "week"],
        ["month to date every day in Europe/Paris", "month to date every 1d in Europe/Paris"],
    ],
)
def test_windows_that_only_look_alike_stay_apart(windows: list[str]) -> None:
    assert [declared.text for declared in trips(windows=windows).windows] == windows


@given(windows(), instants())
def test_two_windows_of_one_meaning_are_the_same_at_every_instant(window: Window, instant: int) -> None:
    one, *others = meaning(window)
    if not others:
        assert windows_at(one, instant) == windows_at(window, instant)
    else:
        assert isinstance(window, CumulateWindow)
        for part, own in zip((one, *others), (window.period, window.step), strict=True):
            assert windows_at(part, instant) == windows_at(own, instant)


def test_a_directory_beside_the_source_is_none_of_its_own() -> None:
    assert trips(source=Source(path="lake/rollups/trips/1h_raw", time="t")).target == "lake/rollups/trips"
    assert trips(source=Source(table="lake.trips", time="t"), target=Catalog("lake")).target == Catalog("lake")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing.yaml", "the file cannot be read (No such file or directory). Hint: check the path."),
        (".", "the file cannot be read (Is a directory). Hint: name a file in it."),
        ("a\0b", "the file cannot be read (embedded null byte). Hint: check the path."),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, path: str, error: str) -> None:
    with pytest.raises(DeclarationProblems) as raised:
        Rollup.from_file(tmp_path / path)
    assert str(raised.value) == f"{tmp_path / path}: {error}"


@pytest.mark.parametrize(
    ("text", "span", "written"),
    [
        ("5m", Span(300), "5m"),
        ("1 week", Span(604_800), "7d"),
        ("Day", Span(86_400), "1d"),
        ("18 months", Span(months=18), "6 quarters"),
        ("1 month", Span(months=1), "1 month"),
        ("0 years", Span(), "0s"),
    ],
)
def test_spans(text: str, span: Span, written: str) -> None:
    assert Span.parse(text) == span
    assert str(span) == written
    assert Span.parse(written) == span


@pytest.mark.parametrize(("seconds", "months"), [(1, 1), (0, -1)])
def test_a_span_is_seconds_or_months(seconds: int, months: int) -> None:
    with pytest.raises(DurationError) as raised:
        Span(seconds, months)
    assert str(raised.value) == (
        f"span of {seconds} s and {months} months: seconds or months, and none below 0. Hint: give one of the two."
    )


@pytest.mark.parametrize("text", ["2024-01-31T06:00:00", "20240131", "2024-01-31Z", "2024-1-31", "2024-01-31T06Z", ""])
def test_instants_have_one_form(text: str) -> None:
    with pytest.raises(DeclarationError):
        parse_instant(text)


@given(instants())
def test_instants_round_trip(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant


def spans() -> st.SearchStrategy[Span]:
    return st.builds(Span, st.integers(1, 10**9)) | st.builds(Span, months=st.integers(1, 1_000))


def retentions() -> st.SearchStrategy[Span | None]:
    return st.none() | st.sampled_from([Span(LONGEST_SECONDS), Span(months=120_000)])


def texts() -> st.SearchStrategy[str]:
    return st.text("ab1: #'\"\\-[]{},&*!|>%@`~?\t\n\x85\u2028\ufeffé日😀", min_size=1, max_size=20).filter(str.strip)


def names() -> st.SearchStrategy[str]:
    return st.sampled_from(["a", "on", "null", "true", "trips", "Größe", "x1"])


@st.composite
def sources(draw: st.DrawFn) -> Source:
    return Source(
        path=draw(texts().map(lambda text: f"raw/{text}/x")),
        time=draw(texts()),
        zone=draw(zones()),
        format=draw(st.sampled_from(["delta", "parquet"])),
        where=draw(st.none() | st.sampled_from(["fare > 0", "a = ': #' and b"])),
        retain=draw(st.none() | spans()),
    )


@st.composite
def rollups(draw: st.DrawFn) -> Rollup:
    declared = draw(st.lists(windows(), min_size=1, max_size=4, unique_by=meaning))
    lateness = draw(st.none() | spans())
    return Rollup(
        name=draw(st.sampled_from(["trips", "no", "Null", "y"])),
        source=draw(sources()),
        keys=draw(st.lists(st.sampled_from(["k", "off", "zone-id", "日本", "'q'", "a.b"]), unique=True)),
        aggregates=dict.fromkeys(draw(st.lists(names(), min_size=1, unique=True)), "count() where a = ', ]: #'"),
        windows=[
            DeclaredWindow(window=window, text=str(window), name=f"w{index}", retain=draw(retentions()))
            for index, window in enumerate(declared)
        ],
        target=draw(texts().map(lambda text: f"out/{text}/x") | st.just(Catalog("lake.rollups"))),
        lateness=lateness,
        late=draw(st.sampled_from(Late)) if lateness else Late.CORRECT,
        partial=draw(st.booleans()),
        start=draw(st.none() | instants()),
        lookback=[
            Lookback(draw(spans()), cadence) for cadence in draw(st.lists(st.sampled_from(Cadence), unique=True))
        ],
        estimates=Estimates(rows_per_day=draw(st.none() | st.integers(1, 10**15))),
    )


@settings(max_examples=50)
@given(rollups())
def test_every_rollup_round_trips(rollup: Rollup) -> None:
    text = rollup.to_yaml()
    assert Rollup.from_yaml(text) == rollup
    assert Rollup.from_yaml(text.encode()).to_yaml() == text


@pytest.mark.parametrize(
    ("text", "written"),
    [("10%", "10%"), (" 2.50 %", "2.5%"), ("0%", "0%"), ("100.0000%", "100%"), ("7.0625%", "7.0625%")],
)
def test_shares_are_read_as_they_are_written(text: str, written: str) -> None:
    assert str(Share.parse(text)) == written
    assert parse_most(written) == Share.parse(text)
    rollup = dataclasses.replace(TRIPS, deletes=Share.parse(text))
    assert Rollup.from_yaml(rollup.to_yaml()) == rollup


def test_no_limit_of_deletes_is_a_value_too() -> None:
    rollup = dataclasses.replace(TRIPS, deletes=parse_most("any"))
    assert rollup.deletes is None
    assert "deletes: any\n" in rollup.to_yaml()
    assert Rollup.from_yaml(rollup.to_yaml()) == rollup


@pytest.mark.parametrize("text", ["10", "0.1", "110%", "100.0001%", "-1%", "1.23456%", "\u0661\u0660%", ""])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(
        RollupError, match=r"it is not a percentage from 0% to 100%\. Hint: write such as 10% or 2\.5%\."
    ):
        Share.parse(text)


@pytest.mark.parametrize("part", [Fraction(-1, 100), Fraction(11, 10), Fraction(1, 3)])
def test_a_share_that_no_text_means_is_refused(part: Fraction) -> None:
    with pytest.raises(RollupError, match="it is not between 0 and 1 in whole millionths"):
        Share(part)
