"""Ten kills of real processes; `make torture` makes as many as are wanted."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.spark_jobs.torture.campaign import Campaign
from tests.spark_jobs.torture.episodes import Victim

pytestmark = pytest.mark.spark

# The JVM of many drivers dies in `make torture`: a new one takes as long as all of this.
_VICTIMS = (*[Victim.DRIVER] * 4, Victim.WORKER, Victim.DRIVER, Victim.DRIVER, Victim.NOBODY, Victim.DRIVER)
_WINDOWS = ("1h, 6h",)


def test_whoever_is_killed_the_next_run_ends_in_true_tables(tmp_path: Path) -> None:
    killed: Counter[str] = Counter()
    with Campaign(tmp_path, seed=11, killed=killed) as campaign:
        campaign.go(kills=10, until=time.monotonic() + 900, victims=_VICTIMS, windows=_WINDOWS)
    assert killed.total() >= 10
    assert campaign.versions > 10
