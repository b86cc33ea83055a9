"""Whether a declaration fits its source: every column and expression, all that is wrong at once, no row read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from stairwise.aggregate import Aggregate
from stairwise.errors import DeclarationError
from stairwise.names import nearest, shown
from stairwise.rollup import Rollup
from stairwise.rollup import Source as DeclaredSource
from stairwise_spark.errors import SourceError, condition, said
from stairwise_spark.event_time import EventTime
from stairwise_spark.inputs import Types, argument_types

Direct = Callable[[Aggregate, Types], Column]
"""What makes the plain call of Spark for an aggregate, over rows of the source with `_time`; such as `direct`."""

_MOST_NAMED = 12
_NO_GROUP = (MapType, VariantType, NullType, CalendarIntervalType, DayTimeIntervalType, YearMonthIntervalType)
_QUERY = re.compile(r"\b(?:select|values|table|from|with)\b", re.IGNORECASE)
# A star that is no multiplication stands for all columns; an identifier can be put together of texts.
_ALL_COLUMNS = re.compile(r"[(,.]\s*\*|\bidentifier\b")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`""", re.DOTALL)
# What tells the time, some of it also without parentheses, where a column of that name is meant if there is one.
_CLOCK = re.compile(
    r"(?<![\w.])(?:(?:now|curdate|unix_timestamp)\s*\(\s*\)"
    r"|(?:current_timestamp|current_date|current_time|localtimestamp)\s*\("
    r"|(?P<word>current_timestamp|current_date|current_time)\b)"
)


class _Refusal(NamedTuple):
    """What Spark says against an expression, by the beginning of the condition, and how we say it."""

    condition: str
    rule: str
    hint: str


_COMPUTE_BEFORE = "compute it in sql: SELECT ... AS name."
_REFUSALS = (
    _Refusal("PARSE_", "{said}", "write an expression of Spark SQL."),
    _Refusal(
        "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC", "it differs each time it is computed", "store it in the source."
    ),
    _Refusal("INVALID_AGGREGATE_FILTER", "it differs each time it is computed", "store it in the source."),
    _Refusal("NESTED_AGGREGATE_FUNCTION", "an aggregate cannot be inside it", _COMPUTE_BEFORE),
    _Refusal("_LEGACY_ERROR_TEMP_1031", "a window function cannot be inside it", _COMPUTE_BEFORE),
    _Refusal("UNSUPPORTED_GENERATOR", "it makes several rows of one", _COMPUTE_BEFORE),
    _Refusal("UNRESOLVED_ROUTINE", "there is no function {routineName}", "name a function of Spark SQL."),
    _Refusal("AMBIGUOUS_REFERENCE", "{said}", "sql: SELECT ... AS name renames a column."),
    _Refusal("DATATYPE_MISMATCH", "{said}", "cast it to a type that fits."),
)


def check_source(frame: DataFrame, rollup: Rollup, direct: Direct) -> EventTime:
    """The time of the events, once all that the rollup names is in the source and of a type that fits.

    Args:
        frame: The source with all its columns.
        rollup: What was declared.
        direct: Makes the call that is tried for each aggregate.

    Raises:
        SourceError: Something does not fit; all that does not is listed.
    """
    fields = frame.schema.fields
    checks: list[Callable[[], object]] = [
        partial(event_time, rollup.source, fields),
        *(partial(_check_key, key, fields) for key in rollup.keys),
        *_checks_of_expressions(frame.withColumn("_time", F.lit(0).cast("bigint")), rollup, direct),
    ]
    problems = [problem for check in checks if (problem := _problem(check)) is not None]
    if problems:
        raise SourceError.joined(problems)
    return event_time(rollup.source, fields)


def _problem(check: Callable[[], object]) -> DeclarationError | None:
    try:
        check()
    except DeclarationError as error:
        return error
    return None


def event_time(source: DeclaredSource, fields: Sequence[StructField]) -> EventTime:
    """The time of the events.

    Raises:
        SourceError: There is no such column, or it is no time.
    """
    field = named_field(f"time {source.time!r}", source.time, fields)
    return EventTime(name=field.name, type=field.dataType, zone=source.zone, unit=source.unit)


def named_field(subject: str, name: str, fields: Sequence[StructField]) -> StructField:
    """The one field of that name, without regard to case.

    Raises:
        SourceError: There is none, or there are several.
    """
    found = [field for field in fields if field.name.lower() == name.lower()]
    if not found:
        raise _missing(subject, name, fields)
    if len(found) > 1:
        raise SourceError(
            f"{subject}: the source has the columns {' and '.join(field.name for field in found)}, "
            "which Spark cannot tell apart.",
            hint="sql: SELECT ... AS name renames a column.",
        )
    return found[0]


def _missing(subject: str, name: str, fields: Sequence[StructField]) -> SourceError:
    names = [field.name for field in fields]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    lower = {each.lower(): each for each in reversed(names)}
    near = lower.get(nearest(name, lower))
    return SourceError(
        f"{subject}: there is no column {name} in the source; it has {', '.join(names[:_MOST_NAMED])}{more}.",
        hint=f"did you mean {near}?" if near else "name one of them.",
        column=name,
    )


def needed_fields(texts: Iterable[str], fields: Sequence[StructField]) -> tuple[StructField, ...]:
    """The fields that expressions may read: those whose names occur in them, at least.

    >>> fields = [StructField(name, NullType()) for name in ("fare", "tip", "net pay", "pay")]
    >>> [field.name for field in needed_fields(["FARE + `net pay`", "'x'"], fields)]
    ['fare', 'net pay', 'pay']
    """
    text = "\n".join(texts).lower()
    if _ALL_COLUMNS.search(text):
        return tuple(fields)
    words = set(re.findall(r"\w+", text))
    return tuple(field for field in fields if _occurs(field.name.lower(), words, text))


def _occurs(name: str, words: set[str], text: str) -> bool:
    # Any name that is no word has to be quoted.
    return name in words if re.fullmatch(r"\w+", name) else name.replace("`", "``") in text


def expressions(aggregate: Aggregate) -> tuple[str, ...]:
    """The texts of an aggregate that are expressions over the source."""
    return aggregate.arguments if aggregate.condition is None else (*aggregate.arguments, aggregate.condition)


def _check_key(key: str, fields: Sequence[StructField]) -> None:
    kind = named_field(f"key {key!r}", key, fields).dataType
    if not _groups(kind):
        raise SourceError(
            f"key {key!r}: its type is {_type_text(kind)}, by which rows cannot be grouped.",
            hint="sql: SELECT ... AS name makes a text or a number of it.",
        )


def _groups(kind: DataType) -> bool:
    """Whether values of a type can be compared, and kept in a Delta table."""
    match kind:
        case StructType():
            return all(_groups(field.dataType) for field in kind.fields)
        case ArrayType():
            return _groups(kind.elementType)
        case _:
            return not isinstance(kind, _NO_GROUP)


def _type_text(kind: DataType) -> str:
    text = kind.simpleString().upper()
    return text if len(text) <= 40 else f"{text[:40]}..."


def _checks_of_expressions(frame: DataFrame, rollup: Rollup, direct: Direct) -> Iterator[Callable[[], object]]:
    where = rollup.source.where
    fields = frame.schema.fields
    if where is not None:
        yield partial(_check_clock, f"where {shown(where)}", where, fields)
        yield partial(_check_where, frame, f"where {shown(where)}", where)
    aggregates = [aggregate for _, aggregate in rollup.aggregates]
    # One question for all, and one for each only if something is wrong with some.
    is_fine = _problem(partial(_check_all, frame, aggregates, direct)) is None
    for name, aggregate in rollup.aggregates:
        subject = f"aggregate '{name}: {aggregate}'"
        for text in expressions(aggregate):
            yield partial(_check_reserved, subject, text, fields)
            yield partial(_check_clock, subject, text, fields)
            yield partial(_check_no_query, frame, subject, text)
        if not is_fine:
            yield partial(_check_aggregate, frame, subject, aggregate, direct)


def _check_all(frame: DataFrame, aggregates: Sequence[Aggregate], direct: Direct) -> None:
    texts = sorted({text for aggregate in aggregates for text in expressions(aggregate)})

    def called() -> DataFrame:
        types = argument_types(frame, aggregates)
        return frame.agg(*[F.count(_value(text)) for text in texts], *[direct(each, types) for each in aggregates])

    _analyse(frame, "", called)


def _check_aggregate(frame: DataFrame, subject: str, aggregate: Aggregate, direct: Direct) -> None:
    for text in expressions(aggregate):
        _check_value(frame, subject, text)
    _analyse(frame, subject, lambda: frame.agg(direct(aggregate, argument_types(frame, [aggregate]))))


def _check_where(frame: DataFrame, subject: str, where: str) -> None:
    _check_no_query(frame, subject, where)
    _check_value(frame, subject, where)
    _analyse(frame, subject, lambda: frame.where(F.expr(where)))


def _check_value(frame: DataFrame, subject: str, text: str) -> None:
    """Refuse what is not one value for each row, always the same: such can be counted."""
    _analyse(frame, subject, lambda: frame.agg(F.count(_value(text))))


def _check_reserved(subject: str, text: str, fields: Sequence[StructField]) -> None:
    reserved = [field.name for field in needed_fields([text], fields) if field.name.startswith("_")]
    if reserved and not _ALL_COLUMNS.search(text):
        raise SourceError(
            f"{subject}: it reads the column {reserved[0]}, and names that begin with _ are reserved.",
            hint="sql: SELECT ... AS name renames a column.",
            column=reserved[0],
        )


def _check_clock(subject: str, text: str, fields: Sequence[StructField]) -> None:
    """Refuse what asks for the time of the query: Spark takes it for a constant, and it is another one in each run."""
    columns = {field.name.lower() for field in fields}
    found = (each for each in _CLOCK.finditer(_QUOTED.sub("''", text.lower())) if each["word"] not in columns)
    if any(found):
        raise SourceError(
            f"{subject}: it depends on when it is computed.", hint="compare with a column, or with a fixed instant."
        )


def _check_no_query(frame: DataFrame, subject: str, text: str) -> None:
    """Refuse a subquery, whose table would be read at any version: Spark knows one, and allows none in a lambda."""
    if not _QUERY.search(text):
        return
    try:
        _ = frame.agg(F.count(F.transform(F.array(F.lit(0)), lambda _: _value(text)))).schema
    except PySparkException as error:
        if condition(error).startswith("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"):
            raise SourceError(
                f"{subject}: a query cannot be inside it.", hint="read the other table in sql: SELECT ... JOIN ...."
            ) from error


def _value(text: str) -> Column:
    # In parentheses, or its last word might be taken for the name of the rest.
    return F.expr(f"(\n{text}\n)")


def _analyse(frame: DataFrame, subject: str, build: Callable[[], DataFrame]) -> None:
    """Let Spark say what it has against a query over the frame, without running it."""
    try:
        _ = build().schema
    except PySparkException as error:
        raise _refused(subject, error, frame.schema.fields) from error


def _refused(subject: str, error: PySparkException, fields: Sequence[StructField]) -> SourceError:
    name, given = condition(error), error.getMessageParameters() or {}
    if name.startswith("UNRESOLVED_COLUMN"):
        visible = [field for field in fields if not field.name.startswith("_")]
        return _missing(subject, given.get("objectName", "").replace("`", ""), visible)
    words = said(error).partition("due to data type mismatch: ")
    values = {"said": words[2] or words[0], "routineName": given.get("routineName", "").replace("`", "")}
    known = next((each for each in _REFUSALS if name.startswith(each.condition)), None)
    if known is None:
        known = _Refusal(name, "{said}", "correct the expression.")
    return SourceError(f"{subject}: {known.rule.format(**values)}.", hint=known.hint, condition=name)
