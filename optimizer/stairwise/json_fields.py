"""JSON that was read, field by field: each has the type that it must have, or the error names its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import isfinite
from sys import float_info
from typing import TypeGuard, TypeVar

from stairwise.errors import CodecError

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
HINT = "use a file that stairwise plan --out has written."
_FRACTION = re.compile(r"(-?\d+)/([1-9]\d*)", re.ASCII)
_Case = TypeVar("_Case", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A JSON object.

    Attributes:
        document: What the whole document is called.
        path: Where the object stands in it, as in ``tiers[0].runner_up``; empty for the whole.
        values: The fields.
        hint: What to do about a document that is not as it must be.
    """

    document: str
    path: str
    values: Mapping[str, object]
    hint: str = HINT

    @classmethod
    def of(cls, value: object, document: str, hint: str = HINT) -> Fields:
        """The fields of a whole document.

        >>> Fields.of({"tiers": [{"name": 7}]}, "plan").list_of_fields("tiers")[0].text("name")
        Traceback (most recent call last):
        stairwise.errors.CodecError: plan: 'tiers[0].name' is not a text. Hint: use a file that ...
        """
        if not _is_object(value):
            raise CodecError(f"{document}: not a JSON object.", hint=hint)
        return cls(document=document, path="", values=value, hint=hint)

    def refusal(self, name: str, wanted: str) -> CodecError:
        """The error for a field that is not what it must be, or not there."""
        is_missing = name.isidentifier() and name not in self.values
        rule = "is missing" if is_missing else f"is not {wanted}"
        return CodecError(f"{self.document}: '{self._place(name)}' {rule}.", hint=self.hint)

    def expect(self, name: str, wanted: Json) -> None:
        """Refuse a field that has not that value."""
        if name not in self.values or self.values[name] != wanted:
            raise self.refusal(name, json.dumps(wanted))

    def fields(self, name: str) -> Fields:
        """An object."""
        return self._nested(self.values.get(name), name)

    def optional_fields(self, name: str) -> Fields | None:
        """An object or null."""
        return None if self.values.get(name) is None else self.fields(name)

    def list_of_fields(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [self._nested(value, f"{name}[{index}]") for index, value in enumerate(self._list(name))]

    def text(self, name: str) -> str:
        """A text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.refusal(name, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text or null."""
        return None if self.values.get(name) is None else self.text(name)

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        values = self._list(name)
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) < len(values):
            raise self.refusal(name, "a list of texts")
        return texts

    def choice(self, name: str, cases: type[_Case]) -> _Case:
        """One of a closed list of texts."""
        text = self.text(name)
        for case in cases:
            if case.value == text:
                return case
        raise self.refusal(name, f"one of {', '.join(repr(case.value) for case in cases)}")

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise self.refusal(name, "true or false")
        return value

    def number(self, name: str) -> int | float | Fraction:
        """A finite number, or a text that is an exact fraction."""
        value = self.values.get(name)
        if isinstance(value, str) and (parts := _FRACTION.fullmatch(value)):
            # By decimals, for Python's own integers are read from at most 4,300 digits.
            return Fraction(int(Decimal(parts[1])), int(Decimal(parts[2])))
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and isfinite(value):
            return value
        raise self.refusal(name, "a number")

    def integer(self, name: str) -> int:
        """A whole number."""
        number = self.number(name)
        if isinstance(number, float) or number.denominator != 1:
            raise self.refusal(name, "a whole number")
        return number.numerator

    def optional_integer(self, name: str) -> int | None:
        """A whole number or null."""
        return None if self.values.get(name) is None else self.integer(name)

    def optional_float(self, name: str) -> float | None:
        """A number or null."""
        return None if self.values.get(name) is None else self.real(name)

    def real(self, name: str) -> float:
        """A number that a float can hold."""
        number = self.number(name)
        if not -float_info.max <= number <= float_info.max:
            raise self.refusal(name, f"a number of at most {float_info.max:.0e}")
        return float(number)

    def pairs(self, name: str) -> Iterator[tuple[int, int]]:
        """A list of residue classes, each a modulus and a residue below it."""
        for pair in self._list(name):
            match pair:
                case [int(modulus), int(residue)] if 0 <= residue < modulus:
                    yield modulus, residue
                case _:
                    raise self.refusal(name, "a list of [modulus, residue] in seconds, each residue below its modulus")

    def _nested(self, value: object, name: str) -> Fields:
        if not _is_object(value):
            raise self.refusal(name, "an object")
        return Fields(document=self.document, path=self._place(name), values=value, hint=self.hint)

    def _list(self, name: str) -> list[object]:
        value = self.values.get(name)
        if not _is_list(value):
            raise self.refusal(name, "a list")
        return value

    def _place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
