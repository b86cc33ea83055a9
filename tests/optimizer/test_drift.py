"""Drift: what was predicted beside what was counted, and whether another hierarchy has become cheaper."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import optimize
from stairwise.aggregate import Aggregate
from stairwise.cli import main
from stairwise.codec import decode_plan, encode_plan, to_json
from stairwise.drift import Counted, Part, drifted, encode_drift, explain_drift
from stairwise.errors import UsageError
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import Estimates, Rollup, Source
from stairwise.tiers import DAY
from stairwise.windowing import Interval
from stairwise.workload import Workload
from tests.optimizer.workloads import options, rollups

SPAN = Interval(1_704_067_200, 1_704_067_200 + 10 * DAY)  # ten days from 2024-01-01
WINDOWS = ("20m", "30m", "40m", "45m")
SKETCH = (("middle", Aggregate.parse("quantile(fare, 0.5)")),)
KNOWN = Estimates(rows_per_day=1_000_000, distinct_keys=100)


def declared(*windows: str, estimates: Estimates = KNOWN, keys: tuple[str, ...] = ("zone_id",)) -> Rollup:
    return Rollup(
        name="trips",
        source=Source(table="lake.trips", time="pickup_at"),
        keys=keys,
        aggregates={"fares": "sum(fare)"},
        windows=windows,
        target="lake/rollups/trips",
        estimates=estimates,
    )


def as_predicted(plan: Plan, times: float = 1) -> dict[str, float]:
    """Rows of each tier in the span, so many times what the plan says."""
    rows = {step.tier.name: step.cost.rows_written for step in plan.steps}
    return {
        name: times * 10 * DAY * number / plan.totals.period_s for name, number in rows.items() if number is not None
    }


def parents(plan: Plan) -> dict[str, str | None]:
    return {step.tier.name: step.reads for step in plan.steps}


def test_what_comes_as_predicted_changes_nothing() -> None:
    plan = optimize(declared(*WINDOWS))
    drift = drifted(plan, Counted(span=SPAN, tiers=as_predicted(plan), events=10_000_000, keys=100))
    assert [part.tier for part in drift.parts] == [None, *parents(plan)]
    assert not drift.is_off
    assert all(part.factor == pytest.approx(1) for part in drift.parts)
    assert drift.running == pytest.approx(plan.totals.total)
    assert parents(drift.now.plan) == parents(drift.best) == parents(plan)
    assert (drift.saving, drift.pays) == (0, False)


def test_a_tier_is_off_by_more_than_the_tolerance_either_way() -> None:
    plan = optimize(declared("5m", "1h"))
    rows = as_predicted(plan)
    counted = Counted(span=SPAN, tiers={"5m": rows["5m"] * 1.19, "1h": rows["1h"] / 1.21})
    drift = drifted(plan, counted)
    assert [(part.tier, part.is_off) for part in drift.parts] == [("5m", False), ("1h", True)]
    assert drift.is_off
    patient = drifted(plan, counted, tolerance=Fraction(1, 2))
    assert not patient.is_off


def test_a_key_for_nearly_every_event_makes_another_hierarchy_cheaper() -> None:
    few = Estimates(rows_per_day=10_000_000, distinct_keys=10)
    plan = optimize(replace(declared("1m", "5m", estimates=few), aggregates=SKETCH))
    assert parents(plan) == {"1m": None, "5m": "1m"}
    many = Counted(span=SPAN, tiers={"1m": 99_990, "5m": 99_980}, events=100_000, keys=99_000)
    drift = drifted(plan, many)
    assert all(part.is_off for part in drift.parts)
    assert drift.saving > 0
    assert drift.pays
    assert parents(drift.now.plan) == {"1m": None, "5m": None}
    assert drift.now.plan.totals.total < Fraction(drift.running)
    assert explain_drift(drift).startswith(
        "trips: counted from 2024-01-01T00:00:00Z to 2024-01-11T00:00:00Z\n\nrows a day"
    )
    assert "\nTo go on with: one of " in explain_drift(drift)


def test_where_filling_does_not_pay_the_running_hierarchy_stays() -> None:
    windows = ("20m", "30m", "35m", "45m", "50m", "55m")
    plan = optimize(declared(*windows), Options(tiers=TiersAllowed.NONE))
    more = Counted(span=SPAN, tiers={}, events=500_000_000, keys=500)
    drift = drifted(plan, more, horizon_periods=1, held_s=365 * DAY)
    assert drift.saving > 0.2
    assert not drift.pays
    assert drift.now.proposes_rebuild
    assert drift.best == drift.now.fresh
    assert explain_drift(drift).endswith(" does not pay within 1 period.\n")
    assert "To go on with" not in explain_drift(drift)


def test_the_text() -> None:
    plan = optimize(declared("5m", "1h"))
    rows = as_predicted(plan)
    drift = drifted(plan, Counted(span=SPAN, tiers={"5m": rows["5m"], "1h": 0.5 * rows["1h"]}, events=20_000_000))
    assert explain_drift(drift) == (
        "trips: counted from 2024-01-01T00:00:00Z to 2024-01-11T00:00:00Z\n"
        "\n"
        "rows a day  predicted  counted\n"
        "raw rows       1.00 M   2.00 M  2.0 x\n"
        "5m             28,800   28,800  as predicted\n"
        "1h              2,400    1,200  -50 %\n"
        "\n"
        "By what was counted the running hierarchy costs 3,222 s, and none is known that costs less.\n"
    )


def test_the_document() -> None:
    plan = optimize(declared("5m", "1h"))
    drift = drifted(plan, Counted(span=SPAN, tiers={"1h": 12_000}, events=0))
    document = json.loads(to_json(encode_drift(drift)))
    assert document == {
        "schema": "stairwise.drift/1",
        "rollup": "trips",
        "range": ["2024-01-01T00:00:00Z", "2024-01-11T00:00:00Z"],
        "rows_per_day": [
            {"tier": None, "predicted": 1_000_000, "counted": 0, "factor": 0, "is_off": True},
            {
                "tier": "1h",
                "predicted": pytest.approx(2_400),
                "counted": 1_200,
                "factor": pytest.approx(0.5),
                "is_off": True,
            },
        ],
        "is_off": True,
        "cost": {
            "running": float(drift.running),
            "now": float(drift.now.plan.totals.total),
            "best": float(drift.best.totals.total),
            "saving": 0,
            "fill": 0,
            "period_s": plan.totals.period_s,
            "unit": "s",
        },
        "pays": False,
        "tiers": [{"name": "5m", "reads": None}, {"name": "1h", "reads": "5m"}],
        "why": drift.now.why,
    }


def test_what_was_not_predicted_has_no_factor() -> None:
    assert Part("5m", 0, 3, is_off=True).factor is None


def test_what_was_measured_or_assumed_is_what_was_predicted() -> None:
    assumed = optimize(declared("5m", estimates=Estimates()))
    assert drifted(assumed, Counted(span=SPAN, tiers={}, events=10)).parts[0].predicted == 10_000_000
    measured = drifted(assumed, Counted(span=SPAN, tiers={}, events=70)).now.plan
    again = drifted(measured, Counted(span=SPAN, tiers={}, events=70))
    assert again.parts == (Part(None, 7, 7, is_off=False),)
    assert again.running == measured.totals.total


def test_keys_are_at_least_as_many_as_one_window_shows() -> None:
    plan = optimize(declared("5m", "1h"))

    def keys(counted: Counted) -> int | None:
        measured = drifted(plan, counted).now.plan.measured
        assert measured is not None
        return measured.estimates.distinct_keys

    assert keys(Counted(span=SPAN, tiers={}, events=10_000_000)) == 100
    assert keys(Counted(span=SPAN, tiers={"1h": 240 * 130.5}, events=10_000_000)) == 131
    assert keys(Counted(span=SPAN, tiers={"1h": 240 * 130.5}, events=10_000_000, keys=90)) == 131
    assert keys(Counted(span=SPAN, tiers={"1h": 240 * 130.5}, events=10_000_000, keys=400)) == 400
    plan = optimize(declared("5m", "1h", estimates=Estimates(), keys=()))
    assert keys(Counted(span=SPAN, tiers={}, events=10_000_000)) is None


@pytest.mark.parametrize(
    ("counted", "text"),
    [
        (
            {"span": Interval(5, 5), "tiers": {}},
            "what was counted: its span ends before it begins. Hint: count at least one window.",
        ),
        ({"tiers": {"5m": -1}}, "what was counted: -1 for '5m'. Hint: a count is 0 or more."),
        ({"tiers": {}, "events": float("nan")}, "what was counted: nan for 'raw rows'. Hint: a count is 0 or more."),
        ({"tiers": {}, "keys": -7}, "what was counted: -7 for 'keys'. Hint: a count is 0 or more."),
    ],
)
def test_counts_of_nothing_are_refused(counted: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as error:
        Counted(**{"span": SPAN, **counted})  # type: ignore[arg-type]
    assert str(error.value) == text


def test_what_cannot_drift_is_refused() -> None:
    asked = declared("5m")
    counted = Counted(span=SPAN, tiers={})
    typed = plan_workload(Workload.of_windows(["5m"], "sum", Estimates()), Options())
    no_rows = "the cost model of the papers counts no rows, so nothing can be off. Hint: plan with --cost-model batch."
    for plan, how, text in (
        (typed, Options(), "plan 'windows' is for no declaration, so no run has filled its tiers. Hint: plan a FILE."),
        (optimize(asked), Options(pricing=Pricing.PAPER), no_rows),
        (optimize(asked, Options(pricing=Pricing.PAPER)), Options(), no_rows),
        (
            optimize(asked),
            Options(algorithm=Algorithm.PAPER_3),
            "paper-3 plans from no statistics. Hint: leave --algorithm out.",
        ),
    ):
        with pytest.raises(UsageError) as error:
            drifted(plan, counted, how)
        assert str(error.value) == text
    with pytest.raises(UsageError) as error:
        drifted(optimize(asked), Counted(span=SPAN, tiers={"1h": 3}))
    assert (
        str(error.value)
        == "plan 'trips': there is no tier '1h' in it, but it was counted. Hint: count the tables of this plan."
    )


@settings(max_examples=40)
@given(
    rollups(),
    options(algorithm=Algorithm.BEST).map(lambda how: replace(how, pricing=Pricing.BATCH)),
    st.floats(0.01, 100),
    st.floats(0.01, 100),
)
def test_drift_is_told_of_any_plan(asked: Rollup, how: Options, events: float, times: float) -> None:
    plan = optimize(asked, how)
    drift = drifted(plan, Counted(span=SPAN, tiers=as_predicted(plan, times), events=10_000_000 * events), how)
    going_on = drift.now.plan.check("the test")
    assert decode_plan(to_json(encode_plan(going_on))) == going_on
    assert 0 <= drift.saving < 1
    assert Fraction(drift.best.totals.total) <= Fraction(drift.running) * (1 + Fraction(1, 10**9))
    assert drift.now.plan.totals.total <= drift.running * (1 + 1e-9)
    for part in drift.parts[1:]:
        assert part.counted == pytest.approx(part.predicted * times)
        assert part.is_off == (not 1 / 1.2 < times < 1.2) or times == pytest.approx(1.2)
    assert to_json(encode_drift(drift))
    assert explain_drift(drift).count("\n") == len(drift.parts) + 5 + (drift.saving > 0) + drift.pays


# ---- the way to the engine


def test_the_command_line_asks_the_engine_what_tables_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = optimize(declared(*WINDOWS))
    counted = Counted(span=SPAN, tiers=as_predicted(plan), events=10_000_000, keys=100)
    asked: list[object] = []

    def count(
        rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]
    ) -> tuple[Plan, Counted]:
        asked.append((rollup.name, master, remote, conf))
        return plan, counted

    def entry_points(group: str, name: str) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(load=lambda: count),) if (group, name) == ("stairwise.engine", "counted") else ()

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    file = tmp_path / "trips.yaml"
    file.write_text(declared(*WINDOWS).to_yaml(), encoding="utf-8")
    assert main(["plan", str(file), "--drift", "--remote", "sc://host"]) == 0
    assert capsys.readouterr().out == explain_drift(drifted(plan, counted))
    assert main(["plan", str(file), "--drift", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(to_json(encode_drift(drifted(plan, counted))))
    assert asked == [("trips", None, "sc://host", ()), ("trips", None, None, ())]
