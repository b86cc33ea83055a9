"""Housekeeping of a rollup's tables: few files, no files that nobody needs, and as many reports as are wanted.

Only partitions all of whose windows have ended are compacted, so a run on a schedule does not meet it. Whoever does
meet it is told by Delta Lake: a run repeats its chunk, and housekeeping tries again, then leaves the table for next
time. Compaction moves rows and changes none: its commits claim nothing, and what was claimed before still holds.

Each commit, also one of housekeeping, brings the day nearer on which older commits leave the log. So when it has made
some, it sums up in the bookkeeping what the tiers' logs say, as runs do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from stairwise.errors import UsageError
from stairwise.json_fields import Json
from stairwise.plan import Plan
from stairwise.tiers import Tier
from stairwise.zones import DAY_SECONDS
from stairwise_spark.arrangement import PART, WINDOW
from stairwise_spark.contents import Part, contents, newest_files, together
from stairwise_spark.errors import CONFLICTS, translating
from stairwise_spark.ledger import new_run
from stairwise_spark.session import having, sql
from stairwise_spark.tables import TierTable, literal
from stairwise_spark.target import Target
from stairwise_spark.why import held_by

SAFE_HOURS = 168
"""Delta Lake's own retention: a reader or a run that takes longer than this loses its files."""
REPORTS = 1_000
_ATTEMPTS = 3
# A partition with so many files is compacted, if they are smaller than this on average.
_MANY, _SMALL = 4, 64_000_000
_MANY_OF_LEDGER = 32
# By default Spark lists folders in 10,000 tasks, however few there are.
_FEW_TASKS = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}
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
        tables = self.target.storage.tables()
        holding = contents(newest_files(tables.values()))
        for table in dict.fromkeys(tables.values()):
            tiers = tuple(tier for tier, other in tables.items() if other == table)
            parts = holding[table] or ()
            crowded = {tier: self._crowded(tier, parts) for tier in tiers}
            self._keep(
                table, tiers, parts, [each for found in crowded.values() for each in found], self._where(crowded)
            )

    def ledger(self) -> int:
        """The bookkeeping is in order, and reports of old runs are gone; how many were."""
        ledger = self.target.storage.ledger
        table = TierTable.find(self.spark, ledger.place, self.target.rollup.name)
        if table is None:
            return 0
        removed, left = self._reports()
        parts = contents(newest_files([table]))[table] or ()
        self._keep(table, (), parts, parts if together(parts).files >= _MANY_OF_LEDGER else (), "", left)
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

    def _crowded(self, tier: str, parts: Iterable[Part]) -> list[Part]:
        """The partitions of a tier with many small files, in which no window is still open."""
        storage = self.target.storage
        first_open = _first_open(storage.tiers[tier], self.due, storage.arrangement.days(tier))
        return [
            each
            for each in parts
            if (each.window == tier or not storage.arrangement.is_shared)
            and each.part is not None
            and each.part < first_open
            and each.files >= _MANY
            and each.bytes < _SMALL * each.files
        ]

    def _where(self, crowded: Mapping[str, Sequence[Part]]) -> str:
        """What is true of these partitions, and of none that is open."""
        is_shared = self.target.storage.arrangement.is_shared
        conditions: list[str] = []
        for tier, parts in crowded.items():
            if parts:
                numbers = [each.part or 0 for each in parts]
                of_tier = f"{WINDOW.name} = {literal(tier)} AND " if is_shared else ""
                conditions.append(f"({of_tier}{PART.name} >= {min(numbers)} AND {PART.name} <= {max(numbers)})")
        return " OR ".join(conditions)

    def _keep(
        self,
        table: TierTable,
        tiers: tuple[str, ...],
        parts: Sequence[Part],
        crowded: Sequence[Part],
        where: str,
        left: str = "",
    ) -> None:
        """One table is in order, or why not is known."""
        files = together(parts).files
        after = files - sum(each.files - 1 for each in crowded)
        if crowded and not self.upkeep.is_dry:
            statement = f"OPTIMIZE {table.place.identifier}{f' WHERE {where}' if where else ''}"
            left = "; ".join(filter(None, (left, tried(lambda: self._carry_out(statement, _FEW_TASKS)))))
            after = together(contents(newest_files([table]))[table] or ()).files
        if self.upkeep.vacuum and not self.upkeep.is_dry:
            self._vacuum(table)
        self.done.append(
            TableUpkeep(
                table=str(table.place),
                tiers=tiers,
                files=files,
                files_after=after,
                partitions=len(crowded),
                is_vacuumed=self.upkeep.vacuum,
                left=left,
            )
        )

    def _vacuum(self, table: TierTable) -> None:
        hours = self.upkeep.retain_hours
        retain = "" if hours is None else f" RETAIN {hours} HOURS"
        is_short = hours is not None and hours < SAFE_HOURS
        self._carry_out(f"VACUUM {table.place.identifier}{retain}", _FEW_TASKS | (_UNCHECKED if is_short else {}))

    def _carry_out(self, statement: str, settings: Mapping[str, str]) -> None:
        with having(self.spark, settings):
            sql(self.spark, statement).collect()
        self.has_committed = True


def tried(work: Callable[[], None], pause: float = 1.0) -> str:
    """The work is done; or why it was left, when others changed the same partitions each time.

    Args:
        work: What is to be done.
        pause: Seconds to wait before it is done again; each time as many more.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            work()
        except CONFLICTS:
            time.sleep(pause * attempt)
        else:
            return ""
    return f"left for next time: runs changed the same partitions, {_ATTEMPTS} times"


def _first_open(tier: Tier, due: int, days: int) -> int:
    """The first partition in which a window begins that has not ended."""
    starts = [each.start for each in held_by(tier, due)]
    day = min(starts, default=due) // DAY_SECONDS
    return day - day % days
