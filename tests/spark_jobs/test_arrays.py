"""A pass over rows in order gives each tier that is asked for, however the rows are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise_spark import arrays
from stairwise_spark.arrays import GROUP, OF, Branch, Cut, Fold, Hops, Pass

Row = tuple[str | None, int, int | None]
FAR = 10**9
ROWS = st.lists(st.tuples(st.sampled_from([None, "", "a", "b"]), st.integers(-20, 20), st.none() | st.integers(0, 9)))


def group_of(key: str | None) -> int:
    """The same for two of the keys."""
    return -1 if key is None else int(key == "b")


def batches(rows: list[Row], size: int) -> Iterator[pa.RecordBatch]:
    """Slices of one unit each."""
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield pa.RecordBatch.from_pydict(
            {
                "key": pa.array([key for key, *_ in part], pa.string()),
                GROUP: pa.array([group_of(key) for key, *_ in part], pa.int64()),
                "_begin": pa.array([begin for _, begin, _ in part], pa.int64()),
                "total": pa.array([value for *_, value in part], pa.int64()),
            }
        )


def made(rows: list[Row], size: int, *branches: Branch, keys: tuple[str, ...] = ("key",)) -> list[tuple[object, ...]]:
    work = Pass(keys=keys, folds=(Fold(("total",), "sum"),), branches=branches)
    names = ["_tier", *keys, "_begin", "_end", "total"]
    return [tuple(row[name] for name in names) for batch in work(batches(rows, size)) for row in batch.to_pylist()]


def plain(rows: list[Row], number: int, bounds: dict[int, tuple[int, int]]) -> list[tuple[object, ...]]:
    """The same, row by row; bounds of the window that holds each instant, if one does."""
    groups: dict[tuple[object, ...], list[int | None]] = {}
    for key, begin, value in rows:
        if begin in bounds:
            groups.setdefault((number, key, *bounds[begin]), []).append(value)
    there = {group: [each for each in values if each is not None] for group, values in groups.items()}
    return [(*group, sum(values) if values else None) for group, values in there.items()]


def in_groups(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: group_of(row[0]))


@pytest.fixture(params=[1, 3, 1000])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    monkeypatch.setattr(arrays, "BLOCK_ROWS", size)
    return size


@given(rows=ROWS, size=st.integers(1, 7), block=st.sampled_from([1, 3, 1000]))
def test_every_tier_is_what_its_rows_say(rows: list[Row], size: int, block: int) -> None:
    classes = Cut(classes=((6, 1), (4, 0)))
    edges = [edge for edge in range(-40, 41) if edge % 6 == 1 or edge % 4 == 0]
    composite = {i: (max(e for e in edges if e <= i), min(e for e in edges if e > i)) for i in range(-20, 21)}
    twelve = {i: (i // 12 * 12, i // 12 * 12 + 12) for i in range(-20, 21)}
    listed = {i: (-5, 3) if i < 3 else (8, 15) for i in (*range(-5, 3), *range(8, 15))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", block)
        found = made(
            in_groups(rows), size,
            Branch(1, 0, classes, (-FAR,), (FAR,)), Branch(2, 1, Cut(classes=((12, 0),)), (-FAR,), (FAR,)),
            Branch(3, 0, Cut(begins=(-5, 8), ends=(3, 15)), (-FAR,), (FAR,)),
        )  # fmt: skip
    expected = [
        row for number, bounds in ((1, composite), (2, twelve), (3, listed)) for row in plain(rows, number, bounds)
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_only_windows_that_end_in_the_span_come_out(block: int) -> None:
    rows: list[Row] = [("a", instant, 1) for instant in range(8)]
    branch = Branch(1, 0, Cut(classes=((2, 0),)), after=(2,), until=(6,))
    assert made(rows, block, branch) == [(1, "a", 2, 4, 2), (1, "a", 4, 6, 2)]
    assert made(rows, block, Branch(1, 0, Cut(), (-FAR,), (FAR,))) == []


def test_without_keys_all_rows_are_one_group(block: int) -> None:
    rows: list[Row] = [(None, instant, 1) for instant in range(5)]
    assert made(rows, block, Branch(1, 0, Cut(classes=((4, 0),)), (-FAR,), (FAR,)), keys=()) == [
        (1, 0, 4, 4),
        (1, 4, 8, 1),
    ]
    assert made([], 1, Branch(1, 0, Cut(classes=((4, 0),)), (-FAR,), (FAR,))) == []


def test_nan_is_a_key_and_null_is_another() -> None:
    keys = pa.array([None, 1.0, 1.0, float("nan"), float("nan")], pa.float64())
    numbers = pa.array([0, 0, 1, 0, 1], pa.int64())
    groups = pa.array([0, 0, 0, 1, 1], pa.int64())
    batch = pa.RecordBatch.from_arrays([keys, groups, numbers, numbers], names=["key", GROUP, "_begin", "total"])
    work = Pass(("key",), (Fold(("total",), "max"),), (Branch(1, 0, Cut(classes=((4, 0),)), (-FAR,), (FAR,)),))
    (found,) = work([batch])
    assert [repr(row["key"]) for row in found.to_pylist()] == ["None", "1.0", "nan"]
    assert found.column("total").to_pylist() == [0, 1, 1]


def test_a_tier_that_is_only_read_does_not_come_out() -> None:
    rows: list[Row] = [("a", instant, 1) for instant in range(8)]
    read = Branch(1, 0, Cut(classes=((2, 0),)), (-FAR,), (FAR,), is_asked_for=False)
    assert made(rows, 3, read, Branch(2, 1, Cut(classes=((4, 0),)), (-FAR,), (FAR,))) == [
        (2, "a", 0, 4, 4),
        (2, "a", 4, 8, 4),
    ]


@given(rows=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(-1, 1).map(lambda far: far << 61), st.just(1))))
def test_rows_may_be_so_far_apart_that_key_and_begin_do_not_make_one_number(rows: list[Row]) -> None:
    found = made(in_groups(rows), 2, Branch(1, 0, Cut(classes=((4, 0),)), (-(1 << 62),), (1 << 62,)))
    expected = plain(rows, 1, {begin: (begin, begin + 4) for _, begin, _ in rows})
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(
    rows=ROWS,
    size=st.integers(1, 7),
    block=st.sampled_from([1, 3, 1000]),
    window=st.tuples(st.integers(1, 6), st.integers(1, 40)),
    span=st.tuples(st.integers(-60, 60), st.integers(0, 90)),
)
def test_a_window_that_overlaps_others_is_there_where_a_slice_is(
    rows: list[Row], size: int, block: int, window: tuple[int, int], span: tuple[int, int]
) -> None:
    slide, length = window
    begins = range(span[0], span[0] + span[1], slide)
    ends = range(begins.start + length, begins.stop + length, slide)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", block)
        found = made(
            in_groups(rows), size,
            Branch(1, 0, Hops(begins, ends), (-FAR,), (FAR,)),
            Branch(2, 0, Hops(tuple(begins), tuple(ends)), (-FAR,), (FAR,)),
        )  # fmt: skip
    expected = [
        row
        for number in (1, 2)
        for begin, end in zip(begins, ends, strict=True)
        for row in plain(rows, number, dict.fromkeys(range(begin, end), (begin, end)))
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_each_slice_is_in_as_many_windows_as_overlap() -> None:
    rows: list[Row] = [("a", 0, 1), ("a", 1_439, 2), ("a", 5_000, 4)]
    hops = Hops(range(-2_000, 6_000), range(-560, 7_440))
    found = made(rows, 3, Branch(1, 0, hops, (-FAR,), (FAR,)))
    assert [row[-1] for row in found] == [1] * 1_439 + [3] + [2] * 1_439 + [4] * 1_440


def test_a_tier_that_is_read_may_have_readers_whose_windows_overlap() -> None:
    rows: list[Row] = [("a", instant, 1) for instant in range(6)]
    pairs = Branch(1, 0, Cut(classes=((2, 0),)), (-FAR,), (FAR,), is_asked_for=False)
    hops = Branch(2, 1, Hops(range(0, 4, 2), range(4, 8, 2)), (-FAR,), (FAR,))
    assert made(rows, 2, pairs, hops) == [(2, "a", 0, 4, 4), (2, "a", 2, 6, 4)]


@given(
    rows=ROWS,
    size=st.integers(1, 7),
    block=st.sampled_from([1, 3, 1000]),
    is_there=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_windows_that_are_stored_are_merged_with_those_that_are_made(
    rows: list[Row], size: int, block: int, is_there: list[bool]
) -> None:
    """Of the windows of 4, some are made and others come in as rows of theirs; those of 12 are made of both."""
    fours = {i: (i // 4 * 4, i // 4 * 4 + 4) for i in range(-20, 21)}
    twelves = {i: (i // 12 * 12, i // 12 * 12 + 12) for i in range(-20, 21)}
    stored = {four for four in fours.values() if is_there[four[0] // 4 % 20]}
    missing = sorted({*fours.values()} - stored)
    coming: list[tuple[Row, int]] = [(row, 0) for row in rows if fours[row[1]] not in stored]
    for _, key, begin, end, total in plain(rows, 1, fours):
        if (begin, end) in stored:
            coming.append(((key, begin, total), 1))  # type: ignore[arg-type]  # what plain gives is of no type
    coming.sort(key=lambda each: group_of(each[0][0]))
    work = Pass(
        keys=("key",),
        folds=(Fold(("total",), "sum"),),
        branches=(
            Branch(1, 0, Cut(classes=((4, 0),)), tuple(a for a, _ in missing), tuple(b for _, b in missing)),
            Branch(2, 1, Cut(classes=((12, 0),)), (-FAR,), (FAR,)),
            Branch(3, 1, Hops(range(-24, 24, 4), range(-16, 32, 4)), (-FAR,), (FAR,)),
        ),
        has_stored=True,
    )
    names = ["_tier", "key", "_begin", "_end", "total"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", block)
        parts = (
            batch.append_column(OF, pa.array([of for _, of in coming[at * size : (at + 1) * size]], pa.int32()))
            for at, batch in enumerate(batches([row for row, _ in coming], size))
        )
        found = [tuple(row[name] for name in names) for batch in work(parts) for row in batch.to_pylist()]
    hops = [
        row
        for begin in range(-24, 24, 4)
        for row in plain(rows, 3, dict.fromkeys(range(begin, begin + 8), (begin, begin + 8)))
    ]
    ones = plain([row for row in rows if fours[row[1]] not in stored], 1, fours)
    assert sorted(found, key=repr) == sorted([*ones, *plain(rows, 2, twelves), *hops], key=repr)
