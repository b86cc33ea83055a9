from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise import optimize
from stairwise.aggregate import Sharing
from stairwise.explain import WIDTH, explain
from stairwise.final_aggregation import Technique
from stairwise.network import Number
from stairwise.options import Algorithm, TiersAllowed
from stairwise.plan import Alternative, Plan
from stairwise.quantity import beside, counted, length_of_time, quantity, share, size
from stairwise.rollup import Rollup, Source
from stairwise.tiers import How, Tier
from stairwise.window import Unit
from stairwise.wording import Prices, bound, columns, label, shortened, technique, way
from tests.optimizer import plans_by_hand
from tests.optimizer.plans_by_hand import (
    DAY,
    PLANS_WITH_ANY_NAMES,
    fixed,
    helper,
    local,
    mixed,
    planned,
    read,
)

EXAMPLE_7 = """\
example 7: 3 windows and 1 helper tier for 142 reads
Sharing tiers makes it 2.5 times cheaper: each window from the raw rows would take 360 reads.
Proven optimal.

  no sharing   360 reads  ████████████████████████  2.5 x     each window from the raw rows
  paper-1      246 reads  ████████████████▍         +73 %     'Factor Windows' without helpers
  paper-3      150 reads  ██████████                +5.6 %    'Factor Windows' with its helpers
  this plan    142 reads  █████████▌
  lower bound  142 reads  █████████▌                the same  no plan costs less

                           how                      reads  share
raw rows
└─ slices (helper, mixed)  scans raw rows             120   85 %
   │  Cuts time every 20s and 30s. It cuts time where 20s and 30s do; both are put together from its
   │  slices.
   ├─ 20s                  merges about 1.3 slices      8    6 %
   │  │  Next best: from raw rows, 15 x.
   │  └─ 40s               merges 2 slices              6    4 %
   │        Next best: from slices, +33 %.
   └─ 30s                  merges about 2.0 slices      8    6 %
         Next best: from raw rows, 15 x.
────────────────────────────────────────────────────────────────
total                                                 142

In words
  cost         rows and partial results read for 120 seconds of events; in the model of the papers
               writing is free.
  paper-1, -3  plans by the published method 'Factor Windows', without and with its helper windows.
  helper       a tier that nobody asked for: what others save by reading it is more than it costs.
  mixed        its slices differ in length, for it cuts time wherever one of its readers does.
  slice        the partial results of one piece of time; merged, they give what the raw rows would.
  next best    what else the tier could be computed from, and what it would cost from there.
  one pass     20s, 30s and 40s are made by one query, which passes over the rows of slices once.
  aggregates   disjoint: each event has to count once, so only results without common events merge.
  planner      planned with --algorithm best --tiers composite --cost-model paper.
"""

TRIPS = """\
trips: 8 windows and 1 helper tier for 433 s
Sharing tiers makes it 3.1 times cheaper: each window from the raw rows would take 1,350 s.
Not proven optimal: no plan costs less than 431 s, 0.4 % below this one.

  no sharing   1,350 s  ████████████████████████  3.1 x   each window from the raw rows
  paper-1        493 s  ████████▊                 +14 %   'Factor Windows' without helpers
  paper-3        467 s  ████████▎                 +8.0 %  'Factor Windows' with its helpers
  this plan      433 s  ███████▊
  lower bound    431 s  ███████▋                  -0.4 %  no plan costs less

                                            how                        rows     size  seconds  share
raw rows
└─ 5m                                       scans raw rows            105 M  8.41 GB      199   46 %
   └─ 15m (helper)                          merges 3 slices          35.0 M  2.80 GB     62.6   14 %
      │  Three windows read it, and it has a third of the rows of 5m. Next best: from raw rows,
      │  +31 %.
      ├─ 1h every 15m                       merges 4 slices          35.0 M  2.80 GB     55.5   13 %
      │     Its windows overlap (method: two stacks). Next best: from 5m, +31 %.
"""

UNSHARED = """\
trips: 2 windows for 154 reads
No tier is shared: computing each window from the raw rows is cheapest.
Proven optimal.

          how             reads  share
raw rows
├─ 7s     scans raw rows     77   50 %
└─ 11s    scans raw rows     77   50 %
      Next best: from 7s, +17 %.
──────────────────────────────────────
total                       154

In words
  cost         rows and partial results read for 77 seconds of events; in the model of the papers
               writing is free.
  next best    what else the tier could be computed from, and what it would cost from there.
  aggregates   disjoint: each event has to count once, so only results without common events merge.
  planner      planned with --algorithm best --tiers composite --cost-model paper.
"""

UNSHARED_PLAN = plans_by_hand.unshared()
COMPOSITE = TiersAllowed.COMPOSITE
TEN, TWENTY = fixed("10s", 10), fixed("20s", 20)


def two(first: Number, second: Number, unshared: Number | None = None) -> Plan:
    return planned(read(TEN, cost=first), read(TWENTY, TEN, cost=second), unshared=unshared)


def test_a_pass_that_makes_many_tiers_names_some() -> None:
    plan = planned(read(TEN), *(read(fixed(f"{length}s", length), TEN) for length in range(20, 140, 10)))
    assert (
        "  one pass     20s, 30s, 40s, 50s, 60s, 70s, 80s, 90s, 100s and 3 more are made by one query, which\n"
        "               passes over the rows of 10s once.\n"
    ) in explain(plan)


def test_a_plan_explains_itself() -> None:
    assert explain(plans_by_hand.example_7()) == EXAMPLE_7


def test_rows_and_sizes_stand_beside_the_costs_where_they_are_known() -> None:
    text = explain(plans_by_hand.trips())
    assert text.startswith(TRIPS)
    assert text.endswith(
        "Assumed\n"
        "  · 3,000,000 rows a day and 500 distinct keys were assumed; say what you know with --rows-per-day.\n"
        "  · Paris is at least 15 minutes round for every instant between 1970 and 2100.\n"
    )


def test_a_plan_without_sharing_says_so() -> None:
    assert explain(plans_by_hand.unshared()) == UNSHARED


def test_the_source_has_its_name() -> None:
    rollup = Rollup(
        name="trips", source=Source(table="lake.trips", time="at"), keys=("zone",), aggregates={"trips": "count()"},
        windows=("5m", "1h"), target="lake/trips",
    )  # fmt: skip
    assert "raw rows of lake.trips\n└─ 5m" in explain(optimize(rollup))


@pytest.mark.parametrize(
    "plan",
    [
        plans_by_hand.alone(), plans_by_hand.unshared(), plans_by_hand.example_7(), plans_by_hand.trips(),
        plans_by_hand.chain(38),
    ],
)  # fmt: skip
def test_the_plans_of_these_tests_are_legal(plan: Plan) -> None:
    assert plan.check("making it by hand") is plan


@settings(max_examples=50)
@given(PLANS_WITH_ANY_NAMES, st.booleans())
def test_no_line_is_too_long_and_no_name_breaks_one(plan: Plan, is_colored: bool) -> None:  # noqa: FBT001
    plain = explain(plan)
    assert max(map(columns, plain.split("\n"))) <= WIDTH
    assert all(char.isprintable() or char == "\n" for char in plain)
    text = explain(plan, is_colored=is_colored)
    assert [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", text).split("\n")] == plain.split("\n")
    assert ("\x1b" in text) == is_colored


@settings(max_examples=50)
@given(PLANS_WITH_ANY_NAMES)
def test_every_tier_has_one_line(plan: Plan) -> None:
    lines = explain(plan).split("\n")
    branches = [line for line in lines if re.match(r"[│ ]*[├└]─ ", line)]
    assert len(branches) == len(plan.steps)


def test_deep_trees_go_on_below_and_long_periods_are_averaged() -> None:
    text = explain(plans_by_hand.chain(38))
    assert [line for line in text.split("\n") if "continued" in line] == [
        "256s (continued)", "131072s (continued)", "67108864s (continued)", "34359738368s (continued)",
    ]  # fmt: skip
    assert text.startswith("trips: 38 windows for 259,200 reads/day\n")
    assert "Its readers stand further below." in text
    assert max(map(len, text.split("\n"))) <= WIDTH


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (plans_by_hand.alone(), "There is one window, and it is computed from the raw rows: nothing to share."),
        (plans_by_hand.unshared(), "No tier is shared: computing each window from the raw rows is cheapest."),
        (
            replace(UNSHARED_PLAN, search=replace(UNSHARED_PLAN.search, algorithm=Algorithm.UNSHARED)),
            "No tier is shared, as was asked: each window is computed from the raw rows.",
        ),
        (
            two(120, 12, unshared=240),
            "Sharing tiers saves 45 %: each window from the raw rows would take 240 reads.",
        ),
        (
            two(120_000, 12, unshared=120_022),
            "Sharing tiers saves < 0.1 %: each window from the raw rows would take 120,022 reads.",
        ),
        (
            two(120, 12, unshared=132),
            "Windows share tiers, but save nothing by it: each window from the raw rows would take 132 reads.",
        ),
        (two(0, 0, unshared=1), "Sharing tiers makes it free: each window from the raw rows would take 1 read."),
        (two(0, 0), "Windows share tiers, but save nothing by it: each window from the raw rows would take 0 reads."),
        (
            two(2, 2, unshared=4 * 10**60),
            "Sharing tiers makes it 1.00e60 times cheaper: each window from the raw rows would take 4.00e60 reads.",
        ),
    ],
)
def test_what_sharing_brings(plan: Plan, sentence: str) -> None:
    text = explain(plan)
    assert " ".join(text.split("\n\n")[0].split("\n")[1:-1]) == sentence


def bounded(total: Number, lower_bound: Number, *, is_proven: bool = False, allowed: TiersAllowed = COMPOSITE) -> Plan:
    plan = planned(read(TEN, cost=total), lower_bound=lower_bound)
    search, totals = plan.search, plan.totals
    return replace(
        plan, search=replace(search, tiers_allowed=allowed), totals=replace(totals, is_proven_optimal=is_proven)
    )


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (bounded(150, 150, is_proven=True), "Proven optimal."),
        (bounded(150.0, 149.999_999_999_9, is_proven=True), "Proven optimal."),
        (bounded(150, 150), "Proven optimal."),
        (bounded(0, 0), "Proven optimal."),
        (bounded(150, 150, is_proven=True, allowed=TiersAllowed.FACTOR), "Proven optimal over the allowed tiers."),
        (bounded(1004, 1000), "Not proven optimal: no plan costs less than 1,000 reads, 0.4 % below this one."),
        (bounded(100_001, 10**5), "Not proven optimal: no plan costs less than 100,000 reads, < 0.1 % below this one."),
        (bounded(300, 200), "Not proven optimal: no plan costs less than 200 reads, 33 % below this one."),
        (
            bounded(300, 200, allowed=TiersAllowed.FACTOR),
            "Not proven optimal: no plan over the allowed tiers costs less than 200 reads, 33 % below this one.",
        ),
    ],
)
def test_how_good_the_plan_is(plan: Plan, sentence: str) -> None:
    assert bound(plan, Prices.of(plan)) == sentence


@pytest.mark.parametrize(("allowed", "words"), [(TiersAllowed.NONE, " over the allowed tiers"), (COMPOSITE, "")])
def test_the_bound_holds_for_the_allowed_tiers(allowed: TiersAllowed, words: str) -> None:
    plan = bounded(20_000_000, 13_000_000, allowed=allowed)
    text = explain(plan)
    assert f" -35 %     no plan{words} costs less\n" in text
    assert f": no plan{words} costs less than 13.0 M reads, 35 % below this one." in " ".join(text.split())
    assert max(map(len, text.split("\n"))) <= WIDTH


def test_the_helpers_of_the_paper_need_not_pay() -> None:
    plan = plans_by_hand.example_7()
    paper = replace(plan, search=replace(plan.search, algorithm=Algorithm.PAPER_3))
    assert (
        "  helper       a tier that nobody asked for; paper-3 adds it by the paper's rule, and it may cost\n"
        "               more than it saves.\n"
    ) in explain(paper)


def test_colours_begin_and_end_at_letters() -> None:
    text = explain(plans_by_hand.trips(), is_colored=True)
    assert not re.search(r"\x1b\[[1-9]\d*m(\x1b| )| \x1b\[0m| $", text, re.MULTILINE)
    assert "\x1b[1mtrips: 8 windows and 1 helper tier for 433 s\x1b[0m\n" in text


DAY_IN_PARIS = local("day in Europe/Paris", Unit.DAY)


@pytest.mark.parametrize(
    ("child", "parent", "how", "words"),
    [
        (TEN, None, How.RAW, "scans raw rows"),
        (TWENTY, TEN, How.RAW, "scans raw rows"),
        (TWENTY, TEN, How.DISJOINT, "merges 2 slices"),
        (DAY_IN_PARIS, fixed("1h", 3_600), How.DISJOINT, "merges about 24 slices"),
        (local("week in Europe/Paris", Unit.DAY, 7, anchor=4), DAY_IN_PARIS, How.DISJOINT, "merges 7 slices"),
        (local("month in Europe/Paris", Unit.MONTH), DAY_IN_PARIS, How.DISJOINT, "merges about 30 slices"),
        (mixed("cut", (20, 0), (30, 0)), TEN, How.DISJOINT, "merges about 1.5 slices"),
        (fixed("40s every 20s", 40, 20), fixed("20s every 10s", 20, 10), How.OVERLAPPING, "merges overlapping windows"),
        (TWENTY, TEN, How.VALUES, "adds up values of 2 slices"),
        (fixed("1h", 60, 60), fixed("1h", 60, 10), How.EQUAL_RANGE, "keeps every 6th window"),
        (fixed("1h", 60, 60), fixed("1h", 60, 30), How.EQUAL_RANGE, "keeps every 2nd window"),
        (fixed("1h", 60, 60), fixed("1h", 60, 20), How.EQUAL_RANGE, "keeps every 3rd window"),
        (local("m", Unit.MONTH), DAY_IN_PARIS, How.EQUAL_RANGE, "keeps some of its windows"),
    ],
)
def test_how_a_tier_is_computed(child: Tier, parent: Tier | None, how: How, words: str) -> None:
    assert way(child, parent, how) == words


def test_each_word_that_is_used_is_explained() -> None:
    overlapping = read(fixed("40s every 20s", 40, 20), TEN, how=How.OVERLAPPING)
    values = replace(helper("1m", 60), keeps_values=True)
    steps = (
        read(TEN), overlapping, read(values, TEN, how=How.VALUES),
        replace(read(fixed("2m", 120), values, how=How.EQUAL_RANGE), final=Technique.DIRECT),
    )  # fmt: skip
    text = explain(planned(*steps))
    assert "Keeps each value with its count." in text
    assert [line.split("  ")[1] for line in text.split("In words\n")[1].split("\n") if line[2:3].strip()] == [
        "cost", "helper", "overlapping", "values", "keeps", "two stacks", "direct", "aggregates", "planner",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("semantics", "meaning"),
    [
        (Sharing.DISJOINT, "disjoint: each event has to count once, so only results without common events merge."),
        (Sharing.OVERLAPPING, "overlapping: an event that counts twice does no harm, as in a minimum."),
        (
            Sharing.HOLISTIC,
            "holistic: an exact result such as a median needs all values, and not the results of parts.",
        ),
    ],
)
def test_what_the_aggregates_allow_is_explained(semantics: Sharing, meaning: str) -> None:
    plan = plans_by_hand.alone()
    text = explain(replace(plan, search=replace(plan.search, semantics=semantics)))
    assert f"  aggregates   {meaning}" in " ".join(text.split("In words")[1].split("\n               "))


def test_a_name_that_is_cut_stands_below_in_full() -> None:
    parent, child = fixed(" ".join(["first"] * 20), 10), fixed(" ".join(["second"] * 20), 20)
    words = " ".join(explain(planned(read(parent), read(child, parent))).replace("│", " ").split())
    assert words.count("…") == 2
    assert f"In full: {label(parent)}." in words
    assert f"In full: {label(child)}." in words
    assert "In full" not in explain(plans_by_hand.example_7())


def test_a_rejected_parent_has_its_whole_name() -> None:
    name = "7 days every day in America/Argentina/Buenos_Aires"
    text = explain(planned(read(TEN), read(TWENTY, TEN, second=Alternative(name, 20))))
    assert f"Next best: from {name}, " in " ".join(text.split())


def test_prices_that_differ_by_their_rounding_are_not_compared() -> None:
    plan = planned(read(TEN, cost=0.3), unshared=0.1 + 0.2)
    assert "no sharing" not in explain(plan)


@pytest.mark.parametrize("final", Technique)
def test_every_technique_has_a_name_and_a_sentence(final: Technique) -> None:
    name, meaning = technique(final)
    assert len(name) <= 12
    assert meaning.endswith(".")


@pytest.mark.parametrize(
    ("tier", "text"),
    [
        (fixed("1h every 15m", 3_600, 900), "1h every 15m"),
        (fixed("week from sunday", 7 * DAY, name="us_week"), "us_week: week from sunday"),
        (helper("10s_tier", 10), "10s"),
        (mixed("cut_1d2e", (20, 0)), "cut_1d2e"),
        (replace(helper("15m_values", 900), keeps_values=True), "15m values"),
    ],
)
def test_what_a_tier_is_called(tier: Tier, text: str) -> None:
    assert label(tier) == text


def test_a_rejected_parent_need_not_be_in_the_plan() -> None:
    plan = planned(read(TEN, second=Alternative("5s\x1b", 2)))
    assert "Next best: from 5s�, 2.0 x." in explain(plan)


@pytest.mark.parametrize(
    ("text", "room", "short"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghij", 6, "abc…ij"),
        ("日本語の名前です", 9, "日本…です"),
        ("ab", 1, "…"),
    ],
)
def test_long_names_lose_their_middle(text: str, room: int, short: str) -> None:
    assert shortened(text, room) == short
    assert columns(shortened(text, room)) <= room


def test_combining_characters_take_no_room() -> None:
    assert columns("e\u0301") == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999_999, "999,999"), (999_999.7, "1.00 M"), (0.9996, "1.00"), (99.95, "100"), (12_345.6, "12,346"),
        (10**9, "1.00 bn"), (123_400_000, "123 M"), (5 * 10**13, "50.0 tn"), (10**15, "1.00e15"), (0.001, "0.00100"),
        (0.000_999_9, "0.00100"), (-999_999.7, "-1.00 M"), (-3, "-3"), (0.0, "0"),
        (Fraction(-1, 3), "-0.333"), (Fraction(10**400, 3), "3.33e399"), (Fraction(1, 10**400), "1.00e-400"),
    ],
)  # fmt: skip
def test_numbers_are_short(number: Number, text: str) -> None:
    assert quantity(number) == text


@given(st.integers(min_value=1, max_value=10**80), st.integers(min_value=1, max_value=10**80))
def test_no_number_is_long(numerator: int, denominator: int) -> None:
    assert len(quantity(Fraction(numerator, denominator))) <= 9


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (99_960, "100 kB"), (5e21, "5,000 EB")]
)
def test_sizes_are_short(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("cost", "base", "text"),
    [
        (0, 0, "the same"), (2, 0, "more"), (199, 100, "+99 %"), (200, 100, "2.0 x"), (1_234, 100, "12 x"),
        (1_004, 1_000, "+0.4 %"), (100_001, 100_000, "< 0.1 % more"), (9_999.9, 10_000, "< 0.1 % less"),
        (0.1 + 0.2, 0.3, "the same"), (-1, 0, "less"), (-1, -2, "more"), (-3, 2, "-250 %"), (1.0996, 1, "+10 %"),
        (10**70, 1, "1.00e70 x"), (0, 5, "-100 %"),
    ],
)  # fmt: skip
def test_prices_beside_each_other(cost: Number, base: Number, text: str) -> None:
    assert beside(cost, base) == text


def test_shares_and_spans() -> None:
    assert (share(1, 3), share(0, 3), share(1, 10**40)) == ("33 %", "0 %", "< 1 %")
    assert (share(-1, 3), share(10**9, 1)) == ("-33 %", "100 bn %")
    assert (length_of_time(0), length_of_time(90), length_of_time(DAY)) == ("0 seconds", "90 seconds", "1 day")
    assert (length_of_time(-2 * DAY), length_of_time(-1)) == ("-2 days", "-1 seconds")
    assert counted(2, "tier") == "2 tiers"
