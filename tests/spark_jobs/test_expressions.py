from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

import pytest
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from stairwise.aggregate import CATALOGUE, Aggregate, Applied, Definition, Field, Operation, Primitive, partial_columns
from stairwise.errors import AggregateError
from stairwise_spark.expressions import Types, argument_types, combined, direct, lifted, lowered
from tests.spark_jobs.events import EXAMPLES, KEYS, events

pytestmark = pytest.mark.spark

TEXTS = [text for texts in EXAMPLES.values() for text in texts]
ROUNDED = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr")


@dataclass(frozen=True, slots=True)
class Found:
    """What each aggregate comes to, with its type, by key."""

    kinds: dict[str, str]
    rows: dict[object, tuple[object, ...]]

    def of(self, text: str) -> dict[object, object]:
        position = list(self.kinds).index(text)
        return {key: row[position] for key, row in self.rows.items()}


def table(spark: SparkSession, values: str, *names: str) -> DataFrame:
    """Rows of one key."""
    rows = spark.sql(values)  # pyright: ignore[reportUnknownMemberType] - pandas has no types
    return rows.toDF(*names).withColumn("key", F.lit(0))


def grouped(frame: DataFrame, columns: Sequence[Column], *by: str) -> DataFrame:
    return frame.groupBy(*by).agg(*columns)


def evaluated(frame: DataFrame, aggregates: Sequence[Aggregate], columns: Sequence[Column]) -> Found:
    """The columns, which are the aggregates' results, of the groups or rows of each key."""
    named = frame.select("key", *(column.alias(f"r{index}") for index, column in enumerate(columns)))
    kinds = [field.dataType.simpleString() for field in named.schema.fields[1:]]
    texts = map(str, aggregates)
    return Found(dict(zip(texts, kinds, strict=True)), {row[0]: tuple(row)[1:] for row in named.collect()})


def directly(raw: DataFrame, aggregates: Sequence[Aggregate], types: Types) -> Found:
    results = [direct(each, types).alias(f"r{index}") for index, each in enumerate(aggregates)]
    frame = grouped(raw, results, "key")
    return evaluated(frame, aggregates, [F.col(f"r{index}") for index in range(len(aggregates))])


def lift(raw: DataFrame, aggregates: Sequence[Aggregate], types: Types) -> DataFrame:
    return grouped(raw, [each for one in partial_columns(aggregates) for each in lifted(one, types)], "key", "_slice")


def combine(tier: DataFrame, aggregates: Sequence[Aggregate], *by: str) -> DataFrame:
    return grouped(tier, [each for one in partial_columns(aggregates) for each in combined(one)], *by)


def merged(raw: DataFrame, aggregates: Sequence[Aggregate]) -> Found:
    """Through slices, pairs of slices, and keys."""
    types = argument_types(raw, aggregates)
    slices = lift(raw, aggregates, types).withColumn("_pair", F.col("_slice") % 2)
    keys = combine(combine(slices, aggregates, "key", "_pair"), aggregates, "key")
    return evaluated(keys, aggregates, [lowered(each, types) for each in aggregates])


def sliced(raw: DataFrame) -> DataFrame:
    """The rows at random in 1 to 4 slices for each key."""
    most = F.pmod(F.crc32(F.coalesce("key", F.lit("")).cast("binary")), F.lit(4)) + 1
    return raw.withColumn("_slice", F.floor(F.rand(5) * most))


@pytest.fixture(scope="module")
def raw(spark: SparkSession) -> Iterator[DataFrame]:
    frame = sliced(events(spark, seed=11)).cache()
    yield frame
    frame.unpersist()


AGGREGATES = [Aggregate.parse(text) for text in TEXTS]


@pytest.fixture(scope="module")
def types(raw: DataFrame) -> Types:
    return argument_types(raw, AGGREGATES)


@pytest.fixture(scope="module")
def slices(raw: DataFrame, types: Types, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The states of the slices as they come back from a table."""
    path = str(tmp_path_factory.mktemp("tier") / "slices")
    lift(raw, AGGREGATES, types).write.parquet(path)
    return raw.sparkSession.read.parquet(path)


@pytest.fixture(scope="module")
def expected(raw: DataFrame, types: Types) -> Found:
    return directly(raw, AGGREGATES, types)


@pytest.fixture(scope="module")
def pairs(slices: DataFrame) -> DataFrame:
    return combine(slices.withColumn("_pair", F.col("_slice") % 2), AGGREGATES, "key", "_pair")


@pytest.fixture(scope="module")
def found(pairs: DataFrame, types: Types) -> Found:
    results = [lowered(each, types) for each in AGGREGATES]
    return evaluated(combine(pairs, AGGREGATES, "key"), AGGREGATES, results)


def same(left: object, right: object, *, rounded: bool) -> bool:
    match left, right:
        case (float(), float()) if rounded and not math.isnan(left):
            return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-15)
        case _:
            return repr(left) == repr(right)


@pytest.mark.parametrize("definition", CATALOGUE, ids=lambda definition: definition.signature)
def test_merged_states_give_what_spark_gives_for_all_rows(
    definition: Definition, expected: Found, found: Found
) -> None:
    for text in map(str, map(Aggregate.parse, EXAMPLES[definition.signature])):
        assert found.kinds[text] == expected.kinds[text], text
        merged, plain = found.of(text), expected.of(text)
        assert merged.keys() == plain.keys() == set(KEYS)
        for key, value in plain.items():
            assert same(merged[key], value, rounded=definition.name in ROUNDED), (text, key, merged[key], value)


def test_combining_changes_no_type(slices: DataFrame, pairs: DataFrame) -> None:
    names = [name for partial in partial_columns(AGGREGATES) for name in partial.columns]
    kinds = dict(slices.dtypes)
    assert dict(pairs.select(*names).dtypes) == {name: kinds[name] for name in names}


def test_states_combine_over_a_frame_of_rows(slices: DataFrame, types: Types, expected: Found) -> None:
    texts = ("sum(money)", "var_pop(far)", "corr(far, whole)", "last(pair)", "mode(word)", "approx_distinct(real)")
    aggregates = [Aggregate.parse(text) for text in texts]
    frame = Window.partitionBy("key").orderBy("_slice").rowsBetween(Window.unboundedPreceding, 0)
    last = F.row_number().over(Window.partitionBy("key").orderBy(F.desc("_slice")))
    states = [each for one in partial_columns(aggregates) for each in combined(one, frame)]
    results = slices.select("key", last.alias("_last"), *states).where("_last = 1")
    found = evaluated(results, aggregates, [lowered(each, types) for each in aggregates])
    for text in texts:
        for key, value in expected.of(text).items():
            assert same(found.of(text)[key], value, rounded=True), (text, key)


def test_ties_nulls_and_zeros_are_settled(spark: SparkSession) -> None:
    rows = """
        values (1, 'b', -0.0D, 2), (1, 'a', 0.0D, 2), (1, null, 5D, 1), (2, 'z', double('NaN'), 3), (2, 'y', -0.0D, 3)
    """
    raw = table(spark, rows, "_time", "word", "real", "whole").withColumn("_slice", F.col("_time") % 2)
    wanted = {
        "first(word)": "a",
        "last(word)": "z",
        "min_by(word, whole)": "a",
        "max_by(word, whole)": "z",
        "max_by(whole, real)": 3,
        "mode(whole)": 2,
        "mode(real)": 0.0,
        "min(real)": 0.0,
        "max(array(real))": [math.nan],
        "collect_set(real)": [0.0, 5.0, math.nan],
        "count_distinct(real)": 3,
        "approx_distinct(real)": 3,
        "top_k(real, 2)": [Row(item=0.0, count=3), Row(item=5.0, count=1)],
        "top_k(word, 9)": [Row(item=word, count=1) for word in "abyz"],
        "quantile(real, [0, 1])": [0.0, math.nan],
    }
    found = merged(raw, [Aggregate.parse(text) for text in wanted])
    assert {text: repr(found.of(text)[0]) for text in wanted} == {text: repr(value) for text, value in wanted.items()}


def test_a_group_of_nothing(found: Found) -> None:
    zero = ("count(real)", "count_distinct(real)", "approx_distinct(word)")
    assert [found.of(text)["nothing"] for text in zero] == [0, 0, 0]
    assert [found.of(text)["nothing"] for text in ("collect_set(word)", "top_k(word, 2)")] == [[], []]
    others = ("sum(real)", "avg(money)", "corr(far, whole)", "first(word)", "quantile(money, 0.5)", "median(real)")
    assert [found.of(text)["nothing"] for text in others] == [None] * 6


def test_a_quantile_tells_infinity_from_nan(spark: SparkSession) -> None:
    rows = "values (0, double('NaN')), (0, double('infinity')), (1, double('-infinity')), (1, 1D)"
    raw = table(spark, rows, "_slice", "x")
    found = merged(raw, [Aggregate.parse("quantile(x, [0.25, 0.5, 0.75, 1])")])
    assert repr(found.rows[0][0]) == repr([-math.inf, 1.0, math.inf, math.nan])


def test_moments_of_values_far_from_zero_and_of_constants(spark: SparkSession) -> None:
    slices = F.least(F.floor(-2 * F.ln(F.rand(4))), F.lit(20))
    frame = spark.range(3000).select((F.randn(3) + 1e6).alias("far"), slices.alias("_slice"))
    raw = frame.withColumns({"key": F.lit(0), "same": F.lit(0.1)})
    values = [row[0] for row in raw.select("far").collect()]
    texts = ("var_pop(far)", "var_pop(same)", "corr(same, far)", "covar_pop(same, far)", "corr(far, -2 * far)")
    found = merged(raw, [Aggregate.parse(text) for text in texts]).rows[0]
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    assert found == (pytest.approx(float(variance), rel=1e-9), 0.0, None, 0.0, pytest.approx(-1.0, rel=1e-9))


def test_what_does_not_vary_correlates_with_nothing_not_even_with_nan(spark: SparkSession) -> None:
    raw = table(spark, "values (0, 1D, double('NaN')), (1, 1D, 2D), (1, 1D, double('infinity'))", "_slice", "same", "x")
    aggregates = [Aggregate.parse("corr(same, x)"), Aggregate.parse("corr(x, same) where x = 'NaN'")]
    assert merged(raw, aggregates).rows == directly(raw, aggregates, argument_types(raw, aggregates)).rows
    assert merged(raw, aggregates).rows == {0: (None, None)}


def test_means_that_are_all_but_equal_leave_no_negative_variance(spark: SparkSession) -> None:
    values = [(0, 3.3)] * 40 + [(1, math.nextafter(3.3, 4))] * 2
    raw = table(spark, "values " + ", ".join(f"({index}, {value!r}D)" for index, value in values), "_slice", "x")
    (deviation,) = merged(raw, [Aggregate.parse("stddev_pop(x)")]).rows[0]
    assert deviation == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(
    ("text", "rows", "lifts"),
    [
        ("sum(x)", "values (0, 9223372036854775807L), (0, 1L)", False),
        ("sum(x)", "values (0, 9223372036854775807L), (1, 1L)", True),
        ("sum(x)", "values (0, cast(9e37 as decimal(38, 0))), (1, cast(9e37 as decimal(38, 0)))", True),
    ],
)
def test_a_sum_that_leaves_its_type_raises(spark: SparkSession, text: str, rows: str, *, lifts: bool) -> None:
    raw = table(spark, rows, "_slice", "x")
    aggregates = [Aggregate.parse(text)]
    types = argument_types(raw, aggregates)
    assert lifts == _runs(lift(raw, aggregates, types))
    with pytest.raises(ArithmeticException):
        merged(raw, aggregates)
    with pytest.raises(ArithmeticException):
        directly(raw, aggregates, types)


def _runs(frame: DataFrame) -> bool:
    try:
        frame.collect()
    except PySparkException:
        return False
    return True


RANKS = (0.1, 0.5, 0.99)


def test_sketches_keep_their_bounds(spark: SparkSession) -> None:
    """Of 40,000 rows in 8 slices, with values 0 to 9,999, the small ones more often."""
    raw = spark.range(40_000).selectExpr(
        "0 as key", "id % 8 as _slice", "cast(10000 * pow(xxhash64(id) / pow(2, 64) + 0.5, 2) as int) as x"
    )
    aggregates = [Aggregate.parse(f"quantile(x, {rank})") for rank in RANKS]
    aggregates += map(Aggregate.parse, ("approx_distinct(x)", "top_k(x, 3)"))
    *quantiles, distinct, top = merged(raw, aggregates).rows[0]
    values = sorted(row[0] for row in raw.select("x").collect())
    counts = sorted((-values.count(value), value) for value in range(5))[:3]
    assert distinct == pytest.approx(len(set(values)), rel=4 * _error(aggregates[-2]))
    assert top == [Row(item=value, count=-count) for count, value in counts]
    ranks = [sum(value <= float(str(quantile)) for value in values) / len(values) for quantile in quantiles]
    assert ranks == pytest.approx(RANKS, abs=1.5 * _error(aggregates[0]))


def _error(aggregate: Aggregate) -> float:
    assert aggregate.bound is not None
    return aggregate.bound.error


def test_strings_are_distinct_by_their_collation(spark: SparkSession) -> None:
    rows = "values (0, 'a'), (1, 'A'), (1, ''), (2, 'b '), (2, null)"
    raw = table(spark, rows, "_slice", "x").withColumn("x", F.collate("x", "utf8_lcase_rtrim"))
    texts = ("approx_distinct(x)", "count_distinct(x)", "approx_distinct(x) where x = 'B'")
    assert merged(raw, [Aggregate.parse(text) for text in texts]).rows == {0: (3, 3, 1)}


def test_a_new_entry_of_the_catalogue_needs_nothing_here(raw: DataFrame) -> None:
    parts = tuple(Field(Primitive.CO_MOMENTS, name) for name in ("c", "m2_y"))
    slope = Definition(name="slope", arguments=("y", "x"), lower=Applied(Operation.OVER, parts), meaning="slope")
    aggregates = [Aggregate.parse("slope(far, whole)", (*CATALOGUE, slope))]
    expected = directly(raw, aggregates, argument_types(raw, aggregates)).rows
    spark_says = {row[0]: row[1] for row in raw.groupBy("key").agg(F.regr_slope("far", "whole")).collect()}
    for key, (value,) in merged(raw, aggregates).rows.items():
        assert same(value, expected[key][0], rounded=True)
        assert same(value, spark_says[key], rounded=True)


@pytest.mark.parametrize(
    ("text", "rule", "hint"),
    [
        (
            "first(tags)",
            "tags is of type map<string,int>, whose values cannot be compared",
            "take a part of it, or cast it",
        ),
        (
            "min_by(struct(array(tags)), whole) where flag",
            "struct(array(tags)) is of type struct<col1:array<map<string,int>>>, whose values cannot be compared",
            "take a part of it, or cast it",
        ),
        ("quantile(day, 0.5)", "day is of type date, and quantiles are of numbers", "cast it to a number"),
    ],
)
def test_what_cannot_be_compared_is_refused(raw: DataFrame, text: str, rule: str, hint: str) -> None:
    with pytest.raises(AggregateError) as caught:
        argument_types(raw, [Aggregate.parse(text)])
    assert str(caught.value) == f"aggregate {text!r}: {rule}. Hint: {hint}."


def test_an_interval_between_two_is_cut_to_microseconds(spark: SparkSession) -> None:
    rows = "values (0, interval '0.000001' second), (1, interval '0.000004' second)"
    raw = table(spark, rows, "_slice", "x")
    assert merged(raw, [Aggregate.parse("median(x)")]).rows == {0: (timedelta(microseconds=2),)}
