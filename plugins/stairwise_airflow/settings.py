"""The section ``[stairwise]`` of Airflow's configuration, with its defaults; what a task says itself wins."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.sdk.configuration import conf

from stairwise.errors import UsageError
from stairwise_airflow.provider import OPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is configured.

    Attributes:
        conn_id: The connection of tasks that name none.
        application: The program that Spark runs; empty: the one beside the package.
        reports: A folder, on any store, where runs leave their reports; empty: only their log has them.
        most_partition_events: A run tells the windows that it rewrote one by one up to this number of a tier.
    """

    conn_id: str
    application: str
    reports: str
    most_partition_events: int

    @classmethod
    def read(cls) -> Settings:
        """The settings as they are now."""
        return cls(
            conn_id=_text("conn_id"),
            application=_text("application"),
            reports=_text("reports"),
            most_partition_events=_count("most_partition_events"),
        )


def _count(name: str) -> int:
    text = _text(name).strip()
    if not text.isdecimal():
        raise UsageError(
            f"[stairwise] {name} = {text}: it is not a whole number.", hint=f"write {OPTIONS[name]['default']}."
        )
    return int(text)


def _text(name: str) -> str:
    # Airflow knows a provider's defaults only where it has looked for providers, which a task need not have done.
    return str(conf.get("stairwise", name, fallback=OPTIONS[name]["default"]))
