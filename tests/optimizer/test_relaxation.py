"""The bound for tiers that no network holds: what its short cut finds, against a look at every pair."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stairwise.aggregate import Sharing
from stairwise.edges import EdgeSet
from stairwise.graph import build
from stairwise.options import Options, Pricing
from stairwise.pipeline import plan_workload
from stairwise.relaxation import in_groups, least_union, least_with_anything, least_with_others, least_with_slices
from stairwise.rollup import Estimates
from stairwise.workload import Workload

MODULI = (4, 6, 10, 12, 15, 20, 30, 60)


@st.composite
def needs(draw: st.DrawFn) -> EdgeSet:
    """The edges of a window: mostly one class, or two of one modulus."""
    classes = draw(st.lists(st.tuples(st.sampled_from(MODULI), st.integers(0, 60)), min_size=1, max_size=3))
    is_mixed = draw(st.integers(0, 4)) == 0
    return EdgeSet.of(*((modulus if is_mixed else classes[0][0], residue) for modulus, residue in classes))


@given(st.sampled_from(MODULI), st.integers(0, 60), st.sets(needs(), max_size=6))
@example(20, 0, {EdgeSet.of((20, 0)), EdgeSet.of((10, 0), (15, 0))})
def test_the_least_union_adds_fewest_edges_but_some(modulus: int, residue: int, others: set[EdgeSet]) -> None:
    own = EdgeSet.of((modulus, residue))
    rates = [(own | other).rate() for other in others if not other <= own]
    found = least_union(own, in_groups(sorted(others, key=lambda one: one.classes)))
    assert found.rate() == min(rates, default=own.rate())
    assert own <= found


@pytest.mark.parametrize(
    ("windows", "sharing", "is_of_slices"),
    [
        ("20s,30s,40s", Sharing.DISJOINT, True),
        ("20s,30s,40s every 10s", Sharing.DISJOINT, True),
        (
            "20s,80s,40s every 10s",
            Sharing.DISJOINT,
            False,
        ),  # a helper of 40 s for 80 s could pick from the one that hops
        ("20s,30s,20s offset 5s", Sharing.DISJOINT, False),
        ("20s,30s,40s", Sharing.OVERLAPPING, False),
    ],
)
def test_the_bound_for_what_a_graph_lacks_is_the_better_one_that_holds(
    windows: str, sharing: Sharing, *, is_of_slices: bool
) -> None:
    options = Options(sharing=sharing, pricing=Pricing.PAPER)
    workload = Workload.of_windows(windows.split(","), "min", Estimates())
    problem = workload.problem(options)
    graph = build(problem.declared, sharing, problem.model)
    least = least_with_others(graph, problem.model, sharing)
    chosen = least_with_slices if is_of_slices else least_with_anything
    assert least == chosen(graph, problem.model, sharing)
    assert 0 < least <= Fraction(plan_workload(workload, options).totals.total)
