"""Networks to plan, any at all or those of tumbling and hopping windows, and the cheapest plan by force."""

from __future__ import annotations

from itertools import combinations
from math import gcd, lcm
from random import Random

from hypothesis import strategies as st

from stairwise.network import Network, Number, Solution, solve_open

INTEGERS: st.SearchStrategy[Number] = st.integers(0, 20)
FRACTIONS: st.SearchStrategy[Number] = st.fractions(0, 20, max_denominator=7)
FLOATS: st.SearchStrategy[Number] = st.floats(0, 20, allow_subnormal=False)

# Two readers of node 1, which nobody has to have: 14 with it, 20 without.
FORK = Network(required=(True, False, True, True), arcs=((), ((0, 10),), ((1, 2), (0, 10)), ((1, 2), (0, 10))))


@st.composite
def networks(draw: st.DrawFn, costs: st.SearchStrategy[Number] = INTEGERS, *, most_optional: int = 5) -> Network:
    """Draws a network of up to 8 nodes besides the root."""
    required = [True]
    arcs: list[tuple[tuple[int, Number], ...]] = [()]
    for node in range(1, draw(st.integers(1, 8)) + 1):
        is_full = required.count(False) == most_optional
        required.append(is_full or draw(st.booleans()))
        drawn = draw(st.dictionaries(st.integers(1, node - 1), costs)) if node > 1 else {}
        arcs.append(_sorted({0: draw(costs)} | drawn))
    return Network(required=tuple(required), arcs=tuple(arcs))


def _sorted(costs: dict[int, Number]) -> tuple[tuple[int, Number], ...]:
    return tuple(sorted(costs.items(), key=lambda arc: (arc[1], arc[0])))


def optional_nodes(network: Network) -> list[int]:
    return [node for node, is_required in enumerate(network.required) if not is_required]


def cheapest(network: Network) -> Solution:
    """Returns the cheapest plan, found by trying every set of optional nodes."""
    optional = optional_nodes(network)
    subsets = (subset for size in range(len(optional) + 1) for subset in combinations(optional, size))
    return min((solve_open(network, subset) for subset in subsets), key=lambda solution: solution.cost)


def tumbling(ranges: set[int], events: int = 1) -> Network:
    """Returns the network of tumbling windows, with all their common divisors as helpers, priced as in the papers."""
    period = lcm(*ranges)
    grains = _closure(ranges)
    arcs = [_sorted(_from_grains(grain, grains, 1, period, events)) for grain in grains]
    return Network(required=(True, *(grain in ranges for grain in grains)), arcs=((), *arcs))


def hopping(slides: set[int], events: int = 1) -> Network:
    """Returns the network of windows twice as long as their slides, with tumbling helpers only."""
    period = lcm(*slides)
    grains = _closure(slides)
    arcs = [_sorted(_from_grains(grain, grains, 1, period, events)) for grain in grains]
    leaves = [_sorted(_from_grains(slide, [*grains, 0], 2, period - slide, events)) for slide in sorted(slides)]
    required = [False] * len(grains) + [True] * len(leaves)
    return Network(required=(True, *required), arcs=((), *arcs, *leaves))


def _from_grains(slide: int, grains: list[int], overlap: int, covered: int, events: int) -> dict[int, Number]:
    """Prices each finer grain as a parent: the slices that the windows of this slide and overlap read in all."""
    costs: dict[int, Number] = {0: covered * overlap * events}
    for node, grain in enumerate(grains, start=1):
        if 0 < grain < slide + (overlap > 1) and slide % grain == 0:
            costs[node] = covered * overlap // grain
    return costs


def _closure(values: set[int]) -> list[int]:
    closure = set(values)
    while (more := closure | {gcd(one, other) for one in closure for other in values}) != closure:
        closure = more
    return sorted(closure)


def random_ranges(seed: int, count: int, *, one_seed: bool) -> set[int]:
    """Draws ranges as paper 000 does: 2 to 50 times 2, 5 or 10, the same for all or drawn for each."""
    random = Random(seed)  # noqa: S311 - no secret
    bases = (2, 5, 10)
    base = random.choice(bases)
    ranges: set[int] = set()
    while len(ranges) < count:
        ranges.add(random.randint(2, 50) * (base if one_seed else random.choice(bases)))
    return ranges


def dense(count: int) -> Network:
    """Returns a network of so many nodes, every other one optional, with an arc between any two."""
    random = Random(count)  # noqa: S311 - no secret
    arcs = [_sorted({parent: random.randint(1, 1000) for parent in range(node)}) for node in range(count)]
    return Network(required=tuple(node % 2 == 0 for node in range(count)), arcs=tuple(arcs))
