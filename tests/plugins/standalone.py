"""A whole Airflow in processes of its own: scheduler, API, DAG processor, triggerer; and a Spark Connect server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # noqa: TID251 - what JSON holds

from tests.spark_jobs.torture.fleet import HERE, Server

_LONGEST = 300.0  # seconds for any one thing, on a machine that is busy with other things
_LOOK = 1.5
_GOES_ON = {"queued", "running"}


@dataclass(frozen=True, slots=True)
class Instance:
    """An Airflow that runs.

    Attributes:
        folder: All of it is there; DAGs in `dags`, what it says in `airflow.log`.
        address: Of its API.
        token: Whoever shows it may do everything.
        spark: The server that its tasks go to.
    """

    folder: Path
    address: str
    token: str
    spark: Server

    def asked(self, path: str, body: object = None, method: str = "") -> Any:  # noqa: ANN401 - what was answered
        """The answer of its API."""
        request = urllib.request.Request(  # noqa: S310 - our own
            f"{self.address}/api/v2/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method or ("GET" if body is None else "POST"),
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own
            return json.loads(answer.read())

    def unpause(self, dag: str) -> None:
        """A DAG runs, as soon as it is known; not before there is an API, without which tasks fail."""
        awaited(lambda: self.asked(f"dags/{dag}", {"is_paused": False}, "PATCH"), self.said)

    def triggered(self, dag: str) -> str:
        """The id of a new run of a DAG."""
        return str(self.asked(f"dags/{dag}/dagRuns", {"logical_date": None})["dag_run_id"])

    def runs(self, dag: str) -> list[Any]:
        """The runs of a DAG."""
        return list(self.asked(f"dags/{dag}/dagRuns")["dag_runs"])

    def ended(self, dag: str, count: int, *, well: bool = True) -> list[Any]:
        """The runs of a DAG, once there are so many, and none goes on; all of them went well, or the last did not."""

        def look() -> list[Any]:
            runs = self.runs(dag)
            return [] if len(runs) < count or _GOES_ON & {run["state"] for run in runs} else runs

        found: list[Any] = awaited(look, self.said)
        states = [run["state"] for run in sorted(found, key=lambda run: run["run_after"])]
        assert states == ["success"] * (count - 1) + ["success" if well else "failed"], self.said()
        return found

    def tasks(self, dag: str) -> list[Any]:
        """The tasks of all runs of a DAG."""
        return list(self.asked(f"dags/{dag}/dagRuns/~/taskInstances")["task_instances"])

    def said(self, task: str = "") -> str:
        """The end of what it has said, and all its tasks; or those of a name."""
        logs = sorted((self.folder / "home" / "logs").rglob("attempt=*.log"))
        files = [each for each in logs if f"task_id={task}" in str(each)] if task else [*logs, _log(self.folder)]
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-6_000:]}" for file in files)


def awaited(look: Callable[[], Any], said: Callable[[], str]) -> Any:  # noqa: ANN401 - whatever is looked for
    """What is found, as soon as it is there; what is said if it never is."""
    until = time.monotonic() + _LONGEST
    while time.monotonic() < until:
        with suppress(OSError):
            if found := look():
                return found
        time.sleep(_LOOK)
    raise AssertionError(said())


@contextmanager
def standalone(folder: Path) -> Generator[Instance]:
    """It runs, with the DAGs in the folder `dags`; Spark tasks go to one server, whose JVM is warm after the first."""
    with socket.create_server((HERE, 0)) as free:
        address = f"http://{HERE}:{free.getsockname()[1]}"
    server = Server(folder)
    server.choose_port()
    around = os.environ | _settings(folder, address, server.port)
    command = [str(Path(sys.executable).parent / "airflow"), "standalone"]
    # It ends its parts on an interrupt only, which what was started in the background does not heed.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with _log(folder).open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, env=around, start_new_session=True
        )
    signal.signal(signal.SIGINT, before)
    try:
        server.start()
        token = awaited(lambda: _token(address, process), _log(folder).read_text)
        yield Instance(folder, address, token, server)
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        server.kill()


def _settings(folder: Path, address: str, spark: int) -> Mapping[str, str]:
    """What an instance of its own finds in its environment."""
    home, programs = folder / "home", Path(sys.executable).parent
    lineage = {"type": "file", "log_file_path": str(folder / "lineage"), "append": True}
    server = {"conn_type": "spark_connect", "host": HERE, "port": spark}
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "AIRFLOW__CORE__PARALLELISM": "3",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__PORT": address.rpartition(":")[2],
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": HERE,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": "0",
        "AIRFLOW__TRIGGERER__TRIGGERER_LOG_SERVER_PORT": "0",
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        # On a machine that is busy with other things, five seconds are not enough for any answer.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(lineage),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(server),
        "AIRFLOW_CONN_HERE": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }


def _token(address: str, process: subprocess.Popen[bytes]) -> str:
    assert process.poll() is None, "it has ended"
    with urllib.request.urlopen(f"{address}/auth/token", timeout=10) as answer:  # noqa: S310 - our own
        return str(json.loads(answer.read())["access_token"])


def _log(folder: Path) -> Path:
    return folder / "airflow.log"
