"""Which windows nothing gives any more, since what they are made of is gone; and to which of them rows can be added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stairwise.plan import Plan
from stairwise.tiers import Tier
from stairwise.windowing import Interval
from stairwise_spark.additions import Additions
from stairwise_spark.compute import all_touched, events, held, touched
from stairwise_spark.coverage import Coverage
from stairwise_spark.spans import Spans, common, joined, without

BEGINNING = -62_135_596_800
"""0001-01-01T00:00:00Z: whoever asks for everything asks for all windows since."""

ByVersion = Mapping[int, Spans]
"""Windows of a tier, as ranges of their ends, by the version of the source that their rows reflect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What tables reflect, and what of it is to be made.

    Attributes:
        plan: All steps, parents first.
        version: The version of the source that tables shall reflect.
        kept_since: Where the first slice begins of which the source has all rows.
        reads_back: Whether the rows of a tier can be read from its table.
        known: What each tier reflects.
        due: What is to be made, and so is not read.
    """

    plan: Plan
    version: int
    kept_since: int
    reads_back: Callable[[Tier], bool]
    known: Mapping[str, Coverage]
    due: Mapping[str, Spans]

    def unobtainable(self, mendable: Mapping[str, ByVersion]) -> dict[str, Spans]:
        """For each tier, the windows that are not to be made of anything any more, as ranges of their ends.

        They hold an instant before the source keeps its rows, and the tier that they are made of has not all of them.
        Of time that no table has seen yet, the source is asked all the same: nothing is lost by it.

        Args:
            mendable: To which of them rows can be added: then others can be made of these.
        """
        found: dict[str, Spans] = {}
        missing: dict[str | None, Spans] = {None: self._history()}
        for step in self.plan.steps:
            name, tier = step.tier.name, step.tier
            due = self.due.get(name, ())
            found[name] = all_touched(tier, missing[step.reads])
            there = available(self.known[name], self.version) if self.reads_back(tier) else ()
            mended = common(common(found[name], due), whole(mendable.get(name, {})))
            gone = without(without(found[name], without(there, due)), mended)
            missing[name] = events(tier, gone)
        return found

    def _history(self) -> Spans:
        """The event time before that which the source keeps of which some tier has windows."""
        seen = (
            held(step.tier, Interval(each.start, each.end))
            for step in self.plan.steps
            for each in self.known[step.tier.name].stretches
        )
        return common(joined(seen), (Interval(BEGINNING, self.kept_since),))


def available(coverage: Coverage, version: int) -> Spans:
    """The ranges of which a table holds the windows that end in them exactly as a version of the source gives them."""
    return joined(Interval(start, end) for start, end, each in coverage.stretches if each == version)


def end_of_lost(plan: Plan, kept_since: int) -> int:
    """Where the last window ends that may need what happened before an instant, or one that needs such a window."""
    ends: dict[str | None, int] = {None: kept_since}
    for step in plan.steps:
        last = touched(step.tier, Interval(ends[step.reads] - 1, ends[step.reads]))
        ends[step.tier.name] = max(ends[step.reads], held(step.tier, last).end)
    return max(ends.values())


def mendable(tier: Tier, coverage: Coverage, additions: Mapping[int, Additions]) -> dict[int, Spans]:
    """The windows of a tier to which rows were only added since the version that they reflect.

    Args:
        tier: One whose rows can be read from its table.
        coverage: What it reflects.
        additions: What was added since which version.
    """
    found: dict[int, Spans] = {}
    for version, added in additions.items():
        came, corrected = all_touched(tier, added.spans), all_touched(tier, added.corrected)
        if spans := without(common(came, available(coverage, version)), corrected):
            found[version] = spans
    return found


def whole(windows: ByVersion) -> Spans:
    """The windows of all versions."""
    return joined(span for spans in windows.values() for span in spans)


def among(windows: ByVersion, spans: Sequence[Interval]) -> dict[int, Spans]:
    """Those of the windows that are in some ranges."""
    return {version: found for version, each in windows.items() if (found := common(each, spans))}


def counted(additions: Mapping[int, Additions], windows: Sequence[tuple[Tier, ByVersion]], others: Spans) -> int:
    """How many rows were added to windows, each once, but for those of other times.

    What was added since an older version holds what was since a newer one.
    """
    total, seen = 0, others
    for version, added in sorted(additions.items()):
        spans = joined(each for tier, by_version in windows for each in events(tier, by_version.get(version, ())))
        total += added.count(without(spans, seen))
        seen = joined((*seen, *spans))
    return total
