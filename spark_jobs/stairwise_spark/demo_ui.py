"""Airflow with the history of the demo in it, until it is interrupted."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from stairwise.errors import UsageError
from stairwise_spark.demo_files import DAG_ID
from stairwise_spark.demo_place import Place
from stairwise_spark.errors import RunError

_HERE, _LONGEST = "127.0.0.1", 240.0


def show(place: Place, port: int) -> int:
    """Run Airflow on a port of this machine; its exit code.

    Raises:
        UsageError: There is no demo, or something else has the port.
        RunError: Airflow ended before anybody could look.
    """
    if not (place.home / "airflow.db").exists():
        raise UsageError(f"there is no demo in '{place.folder}'.", hint="run stairwise demo first.")
    _check_free(port)
    address, log = f"http://localhost:{port}", place.folder / "ui.log"
    print(f"Airflow starts; what it says goes to {log}.", flush=True)  # noqa: T201 - a part of the command
    with log.open("wb") as said:
        # standalone ends its parts on an interrupt only, which a shell's background jobs ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        airflow = subprocess.Popen(
            ["airflow", "standalone"],  # noqa: S607 - beside this Python
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=place.folder, start_new_session=True,
            env=place.environment() | _settings(address, port),
        )  # fmt: skip
        try:
            _await(address, airflow, log)
            page = f"{address}/dags/{DAG_ID}/plugin/rollups_dag"
            print(f"{page} is the page of the rollup. Interrupt this to end it.", flush=True)  # noqa: T201 - as above
            return airflow.wait()
        except KeyboardInterrupt:
            airflow.send_signal(signal.SIGINT)
            airflow.wait()
            return 0


def _settings(address: str, port: int) -> dict[str, str]:
    """Of an Airflow on the user's own machine, for the user alone."""
    return {
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": _HERE,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    }


def _check_free(port: int) -> None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((_HERE, port))
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be had: {error.strerror}.", hint="name another with --port."
            ) from error


def _await(address: str, airflow: subprocess.Popen[bytes], log: Path) -> None:
    """Return when it answers."""
    until = time.monotonic() + _LONGEST
    while airflow.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}/api/v2/monitor/health") as answer:  # noqa: S310 - our own
                json.loads(answer.read())
                return
        except OSError:
            time.sleep(1)
    airflow.send_signal(signal.SIGINT)
    airflow.wait()
    raise RunError(f"Airflow does not answer at {address}.", hint=f"see what it says in {log}.")
