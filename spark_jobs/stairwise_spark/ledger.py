"""The bookkeeping of a rollup's tables: a small Delta table that only grows.

It holds what no commit of a tier says: the plan, the reports, and what is known of the tiers. Rows in a Delta table are
atomic wherever the tables themselves are, on any store and over Spark Connect; plan and reports are also put beside it
as files for people, where its folder is one of this machine.

Each commit carries a summary of all that is known by then, so that the few newest commits tell a run what it needs: to
read them takes one small Spark job, where the rows take five. What runs side by side know, each for itself, is in the
commits before the newest one; so far back nobody looks that anything but ranges without a row could be forgotten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from stairwise.errors import CodecError
from stairwise.instant import format_instant
from stairwise.json_fields import Json
from stairwise.meaning import Meaning
from stairwise.windowing import Interval
from stairwise_spark.coverage import Coverage, State, Wanted, expired, trusted
from stairwise_spark.errors import CONFLICTS, RunError
from stairwise_spark.session import sql
from stairwise_spark.shapes import is_list, is_object
from stairwise_spark.tables import Definition, Place, Table, TierTable, literal, new_mark

_COLUMNS = StructType(
    [
        StructField("name", StringType()),
        StructField("version", LongType()),
        StructField("run", StringType()),
        StructField("content", StringType()),
    ]
)
_KIND = StructField("kind", StringType())
_STATE, _PLAN, _REPORT, _LISTING = "state", "plan", "report", "listing"
_SCHEMA = "stairwise.ledger/2"
# So many of the newest commits are looked at; others may have made some of them, without a summary.
_NEWEST = 32


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a tier.

    Attributes:
        location: The folder of its table.
        mark: The mark of the table.
        keys: For how many keys its partitions were laid out; None: for many.
        record: What its rows reflect at a version; None: it was not looked at.
    """

    location: str
    mark: str
    keys: int | None
    record: State | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All that was known when a commit was made.

    Attributes:
        made: The digest of the plan for which all tables were found to be there and right; empty: none was.
        plan: The digest of the text of the plan that was saved last; empty: none was.
        tiers: By name.
        source: The identity of the source that the versions are of; None: it has none.
        meaning: What the rows mean that the tiers hold; None: nobody says.
        rechecked: When each declared lookback was last done, in seconds, by its text.
        moves: What tiers of the plan were called before, by their new names: their tables may be there still.
        valid_from: From which instant on a column is filled, by its name; before, its events were gone already.
        looked_after: The version of each tier's table when a run last looked after its files, by the tier's name.
        switched: How many plans had been saved; whoever does not know the newest of them began before it ruled.
    """

    made: str = ""
    plan: str = ""
    tiers: Mapping[str, Known] = field(default_factory=dict[str, Known])
    source: str | None = None
    meaning: Meaning | None = None
    rechecked: Mapping[str, int] = field(default_factory=dict[str, int])
    moves: Mapping[str, str] = field(default_factory=dict[str, str])
    valid_from: Mapping[str, int] = field(default_factory=dict[str, int])
    looked_after: Mapping[str, int] = field(default_factory=dict[str, int])
    switched: int = 0

    def encode(self) -> str:
        """The text, as a commit carries it."""
        tiers: dict[str, Json] = {
            name: [known.location, known.mark, known.keys]
            + ([None] if known.record is None else [known.record.version, known.record.coverage.to_json()])
            for name, known in self.tiers.items()
        }
        document: dict[str, Json] = {"schema": _SCHEMA, "made": self.made, "plan": self.plan, "tiers": tiers}
        document |= {} if self.source is None else {"source": self.source}
        document |= {} if self.meaning is None else {"meaning": self.meaning.encode()}
        document |= {"rechecked": dict(self.rechecked)} if self.rechecked else {}
        document |= {"moves": dict(self.moves)} if self.moves else {}
        document |= {"valid_from": dict(self.valid_from)} if self.valid_from else {}
        document |= {"looked_after": dict(self.looked_after)} if self.looked_after else {}
        document |= {"switched": self.switched} if self.switched else {}
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str | None) -> Summary | None:
        """The summary that a text holds; None: it is none of ours, or of another version, so that nothing is known.

        Raises:
            CodecError: It is one of ours, but not as :meth:`encode` writes it.
        """
        try:
            document: object = json.loads(text or "")
        except (ValueError, RecursionError):
            return None
        if not is_object(document) or document.get("schema") != _SCHEMA:
            return None
        match document.get("made"), document.get("plan"), document.get("tiers"):
            case str(made), str(plan), tiers if is_object(tiers):
                known = {name: _known(each) for name, each in tiers.items()}
                source, meaning, switched = (document.get(name) for name in ("source", "meaning", "switched"))
                return cls(
                    made=made,
                    plan=plan,
                    tiers=known,
                    source=source if isinstance(source, str) else None,
                    meaning=Meaning.decode(meaning) if isinstance(meaning, str) else None,
                    rechecked=_numbers(document.get("rechecked", {})),
                    moves=_names(document.get("moves", {})),
                    valid_from=_numbers(document.get("valid_from", {})),
                    looked_after=_numbers(document.get("looked_after", {})),
                    switched=switched if isinstance(switched, int) else 0,
                )
            case _:
                raise _refusal(document)


class Record(NamedTuple):
    """What the bookkeeping knows of a tier, and whether it is of what rows have to be about."""

    state: State
    is_believed: bool


def recorded(tier: str, mark: str, summaries: Sequence[Summary], wanted: Wanted) -> list[Record]:
    """The newest record of a tier whose table has a mark, and those that know more."""
    kept: list[Record] = []
    found = _records(tier, mark, summaries, wanted)
    for record in sorted(found, key=lambda each: each.state.version, reverse=True):
        known = record.state.coverage
        if all(each.state.coverage.union(known) != each.state.coverage for each in kept):
            kept.append(record)
    return kept


def first_unread(records: Sequence[Record]) -> int:
    """The version from which on a log has to be read: what was doubted may have been claimed anew before."""
    return min((each.state.version for each in records if each.is_believed), default=0)


def _records(tier: str, mark: str, summaries: Sequence[Summary], wanted: Wanted) -> Iterator[Record]:
    for summary in summaries:
        known = summary.tiers.get(tier)
        if known is None or known.record is None or known.mark != mark:
            continue
        is_believed = wanted.believes(tier, summary.source, summary.meaning)
        version, coverage = known.record.version, known.record.coverage
        yield Record(State(version, coverage if is_believed else coverage.doubted()), is_believed)


class _Note(NamedTuple):
    """A row: of what it speaks, in which version, who wrote it, and what it says."""

    name: str
    version: int
    run: str
    content: str


@dataclass(slots=True)
class Ledger:
    """The bookkeeping of a rollup.

    Attributes:
        spark: The session.
        place: Where it is.
        owner: The rollup.
        summary: What is known, and the next commit carries.
        _plans: The version that the next plan gets; None: nobody has looked for plans.
    """

    spark: SparkSession
    place: Place
    owner: str
    summary: Summary = Summary()
    _table: Table | None = field(default=None, repr=False)
    _is_sought: bool = field(default=False, repr=False)
    _plans: int | None = field(default=None, repr=False)

    def make(self, plan: str, version: str) -> None:
        """It is there now; made by a plan, given by its digest, and a version of Stairwise."""
        comment = f"Rollup {self.owner}: bookkeeping. Made by Stairwise."
        definition = Definition(
            owner=self.owner,
            plan=plan,
            version=version,
            comment=comment,
            columns=_COLUMNS,
            comments={},
            partitions=(_KIND,),
        )
        mark = new_mark()
        made = TierTable.make(self.spark, self.place, definition, mark)
        self._table, self._is_sought = made, True
        if made.mark == mark:
            self._plans = 0

    def summaries(self) -> tuple[Summary, ...]:
        """What the newest commits knew, the newest first; one Spark job.

        The newest one is the summary from now on: of those that know the newest plan, for a run may end after another
        plan began to rule.
        """
        if self._find() is None:
            return ()
        found = self._summaries(f" LIMIT {_NEWEST}") or self._summaries("")
        if found:
            self.summary = max(found, key=attrgetter("switched"))
        return found

    def save_states(self, run: str) -> None:
        """The summary is kept by a commit of its own; one Spark job."""
        self._add(_STATE, _Note(run, 0, run, self.summary.encode()))

    def note_rechecks(self, lookbacks: Iterable[str], now: int) -> None:
        """The next commit says that some declared lookbacks were done, at a second."""
        self.summary = replace(self.summary, rechecked={**self.summary.rechecked, **dict.fromkeys(lookbacks, now)})

    def save_plan(self, text: str) -> None:
        """The plan is the one that :meth:`load_plan` gives from now on; for people as ``_stairwise/plan.json``.

        If it was that already by the summary, nothing is done.
        """
        if self.has_plan(text):
            return
        if self._plans is None:
            self.load_plan()
        self.summary = replace(self.summary, plan=digested(text), switched=1 + (self._plans or 0))
        self._add(_PLAN, _Note("plan", self._plans or 0, "", text))
        self._plans = (self._plans or 0) + 1
        self._publish("plan.json", text)

    def has_plan(self, text: str) -> bool:
        """Whether the plan was saved last, by the summary."""
        return self.summary.plan == digested(text)

    def load_plan(self) -> str | None:
        """The plan that was saved last; None: there was none."""
        rows = self._notes(_PLAN).orderBy(F.desc("version")).limit(1).collect() if self._find() is not None else []
        self._plans = 1 + int(rows[0]["version"]) if rows else 0
        return str(rows[0]["content"]) if rows else None

    def save_report(self, run: str, text: str, *, is_news: bool = True) -> None:
        """The report of a run is kept; for people as ``_stairwise/runs/<run>.json``; only there if it is no news.

        Beside it is what all runs have come to.
        """
        if is_news:
            self._add(_REPORT, _Note(run, 0, run, text))
        self._publish(f"runs/{_file_name(run)}.json", text)
        self.tell_coverage(run)

    def tell_coverage(self, run: str) -> None:
        """What tiers hold by what a run knows is ``_stairwise/covered.json``, for those who do not read every report.

        Of each tier, that are the windows that can be trusted, and those that have expired. All is in it that was so
        when the run began.
        """
        known = {name: each.record.coverage for name, each in self.summary.tiers.items() if each.record is not None}
        document: dict[str, Json] = {
            "schema": "stairwise.covered/1",
            "rollup": self.owner,
            "run_id": run,
            "tiers": {name: _ranges(trusted(coverage)) for name, coverage in known.items()},
            "expired": {name: _ranges(gone) for name, coverage in known.items() if (gone := expired(coverage))},
        }
        self._publish("covered.json", json.dumps(document))

    def newest_listing(self) -> tuple[int, str] | None:
        """The last list of the source's files that was kept, with its number; None: there was none."""
        if self._find() is None:
            return None
        row = self._notes(_LISTING).orderBy(F.desc("version")).select("version", "content").first()
        return None if row is None else (int(row[0]), str(row[1]))

    def listing(self, number: int) -> str | None:
        """The list of the source's files of a number; None: there is none."""
        if self._find() is None:
            return None
        row = self._notes(_LISTING).where(F.col("version") == number).select("content").first()
        return None if row is None else str(row[0])

    def keep_listing(self, number: int, text: str) -> bool:
        """Whether the list of a number is this one now: of several runs that keep one, the first one has."""
        with suppress(*CONFLICTS):  # another one was at the same instant
            self._add(_LISTING, _Note("listing", number, "", text), once=(_LISTING, number))
        return self.listing(number) == text

    def reports(self, since: str = "", most: int = 1) -> tuple[str, ...]:
        """The reports of the newest runs, the newest first; of none before a run, by which older files are skipped."""
        if self._find() is None:
            return ()
        rows = self._notes(_REPORT).where(F.col("name") >= since).orderBy(F.desc("name")).limit(most).collect()
        return tuple(str(row["content"]) for row in rows)

    def drop_reports(self, most: int, *, is_dry: bool = False) -> int:
        """Only so many of the newest reports are kept, and no state from before them; how many reports go.

        What a run needs stands in the commits, so no row of a state is ever read again.
        """
        if self._find() is None:
            return 0
        names = [str(row["name"]) for row in self._notes(_REPORT).select("name").orderBy(F.desc("name")).collect()]
        if len(names) > most and not is_dry:
            kinds, oldest = ", ".join(map(literal, (_STATE, _REPORT))), literal(names[most - 1])
            old = f"kind IN ({kinds}) AND name < {oldest}"
            sql(self.spark, f"DELETE FROM {self.place.identifier} WHERE {old}")  # noqa: S608 - all of it quoted
        return max(0, len(names) - most)

    def _find(self) -> Table | None:
        """The table; one that was not there is not looked for again before somebody writes."""
        return self._table if self._is_sought else self._seek()

    def _seek(self) -> Table | None:
        self._table = Table.owned(self.spark, self.place, self.owner)
        self._is_sought = True
        return self._table

    def _there(self) -> Table:
        table = self._find() or self._seek()
        if table is None:
            raise RunError(f"table {self.place}: it is not there.", hint="run a backfill, which makes it.")
        return table

    def _summaries(self, limit: str) -> tuple[Summary, ...]:
        history = sql(self.spark, f"DESCRIBE HISTORY {self.place.identifier}{limit}")
        rows = sorted(history.collect(), key=lambda row: int(row["version"]), reverse=True)
        found = (Summary.decode(row["userMetadata"]) for row in rows)
        return tuple(each for each in found if each is not None)

    def _notes(self, kind: str) -> DataFrame:
        return self._there().now().where(F.col(_KIND.name) == kind)

    def _add(self, kind: str, note: _Note, once: tuple[str, int] | None = None) -> None:
        values = {**note._asdict(), _KIND.name: kind}
        typed = (F.lit(values[each.name]).cast(each.dataType).alias(each.name) for each in (*_COLUMNS.fields, _KIND))
        self._there().append(self.spark.range(1).coalesce(1).select(*typed), self.summary.encode(), once)

    def _publish(self, name: str, text: str) -> None:
        """A file beside the ledger, there whole or not at all; none if the ledger is elsewhere."""
        path = self.place.path
        if path is None or not Path(path, "_delta_log").is_dir():
            return
        file = Path(path).parent / name
        file.parent.mkdir(exist_ok=True)
        unfinished = file.with_name(f".{uuid4().hex}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)


def new_run() -> str:
    """What no other run is called; what runs are called is in the order in which they began."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"


def installed_version() -> str:
    """The version of Stairwise; it is unknown where it runs from its sources."""
    try:
        return version("stairwise")
    except PackageNotFoundError:
        return "unknown"


def digested(text: str) -> str:
    """The digest of a plan's text."""
    return sha256(text.encode()).hexdigest()[:16]


def _ranges(spans: Iterable[Interval]) -> Json:
    return [[format_instant(start), format_instant(end)] for start, end in spans]


def _numbers(value: object) -> dict[str, int]:
    if not is_object(value):
        raise _refusal(value)
    return {name: each for name, each in value.items() if isinstance(each, int)}


def _names(value: object) -> dict[str, str]:
    if not is_object(value):
        raise _refusal(value)
    return {name: each for name, each in value.items() if isinstance(each, str)}


def _known(value: object) -> Known:
    if not is_list(value):
        raise _refusal(value)
    match value:
        case [str(location), str(mark), None | int() as keys, None]:
            return Known(location, mark, keys)
        case [str(location), str(mark), None | int() as keys, int(at), coverage]:
            return Known(location, mark, keys, State(at, Coverage.from_json(coverage)))
        case _:
            raise _refusal(value)


def _refusal(value: object) -> CodecError:
    return CodecError(
        f"bookkeeping {json.dumps(value)[:80]}: it is not [location, mark, keys, version, coverage].",
        hint="something else changed it: remove the ledger, and run again.",
    )


def _file_name(run: str) -> str:
    return re.sub(r"[^\w.+:@-]", "_", run)
