"""The frames of one chunk: what is computed, what is read from tables, and what is kept in memory meanwhile.

What is covered at the version of the source is read from the tables, the rest is computed, each tier from its parent. A
tier that is both written and read, or read by several, is computed once and kept, distributed by the keys: whatever is
made of it stays where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from stairwise.aggregate import ROWS
from stairwise.plan import Pass, Plan, Step
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, computed, finer, held, is_finer_cheaper
from stairwise_spark.grid import micros
from stairwise_spark.names import column
from stairwise_spark.observed import number
from stairwise_spark.rows import Rows
from stairwise_spark.source import PinnedSource
from stairwise_spark.storage import Storage
from stairwise_spark.together import distributed, made_together

_Make = Callable[[Step, DataFrame, Content, Interval], DataFrame]
"""Makes the rows of a step from those of what it reads, for the windows that end in a range."""


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
        goes_together: Whether tiers can be made by one pass, for their states are such.
        observed: Who counts the rows of the source that are read.
        spans: When these happened, for each time that they are read.
    """

    plan: Plan
    content: Content
    source: PinnedSource
    storage: Storage
    versions: Mapping[str, int]
    covers: Callable[[str, Interval], bool]
    chunk: Interval
    due: Sequence[Step]
    goes_together: bool
    observed: list[Observation] = field(default_factory=list[Observation])
    spans: list[Interval] = field(default_factory=list[Interval])
    _needed: dict[str, Interval] = field(default_factory=dict[str, Interval])
    _missing: dict[str, Interval] = field(default_factory=dict[str, Interval])
    _kept: dict[str, DataFrame] = field(default_factory=dict[str, DataFrame])

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

    def frames(self) -> dict[str, Rows]:
        """The rows of each tier that is needed."""
        groups = self._groups()
        readers = dict.fromkeys(groups, 0)
        for step in self.plan.steps:
            name, reads = step.tier.name, step.reads
            if name in groups and reads in groups and _steps(groups[name])[0] is step:
                readers[reads] += 1
        found: dict[str, Rows] = {}
        for step in self.plan.steps:
            group = groups.get(step.tier.name)
            if group is not None and (steps := _steps(group))[0] is step:
                places = {self.storage.place(each.tier.name) for each in steps if each in self.due}
                uses = len(places) + sum(readers[each.tier.name] for each in steps)
                found |= self._made(group, found, is_kept=uses > 1)
        return found

    def _groups(self) -> dict[str, Step | Pass]:
        """For each tier that is needed, its step, or the pass that makes it.

        That is a pass of the plan, of those steps all of whose windows that are needed have to be computed.
        """
        groups: dict[str, Step | Pass] = {
            step.tier.name: step for step in self.plan.steps if step.tier.name in self._needed
        }
        for each in self.plan.passes() if self.goes_together else ():
            inside = {each.reads: True}
            for step in each.steps:
                wanted, missing = self._needed.get(step.tier.name), self._missing.get(step.tier.name)
                is_whole = wanted is not None and wanted == missing and wanted.start < wanted.end
                inside[step.tier.name] = is_whole and inside.get(step.reads or "", False)
            steps = tuple(step for step in each.steps if inside[step.tier.name])
            if len(steps) > 1 or any(step.final is not None for step in steps):
                together = replace(each, steps=(*self._merged_first(each), *steps))
                groups.update(dict.fromkeys((step.tier.name for step in together.steps), together))
        return groups

    def _merged_first(self, group: Pass) -> tuple[Step, ...]:
        """What a pass reads, if that is best made by the pass itself, of the rows of finer slices."""
        step = self.plan.step(group.reads)
        is_whole = self._needed[group.reads] == self._missing[group.reads]
        return (step,) if is_whole and is_finer_cheaper(step) else ()

    def _made(self, group: Step | Pass, found: Mapping[str, Rows], *, is_kept: bool) -> dict[str, Rows]:
        """The rows of a step, or of those of a pass; kept in memory if they are used several times."""
        if isinstance(group, Step):
            frame = self._frame(group, found)
            kept = self._kept_in_memory(group, distributed(frame, self.content.keys)) if is_kept else frame
            return {group.tier.name: Rows(kept)}
        steps = group.steps
        if steps[0].tier.name == group.reads:
            parent = self._from_events(steps[0], self._missing[group.reads], finer)
        else:
            parent = found[group.reads].alone()
        parent = parent if group.reads in self._kept else distributed(parent, self.content.keys)
        wanted = {step.tier.name for step in steps if step in self.due or self._is_read_beside(step, steps)}
        made = made_together(parent, self.content, steps, self._missing, wanted)
        made = self._kept_in_memory(steps[0], made) if is_kept else made
        return {step.tier.name: Rows(made, number) for number, step in enumerate(steps, 1) if step.tier.name in wanted}

    def _is_read_beside(self, step: Step, steps: Sequence[Step]) -> bool:
        """Whether a tier that is needed reads this one, and is not made together with it."""
        readers = self.plan.readers(step.tier.name)
        return any(reader.tier.name in self._needed and reader not in steps for reader in readers)

    def rows_read(self) -> int:
        """The rows of the source that were read, once all frames have been."""
        return sum(number(each, "rows") or 0 for each in self.observed)

    def release(self) -> None:
        """What was kept in memory is let go."""
        for frame in self._kept.values():
            frame.unpersist()

    def _frame(self, step: Step, found: Mapping[str, Rows]) -> DataFrame:
        """What is missing, computed, and the rest from the table."""
        name = step.tier.name
        wanted, missing = self._needed[name], self._missing[name]
        parts: list[DataFrame] = []
        if missing.start < missing.end:
            parts.append(self._computed(step, found, missing))
        if (wanted.start, wanted.end) != (missing.start, missing.end):
            parts.append(self._from_table(step, wanted, missing))
        if len(parts) == 1:
            return parts[0]
        return parts[0].unionByName(parts[1].select(*map(column, parts[0].columns)))

    def _computed(self, step: Step, found: Mapping[str, Rows], missing: Interval) -> DataFrame:
        if step.reads is not None and step.reads in found:
            return computed(step, found[step.reads].alone(), self.content, missing)
        return self._from_events(step, missing, computed)

    def _from_events(self, step: Step, missing: Interval, make: _Make) -> DataFrame:
        span, observed = held(step.tier, missing), Observation()
        self.spans.append(span)
        self.observed.append(observed)
        if not step.tier.tiles:
            return make(step, self.source.rows(span, observed), self.content, missing)
        # Each event is in one row of the tier, which are fewer: to count events would take a third of a scan.
        made = make(step, self.source.rows(span), self.content, missing)
        return made.observe(observed, F.sum(ROWS.name).alias("rows"))

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

    def _kept_in_memory(self, step: Step, frame: DataFrame) -> DataFrame:
        """The frame, computed once; what is made of it stays where it lies."""
        self._kept[step.tier.name] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return frame


def _steps(group: Step | Pass) -> tuple[Step, ...]:
    return (group,) if isinstance(group, Step) else group.steps
