from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.duration import LONGEST_SECONDS, Duration, unit_meant
from stairwise.errors import DurationError


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("0s", 0, "0s"),
        ("45s", 45, "45s"),
        ("90s", 90, "1m30s"),
        ("90m", 5_400, "1h30m"),
        ("1h30m", 5_400, "1h30m"),
        ("36h", 129_600, "1d12h"),
        ("1w", 604_800, "7d"),
        ("1w2d3h4m5s", 788_645, "9d3h4m5s"),
        (" 005m ", 300, "5m"),
    ],
)
def test_reads_and_prints(text: str, seconds: int, canonical: str) -> None:
    assert Duration.parse(text).seconds == seconds
    assert str(Duration.parse(text)) == canonical


@given(st.integers(0, LONGEST_SECONDS))
def test_text_reads_back(seconds: int) -> None:
    assert Duration.parse(str(Duration(seconds))) == Duration(seconds)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_orders_by_length(one: int, other: int) -> None:
    assert (Duration(one) < Duration(other)) is (one < other)


LETTERS = "units are one letter (w, d, h, m, s), next to their number."
UNITS = "is not a unit (the units are w, d, h, m and s)."


@pytest.mark.parametrize(
    ("text", "rule", "hint"),
    [
        ("", "there is nothing to read.", "try 5m, 1h30m or 1d."),
        ("  ", "there is nothing to read.", "try 5m, 1h30m or 1d."),
        ("30", "a number needs a unit (w, d, h, m or s).", "try 30s, 30m or 30h."),
        ("12345678", "a number needs a unit (w, d, h, m or s).", "try 30s, 30m or 30h."),
        ("-5m", "a duration cannot be negative.", "leave the sign out."),
        ("five minutes", "it is not whole numbers with units (w, d, h, m, s).", "try 5m, 1h30m or 1d."),
        ("5m foo", "it is not whole numbers with units (w, d, h, m, s).", "try 5m, 1h30m or 1d."),
        ("\uff15m", "it is not whole numbers with units (w, d, h, m, s).", "try 5m, 1h30m or 1d."),
        ("9" * 5_000 + "s", "it is not whole numbers with units (w, d, h, m, s).", "try 5m, 1h30m or 1d."),
        ("1.5h", "counts are whole numbers.", "try 90m."),
        ("0.5d", "counts are whole numbers.", "try 12h."),
        ("1.0h", "counts are whole numbers.", "try 1h."),
        ("2.5 hours", "counts are whole numbers.", "try 150m."),
        ("0.25s", "a second is the smallest unit, and counts are whole.", "try 1s."),
        ("30m1h", "units fall from weeks to seconds (w, d, h, m, s), each at most once.", "try 1h30m."),
        ("5m5m", "units fall from weeks to seconds (w, d, h, m, s), each at most once.", "try 10m."),
        ("5min", LETTERS, "try 5m."),
        ("5 minutes", LETTERS, "try 5m."),
        ("1 hour", LETTERS, "try 1h."),
        ("1 hour 30 mins", LETTERS, "try 1h30m."),
        ("1h 30m", LETTERS, "try 1h30m."),
        ("1H", LETTERS, "try 1h."),
        ("2 Weeks", LETTERS, "try 2w."),
        ("1M", f"'M' {UNITS}", "try 1m for a minute; a month has no fixed length."),
        ("1mo", f"'mo' {UNITS}", "try 5m, 1h30m or 1d."),
        ("10ms", f"'ms' {UNITS}", "try 5m, 1h30m or 1d."),
        ("999999999999d", "it is longer than 10,000 years (316224000000 s).", "write a shorter one."),
    ],
)
def test_refuses(text: str, rule: str, hint: str) -> None:
    with pytest.raises(DurationError) as caught:
        Duration.parse(text)
    assert str(caught.value) == f"duration '{text}': {rule}" + (f" Hint: {hint}" if hint else "")
    assert caught.value.data == {"text": text}


@pytest.mark.parametrize("seconds", [-1, LONGEST_SECONDS + 1])
def test_refuses_a_length_out_of_bounds(seconds: int) -> None:
    with pytest.raises(DurationError) as caught:
        Duration(seconds)
    assert str(caught.value) == (
        f"duration of {seconds} s: a duration lies between 0 s and 10,000 years (316224000000 s). "
        "Hint: give a number of seconds between them."
    )


@pytest.mark.parametrize(
    ("word", "unit"), [("s", "s"), ("Secs", "s"), ("MIN", "m"), ("hr", "h"), ("days", "d"), ("wk", "w"), ("M", None)]
)
def test_knows_the_words_for_units(word: str, unit: str | None) -> None:
    assert unit_meant(word) == unit
