"""Many versions of a Delta table compared with the newest by one look, against questions one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.windowing import Interval
from stairwise_spark.at_once import changes_at_once
from stairwise_spark.changed import Changes
from stairwise_spark.spans import Spans, common, joined
from tests.spark_jobs.lake import HOURS, LENGTH, Lake

pytestmark = pytest.mark.spark

# Three rows an hour, in one file.
ROWS = (
    "SELECT /*+ COALESCE(1) */ id, id % 3 AS zone, timestamp_millis(id * 1200000 + 999) AS at, "
    "CAST(id + {fare} AS DOUBLE) AS fare FROM range({first}, {end})"
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    found = Lake(spark, tmp_path / "trips")
    found.do(f"CREATE TABLE {{t}} USING delta AS {rows(0)}")
    return found


def rows(hour: int, hours: int = 1, fare: int = 0) -> str:
    return ROWS.format(first=3 * hour, end=3 * (hour + hours), fare=fare)


def at(*hours: int) -> Spans:
    return joined(Interval(hour * LENGTH, (hour + 1) * LENGTH) for hour in hours)


def answers(lake: Lake, within: Mapping[int, Spans]) -> dict[int, Changes]:
    return changes_at_once(lake.source(), HOURS, within)


def check(lake: Lake, within: Mapping[int, Spans], asked: Iterable[int]) -> dict[int, Changes]:
    """All are as Python finds them in all rows, and some are asked about one by one besides."""
    found = answers(lake, within)
    assert [*found] == [*within]
    for since, spans in within.items():
        more = {hour: rows for hour, rows in lake.differing(since).items() if common(at(hour), spans)}
        each = found[since]
        assert each.spans == at(*more), since
        assert each.late_rows == sum(max(0, rows) for rows in more.values())
        assert each.fewer_rows == sum(max(0, -rows) for rows in more.values())
    for since in asked:
        one, each = lake.changes(since, within[since]), found[since]
        assert (one.spans, one.late_rows, one.fewer_rows) == (each.spans, each.late_rows, each.fewer_rows)
    return found


KINDS = (
    "DELETE FROM {t} WHERE id = ID",
    "UPDATE {t} SET fare = fare + 1 WHERE id = ID + 1",
    "UPDATE {t} SET fare = fare - 1 WHERE id = ID + 1",
    "OPTIMIZE {t}",
    "DELETE FROM {t} WHERE id IN (ID, ID + 1, ID + 2)",
)


@pytest.mark.parametrize(("hours", "has_vectors"), [(20, False), (8, True)], ids=["plain", "vectors"])
def test_many_versions_are_told_as_each_by_itself(lake: Lake, hours: int, *, has_vectors: bool) -> None:
    """Each hour comes by a commit, some with rows of an older one, and is claimed then; some are corrected later."""
    if has_vectors:
        lake.do("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    within = dict[int, Spans]()
    for hour in range(1, hours + 1):
        older = hour * 5 // 7
        within[lake.version] = at(hour - 1, *([older // 2] if hour % 3 else []))
        lake.do(f"INSERT INTO {{t}} {rows(hour)}" + (f" UNION ALL {rows(older)}" if hour % 5 == 0 else ""))
        if hour % 4 == 0:
            lake.do(KINDS[hour // 4 % len(KINDS)].replace("ID", str(3 * older)))
    found = check(lake, within, [*within][::6])
    assert any(each.spans for each in found.values())
    assert any(not each.spans for each in found.values())


def test_what_came_and_went_again_is_told_by_what_is_known(lake: Lake) -> None:
    """Since a version that had rows which went, they went; since an older one, which never had them, nothing did."""
    lake.do(f"INSERT INTO {{t}} {rows(0, fare=5)}", f"INSERT INTO {{t}} {rows(5)}")
    lake.do("DELETE FROM {t} WHERE id < 3 AND fare > 4")
    within = {0: at(0), 1: at(0), 2: at(0, 5)}
    found = check(lake, within, within)
    assert [each.spans for each in found.values()] == [(), at(0), at(0)]
    assert found[1].fewer_rows == 3


def test_what_is_asked_of_no_version_is_not_opened(lake: Lake) -> None:
    within = dict[int, Spans]()
    for hour in range(1, 6):
        within[lake.version] = at(hour - 1)
        lake.do(f"INSERT INTO {{t}} {rows(hour)}")
    found = check(lake, within, within)
    assert all(each.files == 0 and not each.spans for each in found.values())
    lake.do(f"INSERT INTO {{t}} {rows(1)}")
    found = check(lake, within, within)
    assert [each.files for each in found.values()] == [1, 0, 0, 0, 0]
    assert [each.spans for each in found.values()] == [(), at(1), (), (), ()]


def test_what_one_look_does_not_tell_is_asked_one_by_one(lake: Lake) -> None:
    for hour in (1, 2, 3):
        lake.do(f"INSERT INTO {{t}} {rows(hour)}", f"INSERT INTO {{t}} {rows(0)}")
    within = {version: at(0) for version in range(4)}
    together = answers(lake, within)
    in_pairs = changes_at_once(lake.source(), HOURS, within, most_versions=2)
    assert {since: (each.spans, each.late_rows) for since, each in together.items()} == {
        since: (each.spans, each.late_rows) for since, each in in_pairs.items()
    }
    assert {*together} == {*within}
    assert not answers(lake, {version: at(0) for version in range(2)})
    uneven = (Interval(0, LENGTH + 60),)
    assert {*answers(lake, within | {1: uneven})} == {0, 2, 3}
    assert not changes_at_once(lake.source(), HOURS, within, most_files=2)
    assert not changes_at_once(lake.source(), HOURS, within, most_slices=1)
    lake.do("ALTER TABLE {t} ADD COLUMN extra INT")
    assert not answers(lake, within)


def test_files_that_are_gone_are_left_to_other_questions(lake: Lake) -> None:
    lake.do(
        f"INSERT INTO {{t}} {rows(1)}",
        f"INSERT INTO {{t}} {rows(0)}",
        "UPDATE {t} SET fare = 0 WHERE id = 0",
        "UPDATE {t} SET fare = 1 WHERE id = 0",
    )
    within = {version: at(0) for version in range(4)}
    check(lake, within, within)
    kept = {file.rsplit("/", 1)[1] for file in lake.source().frame.inputFiles()}
    for file in lake.path.glob("*.parquet"):
        if file.name not in kept:
            file.unlink()
    assert not answers(lake, within)
