"""What becomes of tables when a declaration changes: by the two plans alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stairwise import Options, Rollup, Source, TiersAllowed, optimize
from stairwise.aggregate import Aggregate
from stairwise.errors import CodecError, PlanError, RollupError
from stairwise.evolution import (
    Action,
    Change,
    Evolution,
    Origin,
    Permission,
    by_itself,
    called,
    evolved,
    is_filled_alike,
    is_idle,
)
from stairwise.keeping import check_kept
from stairwise.meaning import Meaning
from stairwise.pipeline import plan_workload
from stairwise.plan import Plan
from stairwise.rollup import DeclaredWindow, Estimates, Layout
from stairwise.tiers import Kind
from stairwise.workload import Workload
from tests.changed import but

DENSE = Estimates(rows_per_day=1_000_000_000, distinct_keys=4)
TRIPS = Rollup(
    name="trips",
    source=Source(table="lake.trips", time="at"),
    keys=("zone", "kind"),
    aggregates={"trips": "count()", "revenue": "sum(fare)", "paid": "count(fare)"},
    windows=("10m", "1h", "day"),
    target="lake/rollups",
    estimates=DENSE,
)
SOURCE = TRIPS.source


def changes(old: Rollup, new: Rollup) -> dict[tuple[str, str | None], Change]:
    """By action, and by tier or column."""
    found = evolved(optimize(old), optimize(new))
    return {(each.action.value, each.column or each.tier): each for each in found.changes}


def test_nothing_changes_by_policies_orders_and_other_words() -> None:
    wanted = but(
        TRIPS,
        delay="1h",
        null_time="skip",
        keys=("kind", "zone"),
        source=but(SOURCE, retain="90 days"),
        windows=("1h", "10m", DeclaredWindow.parse("1d as day")),
    )
    assert is_filled_alike(TRIPS, wanted)
    assert set(changes(TRIPS, wanted)) == {("keep", "10m"), ("keep", "1h"), ("keep", "day")}
    assert not evolved(optimize(TRIPS), optimize(wanted)).is_anything


def test_from_nothing_everything_is_added() -> None:
    found = Evolution.first(optimize(TRIPS))
    assert {each.action for each in found.changes} == {Action.ADD}
    assert found.is_additive


def test_windows_and_columns_more_need_no_leave() -> None:
    wanted = but(
        TRIPS,
        windows=("10m", "1h", "day", "6h"),
        aggregates={
            "trips": "count()",
            "revenue": "sum(fare)",
            "paid": "count(fare)",
            "mean": "avg(fare)",
            "most": "max(tip)",
            "middle": "median(fare)",
        },
    )
    found = changes(TRIPS, wanted)
    assert found["fill", "mean"].origin is Origin.STATES
    assert found["fill", "most"].origin is None
    assert found["fill", "middle"].origin is None
    evolution = evolved(optimize(TRIPS), optimize(wanted))
    assert (evolution.is_anything, evolution.is_additive, evolution.needed) == (True, True, frozenset())
    assert len(evolution.of(Action.FILL)) == 3


def test_a_window_more_comes_from_a_finer_one() -> None:
    found = changes(TRIPS, but(TRIPS, windows=("10m", "1h", "day", "6h")))
    assert found["add", "6h"].origin == "1h"
    assert found["add", "6h"].is_additive


def test_what_goes_needs_leave() -> None:
    wanted = but(TRIPS, windows=("10m", "day"), aggregates={"trips": "count()", "revenue": "sum(tip)"})
    found = changes(TRIPS, wanted)
    assert found["drop", "1h"].needs is Permission.DROP
    assert found["drop", "paid"].needs is Permission.DROP
    assert found["fill", "revenue"].needs is Permission.REBUILD
    evolution = evolved(optimize(TRIPS), optimize(wanted))
    assert not evolution.is_additive
    assert evolution.needed == {Permission.DROP, Permission.REBUILD}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"source": but(SOURCE, table="lake.others")}, "source.table differs"),
        ({"source": but(SOURCE, zone="Asia/Tokyo", where="fare > 0")}, "source.zone and source.where differ"),
        ({"keys": ("zone",)}, "keys differs"),
        ({"layout": Layout.ONE_TABLE}, "layout differs"),
    ],
)
def test_rows_that_mean_something_else_are_made_anew(given: dict[str, object], why: str) -> None:
    wanted = but(TRIPS, **given)
    found = changes(TRIPS, wanted)
    assert {action for action, _ in found} == {"rebuild"}
    assert {each.why for each in found.values()} == {why}
    assert not is_filled_alike(TRIPS, wanted)


def test_another_name_for_a_window_is_no_other_window() -> None:
    wanted = but(TRIPS, windows=("10m", "day", DeclaredWindow.parse("60m", name="hourly")))
    found = changes(TRIPS, wanted)
    assert found["rename", "hourly"].origin == "1h"
    assert not evolved(optimize(TRIPS), optimize(wanted)).is_additive
    before = called(optimize(wanted), {"hourly": "1h"})
    assert [step.tier.name for step in before.steps] == ["10m", "1h", "day"]
    assert {step.reads for step in before.steps} <= {None, "10m", "1h"}
    assert before.check("renaming").declaration is not None


def test_another_window_under_a_name_is_made_anew() -> None:
    old, new = (but(TRIPS, windows=("10m", DeclaredWindow.parse(text, name="long"))) for text in ("6h", "8h"))
    assert changes(old, new)["rebuild", "long"].needs is Permission.REBUILD
    wanted, before = Meaning.of(new), Meaning.of(old)
    assert before.holds(wanted)
    assert before.holds(wanted, "10m")
    assert not before.holds(wanted, "long")


def _with_helpers(*windows: str) -> Plan:
    rollup = but(TRIPS, windows=windows)
    return optimize(rollup, Options(tiers=TiersAllowed.FACTOR))


def test_helpers_come_and_go_without_leave() -> None:
    with_helper, without = _with_helpers("20m", "30m"), _with_helpers("20m", "1h")
    (helper,) = [step.tier.name for step in with_helper.steps if step.tier.kind is Kind.FACTOR]
    gone = evolved(with_helper, without)
    dropped = [each for each in gone.of(Action.DROP) if each.tier == helper]
    assert [is_idle(each) for each in dropped] == [True]
    declared = evolved(with_helper, _with_helpers("20m", "30m", helper))
    (added,) = declared.of(Action.ADD)
    assert (added.tier, added.origin, added.why) == (helper, helper, "it was a helper")
    assert declared.is_additive


def _cut(*windows: str) -> Plan:
    """A plan of windows with a helper of slices, which has a name that others have too."""
    plan = optimize(but(TRIPS, windows=windows))
    (name,) = [step.tier.name for step in plan.steps if step.tier.kind is Kind.COMPOSITE]
    steps = [replace(step, reads="cut") if step.reads == name else step for step in plan.steps]
    renamed = (replace(step, tier=replace(step.tier, name="cut")) if step.tier.name == name else step for step in steps)
    return replace(plan, steps=tuple(renamed))


def test_a_helper_that_is_cut_otherwise_is_made_anew_without_leave() -> None:
    found = evolved(_cut("20m", "30m"), _cut("20m", "50m"))
    assert [(each.action, each.needs) for each in found.changes if each.tier == "cut"] == [(Action.REBUILD, None)]


def test_what_can_be_worked_out_of_states() -> None:
    assert by_itself(TRIPS, Aggregate.parse("avg(fare)"))
    assert not by_itself(TRIPS, Aggregate.parse("avg(tip)"))
    assert not by_itself(TRIPS, Aggregate.parse("median(fare)"))


def test_a_meaning_is_a_list_of_digests() -> None:
    named = but(TRIPS, windows=("10m", DeclaredWindow.parse("6h", name="long")))
    assert Meaning.decode(Meaning.of(named).encode()) == Meaning.of(named)
    more = but(TRIPS, aggregates={"trips": "count()"})
    assert Meaning.of(TRIPS).holds(Meaning.of(more))
    assert not Meaning.of(more).holds(Meaning.of(TRIPS))
    with pytest.raises(CodecError, match="it is not a list of digests"):
        Meaning.decode("abc:long")


def test_plans_without_a_declaration_have_no_tables() -> None:
    plan = plan_workload(Workload.of_windows(["10m"], "sum", Estimates()), Options())
    with pytest.raises(PlanError, match="it has no tables"):
        evolved(plan, plan)
    assert check_kept(plan) is plan


@pytest.mark.parametrize(
    ("retain", "source", "lateness", "needed"),
    [
        ("2 days", None, "7 days", None),
        ("2 days", "30 days", "7 days", None),
        ("2 days", "3 days", "7 days", "8d"),
        ("2 days", "3 days", "any", None),
        ("20 days", "3 days", "7 days", None),
        ("any", "3 days", "7 days", None),
    ],
)
def test_a_table_keeps_its_rows_as_long_as_a_coarser_one_needs_them(
    retain: str, source: str | None, lateness: str, needed: str | None
) -> None:
    """Which is no question where the source has them all the time."""
    rollup = but(
        TRIPS,
        source=but(SOURCE, retain=source),
        windows=("10m", DeclaredWindow.parse("1h", retain=retain), "day"),
        lateness=lateness,
    )
    if needed is None:
        assert optimize(rollup).step("day").reads == "1h"
    else:
        with pytest.raises(RollupError, match=f"day is made of it and needs it for {needed}"):
            optimize(rollup)


def test_slices_are_needed_too() -> None:
    rollup = but(
        TRIPS,
        source=but(SOURCE, retain="1 day"),
        windows=(DeclaredWindow.parse("1m", retain="1 day"), "20m", "30m", "50m"),
        lateness="2 days",
        estimates=Estimates(rows_per_day=100_000_000, distinct_keys=100_000),
    )
    with pytest.raises(RollupError, match="is made of it and needs it"):
        optimize(rollup)


def test_late_rows_that_change_nothing_need_nothing() -> None:
    rollup = but(
        TRIPS,
        source=but(SOURCE, retain="1 day"),
        windows=("10m", DeclaredWindow.parse("1h", retain="2 days"), "day"),
        late="ignore",
        lateness="7 days",
    )
    assert optimize(rollup).step("day").reads == "1h"
