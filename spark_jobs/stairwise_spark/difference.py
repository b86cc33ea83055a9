"""What a changed declaration means for the tables that are there, and what it costs; nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from stairwise import Options, optimize
from stairwise.codec import decode_plan
from stairwise.constants import Constants
from stairwise.cost import Cost
from stairwise.evolution import Action, Change, Evolution, Origin, evolved, left_over
from stairwise.json_fields import Json
from stairwise.plan import Plan
from stairwise.quantity import counted, length_of_time, quantity, size
from stairwise.replan import replanned
from stairwise.rollup import Layout, Rollup
from stairwise.tiers import Kind
from stairwise_spark.contents import Part, contents, newest_files, together
from stairwise_spark.errors import condition, translating
from stairwise_spark.report import RunReport
from stairwise_spark.session import planned_once
from stairwise_spark.storage import Storage
from stairwise_spark.tables import TierTable

# What the bookkeeping and the logs say is little.
_FEW_TASKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a change costs.

    Attributes:
        rows: So many rows are written.
        bytes: So many bytes, compressed.
        seconds: On a machine with two cores; None: the plan's costs are no seconds.
    """

    rows: float = 0.0
    bytes: float = 0.0
    seconds: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What there is to do, and its price.

    Attributes:
        rollup: What is declared now.
        evolution: What becomes of each table.
        holds: What is in the tables, by tier of the running plan.
        filling: What it takes to fill each tier of the goal with as much history as the tables hold, by tier.
        why: What speaks for the goal, as a sentence.
        leftovers: Tables that no plan needs any more, by their tiers' names, with their kinds.
    """

    rollup: Rollup
    evolution: Evolution
    holds: Mapping[str, Part]
    filling: Mapping[str, Cost]
    why: str = ""
    leftovers: Mapping[str, Kind]

    @property
    def is_anything(self) -> bool:
        """Whether there is anything to do."""
        return self.evolution.is_anything

    @property
    def held_s(self) -> int:
        """How long it is from the first window's end to the last one's."""
        return _length(self.holds)

    def price(self, change: Change) -> Price:
        """What a change costs, as far as it was filled until now."""
        goal = self.evolution.goal
        if change.action is Action.RENAME and self.rollup.layout is Layout.ONE_TABLE:
            return self._rewritten({str(change.origin)})
        if change.action in {Action.KEEP, Action.RENAME}:
            return Price()
        if change.action is Action.DROP:
            return Price() if change.column is None else self._rewritten(self._declared)
        if change.action is Action.FILL and change.origin is Origin.STATES:
            return self._rewritten(self._declared)
        filled = goal.steps if change.step is None else (change.step,)
        costs = [self.filling[step.tier.name] for step in filled] if self.held_s else []
        return Price(
            rows=sum(cost.rows_written or 0 for cost in costs),
            bytes=sum(cost.bytes_written or 0 for cost in costs),
            seconds=float(sum(cost.total for cost in costs)) if goal.totals.unit == "s" else None,
        )

    @property
    def _declared(self) -> Collection[str]:
        """The declared tiers of the running plan."""
        running = self.evolution.running
        steps = () if running is None else running.steps
        return {step.tier.name for step in steps if step.tier.kind is Kind.DECLARED}

    def _rewritten(self, tiers: Collection[str]) -> Price:
        """Of writing again what is in tables of the running plan."""
        all_of_it = together([part for tier, part in self.holds.items() if tier in tiers])
        constants = Constants()
        return Price(
            rows=all_of_it.rows or 0,
            bytes=all_of_it.bytes,
            seconds=all_of_it.bytes * constants.write_byte + len(tiers) * constants.commit,
        )

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.diff/1``."""
        return {
            "schema": "stairwise.diff/1",
            "rollup": self.rollup.name,
            "changes": [self._change(each) for each in self.evolution.changes],
            "additive": self.evolution.is_additive,
            "needs": sorted(each.value for each in self.evolution.needed),
            "why": self.said,
        }

    @property
    def said(self) -> str:
        """Why the plan goes on, or does not; and what cannot be filled again."""
        retain = self.rollup.source.retain
        is_rebuilt = any(each.action is Action.REBUILD and each.needs for each in self.evolution.changes)
        lost = f"What is filled anew begins where the source does, which keeps its rows for {retain}."
        return " ".join([*([self.why] if self.why else []), *([lost] if is_rebuilt and retain else [])])

    def _change(self, change: Change) -> dict[str, Json]:
        price = self.price(change)
        return {
            "action": change.action.value,
            "tier": change.tier,
            "column": change.column,
            "from": change.origin.value if isinstance(change.origin, Origin) else change.origin,
            "predicted_rows": round(price.rows),
            "predicted_bytes": round(price.bytes),
            "predicted_seconds": None if price.seconds is None else round(price.seconds, 3),
            "needs": None if change.needs is None else change.needs.value,
            "why": change.why,
        }

    def told(self) -> str:
        """The same for people."""
        if not self.is_anything:
            return f"rollup {self.rollup.name}: the tables are those of the declaration; nothing to do."
        lines = [[change.action.value, _subject(change), *self._costs(change), _said(change)] for change in self._shown]
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]) - 1)]
        aligned = (
            "  ".join([*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
            for line in lines
        )
        kept = sum(change.action is Action.KEEP for change in self.evolution.changes)
        needed = " and ".join(sorted(each.value for each in self.evolution.needed))
        span = f", which hold {length_of_time(self.held_s)}" if self.held_s else ""
        return "\n".join(
            [
                f"rollup {self.rollup.name}: what is declared is not what the tables were filled with{span}",
                "",
                *(f"  {line}" for line in aligned),
                *([f"  keep  {counted(kept, 'table')} as they are"] if kept else []),
                "",
                *([self.said] if self.said else []),
                f"apply does it with {needed}." if needed else "apply does all of it.",
            ]
        )

    @property
    def _shown(self) -> Sequence[Change]:
        return [change for change in self.evolution.changes if change.action is not Action.KEEP]

    def _costs(self, change: Change) -> tuple[str, str, str]:
        price = self.price(change)
        if not price.rows:
            return "", "", ""
        seconds = "" if price.seconds is None else f"{quantity(price.seconds)} s"
        return f"{quantity(price.rows)} rows", size(price.bytes), seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done.

    Attributes:
        difference: What there was to do.
        runs: The runs that filled what had to be filled.
        left: Helpers that nobody reads any more, and that were left alone.
        seconds: How long it took.
    """

    difference: Difference
    runs: tuple[RunReport, ...] = ()
    left: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Json]:
        """The document ``stairwise.apply/1``."""
        return {
            **self.difference.to_json(),
            "schema": "stairwise.apply/1",
            "runs": [
                {
                    "run_id": run.run_id,
                    "rows_read": run.source.rows,
                    "rows_written": sum(tier.rows for tier in run.tiers),
                    "seconds": round(run.seconds, 3),
                }
                for run in self.runs
            ],
            "left": list(self.left),
            "seconds": round(self.seconds, 3),
        }

    def told(self) -> str:
        """The same for people."""
        rollup = self.difference.rollup.name
        if not self.difference.is_anything:
            return f"rollup {rollup}: the tables are those of the declaration; nothing to do."
        rows = sum(tier.rows for run in self.runs for tier in run.tiers)
        read = sum(run.source.rows for run in self.runs)
        lines = [
            f"rollup {rollup}: applied in {self.seconds:.1f} s; {read:,} events read, {rows:,} rows written by runs"
        ]
        lines += [f"  left alone, though no tier reads it any more: {tier}" for tier in self.left]
        return "\n".join(lines)


def _subject(change: Change) -> str:
    return f"column {change.column}" if change.column is not None else str(change.tier)


def _said(change: Change) -> str:
    """Where it comes from, why it is done, and what it needs."""
    match change.origin:
        case Origin():
            origin = f"from {change.origin.value}"
        case str() if change.action is not Action.RENAME:
            origin = f"from {change.origin}"
        case None if change.action in {Action.ADD, Action.FILL, Action.REBUILD}:
            origin = "from the events"
        case _:
            origin = ""
    needs = "" if change.needs is None else f"needs {change.needs.value}"
    return "; ".join(part for part in (origin, change.why, needs) if part)


def difference(spark: SparkSession, rollup: Rollup, options: Options | None = None) -> Difference:
    """What a declaration takes other than the tables that are there.

    Args:
        spark: A session in UTC.
        rollup: What is declared now.
        options: How to plan.
    """
    chosen = options or Options()
    with translating(), planned_once(spark, _FEW_TASKS):
        fresh = optimize(rollup, chosen)
        storage = Storage.of(spark, fresh)
        storage.ledger.summaries()
        with ThreadPoolExecutor() as pool:
            # What is in the tables is asked while they are looked for, which takes as long.
            looking = pool.submit(_running, storage)
            recalled = _recalled(storage)
            looked = looking.result()
        if looked is None:
            nothing = Evolution.first(fresh)
            return Difference(rollup=rollup, evolution=nothing, holds={}, filling={}, leftovers={})
        running, there = looked
        held = _held(there, recalled)
        found = replanned(running, rollup, chosen, held_s=_length(held))
        evolution = evolved(running, found.plan)
        leftovers = _leftovers(there, evolution, recalled)
        # A helper that is not needed any more is left alone until something is dropped.
        windows = [tier for tier, kind in leftovers.items() if kind is Kind.DECLARED]
        evolution = replace(evolution, changes=(*evolution.changes, *map(left_over, windows)))
    filling = {fill.tier: fill.cost for fill in found.anew}
    return Difference(
        rollup=rollup, evolution=evolution, holds=held, filling=filling, why=found.why, leftovers=leftovers
    )


def _leftovers(
    there: Storage, evolution: Evolution, recalled: Mapping[TierTable, tuple[Part, ...] | None]
) -> dict[str, Kind]:
    """Tiers that neither plan has, but that have tables of their own still, or rows in one of all declared tiers."""
    plans = [evolution.goal, *([] if evolution.running is None else [evolution.running])]
    used = [*(step.tier.name for plan in plans for step in plan.steps), *there.ledger.summary.moves.values()]
    names = {name.lower() for name in used}  # as catalogs have it
    if there.arrangement.is_shared:
        found = ((table, part) for table, parts in recalled.items() for part in parts or ())
        declared = {there.place(tier) for tier, each in there.tiers.items() if each.kind is Kind.DECLARED}
        windows = {part.window for table, part in found if table.place in declared and part.rows != 0}
        return dict.fromkeys(
            sorted(window for window in windows if window and window.lower() not in names), Kind.DECLARED
        )
    return {
        tier: kind
        for tier in there.ledger.summary.tiers
        if tier.lower() not in names
        for kind in (Kind.DECLARED, Kind.FACTOR)
        if (table := TierTable.find(there.spark, there.place_of(tier, kind), there.rollup.name)) is not None
        and together(contents(newest_files([table]))[table] or ()).files
    }


def _length(holds: Mapping[str, Part]) -> int:
    ends = [part.ends for part in holds.values() if part.ends is not None]
    return max(last for _, last in ends) - min(first for first, _ in ends) if ends else 0


def _running(storage: Storage) -> tuple[Plan, Storage] | None:
    """The plan that rules the tables, and these, once they are found; None: there is none."""
    text = storage.ledger.load_plan()
    if text is None:
        return None
    running = decode_plan(text)
    there = storage.under(running)
    there.find()
    return running, there


def _recalled(storage: Storage) -> Mapping[TierTable, tuple[Part, ...] | None]:
    """What is in the tables that the bookkeeping knows, which may be there no longer, nor those of the plan."""
    tables = storage.recalled()
    try:
        return contents(newest_files(tables, min(tables.values(), default=0)))
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return {}
        raise


def _held(storage: Storage, recalled: Mapping[TierTable, tuple[Part, ...] | None]) -> dict[str, Part]:
    """What is in the tables, by tier."""
    tables = storage.tables()
    others = [table for table in tables.values() if table not in recalled]
    holding = {**recalled, **contents(newest_files(others))}
    return {
        tier: together([part for part in holding[table] or () if part.window in {None, tier}])
        for tier, table in tables.items()
    }
