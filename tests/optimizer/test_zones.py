from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest
from hypothesis import given

from stairwise.errors import ZoneError
from stairwise.zones import checked_zone, offsets, to_instant, to_local
from tests.strategies import ZONES, instants, zones

DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPAN = (-5_364_662_400, 2_145_916_800)  # 1800 to 2038, where every change is listed in the files


def zone_file(zone: str) -> bytes:
    """The file of a zone, from where zoneinfo reads it."""
    for folder in TZPATH:
        if (Path(folder) / zone).is_file():
            return (Path(folder) / zone).read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()


def listed_changes(zone: str) -> list[tuple[int, int]]:
    """Each change of offset that a zone's file lists (RFC 8536, the second block), read without zoneinfo."""
    content = zone_file(zone)
    utc, standard, leaps, instants_, types, letters = struct.unpack(">6l", content[20:44])
    start = 44 + instants_ * 5 + types * 6 + letters + leaps * 8 + standard + utc
    _, _, _, count, types, _ = struct.unpack(">6l", content[start + 20 : start + 44])
    times = struct.unpack_from(f">{count}q", content, start + 44)
    kinds = content[start + 44 + count * 8 : start + 44 + count * 9]
    kind_offsets = [struct.unpack_from(">l", content, start + 44 + count * 9 + 6 * kind)[0] for kind in range(types)]
    changes = [(-(2**62), kind_offsets[0])]
    for instant, kind in zip(times, kinds, strict=True):
        if kind_offsets[kind] != changes[-1][1]:
            changes.append((instant, kind_offsets[kind]))
    return changes[1:]


def wall(zone: str, instant: int) -> int:
    """What the wall clock shows, as datetime computes it."""
    shown = (EPOCH + timedelta(seconds=instant)).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)
    return (shown - EPOCH) // timedelta(seconds=1)


@lru_cache(maxsize=2**16)
def first_instant(zone: str, local: int) -> int:
    """The first instant that shows a local time or later: by bisection between the two answers of datetime."""
    naive = (EPOCH + timedelta(seconds=local)).replace(tzinfo=ZoneInfo(zone))
    answers = [(naive.replace(fold=fold).astimezone(UTC) - EPOCH) // timedelta(seconds=1) for fold in (0, 1)]
    shown = [answer for answer in answers if wall(zone, answer) == local]
    if shown:
        return min(shown)
    low, high = min(answers), max(answers)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wall(zone, middle) >= local else (middle, high)
    return high


@pytest.mark.parametrize("zone", ZONES)
def test_offsets_are_those_of_the_zone_file(zone: str) -> None:
    listed = [change for change in listed_changes(zone) if SPAN[0] < change[0] < SPAN[1]]
    assert list(offsets(zone, *SPAN))[1:] == listed


def test_no_zone_changes_twice_between_two_samples() -> None:
    # Machine files such as `localtime` are no zones of the database.
    names = [name for name in available_timezones() if name[:1].isupper()]
    apart = (later - earlier for name in names for (earlier, _), (later, _) in pairwise(listed_changes(name)))
    assert min(apart) > 3.5 * DAY


@given(zones(), instants())
def test_to_local_agrees_with_datetime(zone: str, instant: int) -> None:
    assert to_local(zone, instant) == wall(zone, instant)


@given(zones(), instants())
def test_to_instant_agrees_with_datetime(zone: str, local: int) -> None:
    assert to_instant(zone, local) == first_instant(zone, local)


@pytest.mark.parametrize("zone", ZONES)
def test_to_instant_is_right_around_every_change(zone: str) -> None:
    changes = offsets(zone, -(2**32), 2**32)
    for (_, before), (instant, after) in pairwise(changes):
        for local in {instant + offset + step for offset in (before, after) for step in (-1, 0, 1)}:
            assert to_instant(zone, local) == first_instant(zone, local)


@given(zones(), instants(), instants())
def test_to_instant_never_runs_backwards(zone: str, one: int, other: int) -> None:
    assert (to_instant(zone, one) <= to_instant(zone, other)) or one > other


@given(zones(), instants(), instants())
def test_offsets_begin_at_the_start_and_change(zone: str, start: int, end: int) -> None:
    found = offsets(zone, start, end)
    assert bool(found) is (start < end)
    assert [instant for instant, _ in found[:1]] == [start] * bool(found)
    assert all(one < other and before != after for (one, before), (other, after) in pairwise(found))
    assert all(instant < end and to_local(zone, instant) == instant + offset for instant, offset in found)


@pytest.mark.parametrize("year", [-5_000, 1, 9_999, 12_000])
def test_years_beyond_the_calendar_keep_an_offset(year: int) -> None:
    instant = (year - 1970) * 31_556_952
    for zone, first, last in [("Europe/Paris", 561, (3_600, 7_200)), ("UTC", 0, (0,))]:
        assert to_local(zone, instant) - instant in ((first,) if year < 1_800 else last)
        assert to_local(zone, to_instant(zone, instant)) == instant


@pytest.mark.parametrize(
    ("given_name", "name"), [("UTC", "UTC"), ("Etc/UTC", "UTC"), ("GMT", "UTC"), ("Europe/Paris", "Europe/Paris")]
)
def test_knows_zones(given_name: str, name: str) -> None:
    assert checked_zone(given_name) == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Paris", "try Europe/Paris."),
        ("europe/paris", "try Europe/Paris."),
        ("Europe/Pariss", "try Europe/Paris."),
        ("New York", "try America/New_York."),
        ("Calcuta", "try Asia/Calcutta."),
        ("Londn", "try Europe/London."),
        ("Europe/Londn", "try Europe/London."),
        ("America/NewYork", "try America/New_York."),
        ("Eur/Paris", "try Europe/Paris."),
        ("Europe/Asuncion", "try America/Asuncion."),
        ("Japn", "try Japan."),
        ("Rom", "try Europe/Rome."),
        ("Europe/Munich", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("Asia/Bombay", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        *(
            (name, "an abbreviation does not say which zone: use the IANA name of a city, as in Europe/Paris.")
            for name in ("CEST", "cet", "PST", "est", "AEDT", "IST", "Msk")
        ),
        ("UTC+2", "use the IANA name of a city, as in Europe/Paris, or try Etc/GMT-2 (IANA turns the sign round)."),
        ("-08:00", "use the IANA name of a city, as in Europe/Paris, or try Etc/GMT+8 (IANA turns the sign round)."),
        ("+05:30", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("+99", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("localtime", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("../passwd", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("Nul\0", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("America", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
        ("", "use the IANA name of a city with the same time, as in Europe/Paris, or UTC."),
    ],
)
def test_refuses_what_is_no_zone(name: str, hint: str) -> None:
    with pytest.raises(ZoneError) as caught:
        checked_zone(name)
    assert str(caught.value) == f"zone '{name}': the zone database has no zone of that name. Hint: {hint}"
    assert caught.value.data == {"zone": name}
