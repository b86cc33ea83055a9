"""The session: whose it is, what it is set to, what is said where there can be none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.errors import UsageError
from stairwise_spark.connecting import check_listening
from stairwise_spark.errors import RunError
from stairwise_spark.session import SessionOptions, open_session

pytestmark = pytest.mark.spark

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
NEEDS = "Hint: install Java 17 or newer, or set JAVA_HOME to where it is."


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder, env={**os.environ, **environment}
    )


def test_one_place_at_a_time() -> None:
    with pytest.raises(UsageError) as raised:
        SessionOptions(master="local", remote="sc://host")
    assert str(raised.value) == "master 'local' and remote 'sc://host': a session is at one of them. Hint: keep one."


@pytest.mark.parametrize(
    ("master", "remote", "text"),
    [
        (
            "spork://x:1",
            None,
            (
                "master 'spork://x:1': Spark knows no such address. "
                "Hint: try local[*], spark://HOST:7077, k8s://https://HOST:PORT or yarn."
            ),
        ),
        (None, "host:15002", "remote 'host:15002': it is not sc://HOST. Hint: try sc://host:15002."),
    ],
)
def test_a_place_that_is_none_is_refused_before_java_starts(master: str | None, remote: str | None, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        SessionOptions(master=master, remote=remote)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2,3]",
        "local-cluster[1,2,1024]",
        "spark://a:7077,b:7077",
        "yarn",
        "k8s://https://h:1",
    ],
)
def test_places_that_spark_knows_are_left_to_it(master: str) -> None:
    assert SessionOptions(master=master).master == master


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def nobody(address: str, why: str = "Connection refused") -> str:
    return (
        f"remote sc://{address}: a server of Spark Connect has to listen there, and nobody answers ({why}). "
        "Hint: start it, or correct the address; without a port, 15002 is meant."
    )


def test_a_server_that_is_not_there_fails_at_once(port: int, tmp_path: Path) -> None:
    declared = tmp_path / "trips.yaml"
    declared.write_text(
        "rollup: trips\nsource: {path: trips, time: at}\naggregates: {trips: count()}\nwindows: [1h]\ntarget: tables\n"
    )
    began = time.monotonic()
    program = str(Path(sys.executable).with_name("stairwise"))
    command = [program, "run", str(declared), "--remote", f"sc://127.0.0.1:{port}/;token=me"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, f"stairwise: {nobody(f'127.0.0.1:{port}')}\n")
    assert time.monotonic() - began < 30  # most of it to load Python's modules


@pytest.mark.parametrize("rest", ["", "/", "/;use_ssl=true;token=me"])
def test_a_server_is_looked_for_where_it_would_listen(port: int, rest: str) -> None:
    with pytest.raises(RunError) as raised:
        check_listening(f"sc://127.0.0.1:{port}{rest}")
    assert str(raised.value) == nobody(f"127.0.0.1:{port}")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        check_listening(f"sc://localhost:{server.getsockname()[1]}{rest}")


def test_a_server_may_have_an_address_of_version_6() -> None:
    with closing(socket.create_server(("::1", 0), family=socket.AF_INET6)) as server:
        address = f"[::1]:{server.getsockname()[1]}"
        check_listening(f"sc://{address}")
    with pytest.raises(RunError) as raised:
        check_listening(f"sc://{address}")
    assert str(raised.value) == nobody(address)


def test_a_server_that_no_name_server_knows_is_said() -> None:
    with pytest.raises(
        RunError, match=r"^remote sc://no\.such\.host\.invalid:15002: .* nobody answers \(.+\)\."
    ) as raised:
        check_listening("sc://no.such.host.invalid/;use_ssl=true")
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("remote", ["local[2]", "sc://", "sc://host:port"])
def test_addresses_that_name_no_server_are_left_to_spark(remote: str) -> None:
    check_listening(remote)


def test_behind_a_proxy_it_is_the_proxy_that_looks(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    check_listening(f"sc://127.0.0.1:{port}")
    monkeypatch.setenv("no_proxy", "example.test, 127.0.0.1")
    with pytest.raises(RunError):
        check_listening(f"sc://127.0.0.1:{port}")
    monkeypatch.setenv("no_grpc_proxy", "example.test")
    check_listening(f"sc://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("key", "setting", "text"),
    [
        (ZONE, "Europe/Paris", "is Europe/Paris, where UTC is needed: windows begin at instants of UTC."),
        (ANSI, "false", "is false, where true is needed: an overflow must fail, not wrap."),
    ],
)
def test_settings_that_change_what_is_meant(spark: SparkSession, key: str, setting: str, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        SessionOptions(conf=((key, setting),))
    assert str(raised.value) == f"{key} {text} Hint: leave it out."
    before = spark.conf.get(key) or ""
    spark.conf.set(key, setting)
    try:
        with pytest.raises(RunError) as refused:
            open_session(SessionOptions())
    finally:
        spark.conf.set(key, before)
    assert str(refused.value) == f"{key} {text} Hint: spark.conf.set('{key}', '{before}') before the run."


def test_an_active_session_is_used_with_the_settings_given(spark: SparkSession) -> None:
    given = SessionOptions(conf=(("spark.sql.shuffle.partitions", "3"), (ANSI, "TRUE")))
    before = spark.conf.get("spark.sql.shuffle.partitions") or ""
    assert open_session(given) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    spark.conf.set("spark.sql.shuffle.partitions", before)
    spark.conf.set(ANSI, "true")


def test_our_own_session_writes_delta_tables_in_utc(spark: SparkSession) -> None:
    assert {key: spark.conf.get(key) for key in (ZONE, ANSI, "spark.databricks.delta.snapshotPartitions")} == {
        ZONE: "UTC",
        ANSI: "true",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_no_java_is_one_sentence(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "from stairwise.errors import StairwiseError\n"
        "from stairwise_spark.session import SessionOptions, open_session\n"
        "for home in ('none', 'old', 'ancient', 'mute', ''):\n"
        "    os.environ['JAVA_HOME'] = home and os.path.abspath(home)\n"
        "    try:\n"
        "        open_session(SessionOptions())\n"
        "    except StairwiseError as error:\n"
        "        print(error)\n"
    )
    for home, answer in (
        ("old", 'openjdk version "11.0.2" 2019-01-15'),
        ("ancient", 'java version "1.8.0_402"'),
        ("mute", ""),
    ):
        java = tmp_path / home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
        java.chmod(0o755)
    done = run(code, tmp_path, PATH=str(tmp_path))
    javas = {home: tmp_path / home / "bin" / "java" for home in ("none", "old", "ancient", "mute")}
    assert done.stdout.splitlines() == [
        f"Spark needs Java, and there is none at {javas['none']}, where JAVA_HOME says. {NEEDS}",
        f"Spark needs Java 17 or newer, and {javas['old']} is 11.0.2. {NEEDS}",
        f"Spark needs Java 17 or newer, and {javas['ancient']} is 1.8.0_402. {NEEDS}",
        f"Spark needs Java, and {javas['mute']} does not say its version. {NEEDS}",
        f"Spark needs Java, and there is none on the path. {NEEDS}",
    ]
    assert done.stderr == ""


def test_a_session_is_quiet_leaves_no_files_and_its_end_is_told(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from stairwise.errors import StairwiseError\n"
        "from stairwise_spark.errors import translating\n"
        "from stairwise_spark.session import SessionOptions, open_session, sql\n"
        "spark = open_session(SessionOptions(quick=True, conf=(('spark.driver.memory', '1g'),)))\n"
        "def act(statement):\n"
        "    try:\n"
        "        with translating():\n"
        "            sql(spark, statement).collect()\n"
        "    except StairwiseError as error:\n"
        "        print(type(error).__name__, error)\n"
        "act('SELECT 1 / id FROM range(3)')\n"
        "[java] = map(int, Path(f'/proc/self/task/{os.getpid()}/children').read_text().split())\n"
        "os.kill(java, signal.SIGKILL)\n"
        "os.waitpid(java, 0)\n"
        "act('SELECT 1')\n"
        "os._exit(0)\n"
    )
    done = run(code, tmp_path, PYTHONUNBUFFERED="1")
    divided, ended = done.stdout.splitlines()
    assert divided.startswith("RunError an expression divides by 0 (Division by zero.")
    assert ended.startswith("RunError the Spark process has ended (")
    # From the Java virtual machine itself, for a module that Spark asks for.
    # Py4J itself may log the connection that it lost, if it was about to use it.
    told = done.stderr.partition("ERROR:root:Exception while sending command.")[0]
    assert told.splitlines() == ["WARNING: Using incubator modules: jdk.incubator.vector"]
    assert list(tmp_path.iterdir()) == []
