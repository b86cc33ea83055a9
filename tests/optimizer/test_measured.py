"""What was measured: curves through counted keys, and how they come into plans, texts and documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.cli import main
from stairwise.codec import decode_plan, encode_plan, to_json
from stairwise.errors import CodecError, PlanError
from stairwise.explain import explain
from stairwise.measured import KeyCurve, Measured, Slice
from stairwise.options import Options
from stairwise.pipeline import plan_workload
from stairwise.rollup import Estimates, Rollup
from stairwise.windowing import Interval
from stairwise.workload import Workload
from tests.optimizer.test_workload import batch, declared

MEASURED = Measured(
    rows=864_000,
    span=Interval(0, 10 * 86_400),
    estimates=Estimates(rows_per_day=86_400, distinct_keys=1_000, distinct_values=7),
    slices=(Slice(60, 60.0, 20.0), Slice(3_600, 3_600.0, 100.0)),
    sample=864_000,
    bytes=5_000_000,
    version=3,
)
NOTES = (
    "measured: 864,000 rows from 1970-01-01T00:00:00Z to 1970-01-11T00:00:00Z, 86,400 a day, 5.00 MB, version 3",
    "measured: 1,000 distinct keys, on average 20 in 1m, 100 in 1h",
    "measured: 7 distinct values for each key",
    "measured: to keep it, declare estimates: {rows_per_day: 86400, distinct_keys: 1000, distinct_values: 7}",
)


# ---- curves


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ((), "key curve: it begins with one key in one event."),
        (((1.0, 1.0), (1.0, 1.0)), "key curve: 1.0 keys in 1.0 events after 1.0 in 1.0."),
        (((1.0, 1.0), (9.0, 0.5)), "key curve: 0.5 keys in 9.0 events after 1.0 in 1.0."),
        (((1.0, 1.0), (9.0, 9.1)), "key curve: 9.1 keys in 9.0 events after 1.0 in 1.0."),
    ],
)
def test_what_no_events_could_have_is_no_curve(points: tuple[tuple[float, float], ...], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        KeyCurve(points)
    assert str(caught.value) == text


@given(
    st.lists(st.tuples(st.floats(0, 1e15), st.floats(0, 1e15)), max_size=6),
    st.floats(0, 1e18),
    st.floats(1, 1e6),
)
def test_a_curve_grows_and_never_faster_than_the_events(
    points: list[tuple[float, float]], events: float, times: float
) -> None:
    """Whatever sketches say: finer tiers have no fewer rows, and more events no fewer keys."""
    curve = KeyCurve.of(points)
    few, more = curve.at(events), curve.at(events * times)
    assert few <= events * (1 + 1e-9)
    assert few * (1 - 1e-9) <= more <= few * times * (1 + 1e-9)


def test_a_curve_goes_through_what_was_measured() -> None:
    assert MEASURED.curve == KeyCurve(((1.0, 1.0), (60.0, 20.0), (3_600.0, 100.0), (864_000.0, 1_000.0)))
    assert replace(MEASURED, slices=()).curve is None
    assert replace(MEASURED, estimates=Estimates(rows_per_day=5)).curve is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: replace(MEASURED, sample=0), "measured: 0 of 864000 rows in 864000 s."),
        (lambda: replace(MEASURED, rows=5), "measured: 864000 of 5 rows in 864000 s."),
        (lambda: replace(MEASURED, span=Interval(5, 5)), "measured: 864000 of 864000 rows in 0 s."),
        (lambda: replace(MEASURED, slices=(Slice(0, 1, 1),)), "measured: 1 keys in 1 rows of 0 s."),
        (lambda: replace(MEASURED, slices=(Slice(1, 1, -1),)), "measured: -1 keys in 1 rows of 1 s."),
        (lambda: replace(MEASURED, slices=(Slice(1, -1, 1),)), "measured: 1 keys in -1 rows of 1 s."),
    ],
)
def test_what_cannot_have_been_measured_is_refused(make: Callable[[], Measured], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert str(caught.value) == text


# ---- into plans


def measured_workload(**overruled: int) -> Workload:
    known = Estimates(**overruled).over(MEASURED.estimates)
    return replace(declared("count_distinct(fare)"), estimates=known, measured=MEASURED)


def test_skewed_keys_make_fewer_rows_than_the_formula_says() -> None:
    workload = measured_workload()
    skewed, even = batch(workload), batch(replace(workload, measured=None))
    five_minutes = next(each for each in workload.problem(Options()).declared if each.name == "5m")
    assert even.rows_per_window(five_minutes) == pytest.approx(259, abs=1)
    assert skewed.rows_per_window(five_minutes) == pytest.approx(37.7, abs=0.1)


def test_what_is_said_of_the_keys_wins() -> None:
    assert batch(measured_workload(distinct_keys=50)).curve is None
    overruled = batch(measured_workload(rows_per_day=172_800))
    assert (overruled.rows_per_s, overruled.curve) == (2, MEASURED.curve)


def test_notes_say_what_was_measured_and_nothing_is_assumed() -> None:
    workload = measured_workload()
    assert workload.assumptions(Options()) == NOTES
    sampled = replace(MEASURED, sample=4_000, bytes=None, version=None, estimates=Estimates(distinct_keys=5), slices=())
    assert sampled.notes() == (
        "measured: 864,000 rows from 1970-01-01T00:00:00Z to 1970-01-11T00:00:00Z",
        "measured: 5 distinct keys",
        "measured: keys and values are those of 4,000 rows, at several times",
        "measured: to keep it, declare estimates: {distinct_keys: 5}",
    )
    nothing_but_rows = replace(MEASURED, estimates=Estimates(rows_per_day=86_400), slices=())
    assert len(nothing_but_rows.notes()) == 2
    text = explain(plan_workload(workload, Options()))
    assert "\nMeasured and assumed\n" in text
    assert "· measured: 1,000 distinct keys, on average 20 in 1m, 100 in 1h." in text


def test_a_plan_keeps_what_was_measured() -> None:
    plan = plan_workload(measured_workload(), Options())
    document = encode_plan(plan)
    assert document["measured"] == {
        "rows": 864_000,
        "range": ["1970-01-01T00:00:00Z", "1970-01-11T00:00:00Z"],
        "rows_per_day": 86_400,
        "distinct_keys": 1_000,
        "distinct_values": 7,
        "slices": [{"seconds": 60, "rows": 60.0, "keys": 20.0}, {"seconds": 3_600, "rows": 3_600.0, "keys": 100.0}],
        "sample": 864_000,
        "bytes": 5_000_000,
        "version": 3,
    }
    assert decode_plan(to_json(document)) == plan


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("sample", 0, "plan: measured: 0 of 864000 rows in 864000 s."),
        ("rows", "many", "plan: 'measured.rows' is not a number."),
        ("range", ["1970-01-01"], "plan: 'measured.range' is not a list of two instants, the earlier one first."),
        ("distinct_keys", 0, "plan: distinct_keys is 0, below 1."),
        ("slices", [{"seconds": 1, "rows": 1, "keys": "1/0"}], "plan: 'measured.slices[0].keys' is not a number."),
    ],
)
def test_a_document_with_other_measures_is_refused(field: str, value: object, text: str) -> None:
    document = json.loads(to_json(encode_plan(plan_workload(measured_workload(), Options()))))
    document["measured"][field] = value
    with pytest.raises(CodecError) as caught:
        decode_plan(json.dumps(document))
    assert caught.value.message == text


# ---- the way to the engine


def test_the_command_line_asks_the_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    asked: list[object] = []

    def measure(
        rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]
    ) -> Measured:
        asked.append((rollup.name, master, remote, conf))
        return MEASURED

    def entry_points(group: str, name: str) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(load=lambda: measure),) if (group, name) == ("stairwise.engine", "measure") else ()

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    file = tmp_path_factory.mktemp("cli") / "trips.yaml"
    declaration = declared().declaration
    assert declaration is not None
    file.write_text(declaration.to_yaml(), encoding="utf-8")
    where = ["--master", "local[2]", "--spark-conf", "a.b=c"]
    assert main(["plan", str(file), "--measure", "--json", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == list(NOTES)
    assert asked == [("trips", "local[2]", None, (("a.b", "c"),))]
    assert main(["plan", str(file), "--measure", "--json", "--rows-per-day", "9"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"] != document["cost"]
