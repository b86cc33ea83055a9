"""A rollup over a table of events: planned, computed without being written, and timed beside others."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType

from events import FOLDER, Events
from pyspark.sql import DataFrame, SparkSession

from stairwise import Rollup, Source, optimize
from stairwise.options import Options, Pricing
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.tiers import Kind
from stairwise_spark.compute import Content
from stairwise_spark.expressions import argument_types, direct
from stairwise_spark.session import SessionOptions, open_session
from stairwise_spark.source import open_source
from stairwise_spark.storage import Storage
from stairwise_spark.together import can_go_together
from stairwise_spark.work import Work

AGGREGATES: Mapping[str, str] = MappingProxyType({"n": "count()", "total": "sum(v)", "low": "min(v)", "high": "max(v)"})
SHARING = Options(pricing=Pricing.PAPER)
"""The plan of the paper's model, which always shares."""
HEADER = ("work", "ours, s", "beside it, s", "ratio", "target")
Row = tuple[str, ...]
LONG, WARM, WARMEST = 12.0, 8.0, 60.0
"""A side that has taken so many seconds is not measured again; before, it runs for so long, and at most for so long."""
_STEADY = 0.9
"""A side is warm once it takes this part of its best time so far, or more."""


@dataclass(slots=True)
class Pace:
    """How patiently is measured.

    Attributes:
        rounds: A side is measured so often, unless it takes long.
        is_warm: Whether it runs before, so that the JVM has compiled its code.
    """

    rounds: int = 3
    is_warm: bool = True


PACE = Pace()
"""Of this process: who only takes a look changes it."""


def planned(
    events: Events,
    windows: Sequence[str],
    options: Options = SHARING,
    *,
    aggregates: Mapping[str, str] = AGGREGATES,
    layout: str = "one_table",
) -> Plan:
    """The plan for some windows over a table of events, whose statistics it knows."""
    rollup = Rollup(
        name="bench", source=Source(path=str(events.path), time="ts"), keys=("k",), aggregates=dict(aggregates),
        windows=tuple(windows), target=str(FOLDER / "ours"), layout=layout,
        estimates=Estimates(rows_per_day=events.per_second * 86_400, distinct_keys=events.keys),
    )  # fmt: skip
    return optimize(rollup, options)


def one_session() -> SparkSession:
    """The session of all parts, which the first one opens."""
    options = SessionOptions(master="local[2]", conf=(("spark.driver.memory", "6g"),))
    return SparkSession.getActiveSession() or open_session(options)


def declared(plan: Plan) -> Rollup:
    """What the plan was made for."""
    if plan.declaration is None:
        raise ValueError(plan.rollup)
    return plan.declaration


def computed(spark: SparkSession, plan: Plan, events: Events) -> None:
    """All declared tiers of a plan, as a run computes them."""
    rollup = declared(plan)
    source = open_source(spark, rollup, direct)
    types = argument_types(source.rows(), [aggregate for _, aggregate in rollup.aggregates])
    content = Content(keys=rollup.keys, aggregates=rollup.aggregates, types=types)
    due = {step.tier.name: (events.span,) for step in plan.steps if step.tier.kind is Kind.DECLARED}
    work = Work(
        plan=plan, content=content, source=source, storage=Storage.of(spark, plan), versions={}, available={}, due=due,
        goes_together=can_go_together(source.rows(), content),
    )  # fmt: skip
    frames = work.frames()
    found = {id(frame): frame for frame in (frames[name].frame for name in due)}
    for frame in found.values():
        nowhere(frame)
    work.release()


def nowhere(frame: DataFrame) -> None:
    """Compute all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def in_turn(
    *sides: Callable[[], object],
    warmers: Mapping[int, Callable[[], object]] = MappingProxyType({}),
    warm_s: float = WARM,
) -> list[float]:
    """The median seconds of each side, once it no longer gets faster, since the JVM has compiled its code.

    Sides that take long are measured once, others up to three times.

    Args:
        sides: What is measured.
        warmers: What takes less time than the side of that place and has the same code compiled.
        warm_s: How long each side runs before, at least.
    """
    for place, side in enumerate(sides if PACE.is_warm else ()):
        _warm(warmers.get(place, side), warm_s)
    seconds: list[list[float]] = [[] for _ in sides]
    for _, (side, taken) in itertools.product(range(PACE.rounds), list(zip(sides, seconds, strict=True))):
        if sum(taken) < LONG:
            started = time.perf_counter()
            side()
            taken.append(time.perf_counter() - started)
    return [median(each) for each in seconds]


def _warm(warmer: Callable[[], object], least_s: float) -> None:
    best, taken, is_steady = math.inf, 0.0, False
    while taken < least_s or not (is_steady or taken > WARMEST):
        started = time.perf_counter()
        warmer()
        seconds = time.perf_counter() - started
        is_steady = seconds > best * _STEADY
        best, taken = min(best, seconds), taken + seconds


def faster(name: str, ours: float, theirs: float, goal: str) -> Row:
    """A row that says how many times as fast ours is."""
    return name, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.3g} x", goal


def slower(name: str, ours: float, theirs: float, goal: str) -> Row:
    """A row that says how much ours takes of what the other one does."""
    return name, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", goal
