"""Declarations change: the tables become those of the new one, of what is there where that is enough."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise import Options, Rollup, Source, TiersAllowed, optimize
from stairwise.cli import main
from stairwise.constants import Constants
from stairwise.errors import ChangedError, UsageError
from stairwise.evolution import Action, Permission
from stairwise.json_fields import Json
from stairwise.rollup import DeclaredWindow, Estimates, Layout
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark import contents, reshaping
from stairwise_spark.changing import apply
from stairwise_spark.delta_log import described
from stairwise_spark.difference import Applied, difference
from stairwise_spark.due import BEGINNING
from stairwise_spark.engine import History, Request, run
from stairwise_spark.report import ChunkBegun, ChunkDone, RunReport
from stairwise_spark.scope import Due
from stairwise_spark.session import having
from stairwise_spark.verify import Check, verify
from tests.changed import but

pytestmark = pytest.mark.spark

BOTH = frozenset(Permission)
DAYS = 3


@dataclass(frozen=True)
class World:
    """A source, and the rollup over it as it was declared first."""

    spark: SparkSession
    rollup: Rollup

    def add(self, hours: range, value: int = 1) -> None:
        """Events in some hours, twenty an hour, of four keys."""
        rows = self.spark.range(20 * hours.start, 20 * hours.stop).select(
            F.timestamp_seconds(F.col("id") * 180 + 1_700_006_400).alias("at"),
            (F.col("id") % 4).cast("string").alias("zone"),
            (F.col("id") % 7 + value).cast("bigint").alias("fare"),
            F.when(F.col("id") % 3 > 0, F.col("id") / 8).alias("tip"),
        )
        rows.write.format("delta").mode("append").save(str(self.rollup.source.path))

    def fill(self, rollup: Rollup | None = None) -> RunReport:
        """All of history, or what is due."""
        return run(self.spark, optimize(rollup or self.rollup), Request(span=History() if rollup is None else Due()))

    def changed(self, rollup: Rollup, allowed: frozenset[Permission] = frozenset()) -> Applied:
        """The tables are those of another declaration."""
        return apply(self.spark, difference(self.spark, rollup), allowed)

    def check(self, rollup: Rollup) -> None:
        """All tables equal the raw rows, and nothing is left to do."""
        assert not difference(self.spark, rollup).is_anything
        proof = verify(self.spark, optimize(rollup), Check(helpers=True))
        assert proof.total == 0, proof.to_json()
        assert proof.windows > 50

    def columns(self, tier: str) -> list[str]:
        """Of a table."""
        return self.spark.read.format("delta").load(f"{self.rollup.target}/{tier}").columns

    def writes(self, tier: str) -> int:
        """How many commits have written rows of a table."""
        history = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.rollup.target}/{tier}`")
        return history.where("operation = 'WRITE'").count()


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    rollup = Rollup(
        name="trips",
        source=Source(path=str(tmp_path / "trips"), time="at"),
        keys=("zone",),
        aggregates={"trips": "count()", "revenue": "sum(fare)", "paid": "count(fare)"},
        windows=("10m", "1h", "6h"),
        target=str(tmp_path / "tables"),
        estimates=Estimates(rows_per_day=1_000_000, distinct_keys=4),
    )
    world = World(spark, rollup)
    world.add(range(24 * DAYS))
    return world


def with_windows(rollup: Rollup, *windows: str) -> Rollup:
    return but(rollup, windows=windows)


def with_aggregates(rollup: Rollup, **aggregates: str) -> Rollup:
    return but(rollup, aggregates={name: str(each) for name, each in rollup.aggregates} | aggregates)


def actions(applied: Applied) -> list[tuple[Json, Json, Json]]:
    """What is done to tables and columns, but for what is kept."""
    found = applied.difference.to_json()["changes"]
    assert isinstance(found, list)
    told = [each for each in found if isinstance(each, dict) and each["action"] != "keep"]
    return [(each["action"], each["column"] or each["tier"], each["from"]) for each in told]


def read(applied: Applied) -> int:
    """The events that were read."""
    return sum(each.source.rows for each in applied.runs)


def test_what_is_there_already_costs_no_scan(world: World) -> None:
    """Windows come of finer tables, results of states that are kept, and another name is but a name."""
    world.fill()
    wanted = with_windows(world.rollup, "10m", "1h", "6h", "2h", "day")
    before = {tier: world.writes(tier) for tier in ("10m", "1h", "6h")}
    with pytest.raises(ChangedError, match="add 2h, add day"):
        world.fill(wanted)
    done = world.changed(wanted)
    prices = [done.difference.price(each).seconds for each in done.difference.evolution.of(Action.ADD)]
    # One query and one commit, for one run fills them, however long the schedule has been running.
    assert all(each is not None and 0 < each < 2 * (Constants().query + Constants().commit) for each in prices)
    assert [(action, what) for action, what, origin in actions(done) if origin is not None] == [
        ("add", "2h"),
        ("add", "day"),
    ]
    assert read(done) == 0
    assert {tier: world.writes(tier) for tier in before} == before

    wanted = with_aggregates(wanted, mean="avg(fare)")
    done = world.changed(wanted)
    assert actions(done) == [("fill", "mean", "its own states")]
    assert read(done) == 0
    assert "mean" in world.columns("6h")

    written = world.writes("1h")
    wanted = but(wanted, windows=("10m", "6h", "2h", "day", DeclaredWindow.parse("1h", name="hourly")))
    assert actions(world.changed(wanted)) == [("rename", "hourly", "1h")]
    assert world.writes("hourly") == written
    assert not Path(str(world.rollup.target), "1h").exists()

    wanted = but(wanted, delay="1h", null_time="skip", estimates=Estimates(rows_per_day=5))
    assert not world.fill(wanted).wrote_anything
    world.check(wanted)


@pytest.mark.parametrize("layout", list(Layout))
def test_windows_more_need_no_event_where_tables_hold_them(world: World, layout: Layout) -> None:
    declared = but(world.rollup, layout=layout.value)
    world.add(range(24 * DAYS, 24 * DAYS + 2))  # which no window of six hours holds that has ended
    until = 1_700_006_400 + 3_600 * (24 * DAYS + 2)
    run(world.spark, optimize(declared), Request(span=Interval(BEGINNING, until)))
    for file in Path(str(world.rollup.source.path)).glob("*.parquet"):
        file.rename(f"{file}.away")
    wider = with_windows(declared, "10m", "20m", "1h", "2h", "6h")
    assert read(world.changed(wider)) == 0
    for file in Path(str(world.rollup.source.path)).glob("*.away"):
        file.rename(str(file).removesuffix(".away"))
    proof = verify(world.spark, optimize(wider), Check(span=Interval(1_700_006_400, until), helpers=True))
    assert (proof.total, proof.windows) == (0, 444 + 222 + 74 + 37 + 12)


def test_events_that_came_too_late_for_tables_are_in_what_is_made_of_events(world: World) -> None:
    """Tables reflect the version that has them, and hold them not: so they do not say when the first event was."""
    declared = but(world.rollup, late="ignore", lateness="1h")
    run(world.spark, optimize(declared), Request(span=Interval(BEGINNING, 1_700_006_400 + 86_400 * DAYS)))
    world.add(range(-3, -1))
    assert world.fill(declared).ignored_rows == 40
    wider = with_windows(declared, "7m", "10m", "1h", "6h")
    assert read(world.changed(wider)) == 20 * (24 * DAYS + 2)
    proof = verify(world.spark, optimize(wider), Check(tiers=("7m",)))
    assert proof.total == 0


def test_files_without_statistics_say_nothing_of_when_events_were(world: World) -> None:
    world.fill()
    world.add(range(24 * DAYS, 24 * DAYS + 2))
    with having(world.spark, {"spark.databricks.delta.stats.collect": "false"}):
        world.fill(world.rollup)
    wider = with_windows(world.rollup, "10m", "20m", "1h", "6h")
    assert read(world.changed(wider)) == 0
    world.check(wider)


def test_what_is_restated_does_not_ask_tables_when_events_were(world: World) -> None:
    whole, target = Interval(BEGINNING, 1_700_006_400 + 86_400 * DAYS), str(world.rollup.target)
    run(world.spark, optimize(world.rollup), Request(span=whole))
    world.spark.sql(f"DELETE FROM delta.`{target}/6h` WHERE window_start < '2023-11-17'")  # noqa: S608 - of a test
    shutil.rmtree(f"{target}/10m")
    run(world.spark, optimize(world.rollup), Request(span=whole, restate=True))
    world.check(world.rollup)


def test_what_tables_hold_is_known_however_their_logs_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.fill()
    world.add(range(24 * DAYS, 24 * DAYS + 2))
    world.fill(world.rollup)
    before = difference(world.spark, world.rollup).holds
    assert {tier: before[tier].rows for tier in ("10m", "1h", "6h")} == {"10m": 1480, "1h": 296, "6h": 52}
    # Commits are found by what they are called; and newer ones are not seen at once.
    for name, number in (("_FEW", 0), ("_BEHIND", -1)):
        with monkeypatch.context() as patched:
            patched.setattr(contents, name, number)
            assert difference(world.spark, world.rollup).holds == before
    shutil.rmtree(f"{world.rollup.target}/1h")
    assert difference(world.spark, world.rollup).holds == {tier: before[tier] for tier in before if tier != "1h"}


def test_what_nobody_can_supply_is_filled_from_the_events_and_what_goes_has_to_be_allowed(world: World) -> None:
    world.fill()
    wanted = with_aggregates(world.rollup, mean="avg(fare)", most="max(tip)", middle="median(fare)")
    done = world.changed(wanted)
    assert None in [origin for _, _, origin in actions(done)]
    assert read(done) >= 20 * 24 * DAYS
    world.check(wanted)

    wanted = but(
        world.rollup, windows=("10m", "6h"), aggregates={"trips": "count()", "paid": "count(fare)", "most": "max(tip)"}
    )
    with pytest.raises(UsageError, match=r"drop revenue .*drop 1h .*--allow-drop"):
        world.changed(wanted)
    assert world.columns("1h")
    world.changed(wanted, frozenset({Permission.DROP}))
    assert not Path(str(world.rollup.target), "1h").exists()
    assert not [name for name in world.columns("6h") if "revenue" in name or "_sum_fare" in name]
    assert described(world.spark, f"delta.`{world.rollup.target}/6h`").partitions == ("_part",)

    wanted = with_aggregates(wanted, paid="avg(tip)")
    with pytest.raises(
        UsageError, match=r"fill paid \(it was count\(fare\), and is avg\(tip\)\)\. Hint: add --allow-rebuild"
    ):
        world.changed(wanted)
    world.changed(wanted, frozenset({Permission.REBUILD}))
    world.check(wanted)
    with pytest.raises(UsageError, match="choose another target"):
        world.changed(but(wanted, layout=Layout.ONE_TABLE), BOTH)


def test_runs_of_the_old_declaration_go_on_until_the_switch_and_are_made_up_for(world: World) -> None:
    """They write rows without the new column after it was filled; these are due then."""
    world.fill()
    wanted = with_aggregates(world.rollup, most="max(tip)")
    found = difference(world.spark, wanted)
    ran = False

    def meanwhile(event: object) -> None:
        nonlocal ran
        if isinstance(event, ChunkDone) and not ran:
            ran = True
            world.add(range(24 * DAYS, 24 * DAYS + 8))
            world.add(range(5, 6), value=9)
            assert world.fill(world.rollup).wrote_anything

    apply(world.spark, found, progress=meanwhile)
    assert ran
    world.fill(wanted)
    world.check(wanted)


def test_rows_that_mean_something_else_are_made_anew(world: World) -> None:
    first = but(world.rollup, windows=("10m", "1h", DeclaredWindow.parse("6h", name="long")))
    world.fill(first)
    before = world.writes("10m")
    wanted = but(first, windows=("10m", "1h", DeclaredWindow.parse("8h", name="long")))
    done = world.changed(wanted, frozenset({Permission.REBUILD}))
    assert ("rebuild", "long") in [each[:2] for each in actions(done)]
    assert world.writes("10m") == before
    world.check(wanted)
    keyless = but(wanted, keys=())
    for other in (keyless, but(keyless, source=but(wanted.source, where="fare > 3"))):
        with pytest.raises(ChangedError, match="rebuild 10m"):
            world.fill(other)
        with pytest.raises(UsageError, match="--allow-rebuild"):
            world.changed(other)
        world.changed(other, frozenset({Permission.REBUILD}))
        world.check(other)


def test_in_one_table_too(world: World) -> None:
    first = but(world.rollup, layout=Layout.ONE_TABLE)
    world.fill(first)
    wanted = but(
        with_aggregates(first, mean="avg(fare)"),
        windows=("10m", "2h", DeclaredWindow.parse("1h", name="hourly")),
    )
    world.changed(wanted, BOTH)
    world.check(wanted)
    table = f"delta.`{world.rollup.target}`"
    assert described(world.spark, table).partitions == ("_part", "window")
    again = but(wanted, windows=("10m", DeclaredWindow.parse("2h", name="two"), *wanted.windows[2:]))
    found = difference(world.spark, again)
    (renamed,) = found.evolution.of(Action.RENAME)
    assert found.price(renamed).rows == 4 * 12 * DAYS  # in one table, rows have their window's name
    apply(world.spark, found)
    windows = world.spark.table(table).select("window").distinct()
    assert {row["window"] for row in windows.collect()} == {"10m", "two", "hourly"}
    world.check(again)
    fewer = but(again, aggregates={"trips": "count()"})
    world.changed(fewer, BOTH)
    world.check(fewer)
    assert described(world.spark, table).partitions == ("_part", "window")


@pytest.mark.parametrize("layout", list(Layout))
def test_windows_that_have_not_ended_are_marked_from_then_on(world: World, layout: Layout) -> None:
    first = but(world.rollup, layout=layout)
    world.fill(first)
    wanted = but(first, partial=True)
    with pytest.raises(ChangedError, match="fill is_partial"):
        world.fill(wanted)
    done = world.changed(wanted)
    assert actions(done) == [("fill", "is_partial", "its own states")]
    assert read(done) == 0
    place = world.rollup.target if layout is Layout.ONE_TABLE else f"{world.rollup.target}/6h"
    rows = world.spark.table(f"delta.`{place}`")
    assert rows.where("is_partial IS NULL").isEmpty()
    world.check(wanted)
    far = {"window_start": F.lit("2100-01-01").cast("timestamp"), "window_end": F.lit("2100-01-02").cast("timestamp")}
    one = rows.limit(1).withColumns({**far, "is_partial": F.lit(1).cast("boolean")})
    one.write.format("delta").mode("append").save(str(place))
    with pytest.raises(UsageError, match="drop is_partial"):
        world.changed(first)
    world.changed(first, frozenset({Permission.DROP}))
    assert world.spark.table(f"delta.`{place}`").where("window_end > '2099-01-01'").isEmpty()
    world.check(first)


def test_a_run_that_began_before_the_switch_does_not_bring_the_old_plan_back(world: World) -> None:
    world.fill()
    world.add(range(24 * DAYS, 24 * DAYS + 8))
    wanted = with_aggregates(with_windows(world.rollup, "10m", "1h", "2h", "6h"), most="max(tip)")
    ran = False

    def meanwhile(event: object) -> None:
        nonlocal ran
        if isinstance(event, ChunkBegun) and not ran:
            ran = True
            world.changed(wanted)

    run(world.spark, optimize(world.rollup), Request(span=Due()), progress=meanwhile)
    assert ran
    with pytest.raises(ChangedError, match="drop"):
        world.fill(world.rollup)
    assert not difference(world.spark, wanted).is_anything
    world.fill(wanted)
    world.check(wanted)


def test_what_only_adds_is_done_before_a_run_that_is_told_so(world: World) -> None:
    world.fill()
    wanted = with_windows(world.rollup, "10m", "1h", "2h", "6h")
    file = Path(str(world.rollup.target)).parent / "trips.yaml"
    file.write_text(wanted.to_yaml(), encoding="utf-8")
    assert main(["run", str(file)]) == 2
    assert main(["run", str(file), "--apply-additive"]) == 0
    world.check(wanted)
    file.write_text(with_windows(wanted, "10m", "2h", "6h").to_yaml(), encoding="utf-8")
    assert main(["run", str(file), "--apply-additive"]) == 2
    assert Path(str(world.rollup.target), "1h").exists()


def test_history_that_the_source_has_dropped_is_not_rebuilt_by_the_way(world: World) -> None:
    first = but(world.rollup, source=but(world.rollup.source, retain="30 days"))
    world.fill(first)
    anew = but(first, windows=("10m", DeclaredWindow.parse("2h", name="1h"), DeclaredWindow.parse("6h", name="long")))
    with pytest.raises(UsageError, match=r"rename long .* would lose what was before"):
        world.changed(anew, BOTH)
    other = with_aggregates(first, paid="sum(fare)")
    with pytest.raises(UsageError, match=r"takes another name"):
        world.changed(other, BOTH)
    world.changed(but(first, windows=("10m", "1h", DeclaredWindow.parse("6h", name="long"))))


def test_what_is_not_all_there_under_a_new_name_stays_under_the_old_one(world: World) -> None:
    """In one table rows are copied; but not if the same change needs events, of which the source has dropped some."""
    first = but(world.rollup, layout=Layout.ONE_TABLE, source=but(world.rollup.source, retain="30 days"))
    world.fill(but(first, source=world.rollup.source))
    renamed = but(first, windows=("10m", "1h", DeclaredWindow.parse("6h", name="long")))
    applied = world.changed(with_aggregates(renamed, most="max(tip)"))
    assert sum(len(spans) for each in applied.runs for spans in each.lost.values())
    rows = world.spark.table(f"delta.`{world.rollup.target}`").where("window = '6h'")
    assert rows.count() == 4 * 4 * DAYS
    found = difference(world.spark, with_aggregates(renamed, most="max(tip)"))
    assert [(each.action, each.tier, each.needs) for each in found.evolution.changes if each.action is Action.DROP] == [
        (Action.DROP, "6h", Permission.DROP)
    ]
    assert found.evolution.is_additive


def test_a_window_that_is_renamed_beside_a_rebuild_leaves_nothing_behind(world: World) -> None:
    world.fill()
    wanted = but(
        world.rollup, windows=("10m", DeclaredWindow.parse("2h", name="1h"), DeclaredWindow.parse("6h", name="long"))
    )
    world.changed(wanted, frozenset({Permission.REBUILD}))
    world.check(wanted)
    assert not Path(str(world.rollup.target), "6h").exists()


KILLS = (
    *((Layout.TABLES, step) for step in ("_emptied", "_reshaped", "_switch", "_filled", "_gone")),
    *((Layout.ONE_TABLE, step) for step in ("_reshaped", "_gone")),
)


@pytest.mark.parametrize(("layout", "step"), KILLS)
def test_whoever_is_killed_while_things_go_is_followed_by_one_who_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, layout: Layout, step: str
) -> None:
    first = but(world.rollup, layout=layout)
    world.fill(first)
    wanted = but(with_aggregates(first, paid="avg(tip)"), windows=("10m", "1h"))
    if step == "_switch":
        wanted = but(wanted, source=but(wanted.source, where="fare > 2"))  # so all tables are emptied before

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"stairwise_spark.changing._Change.{step}", dies)  # between any two steps
        with pytest.raises(KeyboardInterrupt):
            world.changed(wanted, BOTH)
    assert difference(world.spark, wanted).is_anything
    world.changed(wanted, BOTH)
    world.check(wanted)
    if layout is Layout.ONE_TABLE:
        assert world.spark.table(f"delta.`{world.rollup.target}`").where("window = '6h'").isEmpty()
    else:
        assert not Path(str(world.rollup.target), "6h").exists()


def test_what_was_dropped_in_a_store_is_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, a table that is removed is an empty one, and what it claimed is worth nothing."""
    world.fill()

    def elsewhere(_: object) -> None:
        """No folder of this machine."""

    monkeypatch.setattr(reshaping, "_folder", elsewhere)
    world.changed(with_windows(world.rollup, "10m", "6h"), frozenset({Permission.DROP}))
    assert world.spark.table(f"delta.`{world.rollup.target}/1h`").isEmpty()
    world.changed(world.rollup)
    world.check(world.rollup)


def test_a_helper_that_is_declared_now_is_taken_as_it_is(world: World) -> None:
    options = Options(tiers=TiersAllowed.FACTOR)
    dense = Estimates(rows_per_day=10_000_000_000, distinct_keys=4)
    first = but(world.rollup, windows=("20m", "30m", "50m"), estimates=dense)
    plan = optimize(first, options)
    run(world.spark, plan, Request())
    (helper,) = [step.tier for step in plan.steps if step.tier.kind is Kind.FACTOR]
    wanted = but(first, windows=("20m", "30m", "50m", helper.text))
    done = apply(world.spark, difference(world.spark, wanted, options))
    assert ("add", helper.name, helper.name) in actions(done)
    assert read(done) == 0
    world.check(wanted)
