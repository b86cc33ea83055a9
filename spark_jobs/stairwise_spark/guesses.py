"""A first declaration for a table, guessed from the names and types of its columns; each guess with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from stairwise import Rollup, Source
from stairwise.errors import RollupError
from stairwise.names import LONGEST_NAME, aggregate_name, key_name
from stairwise_spark.errors import SourceError

_WHOLE = ("tinyint", "smallint", "int", "bigint")
# The types of a time, the likeliest first.
_TIMES = ("timestamp", "timestamp_ntz", "date", "bigint", "int")
_UNITS = {"ns": "ns", "nanos": "ns", "us": "us", "micros": "us", "ms": "ms", "millis": "ms"}
# What the name of a time is made of; and what says when a row was kept rather than when something happened.
_TIME_WORDS = {"at", "time", "ts", "timestamp", "date", "datetime", "day", "epoch", "when", "start", "begin", "pickup"}
_KEPT_WORDS = {"created", "updated", "modified", "ingested", "ingest", "loaded", "load", "processed", "inserted", "etl"}
_ID_WORDS = {"id", "key", "code", "uuid", "guid", "no", "nr"}
_KEY_WORDS = {"zone", "country", "region", "city", "state", "category", "type", "kind", "status", "channel", "currency"}
_SOME_WORDS = {"user", "rider", "customer", "visitor", "session", "device", "account", "driver", "member", "client"}
_MEAN_WORDS = {"temperature", "rate", "ratio", "score", "rating", "percent", "speed", "latency", "age", "level"}
_WINDOWS = ("15m", "1h", "day")
_MOST_KEYS, _MOST_MEASURES, _WIDTH = 2, 3, 78


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table: its name, and its type as Spark SQL names it."""

    name: str
    type: str

    @property
    def words(self) -> frozenset[str]:
        """What its name is made of.

        >>> sorted(Field("pickupZone_ID", "int").words)
        ['id', 'pickup', 'zone']
        """
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", self.name)
        return frozenset(part.lower() for part in parts)

    @property
    def is_measure(self) -> bool:
        """Whether it holds amounts."""
        is_number = self.type in (*_WHOLE, "float", "double") or self.type.startswith("decimal")
        return is_number and not self.words & (_ID_WORDS | _TIME_WORDS | _KEPT_WORDS | _UNITS.keys())

    @property
    def expression(self) -> str:
        """It as Spark SQL reads it."""
        return self.name if re.fullmatch(r"[A-Za-z]\w*", self.name, re.ASCII) else f"`{self.name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True)
class Guessed:
    """A declaration, and why it is as it is: sentences by the key of the declaration that they are about."""

    rollup: Rollup
    reasons: Mapping[str, tuple[str, ...]]

    def sentences(self) -> tuple[str, ...]:
        """All reasons, in the order of the declaration."""
        return tuple(sentence for found in self.reasons.values() for sentence in found)

    def to_yaml(self) -> str:
        """The declaration, with each guess said above what was guessed."""
        lines = ["# Written by stairwise init. Every GUESS is one: read it, and change what is not so."]
        waiting = dict(self.reasons)
        for line in self.rollup.to_yaml().splitlines():
            key = line.partition(":")[0]
            if key == "aggregates" and "keys" in waiting:  # there are none
                lines += _comments(waiting.pop("keys"))
            lines += _comments(waiting.pop(key, ()))
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)


def guessed(source: Mapping[str, str], fields: Sequence[Field], target: str) -> Guessed:
    """A first declaration.

    Args:
        source: What the source is, as the declaration has it: its table, or its path and format.
        fields: Its columns.
        target: Where the tables are to be.

    Raises:
        SourceError: No column can be a time.
    """
    time, about_time = _time(fields)
    left = [field for field in fields if field is not time]
    name = _name(source.get("table") or source["path"])
    keys, about_keys = _keys(name, left)
    left = [field for field in left if field not in keys]
    aggregates, about_aggregates = _aggregates(name, left, {field.name.lower() for field in keys})
    unit = _unit(time)
    rollup = Rollup(
        name=name,
        source=Source(**source, time=time.name) if unit is None else Source(**source, time=time.name, unit=unit),
        keys=[field.name for field in keys],
        aggregates=aggregates,
        windows=_WINDOWS,
        target=target,
    )
    reasons = {
        "source": about_time,
        "keys": about_keys,
        "aggregates": about_aggregates,
        "windows": ("GUESS: these windows, in UTC; 'day in Europe/Paris' would be local days.",),
        "target": ("GUESS: where the tables go.",),
    }
    return Guessed(rollup, reasons)


def _time(fields: Sequence[Field]) -> tuple[Field, tuple[str, ...]]:
    """The column that says when it happened, and why that one."""
    found = sorted((field for field in fields if _may_be_time(field)), key=_unlikeliness)
    if not found:
        raise SourceError(
            "no column can be the time: none is a TIMESTAMP, a DATE, or an integer that is called like a time.",
            hint="write the declaration by hand, with sql: SELECT ..., and make a time there.",
        )
    time, *others = found
    said = [f"GUESS: {time.name} ({time.type}) says when it happened{_instead_of(others)}."]
    if (unit := _unit(time)) is not None:
        said.append(f"GUESS: it counts {unit} since 1970.")
    if time.type in ("timestamp_ntz", "date"):
        said.append("GUESS: it is in UTC; else add zone: to the source.")
    return time, tuple(said)


def _may_be_time(field: Field) -> bool:
    if field.type not in _TIMES:
        return False
    return field.type not in _WHOLE or bool(field.words & (_TIME_WORDS | _UNITS.keys()) - {"day", "start", "begin"})


def _unlikeliness(field: Field) -> tuple[bool, bool, int]:
    """What sorts times: when it happened rather than when it was kept, called so, of the likeliest type."""
    return bool(field.words & _KEPT_WORDS), not field.words & _TIME_WORDS, _TIMES.index(field.type)


def _unit(time: Field) -> str | None:
    if time.type not in _WHOLE:
        return None
    return next((unit for word, unit in _UNITS.items() if word in time.words), "s")


def _keys(name: str, fields: Sequence[Field]) -> tuple[list[Field], tuple[str, ...]]:
    """The columns by which events are told apart, and why those."""
    found = sorted((field for field in fields if _may_be_key(name, field)), key=_is_less_likely)
    keys, others = found[:_MOST_KEYS], found[_MOST_KEYS:]
    if not keys:
        return [], ("GUESS: no keys: no column is called like one. Each window then has one row.",)
    return keys, (f"GUESS: a row for each {' and '.join(each.name for each in keys)}{_instead_of(others)}.",)


def _may_be_key(name: str, field: Field) -> bool:
    """Whether it tells groups of events apart, and not each event or each person from all others."""
    if field.type not in (*_WHOLE, "string") or not _is_name(field.name, key_name):
        return False
    words = field.words
    is_event = words <= _ID_WORDS | {"event", "row", "record", *_singular(name)} and bool(words & _ID_WORDS)
    return bool(words & (_ID_WORDS | _KEY_WORDS)) and not is_event and not words & (_SOME_WORDS | {"uuid", "guid"})


def _is_less_likely(field: Field) -> bool:
    return not field.words & _KEY_WORDS


def _aggregates(name: str, fields: Sequence[Field], taken: set[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What is computed, and why that: the number of events, some amounts, and how many different people or things."""
    found = {_free(f"{name}_count" if name in taken else name, taken): "count()"}
    measures = [field for field in fields if field.is_measure]
    for field in measures[:_MOST_MEASURES]:
        call = "avg" if field.words & _MEAN_WORDS else "sum"
        found[_free(f"{call}_{field.name}", taken)] = f"{call}({field.expression})"
    people = [field for field in fields if field.words & _SOME_WORDS and field.type in (*_WHOLE, "string")]
    for field in people[:1]:
        found[_free(f"distinct_{field.name}", taken)] = f"approx_distinct({field.expression})"
    left = [field.name for field in [*measures[_MOST_MEASURES:], *people[1:]]]
    said = [f"GUESS: these results{f'; nothing of {_listed(left)}' if left else ''}."]
    if people:
        said.append(
            f"approx_distinct is a sketch, within some percent; count_distinct({people[0].expression}) is exact."
        )
    return found, tuple(said)


def _free(wanted: str, taken: set[str]) -> str:
    """A name for a column, as wanted as far as it is legal and free; it is taken from then on."""
    near = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_")[: LONGEST_NAME - 4]
    name = near if _is_name(near, aggregate_name) else f"n_{near}"
    number = 2
    while name.lower() in taken:
        name, number = f"{near}_{number}", number + 1
    taken.add(name.lower())
    return name


def _is_name(text: str, read: Callable[[str], str]) -> bool:
    try:
        read(text)
    except RollupError:
        return False
    return True


def _name(place: str) -> str:
    """The last part of a table's name or of a path, as an identifier.

    >>> _name("s3://lake/2024-trips/"), _name("lake.trips")
    ('n_2024_trips', 'trips')
    """
    last = re.split(r"[./\\]", re.sub(r"\.\w+$", "", place.rstrip("/\\")) if "/" in place else place)[-1]
    near = re.sub("[^A-Za-z0-9]+", "_", last).strip("_")[:LONGEST_NAME]
    return near if near[:1].isalpha() else f"n_{near}".rstrip("_")


def _singular(name: str) -> Iterable[str]:
    words = Field(name, "").words
    return {*words, *(word.removesuffix("s") for word in words)}


def _instead_of(others: Sequence[Field]) -> str:
    return f"; it might be {_listed([each.name for each in others])}" if others else ""


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:4], *(["others"] if len(names) > 4 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _comments(sentences: Iterable[str]) -> list[str]:
    return [f"# {line}" for sentence in sentences for line in wrap(sentence, _WIDTH, break_on_hyphens=False)]
