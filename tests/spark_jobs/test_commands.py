"""``stairwise backfill`` and ``stairwise run`` as a user meets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise import Rollup, optimize
from stairwise.cli import main
from stairwise.codec import encode_plan, to_json
from stairwise.rollup import Estimates
from stairwise_spark.storage import Storage

pytestmark = pytest.mark.spark

EVENTS = """
    SELECT timestamp_seconds(1704067200 + 300 * id) AS pickup_at, id % 2 AS zone_id, CAST(id AS INT) AS fare
    FROM range(100)
"""


@pytest.fixture
def file(spark: SparkSession, tmp_path: Path) -> str:
    """A declaration over the events of eight hours and twenty minutes of 2024."""
    source = tmp_path / "events"
    spark.sql(EVENTS).write.parquet(str(source))  # pyright: ignore[reportUnknownMemberType]
    declaration = tmp_path / "trips.yaml"
    declaration.write_text(
        f"rollup: trips\nsource: {{path: {source}, format: parquet, time: pickup_at}}\nkeys: [zone_id]\n"
        f"aggregates: {{trips: count(), revenue: sum(fare)}}\nwindows: [1h, 4h]\ntarget: {tmp_path / 'rollup'}\n",
        encoding="utf-8",
    )
    return str(declaration)


def without_seconds(text: str) -> str:
    return re.sub(r"[0-9.,]+ ?s\b", "N s", text)


def test_a_backfill_tells_what_it_wrote(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backfill", file, "--chunk", "6h"]) == 0
    out, err = capsys.readouterr()
    lines = without_seconds(out).splitlines()
    assert lines[0].startswith("trips: wrote windows that end from the beginning to 2")
    words = [line.split() for line in lines[2:5]]
    assert [each[:3] for each in words] == [["tier", "windows", "rows"], ["1h", "9", "18"], ["4h", "3", "6"]]
    assert re.fullmatch(r"  100 rows read in 2 files of [0-9.]+ kB, N s; session ready after N s", lines[-1])
    told = [re.sub(r"[0-9.]+ kB", "N kB", line) for line in without_seconds(err).splitlines()]
    assert sorted(told) == [
        "chunk 1 of 2: 1h: 12 rows, N kB, N s",
        "chunk 1 of 2: 4h: 2 rows, N kB, N s",
        "chunk 1 of 2: done after N s, about N s left",
        "chunk 2 of 2: 1h: 6 rows, N kB, N s",
        "chunk 2 of 2: 4h: 4 rows, N kB, N s",
    ]


def test_json_is_one_document_and_nothing_else(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--start", "2024-01-01", "--end", "2024-01-01T05:00Z", "--json"]
    assert main(["run", file, *wanted, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["run", file, *wanted]) == 0
    done = json.loads(capsys.readouterr().out)
    assert planned.keys() == done.keys()
    assert (planned["dry_run"], planned["wrote_anything"], done["wrote_anything"]) == (True, False, True)
    assert {tier["name"]: (tier["windows_written"], tier["rows_written"]) for tier in done["tiers"]} == {
        "1h": (5, 10),
        "4h": (1, 2),
    }
    span = ["2024-01-01T00:00:00Z", "2024-01-01T05:00:00Z"]
    size = sum(each.stat().st_size for each in (tmp_path / "events").glob("*.parquet"))
    files = len(list((tmp_path / "events").glob("*.parquet")))
    assert done["range"] == span
    # Parquet has no log that says which files hold what: all are looked into.
    assert done["source"] == {
        "version": None,
        "rows_read": 60,
        "files_read": files,
        "bytes_read": size,
        "changed_ranges": [span],
        "found_by": [],
    }
    kept = tmp_path / "rollup" / "_stairwise"
    assert json.loads((kept / "runs" / f"{done['run_id']}.json").read_text()) == done
    assert main(["run", file, "--start", "2024-01-01T08:00Z", "--end", "2024-01-01T09:00Z", "--json"]) == 0
    assert json.loads((kept / "covered.json").read_text()) == {
        "schema": "stairwise.covered/1",
        "rollup": done["rollup"],
        "run_id": json.loads(capsys.readouterr().out)["run_id"],
        "tiers": {name: [span, ["2024-01-01T08:00:00Z", "2024-01-01T09:00:00Z"]] for name in ("1h", "4h")},
        "expired": {},
    }


def test_what_others_are_made_of_fails_before_they_are_begun(
    file: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else one would hold what the other waits for, inside Spark, where they are written side by side."""

    def begun(*_: object) -> None:
        raise AssertionError("the hours are not there, and their readers are written.")

    path = Path(file)
    events = spark.read.parquet(str(path.parent / "events"))
    events.withColumn("fare", F.lit(2**62)).write.parquet(str(path.parent / "large"))
    path.write_text(path.read_text(encoding="utf-8").replace("/events", "/large"), encoding="utf-8")
    monkeypatch.setattr(Storage, "write", begun)
    assert main(["backfill", file]) == 3
    assert "tier 1h: a result is too large for its type" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("revenue", "text"),
    [
        (
            "sum(fare)",
            (
                "tier NAME: a result is too large for its type (overflow. Use 'try_add' to tolerate overflow and "
                "return NULL instead). Hint: cast to a wider type in the aggregate; it may be revenue: sum(fare)."
            ),
        ),
        (
            "min(fare / zone_id)",
            (
                "tier NAME: an expression divides by 0 (Division by zero. Use `try_divide` to tolerate divisor being 0 "
                "and return NULL instead). Hint: use try_divide, which gives NULL; it may be "
                "revenue: min(fare / zone_id)."
            ),
        ),
    ],
)
def test_what_fails_says_where(
    revenue: str, text: str, spark: SparkSession, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(file)
    spark.read.parquet(str(path.parent / "events")).createOrReplaceTempView("events")
    source = 'sql: "SELECT pickup_at, zone_id, fare + 9223372036854775000 AS fare FROM events"'
    declared = path.read_text(encoding="utf-8").replace("sum(fare)", revenue)
    path.write_text(re.sub(r"path: [^,]*, format: parquet", source, declared), encoding="utf-8")
    assert main(["backfill", file, "--debug"]) == 3
    *trace, last = capsys.readouterr().err.splitlines()
    assert re.sub(r"tier \w+:", "tier NAME:", last) == f"stairwise: {text}"
    assert any("ArithmeticException" in line for line in trace)


def test_a_tier_that_is_not_there_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backfill", file, "--tiers", "1h, 5h"]) == 2
    assert capsys.readouterr().err == "stairwise: there is no tier '5h'. Hint: there are 1h, 4h.\n"


DECLARED = """\
rollup: trips
source: {path: trips, time: at}
keys: [zone]
aggregates: {trips: count()}
windows: [40m, 1h]
target: tables
"""
HELPER = "cut_f445c839"


def without_java(folder: Path, tiers: str, declared: str = DECLARED, **environment: str) -> tuple[int, str]:
    """The exit code of a run where Spark cannot start, and what it says."""
    file = folder / "trips.yaml"
    file.write_text(declared, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("stairwise")), "run", str(file), "--tiers", tiers]
    settings = {**os.environ, "JAVA_HOME": str(folder / "none"), **environment}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=settings)
    return done.returncode, done.stderr


def test_what_is_no_tier_is_refused_before_java_starts(tmp_path: Path) -> None:
    needs_java = 3, f"Spark needs Java, and there is none at {tmp_path}/none/bin/java, where JAVA_HOME says."

    def outcome(*arguments: str, **environment: str) -> tuple[int, str]:
        code, said = without_java(tmp_path, *arguments, **environment)
        return code, said.removeprefix("stairwise: ").partition(" Hint: install")[0]

    assert outcome("40m,2h") == (2, "there is no tier '2h'. Hint: there are 40m, 1h.\n")
    assert outcome("40m") == needs_java
    # Where tables are elsewhere, the plan that rules them may know it.
    for place in ("s3://lake/tables", "file:/lake/tables", "{catalog: lake.tables}"):
        assert outcome("2h", DECLARED.replace("target: tables", f"target: {place}")) == needs_java
    assert outcome("2h", HADOOP_CONF_DIR=str(tmp_path)) == needs_java

    rollup = Rollup.from_yaml(DECLARED)
    running = optimize(replace(rollup, estimates=Estimates(rows_per_day=1_000_000_000, distinct_keys=20_000)))
    assert HELPER in {step.tier.name for step in running.steps} - {step.tier.name for step in optimize(rollup).steps}
    kept = tmp_path / "tables" / "_stairwise" / "plan.json"
    kept.parent.mkdir(parents=True)
    assert outcome("2h") == needs_java
    kept.write_text(to_json(encode_plan(running)), encoding="utf-8")
    assert outcome(HELPER) == needs_java
    assert outcome("2h") == (2, f"there is no tier '2h'. Hint: there are {HELPER}, 40m, 1h.\n")
    # What is declared now takes other tables: that is what the run has to say.
    assert outcome("2h", DECLARED.replace("count()", "count(at)")) == needs_java
    kept.write_text("{", encoding="utf-8")
    assert outcome("2h") == needs_java


def test_a_column_that_is_not_there_is_exit_code_2(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(file)
    path.write_text(path.read_text(encoding="utf-8").replace("sum(fare)", "sum(fair)"), encoding="utf-8")
    assert main(["backfill", file, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["hint"]) == ("source", "did you mean fare?")
