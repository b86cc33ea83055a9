"""Coverage over time, from what runs have left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.windowing import Interval
from stairwise_airflow.reports import Covered, Report, TierDone
from stairwise_airflow.timeline import EARLIER, Cell, Coverage, State, Written, cells, coverages, stale, union

pytestmark = pytest.mark.airflow

LENGTH = 12


def report(*spans: tuple[int, int], tier: str = "1h") -> Report:
    done = TierDone(
        name=tier, reads=None, windows=1, rows=1, bytes=1, version=1, seconds=1, predicted_rows=1,
        covered=tuple(Interval(*span) for span in spans),
    )  # fmt: skip
    return Report(
        rollup="trips", run_id="r", span=Interval(0, 1), tiers=(done,), rows_read=1, bytes_read=1, late_rows=0,
        seconds=1, startup_seconds=1,
    )  # fmt: skip


def coverage(reports: list[Report], tier: str) -> Coverage:
    return coverages(reports, [tier])[tier]


def test_what_was_written_last_counts_and_what_was_written_again_is_known() -> None:
    found = coverage([report((0, 10)), report((20, 30)), report((10, 12)), report((5, 25)), report((0, 0))], "1h")
    assert found.last == (Written(0, 5, 0), Written(5, 25, 3), Written(25, 30, 1))
    assert found.covered == (Interval(0, 30),)
    assert found.rewritten == (Interval(5, 12), Interval(20, 25))
    assert found.gaps == ()
    assert [found.run_at(*span) for span in ((0, 5), (4, 6), (26, 30), (29, 31))] == [0, 3, 1, None]


def test_what_is_known_to_be_there_was_written_before_where_no_report_tells_of_it() -> None:
    held = (("1h", (Interval(0, 40), Interval(50, 60))), ("other", (Interval(0, 9),)))
    found = coverages([report((10, 20)), report((35, 45))], ["1h"], Covered(run_id="", tiers=held))["1h"]
    assert found.last == (
        Written(0, 10, EARLIER),
        Written(10, 20, 0),
        Written(20, 35, EARLIER),
        Written(35, 45, 1),
        Written(50, 60, EARLIER),
    )
    assert found.covered == (Interval(0, 45), Interval(50, 60))
    assert found.rewritten == ()
    assert [found.run_at(*span) for span in ((0, 5), (9, 12), (46, 48))] == [EARLIER, 0, None]


def test_a_stretch_shows_the_worst_that_is_true_of_a_part() -> None:
    child = coverage([report((10, 20)), report((30, 60))], "1h")
    parent = coverage([report(), report(), report((40, 45))], "1h")
    old = stale(child, parent)
    assert old == (Interval(40, 45),)
    assert cells(child, old, Interval(0, 80), 8) == [
        Cell(Interval(0, 10), State.NOTHING, is_rewritten=False),
        Cell(Interval(10, 20), State.WRITTEN, is_rewritten=False),
        Cell(Interval(20, 30), State.GAP, is_rewritten=False),
        Cell(Interval(30, 40), State.WRITTEN, is_rewritten=False),
        Cell(Interval(40, 50), State.STALE, is_rewritten=False),
        Cell(Interval(50, 60), State.WRITTEN, is_rewritten=False),
        Cell(Interval(60, 80), State.OPEN, is_rewritten=False),
    ]


def test_what_a_run_wrote_of_the_parent_makes_nothing_stale_where_it_looked_after_the_tier_too() -> None:
    # Late rows of one slice: more of a parent whose windows overlap is written again than of what is made of it.
    def run(until: int, fine: tuple[int, int], coarse: tuple[int, int]) -> Report:
        tiers = (*report(fine, tier="fine").tiers, *report(coarse, tier="coarse").tiers)
        return replace(report(), span=Interval(0, until), tiers=tiers)

    runs = [run(10, (0, 10), (0, 10)), run(8, (3, 9), (3, 6))]
    assert stale(coverage(runs, "coarse"), coverage(runs, "fine")) == (Interval(8, 9),)


def expiring(told: Report, *spans: tuple[int, int]) -> Report:
    """The same run, which has found that these have been kept long enough."""
    return replace(told, expired=(("1h", tuple(Interval(*span) for span in spans)), ("gone", (Interval(0, 9),))))


def at_second(told: Report, began: int, took: int) -> Report:
    """The same by a run that began at a second, and took so many."""
    return replace(told, run_id=f"20260301T0000{began:02}000000-0a1b2c3d", seconds=took)


def test_what_expired_is_no_gap_and_may_be_written_again() -> None:
    runs = [report((0, 60)), expiring(report((60, 70)), (0, 20)), expiring(report((70, 71), (5, 10)), (20, 30))]
    found = coverage(runs, "1h")
    assert found.expired == (Interval(0, 5), Interval(10, 30))
    assert found.covered == (Interval(5, 10), Interval(30, 71))
    assert (found.gaps, found.rewritten, found.end) == ((), (), 71)
    assert [found.run_at(*span) for span in ((0, 5), (5, 10), (40, 41), (66, 67))] == [None, 2, 0, 1]
    # Where a part is there, that is to be seen.
    assert cells(found, (), Interval(0, 90), 9) == [
        Cell(Interval(0, 10), State.WRITTEN, is_rewritten=False),
        Cell(Interval(10, 30), State.EXPIRED, is_rewritten=False),
        Cell(Interval(30, 80), State.WRITTEN, is_rewritten=False),
        Cell(Interval(80, 90), State.OPEN, is_rewritten=False),
    ]


def test_what_expired_alone_is_neither_open_nor_before_the_first_window() -> None:
    found = coverage([expiring(report((10, 20)), (10, 20)), report((30, 40))], "1h")
    assert (found.gaps, found.covered[0]) == ((Interval(20, 30),), Interval(30, 40))
    assert [each.state for each in cells(found, (), Interval(0, 50), 5)] == [
        State.NOTHING, State.EXPIRED, State.GAP, State.WRITTEN, State.OPEN,
    ]  # fmt: skip
    alone = coverage([expiring(report((10, 20)), (10, 20))], "1h")
    assert (alone.covered, alone.end) == ((), 20)
    assert [each.state for each in cells(alone, (), Interval(0, 30), 3)] == [State.NOTHING, State.EXPIRED, State.OPEN]


def test_what_the_last_run_knows_rules_over_reports_of_runs_that_were_over_when_it_began() -> None:
    # It lasted from second 20 on. Two runs were over: the table was emptied since, and a part is filled again.
    over = [at_second(report((0, 60)), 1, 3), at_second(expiring(report((60, 70)), (0, 10)), 10, 9)]
    looking = at_second(report((60, 62)), 20, 20)
    # One went on meanwhile, one came after; of these, it need not know anything.
    beside = [at_second(report((40, 45)), 12, 9), at_second(expiring(report((70, 80)), (50, 55)), 30, 1)]
    told = Covered(
        run_id=looking.run_id,
        tiers=(("1h", (Interval(50, 65),)),),
        expired=(("1h", (Interval(5, 10),)),),
    )
    found = coverages([*over, beside[0], looking, beside[1]], ["1h"], told)["1h"]
    assert found.last == (
        Written(40, 45, 2),
        Written(55, 60, 0),
        Written(60, 62, 3),
        Written(62, 65, 1),
        Written(70, 80, 4),
    )
    assert found.expired == (Interval(5, 10), Interval(50, 55))
    assert found.gaps == (Interval(10, 40), Interval(45, 50), Interval(65, 70))


def test_a_run_that_began_right_after_another_one_knows_what_that_did() -> None:
    # Half a second after the full one, for a fifth of a second, which reports tell to the millisecond.
    over = replace(report((0, 9)), run_id="20260301T000000500000-0a1b2c3d", seconds=0.2)
    for began, knows in ("700999", False), ("701000", True):
        assert Covered(run_id=f"20260301T000000{began}-0a1b2c3d", tiers=()).knows(over) is knows
    assert not Covered(run_id=over.run_id.replace("T0", "T9"), tiers=()).knows(over)


SPANS = st.lists(
    st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(lambda pair: (min(pair), max(pair))), max_size=3
)


def told_by_a_run(written: list[tuple[int, int]], gone: list[tuple[int, int]], began: int, took: int) -> Report:
    return at_second(expiring(report(*written), *gone), began, took)


RUNS = st.lists(st.builds(told_by_a_run, SPANS, SPANS, st.integers(0, 20), st.integers(0, 5)), max_size=6)


def is_in(second: int, spans: Iterable[Interval]) -> bool:
    return any(start <= second < end for start, end in spans)


def by_hand(reports: Sequence[Report], told: Covered | None, second: int) -> State:
    """What one second is like, run by run."""
    state, is_known = State.OPEN, True
    for each in reports:
        for spans, then in ((each.tiers[0].covered, State.WRITTEN), (dict(each.expired)["1h"], State.EXPIRED)):
            if is_in(second, spans):
                state, is_known = then, told is not None and told.knows(each)
    if told is None or not is_known:
        return state
    if is_in(second, dict(told.tiers)["1h"]):
        return State.WRITTEN
    return State.EXPIRED if is_in(second, dict(told.expired)["1h"]) else State.OPEN


@given(reports=RUNS, number=st.integers(0, 6), held=SPANS, gone=SPANS)
def test_the_fold_is_what_each_second_is_like(
    reports: list[Report], number: int, held: list[tuple[int, int]], gone: list[tuple[int, int]]
) -> None:
    ordered = sorted(reports, key=lambda each: each.run_id)
    told = None
    if number < len(ordered):
        tiers, expired = ((("1h", tuple(Interval(*span) for span in spans)),) for spans in (held, gone))
        told = Covered(run_id=ordered[number].run_id, tiers=tiers, expired=expired)
    found = coverages(ordered, ["1h"], told)["1h"]
    for second in range(LENGTH):
        state = by_hand(ordered, told, second)
        assert is_in(second, found.covered) == (state is State.WRITTEN)
        assert is_in(second, found.expired) == (state is State.EXPIRED)
        run = found.run_at(second, second + 1)
        wrote = [at for at, each in enumerate(ordered) if is_in(second, each.tiers[0].covered)]
        assert run in ({EARLIER, *wrote[-1:]} if state is State.WRITTEN else {None})
    assert found.covered == union(found.covered)
    assert found.expired == union(found.expired)
    assert not any(is_in(second, found.rewritten) and not is_in(second, found.covered) for second in range(LENGTH))


def test_nothing_is_open() -> None:
    assert cells(coverage([], "1h"), (), Interval(0, 8), 4) == [Cell(Interval(0, 8), State.OPEN, is_rewritten=False)]


def test_what_is_stale_of_three_years_of_hours_is_found_in_one_pass() -> None:
    runs = [report((hour, hour + 1)) for hour in range(3 * 365 * 24)]
    found = coverage([*runs, report((100, 101), tier="parent")], "1h")
    parent = coverages([*runs, report((100, 101))], ["1h"])["1h"]
    # Each with each would be seven hundred million pairs, for which nobody waits.
    assert stale(found, parent) == (Interval(100, 101),)
