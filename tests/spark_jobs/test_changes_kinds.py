"""What changed in Delta tables of all kinds, after random histories; and what is said where a log is not enough."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.span import Lookback
from stairwise.windowing import Interval
from stairwise_spark.changes import Recheck, Way, changes
from stairwise_spark.commits import read_commits
from stairwise_spark.delta_changes import delta_changes
from stairwise_spark.delta_log import Described
from tests.spark_jobs.lake import ALWAYS, HOURS, Lake, check, slices

pytestmark = pytest.mark.spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of table: the type of the time, made of `seconds`, what it is partitioned by, and its properties."""

    time: str = "timestamp_micros(seconds * 1000000 + 999999)"
    partitions: str = ""
    properties: tuple[str, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()


VECTORS = "'delta.enableDeletionVectors' = true"
MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = 2, 'delta.minWriterVersion' = 5"
KINDS = {
    "filtered": Kind(declared=(("where", "fare > 3"),)),
    "by day": Kind(
        time="CAST(timestamp_seconds(seconds) AS DATE)",
        partitions="PARTITIONED BY (at, zone)",
        properties=(VECTORS,),
        declared=(("zone", "Europe/Paris"),),
    ),
    "mapped": Kind(time="seconds * 1000", properties=(MAPPED,), declared=(("unit", "ms"),)),
    "local": Kind(
        time="CAST(timestamp_seconds(seconds + 1711846800) AS TIMESTAMP_NTZ)",
        partitions="PARTITIONED BY (zone)",
        properties=("'delta.dataSkippingStatsColumns' = 'fare'",),
        declared=(("zone", "Europe/Paris"),),
    ),
}


def rows(kind: Kind, seed: int, count: int) -> str:
    source = random.Random(seed)  # noqa: S311 - to be the same again
    first = source.choice((0, 3600, 7200, 100_000))
    return (
        f"SELECT id, nullif(concat('zo ne=', id % 3), 'zo ne=2') AS zone, {kind.time} AS at, fare FROM (SELECT id, "  # noqa: S608
        f"{first} + id * 701 AS seconds, CAST(id % 5 AS DOUBLE) AS fare FROM range({seed % 5}, {seed % 5 + count}))"
    )


def made(spark: SparkSession, path: Path, kind: Kind, seed: int) -> Lake:
    lake = Lake(spark, path, dict(kind.declared))
    properties = f"TBLPROPERTIES ({', '.join(kind.properties)})" if kind.properties else ""
    lake.do(f"CREATE TABLE {{t}} USING delta {kind.partitions} {properties} AS {rows(kind, seed, 20)}")
    return lake


STATEMENTS = (
    "INSERT INTO {t} ROWS",
    "INSERT INTO {t} ROWS",
    "DELETE FROM {t} WHERE SOME",
    "UPDATE {t} SET fare = fare + 1 WHERE SOME",
    "UPDATE {t} SET zone = NULL WHERE SOME",
    "UPDATE {t} SET at = NULL WHERE SOME",
    "OPTIMIZE {t}",
    "RESTORE {t} TO VERSION AS OF 1",
)


def statement(kind: Kind, source: random.Random) -> str:
    text, some = source.choice(STATEMENTS), f"id % {source.randint(2, 7)} = 1"
    return text.replace("SOME", some).replace("ROWS", rows(kind, source.randrange(100), source.randint(1, 12)))


@pytest.mark.parametrize("name", KINDS)
def test_after_random_histories_exactly_what_differs_is_found(spark: SparkSession, tmp_path: Path, name: str) -> None:
    source, kind = random.Random(name), KINDS[name]  # noqa: S311 - to be the same again
    lake = made(spark, tmp_path / "lake", kind, 1)
    lake.do(f"INSERT INTO {{t}} {rows(kind, 7, 9)}")
    ways: set[Way] = set()
    for _ in range(2):
        since = source.randint(0, lake.version)
        lake.do(*(statement(kind, source) for _ in range(3)))
        ways.add(check(lake, since).way)
    assert ways <= {Way.LOG, Way.FEED, Way.UNCHANGED}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return made(spark, tmp_path / "lake", Kind(), 0)


def test_the_feed_is_read_where_it_is_shorter(spark: SparkSession, tmp_path: Path) -> None:
    kind = Kind(properties=("'delta.enableChangeDataFeed' = true",))
    lake = Lake(spark, tmp_path / "lake")
    lake.do(f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({kind.properties[0]}) AS {rows(kind, 0, 3_000)}")
    lake.do("UPDATE {t} SET fare = -1 WHERE id = 7", "DELETE FROM {t} WHERE id = 700")
    answer = check(lake, 0)
    assert answer.way is Way.FEED
    assert answer.why == "the change data feed between versions 0 and 2 was read"
    lake.do("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = false)")
    lake.do(
        "DELETE FROM {t} WHERE id = 1400", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = true)"
    )
    assert check(lake, 0).way is Way.LOG


def test_where_files_are_gone_their_times_in_the_log_count(lake: Lake) -> None:
    """Neither the log of an UPDATE nor the file says when the old rows happened: what added the file does."""
    lake.do(f"INSERT INTO {{t}} {rows(Kind(), 13, 8)}", "UPDATE {t} SET fare = 9 WHERE fare = 2")
    exact = check(lake, 1)
    log = lake.path / "_delta_log"
    removed = [
        json.loads(line)["remove"]["path"]
        for line in (log / f"{2:020d}.json").read_text().splitlines()
        if '"remove"' in line
    ]
    for each in removed:
        (lake.path / each).unlink()
    found = lake.changes(1)
    assert found.way is Way.STATISTICS
    assert slices(found) >= slices(exact)
    assert len(slices(found)) < 20
    assert found.late_rows is None
    assert found.why == "all the time of the files that changed between versions 1 and 2: some of these files are gone"


def test_where_the_log_is_gone_the_lookback_counts_else_everything(lake: Lake) -> None:
    lake.do("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = 1)")
    lake.do(f"INSERT INTO {{t}} {rows(Kind(), 13, 8)}")
    lake.do("DELETE FROM {t} WHERE id = 4")
    source = lake.source()
    (lake.path / "_delta_log" / f"{1:020d}.json").unlink()
    within = [Interval(0, 50 * 3600), Interval(60 * 3600, 101 * 3600)]
    found = changes(source, 0, HOURS, within)
    gone = "the log no longer has all commits between versions 0 and 3"
    assert (found.spans, found.way) == (tuple(within), Way.EVERYTHING)
    assert found.why == f"{gone}, and no lookback is declared"
    day, week = Lookback.parse("1 day every run"), Lookback.parse("7 days daily")
    recheck = Recheck(lookbacks=(day, week), now=200_000, last={"7d daily": 190_000})
    found = changes(source, 0, HOURS, within, recheck)
    assert (found.spans, found.way) == ((Interval(77 * 3600, 101 * 3600),), Way.LOOKBACK)
    assert found.why == f"{gone}, so what is declared as lookback: 1d every run"
    assert found.rechecked == ("1d every run",)


def test_of_very_many_files_none_is_named(lake: Lake) -> None:
    lake.do(f"INSERT INTO {{t}} {rows(Kind(), 13, 8)}", "DELETE FROM {t} WHERE id = 4")
    found = delta_changes(lake.source(), 0, lake.version, HOURS, ALWAYS, most_files=1)
    assert slices(found) == set(lake.differing(0))  # type: ignore[arg-type] # it is told


def test_a_table_in_the_place_of_another_has_another_identity(lake: Lake) -> None:
    before = lake.source().identity
    shutil.rmtree(lake.path)
    lake.do(f"CREATE TABLE {{t}} USING delta AS {rows(Kind(), 0, 3)}")
    assert lake.source().identity not in {before, None}


def copied(lake: Lake, until: int) -> Path:
    """The log of a table in which each commit before a version is a copy of one, under another name of its file."""
    lake.do(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM ({rows(Kind(), 5, 2)})")  # noqa: S608 - of this test
    log = lake.path / "_delta_log"
    text = (log / f"{1:020d}.json").read_text()
    name = re.search(r"part-[^\"]*parquet", text)
    assert name is not None
    for version in range(2, until):
        copy = text.replace(name[0], f"{version}.parquet")
        (log / f"{version:020d}.json").write_text(copy)
    return log


def test_many_commits_are_read_as_few_are(lake: Lake) -> None:
    """Whether they are large or small, and whatever stands in a text; unless one of them is gone."""
    log = copied(lake, 110)
    (log / f"{110:020d}.json").write_text(
        '{"commitInfo":{"operation":"WRITE","note":"a\\nb \\u2028 \u2028 {}"}}\r\n'.replace("{}", "\u00e9" * 10_000)
        + '\n{"metaData":{"id":"m","schemaString":"a","configuration":{"x":"\\n"}}}\n'
    )
    table = Described(identity="m", location=str(lake.path), partitions=(), properties={}, features=frozenset())

    def read(since: int, version: int, small: int = 10**6) -> list[str]:
        lines = read_commits(lake.spark, table, since, version, small)
        assert lines is not None
        return sorted(str(row.asDict(recursive=True)) for row in lines.select(*sorted(lines.columns)).collect())

    few = sorted(read(0, 60) + read(60, 110))
    assert read(0, 110) == read(0, 110, 10_000) == read(0, 110, 0) == few
    assert len(few) == 2 * 109 + 2
    (log / f"{77:020d}.json").unlink()
    assert read_commits(lake.spark, table, 0, 110) is None
    assert read_commits(lake.spark, table, 0, 200) is None
    assert len(read(77, 110)) == 2 * 32 + 2


def test_thousands_of_commits(lake: Lake) -> None:
    """What is not of the time in question is not looked for."""
    copied(lake, 2_200)
    lake.do("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")
    found = lake.changes(0)
    assert (found.way, found.late_rows, len(slices(found))) == (Way.LOG, 2 * 2_199, 1)
    assert found.files == 0
