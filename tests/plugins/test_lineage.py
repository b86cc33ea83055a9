"""What OpenLineage is told of a run, by its own provider."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any  # noqa: TID251 - what others have no types for

import pytest
from airflow.providers.openlineage.extractors.base import DefaultExtractor

from stairwise.declared import Catalog
from stairwise_airflow.lineage import lineage
from stairwise_airflow.reports import Report
from tests.plugins.declared import REPORT, BashRollup, declared, program

pytestmark = pytest.mark.airflow

REPORTED = Report.of(REPORT)


def test_the_provider_takes_what_a_task_tells(tmp_path: Path) -> None:
    task = BashRollup(task_id="rollup", rollup=declared(), program=program(tmp_path), bash_command="")
    assert DefaultExtractor(task).extract_on_complete(None) is None
    task.report = REPORTED
    told = DefaultExtractor(task).extract_on_complete(None)
    assert told is not None
    (read,) = told.inputs
    assert (read.namespace, read.name) == ("file", "lake/trips")
    assert read.inputFacets["inputStatistics"].rowCount == 60
    # The days were not written.
    assert rows_of(told.outputs) == {("file", "lake/rollups/trips/15m"): 12, ("file", "lake/rollups/trips/1h"): 3}


def rows_of(datasets: Iterable[Any]) -> dict[tuple[str, str], int]:
    """The rows that were written to each dataset, whose types their package does not tell."""
    return {(each.namespace, each.name): each.outputFacets["outputStatistics"].rowCount for each in datasets}


@pytest.mark.parametrize(
    ("changes", "tables"),
    [
        ({"layout": "one_table"}, {("file", "lake/rollups/trips"): 15}),
        ({"target": "s3a://lake/out/"}, {("s3a://lake", "out/15m"): 12, ("s3a://lake", "out/1h"): 3}),
        ({"target": Catalog("db")}, {("spark_catalog", "db.15m"): 12, ("spark_catalog", "db.1h"): 3}),
        ({"target": Catalog("db"), "layout": "one_table"}, {("spark_catalog", "db.trips"): 15}),
    ],
)
def test_tables_have_the_names_that_others_know(changes: dict[str, object], tables: dict[tuple[str, str], int]) -> None:
    rollup = replace(declared(), **changes)  # type: ignore[arg-type]
    told = lineage(rollup, REPORTED)
    assert rows_of(told.outputs) == tables
