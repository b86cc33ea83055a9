"""What the files and the log of a Delta table call its columns, where it maps names."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from stairwise_spark.shapes import is_list, is_object

_PHYSICAL = "delta.columnMapping.physicalName"


def physical_name(schema: str | None, name: str) -> str | None:
    """What files call a column, by the schema as the log writes it; None: that does not say."""
    return None if schema is None else _names(schema).get((name.lower(),))


def is_replaced(used: Collection[str], now: str, schemas: Iterable[str]) -> bool:
    """Whether one of the columns, or a field of one, was not there in a schema, or was another one of the same name.

    Args:
        used: The columns in question, in lower case.
        now: The schema that counts.
        schemas: Those that there were before.
    """
    wanted = {path: name for path, name in _names(now).items() if path[0] in used}
    return any(wanted.items() - _names(each).items() for each in schemas)


def _names(schema: str) -> dict[tuple[str, ...], str]:
    """What files call each column and each field of one, by its path in lower case."""
    return dict(_walked(json.loads(schema), ()))


def _walked(kind: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Goes down structs, arrays and maps."""
    if not is_object(kind):
        return
    for inner in ("elementType", "keyType", "valueType"):
        yield from _walked(kind.get(inner), (*path, inner))
    fields = kind.get("fields")
    for field in fields if is_list(fields) else []:
        if is_object(field) and isinstance(name := field.get("name"), str):
            place = (*path, name.lower())
            metadata = field.get("metadata")
            physical = metadata.get(_PHYSICAL, name) if is_object(metadata) else name
            yield place, str(physical)
            yield from _walked(field.get("type"), place)
