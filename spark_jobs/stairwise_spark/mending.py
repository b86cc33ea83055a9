"""Late rows come to windows that cannot be made again: they are merged into the rows that are stored of them.

What is stored reflects a known version of the source, and the rows are those that were only added since. The merged
windows replace the stored ones by the commit that claims them at the new version: so no row is ever merged twice,
whoever dies or is faster. Each tier is mended by what it reflects itself, or made of one that was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from stairwise.aggregate import ROWS, Partial
from stairwise.plan import Plan, Step
from stairwise.tiers import How
from stairwise_spark.compute import Content, computed, events, stored
from stairwise_spark.coverage import Coverage
from stairwise_spark.due import Findings
from stairwise_spark.expressions import combined
from stairwise_spark.grid import micros, within
from stairwise_spark.halves import rows_of_all
from stairwise_spark.lost import ByVersion, whole
from stairwise_spark.names import column
from stairwise_spark.observed import number
from stairwise_spark.rows import Rows
from stairwise_spark.spans import Spans, hull, joined
from stairwise_spark.storage import Storage
from stairwise_spark.writes import Write

_BOUNDS = ("_begin", "_end")
_IS_COUNTED = "_is_counted"


@dataclass(slots=True, kw_only=True)
class Mending:
    """The windows that are mended by one run.

    Attributes:
        plan: All steps.
        content: What the rows hold.
        storage: Where the tiers are.
        findings: What is to be mended.
        version: The version of the source that windows reflect then.
        is_partial: Whether the windows have not ended, which they have; None: the tables do not say.
    """

    plan: Plan
    content: Content
    storage: Storage
    findings: Findings
    version: int
    is_partial: bool | None
    _late: dict[int, tuple[DataFrame, Observation]] = field(default_factory=dict[int, tuple[DataFrame, Observation]])

    @property
    def spans(self) -> Spans:
        """When the events happened that windows get."""
        return joined(span for version in self._versions() for span in self._needed(version))

    def writes(self) -> list[Write]:
        """For each tier its mended windows."""
        for version in self._versions():
            observed = Observation()
            rows = self.findings.additions[version].rows(self._needed(version))
            rows = rows.observe(observed, F.count(F.lit(1)).alias("rows"))
            self._late[version] = rows.persist(StorageLevel.MEMORY_AND_DISK), observed
        return [self._write(self.plan.step(name), windows) for name, windows in self.findings.mends.items()]

    def rows_read(self) -> int:
        """The rows of the source that were read, once all has been written."""
        return sum(number(observed, "rows") or 0 for _, observed in self._late.values())

    def release(self) -> None:
        """What was kept in memory is let go."""
        for frame, _ in self._late.values():
            frame.unpersist()

    def _versions(self) -> Iterator[int]:
        return (each for each in self.findings.additions if any(each in by for by in self.findings.mends.values()))

    def _needed(self, version: int) -> Spans:
        """When the events happened of the windows that reflect a version."""
        tiers = ((self.plan.step(name).tier, by.get(version, ())) for name, by in self.findings.mends.items())
        return joined(span for tier, ends in tiers for span in events(tier, ends))

    def _write(self, step: Step, windows: ByVersion) -> Write:
        tier, ends = step.tier, whole(windows)
        late = [self._placed(step, version, spans) for version, spans in windows.items()]
        there = self.storage.read(tier.name, self.storage.known[tier.name].version, hull(events(tier, ends)))
        frame = merged(step, [*late, _ending(there, ends)], self.content)
        return Write(
            tier=tier.name,
            rows=Rows(stored(tier, Rows(frame), self.content, is_partial=self.is_partial)),
            ends=ends,
            starts=events(tier, ends),
            coverage=Coverage.of_all(ends, self.version),
            is_merged=True,
        )

    def _placed(self, step: Step, version: int, ends: Spans) -> DataFrame:
        """The rows that came since a version as rows of the tier, those of some windows."""
        frame = within(self._late[version][0], column("_time"), events(step.tier, ends))
        from_rows = replace(step, reads=None, how=How.RAW, final=None)
        return _ending(computed(from_rows, frame, self.content, hull(ends)), ends)


def merged(step: Step, frames: Sequence[DataFrame], content: Content) -> DataFrame:
    """The rows of some frames of a tier, those of one window and one key as one.

    How many rows of the source they hold is known if it is of all of them. What the windows do not hold since nobody
    asked for it while their rows were there, they do not hold now.
    """
    partials = content.partials(keeps_values=step.tier.keeps_values)
    bounds = *map(column, content.keys), *map(column, _BOUNDS)
    states = [name for partial in partials for name in partial.columns]
    rows = rows_of_all(frame.select(*bounds, *map(column, states)) for frame in frames)
    is_counted = (F.count(ROWS.name) == F.count(F.lit(1))).alias(_IS_COUNTED)
    whole = rows.groupBy(*bounds).agg(*(each for partial in partials for each in combined(partial)), is_counted)
    count = F.when(column(_IS_COUNTED) & F.lit(step.how is not How.OVERLAPPING), column(ROWS.name))
    valid = {
        name: F.when(column("_begin") >= micros(since), column(name))
        for partial, since in _valid_from(content, partials).items()
        for name in partial.columns
    }
    return whole.withColumns({**valid, ROWS.name: count}).drop(_IS_COUNTED)


def _valid_from(content: Content, partials: Sequence[Partial]) -> Mapping[Partial, int]:
    """The states that windows do not hold of all time, and where the first window begins that holds them."""
    found: dict[Partial, int] = {}
    for partial in partials:
        users = [name for name, aggregate in content.aggregates if partial in aggregate.partials]
        if users and all(name in content.valid_from for name in users):
            found[partial] = min(content.valid_from[name] for name in users)
    return found


def _ending(frame: DataFrame, ends: Spans) -> DataFrame:
    return within(frame, column("_end") - F.lit(1), ends)
