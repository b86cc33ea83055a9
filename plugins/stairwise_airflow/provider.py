"""What Airflow's providers manager reads: one dictionary, and no import of Airflow, which has not finished its own."""

from __future__ import annotations

from typing import TypedDict


class Option(TypedDict):
    """An option of the configuration, as Airflow's provider schema has it."""

    description: str
    version_added: str
    type: str
    example: str | None
    default: str


class Section(TypedDict):
    """A section of the configuration."""

    description: str
    options: dict[str, Option]


ProviderInfo = TypedDict(
    "ProviderInfo",
    {
        "package-name": str,
        "name": str,
        "description": str,
        "extra-links": list[str],
        "cli": list[str],
        "config": dict[str, Section],
    },
)

OPTIONS: dict[str, Option] = {
    "conn_id": {
        "description": "The Spark connection of tasks that name none.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "spark_cluster",
        "default": "spark_default",
    },
    "application": {
        "description": "The program that Spark runs; by default run_plan.py of the installed package. "
        "Where the driver runs elsewhere, a place that it can read.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "s3://jobs/run_plan.py",
        "default": "",
    },
    "reports": {
        "description": "A folder, on any store that Spark and Airflow both reach, where runs leave their reports. "
        "Needed where Airflow does not see what the driver prints, as in cluster mode.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "s3://jobs/reports",
        "default": "",
    },
    "most_partition_events": {
        "description": "A run tells Airflow which windows of a tier it rewrote, one event each, up to this number.",
        "version_added": "0.1.0",
        "type": "integer",
        "example": None,
        "default": "1000",
    },
}


def get_provider_info() -> ProviderInfo:
    """Stairwise, as ``airflow providers list`` shows it.

    Airflow expects the package name to be the distribution's and, with ``-`` as ``_``, an importable module.

    Returns:
        The fields of Airflow's provider schema that are not empty.
    """
    return {
        "package-name": "stairwise",
        "name": "Stairwise",
        "description": "Time-windowed rollups from the cheapest hierarchy of tiers, with Spark and Delta Lake",
        "extra-links": ["stairwise_airflow.links.ReportLink"],
        "cli": ["stairwise_airflow.cli_commands.commands"],
        "config": {"stairwise": {"description": "Rollups: what tasks use that say nothing else.", "options": OPTIONS}},
    }
