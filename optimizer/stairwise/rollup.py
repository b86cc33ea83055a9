"""What a user declares: events, windows over them, and what is computed of each window; checked when built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stairwise.aggregate import Aggregate
from stairwise.declared import (
    ESTIMATES,
    NO_AGGREGATE,
    NO_WINDOW,
    POLICY_FORMS,
    Catalog,
    DeclaredWindow,
    Estimates,
    Late,
    Layout,
    NullTime,
    Source,
    TimeUnit,
    target_path,
)
from stairwise.duration import Duration
from stairwise.errors import DeclarationError, DeclarationProblems, Problem, RollupError
from stairwise.instant import format_instant
from stairwise.names import (
    Form,
    Taker,
    aggregate_name,
    is_mapping,
    is_several,
    key_name,
    mistyped,
    rollup_name,
    several,
    text_form,
    text_of,
)
from stairwise.rules import check_lateness, check_start, check_target, clashes
from stairwise.share import Share
from stairwise.span import Lookback, Span
from stairwise.window_text import table_name

if TYPE_CHECKING:
    from stairwise.yaml_writer import Value

_Aggregates = Mapping[str, Aggregate | str] | tuple[tuple[str, Aggregate], ...]

__all__ = [
    "Catalog",
    "DeclaredWindow",
    "Estimates",
    "Late",
    "Layout",
    "Lookback",
    "NullTime",
    "Rollup",
    "Share",
    "Source",
    "Span",
    "TimeUnit",
]


@dataclass(frozen=True, slots=True, init=False)
class Rollup:
    """Windows over the events of a source, what is computed of each, and where the results go.

    It has a field for each key of the YAML: a user writes them flat, and reads them back under the same names. Every
    text is read when the rollup is built, so that the fields hold values, and an existing rollup is a legal one.

    >>> trips = Rollup(name="trips", source=Source(table="lake.trips", time="pickup_at"), keys=["zone_id"],
    ...                aggregates={"trips": "count()"}, windows=["5m", "1h every 15m"], target="lake/rollups/trips")
    >>> trips == Rollup.from_yaml(trips.to_yaml()), [window.name for window in trips.windows]
    (True, ['5m', '1h_every_15m'])

    Attributes:
        name: Identifies the rollup.
        source: Where the events are.
        keys: The columns by which events are grouped.
        aggregates: What is computed of each group, under which name.
        windows: The windows, each with its table's name.
        target: Where the tables go: a directory or a schema.
        lateness: How late a row may be and still be corrected; None is any.
        late: What becomes of a window when a row comes for it later.
        deletes: Which share of the windows may lose all of their rows in one run; None is any.
        null_time: What becomes of rows without a time.
        partial: Whether windows that have not ended are written too.
        delay: How long after its end a window is due.
        future: How far ahead a row may be dated; None is any.
        lookback: What is rechecked where the source cannot tell what changed.
        start: The instant before which nothing is kept or missed; None is none.
        layout: What a tier is kept in.
        estimates: What is known of the source before it is measured.
    """

    name: str
    source: Source
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    windows: tuple[DeclaredWindow, ...]
    target: str | Catalog
    lateness: Span | None
    late: Late
    deletes: Share | None
    null_time: NullTime
    partial: bool
    delay: Duration
    future: Span | None
    lookback: tuple[Lookback, ...]
    start: int | None
    layout: Layout
    estimates: Estimates

    def __init__(  # noqa: PLR0913 - the keys of the YAML
        self,
        *,
        name: str,
        source: Source,
        keys: Iterable[str] = (),
        aggregates: _Aggregates,
        windows: Iterable[DeclaredWindow | Mapping[str, str] | str],
        target: Catalog | str,
        lateness: Span | str | None = "any",
        late: Late | str = Late.CORRECT,
        deletes: Share | str | None = "10%",
        null_time: NullTime | str = NullTime.FAIL,
        partial: bool = False,
        delay: Duration | str = "0s",
        future: Span | str | None = "any",
        lookback: Iterable[Lookback | str] | None = (),
        start: int | str | None = None,
        layout: Layout | str = Layout.TABLES,
        estimates: Estimates | None = None,
    ) -> None:
        given: Mapping[str, object] = {
            "name": name, "source": source, "keys": keys, "aggregates": aggregates, "windows": windows,
            "target": target, "lateness": lateness, "late": late, "deletes": deletes, "null_time": null_time,
            "partial": partial, "delay": delay, "future": future, "lookback": () if lookback is None else lookback,
            "start": start, "layout": layout, "estimates": Estimates() if estimates is None else estimates,
        }  # fmt: skip
        for field, take in _TAKERS.items():
            object.__setattr__(self, field, take(given[field], field))
        self._check()

    def _check(self) -> None:
        for parts, (message, hint) in ((self.aggregates, NO_AGGREGATE), (self.windows, NO_WINDOW)):
            if not parts:
                raise RollupError(message, hint=hint)
        names = [name for name, _ in self.aggregates]
        for clash in clashes(
            keys=self.keys, aggregates=names, windows=self.windows, lookback=self.lookback, layout=self.layout
        ):
            raise clash.error
        check_lateness(self.late, self.lateness)
        check_start(self.start)
        check_target(self.source, self.target, self.windows, self.layout)

    @classmethod
    def from_yaml(cls, text: str | bytes, file: str = "<text>") -> Rollup:
        """Return the rollup that a YAML text declares; the name of the file is for its errors.

        >>> Rollup.from_yaml("rollup: trips")
        Traceback (most recent call last):
        stairwise.errors.DeclarationProblems: <text>:1:1: ...
        """
        from stairwise.declaration import read_declaration

        _YAML.take(text, "the YAML")
        declared = read_declaration(text, file)
        return cls(
            name=declared.name,
            source=declared.source,
            keys=declared.keys,
            aggregates=declared.aggregates,
            windows=declared.windows,
            target=declared.target,
            partial=declared.partial,
            lookback=declared.lookback,
            estimates=declared.estimates,
            **declared.policies,
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Rollup:
        """Return the rollup that a YAML file declares."""
        from stairwise.yaml_reader import MOST_BYTES

        try:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except TypeError as error:
            raise mistyped(path, "the path", "a path", "give one as text, such as 'trips.yaml'.") from error
        except (OSError, ValueError) as error:
            message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            hint = "name a file in it." if isinstance(error, IsADirectoryError) else "check the path."
            problem = DeclarationError(f"the file cannot be read ({message}).", hint=hint)
            raise DeclarationProblems(str(path), (Problem(0, 0, problem),)) from error
        return cls.from_yaml(content, str(path))

    def in_order(self) -> Rollup:
        """Return the same rollup with its aggregates, windows and lookbacks sorted: one value for any order of them.

        Keys stay as they are: they are the first columns of each table, in the order in which they were declared.
        """
        return replace(
            self,
            aggregates=tuple(sorted(self.aggregates, key=lambda named: named[0])),
            windows=tuple(sorted(self.windows, key=lambda window: window.name)),
            lookback=tuple(sorted(self.lookback, key=str)),
        )

    def to_yaml(self) -> str:
        """Return the YAML text that declares an equal rollup; what has its default is left out."""
        from stairwise.yaml_writer import write_yaml

        entries: dict[str, Value] = {
            "rollup": self.name,
            "source": _source_entries(self.source),
            "keys": self.keys,
            "aggregates": {name: str(aggregate) for name, aggregate in self.aggregates},
            "windows": [_window_entry(window) for window in self.windows],
            "target": {"catalog": self.target.schema} if isinstance(self.target, Catalog) else self.target,
            "lateness": "any" if self.lateness is None else str(self.lateness),
            "late": self.late.value,
            "deletes": "any" if self.deletes is None else str(self.deletes),
            "null_time": self.null_time.value,
            "partial": self.partial,
            "delay": str(self.delay),
            "future": "any" if self.future is None else str(self.future),
            "lookback": [str(each) for each in self.lookback],
            "start": "" if self.start is None else format_instant(self.start),
            "layout": self.layout.value,
            "estimates": _estimates_entries(self.estimates),
        }
        return write_yaml({key: value for key, value in entries.items() if value and value != _DEFAULTS.get(key)})


_DEFAULTS: Mapping[str, Value] = {
    "lateness": "any",
    "late": "correct",
    "deletes": "10%",
    "null_time": "fail",
    "delay": "0s",
    "future": "any",
    "layout": "tables",
    "format": "delta",
    "zone": "UTC",
}


def _source_entries(source: Source) -> Mapping[str, Value]:
    entries = {
        "table": source.table,
        "path": source.path,
        "sql": source.sql,
        "format": source.format,
        "time": source.time,
        "unit": source.unit.value if source.unit else None,
        "zone": source.zone,
        "where": source.where,
        "retain": str(source.retain) if source.retain else None,
    }
    return {key: text for key, text in entries.items() if text is not None and text != _DEFAULTS.get(key)}


def _window_entry(declared: DeclaredWindow) -> Value:
    entries = {"window": declared.text}
    if declared.name != table_name(declared.text):
        entries["name"] = declared.name
    if declared.retain:
        entries["retain"] = str(declared.retain)
    return entries if len(entries) > 1 else declared.text


def _estimates_entries(estimates: Estimates) -> Mapping[str, Value]:
    numbers = (estimates.rows_per_day, estimates.distinct_keys, estimates.distinct_values)
    return {name: number for name, number in zip(ESTIMATES, numbers, strict=True) if number is not None}


def _aggregates(given: object, what: str) -> tuple[object, ...]:
    """The columns by name, in order."""
    if not (is_mapping(given) or is_several(given)):
        raise mistyped(given, what, "a mapping", "give one, such as {'trips': 'count()'}.")
    return tuple(_aggregate(each) for each in (given.items() if is_mapping(given) else given))


def _aggregate(given: object) -> tuple[str, object]:
    pair = tuple(given) if is_several(given) else ()
    if len(pair) != 2:
        raise mistyped(given, "an aggregate", "a pair of name and call", "give one, such as ('trips', 'count()').")
    name = aggregate_name(text_of(pair[0], "an aggregate's name"))
    return name, _CALL.take(pair[1], f"aggregate {name!r}")


_CALL = Form(types=(Aggregate,), wanted="a call", hint="give one as text, such as 'count()'.", read=Aggregate.parse)
_LOOKBACK = Form(
    types=(Lookback,), wanted="a lookback", hint="give one as text, such as '1 day every run'.", read=Lookback.parse
)
_YAML = Form(types=(str, bytes), wanted="text or bytes", hint="Rollup.from_file reads a file.")
_TAKERS: Mapping[str, Taker] = {
    "name": text_form(rollup_name).take,
    "source": Form(
        types=(Source,),
        wanted="a Source",
        hint="give one, such as Source(table='lake.trips', time='pickup_at').",
    ).take,
    "keys": several(text_form(key_name).take, "a key", "['zone_id']"),
    "aggregates": _aggregates,
    "windows": several(lambda given, _: DeclaredWindow.of(given), "a window", "['5m', '1h']"),
    "target": text_form(target_path, Catalog).take,
    "partial": Form(types=(bool,), wanted="True or False", hint="give one of the two.").take,
    "lookback": several(_LOOKBACK.take, "a lookback", "['1 day every run']"),
    "estimates": Form(
        types=(Estimates,),
        wanted="a value of Estimates",
        hint="give one, such as Estimates(rows_per_day=1000000).",
    ).take,
    **{key: form.take for key, form in POLICY_FORMS.items()},
}
