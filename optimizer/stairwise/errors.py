"""Every error that Stairwise raises, and how it reads.

The tree (a test compares this drawing with the classes)::

    StairwiseError
    ├── DeclarationError (ValueError)
    │   ├── DurationError
    │   ├── ZoneError
    │   ├── WindowError
    │   │   └── NotYetError
    │   ├── AggregateError
    │   ├── RollupError
    │   └── DeclarationProblems
    ├── UsageError (ValueError)
    │   └── ChangedError
    ├── CodecError (ValueError)
    └── PlanError (RuntimeError)

A text says what was given, which rule it breaks, with the numbers, and then ``Hint:`` what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

Fact = str | int | float | bool | None


class StairwiseError(Exception):
    """Anything that Stairwise refuses to do; catch this one to catch them all.

    Attributes:
        message: What was given and which rule it breaks.
        hint: What to do about it; empty if there is nothing to say.
        data: The values behind the message, for programs.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "", **data: Fact) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data: dict[str, Fact] = data

    def __str__(self) -> str:
        """The whole text, as a user reads it."""
        return f"{self.message} Hint: {self.hint}" if self.hint else self.message


class DeclarationError(StairwiseError, ValueError):
    """What the user declared cannot be meant; raised before anything runs."""

    kind = "declaration"
    exit_code = 2


class DurationError(DeclarationError):
    """A duration such as ``5m`` is not written as one."""

    kind = "duration"


class ZoneError(DeclarationError):
    """A time zone is not in the zone database."""

    kind = "zone"


class WindowError(DeclarationError):
    """A window's text is not one, or its parts contradict each other."""

    kind = "window"


class NotYetError(WindowError):
    """A kind of window that Stairwise knows of but does not compute yet."""

    kind = "not_yet"


class AggregateError(DeclarationError):
    """An aggregate is unknown, or its arguments do not fit it."""

    kind = "aggregate"


class RollupError(DeclarationError):
    """The parts of a declaration are each legal, but not together."""

    kind = "rollup"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: where (1-based; the whole file: line 0), and what."""

    line: int
    column: int
    error: StairwiseError


class DeclarationProblems(DeclarationError):
    """A file has one problem or more; all of them are listed, in the order of the file.

    >>> error = DeclarationProblems("trips.yaml", (Problem(5, 3, DeclarationError("no window.", hint="add one.")),))
    >>> print(error)
    trips.yaml:5:3: no window. Hint: add one.
    >>> error.message, error.hint
    ('trips.yaml:5:3: no window.', 'add one.')
    """

    kind = "declaration"

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file = file
        self.problems = problems
        message = "\n".join(f"{_place(file, problem)}: {problem.error.message}" for problem in problems)
        several = f"correct each of the {len(problems)} problems."
        hint = problems[0].error.hint if len(problems) == 1 else several
        super().__init__(message, hint=hint, problems=len(problems))

    def __str__(self) -> str:
        """The whole text: a line for each problem, with its hint."""
        return "\n".join(f"{_place(self.file, problem)}: {problem.error}" for problem in self.problems)


def _place(file: str, problem: Problem) -> str:
    return f"{file}:{problem.line}:{problem.column}" if problem.line else file


class UsageError(StairwiseError, ValueError):
    """The command line is wrong: an option, a time, a combination."""

    kind = "usage"
    exit_code = 2


class ChangedError(UsageError):
    """The declaration is another one than the tables were filled with."""

    kind = "changed"


class CodecError(StairwiseError, ValueError):
    """A JSON document is not one of ours, or of a version we cannot read."""

    kind = "codec"
    exit_code = 2


class PlanError(StairwiseError, RuntimeError):
    """A plan breaks one of its own invariants: a defect in Stairwise; the text names the pass."""

    kind = "plan"
