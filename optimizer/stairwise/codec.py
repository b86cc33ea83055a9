"""A plan as a JSON document and back; also the document of an error.

The document is what crosses to Spark and Airflow. A plan that is read back equals the one that was written, and keeps
its invariants; anything else is refused. Numbers are JSON's own, but for exact fractions, which are texts such as
``"813/80"``, and for integers of thousands of digits, which are fractions over 1: no JSON reader takes them as numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import assert_never

from stairwise.aggregate import Sharing
from stairwise.cost import Cost
from stairwise.edges import EdgeSet
from stairwise.errors import CodecError, DeclarationError, DeclarationProblems, PlanError, Problem, StairwiseError
from stairwise.final_aggregation import Technique
from stairwise.instant import format_instant, parse_instant
from stairwise.json_fields import HINT, Fields, Json
from stairwise.measured import Measured, Slice
from stairwise.network import Number
from stairwise.options import Algorithm, Pricing, TiersAllowed
from stairwise.plan import Alternative, Plan, Search, Step, Totals
from stairwise.rollup import Estimates, Rollup
from stairwise.tiers import Horizon, How, Kind, Tier, composite_tier, declared_tier, factor_tier
from stairwise.window import CalendarSpan, CalendarWindow, CumulateWindow, FixedWindow, Window
from stairwise.window_text import parse_window
from stairwise.windowing import Interval

PLAN_SCHEMA = "stairwise.plan/1"
ERROR_SCHEMA = "stairwise.error/1"
_MOST_BITS = 14_000  # about 4,200 digits; Python and others read JSON's integers up to 4,300


def encode_plan(plan: Plan, *, seconds: float | None = None) -> dict[str, Json]:
    """The document of a plan; ``seconds`` is how long planning took."""
    totals = plan.totals
    document: dict[str, Json] = {
        "schema": PLAN_SCHEMA,
        "rollup": plan.rollup,
        "semantics": plan.search.semantics.value,
        "cost_model": plan.search.cost_model.value,
        "algorithm": plan.search.algorithm.value,
        "tiers_allowed": plan.search.tiers_allowed.value,
        "tiers": [_encode_step(step) for step in plan.steps],
        "passes": [{"reads": each.reads, "tiers": [step.tier.name for step in each.steps]} for each in plan.passes()],
        "cost": {
            "total": _number(totals.total),
            "unshared": _number(totals.unshared),
            "paper_1": _number(totals.paper_1),
            "paper_3": _number(totals.paper_3),
            "lower_bound": _number(totals.lower_bound),
            "gap": totals.gap,
            "proven_optimal": totals.is_proven_optimal,
            "period_s": _number(totals.period_s),
            "unit": totals.unit,
        },
        "horizon": [format_instant(plan.horizon.start), format_instant(plan.horizon.end)],
        "measured": None if plan.measured is None else _encode_measured(plan.measured),
        "notes": list(plan.notes),
        "declaration": None if plan.declaration is None else plan.declaration.to_yaml(),
    }
    if seconds is not None:
        document["seconds"] = round(seconds, 6)
    return document


def to_json(document: Mapping[str, Json]) -> str:
    """The document on one line: the same document, the same bytes.

    >>> to_json({"total": 150, "unit": "reads"})
    '{"total": 150, "unit": "reads"}'
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def encode_error(error: StairwiseError) -> dict[str, Json]:
    """The document of an error; those of a file are listed in its data.

    >>> document = encode_error(CodecError("plan: 'tiers' is not a list.", hint="plan again.", field="tiers"))
    >>> document["kind"], document["message"], document["hint"], document["data"]
    ('codec', "plan: 'tiers' is not a list.", 'plan again.', {'field': 'tiers'})
    """
    data: dict[str, Json] = dict(error.data)
    if isinstance(error, DeclarationProblems):
        data = {"file": error.file, "problems": [_encode_problem(problem) for problem in error.problems]}
    return {"schema": ERROR_SCHEMA, **_encode_texts(error), "data": data}


def _encode_problem(problem: Problem) -> Json:
    return {"line": problem.line or None, "column": problem.column or None, **_encode_texts(problem.error)}


def _encode_texts(error: StairwiseError) -> dict[str, Json]:
    return {"kind": error.kind, "message": error.message, "hint": error.hint}


def _encode_step(step: Step) -> Json:
    tier = step.tier
    return {
        "name": tier.name,
        "kind": tier.kind.value,
        "window": tier.text or None,
        **_encode_edges(tier),
        "keeps_values": tier.keeps_values,
        "reads": step.reads,
        "how": step.how.value,
        "final": None if step.final is None else step.final.value,
        "cost": _number(step.cost.total),
        "rows": step.cost.rows_written,
        "rows_read": step.cost.rows_read,
        "bytes": step.cost.bytes_written,
        "runner_up": None if step.runner_up is None else _encode_alternative(step.runner_up),
        "why": step.why,
    }


def _encode_alternative(alternative: Alternative) -> Json:
    return {"reads": alternative.reads, "cost": _number(alternative.cost)}


def _encode_edges(tier: Tier) -> dict[str, Json]:
    """Where the tier cuts time: residue classes for good, or a calendar's rule."""
    if tier.window is None or isinstance(tier.window, FixedWindow):
        edges = [list(one) for one in tier.needs.classes]
        return {"range_s": tier.range_s, "slide_s": tier.slide_s, "edges": edges}
    return {"calendar": _encode_window(tier.window)}


def _encode_window(window: Window) -> Json:
    match window:
        case FixedWindow():
            return {"range_s": window.range, "slide_s": window.slide, "origin_s": window.origin}
        case CalendarWindow():
            return {
                "range": {"unit": window.range_unit.value, "count": window.range_count},
                "step": _encode_span(window.step),
                "zone": window.zone,
                "offset_s": window.offset,
            }
        case CumulateWindow():
            return {"period": _encode_window(window.period), "step": _encode_window(window.step)}
        case _:
            assert_never(window)


def _encode_span(span: CalendarSpan) -> Json:
    return {"unit": span.unit.value, "count": span.count, "anchor": span.anchor}


def _encode_measured(measured: Measured) -> Json:
    known = measured.estimates
    return {
        "rows": measured.rows,
        "range": [format_instant(instant) for instant in measured.span],
        "rows_per_day": known.rows_per_day,
        "distinct_keys": known.distinct_keys,
        "distinct_values": known.distinct_values,
        "slices": [{"seconds": each.seconds, "rows": each.rows, "keys": each.keys} for each in measured.slices],
        "sample": measured.sample,
        "bytes": measured.bytes,
        "version": measured.version,
    }


def _number(number: Number) -> int | float | str:
    """A number as JSON has it; a fraction that is no integer, or an integer that no JSON reader takes, as a text.

    >>> from fractions import Fraction
    >>> _number(Fraction(6, 3)), _number(Fraction(1, 3)), _number(0.5), len(str(_number(10**5_000)))
    (2, '1/3', 0.5, 5003)
    """
    if isinstance(number, float):
        return number
    if number.denominator == 1 and number.numerator.bit_length() <= _MOST_BITS:
        return number.numerator
    # Python's own conversion of integers to and from texts ends at 4,300 digits; that of decimals does not.
    return f"{Decimal(number.numerator):f}/{Decimal(number.denominator):f}"


def decode_plan(text: str) -> Plan:
    """The plan that a document holds.

    >>> decode_plan('{"schema": "stairwise.plan/2"}')
    Traceback (most recent call last):
    stairwise.errors.CodecError: plan: the schema is 'stairwise.plan/2', not 'stairwise.plan/1'. Hint: plan again ...

    Raises:
        CodecError: The text is no document of a plan, or of a version that this one cannot read.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"plan: not a JSON document ({error}).", hint=HINT) from error
    top = Fields.of(document, "plan")
    schema = top.text("schema")
    if schema != PLAN_SCHEMA:
        raise CodecError(f"plan: the schema is '{schema}', not '{PLAN_SCHEMA}'.", hint="plan again with this version.")
    try:
        return _decode(top).check("reading it from JSON")
    except (DeclarationError, PlanError) as error:
        raise CodecError(f"plan: {error.message}", hint=HINT) from error


def _decode(top: Fields) -> Plan:
    horizon = _decode_horizon(top)
    declaration = top.optional_text("declaration")
    return Plan(
        rollup=top.text("rollup"),
        declaration=None if declaration is None else Rollup.from_yaml(declaration, "declaration"),
        search=Search(
            semantics=top.choice("semantics", Sharing),
            cost_model=top.choice("cost_model", Pricing),
            algorithm=top.choice("algorithm", Algorithm),
            tiers_allowed=top.choice("tiers_allowed", TiersAllowed),
        ),
        steps=tuple(_decode_step(tier, horizon) for tier in top.list_of_fields("tiers")),
        totals=_decode_totals(top.fields("cost")),
        horizon=horizon,
        measured=_decode_measured(top.optional_fields("measured")),
        notes=tuple(top.texts("notes")),
    )


def _decode_horizon(top: Fields) -> Horizon:
    return Horizon(*_decode_span(top, "horizon"))


def _decode_span(fields: Fields, name: str) -> Interval:
    match [parse_instant(text) for text in fields.texts(name)]:
        case [start, end] if start < end:
            return Interval(start, end)
        case _:
            raise fields.refusal(name, "a list of two instants, the earlier one first")


def _decode_measured(fields: Fields | None) -> Measured | None:
    if fields is None:
        return None
    return Measured(
        rows=fields.integer("rows"),
        span=_decode_span(fields, "range"),
        estimates=Estimates(
            rows_per_day=fields.optional_integer("rows_per_day"),
            distinct_keys=fields.optional_integer("distinct_keys"),
            distinct_values=fields.optional_integer("distinct_values"),
        ),
        slices=tuple(
            Slice(each.integer("seconds"), each.real("rows"), each.real("keys"))
            for each in fields.list_of_fields("slices")
        ),
        sample=fields.integer("sample"),
        bytes=fields.optional_integer("bytes"),
        version=fields.optional_integer("version"),
    )


def _decode_totals(cost: Fields) -> Totals:
    return Totals(
        total=cost.number("total"),
        unshared=cost.number("unshared"),
        paper_1=cost.number("paper_1"),
        paper_3=cost.number("paper_3"),
        lower_bound=cost.number("lower_bound"),
        is_proven_optimal=cost.truth("proven_optimal"),
        period_s=cost.integer("period_s"),
        unit=cost.text("unit"),
    )


def _decode_step(fields: Fields, horizon: Horizon) -> Step:
    second = fields.optional_fields("runner_up")
    return Step(
        tier=_decode_tier(fields, horizon),
        reads=fields.optional_text("reads"),
        how=fields.choice("how", How),
        final=None if fields.optional_text("final") is None else fields.choice("final", Technique),
        cost=Cost(
            total=fields.number("cost"),
            rows_written=fields.optional_float("rows"),
            rows_read=fields.optional_float("rows_read"),
            bytes_written=fields.optional_float("bytes"),
        ),
        runner_up=None if second is None else Alternative(second.optional_text("reads"), second.number("cost")),
        why=fields.text("why"),
    )


def _decode_tier(fields: Fields, horizon: Horizon) -> Tier:
    """The tier of a window or of edges; what is said of it beside them must be true of it."""
    tier = _new_tier(fields, horizon)
    for name, value in {**_encode_edges(tier), "keeps_values": tier.keeps_values}.items():
        fields.expect(name, value)
    return tier


def _new_tier(fields: Fields, horizon: Horizon) -> Tier:
    name, kind = fields.text("name"), fields.choice("kind", Kind)
    match kind:
        case Kind.DECLARED:
            text = fields.text("window")
            return declared_tier(name, text, parse_window(text), horizon)
        case Kind.FACTOR:
            window = parse_window(fields.text("window"))
            if not isinstance(window, FixedWindow):
                raise fields.refusal("window", "the window of a factor tier, which has a fixed length")
            return factor_tier(name, window, keeps_values=fields.truth("keeps_values"))
        case Kind.COMPOSITE:
            edges = EdgeSet(tuple(fields.pairs("edges")))
            return composite_tier(name, edges, keeps_values=fields.truth("keeps_values"))
        case _:
            assert_never(kind)
