"""The session: whose it is, what it is set to, what is said where there can be none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.errors import UsageError
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
