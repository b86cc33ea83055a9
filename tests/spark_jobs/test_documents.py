"""What the commands of the engine print with ``--json`` fits the schemas that ship with the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from delta import DeltaTable
from pyspark.sql import SparkSession

from stairwise.calibration import encode_calibration
from stairwise.cli import main
from stairwise.json_fields import Json
from stairwise_spark.calibrate import Bench, calibrate
from tests.documents import check
from tests.spark_jobs.proving import add_events, declared, on_disk

pytestmark = pytest.mark.spark

Ask = Callable[..., Mapping[str, Json]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """What a command prints, once it fits its schema."""

    def asked(*line: str, code: int = 0) -> Mapping[str, Json]:
        assert main([*line, "--json"]) == code
        document: Mapping[str, Json] = json.loads(capsys.readouterr().out)
        check(document)
        return document

    return asked


def test_the_life_of_a_rollup(spark: SparkSession, tmp_path: Path, ask: Ask) -> None:
    source = str(tmp_path / "events")
    add_events(spark, source, 0, 600)
    file = on_disk(declared(source, tmp_path / "rollup"), tmp_path)
    assert ask("status", file)["last_run"] is None
    ask("plan", file, "--measure")
    ask("backfill", file, "--dry-run")
    assert ask("backfill", file, "--chunk", "6h")["wrote_anything"]
    add_events(spark, source, 300, 700)
    assert ask("run", file)["late_rows"]
    ask("status", file)
    assert ask("verify", file, "--helpers")["equal"]
    ask("verify", file, "--sample", "3")
    assert ask("why", file, "1h_every_30m", "2024-01-01T03:10Z")["windows"]
    ask("why", file, "20m", "2025-01-01")
    ask("maintain", file, "--vacuum")
    ask("plan", file, "--drift")
    more = on_disk(declared(source, tmp_path / "rollup", windows=("20m", "1h every 30m", "2h")), tmp_path)
    assert ask("diff", more, code=1)["changes"]
    assert ask("run", more, code=2)["kind"] == "changed"
    assert ask("apply", more, "--allow-drop")["runs"]
    assert ask("diff", more)["needs"] == []


def test_a_difference(spark: SparkSession, tmp_path: Path, ask: Ask) -> None:
    source = str(tmp_path / "events")
    add_events(spark, source, 0, 100)
    file = on_disk(declared(source, tmp_path / "rollup", windows=("20m",)), tmp_path)
    ask("backfill", file)
    table = DeltaTable.forPath(spark, str(tmp_path / "rollup" / "20m"))
    table.update("zone = 1", {"trips": "99"})
    found = ask("verify", file, code=1)
    assert found["differences"]
    assert found["hints"]


def test_an_error(ask: Ask, tmp_path: Path) -> None:
    file = on_disk(declared(str(tmp_path / "nowhere"), tmp_path / "rollup"), tmp_path)
    assert ask("run", file, code=2)["kind"] == "source"


def test_constants(spark: SparkSession, tmp_path: Path) -> None:
    check(encode_calibration(calibrate(Bench(spark=spark, folder=str(tmp_path), rows=2_000, tables=2))))
