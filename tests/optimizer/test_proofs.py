"""What a plan claims to be proven: no helper that anybody adds may beat it, whatever the windows, keys and prices."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.batch_cost import BatchModel
from stairwise.candidates import composite
from stairwise.composite import union
from stairwise.cost import CostModel, PaperModel
from stairwise.graph import build, coarsest_class
from stairwise.options import TiersAllowed
from stairwise.planner import Problem, as_in_paper, best
from stairwise.search import improve
from stairwise.tiers import Horizon, Kind, Tier, declared_tier, factor_tier
from stairwise.window import FixedWindow, Window
from stairwise.window_text import parse_window

CALENDARS = (
    "day in Europe/Paris", "week in Europe/Paris", "month in Europe/Paris", "28 days every 7 days in Europe/Paris",
    "day in Asia/Kolkata", "week in Asia/Kathmandu", "month in UTC", "day offset 30m in Asia/Beirut",
)  # fmt: skip
SIZES = (600, 900, 1_200, 1_800, 3_600, 5_400, 7_200, 10_800, 14_400, 21_600, 43_200, 86_400)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    if draw(st.integers(0, 3)) == 0:
        return parse_window(draw(st.sampled_from(CALENDARS)))
    slide = draw(st.sampled_from(SIZES))
    length = slide * draw(st.sampled_from((1, 1, 1, 2, 3, 5))) + draw(st.sampled_from((0, 0, 0, 0, 300, 600)))
    return FixedWindow(length, slide, draw(st.sampled_from((0, 0, 0, 300, 900, 1_800))) % slide)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    chosen = sorted(draw(st.sets(windows(), min_size=1, max_size=6)), key=str)
    declared = tuple(declared_tier(str(window), str(window), window, Horizon()) for window in chosen)
    sharing = draw(st.sampled_from(Sharing))
    model: CostModel = PaperModel.of(declared, eta=1)
    if draw(st.booleans()):
        values = draw(st.sampled_from((None, 2.0, 50.0)))
        model = BatchModel(
            rows_per_s=draw(st.sampled_from((0.1, 50.0, 1e4, 1e6))),
            keys=draw(st.sampled_from((1, 100, 1e5, 1e7))),
            values=values if sharing is Sharing.HOLISTIC else None,
            row_bytes=draw(st.sampled_from((30, 90, 900))),
            is_invertible=draw(st.booleans()),
            is_holistic=sharing is Sharing.HOLISTIC,
            makes_passes=draw(st.booleans()),
            commit_s=draw(st.sampled_from((0.0, 0.02, 0.13))),
        )
    return Problem(declared=declared, sharing=sharing, model=model, eta=1, steps=20_000)


@st.composite
def helpers(draw: st.DrawFn, asked: Problem, allowed: TiersAllowed) -> list[Tier]:
    """A few helpers that fit: parts of what is declared, with any origins, hopping or not, and unions of these."""
    keeps_values = asked.sharing is Sharing.HOLISTIC and asked.model.counts_values
    places = sorted({coarsest_class(tier) for tier in asked.declared})
    found: list[Tier] = []
    for number in range(draw(st.integers(1, 5))):
        modulus, residue = draw(st.sampled_from(places))
        other, _ = draw(st.sampled_from(places))
        width = draw(st.sampled_from((modulus, gcd(modulus, other)))) // draw(st.sampled_from((1, 1, 2, 3)))
        slide = max(1, width)
        length = slide * draw(st.sampled_from((1, 1, 2, 3, 4)))
        lengths = [tier.range_s or length for tier in asked.declared]
        length = min(max(slide, draw(st.sampled_from((length, length, *lengths)))), asked.model.period_s)
        found.append(factor_tier(f"h{number}", FixedWindow(length, slide, residue % slide), keeps_values=keeps_values))
    if allowed is TiersAllowed.COMPOSITE:
        sets = sorted({tier.needs for tier in (*asked.declared, *found)}, key=lambda edges: edges.classes)
        unions = draw(st.lists(st.lists(st.sampled_from(sets), min_size=1, max_size=4), max_size=4))
        found += [composite(union(chosen), keeps_values=keeps_values) for chosen in unions]
    return found


def without_repeats(tiers: Iterable[Tier]) -> list[Tier]:
    kept = {(tier.kind is Kind.COMPOSITE, tier.window, tier.needs, tier.keeps_values): tier for tier in tiers}
    return list(kept.values())


@settings(max_examples=150)
@given(st.data(), problems(), st.sampled_from((TiersAllowed.FACTOR, TiersAllowed.COMPOSITE)))
def test_no_helper_beats_a_bound(data: st.DataObject, asked: Problem, allowed: TiersAllowed) -> None:
    found = best(asked, allowed, as_in_paper(asked, has_factors=True))
    assert found.lower_bound <= found.solution.cost * (1 + 1e-9)
    extra = data.draw(helpers(asked, allowed))
    graph = build(without_repeats([*extra, *found.graph.tiers]), asked.sharing, asked.model)
    optional = [node for node, tier in enumerate(graph.tiers, 1) if tier.kind is not Kind.DECLARED]
    theirs = [node for node in optional if graph.tiers[node - 1] in extra]
    cost = min(improve(graph.network, start).cost for start in ((), optional, theirs))
    assert found.lower_bound <= cost * (1 + 1e-9)
    assert not found.is_proven or found.solution.cost <= cost * (1 + 1e-9)
