"""The parts of a declaration: the source, the windows, the target, the policies; each checked when built.

What may be written as text is read by one function for each field, in Python and in YAML alike. The rules that hold
between the parts are in `stairwise.rules`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from stairwise.call import parse_call
from stairwise.errors import AggregateError, RollupError, WindowError
from stairwise.names import Readers, choice, schema_name, shown, text_of, window_name
from stairwise.span import Span, parse_limit
from stairwise.window import Window
from stairwise.window_text import parse_named, table_name
from stairwise.zones import checked_zone

_QUERY = re.compile(r"\(|--|/\*|(?:select|with|from|table|values)\b", re.IGNORECASE)


class TimeUnit(Enum):
    """What an integer time column counts since 1970-01-01T00:00Z."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


class Late(Enum):
    """What becomes of a window that is written when a row for it comes."""

    CORRECT = "correct"
    IGNORE = "ignore"


class NullTime(Enum):
    """What becomes of rows without a time."""

    FAIL = "fail"
    SKIP = "skip"


class Layout(Enum):
    """What a tier is kept in: its own Delta table, or a partition of the one for all."""

    TABLES = "tables"
    ONE_TABLE = "one_table"


def condition(text: str) -> str:
    """Return a filter, once it can be one: closed quotes and parentheses, nothing after it.

    >>> condition("payment = 'card")
    Traceback (most recent call last):
    stairwise.errors.RollupError: where "payment = 'card": the quote ' is never closed. Hint: add the closing '.
    """
    given = text_of(text, "where")
    call = f"count() where {given}"
    try:
        parse_call(call)
    except AggregateError as error:
        rule = error.message.removeprefix(f"aggregate {call!r}: ")
        raise RollupError(f"where {shown(given)}: {rule}", hint=error.hint, text=given) from error
    return given


def query(text: str) -> str:
    """Return a query, once it looks like one that can stand inside another."""
    given = text_of(text, "sql")
    if not _QUERY.match(given):
        raise RollupError(
            f"sql {shown(given)}: not a query, which begins with SELECT, WITH, FROM, TABLE or VALUES.",
            hint="name a table with table: and files with path:.",
        )
    if given.endswith(";"):
        raise RollupError("sql ends with ';', but is used inside a larger query.", hint="remove the ';'.")
    return given


def retention(text: str) -> Span | None:
    """Return how long rows are kept; None is for ever."""
    span = parse_limit(text)
    if span is not None and span.is_empty:
        raise RollupError(f"retain {text!r}: nothing would be kept.", hint="write a longer span, or any.", text=text)
    return span


@dataclass(frozen=True, slots=True, init=False)
class Source:
    """Where the events are: a table, files or a query.

    It has a field for each key of the YAML, since a user writes them flat.

    >>> Source(table="lake.trips", time="pickup_at", zone="Europe/Pari")
    Traceback (most recent call last):
    stairwise.errors.ZoneError: zone 'Europe/Pari': the zone database has no zone of that name. Hint: try Europe/Paris.

    Attributes:
        time: The column that says when an event happened.
        table: A table of the session's catalog; exactly one of table, path and sql is given.
        path: A directory of files.
        sql: A Spark SQL query.
        format: How the rows are stored.
        unit: What an integer time counts; None for every other type of time.
        zone: Where a TIMESTAMP_NTZ or a DATE is local.
        where: Only rows for which it is true are read; None for all.
        retain: How long the source keeps its rows; None is for ever.
    """

    time: str
    table: str | None
    path: str | None
    sql: str | None
    format: str
    unit: TimeUnit | None
    zone: str
    where: str | None
    retain: Span | None

    def __init__(  # noqa: PLR0913 - the keys of the YAML
        self,
        *,
        time: str,
        table: str | None = None,
        path: str | None = None,
        sql: str | None = None,
        format: str = "delta",  # noqa: A002 - the key of the YAML
        unit: TimeUnit | str | None = None,
        zone: str = "UTC",
        where: str | None = None,
        retain: Span | str | None = None,
    ) -> None:
        assign = partial(object.__setattr__, self)
        assign("time", text_of(time, "time"))
        assign("table", None if table is None else text_of(table, "table"))
        assign("path", None if path is None else text_of(path, "path"))
        assign("sql", None if sql is None else query(sql))
        assign("format", text_of(format, "format").lower())
        assign("unit", choice(TimeUnit, unit, "unit") if isinstance(unit, str) else unit)
        assign("zone", checked_zone(text_of(zone, "zone")))
        assign("where", None if where is None else condition(where))
        assign("retain", retention(retain) if isinstance(retain, str) else retain)
        self._check()

    def _check(self) -> None:
        places = {"table": self.table, "path": self.path, "sql": self.sql}
        given = [key for key, place in places.items() if place is not None]
        if len(given) != 1:
            raise RollupError(
                f"source has {' and '.join(given) or 'no table, path or sql'}: exactly one says where the rows are.",
                hint="keep one." if given else "add table: NAME, path: DIRECTORY or sql: QUERY.",
            )
        if self.sql is not None and self.format != "delta":
            raise RollupError(
                f"source has sql and format {self.format}: a query's result has no format.", hint="remove format."
            )
        if self.unit is not None and self.zone != "UTC":
            raise RollupError(
                f"source has unit {self.unit.value} and zone {self.zone}: "
                "a unit goes with integers, a zone with times that are local.",
                hint="remove the one that does not go with the column.",
            )


SOURCE_READERS: Readers = {
    "table": partial(text_of, what="table"),
    "path": partial(text_of, what="path"),
    "sql": query,
    "format": partial(text_of, what="format"),
    "time": partial(text_of, what="time"),
    "unit": partial(choice, TimeUnit, what="unit"),
    "zone": checked_zone,
    "where": condition,
    "retain": retention,
}


def _named_window(text: str) -> tuple[Window, str | None]:
    return parse_named(" ".join(text_of(text, "window").split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredWindow:
    """A window that the user asked for, and what its table is called.

    >>> DeclaredWindow.parse("day in Europe/Paris as day") == DeclaredWindow.parse("day in Europe/Paris", name="day")
    True

    Attributes:
        window: What it means.
        text: How it was written, without the name.
        name: The table's name.
        retain: How long the table keeps its rows; None is for ever.
    """

    window: Window
    text: str
    name: str
    retain: Span | None = None

    def __post_init__(self) -> None:
        """Refuse a name that no table can have."""
        window_name(self.name)

    @classmethod
    def parse(cls, text: str, *, name: str | None = None, retain: str | None = None) -> DeclaredWindow:
        """Return the window that a text declares, with the name it gives itself, or is given, or has by its text."""
        window, own = _named_window(text)
        words = text.split()
        if own is not None:
            words = words[:-2]
        if own is not None and name is not None and own != name:
            raise WindowError(
                f"window {text!r}: named {own} by its text and {name} beside it.",
                hint="keep one of the two.",
                text=text,
            )
        return cls(
            window=window,
            text=" ".join(words),
            name=own or name or table_name(" ".join(words)),
            retain=None if retain is None else retention(retain),
        )

    @classmethod
    def of(cls, given: DeclaredWindow | Mapping[str, str] | str) -> DeclaredWindow:
        """Return the window that is given: as a value, as its text, or as the entries of the YAML.

        >>> DeclaredWindow.of({"window": "5m", "name": "fine"}) == DeclaredWindow.of("5m as fine")
        True
        """
        if isinstance(given, DeclaredWindow):
            return given
        entries = given if isinstance(given, Mapping) else {"window": given}
        if "window" not in entries or not entries.keys() <= WINDOW_READERS.keys():
            raise RollupError(
                f"a window has the keys {', '.join(entries)}: window is needed, name and retain are known beside it.",
                hint="write such as {'window': '5m', 'name': 'fine'}.",
            )
        return cls.parse(entries["window"], name=entries.get("name"), retain=entries.get("retain"))


WINDOW_READERS: Readers = {"window": _named_window, "name": window_name, "retain": retention}


@dataclass(frozen=True, slots=True)
class Catalog:
    """A schema of the session's catalog as the target, where each tier is a table.

    >>> Catalog("lake.rollups")
    Catalog(schema='lake.rollups')
    """

    schema: str

    def __post_init__(self) -> None:
        """Refuse what is no schema's name."""
        schema_name(self.schema)


TARGET_READERS: Readers = {"catalog": schema_name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What the user knows of the source, used until it is measured; None is unknown.

    Attributes:
        rows_per_day: Events in a day.
        distinct_keys: Different combinations of the keys.
        distinct_values: Different values in what a sketch or a holistic aggregate reads.
    """

    rows_per_day: int | None = None
    distinct_keys: int | None = None
    distinct_values: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that count nothing."""
        for name, number in zip(ESTIMATES, (self.rows_per_day, self.distinct_keys, self.distinct_values), strict=True):
            if number is not None:
                counted(number, name)


ESTIMATES = ("rows_per_day", "distinct_keys", "distinct_values")
NO_AGGREGATE = ("aggregates are empty: at least one is needed.", "add one, such as trips: count().")
NO_WINDOW = ("windows are empty: at least one is needed.", "add one, such as 1h.")


def counted(number: int, what: str) -> int:
    """Return a number, once it counts something."""
    if number < 1:
        raise RollupError(f"{what} is {number}, below 1.", hint="write a whole number from 1, or leave it out.")
    return number


def target_path(text: str) -> str:
    """Return the path of a target, once there is one."""
    return text_of(text, "target")
