"""Hypothesis strategies for what the planner is asked: rollups over every kind of window, and how to plan them."""

from __future__ import annotations

from hypothesis import strategies as st

from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.rollup import DeclaredWindow, Estimates, Rollup, Source
from stairwise.rules import meaning
from stairwise.window import FixedWindow, Window
from tests.strategies import windows

SOURCE = Source(table="lake.trips", time="pickup_at")
OVERLAPPING = ("min(fare)", "max(fare)", "approx_distinct(rider)")
MERGEABLE = ("count()", "sum(fare)", "avg(fare)", "var_pop(fare)", *OVERLAPPING)
HOLISTIC = ("median(fare)", "count_distinct(rider)")
STARTS = (None, "1900-01-01", "1970-01-01", "2024-02-29T12:00Z", "2300-01-01")
_SECONDS = (10, 12, 15, 20, 30, 45, 60, 90, 120, 300, 420)


def rollup(given: list[Window], aggregates: tuple[str, ...] = ("count()",), start: str | None = None) -> Rollup:
    """The rollup of these windows, whatever their texts have in common."""
    return Rollup(
        name="trips",
        source=SOURCE,
        keys=("zone_id",),
        aggregates={f"column_{number}": text for number, text in enumerate(aggregates)},
        windows=[
            DeclaredWindow(window=window, text=str(window), name=f"w{number}") for number, window in enumerate(given)
        ],
        target="lake/rollups/trips",
        start=start,
        estimates=Estimates(rows_per_day=1_000_000, distinct_keys=200, distinct_values=50),
    )


def related_windows() -> st.SearchStrategy[FixedWindow]:
    """Fixed windows that have much in common, with and without overlap."""

    def of(slide: int) -> st.SearchStrategy[FixedWindow]:
        longer = st.sampled_from(_SECONDS).map(lambda seconds: seconds + slide)
        return st.builds(FixedWindow, st.just(slide) | longer, st.just(slide), st.just(0) | st.integers(0, slide - 1))

    return st.sampled_from(_SECONDS).flatmap(of)


def rollups(most: int = 5) -> st.SearchStrategy[Rollup]:
    given = st.lists(related_windows(), min_size=1, max_size=most, unique=True) | st.lists(
        windows(), min_size=1, max_size=most, unique_by=meaning
    )
    return st.builds(rollup, given, aggregates(), st.sampled_from(STARTS))


def aggregates() -> st.SearchStrategy[tuple[str, ...]]:
    overlapping = st.lists(st.sampled_from(OVERLAPPING), min_size=1, max_size=3, unique=True)
    mergeable = st.lists(st.sampled_from(MERGEABLE), min_size=1, max_size=3, unique=True)
    any_kind = st.lists(st.sampled_from(MERGEABLE + HOLISTIC), min_size=1, max_size=3, unique=True)
    return (overlapping | mergeable | any_kind).map(tuple)


def options(tiers: TiersAllowed | None = None, algorithm: Algorithm | None = None) -> st.SearchStrategy[Options]:
    return st.builds(
        Options,
        algorithm=st.sampled_from(Algorithm) if algorithm is None else st.just(algorithm),
        tiers=st.sampled_from(TiersAllowed) if tiers is None else st.just(tiers),
        pricing=st.sampled_from(Pricing),
        eta=st.integers(1, 100),
        steps=st.integers(0, 2_000),
    )
