"""Mappings, lists and texts, written as the YAML that a person would write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

Value = str | int | Sequence["Value"] | Mapping[str, "Value"]

# Texts that mean themselves without quotes, to us and to readers that tell numbers and truth values from texts.
_PLAIN = re.compile(r"(?!.*(?:: |:$| #))[A-Za-z0-9_/(.][ -~\xa0-\u2027\u202a-\ud7ff]*(?<! )")
_SPECIAL = re.compile(r"null|true|false|yes|no|on|off|y|n|[0-9.][0-9_.:eE+-]*|0[xo].*|\.inf|\.nan", re.IGNORECASE)
_FLOW = re.compile(r"[,\[\]{}]")
_ESCAPED = re.compile(r"[^ !#-\[\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_LINES = re.compile(r"[\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WIDTH = 80


def write_yaml(entries: Mapping[str, Value]) -> str:
    r"""Return the text of a mapping, which ends with a line break.

    >>> print(write_yaml({"a": "b: c", "d": {"e": "x\ny", "f": True}, "g": ["h", "on"], "i": [{"j": "k, l"}]}), end="")
    a: 'b: c'
    d:
      e: |-
        x
        y
      f: true
    g: [h, 'on']
    i:
      - {j: 'k, l'}
    """
    return "".join(f"{line}\n" for line in _block(entries))


def _block(entries: Mapping[str, Value]) -> Iterator[str]:
    for key, value in entries.items():
        name = _text(key)
        match value:
            case str() if "\n" in value and _LINES.fullmatch(value) and value.strip() == value:
                yield f"{name}: |-"
                yield from (f"  {line}" if line else "" for line in value.split("\n"))
            case Mapping():
                yield f"{name}:"
                yield from (f"  {line}" if line else "" for line in _block(value))
            case Sequence() if not isinstance(value, str) and not _fits(value):
                yield f"{name}:"
                yield from (f"  - {item if _is_plain(item) else _flow(item)}" for item in value)
            case _:
                yield f"{name}: {value if _is_plain(value) else _flow(value)}"


def _fits(items: Sequence[Value]) -> bool:
    """Whether a list reads well on one line: few, short words."""
    return all(isinstance(item, str) and " " not in item for item in items) and len(_flow(items)) <= _WIDTH


def _flow(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return value if _is_plain(value) and not _FLOW.search(value) else _quoted(value)
        case Mapping():
            return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(_flow(each) for each in value) + "]"
        case _:
            assert_never(value)


def _text(value: str) -> str:
    return value if _is_plain(value) else _quoted(value)


def _is_plain(value: Value) -> bool:
    return isinstance(value, str) and bool(_PLAIN.fullmatch(value)) and not _SPECIAL.fullmatch(value)


def _quoted(text: str) -> str:
    if _LINES.fullmatch(text) and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
