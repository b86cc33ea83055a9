"""A declaration's YAML, read into its parts, with every problem that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from stairwise.aggregate import Aggregate
from stairwise.declared import (
    ESTIMATES,
    NO_AGGREGATE,
    NO_WINDOW,
    POLICY_FORMS,
    SOURCE_FORMS,
    TARGET_READERS,
    WINDOW_READERS,
    Catalog,
    DeclaredWindow,
    Estimates,
    Late,
    Layout,
    Source,
    counted,
    readers,
    target_path,
)
from stairwise.names import Readers, aggregate_name, choice, key_name, rollup_name, shown
from stairwise.problems import Place, Problems
from stairwise.rules import check_lateness, check_target, clashes
from stairwise.span import Lookback, parse_limit
from stairwise.yaml_reader import Entries, Items, Node, read_tree
from stairwise.yaml_shapes import Example, Shapes

TOP_READERS: Readers = {"rollup": rollup_name, **readers(POLICY_FORMS)}
SOURCE_READERS = readers(SOURCE_FORMS)
REQUIRED = {
    "rollup": "add rollup: NAME.",
    "source": "add source: with table: NAME and time: COLUMN under it.",
    "aggregates": "add aggregates: with a line such as trips: count() under it.",
    "windows": "add windows: with a line such as - 1h under it.",
    "target": "add target: DIRECTORY, or target: {catalog: SCHEMA}.",
}
KEYS = (
    *("rollup", "source", "keys", "aggregates", "windows", "target"),
    *("lateness", "late", "deletes", "null_time", "partial", "delay", "future", "lookback", "start", "layout"),
    "estimates",
)
_KEY_HINTS = {
    **dict.fromkeys(SOURCE_READERS, "it belongs to source."),
    **dict.fromkeys(ESTIMATES, "it belongs to estimates."),
    "catalog": "write target: {catalog: SCHEMA}.",
    "name": "a rollup's name is given as rollup: NAME.",
}
_SOURCE_REQUIRED = {"time": "add time: COLUMN, the column that says when an event happened."}
_WINDOW_REQUIRED = {"window": "add window: TEXT, such as 1h."}
_TARGET_REQUIRED = {"catalog": "add catalog: SCHEMA, or write a path as target."}


_T = TypeVar("_T")
_Placed = list[tuple[Place, _T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The legal parts of a file; `stairwise.rollup.Rollup` is built of them.

    Attributes:
        policies: The other keys that the file gives, by name, as written.
    """

    name: str
    source: Source
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    windows: tuple[DeclaredWindow, ...]
    target: str | Catalog
    partial: bool
    lookback: tuple[Lookback, ...]
    estimates: Estimates
    policies: Mapping[str, str]


def read_declaration(content: str | bytes, file: str) -> Declaration:
    """Return what a file declares.

    Raises:
        DeclarationProblems: All that is wrong with it, with line and column.
    """
    problems = Problems(file)
    root = read_tree(content, problems)
    reading = _Reading(problems, _KEY_HINTS)
    top = reading.entries(root, "the file", KEYS, REQUIRED, Example("begin it with a line such as rollup: trips."))
    declaration = reading.declaration(top)
    problems.settle()
    assert declaration is not None  # noqa: S101 - or settle would have raised
    return declaration


def _places(section: _Placed[_T]) -> list[Place]:
    return [place for place, _ in section]


class _Reading(Shapes):
    """Reads the sections of a declaration; each notes its problems and returns what is legal of it."""

    def declaration(self, top: Mapping[str, Node]) -> Declaration | None:
        """All sections, and the rules between them; None if a part is missing that there must be."""
        texts = self.texts(top, TOP_READERS)
        layout = choice(Layout, texts.get("layout", "tables"), "layout")
        source, target = self._source(top), self._target(top)
        keys, aggregates = self._keys(top), self._aggregates(top)
        windows, lookback = self._windows(top), self._lookback(top)
        places = {
            "keys": _places(keys),
            "aggregates": _places(aggregates),
            "windows": _places(windows),
            "lookback": _places(lookback),
        }
        for clash in clashes(
            keys=[key for _, key in keys],
            aggregates=[name for _, (name, _) in aggregates],
            windows=[window for _, window in windows],
            lookback=[each for _, each in lookback],
            layout=layout,
        ):
            self.problems.add(places[clash.section][clash.index], clash.error)
        if "late" in texts and ("lateness" in texts or "lateness" not in top):
            with self.problems.at(top["late"].place):
                check_lateness(choice(Late, texts["late"], "late"), parse_limit(texts.get("lateness", "any")))
        estimates = self._estimates(top)
        is_partial = "partial" in top and self.truth(top["partial"], "partial")
        if source is None or target is None or "rollup" not in texts:
            return None
        with self.problems.at(top["target"].place):
            check_target(source, target, [window for _, window in windows], layout)
        return Declaration(
            name=texts.pop("rollup"),
            source=source,
            keys=tuple(key for _, key in keys),
            aggregates=tuple(pair for _, pair in aggregates),
            windows=tuple(window for _, window in windows),
            target=target,
            partial=is_partial,
            lookback=tuple(each for _, each in lookback),
            estimates=estimates,
            policies=texts,
        )

    def _source(self, top: Mapping[str, Node]) -> Source | None:
        source: Source | None = None
        if "source" in top:
            before = self.problems.count
            example = Example("write source: {table: lake.trips, time: COLUMN}.", "lake.trips")
            nodes = self.entries(top["source"], "source", SOURCE_READERS, _SOURCE_REQUIRED, example)
            texts = self.texts(nodes, SOURCE_READERS)
            is_whole = isinstance(top["source"], Entries) and top["source"].is_whole
            # What cannot be read, such as an alias, was a problem before.
            has_all = is_whole and set(_SOURCE_REQUIRED) <= texts.keys()
            if has_all and self.problems.count == before:
                with self.problems.at(top["source"].place):
                    source = Source(**texts)
        return source

    def _target(self, top: Mapping[str, Node]) -> str | Catalog | None:
        node = top.get("target")
        if isinstance(node, Entries):
            texts = self.texts(
                self.entries(node, "target", TARGET_READERS, _TARGET_REQUIRED, Example("")), TARGET_READERS
            )
            return Catalog(texts["catalog"]) if texts else None
        return self.texts(top, {"target": target_path}).get("target")

    def _keys(self, top: Mapping[str, Node]) -> _Placed[str]:
        return self._listed(top, "keys", Example("write keys: [zone_id].", "zone_id"), key_name)

    def _lookback(self, top: Mapping[str, Node]) -> _Placed[Lookback]:
        example = Example("write lookback: [1 day every run].", "1 day every run")
        return self._listed(top, "lookback", example, Lookback.parse)

    def _listed(
        self, top: Mapping[str, Node], section: str, example: Example, read: Callable[[str], _T]
    ) -> _Placed[_T]:
        found: _Placed[_T] = []
        for node in self.items(top[section], section, example) if section in top else ():
            text = self.text(node, section)
            if text is not None:
                with self.problems.at(node.place):
                    found.append((node.place, read(text)))
        return found

    def _aggregates(self, top: Mapping[str, Node]) -> _Placed[tuple[str, Aggregate]]:
        found: _Placed[tuple[str, Aggregate]] = []
        if "aggregates" not in top:
            return found
        example = Example("write NAME: CALL, such as trips: count().", "count()")
        pairs = self.pairs(top["aggregates"], "aggregates", example)
        for key, node in pairs:
            text = self.text(node, f"aggregate {shown(key.text)}")
            with self.problems.at(key.place):
                name = aggregate_name(key.text)
                with self.problems.at(node.place):
                    found.append((key.place, (name, Aggregate.parse("count()" if text is None else text))))
        if isinstance(top["aggregates"], Entries) and not pairs:
            self.problems.refuse(top["aggregates"].place, *NO_AGGREGATE)
        return found

    def _windows(self, top: Mapping[str, Node]) -> _Placed[DeclaredWindow]:
        found: _Placed[DeclaredWindow] = []
        if "windows" not in top:
            return found
        for node in self.items(top["windows"], "windows", Example("write windows: [5m, 1h].", "5m, 1h")):
            if isinstance(node, Entries):
                nodes = self.entries(node, "a window", WINDOW_READERS, _WINDOW_REQUIRED, Example(""))
                texts = self.texts(nodes, WINDOW_READERS)
            else:
                texts = self.texts({"window": node}, WINDOW_READERS)
            if "window" in texts:
                with self.problems.at(node.place):
                    window = DeclaredWindow.parse(texts["window"], name=texts.get("name"), retain=texts.get("retain"))
                    found.append((node.place, window))
        if isinstance(top["windows"], Items) and not top["windows"].items:
            self.problems.refuse(top["windows"].place, *NO_WINDOW)
        return found

    def _estimates(self, top: Mapping[str, Node]) -> Estimates:
        numbers: dict[str, int] = {}
        example = Example("write estimates: {rows_per_day: 1000000}.", "1000000")
        if "estimates" in top:
            for key, node in self.entries(top["estimates"], "estimates", ESTIMATES, {}, example).items():
                number = self.number(node, key)
                if number is not None:
                    with self.problems.at(node.place):
                        numbers[key] = counted(number, key)
        return Estimates(**numbers)
