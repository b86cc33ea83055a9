"""The paper's prices: its examples, composite tiers, and exactness."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.cost import Cost, CostModel, PaperModel
from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.factor_windows import instances, is_covered, multiplier
from stairwise.tiers import Horizon, How, Tier, composite_tier, declared_tier, factor_tier, reads
from stairwise.window import FixedWindow, Window
from stairwise.window_text import parse_window


def tier(window: Window | str) -> Tier:
    parsed = parse_window(window) if isinstance(window, str) else window
    return declared_tier("tier", str(parsed), parsed, Horizon())


def tumbling(*lengths: int) -> list[Tier]:
    return [factor_tier(f"{length}s", FixedWindow(length, length)) for length in lengths]


def test_examples_6_and_7() -> None:
    ten, twenty, thirty, forty = tumbling(10, 20, 30, 40)
    model: CostModel = PaperModel.of([twenty, thirty, forty], eta=1)
    assert (model.name, model.unit, model.period_s, model.counts_values) == ("paper", "reads", 120, False)
    assert [model.price(one, None, How.RAW) for one in (twenty, thirty, forty)] == [120] * 3
    assert model.price(forty, twenty, How.DISJOINT) == 6
    shared = [
        (ten, None, How.RAW),
        *((one, ten, How.DISJOINT) for one in (twenty, thirty)),
        (forty, twenty, How.DISJOINT),
    ]
    assert [model.price(*step) for step in shared] == [120, 12, 12, 6]
    assert model.detail(twenty, ten, How.DISJOINT) == Cost(total=12)


def test_a_composite_tier_undercuts_the_paper() -> None:
    """Twenty, thirty and forty from slices at 0, 20, 30 and 40 of each minute: 142 instead of 150."""
    twenty, thirty, forty = tumbling(20, 30, 40)
    model = PaperModel.of([twenty, thirty, forty], eta=1)
    mixed = composite_tier("mixed", EdgeSet.of((20, 0), (30, 0)))
    prices = [
        model.price(mixed, None, How.RAW),
        model.price(twenty, mixed, How.DISJOINT),
        model.price(thirty, mixed, How.DISJOINT),
        model.price(forty, twenty, How.DISJOINT),
    ]
    assert prices == [120, 8, 8, 6]
    assert sum(prices) == 142


def test_mutually_prime_ranges_share_one_tier() -> None:
    """The paper's hopeless case: about half of the price without sharing."""
    windows = tumbling(15, 17, 19)
    model = PaperModel.of(windows, eta=1)
    mixed = composite_tier("mixed", EdgeSet.of((15, 0), (17, 0), (19, 0)))
    prices = [model.price(mixed, None, How.RAW), *(model.price(one, mixed, How.DISJOINT) for one in windows)]
    assert prices == [4_845, 813, 813, 813]
    assert sum(prices) < 0.51 * sum(model.price(one, None, How.RAW) for one in windows)


@pytest.mark.parametrize(
    ("child", "parent", "how", "price"),
    [
        ("10s every 2s", None, How.RAW, 7 * 16 * 10),
        ("10s every 2s", "2s", How.DISJOINT, 16 * 5),
        ("10s every 2s", "2s", How.VALUES, 16 * 5),
        ("10s every 2s", "8s every 2s", How.OVERLAPPING, 16 * 2),
        ("10s every 4s", "10s every 2s", How.EQUAL_RANGE, 8),
        ("10s every 7s", None, How.RAW, 7 * 5 * 10),  # complete instances only
        ("10s every 7s", "1s", How.DISJOINT, 5 * 10),
        ("30s to date every 10s", None, How.RAW, 7 * 3 * 20),
        ("30s to date every 10s", "10s", How.DISJOINT, 3 * 2),
    ],
)
def test_the_price_of_a_step(child: str, parent: str | None, how: How, price: int) -> None:
    model = PaperModel(period_s=40, eta=7)
    assert model.price(tier(child), tier(parent) if parent else None, how) == price


def test_composites_from_composites_stay_exact() -> None:
    model = PaperModel(period_s=100, eta=1)
    coarse, fine = (composite_tier("c", EdgeSet.of((6, 0), (9, 0))), composite_tier("f", EdgeSet.of((2, 0), (3, 0))))
    assert model.price(coarse, fine, How.DISJOINT) == Fraction(200, 3)
    whole = model.price(factor_tier("", FixedWindow(20, 20)), factor_tier("", FixedWindow(5, 5)), How.DISJOINT)
    assert (whole, type(whole)) == (20, int)


def test_what_has_no_price_is_refused() -> None:
    mixed = composite_tier("mixed", EdgeSet.of((20, 0), (30, 0)))
    for step in ((tier("40s"), mixed, How.OVERLAPPING), (mixed, tier("10s"), How.EQUAL_RANGE)):
        with pytest.raises(PlanError) as caught:
            PaperModel(period_s=120, eta=1).price(*step)
        assert str(caught.value) == (
            "tier 'mixed': its slices differ in length, so they are neither instances nor overlap."
        )
    with pytest.raises(PlanError) as caught:
        PaperModel(period_s=0, eta=1)
    assert str(caught.value) == "paper model: 1 events per second over 0 s: both are at least 1."
    with pytest.raises(PlanError) as caught:
        PaperModel(period_s=1, eta=0)
    assert str(caught.value) == "paper model: 0 events per second over 1 s: both are at least 1."


def test_a_period_without_windows_is_a_second() -> None:
    assert PaperModel.of([], eta=3).least_scan() == 3
    assert PaperModel.of([composite_tier("mixed", EdgeSet.of((20, 0)))], eta=3).period_s == 1


def test_other_spans_cost_their_share_of_the_period() -> None:
    model: CostModel = PaperModel.of([tier("20s"), tier("40s")], eta=1)
    assert model.interval_s == model.period_s == 40
    spread = model.spread(history_s=100, schedule_s=20)
    pair = [tier("20s"), tier("40s")]
    assert spread.prices(pair, [(0, 1, How.RAW), (1, 2, How.DISJOINT)]) == [120, 6]
    assert spread.detail(pair[1], pair[0], How.DISJOINT) == Cost(total=6)


def related() -> st.SearchStrategy[FixedWindow]:
    def window(step: int, slides: int, extra: int) -> FixedWindow:
        return FixedWindow((slides + extra) * step, slides * step)

    return st.builds(window, st.sampled_from((1, 2, 3, 6)), st.integers(1, 4), st.integers(0, 6))


@given(st.lists(related(), min_size=2, max_size=5), st.integers(1, 100))
def test_the_model_is_the_papers(windows: list[FixedWindow], eta: int) -> None:
    tiers = [tier(window) for window in windows]
    model = PaperModel.of(tiers, eta=eta)
    for child, window in zip(tiers, windows, strict=True):
        count = instances(window, model.period_s)
        assert model.price(child, None, How.RAW) == count * window.range * eta >= model.least_scan()
        for parent, finer in zip(tiers, windows, strict=True):
            how = reads(child, parent, Sharing.OVERLAPPING)
            if how in {How.DISJOINT, How.OVERLAPPING} and is_covered(window, finer):
                assert how is not None
                assert model.price(child, parent, how) == count * multiplier(window, finer)
            elif how is How.EQUAL_RANGE:
                assert model.price(child, parent, how) == count


@given(st.lists(related(), min_size=1, max_size=4), related(), st.sets(st.sampled_from((4, 6, 9, 10, 15)), min_size=1))
def test_nobody_reads_the_events_for_less_than_one_scan(
    declared: list[FixedWindow], other: FixedWindow, moduli: set[int]
) -> None:
    model = PaperModel.of([tier(window) for window in declared], eta=3)
    mixed = composite_tier("mixed", EdgeSet.of(*((modulus, 0) for modulus in moduli)))
    calendars = [
        tier(text) for text in ("day in Europe/Paris", "month", "28 days every day", "month to date every day")
    ]
    for one in (tier(other), mixed, *calendars):
        assert model.price(one, None, How.RAW) >= model.least_scan()
