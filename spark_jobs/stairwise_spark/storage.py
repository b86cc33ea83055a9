"""Where tiers are kept: which table a tier is in, how its windows are replaced, and what is known of them.

In the layout ``tables`` each tier has its own Delta table: ``target/<name>``, or ``target/_tiers/<name>`` for a helper.
In ``one_table`` all declared tiers are in ``target`` itself and all helpers in ``target/_tiers``, apart by the column
``window``: one commit changes all grains that a reader can see, and no reader meets a helper, whatever it selects. In a
schema of the catalog, the names of tables that are no use to readers begin with ``_``.

Tables are partitioned by ``_part``, so many days, counted from 1970 in UTC, that some 24 windows of the tier begin in
them, and by the week where that has few rows by the number of keys that is declared when the table is made. Delta Lake
tells conflicts by partitions alone, so writes of disjoint ranges conflict only if both touch a part; the loser fails,
and nothing of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from stairwise.codec import encode_plan, to_json
from stairwise.errors import PlanError
from stairwise.meaning import Meaning
from stairwise.plan import Plan
from stairwise.rollup import Catalog, Layout, Rollup
from stairwise.tiers import Kind, Tier
from stairwise.windowing import Interval
from stairwise_spark.arrangement import PART, Arrangement
from stairwise_spark.coverage import ANYTHING, Coverage, State, Wanted, folded
from stairwise_spark.errors import BusyError, RunError, translating
from stairwise_spark.ledger import Known, Ledger, Summary, digested, first_unread, installed_version, recorded
from stairwise_spark.names import column
from stairwise_spark.reshaping import move
from stairwise_spark.tables import Definition, Place, TierTable, check_columns, new_mark
from stairwise_spark.tier_logs import Log, logs
from stairwise_spark.transaction import Transaction
from stairwise_spark.writes import Write, Written, instant, parts

_BOUNDS = ("window_start", "window_end")
_COMMENTS = {
    "window_start": "the first instant of the window",
    "window_end": "the instant at which the window has ended",
    "_part": "the first of some days that hold window_start, counted from 1970-01-01 in UTC: for pruning",
    "window": "the window's name",
    "_rows": "how many source rows the window holds; NULL where it was put together from windows that overlap",
}
# Commits are work for the driver: more threads than this gain nothing.
_SIDE_BY_SIDE = 4
_SOON = 1.0  # seconds


def _tell_nobody(_: Written) -> None:
    """Go on."""


@dataclass(slots=True)
class Storage:
    """The tables of one rollup.

    Attributes:
        spark: The session.
        rollup: The declaration.
        plan: The digest of the plan.
        tiers: The tiers of the plan, by name.
        wanted: What rows have to be about: those that are not are doubtful.
        is_ruling: Whether the plan is the one that rules the tables, and they say so.
    """

    spark: SparkSession
    rollup: Rollup
    plan: str
    tiers: Mapping[str, Tier]
    wanted: Wanted = ANYTHING
    is_ruling: bool = True
    _tables: dict[Place, TierTable] = field(default_factory=dict[Place, TierTable], repr=False)
    _states: dict[str, State] = field(default_factory=dict[str, State], repr=False)
    _ledger: Ledger | None = field(default=None, repr=False)
    _is_made: bool = False
    _is_seen: bool = False

    @classmethod
    def of(cls, spark: SparkSession, plan: Plan, source: str | None = None) -> Storage:
        """The storage of a plan's rollup, as far as it reflects a source; nothing is read or made yet.

        Raises:
            PlanError: The plan is for windows without a declaration, which have no target.
        """
        if plan.declaration is None:
            raise PlanError(f"plan '{plan.rollup}': there is no declaration in it, so there is no target.")
        digest = digested(to_json(encode_plan(plan)))
        wanted = Wanted(source, Meaning.of(plan.declaration))
        return cls(spark, plan.declaration, digest, {step.tier.name: step.tier for step in plan.steps}, wanted)

    def under(self, plan: Plan) -> Storage:
        """The same tables, as far as they are known, under another plan of the rollup, which does not rule them."""
        other = Storage.of(self.spark, plan, self.wanted.source)
        return replace(other, is_ruling=False, _tables=dict(self._tables), _ledger=replace(self.ledger))

    def place(self, tier: str) -> Place:
        """Where the table of a tier is."""
        return self.place_of(tier, self.tiers[tier].kind)

    def place_of(self, tier: str, kind: Kind) -> Place:
        """Where the table of a tier of that kind is, or would be."""
        is_shared = self.rollup.layout is Layout.ONE_TABLE
        target, name = self.rollup.target, self.rollup.name
        match target, kind:
            case Catalog(schema), Kind.DECLARED:
                return Place((*schema.split("."), name if is_shared else tier))
            case Catalog(schema), _:
                return Place((*schema.split("."), f"_{name}_tiers" if is_shared else f"_{name}_{tier}"))
            case _, Kind.DECLARED:
                return self._below() if is_shared else self._below(tier)
            case _:
                return self._below("_tiers") if is_shared else self._below("_tiers", tier)

    def tables(self) -> dict[str, TierTable]:
        """The table of each tier for which there is one, as :meth:`states` has found them."""
        found = {tier: self._tables.get(self.place(tier)) for tier in self.tiers}
        return {tier: table for tier, table in found.items() if table is not None}

    def recalled(self) -> dict[TierTable, int]:
        """The tables that the bookkeeping knows, and which versions they had; nothing is looked at."""
        found: dict[TierTable, int] = {}
        for tier, known in self.ledger.summary.tiers.items():
            # Of a folder that was copied, the ledger knows where the tables were.
            if tier in self.tiers and (place := self.place(tier)).is_at(known.location):
                table = TierTable(self.spark, place, known.location, known.mark, known.keys)
                found[table] = 0 if known.record is None else known.record.version
        return found

    @property
    def arrangement(self) -> Arrangement:
        """How rows lie in the tables."""
        tables = {tier: self._tables.get(self.place(tier)) for tier in self.tiers}
        keys = {tier: self._keys if table is None else table.keys for tier, table in tables.items()}
        return Arrangement(self.tiers, keys, is_shared=self.rollup.layout is Layout.ONE_TABLE)

    @property
    def _keys(self) -> int | None:
        """How many different keys there are by what is declared; None: nobody says."""
        return self.rollup.estimates.distinct_keys if self.rollup.keys else 1

    @property
    def ledger(self) -> Ledger:
        """The bookkeeping."""
        if self._ledger is None:
            target, name = self.rollup.target, self.rollup.name
            if isinstance(target, Catalog):
                place = Place((*target.schema.split("."), f"_{name}_ledger"))
            else:
                place = self._below("_stairwise", "ledger")
            self._ledger = Ledger(self.spark, place, name)
        return self._ledger

    def _below(self, *folders: str) -> Place:
        return Place.at("/".join([str(self.rollup.target).rstrip("/"), *folders]))

    def is_made(self, summaries: Sequence[Summary] | None = None) -> bool:
        """Whether the tables of all tiers are there, as a run of this plan has found before; by one look at all.

        Args:
            summaries: What the bookkeeping has just said; None: it is asked.
        """
        if self._is_made:
            return True
        with translating():
            summaries = self.ledger.summaries() if summaries is None else summaries
            if self.ledger.summary.made != self.plan or not self.ledger.summary.tiers.keys() >= self.tiers.keys():
                return False
            self._is_seen = self._look_again(summaries)
        return self._is_seen

    def ensure(self, schemas: Mapping[str, StructType]) -> None:
        """There is a table for each tier of these, with these columns (all but ``_part`` and ``window``), and a ledger.

        Raises:
            RunError: Something else is there, or a table with other columns or of another rollup.
        """
        definitions = self.definitions(schemas)
        first, others = list(definitions.items())[:1], list(definitions.items())[1:]
        are_new = [self._make(place, definition) for place, definition in first]
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            ledger = pool.submit(self._make_ledger)
            rest = [pool.submit(self._make, place, definition) for place, definition in others]
            are_new += [each.result() for each in rest]
            ledger.result()
        self._is_made = schemas.keys() >= self.tiers.keys()
        if self._is_made and all(are_new):
            self._states = {tier: State(0, Coverage()) for tier in self.tiers}
            self._is_seen = True
        self.remember({})

    def find(self) -> None:
        """It is known of each tier whether there is a table."""
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            list(pool.map(self._find, dict.fromkeys(map(self.place, self.tiers))))

    def add(self, schemas: Mapping[str, StructType]) -> None:
        """There is a table for each tier, with these columns: whichever is not there yet is made.

        Raises:
            RunError: Something else is there, or a table with other columns.
        """

        def there(wanted: tuple[Place, Definition]) -> None:
            place, definition = wanted
            if place in self._tables:
                check_columns(self.spark, place, definition)
            else:
                self._make(place, definition)

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            list(pool.map(there, self.definitions(schemas).items()))
        self._is_made = True

    def definitions(self, schemas: Mapping[str, StructType]) -> dict[Place, Definition]:
        """What the tables of tiers are made with; the target before what lies in it.

        For a table is not made in a folder that holds anything.
        """
        places: dict[Place, list[str]] = {}
        for tier in sorted(schemas, key=lambda each: str(self.place(each))):
            places.setdefault(self.place(tier), []).append(tier)
        return {
            place: self._tier_definition(tiers, [schemas[tier] for tier in tiers]) for place, tiers in places.items()
        }

    def states(self) -> dict[str, State]:
        """What is known of each tier whose table is there: one Spark job for all their logs, and the ledger's.

        Right after :meth:`is_made` or :meth:`ensure` have looked, that is what they saw.
        """
        is_seen, self._is_seen = self._is_seen, False
        if not is_seen:
            with translating():
                self._look()
        return dict(self._states)

    def read(self, tier: str, version: int, span: Interval | None = None) -> DataFrame:
        """The keys, bounds (``_begin``, ``_end`` in microseconds) and partials of a tier at a version.

        With a span, only windows that lie in it.
        """
        stored = self.stored(tier, version, span)
        partials = [name for name in stored.columns if name.startswith("_") and name != PART.name]
        return stored.select(
            *map(column, self.rollup.keys),
            *(F.unix_micros(bound).alias(name) for bound, name in zip(_BOUNDS, ("_begin", "_end"), strict=True)),
            *map(column, partials),
        )

    def stored(self, tier: str, version: int, span: Interval | None = None) -> DataFrame:
        """The rows of a tier at a version as readers see them; with a span, only windows that lie in it."""
        rows = self._table(self.place(tier)).at(version)
        if self.rollup.layout is Layout.ONE_TABLE:
            rows = rows.where(F.col("window") == tier).drop("window")
        if span is None:
            return rows
        inside = f"window_start >= {instant(span.start)} AND window_end <= {instant(span.end)}"
        return rows.where(f"({parts([span], self.arrangement.days(tier))}) AND {inside}")

    def write(
        self, run: str, writes: Sequence[Write], tell: Callable[[Written], None] = _tell_nobody
    ) -> tuple[Written, ...]:
        """The windows are replaced: in one commit for each table, the tables side by side; one write at most a tier.

        The same write of the same run is not done again. Each run has an id of its own; so has one that restates.

        Args:
            run: Who writes.
            writes: What.
            tell: Is told of each tier as soon as it is written.

        Raises:
            BusyError: Another run changed the same windows, or their days, at the same time. Read, compute and write
                again.
        """
        if not self._states.keys() >= {write.tier for write in writes}:
            self.states()
        self._is_seen = False
        written: dict[str, Written] = {}
        for each in self._committed(self._transactions(run, writes)):
            written[each.tier] = each
            tell(each)
        self.remember({})
        return tuple(written[write.tier] for write in writes)

    def _transactions(self, run: str, writes: Iterable[Write]) -> list[Transaction]:
        groups: dict[Place, list[Write]] = {}
        for write in writes:
            groups.setdefault(self.place(write.tier), []).append(write)
        return [
            Transaction(
                table=self._table(place),
                run=run,
                plan=self.plan,
                wanted=self.wanted,
                writes=group,
                known={write.tier: self._states[write.tier] for write in group},
            )
            for place, group in groups.items()
        ]

    def _committed(self, transactions: Sequence[Transaction]) -> Iterator[Written]:
        """What becomes of transactions, which go on side by side; those that end meanwhile are looked at together."""
        log = self._logs({each.table: each.since for each in transactions if not each.is_append})
        with ThreadPoolExecutor(min(_SIDE_BY_SIDE, len(transactions)) or 1) as pool:
            going = {pool.submit(self._commit, each, log.get(each.table)): each for each in transactions}
            while going:
                wait(going, return_when=FIRST_COMPLETED)
                # Those that end soon after are looked at with it.
                ended = {future: going.pop(future) for future in wait(going, timeout=_SOON).done}
                for future in ended:
                    future.result()
                yield from self._outcomes(ended.values())

    def _commit(self, transaction: Transaction, log: Log | None) -> None:
        with translating(transaction.subject):
            transaction.commit(log, self.arrangement, lambda: self._newest(transaction))

    def _newest(self, transaction: Transaction) -> Log:
        """The log of the table, as far as it was not known."""
        return self._logs({transaction.table: transaction.until})[transaction.table]

    def _outcomes(self, transactions: Iterable[Transaction]) -> Iterator[Written]:
        log = self._logs({each.table: each.until for each in transactions}, with_files=True)
        for each in transactions:
            states, written = each.outcome(log[each.table])
            self._states.update(states)
            yield from written

    def _logs(self, since: Mapping[TierTable, int], *, with_files: bool = False) -> Mapping[TierTable, Log]:
        with translating():
            found = logs(since, with_files=with_files)
        if found is None:
            raise RunError(
                f"rollup '{self.rollup.name}': a table of it is not there any more.", hint="run again, which makes it."
            )
        return found

    def record(self, run: str, states: Mapping[str, State]) -> None:
        """What is now known of tiers is kept, without commits to their tables; one Spark job."""
        self.remember(states)
        with translating():
            self.ledger.save_states(run)

    def _look(self) -> None:
        """What is known now, whatever happened to the tables."""
        summaries = self.ledger.summaries()
        if self._look_again(summaries):
            return
        self._tables.clear()
        self.find()
        if not self._read_logs(self.tables(), summaries):
            raise BusyError(f"rollup '{self.rollup.name}': somebody replaces its tables.", hint="run again.")

    def _look_again(self, summaries: Sequence[Summary]) -> bool:
        """What is known now, if all the tables are still those that were there before."""
        for known in self.recalled() if summaries else ():
            self._tables.setdefault(known.place, known)
        tables = {tier: table for tier in self.tiers if (table := self._tables.get(self.place(tier))) is not None}
        return len(tables) == len(self.tiers) and self._read_logs(tables, summaries)

    def _read_logs(self, tables: Mapping[str, TierTable], summaries: Sequence[Summary]) -> bool:
        """What the logs of tables say, from where the summaries end; whether each log is that of its table."""
        records = {tier: recorded(tier, table.mark, summaries, self.wanted) for tier, table in tables.items()}
        since: dict[TierTable, int] = {}
        for tier, table in tables.items():
            first = first_unread(records[tier])
            since[table] = min(first, since.get(table, first))
        found = logs(since)
        if found is None or any(log.mark not in (None, table.mark) for table, log in found.items()):
            return False
        self._states.clear()
        states: dict[str, State] = {}
        for tier, table in tables.items():
            log, known = found[table].commits, [record.state for record in records[tier]]
            newest = max([*(each.version for each in log), *(each.version for each in known)], default=0)
            states[tier] = State(newest, folded(tier, log, known, self.wanted))
        self.remember(states)
        return True

    @property
    def known(self) -> Mapping[str, State]:
        """What is known of each tier by now, without another look."""
        return dict(self._states)

    def remember(self, states: Mapping[str, State]) -> None:
        """What is known of tiers is what the ledger's next commit carries.

        For ranges that no change touched, and for those that are empty: a state that :meth:`states` has given, with
        more coverage.
        """
        self._states.update(states)
        known: dict[str, Known] = {}
        for tier in self.tiers:
            table, state = self._tables.get(self.place(tier)), self._states.get(tier)
            if table is not None:
                known[tier] = Known(table.location, table.mark, table.keys, state)
        before = self.ledger.summary
        made = self.plan if self._is_made else before.made
        self.ledger.summary = replace(
            before,
            made=made,
            tiers={**before.tiers, **known},
            source=self.wanted.source or before.source,
            meaning=self.wanted.meaning or before.meaning,
        )

    def _make(self, place: Place, definition: Definition) -> bool:
        """Whether the table was made now."""
        with translating(f"table {place}"):
            if self.ledger.summary.moves:
                self._find(place)
            mark = new_mark()
            self._tables[place] = TierTable.make(self.spark, place, definition, mark, is_ruling=self.is_ruling)
        return self._tables[place].mark == mark

    def _make_ledger(self) -> None:
        with translating(f"table {self.ledger.place}"):
            self.ledger.make(self.plan, installed_version())

    def _find(self, place: Place) -> TierTable | None:
        if place not in self._tables:
            found = TierTable.find(self.spark, place, self.rollup.name) or self._moved(place)
            if found is None:
                return None
            self._tables[place] = found
        return self._tables[place]

    def _moved(self, place: Place) -> TierTable | None:
        """The table that was called otherwise and belongs there; None: there is none."""
        for tier, old in self.ledger.summary.moves.items():
            if tier in self.tiers and self.place(tier) == place:
                before = self.place_of(old, self.tiers[tier].kind)
                if TierTable.find(self.spark, before, self.rollup.name) is not None:
                    move(self.spark, before, place)
                return TierTable.find(self.spark, place, self.rollup.name)
        return None

    def _table(self, place: Place) -> TierTable:
        with translating():
            table = self._find(place)
        if table is None:
            raise RunError(f"table {place}: it is not there.", hint="run a backfill, which makes it.")
        return table

    def _tier_definition(self, tiers: Sequence[str], schemas: Sequence[StructType]) -> Definition:
        columns = {each.name: each for schema in schemas for each in schema.fields}
        differing = {
            each.name for schema in schemas for each in schema.fields if each.dataType != columns[each.name].dataType
        }
        if differing:
            raise RunError(
                f"tiers {', '.join(tiers)}: the column {min(differing)} has several types, and they are one table.",
                hint="layout: tables keeps them apart.",
            )
        windows = ", ".join(self.tiers[tier].text or tier for tier in tiers)
        is_declared = self.tiers[tiers[0]].kind is Kind.DECLARED
        comments = {name: str(aggregate) for name, aggregate in self.rollup.aggregates}
        return self._definition(
            StructType(list(columns.values())),
            f"windows of {windows}" if is_declared else f"partial results of {windows}, for other tiers",
            comments | _COMMENTS,
            self.arrangement.folders,
            _BOUNDS,
        )

    def _definition(
        self,
        columns: StructType,
        content: str,
        comments: Mapping[str, str],
        partitions: tuple[StructField, ...],
        required: tuple[str, ...] = (),
    ) -> Definition:
        return Definition(
            owner=self.rollup.name,
            plan=self.plan,
            version=installed_version(),
            comment=f"Rollup {self.rollup.name}: {content}. Made by Stairwise.",
            columns=columns,
            comments=comments,
            keys=self._keys,
            required=required,
            partitions=partitions,
        )
