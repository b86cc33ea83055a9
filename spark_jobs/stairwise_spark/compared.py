"""What a table holds beside what the raw rows give: which rows, and which of their columns, are not as they must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType

from stairwise.json_fields import Json
from stairwise.windowing import Interval
from stairwise_spark.halves import any_of
from stairwise_spark.names import column
from stairwise_spark.recomputed import BOUNDS, ERRORS, ROWS, Judged, proof

_STORED, _MADE, _WRONG, _COUNT = "_stored", "_made", "_wrong", "_count"
_RELATIVE, _CANCELLED = 1e-9, 1e-12
_INTERPOLATED = ("median", "percentile")
_TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_AS_JSON = {"ignoreNullFields": "false", "timestampFormat": f"{_TIMES}XXX", "timestampNTZFormat": _TIMES}
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A column of a row, or a whole row, that is not as the raw rows give it.

    Attributes:
        tier: Whose.
        window: Its bounds, in seconds.
        keys: The row's keys.
        column: Which; None: the row is missing, or is one too many.
        stored: What the table holds: a value, or a row; None where there is no row.
        recomputed: What the raw rows give; for a sketch the exact answer, or the bounds of a quantile.
    """

    tier: str
    window: Interval
    keys: Mapping[str, Json]
    column: str | None
    stored: Json
    recomputed: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A column that is compared.

    Attributes:
        name: Under which a difference is told; a column of the stored frame.
        made: The column of the recomputed frame that it is compared with.
        judged: What it is; None: a number of rows.
        may_be_null: Whether NULL is right, whatever was recomputed.
    """

    name: str
    made: str
    judged: Judged | None = None
    may_be_null: bool = False

    def is_wrong(self, stored: Column, made: Callable[[str], Column]) -> Column:
        """Whether a stored value is not what it must be; never NULL."""
        agrees = stored.eqNullSafe(made(self.made)) if self.judged is None else _agrees(self.judged, stored, made)
        if self.may_be_null:
            agrees = stored.isNull() | agrees
        return ~F.coalesce(agrees, F.lit(False))  # noqa: FBT003 - a literal


@dataclass(slots=True, kw_only=True)
class Comparison:
    """The rows of a tier that are not as they must be, once Spark has looked.

    Attributes:
        tier: The tier.
        rules: The columns that are compared.
        total: How many differences there are.
        first: The first window that has one to end; None: there is none.
        last_end: The end of the last one.
        differences: Some of them.
    """

    tier: str
    rules: Sequence[Rule]
    total: int = 0
    first: Interval | None = None
    last_end: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])

    def look(self, stored: DataFrame, made: DataFrame, keys: Sequence[str], most: int) -> None:
        """The two are compared; at most so many differences are kept."""
        if _are_alike(stored, made, keys, self.rules):
            return
        found = _differing(stored, made, keys, self.rules).persist()
        try:
            start, end = (F.unix_micros(name) for name in BOUNDS)
            first = F.min(F.struct(end.alias("end"), start.alias("start"))).alias("first")
            row = found.agg(F.sum(_COUNT).alias("total"), first, F.max(end).alias("last")).collect()[0]
            self.total = int(row["total"] or 0)
            if not self.total:
                return
            self.first = Interval(row["first"]["start"] // _MICROS, row["first"]["end"] // _MICROS)
            self.last_end = row["last"] // _MICROS
            ordered = found.select(*_shown(keys)).orderBy("start", "end", "keys").limit(most)
            told = (each for row in ordered.collect() for each in self._told(row))
            self.differences = [each for each, _ in zip(told, range(most), strict=False)]
        finally:
            found.unpersist()

    def _told(self, row: Row) -> Iterator[Difference]:
        before, after = _rows(_read(row["stored"])), _rows(_read(row["made"]))
        here = Interval(row["start"] // _MICROS, row["end"] // _MICROS)
        keys = _object(_read(row["keys"]))

        def told(name: str | None, stored: Json, made: Json) -> Difference:
            return Difference(tier=self.tier, window=here, keys=keys, column=name, stored=stored, recomputed=made)

        if not before:
            yield told(None, None, _row(after[0]))
            return
        if after:
            for name in row["wrong"]:
                rule = next(each for each in self.rules if each.name == name)
                yield told(name, _value(before[0], name), _answer(after[0], rule))
        for surplus in before[len(after) :]:
            yield told(None, _row(surplus), None)


def _are_alike(stored: DataFrame, made: DataFrame, keys: Sequence[str], rules: Sequence[Rule]) -> bool:
    """Whether each row is on both sides, once, and no column differs; to tell what does costs many times as much."""
    by = (*keys, *BOUNDS)

    def aside(frame: DataFrame, side: str) -> DataFrame:
        own = (column(name).alias(f"{side} {name}") for name in frame.columns if name not in by)
        return frame.select(*map(column, by), F.lit(1).alias(side), *own)

    both = aside(stored, _STORED).unionByName(aside(made, _MADE), allowMissingColumns=True)
    sides = (_STORED, _MADE)
    values = (name for name in both.columns if name not in (*by, *sides))
    # Of several rows of one side, values may be mixed; but then they are too many.
    grouped = both.groupBy(*map(column, by)).agg(
        *(F.count(side).alias(side) for side in sides),
        *(F.first(column(name), ignorenulls=True).alias(name) for name in values),
    )
    wrong = (each.is_wrong(column(f"{_STORED} {each.name}"), lambda name: column(f"{_MADE} {name}")) for each in rules)
    is_alone = (column(side) != F.lit(1) for side in sides)
    return grouped.where(any_of([*is_alone, *wrong])).isEmpty()


def _differing(stored: DataFrame, made: DataFrame, keys: Sequence[str], rules: Sequence[Rule]) -> DataFrame:
    """The rows that differ: keys, bounds, all that is stored and all that was made there, and which columns differ."""
    by = [column(name) for name in (*keys, *BOUNDS)]
    sides = {_STORED: stored, _MADE: made}
    structs = {side: [name for name in frame.columns if name not in (*keys, *BOUNDS)] for side, frame in sides.items()}
    frames = [
        frame.select(*by, F.struct(*map(column, structs[side])).alias(side), F.lit(side == _STORED).alias("_is_stored"))
        for side, frame in sides.items()
    ]
    # Both in one frame, each with its own columns only: a join would not see a row that is there twice.
    both = frames[0].unionByName(frames[1], allowMissingColumns=True)
    grouped = both.groupBy(*by).agg(
        *(
            F.collect_list(F.when(column("_is_stored") == F.lit(side == _STORED), column(side))).alias(side)
            for side in sides
        )
    )
    before, after = F.get(column(_STORED), 0), F.get(column(_MADE), 0)
    wrong = [F.when(each.is_wrong(before.getField(each.name), after.getField), F.lit(each.name)) for each in rules]
    has_both = (F.size(_STORED) > F.lit(0)) & (F.size(_MADE) > F.lit(0))
    none = F.array().cast("array<string>")
    named = F.when(has_both, F.array_compact(F.array(*wrong))).otherwise(none) if wrong else none
    rows = F.abs(F.size(_STORED) - F.size(_MADE))
    found = grouped.withColumn(_WRONG, named).withColumn(_COUNT, (F.size(_WRONG) + rows).cast("bigint"))
    return found.where(column(_COUNT) > F.lit(0))


def _shown(keys: Sequence[str]) -> list[Column]:
    """What is collected of a row: bounds, which columns differ, and as JSON what they hold."""
    start, end = (F.unix_micros(name).alias(short) for name, short in zip(BOUNDS, ("start", "end"), strict=True))
    said = F.to_json(F.struct(*map(column, keys)), _AS_JSON) if keys else F.lit("{}")
    sides = [F.to_json(column(side), _AS_JSON).alias(side.removeprefix("_")) for side in (_STORED, _MADE)]
    return [start, end, said.alias("keys"), column(_WRONG).alias("wrong"), *sides]


def _agrees(judged: Judged, stored: Column, made: Callable[[str], Column]) -> Column:
    """Whether a stored result is what it must be; NULL only where it is not."""
    name = judged.name
    if not judged.is_sketch:
        if judged.is_summed:
            return _is_near(judged, stored, made(name), made(proof(name, "scale")))
        return _is_equal(judged, stored, made(name))
    match judged.aggregate.definition.name:
        case "approx_distinct":
            return _is_estimate(judged, stored, made(proof(name, "exact")))
        case "quantile":
            return _is_between(judged, stored, made(proof(name, "low")), made(proof(name, "high")))
        case _:
            return _is_top(judged, stored, made(proof(name, "exact")), made(proof(name, "count")))


def _is_equal(judged: Judged, stored: Column, made: Column) -> Column:
    """The same; what is interpolated between doubles may be off in its last digits."""
    if judged.aggregate.definition.name not in _INTERPOLATED or not _is_double(judged.kind):
        return stored.eqNullSafe(made)
    if isinstance(judged.kind, ArrayType):
        near = F.zip_with(stored, made, lambda one, other: one.eqNullSafe(other) | _is_close(one, other, F.lit(0.0)))
        return stored.eqNullSafe(made) | (
            (F.size(stored) == F.size(made)) & F.forall(near, lambda each: F.coalesce(each, F.lit(False)))  # noqa: FBT003
        )
    return stored.eqNullSafe(made) | _is_close(stored, made, F.lit(0.0))


def _is_double(kind: DataType) -> bool:
    return isinstance(kind.elementType if isinstance(kind, ArrayType) else kind, DoubleType | FloatType)


def _is_near(judged: Judged, stored: Column, made: Column, scale: Column) -> Column:
    """The same but for the order in which doubles were summed; of a root, its square."""
    if judged.aggregate.definition.name.startswith("stddev"):
        return (
            stored.eqNullSafe(made)
            | _is_close(stored, made, F.lit(0.0))
            | _is_close(stored * stored, made * made, scale)
        )
    return stored.eqNullSafe(made) | _is_close(stored, made, scale)


def _is_close(one: Column, other: Column, scale: Column) -> Column:
    """Whether two finite numbers differ by nothing that counts."""
    most = F.greatest(F.abs(one), F.abs(other))
    slack = F.greatest(
        most * F.lit(_RELATIVE), F.when(_is_finite(scale), scale * F.lit(_CANCELLED)).otherwise(F.lit(0.0))
    )
    return _is_finite(most) & (F.abs(one - other) <= slack)


def _is_finite(number: Column) -> Column:
    return (F.abs(number) < F.lit(float("inf"))) & ~F.isnan(number)


def _is_estimate(judged: Judged, stored: Column, exact: Column) -> Column:
    bound = judged.aggregate.bound
    error = 0.0 if bound is None else bound.error
    return F.abs(stored - exact) <= exact * F.lit(ERRORS * error)


def _is_between(judged: Judged, stored: Column, lows: Column, highs: Column) -> Column:
    """Whether quantiles are between the values of the ranks that their bound allows; without values there is none."""
    values = stored if isinstance(judged.kind, ArrayType) else F.array(stored)
    sketched = F.transform(values, lambda each: _as_sketched(each.cast("double")))
    bounds = F.arrays_zip(lows.alias("low"), highs.alias("high"), sketched.alias("value"))
    inside = F.forall(bounds, lambda each: (each["low"] <= each["value"]) & (each["value"] <= each["high"]))
    is_empty = F.get(lows, 0).isNull()
    return F.when(is_empty, stored.isNull()).otherwise(stored.isNotNull() & (F.size(values) == F.size(lows)) & inside)


def _as_sketched(value: Column) -> Column:
    """As a sketch of doubles has it: NaN is the largest, and infinity the greatest of the finite ones."""
    infinity, greatest = F.lit(float("inf")), F.lit(1.7976931348623157e308)
    return F.when(F.isnan(value), infinity).when(value == infinity, greatest).otherwise(value)


def _is_top(judged: Judged, stored: Column, exact: Column, count: Column) -> Column:
    """Whether the counts are those of the most frequent items, within the bound, and so are the items.

    Items of nearly one count may stand for each other at the end of the list.
    """
    bound = judged.aggregate.bound
    slack = count * F.lit(0.0 if bound is None else 2 * bound.error)
    pairs = F.zip_with(stored, exact, lambda one, other: F.abs(one["count"] - other["count"]) <= slack)
    last = F.coalesce(F.element_at(exact, -1)["count"], F.lit(0))
    is_full = F.size(exact) >= F.lit(judged.aggregate.parameters[0])

    def is_known(one: Column) -> Column:
        same = F.exists(
            exact, lambda other: one["item"].eqNullSafe(other["item"]) & (F.abs(one["count"] - other["count"]) <= slack)
        )
        return same | (is_full & (one["count"] <= last + slack))

    is_like = (F.size(stored) == F.size(exact)) & F.forall(pairs, lambda each: each) & F.forall(stored, is_known)
    return stored.eqNullSafe(exact) | is_like


def _read(text: str | None) -> Json:
    found: Json = None if text is None else json.loads(text, parse_float=_number)
    return found


def _number(text: str) -> float | str:
    """A number of JSON; one with more digits than a double has stays a text."""
    number = float(text)
    return number if Decimal(repr(number)) == Decimal(text) else text


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else []


def _row(value: Json) -> dict[str, Json]:
    """A whole row as readers see it, without states and what results are judged by."""
    return {name: each for name, each in _object(value).items() if not name.startswith("_") or name == ROWS}


def _value(row: Json, name: str) -> Json:
    return _object(row).get(name)


def _answer(row: Json, rule: Rule) -> Json:
    """What the raw rows say; of a quantile between which values it is, of another sketch the exact answer."""
    judged = rule.judged
    if judged is None or not judged.is_sketch:
        return _value(row, rule.made)
    if judged.is_ranked:
        return [_value(row, proof(judged.name, "low")), _value(row, proof(judged.name, "high"))]
    return _value(row, proof(judged.name, "exact"))
