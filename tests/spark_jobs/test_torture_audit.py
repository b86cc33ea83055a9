"""The audit of the torture finds what is wrong; its tables are written here, by hand and without Spark."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from stairwise import Rollup
from stairwise.windowing import Interval
from stairwise_spark.coverage import Claim, Coverage, State
from stairwise_spark.ledger import Known, Summary
from tests.spark_jobs.torture.audit import Audit
from tests.spark_jobs.torture.world import DAY, SPAN, Content, World, declaration

_ALL = Interval(SPAN.start - DAY, SPAN.end + DAY)
_TYPES: Mapping[str, pa.DataType] = {
    "key": pa.string(),
    "window_start": pa.timestamp("us", "UTC"),
    "window_end": pa.timestamp("us", "UTC"),
    "n": pa.int64(),
    "total": pa.int64(),
    "low": pa.int64(),
}
_SCHEMA = pa.schema(_TYPES)


@pytest.fixture
def world(tmp_path: Path) -> World:
    rollup = Rollup.from_yaml(declaration(tmp_path / "source", tmp_path / "target", "tables"))
    world = World(tmp_path / "source", rollup, random.Random(1))  # noqa: S311 - to be the same again
    world.begin(rows=50)
    return world


def _truth(world: World, tier: str, version: int) -> dict[Interval, Content]:
    return {window: found for (name, window), found in world.expected(version).items() if name == tier}


def _write(target: Path, tier: str, windows: Mapping[Interval, Content], version: int, mode: str = "overwrite") -> None:
    """A commit of these windows, which claims all of them as of a version of the source."""
    instants = {bound: datetime.fromtimestamp(bound, UTC) for window in windows for bound in window}
    rows = [(window, each) for window, found in windows.items() for each in found]
    columns = {
        "key": [each.key for _, each in rows],
        "window_start": [instants[window.start] for window, _ in rows],
        "window_end": [instants[window.end] for window, _ in rows],
        "n": [each.rows for _, each in rows],
        "total": [each.total for _, each in rows],
        "low": [each.low for _, each in rows],
    }
    claim = Claim(run="r", plan="p", tiers=((tier, Coverage.of(_ALL, version)),))
    note = CommitProperties(custom_metadata={"userMetadata": claim.encode()})
    table = pa.table(columns, schema=_SCHEMA)
    if mode == "append":
        write_deltalake(target / tier, table, mode="append", commit_properties=note)
    else:
        write_deltalake(target / tier, table, mode="overwrite", commit_properties=note)


def _fill(world: World, target: Path) -> None:
    for window in world.rollup.windows:
        _write(target, window.name, _truth(world, window.name, world.newest), world.newest)


def test_true_tables_at_every_version(world: World, tmp_path: Path) -> None:
    audit = Audit(world, tmp_path / "target")
    for _ in range(3):
        _fill(world, tmp_path / "target")
        assert [*audit.look(), *audit.claims(), *audit.unequal()] == []
        for _ in range(3):
            world.change()
        assert [*audit.claims()] == []
    world.correct_first()
    assert audit.versions == 9
    assert [*audit.unequal()] != []


def test_half_a_window_and_one_that_is_there_twice(world: World, tmp_path: Path) -> None:
    target = tmp_path / "target"
    audit = Audit(world, target)
    _fill(world, target)
    assert [*audit.look()] == []
    name = "day_in_europe_paris"
    days = _truth(world, name, 0)
    window = next(window for window, found in days.items() if len(found) > 1)
    _write(target, name, days | {window: days[window][:1]}, version=0)
    assert [text.split(":")[0] for text in audit.look()] == [f"{name} at 1"]
    _write(target, name, days, version=0)
    _write(target, name, {window: days[window]}, version=0, mode="append")
    assert [text.split(":")[0] for text in audit.look()] == [f"{name} at 3"]


def test_a_claim_that_runs_ahead(world: World, tmp_path: Path) -> None:
    target = tmp_path / "target"
    audit = Audit(world, target)
    old = _truth(world, "50m", 0)
    world.correct_first()
    _write(target, "50m", old, version=1)
    wrong = [*audit.claims()]
    assert len(wrong) == 1
    assert "the commits claim 1" in wrong[0]
    assert "as of 0" in wrong[0]
    _write(target, "50m", {}, version=1)
    assert len([*audit.claims()]) == 1 + len(old)


def test_what_was_known_of_a_table_that_is_lost_is_not_known_of_the_one_in_its_place(
    world: World, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    _fill(world, target)
    world.correct_first()
    for window in world.rollup.windows:
        shutil.rmtree(target / window.name)
    _fill(world, target)
    log = target / "_stairwise" / "ledger" / "_delta_log"
    log.mkdir(parents=True)
    for number, (mark, at, version) in enumerate((("lost", 3, 0), ("new", 0, 1))):
        tiers = {
            each.name: Known(each.name, mark, None, State(at, Coverage.of(_ALL, version)))
            for each in world.rollup.windows
        }
        info = {"commitInfo": {"userMetadata": Summary(tiers=tiers).encode()}}
        (log / f"{number:020d}.json").write_text(json.dumps(info), encoding="utf-8")
    audit = Audit(world, target)
    assert [*audit.claims(), *audit.unequal()] == []
