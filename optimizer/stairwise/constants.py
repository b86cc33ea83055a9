"""What work costs on one machine: the constants of the batch model, and whose they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf

from stairwise.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Prices in seconds of wall clock on two cores: Spark 4.2.0 and Delta 4.4.0, warm; measured on 20 million rows.

    Attributes:
        scan_row: Decode one event of a Parquet file.
        fold_row: Add one event to the state of its group.
        copy_row: Make one copy of an event for a window that holds it, where several do, and find its group.
        build_row: Make a new group: one row of a tier.
        merge_row: Read one row of a tier and merge it into a window.
        merge_byte: The same for each byte of the row's width.
        slide_row: Put one row of a tier in order, and keep running results of the windows that hold it.
        move_row: Make one partial row and send it to its key's partition.
        write_byte: Encode and write one byte of a tier.
        query: Plan and start one query, for a tier that is computed by itself, in one run.
        commit: Plan and commit one table in one run, beside others.
        shared_commit: The same where all tiers are one table.
        partition_rows: Rows of one partition of an input whose files are in time order, each of which sends its own
            partial row for a group.
    """

    scan_row: float = 24e-9
    fold_row: float = 10e-9
    copy_row: float = 60e-9
    build_row: float = 200e-9
    merge_row: float = 40e-9
    merge_byte: float = 1e-9
    slide_row: float = 2_000e-9
    move_row: float = 300e-9
    write_byte: float = 3e-9
    query: float = 0.1
    commit: float = 0.13
    shared_commit: float = 0.02
    partition_rows: int = 2_500_000

    def __post_init__(self) -> None:
        """Refuse what is no time, and partitions without rows."""
        for name, number in self.by_name().items():
            least = 1 if name == "partition_rows" else 0
            if not least <= number < inf:
                raise PlanError(f"constant {name}: {number}: a number from {least} up is needed.")

    def by_name(self) -> dict[str, float]:
        """Each constant under its name, in order."""
        named: dict[str, float] = asdict(self)
        return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants that were measured, and where.

    Attributes:
        constants: The constants.
        where: On what, in words.
        at: When, in seconds since 1970.
    """

    constants: Constants
    where: str
    at: int
