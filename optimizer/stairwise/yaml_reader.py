"""YAML, strictly: text in, a tree of texts with their places out, and every problem on the way.

Only what a reviewer can read as it stands is let in: mappings, lists and texts. Tags, anchors, aliases, merge keys and
duplicate keys are problems. A scalar stays the text that was written, so that a name such as ``on`` or ``1e3`` means
itself. The tree is built from the parser's events, without recursion; size, depth and the number of problems are
bounded, so that a hostile file is refused as quickly as a wrong one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stairwise.names import LONGEST_SHOWN, shown
from stairwise.problems import WHOLE_FILE, Place, Problems
from stairwise.yaml_slips import explained, place_of

if TYPE_CHECKING:
    import yaml

MOST_BYTES = 1 << 20
MOST_NODES = 20_000
MOST_DEPTH = 8

# What YAML 1.1 cannot hold, and lone surrogates, which no file can.
_FORBIDDEN = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_DECLARATION = "check that the file is a declaration."
_STANDARD_TAG = "tag:yaml.org,2002:"
NOTHING = frozenset(("", "~", "null", "Null", "NULL"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A text; plain if it stands without quotes, so that ``null`` is nothing and ``'null'`` is a word."""

    place: Place
    text: str
    is_plain: bool

    @property
    def is_nothing(self) -> bool:
        """Whether it says that nothing is given."""
        return self.is_plain and self.text in NOTHING


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """Values under keys, which differ, in the order of the file; not whole if some could not be read."""

    place: Place
    entries: tuple[tuple[Scalar, Node], ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that could not be read; a problem already says so."""

    place: Place


Node = Scalar | Items | Entries | Refused


def read_tree(content: str | bytes, problems: Problems) -> Node:
    """Return what a file holds; whatever is missing from the tree is among the problems.

    >>> problems = Problems("trips.yaml")
    >>> tree = read_tree("keys: &k [a]", problems)
    >>> tree.entries[0][0].text, tree.entries[0][1].place
    ('keys', Place(line=1, column=7))
    >>> problems.settle()
    Traceback (most recent call last):
    stairwise.errors.DeclarationProblems: trips.yaml:1:7: anchor &k: not allowed here. Hint: write the value out.
    """
    import yaml

    text = _decoded(content, problems)
    builder = _Builder(problems)
    try:
        for event in yaml.parse(text, yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        problems.stop(*explained(error, text))
    if builder.root is None or (isinstance(builder.root, Scalar) and builder.root.is_nothing):
        problems.stop(WHOLE_FILE, "the file holds no declaration.", "begin with a line such as rollup: trips.")
    return builder.root


def _decoded(content: str | bytes, problems: Problems) -> str:
    if len(content) > MOST_BYTES:
        problems.stop(WHOLE_FILE, f"the file is larger than {MOST_BYTES} bytes.", _NO_DECLARATION)
    try:
        text = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        byte = f"0x{error.object[error.start]:02x}"
        problems.stop(_place_after(before), f"byte {byte}: the file is not UTF-8.", "save it as UTF-8.")
    text = text.removeprefix("\ufeff")
    if found := _FORBIDDEN.search(text):
        message = f"character U+{ord(found[0]):04X}: YAML does not allow it."
        problems.stop(_place_after(text[: found.start()]), message, "remove it.")
    return text


def _place_after(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


@dataclass(slots=True)
class _Open:
    """A list or a mapping whose end is not yet reached; a mapping's keys and values take turns."""

    place: Place
    is_mapping: bool
    nodes: list[Node] = field(default_factory=list[Node])


class _Builder:
    """Makes the tree of the parser's events."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[_Open] = []
        self._documents = self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        """Add what the event stands for to the tree."""
        import yaml

        place = place_of(event.start_mark)
        if isinstance(event, yaml.NodeEvent):
            self._check(event, place)
        match event:
            case yaml.ScalarEvent():
                self._add(Scalar(place=place, text=event.value, is_plain=not event.style))
            case yaml.AliasEvent():
                self._add(Refused(place))
            case yaml.CollectionStartEvent():
                self._open.append(_Open(place, isinstance(event, yaml.MappingStartEvent)))
            case yaml.CollectionEndEvent():
                done = self._open.pop()
                nodes = tuple(done.nodes)
                self._add(self._entries(done.place, nodes) if done.is_mapping else Items(done.place, nodes))
            case yaml.DocumentStartEvent():
                self._begin_document(place)
            case _:
                pass

    def _check(self, event: yaml.NodeEvent, place: Place) -> None:
        import yaml

        self._nodes += 1
        if self._nodes > MOST_NODES or len(self._open) > MOST_DEPTH:
            rule = f"nested more than {MOST_DEPTH} deep" if len(self._open) > MOST_DEPTH else f"more than {MOST_NODES}"
            self._problems.stop(place, f"values are {rule}.", _NO_DECLARATION)
        if event.anchor is not None:
            mark = "alias *" if isinstance(event, yaml.AliasEvent) else "anchor &"
            name = event.anchor[:LONGEST_SHOWN]
            self._problems.refuse(place, f"{mark}{name}: not allowed here.", "write the value out.")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            tag = event.tag.replace(_STANDARD_TAG, "!!", 1)[:LONGEST_SHOWN]
            self._problems.refuse(place, f"tag {tag}: not allowed here.", "remove it; values are text as written.")

    def _begin_document(self, place: Place) -> None:
        self._documents += 1
        if self._documents > 1:
            message = "a second document begins here: a file declares one rollup."
            self._problems.stop(place, message, "use a file for each.")

    def _add(self, node: Node) -> None:
        if self._open:
            self._open[-1].nodes.append(node)
        else:
            self.root = node

    def _entries(self, place: Place, nodes: tuple[Node, ...]) -> Entries:
        entries: dict[str, tuple[Scalar, Node]] = {}
        is_whole = True
        for key, value in zip(nodes[::2], nodes[1::2], strict=True):
            if not isinstance(key, Scalar) or (key.is_plain and key.text == "<<"):
                is_whole = False
                self._refuse_key(key)
            elif key.text in entries:
                line = entries[key.text][0].place.line
                message = f"key {shown(key.text)}: given twice, first in line {line}."
                self._problems.refuse(key.place, message, "keep one of the two.")
            else:
                entries[key.text] = (key, value)
        return Entries(place, tuple(entries.values()), is_whole)

    def _refuse_key(self, key: Node) -> None:
        match key:
            case Refused():
                pass
            case Scalar():
                self._problems.refuse(key.place, "merge key <<: not allowed here.", "write the entries out.")
            case _:
                message = "a list or a mapping is no key."
                self._problems.refuse(key.place, message, "put a text with brackets in quotes.")
