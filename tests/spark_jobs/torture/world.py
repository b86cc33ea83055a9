"""A source that changes, the declaration of a rollup over it, and what its windows hold by brute force.

The rows of every version of the source are known, so that whatever a table holds can be told to be the truth of a
version, or of none. Nothing of the engine is used, and no Spark.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from stairwise import Rollup
from stairwise.instant import parse_instant
from stairwise.windowing import Interval, windows_at

MICROS = 1_000_000
KEYS = ("a", "b", None)
DAY = 86_400
START = parse_instant("2024-03-30T00:00Z")  # the next night Paris loses an hour
SPAN = Interval(START, START + 2 * DAY)
WINDOWS = (
    "20m, 50m, day in Europe/Paris",  # a helper that others read, and tiers that are made in one pass
    "15m, 1h every 15m, 6h",
    "10m, 30m every 10m offset 5m, 12h to date every 2h",
    "1h, 90m every 30m, day in America/New_York",
)
"""What may be declared: no window ends a day after its first event, but those of Paris in spring."""
_TYPES: Mapping[str, pa.DataType] = {
    "id": pa.int64(),
    "key": pa.string(),
    "at": pa.timestamp("us", "UTC"),
    "amount": pa.int64(),
}
_SCHEMA = pa.schema(_TYPES)
# Their windows are never empty, so that what a source has events for stays the same.
_FIRST, _LAST = -1, -2


class Event(NamedTuple):
    """A row of the source."""

    id: int
    key: str | None
    at: int
    amount: int


class Sum(NamedTuple):
    """What a window holds of a key."""

    key: str | None
    rows: int
    total: int
    low: int


Content = tuple[Sum, ...]
"""What a window holds: a sum for each key, in order."""


def content(sums: Iterable[Sum]) -> Content:
    """In order; two of one key stay two."""
    return tuple(sorted(sums, key=lambda each: (each.key is not None, *map(str, each))))


def declaration(source: Path, target: Path, layout: str, windows: str = WINDOWS[0]) -> str:
    """The rollup."""
    return (
        f"rollup: torture\nsource: {{path: {source}, time: at}}\nkeys: [key]\n"
        "aggregates:\n  n: count()\n  total: sum(amount)\n  low: min(amount)\n"
        f"windows: [{windows}]\ntarget: {target}\nlayout: {layout}\n"
        "estimates: {rows_per_day: 1000000000, distinct_keys: 3}\n"
    )


@dataclass(slots=True)
class World:
    """The source, all that it ever held, and what windows hold by it.

    Attributes:
        path: The source, a Delta table.
        rollup: What is declared.
        luck: Decides what happens to it.
        newest: The number of its newest version; the truth of that is known before it is there.
    """

    path: Path
    rollup: Rollup
    luck: random.Random
    newest: int = -1
    _rows: dict[int, Event] = field(default_factory=dict[int, Event], repr=False)
    _next: int = 0
    # Of each window of each tier: the last version of the source that gives a content.
    _known: defaultdict[tuple[str, Interval], dict[Content, int]] = field(
        default_factory=lambda: defaultdict(dict), repr=False
    )
    _truths: list[Mapping[tuple[str, Interval], Content]] = field(
        default_factory=list[Mapping[tuple[str, Interval], Content]], repr=False
    )

    def begin(self, rows: int) -> None:
        """There are so many events, and one at either end of the range."""
        first = [Event(_FIRST, "a", SPAN.start * MICROS, 1), Event(_LAST, "a", (SPAN.end - 1) * MICROS, 1)]
        self._append([*first, *self._new(rows, SPAN)])

    def change(self) -> str:
        """What happened: some events came, late ones too, or were corrected, or went, or the files were packed."""
        kind = self.luck.choices(("append", "update", "delete", "optimize"), (6, 2, 2, 1))[0]
        begin = self.luck.randrange(*SPAN)
        span = Interval(begin, min(SPAN.end, begin + self.luck.choice((1_200, 7_200, DAY))))
        if kind == "append":
            self._append(self._new(self.luck.randint(1, 20), span))
            return kind
        if kind == "optimize":
            self._publish(self._rows)
            table = DeltaTable(self.path)
            table.optimize.compact()
            self._settle(table)
            return kind
        mine = [each for each in self._rows.values() if each.id >= 0 and span.start <= each.at // MICROS < span.end]
        chosen = [each.id for each in self.luck.sample(mine, min(len(mine), 5))]
        if not chosen:
            return "nothing"
        self._rewrite(chosen, is_delete=kind == "delete")
        return kind

    def correct_first(self) -> None:
        """The first event is corrected."""
        self._rewrite([_FIRST], is_delete=False)

    def expected(self, version: int) -> Mapping[tuple[str, Interval], Content]:
        """What each window that is not empty holds by a version of the source."""
        return self._truths[version]

    def last_version(self, tier: str, window: Interval, found: Content) -> int | None:
        """The last version of the source by which a window holds this; None: it never should have."""
        known = self._known.get((tier, window))
        if known is None:
            return None if found else self.newest
        return known.get(found)

    def _new(self, rows: int, span: Interval) -> list[Event]:
        luck = self.luck
        events: list[Event] = []
        for _ in range(rows):
            at = luck.randrange(span.start * MICROS, span.end * MICROS)
            events.append(Event(self._next, luck.choice(KEYS), at, luck.randint(-1_000, 1_000)))
            self._next += 1
        return events

    def _append(self, events: Iterable[Event]) -> None:
        new = [*events]
        self._publish(self._rows | {each.id: each for each in new})
        columns = {name: [each[place] for each in new] for place, name in enumerate(_SCHEMA.names)}
        write_deltalake(self.path, pa.table(columns, schema=_SCHEMA), mode="append")
        self._settle(DeltaTable(self.path))

    def _rewrite(self, chosen: list[int], *, is_delete: bool) -> None:
        table, predicate = DeltaTable(self.path), f"id IN ({', '.join(map(str, chosen))})"
        if is_delete:
            self._publish({name: row for name, row in self._rows.items() if name not in chosen})
            table.delete(predicate)
        else:
            changed = {name: self._rows[name]._replace(amount=self._rows[name].amount + 1) for name in chosen}
            self._publish(self._rows | changed)
            table.update({"amount": "amount + 1"}, predicate=predicate)
        self._settle(DeltaTable(self.path))

    def _publish(self, rows: Mapping[int, Event]) -> None:
        """The truth is known before anybody can have read it."""
        self._rows = dict(rows)
        truth = _windows(self.rollup, self._rows.values())
        self._truths.append(truth)
        self.newest += 1
        for place, found in truth.items():
            if place not in self._known:
                # Until now it was empty.
                self._known[place] = {(): self.newest - 1} if self.newest else {}
            self._known[place][found] = self.newest
        for place in self._known.keys() - truth.keys():
            self._known[place][()] = self.newest

    def _settle(self, table: DeltaTable) -> None:
        """The version that was foreseen is there; packing that found nothing to do has made none."""
        if table.version() == self.newest - 1:
            self._truths.pop()
            self.newest -= 1
            for known in self._known.values():
                for found, version in known.items():
                    known[found] = min(version, self.newest)
        assert table.version() == self.newest, (table.version(), self.newest)


def _windows(rollup: Rollup, events: Iterable[Event]) -> Mapping[tuple[str, Interval], Content]:
    """What each window that is not empty holds."""
    inside: defaultdict[tuple[str, Interval], list[Event]] = defaultdict(list)
    for event in events:
        for declared in rollup.windows:
            for window in windows_at(declared.window, event.at // MICROS):
                inside[declared.name, window].append(event)
    return {place: _summed(found) for place, found in inside.items()}


def _summed(events: Iterable[Event]) -> Content:
    amounts: defaultdict[str | None, list[int]] = defaultdict(list)
    for event in events:
        amounts[event.key].append(event.amount)
    return content(Sum(key, len(found), sum(found), min(found)) for key, found in amounts.items())
