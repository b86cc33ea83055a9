"""Where a declaration comes from: an object, a file beside the DAG, or the text of one."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG
from airflow.sdk.definitions._internal.contextmanager import DagContext

from stairwise import Rollup

Declared = Rollup | Path | str
"""A rollup, the path of its file, or its YAML, which is known by its line breaks."""


def declared(rollup: Declared, folder: Path | None = None) -> Rollup:
    """The rollup that is meant; a relative path begins in the folder of the DAG's file.

    Args:
        rollup: The rollup.
        folder: Where relative paths begin; None: the folder of the DAG that is being declared.

    Raises:
        StairwiseError: There is no legal declaration; Airflow shows the text as an import error.
    """
    if isinstance(rollup, Rollup):
        return rollup
    if isinstance(rollup, str) and "\n" in rollup:
        return Rollup.from_yaml(rollup)
    return Rollup.from_file((folder or _folder_of(DagContext.get_current())) / rollup)


def _folder_of(dag: DAG | None) -> Path:
    return Path(dag.fileloc).parent if dag is not None and dag.fileloc else Path()
