"""Kill runs until so many have been survived: ``python -m tests.spark_jobs.torture --kills 100 --seed 7``."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.spark_jobs.torture.campaign import Campaign


class _Given(argparse.Namespace):
    kills: int
    seed: int
    minutes: float


def main() -> int:
    """Whether all was survived."""
    parser = argparse.ArgumentParser(description="Kill runs at random instants and at named points.")
    parser.add_argument("--kills", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="repeats the choices")
    parser.add_argument("--minutes", type=float, default=60.0, help="no longer than that")
    given = parser.parse_args(namespace=_Given())
    folder = Path(tempfile.mkdtemp(prefix=f"torture-{given.seed}-"))
    print(f"seed {given.seed}, {given.kills} kills wanted, all of it in {folder}", flush=True)  # noqa: T201
    killed: Counter[str] = Counter()
    started = time.monotonic()
    with Campaign(folder, given.seed, killed) as campaign:
        try:
            campaign.go(given.kills, until=started + 60 * given.minutes)
        finally:
            for where, times in killed.most_common():
                print(f"{times:5}  {where}")  # noqa: T201
            minutes = (time.monotonic() - started) / 60
            print(f"{killed.total():5}  kills in {minutes:.0f} minutes; {campaign.versions} versions looked at")  # noqa: T201
    shutil.rmtree(folder)
    is_enough = killed.total() >= given.kills
    print("all survived" if is_enough else "survived, but no time was left for the rest")  # noqa: T201
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
