"""How rows lie in the tables: in which partition, in how many files, and which of them a write replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField

from stairwise.tiers import Tier
from stairwise.zones import DAY_SECONDS
from stairwise_spark.halves import in_halves
from stairwise_spark.names import column
from stairwise_spark.observed import Counted
from stairwise_spark.rows import NUMBER
from stairwise_spark.session import shuffle_tasks
from stairwise_spark.spans import Spans
from stairwise_spark.tables import literal
from stairwise_spark.writes import Windows, Write, part, parts

PART, WINDOW = StructField("_part", IntegerType()), StructField("window", StringType())
# At least so many windows begin in a part, on average; and a part is a week, if it has no more rows than these then. A
# part is a file at least, which takes as long to write as thousands of rows; but it is also what runs wait for that
# write at the same time, and what is written anew for one of its windows.
_WINDOWS_IN_A_PART, _LONG_PART, _ROWS_IN_A_PART = 24, 7, 250_000
# To count windows costs time for each of their rows: too much where there are many.
_MOST_COUNTED = 10_000
# The rows of so much event time, of all tiers together, are few, as are so many.
_SMALL_S, _FEW_ROWS = 2 * DAY_SECONDS, 1_000_000


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the rows of tiers lie in tables.

    Attributes:
        tiers: By name.
        keys: For how many different keys the parts of each tier are laid out; None: for many.
        is_shared: Whether they share tables; the column ``window`` then tells them apart.
    """

    tiers: Mapping[str, Tier]
    keys: Mapping[str, int | None]
    is_shared: bool = field(kw_only=True)

    @property
    def folders(self) -> tuple[StructField, ...]:
        """The partition columns."""
        return (PART, WINDOW) if self.is_shared else (PART,)

    def days(self, tier: str) -> int:
        """The length of the tier's parts."""
        windows_a_day, keys = self.tiers[tier].rate * DAY_SECONDS, self.keys[tier]
        fits = 0 if keys is None else int(_ROWS_IN_A_PART / (windows_a_day * keys))
        return max(ceil(_WINDOWS_IN_A_PART / windows_a_day), min(_LONG_PART, fits))

    def has_few(self, due: Mapping[str, Spans]) -> bool:
        """Whether the windows that end in some ranges have few rows: it costs next to nothing to keep them in memory.

        Then it is only the commit that is repeated if runs nearby were faster.
        """
        if _length(due.values()) <= _SMALL_S:
            return True
        rows = 0.0
        for tier, spans in due.items():
            keys = self.keys[tier]
            if keys is None:
                return False
            rows += float(self.tiers[tier].rate) * _length([spans]) * keys
        return rows <= _FEW_ROWS

    def arranged(self, writes: Sequence[Write]) -> tuple[DataFrame, dict[str, Windows]]:
        """The rows of writes to one table as it stores them, those of a part together; and who counts their windows.

        To move the finished rows costs less than to compute them in as few tasks as there are files.
        """
        frames: dict[int, list[Write]] = {}
        for write in writes:
            frames.setdefault(id(write.rows.frame), []).append(write)
        windows: dict[str, Windows] = {}
        whole = (self._alone(of[0], windows) if len(of) == 1 else self._several(of, windows) for of in frames.values())
        rows = in_halves(lambda one, other: one.unionByName(other, allowMissingColumns=True), whole)
        if _length(write.ends for write in writes) <= _SMALL_S:
            return rows.coalesce(1), windows
        tasks = min(self._parts(writes), shuffle_tasks(rows.sparkSession))
        return rows.repartition(tasks, *(column(folder.name) for folder in self.folders)), windows

    def predicate(self, writes: Sequence[Write]) -> str:
        """What is true of exactly the rows that are replaced; first the parts alone, by which Delta tells conflicts."""
        return f"({self.parts(writes)}) AND ({self.ranges(writes)})"

    def parts(self, writes: Sequence[Write]) -> str:
        """What is true of the partitions in which the written windows lie."""
        return self._of_tiers(writes, lambda each: parts(each.starts, self.days(each.tier)))

    def ranges(self, writes: Sequence[Write]) -> str:
        """What is true of exactly the written windows, within these partitions."""
        return self._of_tiers(writes, lambda each: each.predicate)

    def _of_tiers(self, writes: Sequence[Write], said: Callable[[Write], str]) -> str:
        if not self.is_shared:
            return said(writes[0])
        return " OR ".join(f"(window = {literal(each.tier)} AND ({said(each)}))" for each in writes)

    def _parts(self, writes: Sequence[Write]) -> int:
        """About how many parts are written: tasks without rows would cost files in every task before them."""
        return sum(
            (span.end - span.start) // DAY_SECONDS // self.days(write.tier) + 1
            for write in writes
            for span in write.starts
        )

    def _alone(self, write: Write, windows: dict[str, Windows]) -> DataFrame:
        """The rows of a write, with the partition columns."""
        rows = self._counted(write.rows.alone(), [(write, 0)], F.lit(0), windows)
        frame = rows.withColumn(PART.name, part(F.col("window_start"), F.lit(self.days(write.tier))))
        if self.is_shared:
            frame = frame.withColumn(WINDOW.name, F.lit(write.tier))
        return frame

    def _several(self, writes: Sequence[Write], windows: dict[str, Windows]) -> DataFrame:
        """The rows of several writes, which are one frame, with the partition columns; each is computed once."""
        number = column(NUMBER)
        tiers = {write.rows.number: write.tier for write in writes}
        places = [tiers.get(place) for place in range(1, 1 + max(place for place in tiers if place is not None))]
        names = F.element_at(F.array(*map(F.lit, places)), number)
        days = F.element_at(F.array(*(F.lit(self.days(tier) if tier else 1) for tier in places)), number)
        rows = writes[0].rows.frame.where(number.isin([*tiers]))
        rows = self._counted(rows, [(write, write.rows.number or 0) for write in writes], number, windows)
        return rows.withColumns({PART.name: part(F.col("window_start"), days), WINDOW.name: names}).drop(NUMBER)

    def _counted(
        self, rows: DataFrame, numbers: Sequence[tuple[Write, int]], number: Column, windows: dict[str, Windows]
    ) -> DataFrame:
        """The rows of some writes, whose windows are counted when they are written, unless there may be very many."""
        many = sum(self.tiers[each.tier].rate * (span.end - span.start) for each, _ in numbers for span in each.ends)
        if many > _MOST_COUNTED:
            return rows
        # No two windows of a tier end at the same time.
        counted, counts = Counted.of(rows, F.col("window_end"), number, max(each for _, each in numbers) + 1)
        windows.update({write.tier: partial(counts.number, each) for write, each in numbers})
        return counted


def _length(ranges: Iterable[Spans]) -> int:
    return sum(span.end - span.start for spans in ranges for span in spans)
