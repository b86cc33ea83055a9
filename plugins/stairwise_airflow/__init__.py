"""The Airflow side of Stairwise: it knows the optimizer, and Spark by name only.

Importing this package imports no Airflow: every ``import airflow`` reads :mod:`stairwise_airflow.provider`, and has not
finished then. So its names are looked up when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stairwise_airflow.required import check_airflow

if TYPE_CHECKING:
    from stairwise_airflow.adapter import submitted_by
    from stairwise_airflow.application import Application
    from stairwise_airflow.assets import tier_asset, window_asset
    from stairwise_airflow.backfill import backfill_dag
    from stairwise_airflow.operators import RollupMaintenanceOperator, RollupOperator, RollupVerifyOperator
    from stairwise_airflow.partitions import RollupWindow, RollupWindowMapper
    from stairwise_airflow.sensors import RollupStatusSensor
    from stairwise_airflow.task_group import RollupTaskGroup

__all__ = [
    "Application",
    "RollupMaintenanceOperator",
    "RollupOperator",
    "RollupStatusSensor",
    "RollupTaskGroup",
    "RollupVerifyOperator",
    "RollupWindow",
    "RollupWindowMapper",
    "backfill_dag",
    "submitted_by",
    "tier_asset",
    "window_asset",
]

# The modules of the names above; a test compares the two.
_MODULES = {
    "Application": "application",
    "RollupMaintenanceOperator": "operators",
    "RollupOperator": "operators",
    "RollupStatusSensor": "sensors",
    "RollupTaskGroup": "task_group",
    "RollupVerifyOperator": "operators",
    "RollupWindow": "partitions",
    "RollupWindowMapper": "partitions",
    "backfill_dag": "backfill",
    "submitted_by": "adapter",
    "tier_asset": "assets",
    "window_asset": "assets",
}


def __getattr__(name: str) -> object:
    """One of the public names, from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_airflow()
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
