"""What must hold between the parts of a declaration, each of which is legal by itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from stairwise.declared import Catalog, DeclaredWindow, Late, Layout, Source
from stairwise.errors import RollupError
from stairwise.instant import parse_instant
from stairwise.names import described
from stairwise.span import Lookback, Span
from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow, Unit, Window
from stairwise.zones import DAY_SECONDS, fixed_offset, todays_name

FIRST_INSTANT, LAST_INSTANT = parse_instant("0001-01-01"), parse_instant("9999-12-31T23:59:59Z")

# A window without the words for it; of a window to date its period and its steps.
Meaning = tuple[FixedWindow | CalendarWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A part that clashes with one before it.

    Attributes:
        section: Where it stands.
        index: How many parts stand before it there.
        error: Why the two cannot be together.
    """

    section: str
    index: int
    error: RollupError


def clashes(
    *,
    keys: Sequence[str],
    aggregates: Sequence[str],
    windows: Sequence[DeclaredWindow],
    lookback: Sequence[Lookback],
    layout: Layout,
) -> Iterator[Clash]:
    """Yield every clash within the sections of a declaration."""
    yield from name_clashes(keys, aggregates, layout)
    yield from window_clashes(windows)
    yield from lookback_clashes(lookback)


def name_clashes(keys: Sequence[str], aggregates: Sequence[str], layout: Layout) -> Iterator[Clash]:
    """Yield each name that two columns of a table would have, without regard to case.

    >>> [str(clash.error) for clash in name_clashes(["Zone"], ["zone"], Layout.TABLES)]
    ["aggregate 'zone': key 'Zone' has that name already (case makes no difference). Hint: rename it."]
    """
    taken: dict[str, str] = {}
    for section, kind, names in (("keys", "key", keys), ("aggregates", "aggregate", aggregates)):
        for index, name in enumerate(names):
            message, hint = "", "rename it."
            if layout is Layout.ONE_TABLE and name.lower() == "window":
                message = (
                    f"{kind} {name!r}: in the layout one_table, a column of that name says which window a row is of."
                )
            elif other := taken.get(name.casefold()):
                case = "" if other.endswith(repr(name)) else " (case makes no difference)"
                message = f"{kind} {name!r}: {other} has that name already{case}."
                hint = "delete one of the two." if kind == "key" else hint
            if message:
                yield Clash(section=section, index=index, error=RollupError(message, hint=hint, name=name))
            taken.setdefault(name.casefold(), f"{kind} {name!r}")


def window_clashes(windows: Sequence[DeclaredWindow]) -> Iterator[Clash]:
    """Yield each window that means what one before it means, or whose table has the name of another's.

    >>> [clash.error.message for clash in window_clashes([DeclaredWindow.parse(text) for text in ("90m", "1h30m")])]
    ["window '1h30m': the same as '90m'."]
    """
    meanings: dict[Meaning, DeclaredWindow] = {}
    names: dict[str, DeclaredWindow] = {}
    # The database's list of former names is opened only where two names might be one.
    has_zones = len({zone for declared in windows for zone in _zones(declared.window)}) > 1
    for index, declared in enumerate(windows):
        window = _in_todays_zone(declared.window) if has_zones else declared.window
        same = meanings.setdefault(meaning(window), declared)
        namesake = names.setdefault(declared.name.lower(), declared)
        if same is not declared:
            message = f"window {declared.text!r}: the same as {same.text!r}."
            yield Clash(
                section="windows",
                index=index,
                error=RollupError(message, hint="keep one of the two.", text=declared.text),
            )
        elif namesake is not declared:
            message = f"window {declared.text!r}: its table is called {declared.name}, like that of {namesake.text!r}."
            hint = f"name one of them: {{window: {declared.text}, name: NAME}}."
            yield Clash(section="windows", index=index, error=RollupError(message, hint=hint, text=declared.text))


def meaning(window: Window) -> Meaning:
    """Return what windows that are the same at every instant have in common, fixed or of a calendar.

    Days of UTC, and of zones whose clocks never change, are fixed lengths; windows to date that grow by their whole
    period are that period.

    >>> from stairwise.window_text import parse_window
    >>> meaning(parse_window("week to date every day")) == meaning(parse_window("1w to date every 1d"))
    True
    """
    if isinstance(window, CumulateWindow):
        period, step = _in_seconds(window.period), _in_seconds(window.step)
        return (period,) if period == step else (period, step)
    return (_in_seconds(window),)


def _in_seconds(window: FixedWindow | CalendarWindow) -> FixedWindow | CalendarWindow:
    """The window of fixed length that lies where this one does, if there is one."""
    if isinstance(window, FixedWindow) or not window.range_unit is window.step.unit is Unit.DAY:
        return window
    ahead = fixed_offset(window.zone)
    if ahead is None:
        return window
    slide = window.step.count * DAY_SECONDS
    origin = window.step.anchor * DAY_SECONDS + window.offset - ahead
    return FixedWindow(window.range_count * DAY_SECONDS, slide, origin % slide)


def _zones(window: Window) -> frozenset[str]:
    match window:
        case FixedWindow():
            return frozenset()
        case CalendarWindow():
            return frozenset([window.zone])
        case CumulateWindow():
            return window.zones()
        case _:
            assert_never(window)


def _in_todays_zone(window: Window) -> Window:
    """The same window in the zone that the former name of one stands for."""
    if isinstance(window, CumulateWindow):
        return replace(window, period=_part_in_todays_zone(window.period), step=_part_in_todays_zone(window.step))
    return _part_in_todays_zone(window)


def _part_in_todays_zone(window: FixedWindow | CalendarWindow) -> FixedWindow | CalendarWindow:
    return window if isinstance(window, FixedWindow) else replace(window, zone=todays_name(window.zone))


def lookback_clashes(lookback: Sequence[Lookback]) -> Iterator[Clash]:
    """Yield each lookback that is due as often as one before it."""
    for index, each in enumerate(lookback):
        if each.cadence in [other.cadence for other in lookback[:index]]:
            message = f"lookback '{each}': another one is due {each.cadence.value} already."
            yield Clash(section="lookback", index=index, error=RollupError(message, hint="keep the longer one."))


def check_lateness(late: Late, lateness: Span | None) -> None:
    """Refuse to ignore rows that no limit makes late."""
    if late is Late.IGNORE and lateness is None:
        raise RollupError(
            "late is ignore, but lateness is any: no row is ever too late.",
            hint="give lateness a span such as 7 days, or remove late.",
        )


def check_start(start: int | None) -> None:
    """Refuse an instant that no date can be written of."""
    if start is not None and not FIRST_INSTANT <= start <= LAST_INSTANT:
        raise RollupError(
            f"start is {described(start)}, which is not in the years 1 to 9999.",
            hint="count the seconds since 1970, or give it as text, such as '2024-01-31'.",
        )


def check_target(source: Source, target: str | Catalog, windows: Sequence[DeclaredWindow], layout: Layout) -> None:
    """Refuse a table of ours that would lie in, around or on the source's: each would destroy the other.

    >>> trips = Source(path="lake/trips", time="pickup_at")
    >>> check_target(trips, "./lake/trips", (DeclaredWindow.parse("5m"),), Layout.TABLES)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stairwise.errors.RollupError: target './lake/trips': table lake/trips/5m and the source lake/trips ...
    """
    if isinstance(target, Catalog):
        names = [f"{target.schema}.{declared.name}" for declared in windows]
        taken = [name for name in names if source.table is not None and name.lower() == source.table.lower()]
        if taken:
            raise RollupError(f"target {target.schema}: table {taken[0]} is the source.", hint="choose another schema.")
        return
    root = posixpath.normpath(target)
    ours = [root] if layout is Layout.ONE_TABLE else [posixpath.join(root, declared.name) for declared in windows]
    theirs = None if source.path is None else posixpath.normpath(source.path)
    for table in ours:
        if theirs is not None and (_holds(theirs, table) or _holds(table, theirs)):
            raise RollupError(
                f"target {target!r}: table {table} and the source {theirs} lie within each other.",
                hint="choose a directory beside the source's.",
            )


def _holds(directory: str, path: str) -> bool:
    return f"{path}/".startswith(f"{directory}/")
