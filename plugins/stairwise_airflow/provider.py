"""What Airflow's providers manager reads: one dictionary, and no import of Airflow, which has not finished its own."""

from __future__ import annotations


def get_provider_info() -> dict[str, str]:
    """Stairwise, as ``airflow providers list`` shows it.

    Airflow expects the package name to be the distribution's and, with ``-`` as ``_``, an importable module.

    Returns:
        The fields of Airflow's provider schema that are not empty.
    """
    return {
        "package-name": "stairwise",
        "name": "Stairwise",
        "description": "Time-windowed rollups from the cheapest hierarchy of tiers, with Spark and Delta Lake",
    }
