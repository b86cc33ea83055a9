"""Tiers that nobody asked for: complete where it matters, and never in the way of declared ones."""

from __future__ import annotations

from itertools import combinations
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise import candidates, hopping
from stairwise.aggregate import Sharing
from stairwise.batch_cost import BatchModel
from stairwise.cost import PaperModel
from stairwise.edges import EdgeSet
from stairwise.tiers import Horizon, Kind, Tier, declared_tier
from stairwise.window import FixedWindow
from stairwise.window_text import parse_window


def tiers(*texts: str) -> tuple[Tier, ...]:
    return tuple(declared_tier(text, text, parse_window(text), Horizon()) for text in texts)


def factors(declared: tuple[Tier, ...], sharing: Sharing) -> candidates.Candidates:
    return candidates.factor_candidates(declared, sharing, PaperModel.of(declared, eta=1))


def batch(values: float | None = None) -> BatchModel:
    return BatchModel(
        rows_per_s=500.0, keys=200, values=values, row_bytes=60, is_invertible=False, is_holistic=False, commit_s=0.5
    )


def names(found: candidates.Candidates) -> list[str]:
    return [tier.name for tier in found.tiers]


@given(st.sets(st.integers(1, 400), min_size=1, max_size=7))
def test_closure_is_the_gcd_of_every_subset(lengths: set[int]) -> None:
    expected = {gcd(*chosen) for size in range(1, len(lengths) + 1) for chosen in combinations(lengths, size)}
    found, is_whole = candidates.closure(tiers(*(f"{n}s" for n in lengths)))
    assert {modulus for modulus, _ in found} == expected
    assert is_whole


def test_closure_with_offsets_holds_the_coarsest_common_class() -> None:
    found, _ = candidates.closure(tiers("1h offset 10m", "1h offset 30m", "1h"))
    assert found == ((3_600, 1_800), (3_600, 600), (3_600, 0), (1_800, 0), (1_200, 600), (600, 0))


@pytest.mark.parametrize("first", ["30s", "30s offset 1s"])
def test_a_closure_that_grows_too_long_is_cut_short(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    declared = tiers(first, "42s", "70s", "105s")
    thorough, _ = candidates.closure(declared)
    monkeypatch.setattr(candidates, "CLOSURE_LIMIT", -15)
    found, is_whole = candidates.closure(declared)
    assert not is_whole
    assert set(found) < set(thorough)


@pytest.mark.parametrize(
    ("texts", "sharing", "expected"),
    [
        (("20s", "30s", "40s"), Sharing.DISJOINT, ["10s"]),
        (("10s", "20s"), Sharing.DISJOINT, []),
        (("day in Europe/Paris", "day in Asia/Kathmandu"), Sharing.DISJOINT, ["1h", "15m"]),
        (("1h every 20m", "1h every 30m"), Sharing.DISJOINT, ["30m", "20m", "1h_every_10m", "10m"]),
        (("1h every 20m", "1h every 30m"), Sharing.HOLISTIC, ["1h_every_10m"]),
        (("1h", "2h"), Sharing.HOLISTIC, []),
        (("20m every 10m", "40m every 10m", "50m every 10m"), Sharing.OVERLAPPING, ["30m_every_10m", "10m"]),
        (("28m every 14m", "42m every 14m"), Sharing.OVERLAPPING, ["14m"]),
        (
            ("21m every 7m", "35m every 14m"),
            Sharing.OVERLAPPING,
            ["21m_every_14m", "35m_every_7m", "28m_every_7m", "14m_every_7m", "7m"],
        ),
    ],
)
def test_factor_candidates(texts: tuple[str, ...], sharing: Sharing, expected: list[str]) -> None:
    found = factors(tiers(*texts), sharing)
    assert names(found) == expected
    assert found.is_whole
    assert all(tier.kind is Kind.FACTOR for tier in found.tiers)


def test_where_overlap_is_allowed_all_helpers_are_looked_at_if_they_are_few() -> None:
    found = factors(tiers("1080s every 360s", "240s every 180s", "3060s every 600s"), Sharing.OVERLAPPING)
    assert found.is_whole
    assert "11m_every_10m" in names(found)


def test_where_overlap_is_allowed_many_windows_get_helpers_at_the_ends_of_ranges() -> None:
    found = factors(tiers("1h every 1s", "24h every 1m", "7d every 1m"), Sharing.OVERLAPPING)
    assert not found.is_whole
    assert names(found) == ["1h_every_1m", "1m", "7d_every_1s", "1s"]


def test_where_overlap_is_allowed_few_helpers_for_each_window_may_be_too_many_together() -> None:
    found = factors(tiers("3h every 6m", "179m every 6m", "181m every 4m", "178m every 12m"), Sharing.OVERLAPPING)
    assert not found.is_whole


def test_phases_that_grow_too_many_are_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = tiers("1h every 1s", "24h every 1m", "7d every 1m")
    thorough = factors(declared, Sharing.OVERLAPPING)
    monkeypatch.setattr(hopping, "PHASES_PER_WINDOW", -22)
    found = factors(declared, Sharing.OVERLAPPING)
    assert set(names(found)) <= set(names(thorough))
    assert not found.is_whole


def test_value_tiers_stand_beside_declared_windows() -> None:
    found = candidates.factor_candidates(tiers("5m", "1h every 15m"), Sharing.HOLISTIC, batch(values=10.0))
    assert [tier.name for tier in found.tiers] == ["15m_values", "5m_values"]
    assert all(tier.keeps_values for tier in found.tiers)
    assert (found.is_whole, found.unseen) == (True, None)


@pytest.mark.parametrize(
    ("texts", "sharing", "sees_all"),
    [
        (("1h", "day in Europe/Paris"), Sharing.DISJOINT, True),
        (("1h offset 5m", "2h offset 5m", "90m offset 5m"), Sharing.DISJOINT, True),
        (("1h", "day in Asia/Kolkata"), Sharing.DISJOINT, False),
        (("1h", "day in Asia/Kolkata"), Sharing.HOLISTIC, False),
    ],
)
def test_what_hopping_helpers_that_are_not_candidates_cost_at_least(
    texts: tuple[str, ...], sharing: Sharing, *, sees_all: bool
) -> None:
    found = candidates.factor_candidates(tiers(*texts), sharing, batch(values=10.0))
    assert found.is_whole
    assert (found.unseen is None) == sees_all
    assert sees_all or (found.unseen or 0) > 3 * 0.5 * 8_760  # a run each hour, for each of the three


def test_hopping_helpers_of_any_range_pay_nobody_who_pays_for_each_of_their_windows() -> None:
    assert factors(tiers("1h", "day in Asia/Kolkata"), Sharing.DISJOINT).unseen is None
    assert factors(tiers("1h", "day in Asia/Kolkata", "2h every 50m"), Sharing.DISJOINT).unseen is not None


def test_helpers_of_one_range_may_pass_on_their_results_to_a_declared_one_and_a_helper() -> None:
    found = candidates.factor_candidates(tiers("60m every 25m", "3h", "2h"), Sharing.DISJOINT, batch())
    assert names(found) == ["1h", "1h_every_5m", "5m"]


def test_a_composite_tier_is_named_by_its_edges() -> None:
    one, other = (candidates.composite(EdgeSet.of(*classes)) for classes in (((20, 0), (30, 0)), ((30, 0), (20, 20))))
    assert one == other
    assert one.name == "cut_1d2e1ee9"
    assert candidates.composite(EdgeSet.of((20, 0), (30, 1))).name != one.name


def test_the_sparsest_windows_to_pick_are_found_without_walking_the_range() -> None:
    century = FixedWindow(100 * 365 * 86_400, 1)
    assert hopping.sparser([century], [(420, 7), (421, 0)]) == {
        FixedWindow(century.range, 420, 7),
        FixedWindow(century.range, 421),
    }
    assert hopping.sparser([FixedWindow(60, 20)], [(90, 0)]) == set()
