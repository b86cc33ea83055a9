"""How the tables of a rollup stand: what is covered, missing, out of date and still open; by metadata alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pyspark.sql import SparkSession

from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.plan import Plan, Step
from stairwise.windowing import Interval, windows_at, windows_ending
from stairwise_spark.contents import Entry, LogFiles, Part, contents, entries, log_files, together
from stairwise_spark.coverage import Coverage, expired, trusted
from stairwise_spark.due import BEGINNING
from stairwise_spark.errors import RunError, SourceError, translating
from stairwise_spark.expressions import direct
from stairwise_spark.shapes import is_object
from stairwise_spark.source import open_source
from stairwise_spark.target import Target, doubtful, older

"""Where a range begins that holds everything until its end."""

# The last run is looked for among so many commits of a table.
_RECENT = 64


class Reason(Enum):
    """Why windows are not sealed: something may still change in them, whatever the source does."""

    DOUBTFUL = "two runs filled it at once: run again"
    DUE = "ended, but not computed"
    DELAY = "ended less than the declared delay ago"
    OPEN = "not ended yet"
    EXPIRED = "kept as long as is declared, and gone"


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The windows that end in a range are not sealed, for a reason."""

    span: Interval
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What is compared with.

    Attributes:
        now: The second in which somebody looks.
        due: What ended by then has to be there.
        start: Nothing before is kept or missed; None: there is no such instant.
        version: The newest version of the source; None if it has none, or could not be asked.
    """

    now: int
    due: int
    start: int | None
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The newest commit of a tier that is ours.

    Attributes:
        run: Who made it.
        at: When, in seconds.
        version: The version of the table.
        wrote: The files that came with it.
    """

    run: str
    at: int
    version: int
    wrote: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStatus:
    """How one tier stands.

    Attributes:
        step: The tier, and what it reads.
        table: Where it is.
        is_there: Whether the table is.
        coverage: What it reflects.
        holds: What is in it; None: its log does not say.
        last: The newest commit; None: there is none, or it is long ago.
        clock: What is compared with.
    """

    step: Step
    table: str
    is_there: bool
    coverage: Coverage
    holds: Part | None
    last: LastRun | None
    clock: Clock

    @property
    def covered(self) -> tuple[Interval, ...]:
        """The ranges that are covered."""
        return trusted(self.coverage)

    @property
    def gaps(self) -> tuple[Interval, ...]:
        """The holes between what is covered; and from the declared start on."""
        known = [*self.covered, *doubtful(self.coverage)]
        start, due = self.clock.start, self.clock.due
        if not known:
            return () if start is None or start >= due else (Interval(start, due),)
        first = min(each.start for each in known) if start is None else start
        return self.coverage.gaps(Interval(first, max(first, *(each.end for each in known))))

    @property
    def stale(self) -> tuple[Interval, ...]:
        """The ranges that reflect an older version of the source than its newest."""
        return older(self.coverage, self.clock.version)

    @property
    def until(self) -> int | None:
        """The end of what is covered."""
        return self.covered[-1].end if self.covered else None

    @property
    def lag_s(self) -> int | None:
        """How long ago the covered ranges end; None if nothing is covered."""
        return None if self.until is None else max(0, self.clock.now - self.until)

    @property
    def unsealed(self) -> tuple[Unsealed, ...]:
        """The ranges in which windows end that may still change, in order of their reasons."""
        now, due, start = self.clock.now, self.clock.due, self.clock.start
        first = self.until if self.until is not None else BEGINNING if start is None else start
        open_until = max((each.end for each in self._windows_at(now)), default=now)
        found = [
            *(Unsealed(span, Reason.DOUBTFUL) for span in doubtful(self.coverage)),
            Unsealed(Interval(first, due), Reason.DUE),
            Unsealed(Interval(max(first, due), now), Reason.DELAY),
            Unsealed(Interval(max(first, now), open_until), Reason.OPEN),
        ]
        return tuple(each for each in found if self._ends_in(each.span))

    def _windows_at(self, instant: int) -> Sequence[Interval]:
        window = self.step.tier.window
        return () if window is None else windows_at(window, instant)

    def _ends_in(self, span: Interval) -> bool:
        """Whether a window ends in a range; of slices, nobody lists them."""
        window = self.step.tier.window
        if span.start >= span.end:
            return False
        if span.start <= BEGINNING or window is None:
            return True
        return next(windows_ending(window, *span), None) is not None

    def to_json(self) -> dict[str, Json]:
        """As the document has it."""
        holds = self.holds
        return {
            "name": self.step.tier.name,
            "kind": self.step.tier.kind.value,
            "window": self.step.tier.text,
            "table": self.table,
            "reads": self.step.reads,
            "covered": ranges(self.covered),
            "gaps": ranges(self.gaps),
            "stale": ranges(self.stale),
            "expired": ranges(expired(self.coverage)),
            "unsealed": [{"range": _range(each.span), "reason": each.reason.value} for each in self.unsealed],
            "lag_s": self.lag_s,
            "rows": None if holds is None else holds.rows,
            "files": None if holds is None else holds.files,
            "bytes": None if holds is None else holds.bytes,
            "last_run": None if self.last is None else _last_run(self.last),
            "exists": self.is_there,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the tables of a rollup stand.

    Attributes:
        rollup: Its name.
        tiers: All tiers, parents first.
        clock: What is compared with.
        report: What the newest run said of itself; None: there is no report.
        notes: What else there is to know, as sentences.
        valid_from: From which instant on columns are filled, by name; others are throughout.
    """

    rollup: str
    tiers: tuple[TierStatus, ...]
    clock: Clock
    report: Mapping[str, object] | None
    notes: tuple[str, ...]
    valid_from: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def has_gaps(self) -> bool:
        """Whether a tier has a gap."""
        return any(tier.gaps for tier in self.tiers)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was made yet."""
        return not any(tier.coverage.stretches for tier in self.tiers)

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.status/1``."""
        return {
            "schema": "stairwise.status/1",
            "rollup": self.rollup,
            "at": format_instant(self.clock.now),
            "source": {"version": self.clock.version},
            "tiers": [tier.to_json() for tier in self.tiers],
            "last_run": None if self.report is None else _summary(self.report),
            "valid_from": {name: format_instant(since) for name, since in self.valid_from.items()},
            "notes": list(self.notes),
        }


def status(spark: SparkSession, plan: Plan, now: int | None = None) -> Status:
    """How the tables of a plan's rollup stand; nothing is written, and no event is read.

    Args:
        spark: A session in UTC.
        plan: Of the declaration.
        now: The second to compare with, if not the present one.

    Raises:
        RunError: There is something that is not ours.
    """
    version, identity, notes = _source(spark, plan)
    target = Target.found(spark, plan, identity)
    rollup = target.rollup
    at = int(time.time()) if now is None else now
    clock = Clock(now=at, due=at - rollup.delay.seconds, start=rollup.start, version=version)
    with translating():
        tables = target.storage.tables()
        logs = log_files(tables.values())
        holding = contents(logs)
        histories = entries({table: max(0, log.newest - _RECENT) for table, log in logs.items()})
    tiers: list[TierStatus] = []
    for step in target.plan.steps:
        name = step.tier.name
        table = tables.get(name)
        if table is not None:
            notes += _lost(target, name, logs[table])
        tiers.append(
            TierStatus(
                step=step,
                table=str(target.storage.place(name)),
                is_there=table is not None,
                coverage=target.coverage(name),
                holds=_held(target, name, () if table is None else holding[table]),
                last=None if table is None else _last(target, name, histories[table]),
                clock=clock,
            )
        )
    newest = max((tier.last.run for tier in tiers if tier.last is not None), default="")
    valid_from = target.storage.ledger.summary.valid_from
    notes += [f"Column {name} is filled from {format_instant(since)} on." for name, since in valid_from.items()]
    return Status(
        rollup=rollup.name,
        tiers=tuple(tiers),
        clock=clock,
        report=_report(target, newest),
        notes=tuple(notes),
        valid_from=valid_from,
    )


def ranges(spans: Sequence[Interval]) -> list[Json]:
    """Ranges as documents have them."""
    return [_range(span) for span in spans]


def _source(spark: SparkSession, plan: Plan) -> tuple[int | None, str | None, list[str]]:
    """The newest version of the source, and its identity; and what there is to say if it cannot be asked."""
    if plan.declaration is None:
        return None, None, []
    try:
        source = open_source(spark, plan.declaration, direct)
    except (SourceError, RunError) as error:
        said = f"The source could not be asked for its version, so nothing is told to be stale: {error.message}"
        return None, None, [said]
    said = "The source has no versions, so nobody knows without reading it whether it has changed."
    return source.version, source.identity, [] if source.version is not None else [said]


def _lost(target: Target, tier: str, log: LogFiles) -> list[str]:
    """That commits are gone which nobody has summed up, if it is so: their claims are lost."""
    first = min(log.commits, default=log.newest + 1)
    if target.recorded.get(tier, -1) >= first - 1:
        return []
    return [
        (
            f"Tier {tier}: the log of its table begins with version {first}, and the bookkeeping knows nothing of the "
            "versions before. What they covered counts as missing; a backfill makes it again."
        )
    ]


def _held(target: Target, tier: str, parts: Sequence[Part] | None) -> Part | None:
    if parts is None:
        return None
    return together([each for each in parts if not target.storage.arrangement.is_shared or each.window == tier])


def _last(target: Target, tier: str, history: Sequence[Entry]) -> LastRun | None:
    for entry in reversed(history):
        if entry.claim is not None and any(name == tier for name, _ in entry.claim.tiers):
            wrote = _held(target, tier, entry.added)
            if wrote is not None:
                return LastRun(run=entry.claim.run, at=entry.at, version=entry.version, wrote=wrote)
    return None


def _report(target: Target, since: str) -> Mapping[str, object] | None:
    with translating():
        found = target.storage.ledger.reports(since) if since else ()
    document: object = json.loads(found[0]) if found else None
    return document if is_object(document) else None


def _summary(report: Mapping[str, object]) -> dict[str, Json]:
    kept = ("run_id", "range", "wrote_anything", "seconds")
    found: dict[str, Json] = json.loads(json.dumps({name: report.get(name) for name in kept}))
    return found


def _last_run(last: LastRun) -> dict[str, Json]:
    return {
        "run_id": last.run,
        "at": format_instant(last.at),
        "version": last.version,
        "rows_written": last.wrote.rows,
        "files_written": last.wrote.files,
        "bytes_written": last.wrote.bytes,
    }


def _range(span: Interval) -> list[Json]:
    return [format_instant(span.start), format_instant(span.end)]
