"""What a part of a JSON document is, as type checkers can follow it."""

from __future__ import annotations

from typing import TypeGuard


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a list of JSON."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether it is an object of JSON."""
    return isinstance(value, dict)
