"""The frames of one chunk: what is computed, what is read from tables, and what is kept in memory meanwhile.

What is covered at the version of the source is read from the tables, the rest is computed, each tier from its parent. A
tier that is both written and read, or read by several, is computed once and kept, distributed by the keys: whatever is
made of it stays where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread

from pyspark.sql import DataFrame, Observation
from pyspark.storagelevel import StorageLevel

from stairwise.plan import Plan, Step
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, computed, held
from stairwise_spark.errors import is_foreign
from stairwise_spark.grid import micros
from stairwise_spark.names import column
from stairwise_spark.source import PinnedSource
from stairwise_spark.storage import Storage

_LONGEST_WAIT = 5.0  # seconds for a number that is there as soon as the action has ended


@dataclass(slots=True, kw_only=True)
class Work:
    """The frames of one chunk.

    Attributes:
        plan: All steps, parents first.
        content: What the rows hold.
        source: Where the events are.
        storage: Where the tiers are.
        versions: The newest version of each tier's table.
        covers: Whether a tier's table holds the windows that end in a range as the pinned source gives them.
        chunk: The windows that end in (start, end] of it are written.
        due: The steps whose tiers are written.
        observed: Who counts the rows of the source that are read.
    """

    plan: Plan
    content: Content
    source: PinnedSource
    storage: Storage
    versions: Mapping[str, int]
    covers: Callable[[str, Interval], bool]
    chunk: Interval
    due: Sequence[Step]
    observed: list[Observation] = field(default_factory=list[Observation])
    _needed: dict[str, Interval] = field(default_factory=dict[str, Interval])
    _missing: dict[str, Interval] = field(default_factory=dict[str, Interval])
    _kept: list[DataFrame] = field(default_factory=list[DataFrame])

    def __post_init__(self) -> None:
        """Work out what is needed of each tier, and what of that has to be computed; readers before what they read."""
        due = {step.tier.name for step in self.due}
        self._needed.update(dict.fromkeys(due, self.chunk))
        for step in reversed(self.plan.steps):
            name = step.tier.name
            if name in self._needed:
                missing = self._not_there(step, self._needed[name], is_due=name in due)
                self._missing[name] = missing
                read = held(step.tier, missing)
                if step.reads is not None and missing.start < missing.end and read.start < read.end:
                    known = self._needed.get(step.reads, read)
                    self._needed[step.reads] = Interval(min(known.start, read.start), max(known.end, read.end))

    def frames(self) -> dict[str, DataFrame]:
        """The TIER frame of each tier that is needed."""
        due = {step.tier.name for step in self.due}
        readers: dict[str, int] = {}
        for step in self.plan.steps:
            if step.reads is not None and step.tier.name in self._missing:
                readers[step.reads] = readers.get(step.reads, 0) + 1
        found: dict[str, DataFrame] = {}
        for step in self.plan.steps:
            name = step.tier.name
            if name in self._needed:
                uses = readers.get(name, 0) + (name in due)
                frame = self._frame(step, found)
                found[name] = self._kept_in_memory(frame, step) if readers.get(name, 0) and uses > 1 else frame
        return found

    def rows_read(self) -> int:
        """The rows of the source that were read, once all frames have been."""
        return sum(map(_count, self.observed))

    def release(self) -> None:
        """What was kept in memory is let go."""
        for frame in self._kept:
            frame.unpersist()

    def _frame(self, step: Step, found: Mapping[str, DataFrame]) -> DataFrame:
        """What is missing, computed, and the rest from the table."""
        name = step.tier.name
        wanted, missing = self._needed[name], self._missing[name]
        parts: list[DataFrame] = []
        if missing.start < missing.end:
            parts.append(computed(step, self._parent(step, found, missing), self.content, missing))
        if (wanted.start, wanted.end) != (missing.start, missing.end):
            parts.append(self._from_table(step, wanted, missing))
        if len(parts) == 1:
            return parts[0]
        return parts[0].unionByName(parts[1].select(*map(column, parts[0].columns)))

    def _parent(self, step: Step, found: Mapping[str, DataFrame], missing: Interval) -> DataFrame:
        if step.reads is not None and step.reads in found:
            return found[step.reads]
        observed = Observation()
        self.observed.append(observed)
        return self.source.rows(held(step.tier, missing), observed)

    def _from_table(self, step: Step, wanted: Interval, missing: Interval) -> DataFrame:
        """The stored windows that end in what is wanted, but not in what is missing."""
        name = step.tier.name
        reach = held(step.tier, wanted)
        rows = self.storage.read(name, self.versions[name], reach)
        end = column("_end")
        is_wanted = (end > micros(wanted.start)) & (end <= micros(wanted.end))
        is_computed = (end > micros(missing.start)) & (end <= micros(missing.end))
        return rows.where(is_wanted & ~is_computed)

    def _not_there(self, step: Step, wanted: Interval, *, is_due: bool) -> Interval:
        """The part of what is wanted of a tier that has to be computed: none, what the chunk adds, or all."""
        name = step.tier.name
        if self.content.results and not step.tier.keeps_values:
            return wanted  # results that do not merge are not read back
        if not is_due and self.covers(name, wanted):
            return Interval(wanted.end, wanted.end)
        older = Interval(wanted.start, min(wanted.end, self.chunk.start))
        if older.start < older.end and self.covers(name, older):
            return Interval(older.end, wanted.end)
        return wanted

    def _kept_in_memory(self, frame: DataFrame, step: Step) -> DataFrame:
        """The frame, computed once, and lying by its keys, so that nothing that is made of it has to move."""
        keys = self.content.keys
        placed = frame.repartition(*map(column, keys)) if keys and step.reads is None else frame
        kept = placed.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept


def _count(observed: Observation) -> int:
    """The rows that an action has read; 0 if Spark found out that it needs none, for then it never counts."""
    found: list[int] = []

    def ask() -> None:
        try:
            found.append(observed.get["rows"])
        except Exception as error:
            if not is_foreign(error):
                raise

    waiting = Thread(target=ask, daemon=True)
    waiting.start()
    waiting.join(_LONGEST_WAIT)
    return sum(found)
