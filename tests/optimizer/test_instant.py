"""Instants: what is read, what is written, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import DeclarationError
from stairwise.instant import format_instant, parse_instant

FIRST, LAST = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999


@pytest.mark.parametrize(
    ("text", "instant", "written"),
    [
        ("1970-01-01", 0, "1970-01-01T00:00:00Z"),
        (" 2024-01-31 06:00+02:00 ", 1_706_673_600, "2024-01-31T04:00:00Z"),
        ("0999-12-31T23:59:59Z", -30_610_224_001, "0999-12-31T23:59:59Z"),
        ("0033-04-03", -61_117_804_800, "0033-04-03T00:00:00Z"),
        ("0001-01-01", FIRST, "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", LAST, "9999-12-31T23:59:59Z"),
    ],
)
def test_an_instant_is_read_and_written(text: str, instant: int, written: str) -> None:
    assert parse_instant(text) == instant
    assert format_instant(instant) == written


@given(st.integers(FIRST, LAST))
def test_what_is_written_is_read_back(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("2024-02-30", "day is out of range for month."),
        ("0000-01-01", "year 0 is out of range."),
        ("0001-01-01T00:00+02:00", "date value out of range."),
        ("9999-12-31T23:00-02:00", "date value out of range."),
    ],
)
def test_what_is_no_instant_of_the_years_1_to_9999_is_refused(text: str, error: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        parse_instant(text)
    assert str(raised.value) == f"instant '{text}': {error} Hint: write a day and a time that exist."


def test_an_offset_of_a_day_is_refused_in_one_sentence() -> None:
    with pytest.raises(DeclarationError) as raised:
        parse_instant("2024-01-01T10:00+25:00")
    assert not raised.value.message.endswith("..")
