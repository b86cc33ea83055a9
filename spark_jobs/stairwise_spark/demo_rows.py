"""The trips of the demo: a year of a town's taxis, drawn from a seed, with what real ones have.

Hours follow the clocks of Paris, so one night in March has an hour less, and one in October an hour more. Nights are
quiet, two days have no trip at all, and one zone has nearly half of the trips, another one in twenty.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stairwise.instant import parse_instant
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, edges_in
from stairwise.zones import to_local

ZONE = "Europe/Paris"
YEAR = Interval(parse_instant("2024-12-31T23:00Z"), parse_instant("2025-12-31T23:00Z"))
"""A year of Paris, from midnight to midnight."""
GAP = Interval(parse_instant("2025-08-13T22:00Z"), parse_instant("2025-08-15T22:00Z"))
"""Two days without a trip."""
LATE = Interval(parse_instant("2025-02-28T23:00Z"), parse_instant("2025-04-29T22:00Z"))
"""Sixty days, of which one has 23 hours: when the trips happened that come late."""
LATE_SHARE = 1_000
"""One trip in so many comes late."""
ZONES = 6
_HOUR, _DAY, _THURSDAY = 3_600, 86_400, 3  # 1970 began on one
_SKEW = 1.2
_WEEKEND = 5
# How many trips begin in each hour of a day, beside each other.
_BY_HOUR = np.array([3, 2, 1, 0.4, 0.4, 1, 3, 7, 9, 8, 6, 6, 7, 7, 6, 6, 7, 9, 11, 10, 8, 7, 6, 4])
_BY_HOUR_AT_WEEKENDS = np.array([9, 8, 6, 4, 2, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 8, 9, 9, 8, 8, 9, 9])


def trips(span: Interval, rows: int, seed: int) -> pa.Table:
    """So many trips that begin in some full hours, in the order of time; the same ones for the same seed."""
    random = np.random.default_rng(seed)
    hours = np.arange(span.start, span.end, _HOUR)
    busy = busyness(hours)
    begun = np.repeat(hours, random.multinomial(rows, busy / busy.sum())) + random.integers(0, _HOUR, rows)
    begun.sort()
    weights = np.arange(1, ZONES + 1) ** -_SKEW
    zones = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], random.random(rows), side="right") + 1
    return pa.table(
        {
            "pickup_at": pa.array(begun * 1_000_000, pa.timestamp("us", tz="UTC")),
            "zone_id": pa.array(zones.astype(np.int32)),
            "fare": pa.array(np.round(2.6 + random.gamma(3, 5, rows), 2)),
        }
    )


def busyness(hours: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many trips begin in each of some hours, beside the others."""
    local = np.array([to_local(ZONE, hour) for hour in hours.tolist()])
    of_day = local // _HOUR % 24
    is_weekend = (local // _DAY + _THURSDAY) % 7 >= _WEEKEND
    usual = np.where(is_weekend, _BY_HOUR_AT_WEEKENDS[of_day], _BY_HOUR[of_day])
    return np.where((hours >= GAP.start) & (hours < GAP.end), 0.0, usual)


def by_month(table: pa.Table) -> Iterator[pa.Table]:
    """The trips of each month of Paris that has some, from a table in the order of time."""
    begun = seconds(table)
    first, last = int(begun[0]), int(begun[-1]) + 1
    edges = edges_in(parse_window(f"month in {ZONE}"), first + 1, last)
    for start, end in pairwise([0, *np.searchsorted(begun, list(edges)).tolist(), len(begun)]):
        if start < end:
            yield table.slice(start, end - start)


def seconds(table: pa.Table) -> NDArray[np.int64]:
    """When its trips began."""
    return table["pickup_at"].cast(pa.int64()).to_numpy() // 1_000_000
