"""What work costs here: measured on little, for what matters in a test is that each number is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.calibration import read_calibration, write_calibration
from stairwise.cli import main
from stairwise.constants import Calibration, Constants
from stairwise_spark.calibrate import Bench, calibrate
from stairwise_spark.commands import compared

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def measured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    folder = tmp_path_factory.mktemp("calibrate")
    return calibrate(Bench(spark=spark, folder=str(folder), rows=2_000, tables=2))


def test_every_constant_is_some_time(measured: Calibration) -> None:
    known = Constants().by_name()
    for name, number in measured.constants.by_name().items():
        assert number >= known[name] / 20, name
    assert measured.constants.partition_rows == Constants().partition_rows
    assert measured.where == "local[2], Spark 4.2.0"


def test_a_plan_is_made_with_them_when_told_so(
    measured: Calibration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "constants.json"
    write_calibration(measured, file)
    assert read_calibration(file) == measured
    assert main(["plan", "--windows", "5m,1h", "--json", "--constants", str(file)]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes[0].startswith("constants of the cost model measured on local[2], Spark 4.2.0, at ")


def test_they_stand_beside_those_of_this_version() -> None:
    found = Calibration(constants=Constants(commit=0.26, scan_row=12e-9), where="here", at=0)
    lines = compared(found, Path("c.json")).splitlines()
    assert lines[0] == "measured on here"
    assert [line.split() for line in (lines[2], lines[3], lines[13])] == [
        ["constant", "here", "default", "unit"],
        ["scan_row", "12", "24", "-50", "%", "ns", "a", "row"],
        ["commit", "260", "130", "2.0", "x", "ms", "a", "table"],
    ]
    assert lines[-1] == "kept in c.json; to plan with it: stairwise plan FILE --constants c.json"


@pytest.mark.parametrize("where", [["--remote", "sc://host"], ["--master", "spark://host:7077"]])
def test_a_cluster_needs_a_folder_of_its_own(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *where]) == 2
    assert capsys.readouterr().err == (
        "stairwise: calibrate needs --scratch: a cluster does not see the temporary folder of this machine. "
        "Hint: name a folder that the cluster writes to.\n"
    )
