"""What a user declares: events, windows over them, and what is computed of each window; checked when built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial as bound
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stairwise.aggregate import Aggregate
from stairwise.declared import (
    ESTIMATES,
    NO_AGGREGATE,
    NO_WINDOW,
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
from stairwise.instant import format_instant, parse_instant
from stairwise.names import aggregate_name, choice, key_name, rollup_name
from stairwise.rules import check_lateness, check_target, clashes
from stairwise.span import Lookback, Span, parse_limit
from stairwise.window_text import table_name

if TYPE_CHECKING:
    from stairwise.yaml_writer import Value

_T = TypeVar("_T")
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
        null_time: NullTime | str = NullTime.FAIL,
        partial: bool = False,
        delay: Duration | str = "0s",
        future: Span | str | None = "any",
        lookback: Iterable[Lookback | str] | None = (),
        start: int | str | None = None,
        layout: Layout | str = Layout.TABLES,
        estimates: Estimates | None = None,
    ) -> None:
        assign = bound(object.__setattr__, self)
        assign("name", rollup_name(name))
        assign("source", source)
        assign("keys", tuple(key_name(key) for key in _listed(keys, "keys")))
        assign("aggregates", tuple(_named(aggregates)))
        assign("windows", tuple(DeclaredWindow.of(window) for window in _listed(windows, "windows")))
        assign("target", target if isinstance(target, Catalog) else target_path(target))
        assign("lateness", parse_limit(lateness) if isinstance(lateness, str) else lateness)
        assign("late", choice(Late, late, "late") if isinstance(late, str) else late)
        assign("null_time", choice(NullTime, null_time, "null_time") if isinstance(null_time, str) else null_time)
        assign("partial", partial)
        assign("delay", Duration.parse(delay) if isinstance(delay, str) else delay)
        assign("future", parse_limit(future) if isinstance(future, str) else future)
        assign("lookback", tuple(Lookback.of(each) for each in _listed(lookback or (), "lookback")))
        assign("start", parse_instant(start) if isinstance(start, str) else start)
        assign("layout", choice(Layout, layout, "layout") if isinstance(layout, str) else layout)
        assign("estimates", estimates or Estimates())
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
        check_target(self.source, self.target, self.windows, self.layout)

    @classmethod
    def from_yaml(cls, text: str | bytes, file: str = "<text>") -> Rollup:
        """Return the rollup that a YAML text declares; the name of the file is for its errors.

        >>> Rollup.from_yaml("rollup: trips")
        Traceback (most recent call last):
        stairwise.errors.DeclarationProblems: <text>:1:1: ...
        """
        from stairwise.declaration import read_declaration

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
        except (OSError, ValueError) as error:
            message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problem = DeclarationError(f"the file cannot be read ({message}).", hint="check the path.")
            raise DeclarationProblems(str(path), (Problem(0, 0, problem),)) from error
        return cls.from_yaml(content, str(path))

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


def _named(aggregates: _Aggregates) -> Iterator[tuple[str, Aggregate]]:
    pairs: Iterable[tuple[str, Aggregate | str]] = aggregates if isinstance(aggregates, tuple) else aggregates.items()
    for name, aggregate in pairs:
        yield aggregate_name(name), Aggregate.parse(aggregate) if isinstance(aggregate, str) else aggregate


def _listed(given: Iterable[_T], what: str) -> Iterable[_T]:
    """Several values; a text is one value, not several letters."""
    if isinstance(given, str):
        raise RollupError(f"{what} is a string, where several are wanted.", hint=f"write {what}=[{given!r}].")
    return given
