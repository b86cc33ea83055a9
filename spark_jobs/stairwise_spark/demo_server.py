"""The Spark of the demo: one server, behind Spark Connect, which stays from the first run to the last.

A Spark that is started for each run works for half a minute before it does as fast as it can what all runs do.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stairwise_spark.demo_place import BESIDE, Place
from stairwise_spark.errors import RunError
from stairwise_spark.session import SessionOptions, own_settings

_HERE, _LONGEST, _LOOK = "127.0.0.1", 120.0, 0.2
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For minutes of work: to compile what it does to the last takes longer than that."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started.

    Attributes:
        process: Its process.
        port: On this machine.
        log: What it says.
    """

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def address(self) -> str:
        """As ``SPARK_REMOTE`` and Airflow's connections name it."""
        return f"sc://{_HERE}:{self.port}"

    def await_ready(self) -> None:
        """Return when it answers.

        Raises:
            RunError: It ended, or says nothing for very long.
        """
        until = time.monotonic() + _LONGEST
        while self.process.poll() is None and time.monotonic() < until:
            with suppress(OSError), socket.create_connection((_HERE, self.port), _LOOK):
                return
            time.sleep(_LOOK)
        raise RunError("Spark's server does not answer.", hint=f"see what it says in {self.log}.")


@contextmanager
def serving(place: Place) -> Generator[Server]:
    """A server starts, and ends with all that it has started."""
    with socket.socket() as tried:
        tried.bind((_HERE, 0))
        port = int(tried.getsockname()[1])
    settings = own_settings(SessionOptions(master="local[*]")) | {
        "spark.connect.grpc.binding.address": _HERE,
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [
        str(BESIDE / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
        "spark-internal",
    ]
    log = place.folder / "spark.log"
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603 - of our own making
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=place.folder, start_new_session=True,
            env=os.environ | {"SPARK_SUBMIT_OPTS": _JVM},
        )  # fmt: skip
    try:
        yield Server(process, port, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
