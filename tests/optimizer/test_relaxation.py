"""The bound for tiers that no network holds: what its short cut finds, against a look at every pair."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from stairwise.edges import EdgeSet
from stairwise.relaxation import in_groups, least_union

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
