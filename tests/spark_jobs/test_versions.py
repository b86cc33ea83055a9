"""The versions that the Spark side names are the ones that are pinned, and that start."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from stairwise_spark import versions


def test_the_coordinate_is_written_out_in_its_documentation() -> None:
    assert versions.DELTA_COORDINATE == "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_the_jars_are_of_that_version_and_pinned_by_their_content() -> None:
    assert list(versions.DELTA_JARS) == [versions.DELTA_COORDINATE, "io.delta:delta-storage:4.4.0"]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in versions.DELTA_JARS.values())


def test_the_installed_packages_are_the_verified_ones() -> None:
    assert (version("pyspark"), version("delta-spark")) == (versions.SPARK, versions.DELTA)


@pytest.mark.spark
def test_spark_starts_with_the_scala_and_the_java_that_are_named() -> None:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    command, environment = [str(home / "bin" / "spark-submit"), "--version"], {**os.environ, "SPARK_HOME": str(home)}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
    found = re.search(r" version (\S+)\s[\s/_\\]*Using Scala version (\d+\.\d+)\.\d+, .*, (\d+)\.", printed)
    assert found is not None, printed
    spark, scala, java = found.groups()
    assert (spark, scala) == (versions.SPARK, versions.SCALA)
    assert int(java) >= versions.OLDEST_JAVA
