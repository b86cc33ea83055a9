"""What the options of the engine's commands hold, read from their texts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from stairwise.command_parser import HINT
from stairwise.duration import Duration
from stairwise.errors import DeclarationError
from stairwise.instant import parse_instant

_Value = TypeVar("_Value")
_MOST_DIGITS = 18


def instant(text: str) -> int:
    """The second that a text names."""
    return _read(parse_instant, text)


def seconds(text: str) -> int:
    """The length of a duration, which is more than nothing."""
    found = _read(Duration.parse, text).seconds
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no time at all.{HINT}try 30d.")
    return found


def names(text: str) -> tuple[str, ...]:
    """The names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def count(text: str) -> int:
    """A whole number from 1, of a size that things have."""
    if not (text.isascii() and text.isdigit() and text.strip("0")) or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0 of at most {_MOST_DIGITS} digits")
    return int(text)


def _read(reader: Callable[[str], _Value], text: str) -> _Value:
    """What a text says; what is wrong with it in the words of the command line."""
    try:
        return reader(text)
    except DeclarationError as error:
        raise argparse.ArgumentTypeError(f"{error.message}{HINT}{error.hint}") from error
