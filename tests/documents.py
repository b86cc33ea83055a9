"""JSON documents held against the schemas that ship with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from jsonschema import Draft202012Validator

from stairwise.json_fields import Json
from stairwise.schema import schema


def check(document: Mapping[str, Json]) -> None:
    """Fail if a document does not fit its schema, or has a field that the schema does not name.

    Readers are told to expect new fields; a test is not.
    """
    kind = str(document["schema"]).removeprefix("stairwise.").partition("/")[0]
    told: dict[str, Json] = json.loads(schema(kind))
    found = Draft202012Validator(told).iter_errors(document)  # pyright: ignore[reportUnknownMemberType]
    errors = [f"{error.json_path}: {error.message}" for error in found]
    assert errors == []
    known = {name for name, _ in _properties(told)}
    free = {"data", "keys", "stored", "recomputed"}  # whose fields have names of the user's
    assert {name for name in _names(document, free) if name not in known} == set()


def undescribed(told: Json) -> list[str]:
    """The fields that a schema does not describe."""
    return [name for name, field in _properties(told) if not (isinstance(field, Mapping) and "description" in field)]


def _properties(told: Json) -> Iterator[tuple[str, Json]]:
    """The fields that a schema describes, wherever in it, but those of conditions."""
    if isinstance(told, Mapping):
        for word, part in told.items():
            if word == "properties" and isinstance(part, Mapping):
                yield from part.items()
            if word not in {"if", "then", "not"}:
                yield from _properties(part)
    elif isinstance(told, Sequence) and not isinstance(told, str):
        for part in told:
            yield from _properties(part)


def _names(document: Json, free: set[str]) -> Iterator[str]:
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield name
            if name not in free:
                yield from _names(value, free)
    elif isinstance(document, Sequence) and not isinstance(document, str):
        for value in document:
            yield from _names(value, free)
