"""A list of the files of a source as a version of our own: what came, what went, and when its events happened.

It is kept as a text that does not grow with the source: the files that were written last are named, the older ones, by
when they were written, are groups, each with a sum over its files that any change of them changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

from stairwise.errors import CodecError
from stairwise.windowing import Interval
from stairwise_spark.shapes import is_list, is_object
from stairwise_spark.spans import joined

_SCHEMA = "stairwise.listing/1"
_MOST_FILES, _MOST_GROUPS = 500, 200
_MODULUS = 1 << 64


class Stamp(NamedTuple):
    """A file as the system lists it; a file that was written again has another one.

    Attributes:
        modified: When it was written, in milliseconds.
        path: Where it is.
        size: In bytes.
    """

    modified: int
    path: str
    size: int

    @property
    def digest(self) -> int:
        """A number that sums up with those of other files."""
        text = f"{self.modified} {self.size} {self.path}"
        return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class File:
    """A file, and when its events happened, in seconds; None: it has none that counts."""

    stamp: Stamp
    times: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The files from one stamp to another, with both.

    Attributes:
        first: The stamp of the file that was written first.
        last: That of the one that was written last.
        count: How many files there are.
        digest: The sum of theirs.
        times: When their events happened; None: there are none.
    """

    first: Stamp
    last: Stamp
    count: int
    digest: int
    times: Interval | None

    def has(self, stamps: Sequence[Stamp]) -> bool:
        """Whether these are its files."""
        return len(stamps) == self.count and sum(each.digest for each in stamps) % _MODULUS == self.digest


Part = File | Group


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source, one by one or in groups, in the order in which they were written."""

    parts: tuple[Part, ...] = ()

    def split(self, stamps: Iterable[Stamp]) -> Split:
        """What there is of this list among the files that are there now."""
        now = sorted(stamps)
        groups = [part for part in self.parts if isinstance(part, Group)]
        files = {part.stamp: part for part in self.parts if isinstance(part, File)}
        kept: list[Part] = []
        gone: list[Part] = []
        new: list[Stamp] = []
        places = iter([*groups, None])
        group = next(places)
        inside: list[Stamp] = []
        for each in [*now, None]:
            while group is not None and (each is None or each > group.last):
                (kept if group.has(inside) else gone).append(group)
                new += [] if group.has(inside) else inside
                group, inside = next(places), []
            if each is None:
                break
            if group is not None and each >= group.first:
                inside.append(each)
            elif each in files:
                kept.append(files.pop(each))
            else:
                new.append(each)
        return Split(tuple(kept), (*gone, *files.values()), tuple(new))

    def encode(self) -> str:
        """A text of bounded length."""
        parts = _folded(self.parts)
        folder = _folder(parts)
        rows = [_row(part, len(folder)) for part in parts]
        document = {"schema": _SCHEMA, "folder": folder, "parts": rows}
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Listing:
        """The list that a text holds.

        Raises:
            CodecError: It is not as :meth:`encode` writes it.
        """
        try:
            document: object = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if is_object(document) and document.get("schema") == _SCHEMA:
            match document.get("folder"), document.get("parts"):
                case str(folder), rows if is_list(rows):
                    return cls(tuple(_part(row, folder) for row in rows))
                case _:
                    pass
        raise _refusal(text)


class Split(NamedTuple):
    """A list against the files that are there now.

    Attributes:
        kept: What is still there as it was.
        gone: What is not, or not as it was; of a group, some of it.
        new: Files that are not in the list, or in a group that is gone.
    """

    kept: tuple[Part, ...]
    gone: tuple[Part, ...]
    new: tuple[Stamp, ...]


def ordered(parts: Iterable[Part]) -> Listing:
    """The list of these, in order."""
    return Listing(tuple(sorted(parts, key=_first)))


def _first(part: Part) -> Stamp:
    return part.stamp if isinstance(part, File) else part.first


def _folded(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts with the older files in groups, if there are too many."""
    files = sum(isinstance(part, File) for part in parts)
    if files > _MOST_FILES:
        # Half of them stay named, so that not each run begins a group.
        spare = iter(range(files - _MOST_FILES // 2))
        is_old = [isinstance(part, File) and next(spare, None) is not None for part in parts]
        size = max(1, -(-sum(is_old) // (_MOST_GROUPS // 4)))
        folded: list[Part] = []
        for old, run in groupby(zip(is_old, parts, strict=True), key=lambda each: each[0]):
            members = [part for _, part in run]
            folded += _in_groups(members, size) if old else members
        parts = folded
    while sum(isinstance(part, Group) for part in parts) > _MOST_GROUPS:
        parts = _paired(parts)
    return parts


def _in_groups(parts: Sequence[Part], size: int) -> list[Part]:
    return [_group(parts[place : place + size]) for place in range(0, len(parts), size)]


def _paired(parts: Sequence[Part]) -> list[Part]:
    """The parts, each two neighbours as a group as far as there are groups."""
    last = max(place for place, part in enumerate(parts) if isinstance(part, Group))
    return [*_in_groups(parts[: last + 1], 2), *parts[last + 1 :]]


def _group(parts: Sequence[Part]) -> Group:
    times = joined(part.times for part in parts if part.times is not None)
    last = parts[-1]
    return Group(
        first=_first(parts[0]),
        last=last.stamp if isinstance(last, File) else last.last,
        count=sum(1 if isinstance(part, File) else part.count for part in parts),
        digest=sum(part.stamp.digest if isinstance(part, File) else part.digest for part in parts) % _MODULUS,
        times=Interval(times[0].start, times[-1].end) if times else None,
    )


def _folder(parts: Sequence[Part]) -> str:
    """What all paths begin with."""
    paths = [path for part in parts for path in _paths(part)]
    first, last = min(paths, default=""), max(paths, default="")
    same = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: first.rfind("/", 0, same) + 1]


def _paths(part: Part) -> Sequence[str]:
    return [part.stamp.path] if isinstance(part, File) else [part.first.path, part.last.path]


def _row(part: Part, cut: int) -> list[object]:
    """What a text holds of a part, paths without so many characters at their beginning."""
    times = None if part.times is None else list(part.times)
    if isinstance(part, File):
        return [*_short(part.stamp, cut), times]
    return [*_short(part.first, cut), *_short(part.last, cut), part.count, f"{part.digest:016x}", times]


def _short(stamp: Stamp, cut: int) -> Stamp:
    return stamp._replace(path=stamp.path[cut:])


def _part(row: object, folder: str) -> Part:
    match row:
        case [int(modified), str(path), int(size), object() as times]:
            return File(Stamp(modified, folder + path, size), _times(times))
        case [int(a), str(b), int(c), int(d), str(e), int(f), int(count), str(digest), object() as times]:
            return Group(
                first=Stamp(a, folder + b, c),
                last=Stamp(d, folder + e, f),
                count=count,
                digest=int(digest, 16),
                times=_times(times),
            )
        case _:
            raise _refusal(json.dumps(row))


def _times(value: object) -> Interval | None:
    match value:
        case None:
            return None
        case [int(start), int(end)]:
            return Interval(start, end)
        case _:
            raise _refusal(json.dumps(value))


def _refusal(text: str) -> CodecError:
    return CodecError(
        f"files {text[:80]!r}: they are not listed as Stairwise does.",
        hint="something else changed the bookkeeping: remove the ledger, and run again.",
    )
