"""What is submitted: the program that Spark runs, and its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from stairwise import optimize
from stairwise.parcel import pack
from stairwise.rollup import Rollup
from stairwise_airflow.errors import refusal

# What Delta Lake needs of a session.
DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# The coordinate by Spark's version; the Spark side verified them together, and a test compares.
DELTA_COORDINATES = {"4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One run of the engine, for any operator that submits a Python file with arguments.

    Attributes:
        file: The program, ``run_plan.py``.
        arguments: All of them texts; the plan among them as one word.
        conf: Settings that Delta Lake needs.
        packages: The Maven coordinate of Delta Lake.
    """

    file: str
    arguments: tuple[str, ...]
    conf: tuple[tuple[str, str], ...] = tuple(DELTA_CONF.items())
    packages: str = DELTA_COORDINATES["4.2"]


def launcher() -> str:
    """The program, as it lies on this machine beside the installed package."""
    found = find_spec("stairwise_spark")
    if found is None or found.origin is None:
        raise refusal(
            "the package stairwise_spark is not installed where the task runs.",
            hint="install Stairwise there, or name the file with application=.",
        )
    return str(Path(found.origin).with_name("run_plan.py"))


@cache
def packed(rollup: Rollup) -> str:
    """The plan for a rollup, as one word."""
    return pack(optimize(rollup))
