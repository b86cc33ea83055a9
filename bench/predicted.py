"""Whether the batch model knows what work costs: thirty workloads, each predicted, then computed by the engine.

What is predicted is the work that is measured and no more: one pass over the events of a table and the queries that it
takes, without a schedule after it, without commits and without the bytes that writing would take. The three kinds of
plans take turns: what the batch model thinks best, what the paper's model thinks best, which shares more, and one that
shares nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from statistics import correlation
from typing import NamedTuple

from events import Events
from generators import Generator, Recipe, Seeding, Shape, draw
from pyspark.sql import SparkSession
from runs import AGGREGATES, SHARING, computed, declared, in_turn, planned

from stairwise.batch_cost import BatchModel, Workday
from stairwise.options import Algorithm, Options
from stairwise.plan import Plan
from stairwise.workload import Workload

WORKLOADS = 30
WARMERS = 4  # computed before any is measured: a JVM compiles for as long
WARM = 4.0
ROWS = 5_000_000
# Events of a key in ten seconds, on average: 1,000 are dense, 10 are ten to one, 1 leaves nothing to be gained there.
TABLES = tuple(
    Events(f"keys_{keys}_by_{density}", keys=keys, per_second=max(1, keys * density // 10), rows=ROWS)
    for keys, density in ((1, 10), (1, 1_000), (100, 10), (100, 100), (100, 1_000), (10_000, 1), (10_000, 10))
)
SIZES = (1, 3, 6, 12, 20)
SHAPES = (Shape.TUMBLING, Shape.TUMBLING, Shape.TUMBLING, Shape.HOPPING)
GENERATORS = (Generator.RANDOM, Generator.SEQUENTIAL)
OPTIONS = (Options(), SHARING, Options(algorithm=Algorithm.UNSHARED))
STATES: tuple[Sequence[str], ...] = (("n", "total", "low", "high"), ("total",), ("low", "high"))


@dataclass(frozen=True, slots=True)
class Case:
    """What is computed, and how it is planned.

    Attributes:
        events: What it is computed from.
        recipe: What its windows are drawn from.
        names: Which of the aggregates are computed.
        options: How it is planned.
    """

    events: Events
    recipe: Recipe
    names: Sequence[str]
    options: Options

    def __str__(self) -> str:
        """What differs from case to case."""
        plan = f"{self.options.algorithm.value} {self.options.pricing.value}"
        return f"{self.events.name}, {self.recipe}, {' '.join(self.names)}, {plan}"

    def plan(self, seed: int) -> Plan:
        """Its plan, for windows drawn with a seed."""
        windows = [f"{window.range}s every {window.slide}s" for window in draw(self.recipe, seed)]
        return planned(self.events, windows, self.options, aggregates={name: AGGREGATES[name] for name in self.names})


class Pair(NamedTuple):
    """Seconds that the model predicts, and seconds that the engine took."""

    predicted: float
    measured: float


def cases(rows: int = ROWS, many: int = WORKLOADS) -> Iterator[Case]:
    """The workloads: the choices go round in circles of different lengths, so that they meet in many ways."""
    circles = zip(
        cycle(TABLES), cycle(SIZES), cycle(SHAPES), cycle(each for each in GENERATORS for _ in SHAPES), cycle(STATES),
        cycle(each for each in OPTIONS for _ in STATES), strict=False,
    )  # fmt: skip
    for events, size, shape, generator, names, options in islice(circles, many):
        recipe = Recipe(generator=generator, shape=shape, seeding=Seeding.PER_WINDOW, size=size)
        yield Case(replace(events, rows=rows), recipe, names, options)


def pairs(spark: SparkSession, rows: int = ROWS, many: int = WORKLOADS) -> Iterator[Pair]:
    """What is predicted and what is measured of each workload; each is shown as soon as it is known."""
    asked = [(case, case.plan(seed=number)) for number, case in enumerate(cases(rows, many))]
    for case, plan in asked[:WARMERS]:
        case.events.make(spark)
        computed(spark, plan, case.events)
    for case, plan in asked:
        case.events.make(spark)
        (seconds,) = in_turn(partial(computed, spark, plan, case.events), warm_s=WARM)
        pair = Pair(predicted(plan, case.events), seconds)
        print(f"{pair.predicted:8.2f} {pair.measured:8.2f}  {case}", file=sys.stderr, flush=True)
        yield pair


def predicted(plan: Plan, events: Events) -> float:
    """The seconds that the batch model gives a plan, whoever made it, for one pass that writes nothing."""
    model = Workload.of(declared(plan)).problem(Options()).model
    if not isinstance(model, BatchModel):
        raise TypeError(model.name)
    once = replace(
        model,
        commit_s=0.0,
        constants=replace(model.constants, write_byte=0.0),
        workday=Workday(history_s=events.seconds, schedule_s=0, chunks=1),
    )
    tiers = {step.tier.name: step.tier for step in plan.steps}
    return sum(once.price(step.tier, tiers[step.reads] if step.reads else None, step.how) for step in plan.steps)


def pearson(found: Sequence[Pair]) -> float:
    """Pearson's r of what was predicted and what was measured."""
    return correlation([pair.predicted for pair in found], [pair.measured for pair in found])
