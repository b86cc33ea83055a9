"""``stairwise verify``: what differs from the raw rows is named, whatever somebody did to a table."""
# ruff: noqa: S608 - statements of our own making

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.cli import main
from stairwise.declared import Catalog
from stairwise.errors import UsageError
from stairwise.json_fields import Json
from stairwise.plan import Plan
from stairwise.rollup import Rollup
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.coverage import Coverage, State
from stairwise_spark.due import BEGINNING
from stairwise_spark.engine import Request, run
from stairwise_spark.expressions import direct
from stairwise_spark.recomputed import listed
from stairwise_spark.session import sql
from stairwise_spark.source import open_source
from stairwise_spark.storage import Storage
from stairwise_spark.verify import Check, Proof, verify
from stairwise_spark.verify_text import told
from tests.spark_jobs.proving import AGGREGATES, DAY, HOUR, add_events, declared, filled, hours, on_disk

pytestmark = pytest.mark.spark


COUNTED = {"trips": "count()", "fares": "sum(fare)", "exact": "median(fare)"}


@dataclass(frozen=True)
class Filled:
    """A rollup with tables for the first twelve hours; tests change windows of hours of their own."""

    spark: SparkSession
    rollup: Rollup
    plan: Plan

    def table(self, tier: str) -> str:
        return f"delta.`{Storage.of(self.spark, self.plan).place(tier)}`"

    def change(self, statement: str) -> None:
        sql(self.spark, statement)

    def verify(self, check: Check) -> Proof:
        return verify(self.spark, self.plan, check)


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Events of 20 hours, a file for each ten."""
    path = str(tmp_path_factory.mktemp("source") / "events")
    add_events(spark, path, 0, 600)
    add_events(spark, path, 600, 1_200)
    return path


@pytest.fixture(scope="module")
def trips(spark: SparkSession, source: str, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    rollup = declared(source, tmp_path_factory.mktemp("tables") / "rollup")
    return Filled(spark, rollup, filled(spark, rollup, hours(0, 12)))


def of(proof: Proof) -> list[tuple[str, int, Mapping[str, Json], str | None, Json, Json]]:
    """The differences, by tier, end of the window in minutes, keys and column."""
    return [
        (each.tier, (each.window.end - DAY) // 60, each.keys, each.column, each.stored, each.recomputed)
        for each in proof.differences
    ]


def test_tables_that_nobody_touched_are_equal_by_every_way_of_looking(trips: Filled) -> None:
    helpers = [step.tier.name for step in trips.plan.steps if step.tier.kind is not Kind.DECLARED]
    assert helpers
    # The hours before are those of other tests.
    last = hours(11, 12)
    whole = trips.verify(Check(span=last, helpers=True))
    windows = {each.name: each.windows for each in whole.tiers}
    assert whole.differences == ()
    assert (windows["20m"], windows["30m"], windows["1h_every_30m"]) == (3, 2, 2)
    assert windows.keys() == {"20m", "30m", "1h_every_30m", *helpers}
    witness = trips.verify(Check(span=last, is_witness=True))
    assert (witness.total, witness.windows) == (0, 7)
    sample = trips.verify(Check(span=last, sample=2, seed=1))
    assert (sample.total, sample.windows) == (0, 6)
    assert "6 windows equal what the source at version 1 gives" in told(sample)
    assert "--seed 1 chooses the same again" in told(sample)


TAMPERED = {
    "a value": (
        "UPDATE {t} SET revenue = revenue + 1 WHERE {w} AND zone = 1",
        "revenue",
        True,
    ),
    "a double, by more than rounding": (
        "UPDATE {t} SET mean_tip = mean_tip * 1.0000001 WHERE {w} AND zone = 1",
        "mean_tip",
        True,
    ),
    "a decimal in its last digit": ("UPDATE {t} SET coins = coins + 0.01 WHERE {w} AND zone = 1", "coins", True),
    "an estimate": ("UPDATE {t} SET riders = riders + 5 WHERE {w} AND zone = 1", "riders", True),
    "a quantile": ("UPDATE {t} SET middle = middle + 20 WHERE {w} AND zone = 1", "middle", True),
    "a frequent item": (
        (
            "UPDATE {t} SET top = transform(top, x -> named_struct('item', 'r', 'count', x.count + 1)) WHERE {w}"
            " AND zone = 1"
        ),
        "top",
        True,
    ),
    "a result that is NULL": ("UPDATE {t} SET mean_tip = NULL WHERE {w} AND zone = 1", "mean_tip", True),
    "the number of rows": ("UPDATE {t} SET _rows = _rows - 1 WHERE {w} AND zone = 1", "_rows", False),
    "a row that is gone": ("DELETE FROM {t} WHERE {w} AND zone = 1", None, False),
    "a row that is there twice": ("INSERT INTO {t} SELECT * FROM {t} WHERE {w} AND zone = 1", None, False),
    "a row of the NULL key": ("DELETE FROM {t} WHERE {w} AND zone IS NULL", None, False),
}


def test_what_somebody_changed_is_named(trips: Filled) -> None:
    ends = {DAY + hour * HOUR + 1_800: name for hour, name in enumerate(TAMPERED)}
    for end, name in ends.items():
        trips.change(TAMPERED[name][0].format(t=trips.table("30m"), w=f"window_end = timestamp_seconds({end})"))
    proof = trips.verify(Check(tiers=("30m",)))
    found = {ends[each.window.end]: each for each in proof.differences}
    assert found.keys() == TAMPERED.keys()
    assert proof.total == len(TAMPERED)
    for name, (_, differing, _) in TAMPERED.items():
        assert (found[name].column, found[name].stored != found[name].recomputed) == (differing, True), name
        assert found[name].keys == {"zone": None if name == "a row of the NULL key" else 1}, name
    gone, twice = found["a row that is gone"], found["a row that is there twice"]
    assert gone.stored is None
    assert twice.recomputed is None
    for whole in (gone.recomputed, twice.stored):
        assert isinstance(whole, dict)
        assert {*AGGREGATES, "_rows"} - {"riders", "middle", "top"} <= whole.keys() <= {*AGGREGATES, "_rows"}
    witness = trips.verify(Check(tiers=("30m",), is_witness=True))
    seen = {ends[each.window.end] for each in witness.differences}
    assert seen == {name for name, (*_, is_hidden) in TAMPERED.items() if not is_hidden}


def test_a_state_that_is_wrong_is_found_before_another_tier_is_made_of_it(trips: Filled) -> None:
    helper = next(step.tier.name for step in trips.plan.steps if step.tier.kind is not Kind.DECLARED)
    for tier in ("20m", helper):
        state = next(name for name in trips.spark.table(trips.table(tier)).columns if name.startswith("_sum_fare"))
        at = f"window_end > timestamp_seconds({DAY}) AND window_end <= timestamp_seconds({DAY + 1_200}) AND zone = 0"
        trips.change(f"UPDATE {trips.table(tier)} SET {state} = 0 WHERE {at}")
        found = of(trips.verify(Check(span=Interval(DAY, DAY + 1_200), tiers=(tier,))))
        assert {each[3] for each in found} == {state}
        assert all(each[4] == 0 for each in found)


def test_rounding_is_no_difference(trips: Filled) -> None:
    at = f"window_end = timestamp_seconds({DAY + 11 * HOUR + 1_800})"
    trips.change(f"UPDATE {trips.table('20m')} SET mean_tip = mean_tip * (1 + 1e-12)")
    trips.change(f"UPDATE {trips.table('30m')} SET mean_tip = -0.0 - (-mean_tip), riders = riders + 0 WHERE {at}")
    assert trips.verify(Check(span=hours(11, 12), tiers=("20m", "30m"))).total == 0


def test_differences_are_limited_and_counted_and_the_repair_repairs(
    spark: SparkSession, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rollup = declared(source, tmp_path / "rollup", "one_table", aggregates=COUNTED)
    plan = filled(spark, rollup, hours(0, 2))
    sql(
        spark,
        f"UPDATE delta.`{rollup.target}` SET fares = -1, trips = 0 "
        "WHERE window = '20m' AND window_start >= '2024-01-01 01:00:00'",
    )
    file = on_disk(rollup, tmp_path)
    assert main(["verify", file, "--json", "--limit", "3"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "stairwise.verify/1"
    assert (document["equal"], len(document["differences"]), document["differences_total"]) == (False, 3, 24)
    assert document["differences"][0] == {
        "tier": "20m",
        "window_start": "2024-01-01T01:00:00Z",
        "window_end": "2024-01-01T01:20:00Z",
        "keys": {"zone": 0},
        "column": "fares",
        "stored": -1,
        "recomputed": 340,
    }
    assert main(["verify", file, "--limit", "1"]) == 1
    shown = capsys.readouterr().out
    assert "trips: 24 differences in 14 windows between the tables and the source at version 1\n" in shown
    assert "20m  2024-01-01T01:00Z to 2024-01-01T01:20Z  zone=0  fares: stored -1, recomputed 340\n" in shown
    assert "and 23 more" in shown
    repair = re.search(r"stairwise (run .*)", shown)
    assert repair is not None
    command = f"run {file} --restate --start 2024-01-01T01:00:00Z --end 2024-01-01T02:00:00Z"
    assert repair[1] == command
    run(spark, plan, Request(span=hours(1, 2), restate=True))
    assert main(["verify", file]) == 0
    assert "14 windows equal" in capsys.readouterr().out


def test_a_source_that_is_newer_is_said_to_be(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 60)
    plan = filled(spark, declared(path, tmp_path / "rollup", aggregates={"trips": "count()"}), hours(0, 1))
    add_events(spark, path, 5, 6)
    proof = verify(spark, plan, Check())
    assert {each.column for each in proof.differences} == {"trips", "_rows"}
    assert [each.is_behind for each in proof.tiers] == [True] * 3
    assert proof.hints[0] == (
        "The source is at version 1, and the tables reflect older ones: what changed since shows as differences. "
        "First bring them up to date: stairwise run FILE"
    )


def test_what_is_covered_from_the_beginning_is_verified_from_the_first_row(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 60)
    rollup = declared(path, tmp_path / "rollup", aggregates={"trips": "count()"}, windows=("1h", "day in Asia/Tokyo"))
    plan = filled(spark, rollup, hours(0, 24))
    storage = Storage.of(spark, plan)
    storage.record(
        "r",
        {
            tier: State(state.version, state.coverage.union(Coverage.of(Interval(BEGINNING, DAY), 0)))
            for tier, state in storage.states().items()
        },
    )
    proof = verify(spark, plan, Check())
    assert (proof.total, {each.name: each.windows for each in proof.tiers}) == (0, {"1h": 24, "day_in_asia_tokyo": 1})


def test_only_what_is_covered_is_verified_and_rows_elsewhere_are_told(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    rollup = declared(source, tmp_path / "rollup", aggregates={"trips": "count()"}, windows=("1h",))
    plan = filled(spark, rollup, hours(0, 2), hours(4, 5))
    proof = verify(spark, plan, Check(span=hours(2, 4)))
    assert (proof.windows, proof.hints) == (0, ("1h: nothing is covered there, so nothing was verified.",))
    table = f"delta.`{rollup.target}/1h`"
    sql(
        spark,
        f"INSERT INTO {table} SELECT zone, window_start + INTERVAL 2 HOURS, window_end + INTERVAL 2 HOURS, trips, "
        f"_rows, _part FROM {table} WHERE window_end = '2024-01-01 01:00:00'",
    )
    whole = verify(spark, plan, Check())
    assert (whole.windows, whole.total, whole.tiers[0].outside) == (3, 0, 4)
    assert whole.hints == ("1h: 4 rows are outside of what is covered, and were not verified.",)


def test_a_schema_of_the_catalog_is_verified_too(spark: SparkSession, source: str) -> None:
    sql(spark, "CREATE SCHEMA IF NOT EXISTS proven")
    rollup = declared(source, Catalog("proven"), aggregates={"trips": "count()", "fares": "sum(fare)"}, windows=("1h",))
    plan = filled(spark, rollup, hours(0, 2))
    assert verify(spark, plan, Check()).total == 0
    sql(spark, "DELETE FROM proven.`1h` WHERE zone = 2")
    assert [each.column for each in verify(spark, plan, Check()).differences] == [None, None]


def test_a_sample_reads_only_its_own_rows(trips: Filled) -> None:
    source = open_source(trips.spark, trips.rollup, direct)
    assert len(source.rows().inputFiles()) == 2
    assert len(listed(source, [Interval(DAY, DAY + HOUR), Interval(DAY + HOUR, DAY + 2 * HOUR)]).inputFiles()) == 1


def test_what_cannot_be_meant_is_refused(trips: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=re.escape("there is no tier 'days'. Hint: there are ")):
        trips.verify(Check(tiers=("days",)))
    file = on_disk(trips.rollup, tmp_path)
    assert main(["verify", file, "--start", "2024-01-02", "--end", "2024-01-01"]) == 2
    assert "is empty. Hint: let --end be later than --start." in capsys.readouterr().err
