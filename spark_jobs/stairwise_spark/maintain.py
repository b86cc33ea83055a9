"""Housekeeping of a rollup's tables: few files, no files that nobody needs, and as many reports as are wanted.

Each commit, also one of housekeeping, brings the day nearer on which older commits leave the log. So when it has made
some, it sums up in the bookkeeping what the tiers' logs say, as runs do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from stairwise.errors import UsageError
from stairwise.json_fields import Json
from stairwise.plan import Plan
from stairwise_spark.compacting import FEW_TASKS, Crowding, compacted, crowdings, files_in, tried
from stairwise_spark.errors import translating
from stairwise_spark.ledger import new_run
from stairwise_spark.session import having, sql
from stairwise_spark.tables import TierTable
from stairwise_spark.target import Target

SAFE_HOURS = 168
"""Delta Lake's own retention: a reader or a run that takes longer than this loses its files."""
REPORTS = 1_000
_UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What is to be done.

    Attributes:
        vacuum: Whether files that no version within the retention needs are removed.
        retain_hours: How long they are kept; None: as the tables say, seven days unless somebody changed it.
        is_forced: Whether that may be shorter than what is safe.
        reports: So many reports of runs are kept.
        is_dry: Whether to say what would be done, and not to do it.
    """

    vacuum: bool = False
    retain_hours: int | None = None
    is_forced: bool = False
    reports: int = REPORTS
    is_dry: bool = False

    def __post_init__(self) -> None:
        """Refuse a retention that takes the files from under readers, unless it was forced."""
        hours = self.retain_hours
        if hours is not None and not self.vacuum:
            raise UsageError("--retain-hours goes with --vacuum.", hint="add --vacuum, or leave it out.")
        if hours is not None and hours < SAFE_HOURS and not self.is_forced:
            raise UsageError(
                f"--retain-hours {hours}: fewer than {SAFE_HOURS} may remove files that a reader or a run still needs.",
                hint="add --force-short-retention if nobody reads or writes the tables meanwhile.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpkeep:
    """What became of one table.

    Attributes:
        table: Where it is.
        tiers: Which tiers are in it; none: it is the bookkeeping.
        files: How many files it had.
        files_after: How many it has; what is expected, if nothing was done.
        partitions: So many of its partitions had too many files.
        is_vacuumed: Whether it was vacuumed, or would be.
        left: Why something was left for next time; empty: nothing was.
    """

    table: str
    tiers: tuple[str, ...]
    files: int
    files_after: int
    partitions: int
    is_vacuumed: bool
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What housekeeping did.

    Attributes:
        rollup: The rollup.
        upkeep: What was asked.
        tables: What became of each table.
        reports: So many reports were removed.
        seconds: How long it took.
    """

    rollup: str
    upkeep: Upkeep
    tables: tuple[TableUpkeep, ...]
    reports: int
    seconds: float

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.maintain/1``."""
        return {
            "schema": "stairwise.maintain/1",
            "rollup": self.rollup,
            "dry_run": self.upkeep.is_dry,
            "tables": [
                {
                    "table": each.table,
                    "tiers": list(each.tiers),
                    "files_before": each.files,
                    "files_after": each.files_after,
                    "partitions_compacted": each.partitions,
                    "vacuumed": each.is_vacuumed,
                    "left": each.left or None,
                }
                for each in self.tables
            ],
            "reports_removed": self.reports,
            "seconds": round(self.seconds, 3),
        }

    def told(self) -> str:
        """The same for people."""
        if not self.tables:
            return f"{self.rollup}: nothing was made yet, so there is nothing to keep."
        would = "would be " if self.upkeep.is_dry else ""
        lines = [f"{self.rollup}: {would}compacted" if any(each.partitions for each in self.tables) else self._idle]
        for each in self.tables:
            done = f"{each.files:,} files, {each.files_after:,} after" if each.partitions else f"{each.files:,} files"
            vacuumed = f", {would}vacuumed" if each.is_vacuumed else ""
            left = f"; {each.left}" if each.left else ""
            lines.append(f"  {each.table}: {done}{vacuumed}{left}")
        if self.reports:
            lines.append(f"  {self.reports:,} reports of runs {would or 'were '}removed")
        return "\n".join(lines)

    @property
    def _idle(self) -> str:
        return f"{self.rollup}: nothing to compact"


def maintain(spark: SparkSession, plan: Plan, upkeep: Upkeep, now: int | None = None) -> Kept:
    """Keep the tables of a plan's rollup in order; what they hold and what they reflect does not change.

    Args:
        spark: A session in UTC.
        plan: Of the declaration.
        upkeep: What to do.
        now: The second to compare with, if not the present one.

    Raises:
        RunError: There is something that is not ours, or it could not be done.
    """
    started = time.monotonic()
    target = Target.found(spark, plan)
    present = int(time.time()) if now is None else now
    with translating():
        work = _Work(spark=spark, target=target, upkeep=upkeep, due=present - target.rollup.delay.seconds)
        work.tiers()
        reports = work.ledger()
        work.sum_up()
    return Kept(
        rollup=target.rollup.name,
        upkeep=upkeep,
        tables=tuple(work.done),
        reports=reports,
        seconds=time.monotonic() - started,
    )


@dataclass(kw_only=True)
class _Work:
    """One housekeeping, as it goes on."""

    spark: SparkSession
    target: Target
    upkeep: Upkeep
    due: int
    done: list[TableUpkeep] = field(default_factory=list[TableUpkeep])
    has_committed: bool = False

    def tiers(self) -> None:
        """The tables of the tiers are in order."""
        storage = self.target.storage
        for each in crowdings(storage, storage.tables().values(), self.due):
            self._keep(each)

    def ledger(self) -> int:
        """The bookkeeping is in order, and reports of old runs are gone; how many were."""
        ledger = self.target.storage.ledger
        table = TierTable.find(self.spark, ledger.place, self.target.rollup.name)
        if table is None:
            return 0
        removed, left = self._reports()
        self._keep(Crowding.of_ledger(table), left)
        return removed

    def _reports(self) -> tuple[int, str]:
        """How many reports are gone; and why they were left, when runs added theirs each time."""
        ledger, most = self.target.storage.ledger, self.upkeep.reports
        counts: list[int] = []
        left = tried(lambda: counts.append(ledger.drop_reports(most, is_dry=self.upkeep.is_dry)))
        if left:
            return 0, f"reports {left}"
        old: list[Path] = []
        if ledger.place.path is not None:
            files = sorted(Path(ledger.place.path).parent.glob("runs/*.json"))
            old = files[: max(0, len(files) - most)]
        for file in () if self.upkeep.is_dry else old:
            file.unlink(missing_ok=True)
        return max(counts[0], len(old)), ""

    def sum_up(self) -> None:
        """What the logs of the tiers say is in the bookkeeping, if they have grown."""
        if self.has_committed:
            self.target.storage.states()
            self.target.storage.ledger.save_states(new_run())

    def _keep(self, found: Crowding, left: str = "") -> None:
        """One table is in order, or why not is known."""
        after = found.files - sum(each.files - 1 for each in found.crowded)
        if found.crowded and not self.upkeep.is_dry:
            not_done = compacted(found)
            left = "; ".join(filter(None, (left, not_done)))
            after = files_in(found.table)
            self.has_committed = self.has_committed or not not_done
        if self.upkeep.vacuum and not self.upkeep.is_dry:
            self._vacuum(found.table)
        self.done.append(
            TableUpkeep(
                table=str(found.table.place),
                tiers=found.tiers,
                files=found.files,
                files_after=after,
                partitions=len(found.crowded),
                is_vacuumed=self.upkeep.vacuum,
                left=left,
            )
        )

    def _vacuum(self, table: TierTable) -> None:
        hours = self.upkeep.retain_hours
        retain = "" if hours is None else f" RETAIN {hours} HOURS"
        is_short = hours is not None and hours < SAFE_HOURS
        settings: Mapping[str, str] = FEW_TASKS | (_UNCHECKED if is_short else {})
        with having(self.spark, settings):
            sql(self.spark, f"VACUUM {table.place.identifier}{retain}").collect()
        self.has_committed = True
