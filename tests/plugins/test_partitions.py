"""Partitions are windows: as long as they are in their zone, whole, and the same after a way through the database."""

from __future__ import annotations

import pytest
from airflow.partition_mappers.base import RollupMapper
from airflow.serialization.decoders import decode_partition_mapper
from airflow.serialization.encoders import encode_partition_mapper

from stairwise.errors import WindowError
from stairwise_airflow.partitions import rollup_partitions

pytestmark = pytest.mark.airflow


def stored(window: str, of: str) -> RollupMapper:
    """As the scheduler reads it from its database."""
    mapper = decode_partition_mapper(encode_partition_mapper(rollup_partitions(window, of=of)))
    assert isinstance(mapper, RollupMapper)
    return mapper


@pytest.mark.parametrize(
    ("window", "of", "key", "parts"),
    [
        ("day in Europe/Paris", "1h", "2026-03-28T23:00:00", 23),
        ("day in Europe/Paris", "1h", "2026-10-24T22:00:00", 25),
        ("day in Europe/Paris", "15m", "2026-06-01T22:00:00", 96),
        ("week from sunday", "day", "2026-03-01T00:00:00", 7),
        ("month in Asia/Kolkata", "day in Asia/Kolkata", "2026-01-31T18:30:00", 28),
        ("year from april", "month", "2026-04-01T00:00:00", 12),
        ("28 days every day in Europe/Paris", "day in Europe/Paris", "2026-03-09T23:00:00", 28),
        ("1h every 15m", "5m", "2026-03-01T00:15:00", 12),
    ],
)
def test_a_partition_needs_the_windows_within_it_and_they_need_no_other(
    window: str, of: str, key: str, parts: int
) -> None:
    mapper = stored(window, of)
    upstream = mapper.to_upstream(key)
    assert len(upstream) == parts
    assert all(key in mapper.to_downstream(part) for part in upstream)
    for part in upstream:
        for whole in mapper.to_downstream(part):
            assert part in mapper.to_upstream(whole)
    date = mapper.to_partition_date(key)
    assert date is not None
    assert date.strftime("%Y-%m-%dT%H:%M:%S") == key


def test_a_sliding_window_holds_a_part_several_times() -> None:
    mapper = stored("3 days every day", "day")
    assert mapper.to_downstream("2026-03-05T00:00:00") == [
        "2026-03-03T00:00:00",
        "2026-03-04T00:00:00",
        "2026-03-05T00:00:00",
    ]


def test_it_comes_back_from_the_database_again_and_again() -> None:
    mapper = stored("day in Europe/Paris", "1h")
    assert encode_partition_mapper(mapper) == encode_partition_mapper(rollup_partitions("day in Europe/Paris", of="1h"))


@pytest.mark.parametrize(
    ("window", "of", "text"),
    [
        (
            "month to date every day",
            "day",
            (
                "window 'month to date every day': several of its windows begin at the same instant, which is a "
                "partition's key. Hint: take its period, or its step."
            ),
        ),
        ("1h", "day", "windows of 'day' do not fill one of '1h'. Hint: take a finer one."),
        ("1h", "7m", "windows of '7m' do not fill one of '1h'. Hint: take a finer one."),
    ],
)
def test_windows_that_are_no_partitions_are_refused(window: str, of: str, text: str) -> None:
    with pytest.raises(WindowError) as caught:
        rollup_partitions(window, of=of)
    assert str(caught.value) == text


def test_a_key_at_which_no_window_starts_is_refused() -> None:
    with pytest.raises(WindowError, match=r"no window of the partitions starts at 2026-03-01T00:30:00 UTC"):
        stored("day", "1h").to_upstream("2026-03-01T00:30:00")
