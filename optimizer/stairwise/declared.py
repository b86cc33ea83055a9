"""The parts of a declaration: the source, the windows, the target, the policies; each checked when built.

What may be written as text is read by one function for each field, in Python and in YAML alike. The rules that hold
between the parts are in `stairwise.rules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import NoneType
from typing import assert_never, get_args

from stairwise.call import parse_call
from stairwise.duration import Duration
from stairwise.errors import AggregateError, RollupError, WindowError
from stairwise.instant import parse_instant
from stairwise.names import (
    MOST_COUNTED,
    Form,
    Readers,
    choice_form,
    described,
    is_mapping,
    schema_name,
    shown,
    text_form,
    text_of,
    window_name,
)
from stairwise.share import Share, parse_most
from stairwise.span import Span, parse_limit
from stairwise.window import LONGEST_MONTHS, CalendarSpan, CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.window_text import parse_named, table_name
from stairwise.zones import DAY_SECONDS, checked_zone

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
    span = parse_limit(text_of(text, "retain"))
    _check_retained(span, text)
    return span


def _check_retained(span: Span | None, text: str) -> None:
    if span is not None and span.is_empty:
        raise RollupError(f"retain {text!r}: nothing would be kept.", hint="write a longer span, or any.", text=text)


def _span_form(read: Callable[[str], Span | None]) -> Form:
    return Form(types=(Span, NoneType), wanted="a span", hint="give one as text, such as '7 days'.", read=read)


SOURCE_FORMS: Mapping[str, Form] = {
    "table": text_form(partial(text_of, what="table"), NoneType),
    "path": text_form(partial(text_of, what="path"), NoneType),
    "sql": text_form(query, NoneType),
    "format": text_form(lambda text: text_of(text, "format").lower()),
    "time": text_form(partial(text_of, what="time")),
    "unit": choice_form(TimeUnit, "unit", NoneType),
    "zone": text_form(lambda text: checked_zone(text_of(text, "zone"))),
    "where": text_form(condition, NoneType),
    "retain": _span_form(retention),
}
POLICY_FORMS: Mapping[str, Form] = {
    "lateness": _span_form(parse_limit),
    "late": choice_form(Late, "late"),
    "deletes": Form(
        types=(Share, NoneType), wanted="a share", hint="give one as text, such as '10%'.", read=parse_most
    ),
    "null_time": choice_form(NullTime, "null_time"),
    "delay": Form(types=(Duration,), wanted="a duration", hint="give one as text, such as '10m'.", read=Duration.parse),
    "future": _span_form(parse_limit),
    "start": Form(
        types=(int, NoneType),
        wanted="an instant",
        hint="give one as text, such as '2024-01-31T06:00Z', or in seconds.",
        read=parse_instant,
    ),
    "layout": choice_form(Layout, "layout"),
}


def readers(forms: Mapping[str, Form]) -> Readers:
    """Return what reads the texts under the same keys."""
    return {key: partial(form.take, what=key) for key, form in forms.items()}


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
        given: Mapping[str, object] = {
            "table": table, "path": path, "sql": sql, "format": format, "time": time,
            "unit": unit, "zone": zone, "where": where, "retain": retain,
        }  # fmt: skip
        for field, form in SOURCE_FORMS.items():
            object.__setattr__(self, field, form.take(given[field], field))
        self._check()

    def _check(self) -> None:
        _check_retained(self.retain, str(self.retain))
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
        """Refuse other types, a name that no table can have, and a table that drops windows before they end."""
        _WINDOW.take(self.window, "window")
        text_of(self.text, "text")
        window_name(self.name)
        _RETAINED.take(self.retain, "retain")
        _check_retained(self.retain, str(self.retain))
        length = longest(self.window)
        if self.retain is not None and _may_be_shorter(self.retain, length):
            raise RollupError(
                f"window {self.text!r}: retain {self.retain} is shorter than the range {length}.",
                hint=f"write {length} or longer, or any.",
                text=self.text,
            )

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
            name=own or (table_name(" ".join(words)) if name is None else name),
            retain=None if retain is None else retention(retain),
        )

    @classmethod
    def of(cls, given: object) -> DeclaredWindow:
        """Return the window that is given: as a value, as its text, or as the entries of the YAML, all of them texts.

        >>> DeclaredWindow.of({"window": "5m", "name": "fine"}) == DeclaredWindow.of("5m as fine")
        True
        """
        if isinstance(given, DeclaredWindow):
            return given
        entries: Mapping[object, object] = given if is_mapping(given) else {"window": given}
        if "window" not in entries or not entries.keys() <= WINDOW_READERS.keys():
            raise RollupError(
                f"a window has the keys {', '.join(map(str, entries))}: "
                "window is needed, name and retain are known beside it.",
                hint="write such as {'window': '5m', 'name': 'fine'}.",
            )
        texts = {
            key: text_of(entry, str(key)) for key, entry in entries.items() if key == "window" or entry is not None
        }
        return cls.parse(texts["window"], name=texts.get("name"), retain=texts.get("retain"))


WINDOW_READERS: Readers = {"window": _named_window, "name": window_name, "retain": retention}
_WINDOW = Form(types=get_args(Window), wanted="a window", hint="DeclaredWindow.parse reads one from its text.")
_RETAINED = Form(types=(Span, NoneType), wanted="a span", hint="give a Span, such as Span.parse('7 days').")


def longest(window: Window) -> Span:
    """The range; that of windows which grow is the period."""
    match window:
        case FixedWindow():
            return Span(window.range)
        case CalendarWindow(range_unit=Unit.DAY):
            return Span(window.range_count * DAY_SECONDS)
        case CalendarWindow():
            return Span(months=window.range_count)
        case CumulateWindow():
            return longest(window.period)
        case _:
            assert_never(window)


def _may_be_shorter(span: Span, length: Span) -> bool:
    """Whether a span is sometimes shorter than another; months are as long as they are in the calendar."""
    if span.months and length.months:
        return span.months < length.months
    return least_and_most(span)[0] < least_and_most(length)[1]


def least_and_most(span: Span) -> tuple[int, int]:
    """How many seconds a span lasts, at least and at most."""
    if not span.months:
        return span.seconds, span.seconds
    shortest, longest = CalendarSpan(Unit.MONTH, min(span.months, LONGEST_MONTHS)).days()
    return shortest * DAY_SECONDS, longest * DAY_SECONDS


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
                _COUNT.take(number, name)
                counted(number, name)

    def over(self, others: Estimates) -> Estimates:
        """These; where they know nothing, the others.

        >>> Estimates(distinct_keys=7).over(Estimates(rows_per_day=5, distinct_keys=3))
        Estimates(rows_per_day=5, distinct_keys=7, distinct_values=None)
        """
        return Estimates(
            rows_per_day=self.rows_per_day or others.rows_per_day,
            distinct_keys=self.distinct_keys or others.distinct_keys,
            distinct_values=self.distinct_values or others.distinct_values,
        )


_COUNT = Form(types=(int,), wanted="a whole number", hint="give an int, such as 1000000.")
ESTIMATES = ("rows_per_day", "distinct_keys", "distinct_values")
NO_AGGREGATE = ("aggregates are empty: at least one is needed.", "add one, such as trips: count().")
NO_WINDOW = ("windows are empty: at least one is needed.", "add one, such as 1h.")


def counted(number: int, what: str) -> int:
    """Return a number, once it counts something."""
    if number < 1:
        raise RollupError(
            f"{what} is {described(number)}, below 1.", hint="write a whole number from 1, or leave it out."
        )
    if number > MOST_COUNTED:
        raise RollupError(
            f"{what} is {described(number)}, above {MOST_COUNTED}.", hint="write a smaller number, or leave it out."
        )
    return number


def target_path(text: str) -> str:
    """Return the path of a target, once there is one."""
    return text_of(text, "target")
