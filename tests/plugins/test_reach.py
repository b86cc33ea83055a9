"""Which windows a run writes is settled before Spark starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk.exceptions import AirflowFailException

from stairwise_airflow.reach import Extent, Occasion, settle

pytestmark = pytest.mark.airflow

FIVE = datetime(2026, 3, 1, 5, tzinfo=UTC)
SIX = FIVE + timedelta(hours=1)
SCHEDULED = Occasion(start=None, end=None, interval=(FIVE, SIX), partition=None, due=SIX, is_backfill=False, cron=None)
EMPTY = replace(SCHEDULED, interval=(SIX, SIX))


@pytest.mark.parametrize(
    ("occasion", "grain", "extent", "options"),
    [
        (SCHEDULED, None, Extent.COVERED, "--since 2026-03-01T05:00:00Z --end 2026-03-01T06:00:00Z"),
        (SCHEDULED, None, Extent.EVERYTHING, "--end 2026-03-01T06:00:00Z"),
        (
            replace(SCHEDULED, is_backfill=True),
            None,
            Extent.COVERED,
            "--start 2026-03-01T05:00:00Z --end 2026-03-01T06:00:00Z",
        ),
        (
            replace(SCHEDULED, start="2026-01-01", end="2026-02-01T00:00:00.000Z"),
            None,
            Extent.COVERED,
            "--start 2026-01-01T00:00:00Z --end 2026-02-01T00:00:00Z",
        ),
        (
            replace(SCHEDULED, start="2026-01-01T01:00:00+01:00"),
            None,
            Extent.COVERED,
            "--start 2026-01-01T00:00:00Z --end 2026-03-01T06:00:00Z",
        ),
        (
            replace(SCHEDULED, end="2026-02-01"),
            None,
            Extent.COVERED,
            "--since 2026-02-01T00:00:00Z --end 2026-02-01T00:00:00Z",
        ),
        # Nobody says when: what tables hold is brought up to date.
        (
            replace(SCHEDULED, interval=None),
            None,
            Extent.COVERED,
            "--since 2026-03-01T06:00:00Z --end 2026-03-01T06:00:00Z",
        ),
        (EMPTY, None, Extent.COVERED, "--since 2026-03-01T06:00:00Z --end 2026-03-01T06:00:00Z"),
        (
            replace(SCHEDULED, interval=None, partition=FIVE),
            "1h",
            Extent.COVERED,
            "--since 2026-03-01T05:00:00Z --end 2026-03-01T06:00:00Z",
        ),
        # A day of 23 hours.
        (
            replace(SCHEDULED, interval=None, partition=datetime(2026, 3, 28, 23, tzinfo=UTC), is_backfill=True),
            "day in Europe/Paris",
            Extent.COVERED,
            "--start 2026-03-28T23:00:00Z --end 2026-03-29T22:00:00Z",
        ),
    ],
)
def test_a_run_has_its_windows(occasion: Occasion, grain: str | None, extent: Extent, options: str) -> None:
    assert " ".join(settle(occasion, grain, extent).arguments) == options


@pytest.mark.parametrize(
    ("occasion", "text"),
    [
        (
            replace(EMPTY, cron="0 * * * *"),
            (
                "the schedule '0 * * * *' gives its runs an empty data interval, so there is nothing to write. Hint: "
                'schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"), from airflow.sdk.'
            ),
        ),
        (
            replace(EMPTY, cron="every 1:00:00"),
            (
                "the schedule 'every 1:00:00' gives its runs an empty data interval, so there is nothing to write. "
                "Hint: schedule=DeltaDataIntervalTimetable(...), from airflow.sdk."
            ),
        ),
        (
            replace(SCHEDULED, start="2026-02-01", end="2026-01-01"),
            "the range from 2026-02-01T00:00:00Z to 2026-01-01T00:00:00Z is empty. Hint: let end be later than start.",
        ),
        (
            replace(SCHEDULED, start="yesterday"),
            (
                "start: instant 'yesterday': it is neither a date nor a date with a time in whole seconds and a zone. "
                "Hint: write 2024-01-31, 2024-01-31T06:00Z or 2024-01-31T06:00:00+02:00."
            ),
        ),
        (
            replace(SCHEDULED, partition=FIVE),
            (
                "the run is for the partition of 2026-03-01T05:00:00Z, and nothing says how long that is. Hint: "
                "RollupOperator(grain='1h'), with the window that a partition is."
            ),
        ),
    ],
)
def test_a_run_without_windows_fails_for_good(occasion: Occasion, text: str) -> None:
    with pytest.raises(AirflowFailException) as caught:
        settle(occasion, None, Extent.COVERED)
    assert str(caught.value) == text
