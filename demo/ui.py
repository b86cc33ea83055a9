"""Airflow with the history of the demo in it, until it is interrupted: ``python demo/ui.py [FOLDER [PORT]]``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from quick_start import DAG_ID, Place

_SECONDS = 240


def main(folder: Path, port: int) -> int:
    """Run Airflow there; the exit code is its own."""
    place = Place.at(folder)
    if not (folder / "airflow" / "airflow.db").exists():
        sys.exit(f"There is no demo in {folder}: make demo brings it.")
    address = f"http://localhost:{port}"
    settings = {
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
        # On the user's own machine, for the user alone.
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }
    log = folder / "ui.log"
    print(f"Airflow starts; what it says goes to {log}.", flush=True)
    with log.open("w", encoding="utf-8") as said:
        # standalone ends its parts on an interrupt only, which a shell's background jobs ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        airflow = subprocess.Popen(
            ["airflow", "standalone"],  # noqa: S607 - of the Python that runs this
            stdout=said, stderr=said, cwd=folder, env=place.environment | settings, start_new_session=True,
        )  # fmt: skip
        try:
            if is_up(address, airflow):
                print(f"{address}/dags/{DAG_ID}/plugin/rollups_dag is the page; interrupt this to end it.", flush=True)
            return airflow.wait()
        except KeyboardInterrupt:
            airflow.send_signal(signal.SIGINT)
            return airflow.wait()


def is_up(address: str, airflow: subprocess.Popen[bytes]) -> bool:
    """Whether it answers before long."""
    for _ in range(_SECONDS):
        if airflow.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"{address}/api/v2/monitor/health") as answer:  # noqa: S310 - our own
                return bool(json.loads(answer.read()))
        except OSError:
            time.sleep(1)
    return False


if __name__ == "__main__":
    given = [*sys.argv[1:], *("target/demo", "8080")[len(sys.argv) - 1 :]]
    sys.exit(main(Path(given[0]).resolve(), int(given[1])))
