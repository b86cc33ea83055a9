"""Lists of files as versions: what came and went, however many there are, and the text that is kept."""

from __future__ import annotations

import random

import pytest

from stairwise.errors import CodecError
from stairwise.windowing import Interval
from stairwise_spark.listing import File, Group, Listing, Stamp, ordered


def file(number: int, size: int = 1) -> File:
    return File(
        Stamp(1_000 + number, f"file:/lake/day={number % 7}/{number}.parquet", size), Interval(number, number + 2)
    )


def listing(*numbers: int) -> Listing:
    return ordered(file(each) for each in numbers)


def test_what_came_and_what_went() -> None:
    stamps = [file(each).stamp for each in (1, 2, 4)] + [file(3, size=2).stamp]
    kept, gone, new = listing(1, 2, 3, 5).split(stamps)
    assert kept == (file(1), file(2))
    assert set(gone) == {file(3), file(5)}
    assert new == (file(3, size=2).stamp, file(4).stamp)
    assert Listing().split([]) == ((), (), ())


@pytest.mark.parametrize("count", [0, 1, 500, 501, 3_000, 40_000])
def test_the_text_is_read_back_and_bounded(count: int) -> None:
    known = listing(*range(count))
    text = known.encode()
    assert len(text) < 120_000
    read = Listing.decode(text)
    assert read.encode() == text
    if count <= 500:
        assert read == known
    kept, gone, new = read.split(part.stamp for part in known.parts if isinstance(part, File))
    assert (kept, gone, new) == (read.parts, (), ())


def test_a_change_among_old_files_is_noticed() -> None:
    known = Listing.decode(listing(*range(2_000)).encode())
    stamps = [file(each).stamp for each in range(2_000)]
    for changed in (stamps[:5] + stamps[6:], [*stamps, Stamp(1_005, "file:/lake/other", 1)]):
        kept, gone, new = known.split(changed)
        (group,) = gone
        assert isinstance(group, Group)
        assert len(kept) == len(known.parts) - 1
        members = [each for each in changed if group.first <= each <= group.last]
        assert list(new) == sorted(members)
        assert group.times is not None
        assert group.times.start <= 5 < group.times.end


def test_histories_lose_nothing() -> None:
    """Whatever comes and goes, and however often it is written down: each change is told, and no file is unknown."""
    source = random.Random(1)  # noqa: S311 - to be the same again
    there, known = dict.fromkeys(range(900), 1), Listing()
    for step in range(12):
        _, gone, new = known.split(file(number, size).stamp for number, size in there.items())
        sizes = {file(number, size).stamp: number for number, size in there.items()}
        kept = [part for part in known.parts if part not in gone]
        known = ordered([*kept, *(File(each, file(sizes[each]).times) for each in new)])
        known = Listing.decode(known.encode())
        counted = sum(part.count if isinstance(part, Group) else 1 for part in known.parts)
        assert counted == len(there)
        removed = source.sample(sorted(there), 2)
        for number in removed:
            del there[number]
        there.update({1_000 * (step + 1) + each: 1 for each in range(source.choice((3, 700)))})
        written = source.choice(sorted(there))
        there[written] += 1
        _, gone, new = known.split(file(number, size).stamp for number, size in there.items())
        times = [part.times for part in gone if part.times is not None]
        for number in [*removed, written]:
            if number < 1_000 * (step + 1):
                assert any(each.start <= number < each.end for each in times)
        assert {file(number, size).stamp for number, size in there.items()} >= set(new)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "stairwise.listing/1", "parts": []}'])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(CodecError, match="they are not listed as Stairwise does"):
        Listing.decode(text)


@pytest.mark.parametrize("part", ["1", '[1, "a"]', '[1, "a", 2, [3]]', '[1, "a", 2, 3, "b", 4, 5, 6, null]'])
def test_another_row_is_refused(part: str) -> None:
    with pytest.raises(CodecError, match="they are not listed as Stairwise does"):
        Listing.decode(f'{{"schema": "stairwise.listing/1", "folder": "", "parts": [{part}]}}')
