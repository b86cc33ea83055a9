"""Whether a source has lost more than anybody would delete: then nothing is written, until somebody says it is so.

A source that was emptied by accident would else empty every table. How much is too much is declared, as a share of the
sealed windows of a tier: those that had ended when they were written. They count whatever their keys are: to forget one
customer is no reason to stop.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from stairwise.plan import Plan
from stairwise.share import Share
from stairwise.windowing import Interval
from stairwise_spark.compute import events, placed
from stairwise_spark.coverage import DOUBTFUL, EXPIRED
from stairwise_spark.due import Findings
from stairwise_spark.errors import DeletesError, translating
from stairwise_spark.grid import within
from stairwise_spark.names import column
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, common, hull, joined
from stairwise_spark.storage import Storage


def check_deletes(plan: Plan, most: Share | None, source: PinnedSource, storage: Storage, findings: Findings) -> None:
    """Refuse what would leave empty too many of the sealed windows that hold rows.

    Args:
        plan: The tiers.
        most: The share of a tier's windows that may lose all of their rows in one run; None: all may.
        source: What is left.
        storage: Where the windows are.
        findings: What is due.

    Raises:
        DeletesError: It would.
    """
    if most is None:
        return
    for step in plan.steps:
        name = step.tier.name
        sealed = _sealed(storage, name)
        spans = common(findings.due.get(name, ()), sealed)
        # A window is looked at in the finest table that still has its rows.
        is_finest = step.reads is None or _has_expired(storage, step.reads)
        if not is_finest or not spans or not _may_be_fewer(storage, name, spans, findings):
            continue
        with translating(f"tier {name}"):
            known = storage.stored(name, storage.known[name].version).select(F.unix_micros("window_end").alias("_end"))
            known = within(known, column("_end") - F.lit(1), sealed).distinct()
            held = within(known, column("_end") - F.lit(1), spans)
            rows = source.rows(events(step.tier, spans)).select("_time")
            there = placed(rows, step.tier, column("_time"), hull(spans)).select("_end").distinct()
            gone = held.join(there, "_end", "left_anti")
            empty = gone.count()
            if empty and empty > most.part * (total := known.count()):
                raise DeletesError(
                    f"{empty:,} of {total:,} windows of {name} would lose all of their rows, more than {most}: "
                    "the source has none for them any more.",
                    hint="see what became of the source; if these rows are to go, run with --accept-deletes; "
                    "if so many may go in any run, declare a larger share as deletes; "
                    "if the source drops what is old, declare source.retain.",
                    tier=name,
                    windows=empty,
                    of=total,
                )


def _sealed(storage: Storage, tier: str) -> Spans:
    """The windows that were made once they had ended, and may hold rows, as ranges of their ends."""
    if tier not in storage.known:
        return ()
    claimed = (each for each in storage.known[tier].coverage.stretches if DOUBTFUL <= each.version < EXPIRED)
    return joined(Interval(each.start, each.end) for each in claimed)


def _has_expired(storage: Storage, tier: str) -> bool:
    """Whether windows of a tier have gone since they were kept long enough."""
    return tier in storage.known and any(each.version == EXPIRED for each in storage.known[tier].coverage.stretches)


def _may_be_fewer(storage: Storage, tier: str, spans: Spans, findings: Findings) -> bool:
    """Whether rows may have gone; not if it is known that there are no fewer of them anywhere."""
    trusted = (each for each in storage.known[tier].coverage.stretches if 0 <= each.version < EXPIRED)
    is_trusted = common(spans, joined(Interval(each.start, each.end) for each in trusted)) == spans
    return not (is_trusted and findings.changed and all(each.fewer_rows == 0 for each in findings.changed))
