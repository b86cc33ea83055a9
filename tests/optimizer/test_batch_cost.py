"""The batch model: the measurements behind it, rows against simulation, and the laws that every plan relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf, isfinite, nan
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.batch_cost import BatchModel, Workday
from stairwise.constants import Constants
from stairwise.cost import CostModel
from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.measured import KeyCurve
from stairwise.tiers import DAY, Horizon, How, Tier, composite_tier, declared_tier, factor_tier, reads
from stairwise.window import FixedWindow, Window
from stairwise.window_text import parse_window
from tests.strategies import windows

MODEL = BatchModel(
    rows_per_s=100.0,
    keys=1_000,
    values=None,
    row_bytes=56.0,
    is_invertible=False,
    is_holistic=False,
    commit_s=Constants().commit,
)
LONG_AGO = 30 * 365 * DAY


def tier(window: Window | str) -> Tier:
    parsed = parse_window(window) if isinstance(window, str) else window
    return declared_tier("tier", str(parsed), parsed, Horizon())


def backfill(model: BatchModel, seconds: int) -> BatchModel:
    """One run over the history and no schedule."""
    return replace(model, workday=Workday(history_s=seconds, schedule_s=0, chunks=1))


@pytest.mark.parametrize(
    ("keys", "rows_per_s", "window", "measured"),
    [
        (100, 10_000, "10s", 0.64),  # 20,000 rows written of 20 million
        (100, 1_000, "10s", 0.94),  # 200,000
        (100, 100, "10s", 1.52),  # 2 million
        (10_000, 10_000, "10s", 1.95),  # 2 million, more keys
        (1_000_000, 100_000, "10s", 7.0),  # 12.6 million
        (1_000_000, 100_000, "100s", 5.5),  # 2 million, but 7 million partial rows
    ],
)
def test_measured_tiers(keys: int, rows_per_s: int, window: str, measured: float) -> None:
    """The finest tier of 20 million rows into no table. Right to a third on every shape of data."""
    model = replace(MODEL, keys=keys, rows_per_s=rows_per_s, row_bytes=0, commit_s=0)
    seconds = backfill(model, 20_000_000 // rows_per_s).price(tier(window), None, How.RAW)
    assert abs(seconds / measured - 1) < 0.35


def test_measured_roll_ups() -> None:
    """Twenty windows over a tier of 2 million rows: 3.7 s with rows at their keys' partitions, 7 s with shuffles."""
    constants = replace(Constants(), query=0.06)
    model = replace(MODEL, keys=100, rows_per_s=100, commit_s=0, makes_passes=False, constants=constants)
    model = backfill(model, 200_000)
    tiers = [factor_tier(f"{10 * k}s", FixedWindow(10 * k, 10 * k)) for k in range(1, 22)]
    seconds = sum(
        min(
            model.price(child, parent, How.DISJOINT)
            for parent in tiers[:place]
            if reads(child, parent, Sharing.DISJOINT)
        )
        for place, child in enumerate(tiers)
        if place
    )
    assert 3.7 < seconds < 7


@pytest.mark.parametrize(("keys", "events"), [(1, 3), (2, 1), (10, 5), (10, 100), (1_000, 700), (1_000, 20_000)])
def test_rows_per_window_against_simulation(keys: int, events: int) -> None:
    random = Random(7)  # noqa: S311
    rounds = max(20, 20_000 // events)
    seen = sum(len({random.randrange(keys) for _ in range(events)}) for _ in range(rounds)) / rounds
    model = replace(MODEL, keys=keys, rows_per_s=events / 60)
    assert model.rows_per_window(tier("1m")) == pytest.approx(seen, rel=0.03)


def test_rows_of_sparse_and_of_dense_windows() -> None:
    assert replace(MODEL, keys=1, rows_per_s=0.001).rows_per_window(tier("1m")) == pytest.approx(0.06)
    assert replace(MODEL, keys=2, rows_per_s=0.001).rows_per_window(tier("1m")) == pytest.approx(0.06)
    assert replace(MODEL, keys=10**12).rows_per_window(tier("1m")) == pytest.approx(6_000)
    assert replace(MODEL, rows_per_s=0.0).rows_per_window(tier("1m")) == 0
    mixed = composite_tier("mixed", EdgeSet.of((20, 0), (30, 0)))
    assert MODEL.rows_per_window(mixed) == MODEL.rows_per_window(tier("15s"))
    values = value_tier(60)
    assert replace(MODEL, values=1_000_000).rows_per_window(values) == pytest.approx(6_000, rel=1e-3)
    assert MODEL.rows_per_window(values) == MODEL.rows_per_window(tier("1m"))  # values not known: at least one


def test_what_the_protocol_asks() -> None:
    model: CostModel = MODEL
    assert (model.name, model.unit, model.period_s, model.counts_values) == ("batch", "s", 2 * 365 * DAY, False)
    assert replace(MODEL, values=5).counts_values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(MODEL, rows_per_s=-1.0), "batch model: -1.0 rows per second: a number from 0 up is needed."),
        (lambda: replace(MODEL, rows_per_s=inf), "batch model: inf rows per second: a number from 0 up is needed."),
        (lambda: replace(MODEL, keys=0.5), "batch model: 0.5 distinct keys: a number from 1 up is needed."),
        (lambda: replace(MODEL, values=0.5), "batch model: 0.5 distinct values: a number from 1 up is needed."),
        (lambda: replace(MODEL, row_bytes=nan), "batch model: nan bytes per row: a number from 0 up is needed."),
        (lambda: replace(MODEL, commit_s=-0.1), "batch model: -0.1 seconds per commit: a number from 0 up is needed."),
    ],
)
def test_numbers_without_meaning_are_refused(make: Callable[[], BatchModel], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert str(caught.value) == message


def test_a_step_in_detail() -> None:
    """One day of history: 8,640,000 events, 24 hours of 1,000 rows, read again for one day."""
    hourly, daily = tier("1h"), tier("1d")
    raw = backfill(MODEL, DAY).detail(hourly, None, How.RAW)
    assert raw.rows_read == 8_640_000
    assert raw.rows_written == pytest.approx(24_000)
    assert raw.bytes_written == pytest.approx(24_000 * 56)
    assert raw.total == backfill(MODEL, DAY).price(hourly, None, How.RAW)
    merged = backfill(MODEL, DAY).detail(daily, hourly, How.DISJOINT)
    assert merged.rows_read == raw.rows_written
    assert merged.rows_written == pytest.approx(1_000)
    assert merged.total < raw.total


def test_fixed_costs() -> None:
    """A run that writes a tier pays a commit: each chunk of the backfill, and each hour in which a window ends.

    It pays for a query, too, unless the tier is made by a pass.
    """
    idle = replace(MODEL, rows_per_s=0.0, workday=Workday(history_s=DAY, schedule_s=DAY, chunks=3))
    alone = replace(idle, makes_passes=False)
    commit, query = MODEL.commit_s, MODEL.constants.query
    for window, runs in (("5m", 3 + 24), ("1h", 3 + 24), ("6h", 3 + 4), ("1d", 3 + 1), ("1d every 30m", 3 + 24)):
        wanted, slices = tier(window), tier("5m")
        assert idle.price(wanted, slices, How.DISJOINT) == pytest.approx(runs * commit)
        for model in (idle, alone):
            assert model.price(wanted, None, How.RAW) == pytest.approx(runs * (commit + query))
        for how in (How.DISJOINT, How.VALUES):
            assert alone.price(wanted, slices, how) == pytest.approx(runs * (commit + query))
    assert idle.price(tier("6h"), tier("6h"), How.EQUAL_RANGE) == pytest.approx((3 + 4) * (commit + query))
    assert idle.price(tier("6h"), tier("6h"), How.OVERLAPPING) == pytest.approx((3 + 4) * (commit + query))
    together = replace(idle, commit_s=Constants().shared_commit)
    assert together.price(tier("1h"), None, How.RAW) < idle.price(tier("1h"), None, How.RAW)


def test_an_equal_range_costs_less_than_a_merge_but_more_than_that_of_a_pass_over_few_slices() -> None:
    hopping, wider = tier("1h every 10m"), tier("1h every 30m")
    kept, merged = ((wider, hopping, How.EQUAL_RANGE), (wider, tier("10m"), How.DISJOINT))
    alone = replace(MODEL, makes_passes=False)
    assert alone.price(*kept) < alone.price(*merged)
    assert MODEL.price(*merged) < MODEL.price(*kept)
    daily, minutes = tier("1d"), tier("1m")
    assert MODEL.price(daily, tier("1d every 1m"), How.EQUAL_RANGE) < MODEL.price(daily, minutes, How.DISJOINT)
    assert MODEL.detail(*kept).rows_read == MODEL.detail(wider, None, How.RAW).rows_written


@pytest.mark.parametrize(
    ("child", "parent", "windows_read"),
    [
        ("2h", "1h every 20m", 2),
        ("70m every 20m", "50m every 20m", 2),
        ("110m every 20m", "50m every 20m", 3),  # every other one: 40 minutes further each
        ("150m every 20m", "30m every 20m", 7),
    ],
)
def test_overlapping_windows_are_covered_by_as_few_as_it_takes(child: str, parent: str, windows_read: int) -> None:
    reader, finer = tier(child), tier(parent)
    assert reads(reader, finer, Sharing.OVERLAPPING) is How.OVERLAPPING
    read = MODEL.detail(reader, finer, How.OVERLAPPING).rows_read
    assert read == pytest.approx(windows_read * MODEL.rows_per_window(finer) * float(reader.rate) * MODEL.period_s)
    assert reader.range_s is not None
    begins = range(0, reader.range_s, 20 * 60)
    assert windows_read == fewest(reader.range_s, finer.range_s or 0, begins)


def fewest(length: int, part: int, begins: range) -> int:
    """Windows of a greedy cover of [0, length): the furthest that begins within what is covered."""
    covered = count = 0
    while covered < length:
        covered = max(begin + part for begin in begins if begin <= covered and begin + part <= length)
        count += 1
    return count


def test_slices_do_not_overlap() -> None:
    with pytest.raises(PlanError) as caught:
        MODEL.price(tier("1h"), composite_tier("mixed", EdgeSet.of((20, 0), (30, 0))), How.OVERLAPPING)
    assert str(caught.value) == "tier 'tier' from 'mixed': slices do not overlap."


@pytest.mark.parametrize("makes_passes", [False, True])
@pytest.mark.parametrize("is_invertible", [False, True])
def test_merging_slices_into_hopping_windows_does_not_grow_with_overlap(
    is_invertible: bool,  # noqa: FBT001
    makes_passes: bool,  # noqa: FBT001
) -> None:
    """Over the history: raw rows are folded once for each window, slices are merged three times at most."""
    model = backfill(replace(MODEL, is_invertible=is_invertible, makes_passes=makes_passes), 365 * DAY)
    wide, narrow = (FixedWindow(overlap * 600, 600) for overlap in (1_440, 12))
    from_slices = [model.price(tier(window), tier("10m"), How.DISJOINT) for window in (wide, narrow)]
    from_raw = [model.price(tier(window), None, How.RAW) for window in (wide, narrow)]
    assert from_slices[0] < 1.1 * from_slices[1]
    assert from_raw[0] > 10 * from_raw[1]
    assert from_slices[0] < from_raw[0] / 100


def test_a_running_total_is_cheaper_than_what_goes_back_and_forth_where_no_pass_merges() -> None:
    def price(*, is_invertible: bool, makes_passes: bool) -> float:
        model = replace(MODEL, is_invertible=is_invertible, makes_passes=makes_passes)
        return backfill(model, 365 * DAY).price(tier("1d every 10m"), tier("10m"), How.DISJOINT)

    assert price(is_invertible=True, makes_passes=False) < price(is_invertible=False, makes_passes=False)
    assert price(is_invertible=True, makes_passes=True) == price(is_invertible=False, makes_passes=True)


def test_a_pass_merges_a_row_once_and_once_more_for_each_overlapping_one() -> None:
    model = backfill(replace(MODEL, constants=Constants(write_byte=0.0, merge_byte=0.0)), 365 * DAY)
    apart, overlapping = (model.detail(tier(each), tier("10m"), How.DISJOINT) for each in ("2h", "2h every 1h"))
    more = overlapping.total - apart.total
    assert more == pytest.approx((overlapping.rows_written or 0) * model.constants.merge_row)


def test_a_growing_window_is_made_by_no_pass() -> None:
    growing, slices = tier("day to date every 1h"), tier("1h")
    alone = replace(MODEL, makes_passes=False)
    assert MODEL.price(growing, slices, How.DISJOINT) == alone.price(growing, slices, How.DISJOINT)


def test_a_growing_window_merges_each_slice_once() -> None:
    model = backfill(replace(MODEL, makes_passes=False), 365 * DAY)
    growing, hopping = tier("day to date every 1h"), tier(FixedWindow(45_000, 3_600, 0))
    assert model.price(growing, tier("1h"), How.DISJOINT) < model.price(hopping, tier("30m"), How.DISJOINT)
    assert (
        model.detail(growing, tier("1h"), How.DISJOINT).rows_read
        == model.detail(tier("1h"), None, How.RAW).rows_written
    )


def test_many_keys_mean_do_not_share() -> None:
    """Without passes, a tier with as many rows as events is no help; one that keeps a tenth of them is."""
    day, hour = tier("1d"), tier("1h")

    def gain(keys: float) -> float:
        model = backfill(replace(MODEL, keys=keys, makes_passes=False), 365 * DAY)
        return model.price(day, None, How.RAW) - model.price(day, hour, How.DISJOINT)

    assert gain(1e3) > 0
    assert gain(1e9) < 0
    assert gain(1e12) < 0
    keeps_a_tenth = backfill(replace(MODEL, keys=36_000, makes_passes=False), 365 * DAY)
    assert keeps_a_tenth.rows_per_window(hour) < 0.11 * 360_000
    assert keeps_a_tenth.price(day, hour, How.DISJOINT) < keeps_a_tenth.price(day, None, How.RAW)


def test_a_pass_hashes_no_rows() -> None:
    """So it pays even where a slice has an event a key, if several windows read it."""
    model = backfill(replace(MODEL, keys=10_000, rows_per_s=1_000, row_bytes=64, commit_s=0), 5_000)
    helper, readers = tier("5s"), [tier(f"{seconds}s") for seconds in (10, 15, 25, 30, 40, 70)]
    scans = sum(model.price(one, None, How.RAW) for one in readers)
    shared = model.price(helper, None, How.RAW) + sum(model.price(one, helper, How.DISJOINT) for one in readers)
    assert shared < 0.9 * scans
    assert sum(replace(model, makes_passes=False).price(one, helper, How.DISJOINT) for one in readers) > scans


def test_a_tier_that_nobody_asked_for_must_earn_its_commits() -> None:
    """With few events, three hourly windows cost no more from raw than the commits of a helper."""
    readers, helper = [tier(f"{hours}h") for hours in (20, 30, 40)], tier("10h")

    def is_worth_it(rows_per_s: float) -> bool:
        model = replace(MODEL, rows_per_s=rows_per_s)
        shared = model.price(helper, None, How.RAW) + sum(model.price(one, helper, How.DISJOINT) for one in readers)
        return shared < sum(model.price(one, None, How.RAW) for one in readers)

    assert not is_worth_it(10)
    assert is_worth_it(10_000)


def test_values_travel_all_and_few_values_pay() -> None:
    """A holistic aggregate moves each event; a tier of values moves each value of a key once per slice."""
    exact = backfill(replace(MODEL, is_holistic=True, values=4, keys=10), 365 * DAY)
    many = replace(exact, values=1e9)
    day = tier("1d")
    values = value_tier(3_600)
    assert exact.price(day, values, How.VALUES) < exact.price(day, None, How.RAW) / 100
    assert many.price(day, values, How.VALUES) > many.price(day, None, How.RAW)
    assert exact.price(day, None, How.RAW) > replace(exact, is_holistic=False).price(day, None, How.RAW)
    assert exact.detail(day, values, How.VALUES).rows_read == pytest.approx(24 * 40 * 365)


def curves() -> st.SearchStrategy[KeyCurve]:
    """Any counts, as sketches give them."""
    counts = st.floats(0, 1e15)
    return st.lists(st.tuples(counts, counts), max_size=5).map(KeyCurve.of)


@st.composite
def models(draw: st.DrawFn) -> BatchModel:
    spans = st.sampled_from((0, DAY, 365 * DAY))
    workday = Workday(
        history_s=draw(spans),
        schedule_s=draw(spans),
        interval_s=draw(st.sampled_from((60, 3_600, DAY))),
        chunks=draw(st.integers(1, 100)),
    )
    return BatchModel(
        rows_per_s=draw(st.sampled_from((1e-6, 1.0, 1e4, 1e15 / DAY)) | st.floats(1e-6, 1e12)),
        keys=draw(st.sampled_from((1.0, 1 + 1e-15, 1e3, 1e12)) | st.floats(1, 1e12)),
        values=draw(st.none() | st.floats(1, 1e12)),
        row_bytes=draw(st.floats(0, 1e5)),
        is_invertible=draw(st.booleans()),
        is_holistic=draw(st.booleans()),
        makes_passes=draw(st.booleans()),
        commit_s=0.1,
        curve=draw(st.none() | curves()),
        workday=workday,
    )


def composite(moduli: Iterable[int]) -> Tier:
    return composite_tier("mixed", EdgeSet(tuple((modulus, 0) for modulus in moduli)))


def value_tier(size: int) -> Tier:
    return factor_tier("values", FixedWindow(size, size), keeps_values=True)


def tiers() -> st.SearchStrategy[Tier]:
    extremes = st.sampled_from((FixedWindow(1, 1), FixedWindow(LONG_AGO, LONG_AGO), FixedWindow(LONG_AGO, 1)))
    composites = st.sets(st.sampled_from((1, 20, 30, 3_600, 7 * DAY)), min_size=1).map(composite)
    return st.one_of(windows().map(tier), extremes.map(tier), composites, st.integers(1, DAY).map(value_tier))


@given(models(), tiers(), tiers(), st.sampled_from(Sharing))
def test_prices_are_finite_and_no_scan_is_below_the_least(
    model: BatchModel, child: Tier, parent: Tier, sharing: Sharing
) -> None:
    raw = model.detail(child, None, How.RAW)
    assert isfinite(raw.total)
    assert raw.total >= model.least_scan() > 0
    how = reads(child, parent, sharing)
    for step in (raw, *([model.detail(child, parent, how)] if how else [])):
        assert step.rows_read is not None
        assert step.rows_written is not None
        assert step.bytes_written is not None
        assert all(
            isfinite(number) and number >= 0
            for number in (step.total, step.rows_read, step.rows_written, step.bytes_written)
        )
    assert 0 <= model.rows_per_window(child) <= model.rows_per_s * float(child.range_s or 1 / child.rate) * (1 + 1e-12)


@given(
    models(), tiers(), st.lists(st.sampled_from((1, 2, 3, 5, 10, 20, 30, 60, 600, 3_600, DAY)), min_size=2, max_size=5)
)
def test_a_finer_parent_is_never_cheaper(model: BatchModel, child: Tier, lengths: list[int]) -> None:
    parents = [factor_tier("", FixedWindow(length, length)) for length in sorted(set(lengths))]
    parents += [composite_tier("", EdgeSet(tuple((length, 0) for length in lengths)))]
    able = [one for one in parents if reads(child, one, Sharing.DISJOINT) is How.DISJOINT]
    assume(len(able) > 1)
    for finer in able:
        for coarser in able:
            if coarser.needs <= finer.needs:
                least, most = (model.price(child, one, How.DISJOINT) for one in (coarser, finer))
                assert least <= most * (1 + 1e-9)


@given(models(), tiers(), st.integers(2, 100))
def test_more_events_never_cost_less(model: BatchModel, child: Tier, times: int) -> None:
    busier = replace(model, rows_per_s=model.rows_per_s * times)
    assert busier.price(child, None, How.RAW) >= model.price(child, None, How.RAW) * (1 - 1e-9)


def test_no_constant_is_free() -> None:
    """Each is used: without it, some step costs less."""
    model = replace(MODEL, values=10)
    values = value_tier(3_600)
    steps = [(tier("1d"), None, How.RAW), (tier("1d"), tier("1h"), How.DISJOINT), (tier("1d"), values, How.VALUES)]
    spent = Constants()
    for without in (
        replace(spent, scan_row=0),
        replace(spent, fold_row=0),
        replace(spent, build_row=0),
        replace(spent, merge_row=0),
        replace(spent, merge_byte=0),
        replace(spent, move_row=0),
        replace(spent, write_byte=0),
        replace(spent, query=0),
    ):
        free = replace(model, constants=without)
        assert any(free.price(*step) < model.price(*step) for step in steps)
    finer = replace(model, constants=replace(spent, partition_rows=1_000))
    assert finer.price(*steps[0]) > model.price(*steps[0])


@given(windows(), windows(), st.sampled_from((Sharing.DISJOINT, Sharing.OVERLAPPING)))
def test_history_and_schedule_cost_together_what_both_cost(child: Window, parent: Window, sharing: Sharing) -> None:
    """So what is still to be paid from here adds up to the price of a plan, where nothing has been filled yet."""
    day = replace(MODEL.workday, chunks=1)
    at_once, reader, read = replace(MODEL, workday=day), tier(child), tier(parent)
    history = at_once.spread(history_s=day.history_s, schedule_s=0)
    schedule = at_once.spread(history_s=0, schedule_s=day.schedule_s)
    ways: list[tuple[Tier | None, How]] = [(None, How.RAW)]
    if (how := reads(reader, read, sharing)) is not None:
        ways.append((read, how))
    for one, way in ways:
        parts = [model.detail(reader, one, way) for model in (history, schedule)]
        whole = at_once.detail(reader, one, way)
        assert sum(part.total for part in parts) == pytest.approx(whole.total)
        assert sum(part.rows_written or 0 for part in parts) == pytest.approx(whole.rows_written)
        assert sum(part.rows_read or 0 for part in parts) == pytest.approx(whole.rows_read)


def test_history_that_tables_hold_is_filled_by_one_run() -> None:
    day = MODEL.workday
    assert MODEL.interval_s == day.interval_s == 3_600
    assert day.chunks > 1
    assert [MODEL.spread(history_s=each, schedule_s=0).workday.chunks for each in (1, day.history_s * 3)] == [1, 1]
    assert MODEL.spread(history_s=0, schedule_s=5).spread(history_s=0, schedule_s=5).workday.chunks == 0
