from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from stairwise import Rollup, Source, optimize
from stairwise.declared import Catalog, Estimates
from stairwise.options import Options, TiersAllowed
from stairwise.tiers import Kind
from stairwise.window import CalendarWindow, CumulateWindow, FixedWindow
from stairwise.windowing import Interval, windows_ending
from stairwise_spark import tables, writes
from stairwise_spark.coverage import Coverage, State
from stairwise_spark.errors import BusyError, RunError
from stairwise_spark.grid import within
from stairwise_spark.rows import Rows
from stairwise_spark.session import sql
from stairwise_spark.spans import joined, masked, without
from stairwise_spark.storage import Storage
from stairwise_spark.writes import Write, Written, parts
from tests.changed import but

pytestmark = pytest.mark.spark
_DAY = 86_400
_WINDOWS = ("20s", "30s", "2m every 30s as rolling")


def _rollup(
    target: str | Catalog, layout: str = "tables", name: str = "trips", windows: tuple[str, ...] = _WINDOWS
) -> Rollup:
    return Rollup(
        name=name,
        source=Source(table="lake.trips", time="at"),
        keys=["zone.id"],
        aggregates={"trips": "count()", "fare": "sum(fare) where kind = 'it''s'"},
        windows=windows,
        target=target,
        layout=layout,
        estimates=Estimates(rows_per_day=10**9, distinct_keys=10),
    )


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    """Tables to look at, with a commit in one of them."""
    kept = _storage(spark, _rollup(str(tmp_path_factory.mktemp("kept") / "target")))
    kept.ensure({"20s": _schemas(kept)["20s"]})
    kept.write("r1", [_write(kept, "20s", Interval(0, 60), is_new=True)])
    return kept


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    """Tables that are all there, and a ledger that says so."""
    made = _storage(spark, _rollup(str(tmp_path_factory.mktemp("made"))))
    made.ensure(_schemas(made))
    return made


def _storage(spark: SparkSession, rollup: Rollup) -> Storage:
    storage = Storage.of(spark, optimize(rollup, Options(tiers=TiersAllowed.FACTOR)))
    assert {tier.kind for tier in storage.tiers.values()} > {Kind.DECLARED}
    return storage


def _helper(storage: Storage) -> str:
    return next(name for name, tier in storage.tiers.items() if tier.kind is not Kind.DECLARED)


def _rows(storage: Storage, tier: str, span: Interval, value: int = 1) -> DataFrame:
    """Rows as the tier stores them: for each window that ends in the span, one for each of two keys."""
    window = storage.tiers[tier].window
    assert isinstance(window, FixedWindow | CalendarWindow | CumulateWindow)
    bounds = ", ".join(f"({each.start}L, {each.end}L)" for each in windows_ending(window, *span)) or "(0L, 0L)"
    cells = sql(storage.spark, f"FROM VALUES {bounds} AS cells (start, end) |> WHERE start < end")
    is_declared = storage.tiers[tier].kind is Kind.DECLARED
    return cells.crossJoin(storage.spark.range(2)).selectExpr(
        "CAST(id AS INT) AS `zone.id`",
        "timestamp_seconds(start) AS window_start",
        "timestamp_seconds(end) AS window_end",
        *([f"{value}L AS trips", "CAST(7 AS DECIMAL(20, 2)) AS fare"] if is_declared else []),
        f"{value}L AS _rows",
    )


def _schemas(storage: Storage) -> dict[str, StructType]:
    return {tier: _rows(storage, tier, Interval(0, 0)).schema for tier in storage.tiers}


def _write(
    storage: Storage, tier: str, span: Interval, value: int = 1, source: int = 1, *, is_new: bool = False
) -> Write:
    window = storage.tiers[tier].window
    assert isinstance(window, FixedWindow)
    return Write(
        tier=tier,
        rows=Rows(_rows(storage, tier, span, value)),
        ends=(span,),
        starts=(Interval(span.start - window.range, span.end),),
        coverage=Coverage.of(span, source),
        is_new=is_new,
    )


def _over(*parts: tuple[Interval, int]) -> Coverage:
    return Coverage.over((span.start, span.end, version) for span, version in parts)


def _stored(storage: Storage, done: Written) -> list[tuple[int, int, int]]:
    """Start, end and value of each window of the first key, after a write."""
    rows = storage.stored(done.tier, done.version).where("`zone.id` = 0")
    seconds = rows.select(F.unix_seconds("window_start"), F.unix_seconds("window_end"), "_rows")
    return sorted((row[0], row[1], row[2]) for row in seconds.collect())


def _wanted(storage: Storage, tier: str, *parts: tuple[Interval, int]) -> list[tuple[int, int, int]]:
    window = storage.tiers[tier].window
    assert isinstance(window, FixedWindow)
    return sorted((each.start, each.end, value) for span, value in parts for each in windows_ending(window, *span))


def _fresh(storage: Storage) -> Storage:
    return Storage(storage.spark, storage.rollup, storage.plan, storage.tiers, storage.wanted)


def test_a_life(spark: SparkSession, tmp_path: Path) -> None:
    """Rows are added, replaced, repeated, emptied; what is known follows, for whoever comes next."""
    storage = _storage(spark, _rollup(str(tmp_path / "it's [a] target")))
    rolling, helper = "rolling", _helper(storage)
    storage.ensure({tier: schema for tier, schema in _schemas(storage).items() if tier in (rolling, helper)})
    first, second, kept, restated = Interval(-60, 60), Interval(60, 120), Interval(-60, 0), Interval(0, 60)
    assert storage.states() == dict.fromkeys((rolling, helper), State(0, Coverage()))
    done = storage.write("r1", [_write(storage, tier, first, is_new=True) for tier in (rolling, helper)])
    assert [(each.tier, each.version, each.rows, each.wrote) for each in done] == [
        (tier, 1, 2 * len(_wanted(storage, tier, (first, 1))), True) for tier in (rolling, helper)
    ]
    assert all(each.files >= 1 and each.bytes > 0 for each in done)

    other = _fresh(storage)
    again = [_write(other, rolling, restated, value=2, source=2)]
    (replaced,) = other.write("r2", again)
    assert (replaced.version, replaced.windows, replaced.rows, replaced.wrote) == (2, 2, 4, True)
    assert _stored(storage, replaced) == _wanted(storage, rolling, (kept, 1), (restated, 2))
    assert storage.write("r2", again) == (replace(replaced, windows=None, wrote=False),)

    nothing = replace(_write(other, rolling, second, source=3), rows=Rows(_rows(other, rolling, Interval(0, 0))))
    assert other.write("r3", [nothing]) == (Written(tier=rolling, version=2, wrote=False),)
    other.record("r3", {})
    (emptied,) = other.write("r4", [replace(nothing, ends=(restated,), coverage=Coverage.of(restated, 4))])
    assert (emptied.version, emptied.rows, emptied.wrote) == (3, 0, True)

    known = _fresh(storage).states()
    assert known[rolling] == State(3, _over((kept, 1), (restated, 4), (second, 3))) == other.states()[rolling]
    assert known[helper] == State(1, Coverage.of(first, 1))
    _check_vacuum(spark, storage, rolling)
    assert _stored(storage, emptied) == _wanted(storage, rolling, (kept, 1))


def _check_vacuum(spark: SparkSession, storage: Storage, tier: str) -> None:
    """The folders of parts are no secret of ours: what no version needs any longer goes."""
    folder, setting = Path(str(storage.place(tier).path)), "spark.databricks.delta.retentionDurationCheck.enabled"
    before = len([*folder.glob("_part=*/*.parquet")])
    spark.conf.set(setting, "false")
    sql(spark, f"VACUUM {storage.place(tier).identifier} RETAIN 0 HOURS")
    spark.conf.unset(setting)
    assert before > len([*folder.glob("_part=*/*.parquet")]) > 0


def test_a_run_with_nothing_to_do_takes_two_jobs(made: Storage) -> None:
    spark = made.spark

    def jobs() -> int:
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    made.ledger.save_plan("{}")
    other = _fresh(made)
    before = jobs()
    assert other.is_made()
    other.ledger.save_plan("{}")
    found = other.states()
    assert jobs() - before <= 2
    assert found == made.states()
    assert not replace(_fresh(made), plan="another").is_made()


def test_a_table_without_a_commit_is_none(made: Storage) -> None:
    """The folder of a log alone says nothing; what was known of the table that it was is known no longer."""
    known = made.states()
    made.record("r1", known)
    log = Path(str(made.place("20s").path), "_delta_log")
    kept = log.rename(log.with_name("kept"))
    log.mkdir()
    try:
        assert known.keys() - _fresh(made).states().keys() == {"20s"}
    finally:
        rmtree(log)
        kept.rename(log)


def test_a_table_that_was_deleted_is_made_again(made: Storage) -> None:
    """What was known of it is known no longer; a run that does not make it says so."""
    helper, claimed = _helper(made), State(0, Coverage.of(Interval(0, 60), 7))
    known = made.states()
    made.record("r1", {"20s": claimed, helper: claimed})
    rmtree(str(made.place("20s").path))
    with pytest.raises(RunError) as refused:
        _fresh(made).write("r2", [_write(made, "20s", Interval(0, 60))])
    text = f"table {made.place('20s')}: it is not there. Hint: run a backfill, which makes it."
    assert str(refused.value) == text
    for folder in ("20s", "_stairwise/ledger"):
        rmtree(str(Path(str(made.rollup.target), folder)), ignore_errors=True)
        other = _fresh(made)
        other.ensure(_schemas(made))
        assert other.states() == (known | {helper: claimed} if folder == "20s" else known)
        other.ledger.save_plan('{"a": 1}')
        assert _fresh(made).is_made()


def test_what_is_read_for_other_tiers(kept: Storage) -> None:
    frame = kept.read("20s", kept.states()["20s"].version, Interval(15, 60))
    assert frame.columns == ["zone.id", "_begin", "_end", "_rows"]
    rows = frame.where("`zone.id` = 1").orderBy("_end").collect()
    assert [tuple(row) for row in rows] == [(1, 20 * 10**6, 40 * 10**6, 1), (1, 40 * 10**6, 60 * 10**6, 1)]
    assert kept.read("20s", 0).isEmpty()


def test_a_schema_of_the_catalog(spark: SparkSession) -> None:
    sql(spark, "CREATE SCHEMA kept")
    try:
        storage = _storage(spark, _rollup(Catalog("kept"), "one_table"))
        storage.ensure(_schemas(storage))
        span, helper = Interval(-60, 60), _helper(storage)
        done, _ = storage.write("r1", [_write(storage, tier, span) for tier in ("20s", helper)])
        storage.ledger.save_plan("{}")
        assert _stored(storage, done) == _wanted(storage, "20s", (span, 1))
        assert _fresh(storage).states() == storage.states()
        assert storage.states()[helper].coverage == Coverage.of(span, 1)
        assert storage.ledger.load_plan() == "{}"
        listed = sql(spark, "SHOW TABLES IN kept").where("NOT isTemporary").collect()
        tables = sorted(row["tableName"] for row in listed)
        assert tables == ["_trips_ledger", "_trips_tiers", "trips"]
    finally:
        sql(spark, "DROP SCHEMA kept CASCADE")


def test_places(spark: SparkSession) -> None:
    places = {
        (target, layout): [str(storage.place(tier)) for tier in ("20s", _helper(storage))] + [str(storage.ledger.place)]
        for target in ("/lake/trips", "s3://lake/trips/", Catalog("main.lake"))
        for layout in ("tables", "one_table")
        for storage in [_storage(spark, _rollup(target, layout))]
    }
    assert places == {
        ("/lake/trips", "tables"): ["/lake/trips/20s", "/lake/trips/_tiers/10s", "/lake/trips/_stairwise/ledger"],
        ("/lake/trips", "one_table"): ["/lake/trips", "/lake/trips/_tiers", "/lake/trips/_stairwise/ledger"],
        ("s3://lake/trips/", "tables"): [
            "s3://lake/trips/20s", "s3://lake/trips/_tiers/10s", "s3://lake/trips/_stairwise/ledger"
        ],
        ("s3://lake/trips/", "one_table"): [
            "s3://lake/trips", "s3://lake/trips/_tiers", "s3://lake/trips/_stairwise/ledger"
        ],
        (Catalog("main.lake"), "tables"): ["main.lake.20s", "main.lake._trips_10s", "main.lake._trips_ledger"],
        (Catalog("main.lake"), "one_table"): ["main.lake.trips", "main.lake._trips_tiers", "main.lake._trips_ledger"],
    }  # fmt: skip


def test_each_tier_of_one_table_has_parts_of_its_own_length(spark: SparkSession, tmp_path: Path) -> None:
    storage = _storage(spark, _rollup(str(tmp_path), "one_table", windows=("20s", "30s", "2d")))
    spans = {"20s": Interval(-60, 0), "30s": Interval(-60, 60), "2d": Interval(-4 * _DAY, 50 * _DAY)}
    storage.ensure({tier: schema for tier, schema in _schemas(storage).items() if tier in spans})

    def written(value: int, *, is_new: bool) -> tuple[Written, ...]:
        writes = [_write(storage, tier, span, value, is_new=is_new) for tier, span in spans.items()]
        return storage.write(f"r{value}", writes)

    for value, is_new in ((1, True), (2, False)):
        done = written(value, is_new=is_new)
        assert [each.rows for each in done] == [2 * len(_wanted(storage, tier, (of, 1))) for tier, of in spans.items()]
        found = {each.tier: _stored(storage, each) for each in done}
        assert found == {tier: _wanted(storage, tier, (span, value)) for tier, span in spans.items()}
    rows = spark.read.format("delta").load(str(tmp_path)).groupBy("window").agg(F.sort_array(F.collect_set("_part")))
    assert {row[0]: row[1] for row in rows.collect()} == {"20s": [-5], "30s": [-7, 0], "2d": [-48, 0, 48]}
    assert storage.stored("2d", 2, Interval(46 * _DAY, 50 * _DAY)).count() == 4


@pytest.mark.parametrize("most", [1_000_000, 10], ids=["looked up", "compared"])
def test_scattered_windows_are_replaced_and_no_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Many ranges are looked up in the predicate; where that would take too much, they are compared."""
    monkeypatch.setattr(writes, "masked", partial(masked, most=most))
    storage, whole = _storage(spark, _rollup(str(tmp_path))), Interval(-2_000, 2_000)
    storage.ensure({"20s": _schemas(storage)["20s"]})
    spans = joined(Interval(start // 20 * 20, start // 20 * 20 + 20) for start in range(-1_990, 1_900, 101))
    scattered = replace(
        _write(storage, "20s", whole, 2),
        rows=Rows(within(_rows(storage, "20s", whole, 2), F.unix_micros("window_end") - F.lit(1), spans)),
        ends=spans,
    )
    storage.write("r1", [_write(storage, "20s", whole, is_new=True)])
    (done,) = storage.write("r2", [scattered])
    others = [(span, 1) for span in without((whole,), spans)]
    assert _stored(storage, done) == _wanted(storage, "20s", *others, *((span, 2) for span in spans))


@pytest.mark.parametrize(
    ("keys", "days"),
    [
        (None, {"10m": 1, "1h": 1, "1d": 24}),
        (1, {"10m": 7, "1h": 7, "1d": 24}),
        (500, {"10m": 3, "1h": 7, "1d": 24}),
        (100_000, {"10m": 1, "1h": 1, "1d": 24}),
    ],
)
def test_parts_are_longer_where_they_have_few_rows(
    spark: SparkSession, tmp_path: Path, keys: int | None, days: dict[str, int]
) -> None:
    rollup = but(_rollup(str(tmp_path), windows=tuple(days)), estimates=Estimates(distinct_keys=keys))
    arrangement = Storage.of(spark, optimize(rollup)).arrangement
    assert {tier: arrangement.days(tier) for tier in days} == days


def test_a_table_keeps_the_parts_that_it_was_made_with(spark: SparkSession, tmp_path: Path) -> None:
    made = _storage(spark, _rollup(str(tmp_path)))
    made.ensure(_schemas(made))
    made.record("r", made.states())
    rollup = but(_rollup(str(tmp_path)), estimates=Estimates(distinct_keys=10**6))
    later, restored = (replace(_fresh(made), rollup=rollup) for _ in range(2))
    later.states()
    shutil.rmtree(tmp_path / "_stairwise")
    restored.states()  # by what the tables say
    days = [{tier: each.arrangement.days(tier) for tier in made.tiers} for each in (made, later, restored)]
    assert days[0] == days[1] == days[2]
    assert days[0]["20s"] == 5


@pytest.mark.parametrize(
    ("span", "length", "wanted"),
    [
        (Interval(0, 60), 1, "(_part >= 0 AND _part <= 0)"),
        (Interval(0, _DAY + 1), 1, "(_part >= 0 AND _part <= 1)"),
        (Interval(-1, 30 * _DAY), 24, "(_part >= -24 AND _part <= 24)"),
        (Interval(25 * _DAY, 48 * _DAY), 24, "(_part >= 24 AND _part <= 24)"),
    ],
)
def test_parts(span: Interval, length: int, wanted: str) -> None:
    assert parts([span], length) == wanted


def test_many_parts_are_listed() -> None:
    spans = [Interval(day * _DAY, day * _DAY + 60) for day in range(-2, 80, 4)]
    assert parts(spans, 2) == f"_part IN ({', '.join(map(str, range(-2, 80, 4)))})"


def test_a_table_says_what_it_is(kept: Storage) -> None:
    place = kept.place("20s").identifier
    fields = {field.name: field for field in kept.spark.table(place).schema.fields}
    assert [*fields] == ["zone.id", "window_start", "window_end", "trips", "fare", "_rows", "_part"]
    comments = {name: field.metadata["comment"] for name, field in fields.items() if "comment" in field.metadata}
    assert (comments["trips"], comments["fare"]) == ("count()", "sum(fare) where kind = 'it''s'")
    detail = sql(kept.spark, f"DESCRIBE DETAIL {place}").collect()[0]
    assert detail["description"] == "Rollup trips: windows of 20s. Made by Stairwise."
    assert (detail["minReaderVersion"], detail["minWriterVersion"], detail["partitionColumns"]) == (1, 2, ["_part"])
    assert {
        key: text
        for key, text in detail["properties"].items()
        if key not in ("stairwise.version", "stairwise.table")
    } == {
        "delta.checkpointInterval": "50",
        "delta.dataSkippingStatsColumns": "`window_start`,`window_end`,`zone.id`",
        "delta.enableDeletionVectors": "false",
        "stairwise.keys": "10",
        "stairwise.plan": kept.plan,
        "stairwise.rollup": "trips",
    }  # fmt: skip
    log = Path(str(kept.place("20s").path), "_delta_log")
    schema = json.loads(json.loads((log / f"{0:020d}.json").read_text().splitlines()[1])["metaData"]["schemaString"])
    assert [each["name"] for each in schema["fields"] if not each["nullable"]] == ["window_start", "window_end"]
    again = replace(kept, plan="another")
    again.ensure({"20s": _schemas(kept)["20s"]})
    assert sql(kept.spark, f"DESCRIBE DETAIL {place}").collect()[0]["properties"]["stairwise.plan"] == "another"


def test_a_table_that_another_run_is_making_is_awaited(kept: Storage, tmp_path: Path) -> None:
    """Between the folder of a log and the first commit in it."""
    log, first = tmp_path / "20s" / "_delta_log", f"{0:020d}.json"
    log.mkdir(parents=True)
    (log / f".{first}.3c.tmp").touch()
    storage = _storage(kept.spark, _rollup(str(tmp_path)))
    with ThreadPoolExecutor() as pool:
        made = pool.submit(storage.ensure, {"20s": _schemas(storage)["20s"]})
        time.sleep(0.5)
        shutil.copy(Path(str(kept.place("20s").path), "_delta_log", first), log / first)
        made.result()
    assert storage.states()["20s"].coverage == Coverage()


def test_a_table_that_was_only_begun_is_begun_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_UNTIL_MADE", 0.5)
    log = tmp_path / "20s" / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    (log / f".{0:020d}.json.3c.tmp").touch()
    storage = _storage(spark, _rollup(str(tmp_path)))
    storage.ensure({"20s": _schemas(storage)["20s"]})
    assert storage.states()["20s"] == State(0, Coverage())


def test_a_target_that_holds_something_else_is_refused(kept: Storage, tmp_path: Path) -> None:
    spark, schemas = kept.spark, _schemas(kept)
    (tmp_path / "files" / "20s").mkdir(parents=True)
    (tmp_path / "files" / "20s" / "a.csv").write_text("1")
    sql(spark, f"CREATE TABLE delta.`{tmp_path}/theirs/20s` (a INT) USING delta")
    choose = "Hint: choose another target, or remove what is there."
    cases = {
        f"table {tmp_path}/files/20s: there are files that are no Delta table. {choose}": (
            _rollup(f"{tmp_path}/files"), schemas["20s"]
        ),
        f"table {tmp_path}/theirs/20s: there is a table that Stairwise did not make. {choose}": (
            _rollup(f"{tmp_path}/theirs"), schemas["20s"]
        ),
        f"table {kept.place('20s')}: it belongs to the rollup trips, not to rides. {choose}": (
            _rollup(str(kept.rollup.target), name="rides"), schemas["20s"]
        ),
        f"table {kept.place('20s')}: its column tip is missing, and the declaration says int. "
        "Hint: stairwise diff FILE says what that means, stairwise apply FILE changes it.": (
            kept.rollup, StructType([*schemas["20s"].fields, StructField("tip", IntegerType())])
        ),
        f"table {tmp_path}/new/20s: the name of a column or of a field in it holds one of ' ,;{{}}()=' or a line end, "
        "and Delta Lake takes none of them. Hint: rename it in the source: sql: SELECT ... AS name.": (
            _rollup(f"{tmp_path}/new"), StructType([*schemas["20s"].fields, StructField("a b", IntegerType())])
        ),
    }  # fmt: skip
    for text, (rollup, schema) in cases.items():
        with pytest.raises(RunError) as refused:
            _storage(spark, rollup).ensure({"20s": schema})
        assert str(refused.value) == text


def test_a_table_that_somebody_replaced_is_not_taken_for_ours(spark: SparkSession, tmp_path: Path) -> None:
    storage = _storage(spark, _rollup(str(tmp_path)))
    storage.ensure(_schemas(storage))
    storage.write("r1", [_write(storage, "20s", Interval(0, 60), is_new=True)])
    rmtree(str(storage.place("20s").path))
    sql(spark, f"CREATE TABLE {storage.place('20s').identifier} (a INT) USING delta")
    for known in (storage, _fresh(storage)):
        with pytest.raises(RunError) as refused:
            known.states()
        assert str(refused.value) == (
            f"table {storage.place('20s')}: there is a table that Stairwise did not make. "
            "Hint: choose another target, or remove what is there."
        )


def test_rows_are_never_added_upon_others(spark: SparkSession, tmp_path: Path) -> None:
    storage = _storage(spark, _rollup(str(tmp_path)))
    storage.ensure({"20s": _schemas(storage)["20s"]})
    late, later = _fresh(storage), _fresh(storage)
    late.states()
    later.states()
    span = Interval(0, 60)
    storage.write("r1", [_write(storage, "20s", span)])
    with pytest.raises(BusyError) as busy:
        late.write("r2", [_write(late, "20s", Interval(40, 80), is_new=True)])
    table = storage.place("20s")
    assert str(busy.value) == (
        f"table {table}: another run wrote windows of the same range, as version 1. Hint: run again."
    )
    (done,) = later.write("r3", [_write(later, "20s", Interval(60, 80), is_new=True)])
    assert _stored(storage, done) == _wanted(storage, "20s", (Interval(0, 80), 1))
    assert later.states()["20s"] == State(2, Coverage.of(Interval(0, 80), 1))


def _wait(for_it: Callable[[], bool]) -> None:
    """Until it is so, but no longer than a test may take."""
    for _ in range(1_200):
        if for_it():
            break
        time.sleep(0.05)


def test_runs_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    """While one run writes its rows slowly, another commits: of the same range that is too much, else it is not."""
    storage = _storage(spark, _rollup(str(tmp_path)))
    storage.ensure({tier: schema for tier, schema in _schemas(storage).items() if tier == "30s"})
    storage.states()
    early, tonight, tomorrow = Interval(0, 30), Interval(60, 90), Interval(_DAY + 60, _DAY + 90)

    def late(other: Interval) -> Written:
        begun, go_on = tmp_path / f"begun {other.start}", tmp_path / f"go on {other.start}"

        def waited(key: int) -> bool:
            # The other key goes through, which leaves a core for the other run.
            if key == 0:
                begun.touch()
                _wait(go_on.exists)
            return True

        write = _write(storage, "30s", early)
        slow_frame = write.rows.frame.where(F.udf(waited, "boolean", useArrow=False)("`zone.id`"))
        with ThreadPoolExecutor() as pool:
            slow = pool.submit(storage.write, f"r{other.start}", [replace(write, rows=Rows(slow_frame))])
            _wait(begun.exists)
            try:
                storage.write("r2", [_write(storage, "30s", other)])
            finally:
                go_on.touch()
        return slow.result()[0]

    with pytest.raises(BusyError):
        late(early)
    # In the same part, the commit is tried again; in another one it need not be.
    late(tonight)
    done = late(tomorrow)
    assert _stored(storage, done) == _wanted(storage, "30s", (early, 1), (tonight, 1), (tomorrow, 1))


def test_a_write_without_rows_heeds_what_others_wrote_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """Where no row was and none came there is no commit, so nothing in Delta's log tells of it."""
    storage = _storage(spark, _rollup(str(tmp_path / "a+b c%20d"), layout="one_table"))
    storage.ensure({tier: schema for tier, schema in _schemas(storage).items() if tier == "20s"})
    storage.states()
    first, second = Interval(0, 60), Interval(60, 120)
    other = _fresh(storage)
    other.write("another", [_write(other, "20s", second, is_new=True)])
    nothing = replace(_write(storage, "20s", first), rows=Rows(_rows(storage, "20s", Interval(0, 0))))
    (done,) = storage.write("r1", [nothing])
    assert not done.wrote
    assert storage.known["20s"].coverage == _over((first, 1), (second, 1))


def test_the_ledger(kept: Storage) -> None:
    assert kept.ledger.load_plan() is None
    kept.ledger.save_plan("{}")
    for _ in range(2):
        kept.ledger.save_plan('{"plan": "\\ \'2\'"}')
    kept.ledger.save_report("r/1", '{"run": 1}')
    assert kept.ledger.load_plan() == '{"plan": "\\ \'2\'"}'
    notes = kept.spark.table(kept.ledger.place.identifier)
    assert notes.where("kind = 'plan'").count() == 2
    assert [row["content"] for row in notes.where("kind = 'report' AND run = 'r/1'").collect()] == ['{"run": 1}']
    folder = Path(str(kept.rollup.target), "_stairwise")
    assert (folder / "plan.json").read_text() == '{"plan": "\\ \'2\'"}'
    assert (folder / "runs" / "r_1.json").read_text() == '{"run": 1}'


def test_another_reader_reads_it(kept: Storage) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = deltalake.DeltaTable(str(kept.place("20s").path))
    assert table.to_pyarrow_table(columns=["trips"]).column("trips").to_pylist() == [1] * 6
