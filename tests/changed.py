"""Declarations that differ from others in some fields."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from stairwise import Rollup, Source

_Declared = TypeVar("_Declared", Rollup, Source)


def but(declared: _Declared, **given: object) -> _Declared:
    """The same, but for some fields, which may be given as the texts that a declaration takes."""
    return replace(declared, **given)  # type: ignore[arg-type]  # the fields have the types of what is parsed
