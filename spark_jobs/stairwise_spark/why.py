"""Where the windows that hold an instant come from: who wrote them, of which version, and what they were made of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.plan import Plan, Step
from stairwise.windowing import Interval
from stairwise.wording import label, parent_name, remarks, way
from stairwise_spark.compute import held_by
from stairwise_spark.contents import Entry
from stairwise_spark.coverage import DOUBTFUL, EXPIRED, Coverage
from stairwise_spark.errors import translating
from stairwise_spark.histories import history
from stairwise_spark.names import column
from stairwise_spark.recomputed import BOUNDS, ROWS
from stairwise_spark.status import Reason
from stairwise_spark.target import Target
from stairwise_spark.writes import instant

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where one window comes from.

    Attributes:
        window: Its bounds.
        reason: Why it is not sealed; None: it is.
        version: What is claimed of it: a version of the source, or that it is doubtful or unfinished; None: nothing.
        entry: The commit that wrote it; None: nobody did, or the log no longer says.
        written: The version of the source from which that commit made it.
        rows: How many rows it has in the table.
        source_rows: How many rows of the source these hold; None: nobody knows.
    """

    window: Interval
    reason: Reason | None
    version: int | None
    entry: Entry | None
    written: int | None
    rows: int
    source_rows: int | None

    @property
    def reflected(self) -> int | None:
        """The version of the source that it reflects, or a later one; None: nobody says."""
        return self.version if self.version is not None and DOUBTFUL < self.version < EXPIRED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What there is to say of a tier at an instant.

    Attributes:
        plan: The plan that the tables follow.
        step: The tier, and what it reads.
        table: Where it is.
        at: The instant.
        origins: Of the windows that hold it, in order.
    """

    plan: Plan
    step: Step
    table: str
    at: int
    origins: tuple[Origin, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the tier is computed the way it is, as sentences."""
        why = self.step.why[:1].upper() + self.step.why[1:]
        said = tuple(remarks(self.plan, self.step))
        return said if not why or any(each.startswith(why) for each in said) else (f"{why.removesuffix('.')}.", *said)

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.why/1``."""
        runner_up = self.step.runner_up
        return {
            "schema": "stairwise.why/1",
            "rollup": self.plan.rollup,
            "tier": self.step.tier.name,
            "window": self.step.tier.text,
            "instant": format_instant(self.at),
            "table": self.table,
            "reads": self.step.reads,
            "how": self.step.how.value,
            "why": list(self.reasons),
            "runner_up": None if runner_up is None else {"reads": runner_up.reads, "cost": float(runner_up.cost)},
            "windows": [_origin(each) for each in self.origins],
        }

    def told(self) -> str:
        """The same for people."""
        parent = next((step.tier for step in self.plan.steps if step.tier.name == self.step.reads), None)
        made = way(self.step.tier, parent, self.step.how)
        name = f"{self.plan.rollup}: {label(self.step.tier)} at {format_instant(self.at)}"
        of = "" if parent is None else f" of {parent_name(self.plan, self.step.reads)}"
        lines = [name, f"  {made}{of}; table {self.table}"]
        lines += [f"  {each}" for each in self.reasons]
        if not self.origins:
            lines += ["", "  No window holds this instant."]
        for each in self.origins:
            lines += ["", *(f"  {line}" for line in _told(each))]
        return "\n".join(lines)


def why(spark: SparkSession, plan: Plan, tier: str, at: int, now: int | None = None) -> Why:
    """Where the windows of a tier come from that hold an instant; nothing is written, and no event is read.

    Args:
        spark: A session in UTC.
        plan: Of the declaration.
        tier: Its name.
        at: The instant, in seconds.
        now: The second to compare with, if not the present one.

    Raises:
        UsageError: There is no such tier.
        RunError: There is something that is not ours.
    """
    target = Target.found(spark, plan)
    step = target.steps([tier])[0]
    windows = held_by(step.tier, at)
    present = int(time.time()) if now is None else now
    with translating():
        entries = _entries(target, tier, windows)
        held = _rows(target, tier, windows)
    delay = target.rollup.delay.seconds
    coverage = target.coverage(tier)
    origins: list[Origin] = []
    for window in windows:
        entry = next((each for each in entries if _claimed(each, tier, window) is not None), None)
        rows, source_rows = held.get(window, (0, None))
        origins.append(
            Origin(
                window=window,
                reason=_reason(coverage, window, present, delay),
                version=_version(coverage, window),
                entry=entry,
                written=None if entry is None else _claimed(entry, tier, window),
                rows=rows,
                source_rows=source_rows,
            )
        )
    return Why(plan=target.plan, step=step, table=str(target.storage.place(tier)), at=at, origins=tuple(origins))


def _reason(coverage: Coverage, window: Interval, now: int, delay: int) -> Reason | None:
    """Why a window is not sealed; None if it is."""
    version = _version(coverage, window)
    if version is not None and version >= DOUBTFUL:
        return {DOUBTFUL: Reason.DOUBTFUL, EXPIRED: Reason.EXPIRED}.get(version)
    if window.end > now:
        return Reason.OPEN
    return Reason.DELAY if window.end > now - delay else Reason.DUE


def _version(coverage: Coverage, window: Interval) -> int | None:
    """The version that is claimed for a window; it belongs to the ranges in which it ends."""
    return next((each.version for each in coverage.within(Interval(window.end - 1, window.end)).stretches), None)


def _entries(target: Target, tier: str, windows: Sequence[Interval]) -> list[Entry]:
    """The commits of a tier's table, the newest first, as far back as one of them wrote each window."""
    table = target.storage.tables().get(tier)
    if table is None or not windows:
        return []
    found: list[Entry] = []
    missing = {window for window in windows if _version(target.coverage(tier), window) is not None}
    for entry in history(table):
        found.append(entry)
        missing = {window for window in missing if _claimed(entry, tier, window) is None}
        if not missing:
            break
    return found


def _claimed(entry: Entry, tier: str, window: Interval) -> int | None:
    """The version of the source that a commit claims for a window; None: it did not write it."""
    claimed = () if entry.claim is None else entry.claim.tiers
    return next((_version(coverage, window) for name, coverage in claimed if name == tier), None)


def _rows(target: Target, tier: str, windows: Sequence[Interval]) -> dict[Interval, tuple[int, int | None]]:
    """How many rows the windows have, and how many of the source these hold."""
    state = target.states.get(tier)
    if state is None or not windows:
        return {}
    hull = Interval(windows[0].start, windows[-1].end)
    rows = target.storage.stored(tier, state.version, hull)
    start, end = (F.unix_micros(name).alias(short) for name, short in zip(BOUNDS, ("start", "end"), strict=True))
    near = rows.where(f"window_start <= {instant(windows[-1].start)} AND window_end >= {instant(windows[0].end)}")
    of_source = F.when(F.count(ROWS) == F.count(F.lit(1)), F.sum(column(ROWS))).alias("source_rows")
    counts = near.groupBy(start, end).agg(F.count(F.lit(1)).alias("rows"), of_source).collect()
    return {
        Interval(row["start"] // _MICROS, row["end"] // _MICROS): (row["rows"], row["source_rows"]) for row in counts
    }


def _origin(origin: Origin) -> dict[str, Json]:
    entry = origin.entry
    return {
        "window_start": format_instant(origin.window.start),
        "window_end": format_instant(origin.window.end),
        "sealed": origin.reason is None,
        "reason": None if origin.reason is None else origin.reason.value,
        "source_version": origin.reflected,
        "run_id": None if entry is None or entry.claim is None else entry.claim.run,
        "written_at": None if entry is None else format_instant(entry.at),
        "table_version": None if entry is None else entry.version,
        "rows": origin.rows,
        "source_rows": origin.source_rows,
    }


def _told(origin: Origin) -> Iterator[str]:
    start, end = map(format_instant, origin.window)
    yield f"{start} to {end}: {'sealed' if origin.reason is None else f'not sealed: {origin.reason.value}'}"
    of = "" if origin.source_rows is None else f", of {origin.source_rows:,} in the source"
    yield f"  {origin.rows:,} row{'' if origin.rows == 1 else 's'}{of}"
    entry = origin.entry
    if entry is not None and entry.claim is not None:
        yield f"  written by run {entry.claim.run} at {format_instant(entry.at)}, as version {entry.version}"
    elif origin.version is not None:
        yield "  no commit of the log wrote it: it was and is empty, or it was written before the log begins"
    if origin.reflected is not None:
        yield f"  reflects version {origin.reflected} of the source{_since(origin)}"


def _since(origin: Origin) -> str:
    """That the version was advanced without a commit, if it was: nothing in the window had changed."""
    if origin.written is None or origin.reflected is None or not DOUBTFUL < origin.written < origin.reflected:
        return ""
    return f"; it was written from version {origin.written}, and nothing in it has changed since"
