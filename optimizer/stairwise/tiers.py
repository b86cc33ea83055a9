"""What a plan is made of: tiers, and the ways in which one tier can be computed from another.

A tier is a periodic set of edges with a table behind it. Everything that decides whether one tier can be read by
another is a fact about edges, so the facts are worked out once, when the tier is built:

* ``needs`` and ``strays``: the instants at which the tier's windows begin or end. A parent must cut time at each of
  them. Calendar edges move with the zone's offset; their ``needs`` hold every residue that any offset in force within
  the span of the data gives, and ``strays`` the instants at which a clock jumped over an edge.
* ``local``: the same edges counted in local days and months, by which calendar windows of one zone nest.
* ``provides``: the edges that the tier's own slices are guaranteed to have; empty unless its windows tile the line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from typing import assert_never

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.factor_windows import is_covered, nests_in
from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.windowing import last_begun, windows_touching
from stairwise.zones import offsets

DAY = 86_400
MONTH = 2_629_746  # the mean Gregorian month in seconds: 146,097 days / 4,800 months
NO_EDGES = EdgeSet()
EVERY = EdgeSet.of((1, 0))


class Kind(Enum):
    """Who wants a tier: the user, or only the planner."""

    DECLARED = "declared"
    FACTOR = "factor"
    COMPOSITE = "composite"


class How(Enum):
    """How a tier is computed from what it reads."""

    RAW = "from raw rows"
    DISJOINT = "merge disjoint"
    OVERLAPPING = "merge overlapping"
    EQUAL_RANGE = "keep every k-th window"
    VALUES = "merge value counts"


@dataclass(frozen=True, slots=True)
class Horizon:
    """The span of time for which a plan must hold: ``[start, end)`` in epoch seconds.

    Calendar edges depend on the zone's past, so what can be cut from what is decided for the windows that touch this
    span, and said.
    """

    start: int = 0
    end: int = 4_102_444_800  # 2100-01-01T00:00:00Z

    def __post_init__(self) -> None:
        """Refuse a span that is none."""
        if self.start >= self.end:
            raise PlanError(f"horizon from {self.start} to {self.end}: it ends before it begins.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEdges:
    """Edges counted in local days and months since January 1970, in one zone, all of them ``offset`` seconds later."""

    zone: str
    offset: int
    days: EdgeSet = NO_EDGES
    months: EdgeSet = NO_EDGES

    def nests_in(self, finer: LocalEdges) -> bool:
        """Whether each of these edges is an edge of ``finer`` too; every month begins with a day.

        >>> day = LocalEdges(zone="Europe/Paris", offset=0, days=EdgeSet.of((1, 0)))
        >>> week = LocalEdges(zone="Europe/Paris", offset=0, days=EdgeSet.of((7, 4)))
        >>> month = LocalEdges(zone="Europe/Paris", offset=0, months=EdgeSet.of((1, 0)))
        >>> month.nests_in(day), week.nests_in(day), month.nests_in(week)
        (True, True, False)
        """
        if self.zone != finer.zone:
            return False
        if finer.days == EVERY:
            return (self.offset - finer.offset) % DAY == 0
        return self.offset == finer.offset and self.days <= finer.days and self.months <= finer.months

    def holds_any(self, days: range) -> bool:
        """Whether one of these days begins with an edge."""
        return any(
            day in self.days or (Unit.MONTH.first_day(month := Unit.MONTH.holding(day)) == day and month in self.months)
            for day in days
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A table of the plan: its windows, and what is known of its edges.

    Attributes:
        text: The window as the user wrote it; empty for a composite tier.
        window: The windows; None for a composite tier, which has slices between neighbouring edges.
        range_s: Seconds that one window lasts, on average for calendars; None for a composite tier.
        slide_s: Seconds between two windows, likewise.
        keeps_values: Whether its rows hold each value with its count, for holistic aggregates, instead of partials.
        rate: Windows per second.
    """

    name: str
    kind: Kind
    text: str
    window: Window | None
    needs: EdgeSet
    provides: EdgeSet
    local: LocalEdges | None = None
    strays: tuple[int, ...] = ()
    range_s: int | None = None
    slide_s: int | None = None
    keeps_values: bool = False
    rate: Fraction = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Work out the rate once; the search asks for it often."""
        rate = self.needs.rate() if self.slide_s is None else Fraction(1, self.slide_s)
        if not rate:
            raise PlanError(f"tier '{self.name}': it has no edges, so it never ends a slice.")
        object.__setattr__(self, "rate", rate)

    def __hash__(self) -> int:
        """Quick, for tiers are looked up at every arc; those that differ otherwise mostly differ by name."""
        return hash(self.name)

    @property
    def tiles(self) -> bool:
        """Whether the tier's windows cover the line without overlap, so that others can be assembled from them."""
        return self.window is None or self.window.is_tumbling


def declared_tier(name: str, text: str, window: Window, horizon: Horizon) -> Tier:
    """The tier of a window that the user asked for.

    >>> hour = declared_tier("1h", "1h", FixedWindow(3_600, 3_600), Horizon())
    >>> from stairwise.window_text import parse_window
    >>> day = parse_window("day in Europe/Paris")
    >>> since_1970, since_1900 = (Horizon(start) for start in (0, -2_208_988_800))
    >>> [reads(declared_tier("day", "", day, since), hour, Sharing.DISJOINT) for since in (since_1970, since_1900)]
    [<How.DISJOINT: 'merge disjoint'>, None]

    (Until 1911 Paris had its own noon.)
    """
    return _tier(name, Kind.DECLARED, text, window, horizon)


def factor_tier(name: str, window: FixedWindow, *, keeps_values: bool = False) -> Tier:
    """The tier of a window that nobody asked for."""
    return _tier(name, Kind.FACTOR, str(window), window, Horizon(), keeps_values=keeps_values)


def composite_tier(name: str, edges: EdgeSet, *, keeps_values: bool = False) -> Tier:
    """A tier that cuts time at a union of edges; its slices differ in length."""
    return Tier(
        name=name, kind=Kind.COMPOSITE, text="", window=None, needs=edges, provides=edges, keeps_values=keeps_values
    )


def _tier(name: str, kind: Kind, text: str, window: Window, horizon: Horizon, *, keeps_values: bool = False) -> Tier:
    edges = _edges(window, horizon)
    range_s, slide_s = _mean_seconds(window)
    return Tier(
        name=name, kind=kind, text=text, window=window,
        needs=edges.residues, provides=edges.residues if window.is_tumbling and edges.is_exact else NO_EDGES,
        local=edges.local, strays=edges.strays, range_s=range_s, slide_s=slide_s,
        keeps_values=keeps_values,
    )  # fmt: skip


def _mean_seconds(window: Window) -> tuple[int, int]:
    """The mean range and slide."""
    match window:
        case FixedWindow():
            return window.range, window.slide
        case CalendarWindow():
            return _length(window.range_unit, window.range_count), _length(window.step.unit, window.step.count)
        case CumulateWindow():
            (period, _), (step, _) = _mean_seconds(window.period), _mean_seconds(window.step)
            return (period + step) // 2, step
        case _:
            assert_never(window)


def _length(unit: Unit, count: int) -> int:
    return count * (DAY if unit is Unit.DAY else MONTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edges:
    """Where windows begin and end: residue classes, instants outside of them, and whether each residue is an edge."""

    residues: EdgeSet
    strays: tuple[int, ...] = ()
    local: LocalEdges | None = None
    is_exact: bool


def _edges(window: Window, horizon: Horizon) -> _Edges:
    match window:
        case FixedWindow(range=length, slide=slide, origin=origin):
            return _Edges(residues=EdgeSet.of((slide, origin), (slide, origin + length)), is_exact=True)
        case CalendarWindow():
            return _calendar_edges(window, horizon)
        case CumulateWindow(period=period, step=step):
            coarse, fine = _edges(period, horizon), _edges(step, horizon)
            return _Edges(
                residues=coarse.residues | fine.residues,
                strays=tuple(sorted({*coarse.strays, *fine.strays})),
                local=_joined(coarse.local, fine.local),
                is_exact=False,
            )
        case _:
            assert_never(window)


def _joined(coarse: LocalEdges | None, fine: LocalEdges | None) -> LocalEdges | None:
    """The local edges of both, if they can be written as one."""
    if coarse is None or fine is None:
        return None
    if coarse.nests_in(fine):
        return fine
    if coarse.offset != fine.offset:
        return None
    return replace(coarse, days=coarse.days | fine.days, months=coarse.months | fine.months)


def _calendar_edges(window: CalendarWindow, horizon: Horizon) -> _Edges:
    """The edges of all windows that touch the horizon; one second more, to see a transition at the first of them."""
    local = _local_edges(window)
    first = next(windows_touching(window, horizon.start, horizon.start + 1))
    last = last_begun(window, horizon.end - 1)
    spans = offsets(window.zone, first.start - 1, last.end + 1)
    distinct = sorted({offset for _, offset in spans})
    if len(distinct) == 1 and local.months == NO_EDGES:
        shift = window.offset - distinct[0]
        classes = [(modulus * DAY, residue * DAY + shift) for modulus, residue in local.days.classes]
        return _Edges(residues=EdgeSet.of(*classes), local=local, is_exact=True)
    hull = EdgeSet.of(*((DAY, window.offset - offset) for offset in distinct))
    strays = tuple(
        instant
        for (_, before), (instant, after) in pairwise(spans)
        if instant not in hull and local.holds_any(_days_jumped(instant - window.offset, before, after))
    )
    return _Edges(residues=hull, strays=strays, local=local, is_exact=False)


def _days_jumped(instant: int, before: int, after: int) -> range:
    """The local days whose beginnings a clock jumps over when its offset changes; none if it is set back."""
    return range((instant + before) // DAY + 1, (instant + after) // DAY + 1)


def _local_edges(window: CalendarWindow) -> LocalEdges:
    """Begins at each step, ends a whole range later; which day that is, for months after a day, months decide."""
    step = window.step
    if step.unit is not window.range_unit:
        return LocalEdges(zone=window.zone, offset=window.offset, days=EVERY)
    return _counted(window, EdgeSet.of((step.count, step.anchor), (step.count, step.anchor + window.range_count)))


def _begins(window: CalendarWindow) -> LocalEdges:
    return _counted(window, EdgeSet.of((window.step.count, window.step.anchor)))


def _counted(window: CalendarWindow, edges: EdgeSet) -> LocalEdges:
    """Edges that are counted in the unit of the window's step."""
    match window.step.unit:
        case Unit.DAY:
            return LocalEdges(zone=window.zone, offset=window.offset, days=edges)
        case Unit.MONTH:
            return LocalEdges(zone=window.zone, offset=window.offset, months=edges)
        case _:
            assert_never(window.step.unit)


def reads(child: Tier, parent: Tier, semantics: Sharing) -> How | None:
    """How ``child`` can be computed from ``parent``; None if it cannot, or is not known to.

    >>> child, parent = (factor_tier("", FixedWindow(length, 20)) for length in (60, 40))
    >>> [reads(child, parent, semantics) for semantics in (Sharing.DISJOINT, Sharing.OVERLAPPING)]
    [None, <How.OVERLAPPING: 'merge overlapping'>]
    """
    if child.keeps_values == parent.keeps_values and _is_every_kth(child.window, parent.window):
        return How.EQUAL_RANGE
    if parent.tiles and _is_cut_by(child, parent):
        match semantics:
            case Sharing.DISJOINT | Sharing.OVERLAPPING:
                return How.DISJOINT
            case Sharing.HOLISTIC:
                return How.VALUES if parent.keeps_values else None
            case _:
                assert_never(semantics)
    if semantics is Sharing.OVERLAPPING and _is_covered(child.window, parent.window):
        return How.OVERLAPPING
    return None


def _is_covered(child: Window | None, parent: Window | None) -> bool:
    match child, parent:
        case FixedWindow(), FixedWindow():
            return is_covered(child, parent)
        case _:
            return False


def _is_cut_by(child: Tier, parent: Tier) -> bool:
    if child.needs <= parent.provides:
        return all(stray in parent.provides for stray in child.strays)
    return child.local is not None and parent.local is not None and child.local.nests_in(parent.local)


def _is_every_kth(child: Window | None, parent: Window | None) -> bool:
    """Equal ranges and nested begins: each result of the child is some result of the parent."""
    match child, parent:
        case FixedWindow(), FixedWindow():
            return child.range == parent.range and nests_in(child, parent)
        case CalendarWindow(), CalendarWindow():
            is_as_long = (child.range_unit, child.range_count) == (parent.range_unit, parent.range_count)
            return is_as_long and child.offset == parent.offset and _begins(child).nests_in(_begins(parent))
        case CumulateWindow(), CumulateWindow():
            return child.period == parent.period and _steps_nest(child.step, parent.step)
        case _:
            return False


def _steps_nest(child: FixedWindow | CalendarWindow, parent: FixedWindow | CalendarWindow) -> bool:
    match child, parent:
        case FixedWindow(), FixedWindow():
            return nests_in(child, parent)
        case CalendarWindow(), CalendarWindow():
            return _begins(child).nests_in(_begins(parent))
        case _:
            return False
