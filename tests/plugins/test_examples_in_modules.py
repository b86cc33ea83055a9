"""The examples in the docstrings of the Airflow side hold."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import stairwise_airflow

pytestmark = pytest.mark.airflow

MODULES = sorted(file.stem for file in Path(str(stairwise_airflow.__file__)).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_they_hold(module: str) -> None:
    result = doctest.testmod(import_module(f"stairwise_airflow.{module}"))
    assert not result.failed
