"""What Python gives is checked as what YAML gives: every field of every part has its type."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import stairwise
from stairwise.errors import RollupError
from stairwise.rollup import DeclaredWindow, Estimates, Layout, Rollup
from stairwise.span import Span
from tests.optimizer.test_rollup import TRIPS

# As a program calls them that no type checker has seen.
REPLACE: Callable[..., object] = dataclasses.replace
OPTIMIZE: Callable[..., object] = stairwise.optimize
FROM_YAML: Callable[..., object] = Rollup.from_yaml
FROM_FILE: Callable[..., object] = Rollup.from_file


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name": 5}, "name is 5, where text is wanted. Hint: give a string."),
        (
            {"source": {"table": "lake.trips", "time": "pickup_at"}},
            (
                "source is a dict, where a Source is wanted. "
                "Hint: give one, such as Source(table='lake.trips', time='pickup_at')."
            ),
        ),
        ({"keys": 5}, "keys is 5, where a list is wanted. Hint: give one, such as ['zone_id']."),
        ({"keys": {"zone_id"}}, "keys is a set, where a list is wanted. Hint: give one, such as ['zone_id']."),
        ({"keys": {"zone_id": "int"}}, "keys is a dict, where a list is wanted. Hint: give one, such as ['zone_id']."),
        ({"keys": [None]}, "a key is None, where text is wanted. Hint: give a string."),
        (
            {"aggregates": {"a": 5}},
            "aggregate 'a' is 5, where a call is wanted. Hint: give one as text, such as 'count()'.",
        ),
        ({"aggregates": {5: "count()"}}, "an aggregate's name is 5, where text is wanted. Hint: give a string."),
        (
            {"aggregates": ["count()"]},
            (
                "an aggregate is 'count()', where a pair of name and call is wanted. "
                "Hint: give one, such as ('trips', 'count()')."
            ),
        ),
        (
            {"aggregates": "count()"},
            "aggregates is 'count()', where a mapping is wanted. Hint: give one, such as {'trips': 'count()'}.",
        ),
        (
            {"aggregates": (("trips", "count()", 5),)},
            (
                "an aggregate is a tuple, where a pair of name and call is wanted. "
                "Hint: give one, such as ('trips', 'count()')."
            ),
        ),
        ({"windows": "1h"}, "windows is '1h', where a list is wanted. Hint: write windows=['1h']."),
        ({"windows": None}, "windows is None, where a list is wanted. Hint: give one, such as ['5m', '1h']."),
        (
            {"windows": {"window": "1h"}},
            "windows is a dict, where a list is wanted. Hint: give one, such as ['5m', '1h'].",
        ),
        ({"windows": [300]}, "window is 300, where text is wanted. Hint: give a string."),
        ({"windows": [{"window": 300}]}, "window is 300, where text is wanted. Hint: give a string."),
        ({"windows": [{"window": "5m", "name": ""}]}, "name is empty. Hint: write a text, or leave it out."),
        (
            {"windows": [{"window": "5m", "retain": 300}]},
            "retain is 300, where text is wanted. Hint: give a string.",
        ),
        (
            {"windows": [{1: "5m"}]},
            (
                "a window has the keys 1: window is needed, name and retain are known beside it. "
                "Hint: write such as {'window': '5m', 'name': 'fine'}."
            ),
        ),
        ({"target": Path("lake")}, "target is a PosixPath, where text is wanted. Hint: give a string."),
        ({"lateness": 5}, "lateness is 5, where a span is wanted. Hint: give one as text, such as '7 days'."),
        ({"late": 7}, "late is 7, where correct or ignore is wanted. Hint: give one of them as text."),
        (
            {"late": Layout.TABLES},
            "late is a Layout, where correct or ignore is wanted. Hint: give one of them as text.",
        ),
        ({"late": None}, "late is None, where correct or ignore is wanted. Hint: give one of them as text."),
        ({"deletes": 0.1}, "deletes is 0.1, where a share is wanted. Hint: give one as text, such as '10%'."),
        ({"null_time": True}, "null_time is True, where fail or skip is wanted. Hint: give one of them as text."),
        ({"partial": "yes"}, "partial is 'yes', where True or False is wanted. Hint: give one of the two."),
        ({"partial": 1}, "partial is 1, where True or False is wanted. Hint: give one of the two."),
        ({"delay": -5}, "delay is -5, where a duration is wanted. Hint: give one as text, such as '10m'."),
        ({"delay": 300}, "delay is 300, where a duration is wanted. Hint: give one as text, such as '10m'."),
        ({"future": 0.5}, "future is 0.5, where a span is wanted. Hint: give one as text, such as '7 days'."),
        ({"lookback": 0}, "lookback is 0, where a list is wanted. Hint: give one, such as ['1 day every run']."),
        (
            {"lookback": [5]},
            "a lookback is 5, where a lookback is wanted. Hint: give one as text, such as '1 day every run'.",
        ),
        (
            {"start": True},
            (
                "start is True, where an instant is wanted. "
                "Hint: give one as text, such as '2024-01-31T06:00Z', or in seconds."
            ),
        ),
        (
            {"start": 10**15},
            (
                "start is 1000000000000000, which is not in the years 1 to 9999. "
                "Hint: count the seconds since 1970, or give it as text, such as '2024-01-31'."
            ),
        ),
        (
            {"start": -(10**30)},
            (
                "start is an int, which is not in the years 1 to 9999. "
                "Hint: count the seconds since 1970, or give it as text, such as '2024-01-31'."
            ),
        ),
        ({"layout": 3}, "layout is 3, where tables or one_table is wanted. Hint: give one of them as text."),
        (
            {"estimates": {"rows_per_day": 1}},
            (
                "estimates is a dict, where a value of Estimates is wanted. "
                "Hint: give one, such as Estimates(rows_per_day=1000000)."
            ),
        ),
    ],
)
def test_every_field_has_its_type(given: Mapping[str, object], error: str) -> None:
    with pytest.raises(RollupError) as raised:
        REPLACE(TRIPS, **given)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("build", "error"),
    [
        ({"time": 5}, "time is 5, where text is wanted. Hint: give a string."),
        ({"table": 5}, "table is 5, where text is wanted. Hint: give a string."),
        ({"unit": 5}, "unit is 5, where s, ms, us or ns is wanted. Hint: give one of them as text."),
        ({"zone": None}, "zone is None, where text is wanted. Hint: give a string."),
        ({"where": ["a"]}, "where is a list, where text is wanted. Hint: give a string."),
        ({"retain": 5}, "retain is 5, where a span is wanted. Hint: give one as text, such as '7 days'."),
        ({"retain": Span()}, "retain '0s': nothing would be kept. Hint: write a longer span, or any."),
    ],
)
def test_every_field_of_the_source_has_its_type(build: Mapping[str, object], error: str) -> None:
    with pytest.raises(RollupError) as raised:
        REPLACE(TRIPS.source, **build)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("5", "rows_per_day is '5', where a whole number is wanted. Hint: give an int, such as 1000000."),
        (True, "rows_per_day is True, where a whole number is wanted. Hint: give an int, such as 1000000."),
        (1.5, "rows_per_day is 1.5, where a whole number is wanted. Hint: give an int, such as 1000000."),
        (0, "rows_per_day is 0, below 1. Hint: write a whole number from 1, or leave it out."),
        (
            10**18,
            (
                "rows_per_day is 1000000000000000000, above 999999999999999999. "
                "Hint: write a smaller number, or leave it out."
            ),
        ),
        pytest.param(
            10**5_000,
            "rows_per_day is an int, above 999999999999999999. Hint: write a smaller number, or leave it out.",
            id="more digits than Python prints",
        ),
    ],
)
def test_estimates_are_whole_numbers(given: object, error: str) -> None:
    with pytest.raises(RollupError) as raised:
        REPLACE(Estimates(), rows_per_day=given)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            {"window": "5m"},
            "window is '5m', where a window is wanted. Hint: DeclaredWindow.parse reads one from its text.",
        ),
        ({"text": 5}, "text is 5, where text is wanted. Hint: give a string."),
        ({"name": None}, "name is None, where text is wanted. Hint: give a string."),
        ({"retain": 5}, "retain is 5, where a span is wanted. Hint: give a Span, such as Span.parse('7 days')."),
        ({"retain": Span()}, "retain '0s': nothing would be kept. Hint: write a longer span, or any."),
    ],
)
def test_every_field_of_a_window_has_its_type(given: Mapping[str, object], error: str) -> None:
    with pytest.raises(RollupError) as raised:
        REPLACE(DeclaredWindow.parse("5m"), **given)
    assert str(raised.value) == error


def test_values_may_stand_in_any_ordered_collection() -> None:
    keys = (key for key in ["zone_id"])
    assert REPLACE(TRIPS, keys=keys, windows=deque(["1h"]), lookback=None, estimates=None) == TRIPS


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (
            lambda: OPTIMIZE("trips.yaml"),
            (
                "rollup is 'trips.yaml', where a Rollup is wanted. "
                "Hint: Rollup.from_file reads one from a file, Rollup.from_yaml from a text."
            ),
        ),
        (
            lambda: OPTIMIZE(TRIPS, "best"),
            "options is 'best', where a value of Options is wanted. Hint: give one, such as Options(eta=10).",
        ),
        (
            lambda: FROM_YAML(5),
            "the YAML is 5, where text or bytes is wanted. Hint: Rollup.from_file reads a file.",
        ),
        (
            lambda: FROM_FILE(5),
            "the path is 5, where a path is wanted. Hint: give one as text, such as 'trips.yaml'.",
        ),
    ],
)
def test_functions_check_their_arguments(build: Callable[[], object], error: str) -> None:
    with pytest.raises(RollupError) as raised:
        build()
    assert str(raised.value) == error


def test_dir_shows_the_public_names() -> None:
    assert dir(stairwise) == list(stairwise.__all__)
