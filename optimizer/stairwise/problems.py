"""What is wrong with one file, collected while it is read, so that all of it can be said at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from stairwise.errors import DeclarationError, DeclarationProblems, Problem

MOST_PROBLEMS = 25


class Place(NamedTuple):
    """Where something stands in a file, both counted from 1."""

    line: int
    column: int


WHOLE_FILE = Place(0, 0)


class Problems:
    """Everything found wrong with one file so far."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    def add(self, place: Place, error: DeclarationError) -> None:
        """Note a problem; one more than are worth listing ends the reading."""
        if len(self._found) == MOST_PROBLEMS:
            self.stop(
                WHOLE_FILE, f"more problems follow; the first {MOST_PROBLEMS} are listed.", "correct these first."
            )
        self._found.append(Problem(*place, error))

    def refuse(self, place: Place, message: str, hint: str) -> None:
        """Note what a message says."""
        self.add(place, DeclarationError(message, hint=hint))

    def stop(self, place: Place, message: str, hint: str) -> NoReturn:
        """Raise all problems: after this one nothing can be read."""
        self._found.append(Problem(*place, DeclarationError(message, hint=hint)))
        raise self._listed()

    @contextmanager
    def at(self, place: Place) -> Generator[None]:
        """Note the error that the block raises, if it raises one; what follows the block runs in any case."""
        try:
            yield
        except DeclarationProblems:
            raise
        except DeclarationError as error:
            self.add(place, error)

    @property
    def count(self) -> int:
        """How many were found."""
        return len(self._found)

    def settle(self) -> None:
        """Raise what was found, in the order of the file; return if nothing was."""
        if self._found:
            raise self._listed()

    def _listed(self) -> DeclarationProblems:
        in_order = sorted(self._found, key=lambda problem: (not problem.line, problem.line, problem.column))
        return DeclarationProblems(self.file, tuple(in_order))
