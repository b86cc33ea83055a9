"""Whether a source has lost more than anybody would delete: then nothing is written, until somebody says it is so.

A source that was emptied by accident would else empty every table. Windows count, whatever their keys are: to forget
one customer is no reason to stop.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark.compute import events, placed
from stairwise_spark.coverage import EXPIRED
from stairwise_spark.due import Findings
from stairwise_spark.errors import DeletesError, translating
from stairwise_spark.grid import within
from stairwise_spark.names import column
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, common, hull, joined
from stairwise_spark.storage import Storage

MOST = 0.1
"""The share of a tier's windows that may lose all of their rows in one run."""


def check_deletes(plan: Plan, source: PinnedSource, storage: Storage, findings: Findings) -> None:
    """Refuse what would leave empty too many of the windows that hold rows.

    Raises:
        DeletesError: It would.
    """
    for step in plan.steps:
        name = step.tier.name
        spans = _made_before(storage, name, findings.due.get(name, ()))
        if step.reads is not None or not spans or not _may_be_fewer(storage, name, spans, findings):
            continue
        with translating(f"tier {name}"):
            known = storage.stored(name, storage.known[name].version).select(F.unix_micros("window_end").alias("_end"))
            held = within(known, column("_end") - F.lit(1), spans).distinct()
            rows = source.rows(events(step.tier, spans)).select("_time")
            there = placed(rows, step.tier, column("_time"), hull(spans)).select("_end").distinct()
            gone = held.join(there, "_end", "left_anti")
            empty = gone.count()
            if empty and empty > MOST * (total := known.distinct().count()):
                raise DeletesError(
                    f"{empty:,} of {total:,} windows of {name} would lose all of their rows, more than {MOST:.0%}: "
                    "the source has none for them any more.",
                    hint="see what became of the source; if these rows are to go, run with --accept-deletes; "
                    "if the source drops what is old, declare source.retain.",
                    tier=name,
                    windows=empty,
                    of=total,
                )


def _made_before(storage: Storage, tier: str, due: Spans) -> Spans:
    """What is due of what was made once, and may hold rows."""
    if tier not in storage.known:
        return ()
    claimed = (each for each in storage.known[tier].coverage.stretches if each.version < EXPIRED)
    return common(due, joined(Interval(each.start, each.end) for each in claimed))


def _may_be_fewer(storage: Storage, tier: str, spans: Spans, findings: Findings) -> bool:
    """Whether rows may have gone; not if it is known that there are no fewer of them anywhere."""
    trusted = (each for each in storage.known[tier].coverage.stretches if 0 <= each.version < EXPIRED)
    is_trusted = common(spans, joined(Interval(each.start, each.end) for each in trusted)) == spans
    return not (is_trusted and findings.changed and all(each.fewer_rows == 0 for each in findings.changed))
