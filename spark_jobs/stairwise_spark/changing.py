"""A changed declaration is carried out: beside the schedule, which goes on with the old plan until one commit switches.

What only adds is done before the switch: columns, NULL at first, and tables; values that states hold already are worked
out of them; everything else is made by a run of the new plan. Until then the old plan's runs find their tables as they
left them, with more in them. What takes away is done after the switch.

Each step is harmless when done again, so whoever is killed is followed by another one who goes on: rows that no claim
calls whole under the new declaration are due, whoever wrote them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from stairwise.codec import encode_plan, to_json
from stairwise.errors import UsageError
from stairwise.evolution import MARK, Action, Change, Evolution, Origin, Permission, called, check_allowed, is_idle
from stairwise.instant import format_instant
from stairwise.options import Options
from stairwise.plan import Plan
from stairwise.rollup import Rollup
from stairwise.tiers import Kind, Tier
from stairwise.windowing import Interval
from stairwise_spark import engine
from stairwise_spark.applied import changed
from stairwise_spark.compute import IS_PARTIAL, Content, events, schemas
from stairwise_spark.coverage import DOUBTFUL, EXPIRED, Claim, Coverage, State, trusted
from stairwise_spark.difference import Applied, Difference, difference
from stairwise_spark.errors import BusyError, translating
from stairwise_spark.expressions import argument_types, direct, lowered
from stairwise_spark.grid import within
from stairwise_spark.ledger import Known, new_run
from stairwise_spark.names import column
from stairwise_spark.report import Progress, RunReport, silent
from stairwise_spark.reshaping import (
    add_columns,
    can_move,
    comment_column,
    empty,
    empty_window,
    fill_column,
    remove,
    take_columns,
)
from stairwise_spark.rows import Rows
from stairwise_spark.scope import History, Request
from stairwise_spark.source import PinnedSource, open_source
from stairwise_spark.spans import Spans, hull, joined, without
from stairwise_spark.storage import Storage
from stairwise_spark.tables import TierTable
from stairwise_spark.writes import Write


def apply(
    spark: SparkSession,
    found: Difference,
    allowed: frozenset[Permission] = frozenset(),
    progress: Progress = silent,
) -> Applied:
    """The tables are those of the declaration.

    Args:
        spark: A session in UTC and in ANSI mode.
        found: What there is to do.
        allowed: What may go.
        progress: Is told what happens.

    Raises:
        UsageError: Something would go that nobody has allowed, or nothing was filled yet.
        RunError: It could not be done; what was done until then stays, and is not done again.
    """
    check_allowed(found.evolution, allowed)
    running = found.evolution.running
    if (
        running is not None
        and running.declaration is not None
        and running.declaration.layout is not found.rollup.layout
    ):
        raise UsageError(
            f"rollup '{found.rollup.name}': its target is not filled in the layout {found.rollup.layout.value}.",
            hint="choose another target, and run stairwise backfill FILE.",
        )
    if running is None:
        raise UsageError(
            f"rollup '{found.rollup.name}': nothing was filled yet, so there is nothing to change.",
            hint="run stairwise backfill FILE.",
        )
    started = time.monotonic()
    with translating():
        source = open_source(spark, found.rollup, direct)
        change = _Change.of(source, running, found, allowed, progress)
    change.done()
    return Applied(
        difference=found,
        runs=tuple(change.runs),
        left=tuple(_tier(each) for each in change.idle if Permission.DROP not in allowed),
        seconds=time.monotonic() - started,
    )


def apply_additive(spark: SparkSession, rollup: Rollup, options: Options, progress: Progress = silent) -> None:
    """What a declaration has more than the tables is added; if anything would go, nothing is done.

    Raises:
        ChangedError: Something would go.
    """
    found = difference(spark, rollup, options)
    if found.evolution.running is None or not found.is_anything:
        return
    if not found.evolution.is_additive:
        raise changed(found.evolution)
    apply(spark, found, progress=progress)


@dataclass(slots=True, kw_only=True)
class _Change:
    """A change as it goes on.

    Attributes:
        source: Where the events are.
        found: What there is to do.
        allowed: What may go.
        progress: Is told what happens.
        content: What rows hold then.
        old: The tables as the running plan has them.
        states: What they reflect by that.
        run: Names who writes.
        runs: What runs did.
    """

    source: PinnedSource
    found: Difference
    allowed: frozenset[Permission]
    progress: Progress
    content: Content
    old: Storage
    states: Mapping[str, State]
    run: str = field(default_factory=lambda: f"{new_run()}-apply")
    runs: list[RunReport] = field(default_factory=list[RunReport])

    @classmethod
    def of(
        cls,
        source: PinnedSource,
        running: Plan,
        found: Difference,
        allowed: frozenset[Permission],
        progress: Progress,
    ) -> _Change:
        """What is there is known, and nothing is done yet."""
        rollup = found.rollup
        types = argument_types(source.rows(), [aggregate for _, aggregate in rollup.aggregates])
        old = Storage.of(source.frame.sparkSession, running, source.identity)
        return cls(
            source=source,
            found=found,
            content=Content(keys=rollup.keys, aggregates=rollup.aggregates, types=types),
            old=old,
            states=old.states(),
            allowed=allowed,
            progress=progress,
        )

    @property
    def evolution(self) -> Evolution:
        """What becomes of the tables."""
        return self.found.evolution

    @property
    def goal(self) -> Plan:
        """The plan to go on with."""
        return self.evolution.goal

    @property
    def idle(self) -> tuple[Change, ...]:
        """The helpers that are not needed any more."""
        return tuple(filter(is_idle, self.evolution.changes))

    @property
    def moves(self) -> dict[str, str]:
        """What tiers were called before whose tables can be moved, by their new names."""
        if self.old.arrangement.is_shared:
            return {}
        renamed = {str(each.tier): str(each.origin) for each in self.evolution.of(Action.RENAME)}
        return {new: old for new, old in renamed.items() if can_move(self.old.place(old))}

    def done(self) -> None:
        """All of it."""
        if Permission.REBUILD in self.evolution.needed:
            # Before the switch: whoever is killed until then leaves a change that is still to be done, all of it.
            self._emptied()
            self._reshaped()
            self._switch(self._storage(), {})
            self._filled(self.goal)
            self._gone(self._superseded(self._storage()))
        else:
            self._added()
            if self._is_any_left():
                self._filled(self.goal)
        if Permission.DROP in self.allowed:
            self._dropped()

    def _added(self) -> None:
        """What only adds, under the names that tables have; and the switch."""
        ahead = called(self.goal, self.moves)
        with translating():
            storage = self.old.under(ahead)
            storage.find()
            wanted = self._schemas(ahead)
        self._widened(storage, wanted)
        storage.add(wanted)
        self._carried(storage)
        self._filled(ahead, storage)
        valid_from = self._left_behind(ahead, storage)
        self._switch(storage, self.moves, valid_from)
        self._marked(storage)
        self._gone(tier for tier in self._superseded(storage) if tier not in self.moves.values())

    def _storage(self) -> Storage:
        """The tables as the goal has them."""
        return Storage.of(self.old.spark, self.goal, self.source.identity)

    def _schemas(self, plan: Plan) -> Mapping[str, StructType]:
        return schemas(plan, self.source.rows(), self.content, is_marked=self.found.rollup.partial)

    def _widened(self, storage: Storage, wanted: Mapping[str, StructType]) -> None:
        """The tables that are there have the columns that are new; NULL as yet."""
        comments = {name: str(aggregate) for name, aggregate in self.found.rollup.aggregates}
        for table, columns in _by_table(storage, wanted).items():
            with translating(f"table {table.place}"):
                add_columns(table, list(columns.values()), comments)

    def _carried(self, storage: Storage) -> None:
        """What tables hold already goes to where it is wanted, as what it was claimed to be; no event is read."""
        fills = self.evolution.of(Action.FILL)
        if any(each.origin is not Origin.STATES for each in fills):
            return  # a run makes all of it anew, in one scan
        writes: list[Write] = []
        known: dict[str, State] = {}
        for change in self.evolution.changes:
            origin = self._origin(change, is_filling=bool(fills))
            if origin is None or change.step is None:
                continue
            name = self.moves.get(change.step.tier.name, change.step.tier.name)
            if change.action is Action.KEEP and change.step.tier.kind is not Kind.DECLARED:
                known[name] = self.states[origin]  # its states are those that are wanted
            else:
                writes.append(self._copy(origin, replace(change.step.tier, name=name)))
        if writes or known:
            storage.states()  # what is recorded is all that is known
            storage.write(self.run, writes)
        if known:
            storage.record(self.run, known)

    def _origin(self, change: Change, *, is_filling: bool) -> str | None:
        """The tier of the running plan whose rows become those of a tier, if they are not that already."""
        if change.step is None or not isinstance(change.origin, str | None):
            return None
        found: str | None = None
        match change.action:
            case Action.KEEP if is_filling:
                found = change.step.tier.name
            case Action.RENAME if is_filling or change.step.tier.name not in self.moves:
                found = change.origin
            case Action.ADD if change.origin == change.step.tier.name and not self.content.results:
                found = change.origin  # it was of another kind
            case _:
                pass
        return found if found in self.states else None

    def _copy(self, origin: str, tier: Tier) -> Write:
        """The rows of a tier of the running plan as rows of a tier of the goal: what can be worked out of states is."""
        state = self.states[origin]
        ends = trusted(state.coverage)
        rows = within(self.old.stored(origin, state.version), F.unix_micros("window_end") - F.lit(1), ends)
        before = {} if self.evolution.running is None else _aggregates(self.evolution.running)
        there = {name for name in before if name in rows.columns}
        is_declared = tier.kind is Kind.DECLARED
        results = [
            column(name) if name in there and before[name] == str(aggregate) else lowered(aggregate, self.content.types)
            for name, aggregate in (self.content.aggregates if is_declared else ())
        ]
        is_marked = self.found.rollup.partial and is_declared
        frame: DataFrame = rows.select(
            *map(column, self.content.keys),
            "window_start",
            "window_end",
            *(each.alias(name) for each, (name, _) in zip(results, self.content.aggregates, strict=False)),
            *((F.lit(False).alias(IS_PARTIAL),) if is_marked else ()),  # noqa: FBT003 - a literal
            *(column(name) for each in self.content.partials(keeps_values=False) for name in each.columns),
        )
        covered = Coverage.over(each for each in state.coverage.stretches if each.version >= 0)
        return Write(tier=tier.name, rows=Rows(frame), ends=ends, starts=events(tier, ends), coverage=covered)

    def _filled(self, plan: Plan, ahead: Storage | None = None) -> None:
        """What is due under a plan is made, as far as tables were filled; before the plan rules, if these are given."""
        is_empty = self._span.start >= self._span.end
        if is_empty and not self.evolution.of(Action.REBUILD):
            return
        # How far tables were filled is not known any more if somebody was killed who had emptied them.
        request = Request(span=History() if is_empty else self._span, is_ahead=ahead is not None)
        self.runs.append(engine.run(self.old.spark, plan, request, self.progress, there=ahead))

    @property
    def _span(self) -> Interval:
        """As far as tables were filled, also with what is doubtful since the goal rules."""
        return hull(joined(span for state in self.states.values() for span in _known(state.coverage)))

    def _is_any_left(self) -> bool:
        """Whether runs of the old declaration have written windows that are not as the new one has them."""
        states = self._storage().states()
        lost = self.runs[-1].lost if self.runs else dict[str, Spans]()
        return any(
            without(states[tier].coverage.gaps(self._span), lost.get(self.moves.get(tier, tier), ()))
            if tier in states
            else self._span.start < self._span.end
            for tier in (step.tier.name for step in self.goal.steps)
        )

    def _left_behind(self, ahead: Plan, storage: Storage) -> dict[str, int]:
        """From when on the columns are filled of which the source has dropped events; before, windows stay as they are.

        What was known of these windows is known of them under the new plan.
        """
        lost: Mapping[str, Spans] = self.runs[-1].lost if self.runs else {}
        filled = (each.column for each in self.evolution.of(Action.FILL))
        columns = [name for name in filled if name is not None and name != MARK]
        if not lost or not columns:
            return {}
        roots = [step.tier for step in ahead.steps if step.reads is None and step.tier.name in lost]
        since = max(span.end for tier in roots for span in events(tier, lost[tier.name]))
        # It is known before anybody can take these windows for filled: whoever comes after a kill does not find it out.
        summary = storage.ledger.summary
        storage.ledger.summary = replace(summary, valid_from={**summary.valid_from, **dict.fromkeys(columns, since)})
        # Runs of the old declaration may have added late rows meanwhile: what is claimed is never older than the rows.
        states, newest = storage.states(), self.old.states()
        kept: dict[str, State] = {}
        for tier in lost.keys() & newest.keys() & states.keys():
            if states[tier].version != newest[tier].version:
                raise BusyError(f"tier {tier}: a run writes it just now.", hint="apply again.")
            known = (newest[tier].coverage.within(span).stretches for span in lost[tier])
            before = Coverage.over(each for stretches in known for each in stretches)
            kept[tier] = State(states[tier].version, states[tier].coverage.overlaid(before))
        storage.record(self.run, kept)
        for name, table in storage.tables().items():
            if storage.tiers[name].kind is Kind.DECLARED:
                for each in columns:
                    call = _aggregates(ahead)[each]
                    comment_column(table, each, f"{call}; of windows from {format_instant(since)} on")
        return dict.fromkeys(columns, since)

    def _switch(
        self, storage: Storage, moves: Mapping[str, str], valid_from: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """From now on the goal rules; by one commit, which also says where tables will be."""
        with translating():
            states = storage.known or storage.states()
            ledger, tables = storage.ledger, storage.tables()
            goal = self._storage()
            known = {
                new: Known(
                    goal.place(new).path or tables[old].location, tables[old].mark, tables[old].keys, states[old]
                )
                for new, old in moves.items()
                if old in tables
            }
            summary = ledger.summary
            kept = {tier: each for tier, each in summary.tiers.items() if tier not in moves.values()}
            there = dict(self.found.rollup.aggregates)
            valid = {name: since for name, since in summary.valid_from.items() if name in there} | {**valid_from}
            ledger.summary = replace(
                summary, meaning=goal.wanted.meaning, tiers=kept | known, moves=dict(moves), valid_from=valid
            )
            ledger.save_plan(to_json(encode_plan(self.goal)))
            ledger.tell_coverage(self.run)

    def _emptied(self) -> None:
        """The tables that mean something else now have no row; their older versions stay."""
        storage = self._storage()
        storage.states()
        rebuilt = [tier for tier in map(_tier, self.evolution.of(Action.REBUILD)) if tier in storage.tables()]
        for place, definition in storage.definitions(self._schemas(self.goal)).items():
            tiers = tuple(tier for tier in rebuilt if storage.place(tier) == place)
            shared = [tier for tier in storage.tables() if storage.place(tier) == place]
            if not tiers:
                continue
            claim, table = self._emptying(storage, tiers), storage.tables()[tiers[0]]
            with translating(f"table {place}"):
                if len(tiers) == len(shared):
                    empty(table, definition, claim)
                else:
                    for tier in tiers:
                        empty_window(table, tier, claim)

    def _reshaped(self) -> None:
        """The tables that stay have the columns that are wanted, and of the types that are; NULL as yet."""
        storage = self._storage()
        storage.states()
        wanted = self._schemas(self.goal)
        for table, columns in _by_table(storage, wanted).items():
            there = {field.name: field.dataType for field in table.now().schema.fields}
            others = [name for name, each in columns.items() if there.get(name, each.dataType) != each.dataType]
            if others:
                with translating(f"table {table.place}"):
                    take_columns(table, others)
        self._widened(storage, wanted)

    def _emptying(self, storage: Storage, tiers: tuple[str, ...]) -> Claim:
        wanted = storage.wanted
        return Claim(
            run=self.run, plan=storage.plan, tiers=(), source=wanted.source, meaning=wanted.meaning, emptied=tiers
        )

    def _dropped(self) -> None:
        """What nobody wants any more is gone: tables, and columns."""
        storage = self._storage()
        storage.states()
        self._gone([*map(_tier, self.evolution.of(Action.DROP))])
        for tier, kind in self.found.leftovers.items():
            table = TierTable.find(storage.spark, storage.place_of(tier, kind), self.found.rollup.name)
            if table is not None:
                self._taken(table, tier)
        for table, columns in _by_table(storage, self._schemas(self.goal)).items():
            partitions = {field.name for field in storage.arrangement.folders}
            superfluous = [name for name in table.now().columns if name not in {*columns, *partitions}]
            if superfluous:
                with translating(f"table {table.place}"):
                    take_columns(table, superfluous)
        kept = {tier: known for tier, known in storage.ledger.summary.tiers.items() if tier in storage.tiers}
        storage.ledger.summary = replace(storage.ledger.summary, tiers=kept)
        storage.record(self.run, {})

    def _superseded(self, storage: Storage) -> tuple[str, ...]:
        """What tiers were called of which all that was there is there under other names."""
        renamed = {str(each.origin): _tier(each) for each in self.evolution.of(Action.RENAME)}
        now = storage.states() if renamed else {}
        return tuple(
            old
            for old, new in renamed.items()
            if new in now and old in self.states
            if not without(_known(self.states[old].coverage), trusted(now[new].coverage))
        )

    def _marked(self, storage: Storage) -> None:
        """What runs of the old declaration have written meanwhile is marked as windows that have ended, as it is."""
        if any(each.column == MARK for each in self.evolution.of(Action.FILL)):
            for table in dict.fromkeys(storage.tables().values()):
                if MARK in table.now().columns:
                    with translating(f"table {table.place}"):
                        fill_column(table, MARK, "false")

    def _gone(self, tiers: Iterable[str]) -> None:
        """Tiers of the running plan have no rows any more."""
        old = self.old.tables()
        for tier in tiers:
            if tier in old:
                self._taken(old[tier], tier)

    def _taken(self, table: TierTable, tier: str) -> None:
        claim = self._emptying(self.old, (tier,))
        with translating(f"table {table.place}"):
            if self.old.arrangement.is_shared:
                empty_window(table, tier, claim)
            else:
                remove(table, claim)


def _known(coverage: Coverage) -> Spans:
    """The ranges that were filled, whatever is thought of them by now."""
    known = (each for each in coverage.stretches if DOUBTFUL <= each.version < EXPIRED)
    return joined(Interval(each.start, each.end) for each in known)


def _tier(change: Change) -> str:
    return change.tier or ""


def _aggregates(plan: Plan) -> dict[str, str]:
    declared = () if plan.declaration is None else plan.declaration.aggregates
    return {name: str(aggregate) for name, aggregate in declared}


def _by_table(storage: Storage, wanted: Mapping[str, StructType]) -> dict[TierTable, dict[str, StructField]]:
    """The columns that are wanted of each table that is there, by name."""
    found: dict[TierTable, dict[str, StructField]] = {}
    for tier, table in storage.tables().items():
        found.setdefault(table, {}).update({field.name: field for field in wanted[tier].fields})
    return found
