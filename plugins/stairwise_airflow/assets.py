"""Two assets for each tier: one that a run updates, and one whose events are the windows that it rewrote.

Airflow starts a DAG that waits for an asset by events without a partition, and one that waits for partitions by events
with one; so each kind has its own asset.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from airflow.sdk import Asset, Context
from pydantic import JsonValue

from stairwise import Rollup
from stairwise.declared import DeclaredWindow
from stairwise.instant import format_instant
from stairwise.windowing import windows_ending
from stairwise_airflow.reports import Report, TierDone


def tier_asset(rollup: str, tier: str) -> Asset:
    """The asset of a tier: it changes when a run writes the tier.

    Args:
        rollup: The rollup's name.
        tier: The tier's, such as ``1h_every_15m``.
    """
    return Asset(name=f"{rollup}/{tier}", uri=f"stairwise://{rollup}/{tier}")


def window_asset(rollup: str, tier: str) -> Asset:
    """The asset whose partitions are a tier's windows; a key is a window's start, such as ``2026-03-01T05:00:00``.

    Args:
        rollup: The rollup's name.
        tier: The tier's, such as ``1h``.
    """
    return Asset(name=f"{rollup}/{tier}/windows", uri=f"stairwise://{rollup}/{tier}/windows")


def assets_of(rollup: Rollup, tiers: tuple[str, ...] = ()) -> list[Asset]:
    """The assets of the declared tiers, or of those that are named."""
    names = [window.name for window in rollup.windows if not tiers or window.name in tiers]
    return [make(rollup.name, name) for name in names for make in (tier_asset, window_asset)]


def emit(context: Context, rollup: Rollup, report: Report, most_keys: int) -> set[str]:
    """Tell what a run wrote; what comes back are the names of the assets that have changed.

    Windows without rows are told too: a day is complete though an hour of it had no events, and what was made of rows
    that have gone is to be made again. Where a tier has more rewritten windows than `most_keys`, they are not told one
    by one, and ``partitions`` is null.
    """
    changed: set[str] = set()
    by_name = {window.name: window for window in rollup.windows}
    events = context["outlet_events"]
    for tier in report.tiers:
        window = by_name.get(tier.name)
        keys = [] if window is None else list(islice(_keys(window, tier), most_keys + 1))
        if not keys:
            continue
        is_told = len(keys) <= most_keys
        event = events[tier_asset(rollup.name, tier.name)]
        event.extra = _extra(report, tier, len(keys) if is_told else None)
        changed.add(tier_asset(rollup.name, tier.name).name)
        if is_told:
            each = events[window_asset(rollup.name, tier.name)]
            each.extra = event.extra
            each.add_partitions(keys)
            changed.add(window_asset(rollup.name, tier.name).name)
    return changed


def _extra(report: Report, tier: TierDone, partitions: int | None) -> dict[str, JsonValue]:
    return {
        "run_id": report.run_id,
        "windows": tier.windows,
        "rows": tier.rows,
        "version": tier.version,
        "late_rows": report.late_rows,
        "ranges": [[format_instant(span.start), format_instant(span.end)] for span in tier.covered],
        "partitions": partitions,
    }


def _keys(window: DeclaredWindow, tier: TierDone) -> Iterator[str]:
    """The starts of the windows that were written."""
    for span in tier.covered:
        for found in windows_ending(window.window, span.start, span.end):
            yield format_instant(found.start).removesuffix("Z")
