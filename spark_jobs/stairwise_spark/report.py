"""What a run did: one value that the terminal shows, JSON carries, and the target keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.windowing import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """What became of one tier.

    Attributes:
        name: The tier.
        reads: Its parent; None: the raw rows.
        ranges: The windows that ended in these were written.
        rows: The rows written.
        files: The files written.
        bytes: Their size.
        version: The newest version of its table; None if the run did not touch it.
        predicted_rows: What the plan expected for the ranges; None if it does not count rows.
        seconds: How long computing and writing took, beside others.
        wrote: Whether there was a commit.
    """

    name: str
    reads: str | None
    predicted_rows: float | None
    ranges: tuple[Interval, ...] = ()
    rows: int = 0
    files: int = 0
    bytes: int = 0
    version: int | None = None
    seconds: float = 0.0
    wrote: bool = False

    def merged(self, later: TierReport) -> TierReport:
        """Both together, of which the other came later."""
        joined = (*self.ranges, *later.ranges)
        return replace(
            later,
            ranges=tuple(_joined(joined)),
            rows=self.rows + later.rows,
            files=self.files + later.files,
            bytes=self.bytes + later.bytes,
            version=self.version if later.version is None else later.version,
            predicted_rows=_sum(self.predicted_rows, later.predicted_rows),
            seconds=self.seconds + later.seconds,
            wrote=self.wrote or later.wrote,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a run did.

    Attributes:
        rollup: The rollup.
        run_id: Names the run in the tables' history.
        span: What was asked for, as far as windows have ended.
        source_version: The version of the source that was read; None if it has none.
        rows_read: Rows of the source, each time that they were read.
        tiers: What became of each tier.
        null_times: Rows without a time, left out.
        seconds: From when the session was ready.
        startup_seconds: Until then.
        is_dry: Whether all of it is only what would be done.
    """

    rollup: str
    run_id: str
    span: Interval
    source_version: int | None
    rows_read: int
    tiers: tuple[TierReport, ...]
    null_times: int
    seconds: float
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
            "source": {"version": self.source_version, "rows_read": self.rows_read},
            "tiers": [_tier(tier) for tier in self.tiers],
            "null_times": self.null_times,
            "seconds": round(self.seconds, 3),
            "startup_seconds": round(self.startup_seconds, 3),
            "wrote_anything": self.wrote_anything,
            "dry_run": self.is_dry,
        }


def _tier(tier: TierReport) -> dict[str, Json]:
    return {
        "name": tier.name,
        "reads": tier.reads,
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


def _joined(ranges: tuple[Interval, ...]) -> list[Interval]:
    """The same ranges in order, neighbours as one."""
    found: list[Interval] = []
    for span in sorted(ranges):
        if found and span.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
