"""History in pieces: few of them, none lost, cut where windows end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from stairwise import Rollup
from stairwise.duration import Duration
from stairwise.instant import parse_instant
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_at
from stairwise_airflow.chunking import MOST_CHUNKS, ROWS_PER_CHUNK, chunks
from tests.plugins.declared import TRIPS

pytestmark = pytest.mark.airflow

TWO_YEARS = Interval(parse_instant("2024-03-05T07:00Z"), parse_instant("2026-03-05T07:00Z"))
HOURS, MONTHS = "1h, day in Europe/Paris", "1h, day, month in Europe/Paris"


@pytest.mark.parametrize(
    ("windows", "rows_per_day", "chunk", "number", "edges"),
    [
        (HOURS, None, None, 9, "day in Europe/Paris"),
        (HOURS, 1_000, None, 1, "1h"),
        # So many rows that a chunk a day would be right: yet two years are a handful of applications.
        (HOURS, 10 * ROWS_PER_CHUNK, None, MOST_CHUNKS, "day in Europe/Paris"),
        (MONTHS, None, None, 11, "month in Europe/Paris"),
        (MONTHS, None, "30d", 25, "day"),
        ("1h", None, "300d", 3, "1h"),
    ],
)
def test_two_years_of_hours_are_a_handful_of_chunks_at_the_edges_of_the_coarsest_window_that_fits(
    windows: str, rows_per_day: int | None, chunk: str | None, number: int, edges: str
) -> None:
    text = TRIPS.replace("15m, 1h, day in Europe/Paris", windows)
    estimated = "" if rows_per_day is None else f"estimates: {{rows_per_day: {rows_per_day}}}\n"
    length = None if chunk is None else Duration.parse(chunk)
    found = chunks(Rollup.from_yaml(text + estimated), TWO_YEARS, length, ROWS_PER_CHUNK)
    assert len(found) == number
    assert (found[0].start, found[-1].end) == TWO_YEARS
    for one, other in pairwise(found):
        assert one.end == other.start == windows_at(parse_window(edges), other.start)[0].start
