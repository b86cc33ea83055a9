"""The words and numbers of a plan, as people read them: what the text and the picture have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from stairwise.aggregate import Sharing
from stairwise.duration import Duration
from stairwise.final_aggregation import Technique
from stairwise.network import Number
from stairwise.options import Algorithm, TiersAllowed
from stairwise.plan import Pass, Plan, Step
from stairwise.quantity import DAY, beside, counted, length_of_time, percent, quantity
from stairwise.tiers import How, Kind, Tier
from stairwise.window import CalendarWindow, FixedWindow

NO_BREAK = "\u00a0"
_WORDS = re.compile("[a-z0-9]+")
_BEHIND_NUMBER = re.compile(r"(?<=\d) (?=[%a-z])")
LISTED = 10  # so many names are read before they become a number
LONG_PERIOD = 1_000_000_000  # about 32 years: beyond it a sum over the period says nothing to anybody


@dataclass(frozen=True, slots=True)
class Prices:
    """How the costs of one plan are written: in its model's unit, over a span of time that people can imagine.

    Attributes:
        unit: What stands behind each number.
        explanation: What that means, as a sentence without its dot.
        scale: Factor from the plan's numbers to the written ones.
    """

    unit: str
    explanation: str
    scale: Fraction

    @classmethod
    def of(cls, plan: Plan) -> Prices:
        """The prices of this plan's cost model."""
        period = plan.totals.period_s
        if plan.totals.unit == "s":
            machine = f"seconds of a machine with 2 cores for {length_of_time(period)} of events"
            halves = "one half loaded at once and the other by hourly runs, commits of tables included"
            return cls("s", f"{machine}, {halves}", Fraction(1))
        reads, free = "rows and partial results read", "in the model of the papers writing is free"
        if period <= LONG_PERIOD:
            return cls("reads", f"{reads} for {length_of_time(period)} of events; {free}", Fraction(1))
        return cls("reads/day", f"{reads} for a day of events, on average; {free}", Fraction(DAY, period))

    def number(self, cost: Number) -> str:
        """The cost without its unit."""
        return quantity(cost if self.scale == 1 else Fraction(cost) * self.scale)

    def text(self, cost: Number) -> str:
        """The cost with its unit."""
        number = self.number(cost)
        return f"{number} {self.unit.replace('reads', 'read') if number == '1' else self.unit}"


def source(plan: Plan) -> str:
    """Where the raw rows are, as far as a name says it; empty if the plan is for windows alone."""
    if plan.declaration is None:
        return ""
    place = plan.declaration.source
    return printable(place.table or place.path or "a query")


def label(tier: Tier) -> str:
    """What a tier is called where people read: the window as declared, and its own name if the user gave one."""
    text = f"{tier.text or tier.name}{' values' if tier.keeps_values else ''}"
    is_own_name = tier.kind is Kind.DECLARED and _WORDS.findall(text.lower()) != _WORDS.findall(tier.name.lower())
    return printable(f"{tier.name}: {text}" if is_own_name else text)


def one_pass(plan: Plan, together: Pass) -> str:
    """Which tiers a query makes, as a sentence."""
    names = [label(step.tier) for step in together.steps]
    if len(names) > LISTED:
        names[LISTED - 1 :] = [f"{len(names) - LISTED + 1} more"]
    listed = f"{', '.join(names[:-1])} and {names[-1]} are" if names[1:] else f"{names[0]} is"
    return f"{listed} made by one query, which passes over the rows of {parent_name(plan, together.reads)} once."


def printable(text: str) -> str:
    r"""The text on one line, safe for terminals and XML: names are the user's.

    >>> printable("day\n\x1b[31mred")
    'day��[31mred'
    """
    return "".join(char if char.isprintable() else "�" for char in text)


def shortened(text: str, room: float, measure: Callable[[str], float] | None = None) -> str:
    """The text in at most that much room, cut in its middle, for names differ at either end.

    >>> shortened("28 days every day in Europe/Paris", 20), shortened("5m", 20)
    ('28 days eve…pe/Paris', '5m')
    """
    width = measure or columns
    if width(text) <= room:
        return text
    room -= width("…")
    head = _beginning(text, room * 0.6, width)
    tail = _beginning(text[::-1], room - width(head), width)[::-1]
    return f"{head}…{tail}"


def _beginning(text: str, room: float, width: Callable[[str], float]) -> str:
    return next(text[:end] for end in range(len(text), -1, -1) if width(text[:end]) <= room)


def kept_together(text: str) -> str:
    """The text with spaces that do not break between each number and its unit."""
    return _BEHIND_NUMBER.sub(NO_BREAK, text)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes.

    >>> columns("5m"), columns("5分")
    (2, 3)
    """
    return sum(_column_count(char) for char in text)


def _column_count(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def way(child: Tier, parent: Tier | None, how: How) -> str:
    """How one row of a tier comes about, in words that need no manual."""
    if parent is None:
        return "scans raw rows"
    match how:
        case How.RAW:
            return "scans raw rows"
        case How.DISJOINT:
            return f"merges {_slices(child, parent)}"
        case How.OVERLAPPING:
            return "merges overlapping windows"
        case How.EQUAL_RANGE:
            return _every_kth(child, parent)
        case How.VALUES:
            return f"adds up values of {_slices(child, parent)}"
        case _:
            assert_never(how)


def _slices(child: Tier, parent: Tier) -> str:
    """How many rows of the parent make one of the child; calendars and composite tiers only have a mean."""
    seconds = 1 / child.rate if child.range_s is None else Fraction(child.range_s)
    count = seconds * parent.rate
    if _is_regular(child, parent) and count.denominator == 1:
        return counted(count.numerator, "slice")
    return f"about {float(count):.1f} slices" if count < 10 else f"about {quantity(round(count))} slices"


def _is_regular(child: Tier, parent: Tier) -> bool:
    """Whether each window has the same number of slices: all are of fixed length, or all are days, or all months."""
    match child.window, parent.window:
        case FixedWindow(), FixedWindow():
            return True
        case CalendarWindow(range_unit=unit), CalendarWindow(range_unit=parent_unit):
            return unit is parent_unit
        case _:
            return False


def _every_kth(child: Tier, parent: Tier) -> str:
    step = parent.rate / child.rate
    if step.denominator != 1:
        return "keeps some of its windows"
    ordinal = {2: "2nd", 3: "3rd"}.get(step.numerator, f"{step.numerator:,}th")
    return f"keeps every {ordinal} window"


def cuts(tier: Tier, at_most: int = 4) -> str:
    """Where a composite tier cuts time, as a list of steps; the first few of them.

    >>> from stairwise.edges import EdgeSet
    >>> from stairwise.tiers import composite_tier
    >>> cuts(composite_tier("mixed", EdgeSet.of((20, 0), (30, 20), (45, 0))), at_most=2)
    '20s, 30s+20s and 1 more'
    """
    classes = tier.needs.classes
    steps = [f"{Duration(step)}+{Duration(rest)}" if rest else str(Duration(step)) for step, rest in classes]
    if len(steps) > at_most:
        steps[at_most:] = [f"{len(steps) - at_most:,} more"]
    return steps[0] if len(steps) == 1 else f"{', '.join(steps[:-1])} and {steps[-1]}"


def technique(final: Technique) -> tuple[str, str]:
    """What a way to put overlapping windows together is called, and what it does."""
    match final:
        case Technique.DIRECT:
            return "direct", "each slice is a window already."
        case Technique.NAIVE:
            return "naive", "each window merges all its slices anew."
        case Technique.RUNNING:
            return "running", "a running total: the slice that enters is added, the one that leaves subtracted."
        case Technique.SLICK_DEQUE:
            return "SlickDeque", "only slices that may still win are kept; most lose at once."
        case Technique.VAN_HERK:
            return "van Herk", "running results to the left and the right of block borders; a window joins two."
        case Technique.TWO_STACKS:
            return "two stacks", "slices enter one stack and leave by another; each is merged about three times."
        case Technique.FLAT_FAT:
            return "FlatFAT", "a binary tree of slices; a window merges a few of its nodes."
        case _:
            assert_never(final)


def summary(plan: Plan, prices: Prices) -> str:
    """How many tiers for what price, without a dot."""
    helpers = sum(step.tier.kind is not Kind.DECLARED for step in plan.steps)
    tiers = [counted(len(plan.steps) - helpers, "window"), *([counted(helpers, "helper tier")] if helpers else [])]
    return f"{' and '.join(tiers)} for {prices.text(plan.totals.total)}"


def scope(plan: Plan) -> str:
    """Among which plans the bound holds: a word for it where not every tier was allowed."""
    return "" if plan.search.tiers_allowed is TiersAllowed.COMPOSITE else " over the allowed tiers"


def bound(plan: Plan, prices: Prices) -> str:
    """How good the plan is known to be, as a sentence: a rough bound says nothing of the plan."""
    total, lowest = Fraction(plan.totals.total), Fraction(plan.totals.lower_bound)
    limit = f"no plan{scope(plan)} costs less than {prices.text(plan.totals.lower_bound)}"
    if plan.totals.is_proven_optimal or lowest >= total:
        return f"Proven optimal{scope(plan)}."
    return f"Not proven optimal: {limit}, {percent(1 - lowest / total)} below this one."


def verdict(plan: Plan, prices: Prices) -> str:
    """What sharing brings, in one sentence."""
    if len(plan.steps) == 1:
        return "There is one window, and it is computed from the raw rows: nothing to share."
    if plan.search.algorithm is Algorithm.UNSHARED:
        return "No tier is shared, as was asked: each window is computed from the raw rows."
    if all(step.reads is None for step in plan.steps):
        return "No tier is shared: computing each window from the raw rows is cheapest."
    unshared, total = plan.totals.unshared, plan.totals.total
    without = f"each window from the raw rows would take {prices.text(unshared)}"
    if unshared <= total:
        return f"Windows share tiers, but save nothing by it: {without}."
    if not total:
        return f"Sharing tiers makes it free: {without}."
    ratio = Fraction(unshared) / Fraction(total)
    if ratio >= 2:
        times = quantity(round(ratio)) if ratio >= 100 else f"{float(ratio):.1f}"
        return f"Sharing tiers makes it {times} times cheaper: {without}."
    return f"Sharing tiers saves {percent(1 - 1 / ratio)}: {without}."


def sharing_meaning(sharing: Sharing) -> str:
    """What the aggregates of a plan allow, without a dot."""
    match sharing:
        case Sharing.DISJOINT:
            return "disjoint: each event has to count once, so only results without common events merge"
        case Sharing.OVERLAPPING:
            return "overlapping: an event that counts twice does no harm, as in a minimum"
        case Sharing.HOLISTIC:
            return "holistic: an exact result such as a median needs all values, and not the results of parts"
        case _:
            assert_never(sharing)


def helper_meaning(plan: Plan) -> str:
    """What a helper is; the paper's algorithm adds its own without a look at the whole."""
    if plan.search.algorithm is Algorithm.PAPER_3:
        return "a tier that nobody asked for; paper-3 adds it by the paper's rule, and it may cost more than it saves"
    return "a tier that nobody asked for: what others save by reading it is more than it costs"


def rivals(plan: Plan) -> tuple[tuple[str, Number, str], ...]:
    """The plan's own price among others: name, price, and what it is, empty for the plan; none if all are the same."""
    totals = plan.totals
    rows = (
        ("no sharing", totals.unshared, "each window from the raw rows"),
        ("paper-1", totals.paper_1, "'Factor Windows' without helpers"),
        ("paper-3", totals.paper_3, "'Factor Windows' with its helpers"),
        ("this plan", totals.total, ""),
        ("lower bound", totals.lower_bound, f"no plan{scope(plan)} costs less"),
    )
    return rows if any(beside(cost, totals.total) != "the same" for _, cost, _ in rows) else ()


def remarks(plan: Plan, step: Step) -> Iterator[str]:
    """What there is to say about a tier beside its numbers, in sentences."""
    if step.tier.kind is Kind.COMPOSITE:
        yield f"Cuts time every {cuts(step.tier)}."
    if step.tier.keeps_values:
        yield "Keeps each value with its count."
    if step.tier.kind is not Kind.DECLARED and step.why:
        yield sentence(step.why[:1].upper() + step.why[1:])
    if step.final is not None and step.final is not Technique.DIRECT:
        yield f"Its windows overlap (method: {technique(step.final)[0]})."
    if step.runner_up is not None:
        more = beside(step.runner_up.cost, step.cost.total)
        yield f"Next best: from {parent_name(plan, step.runner_up.reads)}, {more}."


def sentence(text: str) -> str:
    """The text with a dot at its end; its first letter stays, for it may be that of a name.

    >>> sentence("median: exact"), sentence("'day' begins at midnight.")
    ('median: exact.', "'day' begins at midnight.")
    """
    return text if text.endswith((".", "!", "?")) else f"{text}."


def parent_name(plan: Plan, name: str | None) -> str:
    """How a parent is called; one that was rejected need not be part of the plan."""
    if name is None:
        return "raw rows"
    tier = next((step.tier for step in plan.steps if step.tier.name == name), None)
    return printable(name) if tier is None else label(tier)
