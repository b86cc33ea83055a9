"""The source: what is read of it, when its events happened, and what is said where the declaration does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import LongType, StructField

from stairwise.rollup import Rollup, Source
from stairwise.windowing import Interval
from stairwise_spark.delta_log import described, summed_up
from stairwise_spark.errors import RunError, SourceError
from stairwise_spark.expressions import direct
from stairwise_spark.session import sql
from stairwise_spark.source import PinnedSource, located, open_source
from stairwise_spark.source_checks import needed_fields

pytestmark = pytest.mark.spark

SECOND = 1_000_000
COLUMNS = "zone_id INT, at TIMESTAMP, fare DOUBLE, Tip INT, note STRING, tags MAP<STRING, INT>, _id INT, day STRING"


def rollup(source: Source, *calls: str, keys: tuple[str, ...] = ("zone_id",)) -> Rollup:
    return Rollup(
        name="trips",
        source=source,
        keys=keys,
        aggregates={f"a{i}": call for i, call in enumerate(calls or ("count()",))},
        windows=["1h"],
        target="lake/rollups",
    )


def opened(spark: SparkSession, source: Source, *calls: str, keys: tuple[str, ...] = ("zone_id",)) -> PinnedSource:
    return open_source(spark, rollup(source, *calls, keys=keys), direct)


def micros(rows: DataFrame) -> list[int]:
    return sorted(int(row["_time"]) for row in rows.select("_time").collect())


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Delta table of two hours, a file each."""
    path = tmp_path_factory.mktemp("lake") / "trips"
    values = "(1, {at}, 2.5, 1, 'x', map('a', 1), 7, 'd'), (2, {at}, -1.0, 2, 'y', map(), 8, 'd')"
    for hour in (0, 3600):
        rows = values.format(at=f"timestamp_seconds({hour})")
        frame = sql(spark, f"VALUES {rows} AS trips(zone_id, at, fare, Tip, note, tags, _id, day)")
        frame.coalesce(1).write.format("delta").mode("append").save(str(path))
    return path


@pytest.fixture
def plan_of(capsys: pytest.CaptureFixture[str]) -> Callable[[DataFrame], str]:
    def explained(frame: DataFrame) -> str:
        frame.explain()
        return capsys.readouterr().out

    return explained


def test_a_delta_table_stays_at_its_version_and_only_what_is_needed_is_read(
    spark: SparkSession, trips: Path, plan_of: Callable[[DataFrame], str]
) -> None:
    source = Source(path=str(trips), time="AT", where="fare > 0")
    found = opened(spark, source, "sum(TIP)", keys=("Zone_ID",))
    assert found.version == 1
    spark.read.format("delta").load(str(trips)).limit(1).write.format("delta").mode("append").save(str(trips))
    rows, counted = found.rows((Interval(3600, 7200),)), Observation("read")
    assert rows.columns == ["Zone_ID", "Tip", "_time"]
    assert micros(found.rows()) == [0, 3600 * SECOND]
    assert micros(found.rows((Interval(3600, 7200),), counted)) == [3600 * SECOND]
    assert counted.get == {"rows": 1}
    assert len(rows.inputFiles()) == 1
    plan = plan_of(rows)
    assert "ReadSchema: struct<zone_id:int,at:timestamp,fare:decimal(2,1),Tip:int>" in plan
    assert "GreaterThanOrEqual(at,1970-01-01 01:00:00" in plan
    assert opened(spark, source).version == 2


def test_tables_views_and_queries(spark: SparkSession, trips: Path, tmp_path: Path) -> None:
    sql(spark, f"CREATE TABLE delta_trips USING delta LOCATION '{trips}'")
    spark.table("delta_trips").select("zone_id", "at").write.option("path", str(tmp_path)).saveAsTable(
        "plain_trips", format="parquet", mode="overwrite"
    )
    sql(spark, "CREATE TEMPORARY VIEW seen_trips AS SELECT * FROM delta_trips")
    version = opened(spark, Source(table="delta_trips", time="at")).version
    assert version == opened(spark, Source(path=str(trips), time="at")).version
    assert version is not None
    for source in (
        Source(table="plain_trips", time="at"),
        Source(table="seen_trips", time="at"),
        Source(path=str(tmp_path), format="parquet", time="at"),
        Source(sql="WITH t AS (TABLE delta_trips) SELECT * FROM t -- all", time="at"),
    ):
        found = opened(spark, source)
        assert found.version is None
        assert found.extent() == Interval(0, 3601)


@pytest.mark.parametrize(
    "query",
    ["FROM plain INSERT INTO sink SELECT *", "WITH t AS (SELECT 1) INSERT INTO sink TABLE t", "SELECT 1; SELECT 2"],
)
def test_a_command_is_refused_before_it_does_anything(spark: SparkSession, query: str) -> None:
    spark.range(1).createOrReplaceTempView("plain")
    sql(spark, "CREATE TABLE IF NOT EXISTS sink (id BIGINT) USING delta")
    with pytest.raises(SourceError, match=r"sql: it is not one query \(Syntax error at or near"):
        opened(spark, Source(sql=query, time="at"))
    assert spark.table("sink").count() == 0


class Local(NamedTuple):
    text: str
    zone: str
    seconds: int


@pytest.mark.parametrize("kind", ["TIMESTAMP_NTZ", "DATE"])
@pytest.mark.parametrize(
    "case",
    [
        Local("2024-07-01 00:00:00", "UTC", 1719792000),
        Local("2024-07-01 00:00:00", "Europe/Paris", 1719784800),
        Local("2024-03-31 00:00:00", "Asia/Beirut", 1711836000),  # no midnight: it moves forward
        Local("2011-12-30 00:00:00", "Pacific/Apia", 1325239200),  # no such day
        Local("1970-01-01 00:00:00", "Asia/Kathmandu", -19800),
        Local("2023-10-29 00:00:00", "Atlantic/Azores", 1698537600),  # twice: the earlier one
    ],
)
def test_local_times(spark: SparkSession, kind: str, case: Local) -> None:
    at = f"CAST('{case.text}' AS {kind})"
    query = f"SELECT 1 AS zone_id, explode(array({at}, {at} - INTERVAL '2' DAY, {at} + INTERVAL '2' DAY)) AS at"
    found = opened(spark, Source(sql=query, time="at", zone=case.zone))
    assert micros(found.rows((Interval(case.seconds, case.seconds + 1),))) == [case.seconds * SECOND]
    earlier = datetime.fromisoformat(case.text).replace(tzinfo=ZoneInfo(case.zone), fold=0)
    assert earlier.astimezone(UTC).timestamp() == case.seconds


@pytest.mark.parametrize(
    ("unit", "count", "kind", "expected"),
    [
        ("s", -1, "TINYINT", -1_000_000),
        ("ms", 1_500, "INT", 1_500_000),
        ("us", -7, "BIGINT", -7),
        ("ns", -1, "BIGINT", -1),
        ("ns", -1_000, "SMALLINT", -1),
        ("ns", 1_999, "BIGINT", 1),
    ],
)
def test_integers(spark: SparkSession, unit: str, count: int, kind: str, expected: int) -> None:
    query = f"SELECT CAST({count} AS {kind}) AS at, 1 AS zone_id"
    found = opened(spark, Source(sql=query, time="at", unit=unit))
    second = expected // SECOND
    assert micros(found.rows((Interval(second, second + 1),))) == [expected]
    assert micros(found.rows((Interval(second + 1, 10**12),))) == []


@pytest.mark.parametrize("second", ["1969-12-31 23:59:58.0005", "2024-03-10 12:00:01.999999"])
def test_the_log_says_when_events_were_unless_some_do_not_count(
    spark: SparkSession, tmp_path: Path, second: str
) -> None:
    rows = sql(spark, f"SELECT timestamp'1960-01-01' AS at, 1 AS zone_id UNION ALL SELECT timestamp'{second}', 2")
    rows.coalesce(1).write.format("delta").save(str(tmp_path))
    every, some = (opened(spark, Source(path=str(tmp_path), time="at", where=where)) for where in (None, "zone_id > 1"))
    last = int(datetime.fromisoformat(f"{second[:19]}Z").timestamp())
    assert some.extent() == Interval(last, last + 1)
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    assert every.told_extent() == Interval(-3653 * 86_400, last + 1)
    assert some.told_extent() is None


@pytest.mark.parametrize(
    "changes",
    [
        # Rows that went are in the file still; and the file calls another column so.
        ("SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",),
        (
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "RENAME COLUMN at TO local",
            "RENAME COLUMN utc TO at",
        ),
    ],
)
def test_the_log_is_not_asked_when_events_were_where_files_say_otherwise(
    spark: SparkSession, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    times = "timestamp_seconds(7200 * id) AS at, timestamp_seconds(3600) AS utc, int(id) AS zone_id"
    spark.range(2).selectExpr(*times.split(", ")).coalesce(1).write.format("delta").save(str(tmp_path))
    told = opened(spark, Source(path=str(tmp_path), time="at")).told_extent()
    assert told == Interval(0, 7201)
    for change in changes:
        sql(spark, f"ALTER TABLE delta.`{tmp_path}` {change}")
    sql(spark, f"DELETE FROM delta.`{tmp_path}` WHERE at < '1970-01-01 01:00:00'")  # noqa: S608 - of our own making
    found = opened(spark, Source(path=str(tmp_path), time="at"))
    assert found.told_extent() is None
    assert found.extent() != told


def test_integers_that_are_no_times_are_out_of_any_span(spark: SparkSession) -> None:
    query = "SELECT IF(id = 0, 9223372036854775807, 5) AS at, 1 AS zone_id FROM range(2)"
    found = opened(spark, Source(sql=query, time="at", unit="s"))
    assert micros(found.rows((Interval(-(10**12), 10**12),))) == [5 * SECOND]


def test_rows_without_a_time(spark: SparkSession) -> None:
    query = "SELECT CAST(NULL AS TIMESTAMP) AS at, id AS zone_id FROM range(3)"
    found = opened(spark, Source(sql=query, time="at", where="zone_id > 0"))
    assert micros(found.rows()) == []
    assert found.extent() is None
    rule = rollup(Source(sql=query, time="at"))
    with pytest.raises(RunError) as raised:
        found.check_null_times(rule.null_time)
    assert str(raised.value) == (
        "2 rows have no time: at is NULL. Hint: correct them, leave them out by where:, or declare null_time: skip."
    )


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    spark.read.schema(COLUMNS).json([]).createOrReplaceTempView("typed")
    twice = "SELECT 1 AS a, 2 AS A, timestamp_seconds(1) AS at, parse_json('1') AS v"
    sql(spark, twice).createOrReplaceTempView("twice")


HAS = "it has zone_id, at, fare, Tip, note, tags, day"
SHOWN = "it has zone_id, at, fare, Tip, note, tags, _id, day"
CAST = "Hint: cast it to a type that fits."
BEFORE = "Hint: compute it in sql: SELECT ... AS name."
RENAME = "Hint: sql: SELECT ... AS name renames a column."
STORE = "it differs each time it is computed. Hint: store it in the source."
CLOCK = "it depends on when it is computed. Hint: compare with a column, or with a fixed instant."
NO_QUERY = "a query cannot be inside it. Hint: read the other table in sql: SELECT ... JOIN ...."
WRONG_AGGREGATES = {
    "avg(zzz + fare)": f"there is no column zzz in the source; {HAS}. Hint: name one of them.",
    "min(`no te`)": f"there is no column no te in the source; {HAS}. Hint: did you mean note?",
    "sum(tags)": 'The first parameter requires the "NUMERIC" or "ANSI INTERVAL" type, '
    f'however "tags" has the type "MAP<STRING, INT>". {CAST}',
    "avg(day) where fare": 'The first parameter requires the "BOOLEAN" type, '
    f'however "fare" has the type "DOUBLE". {CAST}',
    "sum(rand())": STORE,
    "count() where rand() > 0.5": STORE,
    "count(now())": CLOCK,
    "count() where at > Current_Timestamp": CLOCK,
    "sum(unix_timestamp())": CLOCK,
    "max(day > current_date())": CLOCK,
    "sum(_id)": f"it reads the column _id, and names that begin with _ are reserved. {RENAME}",
    "sum((select id from range(1)))": NO_QUERY,
    "sum(percentile_approx(fare, 0.5))": f"an aggregate cannot be inside it. {BEFORE}",
    "sum(explode(array(fare)))": f"it makes several rows of one. {BEFORE}",
    "sum(foo(fare))": "there is no function foo. Hint: name a function of Spark SQL.",
    "sum(fare +)": "Syntax error at or near ')'. Hint: write an expression of Spark SQL.",
    "sum(fare tip)": "Syntax error at or near ')'. Hint: write an expression of Spark SQL.",
    "sum(fare.x)": 'Can\'t extract a value from "fare". '
    'Need a complex type [STRUCT, ARRAY, MAP] but got "DOUBLE". Hint: correct the expression.',
}


def test_every_aggregate_that_does_not_fit_is_named(spark: SparkSession) -> None:
    right = ("count(extract(year from at))", "sum(Fare)", "count() where note = 'now()'")
    with pytest.raises(SourceError) as raised:
        opened(spark, Source(table="typed", time="at"), *WRONG_AGGREGATES, *right, "max(tags)")
    assert raised.value.exit_code == 2
    texts = [f"aggregate 'a{i}: {call}': {wrong}" for i, (call, wrong) in enumerate(WRONG_AGGREGATES.items())]
    texts.append(
        "aggregate 'max(tags)': tags is of type map<string,int>, whose values cannot be compared. "
        "Hint: take a part of it, or cast it."
    )
    assert str(raised.value).split("\n") == texts


@pytest.mark.parametrize(
    ("changes", "keys", "texts"),
    [
        (
            {"time": "att", "where": "fee > 0"},
            ("zone", "tags", "TIP"),
            [
                f"time 'att': there is no column att in the source; {SHOWN}. Hint: did you mean at?",
                f"key 'zone': there is no column zone in the source; {SHOWN}. Hint: did you mean zone_id?",
                (
                    "key 'tags': its type is MAP<STRING,INT>, by which rows cannot be grouped. "
                    "Hint: sql: SELECT ... AS name makes a text or a number of it."
                ),
                f"where 'fee > 0': there is no column fee in the source; {HAS}. Hint: name one of them.",
            ],
        ),
        (
            {"table": "twice"},
            ("A", "v"),
            [
                f"key 'A': the source has the columns a and A, which Spark cannot tell apart. {RENAME}",
                (
                    "key 'v': its type is VARIANT, by which rows cannot be grouped. "
                    "Hint: sql: SELECT ... AS name makes a text or a number of it."
                ),
            ],
        ),
        (
            {"where": "fare"},
            (),
            [f'where \'fare\': Filter expression "fare" of type "DOUBLE" is not a boolean. {CAST}'],
        ),
        ({"where": "rand() > 0.5"}, (), [f"where 'rand() > 0.5': {STORE}"]),
        ({"where": "at < localtimestamp ()"}, (), [f"where 'at < localtimestamp ()': {CLOCK}"]),
        ({"where": "zone_id in (select 1)"}, (), [f"where 'zone_id in (select 1)': {NO_QUERY}"]),
        (
            {"time": "note"},
            (),
            [
                (
                    "time 'note': its type is STRING, where TIMESTAMP, TIMESTAMP_NTZ, DATE or an integer is wanted. "
                    "Hint: sql: SELECT ... to_timestamp(...) AS name makes one of it."
                )
            ],
        ),
        (
            {"time": "zone_id"},
            (),
            [
                (
                    "time 'zone_id': its type is INT, and nothing says what it counts. "
                    "Hint: add unit: s, ms, us or ns to the source."
                )
            ],
        ),
        ({"unit": "s"}, (), ["time 'at': its type is TIMESTAMP, and unit s goes with integers. Hint: remove unit."]),
        (
            {"zone": "Europe/Paris"},
            (),
            [
                (
                    "time 'at': zone Europe/Paris goes with times that are local, and a TIMESTAMP is an instant. "
                    "Hint: remove zone."
                )
            ],
        ),
        (
            {"table": "nope"},
            (),
            [
                (
                    "source: The table or view `nope` cannot be found. Verify the spelling and correctness of the "
                    "schema "
                    "and catalog. Hint: check its name, and the session's catalog."
                )
            ],
        ),
    ],
)
def test_what_does_not_fit(
    spark: SparkSession, changes: dict[str, str], keys: tuple[str, ...], texts: list[str]
) -> None:
    with pytest.raises(SourceError) as raised:
        opened(spark, Source(**({"table": "typed", "time": "at"} | changes)), keys=keys)
    assert str(raised.value).split("\n") == texts


def test_places_where_nothing_fits_is(spark: SparkSession, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(SourceError) as raised:
        opened(spark, Source(path=str(nowhere), time="at"))
    assert str(raised.value) == f"source: Path does not exist: {nowhere}. Hint: check path: of the source."
    spark.range(1).write.parquet(str(nowhere))
    with pytest.raises(SourceError) as raised:
        opened(spark, Source(path=str(nowhere), time="at"))
    assert str(raised.value) == (
        f"source: Delta table `{nowhere}` doesn't exist. Hint: say format: parquet if it is plain files."
    )


def test_a_relative_path_begins_where_the_process_is(
    spark: SparkSession, trips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trips.parent)
    assert opened(spark, Source(path="trips", time="at")).version is not None
    assert located("s3://lake/trips") == "s3://lake/trips"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("2*Fare", ["fare"]),
        ("'`' || fare || '`'", ["fare"]),
        ("`net pay` + `a``b`", ["net pay", "a`b"]),
        ("hash(fare, *)", ["fare", "net pay", "a`b"]),
        ("identifier('fa' || 're')", ["fare", "net pay", "a`b"]),
        ("fares", []),
    ],
)
def test_the_columns_that_an_expression_may_read(text: str, names: list[str]) -> None:
    fields = [StructField(name, LongType()) for name in ("fare", "net pay", "a`b")]
    assert [field.name for field in needed_fields([text], fields)] == names


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "'delta.appendOnly' = 'true'",
        "'delta.enableChangeDataFeed' = 'true'",
        "'delta.columnMapping.mode' = 'name'",
        "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'",
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'",
    ],
)
def test_what_a_commit_has_summed_up_is_what_the_table_says(
    spark: SparkSession, tmp_path: Path, properties: str
) -> None:
    table, folder = f"delta.`{tmp_path}/it's [a] table`", f"{tmp_path}/it's [a] table"
    given = f"TBLPROPERTIES ({properties})" if properties else ""
    sql(spark, f"CREATE TABLE {table} (at TIMESTAMP, zone_id INT) USING delta PARTITIONED BY (zone_id) {given}")
    spark.range(9).createOrReplaceTempView("nine")
    sql(spark, f"INSERT INTO {table} SELECT timestamp_seconds(id), int(id % 3) FROM nine")  # noqa: S608 - of a test
    told, summed = described(spark, table), summed_up(spark, folder, 1)
    if summed is None:
        assert "minWriterVersion" in properties  # it does not list what such a table may have
        return
    assert replace(summed, location="") == replace(told, location="")
    assert summed_up(spark, folder, 2) is None
    Path(folder, "_delta_log", f"{1:020d}.crc").write_text("{}", encoding="utf-8")
    assert summed_up(spark, folder, 1) is None
