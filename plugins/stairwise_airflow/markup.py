"""HTML in which whatever is not markup is text: names and files of strangers cannot become elements."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already, made by :func:`element` and by nothing else that takes what users wrote."""

    __slots__ = ()


_VOID = frozenset({"input", "meta"})


def element(tag: str, *content: str, **attributes: str | float | bool | None) -> Markup:
    """An element; a trailing ``_`` of an attribute's name is left out, others stand for ``-``; None leaves it out.

    >>> element("p", "a < b", element("b", "c"), class_="x", data_of='"')
    '<p class="x" data-of="&quot;">a &lt; b<b>c</b></p>'
    """
    given = "".join(map(_attribute, attributes.items()))
    return Markup(f"<{tag}{given}>" if tag in _VOID else f"<{tag}{given}>{joined(content)}</{tag}>")


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """The parts, one after the other."""
    return Markup(escape(between).join(part if isinstance(part, Markup) else escape(part) for part in parts))


def _attribute(item: tuple[str, str | float | bool | None]) -> str:
    name, value = item
    plain = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {plain}" if value is True else f' {plain}="{escape(str(value))}"'
