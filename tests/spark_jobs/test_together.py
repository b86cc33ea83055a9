"""Tiers made by one pass are those that Spark makes one by one; and they are made so only where a worker can."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from stairwise import Rollup, Source, optimize
from stairwise.plan import Plan, Step
from stairwise.rollup import Estimates
from stairwise.windowing import Interval
from stairwise_spark.compute import Content, computed, finer, is_finer_cheaper
from stairwise_spark.expressions import argument_types
from stairwise_spark.rows import Rows
from stairwise_spark.together import SWITCH, can_go_together, distributed, made_together
from tests.spark_jobs.events import events

pytestmark = pytest.mark.spark

SPAN = Interval(-200_000, 200_000)
WINDOWS = (
    "2s", "3s", "6s", "12s offset 1s", "day in Asia/Kolkata",
    "5s every 2s", "1h every 1m", "2 days every day in Asia/Kolkata",
)  # fmt: skip
UNEVEN = ("4s", "6s", "10s", "14s", "1h every 6s", "day in Asia/Kolkata")
AGGREGATES = (
    "count()", "count(word)", "sum(long)", "sum(money)", "sum(coins) where flag", "avg(single)", "min(real)",
    "max(real)", "min(money)", "max(units)", "min(at)", "max(clock)", "min(day)", "bool_and(flag)", "bool_or(flag)",
    "bit_and(small)", "bit_or(whole)", "bit_xor(long)", "var_samp(far)", "corr(far, whole)", "first(real)",
    "last(money)", "min_by(at, money)", "max_by(coins, real)",
)  # fmt: skip


@pytest.fixture(scope="module")
def raw(spark: SparkSession) -> Iterator[DataFrame]:
    frame = events(spark, seed=5, per_key=200).persist()
    yield frame
    frame.unpersist()


def planned(aggregates: tuple[str, ...], keys: tuple[str, ...], windows: tuple[str, ...]) -> tuple[Plan, Rollup]:
    rollup = Rollup(
        name="trips", source=Source(path="trips", time="at"), keys=keys, windows=windows, target="rollups",
        aggregates={f"column_{number}": text for number, text in enumerate(aggregates)},
        estimates=Estimates(rows_per_day=10**10, distinct_keys=10),
    )  # fmt: skip
    return optimize(rollup), rollup


def content_of(raw: DataFrame, rollup: Rollup) -> Content:
    types = argument_types(raw, [aggregate for _, aggregate in rollup.aggregates])
    return Content(keys=rollup.keys, aggregates=rollup.aggregates, types=types)


def rows_of(frame: DataFrame) -> dict[tuple[object, ...], tuple[object, ...]]:
    """The states, by keys and bounds."""
    names = sorted(frame.columns)
    places = [name for name in names if name in ("key", "flag", "real", "_begin", "_end")]
    states = [name for name in names if name not in places]
    return {tuple(repr(row[n]) for n in places): tuple(row[n] for n in states) for row in frame.collect()}


def same(left: object, right: object) -> bool:
    match left, right:
        case (float(), float()) if not math.isnan(left):
            return left == pytest.approx(right, rel=1e-9, abs=1e-7)
        case _:
            return repr(left) == repr(right)


@pytest.mark.parametrize(
    ("keys", "windows"),
    [(("key",), UNEVEN), (("flag", "real"), WINDOWS), ((), WINDOWS)],
    ids=["a text, from finer slices", "a truth and a double", "no keys"],
)
def test_a_pass_makes_what_spark_makes_tier_by_tier(
    raw: DataFrame, keys: tuple[str, ...], windows: tuple[str, ...]
) -> None:
    plan, rollup = planned(AGGREGATES, keys, windows)
    (together,) = plan.passes()
    assert sum(step.final is not None for step in together.steps) == (3 if windows == WINDOWS else 1)
    content = content_of(raw, rollup)
    assert can_go_together(raw, content)
    frames = {together.reads: computed(plan.step(together.reads), raw, content, SPAN).localCheckpoint()}
    for step in together.steps:
        frames[step.tier.name] = computed(step, frames[step.reads or ""], content, SPAN).localCheckpoint()
    steps, parent = together.steps, frames[together.reads]
    if is_finer_cheaper(first := plan.step(together.reads)):
        steps, parent = (first, *steps), finer(first, raw, content, SPAN)
        assert parent.count() > frames[together.reads].count()
    assert (first in steps) == (windows == UNEVEN)
    made = made_together(distributed(parent, keys), content, steps, dict.fromkeys(frames, (SPAN,)), frames).persist()
    for number, step in enumerate(steps, 1):
        check(Rows(made, number).alone(), frames[step.tier.name], step)
    made.unpersist()


def check(found: DataFrame, expected: DataFrame, step: Step) -> None:
    mine, theirs = rows_of(found), rows_of(expected)
    assert found.select(*expected.columns).dtypes == expected.dtypes
    assert mine.keys() == theirs.keys(), step.tier.name
    wrong = [
        (place, one, other)
        for place, states in theirs.items()
        for one, other in zip(mine[place], states, strict=True)
        if not same(one, other)
    ]
    assert wrong == [], step.tier.name


@pytest.mark.parametrize(
    ("aggregate", "key", "can"),
    [
        ("sum(money)", "key", True),
        ("min(word)", "key", False),
        ("max_by(word, money)", "key", False),
        ("sum(pause)", "key", False),
        ("approx_distinct(word)", "key", False),
        ("count()", "real", True),
        ("count()", "raw", True),
        ("count()", "pair", False),
        ("count()", "list", False),
    ],
)
def test_a_worker_handles_states_of_fixed_width_and_plain_keys(
    raw: DataFrame,
    aggregate: str,
    key: str,
    can: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    _, rollup = planned((aggregate,), (key,), ("2s",))
    assert can_go_together(raw, content_of(raw, rollup)) is can


def test_texts_that_are_equal_though_they_differ_are_no_plain_keys(raw: DataFrame) -> None:
    _, rollup = planned(("count()",), ("key",), ("2s",))
    collated = raw.selectExpr("* except (key)", "key collate UTF8_LCASE as key")
    assert not can_go_together(collated, content_of(collated, rollup))


def test_a_session_may_say_no(raw: DataFrame) -> None:
    _, rollup = planned(("count()",), ("key",), ("2s",))
    raw.sparkSession.conf.set(SWITCH, "false")
    try:
        assert not can_go_together(raw, content_of(raw, rollup))
    finally:
        raw.sparkSession.conf.unset(SWITCH)
