"""What an arc costs on a batch engine: seconds of a small machine over a backfill and a schedule.

A tier's rows are its windows times the distinct keys that turn up in one. Where no pass merges them, a tier is worth
reading only while those are fewer than the events, by about three to one: this model can answer "do not share".

    cost = tables committed x fixed
         + raw rows     x (scan + fold into each window that holds them), or
           parent rows  x (merge + width x merge a byte) x merges per row
         + rows written x width x write a byte
    and, for a tier that a query of its own makes, not a pass over slices,
         + queries      x start
    and, if that query is no filter either,
         + partial rows x move to their key's partition
         + rows written x build

Where each constant comes from and what the model leaves out: docs/cost-models.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, expm1, inf, log1p
from typing import NamedTuple, assert_never

from stairwise.constants import Constants
from stairwise.cost import Cost, Prices
from stairwise.errors import PlanError
from stairwise.final_aggregation import Technique, choose, work
from stairwise.measured import KeyCurve
from stairwise.tiers import DAY, How, Tier
from stairwise.window import CumulateWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Workday:
    """When the work is done: how much history is filled once, and how often the schedule runs for how long.

    Attributes:
        history_s: Event time that the initial backfill covers.
        schedule_s: Event time that scheduled runs will cover.
        interval_s: Event time between two scheduled runs.
        chunks: Runs that the backfill is cut into.
    """

    history_s: int = 365 * DAY
    schedule_s: int = 365 * DAY
    interval_s: int = 3_600
    chunks: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModel:
    """Prices steps for Spark and Delta.

    Attributes:
        rows_per_s: Events per second of event time.
        keys: Distinct keys of the source; 1 if the rollup has none.
        values: Distinct values per key of what holistic aggregates read; None: not known.
        row_bytes: Bytes of one row of a tier: keys, bounds and partial columns.
        is_invertible: Whether a running total may put overlapping windows together.
        is_holistic: Whether each event has to travel to its group, since nothing smaller stands for it.
        makes_passes: Whether tiers that read slices are made in one pass, since their states are of fixed width.
        commit_s: The fixed cost of one table in one run.
        curve: Keys among events, as measured; None: each key is as frequent as any other.
        constants: What work costs.
        workday: When it is done.
    """

    rows_per_s: float
    keys: float
    values: float | None
    row_bytes: float
    is_invertible: bool
    is_holistic: bool
    commit_s: float
    makes_passes: bool = True
    curve: KeyCurve | None = None
    constants: Constants = field(default_factory=Constants)
    workday: Workday = Workday()
    _known: dict[Tier, _Facts] = field(default_factory=dict["Tier", "_Facts"], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse numbers that would make a price nonsense."""
        for what, number, least in (
            ("rows per second", self.rows_per_s, 0),
            ("distinct keys", self.keys, 1),
            ("distinct values", self.values or 1, 1),
            ("bytes per row", self.row_bytes, 0),
            ("seconds per commit", self.commit_s, 0),
        ):
            if not least <= number < inf:
                raise PlanError(f"batch model: {number} {what}: a number from {least} up is needed.")

    @property
    def name(self) -> str:
        """See ``CostModel``."""
        return "batch"

    @property
    def unit(self) -> str:
        """See ``CostModel``."""
        return "s"

    @property
    def period_s(self) -> int:
        """The history and the schedule together."""
        return self.workday.history_s + self.workday.schedule_s

    @property
    def interval_s(self) -> int:
        """See ``CostModel``."""
        return self.workday.interval_s

    def spread(self, *, history_s: int, schedule_s: int) -> BatchModel:
        """See ``CostModel``."""
        chunks = 1 if history_s else 0
        return replace(self, workday=replace(self.workday, history_s=history_s, schedule_s=schedule_s, chunks=chunks))

    def rounded(self) -> Prices:
        """See ``CostModel``: seconds are floats already."""
        return self

    @property
    def counts_values(self) -> bool:
        """See ``CostModel``: only if the number of distinct values is known."""
        return self.values is not None

    @property
    def pays_per_window(self) -> bool:
        """See ``CostModel``: running results serve all windows that share a slice."""
        return False

    def rows_per_window(self, tier: Tier) -> float:
        """Rows of one window or slice, on average.

        A window with few events per key has about as many rows as events; one with many has a row per key.
        """
        return self._facts(tier).rows

    def price(self, child: Tier, parent: Tier | None, how: How) -> float:
        """See ``CostModel``."""
        return self._price(self._facts(child), None if parent is None else self._facts(parent), how)

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> list[float]:
        """See ``CostModel``."""
        facts = [self._facts(tier) for tier in tiers]
        return [
            self._price(facts[child - 1], facts[parent - 1] if parent else None, how) for parent, child, how in arcs
        ]

    def _price(self, child: _Facts, parent: _Facts | None, how: How) -> float:
        """Seconds; a pass pays for merging and keeping rows only: those of a key stay where they are, and in order."""
        if parent is None:
            return child.raw
        if how is How.DISJOINT and self.makes_passes and not isinstance(child.tier.window, CumulateWindow):
            return self._merged_in_pass(child, parent) * self._merge + child.keeping
        _, seconds = self._read_tier(child, parent, how)
        # To filter rows is next to nothing, but they have to be kept for the query that does.
        return seconds + child.starting + (child.keeping if how is How.EQUAL_RANGE else child.making)

    def detail(self, child: Tier, parent: Tier | None, how: How) -> Cost:
        """See ``CostModel``."""
        facts = self._facts(child)
        read, _ = self._read_raw(facts) if parent is None else self._read_tier(facts, self._facts(parent), how)
        written = facts.per_second * self.period_s
        return Cost(
            total=self.price(child, parent, how),
            rows_read=read,
            rows_written=written,
            bytes_written=written * self.row_bytes,
        )

    def least_scan(self) -> float:
        """See ``CostModel``: one pass over the events, and one run."""
        least = (self.constants.scan_row + self.constants.fold_row) * self.rows_per_s * self.period_s
        return least + (self.constants.query + self.commit_s) * self.workday.chunks

    def _merged_in_pass(self, child: _Facts, parent: _Facts) -> float:
        """Rows of a parent that a pass merges: each once, and once more for each row of windows that overlap.

        However many slices such a window has: runs of 1, 2, 4 and so on of them are merged for all windows at once.
        """
        read = parent.per_second * (self.workday.history_s + child.scheduled)
        return read if child.is_in_order else read + child.per_second * self.period_s

    def _read_raw(self, child: _Facts) -> tuple[float, float]:
        """Events scanned, and seconds: an event is folded into each of the windows that hold it."""
        spent = self.constants
        scanned = self.rows_per_s * (self.workday.history_s + child.scheduled)
        folded = self.rows_per_s * self.period_s * max(1.0, child.overlap)
        copied = folded if child.overlap > 1 else 0.0
        moved = folded if self.is_holistic else self._partial_rows(child, self.rows_per_s * child.seconds)
        seconds = scanned * spent.scan_row + folded * spent.fold_row + copied * spent.copy_row + moved * spent.move_row
        return scanned, seconds

    def _read_tier(self, child: _Facts, parent: _Facts, how: How) -> tuple[float, float]:
        """Rows of the parent that are read, and the seconds to read, merge and move them."""
        rows, spent = self._rows(child, parent, how), self.constants
        return rows.read, rows.merged * self._merge + rows.moved * spent.move_row + rows.slid * spent.slide_row

    @property
    def _merge(self) -> float:
        """Seconds to read one row of a tier and merge it into a window."""
        return self.constants.merge_row + self.constants.merge_byte * self.row_bytes

    def _rows(self, child: _Facts, parent: _Facts, how: How) -> _Rows:
        """Rows of a parent: combined where they lie before they move, unless they are values or stay in order."""
        match how:
            case How.VALUES:
                return self._slices(child, parent)._replace(slid=0.0)
            case How.RAW | How.DISJOINT:
                rows = self._slices(child, parent)
                if child.overlap > 1:
                    return rows
                partial = self._partial_rows(child, parent.per_second * child.seconds)
                return rows._replace(moved=min(rows.read, partial))
            case How.EQUAL_RANGE:
                kept = child.per_second * self.period_s
                return _Rows(kept, kept, 0.0)
            case How.OVERLAPPING:
                per_window = _cover(child.tier, parent.tier) * parent.rows
                total = child.rate * per_window * self.period_s
                return _Rows(total, total, min(total, self._partial_rows(child, per_window)))
            case _:
                assert_never(how)

    def _slices(self, child: _Facts, parent: _Facts) -> _Rows:
        """Rows of slices, if all of them move as they are."""
        rate, history = parent.per_second, self.workday.history_s
        read = merged = rate * (history + child.scheduled)
        slid = 0.0
        if not child.is_in_order:
            slices = ceil(child.seconds * parent.rate * (1 - 1e-12))
            repeats, goes_in_order = _final(slices, invertible=self.is_invertible)
            per_run = max(1.0, self.workday.interval_s * child.rate)  # windows: a single one needs no technique
            merged = rate * (history * repeats + child.scheduled * min(repeats, per_run))
            slid = read if goes_in_order else 0.0
        return _Rows(read, merged, read, slid)

    def _partial_rows(self, child: _Facts, rows_per_window: float) -> float:
        """Rows that are left to move when each input partition has combined what it holds of a window."""
        parts = 1 + rows_per_window / self.constants.partition_rows
        in_part = self._distinct(child.domain, self.rows_per_s * child.seconds / parts)
        return child.rate * self.period_s * parts * in_part

    def _distinct(self, domain: float, events: float) -> float:
        """How many of the possible keys turn up among so many events: as measured, else by Cardenas' formula."""
        if self.curve is not None and domain == self.keys:
            return self.curve.at(events)
        return min(events, 1.0 if domain <= 1 else -domain * expm1(events * log1p(-1 / domain)))

    def _facts(self, tier: Tier) -> _Facts:
        """What the model knows of a tier, worked out once: a tier stands on many arcs."""
        facts = self._known.get(tier)
        if facts is None:
            facts = self._known[tier] = self._learned(tier)
        return facts

    def _learned(self, tier: Tier) -> _Facts:
        rate = 1 / tier.slide_s if tier.slide_s else float(tier.rate)
        seconds = tier.range_s or 1 / rate
        domain = self.keys * (self.values or 1.0) if tier.keeps_values else self.keys
        rows = self._distinct(domain, self.rows_per_s * seconds)
        firings = min(1 / self.workday.interval_s, rate)
        unread = max(0.0, self.workday.interval_s - 1 / rate)
        written = rate * rows * self.period_s
        overlap = tier.range_s / tier.slide_s if tier.range_s and tier.slide_s else 1.0
        runs = self.workday.chunks + self.workday.schedule_s * firings
        keeping = self.commit_s * runs + written * self.row_bytes * self.constants.write_byte
        facts = _Facts(
            tier=tier,
            rate=rate,
            seconds=seconds,
            overlap=overlap,
            is_in_order=overlap <= 1 or isinstance(tier.window, CumulateWindow),
            domain=domain,
            rows=rows,
            per_second=rate * rows,
            scheduled=self.workday.schedule_s * firings * (seconds + unread),
            starting=self.constants.query * runs,
            keeping=keeping,
            making=keeping + written * self.constants.build_row,
        )
        _, seconds = self._read_raw(facts)
        return facts._replace(raw=seconds + facts.starting + facts.making)


class _Rows(NamedTuple):
    """Rows of a parent, and what happens to them.

    Attributes:
        read: So many are read.
        merged: So often one is merged into a window.
        moved: So many move then.
        slid: So many are put in order, for windows that overlap.
    """

    read: float
    merged: float
    moved: float
    slid: float = 0.0


class _Facts(NamedTuple):
    """What the model knows of a tier.

    Attributes:
        tier: The tier.
        rate: Windows per second.
        seconds: How long a window or slice is, on average.
        overlap: How many windows hold an instant, on average.
        is_in_order: Whether one pass over the slices merges each once: windows do not overlap, or grow from one begin.
        domain: Keys that there are, or keys with a value.
        rows: Rows of a window.
        per_second: Rows per second of event time.
        scheduled: Event time that scheduled runs read: each run, back to the begin of the first window that it writes.
        starting: Seconds to start the queries that make the tier by itself, one in each run.
        keeping: Seconds to commit and write the tier.
        making: Seconds to build its rows as well.
        raw: Seconds to make the tier from the raw rows.
    """

    tier: Tier
    rate: float
    seconds: float
    overlap: float
    is_in_order: bool
    domain: float
    rows: float
    per_second: float
    scheduled: float
    starting: float
    keeping: float
    making: float
    raw: float = 0.0


@lru_cache(maxsize=1 << 10)
def _final(slices: int, *, invertible: bool) -> tuple[float, bool]:
    """How often the cheapest technique merges each slice of windows of so many, and whether it takes them in order."""
    technique = choose(slices, invertible=invertible)
    return float(work(technique, slices)), technique is not Technique.NAIVE


def _cover(child: Tier, parent: Tier) -> int:
    """The fewest windows of the parent that make up one of the child: each is the last that touches the one before."""
    if child.range_s is None or parent.range_s is None or parent.slide_s is None:
        raise PlanError(f"tier '{child.name}' from '{parent.name}': slices do not overlap.")
    reach = parent.range_s // parent.slide_s * parent.slide_s
    return 1 - (parent.range_s - child.range_s) // reach
