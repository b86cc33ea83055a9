"""The report of a run, as the Airflow side reads it: checked once, then a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from stairwise.errors import CodecError, DeclarationError
from stairwise.instant import parse_instant
from stairwise.json_fields import Fields
from stairwise.windowing import Interval

_MOST = 2**63 - 1
_HINT = "use a report that stairwise run or stairwise backfill has written."

Document = Mapping[str, object]
"""A JSON object, as the engine printed it."""


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
        )

    @property
    def rows(self) -> int:
        """The rows written to all tiers."""
        return sum(tier.rows for tier in self.tiers)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(tier.bytes for tier in self.tiers)


def covered(document: object) -> dict[str, tuple[Interval, ...]]:
    """What tiers hold, by a document that the last run has left.

    Raises:
        CodecError: It is none.
    """
    top = Fields.of(document, "coverage", hint=_HINT)
    top.expect("schema", "stairwise.covered/1")
    tiers = top.fields("tiers")
    return {name: tuple(intervals(tiers, name)) for name in tiers.values}


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
