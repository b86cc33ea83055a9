"""What ``spark-submit`` is told beside the program: Delta Lake, and for one machine what a session of ours has.

Whatever the user says wins.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stairwise_airflow.application import DELTA_CONF, DELTA_COORDINATES
from stairwise_airflow.connection import is_local
from stairwise_airflow.errors import refusal

_EXTENSIONS = "spark.sql.extensions"
_PACKAGES = "spark.jars.packages"
_QUIET = {"spark.ui.showConsoleProgress": "false"}
# As the engine starts a session of its own; a test compares.
_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.ui.enabled": "false",
}
_TASKS_A_CORE = 4
_DELTA = re.compile(r"delta-(spark|core|storage)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is told to ``spark-submit``.

    Attributes:
        conf: Settings of Spark.
        packages: Maven coordinates, with commas between; None: none.
        jars: Files, with commas between; None: none.
        driver_class_path: What the driver loads first; None: nothing.
        env_vars: The environment of the program.
    """

    conf: Mapping[str, str] = field(default_factory=dict[str, str])
    packages: str | None = None
    jars: str | None = None
    driver_class_path: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict[str, str])


def completed(given: Submission, master: str, *, is_cluster_mode: bool) -> Submission:
    """The same submission with all that it lacks.

    Args:
        given: What the user says.
        master: The address of Spark.
        is_cluster_mode: Whether the driver runs elsewhere.

    Raises:
        AirflowFailException: It is not known which Delta Lake goes with the Spark in use.
    """
    on_one_machine = is_local(master)
    conf = _QUIET | DELTA_CONF | (_one_machine(master) if on_one_machine else {})
    conf = _with_extension(conf | dict(given.conf))
    jars = _kept_jars() if on_one_machine else ()
    packages, class_path = given.packages, given.driver_class_path
    if not _brings_delta(given):
        if jars:
            class_path = os.pathsep.join([*jars, *([class_path] if class_path else [])])
        else:
            packages = ",".join([*([packages] if packages else []), _coordinate(_spark_version())])
    return Submission(
        conf=conf,
        packages=packages,
        jars=given.jars,
        driver_class_path=class_path,
        env_vars=(_environment(on_one_machine=on_one_machine) if not is_cluster_mode else {}) | dict(given.env_vars),
    )


def _one_machine(master: str) -> dict[str, str]:
    cores = re.match(r"local\[\s*(\d+)", master)
    number = int(cores[1]) if cores else 1 if master == "local" else os.cpu_count() or 1
    return _ONE_MACHINE | {"spark.sql.shuffle.partitions": str(_TASKS_A_CORE * number)}


def _with_extension(conf: dict[str, str]) -> dict[str, str]:
    """The user's extensions and Delta Lake's."""
    known = [name.strip() for name in conf[_EXTENSIONS].split(",")]
    return conf | {_EXTENSIONS: ",".join(dict.fromkeys([*known, DELTA_CONF[_EXTENSIONS]]))}


def _brings_delta(given: Submission) -> bool:
    named = (given.packages, given.jars, given.driver_class_path, *(given.conf.get(key) for key in (_PACKAGES, _JARS)))
    return any(_DELTA.search(text) for text in named if text)


_JARS = "spark.jars"


def _coordinate(spark: str) -> str:
    minor = ".".join(spark.split(".")[:2])
    found = DELTA_COORDINATES.get(minor)
    if found is None:
        raise refusal(
            f"Stairwise was verified with Spark {', '.join(DELTA_COORDINATES)}, and there is Spark {spark}.",
            hint="name the Delta Lake that goes with it, as in packages='io.delta:...'.",
        )
    return found


def _spark_version() -> str:
    """The version of the Spark that ``spark-submit`` belongs to."""
    release = Path(os.environ.get("SPARK_HOME", ""), "RELEASE")
    if os.environ.get("SPARK_HOME") and release.is_file():
        said = re.match(r"Spark (\S+)", release.read_text(encoding="utf-8"))
        if said:
            return said[1]
    try:
        return version("pyspark")
    except PackageNotFoundError as error:
        raise refusal(
            "it is not known which Spark will run: there is no SPARK_HOME, and Python has no pyspark.",
            hint="name the Delta Lake that goes with it, as in packages='io.delta:...'.",
        ) from error


def _kept_jars() -> tuple[str, ...]:
    """The JARs of Delta Lake that the engine has fetched for itself; none where it has not, or for another Spark."""
    group, artifact, number = _coordinate(_spark_version()).split(":")
    del group
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = (cache if cache.is_absolute() else Path.home() / ".cache") / "stairwise" / "jars"
    jars = [folder / f"{artifact}-{number}.jar", folder / f"delta-storage-{number}.jar"]
    return tuple(map(str, jars)) if all(jar.is_file() for jar in jars) else ()


def _environment(*, on_one_machine: bool) -> dict[str, str]:
    """The driver runs in the Python of the task, whose packages it needs; so do the workers, on one machine."""
    found = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    if on_one_machine:
        found["PYSPARK_PYTHON"] = sys.executable
        beside = Path(sys.executable).parent
        if shutil.which("spark-submit") is None and (beside / "spark-submit").exists():
            found["PATH"] = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    return found
