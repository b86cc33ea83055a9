"""Runs that take turns at every event they tell of, or die there; whatever the order, what is claimed is so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Self

import pytest
from pyspark.sql import SparkSession

from stairwise import Rollup, optimize
from stairwise.errors import StairwiseError
from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark.engine import Request, run
from stairwise_spark.errors import BusyError
from stairwise_spark.report import ChunkBegun, Event
from tests.spark_jobs.torture.audit import Audit
from tests.spark_jobs.torture.world import DAY, SPAN, World, declaration

pytestmark = [pytest.mark.spark, pytest.mark.torture]

_NOON = SPAN.start + DAY // 2


class DiedError(BaseException):
    """The end of a run that is no more."""


@dataclass(slots=True)
class Paced:
    """A run in a thread of its own, which waits at every event until it is told to go on, or to die."""

    spark: SparkSession
    plan: Plan
    request: Request
    error: StairwiseError | None = None
    is_over: bool = False
    at: Event | None = None
    _told: Queue[Event | None] = field(default_factory=Queue["Event | None"])
    _lives: Queue[bool] = field(default_factory=Queue[bool])

    @classmethod
    def begun(cls, spark: SparkSession, plan: Plan, request: Request) -> Self:
        """It waits at its first event."""
        paced = cls(spark, plan, request)
        Thread(target=paced._go, daemon=True).start()
        paced._wait()
        return paced

    def step(self, *, lives: bool = True) -> None:
        """It has gone on until its next event, or its end."""
        if not self.is_over:
            self._lives.put(lives)
            self._wait()

    def finish(self) -> None:
        """It has come to its end, which is a good one, or others were faster."""
        while not self.is_over:
            self.step()
        if self.error is not None and not isinstance(self.error, BusyError):
            raise self.error

    def _wait(self) -> None:
        self.at = self._told.get(timeout=900)
        self.is_over = self.at is None

    def _go(self) -> None:
        try:
            run(self.spark, self.plan, self.request, self._tell)
        except StairwiseError as error:
            self.error = error
        except DiedError:
            pass
        finally:
            self._told.put(None)

    def _tell(self, event: Event) -> None:
        self._told.put(event)
        if not self._lives.get(timeout=900):
            raise DiedError


def _world(folder: Path, layout: str, seed: int) -> World:
    rollup = Rollup.from_yaml(declaration(folder / "source", folder / "target", layout))
    world = World(folder / "source", rollup, random.Random(seed))  # noqa: S311 - to be the same again
    world.begin(rows=60)
    return world


def _healed(spark: SparkSession, plan: Plan, audit: Audit) -> None:
    run(spark, plan, Request())
    assert [*audit.claims(), *audit.unequal()] == []


def test_what_another_run_undid_meanwhile_is_not_claimed(spark: SparkSession, tmp_path: Path) -> None:
    """A run that read an older source writes the first day after the second run has looked, and before it writes."""
    world = _world(tmp_path, "tables", seed=3)
    plan, audit = optimize(world.rollup), Audit(world, tmp_path / "target")
    first, rest = Interval(SPAN.start - DAY, _NOON), Interval(_NOON, SPAN.end + DAY // 4)
    old = Paced.begun(spark, plan, Request(span=first, restate=True))
    while not isinstance(old.at, ChunkBegun):
        old.step()
    world.correct_first()
    run(spark, plan, Request(span=first))
    # Its last chunk ends no day.
    new = Paced.begun(spark, plan, Request(span=rest, chunk_s=DAY // 2))
    while not isinstance(new.at, ChunkBegun):
        new.step()
    old.finish()
    new.finish()
    assert [*audit.claims()] == []
    _healed(spark, plan, audit)


@pytest.mark.parametrize(("layout", "seed"), [("tables", 1), ("one_table", 2)])
def test_turns_in_any_order(layout: str, seed: int, spark: SparkSession, tmp_path: Path) -> None:
    world = _world(tmp_path, layout, seed)
    plan, audit, luck = optimize(world.rollup), Audit(world, tmp_path / "target"), world.luck
    requests: Sequence[Request] = (
        Request(),
        Request(span=Interval(SPAN.start, _NOON), restate=True),
        Request(span=Interval(_NOON, SPAN.end), chunk_s=DAY),
    )
    for _ in range(2):
        runs: list[Paced] = []
        waiting = [*requests]
        while waiting or not all(each.is_over for each in runs):
            going = [each for each in runs if not each.is_over]
            if waiting and (not going or luck.random() < 0.3):
                runs.append(Paced.begun(spark, plan, waiting.pop(luck.randrange(len(waiting)))))
            elif luck.random() < 0.1:
                world.change()
            else:
                luck.choice(going).step(lives=luck.random() < 0.9)
        for each in runs:
            each.finish()
        assert [*audit.claims()] == []
        world.change()
    _healed(spark, plan, audit)
