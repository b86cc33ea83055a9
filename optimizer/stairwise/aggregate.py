"""Aggregates as data: the partials that each one keeps, and the formula that makes its result of them.

A :class:`Primitive` is a kind of state that is lifted from rows and combined with itself. A :class:`Definition` is a
name with a :class:`Formula` over primitives, and nothing else: how an aggregate may be shared, what its state weighs
and how exact it is follow from the primitives in its formula. So a new aggregate is one entry in :data:`CATALOGUE`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from stairwise.call import Call, Parameter, Ranks, Value, Whole, parse_call, refusal, split, value_text, written


class Sharing(Enum):
    """How results over several slices may be made of the slices' partials."""

    OVERLAPPING = "overlapping"  # a row may be in several slices: min, max, distinct sketches
    DISJOINT = "disjoint"  # each row in exactly one slice: count, sum, quantile sketches
    HOLISTIC = "holistic"  # raw rows, an equal-range parent, or a tier that keeps the values themselves


class Invertibility(Enum):
    """When a slice can be taken out of a partial again, exactly."""

    ALWAYS = "always"
    EXACT_TYPES = "exact types"  # integers and decimals; a double's rounding, infinities and NaN do not come out again
    NEVER = "never"


class Primitive(Enum):
    """The closed list of states; :data:`TRAITS` says what each one is."""

    COUNT_ROWS = "count_rows"
    COUNT_VALUES = "count_values"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN_M2 = "mean_m2"
    CO_MOMENTS = "co_moments"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    ARG_MIN = "arg_min"
    ARG_MAX = "arg_max"
    FIRST = "first"
    LAST = "last"
    HLL_SKETCH = "hll_sketch"
    KLL_SKETCH = "kll_sketch"
    TOP_K_SKETCH = "top_k_sketch"
    VALUE_SET = "value_set"
    VALUE_COUNTS = "value_counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is true of a primitive.

    Attributes:
        fields: Names of the state's columns.
        sharing: Whether a state may be combined with one that holds some of the same rows.
        invertibility: Whether a slice can be subtracted from a state.
        parameter: Name of the call's parameter that sizes a sketch; empty if none does.
        keeps_values: Whether the state keeps the values themselves, so that it grows with them.
        fixed_bytes: Size of a state without values.
        bytes_per_value: What one more distinct value adds, up to the limit of a sketch.
    """

    fields: tuple[str, ...]
    sharing: Sharing
    invertibility: Invertibility = Invertibility.NEVER
    parameter: str = ""
    keeps_values: bool = False
    fixed_bytes: int = 8
    bytes_per_value: int = 0


def _overlapping(*fields: str, fixed_bytes: int = 8) -> Traits:
    return Traits(fields=fields, sharing=Sharing.OVERLAPPING, fixed_bytes=fixed_bytes)


def _disjoint(*fields: str, invertibility: Invertibility = Invertibility.NEVER, fixed_bytes: int = 8) -> Traits:
    return Traits(fields=fields, sharing=Sharing.DISJOINT, invertibility=invertibility, fixed_bytes=fixed_bytes)


# A sum may be a decimal of 16 bytes. Sketches: measured on Spark 4.2, states of 60 values and of many.
_SKETCH = Traits(fields=("sketch",), sharing=Sharing.DISJOINT, fixed_bytes=40, bytes_per_value=8)
_VALUES = Traits(fields=("values",), sharing=Sharing.DISJOINT, keeps_values=True, bytes_per_value=16)
TRAITS: Mapping[Primitive, Traits] = {
    Primitive.COUNT_ROWS: _disjoint("rows", invertibility=Invertibility.ALWAYS),
    Primitive.COUNT_VALUES: _disjoint("count", invertibility=Invertibility.ALWAYS),
    Primitive.SUM: _disjoint("sum", invertibility=Invertibility.EXACT_TYPES, fixed_bytes=16),
    Primitive.MIN: _overlapping("min"),
    Primitive.MAX: _overlapping("max"),
    Primitive.MEAN_M2: _disjoint("n", "mean", "m2", fixed_bytes=24),
    Primitive.CO_MOMENTS: _disjoint("n", "mean_x", "mean_y", "m2_x", "m2_y", "c", fixed_bytes=48),
    Primitive.BOOL_AND: _overlapping("all", fixed_bytes=1),
    Primitive.BOOL_OR: _overlapping("any", fixed_bytes=1),
    Primitive.BIT_AND: _overlapping("bits"),
    Primitive.BIT_OR: _overlapping("bits"),
    Primitive.BIT_XOR: _disjoint("bits", invertibility=Invertibility.ALWAYS),
    Primitive.ARG_MIN: _overlapping("order", "value", fixed_bytes=16),
    Primitive.ARG_MAX: _overlapping("order", "value", fixed_bytes=16),
    Primitive.FIRST: _overlapping("time", "value", fixed_bytes=16),
    Primitive.LAST: _overlapping("time", "value", fixed_bytes=16),
    Primitive.HLL_SKETCH: replace(_SKETCH, sharing=Sharing.OVERLAPPING, parameter="lgk"),
    Primitive.KLL_SKETCH: replace(_SKETCH, parameter="k"),
    Primitive.TOP_K_SKETCH: replace(_SKETCH, bytes_per_value=16),
    Primitive.VALUE_SET: replace(_VALUES, sharing=Sharing.OVERLAPPING, bytes_per_value=8),
    Primitive.VALUE_COUNTS: _VALUES,
}

TOP_K_ITEMS = 10_000  # Spark's own default for approx_top_k_accumulate, whose table then has 16,384 slots


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a primitive's state."""

    primitive: Primitive
    name: str


class Operation(Enum):
    """What a formula can do with its operands; NULL makes NULL."""

    LESS_ONE = "the operand less 1"
    TIMES = "the product"
    OVER = "the quotient, or NULL if the denominator is 0"
    ROOT = "the square root"
    ESTIMATE = "how many distinct values a sketch estimates"
    QUANTILES = "the values that a sketch has at the ranks q"
    TOP = "the k most frequent values of a sketch, with their counts"
    MEDIAN = "the value at rank 0.5, interpolated"
    PERCENTILE = "the values at the ranks q, interpolated"
    MODE = "the most frequent value, the smallest of several"
    SIZE = "how many distinct values there are"
    SORTED = "the distinct values in order"


@dataclass(frozen=True, slots=True)
class Applied:
    """An operation on what its operands come to."""

    operation: Operation
    operands: tuple[Formula, ...]


Formula = Field | Applied


def fields_of(formula: Formula) -> Iterator[Field]:
    """All fields that the formula reads, from left to right."""
    if isinstance(formula, Field):
        yield formula
    else:
        for operand in formula.operands:
            yield from fields_of(operand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One entry of the catalogue.

    Attributes:
        name: In lower case.
        arguments: What the expressions stand for, in order.
        parameters: The literals that follow them; those with a default come last.
        lower: The result as a formula over the partials.
        meaning: The result in words.
    """

    name: str
    arguments: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    lower: Formula
    meaning: str

    @property
    def signature(self) -> str:
        """The call as a reader writes it; what may be left out stands in brackets with its comma."""
        required = [*self.arguments, *(each.form for each in self.parameters if each.default is None)]
        optional = [f"[, {each.form}]" for each in self.parameters if each.default is not None]
        return f"{self.name}({', '.join(required)}{''.join(optional)})"

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        """The states that the formula reads, each once."""
        return tuple(dict.fromkeys(field.primitive for field in fields_of(self.lower)))

    def takes(self, count: int) -> bool:
        """Whether a call with so many arguments and parameters is complete and not too long."""
        longest = len(self.arguments) + len(self.parameters)
        return longest - sum(each.default is not None for each in self.parameters) <= count <= longest


def _entry(name: str, lower: Formula, meaning: str, arguments: str = "x", *parameters: Parameter) -> Definition:
    names = tuple(arguments.split())
    return Definition(name=name, arguments=names, parameters=parameters, lower=lower, meaning=meaning)


_N, _M2 = Field(Primitive.MEAN_M2, "n"), Field(Primitive.MEAN_M2, "m2")
_PAIRS, _C = Field(Primitive.CO_MOMENTS, "n"), Field(Primitive.CO_MOMENTS, "c")
_M2_X, _M2_Y = Field(Primitive.CO_MOMENTS, "m2_x"), Field(Primitive.CO_MOMENTS, "m2_y")
_SUM, _COUNT = Field(Primitive.SUM, "sum"), Field(Primitive.COUNT_VALUES, "count")
_HLL, _LGK = Field(Primitive.HLL_SKETCH, "sketch"), Whole("lgk", 4, 21, 12)
_KLL, _K = Field(Primitive.KLL_SKETCH, "sketch"), Whole("k", 8, 65_535, 200)
_TOP, _ITEMS = Field(Primitive.TOP_K_SKETCH, "sketch"), Whole("k", 1, TOP_K_ITEMS)
_SET, _COUNTS = Field(Primitive.VALUE_SET, "values"), Field(Primitive.VALUE_COUNTS, "values")


def _of(operation: Operation, *operands: Formula) -> Applied:
    return Applied(operation, operands)


_VARIANCE, _SAMPLE_VARIANCE = _of(Operation.OVER, _M2, _N), _of(Operation.OVER, _M2, _of(Operation.LESS_ONE, _N))
_DEVIATIONS = _of(Operation.TIMES, _of(Operation.ROOT, _M2_X), _of(Operation.ROOT, _M2_Y))

CATALOGUE: tuple[Definition, ...] = (
    _entry("count", Field(Primitive.COUNT_ROWS, "rows"), "number of rows", ""),
    _entry("count", _COUNT, "number of values"),
    _entry("sum", _SUM, "sum"),
    _entry("avg", _of(Operation.OVER, _SUM, _COUNT), "mean"),
    _entry("min", Field(Primitive.MIN, "min"), "smallest value"),
    _entry("max", Field(Primitive.MAX, "max"), "largest value"),
    _entry("var_pop", _VARIANCE, "variance"),
    _entry("var_samp", _SAMPLE_VARIANCE, "variance of a sample"),
    _entry("stddev_pop", _of(Operation.ROOT, _VARIANCE), "standard deviation"),
    _entry("stddev_samp", _of(Operation.ROOT, _SAMPLE_VARIANCE), "standard deviation of a sample"),
    _entry("covar_pop", _of(Operation.OVER, _C, _PAIRS), "covariance", "x y"),
    _entry("covar_samp", _of(Operation.OVER, _C, _of(Operation.LESS_ONE, _PAIRS)), "covariance of a sample", "x y"),
    _entry("corr", _of(Operation.OVER, _C, _DEVIATIONS), "Pearson's correlation", "x y"),
    _entry("bool_and", Field(Primitive.BOOL_AND, "all"), "whether all values are true"),
    _entry("bool_or", Field(Primitive.BOOL_OR, "any"), "whether any value is true"),
    _entry("bit_and", Field(Primitive.BIT_AND, "bits"), "bits set in all values"),
    _entry("bit_or", Field(Primitive.BIT_OR, "bits"), "bits set in any value"),
    _entry("bit_xor", Field(Primitive.BIT_XOR, "bits"), "bits set in an odd number of values"),
    _entry("min_by", Field(Primitive.ARG_MIN, "value"), "value at the smallest order", "x order"),
    _entry("max_by", Field(Primitive.ARG_MAX, "value"), "value at the largest order", "x order"),
    _entry("first", Field(Primitive.FIRST, "value"), "earliest value"),
    _entry("last", Field(Primitive.LAST, "value"), "latest value"),
    _entry("approx_distinct", _of(Operation.ESTIMATE, _HLL), "number of distinct values, about", "x", _LGK),
    _entry("quantile", _of(Operation.QUANTILES, _KLL), "value at rank q, about", "x", Ranks("q"), _K),
    _entry("top_k", _of(Operation.TOP, _TOP), "most frequent values with their counts, about", "x", _ITEMS),
    _entry("count_distinct", _of(Operation.SIZE, _SET), "number of distinct values"),
    _entry("median", _of(Operation.MEDIAN, _COUNTS), "value at rank 0.5"),
    _entry("percentile", _of(Operation.PERCENTILE, _COUNTS), "value at rank q", "x", Ranks("q")),
    _entry("mode", _of(Operation.MODE, _COUNTS), "most frequent value"),
    _entry("collect_set", _of(Operation.SORTED, _SET), "distinct values, sorted"),
)


@dataclass(frozen=True, slots=True)
class Bound:
    """How far an approximate result may be off: a number, and what it is a number of."""

    error: float
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """One state of one group of rows, as it stands in a tier; equal partials are the same columns.

    Attributes:
        primitive: What the state is and how it combines.
        arguments: The expressions that are lifted.
        condition: Only rows for which it is true are lifted; None for all.
        parameter: What sizes a sketch, ``lgk`` or ``k``; 0 for every other state.
    """

    primitive: Primitive
    arguments: tuple[str, ...] = ()
    condition: str | None = None
    parameter: int = 0

    def __post_init__(self) -> None:
        """Refuse a sketch without its size, and a size for anything else."""
        if (self.parameter > 0) != bool(self.traits.parameter):
            rule = f"a size of {self.parameter} is given"
            raise refusal(self.primitive.value, rule, "a sketch has a size above 0, and nothing else has one.")

    @property
    def traits(self) -> Traits:
        """What is true of its primitive."""
        return TRAITS[self.primitive]

    @property
    def name(self) -> str:
        """A column name that depends on nothing but the partial: readable, then a digest that tells it from others.

        >>> Partial(primitive=Primitive.SUM, arguments=("fare",)).name, ROWS.name
        ('_sum_fare_119e84ad', '_rows')
        """
        if self == ROWS:
            return "_rows"
        from hashlib import sha256

        identity = ascii((self.primitive.value, self.arguments, self.condition, self.parameter))
        words = re.findall("[a-z0-9]+", " ".join(self.arguments).lower())
        readable = "_".join([self.primitive.value, *words])[:32].rstrip("_")
        return f"_{readable}_{sha256(identity.encode()).hexdigest()[:8]}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of each field; a state of one field has the partial's own name."""
        fields = self.traits.fields
        return (self.name,) if len(fields) == 1 else tuple(f"{self.name}_{field}" for field in fields)

    @property
    def witness(self) -> Partial | None:
        """The count that tells an emptied state from a NULL one, for whoever subtracts; None if none is needed."""
        is_count = self.primitive in (Primitive.COUNT_ROWS, Primitive.COUNT_VALUES)
        if is_count or self.traits.invertibility is Invertibility.NEVER:
            return None
        return replace(self, primitive=Primitive.COUNT_VALUES)

    @property
    def bound(self) -> Bound | None:
        """How far what is read off a sketch may be off; None if the state is exact."""
        match self.primitive:
            case Primitive.HLL_SKETCH:
                # After a union; a sketch of one stream does better, but a tier is merged.
                return Bound(1.04 / math.sqrt(1 << self.parameter), "relative standard error")
            case Primitive.KLL_SKETCH:
                return Bound(2.296 / self.parameter**0.9723, "rank error, of all values, at 99 % confidence")
            case Primitive.TOP_K_SKETCH:
                return Bound(3.5 / 16_384, "count error, of all values, at most")
            case _:
                return None

    def state_bytes(self, distinct_values: int) -> int:
        """About how many bytes a state weighs that has seen so many distinct values.

        >>> [Partial(primitive=Primitive.HLL_SKETCH, parameter=12).state_bytes(n) for n in (60, 10**6)]
        [520, 4136]
        """
        size = self.traits.fixed_bytes + self.traits.bytes_per_value * distinct_values
        match self.primitive:
            case Primitive.HLL_SKETCH:
                return min(size, 40 + (1 << self.parameter))
            case Primitive.KLL_SKETCH:
                return min(size, 40 + 16 * self.parameter)
            case Primitive.TOP_K_SKETCH:
                return min(size, 40 + 16 * TOP_K_ITEMS)
            case _:
                return size


ROWS = Partial(primitive=Primitive.COUNT_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Aggregate:
    """What a column of a rollup holds: a definition, applied to expressions over the source's columns.

    Attributes:
        definition: The entry of the catalogue.
        arguments: Spark SQL expressions, each written in the canonical way.
        parameters: The literals, those with defaults included.
        condition: Only rows for which it is true count; None for all.
    """

    definition: Definition
    arguments: tuple[str, ...] = ()
    parameters: tuple[Value, ...] = ()
    condition: str | None = None

    def __post_init__(self) -> None:
        """Refuse what :meth:`parse` could not have built."""
        expressions = self.arguments if self.condition is None else (*self.arguments, self.condition)
        values = [value_text(each) for each in self.parameters]
        readable = [each.read(text) for each, text in zip(self.definition.parameters, values, strict=False)]
        if (
            len(self.arguments) != len(self.definition.arguments)
            or len(self.parameters) != len(self.definition.parameters)
            or readable != list(self.parameters)
            or any(split(each) != (each,) for each in expressions)
        ):
            raise refusal(self.definition.name, "the parts do not fit the definition", "build it with Aggregate.parse.")

    @classmethod
    def parse(cls, text: str, catalogue: tuple[Definition, ...] = CATALOGUE) -> Aggregate:
        """The aggregate that ``NAME(arguments) [where CONDITION]`` declares.

        Raises:
            AggregateError: The text is not of that form, the name is unknown, or the arguments do not fit it.

        >>> Aggregate.parse("SUM( tip )  where payment='card'") == Aggregate.parse("sum(tip) where payment = 'card'")
        True
        """
        call = parse_call(text)
        if call.name == "count" and call.arguments == ("*",):
            call = replace(call, arguments=())
        definition = _chosen(call, catalogue)
        count = len(definition.arguments)
        call.check_expressions(count, {each.name for each in catalogue})
        return cls(
            definition=definition,
            arguments=call.arguments[:count],
            parameters=tuple(call.read(position, each) for position, each in enumerate(definition.parameters, count)),
            condition=call.condition,
        )

    def __repr__(self) -> str:
        return f"Aggregate.parse({str(self)!r})"

    def __str__(self) -> str:
        """The canonical text, which parses back to an equal aggregate; defaults are left out."""
        literals = [value_text(each) for each in self.parameters]
        while literals and self.parameters[len(literals) - 1] == self.definition.parameters[len(literals) - 1].default:
            literals.pop()
        return written(self.definition.name, (*self.arguments, *literals), self.condition)

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The states that a tier keeps for it, in the order of its formula."""
        given = zip(self.definition.parameters, self.parameters, strict=True)
        sizes = {parameter.name: value for parameter, value in given if isinstance(value, int)}
        return tuple(
            Partial(
                primitive=each,
                arguments=self.arguments,
                condition=self.condition,
                parameter=sizes.get(TRAITS[each].parameter, 0),
            )
            for each in self.definition.primitives
        )

    @property
    def sharing(self) -> Sharing:
        """How its results may be made of other tiers."""
        traits = [each.traits for each in self.partials]
        if any(each.keeps_values for each in traits):
            return Sharing.HOLISTIC
        return _strictest(each.sharing for each in traits)

    @property
    def invertibility(self) -> Invertibility:
        """When a slice can be taken out of its state again: as the least invertible of its partials."""
        return max((each.traits.invertibility for each in self.partials), key=list(Invertibility).index)

    @property
    def bound(self) -> Bound | None:
        """How far its result may be off; None if it is exact."""
        return next((each.bound for each in self.partials if each.bound is not None), None)


def partial_columns(aggregates: Iterable[Aggregate]) -> tuple[Partial, ...]:
    """The partials that these aggregates need, each once, by name.

    >>> [each.name for each in partial_columns(map(Aggregate.parse, ("avg(fare)", "sum(fare)", "count()")))]
    ['_count_values_fare_7633ecdc', '_rows', '_sum_fare_119e84ad']
    """
    return tuple(sorted({each for aggregate in aggregates for each in aggregate.partials}, key=lambda each: each.name))


def by_sharing(aggregates: Iterable[Aggregate]) -> dict[Sharing, tuple[Aggregate, ...]]:
    """The aggregates of each class, in the given order; a class without any is left out.

    >>> by_sharing([Aggregate.parse("mode(zone)"), Aggregate.parse("count()")])[Sharing.DISJOINT]
    (Aggregate.parse('count()'),)
    """
    given = tuple(aggregates)
    groups = {sharing: tuple(each for each in given if each.sharing is sharing) for sharing in Sharing}
    return {sharing: group for sharing, group in groups.items() if group}


def strictest(aggregates: Iterable[Aggregate]) -> Sharing:
    """The class that suits all that merge: disjoint if one of them is; holistic only if none of them merges.

    >>> strictest(map(Aggregate.parse, ("min(fare)", "sum(fare)", "median(fare)")))
    <Sharing.DISJOINT: 'disjoint'>
    """
    merging = [each.sharing for each in aggregates if each.sharing is not Sharing.HOLISTIC]
    return _strictest(merging) if merging else Sharing.HOLISTIC


def _strictest(classes: Iterable[Sharing]) -> Sharing:
    return Sharing.DISJOINT if Sharing.DISJOINT in classes else Sharing.OVERLAPPING


def _chosen(call: Call, catalogue: tuple[Definition, ...]) -> Definition:
    named = [each for each in catalogue if each.name == call.name]
    if not named:
        raise call.unknown([each.name for each in catalogue])
    for each in named:
        if each.takes(len(call.arguments)):
            return each
    forms = " or ".join(each.signature for each in named)
    raise call.refusal(f"the number of arguments, {len(call.arguments)}, does not fit {forms}", f"write {forms}.")
