"""The same backfill on a cluster and behind Spark Connect, both of the PySpark that is installed, on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import pyspark
import pytest

from stairwise_spark.jars import delta_jars

pytestmark = pytest.mark.spark

_HOME = Path(pyspark.__file__).parent
_HERE = "127.0.0.1"
_QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Duser.timezone=UTC"
_LONGEST = 400  # seconds, on a machine that is busy with other things
_FEW = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
# A session waits for both workers, so that each of them has a part of the work.
_OF_CLUSTER = _FEW | {
    "spark.driver.host": _HERE,
    "spark.driver.bindAddress": _HERE,
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _QUICK_JVM,
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
_OF_SERVER = _FEW | {
    "spark.connect.grpc.binding.address": _HERE,
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": _HERE,
    "spark.driver.bindAddress": _HERE,
    "spark.driver.extraJavaOptions": _QUICK_JVM,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@pytest.fixture
def environment(repository: Path, tmp_path: Path) -> dict[str, str]:
    roots = (repository, repository / "optimizer", repository / "spark_jobs")
    # Not what the session of the other tests has left.
    known = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return known | {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": _HERE,
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_DAEMON_JAVA_OPTS": _QUICK_JVM,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_LAUNCHER_OPTS": _QUICK_JVM,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
    }


class Process:
    """A process with a log, in a group of its own, of which nothing is left at the end."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def said(self, pattern: str) -> str:
        """The part in parentheses of the first line of its log that is like the pattern, once there is one."""
        until = time.monotonic() + _LONGEST
        while True:
            is_last = self._process.poll() is not None or time.monotonic() > until
            text = self._log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(pattern, text):
                return found[1]
            assert not is_last, text
            time.sleep(0.1)


def smoke(folder: Path, environment: Mapping[str, str], layout: str, *arguments: str) -> object:
    """What the smoke test finds, in a layout."""
    command = [sys.executable, "-m", "tests.spark_jobs.smoke", str(folder / "lake"), layout, *arguments]
    with Process(command, folder / "smoke.log", environment) as running:
        return json.loads(running.said(r"(?m)^(\{.*\})$"))


def wanted(executors: int) -> object:
    """What it has to find: tiers are shared, all is as the raw rows say, for verify too; run again, nothing."""
    return {
        "shares": True, "totals": [10, 35], "executors": executors, "knows_conflicts": True,
        "many": [9, 1_350], "wrote": [True, False], "rows": 1_165, "wrong": [], "verified": 0,
    }  # fmt: skip


def _conf(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def daemon(name: str, folder: Path, environment: Mapping[str, str], kind: str, *arguments: str) -> Process:
    """A process of the standalone cluster, at whatever ports are free."""
    command = [
        str(_HOME / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{kind}",
        *("--host", _HERE, "--port", "0", "--webui-port", "0"),
        *arguments,
    ]
    return Process(command, folder / f"{name}.log", environment)


def test_a_standalone_cluster_of_two_workers(tmp_path: Path, environment: dict[str, str]) -> None:
    with ExitStack() as cluster:
        master = cluster.enter_context(daemon("master", tmp_path, environment, "master.Master"))
        url = master.said(r"Starting Spark master at (spark://\S+)")
        workers = [
            cluster.enter_context(
                daemon(
                    name, tmp_path, environment, "worker.Worker",
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / name), url),
                )
            )
            for name in ("first", "second")
        ]  # fmt: skip
        for worker in workers:
            worker.said(r"(Successfully registered with master)")
        found = smoke(tmp_path, environment, "one_table", "--master", url, *_conf(_OF_CLUSTER))
    assert found == wanted(executors=2)


def test_spark_connect(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [
        str(_HOME / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
        *_conf(_OF_SERVER | {"spark.driver.extraClassPath": os.pathsep.join(map(str, delta_jars()))}),
        "spark-internal",
    ]
    with Process(command, tmp_path / "server.log", environment) as server:
        port = server.said(r"Spark Connect server started at: \S*:(\d+)")
        found = smoke(tmp_path, environment, "tables", "--remote", f"sc://{_HERE}:{port}")
    assert found == wanted(executors=1)
