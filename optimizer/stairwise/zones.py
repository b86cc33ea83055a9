"""Local time: what the wall clocks of an IANA zone show, in whole seconds.

Instants are seconds since 1970-01-01T00:00Z; local times are seconds since 1970-01-01 00:00 on the zone's wall clock.
Both are plain integers, so that nothing is rounded, and nothing before 1970 or before standard time is special. The
zone database is read through `zoneinfo` alone.

Limits: before the year 1 a zone keeps the offset it had then (local mean time); from 9999-12-20 on, its last one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from stairwise.errors import ZoneError
from stairwise.names import nearest

DAY_SECONDS = 86_400

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of wall clock seconds
_FIRST_LOCAL = int((datetime(1, 1, 2) - _EPOCH).total_seconds())  # noqa: DTZ001
_LAST_LOCAL = int((datetime(9999, 12, 20) - _EPOCH).total_seconds())  # noqa: DTZ001
# No zone changes twice within 3.9 days (Africa/Freetown, 1939), so that no change hides between two samples.
_STEP = 3 * DAY_SECONDS
_SAMPLING = timedelta(seconds=_STEP)
_ERA = 1_024 * _STEP
_QUARTER_HOUR = 900
# CET, PST, AEDT and their like.
_ABBREVIATION = re.compile("[A-Z]{1,3}[SD]?T|MSK", re.IGNORECASE)
# Wall clocks differ from UTC by less than a day.
_REACH = 2 * DAY_SECONDS


def checked_zone(name: str) -> str:
    """Returns the zone's name, ``UTC`` for every name of UTC, once the zone database knows it.

    >>> checked_zone("Etc/UTC"), checked_zone("Asia/Kathmandu")
    ('UTC', 'Asia/Kathmandu')

    Raises:
        ZoneError: The database has no such zone; the hint names the nearest one.
    """
    try:
        # Lower-case files such as `localtime` and `right/UTC` beside the database are not IANA names.
        zone = _clock(name) if name[:1].isupper() else None
    except (ValueError, OSError, KeyError):
        zone = None
    if zone is None:
        raise ZoneError(f"zone '{name}': the zone database has no zone of that name.", hint=_hint(name), zone=name)
    return "UTC" if zone.utcoffset(None) == timedelta(0) else name


def todays_name(zone: str) -> str:
    """Returns the name that the zone database now uses for a zone that it knows by a former one too.

    Two places that agree today stay two, as Europe/Oslo and Europe/Berlin do: a country's own zone may part again.

    >>> todays_name("Asia/Calcutta"), todays_name("Europe/Oslo")
    ('Asia/Kolkata', 'Europe/Oslo')
    """
    return _former_names().get(zone, zone)


def fixed_offset(zone: str) -> int | None:
    """Returns how many seconds ahead of UTC a zone is that has no other offset, None for all others.

    >>> fixed_offset("Etc/GMT-1"), fixed_offset("Africa/Abidjan")
    (3600, None)
    """
    ahead = _clock(zone).utcoffset(None)
    return None if ahead is None else _seconds(ahead)


def offsets(zone: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Returns each (first instant, seconds ahead of UTC) in force during [start, end), in order.

    The first instant is `start` itself; neighbours differ.

    >>> offsets("Europe/Paris", -1_855_958_970, -1_855_958_950)  # 1911: the end of local mean time
    ((-1855958970, 561), (-1855958961, 0))
    """
    found: list[tuple[int, int]] = []
    for era in range(start // _ERA, -(-end // _ERA)):
        changes = _era(zone, era)
        first = max(bisect_right(changes, (start, DAY_SECONDS)) - 1, 0)
        for instant, offset in changes[first : bisect_left(changes, (end, -DAY_SECONDS))]:
            if not found or found[-1][1] != offset:
                found.append((max(instant, start), offset))
    return tuple(found) if start < end else ()


def to_local(zone: str, instant: int) -> int:
    """Returns what the wall clock shows at an instant.

    >>> divmod(to_local("Asia/Kathmandu", 0), 60)  # +5:30 until 1985
    (330, 0)
    """
    changes = _era(zone, instant // _ERA)
    return instant + changes[bisect_right(changes, (instant, DAY_SECONDS)) - 1][1]


def to_instant(zone: str, local: int) -> int:
    """Returns the first instant at which the wall clock shows `local` or later.

    So a time that happens twice is the earlier instant, and one that never happens is the instant of the transition.

    >>> midnight = 15338 * 86_400  # 2011-12-30, which Samoa skipped
    >>> to_instant("Pacific/Apia", midnight) == to_instant("Pacific/Apia", midnight + 86_400)
    True
    """
    pieces = offsets(zone, local - _REACH, local + _REACH)
    if len(pieces) == 1:
        return local - pieces[0][1]
    ends = (*(instant for instant, _ in pieces[1:]), local + _REACH)
    reached = (max(instant, local - offset) for instant, offset in pieces)
    return next(instant for instant, end in zip(reached, ends, strict=True) if instant < end)


@lru_cache(maxsize=16_384)
def _era(zone: str, era: int) -> tuple[tuple[int, int], ...]:
    """The offsets in force in one era of about 8 years, from its first instant."""
    start, end = era * _ERA, (era + 1) * _ERA
    clock = _clock(zone)
    first = _clamped(start - _REACH)
    changes = [(start, _seconds(clock.utcoffset(_wall(first))))]
    if clock.utcoffset(None) is not None:
        return tuple(changes)
    for instant, offset in _changes(clock, first, _clamped(end + _REACH)):
        if instant <= start:
            changes = [(start, offset)]
        elif instant < end:
            changes.append((instant, offset))
    return tuple(changes)


def _changes(clock: ZoneInfo, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Each change of offset on the wall clock between two local times: its instant, and the new offset."""
    before = clock.utcoffset(_wall(first))
    sample = _wall(first)
    for low in range(first, last, _STEP):
        sample += _SAMPLING
        if (after := clock.utcoffset(sample)) == before:
            continue
        # In the hours that happen twice or never the database answers with the earlier offset.
        yield _first_other(clock, low, before) - max(_seconds(before), _seconds(after)), _seconds(after)
        before = after


def _first_other(clock: ZoneInfo, low: int, before: timedelta | None) -> int:
    """The first local time of a step with another offset than before."""

    def is_other(local: int) -> bool:
        return clock.utcoffset(_wall(local)) != before

    quarters = range(low, low + _STEP, _QUARTER_HOUR)
    local = low + _QUARTER_HOUR * bisect_left(quarters, 1, key=is_other)
    if is_other(local - 1):
        local = local - _QUARTER_HOUR + bisect_left(range(local - _QUARTER_HOUR, local), 1, key=is_other)
    return local


@lru_cache(maxsize=1)
def _former_names() -> Mapping[str, str]:
    """The zone behind each link of the database that is no place of a country's own."""
    from importlib import resources

    database = resources.files("tzdata.zoneinfo")
    places = {
        line.split("\t")[2] for line in database.joinpath("zone.tab").read_text("utf-8").splitlines() if line[0] != "#"
    }
    lines = [line.split() for line in database.joinpath("tzdata.zi").read_text("utf-8").splitlines()]
    return {words[2]: words[1] for words in lines if words[0] == "L" and words[2] not in places}


def _clock(zone: str) -> ZoneInfo:
    """The zone's rules; the database is opened when the first window asks for a zone."""
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone)


def _wall(local: int) -> datetime:
    return _EPOCH + timedelta(0, local)


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset.days * DAY_SECONDS + offset.seconds


def _clamped(local: int) -> int:
    return min(max(local, _FIRST_LOCAL), _LAST_LOCAL)


def _hint(name: str) -> str:
    """What to write in place of an unknown zone."""
    ahead = re.fullmatch(r"(?:UTC|GMT)?([+-])0?([0-9]{1,2})(?::?00)?", name)
    if ahead and 0 < int(ahead[2]) <= 12:
        sign = "-" if ahead[1] == "+" else "+"
        city = "use the IANA name of a city, as in Europe/Paris"
        return f"{city}, or try Etc/GMT{sign}{ahead[2]} (IANA turns the sign round)."
    if _ABBREVIATION.fullmatch(name):
        return "an abbreviation does not say which zone: use the IANA name of a city, as in Europe/Paris."
    from zoneinfo import available_timezones

    names = sorted((known for known in available_timezones() if known[0].isupper()), reverse=True)
    folded = {short: known for known in names for short in (known.lower().rpartition("/")[2], known.lower())}
    wanted = name.lower().replace(" ", "_")
    city = wanted.rpartition("/")[2]
    # The city alone, since a region in common makes strangers look alike: Europe/Munich and Europe/Zurich.
    near = next((known for known in (wanted, city) if known in folded), "") or nearest(city, folded, likeness=0.8)
    if near:
        return f"try {folded[near]}."
    return "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."
