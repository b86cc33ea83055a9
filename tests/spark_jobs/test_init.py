"""``stairwise init``: a declaration that can be planned and filled as it stands, and what it says of its guesses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise import Rollup
from stairwise.cli import main
from stairwise_spark.errors import SourceError
from stairwise_spark.guesses import Field, guessed
from stairwise_spark.session import sql

TRIPS = """
    SELECT CAST(id AS STRING) AS trip_id, timestamp_seconds(1704067200 + 300 * id) AS pickup_at,
        current_timestamp() AS loaded_at, CAST(id % 3 AS INT) AS zone_id, CAST(id AS DECIMAL(10, 2)) AS fare,
        id / 7 AS tip, concat('r', id % 5) AS rider_id, named_struct('a', 1) AS more
    FROM range(100)
"""


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["delta", "parquet", "table"])
def test_what_is_written_can_be_planned_and_filled(
    kind: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = sql(spark, TRIPS).write.format("parquet" if kind == "parquet" else "delta")
    if kind == "table":
        writer.mode("overwrite").saveAsTable("first_trips")
    else:
        writer.save(str(tmp_path / "lake" / "first_trips"))
    source = "first_trips" if kind == "table" else "lake/first_trips"
    assert main(["init", source, "--out", "trips.yaml", "--dag", "dags.py"]) == 0
    out, err = capsys.readouterr()
    text = Path("trips.yaml").read_text(encoding="utf-8")
    rollup = Rollup.from_yaml(text)
    assert out == ""
    assert (rollup.source.time, rollup.keys) == ("pickup_at", ("zone_id",))
    assert {name: str(call) for name, call in rollup.aggregates} == {
        "first_trips": "count()",
        "sum_fare": "sum(fare)",
        "sum_tip": "sum(tip)",
        "distinct_rider_id": "approx_distinct(rider_id)",
    }
    guesses = [line.removeprefix("stairwise: ") for line in err.splitlines() if "GUESS" in line]
    told = " ".join(re.findall(r"^# (.*)$", text, re.MULTILINE))
    assert len(guesses) == 6
    assert all(guess in told for guess in guesses if "DAG" not in guess)
    assert "loaded_at" in told
    ast.parse(Path("dags.py").read_text(encoding="utf-8"))
    assert "rollup='trips.yaml'" in Path("dags.py").read_text(encoding="utf-8").replace('"', "'")
    assert main(["plan", "trips.yaml"]) == 0
    if kind == "table":
        assert main(["backfill", "trips.yaml"]) == 0
        assert main(["verify", "trips.yaml"]) == 0
    spark.sql("DROP TABLE IF EXISTS first_trips")


@pytest.mark.spark
def test_without_a_file_it_is_printed(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql(spark, TRIPS).write.format("delta").save(str(tmp_path / "trips"))
    assert main(["init", str(tmp_path / "trips"), "--target", "elsewhere"]) == 0
    assert Rollup.from_yaml(capsys.readouterr().out).target == "elsewhere"


@pytest.mark.spark
@pytest.mark.parametrize(("place", "said"), [("lake.none", "a table is missing"), ("./none", "nothing at the path")])
@pytest.mark.usefixtures("spark")
def test_what_is_not_there(place: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", place]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (["--dag", "dag.py"], "--dag needs --out: a DAG names the file of its declaration. Hint: add --out FILE."),
        (["--out", "there.yaml"], "'there.yaml' is there already. Hint: choose another name, or remove it."),
        (["--out", "no/a.yaml"], "cannot write 'no/a.yaml': there is no directory 'no'. Hint: make it first."),
        (["--out", "a", "--dag", "a"], "'a' is named twice. Hint: choose another name for the DAG."),
    ],
)
def test_nothing_is_overwritten(
    line: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.yaml").touch()
    assert main(["init", "trips", *line]) == 2
    assert capsys.readouterr().err == f"stairwise: {text}\n"


def first(*columns: str) -> Rollup:
    fields = [Field(*column.rsplit(" ", 1)) for column in columns]
    found = guessed({"path": "lake/trips"}, fields, "lake/rollups/trips")
    assert Rollup.from_yaml(found.to_yaml()) == found.rollup
    return found.rollup


@pytest.mark.parametrize(
    ("columns", "time"),
    [
        (("updated_at timestamp", "event_time timestamp"), "event_time"),
        (("a timestamp", "day date", "pickup_ts timestamp_ntz"), "pickup_ts"),
        (("created timestamp", "day date"), "day"),
        (("x timestamp", "eventTime timestamp"), "eventTime"),
        (("epoch_ms bigint", "n bigint"), "epoch_ms"),
    ],
)
def test_the_likeliest_time_is_taken(columns: tuple[str, ...], time: str) -> None:
    assert first(*columns).source.time == time


@pytest.mark.parametrize(("name", "unit"), [("epoch_ms", "ms"), ("ts_us", "us"), ("tsNanos", "ns"), ("epoch", "s")])
def test_a_number_counts_what_its_name_says(name: str, unit: str) -> None:
    found = first(f"{name} bigint").source.unit
    assert found is not None
    assert found.value == unit


def test_without_a_time_there_is_no_declaration() -> None:
    with pytest.raises(SourceError, match="no column can be the time"):
        guessed({"path": "x"}, [Field("zone_id", "int"), Field("n", "bigint")], "out")


def test_keys_are_groups_and_neither_events_nor_people() -> None:
    found = first("at timestamp", "id bigint", "trip_id bigint", "rider_id string", "shop_id int", "country string")
    assert found.keys == ("country", "shop_id")
    assert {name: str(call) for name, call in found.aggregates} == {
        "trips": "count()",
        "distinct_rider_id": "approx_distinct(rider_id)",
    }


def test_names_of_columns_are_legal_and_unique() -> None:
    found = first("at timestamp", "zone_id int", "a b double", "a-b double", "sum_a_b double", "größe decimal(9,2)")
    assert [(name, str(call)) for name, call in found.aggregates] == [
        ("trips", "count()"),
        ("sum_a_b", "sum(`a b`)"),
        ("sum_a_b_2", "sum(`a-b`)"),
        ("sum_sum_a_b", "sum(sum_a_b)"),
    ]


def test_levels_are_averaged_and_amounts_added() -> None:
    calls = {str(call) for _, call in first("at timestamp", "room_temperature double", "energy double").aggregates}
    assert calls == {"count()", "avg(room_temperature)", "sum(energy)"}
