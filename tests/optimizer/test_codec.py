"""Plans and errors as JSON: the shape that others read, the way back, and what is refused on it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import optimize
from stairwise.codec import decode_plan, encode_error, encode_plan, to_json
from stairwise.errors import CodecError, DeclarationProblems, NotYetError, Problem, UsageError
from stairwise.final_aggregation import Technique
from stairwise.json_fields import Json
from stairwise.options import Options, Pricing, TiersAllowed
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import Estimates, Rollup
from stairwise.tiers import How, Kind
from stairwise.window import FixedWindow
from stairwise.workload import Workload
from tests.optimizer.workloads import options, rollup, rollups

HINT = "Hint: use a file that stairwise plan --out has written."
PAPER = Options(pricing=Pricing.PAPER, tiers=TiersAllowed.FACTOR)
Document = dict[str, Json]


def planned(windows: str, aggregate: str = "sum", how: Options | None = None, values: int | None = None) -> Plan:
    workload = Workload.of_windows(windows.split(","), aggregate, Estimates(distinct_values=values))
    return plan_workload(workload, how or Options())


def read(text: str) -> Document:
    document: Document = json.loads(text)
    return document


def an_object(value: Json) -> Document:
    assert isinstance(value, dict)
    return value


def a_list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def tiers(plan: Plan) -> list[Document]:
    """The tiers as others read them."""
    return [an_object(tier) for tier in a_list(read(to_json(encode_plan(plan)))["tiers"])]


# ---- the shape


def test_a_plan_has_the_fields_of_the_public_interface() -> None:
    plan = planned("20s,30s,40s", how=PAPER)
    why = plan.step("20s").why
    document = read(to_json(encode_plan(plan, seconds=0.004)))
    assert document["passes"] == [{"reads": "10s", "tiers": ["20s", "30s", "40s"]}]
    assert {name: value for name, value in document.items() if name != "passes"} == {
        "schema": "stairwise.plan/1",
        "rollup": "windows",
        "semantics": "disjoint",
        "cost_model": "paper",
        "algorithm": "best",
        "tiers_allowed": "factor",
        "tiers": [
            {
                "name": "10s",
                "kind": "factor",
                "window": "10s",
                "range_s": 10,
                "slide_s": 10,
                "edges": [[10, 0]],
                "keeps_values": False,
                "reads": None,
                "how": "from raw rows",
                "final": None,
                "cost": 120,
                "rows": None,
                "rows_read": None,
                "bytes": None,
                "runner_up": None,
                "why": plan.steps[0].why,
            },
            reader("20s", 20, reads="10s", cost=12, second={"reads": None, "cost": 120}, why=why),
            reader("30s", 30, reads="10s", cost=12, second={"reads": None, "cost": 120}, why=why),
            reader("40s", 40, reads="20s", cost=6, second={"reads": "10s", "cost": 12}, why=why),
        ],
        "cost": {
            "total": 150,
            "unshared": 360,
            "paper_1": 246,
            "paper_3": 150,
            "lower_bound": 150,
            "gap": 0.0,
            "proven_optimal": True,
            "period_s": 120,
            "unit": "reads",
        },
        "horizon": ["1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
        "measured": None,
        "notes": [],
        "declaration": None,
        "seconds": 0.004,
    }


def reader(name: str, seconds: int, *, reads: str, cost: int, second: Json, why: str) -> Json:
    return {
        "name": name,
        "kind": "declared",
        "window": name,
        "range_s": seconds,
        "slide_s": seconds,
        "edges": [[seconds, 0]],
        "keeps_values": False,
        "reads": reads,
        "how": "merge disjoint",
        "final": None,
        "cost": cost,
        "rows": None,
        "rows_read": None,
        "bytes": None,
        "runner_up": second,
        "why": why,
    }


def test_a_composite_tier_has_edges_and_no_range() -> None:
    plan = planned("20s,30s,40s", how=Options(pricing=Pricing.PAPER))
    assert (plan.totals.total, plan.steps[0].tier.kind.value) == (142, "composite")
    first = tiers(plan)[0]
    assert {name: first[name] for name in ("kind", "window", "range_s", "slide_s", "edges", "reads")} == {
        "kind": "composite",
        "window": None,
        "range_s": None,
        "slide_s": None,
        "edges": [[20, 0], [30, 0]],
        "reads": None,
    }


@pytest.mark.parametrize(
    ("window", "calendar"),
    [
        (
            "day in Europe/Paris",
            {
                "range": {"unit": "day", "count": 1},
                "step": {"unit": "day", "count": 1, "anchor": 0},
                "zone": "Europe/Paris",
                "offset_s": 0,
            },
        ),
        (
            "28 days every week from sunday offset 6h",
            {
                "range": {"unit": "day", "count": 28},
                "step": {"unit": "day", "count": 7, "anchor": 3},
                "zone": "UTC",
                "offset_s": 21_600,
            },
        ),
        (
            "year from april to date every 1h",
            {
                "period": {
                    "range": {"unit": "month", "count": 12},
                    "step": {"unit": "month", "count": 12, "anchor": 3},
                    "zone": "UTC",
                    "offset_s": 0,
                },
                "step": {"range_s": 3_600, "slide_s": 3_600, "origin_s": 0},
            },
        ),
    ],
)
def test_a_calendar_tier_has_its_calendar_in_place_of_seconds(window: str, calendar: Json) -> None:
    document = tiers(planned(window))[-1]
    assert document["calendar"] == calendar
    assert document["window"] == window
    assert not {"range_s", "slide_s", "edges"} & set(document)


@pytest.mark.parametrize(
    ("cost", "written"),
    [
        (150, "150"),
        (0.25, "0.25"),
        (Fraction(300, 2), "150"),
        (Fraction(813, 80), '"813/80"'),
        (10**4_000, "1" + "0" * 4_000),
        (10**5_000, '"1' + "0" * 5_000 + '/1"'),
    ],
    ids=["integer", "float", "whole fraction", "fraction", "large integer", "integer beyond JSON readers"],
)
def test_numbers_are_numbers_and_exact(cost: float | Fraction, written: str) -> None:
    plan = with_costs(planned("5m"), cost)
    text = to_json(encode_plan(plan))
    assert f'"unshared": {written}, ' in text
    assert decode_plan(text) == plan


def with_costs(plan: Plan, cost: float | Fraction) -> Plan:
    """The plan of one tier at another price, over a period that is as long."""
    totals = replace(
        plan.totals, total=cost, unshared=cost, paper_1=cost, paper_3=cost, lower_bound=cost, period_s=int(cost) or 1
    )
    step = replace(plan.steps[0], cost=replace(plan.steps[0].cost, total=cost))
    return replace(plan, steps=(step,), totals=totals)


# ---- the way back


@settings(max_examples=25)
@given(rollups(), options())
def test_a_plan_that_is_read_back_equals_the_one_written(rollup: Rollup, how: Options) -> None:
    plan = optimize(rollup, how)
    text = to_json(encode_plan(plan, seconds=0.1))
    again = decode_plan(text)
    assert again == plan
    assert to_json(encode_plan(again, seconds=0.1)) == text
    assert "\n" not in text


def test_a_tier_that_keeps_values_is_read_back() -> None:
    plan = planned("1h every 15m,2h every 15m,1d", "median", values=20)
    assert any(step.tier.keeps_values for step in plan.steps)
    assert decode_plan(to_json(encode_plan(plan))) == plan


# ---- what is refused

SHARED = encode_plan(planned("20s,30s,40s", how=PAPER), seconds=0.1)
MIXED = encode_plan(planned("20s,30s,40s", how=Options(pricing=Pricing.PAPER)))
LOCAL = encode_plan(planned("day in Europe/Paris"))
CLASSES = "a list of [modulus, residue] in seconds, each residue below its modulus"
SPAN = "a list of two instants, the earlier one first"
PARIS = (
    '{"range": {"unit": "day", "count": 1}, "step": {"unit": "day", "count": 1, "anchor": 0}, '
    '"zone": "Europe/Paris", "offset_s": 0}'
)


NO_MAPPING = "declaration:1:1: the file is a list, where a mapping is wanted."


def changed(document: Json, path: str, value: Json) -> Json:
    """The document with another value at a path such as ``tiers[0].name``."""
    key, _, rest = path.replace("[", ".").replace("]", "").partition(".")
    if isinstance(document, list):
        items = a_list(document)
        place = int(key)
        return [*items[:place], changed(items[place], rest, value) if rest else value, *items[place + 1 :]]
    fields = an_object(document)
    return {**fields, key: changed(fields[key], rest, value) if rest else value}


@pytest.mark.parametrize(
    ("document", "path", "value", "wanted"),
    [
        (SHARED, "schema", None, "a text"),
        (SHARED, "rollup", 7, "a text"),
        (SHARED, "tiers", {}, "a list"),
        (SHARED, "tiers[0]", 7, "an object"),
        (SHARED, "cost", [], "an object"),
        (SHARED, "notes", ["", 7], "a list of texts"),
        (SHARED, "semantics", "sum", "one of 'overlapping', 'disjoint', 'holistic'"),
        (SHARED, "horizon", ["1970-01-01"], SPAN),
        (SHARED, "horizon", ["2100-01-01", "1970-01-01"], SPAN),
        (SHARED, "declaration", {}, "a text"),
        (SHARED, "cost.total", "150", "a number"),
        (SHARED, "cost.total", "3/0", "a number"),
        (SHARED, "cost.total", True, "a number"),
        (SHARED, "cost.total", float("inf"), "a number"),
        (SHARED, "cost.proven_optimal", 1, "true or false"),
        (SHARED, "cost.period_s", 1.5, "a whole number"),
        (SHARED, "cost.period_s", "3/2", "a whole number"),
        (SHARED, "tiers[0].name", None, "a text"),
        (SHARED, "tiers[0].kind", "helper", "one of 'declared', 'factor', 'composite'"),
        (SHARED, "tiers[0].window", "day", "the window of a factor tier, which has a fixed length"),
        (SHARED, "tiers[0].range_s", 20, "10"),
        (SHARED, "tiers[0].slide_s", None, "10"),
        (SHARED, "tiers[0].edges", [[20, 0]], "[[10, 0]]"),
        (SHARED, "tiers[0].keeps_values", None, "true or false"),
        (SHARED, "tiers[1].keeps_values", True, "false"),
        (SHARED, "tiers[0].how", "", f"one of {', '.join(repr(how.value) for how in How)}"),
        (SHARED, "tiers[0].final", "sorted", f"one of {', '.join(repr(one.value) for one in Technique)}"),
        (SHARED, "tiers[0].rows", "many", "a number"),
        (SHARED, "tiers[0].rows", 10**400, "a number of at most 2e+308"),
        (SHARED, "tiers[0].runner_up", 7, "an object"),
        (SHARED, "tiers[3].runner_up.cost", None, "a number"),
        (MIXED, "tiers[0].edges", 7, "a list"),
        (MIXED, "tiers[0].edges", [[0, 0]], CLASSES),
        (MIXED, "tiers[0].edges", [[20]], CLASSES),
        (MIXED, "tiers[0].edges", [[20, 20]], CLASSES),
        (MIXED, "tiers[0].edges", [[20, 0], [40, 0]], "[[20, 0]]"),
        (MIXED, "tiers[0].range_s", 10, "null"),
        (LOCAL, "tiers[0].calendar", None, PARIS),
    ],
)
def test_a_field_that_is_wrong_is_refused(document: Document, path: str, value: Json, wanted: str) -> None:
    with pytest.raises(CodecError) as raised:
        decode_plan(json.dumps(changed(document, path, value)))
    assert str(raised.value) == f"plan: '{path}' is not {wanted}. {HINT}"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "horizon",
            ["1970-01-01", "soon"],
            "plan: instant 'soon': it is neither a date nor a date with a time in whole seconds and a zone.",
        ),
        (
            "declaration",
            "[]",
            f"plan: {NO_MAPPING}",
        ),
        ("tiers[0].window", "10x", "plan: duration '10x': 'x' is not a unit (the units are w, d, h, m and s)."),
        ("cost.total", 151, "plan: after reading it from JSON: the steps cost 150, the plan says 151."),
        (
            "tiers[0].reads",
            "5s",
            "plan: after reading it from JSON: tier '10s' reads '5s', which is not computed before it.",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused(path: str, value: Json, message: str) -> None:
    with pytest.raises(CodecError) as raised:
        decode_plan(json.dumps(changed(SHARED, path, value)))
    assert str(raised.value) == f"{message} {HINT}"


@pytest.mark.parametrize("path", ["schema", "rollup", "tiers", "cost", "horizon", "notes", "semantics", "algorithm"])
def test_a_field_that_is_missing_is_refused(path: str) -> None:
    with pytest.raises(CodecError, match=f"^plan: '{path}' is missing[.] Hint: "):
        decode_plan(json.dumps({name: value for name, value in SHARED.items() if name != path}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "plan: not a JSON document (Expecting value: line 1 column 1 (char 0))."),
        ('{"schema"}', "plan: not a JSON document (Expecting ':' delimiter: line 1 column 10 (char 9))."),
        ("[]", "plan: not a JSON object."),
        ("null", "plan: not a JSON object."),
        ('"plan"', "plan: not a JSON object."),
    ],
)
def test_what_is_no_object_is_refused(text: str, message: str) -> None:
    with pytest.raises(CodecError) as raised:
        decode_plan(text)
    assert str(raised.value) == f"{message} {HINT}"


def test_a_document_of_another_version_is_refused() -> None:
    with pytest.raises(CodecError) as raised:
        decode_plan(to_json({**SHARED, "schema": "stairwise.run/1"}))
    text = "plan: the schema is 'stairwise.run/1', not 'stairwise.plan/1'. Hint: plan again with this version."
    assert str(raised.value) == text


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5_000], ids=["deep", "long"])
def test_a_hostile_document_is_refused(text: str) -> None:
    with pytest.raises(CodecError, match=r"plan: not a JSON document \("):
        decode_plan(text)


@settings(max_examples=100)
@given(st.data())
def test_another_value_in_a_field_is_read_or_refused(data: st.DataObject) -> None:
    """Never another error than ours, whatever stands where."""
    document = data.draw(st.sampled_from((SHARED, MIXED, LOCAL)))
    prefix = data.draw(st.sampled_from(("", "tiers[0].", "cost.")))
    places = {"": document, "tiers[0].": an_object(a_list(document["tiers"])[0]), "cost.": an_object(document["cost"])}
    name = data.draw(st.sampled_from(sorted(places[prefix])))
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    value = data.draw(scalars | st.lists(scalars) | st.dictionaries(st.text(), scalars))
    try:
        plan = decode_plan(json.dumps(changed(document, prefix + name, value)))
    except CodecError:
        return
    assert decode_plan(to_json(encode_plan(plan))) == plan


# ---- errors


def test_an_error_has_the_fields_of_the_public_interface() -> None:
    error = NotYetError("window '1000 rows': not yet.", hint="take 5m.", rows=1_000)
    assert encode_error(error) == {
        "schema": "stairwise.error/1",
        "kind": "not_yet",
        "message": "window '1000 rows': not yet.",
        "hint": "take 5m.",
        "data": {"rows": 1_000},
    }
    assert encode_error(UsageError("no."))["hint"] == ""


def test_the_problems_of_a_file_are_listed() -> None:
    first, second = NotYetError("a.", hint="do a.", rows=1), UsageError("b.")
    problems = DeclarationProblems("trips.yaml", (Problem(2, 3, first), Problem(0, 0, second)))
    assert str(problems) == "trips.yaml:2:3: a. Hint: do a.\ntrips.yaml: b."
    assert encode_error(problems) == {
        "schema": "stairwise.error/1",
        "kind": "declaration",
        "message": "trips.yaml:2:3: a.\ntrips.yaml: b.",
        "hint": "correct each of the 2 problems.",
        "data": {
            "file": "trips.yaml",
            "problems": [
                {"line": 2, "column": 3, "kind": "not_yet", "message": "a.", "hint": "do a."},
                {"line": None, "column": None, "kind": "usage", "message": "b.", "hint": ""},
            ],
        },
    }


def test_the_hint_of_the_only_problem_is_that_of_the_file() -> None:
    problems = DeclarationProblems("trips.yaml", (Problem(2, 3, NotYetError("a.", hint="do a.")),))
    document = encode_error(problems)
    assert (document["message"], document["hint"]) == ("trips.yaml:2:3: a.", "do a.")


def test_a_union_that_keeps_values_is_read_back() -> None:
    asked = rollup([FixedWindow(93_338, 12_768)], ("count()", "median(fare)"))
    asked = replace(asked, estimates=replace(asked.estimates, rows_per_day=10_000_000))
    plan = plan_workload(Workload.of(asked), Options(steps=0))
    assert any(step.tier.kind is Kind.COMPOSITE and step.tier.keeps_values for step in plan.steps)
    assert decode_plan(to_json(encode_plan(plan))) == plan
