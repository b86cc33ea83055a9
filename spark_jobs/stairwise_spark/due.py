"""What a run has to do: which windows of each tier are missing, and which the source has changed since.

A window is due if no claim holds it, or if the claim is of an older version of the source and a change since touches
it. What no change touches reflects the newer version as it is: that is known now, and kept without a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from stairwise.edges import EdgeSet
from stairwise.plan import Plan
from stairwise.tiers import Tier
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.additions import Additions
from stairwise_spark.changes import Changes
from stairwise_spark.compute import all_touched, events, held, touched
from stairwise_spark.coverage import DOUBTFUL, Coverage, State
from stairwise_spark.lost import (
    BEGINNING,
    ByVersion,
    Standing,
    among,
    available,
    counted,
    end_of_lost,
    mendable,
    whole,
)
from stairwise_spark.spans import Spans, common, in_whole_slices, joined, without

__all__ = ["BEGINNING", "Findings", "Question", "available", "bare", "find"]

ChangesOf = Callable[[EdgeSet, Mapping[int, Spans]], Mapping[int, Changes]]
"""What the source has changed, looked at in slices: since each of some versions, within its ranges of event time."""

AdditionsOf = Callable[[int, EdgeSet, Sequence[Interval], int], Additions | None]
"""What was only added to the source since a version, by the instant from which on it keeps its rows."""


def _always(_: Tier) -> bool:
    """They can."""
    return True


def _untold(*_: object) -> None:
    """Nobody knows."""
    return


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
        additions_of: Says what was only added to the source where it has dropped rows.
    """

    plan: Plan
    span: Interval
    wanted: tuple[str, ...]
    version: int
    followed_from: Callable[[int], int] | None = None
    is_restated: bool = False
    kept_since: int | None = None
    reads_back: Callable[[Tier], bool] = _always
    additions_of: AdditionsOf = _untold


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
        mends: For each tier, the windows to whose stored rows others have to be added, as ranges of their ends, by the
            version that these rows reflect. Coarser windows may be due that are made of them.
        additions: What was only added to the source since each of these versions.
        repaired_rows: How many rows that is.
        unrepairable_rows: The rows that came for lost windows; None: nobody counted them.
    """

    due: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    states: Mapping[str, State] = field(default_factory=dict[str, State])
    changed: tuple[Changes, ...] = ()
    ignored: tuple[Changes, ...] = ()
    gone: tuple[Changes, ...] = ()
    lost: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    mends: Mapping[str, ByVersion] = field(default_factory=dict[str, ByVersion])
    additions: Mapping[int, Additions] = field(default_factory=dict[int, Additions])
    repaired_rows: int = 0
    unrepairable_rows: int | None = 0

    @property
    def is_anything_due(self) -> bool:
        """Whether there is anything to do."""
        return any(self.due.values()) or bool(self.mends)

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
    kept_since = None if question.kept_since is None else _first_whole(slices, question.kept_since)
    within = {
        version: joined(_happened(tiers[name], span) for name, spans in by_tier.items() for span in spans)
        for version, by_tier in sorted(stale.items())
    }
    looked = _look(question, within, _reached(states), slices, kept_since, changes_of)
    advanced: dict[str, list[Interval]] = {name: [] for name in states}
    for each in looked:
        spans = each.spans
        for name, ranges in stale[each.version].items():
            advanced[name] += without(ranges, all_touched(tiers[name], spans))
    now = {name: Coverage.of_all(joined(spans), question.version) for name, spans in advanced.items()}
    known = {name: state.coverage.overlaid(now[name]) for name, state in states.items()}
    due = {name: _due(question, known[name]) for name in question.wanted}
    found = Findings(
        due=due,
        states={name: State(state.version, known[name]) for name, state in states.items()},
        changed=tuple(each.changed for each in looked if each.changed is not None),
        ignored=tuple(each.ignored for each in looked if each.ignored is not None),
        gone=tuple(each.gone for each in looked if each.gone is not None),
        additions={each.version: each.additions for each in looked if each.additions is not None},
    )
    return found if kept_since is None else _without_lost(found, question, kept_since)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What was found out about the source since a version: what each tier follows, and what it does not."""

    version: int
    changed: Changes | None = None
    ignored: Changes | None = None
    gone: Changes | None = None
    additions: Additions | None = None

    @property
    def spans(self) -> Spans:
        """When the events happened that windows have to hold by now."""
        of_kept = () if self.changed is None else self.changed.spans
        return joined((*of_kept, *(() if self.additions is None else self.additions.spans)))


def _look(
    question: Question,
    within: Mapping[int, Spans],
    reached: Mapping[int, int],
    slices: EdgeSet,
    kept_since: int | None,
    changes_of: ChangesOf,
) -> list[_Looked]:
    """What was found out since each version, in order, within its ranges of event time."""
    late, gone, kept = dict[int, Spans](), dict[int, Spans](), dict[int, Spans]()
    additions: dict[int, Additions] = {}
    for version, spans in within.items():
        late[version], followed = _parted(spans, question.followed_from and question.followed_from(reached[version]))
        gone[version], kept[version] = _parted(followed, kept_since)
        if gone[version] and kept_since is not None:
            near, _ = _parted(followed, end_of_lost(question.plan, kept_since))
            if (added := question.additions_of(version, slices, near, kept_since)) is not None:
                additions[version] = added
                gone[version] = ()
    asked = ({version: spans for version, spans in each.items() if spans} for each in (late, gone, kept))
    ignored, lost, changed = (changes_of(slices, each) for each in asked)
    return [
        _Looked(
            version=version,
            gone=additions[version].changes if version in additions else lost.get(version),
            ignored=ignored.get(version),
            changed=changed.get(version),
            additions=additions.get(version),
        )
        for version in within
    ]


def _reached(states: Mapping[str, State]) -> dict[int, int]:
    """How far tables were when they reflected a version, whatever a run that died has added since."""
    found: dict[int, int] = {}
    for state in states.values():
        for each in state.coverage.stretches:
            found[each.version] = max(each.end, found.get(each.version, each.end))
    return found


def _without_lost(found: Findings, question: Question, kept_since: int) -> Findings:
    """The findings, once what nothing gives any more is not due: rows are added to it, or it stays as it is."""
    tiers = {name: question.plan.step(name).tier for name in question.wanted}
    known = {name: state.coverage for name, state in found.states.items()}
    standing = Standing(
        plan=question.plan,
        version=question.version,
        kept_since=kept_since,
        reads_back=question.reads_back,
        known=known,
        due=found.due,
    )
    possible = {
        name: mendable(tier, known[name], found.additions) for name, tier in tiers.items() if question.reads_back(tier)
    }
    lost = {
        name: common(found.due[name], spans) for name, spans in standing.unobtainable(possible).items() if name in tiers
    }
    mends = {name: by for name, each in possible.items() if (by := among(each, lost[name]))}
    missed = {name: left for name, spans in lost.items() if (left := without(spans, whole(mends.get(name, {}))))}
    stale = {name: {each: available(known[name], each) for each in found.additions} for name in missed}
    for name, spans in missed.items():
        # What is there is the best there will be.
        older = [each for each in known[name].stretches if DOUBTFUL < each.version < question.version]
        there = common(joined(Interval(each.start, each.end) for each in older), spans)
        known[name] = known[name].overlaid(Coverage.of_all(there, question.version))
    left_alone = [(tiers[name], among(stale[name], spans)) for name, spans in missed.items()]
    beyond = joined(each for tier, by in left_alone for spans in by.values() for each in events(tier, spans))
    unknown = _sum(
        [each for each in found.gone if all(each is not added.changes for added in found.additions.values())]
    )
    return replace(
        found,
        due={name: without(spans, lost[name]) for name, spans in found.due.items()},
        states={name: State(state.version, known[name]) for name, state in found.states.items()},
        lost=missed,
        mends=mends,
        repaired_rows=counted(found.additions, [(tiers[name], by) for name, by in mends.items()], beyond),
        unrepairable_rows=None if unknown is None else unknown + counted(found.additions, left_alone, ()),
    )


def _first_whole(slices: EdgeSet, instant: int) -> int:
    """Where the first slice begins that does not begin before an instant."""
    return in_whole_slices(slices, [Interval(instant - 1, instant)])[0].end


def bare(coverage: Coverage, tier: Tier, events: Spans | None) -> Spans:
    """The windows, as ranges of their ends, that hold no event, and of which the table never held a row.

    Args:
        coverage: Of the tier.
        tier: The tier.
        events: When they happened; None: nobody knows.
    """
    if events is None:
        return ()
    always = Interval(BEGINNING, 2 * -BEGINNING)
    held_by = joined(touched(tier, each) for each in events)
    claimed = joined(Interval(start, end) for start, end, _ in coverage.stretches)
    return without(without((always,), held_by), claimed)


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
