"""Few files: where many small ones have gathered, they are put together.

Only partitions all of whose windows have ended are compacted, so a run on a schedule does not meet it. Whoever does
meet it is told by Delta Lake: a run repeats its chunk, and whoever compacts tries again, then leaves the table for next
time. Compaction moves rows and changes none: its commits claim nothing, and what was claimed before still holds.

Runs do it themselves, when all that they write is written, each time that a table has some hundreds of commits more
than it had when its files were looked after last. They leave alone what would take long, as bytes go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from stairwise.tiers import Tier
from stairwise.zones import DAY_SECONDS
from stairwise_spark.arrangement import PART, WINDOW
from stairwise_spark.compute import held_by
from stairwise_spark.contents import Part, contents, newest_files, together
from stairwise_spark.errors import CONFLICTS, RunError, translating
from stairwise_spark.report import LookedAfter
from stairwise_spark.session import having, sql
from stairwise_spark.storage import Storage
from stairwise_spark.tables import TierTable, literal

COMMITS = 256
"""Each time that a table has so many more, the run that finds that looks after its files."""
MOST_BYTES = 1_000_000_000
"""So much of a table a run puts together; what is more takes minutes, and is left to ``maintain``."""
# By default Spark lists folders in 10,000 tasks, however few there are.
FEW_TASKS = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}
_ATTEMPTS = 3
# A partition with so many files is compacted, if they are smaller than this on average.
_MANY, _SMALL = 4, 64_000_000
_MANY_OF_LEDGER = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowding:
    """How many files a table has, and where they are too many.

    Attributes:
        table: The table.
        tiers: Which tiers are in it; none: it is the bookkeeping.
        files: How many files it has.
        crowded: The partitions that have too many, and in which no window is open.
        where: What is true of these, and of no other; empty: there is no need to tell them apart.
    """

    table: TierTable
    tiers: tuple[str, ...]
    files: int
    crowded: tuple[Part, ...]
    where: str

    @classmethod
    def of_ledger(cls, table: TierTable, most_bytes: int | None = None) -> Crowding:
        """That of the bookkeeping, which only grows; it is put together if it is no larger than so much."""
        parts = contents(newest_files([table]))[table] or ()
        whole = together(parts)
        is_crowded = whole.files >= _MANY_OF_LEDGER and (most_bytes is None or whole.bytes <= most_bytes)
        crowded = tuple(each for each in parts if each.files > 1) if is_crowded else ()
        return cls(table=table, tiers=(), files=whole.files, crowded=crowded, where="")


def crowdings(
    storage: Storage, tables: Iterable[TierTable], due: int, most_bytes: int | None = None
) -> tuple[Crowding, ...]:
    """How many files some of the tables have; by their logs alone.

    Args:
        storage: Where they are.
        tables: Which.
        due: Windows that end later may be open still.
        most_bytes: So much of a table may be put together, of the newest; None: all that is crowded.
    """
    wanted = tuple(dict.fromkeys(tables))
    holding = contents(newest_files(wanted))
    by_tier = storage.tables()
    found: list[Crowding] = []
    for table in wanted:
        tiers = tuple(tier for tier, other in by_tier.items() if other == table)
        parts = holding[table] or ()
        crowded = {tier: _crowded(storage, tier, parts, due) for tier in tiers}
        if most_bytes is not None:
            crowded = newest(crowded, most_bytes)
        found.append(
            Crowding(
                table=table,
                tiers=tiers,
                files=together(parts).files,
                crowded=tuple(part for of_tier in crowded.values() for part in of_tier),
                where=chosen(crowded, is_shared=storage.arrangement.is_shared),
            )
        )
    return tuple(found)


def look_after(storage: Storage, due: int) -> LookedAfter:
    """Tables that have grown by hundreds of commits have few files; the bookkeeping's next commit says so.

    What goes wrong here is no reason for a run to fail that has written all it had to write.

    Args:
        storage: Where they are.
        due: Windows that end later may be open still.
    """
    tables, last = storage.tables(), storage.ledger.summary.looked_after
    now = {tier: storage.known[tier].version for tier in tables if tier in storage.known}
    grown = [tier for tier, version in now.items() if not 0 <= version - last.get(tier, 0) < COMMITS]
    if not grown:
        return LookedAfter()
    storage.ledger.summary = replace(
        storage.ledger.summary, looked_after={**last, **{tier: now[tier] for tier in grown}}
    )
    done, left = 0, dict[str, None]()
    try:
        with translating():
            found = [*crowdings(storage, (tables[tier] for tier in grown), due, MOST_BYTES)]
            ledger = TierTable.find(storage.spark, storage.ledger.place, storage.rollup.name)
            found += [Crowding.of_ledger(ledger, MOST_BYTES)] if ledger is not None else []
            for each in found:
                if each.crowded and (why := compacted(each)):
                    left[why] = None
                else:
                    done += len(each.crowded)
    except RunError as error:
        left[str(error)] = None
    return LookedAfter(done, "; ".join(left))


def compacted(found: Crowding) -> str:
    """The crowded partitions have few files; or why they were left."""
    statement = f"OPTIMIZE {found.table.place.identifier}{f' WHERE {found.where}' if found.where else ''}"

    def work() -> None:
        with having(found.table.spark, FEW_TASKS):
            sql(found.table.spark, statement).collect()

    return tried(work)


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


def files_in(table: TierTable) -> int:
    """How many files a table has."""
    return together(contents(newest_files([table]))[table] or ()).files


def _crowded(storage: Storage, tier: str, parts: Iterable[Part], due: int) -> tuple[Part, ...]:
    """The partitions of a tier with many small files, in which no window is still open."""
    first_open = _first_open(storage.tiers[tier], due, storage.arrangement.days(tier))
    return tuple(
        each
        for each in parts
        if (each.window == tier or not storage.arrangement.is_shared)
        and each.part is not None
        and each.part < first_open
        and each.files >= _MANY
        and each.bytes < _SMALL * each.files
    )


def newest(crowded: Mapping[str, tuple[Part, ...]], most_bytes: int) -> dict[str, tuple[Part, ...]]:
    """Of some partitions those that come to no more than so many bytes, the newest first; larger ones are left out."""
    room, kept = most_bytes, set[tuple[str, int | None]]()
    parts = [(each.part or 0, tier, each) for tier, found in crowded.items() for each in found]
    for _, tier, each in sorted(parts, key=lambda named: named[:2], reverse=True):
        if each.bytes <= room:
            room -= each.bytes
            kept.add((tier, each.part))
    return {tier: tuple(each for each in found if (tier, each.part) in kept) for tier, found in crowded.items()}


def chosen(crowded: Mapping[str, tuple[Part, ...]], *, is_shared: bool) -> str:
    """What is true of these partitions, and of no other."""
    conditions: list[str] = []
    for tier, parts in crowded.items():
        if parts:
            numbers = ", ".join(str(each.part) for each in parts)
            of_tier = f"{WINDOW.name} = {literal(tier)} AND " if is_shared else ""
            conditions.append(f"({of_tier}{PART.name} IN ({numbers}))")
    return " OR ".join(conditions)


def _first_open(tier: Tier, due: int, days: int) -> int:
    """The first partition in which a window begins that has not ended."""
    starts = [each.start for each in held_by(tier, due)]
    day = min(starts, default=due) // DAY_SECONDS
    return day - day % days
