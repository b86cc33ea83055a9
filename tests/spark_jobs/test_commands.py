"""``stairwise backfill`` and ``stairwise run`` as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from stairwise.cli import main
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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["run", "FILE", "--start", "2024-01-01"],
            "run takes --start only together with --end. Hint: add --end, or leave both out.",
        ),
        (
            ["run", "FILE", "--start", "2024-01-01", "--end", "2024-01-02", "--since", "2024-01-01"],
            "run takes --start or --since, not both. Hint: leave out one of them.",
        ),
        (
            ["backfill", "FILE", "--start", "2024-01-01"],
            "backfill takes --start and --end together, or neither. Hint: add the other one.",
        ),
        (
            ["run", "FILE", "--start", "2024-01-02", "--end", "2024-01-01"],
            (
                "the range from 2024-01-02T00:00:00Z to 2024-01-01T00:00:00Z is empty. "
                "Hint: let --end be later than --start."
            ),
        ),
        (
            ["run", "FILE", "--start", "2024-01-02T12:00", "--end", "2024-01-03"],
            (
                "argument --start: instant '2024-01-02T12:00': a time of day needs a zone. Try 2024-01-02T12:00Z. "
                "Hint: see stairwise run --help."
            ),
        ),
        (["run", "FILE", "--strt", "2024-01-02"], "there is no option '--strt'. Hint: did you mean --start?"),
        (["run", "FILE", "--zzz"], "there is no option '--zzz'. Hint: see stairwise run --help."),
        (["run", "FILE", "FILE"], "'FILE' is one argument too many. Hint: quote what belongs together."),
        (
            ["backfill", "FILE", "--chunk", "0s"],
            "argument --chunk: '0s' is no time at all. Hint: see stairwise backfill --help.",
        ),
        (
            ["backfill", "FILE", "--spark-conf", "spark.x"],
            "argument --spark-conf: 'spark.x' is not KEY=VALUE. Hint: see stairwise backfill --help.",
        ),
        (
            ["backfill", "FILE", "--tiers", "1h, 5h"],
            "there is no tier '5h'. Hint: there are 1h, 4h.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], text: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([file if word == "FILE" else word for word in arguments]) == 2
    assert capsys.readouterr().err == f"stairwise: {text.replace('FILE', file)}\n"


def test_a_column_that_is_not_there_is_exit_code_2(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(file)
    path.write_text(path.read_text(encoding="utf-8").replace("sum(fare)", "sum(fair)"), encoding="utf-8")
    assert main(["backfill", file, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["hint"]) == ("source", "did you mean fare?")
