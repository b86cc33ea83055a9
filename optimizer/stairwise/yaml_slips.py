"""What the YAML parser says of a syntax error, in words for whoever wrote the file."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stairwise.problems import WHOLE_FILE, Place

if TYPE_CHECKING:
    import yaml


class _Shown(Enum):
    """Where a syntax error is best shown."""

    HERE = "where the parser gave up"
    OPENING = "where the construct begins that it was in"


class _Slip(NamedTuple):
    """A kind of syntax error: what the parser says of it, and what we say."""

    pattern: str
    shown: _Shown
    message: str
    hint: str


_QUOTES = "use spaces for indentation, and quotes around a text that begins so."
_SLIPS = (
    _Slip("start any token|tab character|node content", _Shown.HERE, "{found} cannot begin a value.", _QUOTES),
    _Slip("alphabetic or numeric", _Shown.OPENING, "{found} cannot begin a value.", _QUOTES),
    _Slip(
        "expected ':'",
        _Shown.OPENING,
        "this line has no colon with a blank behind it.",
        "write KEY: VALUE, or '- ' before an item.",
    ),
    _Slip(
        "values are not allowed",
        _Shown.HERE,
        "the colon makes a key of what stands before it, where no key may stand.",
        "put a text that holds ': ' in quotes, and indent all keys of a mapping alike.",
    ),
    _Slip(
        "end of stream|unexpected document", _Shown.OPENING, "the quote that opens here is never closed.", "close it."
    ),
    _Slip(
        "',' or ']'",
        _Shown.OPENING,
        "the list that opens here is never closed.",
        "close it with ']'; commas separate items.",
    ),
    _Slip(
        "',' or '}'",
        _Shown.OPENING,
        "the mapping that opens here is never closed.",
        "close it with '}'; commas separate entries.",
    ),
    _Slip(
        "expected key|block end|'-' indicator|are not allowed",
        _Shown.HERE,
        "this does not continue what stands before it.",
        "check the indentation, and put a text that holds quotes or brackets in quotes as a whole.",
    ),
    _Slip("escape|hexdecimal", _Shown.OPENING, "this text holds an unknown escape.", "try single quotes around it."),
    _Slip("tag handle", _Shown.OPENING, "tags are not allowed here.", "remove the tag; values are text as written."),
    _Slip("", _Shown.HERE, "this is not YAML.", "begin the file with a line such as rollup: trips."),
)


class _Mark(Protocol):
    """A place, counted from 0: the parsers in C and in Python each have their own."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


def place_of(mark: _Mark | None) -> Place:
    """Return the place of a mark, counted from 1."""
    return Place(mark.line + 1, mark.column + 1) if mark else WHOLE_FILE


def explained(error: yaml.MarkedYAMLError, text: str) -> tuple[Place, str, str]:
    """Return where the parser's error is best shown, what it means and what to do."""
    slip = next(slip for slip in _SLIPS if re.search(slip.pattern, error.problem or ""))
    mark = error.context_mark if slip.shown is _Shown.OPENING else error.problem_mark
    found = text[mark.index : mark.index + 1] if mark else ""
    subject = {"": "the end of the file", "\t": "a tab"}.get(found, repr(found))
    return place_of(mark), slip.message.format(found=subject), slip.hint
