"""The errors of the Spark side, and what Spark, Delta Lake and the system say, in plain words.

They belong to the tree of `stairwise.errors`::

    StairwiseError
    ├── RunError (RuntimeError)
    │   ├── BusyError
    │   └── DeletesError
    └── DeclarationError
        └── SourceError
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from pyspark.errors import PySparkException

from stairwise.errors import DeclarationError, StairwiseError

_Found = TypeVar("_Found")

# They are siblings: the last one is not the base of the others.
CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
    DeltaConcurrentModificationException,
)
"""What Delta Lake raises when another commit came first."""

# The condition may stand behind the names of exceptions; what follows it is the text.
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*(.*)", re.DOTALL)
# From here on: codes, the query, the plan, the stack; and the advice to turn ANSI mode off.
_TAIL = re.compile(
    r"\s*(?:SQLSTATE: |If necessary set |\n== |\n\s*at |\n'?[A-Z]\w+ \[|\n\+-|\nJVM stacktrace|\n\n).*", re.DOTALL
)
_LABEL = re.compile(r"(?:An error occurred while calling \S+\n: )?(?:[\w.$]+(?:Exception|Error): )*")
_ENOUGH, _LONGEST_SAID = 160, 400


class RunError(StairwiseError, RuntimeError):
    """What was asked for is legal, but could not be done."""

    kind = "run"


class BusyError(RunError):
    """Another run changed the same range at the same time."""

    kind = "busy"
    exit_code = 4


class DeletesError(RunError):
    """The source has lost so much that nobody may have meant it."""

    kind = "deletes"


class SourceError(DeclarationError):
    """The declaration does not fit the source: a column, a type, an expression."""

    kind = "source"

    @classmethod
    def joined(cls, problems: Sequence[DeclarationError]) -> DeclarationError:
        """All of several problems as one error, a line for each.

        >>> print(SourceError.joined([SourceError("no column a.", hint="try b."), SourceError("no column c.")]))
        no column a. Hint: try b.
        no column c.
        """
        return problems[0] if len(problems) == 1 else cls("\n".join(map(str, problems)), problems=len(problems))


class _Known(NamedTuple):
    """An error that people meet: how it is told, what it means, what to do."""

    sign: str
    error: type[StairwiseError]
    meaning: str
    hint: str


_GONE = "the Spark process has ended"
_MEMORY = "see what its log says last; if that is memory, give it more: --spark-conf spark.driver.memory=4g."
_LOST = (
    "if it is the source's, restore it, and keep VACUUM from files in use; if it is a tier's, remove that table: "
    "the next run makes it again."
)
OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")
"""What Spark raises when a sum leaves its type."""
CONDITIONS_OF_VALUES = (*OVERFLOWS, "CAST_OVERFLOW", "CAST_INVALID_INPUT", "DIVIDE_BY_ZERO")
"""What Spark raises when a value is not what an expression can take."""
# By the beginning of the error's condition.
_CONDITIONS = (
    _Known(
        "ARITHMETIC_OVERFLOW", RunError, "a result is too large for its type", "cast to a wider type in the aggregate."
    ),
    _Known(
        "NUMERIC_VALUE_OUT_OF_RANGE",
        RunError,
        "a value is too large for its type",
        "cast to a wider type in the aggregate.",
    ),
    _Known("CAST_OVERFLOW", RunError, "a value is too large for its type", "cast to a wider type."),
    _Known(
        "CAST_INVALID_INPUT", RunError, "a value is not what it is cast to", "use try_cast, or filter it out by where."
    ),
    _Known("DIVIDE_BY_ZERO", RunError, "an expression divides by 0", "use try_divide, which gives NULL."),
    _Known("TABLE_OR_VIEW_NOT_FOUND", SourceError, "a table is missing", "check its name, and the session's catalog."),
    _Known("SCHEMA_NOT_FOUND", RunError, "a schema is missing", "create it first."),
    _Known("PATH_NOT_FOUND", SourceError, "there is nothing at the path", "check path: of the source."),
    _Known(
        "DELTA_TABLE_NOT_FOUND", SourceError, "there is no Delta table", "say format: parquet if it is plain files."
    ),
    _Known("DELTA_TABLE_ONLY_OPERATION", SourceError, "no Delta table", "say format: parquet if it is plain files."),
    _Known(
        "UNABLE_TO_INFER_SCHEMA", SourceError, "there are no files to read", "check path: and format: of the source."
    ),
    _Known(
        "DATA_SOURCE_NOT_FOUND",
        RunError,
        "the session lacks a format",
        "check format:, or start Spark with the package that reads it.",
    ),
    _Known(
        "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG",
        RunError,
        "the session lacks Delta Lake",
        "start Spark with the extension and the catalog of Delta Lake.",
    ),
    _Known("FAILED_READ_FILE.FILE_NOT_EXIST", RunError, "a file is gone", _LOST),
    _Known("FAILED_READ_FILE", RunError, "a file cannot be read", _LOST),
    _Known("DELTA_VERSION_NOT_FOUND", RunError, "a version is gone", "run again with the newest version of the table."),
    _Known("DELTA_CANNOT_CREATE_LOG_PATH", RunError, "the target cannot be written", "check that it may be written."),
    _Known(
        "CANNOT_MODIFY", RunError, "a setting cannot be changed in a running session", "set it before Spark starts."
    ),
    _Known("JAVA_GATEWAY_EXITED", RunError, "Spark does not start", "see what it printed; check --spark-conf."),
)
# By a piece of the text, where no condition tells.
_TEXTS = (
    _Known(
        "No space left on device|Disk quota exceeded", RunError, "the disk is full", "free some space, then run again."
    ),
    _Known(
        "Permission denied|AccessDenied|AccessControlException|Read-only file system",
        RunError,
        "the system forbids it",
        "check the rights of the folder and of the user.",
    ),
    _Known("OutOfMemoryError|Java heap space|GC overhead", RunError, "Spark has no memory left", _MEMORY),
    _Known(
        "Connection refused|UNAVAILABLE|failed to connect", RunError, "Spark cannot be reached", "check that it runs."
    ),
)


def condition(error: BaseException) -> str:
    """The condition by which Spark names an error, such as ``DIVIDE_BY_ZERO``; empty if it names none."""
    named = error.getCondition() if isinstance(error, PySparkException) else None
    if named is None:
        found = _CONDITION.search(str(error))
        return found[1] if found else ""
    return named


def said(error: BaseException) -> str:
    """The first words of an error without conditions, codes, plans and stacks, and without a full stop."""
    found = _CONDITION.search(str(error))
    text = found[2] if found else str(error).strip()
    text = _TAIL.sub("", _LABEL.sub("", text, count=1), count=1)
    first, *others = " ".join(text.split()).removesuffix(".").split(". ")
    for other in others:
        if len(first) + len(other) > _ENOUGH:
            break
        first = f"{first}. {other}"
    return first if len(first) <= _LONGEST_SAID else f"{first[:_LONGEST_SAID]}..."


def translated(error: BaseException, subject: str = "") -> StairwiseError:
    """What Spark, Delta Lake or the system says, as an error of ours; it becomes the cause.

    >>> print(translated(OSError(28, "No space left on device"), "tier 5m"))
    tier 5m: the disk is full ([Errno 28] No space left on device). Hint: free some space, then run again.

    Args:
        error: What was raised; one of ours stays.
        subject: What could not be done, or of what.
    """
    if isinstance(error, StairwiseError):
        return error
    ours = _ours(error, f"{subject}: " if subject else "")
    ours.__cause__ = error
    return ours


@contextmanager
def translating(subject: str = "") -> Generator[None]:
    """Within it, what Spark, Delta Lake or the system raises is raised :func:`translated`.

    >>> with translating():
    ...     open("/nowhere/at/all")
    Traceback (most recent call last):
    stairwise_spark.errors.RunError: ...
    """
    try:
        yield
    except Exception as error:
        if not is_foreign(error):
            raise
        raise translated(error, subject) from error


def is_foreign(error: BaseException) -> bool:
    """Whether an error comes from Spark, Delta Lake or the system."""
    # Py4J has no types to import.
    return isinstance(error, PySparkException | OSError) or type(error).__module__.startswith("py4j.")


def unless_refused(ask: Callable[[], _Found]) -> _Found | None:
    """What there is to know; None if Spark, Delta Lake or the system does not say. For what a run can do without."""
    try:
        return ask()
    except Exception as error:
        if not is_foreign(error):
            raise
        return None


def unless_said(conditions: tuple[str, ...], ask: Callable[[], _Found]) -> _Found | None:
    """What there is to know; None if Spark or Delta Lake names one of these conditions, by its beginning."""
    try:
        return ask()
    except Exception as error:
        if not is_foreign(error) or not condition(error).startswith(conditions):
            raise
        return None


def _ours(error: BaseException, prefix: str) -> StairwiseError:
    name = condition(error)
    if isinstance(error, CONFLICTS) or name.startswith("DELTA_CONCURRENT"):
        return BusyError(
            f"{prefix}another run changed the same table meanwhile ({said(error)}).", hint="run again.", condition=name
        )
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return RunError(f"{prefix}{_GONE} ({said(error)}).", hint=_MEMORY)
    known = next((each for each in _CONDITIONS if name.startswith(each.sign)), None)
    known = known or next((each for each in _TEXTS if re.search(each.sign, str(error))), None)
    if known is not None:
        return known.error(f"{prefix}{known.meaning} ({said(error)}).", hint=known.hint, condition=name)
    return RunError(
        f"{prefix}Spark refuses it: {said(error)}.",
        hint=f"Spark's name for it is {name}." if name else "",
        condition=name,
    )
