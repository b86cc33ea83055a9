"""What is due, against a look at each window by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise import Rollup, Source, optimize
from stairwise.edges import EdgeSet
from stairwise.plan import Plan
from stairwise.rollup import Estimates
from stairwise.windowing import Interval, windows_at, windows_ending
from stairwise_spark.additions import Additions, Touch
from stairwise_spark.changes import Changes, Way
from stairwise_spark.compute import all_touched, events, held, touched
from stairwise_spark.coverage import Coverage, State
from stairwise_spark.due import Findings, Question, available, bare, find
from stairwise_spark.lost import whole
from stairwise_spark.spans import Spans, common, hull, is_met, joined, merged, without

HOUR, DAY = 3_600, 86_400
SPRING = 1_711_756_800  # 2024-03-30T00:00Z, the day before Paris loses an hour
SPANS = st.lists(
    st.tuples(st.integers(-30, 30), st.integers(0, 12)).map(lambda each: Interval(each[0], sum(each))), max_size=6
)


def points(spans: Sequence[Interval]) -> set[int]:
    return {point for span in spans for point in range(*span)}


@given(SPANS, SPANS)
def test_ranges_are_sets_of_instants(some: list[Interval], others: list[Interval]) -> None:
    one, other = joined(some), joined(others)
    assert points(one) == points(some)
    assert points(common(one, other)) == points(one) & points(other)
    assert points(without(one, other)) == points(one) - points(other)
    for found in (one, common(one, other), without(one, other)):
        assert joined(found) == found
        assert all(start < end for start, end in found)
    assert {*some} == {each for each in some if is_met(each, one) or each.start == each.end}
    for each in one:
        assert is_met(each, other) == bool(common((each,), other))
    assert hull(one) == (Interval(min(points(one)), max(points(one)) + 1) if one else Interval(0, 0))


@given(SPANS, st.integers(1, 4))
def test_fewer_ranges_hold_the_same(some: list[Interval], most: int) -> None:
    found = merged(joined(some), most)
    assert len(found) <= most
    assert points(found) >= points(some)
    assert hull(found) == hull(joined(some))


def planned(*windows: str) -> Plan:
    rollup = Rollup(
        name="trips",
        source=Source(table="t", time="at"),
        keys=("k",),
        aggregates={"total": "sum(v)"},
        windows=windows,
        target="lake/trips",
        estimates=Estimates(rows_per_day=100_000_000, distinct_keys=10),
    )
    return optimize(rollup)


PLANS = {
    "composite": planned("20m", "30m", "2h every 30m", "day to date every 1h", "day in Europe/Paris"),
    "rolling": planned("1h", "3 days every day in Europe/Paris", "week in Asia/Kolkata"),
    "hopping": planned("50m every 20m offset 7m", "month to date every day in Europe/Paris", "7m"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(start=st.integers(-30 * HOUR, 60 * HOUR), length=st.integers(1, 20 * HOUR))
def test_touched_windows_are_those_that_share_an_instant(plan: Plan, start: int, length: int) -> None:
    span = Interval(SPRING + start, SPRING + start + length)
    for step in plan.steps:
        ends = touched(step.tier, span)
        if step.tier.window is None:
            edges = sorted(step.tier.needs.between(span.start - 2 * DAY, span.end + 2 * DAY))
            assert ends.start == max(edge for edge in edges if edge <= span.start)
            assert ends.end == min(edge for edge in edges if edge >= span.end)
            continue
        found = list(windows_ending(step.tier.window, *ends))
        assert {*found} == {each for at in (span.start, span.end - 1) for each in windows_at(step.tier.window, at)} | {
            each for each in windows_ending(step.tier.window, span.start, ends.end) if each.start < span.end
        }
        assert all(each.start < span.end and each.end > span.start for each in found)


@st.composite
def many_spans(draw: st.DrawFn) -> Spans:
    """Ranges around the hour that Paris loses, or before 1970, of minutes or of hours."""
    start, unit = draw(st.sampled_from((SPRING, -700 * DAY - 1))), draw(st.sampled_from((60, HOUR)))
    cells = draw(st.sets(st.integers(-60, 120)))
    return joined(Interval(start + cell * unit, start + (cell + 1) * unit) for cell in cells)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(spans=many_spans())
def test_of_many_ranges_all_is_known_that_is_of_each(plan: Plan, spans: Spans) -> None:
    for tier in (step.tier for step in plan.steps):
        ends = all_touched(tier, spans)
        assert ends == joined(touched(tier, each) for each in spans)
        for some in (ends, spans):
            assert events(tier, some) == joined(held(tier, each) for each in some)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(start=st.integers(-30 * HOUR, 60 * HOUR), length=st.integers(0, 20 * HOUR), origin=st.sampled_from((SPRING, 0)))
def test_what_windows_hold_goes_from_the_first_begin_to_the_last_end(
    plan: Plan, start: int, length: int, origin: int
) -> None:
    span = Interval(origin + start, origin + start + length)
    for step in plan.steps:
        if step.tier.window is not None:
            ending = list(windows_ending(step.tier.window, *span))
            whole = Interval(ending[0].start, ending[-1].end) if ending else Interval(span.start, span.start)
            assert held(step.tier, span) == whole


@given(SPANS, SPANS)
def test_rows_are_counted_that_came_to_some_ranges(came: list[Interval], asked: list[Interval]) -> None:
    touches = tuple(Touch(each, rows, is_corrected=False) for rows, each in enumerate(joined(came), 1))
    changes = Changes(spans=(), way=Way.LOG, why="said so")
    # Nobody reads the rows.
    added = Additions(asked=None, files=(), touches=touches, changes=changes)  # type: ignore[arg-type]
    assert added.count(joined(asked)) == sum(each.rows for each in touches if points([each.span]) & points(asked))


VERSION = 5
HOURS = st.integers(0, 48)


@st.composite
def coverages(draw: st.DrawFn) -> Coverage:
    ranges = draw(st.lists(st.tuples(HOURS, HOURS, st.integers(-1, 6)), max_size=4))
    return Coverage.over((SPRING + min(a, b) * HOUR, SPRING + max(a, b) * HOUR, each) for a, b, each in ranges)


@given(st.data())
def test_a_window_is_due_if_it_is_missing_or_a_change_since_touches_it(data: st.DataObject) -> None:
    plan = PLANS["rolling"]
    states = {step.tier.name: State(3, data.draw(coverages())) for step in plan.steps}
    asked = Interval(SPRING + data.draw(HOURS) * HOUR, SPRING + 48 * HOUR)
    changed = {
        version: joined(
            Interval(SPRING + hour * HOUR, SPRING + (hour + 1) * HOUR) for hour in data.draw(st.sets(HOURS, max_size=3))
        )
        for version in range(VERSION)
    }
    compared: list[int] = []
    questions: list[Mapping[int, Spans]] = []

    def changes_of(slices: EdgeSet, within: Mapping[int, Spans]) -> Mapping[int, Changes]:
        assert slices.contains(SPRING)
        questions.append(within)
        compared.extend(within)
        return {
            since: Changes(spans=common(changed[since], spans), way=Way.LOG, why="said so", late_rows=1)
            for since, spans in within.items()
        }

    question = Question(plan=plan, span=asked, wanted=tuple(states), version=VERSION)
    found = find(question, states, changes_of)
    assert len({*compared}) == len(compared)
    assert sum(map(bool, questions)) <= 1
    assert found.late_rows == len(compared)
    for step in plan.steps:
        name, window = step.tier.name, step.tier.window
        if window is None:
            continue
        known = states[name].coverage
        for each in windows_ending(window, *asked):
            point = Interval(each.end - 1, each.end)
            at = known.within(point).stretches
            version = at[0].version if at else -1
            is_changed = version in changed and bool(common(changed[version], (each,)))
            is_due = bool(common(found.due[name], (point,)))
            assert is_due == (version < 0 or (version < VERSION and is_changed)), (name, each)
            is_there = bool(common(available(found.states[name].coverage, VERSION), (point,)))
            assert is_there == (not is_due and version <= VERSION)


def test_what_comes_too_late_is_counted_and_not_followed() -> None:
    plan = PLANS["rolling"]
    known = Coverage.of(Interval(SPRING, SPRING + 48 * HOUR), 1)
    states = {step.tier.name: State(1, known) for step in plan.steps}
    asked: list[Spans] = []

    def changes_of(_: EdgeSet, within: Mapping[int, Spans]) -> Mapping[int, Changes]:
        asked.extend(within.values())
        return {
            since: Changes(spans=spans[:1], way=Way.LOG, why="said so", late_rows=2) for since, spans in within.items()
        }

    span = Interval(SPRING, SPRING + 48 * HOUR)
    bound = SPRING + 40 * HOUR
    question = Question(
        plan=plan, span=span, wanted=("1h",), version=2, followed_from=lambda reached: reached - 8 * HOUR
    )
    found = find(question, states, changes_of)
    late, followed = asked
    assert late[-1].end == followed[0].start == bound
    assert found.due["1h"] == (Interval(bound, span.end),)
    assert (found.late_rows, found.ignored_rows) == (4, 2)


def test_a_run_that_died_half_way_does_not_make_rows_too_late() -> None:
    plan = PLANS["rolling"]
    whole = Interval(SPRING - 30 * DAY, SPRING + 30 * DAY)
    states = {step.tier.name: State(1, Coverage.of(whole, 1)) for step in plan.steps}
    # One tier went on by twenty days before the run died; the others are as they were.
    states["1h"] = State(2, Coverage.of(Interval(whole.start, whole.end + 20 * DAY), 2))
    changed = Interval(whole.end - 5 * DAY, whole.end - 5 * DAY + HOUR)

    def changes_of(_: EdgeSet, within: Mapping[int, Spans]) -> Mapping[int, Changes]:
        return {
            since: Changes(spans=common((changed,), spans), way=Way.LOG, why="said so", late_rows=1)
            for since, spans in within.items()
        }

    name = "week_in_asia_kolkata"
    question = Question(
        plan=plan, span=whole, wanted=(name,), version=2, followed_from=lambda reached: reached - 7 * DAY
    )
    found = find(question, states, changes_of)
    assert len(found.due[name]) == 1
    assert found.ignored_rows == 1


def with_late_rows(*touches: Touch, wanted: Sequence[str] = ()) -> Findings:
    """What is due if rows came to a source that has dropped all before spring, and tables that hold all."""
    plan, span = PLANS["rolling"], Interval(SPRING - 30 * DAY, SPRING + 10 * DAY)
    states = {step.tier.name: State(1, Coverage.of(span, 1)) for step in plan.steps}
    changes = Changes(
        spans=joined(each.span for each in touches),
        way=Way.LOG,
        why="said so",
        late_rows=sum(each.rows for each in touches),
    )
    # Nobody reads the rows.
    added = Additions(asked=None, files=(), touches=touches, changes=changes)  # type: ignore[arg-type]
    question = Question(
        plan=plan,
        span=span,
        wanted=tuple(wanted) or tuple(states),
        version=2,
        kept_since=SPRING - 10,
        additions_of=lambda _, __, ___, ____: added,
    )
    nothing = Changes(spans=(), way=Way.LOG, why="nothing", late_rows=0)
    return find(question, states, lambda _, within: dict.fromkeys(within, nothing))


def test_late_rows_are_merged_where_windows_cannot_be_made_again_and_others_are_made_of_these() -> None:
    late = Interval(SPRING - 5 * DAY, SPRING - 5 * DAY + HOUR)
    found = with_late_rows(Touch(late, 2, is_corrected=False))
    roots = {step.tier.name: step.tier for step in PLANS["rolling"].steps if step.reads is None}
    assert found.mends == {name: {1: (touched(tier, late),)} for name, tier in roots.items()}
    coarser = {step.tier.name: step.tier for step in PLANS["rolling"].steps if step.tier.name not in roots}
    assert coarser
    for name, tier in coarser.items():
        assert late in common((late,), events(tier, found.due[name]))
    assert not any(found.lost.values())
    assert (found.late_rows, found.repaired_rows, found.unrepairable_rows) == (2, 2, 0)
    assert found.is_anything_due
    assert all(not found.states[name].coverage.is_covered(whole(found.mends[name])[0], 2) for name in roots)


def test_windows_whose_parts_are_not_wanted_are_mended_by_themselves() -> None:
    late = Interval(SPRING - 5 * DAY, SPRING - 5 * DAY + HOUR)
    name = "week_in_asia_kolkata"
    found = with_late_rows(Touch(late, 2, is_corrected=False), wanted=[name])
    assert list(found.mends) == [name]
    assert events(PLANS["rolling"].step(name).tier, whole(found.mends[name]))[0].start <= late.start
    assert not found.due[name]


def test_what_was_corrected_stays_as_it_is_and_is_up_to_date() -> None:
    late, corrected = (Interval(SPRING - days * DAY, SPRING - days * DAY + HOUR) for days in (5, 20))
    found = with_late_rows(Touch(corrected, 3, is_corrected=True), Touch(late, 2, is_corrected=False))
    assert (found.repaired_rows, found.unrepairable_rows) == (2, 3)
    for step in PLANS["rolling"].steps:
        name = step.tier.name
        assert touched(step.tier, corrected) in found.lost[name]
        assert found.states[name].coverage.is_covered(touched(step.tier, corrected), 2)
        assert not common(found.due[name], found.lost[name])


def test_before_the_first_event_there_is_nothing_to_compute() -> None:
    (tier,) = (step.tier for step in PLANS["rolling"].steps if step.tier.name == "1h")
    events = (Interval(SPRING + 90 * 60, SPRING + 5 * HOUR),)
    whole = Interval(SPRING - 100 * DAY, SPRING + 100 * DAY)
    assert without((whole,), bare(Coverage(), tier, events)) == (Interval(SPRING + HOUR, SPRING + 5 * HOUR),)
    claimed = Coverage.of(Interval(SPRING - HOUR, SPRING), 1)
    assert Interval(SPRING - HOUR, SPRING) in without((whole,), bare(claimed, tier, events))
    parts = (Interval(SPRING, SPRING + 1), Interval(SPRING + 150 * 60, SPRING + 151 * 60))
    hours = (Interval(SPRING, SPRING + HOUR), Interval(SPRING + 2 * HOUR, SPRING + 3 * HOUR))
    assert without((whole,), bare(Coverage(), tier, parts)) == hours
    assert bare(Coverage(), tier, None) == ()
    assert without((whole,), bare(Coverage(), tier, ())) == ()
