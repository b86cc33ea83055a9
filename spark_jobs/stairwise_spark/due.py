"""What a run has to do: which windows of each tier are missing, and which the source has changed since.

A window is due if no claim holds it, or if the claim is of an older version of the source and a change since touches
it. What no change touches reflects the newer version as it is: that is known now, and kept without a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from stairwise.edges import EdgeSet
from stairwise.plan import Plan
from stairwise.tiers import Tier
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.changes import Changes
from stairwise_spark.compute import held, touched
from stairwise_spark.coverage import DOUBTFUL, Coverage, State
from stairwise_spark.spans import Spans, common, in_whole_slices, joined, without

BEGINNING = -62_135_596_800
"""0001-01-01T00:00:00Z: whoever asks for everything asks for all windows since."""

ChangesOf = Callable[[int, EdgeSet, Sequence[Interval]], Changes]
"""What the source has changed since a version, looked at in slices, within some ranges of event time."""


def _always(_: Tier) -> bool:
    """They can."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        plan: All steps, parents first.
        span: The windows that end in (start, end] of it are wanted.
        wanted: The names of the tiers that are; from the others they are only made.
        version: The version of the source that tables shall reflect.
        followed_from: Of tables that reached so far when they reflected a version, the event time from which on a
            change since is followed; None: all is.
        is_restated: Whether windows are due that nothing has changed.
        kept_since: The event time from which on the source has its rows still; None: it has all.
        reads_back: Whether the rows of a tier can be read from its table.
    """

    plan: Plan
    span: Interval
    wanted: tuple[str, ...]
    version: int
    followed_from: Callable[[int], int] | None = None
    is_restated: bool = False
    kept_since: int | None = None
    reads_back: Callable[[Tier], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is due, and what is known now.

    Attributes:
        due: For each tier that is wanted, the ranges of which the windows that end in them have to be made.
        states: What each tier reflects, as of now: what no change touched is at the version of the source.
        changed: What was found out about the source since each version that some tier reflects.
        ignored: The same of what came too late.
        gone: The same of what happened before the source keeps its rows.
        lost: For each tier, the windows that would be due, if what they are made of were not gone.
    """

    due: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    states: Mapping[str, State] = field(default_factory=dict[str, State])
    changed: tuple[Changes, ...] = ()
    ignored: tuple[Changes, ...] = ()
    gone: tuple[Changes, ...] = ()
    lost: Mapping[str, Spans] = field(default_factory=dict[str, Spans])

    @property
    def is_anything_due(self) -> bool:
        """Whether there is anything to do."""
        return any(self.due.values())

    @property
    def looked_at(self) -> tuple[Changes, ...]:
        """All that was found out about the source."""
        return (*self.changed, *self.ignored, *self.gone)

    @property
    def late_rows(self) -> int | None:
        """Rows that came after windows that hold them had been made; None: nobody counted them."""
        return _sum(self.looked_at)

    @property
    def ignored_rows(self) -> int | None:
        """Those of them that came too late to be followed."""
        return _sum(self.ignored)

    @property
    def unrepairable_rows(self) -> int | None:
        """Those of them that belong to windows of which the source has dropped rows."""
        return _sum(self.gone)


def find(question: Question, states: Mapping[str, State], changes_of: ChangesOf) -> Findings:
    """What there is to do.

    Args:
        question: What is asked.
        states: What each tier reflects.
        changes_of: Compares versions of the source.
    """
    asked = _asked(question)
    tiers = {step.tier.name: step.tier for step in question.plan.steps}
    stale: dict[int, dict[str, Spans]] = {}
    for name, span in asked.items():
        for version, stretches in _stale(states[name].coverage, span, question.version):
            stale.setdefault(version, {})[name] = stretches
    slices = reduce(EdgeSet.__or__, (step.tier.needs for step in question.plan.steps if step.reads is None))
    changed: list[Changes] = []
    ignored: list[Changes] = []
    gone: list[Changes] = []
    kept_since = None if question.kept_since is None else _first_whole(slices, question.kept_since)
    known = {name: state.coverage for name, state in states.items()}
    for version, by_tier in sorted(stale.items()):
        within = joined(_happened(tiers[name], span) for name, spans in by_tier.items() for span in spans)
        # As far as tables were then, whatever a run that died has added since.
        claimed = (each for state in states.values() for each in state.coverage.stretches)
        reached = max(each.end for each in claimed if each.version == version)
        dropped, kept = _parted(within, kept_since)
        late, followed = _parted(kept, question.followed_from and question.followed_from(reached))
        if dropped:
            gone.append(changes_of(version, slices, dropped))
        if late:
            ignored.append(changes_of(version, slices, late))
        if followed:
            changed.append(changes_of(version, slices, followed))
        spans = changed[-1].spans if followed else ()
        for name, ranges in by_tier.items():
            held_up = joined(touched(tiers[name], span) for span in spans)
            advanced = Coverage.over((each.start, each.end, question.version) for each in without(ranges, held_up))
            known[name] = known[name].overlaid(advanced)
    due = {name: _due(question, known[name]) for name in question.wanted}
    lost = {} if kept_since is None else unobtainable(question, known, due, kept_since)
    missed = {name: found for name, spans in due.items() if (found := common(spans, lost.get(name, ())))}
    for name, spans in missed.items():
        # What is there is the best there will be.
        older = [each for each in known[name].stretches if DOUBTFUL < each.version < question.version]
        there = common(joined(Interval(each.start, each.end) for each in older), spans)
        known[name] = known[name].overlaid(Coverage.over((*each, question.version) for each in there))
    return Findings(
        due={name: without(spans, missed.get(name, ())) for name, spans in due.items()},
        states={name: State(state.version, known[name]) for name, state in states.items()},
        changed=tuple(changed),
        ignored=tuple(ignored),
        gone=tuple(gone),
        lost=missed,
    )


def unobtainable(
    question: Question, known: Mapping[str, Coverage], due: Mapping[str, Spans], kept_since: int
) -> dict[str, Spans]:
    """For each tier, the windows that nothing gives any more, as ranges of their ends.

    They hold an instant before the source keeps its rows, and the tier that they are made of has not all of them. Of
    time that no table has seen yet, the source is asked all the same: nothing is lost by it.

    Args:
        question: What is asked.
        known: What each tier reflects.
        due: What is to be made, and so is not read.
        kept_since: Where the first slice begins of which the source has all rows.
    """
    found: dict[str, Spans] = {}
    missing: dict[str | None, Spans] = {None: _history(question.plan, known, kept_since)}
    for step in question.plan.steps:
        name, tier = step.tier.name, step.tier
        found[name] = joined(touched(tier, span) for span in missing[step.reads])
        there = available(known[name], question.version) if question.reads_back(tier) else ()
        gone = without(found[name], without(there, due.get(name, ())))
        missing[name] = joined(each for span in gone if (each := held(tier, span)).start < each.end)
    return found


def _history(plan: Plan, known: Mapping[str, Coverage], until: int) -> Spans:
    """The event time before an instant of which some tier has windows."""
    seen = (
        held(step.tier, Interval(each.start, each.end))
        for step in plan.steps
        for each in known[step.tier.name].stretches
    )
    return common(joined(each for each in seen if each.start < each.end), (Interval(BEGINNING, until),))


def _first_whole(slices: EdgeSet, instant: int) -> int:
    """Where the first slice begins that does not begin before an instant."""
    return in_whole_slices(slices, [Interval(instant - 1, instant)])[0].end


def bare(coverage: Coverage, tier: Tier, events: Interval | None) -> Spans:
    """The windows, as ranges of their ends, that hold no event, and of which the table never held a row.

    Args:
        coverage: Of the tier.
        tier: The tier.
        events: From the first event to after the last; None: nobody knows.
    """
    if events is None:
        return ()
    always = Interval(BEGINNING, 2 * -BEGINNING)
    held_by = (touched(tier, events),) if events.start < events.end else ()
    claimed = joined(Interval(start, end) for start, end, _ in coverage.stretches)
    return without(without((always,), held_by), claimed)


def available(coverage: Coverage, version: int) -> Spans:
    """The ranges of which a table holds the windows that end in them exactly as a version of the source gives them."""
    return joined(Interval(start, end) for start, end, each in coverage.stretches if each == version)


def _asked(question: Question) -> dict[str, Interval]:
    """For each tier the windows that are wanted or read, as one range of their ends."""
    asked: dict[str, Interval] = {}
    for step in reversed(question.plan.steps):
        name = step.tier.name
        if name in question.wanted:
            asked[name] = _around(asked.get(name, question.span), question.span)
        if name in asked and step.reads is not None:
            read = _happened(step.tier, asked[name])
            asked[step.reads] = _around(asked.get(step.reads, read), read)
    return asked


def _around(one: Interval, other: Interval) -> Interval:
    return Interval(min(one.start, other.start), max(one.end, other.end))


def _happened(tier: Tier, ends: Interval) -> Interval:
    """When the events happened of the windows that end in a range, or longer; without listing them."""
    if tier.window is None:
        return held(tier, ends)
    first = next(windows_ending(tier.window, *ends), None)
    return Interval(ends.start, ends.start) if first is None else Interval(min(first.start, ends.end), ends.end)


def _stale(coverage: Coverage, span: Interval, version: int) -> Iterator[tuple[int, Spans]]:
    """The ranges that reflect an older version, by version."""
    found: dict[int, list[Interval]] = {}
    for start, end, each in coverage.within(span).stretches:
        if DOUBTFUL < each < version:
            found.setdefault(each, []).append(Interval(start, end))
    return ((each, joined(spans)) for each, spans in found.items())


def _due(question: Question, coverage: Coverage) -> Spans:
    return joined([question.span]) if question.is_restated else coverage.gaps(question.span, question.version)


def _parted(spans: Spans, bound: int | None) -> tuple[Spans, Spans]:
    """What is before an instant, and what is not; all of it is not before None."""
    if bound is None:
        return (), spans
    earlier = joined([Interval(BEGINNING, bound)])
    return common(spans, earlier), without(spans, earlier)


def _sum(changes: Sequence[Changes]) -> int | None:
    found = [each.late_rows for each in changes]
    return None if None in found else sum(each or 0 for each in found)
