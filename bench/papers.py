"""What the papers claim, measured here: boosts by Spark, and what is counted without it.

000 is "Factor Windows", 001 "Incremental evaluation", 002 "Cutty", 003 "Weave Share"; docs/papers.md says more of them.
The events are those of 000's model: one a second for each key, of which there are a hundred, so that there is work for
several cores; its aggregate is the minimum of a column, as there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from random import Random
from statistics import correlation, mean
from types import MappingProxyType
from typing import NamedTuple

from combining import per_slice
from events import Events
from generators import Generator, Recipe, Seeding, Shape, draw
from predicted import predicted
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from runs import PACE, Row, computed, in_turn, nowhere, one_session, planned

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet
from stairwise.final_aggregation import Technique, choose
from stairwise.options import Algorithm, Options, Pricing
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.slicing import Slicing, shared
from stairwise.tiers import Kind
from stairwise.weave_share import share_everything, share_nothing, weave_share
from stairwise.window import FixedWindow
from stairwise.workload import Workload

MINIMUM: Mapping[str, str] = MappingProxyType({"low": "min(v)"})
SETS = 10
"""As many as the paper draws, of what is counted; of what Spark computes, `Size` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured.

    Attributes:
        rows: Events of the boosts.
        sizes: How many windows a set has.
        sets: How many sets of each kind.
        thin_rows: Events of the tables with more and more keys.
    """

    rows: int = 10_000_000
    sizes: Sequence[int] = (5, 10, 15, 20)
    sets: int = 3
    thin_rows: int = 2_000_000


WHOLE = Size()


class Printed(NamedTuple):
    """Throughput boosts as a table of the paper has them, without and with factor windows."""

    without_mean: float
    without_max: float
    with_mean: float
    with_max: float


R, S, TUMBLING, HOPPING = Generator.RANDOM, Generator.SEQUENTIAL, Shape.TUMBLING, Shape.HOPPING
# Tables I and III: Synthetic-10M.
SYNTHETIC: Mapping[tuple[Generator, int, Shape], Printed] = MappingProxyType(
    {
        (R, 5, TUMBLING): Printed(1.21, 1.92, 1.85, 2.54),
        (R, 10, TUMBLING): Printed(1.34, 1.77, 1.88, 3.38),
        (R, 15, TUMBLING): Printed(1.55, 1.96, 2.97, 4.34),
        (R, 20, TUMBLING): Printed(1.49, 2.29, 2.10, 4.83),
        (S, 5, TUMBLING): Printed(1.63, 1.67, 4.28, 4.81),
        (S, 10, TUMBLING): Printed(1.98, 2.05, 7.91, 9.38),
        (S, 15, TUMBLING): Printed(2.43, 2.49, 11.29, 13.83),
        (S, 20, TUMBLING): Printed(2.42, 2.53, 14.28, 16.82),
        (R, 5, HOPPING): Printed(1.18, 1.82, 3.26, 4.29),
        (R, 10, HOPPING): Printed(1.34, 1.71, 3.20, 6.15),
        (R, 15, HOPPING): Printed(1.55, 1.95, 4.67, 6.59),
        (R, 20, HOPPING): Printed(1.68, 2.20, 4.23, 7.65),
        (S, 5, HOPPING): Printed(1.34, 1.48, 2.17, 2.81),
        (S, 10, HOPPING): Printed(1.58, 1.73, 2.92, 3.79),
        (S, 15, HOPPING): Printed(1.85, 2.09, 3.51, 4.68),
        (S, 20, HOPPING): Printed(1.91, 2.15, 4.02, 5.32),
    }
)
UNKNOWN = Printed(0, 0, 0, 0)
# Table II: Real-32M, of which only the sets of 5 and 10 windows are in the paper.
REAL: Mapping[tuple[Generator, int, Shape], Printed] = MappingProxyType(
    {
        (R, 5, TUMBLING): Printed(1.19, 1.78, 1.43, 1.91),
        (R, 10, TUMBLING): Printed(1.30, 1.71, 1.53, 2.86),
        (S, 5, TUMBLING): Printed(1.63, 1.67, 4.12, 4.85),
        (S, 10, TUMBLING): Printed(1.90, 1.97, 7.53, 9.14),
        (R, 5, HOPPING): Printed(1.09, 1.39, 1.54, 2.63),
        (R, 10, HOPPING): Printed(1.18, 1.39, 1.46, 3.53),
        (S, 5, HOPPING): Printed(1.12, 1.30, 1.22, 1.77),
        (S, 10, HOPPING): Printed(1.22, 1.51, 1.45, 2.31),
    }
)


@dataclass(frozen=True, slots=True)
class Ways:
    """Seconds for one set of windows, and what the paper's model says of them.

    Attributes:
        naive: By a query for each window.
        without: By our engine, as algorithm 1 plans: no helpers.
        with_factors: As algorithm 3 plans.
        ours: As Stairwise plans.
        expected: The costs of the last three in the paper's model.
        seconds: What the batch model predicts for the last three.
    """

    naive: float
    without: float
    with_factors: float
    ours: float
    expected: tuple[float, float, float]
    seconds: tuple[float, float, float]


Group = tuple[Generator, Shape, Sharing]
GROUPS: Sequence[tuple[Shape, Sharing]] = (
    (TUMBLING, Sharing.DISJOINT),
    (HOPPING, Sharing.DISJOINT),
    (HOPPING, Sharing.OVERLAPPING),
)


@dataclass
class Papers:
    """What is measured, in one session.

    Attributes:
        size: How much.
        found: The boosts that are known, by kind of set and number of windows.
        naive: What a query for each of some windows took; it is the same however they are planned.
    """

    size: Size
    found: dict[tuple[Group, int], list[Ways]] = field(default_factory=dict[tuple[Group, int], list[Ways]])
    naive: dict[Sequence[FixedWindow], float] = field(default_factory=dict[Sequence[FixedWindow], float])

    @cached_property
    def spark(self) -> SparkSession:
        """The session; who only counts needs none."""
        return one_session()

    def boosts(self) -> Iterator[Row]:
        """How many times as fast as a query for each window, beside what the paper has."""
        for group, size in self._kinds():
            generator, shape, sharing = group
            ways = self.found[group, size] = self._ways(group, size)
            printed, real = SYNTHETIC[generator, size, shape], REAL.get((generator, size, shape), UNKNOWN)
            # The paper reads hopping windows as overlapping ones do, and tumbling ones side by side.
            is_printed = (sharing is Sharing.OVERLAPPING) == (shape is HOPPING)
            yield (
                f"{generator.value}-{size} {shape.value}" + ("" if shape is TUMBLING else f", {sharing.value}"),
                *(f"{number:.2f}" if is_printed else "" for number in printed),
                *(f"{number:.2f}" if is_printed and number else "" for number in (real.with_mean, real.with_max)),
                *(
                    f"{of(way.naive / seconds(way) for way in ways):.2f}"
                    for seconds in (_without, _with_factors, _ours)
                    for of in (mean, max)
                ),
            )

    def correlations(self) -> Iterator[Row]:
        """Pearson's r of speed-ups, predicted and measured."""
        kinds = list(self._kinds())
        if not all(kind in self.found for kind in kinds):
            for group, size in kinds:
                self.found[group, size] = self._ways(group, size)
        groups = dict.fromkeys(group for group, _ in kinds)
        whole: list[Ways] = []
        for generator, shape, sharing in groups:
            ways = [way for kind, each in self.found.items() if kind[0] == (generator, shape, sharing) for way in each]
            whole += ways
            yield _correlated(f"{generator.value} {shape.value}, {sharing.value}", ways)
        yield _correlated("all of them", whole)

    def final(self) -> Iterator[Row]:
        """How often states are combined for each slice, by how windows are put together."""
        for overlap in (2, 4, 8, 16, 64, 256, 1_024):
            ours = [choose(overlap, invertible=invertible).value.replace("_", " ") for invertible in (True, False)]
            yield f"{overlap:,}", *(f"{per_slice(one, overlap):,.2f}" for one in FINAL), *ours

    def slices(self) -> Iterator[Row]:
        """Slices that are stored in an hour for windows whose slides do not divide their ranges."""
        for many in (1, 2, 5, 10, 20):
            found = [_stored(uneven(many, seed)) for seed in range(SETS)]
            numbers = [mean(each) for each in zip(*found, strict=True)]
            yield f"{many}", *(f"{number:,.0f}" for number in numbers)

    def groups(self) -> Iterator[Row]:
        """Trees of Weave Share and scans of ours, by how many events a key has."""
        windows = draw(Recipe(generator=R, shape=HOPPING, seeding=Seeding.PER_WINDOW, size=20), 0)
        texts = [f"{window.range}s every {window.slide}s" for window in windows]
        for keys, selectivity in product((1, 100, 10_000, 1_000_000), (1.0, 0.1, 0.01)):
            rate = Fraction(A_SECOND * selectivity).limit_denominator(10**6) / keys
            woven = weave_share(windows, rate)
            apart, together = share_nothing(windows, rate).cost, share_everything(windows, rate).cost
            rows = max(1, round(A_SECOND * selectivity * 86_400))
            workload = Workload.of_windows(texts, "sum", Estimates(rows_per_day=rows, distinct_keys=keys))
            plan = plan_workload(workload, Options())
            yield (
                f"{keys:,}", f"{selectivity:.0%}", f"{float(rate):.3g}", f"{len(woven.trees)}",
                f"{float(apart / woven.cost):.3g} x", f"{float(together / woven.cost):.3g} x",
                f"{len(plan.readers(None))}", f"{_helpers(plan)}",
                f"{plan.totals.unshared / plan.totals.total:.3g} x",
            )  # fmt: skip

    def thin(self) -> Iterator[Row]:
        """Windows computed apart and together, where events have less and less in common with others."""
        for windows, keys in product(THIN, (100, 10_000, 1_000_000)):
            events = Events(f"thin_{keys}", keys=keys, per_second=10_000, rows=self.size.thin_rows)
            events.make(self.spark)
            options = Options(algorithm=Algorithm.UNSHARED), Options(pricing=Pricing.PAPER), Options()
            plans = [planned(events, windows, each, aggregates=MINIMUM) for each in options]
            apart, together, ours = in_turn(*(partial(computed, self.spark, plan, events) for plan in plans), warm_s=4)
            said = [predicted(plan, events) for plan in plans]
            yield (
                f"{' '.join(windows)}, {keys:,}",
                *(f"{seconds:.2f}" for seconds in (apart, together, ours)),
                *(f"{saved:.2f} x" for saved in (apart / together, apart / ours, said[0] / said[1])),
                f"{len(plans[2].readers(None))} of {len(windows)}",
            )

    def _kinds(self) -> Iterator[tuple[Group, int]]:
        for (shape, sharing), generator, size in product(GROUPS, Generator, self.size.sizes):
            yield (generator, shape, sharing), size

    def _ways(self, group: Group, size: int) -> list[Ways]:
        generator, shape, _ = group
        events = Events("one_a_second", keys=100, per_second=100, rows=self.size.rows)
        if not self.found:
            events.make(self.spark)
            for other in (shape, HOPPING) if PACE.is_warm else ():  # they warm the JVM, and are not kept
                self._measured(events, group, draw(_recipe(R, other, 5), SETS))
        return [
            self._measured(events, group, draw(_recipe(generator, shape, size), seed)) for seed in range(self.size.sets)
        ]

    def _measured(self, events: Events, group: Group, windows: Sequence[FixedWindow]) -> Ways:
        *_, sharing = group
        texts = [f"{window.range}s every {window.slide}s" for window in windows]
        paper = Options(pricing=Pricing.PAPER, sharing=sharing)
        options = [*(replace(paper, algorithm=each) for each in PAPERS), Options(sharing=sharing)]
        plans = [planned(events, texts, each, aggregates=MINIMUM) for each in options]
        costs = planned(events, texts, paper, aggregates=MINIMUM).totals
        if windows not in self.naive:
            self.naive[windows] = _timed(partial(self._by_window, events, windows))
        naive = self.naive[windows]
        without, with_factors, ours = (_timed(partial(computed, self.spark, plan, events)) for plan in plans)
        said = tuple(predicted(plan, events) for plan in plans)
        print(f"  {naive:6.2f} {without:6.2f} {with_factors:6.2f} {ours:6.2f}", file=sys.stderr, flush=True)
        expected = float(costs.paper_1), float(costs.paper_3), float(costs.total)
        return Ways(naive, without, with_factors, ours, expected, (said[0], said[1], said[2]))

    def _by_window(self, events: Events, windows: Sequence[FixedWindow]) -> None:
        """A query for each window, as one writes it by hand."""
        for window in windows:
            own = F.window("ts", f"{window.range} seconds", f"{window.slide} seconds")
            nowhere(events.read(self.spark).groupBy("k", own).agg(F.min("v").alias("low")))


def papers(only: Collection[str] = (), size: Size = WHOLE) -> Iterator[tuple[str, Iterator[Row]]]:
    """The sections of the table by name, with their rows, to be taken one after the other."""
    bench = Papers(size)
    for name, section in SECTIONS.items():
        if not only or name in only:
            yield name, section(bench)


def uneven(many: int, seed: int) -> tuple[FixedWindow, ...]:
    """Hopping windows of RandomGen's slides, whose ranges are 2 to 12 slides and a part of one.

    >>> [(window.range, window.slide) for window in uneven(2, 0)]
    [(215, 90), (8310, 900)]
    """
    random = Random(f"uneven {many} {seed}")
    found: dict[FixedWindow, None] = {}
    while len(found) < many:
        slide = random.choice((5, 10, 20)) * random.randint(2, 50)
        found[FixedWindow(slide * random.randint(2, 12) + 5 * random.randint(1, slide // 5 - 1), slide)] = None
    return tuple(found)


def _stored(windows: Sequence[FixedWindow]) -> tuple[float, ...]:
    """Slices an hour: panes and pairs for each window, pairs for all, Cutty's for all, ours, and ours of all levels."""
    texts = [f"{window.range}s every {window.slide}s" for window in windows]
    estimates = Estimates(rows_per_day=A_SECOND * 86_400, distinct_keys=100)
    plan = plan_workload(Workload.of_windows(texts, "sum", estimates), Options())
    panes, pairs = (
        sum((slicing.edges(window).rate() for window in windows), Fraction(0))
        for slicing in (Slicing.PANES, Slicing.PAIRS)
    )
    together: tuple[EdgeSet, ...] = tuple(shared(slicing, windows) for slicing in (Slicing.PAIRS, Slicing.CUTTY))
    helpers = [step for step in plan.steps if step.tier.kind is not Kind.DECLARED]
    first, ours = (
        sum((step.tier.rate for step in steps), Fraction(0))
        for steps in ([step for step in helpers if step.reads is None], helpers)
    )
    rates = (panes, pairs, *(edges.rate() for edges in together), first, ours)
    return tuple(float(rate * 3_600) for rate in rates)


def _recipe(generator: Generator, shape: Shape, size: int) -> Recipe:
    return Recipe(generator=generator, shape=shape, seeding=Seeding.PER_SET, size=size)


def _correlated(name: str, ways: Sequence[Ways]) -> Row:
    """Speed-ups of factor windows over none, as the paper correlates them; and of our plans over none."""
    helped = [way.without / way.with_factors for way in ways]
    ours = [way.without / way.ours for way in ways]
    return (
        name,
        f"{len(ways)}",
        _pearson([way.expected[0] / way.expected[1] for way in ways], helped),
        _pearson([way.seconds[0] / way.seconds[1] for way in ways], helped),
        _pearson([way.expected[0] / way.expected[2] for way in ways], ours),
        _pearson([way.seconds[0] / way.seconds[2] for way in ways], ours),
        _pearson(
            [second for way in ways for second in way.seconds],
            [second for way in ways for second in (way.without, way.with_factors, way.ours)],
        ),
    )


def _pearson(expected: Sequence[float], found: Sequence[float]) -> str:
    """Pearson's r; nothing where one side is always the same."""
    is_flat = len(expected) < 2 or any(max(side) - min(side) < 1e-9 for side in (expected, found))
    return "" if is_flat else f"{correlation(expected, found):.2f}"


def _helpers(plan: Plan) -> int:
    return sum(step.tier.kind is not Kind.DECLARED for step in plan.steps)


def _timed(do: Callable[[], None]) -> float:
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def _without(ways: Ways) -> float:
    return ways.without


def _with_factors(ways: Ways) -> float:
    return ways.with_factors


def _ours(ways: Ways) -> float:
    return ways.ours


PAPERS = (Algorithm.PAPER_1, Algorithm.PAPER_3)
THIN = (("20s", "30s", "40s", "60s"), ("2s", "5s"))
A_SECOND = 1_000
"""Events a second of all keys, where groups are counted."""
FINAL = (
    Technique.NAIVE, Technique.FLAT_FAT, Technique.TWO_STACKS, Technique.VAN_HERK, Technique.SLICK_DEQUE,
    Technique.RUNNING,
)  # fmt: skip
SECTIONS: Mapping[str, Callable[[Papers], Iterator[Row]]] = MappingProxyType(
    {
        "boosts": Papers.boosts,
        "boosts-predicted": Papers.correlations,
        "final-aggregation": Papers.final,
        "slices": Papers.slices,
        "groups": Papers.groups,
        "sharing-by-keys": Papers.thin,
    }
)
HEADERS: Mapping[str, Row] = MappingProxyType(
    {
        "boosts": (
            "set", "paper, without, mean", "max", "paper, with, mean", "max", "paper, table II: with, mean",
            "max", "algorithm 1, mean", "max", "algorithm 3, mean", "max", "ours, mean", "max",
        ),
        "boosts-predicted": (
            "sets", "how many", "algorithm 3 over 1, r of the paper's model", "of the batch model",
            "ours over algorithm 1, r of the paper's model", "of the batch model", "seconds, r of the batch model",
        ),
        "final-aggregation": (
            "slices of a window", *(one.value.replace("_", " ") for one in FINAL), "we choose for sums", "for others",
        ),
        "slices": (
            "windows", "panes, each its own", "pairs, each its own", "pairs, shared", "Cutty, shared",
            "ours, of the events", "ours, all levels",
        ),
        "groups": (
            "keys", "selectivity", "events a second and key", "trees of Weave Share", "it saves over no sharing",
            "over one tree", "our scans of 20", "our helpers", "we save",
        ),
        "sharing-by-keys": (
            "windows, keys", "apart, s", "shared, s", "our choice, s", "sharing saves", "our choice saves",
            "sharing saves, predicted", "scans of our choice",
        ),
    }
)  # fmt: skip
