"""Which Airflow there must be, said before another one fails by a name that it lacks."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from stairwise.errors import UsageError

AIRFLOW = "3.3"


@cache
def check_airflow() -> None:
    """The Airflow that is needed is installed.

    Raises:
        UsageError: There is another one, or none.
    """
    found = _installed()
    if found.split(".")[:2] != AIRFLOW.split("."):
        raise UsageError(
            f"Stairwise needs Airflow {AIRFLOW}, and there is {f'Airflow {found}' if found else 'none'}.",
            hint="pip install 'stairwise[airflow]' brings the one that was tested.",
            airflow=found,
        )


def _installed() -> str:
    """The version of Airflow; empty: there is none. Before 3 it was one distribution."""
    for name in ("apache-airflow-core", "apache-airflow"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""
