"""What every test shares: the order, Hypothesis's settings, and where the repository is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadlines and no word about slowness: a busy machine is not a defect.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-goldens", action="store_true", help="rewrite the golden files instead of comparing with them"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow_marks = ("airflow", "spark")
    items.sort(key=lambda item: [item.get_closest_marker(mark) is not None for mark in reversed(slow_marks)])


@pytest.fixture
def write_goldens(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--write-goldens"))


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
