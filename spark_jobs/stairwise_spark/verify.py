"""Whether the tables hold what the raw rows give: recomputed window by window from the source's newest version.

Nothing of it goes by way of another tier. Spark aggregates and compares; only what differs is collected, and of that no
more than was asked for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from stairwise.aggregate import Sharing
from stairwise.declared import Late
from stairwise.errors import PlanError, UsageError
from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.plan import Plan, Step
from stairwise.tiers import Kind, Tier
from stairwise.window import FixedWindow
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.compared import Comparison, Difference, Rule
from stairwise_spark.compute import Content, touched
from stairwise_spark.coverage import Coverage, trusted
from stairwise_spark.due import BEGINNING
from stairwise_spark.errors import translating
from stairwise_spark.expressions import argument_types, direct, lowered
from stairwise_spark.grid import fixed_begins
from stairwise_spark.names import column
from stairwise_spark.recomputed import BOUNDS, ROWS, Judged, aggregated, count_of, counted, listed, windowed
from stairwise_spark.retention import kept_since
from stairwise_spark.source import PinnedSource, open_source
from stairwise_spark.spans import Spans, without
from stairwise_spark.status import ranges
from stairwise_spark.target import Target, older, unfinished
from stairwise_spark.writes import instant

MOST = 1_000
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is to be verified.

    Attributes:
        span: The windows that end in (start, end] of it; None: all that is covered.
        tiers: Only these; none: all that were declared.
        helpers: Whether helpers are verified too, by what their states come to.
        is_witness: Whether only the numbers of rows are compared.
        sample: So many windows of each tier; None: all.
        seed: Decides which these are.
        limit: At most so many differences are told.
    """

    span: Interval | None = None
    tiers: tuple[str, ...] = ()
    helpers: bool = False
    is_witness: bool = False
    sample: int | None = None
    seed: int = field(default_factory=lambda: random.SystemRandom().randrange(2**32))
    limit: int = MOST

    @property
    def mode(self) -> str:
        """What is done, in a word."""
        return "witness" if self.is_witness else "full"

    def seeded(self, seed: int) -> Check:
        """The same, with windows chosen by this seed."""
        return replace(self, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierProof:
    """What came of one tier.

    Attributes:
        name: The tier.
        spans: The windows that end in these ranges were verified.
        windows: How many windows that are.
        total: How many differences there are.
        repair: The range that a run has to make anew; None: none.
        is_behind: Whether a range of it reflects an older version than the source has.
        outside: Rows in the table whose windows nobody claims; they were not verified.
    """

    name: str
    spans: tuple[Interval, ...]
    windows: int
    total: int = 0
    repair: Interval | None = None
    is_behind: bool = False
    outside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came of it.

    Attributes:
        rollup: The rollup.
        check: What was asked.
        version: The version of the source; None if it has none.
        tiers: Tier by tier.
        differences: Some of those that there are.
        hints: What to do, as sentences.
        seconds: How long it took.
    """

    rollup: str
    check: Check
    version: int | None
    tiers: tuple[TierProof, ...]
    differences: tuple[Difference, ...]
    hints: tuple[str, ...]
    seconds: float

    @property
    def total(self) -> int:
        """How many differences there are."""
        return sum(each.total for each in self.tiers)

    @property
    def windows(self) -> int:
        """How many windows were verified."""
        return sum(each.windows for each in self.tiers)

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.verify/1``."""
        return {
            "schema": "stairwise.verify/1",
            "rollup": self.rollup,
            "mode": self.check.mode,
            "sample": self.check.sample,
            "seed": None if self.check.sample is None else self.check.seed,
            "source": {"version": self.version},
            "equal": not self.total,
            "windows_checked": self.windows,
            "differences": [_difference(each) for each in self.differences],
            "differences_total": self.total,
            "tiers": [_tier(each) for each in self.tiers],
            "hints": list(self.hints),
            "seconds": round(self.seconds, 3),
        }


def verify(spark: SparkSession, plan: Plan, check: Check, file: str = "FILE") -> Proof:
    """Compare the tables of a plan's rollup with the raw rows of its source's newest version; nothing is written.

    Args:
        spark: A session in UTC and in ANSI mode.
        plan: Of the declaration.
        check: What to compare.
        file: What the declaration is called in the command that repairs.

    Raises:
        UsageError: There is no such tier.
        SourceError: The declaration does not fit the source.
        RunError: It could not be done.
    """
    started = time.monotonic()
    if plan.declaration is None:
        raise PlanError(f"plan '{plan.rollup}': there is no declaration in it, so there is no target.")
    source = open_source(spark, plan.declaration, direct)
    target = Target.found(spark, plan, source.identity)
    steps = target.steps(check.tiers, helpers=check.helpers)
    with translating():
        types = argument_types(source.rows(), [aggregate for _, aggregate in target.rollup.aggregates])
        content = Content(keys=target.rollup.keys, aggregates=target.rollup.aggregates, types=types)
        work = _Work(target=target, source=source, content=content, check=check)
        for step in steps:
            work.tier(step)
    return Proof(
        rollup=target.rollup.name,
        check=check,
        version=source.version,
        tiers=tuple(work.proofs),
        differences=tuple(work.differences),
        hints=tuple(_hints(target, work.proofs, source.version, file)),
        seconds=time.monotonic() - started,
    )


@dataclass(kw_only=True)
class _Work:
    """One verification, as it goes on."""

    target: Target
    source: PinnedSource
    content: Content
    check: Check
    proofs: list[TierProof] = field(default_factory=list[TierProof])
    differences: list[Difference] = field(default_factory=list[Difference])

    @cached_property
    def extent(self) -> Interval | None:
        """When the rows of the source happened."""
        return self.source.extent()

    def tier(self, step: Step) -> None:
        """The tier is verified."""
        name = step.tier.name
        coverage = self.target.coverage(name)
        stored = self._stored(name)
        spans = [] if stored is None else self._spans(self._recomputable(step.tier, coverage), stored)
        windows = self._sampled(step.tier, spans)
        if stored is None or not spans or windows == []:
            outside = 0 if stored is None else self._outside(name, stored)
            self.proofs.append(TierProof(name=name, spans=tuple(spans), windows=0, outside=outside))
            return
        comparison = Comparison(tier=name, rules=self._rules(step))
        before, after = self._sides(step, stored, spans, windows)
        comparison.look(before, after, self.content.keys, self.check.limit - len(self.differences))
        self.differences += comparison.differences
        behind = older(coverage, self.source.version)
        self.proofs.append(
            TierProof(
                name=name,
                spans=tuple(spans),
                windows=_count(step.tier, spans) if windows is None else len(windows),
                total=comparison.total,
                repair=_repair(step.tier, comparison),
                is_behind=any(_overlap(one, other) for one in behind for other in spans),
                outside=self._outside(name, stored),
            )
        )

    def _stored(self, name: str) -> DataFrame | None:
        state = self.target.states.get(name)
        return None if state is None else self.target.storage.stored(name, state.version)

    def _recomputable(self, tier: Tier, coverage: Coverage) -> Spans:
        """What is covered, but for windows of which the source has dropped rows, as it is declared to do."""
        since = kept_since(self.target.rollup, int(time.time()))
        covered = trusted(coverage)
        return covered if since is None else without(covered, (touched(tier, Interval(BEGINNING, since)),))

    def _spans(self, covered: Iterable[Interval], stored: DataFrame) -> list[Interval]:
        """What is covered of what was asked for; from the first row on, where all of the past is covered."""
        asked = self.check.span or Interval(BEGINNING, 2**62)
        within = [Interval(max(start, asked.start), min(end, asked.end)) for start, end in covered]
        found: list[Interval] = []
        for start, end in within:
            first = max(start, self._first(stored, end)) if start <= BEGINNING else start
            if first < end:
                found.append(Interval(first, end))
        return found

    def _first(self, stored: DataFrame, end: int) -> int:
        """Before the end of each window that ends by then and has a row, here or there."""
        row = stored.where(_ends([Interval(BEGINNING, end)])).agg(F.min(F.unix_micros(BOUNDS[1]))).first()
        known = [] if row is None or row[0] is None else [row[0] // _MICROS - 1]
        known += [] if self.extent is None else [self.extent.start]
        return min(known, default=end)

    def _sampled(self, tier: Tier, spans: Sequence[Interval]) -> list[Interval] | None:
        """The windows that chance has chosen; None: all are verified."""
        if self.check.sample is None:
            return None
        if tier.window is None:
            raise UsageError(
                f"--sample: the helper '{tier.name}' has slices of many lengths, and no windows to choose.",
                hint="leave it out of --tiers, or --sample.",
            )
        # By its name: the same windows, whichever tiers are verified beside it.
        chance = random.Random(f"{self.check.seed} {tier.name}")  # noqa: S311 - to be the same again
        return _chosen(tier, spans, self.check.sample, chance)

    def _sides(
        self, step: Step, stored: DataFrame, spans: Sequence[Interval], windows: Sequence[Interval] | None
    ) -> tuple[DataFrame, DataFrame]:
        """What the table holds, and what the raw rows give."""
        if windows is None:
            kept = stored.where(_ends(spans))
            if self.check.is_witness:
                return self._held(step, kept), counted(self.source, step.tier, self.content, spans)
            rows = windowed(self.source, step.tier, spans)
        else:
            kept = _of_windows(stored, windows)
            rows = listed(self.source, windows)
            if self.check.is_witness:
                return self._held(step, kept), count_of(rows, self.content)
        return self._held(step, kept), aggregated(rows, self.content, self._judged(step))

    def _held(self, step: Step, stored: DataFrame) -> DataFrame:
        """Of stored rows what is compared: results, what states come to, and the number of rows."""
        names = [*self.content.keys, *BOUNDS]
        if step.tier.kind is Kind.DECLARED and not self.check.is_witness:
            names += [name for name, _ in self.content.aggregates]
        states = [lowered(each.aggregate, self.content.types).alias(name) for name, each in self._states(step).items()]
        return stored.select(*map(column, names), column(ROWS), *states)

    @cached_property
    def _results(self) -> tuple[Judged, ...]:
        """All results, with their types; Spark analyses, and runs nothing."""
        aggregates = self.content.aggregates
        plain = (
            self.source.rows()
            .groupBy()
            .agg(*(direct(aggregate, self.content.types).alias(name) for name, aggregate in aggregates))
        )
        kinds = {each.name: each.dataType for each in plain.schema.fields}
        return tuple(Judged(name, aggregate, kinds[name]) for name, aggregate in aggregates)

    def _judged(self, step: Step) -> list[Judged]:
        """The results that are recomputed: all, but of helpers those whose states they keep."""
        return [each for each in self._results if step.tier.kind is Kind.DECLARED or _has_state(step, each)]

    def _states(self, step: Step) -> dict[str, Judged]:
        """The states that are compared, by what each comes to; of results that are made of the same ones, the first."""
        if self.check.is_witness:
            return {}
        found: dict[str, Judged] = {}
        for each in self._judged(step):
            columns = [name for partial in each.aggregate.partials for name in partial.columns]
            if _has_state(step, each) and columns != [ROWS]:
                found.setdefault(" and ".join(columns), each)
        return found

    def _rules(self, step: Step) -> list[Rule]:
        # Where windows overlap, nobody knows how many rows they hold.
        may_be_null = self.target.plan.search.semantics is Sharing.OVERLAPPING
        rows = Rule(name=ROWS, made=ROWS, may_be_null=may_be_null)
        results = [
            Rule(name=each.name, made=each.name, judged=each)
            for each in (() if self.check.is_witness else self._judged(step))
            if step.tier.kind is Kind.DECLARED
        ]
        states = [Rule(name=name, made=each.name, judged=each) for name, each in self._states(step).items()]
        return [*results, *states, rows]

    def _outside(self, name: str, stored: DataFrame) -> int:
        """The rows of a table whose windows nobody claims, where all of it is verified."""
        if self.check.span is not None or self.check.sample is not None:
            return 0
        coverage = self.target.coverage(name)
        return stored.where(~_ends([*trusted(coverage), *unfinished(coverage)])).count()


def _has_state(step: Step, judged: Judged) -> bool:
    """Whether a tier keeps a state of which the result is made."""
    return judged.aggregate.sharing is not Sharing.HOLISTIC or step.tier.keeps_values


def _ends(spans: Iterable[Interval]) -> Column:
    """Whether a stored window ends in one of some ranges; false without a range."""
    inside = (f"(window_end > {instant(start)} AND window_end <= {instant(end)})" for start, end in spans)
    return F.expr(" OR ".join(inside) or "false")


def _of_windows(stored: DataFrame, windows: Sequence[Interval]) -> DataFrame:
    """The stored rows of some windows."""
    bounds = stored.sparkSession.createDataFrame(
        [(start * _MICROS, end * _MICROS) for start, end in windows], "_from bigint, _to bigint"
    )
    start, end = (F.unix_micros(name) for name in BOUNDS)
    # The ends by which files are skipped, then whole bounds.
    hull = Interval(min(each.end for each in windows) - 1, max(each.end for each in windows))
    near = stored.where(_ends([hull]))
    return near.join(F.broadcast(bounds), (start == column("_from")) & (end == column("_to")), "left_semi")


def _chosen(tier: Tier, spans: Sequence[Interval], most: int, chance: random.Random) -> list[Interval]:
    """So many of the windows that end in some ranges, in order."""
    window = tier.window
    if isinstance(window, FixedWindow):
        ranges = [fixed_begins(window, span) for span in spans]
        count = sum(map(len, ranges))
        places = sorted(chance.sample(range(count), min(most, count)))
        begins = [next(islice(chain.from_iterable(ranges), place, None)) for place in places]
        return [Interval(begin, begin + window.range) for begin in begins]
    kept: list[Interval] = []
    for number, found in enumerate(_windows(tier, spans)):
        # Of a list of unknown length, each with the same chance.
        place = number if number < most else chance.randrange(number + 1)
        if number < most:
            kept.append(found)
        elif place < most:
            kept[place] = found
    return sorted(kept)


def _windows(tier: Tier, spans: Sequence[Interval]) -> Iterator[Interval]:
    for span in spans:
        if tier.window is not None:
            yield from windows_ending(tier.window, *span)


def _count(tier: Tier, spans: Sequence[Interval]) -> int:
    """How many windows end in some ranges; of slices of many lengths, about how many."""
    if tier.window is None:
        return round(tier.rate * sum(end - start for start, end in spans))
    if isinstance(tier.window, FixedWindow):
        return sum(len(fixed_begins(tier.window, span)) for span in spans)
    return sum(1 for _ in _windows(tier, spans))


def _repair(tier: Tier, comparison: Comparison) -> Interval | None:
    """A range in which each window ends that differs, and as few others as that takes."""
    first = comparison.first
    if first is None:
        return None
    start = first.start
    if isinstance(tier.window, FixedWindow):
        start = first.end - tier.window.slide
    elif tier.window is not None and not tier.window.is_tumbling:
        start = max((each.end for each in windows_ending(tier.window, first.start, first.end - 1)), default=first.start)
    return Interval(start, comparison.last_end)


def _overlap(one: Interval, other: Interval) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)


def _hints(target: Target, proofs: Sequence[TierProof], version: int | None, file: str) -> Iterator[str]:
    """What was not verified, and what to do about what differs."""
    for each in proofs:
        if not each.windows:
            yield f"{each.name}: nothing is covered there, so nothing was verified."
        if each.outside:
            rows, were = ("1 row is", "was") if each.outside == 1 else (f"{each.outside:,} rows are", "were")
            yield f"{each.name}: {rows} outside of what is covered, and {were} not verified."
    wrong = [each for each in proofs if each.total]
    if not wrong:
        return
    if any(each.is_behind for each in wrong):
        yield (
            f"The source is at version {version}, and the tables reflect older ones: what changed since shows as "
            f"differences. First bring them up to date: stairwise run {file}"
        )
    elif version is None:
        yield "The source has no versions: rows that came or went since the last run show as differences too."
    if target.rollup.late is Late.IGNORE:
        yield "The declaration says late: ignore, so rows that came too late are missing on purpose, and differ here."
    spans = [each.repair for each in wrong if each.repair is not None]
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    bounds = f"--start {format_instant(first)} --end {format_instant(last)}"
    yield f"To make these windows again from the raw rows: stairwise run {file} --restate {bounds}"


def _tier(each: TierProof) -> dict[str, Json]:
    return {
        "name": each.name,
        "windows_checked": each.windows,
        "ranges": ranges(each.spans),
        "differences": each.total,
        "behind_source": each.is_behind,
        "rows_not_covered": each.outside,
    }


def _difference(each: Difference) -> dict[str, Json]:
    return {
        "tier": each.tier,
        "window_start": format_instant(each.window.start),
        "window_end": format_instant(each.window.end),
        "keys": each.keys,
        "column": each.column,
        "stored": each.stored,
        "recomputed": each.recomputed,
    }
