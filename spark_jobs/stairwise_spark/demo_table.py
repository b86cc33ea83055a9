"""A Delta table that needs no engine to grow: files of Parquet, and a commit that names them.

So the demo brings its trips within a moment; all who read them do it by Spark and Delta Lake.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from stairwise.instant import format_instant
from stairwise.json_fields import Json

_TYPES: dict[pa.DataType, str] = {
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.timestamp("us", tz="UTC"): "timestamp",
}
_OLDEST = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The protocol that every reader knows."""


def append(folder: Path, parts: Iterable[pa.Table], by: str) -> int:
    """Add a file for each part, in one commit; the version that it makes.

    Args:
        folder: The table; made by the first commit.
        parts: What is added, none of it empty.
        by: The column of instants, full seconds, by whose range readers pass over files.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = sum(1 for _ in log.glob("*.json"))
    actions: list[dict[str, Json]] = []
    for part in parts:
        if not version and not actions:
            actions += _beginning(part.schema)
        actions.append({"add": _added(folder, part, by)})
    lines = "".join(f"{json.dumps(action)}\n" for action in actions)
    with (log / f"{version:020}.json").open("x", encoding="utf-8") as commit:
        commit.write(lines)
    return version


def _beginning(schema: pa.Schema) -> Iterator[dict[str, Json]]:
    """What the first commit says of the table."""
    fields = [
        {"name": name, "type": _TYPES[kind], "nullable": True, "metadata": dict[str, Json]()}
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]
    yield {"protocol": _OLDEST}
    yield {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": dict[str, Json]()},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list[str](),
            "configuration": dict[str, Json](),
            "createdTime": _now(),
        }
    }


def _added(folder: Path, part: pa.Table, by: str) -> dict[str, Json]:
    """What a commit says of a file, once that is written."""
    name = f"part-{uuid.uuid4()}.parquet"
    parquet.write_table(part, folder / name)
    instants = part[by].cast(pa.int64()).to_numpy() // 1_000_000
    least, most = (f"{format_instant(int(each))[:-1]}.000Z" for each in (instants.min(), instants.max()))
    statistics: dict[str, Json] = {
        "numRecords": part.num_rows,
        "minValues": {by: least},
        "maxValues": {by: most},
        "nullCount": {by: 0},
    }
    return {
        "path": name,
        "partitionValues": dict[str, Json](),
        "size": (folder / name).stat().st_size,
        "modificationTime": _now(),
        "dataChange": True,
        "stats": json.dumps(statistics),
    }


def _now() -> int:
    return time.time_ns() // 1_000_000
