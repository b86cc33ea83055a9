"""The demo: a day of trips through Airflow, late rows, a repair, a check; everything in a folder of its own.

``python demo/quick_start.py [FOLDER]`` takes it, by default ``target/demo``, and says where everything is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any  # noqa: TID251 - what JSON holds

import pyarrow as pa
from deltalake import write_deltalake

ROOT = Path(__file__).resolve().parent.parent
DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAG_ID, DECLARATION = "stairwise_quick_start", "dags/rollups/quick_start.yaml"
_SHOWN = 25  # lines of a log, where something fails


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demo is: its tables, and an Airflow of its own.

    Attributes:
        folder: Holds everything.
        environment: Of the programs that it starts.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def at(cls, folder: Path) -> Place:
        """A place; nothing is there yet."""
        home = folder / "airflow"
        settings = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[*]"}',
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }
        return cls(folder, os.environ | settings)

    @property
    def target(self) -> Path:
        """Where the tiers are."""
        return self.folder / "lake" / "quick_start" / "rollups"

    @property
    def events(self) -> Path:
        """Where the trips are."""
        return self.folder / "lake" / "quick_start" / "trips"

    def run(self, *command: str) -> str:
        """What a program prints; what it says beside goes to a file."""
        log = self.folder / "demo.log"
        with log.open("a", encoding="utf-8") as said:
            print(f"$ {' '.join(command)}", file=said, flush=True)
            finished = subprocess.run(  # noqa: S603 - commands of our own making
                command,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=self.folder,
                env=self.environment,
                check=False,
            )
            said.write(finished.stdout)
        if finished.returncode:
            lines = log.read_text(encoding="utf-8").splitlines()[-_SHOWN:]
            sys.exit(
                "\n".join([*lines, f"{' '.join(command)} ended with {finished.returncode}; all of it is in {log}."])
            )
        return finished.stdout

    def airflow(self, *words: str) -> str:
        """What a command of Airflow prints."""
        return self.run("airflow", *words)

    def last_report(self) -> dict[str, Any]:
        """The newest report of a run."""
        newest = max((self.target / "_stairwise" / "runs").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        return dict(json.loads(newest.read_text(encoding="utf-8")))


def trips(begin: datetime, hours: int, number: int, seed: int) -> pa.Table:
    """Trips in some hours, more of them by day."""
    rng = random.Random(seed)
    seconds = sorted(int(hours * 3600 * rng.betavariate(3, 2)) for _ in range(number))
    return pa.table(
        {
            "pickup_at": pa.array([begin + timedelta(seconds=at) for at in seconds], pa.timestamp("us", tz="UTC")),
            "zone_id": [rng.randrange(20) for _ in seconds],
            "fare": [round(rng.gammavariate(3, 5), 2) for _ in seconds],
        }
    )


def main(folder: Path) -> None:
    """Run the demo in a folder, which is emptied first."""
    begun = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    place = Place.at(folder)
    place.folder.mkdir(parents=True)
    day = json.dumps({"start": f"{DAY:%Y-%m-%dT%H:%M:%SZ}", "end": f"{DAY + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"})

    say("A day of trips", f"200,000 rows in {place.events}")
    write_deltalake(place.events, trips(DAY, 24, 200_000, seed=1))
    say("Airflow", f"its database in {place.environment['AIRFLOW_HOME']}")
    place.airflow("db", "migrate")

    say("The first run", f"airflow dags test {DAG_ID} --conf '{day}'")
    place.airflow("dags", "test", DAG_ID, "--conf", day)
    tell(place.last_report())

    say("Late rows", "300 trips of 7 to 9 o'clock come after all")
    write_deltalake(place.events, trips(DAY + timedelta(hours=7), 2, 300, seed=2), mode="append")
    next_hour = f"{DAY + timedelta(days=1, hours=1):%Y-%m-%dT%H:%M:%SZ}"
    say("The second run", f"airflow dags test {DAG_ID} {next_hour}, as the schedule would; it repairs what they touch")
    place.airflow("dags", "test", DAG_ID, next_hour)
    tell(place.last_report())

    say("The check", "every window from the raw rows again, beside the tables")
    found = dict(json.loads(place.run("stairwise", "verify", str(ROOT / DECLARATION), "--json")))
    print(f"  equal: {found['equal']}, {found['windows_checked']} windows checked")
    picture = place.folder / "plan.svg"
    place.run("stairwise", "plan", str(ROOT / DECLARATION), "--svg", str(picture))

    print(f"\nDone in {time.monotonic() - begun:,.0f} s.")
    for what, where in (("tables", place.target), ("plan", picture), ("log", place.folder / "demo.log")):
        print(f"  {what:7} {where}")
    print("  Airflow make ui shows it, with this history in it")


def say(what: str, more: str) -> None:
    """Print what comes next."""
    print(f"\n{what}: {more}", flush=True)


def tell(report: dict[str, Any]) -> None:
    """Print what a run wrote."""
    tiers: list[dict[str, Any]] = report["tiers"]
    for tier in tiers:
        if tier["rows_written"]:
            print(f"  {tier['name']:14} {tier['rows_written']:>8,} rows  {tier['seconds']:>6.1f} s")
    late = report["late_rows"]
    if late:
        print(f"  {late:,} rows came late")
    print(f"  {report['seconds']:.1f} s of work, and {report['startup_seconds']:.1f} s to start", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "target/demo").resolve())
