"""A few kills of real processes; `make torture` makes many."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.spark_jobs.torture.campaign import Campaign
from tests.spark_jobs.torture.episodes import Victim

pytestmark = [pytest.mark.spark, pytest.mark.torture]

_VICTIMS = (
    *(Victim.DRIVER, Victim.DRIVER, Victim.DRIVER),
    *(Victim.DRIVER, Victim.WORKER, Victim.DRIVER),
    *(Victim.DRIVER, Victim.DRIVER, Victim.DRIVER),
    *(Victim.DRIVER, Victim.NOBODY, Victim.SERVER),
)


def test_whoever_is_killed_the_next_run_ends_in_true_tables(tmp_path: Path) -> None:
    killed: Counter[str] = Counter()
    with Campaign(tmp_path, seed=11, killed=killed) as campaign:
        campaign.go(kills=10, until=time.monotonic() + 1_800, victims=_VICTIMS)
    assert killed.total() >= 10
    assert campaign.versions > 10
