"""``stairwise why``: who wrote a window, from what, and why it is not sealed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.cli import main
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise_spark.compute import held_by
from stairwise_spark.coverage import DOUBTFUL, Coverage, State
from stairwise_spark.engine import Request, run
from stairwise_spark.session import sql
from stairwise_spark.status import Reason
from stairwise_spark.storage import Storage
from stairwise_spark.why import why
from tests.spark_jobs.proving import DAY, HOUR, add_events, declared, filled, hours, on_disk, planned

pytestmark = pytest.mark.spark


def test_each_window_that_holds_the_instant_has_its_origin(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 300)
    rollup = declared(path, tmp_path / "rollup", "one_table", windows=("30m", "1h every 30m"), delay="1h")
    file = on_disk(rollup, tmp_path)
    assert main(["why", file, "30m", "2024-01-01T00:10Z"]) == 0
    assert "not sealed: ended, but not computed" in capsys.readouterr().out
    plan = filled(spark, rollup, hours(0, 1))
    first = why(spark, plan, "1h_every_30m", DAY + 600, now=DAY + 3 * HOUR)
    second = run(spark, plan, Request(span=hours(1, 2)))
    # Housekeeping of somebody else claims nothing.
    sql(spark, f"OPTIMIZE delta.`{Storage.of(spark, plan).place('1h_every_30m')}`")
    found = why(spark, plan, "1h_every_30m", DAY + HOUR - 60, now=DAY + 2 * HOUR + 1_800)
    assert [(each.window, each.reason) for each in found.origins] == [
        (hours(0, 1), None),
        (Interval(DAY + 1_800, DAY + 1_800 + HOUR), None),
    ]
    runs = [each.entry.claim.run for each in found.origins if each.entry is not None and each.entry.claim is not None]
    assert runs[1] == second.run_id
    assert first.origins[-1].entry is not None
    assert first.origins[-1].entry.claim is not None
    assert runs[0] == first.origins[-1].entry.claim.run != second.run_id
    assert [(each.rows, each.source_rows, each.version, each.written) for each in found.origins] == [(4, 60, 0, 0)] * 2
    later = why(spark, plan, "1h_every_30m", DAY + 2 * HOUR, now=DAY + 3 * HOUR - 60)
    assert [each.reason for each in later.origins] == [Reason.DELAY, Reason.OPEN]
    assert main(["why", file, "1h_every_30m", "2024-01-01T00:59Z", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["tier"]) == ("stairwise.why/1", "1h_every_30m")
    assert [each["run_id"] for each in document["windows"]] == runs
    assert [each["sealed"] for each in document["windows"]] == [True, True]


def test_a_window_that_no_change_touched_was_written_from_an_older_version(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    add_events(spark, path, 0, 60)
    plan = filled(spark, declared(path, tmp_path / "rollup", windows=("1h",)), hours(0, 1))
    storage = Storage.of(spark, plan)
    known = storage.states()["1h"]
    storage.record("later", {"1h": State(known.version, known.coverage.union(Coverage.of(hours(0, 1), 5)))})
    told = why(spark, plan, "1h", DAY).told()
    assert (
        "reflects version 5 of the source; it was written from version 0, and nothing in it has changed since" in told
    )
    doubt = Coverage.of(hours(3, 4), DOUBTFUL)
    storage.record("later", {"1h": State(known.version, known.coverage.overlaid(doubt))})
    assert why(spark, plan, "1h", DAY + 3 * HOUR).origins[0].reason is Reason.DOUBTFUL
    empty = Coverage.of(hours(4, 5), 0)
    storage.record("later", {"1h": State(known.version, known.coverage.overlaid(empty))})
    said = why(spark, plan, "1h", DAY + 4 * HOUR).told()
    assert "no commit of the log wrote it: it was and is empty, or it was written before the log begins" in said


def test_helpers_have_slices_and_unknown_tiers_a_hint(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    rollup = declared("events", tmp_path / "rollup")
    plan = planned(rollup)
    helper = next(step.tier for step in plan.steps if step.tier.kind is not Kind.DECLARED)
    assert held_by(helper, DAY + 700) == (Interval(DAY + 600, DAY + 1_200),)
    file = on_disk(rollup, tmp_path)
    assert main(["why", file, "1h", "2024-01-01"]) == 2
    assert "there is no tier '1h'." in capsys.readouterr().err
    assert main(["why", file, "30m", "soon"]) == 2
