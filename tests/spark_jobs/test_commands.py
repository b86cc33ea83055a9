"""``stairwise backfill`` and ``stairwise run`` as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.cli import main

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
    return re.sub(r"[0-9.,]+ s\b", "N s", text)


def test_a_backfill_tells_what_it_wrote(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backfill", file, "--chunk", "6h"]) == 0
    out, err = capsys.readouterr()
    lines = without_seconds(out).splitlines()
    assert lines[0] == "trips: wrote windows that end from 2024-01-01T00:00:00Z to 2024-01-01T12:00:00Z"
    assert [line.split()[:2] for line in lines[2:5]] == [["tier", "rows"], ["1h", "18"], ["4h", "6"]]
    assert lines[-1] == "  100 rows read, N s; session ready after N s"
    assert without_seconds(err).splitlines() == [
        "chunk 1 of 2: 14 rows in 2 tiers, N s, about N s left",
        "chunk 2 of 2: 10 rows in 2 tiers, N s",
    ]


def test_json_is_one_document_and_nothing_else(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["--start", "2024-01-01", "--end", "2024-01-01T05:00Z", "--json"]
    assert main(["run", file, *wanted, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["run", file, *wanted]) == 0
    done = json.loads(capsys.readouterr().out)
    assert planned.keys() == done.keys()
    assert (planned["dry_run"], planned["wrote_anything"], done["wrote_anything"]) == (True, False, True)
    assert {tier["name"]: tier["rows_written"] for tier in done["tiers"]} == {"1h": 10, "4h": 2}
    assert done["range"] == ["2024-01-01T00:00:00Z", "2024-01-01T05:00:00Z"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["run", "FILE"],
            (
                "run needs --start and --end: to find out what is new or changed is not in this version yet. "
                "Hint: name the range, or use stairwise backfill, which skips what is done."
            ),
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
                "argument --start: instant '2024-01-02T12:00': a time of day needs a zone. try 2024-01-02T12:00Z. "
                "Hint: see stairwise run --help."
            ),
        ),
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
    assert capsys.readouterr().err == f"stairwise: {text}\n"


def test_a_column_that_is_not_there_is_exit_code_2(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(file)
    path.write_text(path.read_text(encoding="utf-8").replace("sum(fare)", "sum(fair)"), encoding="utf-8")
    assert main(["backfill", file, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["hint"]) == ("source", "did you mean fare?")
