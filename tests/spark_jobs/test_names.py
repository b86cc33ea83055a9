from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from stairwise_spark.names import numbered_files

NUMBERS = st.one_of(st.integers(0, 2_000), st.integers(0, 10**20 - 1))


@given(NUMBERS, NUMBERS)
@example(0, 0)
@example(99, 100)
@example(100, 99)
@example(10**20 - 1, 10**20 - 1)
def test_commits_from_a_number_on(first: int, number: int) -> None:
    alternatives = re.fullmatch(r"\{(.*)\}(\.json)", numbered_files(first, 7))
    assert alternatives is not None
    pattern = f"({alternatives[1].replace(',', '|')}){re.escape(alternatives[2])}"
    assert bool(re.fullmatch(pattern, f"{number:020d}.json")) == (number >= first or number == 7)


@pytest.mark.spark
def test_spark_finds_commits_by_such_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    for number in (0, 8, 9, 98, 99, 100, 1_000):
        (tmp_path / f"{number:020d}.json").write_text(f'{{"a": {number}}}\n', encoding="utf-8")
    (tmp_path / f"{99:020d}.checkpoint.json").write_text('{"a": -1}\n', encoding="utf-8")
    for first, found in ((0, [0, 8, 9, 98, 99, 100, 1_000]), (99, [0, 99, 100, 1_000]), (101, [0, 1_000])):
        reader = spark.read.option("pathGlobFilter", numbered_files(first, 0)).schema("a bigint")
        assert sorted(row[0] for row in reader.json(str(tmp_path)).collect()) == found
