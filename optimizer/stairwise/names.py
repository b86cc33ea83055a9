"""What may be given in a declaration: types, names and words; which are legal, and which one was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import TypeGuard, TypeVar

from stairwise.errors import RollupError

_Member = TypeVar("_Member", bound=Enum)

# For each key, what reads its text or refuses it.
Readers = Mapping[str, Callable[[str], object]]
# What makes the value of a field of what was given for it, which may be anything, and of the field's name.
Taker = Callable[[object, str], object]

LONGEST_NAME = 128
LONGEST_SHOWN = 40
# Numbers of at most 18 digits.
MOST_COUNTED = 10**18 - 1
_WORD = re.compile("[A-Za-z][A-Za-z0-9_]*")
_TABLE = re.compile("[A-Za-z0-9][A-Za-z0-9_]*")
_SCHEMA = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# What Delta refuses in a column's name: our tables have no column mapping, so that everything can read them.
_NO_COLUMN = re.compile(r"[ ,;{}()=\t\n\r]")


def nearest(word: str, known: Collection[str], likeness: float = 0.6) -> str:
    """Return the known word that was probably meant, or an empty text.

    >>> nearest("agregates", ["keys", "aggregates"]), nearest("colour", ["keys"])
    ('aggregates', '')
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower()[:LONGEST_NAME], known, n=1, cutoff=likeness)), "")


def shown(text: str) -> str:
    """Return a text in quotes, cut where it gets too long to read.

    >>> print(shown(50 * "z"))
    'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz...'
    """
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")


def described(given: object) -> str:
    """Return what was given, in few words: a short value itself, of all else the type.

    >>> described(-5), described({}), described(10**5_000)
    ('-5', 'a dict', 'an int')
    """
    match given:
        case str():
            return shown(given)
        case None | bool() | float():
            return repr(given)
        case int() if abs(given) <= MOST_COUNTED + 1:
            return repr(given)
        case _:
            name = type(given).__name__
            return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def mistyped(given: object, what: str, wanted: str, hint: str) -> RollupError:
    """Return the error for what has another type than the one that is wanted."""
    return RollupError(f"{what} is {described(given)}, where {wanted} is wanted.", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What may be given for a field: a value of its types, or a text that can be read as one.

    >>> Form(wanted="a word", hint="give one as text.", read=str.strip).take(5, "name")
    Traceback (most recent call last):
    stairwise.errors.RollupError: name is 5, where a word is wanted. Hint: give one as text.

    Attributes:
        types: The types of its values, themselves and not those derived from them: True is no number.
        wanted: What is wanted, in words.
        hint: What to do where something else is given.
        read: What reads a text or refuses it; None where no text will do.
    """

    types: tuple[type, ...] = ()
    wanted: str
    hint: str
    read: Callable[[str], object] | None = None

    def take(self, given: object, what: str) -> object:
        """Return the value that is given."""
        if isinstance(given, str) and self.read is not None:
            return self.read(given)
        if type(given) not in self.types:
            raise mistyped(given, what, self.wanted, self.hint)
        return given


def text_form(read: Callable[[str], object], *types: type) -> Form:
    """Return the form of a text, beside which there are values of some types."""
    return Form(types=types, wanted="text", hint="give a string.", read=read)


def choice_form(kind: type[Enum], what: str, *types: type) -> Form:
    """Return the form of an enumeration's members, and of the texts that name them."""
    return Form(
        types=(kind, *types),
        wanted=_listed(str(member.value) for member in kind),
        hint="give one of them as text.",
        read=lambda text: choice(kind, text, what),
    )


def several(one: Taker, what: str, example: str) -> Taker:
    """Return what takes several values in order; a text is one value, not several letters."""

    def take(given: object, field: str) -> object:
        if not is_several(given):
            hint = f"write {field}=[{shown(given)}]." if isinstance(given, str) else f"give one, such as {example}."
            raise mistyped(given, field, "a list", hint)
        return tuple(one(each, what) for each in given)

    return take


def is_several(given: object) -> TypeGuard[Iterable[object]]:
    """Whether something holds several values in an order that is no accident."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | AbstractSet)


def is_mapping(given: object) -> TypeGuard[Mapping[object, object]]:
    """Whether something holds values under keys."""
    return isinstance(given, Mapping)


def text_of(value: object, what: str) -> str:
    """Return a text that says something, without the blanks around it."""
    if not isinstance(value, str):
        raise mistyped(value, what, "text", "give a string.")
    if not value.strip():
        raise RollupError(f"{what} is empty.", hint="write a text, or leave it out.")
    if found := _INVISIBLE.search(value):
        raise RollupError(f"{what} holds the character U+{ord(found[0]):04X}.", hint="remove it.")
    return value.strip()


def choice(kind: type[_Member], text: str, what: str) -> _Member:
    """Return the member of an enumeration that a text names.

    >>> from stairwise.span import Cadence
    >>> choice(Cadence, "dayly", "how often")
    Traceback (most recent call last):
    stairwise.errors.RollupError: how often 'dayly': it is not every run, hourly, daily or weekly. Hint: try daily.
    """
    members = {str(member.value): member for member in kind}
    word = text_of(text, what)
    if word not in members:
        listed = _listed(members)
        raise RollupError(
            f"{what} {shown(word)}: it is not {listed}.", hint=f"try {nearest(word, members) or listed}.", text=word
        )
    return members[word]


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"


def rollup_name(text: str) -> str:
    """Return a rollup's name, once it is an identifier.

    >>> rollup_name("daily-trips")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stairwise.errors.RollupError: rollup 'daily-trips': a name is letters, digits and _, ... Hint: try daily_trips.
    """
    return _shaped(_WORD, text, "rollup", "a name is letters, digits and _, and begins with a letter")


def window_name(text: str) -> str:
    """Return the name of a window's table, once it can be one; those with _ first are for bookkeeping."""
    return _shaped(_TABLE, text, "name", "a table's name is letters, digits and _, and does not begin with _")


def schema_name(text: str) -> str:
    """Return the name of a catalog's schema, once it is one."""
    return _shaped(_SCHEMA, text, "catalog", "a schema is names of letters, digits, _ and -, with dots between them")


def aggregate_name(text: str) -> str:
    """Return the name of an aggregate, once it is an identifier that is not reserved."""
    name = text_of(text, "an aggregate's name")
    _check_length(name, "aggregate name")
    if not name.isidentifier():
        near = re.sub(r"\W+", "_", name).strip("_")
        raise RollupError(
            f"aggregate name {name!r}: a name is letters, digits and _, and does not begin with a digit.",
            hint=f"try {near}." if near.isidentifier() else "choose such a name.",
            text=name,
        )
    return _column(name, "aggregate name")


def key_name(text: str) -> str:
    """Return the name of a key, once our tables can have a column of that name."""
    name = text_of(text, "a key")
    _check_length(name, "key")
    if found := _NO_COLUMN.search(name):
        raise RollupError(
            f"key {name!r}: the name of a Delta column cannot hold {found[0]!r}.",
            hint="a key is one column; sql: SELECT ... AS name makes one of an expression.",
            text=name,
        )
    return _column(name, "key")


def _column(name: str, what: str) -> str:
    if name.startswith("_"):
        raise RollupError(
            f"{what} {name!r}: names that begin with _ are reserved.",
            hint=f"try {name.strip('_') or 'a word'}."
            if what != "key"
            else "sql: SELECT ... AS name renames a column.",
            text=name,
        )
    if name.lower() in ("window_start", "window_end"):
        raise RollupError(
            f"{what} {name!r}: every table has that column already.", hint="choose another name.", text=name
        )
    return name


def _shaped(shape: re.Pattern[str], text: str, what: str, rule: str) -> str:
    name = text_of(text, what)
    _check_length(name, what)
    if not shape.fullmatch(name):
        near = re.sub("[^A-Za-z0-9]+", "_", name).strip("_")
        raise RollupError(
            f"{what} {name!r}: {rule}.",
            hint=f"try {near}." if shape.fullmatch(near) else "choose such a name.",
            text=name,
        )
    return name


def _check_length(name: str, what: str) -> None:
    if len(name) > LONGEST_NAME:
        raise RollupError(
            f"{what} {shown(name)}: longer than {LONGEST_NAME} characters ({len(name)}).", hint="shorten it."
        )
