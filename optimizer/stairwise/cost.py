"""What an arc of the hierarchy costs: the protocol that the planner asks, and the model of the papers.

A model prices one step: a tier, computed from one parent in one way. The planner only adds and compares, so any
non-negative numbers will do; exact ones stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import NamedTuple, Protocol, assert_never

from stairwise.errors import PlanError
from stairwise.network import Number
from stairwise.tiers import How, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A price with its parts kept; only the model weighs them against each other.

    Attributes:
        total: The price, in the model's unit.
        rows_read: Rows read from the parent over the model's period; None where the model does not count rows.
        rows_written: Rows of the tier itself over the same period.
        bytes_written: What those rows take.
    """

    total: Number
    rows_read: float | None = None
    rows_written: float | None = None
    bytes_written: float | None = None


class Prices(Protocol):
    """All that a search needs to know of a cost model."""

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> Sequence[Number]:
        """The costs of steps (parent, child, how) among tiers that are numbered from 1; parent 0: the raw rows."""
        ...


class DetailedPrices(Prices, Protocol):
    """Prices whose parts can be seen."""

    def detail(self, child: Tier, parent: Tier | None, how: How) -> Cost:
        """The price of computing ``child`` from ``parent`` (None: the raw rows), with its parts."""
        ...


class CostModel(DetailedPrices, Protocol):
    """Prices steps. Two exist: ``PaperModel`` here and ``BatchModel`` in its own module."""

    @property
    def name(self) -> str:
        """The word for ``--cost-model``."""
        ...

    @property
    def unit(self) -> str:
        """What one unit of cost is, for people."""
        ...

    @property
    def period_s(self) -> int:
        """The seconds of event time that a cost is for."""
        ...

    @property
    def interval_s(self) -> int:
        """The seconds of event time from one run of the schedule to the next."""
        ...

    def spread(self, *, history_s: int, schedule_s: int) -> DetailedPrices:
        """The prices for other spans of event time: so much history, filled by one run, and so much schedule after."""
        ...

    def price(self, child: Tier, parent: Tier | None, how: How) -> Number:
        """The cost of computing ``child`` from ``parent`` (None: the raw rows)."""
        ...

    def rounded(self) -> Prices:
        """The same prices up to a factor, as floats: for searching, where exact fractions are slow to compare."""
        ...

    @property
    def counts_values(self) -> bool:
        """Whether it can price tiers that keep each value with its count."""
        ...

    @property
    def pays_per_window(self) -> bool:
        """Whether computing windows that overlap costs as much as computing each of them by itself."""
        ...

    def least_scan(self) -> Number:
        """No tier that reads the raw rows, whoever invents it, costs less than this."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModel:
    """The model of Factor Windows: an instance of a window costs what it reads, and time is the lcm of the ranges.

    Attributes:
        period_s: The lcm of the declared ranges.
        eta: Events per second.

    >>> from stairwise.tiers import factor_tier
    >>> from stairwise.window import FixedWindow
    >>> ten, forty = (factor_tier(f"{length}s", FixedWindow(length, length)) for length in (10, 40))
    >>> model = PaperModel.of([ten, forty], eta=1)
    >>> model.price(ten, None, How.RAW), model.price(forty, ten, How.DISJOINT)
    (40, 4)
    """

    period_s: int
    eta: int
    _known: dict[Tier, _Facts] = field(default_factory=dict["Tier", "_Facts"], init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a period without time and a stream without events."""
        if self.period_s < 1 or self.eta < 1:
            raise PlanError(f"paper model: {self.eta} events per second over {self.period_s} s: both are at least 1.")

    @classmethod
    def of(cls, declared: Iterable[Tier], *, eta: int) -> PaperModel:
        """The model for these windows."""
        return cls(period_s=lcm(*(tier.range_s for tier in declared if tier.range_s)), eta=eta)

    @property
    def name(self) -> str:
        """See ``CostModel``."""
        return "paper"

    @property
    def unit(self) -> str:
        """See ``CostModel``."""
        return "reads"

    def rounded(self) -> Prices:
        """See ``CostModel``: prices per second of the period, which may be longer than a float can count."""
        return _RoundedPrices(exact=self)

    @property
    def interval_s(self) -> int:
        """See ``CostModel``: it knows one period only."""
        return self.period_s

    def spread(self, *, history_s: int, schedule_s: int) -> DetailedPrices:
        """See ``CostModel``: history costs what the schedule does."""
        return _SpreadPrices(exact=self, share=Fraction(history_s + schedule_s, self.period_s))

    @property
    def counts_values(self) -> bool:
        """See ``CostModel``: it knows nothing of values."""
        return False

    @property
    def pays_per_window(self) -> bool:
        """See ``CostModel``: each instance pays for what it reads."""
        return True

    def price(self, child: Tier, parent: Tier | None, how: How) -> int | Fraction:
        """Instances times what each of them reads.

        A reader of slices pays for the slices that it reads, a covered one Theorem 3's multiplier, one of equal range a
        single read. A composite tier has one slice per edge, so it reads everything once.
        """
        return self._price(self._facts(child), None if parent is None else self._facts(parent), how)

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> list[int | Fraction]:
        """See ``CostModel``."""
        facts = [self._facts(tier) for tier in tiers]
        return [
            self._price(facts[child - 1], facts[parent - 1] if parent else None, how) for parent, child, how in arcs
        ]

    def _price(self, child: _Facts, parent: _Facts | None, how: How) -> int | Fraction:
        if parent is None:
            return child.seconds * self.eta
        match how:
            case How.RAW | How.DISJOINT | How.VALUES:
                return _quotient(child.seconds * parent.edges, parent.per)
            case How.OVERLAPPING:
                (length, _), (parent_length, parent_slide) = _sizes(child.tier), _sizes(parent.tier)
                return child.instances * (1 + (length - parent_length) // parent_slide)
            case How.EQUAL_RANGE:
                _sizes(child.tier)
                return child.instances
            case _:
                assert_never(how)

    def detail(self, child: Tier, parent: Tier | None, how: How) -> Cost:
        """The price; this model knows no rows."""
        return Cost(total=self.price(child, parent, how))

    def least_scan(self) -> int:
        """See ``CostModel``: each event once."""
        return self.eta * self.period_s

    def seconds_read(self, child: Tier) -> int:
        """Event time in the windows of a period, each counted in full; at least the period, which they cover."""
        return self._facts(child).seconds

    def _facts(self, tier: Tier) -> _Facts:
        """What the model knows of a tier, worked out once: a tier stands on many arcs."""
        facts = self._known.get(tier)
        if facts is None:
            facts = self._known[tier] = self._learned(tier)
        return facts

    def _learned(self, tier: Tier) -> _Facts:
        edges, per = tier.rate.as_integer_ratio()
        if tier.range_s is None:
            return _Facts(tier=tier, instances=0, seconds=self.period_s, edges=edges, per=per)
        length, slide = _sizes(tier)
        instances = 1 + (self.period_s - length) // slide  # equation 1
        seconds = max(self.period_s, instances * length)
        return _Facts(tier=tier, instances=instances, seconds=seconds, edges=edges, per=per)


class _Facts(NamedTuple):
    """What the model knows of a tier.

    Attributes:
        tier: The tier.
        instances: Complete ones in the period.
        seconds: See ``PaperModel.seconds_read``.
        edges: How many of its slices end in ``per`` seconds.
        per: So many seconds.
    """

    tier: Tier
    instances: int
    seconds: int
    edges: int
    per: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoundedPrices:
    """The paper's prices per second, as floats."""

    exact: PaperModel

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> list[float]:
        """See ``PaperModel``."""
        period = self.exact.period_s
        seconds = [self.exact.seconds_read(tier) / period for tier in tiers]
        rates = [float(tier.rate) for tier in tiers]
        return [
            seconds[child - 1] * rates[parent - 1]
            if parent and how is How.DISJOINT
            else self._rounded(self.exact.price(tiers[child - 1], tiers[parent - 1] if parent else None, how))
            for parent, child, how in arcs
        ]

    def _rounded(self, exact: int | Fraction) -> float:
        return exact.numerator / (exact.denominator * self.exact.period_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpreadPrices:
    """The paper's prices for a share of its period, or for several periods."""

    exact: PaperModel
    share: Fraction

    def prices(self, tiers: Sequence[Tier], arcs: Iterable[tuple[int, int, How]]) -> list[Fraction]:
        """See ``PaperModel``."""
        return [self.share * price for price in self.exact.prices(tiers, arcs)]

    def detail(self, child: Tier, parent: Tier | None, how: How) -> Cost:
        """See ``PaperModel``."""
        return Cost(total=self.share * self.exact.price(child, parent, how))


def _sizes(tier: Tier) -> tuple[int, int]:
    """Range and slide."""
    if tier.range_s is None or tier.slide_s is None:
        raise PlanError(f"tier '{tier.name}': its slices differ in length, so they are neither instances nor overlap.")
    return tier.range_s, tier.slide_s


def _quotient(number: int, divisor: int) -> int | Fraction:
    """An int where the quotient is one: the search is faster on them."""
    whole, rest = divmod(number, divisor)
    return Fraction(number, divisor) if rest else whole
