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
from stairwise_spark.spans import Spans, common, joined, without

BEGINNING = -62_135_596_800
"""0001-01-01T00:00:00Z: whoever asks for everything asks for all windows since."""

ChangesOf = Callable[[int, EdgeSet, Sequence[Interval]], Changes]
"""What the source has changed since a version, looked at in slices, within some ranges of event time."""


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
    """

    plan: Plan
    span: Interval
    wanted: tuple[str, ...]
    version: int
    followed_from: Callable[[int], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is due, and what is known now.

    Attributes:
        due: For each tier that is wanted, the ranges of which the windows that end in them have to be made.
        states: What each tier reflects, as of now: what no change touched is at the version of the source.
        changed: What was found out about the source since each version that some tier reflects.
        ignored: The same of what came too late.
    """

    due: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    states: Mapping[str, State] = field(default_factory=dict[str, State])
    changed: tuple[Changes, ...] = ()
    ignored: tuple[Changes, ...] = ()

    @property
    def is_anything_due(self) -> bool:
        """Whether there is anything to do."""
        return any(self.due.values())

    @property
    def late_rows(self) -> int | None:
        """Rows that came after windows that hold them had been made; None: nobody counted them."""
        return _sum([*self.changed, *self.ignored])

    @property
    def ignored_rows(self) -> int | None:
        """Those of them that came too late to be followed."""
        return _sum(self.ignored)


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
    known = {name: state.coverage for name, state in states.items()}
    for version, by_tier in sorted(stale.items()):
        within = joined(_happened(tiers[name], span) for name, spans in by_tier.items() for span in spans)
        # As far as tables were then, whatever a run that died has added since.
        claimed = (each for state in states.values() for each in state.coverage.stretches)
        reached = max(each.end for each in claimed if each.version == version)
        late, followed = _parted(within, question.followed_from and question.followed_from(reached))
        if late:
            ignored.append(changes_of(version, slices, late))
        if followed:
            changed.append(changes_of(version, slices, followed))
        spans = changed[-1].spans if followed else ()
        for name, ranges in by_tier.items():
            held_up = joined(touched(tiers[name], span) for span in spans)
            advanced = Coverage.over((each.start, each.end, question.version) for each in without(ranges, held_up))
            known[name] = known[name].overlaid(advanced)
    return Findings(
        due={name: _lacking(known[name], question.span, question.version) for name in question.wanted},
        states={name: State(state.version, known[name]) for name, state in states.items()},
        changed=tuple(changed),
        ignored=tuple(ignored),
    )


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


def _lacking(coverage: Coverage, span: Interval, version: int) -> Spans:
    return coverage.gaps(span, version)


def _parted(spans: Spans, bound: int | None) -> tuple[Spans, Spans]:
    """What is before an instant, and what is not; all of it is not before None."""
    if bound is None:
        return (), spans
    earlier = joined([Interval(BEGINNING, bound)])
    return common(spans, earlier), without(spans, earlier)


def _sum(changes: Sequence[Changes]) -> int | None:
    found = [each.late_rows for each in changes]
    return None if None in found else sum(each or 0 for each in found)
