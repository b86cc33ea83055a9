"""What Spark, Delta Lake and the system say, told in our words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from delta.exceptions import ConcurrentAppendException, ConcurrentTransactionException
from pyspark.sql import SparkSession

from stairwise.errors import DeclarationError, StairwiseError
from stairwise_spark.errors import BusyError, RunError, SourceError, is_foreign, said, translated, translating
from stairwise_spark.session import sql

WIDER = "Hint: cast to a wider type in the aggregate."


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [(RunError("x"), "run", 3), (BusyError("x"), "busy", 4), (SourceError("x"), "source", 2)],
)
def test_each_error_says_what_kind_it_is(error: StairwiseError, kind: str, code: int) -> None:
    assert (error.kind, error.exit_code) == (kind, code)
    assert isinstance(error, DeclarationError) == (code == 2)


def test_one_problem_is_itself() -> None:
    problem = SourceError("no column a.")
    assert SourceError.joined([problem]) is problem


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ConcurrentAppendException(
                "[DELTA_CONCURRENT_APPEND] Files were added by a concurrent update.\nConflict: {}"
            ),
            (
                "another run changed the same table meanwhile (Files were added by a concurrent update. Conflict: {}). "
                "Hint: run again."
            ),
        ),
        (
            ConcurrentTransactionException("It was committed before."),
            "another run changed the same table meanwhile (It was committed before). Hint: run again.",
        ),
    ],
)
def test_another_run_was_faster(error: Exception, text: str) -> None:
    found = translated(error)
    assert isinstance(found, BusyError)
    assert str(found) == text
    assert found.__cause__ is error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            OSError(28, "No space left on device"),
            "the disk is full ([Errno 28] No space left on device). Hint: free some space, then run again.",
        ),
        (
            PermissionError(13, "Permission denied", "lake"),
            (
                "the system forbids it ([Errno 13] Permission denied: 'lake'). "
                "Hint: check the rights of the folder and of the user."
            ),
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            (
                "the Spark process has ended ([Errno 111] Connection refused). Hint: see what its log says last; "
                "if that is memory, give it more: --spark-conf spark.driver.memory=4g."
            ),
        ),
        (OSError("odd. " + "x" * 500), "Spark refuses it: odd."),
    ],
)
def test_the_system(error: OSError, text: str) -> None:
    assert str(translated(error)) == text


def test_it_says_what_could_not_be_done() -> None:
    full = OSError(28, "No space left on device")
    with pytest.raises(RunError) as raised, translating("tier 5m"):
        raise full
    assert str(raised.value) == (
        "tier 5m: the disk is full ([Errno 28] No space left on device). Hint: free some space, then run again."
    )
    assert raised.value.__cause__ is full


def test_what_is_ours_or_a_defect_stays() -> None:
    ours = RunError("x")
    assert translated(ours) is ours
    with pytest.raises(RunError, match=r"^x$") as raised, translating():
        raise ours
    assert raised.value is ours
    assert not is_foreign(KeyError("x"))
    with pytest.raises(KeyError), translating():
        raise KeyError("x")


def test_long_words_are_cut() -> None:
    assert said(OSError("x" * 500)) == "x" * 400 + "..."


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "kind", "text"),
    [
        (
            "SELECT 9223372036854775807 + id FROM range(2)",
            RunError,
            (
                "a result is too large for its type (overflow. Use 'try_add' to tolerate overflow and return NULL "
                "instead). "
                f"{WIDER}"
            ),
        ),
        (
            "SELECT CAST(concat('x', id) AS INT) FROM range(1)",
            RunError,
            (
                'a value is not what it is cast to (The value \'x0\' of the type "STRING" cannot be cast to "INT" '
                "because it "
                "is malformed. Correct the value as per the syntax, or change its target type). Hint: use "
                "try_cast, or filter it out by where."
            ),
        ),
        (
            "SELECT 1 / id FROM range(1)",
            RunError,
            (
                "an expression divides by 0 (Division by zero. Use `try_divide` to tolerate divisor being 0 and "
                "return NULL "
                "instead). Hint: use try_divide, which gives NULL."
            ),
        ),
        (
            "SELECT * FROM lake.trips",
            SourceError,
            (
                "a table is missing (The table or view `lake`.`trips` cannot be found. Verify the spelling and "
                "correctness of "
                "the schema and catalog). Hint: check its name, and the session's catalog."
            ),
        ),
        (
            "SELECT * FROM range(",
            RunError,
            "Spark refuses it: Syntax error at or near end of input. Hint: Spark's name for it is PARSE_SYNTAX_ERROR.",
        ),
        (
            "SELECT * FROM range(1) SORT BY fare",
            RunError,
            (
                "Spark refuses it: A column, variable, or function parameter with name `fare` cannot be resolved. "
                "Did you mean one of the following? [`id`]. Hint: Spark's name for it is "
                "UNRESOLVED_COLUMN.WITH_SUGGESTION."
            ),
        ),
        (
            "SET spark.driver.memory=3g",
            RunError,
            (
                "a setting cannot be changed in a running session (Cannot modify the value of the Spark config: "
                '"spark.driver.memory". See also '
                "'https://spark.apache.org/docs/latest/sql-migration-guide.html#ddl-statements'). "
                "Hint: set it before Spark starts."
            ),
        ),
    ],
)
def test_queries(spark: SparkSession, statement: str, kind: type[StairwiseError], text: str) -> None:
    with pytest.raises(kind) as raised, translating():
        sql(spark, statement).collect()
    assert str(raised.value) == text
    assert raised.value.__cause__ is not None


def _missing_file(spark: SparkSession, path: Path) -> None:
    spark.range(1).write.format("delta").save(str(path))
    frame = spark.read.format("delta").load(str(path))
    for file in path.glob("*.parquet"):
        file.unlink()
    frame.collect()


def _broken_file(spark: SparkSession, path: Path) -> None:
    spark.range(1).write.format("delta").save(str(path))
    frame = spark.read.format("delta").load(str(path))
    for file in path.glob("*.parquet"):
        Path(path, f".{file.name}.crc").unlink()
        file.write_bytes(b"PAR1 is not all of it PAR1")
    frame.collect()


def _null(spark: SparkSession, path: Path) -> None:
    sql(spark, f"CREATE TABLE delta.`{path}` (id BIGINT NOT NULL) USING delta")
    sql(spark, "SELECT nullif(id, 0) AS id FROM range(1)").write.format("delta").mode("append").save(str(path))


def _no_version(spark: SparkSession, path: Path) -> None:
    spark.range(1).write.format("delta").save(str(path))
    spark.read.format("delta").option("versionAsOf", 7).load(str(path)).collect()


def _another_schema(spark: SparkSession, path: Path) -> None:
    spark.range(1).write.format("delta").save(str(path))
    sql(spark, "SELECT 'x' AS id").write.format("delta").mode("append").save(str(path))


def _no_right(spark: SparkSession, _: Path) -> None:
    spark.range(1).write.format("delta").save("/proc/lake")


def _no_format(spark: SparkSession, path: Path) -> None:
    spark.read.format("nope").load(str(path))


def _no_files(spark: SparkSession, path: Path) -> None:
    spark.read.format("parquet").load(str(path))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("act", "text"),
    [
        (
            _missing_file,
            (
                "a file is gone (Encountered error while reading file file:LAKE/FILE). "
                "Hint: if it is the source's, restore it, and keep VACUUM from files in use; "
                "if it is a tier's, remove that table: the next run makes it again."
            ),
        ),
        (
            _broken_file,
            (
                "a file cannot be read (Encountered error while reading file file:LAKE/FILE). "
                "Hint: if it is the source's, restore it, and keep VACUUM from files in use; "
                "if it is a tier's, remove that table: the next run makes it again."
            ),
        ),
        (
            _null,
            (
                "Spark refuses it: NOT NULL constraint violated for column: id. "
                "Hint: Spark's name for it is DELTA_NOT_NULL_CONSTRAINT_VIOLATED."
            ),
        ),
        (
            _no_version,
            (
                "a version is gone (Cannot time travel Delta table to version 7. Available versions: [0, 0]). "
                "Hint: run again with the newest version of the table."
            ),
        ),
        (
            _another_schema,
            (
                "Spark refuses it: Failed to merge fields 'id' and 'id'. "
                "Hint: Spark's name for it is DELTA_FAILED_TO_MERGE_FIELDS."
            ),
        ),
        (
            _no_right,
            (
                "the target cannot be written (Cannot create file:/proc/lake/_delta_log). "
                "Hint: check that it may be written."
            ),
        ),
        (
            _no_format,
            (
                "the session lacks a format (Failed to find the data source: nope. Make sure the provider name is "
                "correct and "
                "the package is properly registered and compatible with your Spark version). "
                "Hint: check format:, or start Spark with the package that reads it."
            ),
        ),
        (
            _no_files,
            "there is nothing at the path (Path does not exist: file:LAKE). Hint: check path: of the source.",
        ),
    ],
)
def test_tables(spark: SparkSession, tmp_path: Path, act: Callable[[SparkSession, Path], None], text: str) -> None:
    with pytest.raises(StairwiseError) as raised, translating():
        act(spark, tmp_path / "lake")
    said_here = str(raised.value).replace(str(tmp_path / "lake"), "LAKE")
    assert re.sub(r"part-\S+\.parquet", "FILE", said_here) == text
