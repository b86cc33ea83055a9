"""A run: which windows are due, what has to be read for them, and the writes that bring them.

A run pins the source at one version, and finds out which windows of each tier are missing or were touched by a change
since they were made. These are cut into chunks, so that memory does not grow with them; a chunk is written before the
next begins, and a run that died goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from random import SystemRandom
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from stairwise.codec import encode_plan, to_json
from stairwise.edges import EdgeSet
from stairwise.plan import Plan, Step
from stairwise.rollup import Rollup
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.additions import additions
from stairwise_spark.at_once import changes_at_once
from stairwise_spark.changes import Changes, Listing, Recheck, after, changes
from stairwise_spark.chunks import pieces
from stairwise_spark.compacting import look_after
from stairwise_spark.compute import Content, events, schemas, stored
from stairwise_spark.coverage import Coverage, State, partial_at
from stairwise_spark.deletes import check_deletes
from stairwise_spark.due import BEGINNING, Findings, Question, available, bare, find
from stairwise_spark.errors import BusyError, translating
from stairwise_spark.expressions import argument_types
from stairwise_spark.lost import whole
from stairwise_spark.mending import Mending
from stairwise_spark.numbering import numbered
from stairwise_spark.opening import Opened, opened
from stairwise_spark.pointing import pointing
from stairwise_spark.report import (
    ChunkBegun,
    ChunkDone,
    LookedAfter,
    Progress,
    RunBegun,
    RunReport,
    SourceReport,
    TierReport,
    silent,
    telling,
)
from stairwise_spark.retention import expiry, extent, followed_from, kept_since, reads_back
from stairwise_spark.rows import Rows
from stairwise_spark.scope import Due, History, Request, check_tiers, settled, still_open
from stairwise_spark.session import shuffle_tasks
from stairwise_spark.source import Files, LeftOut, PinnedSource
from stairwise_spark.spans import Spans, common, hull, joined, without
from stairwise_spark.storage import Storage
from stairwise_spark.together import can_go_together
from stairwise_spark.work import Work
from stairwise_spark.writes import Write, Written

__all__ = ["ATTEMPTS", "Due", "History", "Request", "run"]

ATTEMPTS = 5  # of a chunk, when another run was faster
_FIRST_PAUSE = 0.2  # seconds before the second one; twice as long before each further one


def run(
    spark: SparkSession,
    plan: Plan,
    request: Request,
    progress: Progress = silent,
    startup_seconds: float = 0.0,
    there: Storage | None = None,
) -> RunReport:
    """Bring the tiers of a plan up to date for a range.

    Args:
        spark: A session in UTC and in ANSI mode.
        plan: Of a rollup's declaration.
        request: What to do.
        progress: Is told what happens.
        startup_seconds: How long it took until the session was ready, for the report.
        there: The tables of the plan, if they were found just now.

    Raises:
        UsageError: There is no such tier.
        ChangedError: The tables were filled with something else.
        SourceError: The declaration does not fit the source.
        DeletesError: Too many windows would lose all of their rows.
        BusyError: Other runs were faster, several times.
        RunError: It could not be done; what was written until then is whole, and stays.
    """
    started = time.monotonic()
    with pointing(plan), translating(), ThreadPoolExecutor(1) as beside:
        found = opened(spark, plan, beside, is_ahead=request.is_ahead, there=there)
        return _Run.begun(found, request, started, progress).done_all(startup_seconds)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run, as it goes on.

    Attributes:
        plan: What to make, and of what.
        rollup: What was declared.
        request: What is asked for.
        span: The same, as a range of ends of windows.
        happened: When the events did; None: nobody has to look, for not all of time is due.
        source: At one version.
        version: What claims say of the source as it is read here.
        listing: The files of the source, if that is all it has.
        storage: The tables.
        seen: What they reflected before.
        began: When the run began, on the clock that only goes forward.
        progress: Is told what happens.
        beside: Does what nothing waits for as yet.
        run_id: Names the run.
        findings: What is due.
        open: Windows that have not ended, and are to be written all the same.
        content: What rows hold, if anything is due.
        left_out: Counts the rows that are in no window, if anything is due.
        done: The ranges of each tier that this run has brought up to date.
        expired: Of which the rows have gone, by tier.
        repaired_rows: Late rows that were merged into windows that could not be made again.
        looked_after: What was done for the files of the tables.
    """

    plan: Plan
    rollup: Rollup
    request: Request
    span: Interval
    happened: Spans | None
    source: PinnedSource
    version: int
    listing: Listing | None
    storage: Storage
    seen: Mapping[str, State]
    began: float
    progress: Progress
    beside: ThreadPoolExecutor
    run_id: str
    findings: Findings = field(default_factory=Findings)
    open: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    content: Content | None = None
    goes_together: bool = False
    left_out: Future[LeftOut] | None = None
    done: dict[str, Spans] = field(default_factory=dict[str, Spans])
    reports: dict[str, TierReport] = field(default_factory=dict[str, TierReport])
    expired: Mapping[str, Spans] = field(default_factory=dict[str, Spans])
    repaired_rows: int = 0
    looked_after: LookedAfter = field(default_factory=LookedAfter)
    rows_read: int = 0
    spans_read: Spans = ()

    @classmethod
    def begun(cls, found: Opened, request: Request, began: float, progress: Progress) -> _Run:
        """What is due is known, and all tables are there; no row was read."""
        rollup, plan, source, storage = found.rollup, found.plan, found.source, found.storage
        check_tiers(request.tiers, [step.tier.name for step in plan.steps])
        states = storage.states()
        span = settled(request.span, rollup, [state.coverage for state in states.values()])
        version, listing = numbered(source, storage.ledger, states)
        run = cls(
            plan=plan,
            rollup=rollup,
            request=request,
            span=span,
            happened=None,
            source=source,
            version=version,
            listing=listing,
            storage=storage,
            seen=states,
            began=began,
            progress=progress,
            beside=found.beside,
            run_id=found.run_id,
        )
        run._find(states)
        if run.findings.is_anything_due or run.open:
            run._prepare(is_made=found.is_made)
        return run

    def _find(self, states: Mapping[str, State]) -> None:
        """What is due, by what the tables reflect now."""
        known = {step.tier.name: states.get(step.tier.name, State(0, Coverage())) for step in self.plan.steps}
        question = Question(
            plan=self.plan,
            span=self.span,
            wanted=tuple(step.tier.name for step in self.plan.steps if self.request.wants(step.tier.name)),
            version=self.version,
            followed_from=followed_from(self.rollup),
            is_restated=self.request.restate,
            kept_since=kept_since(self.rollup, int(time.time())),
            reads_back=partial(reads_back, self.rollup),
            additions_of=partial(additions, self.source),
        )
        findings = find(question, known, self._changes)
        self.storage.remember(findings.states)
        if self.happened is None and any(spans[:1] and spans[0].start <= BEGINNING for spans in findings.due.values()):
            version = None if self.request.restate else self.version  # tables may be what is to be mended
            self.happened = extent(self.rollup, self.plan, self.source, self.storage, self.span, version)
        self.findings = findings
        self.open = {}
        if self.rollup.partial:
            self.open = still_open(self.plan, self.request, self.span.end, self.version, self._coverage)

    def _changes(self, slices: EdgeSet, within: Mapping[int, Spans]) -> Mapping[int, Changes]:
        found = changes_at_once(self.source, slices, within)
        return {
            since: found[since] if since in found else self._changes_since(since, slices, spans)
            for since, spans in within.items()
        }

    def _changes_since(self, since: int, slices: EdgeSet, within: Sequence[Interval]) -> Changes:
        lookbacks, ledger = self.rollup.lookback, self.storage.ledger
        recheck = Recheck(lookbacks=lookbacks, now=int(time.time()), last=ledger.summary.rechecked)
        known = None if self.listing is None else ledger.listing(since)
        files = None if self.listing is None or known is None else (Listing.decode(known), self.listing)
        return changes(self.source, None if self.source.version is None else since, slices, within, recheck, files)

    def _prepare(self, *, is_made: bool) -> None:
        """What is due can be computed, and there are tables for it."""
        rows = self.source.rows()
        types = argument_types(rows, [aggregate for _, aggregate in self.rollup.aggregates])
        known = self.storage.ledger.summary.valid_from
        self.content = Content(keys=self.rollup.keys, aggregates=self.rollup.aggregates, types=types, valid_from=known)
        self.goes_together = bool(self.plan.passes()) and can_go_together(rows, self.content)
        horizon = None if self.rollup.future is None else after(int(time.time()), self.rollup.future)
        self.left_out = self.beside.submit(self.source.left_out, self.rollup.null_time, horizon)
        if self.request.is_dry:
            return
        text = to_json(encode_plan(self.plan))
        if not is_made or self.listing is not None or not self.storage.ledger.has_plan(text):
            self._counted()  # for something is going to be written
        if not is_made:
            self.storage.ensure(schemas(self.plan, rows, self.content, is_marked=self.rollup.partial))
            self._find(self.storage.states())
        self._keep_listing()
        if not self.request.is_ahead:
            self.storage.ledger.save_plan(text)

    def _counted(self) -> LeftOut:
        """The rows that are in no window; nothing is written before it is known that there may be some."""
        return LeftOut() if self.left_out is None else self.left_out.result()

    def _keep_listing(self) -> None:
        """What claims are going to say of the source can be looked up."""
        if self.listing is not None and not self.storage.ledger.keep_listing(self.version, self.listing.encode()):
            raise BusyError(
                f"rollup '{self.rollup.name}': another run listed its files at the same time.", hint="run again."
            )

    def done_all(self, startup_seconds: float) -> RunReport:
        """All that is due, chunk by chunk, and the report of it."""
        due = self.findings.due
        changed = self._changed()
        if not (self.request.is_dry or self.request.accepts_deletes):
            check_deletes(self.plan, self.rollup.deletes, self.source, self.storage, self.findings)
        found = self._pieces() if self.content is not None else []
        mended = [whole(by_version) for by_version in self.findings.mends.values()]
        whole_span = hull(joined(span for spans in (*self._ends(due).values(), *mended) for span in spans))
        if not self.request.is_dry and (found or mended):
            self.progress(RunBegun(span=whole_span, chunks=len(found), tiers=tuple(due)))
        self._note(self._patiently(self._mended))
        for number, piece in enumerate(found, 1):
            shown = hull(common((piece,), joined([whole_span])))
            self._note(self._patiently(partial(self._attempt, number, piece, shown)))
        if not self.request.is_dry:
            self._note(self._patiently(self._made_open))
            self._look_after()
        report = self._reported(startup_seconds, changed)
        if not self.request.is_dry:
            is_news = report.wrote_anything or self.storage.known != self.seen
            if is_news and self.content is None:
                self._keep_listing()
            self.storage.ledger.save_report(self.run_id, to_json(report.to_json()), is_news=is_news)
        return report

    def _look_after(self) -> None:
        """Rows go that were kept as long as is declared, those of each tier by one commit; grown tables get few files.

        Not while other runs may be filling other ranges. It is also kept which lookbacks were done, if they were of all
        that tables hold.
        """
        self._counted()
        if isinstance(self.request.span, Interval):
            return
        now = int(time.time())
        if not self.request.tiers:
            self.storage.ledger.note_rechecks((text for each in self.findings.changed for text in each.rechecked), now)
            self.expired, writes = expiry(self.plan, self.rollup, self.storage, now)
            if writes:
                self.storage.write(f"{self.run_id}-expiry", writes)
        if self.storage.known != self.seen:
            self.looked_after = look_after(self.storage, self.span.end)

    def _pieces(self) -> list[Interval]:
        """What is due in pieces, each of which is done before the next begins."""
        ends, tasks = self._ends(self.findings.due), shuffle_tasks(self.storage.spark)
        found = pieces(self.plan, self.source, self.span, ends, self._read(ends), tasks, self.request.chunk_s)
        return found[::-1] if self.request.newest_first else found

    def _read(self, ends: Mapping[str, Spans]) -> Spans:
        """When the events happened that tiers are made of which read them; of all tiers, if none of those is due."""
        roots = [step.tier for step in self.plan.steps if step.reads is None and ends.get(step.tier.name)]
        tiers = roots or [step.tier for step in self.plan.steps if ends.get(step.tier.name)]
        return joined(span for tier in tiers for span in events(tier, ends[tier.name]))

    def _ends(self, due: Mapping[str, Spans]) -> dict[str, Spans]:
        """Of what is due, what has to be computed: not where no window ends, nor where none ever held an event."""
        tiers = {step.tier.name: step.tier for step in self.plan.steps}
        found = {
            name: without(spans, bare(self._coverage(name), tiers[name], self.happened)) for name, spans in due.items()
        }
        return {name: spans for name, spans in found.items() if events(tiers[name], spans)}

    def _coverage(self, name: str) -> Coverage:
        return self.storage.known[name].coverage if name in self.storage.known else Coverage()

    def _patiently(self, make: Callable[[], list[TierReport]]) -> list[TierReport]:
        """What is made; after another look if another run was faster."""
        for attempt in range(1, ATTEMPTS):
            try:
                return make()
            except BusyError:
                time.sleep(SystemRandom().uniform(0.5, 1) * _FIRST_PAUSE * 2**attempt)
                self._find(self.storage.states())
        return make()

    def _note(self, found: Sequence[TierReport]) -> None:
        for report in found:
            known = self.reports.get(report.name)
            self.reports[report.name] = report if known is None else known.merged(report)

    def _attempt(self, number: int, piece: Interval, shown: Interval) -> list[TierReport]:
        due = {
            name: spans
            for name, all_due in self.findings.due.items()
            if (spans := without(common(all_due, (piece,)), self.done.get(name, ())))
        }
        steps = [step for step in self.plan.steps if step.tier.name in due]
        ends = self._ends(due)
        if self.request.is_dry:
            return [self._tier_report(step, due[step.tier.name], ends) for step in steps]
        self._note(self._mended())  # what was faster may have undone it
        self.progress(ChunkBegun(number=number, span=shown, due=tuple(step.tier.name for step in steps)))
        # What needs no row is known of the tables as they were looked at; what others write meanwhile counts more.
        idle, known = {name: without(spans, ends.get(name, ())) for name, spans in due.items()}, self.storage.known
        self.storage.remember({name: known[name].claiming(idle[name], self.version) for name in idle if idle[name]})
        written = {each.tier: each for each in self._made(number, ends)}
        for name, spans in due.items():
            self.done[name] = joined((*self.done.get(name, ()), *spans))
        self.progress(ChunkDone(number=number))
        return [self._tier_report(step, due[step.tier.name], ends, written.get(step.tier.name)) for step in steps]

    def _mended(self) -> list[TierReport]:
        """Late rows are merged into the windows that cannot be made again; others may be made of these then."""
        findings = self.findings
        if self.content is None or not findings.mends or self.request.is_dry:
            return []
        mending = Mending(
            plan=self.plan,
            content=self.content,
            storage=self.storage,
            findings=findings,
            version=self.version,
            is_partial=False if self.rollup.partial else None,
        )
        self._counted()
        try:
            written = self.storage.write(
                f"{self.run_id}-late-{uuid4().hex[:4]}", mending.writes(), telling(self.progress, 0)
            )
            self.rows_read += mending.rows_read()
            self.spans_read = joined((*self.spans_read, *mending.spans))
        finally:
            mending.release()
        self.repaired_rows += findings.repaired_rows
        self.findings = replace(findings, mends={})
        spans = {name: whole(by_version) for name, by_version in findings.mends.items()}
        return [self._tier_report(self.plan.step(each.tier), spans[each.tier], {}, each) for each in written]

    def _made_open(self) -> list[TierReport]:
        """The windows that have not ended are written, if they are wanted."""
        written = self._made(0, self.open, is_partial=True) if self.open else ()
        return [self._tier_report(self.plan.step(each.tier), (), {}, each) for each in written]

    def _made(self, number: int, ends: Mapping[str, Spans], *, is_partial: bool = False) -> Sequence[Written]:
        """The due windows of a chunk are written, or those that have not ended."""
        steps = [step for step in self.plan.steps if step.tier.name in ends]
        if self.content is None or not steps:
            return ()
        work = Work(
            plan=self.plan,
            content=self.content,
            source=self.source,
            storage=self.storage,
            versions={name: state.version for name, state in self.storage.known.items()},
            available={name: self._available(name, state) for name, state in self.storage.known.items()},
            due={step.tier.name: ends[step.tier.name] for step in steps},
            goes_together=self.goes_together,
        )
        try:
            rows = work.written(work.frames())
            self._counted()
            written = self.storage.write(
                self.run_id,
                self._writes(self.content, steps, rows, ends, is_partial=is_partial),
                telling(self.progress, number),
            )
            self.rows_read += work.rows_read()
            self.spans_read = joined((*self.spans_read, *work.spans))
        finally:
            work.release()
        return written

    def _available(self, name: str, state: State) -> Spans:
        """The windows that may be read from a tier's table: not those that are still to be made again."""
        pending = without(self.findings.due.get(name, ()), self.done.get(name, ()))
        return without(available(state.coverage, self.version), pending)

    def _writes(
        self,
        content: Content,
        steps: Sequence[Step],
        rows: Mapping[str, Rows],
        ends: Mapping[str, Spans],
        *,
        is_partial: bool,
    ) -> list[Write]:
        """What is to be written of each tier; tiers that were made together stay in one frame."""
        is_marked = is_partial if self.rollup.partial else None
        version = partial_at(self.version) if is_partial else self.version
        shared: dict[tuple[int, bool], DataFrame] = {}
        writes: list[Write] = []
        for step in steps:
            name, tier = step.tier.name, step.tier
            of = id(rows[name].frame), tier.kind is Kind.DECLARED
            if of not in shared:
                shared[of] = stored(tier, rows[name], content, is_partial=is_marked)
            state = self.storage.known[name]
            is_new = not self.request.restate and all(map(state.coverage.is_untouched, ends[name]))
            writes.append(
                Write(
                    tier=name,
                    rows=Rows(shared[of], rows[name].number),
                    ends=ends[name],
                    starts=events(tier, ends[name]),
                    coverage=Coverage.of_all(ends[name], version),
                    is_new=is_new,
                )
            )
        return writes

    def _tier_report(
        self, step: Step, due: Spans, ends: Mapping[str, Spans], written: Written | None = None
    ) -> TierReport:
        return TierReport.of(step, self.plan.totals.period_s, due, ends.get(step.tier.name, ()), written)

    def _changed(self) -> Spans:
        """When the events happened that tables did not hold, or not as they are now."""
        found = (span for each in self.findings.changed for span in each.spans)
        always = (Interval(BEGINNING, self.span.end),)
        return common(joined((*found, *self._read(self._ends(self.findings.due)))), always)

    def _reported(self, startup_seconds: float, changed: Spans) -> RunReport:
        files = self.source.files(self.spans_read) if self.spans_read else Files()
        findings, left_out = self.findings, self._counted()
        return RunReport(
            rollup=self.plan.rollup,
            run_id=self.run_id,
            span=self.span,
            source=SourceReport(
                version=self.source.version,
                rows=self.rows_read,
                files=files.count,
                bytes=files.bytes,
                changed=changed,
                found=tuple(dict.fromkeys((each.way.value, each.why) for each in findings.looked_at)),
            ),
            tiers=tuple(self.reports.get(step.tier.name, TierReport.idle(step)) for step in self.plan.steps),
            late_rows=findings.late_rows,
            ignored_rows=findings.ignored_rows,
            repaired_rows=findings.repaired_rows if self.request.is_dry else self.repaired_rows,
            unrepairable_rows=findings.unrepairable_rows,
            lost=findings.lost,
            expired=self.expired,
            looked_after=self.looked_after,
            null_times=left_out.null_times,
            future_rows=left_out.future_rows,
            seconds=time.monotonic() - self.began,
            startup_seconds=startup_seconds,
            is_dry=self.request.is_dry,
        )
