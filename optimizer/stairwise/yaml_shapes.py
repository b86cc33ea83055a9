"""Texts, lists, mappings, numbers: values of the wanted shape, taken from a tree that may hold others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, assert_never

from stairwise.names import LONGEST_SHOWN, Readers, nearest, shown
from stairwise.problems import Problems
from stairwise.yaml_reader import Entries, Items, Node, Refused, Scalar

LONGEST_TEXT = 4_000
_LONGER = {"sql": 100_000, "where": 100_000}

_WHOLE = re.compile("-?[0-9]{1,40}")
_MARKS = re.compile("[_,' ]")
_BRACKETS = re.compile(r"[\[\]{}]")


class Example(NamedTuple):
    """What to write in place of another shape.

    Attributes:
        hint: The whole hint.
        value: The part of it that the user's own text takes the place of; empty if there is none.
    """

    hint: str
    value: str = ""

    def of(self, node: Node) -> str:
        """The hint, with the user's own text where that can stand there."""
        match node:
            case Scalar(is_plain=True, text=text) if text and len(text) <= LONGEST_SHOWN and not _BRACKETS.search(text):
                return self.hint.replace(self.value, text) if self.value else self.hint
            case _:
                return self.hint


class Shapes:
    """Takes values of the wanted shape from a tree, and notes what has another.

    Args:
        problems: Where to note it.
        hints: What to say of keys that are likely to stand where they are unknown.
    """

    def __init__(self, problems: Problems, hints: Mapping[str, str]) -> None:
        self.problems = problems
        self._hints = hints

    def text(self, node: Node, what: str) -> str | None:
        """The text that a node is."""
        match node:
            case Scalar() if node.is_nothing:
                self.problems.refuse(node.place, f"{what}: nothing is given.", "write a value, or remove the key.")
            case Scalar(is_plain=True) if node.text.lower() in ("true", "false"):
                self.problems.refuse(
                    node.place, f"{what}: {node.text} is no text.", f"write '{node.text}' if it is meant as one."
                )
            case Scalar() if len(node.text) > (longest := _LONGER.get(what, LONGEST_TEXT)):
                self.problems.refuse(node.place, f"{what}: longer than {longest} characters.", "shorten it.")
            case Scalar():
                return node.text
            case _:
                self._misshapen(node, what, "text", "write one text.")
        return None

    def texts(self, nodes: Mapping[str, Node], readers: Readers) -> dict[str, str]:
        """The texts under those keys whose reader accepts them."""
        accepted: dict[str, str] = {}
        for key, read in readers.items():
            text = self.text(nodes[key], key) if key in nodes else None
            if text is not None:
                with self.problems.at(nodes[key].place):
                    read(text)
                    accepted[key] = text
        return accepted

    def items(self, node: Node, what: str, example: Example) -> tuple[Node, ...]:
        """The items of a list."""
        if isinstance(node, Items):
            return node.items
        self._misshapen(node, what, "a list", example.of(node))
        return ()

    def entries(
        self, node: Node, what: str, known: Collection[str], required: Mapping[str, str], example: Example
    ) -> dict[str, Node]:
        """The values under known keys, without those that say nothing; other keys and missing ones are problems."""
        found: dict[str, Node] = {}
        meant: set[str] = set()
        for key, value in self.pairs(node, what, example):
            if key.text not in known:
                near = nearest(key.text, known) if len(known) > 1 else next(iter(known))
                meant.add(near)
                self.problems.refuse(
                    key.place, f"unknown key {shown(key.text)} in {what}.", self._key_hint(key.text, near, known)
                )
            elif key.text in required or not (isinstance(value, Scalar) and value.is_nothing):
                found[key.text] = value
        if isinstance(node, Entries) and node.is_whole:
            for missing in [name for name in required if name not in found and name not in meant]:
                self.problems.refuse(node.place, f"{what} lacks the key {missing!r}.", required[missing])
        return found

    def pairs(self, node: Node, what: str, example: Example) -> tuple[tuple[Scalar, Node], ...]:
        """The keys of a mapping and the values under them."""
        if isinstance(node, Entries):
            return node.entries
        self._misshapen(node, what, "a mapping", example.of(node))
        return ()

    def truth(self, node: Node, what: str) -> bool:
        """Whether a node is ``true``."""
        if isinstance(node, Scalar) and node.is_plain and node.text.lower() in ("true", "false"):
            return node.text.lower() == "true"
        self._misshapen(node, what, "true or false", "write true or false, without quotes.")
        return False

    def number(self, node: Node, what: str) -> int | None:
        """The whole number that a node is."""
        if isinstance(node, Scalar) and node.is_plain and _WHOLE.fullmatch(node.text):
            return int(node.text)
        digits = _MARKS.sub("", node.text) if isinstance(node, Scalar) else ""
        is_whole = _WHOLE.fullmatch(digits)
        hint = f"write {digits}, without marks or quotes." if is_whole else "write digits alone, such as 1000000."
        self._misshapen(node, what, "a whole number", hint)
        return None

    def _misshapen(self, node: Node, what: str, wanted: str, hint: str) -> None:
        match node:
            case Refused():
                return
            case Scalar():
                given = "nothing" if node.is_nothing else shown(node.text)
            case Items():
                given = "a list"
            case Entries():
                given = "a mapping"
            case _:
                assert_never(node)
        self.problems.refuse(node.place, f"{what} is {given}, where {wanted} is wanted.", hint)

    def _key_hint(self, key: str, near: str, known: Collection[str]) -> str:
        if key in self._hints:
            return self._hints[key]
        return f"try {near}." if near else f"the keys are {', '.join(known)}."
