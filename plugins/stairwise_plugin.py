"""Registers the plugin from this folder where no wheel does: Airflow runs every file here, and two would clash."""

from __future__ import annotations

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="stairwise"):
    from stairwise_airflow.plugin import StairwisePlugin as StairwisePlugin  # noqa: PLC0414 (Airflow takes it from here)
