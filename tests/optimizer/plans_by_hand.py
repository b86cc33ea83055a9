"""Plans for tests of what people see, made without a planner: who reads whom is given, costs are plausible."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hypothesis import strategies

from stairwise.aggregate import Sharing
from stairwise.cost import Cost
from stairwise.edges import EdgeSet
from stairwise.final_aggregation import Technique
from stairwise.network import Number
from stairwise.options import Algorithm, Pricing, TiersAllowed
from stairwise.plan import Alternative, Plan, Search, Step, Totals
from stairwise.tiers import Horizon, How, Tier, composite_tier, declared_tier, factor_tier
from stairwise.window import CalendarSpan, CalendarWindow, FixedWindow, Unit

MINUTE, HOUR, DAY = 60, 3_600, 86_400
PARIS = "Europe/Paris"
ROWS_PER_DAY = 3e6
LONGEST = 20 * 365 * DAY


def fixed(text: str, length: int, slide: int | None = None, *, name: str = "") -> Tier:
    own = name or "_".join(text.split())
    return declared_tier(own, text, FixedWindow(length, slide or length), Horizon())


def local(text: str, unit: Unit, count: int = 1, *, anchor: int = 0, name: str = "") -> Tier:
    window = CalendarWindow(unit, count, CalendarSpan(unit, count, anchor), PARIS)
    return declared_tier(name or "_".join(text.lower().replace("/", " ").split()), text, window, Horizon())


def helper(name: str, length: int, slide: int | None = None) -> Tier:
    return factor_tier(name, FixedWindow(length, slide or length))


def mixed(name: str, *classes: tuple[int, int]) -> Tier:
    return composite_tier(name, EdgeSet.of(*classes))


def read(
    tier: Tier,
    parent: Tier | None = None,
    *,
    cost: Number = 1,
    how: How | None = None,
    second: Alternative | None = None,
    why: str = "",
) -> Step:
    final = Technique.TWO_STACKS if tier.window and not tier.window.is_tumbling and parent else None
    return Step(
        tier=tier,
        reads=parent.name if parent else None,
        how=how or (How.DISJOINT if parent else How.RAW),
        final=final,
        cost=Cost(total=cost),
        runner_up=second,
        why=why,
    )


def with_rows(step: Step, parent: Tier | None, bytes_per_row: float = 80) -> Step:
    """The same step as the batch model would price it, roughly."""
    seconds = 730 * DAY
    rows = float(step.tier.rate) * seconds * 500
    taken = ROWS_PER_DAY * 730 if parent is None else float(parent.rate) * seconds * 500
    total = 17 + taken * (35e-9 if parent is None else 100e-9) + rows * 1e-6
    cost = Cost(total=total, rows_read=taken, rows_written=rows, bytes_written=rows * bytes_per_row)
    return Step(
        tier=step.tier, reads=step.reads, how=step.how, final=step.final, cost=cost,
        runner_up=step.runner_up and Alternative(step.runner_up.reads, total * 1.31), why=step.why,
    )  # fmt: skip


def planned(
    *steps: Step,
    rollup: str = "trips",
    cost_model: str = "paper",
    unshared: Number | None = None,
    paper_1: Number | None = None,
    paper_3: Number | None = None,
    lower_bound: Number | None = None,
    period_s: int = 120,
    notes: tuple[str, ...] = (),
) -> Plan:
    total = sum((Fraction(step.cost.total) for step in steps), Fraction(0))
    whole: Number = total.numerator if total.denominator == 1 else float(total) if cost_model == "batch" else total
    return Plan(
        rollup=rollup,
        declaration=None,
        search=Search(
            semantics=Sharing.DISJOINT,
            cost_model=Pricing(cost_model),
            algorithm=Algorithm.BEST,
            tiers_allowed=TiersAllowed.COMPOSITE,
        ),
        steps=steps,
        totals=Totals(
            total=whole,
            unshared=whole if unshared is None else unshared,
            paper_1=whole if paper_1 is None else paper_1,
            paper_3=whole if paper_3 is None else paper_3,
            lower_bound=whole if lower_bound is None else lower_bound,
            is_proven_optimal=lower_bound is None,
            period_s=period_s,
            unit="s" if cost_model == "batch" else "reads",
        ),
        horizon=Horizon(),
        notes=notes,
    )


def alone() -> Plan:
    """One window."""
    return planned(read(fixed("5m", 5 * MINUTE), cost=300), period_s=300)


def unshared() -> Plan:
    """Two windows that have nothing to give each other."""
    steps = (read(fixed("7s", 7), cost=77), read(fixed("11s", 11), cost=77, second=Alternative("7s", 90)))
    return planned(*steps, period_s=77)


def example_7() -> Plan:
    """Example 7 of Factor Windows, with the tier that the paper has no notion of."""
    slices = mixed("slices", (20, 0), (30, 0))
    twenty, thirty, forty = fixed("20s", 20), fixed("30s", 30), fixed("40s", 40)
    return planned(
        read(slices, cost=120, why="It cuts time where 20s and 30s do; both are put together from its slices."),
        read(twenty, slices, cost=8, second=Alternative(None, 120)),
        read(thirty, slices, cost=8, second=Alternative(None, 120)),
        read(forty, twenty, cost=6, second=Alternative("slices", 8)),
        rollup="example 7", unshared=360, paper_1=246, paper_3=150,
    )  # fmt: skip


def trips() -> Plan:
    """What a city would ask of its taxis, priced in seconds."""
    quarter, five, hour = helper("15m", 15 * MINUTE), fixed("5m", 5 * MINUTE), fixed("1h every 15m", HOUR, 15 * MINUTE)
    ninety, day = fixed("90m", 90 * MINUTE), local("day in Europe/Paris", Unit.DAY)
    rolling = declared_tier(
        "28_days_every_day_in_europe_paris", "28 days every day in Europe/Paris",
        CalendarWindow(Unit.DAY, 28, CalendarSpan(Unit.DAY, 1, 0), PARIS), Horizon(),
    )  # fmt: skip
    month, year = local("month in Europe/Paris", Unit.MONTH), local("year in Europe/Paris", Unit.MONTH, 12)
    week = local("week from sunday in Europe/Paris", Unit.DAY, 7, anchor=3, name="us_week")
    raw, fives, quarters = Alternative(None, 0), Alternative("5m", 0), Alternative("15m", 0)
    made = (
        (read(five), None),
        (read(quarter, five, second=raw, why="Three windows read it, and it has a third of the rows of 5m."), five),
        (read(hour, quarter, second=fives), quarter),
        (read(ninety, quarter, second=fives), quarter),
        (read(day, quarter, second=fives), quarter),
        (read(rolling, day, second=quarters), day),
        (read(week, day, second=quarters), day),
        (read(month, day, second=quarters), day),
        (read(year, month, second=Alternative("day_in_europe_paris", 0)), month),
    )
    steps = [with_rows(step, parent) for step, parent in made]
    total = sum(float(step.cost.total) for step in steps)
    return planned(
        *steps, cost_model="batch", unshared=total * 3.12, paper_1=total * 1.14, paper_3=total * 1.08,
        lower_bound=total * 0.996, period_s=730 * DAY,
        notes=(
            "3,000,000 rows a day and 500 distinct keys were assumed; say what you know with --rows-per-day",
            "Paris is at least 15 minutes round for every instant between 1970 and 2100.",
        ),
    )  # fmt: skip


def chain(count: int) -> Plan:
    """Each tier reads the one before: as deep as a plan can be, over a period of many digits."""
    period = 7 * 2**200 * 3**40
    tiers = [fixed(f"{2**power}s", 2**power) for power in range(count)]
    costs = [period // 2 ** (power - 1) if power else period for power in range(count)]
    steps = [read(tiers[0], cost=period)]
    steps += [
        read(tier, parent, cost=cost, second=Alternative(None, period), why="It halves what is read.")
        for parent, tier, cost in zip(tiers, tiers[1:], costs[1:], strict=False)
    ]
    return planned(*steps, unshared=period * count, paper_1=period * 3, paper_3=period * 3, period_s=period)


def star(count: int) -> Plan:
    """Nothing shared among many."""
    return grown([(0, number + 2, 3) for number in range(count)])


def grown(choices: Iterable[tuple[int, int, int]], *, names: Iterable[str] = ()) -> Plan:
    """A plan grown tier by tier: which earlier tier each one reads, how many times as long it is, and of which kind."""
    shape = tuple(choices)
    parents = [(chosen - 1) % number if chosen and number else None for number, (chosen, _, _) in enumerate(shape)]
    tiers: list[Tier] = []
    steps: list[Step] = []
    own_names = iter(names)
    for number, (place, (_, times, kind)) in enumerate(zip(parents, shape, strict=True)):
        parent = None if place is None else tiers[place]
        length = min(_length(parent) * times, LONGEST)
        tier = _any_tier(next(own_names, f"tier_{number}"), length, kind, is_read=number in parents)
        tiers.append(tier)
        second = Alternative(tiers[0].name, number) if number else None
        steps.append(with_rows(read(tier, parent, second=second), parent))
    total = sum(float(step.cost.total) for step in steps)
    return planned(
        *steps, cost_model="batch", unshared=total * 2.7, paper_1=total * 1.9, paper_3=total * 1.4,
        lower_bound=total * 0.97, period_s=730 * DAY,
    )  # fmt: skip


def _any_tier(name: str, length: int, kind: int, *, is_read: bool) -> Tier:
    """Only what is read may be a helper, and hopping windows only what is not."""
    match kind, is_read:
        case 0, True:
            return helper(name, length)
        case 1, True:
            return mixed(name, (length, 0), (length * 3, length // 2))
        case 2, False if length % 2 == 0:
            return fixed(f"{length}s every {length // 2}s", length, length // 2, name=name)
        case _:
            return fixed(f"{length}s", length, name=name)


def _length(parent: Tier | None) -> int:
    if parent is None:
        return 10
    return parent.range_s or parent.needs.classes[-1][0]


Choice = tuple[int, int, int]
CHOICES = strategies.tuples(strategies.integers(0, 60), strategies.integers(2, 12), strategies.integers(0, 6))
SHAPES = strategies.lists(CHOICES, min_size=1, max_size=40)
PLANS = SHAPES.map(grown)


def with_names(shape: list[Choice], names: list[str]) -> Plan:
    return grown(shape, names=names)


ANY_NAMES = strategies.lists(strategies.text(min_size=1, max_size=60), min_size=40, max_size=40, unique=True)
PLANS_WITH_ANY_NAMES = strategies.builds(with_names, SHAPES, ANY_NAMES)
