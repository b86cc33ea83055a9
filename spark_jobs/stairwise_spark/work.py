"""The frames of one chunk: what is computed, what is read from tables, and what is kept in memory meanwhile.

What is covered at the version of the source is read from the tables, the rest is computed, each tier from its parent. A
tier that is both written and read, or read by several, is computed once and kept, distributed by the keys: whatever is
made of it stays where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from stairwise.aggregate import ROWS
from stairwise.plan import Pass, Plan, Step
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, computed, events, finer, is_finer_cheaper
from stairwise_spark.errors import translating
from stairwise_spark.grid import is_within, within
from stairwise_spark.halves import any_of
from stairwise_spark.names import column
from stairwise_spark.observed import number
from stairwise_spark.rows import NUMBER, Rows
from stairwise_spark.session import planned_once
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import Spans, hull, joined, without
from stairwise_spark.storage import Storage
from stairwise_spark.together import distributed, made_together

_Make = Callable[[Step, DataFrame, Content, Interval], DataFrame]
"""Makes the rows of a step from those of what it reads, for the windows that end in a range."""

# Few rows are moved to so many tasks at most, whatever the cluster is set to.
_FEW_TASKS = 8


@dataclass(slots=True)
class _Kept:
    """A frame that is kept in memory, and whether it is there yet."""

    frame: DataFrame
    is_there: bool = False


@dataclass(slots=True, kw_only=True)
class Work:
    """The frames of one chunk.

    Attributes:
        plan: All steps, parents first.
        content: What the rows hold.
        source: Where the events are.
        storage: Where the tiers are.
        versions: The newest version of each tier's table.
        available: For each tier, the ranges of which its table holds the windows that end in them as the pinned source
            gives them.
        due: For each tier that is written, the ranges of which the windows that end in them are.
        goes_together: Whether tiers can be made by one pass, for their states are such.
        observed: Who counts the rows of the source that are read.
        spans: When these happened, for each time that they are read.
    """

    plan: Plan
    content: Content
    source: PinnedSource
    storage: Storage
    versions: Mapping[str, int]
    available: Mapping[str, Spans]
    due: Mapping[str, Spans]
    goes_together: bool
    observed: list[Observation] = field(default_factory=list[Observation])
    spans: list[Interval] = field(default_factory=list[Interval])
    _needed: dict[str, Spans] = field(default_factory=dict[str, Spans])
    _missing: dict[str, Spans] = field(default_factory=dict[str, Spans])
    _held: dict[str, Spans] = field(default_factory=dict[str, Spans])
    _kept: dict[int, _Kept] = field(default_factory=dict[int, "_Kept"])
    _is_small: bool = False

    def __post_init__(self) -> None:
        """Work out what is needed of each tier, and what of that has to be computed; readers before what they read."""
        self._is_small = self.storage.arrangement.has_few(self.due)
        self._needed.update(self.due)
        for step in reversed(self.plan.steps):
            name = step.tier.name
            if name in self._needed:
                missing = self._not_there(step, self._needed[name])
                self._missing[name] = missing
                read = events(step.tier, missing)
                if step.reads is not None and read:
                    self._needed[step.reads] = joined((*self._needed.get(step.reads, ()), *read))

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
                places = {self.storage.place(each.tier.name) for each in steps if each.tier.name in self.due}
                uses = len(places) + sum(readers[each.tier.name] for each in steps)
                found |= self._made(group, found, is_kept=uses > 1 or (bool(places) and self._is_small))
        return found

    def written(self, found: Mapping[str, Rows]) -> dict[str, Rows]:
        """Of the rows that :meth:`frames` gave, those that are due, without windows that are only read."""
        frames: dict[int, list[str]] = {}
        for name in self.due:
            frames.setdefault(id(found[name].frame), []).append(name)
        due: dict[str, Rows] = {}
        for names in frames.values():
            frame = found[names[0]].frame
            if any(self._held[name] != self.due[name] for name in names):
                frame = self._only_due(frame, {name: found[name].number for name in names})
            due.update({name: Rows(frame, found[name].number) for name in names})
        return due

    def _only_due(self, frame: DataFrame, numbers: Mapping[str, int | None]) -> DataFrame:
        end = column("_end") - F.lit(1)
        (name, number), *others = numbers.items()
        if number is None and not others:
            return within(frame, end, self.due[name])
        return frame.where(
            any_of((column(NUMBER) == of) & is_within(end, self.due[name]) for name, of in numbers.items())
        )

    def _groups(self) -> dict[str, Step | Pass]:
        """For each tier that is needed, its step, or the pass that makes it.

        That is a pass of the plan, of those steps of which windows that are needed have to be computed. Windows that
        are there go through it too, if it is only the pass that reads them.
        """
        groups: dict[str, Step | Pass] = {
            step.tier.name: step for step in self.plan.steps if step.tier.name in self._needed
        }
        for each in self.plan.passes() if self.goes_together else ():
            steps = self._inside(each, self._needed.keys()) if each.reads in self._needed else ()
            if any(self._there(step) and self._is_read_beside(step, steps) for step in steps):
                steps = self._inside(
                    each, {name for name, wanted in self._needed.items() if wanted == self._missing[name]}
                )
            if len(steps) > 1 or any(step.final is not None for step in steps):
                together = replace(each, steps=(*self._merged_first(each, steps), *steps))
                groups.update(dict.fromkeys((step.tier.name for step in together.steps), together))
        return groups

    def _inside(self, group: Pass, tiers: Collection[str]) -> tuple[Step, ...]:
        """The steps of a pass that make some tiers, as far as what they read is inside too."""
        inside = {group.reads}
        for step in group.steps:
            if step.tier.name in tiers and step.reads in inside:
                inside.add(step.tier.name)
        return tuple(step for step in group.steps if step.tier.name in inside)

    def _there(self, step: Step) -> Spans:
        """What is needed of a tier and has not to be computed."""
        return without(self._needed[step.tier.name], self._missing[step.tier.name])

    def _merged_first(self, group: Pass, steps: Sequence[Step]) -> tuple[Step, ...]:
        """What a pass reads, if that is best made by the pass itself: of the rows of finer slices, or as it is.

        Few rows that are written too go through the pass, for all of them are one query then. Of many, that would cost
        more than to keep them in memory for both.
        """
        step, name = self.plan.step(group.reads), group.reads
        if not self._missing[name] or (self._there(step) and self._is_read_beside(step, steps)):
            return ()
        is_alike = not (self.content.results or step.tier.keeps_values)
        is_passed_on = self._is_small and name in self.due and is_alike
        return (step,) if is_passed_on or is_finer_cheaper(step) else ()

    def _made(self, group: Step | Pass, found: Mapping[str, Rows], *, is_kept: bool) -> dict[str, Rows]:
        """The rows of a step, or of those of a pass; kept in memory if they are used several times."""
        if isinstance(group, Step):
            self._held[group.tier.name] = self._needed[group.tier.name]
            frame = self._frame(group, found)
            kept = self._kept_in_memory(group, distributed(frame, self.content.keys), found) if is_kept else frame
            return {group.tier.name: Rows(kept)}
        steps = group.steps
        first, missing = steps[0], self._missing[group.reads]
        stored = {each.tier.name: self._from_table(each, there) for each in steps if (there := self._there(each))}
        if first.tier.name != group.reads:
            parent = found[group.reads].alone()
            is_distributed = id(found[group.reads].frame) in self._kept
        else:
            is_distributed = False
            parent = (
                self._from_events(first, missing, finer)
                if is_finer_cheaper(first)
                else self._computed(first, found, missing)
            )
        if not (is_distributed or stored):
            parent = distributed(parent, self.content.keys)
        self._held.update((each.tier.name, self._missing[each.tier.name]) for each in steps)
        wanted = {step.tier.name for step in steps if step.tier.name in self.due or self._is_read_beside(step, steps)}
        made = made_together(parent, self.content, steps, self._missing, wanted, stored)
        made = self._kept_in_memory(first, made, found) if is_kept else made
        return {step.tier.name: Rows(made, number) for number, step in enumerate(steps, 1) if step.tier.name in wanted}

    def _is_read_beside(self, step: Step, steps: Sequence[Step]) -> bool:
        """Whether a tier that is needed reads this one, and is not made together with it."""
        readers = self.plan.readers(step.tier.name)
        return any(reader.tier.name in self._needed and reader not in steps for reader in readers)

    def rows_read(self) -> int:
        """The rows of the source that were read, once all frames have been."""
        return sum(number(each, "rows") or 0 for each in self.observed)

    def release(self) -> None:
        """What was kept in memory is let go; readers first, for Spark plans anew what is made of what goes."""
        for kept in reversed(self._kept.values()):
            kept.frame.unpersist()

    def _frame(self, step: Step, found: Mapping[str, Rows]) -> DataFrame:
        """What is missing, computed, and the rest from the table."""
        name = step.tier.name
        missing = self._missing[name]
        there = without(self._needed[name], missing)
        parts: list[DataFrame] = []
        if missing:
            parts.append(self._computed(step, found, missing))
        if there:
            parts.append(self._from_table(step, there))
        if len(parts) == 1:
            return parts[0]
        return parts[0].unionByName(parts[1].select(*map(column, parts[0].columns)))

    def _computed(self, step: Step, found: Mapping[str, Rows], missing: Spans) -> DataFrame:
        read = events(step.tier, missing)
        if step.reads is not None and step.reads in found:
            parent = found[step.reads].alone()
            parent = parent if len(read) == 1 else within(parent, column("_begin"), read)
            return _ending(computed(step, parent, self.content, hull(missing)), missing)
        return self._from_events(step, missing, computed)

    def _from_events(self, step: Step, missing: Spans, make: _Make) -> DataFrame:
        read, whole, observed = events(step.tier, missing), hull(missing), Observation()
        self.spans.extend(read)
        self.observed.append(observed)
        if not step.tier.tiles:
            return _ending(make(step, self.source.rows(read, observed), self.content, whole), missing)
        # Each event is in one row of the tier, which are fewer: to count events would take a third of a scan.
        made = make(step, self.source.rows(read), self.content, whole)
        return made.observe(observed, F.sum(ROWS.name).alias("rows"))

    def _from_table(self, step: Step, there: Spans) -> DataFrame:
        """The stored windows that end in some ranges."""
        name = step.tier.name
        rows = self.storage.read(name, self.versions[name], hull(events(step.tier, there)))
        return within(rows, column("_end") - F.lit(1), there)

    def _not_there(self, step: Step, wanted: Spans) -> Spans:
        """The part of what is wanted of a tier that has to be computed: what is due, and what its table lacks."""
        if self.content.results and not step.tier.keeps_values:
            return wanted  # results that do not merge are not read back
        name = step.tier.name
        return without(wanted, without(self.available.get(name, ()), self.due.get(name, ())))

    def _kept_in_memory(self, step: Step, frame: DataFrame, found: Mapping[str, Rows]) -> DataFrame:
        """The frame, computed once; what is made of it stays where it lies.

        What it reads is computed before, if that is kept too. Two that are used side by side would be waited for for
        ever if the inner one failed: Spark then holds each of them until it has the other.
        """
        parent = found.get(step.reads or "")
        inner = None if parent is None else self._kept.get(id(parent.frame))
        if inner is not None and not inner.is_there:
            with translating(f"tier {step.reads}"):
                inner.frame.count()
            inner.is_there = True
        with planned_once(frame.sparkSession, _FEW_TASKS if self._is_small else None):
            self._kept[id(frame)] = _Kept(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return frame


def _ending(frame: DataFrame, ends: Spans) -> DataFrame:
    """Of the windows that end in the hull of some ranges, those that end in one of them."""
    return frame if len(ends) == 1 else within(frame, column("_end") - F.lit(1), ends)


def _steps(group: Step | Pass) -> tuple[Step, ...]:
    return (group,) if isinstance(group, Step) else group.steps
