"""What runs leave, as the Airflow side reads it: checked once, then a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeGuard

from stairwise.errors import CodecError, DeclarationError
from stairwise.instant import parse_instant
from stairwise.json_fields import Fields
from stairwise.windowing import Interval

BEGINNING = parse_instant("0001-01-01")
"""Where runs begin that are for all that there is."""
_MOST = 2**63 - 1
_HINT = "use a report that stairwise run or stairwise backfill has written."
_BEGAN = re.compile(r"\d{8}T\d{12}-", re.ASCII)
# To so many seconds a report is exact.
_EXACT = 0.001

Document = Mapping[str, object]
"""A JSON object, as the engine printed it."""
Spans = tuple[tuple[str, tuple[Interval, ...]], ...]
"""Tiers, each with ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierDone:
    """What a run did to a tier.

    Attributes:
        name: The tier.
        reads: Its parent; None: the raw rows.
        windows: So many windows were written; None: they were not counted.
        rows: The rows written.
        bytes: Their size.
        version: The newest version of the table; None: the run did not touch it.
        seconds: What it took.
        predicted_rows: What the plan expected; None: it does not say.
        covered: The windows that ended in these ranges were written.
    """

    name: str
    reads: str | None
    windows: int | None
    rows: int
    bytes: int
    version: int | None
    seconds: float
    predicted_rows: float | None
    covered: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did.

    Attributes:
        rollup: The rollup.
        run_id: The run of the engine.
        span: What it was for.
        tiers: What became of each tier, parents first.
        rows_read: Of the source.
        bytes_read: Of the source; None: unknown.
        late_rows: Rows that came for windows which had been written before; None: unknown.
        seconds: From when the session was ready.
        startup_seconds: Until then.
        expired: The windows of tiers that ended in these ranges have gone, after what was written.
        earliest: When the earliest events happened that were new to it or had changed; None: none were.
    """

    rollup: str
    run_id: str
    span: Interval
    tiers: tuple[TierDone, ...]
    rows_read: int
    bytes_read: int | None
    late_rows: int | None
    seconds: float
    startup_seconds: float
    expired: Spans = ()
    earliest: int | None = None

    @classmethod
    def of(cls, document: object) -> Report:
        """The report that a document is.

        Raises:
            CodecError: It is none.
        """
        top = Fields.of(document, "report", hint=_HINT)
        top.expect("schema", "stairwise.run/1")
        source = top.fields("source")
        return cls(
            rollup=top.text("rollup"),
            run_id=top.text("run_id"),
            span=_interval(top, top.values.get("range"), "range"),
            tiers=tuple(map(_tier, top.list_of_fields("tiers"))),
            rows_read=_count(source, "rows_read"),
            bytes_read=_optional_count(source, "bytes_read"),
            late_rows=_optional_count(top, "late_rows"),
            seconds=top.real("seconds"),
            startup_seconds=top.optional_float("startup_seconds") or 0.0,
            expired=_optional_spans(top, "expired"),
            earliest=_earliest(source),
        )

    @property
    def ended(self) -> datetime | None:
        """An instant by which the run was over; None: nobody knows."""
        began = _began(self.run_id)
        return None if began is None else began + timedelta(seconds=self.seconds + _EXACT)

    @property
    def rows(self) -> int:
        """The rows written to all tiers."""
        return sum(tier.rows for tier in self.tiers)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(tier.bytes for tier in self.tiers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What tiers hold, by all that a run knew.

    Attributes:
        run_id: The run of the engine; empty: it is not told.
        tiers: The windows of tiers that ended in these ranges are there.
        expired: Those that ended in these were kept as long as was declared, and have gone.
    """

    run_id: str
    tiers: Spans
    expired: Spans = ()

    @classmethod
    def of(cls, document: object) -> Covered:
        """What the document says that the last run has left.

        Raises:
            CodecError: It is none.
        """
        top = Fields.of(document, "coverage", hint=_HINT)
        top.expect("schema", "stairwise.covered/1")
        return cls(
            run_id=top.optional_text("run_id") or "",
            tiers=_spans(top, "tiers"),
            expired=_optional_spans(top, "expired"),
        )

    def knows(self, report: Report) -> bool:
        """Whether all that a run did is in it: its own run, and those that were over when this one began."""
        if report.run_id == self.run_id:
            return True
        began, ended = _began(self.run_id), report.ended
        return began is not None and ended is not None and ended <= began


def _began(run_id: str) -> datetime | None:
    """When a run began, as its id says to the microsecond; None: it does not."""
    found = _BEGAN.match(run_id)
    try:
        return None if found is None else datetime.strptime(f"{found[0]}+0000", "%Y%m%dT%H%M%S%f-%z")
    except ValueError:
        return None


def _spans(fields: Fields, name: str) -> Spans:
    """The ranges of each tier."""
    tiers = fields.fields(name)
    return tuple((tier, tuple(intervals(tiers, tier))) for tier in tiers.values)


def _optional_spans(fields: Fields, name: str) -> Spans:
    return () if fields.values.get(name) is None else _spans(fields, name)


def _tier(fields: Fields) -> TierDone:
    return TierDone(
        name=fields.text("name"),
        reads=fields.optional_text("reads"),
        windows=_optional_count(fields, "windows_written"),
        rows=_count(fields, "rows_written"),
        bytes=_count(fields, "bytes_written"),
        version=fields.optional_integer("version"),
        seconds=fields.real("seconds"),
        predicted_rows=fields.optional_float("predicted_rows"),
        covered=tuple(intervals(fields, "covered")),
    )


def _earliest(source: Fields) -> int | None:
    """When the first range begins that changed, of ranges in order."""
    if source.values.get("changed_ranges") is None:
        return None
    return next((start for start, _ in intervals(source, "changed_ranges") if start > BEGINNING), None)


def _count(fields: Fields, name: str) -> int:
    """A number of things, as a machine counts them."""
    number = fields.integer(name)
    if not 0 <= number <= _MOST:
        raise fields.refusal(name, f"a whole number from 0 to {_MOST}")
    return number


def _optional_count(fields: Fields, name: str) -> int | None:
    return None if fields.values.get(name) is None else _count(fields, name)


def intervals(fields: Fields, name: str) -> Iterator[Interval]:
    """The ranges of a field, each of two instants.

    Raises:
        CodecError: They are not.
    """
    pairs = fields.values.get(name)
    if not is_list(pairs):
        raise fields.refusal(name, "a list of ranges")
    return (_interval(fields, pair, name) for pair in pairs)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a list, as JSON has them."""
    return isinstance(value, list)


def is_document(value: object) -> TypeGuard[Document]:
    """Whether it is an object, as JSON has them."""
    return isinstance(value, dict)


def _interval(fields: Fields, pair: object, name: str) -> Interval:
    match pair:
        case [str(start), str(end)]:
            try:
                return _between(start, end)
            except DeclarationError as error:
                raise CodecError(f"report: '{name}': {error.message}", hint=_HINT) from error
        case _:
            raise fields.refusal(name, "a range of two instants")


@lru_cache(maxsize=4096)
def _between(start: str, end: str) -> Interval:
    """A range, of which there is one though a report has it for each tier."""
    return Interval(parse_instant(start), parse_instant(end))
