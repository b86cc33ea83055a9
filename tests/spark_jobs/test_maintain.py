"""``stairwise maintain``: fewer files, the same rows and claims; nothing is lost that a run or a reader needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from delta.exceptions import ConcurrentAppendException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise.cli import main
from stairwise.errors import UsageError
from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark import compacting
from stairwise_spark.compacting import chosen, newest, tried
from stairwise_spark.contents import Part
from stairwise_spark.coverage import trusted
from stairwise_spark.engine import Request, run
from stairwise_spark.errors import RunError
from stairwise_spark.maintain import Kept, Upkeep, maintain
from stairwise_spark.report import LookedAfter
from stairwise_spark.scope import Due
from stairwise_spark.session import sql
from stairwise_spark.spans import without
from stairwise_spark.status import status
from stairwise_spark.storage import Storage
from stairwise_spark.terminal import summary
from stairwise_spark.verify import Check, verify
from tests.spark_jobs.proving import DAY, HOUR, add_events, declared, filled, hours, on_disk

pytestmark = pytest.mark.spark
NEXT_WEEK = DAY + 8 * 86_400


def by_hours(spark: SparkSession, tmp_path: Path, layout: str, count: int) -> Plan:
    """Tables that were filled hour by hour, so that each hour has a file."""
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 600)
    rollup = declared(path, tmp_path / "rollup", layout, aggregates={"trips": "count()"}, windows=("20m", "1h"))
    return filled(spark, rollup, *(hours(each, each + 1) for each in range(count)))


def files(kept: Kept) -> list[tuple[int, int, int]]:
    return [(each.files, each.files_after, each.partitions) for each in kept.tables if each.tiers]


@pytest.mark.parametrize("layout", ["tables", "one_table"])
def test_sealed_partitions_have_one_file_and_claims_stay(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    plan = by_hours(spark, tmp_path, layout, 4)
    coverage = {tier: state.coverage for tier, state in Storage.of(spark, plan).states().items()}
    # While the week lasts, its partition is open.
    assert all(partitions == 0 for *_, partitions in files(maintain(spark, plan, Upkeep(), now=DAY + 6 * HOUR)))
    planned = files(maintain(spark, plan, Upkeep(is_dry=True), now=NEXT_WEEK))
    done = files(maintain(spark, plan, Upkeep(), now=NEXT_WEEK))
    assert planned == done
    assert all(before >= 4 * partitions and after == partitions for before, after, partitions in done)
    assert {tier: state.coverage for tier, state in Storage.of(spark, plan).states().items()} == coverage
    assert verify(spark, plan, Check()).total == 0
    versions = {tier: state.version for tier, state in Storage.of(spark, plan).states().items()}
    assert all(partitions == 0 for *_, partitions in files(maintain(spark, plan, Upkeep(), now=NEXT_WEEK)))
    assert {tier: state.version for tier, state in Storage.of(spark, plan).states().items()} == versions
    assert not run(spark, plan, Request(span=hours(0, 4))).wrote_anything


@pytest.mark.parametrize("layout", ["tables", "one_table"])
def test_a_run_puts_files_together_each_time_that_tables_have_grown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    plan = by_hours(spark, tmp_path, layout, 6)
    crowded = files(maintain(spark, plan, Upkeep(is_dry=True)))
    many = sum(partitions for *_, partitions in crowded)
    assert many == 2  # a week of each window
    for since, commits, span in ((6, 1_000, None), (7, 1, hours(7, 8))):  # not grown; and a range, beside others
        monkeypatch.setattr(compacting, "COMMITS", commits)
        until = DAY + (since + 1) * HOUR
        report = run(spark, plan, Request(span=Due(until=until) if span is None else span))
        assert (report.wrote_anything, report.looked_after) == (True, LookedAfter())
    assert [before for before, *_ in files(maintain(spark, plan, Upkeep(is_dry=True)))] == [
        before + 2 * partitions for before, _, partitions in crowded
    ]
    report = run(spark, plan, Request(span=Due(until=DAY + 9 * HOUR)))
    assert (report.wrote_anything, report.looked_after) == (True, LookedAfter())  # its week has not ended by then
    covered = {tier: state.coverage for tier, state in Storage.of(spark, plan).states().items()}
    report = run(spark, plan, Request(span=Due()))
    assert (report.wrote_anything, report.looked_after) == (True, LookedAfter(many))
    assert "small files were put together in 2 partitions" in summary(report)
    assert all(before == after for before, after, _ in files(maintain(spark, plan, Upkeep(is_dry=True))))
    assert verify(spark, plan, Check()).total == 0
    storage = Storage.of(spark, plan)
    for tier, state in storage.states().items():
        assert storage.ledger.summary.looked_after[tier] == state.version - 1
        assert not without(trusted(covered[tier]), trusted(state.coverage))
    before = {tier: state.version for tier, state in storage.known.items()}
    monkeypatch.setattr(compacting, "COMMITS", 0)
    assert not run(spark, plan, Request(span=Due())).wrote_anything
    assert {tier: state.version for tier, state in Storage.of(spark, plan).states().items()} == before


def test_a_run_that_cannot_put_files_together_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = by_hours(spark, tmp_path, "one_table", 4)
    monkeypatch.setattr(compacting, "COMMITS", 1)

    def refused(_: object) -> str:
        raise RunError("there is no room.")

    monkeypatch.setattr(compacting, "compacted", refused)
    report = run(spark, plan, Request(span=Due()))
    assert (report.wrote_anything, report.looked_after) == (True, LookedAfter(left="there is no room."))
    assert "  compaction: there is no room." in summary(report).splitlines()
    assert report.to_json()["compaction_left"] == "there is no room."
    assert verify(spark, plan, Check()).total == 0


def test_runs_leave_alone_what_takes_long() -> None:
    def parts(*sizes: int) -> tuple[Part, ...]:
        return tuple(
            Part(window=None, part=7 * week, files=9, bytes=size, rows=1, ends=None) for week, size in enumerate(sizes)
        )

    crowded = {"1h": parts(5, 40, 3, 900), "1d": parts(1, 1, 1)}
    kept = newest(crowded, 46)
    assert {tier: [each.part for each in found] for tier, found in kept.items()} == {"1h": [7, 14], "1d": [0, 7, 14]}
    assert chosen(kept, is_shared=False) == "(_part IN (7, 14)) OR (_part IN (0, 7, 14))"
    assert chosen({"1h": kept["1h"], "it's": ()}, is_shared=True) == "(window = '1h' AND _part IN (7, 14))"


def test_what_was_summed_up_outlives_the_commits_of_the_log(spark: SparkSession, tmp_path: Path) -> None:
    plan = by_hours(spark, tmp_path, "tables", 2)
    before = {each.step.tier.name: each.covered for each in status(spark, plan).tiers}
    maintain(spark, plan, Upkeep(), now=NEXT_WEEK)
    # As a checkpoint does that is made 30 days later: of each log only the last commit is left.
    for tier in ("20m", "1h"):
        table, log = tmp_path / "rollup" / tier, tmp_path / "rollup" / tier / "_delta_log"
        sql(spark, f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
        sql(spark, f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('note' = 'a commit with a checkpoint')")
        last = max(int(each.name[:20]) for each in log.glob("*.checkpoint.parquet"))
        for commit in log.glob("*.json"):
            if int(commit.name[:20]) < last - 1:
                commit.unlink()
    after = status(spark, plan)
    assert {each.step.tier.name: each.covered for each in after.tiers} == before
    assert after.notes == ()
    assert not run(spark, plan, Request(span=hours(0, 2))).wrote_anything
    assert run(spark, plan, Request(span=hours(2, 3))).wrote_anything
    assert verify(spark, plan, Check()).total == 0


def test_files_that_no_version_needs_are_removed_when_that_is_asked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = by_hours(spark, tmp_path, "tables", 4)
    maintain(spark, plan, Upkeep(), now=NEXT_WEEK)
    orphan = next((tmp_path / "rollup" / "1h").glob("_part=*")) / "part-of-a-killed-writer.parquet"
    shutil.copy(next(orphan.parent.glob("*.parquet")), orphan)
    data = sorted((tmp_path / "rollup" / "1h").rglob("*.parquet"))
    maintain(spark, plan, Upkeep(vacuum=True), now=NEXT_WEEK)
    # All of it is younger than a week.
    assert sorted((tmp_path / "rollup" / "1h").rglob("*.parquet")) == data
    maintain(spark, plan, Upkeep(vacuum=True, retain_hours=0, is_forced=True), now=NEXT_WEEK)
    assert not orphan.exists()
    assert len(list((tmp_path / "rollup" / "1h").glob("_part=*/*.parquet"))) == 1
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled", "true") == "true"
    assert verify(spark, plan, Check()).total == 0
    assert plan.declaration is not None
    file = on_disk(plan.declaration, tmp_path)
    assert main(["maintain", file, "--vacuum", "--retain-hours", "5"]) == 2
    assert "--retain-hours 5: fewer than 168 may remove files" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--retain-hours goes with --vacuum"):
        Upkeep(retain_hours=200)


def test_only_the_newest_reports_are_kept(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = by_hours(spark, tmp_path, "one_table", 3)
    folder = tmp_path / "rollup" / "_stairwise" / "runs"
    names = sorted(each.name for each in folder.iterdir())
    assert plan.declaration is not None
    file = on_disk(plan.declaration, tmp_path)
    assert main(["maintain", file, "--keep-reports", "1", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports_removed"] == 2
    assert len(list(folder.iterdir())) == 3
    assert main(["maintain", file, "--keep-reports", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["reports_removed"]) == ("stairwise.maintain/1", 2)
    assert [each.name for each in folder.iterdir()] == names[-1:]
    ledger = spark.table(f"delta.`{tmp_path / 'rollup' / '_stairwise' / 'ledger'}`")
    assert [row["name"] for row in ledger.where(F.col("kind") == "report").collect()] == [
        names[-1].removesuffix(".json")
    ]
    assert status(spark, plan).tiers[0].covered == (Interval(DAY, DAY + 3 * HOUR),)


def test_where_nothing_was_made_there_is_nothing_to_keep(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 60)
    plan = filled(spark, declared(path, tmp_path / "rollup"))
    kept = maintain(spark, plan, Upkeep())
    assert (kept.tables, kept.told()) == ((), "trips: nothing was made yet, so there is nothing to keep.")


def test_who_meets_runs_tries_again_and_leaves_the_rest_for_next_time() -> None:
    met: list[int] = []

    def work(most: int) -> None:
        met.append(1)
        if len(met) <= most:
            raise ConcurrentAppendException("another commit came first")

    assert tried(lambda: work(2), pause=0) == ""
    met.clear()
    assert tried(lambda: work(9), pause=0) == "left for next time: runs changed the same partitions, 3 times"
    assert len(met) == 3
