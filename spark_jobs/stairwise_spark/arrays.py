"""Many tiers in one pass: rows of one tier come in, a key's near each other, and out come all tiers made of it.

Runs in Spark's Python workers, on blocks of whole keys, which are put in order here: Spark would compare row by row. A
block goes through the tiers, parents before their children; each is a few operations on whole arrays, however many
windows there are.

This module travels to the workers with the task, so it needs nothing but NumPy, PyArrow and the folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, NamedTuple  # noqa: TID251 - of Arrow arrays of any type

import numpy as np
import pyarrow as pa

from stairwise_spark.folds import FOLDS, Flags, Groups, Ints, State

_NOWHERE: Ints = np.empty(0, np.int64)
BLOCK_ROWS = 1 << 17  # so many rows at once; more, if one key has more
GROUP = "_group"
"""The column by which rows come in order: a number that all rows of a key share, as other keys may."""
OF = "_of"
"""The column by which rows are told apart that come in: 0, or the number of the tier that they are stored rows of."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The columns of one aggregate's state, and the name of the function that merges them."""

    columns: tuple[str, ...]
    function: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a tier cuts time, in microseconds: at all instants of some residue classes, or as listed.

    Attributes:
        classes: Pairs of modulus and residue; none: see the lists.
        begins: Where windows begin, in order.
        ends: Where they end; none overlaps the next.
    """

    classes: tuple[tuple[int, int], ...] = ()
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def bounds(self, instants: Ints) -> tuple[Ints, Ints]:
        """The begin and the end of the slice that holds each instant; equal if none does."""
        if not self.classes:
            return self._listed(instants)
        lasts = [(instants - residue) // modulus * modulus + residue for modulus, residue in self.classes]
        nexts = [last + modulus for last, (modulus, _) in zip(lasts, self.classes, strict=True)]
        return reduce(np.maximum, lasts), reduce(np.minimum, nexts)

    def _listed(self, instants: Ints) -> tuple[Ints, Ints]:
        if not self.begins:
            return instants, instants
        begins, ends = np.array(self.begins, np.int64), np.array(self.ends, np.int64)
        places = np.maximum(np.searchsorted(begins, instants, side="right") - 1, 0)
        is_within = (begins[places] <= instants) & (instants < ends[places])
        return np.where(is_within, begins[places], instants), np.where(is_within, ends[places], instants)


@dataclass(frozen=True, slots=True)
class Hops:
    """Windows that may overlap, in microseconds, numbered from 0.

    Attributes:
        begins: Where they begin, in order.
        ends: Where they end, in order too.
    """

    begins: range | tuple[int, ...]
    ends: range | tuple[int, ...]

    def numbers(self, instants: Ints) -> tuple[Ints, Ints]:
        """The first of the windows that hold each instant, and the one after the last of them."""
        return _passed(self.ends, instants), _passed(self.begins, instants)

    def bounds(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The begin and the end of each window of these numbers."""
        return _at(self.begins, numbers), _at(self.ends, numbers)


@dataclass(frozen=True, slots=True)
class Branch:
    """One tier of a pass.

    Attributes:
        number: What `_tier` says of its rows.
        reads: The number of the tier whose rows it merges; 0: the rows that come in.
        cut: Its windows; no branch reads one whose windows overlap.
        after: Only windows that end later than one of these, in order, in microseconds,
        until: and not later than the one in its place here; of those that overlap, besides, only the listed ones.
        is_asked_for: Whether its rows come out; else they are only read.
    """

    number: int
    reads: int
    cut: Cut | Hops
    after: tuple[int, ...]
    until: tuple[int, ...]
    is_asked_for: bool = True

    def is_wanted(self, ends: Ints) -> Flags:
        """Whether windows with these ends are to be made."""
        places = np.searchsorted(np.array(self.after, np.int64), ends, side="left") - 1
        return (places >= 0) & (ends <= np.array(self.until, np.int64)[np.maximum(places, 0)])

    def asked_for(self, rows: _Rows) -> _Rows:
        """Those of some windows that are to be made."""
        if len(self.after) == 1:
            return rows  # all that are listed
        is_wanted = self.is_wanted(rows.end)
        return rows if is_wanted.all() else rows.taken(np.flatnonzero(is_wanted))


@dataclass(frozen=True, slots=True)
class Pass:
    """All that a worker has to know.

    Attributes:
        keys: The columns that tell rows apart.
        folds: How states merge.
        branches: Parents before their children.
        has_stored: Whether stored rows of its tiers come in too: they are merged like made ones, but do not come out.
    """

    keys: tuple[str, ...]
    folds: tuple[Fold, ...]
    branches: tuple[Branch, ...]
    has_stored: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all tiers."""
        for table in _blocks(batches):
            block = _Block.of(table, self.keys, self.folds)
            stored = block.parted() if self.has_stored else {0: block.rows}
            made = {0: stored.get(0, block.rows.taken(_NOWHERE))}
            for branch in self.branches:
                parts: Iterable[_Rows]
                if isinstance(branch.cut, Hops):
                    parts = map(branch.asked_for, _slid(branch.cut, made[branch.reads], self.folds))
                else:
                    rows = _merged(branch.cut, branch, made[branch.reads], self.folds)
                    made[branch.number] = rows.beside(stored.get(branch.number))
                    parts = [rows] if branch.is_asked_for else []
                yield from (block.batch(branch.number, rows) for rows in parts if len(rows.begin))


class _Rows(NamedTuple):
    """Rows of a tier, in order: the number of each one's key in the block, where it begins, its states."""

    key: Ints
    begin: Ints
    end: Ints
    states: Mapping[str, State]

    def taken(self, places: Ints) -> _Rows:
        states = {name: state.taken(places) for name, state in self.states.items()}
        return _Rows(self.key[places], self.begin[places], self.end[places], states)

    def beside(self, others: _Rows | None) -> _Rows:
        """These rows and others, in order."""
        if others is None:
            return self
        states = {name: state.beside(others.states[name]) for name, state in self.states.items()}
        key, begin, end = (np.concatenate(each) for each in zip(self[:3], others[:3], strict=True))
        return _Rows(key, begin, end, states).taken(np.lexsort((begin, key)))

    def between(self, first: int, beyond: int) -> _Rows:
        """Without copies."""
        states = {name: state.between(first, beyond) for name, state in self.states.items()}
        return _Rows(self.key[first:beyond], self.begin[first:beyond], self.end[first:beyond], states)


class _Block(NamedTuple):
    """What came in: its keys, the types of its columns, its rows, and of which tier each is, if that is told."""

    keys: Mapping[str, pa.Array[Any]]
    kinds: Mapping[str, pa.DataType]
    rows: _Rows
    of_tier: Ints | None

    @classmethod
    def of(cls, table: pa.Table, keys: Sequence[str], folds: Sequence[Fold]) -> _Block:
        columns = {name: table.column(name).combine_chunks() for name in table.schema.names}
        begin: Ints = columns["_begin"].to_numpy()
        codes = [_codes(columns[key]) for key in keys]
        order = _order([*codes, begin - begin.min()])
        changes = np.zeros(len(order), np.bool_)
        for code in codes:
            changes[1:] |= np.diff(code[order]) != 0
        firsts = order[np.flatnonzero(np.append(True, changes[1:]))]
        begin = begin[order]
        states = {name: _state(columns[name]).taken(order) for fold in folds for name in fold.columns}
        rows = _Rows(np.cumsum(changes, dtype=np.int64), begin, begin, states)
        return cls(
            {key: columns[key].take(firsts) for key in keys},
            {name: column.type for name, column in columns.items()},
            rows,
            columns[OF].to_numpy()[order] if OF in columns else None,
        )

    def parted(self) -> dict[int, _Rows]:
        """The rows of each tier."""
        if self.of_tier is None:
            raise AssertionError("nothing says which tier rows are of")
        return {int(each): self.rows.taken(np.flatnonzero(self.of_tier == each)) for each in np.unique(self.of_tier)}

    def batch(self, number: int, rows: _Rows) -> pa.RecordBatch:
        columns = {
            "_tier": pa.array(np.full(len(rows.begin), number, np.int32)),
            **{name: key.take(rows.key) for name, key in self.keys.items()},
            "_begin": pa.array(rows.begin),
            "_end": pa.array(rows.end),
            **{name: _array(state, self.kinds[name]) for name, state in rows.states.items()},
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _passed(edges: range | tuple[int, ...], instants: Ints) -> Ints:
    """How many of the edges are not after each instant."""
    if isinstance(edges, range):
        return np.clip((instants - edges.start) // edges.step + 1, 0, len(edges))
    return np.searchsorted(np.array(edges, np.int64), instants, side="right").astype(np.int64)


def _at(edges: range | tuple[int, ...], numbers: Ints) -> Ints:
    if isinstance(edges, range):
        return edges.start + numbers * edges.step
    return np.array(edges, np.int64)[numbers]


def _slid(hops: Hops, rows: _Rows, folds: Sequence[Fold]) -> Iterator[_Rows]:
    """The rows of windows that overlap, some at a time: each is a run of rows, from the first that it holds on."""
    first, beyond = hops.numbers(rows.begin)
    if not (is_held := first < beyond).all():
        places = np.flatnonzero(is_held)
        rows, first, beyond = rows.taken(places), first[places], beyond[places]
    if not len(first):
        return
    is_same = rows.key[1:] == rows.key[:-1]
    # A row is the first one of the windows that hold it and not the one before, and the last one likewise.
    entered, left = beyond - first, beyond - first
    entered[1:] -= np.where(is_same, np.maximum(beyond[:-1] - first[1:], 0), 0)
    left[:-1] -= np.where(is_same, np.maximum(beyond[:-1] - first[1:], 0), 0)
    entered, left = np.cumsum(entered), np.cumsum(left)
    for start in range(0, int(entered[-1]), BLOCK_ROWS):
        windows = np.arange(start, min(start + BLOCK_ROWS, int(entered[-1])))
        heads, lasts = (np.searchsorted(counts, windows, side="right") for counts in (entered, left))
        begin, end = hops.bounds(beyond[heads] - entered[heads] + windows)
        least, most = int(heads[0]), int(lasts[-1]) + 1
        groups = Groups(heads - least, lasts - least + 1)
        yield _Rows(rows.key[heads], begin, end, _folded(rows.between(least, most), groups, folds))


def _merged(cut: Cut, branch: Branch, rows: _Rows, folds: Sequence[Fold]) -> _Rows:
    """The rows of a tier: neighbours of one key and one window become one."""
    if not branch.after:
        return rows.taken(_NOWHERE)
    begin, end = cut.bounds(rows.begin)
    is_wanted = (begin < end) & branch.is_wanted(end)
    rows = rows._replace(begin=begin, end=end)
    if not is_wanted.all():
        rows = rows.taken(np.flatnonzero(is_wanted))
    if not len(rows.begin):
        return rows
    key, begin = rows.key, rows.begin
    is_next = (key[1:] != key[:-1]) | (begin[1:] != begin[:-1])
    heads = np.flatnonzero(np.concatenate(([True], is_next)))
    states = _folded(rows, Groups.parting(heads, len(key)), folds)
    return _Rows(key[heads], begin[heads], rows.end[heads], states)


def _folded(rows: _Rows, groups: Groups, folds: Sequence[Fold]) -> dict[str, State]:
    """The states of groups of rows."""
    states: dict[str, State] = {}
    for fold in folds:
        merged = FOLDS[fold.function]([rows.states[name] for name in fold.columns], groups)
        states.update(zip(fold.columns, merged, strict=True))
    return states


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in pieces, no key in two of them."""
    waiting: list[pa.RecordBatch] = []
    rows, enough = 0, BLOCK_ROWS
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < enough:
            continue
        table = pa.Table.from_batches(waiting)
        groups: Ints = table.column(GROUP).to_numpy()
        cut = int(np.count_nonzero(groups != groups[-1]))
        if cut:
            yield table.slice(0, cut)
            waiting = table.slice(cut).to_batches()
        rows -= cut
        enough = max(BLOCK_ROWS, 2 * rows)
    if rows:
        yield pa.Table.from_batches(waiting)


def _codes(column: pa.Array[Any]) -> Ints:
    """A number for each value, one for NULL too, and one for NaN."""
    return column.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)


def _order(parts: Sequence[Ints]) -> Ints:
    """The places of rows in order of some numbers from 0 up, the first ones first."""
    sizes = [int(part.max()) + 1 for part in parts]
    if prod(sizes) >= 1 << 63:
        return np.lexsort(parts[::-1])
    whole = parts[0]
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        whole = whole * size + part
    return np.argsort(whole, kind="stable")


def _bits(array: pa.Array[Any]) -> pa.Array[Any]:
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def _flags(array: pa.Array[Any]) -> Flags:
    return array.to_numpy(zero_copy_only=False)


def _state(array: pa.Array[Any]) -> State:
    there = _flags(array.is_valid()) if array.null_count else None
    kind = array.type
    if pa.types.is_decimal128(kind):
        _, digits = array.buffers()
        halves = np.frombuffer(digits.to_pybytes() if digits else b"", np.int64).reshape(-1, 2)
        return State(halves[array.offset : array.offset + len(array)], there)
    if pa.types.is_boolean(kind):
        return State(_flags(array.fill_null(False)), there)  # noqa: FBT003 - a value
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        array = _bits(array)
    return State(array.fill_null(0).to_numpy(), there)


def _array(state: State, kind: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_decimal128(kind):
        there = None if state.there is None else pa.array(state.there).buffers()[1]
        return pa.Array.from_buffers(kind, len(state.values), [there, pa.py_buffer(state.values.tobytes())])
    array = pa.array(state.values, mask=None if state.there is None else ~state.there)
    return array if array.type == kind else array.view(kind)
