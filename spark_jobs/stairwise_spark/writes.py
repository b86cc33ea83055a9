"""What is to be written to a tier, what became of it, and the predicates that say which rows are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.coverage import Coverage
from stairwise_spark.rows import Rows
from stairwise_spark.spans import FEW, Spans, hull, is_met, joined, masked
from stairwise_spark.tier_logs import File

_MICROS = 1_000_000
Windows = Callable[[], int | None]
"""Says how many different windows have been written; None: they were not counted."""


def uncounted() -> None:
    """Not counted."""
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The windows of a tier that end in a range, as they shall be.

    Attributes:
        tier: Its name.
        rows: With the columns of the stored table but ``_part`` and ``window``, of exactly their types.
        ends: The windows that end in (start, end] of one of these ranges are replaced.
        starts: Ranges that hold the start of each of them.
        coverage: What the rows reflect.
        is_new: Whether no claim was ever made in the ranges, as far as is known: the rows are then added, which is
            several times cheaper.
        is_merged: Whether the rows are made of those that are stored, of which nobody may have written others since.
    """

    tier: str
    rows: Rows
    ends: Spans
    starts: Spans
    coverage: Coverage
    is_new: bool = False
    is_merged: bool = False

    @property
    def predicate(self) -> str:
        """What is true of exactly the stored rows of these windows, but for ``_part`` and ``window``."""
        mask = masked(self.ends) if len(self.ends) > FEW else None
        if mask is None:
            return " OR ".join(map(_ending, self.ends))
        # All are looked up at once: to plan as many comparisons takes Delta Lake longer than to write the rows.
        cell = f"(unix_seconds(window_end) - 1 - ({mask.begin})) DIV {mask.step}"
        # Whatever is far from all of them has a cell too, of a number that is an INT.
        cell = f"CAST(pmod({cell}, {len(mask.cells)}) AS INT)"
        # Delta Lake checks each new row by it, and would make an array for each.
        return f"({_ending(hull(self.ends))} AND substring(X'{mask.cells.hex()}', {cell} + 1, 1) = X'01')"

    def written(self, version: int, files: Iterable[File], windows: Windows, *, wrote: bool) -> Written:
        """What became of it, by the files that the commit added.

        A commit also moves rows that it does not replace out of the files that it does, and their files do not count.

        Args:
            version: That of the commit.
            files: What it added.
            windows: Says how many windows the rows have.
            wrote: Whether it is of this write.
        """
        mine = [each for each in files if each.window in (None, self.tier) and self._is_within(each)]
        rows = sum(each.rows for each in mine)
        return Written(
            tier=self.tier,
            version=version,
            windows=windows() if rows else 0,
            rows=rows,
            files=len(mine),
            bytes=sum(each.bytes for each in mine),
            wrote=wrote,
        )

    def _is_within(self, file: File) -> bool:
        return file.ends is None or is_met(Interval(file.ends[0] - 1, file.ends[0]), self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a write.

    Attributes:
        tier: Its name.
        version: The version of the table that holds it.
        windows: So many different windows have rows; None: they were not counted.
        rows: The rows that were written.
        files: The files that were added.
        bytes: Their size.
        wrote: Whether there was a commit: there is none if nothing was there and nothing came, nor for a repetition.
        seconds: How long it took, with all that had to be computed for it.
    """

    tier: str
    version: int
    windows: int | None = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0
    wrote: bool = True
    seconds: float = field(default=0.0, compare=False)


def _ending(ends: Interval) -> str:
    return f"(window_end > {instant(ends.start)} AND window_end <= {instant(ends.end)})"


def instant(second: int) -> str:
    """An instant in SQL, whatever the session's zone."""
    return f"timestamp_micros({second * _MICROS}L)"


def parts(starts: Iterable[Interval], length: int) -> str:
    """What is true of the rows whose windows start in some ranges: more of them, but whole parts of so many days."""
    ranges = joined(
        Interval(_part(span.start, length), _part(span.end - 1, length) + length)
        for span in starts
        if span.start < span.end
    )
    if len(ranges) > FEW:
        each = (number for first, beyond in ranges for number in range(first, beyond, length))
        return f"_part IN ({', '.join(map(str, each))})"
    return " OR ".join(f"(_part >= {first} AND _part <= {beyond - length})" for first, beyond in ranges) or "false"


def part(start: Column, length: Column) -> Column:
    """The first day of the part that holds an instant, which is stored with each row."""
    # In whole numbers downwards, also before 1970; whatever the session's zone.
    seconds = F.unix_seconds(start)
    day = ((seconds - F.pmod(seconds, F.lit(DAY_SECONDS))) / DAY_SECONDS).cast("int")
    return day - F.pmod(day, length)


def _part(second: int, length: int) -> int:
    day = second // DAY_SECONDS
    return day - day % length
