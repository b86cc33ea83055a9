"""A run: which windows are missing, what has to be read for them, and the writes that bring them.

A run pins the source at one version. A tier is due for a range unless its table says that it holds the windows as that
version gives them. The range is cut into chunks, so that memory does not grow with it; a chunk is written before the
next begins, and a run that died goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from stairwise.aggregate import Primitive
from stairwise.codec import decode_plan, encode_plan, to_json
from stairwise.errors import UsageError
from stairwise.names import nearest
from stairwise.plan import Plan, Step
from stairwise.rollup import Rollup
from stairwise.tiers import How, Kind
from stairwise.windowing import Interval, windows_at
from stairwise_spark.chunks import equal, fitting
from stairwise_spark.compute import Content, computed, held, stored
from stairwise_spark.coverage import Coverage, State
from stairwise_spark.errors import CONDITIONS_OF_VALUES, OVERFLOWS, BusyError, RunError, translating
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.report import (
    ChunkBegun,
    ChunkDone,
    Progress,
    RunBegun,
    RunReport,
    SourceReport,
    TierReport,
    TierWritten,
    joined,
    silent,
)
from stairwise_spark.rows import Rows
from stairwise_spark.session import shuffle_tasks
from stairwise_spark.source import PinnedSource, open_source
from stairwise_spark.source_checks import expressions
from stairwise_spark.storage import Storage
from stairwise_spark.together import can_go_together
from stairwise_spark.work import Work
from stairwise_spark.writes import Write, Written

ATTEMPTS = 3  # of a chunk, when another run was faster
_NOTHING = Coverage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run is asked for.

    Attributes:
        span: The windows that end in (start, end] of it; None: all that the source has events for.
        chunk_s: Event time that is done at once; None: as much as fits.
        newest_first: Whether the last chunk comes first.
        restate: Whether windows are made again that are there.
        tiers: Only these of the declared tiers; none: all.
        is_dry: Whether to say what would be done, and not to do it.
    """

    span: Interval | None = None
    chunk_s: int | None = None
    newest_first: bool = False
    restate: bool = False
    tiers: tuple[str, ...] = ()
    is_dry: bool = False


def run(
    spark: SparkSession,
    plan: Plan,
    request: Request,
    progress: Progress = silent,
    startup_seconds: float = 0.0,
) -> RunReport:
    """Bring the tiers of a plan up to date for a range.

    Args:
        spark: A session in UTC and in ANSI mode.
        plan: Of a rollup's declaration.
        request: What to do.
        progress: Is told what happens.
        startup_seconds: How long it took until the session was ready, for the report.

    Raises:
        UsageError: There is no such tier, or the tables were filled with something else.
        SourceError: The declaration does not fit the source.
        BusyError: Other runs were faster, several times.
        RunError: It could not be done; what was written until then is whole, and stays.
    """
    started = time.monotonic()
    with _pointing(plan), translating():
        return _Run.begun(spark, plan, request, started, progress).done(startup_seconds)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run, as it goes on; there are no events before `begin`, if that is known."""

    plan: Plan
    request: Request
    span: Interval
    source: PinnedSource
    content: Content
    goes_together: bool
    storage: Storage
    begin: int | None
    null_times: int
    started: float
    progress: Progress
    run_id: str
    states: dict[str, State] = field(default_factory=dict[str, State])
    fresh: dict[str, Coverage] = field(default_factory=dict[str, Coverage])
    reports: dict[str, TierReport] = field(default_factory=dict[str, TierReport])
    rows_read: int = 0
    spans_read: tuple[Interval, ...] = ()

    @classmethod
    def begun(cls, spark: SparkSession, plan: Plan, request: Request, started: float, progress: Progress) -> _Run:
        storage = Storage.of(spark, plan)
        rollup = storage.rollup
        _check_tiers(plan, request.tiers)
        if rollup.partial:
            raise UsageError(
                f"rollup '{rollup.name}': partial: true: this version does not write windows that have not ended.",
                hint="leave it out.",
            )
        applied = storage.ledger.load_plan()
        if applied is not None:
            check_same(decode_plan(applied), plan)
        source = open_source(spark, rollup, direct)
        types = argument_types(source.rows(), [aggregate for _, aggregate in rollup.aggregates])
        content = Content(keys=rollup.keys, aggregates=rollup.aggregates, types=types)
        span, begin = _span(rollup, request.span, source)
        return cls(
            plan=plan,
            request=request,
            span=span,
            begin=begin,
            source=source,
            content=content,
            goes_together=bool(plan.passes()) and can_go_together(source.rows(), content),
            storage=storage,
            null_times=source.check_null_times(rollup.null_time),
            started=started,
            progress=progress,
            run_id=f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}",
        )

    def done(self, startup_seconds: float) -> RunReport:
        chunks = self._chunks()
        if not self.request.is_dry:
            if not self.storage.is_made():
                self.storage.ensure(self._schemas())
            self.storage.ledger.save_plan(to_json(encode_plan(self.plan)))
        self.states = self.storage.states()
        if not self.request.is_dry:
            names = tuple(step.tier.name for step in self.plan.steps if self._is_wanted(step))
            self.progress(RunBegun(span=self.span, chunks=len(chunks), tiers=names))
        for number, chunk in enumerate(chunks, 1):
            self._chunk(number, chunk)
        files = self.source.files(self.spans_read)
        report = RunReport(
            rollup=self.plan.rollup,
            run_id=self.run_id,
            span=self.span,
            source=SourceReport(version=self.source.version, rows=self.rows_read, files=files.count, bytes=files.bytes),
            tiers=tuple(self.reports.get(step.tier.name, _idle(step)) for step in self.plan.steps),
            null_times=self.null_times,
            seconds=time.monotonic() - self.started,
            startup_seconds=startup_seconds,
            is_dry=self.request.is_dry,
        )
        if not self.request.is_dry:
            self.storage.ledger.save_report(self.run_id, to_json(report.to_json()))
        return report

    def _chunks(self) -> list[Interval]:
        length = self.request.chunk_s
        if length is None:
            tasks = shuffle_tasks(self.storage.spark)
            found = list(fitting(self.plan, self.source, self.span, tasks))
        else:
            found = list(equal(self.span, length))
        return found[::-1] if self.request.newest_first else found

    def _chunk(self, number: int, chunk: Interval) -> None:
        """One chunk; computed anew if another run was faster."""
        for _ in range(1, ATTEMPTS):
            try:
                self._note(self._attempt(number, chunk))
            except BusyError:
                self.states = self.storage.states()
                self.fresh.clear()
            else:
                return
        self._note(self._attempt(number, chunk))

    def _note(self, found: Sequence[TierReport]) -> None:
        for report in found:
            known = self.reports.get(report.name)
            self.reports[report.name] = report if known is None else known.merged(report)

    def _attempt(self, number: int, chunk: Interval) -> list[TierReport]:
        due = [step for step in self.plan.steps if self._is_due(step, chunk)]
        if self.request.is_dry:
            return [self._report(step, chunk) for step in due]
        self.progress(ChunkBegun(number=number, span=chunk, due=tuple(step.tier.name for step in due)))
        has_events = self.begin is None or chunk.end > self.begin
        work = Work(
            plan=self.plan,
            content=self.content,
            source=self.source,
            storage=self.storage,
            versions={name: state.version for name, state in self.states.items()},
            covers=self.covers,
            chunk=chunk,
            due=[step for step in due if has_events and _ends(step, chunk)],
            goes_together=self.goes_together,
        )
        try:
            frames = work.frames()
            writes = self._writes(work.due, frames, chunk)
            written = {each.tier: each for each in self._written(number, writes)} if writes else {}
            self.rows_read += work.rows_read() if writes else 0
            self.spans_read = joined((*self.spans_read, *work.spans))
        finally:
            work.release()
        self._claim(due, chunk, {name: each.version for name, each in written.items()})
        self.progress(ChunkDone(number=number))
        return [self._report(step, chunk, written.get(step.tier.name)) for step in due]

    def _written(self, number: int, writes: Sequence[Write]) -> Sequence[Written]:
        def tell(written: Written) -> None:
            self.progress(
                TierWritten(
                    number=number,
                    tier=written.tier,
                    rows=written.rows,
                    bytes=written.bytes,
                    seconds=written.seconds,
                )
            )

        return self.storage.write(self.run_id, writes, tell)

    def _is_wanted(self, step: Step) -> bool:
        return not self.request.tiers or step.tier.name in self.request.tiers

    def _is_due(self, step: Step, chunk: Interval) -> bool:
        """Whether a tier has to be written: it is wanted, and not covered at the version of the source."""
        return self._is_wanted(step) and (self.request.restate or not self.covers(step.tier.name, chunk))

    def covers(self, tier: str, span: Interval) -> bool:
        """Whether a tier's table holds the windows of a range as the pinned source gives them."""
        covered = self.fresh.get(tier, _NOTHING)
        if self.source.version is not None and tier in self.states:
            covered = covered.union(self.states[tier].coverage)
        # A later version than the pinned one may hold events that this run must not know of.
        version = self._version
        return covered.is_covered(span, version) and all(
            each.version == version for each in covered.within(span).stretches
        )

    @property
    def _version(self) -> int:
        return 0 if self.source.version is None else self.source.version

    def _writes(self, due: Sequence[Step], frames: Mapping[str, Rows], chunk: Interval) -> list[Write]:
        """What is to be written of each tier; tiers that were made together stay in one frame."""
        shared: dict[tuple[int, bool], DataFrame] = {}
        writes: list[Write] = []
        for step in due:
            rows = frames[step.tier.name]
            of = id(rows.frame), step.tier.kind is Kind.DECLARED
            if of not in shared:
                shared[of] = stored(step.tier, rows, self.content, chunk)
            writes.append(self._write(step, Rows(shared[of], rows.number), chunk))
        return writes

    def _write(self, step: Step, rows: Rows, chunk: Interval) -> Write:
        name = step.tier.name
        state = self.states[name]
        is_new = state.coverage.is_untouched(chunk) and not self.request.restate
        return Write(
            tier=name,
            rows=rows,
            span=chunk,
            starts=held(step.tier, chunk),
            coverage=Coverage.of(chunk, self._version),
            untouched=state.version if is_new else None,
        )

    def _claim(self, due: Sequence[Step], chunk: Interval, versions: Mapping[str, int]) -> None:
        """What the chunk's windows reflect is known; of tiers without a window that ended in it, it is recorded."""
        claim = Coverage.of(chunk, self._version)
        idle: dict[str, State] = {}
        for step in due:
            name = step.tier.name
            state = self.states[name]
            self.fresh[name] = self.fresh.get(name, _NOTHING).overlaid(claim)
            self.states[name] = State(versions.get(name, state.version), state.coverage.overlaid(claim))
            if name not in versions:
                idle[name] = self.states[name]
        if idle:
            self.storage.record(self.run_id, idle)

    def _report(self, step: Step, chunk: Interval, written: Written | None = None) -> TierReport:
        rows = step.cost.rows_written
        share = (chunk.end - chunk.start) / self.plan.totals.period_s
        report = replace(_idle(step), predicted_rows=None if rows is None else rows * share, ranges=(chunk,))
        if written is None:
            return report
        return replace(
            report,
            windows=written.windows,
            rows=written.rows,
            files=written.files,
            bytes=written.bytes,
            version=written.version,
            seconds=written.seconds,
            wrote=written.wrote,
        )

    def _schemas(self) -> Mapping[str, StructType]:
        """The columns of each table; Spark analyses, and runs nothing.

        They do not follow the windows, nor what a tier is computed from: one of each kind tells those of all.
        """
        found: dict[tuple[bool, bool], StructType] = {}
        schemas: dict[str, StructType] = {}
        for step in self.plan.steps:
            kind = step.tier.kind is Kind.DECLARED, step.tier.keeps_values
            if kind not in found:
                frame = computed(replace(step, reads=None, how=How.RAW), self.source.rows(), self.content, self.span)
                found[kind] = stored(step.tier, Rows(frame), self.content, self.span).schema
            schemas[step.tier.name] = found[kind]
        return schemas


def _ends(step: Step, chunk: Interval) -> bool:
    """Whether a window of the tier ends in the chunk."""
    span = held(step.tier, chunk)
    return span.start < span.end


def _idle(step: Step) -> TierReport:
    return TierReport(name=step.tier.name, reads=step.reads, predicted_rows=0.0)


def check_same(applied: Plan, plan: Plan) -> None:
    """Refuse a plan under which rows that are in the tables would mean something else.

    Windows may come and go, and a plan may read them from each other in another way.

    Raises:
        UsageError: The source, the keys, an aggregate or what a name stands for has changed.
    """
    old, new = applied.declaration, plan.declaration
    if old is None or new is None:
        return
    changed = [
        what
        for what, before, now in (
            ("source", old.source, new.source),
            ("keys", old.keys, new.keys),
            ("aggregates", dict(old.aggregates), dict(new.aggregates)),
        )
        if before != now
    ]
    windows = {step.tier.name: step.tier.window for step in applied.steps}
    changed += [
        f"window {step.tier.name}"
        for step in plan.steps
        if windows.get(step.tier.name, step.tier.window) != step.tier.window
    ]
    if changed:
        raise UsageError(
            f"rollup '{new.name}': {', '.join(changed)}: not what the tables in the target were filled with.",
            hint="choose another target; to change tables that are filled is not in this version yet.",
        )


@contextmanager
def _pointing(plan: Plan) -> Generator[None]:
    """Within it, the hint of an error of values names the aggregates that may have met it."""
    try:
        yield
    except RunError as error:
        suspects = _suspects(plan, str(error.data.get("condition")))
        if suspects:
            error.hint = f"{error.hint.removesuffix('.')}; it may be {' or '.join(suspects)}."
        raise


def _suspects(plan: Plan, name: str) -> list[str]:
    """The aggregates that may fail by a condition of Spark: all that compute, and where it is an overflow, all sums."""
    if plan.declaration is None or name not in CONDITIONS_OF_VALUES:
        return []
    return [
        f"{result}: {aggregate}"
        for result, aggregate in plan.declaration.aggregates
        if any(not text.isidentifier() for text in expressions(aggregate))
        or (name in OVERFLOWS and any(partial.primitive is Primitive.SUM for partial in aggregate.partials))
    ]


def _check_tiers(plan: Plan, tiers: Sequence[str]) -> None:
    known = [step.tier.name for step in plan.steps]
    for name in tiers:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean '{close}'?" if close else f"there are {', '.join(known)}."
            raise UsageError(f"there is no tier '{name}'.", hint=hint)


def _span(rollup: Rollup, span: Interval | None, source: PinnedSource) -> tuple[Interval, int | None]:
    """What is asked for, as far as windows have ended, and not before the declaration's start.

    If nothing is, all windows with events; then the first event is known too.
    """
    begin: int | None = None
    now = int(time.time()) - rollup.delay.seconds
    if span is None:
        extent = source.extent()
        if extent is None:
            return Interval(0, 0), None
        begin = extent.start
        first, last = (
            [found for each in rollup.windows for found in windows_at(each.window, instant)]
            for instant in (extent.start, extent.end - 1)
        )
        span = Interval(min(found.start for found in first), max(found.end for found in last))
    start = span.start if rollup.start is None else max(span.start, rollup.start)
    return Interval(start, max(start, min(span.end, now))), begin
