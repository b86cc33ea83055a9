"""Coverage over time, from reports alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stairwise.windowing import Interval
from stairwise_airflow.reports import Report, TierDone
from stairwise_airflow.timeline import EARLIER, Cell, Coverage, State, Written, cells, coverages, stale

pytestmark = pytest.mark.airflow


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
    known = {"1h": (Interval(0, 40), Interval(50, 60)), "other": (Interval(0, 9),)}
    found = coverages([report((10, 20)), report((35, 45))], ["1h"], known)["1h"]
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


def test_nothing_is_open() -> None:
    assert cells(coverage([], "1h"), (), Interval(0, 8), 4) == [Cell(Interval(0, 8), State.OPEN, is_rewritten=False)]


def test_what_is_stale_of_three_years_of_hours_is_found_in_one_pass() -> None:
    runs = [report((hour, hour + 1)) for hour in range(3 * 365 * 24)]
    found = coverage([*runs, report((100, 101), tier="parent")], "1h")
    parent = coverages([*runs, report((100, 101))], ["1h"])["1h"]
    # Each with each would be seven hundred million pairs, for which nobody waits.
    assert stale(found, parent) == (Interval(100, 101),)
