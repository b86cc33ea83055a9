"""Commits to Delta tables by hand: files of Parquet, and a log entry that names them; a few milliseconds for each.

So years of hourly runs can be laid out within minutes.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import compute, parquet

from stairwise.json_fields import Json


def next_version(folder: Path) -> int:
    """The version that the next commit to a table makes, whose log was never cleaned."""
    return sum(1 for _ in (folder / "_delta_log").glob("*.json"))


def commit(
    folder: Path,
    version: int,
    rows: pa.Table,
    partitions: Sequence[str] = (),
    known: Sequence[str] = (),
    note: str = "",
) -> int:
    """Add some rows to a table that is there; how many files that makes.

    Args:
        folder: The table.
        version: That the commit makes.
        rows: With the columns of the table.
        partitions: Those by whose values its files are sorted.
        known: Those of whose values the log has the least and the greatest.
        note: What the commit says of itself.
    """
    added = [_added(folder, *part, known) for part in _parts(rows, partitions)]
    information = {"timestamp": _now(), "operation": "WRITE", "userMetadata": note}
    lines = [{"commitInfo": information}, *({"add": each} for each in added)]
    with (folder / "_delta_log" / f"{version:020}.json").open("x", encoding="utf-8") as log:
        log.writelines(f"{json.dumps(line)}\n" for line in lines)
    return len(added)


def _parts(rows: pa.Table, partitions: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """The rows of each partition, with its values."""
    if not partitions:
        yield {}, rows
        return
    first, *others = partitions
    for value in compute.unique(rows[first]):
        is_of_it = compute.equal(rows[first], value)  # pyright: ignore[reportUnknownMemberType]
        of_value = rows.filter(is_of_it).drop_columns([first])
        for values, part in _parts(of_value, others):
            yield {first: str(value.as_py()), **values}, part


def _added(folder: Path, values: Mapping[str, str], part: pa.Table, known: Sequence[str]) -> dict[str, Json]:
    """What a commit says of a file, once that is written."""
    path = Path(*(f"{name}={value}" for name, value in values.items()), f"part-{uuid.uuid4()}.parquet")
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(part, file)  # pyright: ignore[reportUnknownMemberType]
    bounds = {name: compute.min_max(part[name]) for name in known}
    least: dict[str, Json] = {name: _told(each["min"].as_py()) for name, each in bounds.items()}
    most: dict[str, Json] = {name: _told(each["max"].as_py()) for name, each in bounds.items()}
    nothing: dict[str, Json] = dict.fromkeys(known, 0)
    statistics = {"numRecords": part.num_rows, "minValues": least, "maxValues": most, "nullCount": nothing}
    return {
        "path": str(path),
        "partitionValues": dict(values),
        "size": file.stat().st_size,
        "modificationTime": _now(),
        "dataChange": True,
        "stats": json.dumps(statistics),
    }


def _told(value: datetime | int) -> Json:
    """A bound, as statistics have it."""
    if isinstance(value, int):
        return value
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"


def _now() -> int:
    return time.time_ns() // 1_000_000
