"""What a run does and did: events as it goes on, and one value in the end that JSON carries and the target keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.plan import Step
from stairwise.windowing import Interval
from stairwise_spark.spans import Spans, joined
from stairwise_spark.writes import Written


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """What became of one tier.

    Attributes:
        name: The tier.
        reads: Its parent; None: the raw rows.
        ranges: The windows that ended in these were written.
        windows: So many different windows have rows among those written; None: they were too many to count.
        rows: The rows written.
        files: The files written.
        bytes: Their size.
        version: The newest version of its table; None if the run did not touch it.
        predicted_rows: What the plan expected for the ranges; None if it does not count rows.
        seconds: How long writing it took, with all that was computed for it, beside other tables.
        wrote: Whether there was a commit.
    """

    name: str
    reads: str | None
    predicted_rows: float | None
    ranges: tuple[Interval, ...] = ()
    windows: int | None = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    version: int | None = None
    seconds: float = 0.0
    wrote: bool = False

    @classmethod
    def idle(cls, step: Step) -> TierReport:
        """Of a tier for which there was nothing to do."""
        return cls(name=step.tier.name, reads=step.reads, predicted_rows=0.0)

    @classmethod
    def of(cls, step: Step, period_s: float, due: Spans, ends: Spans, written: Written | None) -> TierReport:
        """Of a tier that was due.

        Args:
            step: The tier.
            period_s: The time for which the plan says how many rows it has.
            due: What was.
            ends: What of that had to be computed.
            written: What became of it; None: it was not written.
        """
        rows, seconds = step.cost.rows_written, sum(span.end - span.start for span in ends)
        predicted = None if rows is None else float(rows * seconds / period_s)
        report = replace(cls.idle(step), predicted_rows=predicted, ranges=due)
        if written is None:
            return report
        return replace(
            report,
            windows=written.windows,
            rows=written.rows,
            files=written.files,
            bytes=written.bytes,
            version=written.version,
            seconds=written.seconds,
            wrote=written.wrote,
        )

    def merged(self, later: TierReport) -> TierReport:
        """Both together, of which the other came later."""
        return replace(
            later,
            ranges=joined((*self.ranges, *later.ranges)),
            windows=None if self.windows is None or later.windows is None else self.windows + later.windows,
            rows=self.rows + later.rows,
            files=self.files + later.files,
            bytes=self.bytes + later.bytes,
            version=self.version if later.version is None else later.version,
            predicted_rows=_sum(self.predicted_rows, later.predicted_rows),
            seconds=self.seconds + later.seconds,
            wrote=self.wrote or later.wrote,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What was read of the source.

    Attributes:
        version: The version that was read; None if it has none.
        rows: The rows, each time that they were read.
        files: The files that hold them; None: it does not say.
        bytes: The size of these files; None: it does not say, or they are too many to ask.
        changed: When the events happened that were not in the tables yet, or in another way.
        found: How that was found out, and why so, once for each version that tables reflected.
    """

    version: int | None
    rows: int = 0
    files: int | None = 0
    bytes: int | None = 0
    changed: Spans = ()
    found: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LookedAfter:
    """What a run did for the files of its tables.

    Attributes:
        partitions: In so many, small files were put together.
        left: Why some were left; empty: none was.
    """

    partitions: int = 0
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a run did.

    Attributes:
        rollup: The rollup.
        run_id: Names the run in the tables' history.
        span: What was asked for, as far as windows have ended.
        source: What was read.
        tiers: What became of each tier.
        late_rows: Rows that came after windows that hold them had been made; None: the source cannot tell.
        ignored_rows: Those of them that came too late to change anything.
        repaired_rows: Those of them that were merged into windows of which the source has dropped rows.
        unrepairable_rows: Those of them that belong to such windows, and could not be merged into all of these.
        lost: The windows that were due, and that nothing gives any more, by tier.
        expired: The windows that were kept as long as is declared, and have gone, by tier.
        looked_after: What was done for the files of the tables, once all was written.
        null_times: Rows without a time, left out.
        future_rows: Rows dated further ahead than is declared, which are in no window yet.
        seconds: From when the session was ready.
        startup_seconds: Until then.
        is_dry: Whether all of it is only what would be done.
    """

    rollup: str
    run_id: str
    span: Interval
    source: SourceReport
    tiers: tuple[TierReport, ...]
    null_times: int
    seconds: float
    late_rows: int | None = 0
    ignored_rows: int | None = 0
    repaired_rows: int = 0
    unrepairable_rows: int | None = 0
    lost: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    expired: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    looked_after: LookedAfter = field(default_factory=LookedAfter)
    future_rows: int = 0
    startup_seconds: float = 0.0
    is_dry: bool = False

    @property
    def wrote_anything(self) -> bool:
        """Whether a table of a tier changed."""
        return any(tier.wrote for tier in self.tiers)

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.run/1``."""
        return {
            "schema": "stairwise.run/1",
            "rollup": self.rollup,
            "run_id": self.run_id,
            "range": _range(self.span),
            "source": {
                "version": self.source.version,
                "rows_read": self.source.rows,
                "files_read": self.source.files,
                "bytes_read": self.source.bytes,
                "changed_ranges": [_range(span) for span in self.source.changed],
                "found_by": [{"way": way, "why": why} for way, why in self.source.found],
            },
            "tiers": [_tier(tier) for tier in self.tiers],
            "late_rows": self.late_rows,
            "ignored_rows": self.ignored_rows,
            "repaired_rows": self.repaired_rows,
            "unrepairable_rows": self.unrepairable_rows,
            "lost": _by_tier(self.lost),
            "expired": _by_tier(self.expired),
            "partitions_compacted": self.looked_after.partitions,
            "compaction_left": self.looked_after.left or None,
            "null_times": self.null_times,
            "future_rows": self.future_rows,
            "seconds": round(self.seconds, 3),
            "startup_seconds": round(self.startup_seconds, 3),
            "wrote_anything": self.wrote_anything,
            "dry_run": self.is_dry,
        }


def _by_tier(ranges: Mapping[str, Spans]) -> dict[str, Json]:
    return {tier: [_range(span) for span in spans] for tier, spans in ranges.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun:
    """A run knows what to do.

    Attributes:
        span: Its range.
        chunks: In so many chunks.
        tiers: All tiers, parents first.
    """

    span: Interval
    chunks: int
    tiers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkBegun:
    """A chunk is about to be computed, for the first time or, since another run was faster, again.

    Attributes:
        number: Of the chunk, from 1.
        span: Its range.
        due: The tiers that will be written.
    """

    number: int
    span: Interval
    due: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierWritten:
    """A tier has the windows of the chunk; told by whichever thread wrote it.

    Attributes:
        number: Of the chunk.
        tier: Its name.
        rows: The rows written.
        bytes: Their size.
        seconds: How long it took.
    """

    number: int
    tier: str
    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkDone:
    """All that was due in a chunk is written.

    Attributes:
        number: Of the chunk.
    """

    number: int


Event = RunBegun | ChunkBegun | TierWritten | ChunkDone
Progress = Callable[[Event], None]
"""Is told what happens, by several threads at once; for it, a run does not wait."""


def silent(_event: Event) -> None:
    """Tell nobody."""


def telling(progress: Progress, number: int) -> Callable[[Written], None]:
    """Tells of each tier that is written in a chunk."""

    def tell(written: Written) -> None:
        progress(
            TierWritten(
                number=number, tier=written.tier, rows=written.rows, bytes=written.bytes, seconds=written.seconds
            )
        )

    return tell


def _tier(tier: TierReport) -> dict[str, Json]:
    return {
        "name": tier.name,
        "reads": tier.reads,
        "windows_written": tier.windows,
        "rows_written": tier.rows,
        "files_written": tier.files,
        "bytes_written": tier.bytes,
        "version": tier.version,
        "seconds": round(tier.seconds, 3),
        "predicted_rows": None if tier.predicted_rows is None else round(tier.predicted_rows),
        "covered": [_range(span) for span in tier.ranges],
    }


def _range(span: Interval) -> list[Json]:
    return [format_instant(span.start), format_instant(span.end)]


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
