"""What fails in the middle leaves true tables behind, says what it is, and the next run puts everything right."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import SparkSession

from stairwise import Rollup, optimize
from stairwise.errors import StairwiseError
from stairwise.windowing import Interval
from stairwise_spark.engine import History, Request, run
from stairwise_spark.errors import BusyError
from stairwise_spark.session import sql
from tests.spark_jobs.torture.audit import Audit
from tests.spark_jobs.torture.world import DAY, SPAN, World, declaration

pytestmark = [pytest.mark.spark, pytest.mark.torture]

_FIRST_DAY = Interval(SPAN.start, SPAN.start + DAY)
_KILOBYTE = 1_024
_MOUNT, _UNMOUNT = "/usr/bin/mount", "/usr/bin/umount"


def _world(source: Path, target: str, layout: str = "tables") -> World:
    rollup = Rollup.from_yaml(declaration(source, Path(target), layout))
    world = World(source, rollup, random.Random(5))  # noqa: S311 - to be the same again
    world.begin(rows=120)
    return world


def _run(spark: SparkSession, world: World, span: Interval | None = None) -> str:
    """What went wrong, if anything did."""
    try:
        run(spark, optimize(world.rollup), Request(span=span or History()))
    except StairwiseError as error:
        return str(error)
    return ""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = [_MOUNT, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    is_allowed = os.geteuid() == 0 and Path(_MOUNT).exists()
    if not is_allowed or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("to mount a small disk takes a right that this user does not have")
    yield folder
    subprocess.run([_UNMOUNT, "--lazy", str(folder)], check=True)


def _fill(disk: Path, rest: int) -> Path:
    """A file that leaves so many bytes."""
    filler = disk / "filler"
    space = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, space.f_bavail * space.f_bsize - rest)))
    return filler


def test_a_full_disk(spark: SparkSession, tmp_path: Path, small: Path) -> None:
    world = _world(tmp_path / "source", str(small / "target"))
    audit = Audit(world, small / "target")
    assert _run(spark, world, _FIRST_DAY) == ""
    # The disk is full at the first file, in the middle, and nearly at the end.
    for rest in (0, 32, 96):
        world.change()
        filler = _fill(small, rest * _KILOBYTE)
        said = _run(spark, world)
        assert "the disk is full" in said
        assert said.endswith("Hint: free some space, then run again.")
        assert [*audit.claims()] == []
        filler.unlink()
    assert _run(spark, world) == ""
    assert [*audit.claims(), *audit.unequal()] == []


def test_a_disk_that_may_not_be_written(spark: SparkSession, tmp_path: Path, small: Path) -> None:
    # One that was never full: what Spark could not write then stays open in it, and keeps the system from this.
    world = _world(tmp_path / "source", str(small / "target"))
    audit = Audit(world, small / "target")
    assert _run(spark, world, _FIRST_DAY) == ""
    world.change()
    subprocess.run([_MOUNT, "-o", "remount,ro", str(small)], check=True)
    said = _run(spark, world)
    assert "the system forbids it" in said or "the target cannot be written" in said
    assert [*audit.claims()] == []
    subprocess.run([_MOUNT, "-o", "remount,rw", str(small)], check=True)
    assert _run(spark, world) == ""
    assert [*audit.claims(), *audit.unequal()] == []


def test_tables_and_the_ledger_are_lost(spark: SparkSession, tmp_path: Path) -> None:
    world = _world(tmp_path / "source", str(tmp_path / "target"))
    assert _run(spark, world) == ""
    for lost in (("50m",), ("_tiers", "20m"), ("_stairwise",), ("_stairwise", "day_in_europe_paris")):
        world.change()
        for name in lost:
            rmtree(tmp_path / "target" / name)
        assert _run(spark, world) == ""
        audit = Audit(world, tmp_path / "target")
        assert [*audit.claims(), *audit.unequal()] == []


def test_the_catalog_does_not_know_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    text = declaration(tmp_path / "source", tmp_path, "tables").replace(
        f"target: {tmp_path}", "target: {catalog: lost}"
    )
    world = World(tmp_path / "source", Rollup.from_yaml(text), random.Random(5))  # noqa: S311 - as above
    world.begin(rows=20)
    said = _run(spark, world)
    assert "a schema is missing" in said
    assert said.endswith("Hint: create it first.")
    sql(spark, "CREATE SCHEMA lost")
    try:
        assert _run(spark, world) == ""
        assert spark.table("lost.`20m`").count() > 0
    finally:
        sql(spark, "DROP SCHEMA lost CASCADE")


def _side_by_side(spark: SparkSession, world: World, spans: list[Interval]) -> list[str]:
    """What each of the runs says that go on at the same time."""

    def one(span: Interval) -> str:
        try:
            run(spark, optimize(world.rollup), Request(span=span))
        except BusyError:
            return "busy"
        return ""

    with ThreadPoolExecutor(len(spans)) as pool:
        return [*pool.map(one, spans)]


@pytest.mark.parametrize("layout", ["tables", "one_table"])
def test_runs_at_the_same_time(layout: str, spark: SparkSession, tmp_path: Path) -> None:
    """Over disjoint ranges they all come through; over the same one they are true or busy."""
    world = _world(tmp_path / "source", str(tmp_path / "target"), layout)
    audit = Audit(world, tmp_path / "target")
    # A week of windows ends in nothing else, and the last day of Paris ends after the last event.
    bounds = (SPAN.start - DAY, SPAN.start + DAY // 2, SPAN.start + DAY, SPAN.end + DAY)
    for _ in range(2):
        assert _side_by_side(spark, world, [Interval(*each) for each in pairwise(bounds)]) == ["", "", ""]
        assert [*audit.claims(), *audit.unequal()] == []
        world.change()
    assert set(_side_by_side(spark, world, [SPAN, SPAN, _FIRST_DAY])) <= {"", "busy"}
    assert [*audit.claims()] == []
    assert _run(spark, world) == ""
    assert [*audit.claims(), *audit.unequal()] == []
