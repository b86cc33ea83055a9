from __future__ import annotations

from functools import cache, reduce
from itertools import combinations, pairwise, permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.edges import EdgeSet
from stairwise.errors import PlanError
from stairwise.subsumption import (
    Group,
    Level,
    embed_window,
    is_subsumable,
    minimum_groups,
    scope,
    subsume_windows,
    suspend_window,
)
from stairwise.window import FixedWindow

Scopes = list[tuple[int, int]]


@st.composite
def fixed_windows(draw: st.DrawFn) -> FixedWindow:
    slide = draw(st.sampled_from((1, 2, 3, 4, 6, 8)))
    width = draw(st.integers(slide, 16))
    return draw(st.sampled_from((scope(width, slide), FixedWindow(width, slide))))


pools = st.lists(fixed_windows(), max_size=7, unique=True).map(tuple)


def instances(window: FixedWindow) -> dict[int, range]:
    """The instants that each instance holds, by its end, far enough to see every alignment of the slides drawn."""
    begins = range(window.origin - 48, 96, window.slide)
    return {begin + window.range: range(begin, begin + window.range) for begin in begins}


def fires_with(narrower: FixedWindow, wider: FixedWindow) -> bool:
    """Definition 1, instance by instance."""
    inner = instances(narrower)
    return all(
        end in inner and set(inner[end]) <= set(outer) for end, outer in instances(wider).items() if 0 < end <= 48
    )


def in_group(group: Group) -> Scopes:
    return [(window.range, window.slide) for window in group.windows]


@cache
def is_one_group(windows: tuple[FixedWindow, ...]) -> bool:
    """Whether some of the windows form a chain that hosts all others, tried one by one."""
    for size in range(1, len(windows) + 1):
        for chosen in combinations(sorted(windows, key=lambda window: window.range), size):
            is_chain = all(one.range < other.range and fires_with(one, other) for one, other in pairwise(chosen))
            others = (window for window in windows if window not in chosen)
            if is_chain and all(
                any(host.range == other.range and fires_with(host, other) for host in chosen) for other in others
            ):
                return True
    return False


@cache
def fewest_groups(windows: tuple[FixedWindow, ...]) -> int:
    """The smallest number of groups, over all ways to divide the windows."""
    if not windows:
        return 0
    first, *rest = windows
    return min(
        1 + fewest_groups(tuple(window for window in rest if window not in more))
        for size in range(len(windows))
        for more in combinations(rest, size)
        if is_one_group((first, *more))
    )


def printed_can_embed(group: Scopes, one: tuple[int, int], other: tuple[int, int], new: tuple[int, int]) -> bool:
    """Lines 17 to 29; `one` is to subsume `other`, and `new` is the one of them that is not in the group yet."""
    if one[1] % other[1] == 0:
        if one[0] == other[0]:
            return True
        if one[0] > other[0]:
            group.append(new)
            group.sort()
            return True
    return False


def printed_embed_window(groups: list[Scopes], new: tuple[int, int]) -> tuple[int, ...]:
    """Lines 30 to 46; returns the numbers of the lines that decided."""
    decided: list[int] = []
    for group in sorted(groups, key=lambda group: -group[0][1]):
        if new[1] % group[0][1] and group[0][1] % new[1]:
            continue
        wider = next((window for window in group if window[0] > new[0]), None)
        if wider is None:
            line, is_nested = 36, printed_can_embed(group, new, group[-1], new)
        elif wider[1] % new[1] == 0:
            line, is_nested = 38, printed_can_embed(group, wider, new, new)
        else:
            line, is_nested = 40, new[1] % wider[1] == 0 and printed_can_embed(group, new, wider, new)
        if is_nested:
            return (*decided, line)
        decided.append(line)
    groups.append([new])
    return (*decided, 44)


def is_broken(group: Scopes) -> bool:
    return any(one[0] == other[0] or other[1] % one[1] for one, other in pairwise(group))


@pytest.mark.parametrize(
    ("narrower", "wider", "expected"),
    [
        (scope(10, 2), scope(12, 4), True),
        (scope(10, 4), scope(12, 2), False),
        (scope(12, 4), scope(10, 4), False),
        (scope(10, 2), scope(10, 4), True),
        (scope(10, 2), scope(10, 2), True),
        (scope(7, 3), scope(8, 3), True),
        (FixedWindow(7, 3), FixedWindow(8, 3), False),
    ],
)
def test_definition_1(narrower: FixedWindow, wider: FixedWindow, *, expected: bool) -> None:
    assert is_subsumable(narrower, wider) is expected
    assert fires_with(narrower, wider) is expected


def test_figure_6_one_result_serves_a_window_of_half_the_pace() -> None:
    first, second, third = scope(6, 2), scope(10, 4), scope(10, 2)
    (group,) = subsume_windows((first, second, third))
    assert group == Group((Level(first), Level(third, (second,))))
    assert [level.quotients for level in group.levels] == [(), (2,)]
    assert group.deltas == ((0, 6), (6, 10))


def test_figure_7_a_smaller_slide_after_a_wider_one_seeds_a_group() -> None:
    groups = subsume_windows((scope(32, 4), scope(24, 8), scope(16, 4)))
    assert [in_group(group) for group in groups] == [[(16, 4), (24, 8)], [(32, 4)]]
    assert [group.seed for group in groups] == [scope(16, 4), scope(32, 4)]


def test_figure_7_a_window_between_two_others() -> None:
    groups = embed_window(subsume_windows((scope(18, 3), scope(26, 6))), scope(21, 3))
    assert [in_group(group) for group in groups] == [[(18, 3), (21, 3), (26, 6)]]


def test_figure_7_a_piggybacked_window_takes_over_from_its_seed() -> None:
    groups = suspend_window(subsume_windows((scope(14, 2), scope(14, 4), scope(24, 8))), scope(14, 2))
    assert groups == (Group((Level(scope(14, 4)), Level(scope(24, 8)))),)
    assert groups[0].seed.slide == 4


def test_groups_of_greater_base_slide_are_asked_first() -> None:
    groups = subsume_windows((scope(3, 1), scope(5, 5), scope(4, 4), scope(8, 4)))
    assert [in_group(group) for group in groups] == [[(3, 1), (4, 4), (8, 4)], [(5, 5)]]
    assert [in_group(group) for group in embed_window(groups, scope(20, 20))] == [
        [(3, 1), (4, 4), (8, 4)],
        [(5, 5), (20, 20)],
    ]


def test_a_new_window_of_equal_range_can_take_the_place_of_one() -> None:
    groups = embed_window(subsume_windows((scope(4, 1), scope(12, 4), scope(12, 8))), scope(12, 2))
    assert groups == (Group((Level(scope(4, 1)), Level(scope(12, 2), (scope(12, 4), scope(12, 8))))),)


def test_a_new_window_that_breaks_the_chain_below_seeds_a_group() -> None:
    groups = embed_window(subsume_windows((scope(4, 4), scope(12, 4))), scope(12, 2))
    assert [in_group(group) for group in groups] == [[(4, 4), (12, 4)], [(12, 2)]]


def test_a_window_that_is_there_changes_nothing() -> None:
    groups = subsume_windows((scope(10, 2), scope(10, 4)))
    assert embed_window(groups, scope(10, 4)) == groups


def test_embedding_as_printed_breaks_a_chain_and_ours_does_not() -> None:
    printed: list[Scopes] = []
    arrivals = ((10, 4), (20, 4), (15, 2))
    assert [printed_embed_window(printed, window) for window in arrivals] == [(44,), (36,), (38,)]
    assert printed == [[(10, 4), (15, 2), (20, 4)]]
    assert is_broken(printed[0])
    ours = reduce(embed_window, (scope(*window) for window in arrivals), tuple[Group, ...]())
    assert [in_group(group) for group in ours] == [[(10, 4), (20, 4)], [(15, 2)]]


def test_embedding_as_printed_breaks_chains_in_many_arrival_orders() -> None:
    broken = 0
    for arrivals in permutations(((10, 4), (12, 6), (15, 2), (20, 4), (20, 12), (24, 3))):
        printed: list[Scopes] = []
        assert 40 not in [printed_embed_window(printed, window)[-1] for window in arrivals]
        broken += any(map(is_broken, printed))
        ours = reduce(embed_window, (scope(*window) for window in arrivals), tuple[Group, ...]())
        assert all(is_one_group(group.windows) for group in ours)
    assert broken == 354


def test_suspending_a_hosted_window_erases_it_only() -> None:
    groups = subsume_windows((scope(12, 2), scope(12, 4), scope(12, 6)))
    assert suspend_window(groups, scope(12, 4)) == (Group((Level(scope(12, 2), (scope(12, 6),)),)),)


def test_suspending_the_last_window_of_a_group_removes_the_group() -> None:
    groups = subsume_windows((scope(3, 3), scope(5, 2)))
    assert suspend_window(groups, scope(3, 3)) == (Group((Level(scope(5, 2)),)),)


def test_a_replacement_that_would_break_the_chain_leaves_the_group() -> None:
    groups = subsume_windows((scope(12, 2), scope(12, 4), scope(20, 2)))
    assert [in_group(group) for group in suspend_window(groups, scope(12, 2))] == [[(20, 2)], [(12, 4)]]


def test_the_greedy_grouping_can_miss_the_fewest_groups() -> None:
    pool = (scope(1, 1), scope(7, 4), scope(10, 2), scope(11, 4), scope(12, 2))
    assert [in_group(group) for group in subsume_windows(pool)] == [
        [(1, 1), (7, 4)],
        [(10, 2), (11, 4)],
        [(12, 2)],
    ]
    assert [in_group(group) for group in minimum_groups(pool)] == [[(1, 1), (7, 4), (11, 4)], [(10, 2), (12, 2)]]


def test_a_long_alternating_path_is_followed_to_its_end() -> None:
    pool = tuple(scope(width, slide) for width in range(12, 40) for slide in (2, 3, 4, 6))
    hosts = {(window.range, window.slide): window for window in pool if window.slide in {2, 3}}
    assert sum(len(group.levels) for group in minimum_groups(pool)) == len(hosts)
    assert len(minimum_groups(pool)) == 2


def test_no_windows_need_no_group() -> None:
    assert subsume_windows(()) == minimum_groups(()) == ()


@given(fixed_windows(), fixed_windows())
def test_subsumption_is_nesting_at_every_instance(narrower: FixedWindow, wider: FixedWindow) -> None:
    assert is_subsumable(narrower, wider) == fires_with(narrower, wider)


@given(fixed_windows(), fixed_windows(), fixed_windows())
def test_subsumption_is_a_partial_order(one: FixedWindow, two: FixedWindow, three: FixedWindow) -> None:
    assert is_subsumable(one, one)
    assert not (is_subsumable(one, two) and is_subsumable(two, one)) or one == two
    assert not (is_subsumable(one, two) and is_subsumable(two, three)) or is_subsumable(one, three)


@given(pools, st.randoms(use_true_random=False))
def test_every_window_is_in_one_group_however_it_came(pool: tuple[FixedWindow, ...], random: Random) -> None:
    arrivals = random.sample(pool, len(pool))
    at_runtime = reduce(embed_window, arrivals, tuple[Group, ...]())
    for groups in (subsume_windows(arrivals), minimum_groups(arrivals), at_runtime):
        assert sorted(map(repr, pool)) == sorted(repr(window) for group in groups for window in group.windows)
        assert all(is_one_group(group.windows) for group in groups)
    assert subsume_windows(arrivals) == subsume_windows(pool)
    assert minimum_groups(arrivals) == minimum_groups(pool)


@given(pools, st.randoms(use_true_random=False))
def test_suspending_keeps_all_others(pool: tuple[FixedWindow, ...], random: Random) -> None:
    groups = subsume_windows(pool)
    for number, window in enumerate(leaving := random.sample(pool, len(pool)), start=1):
        groups = suspend_window(groups, window)
        served = sorted(repr(each) for group in groups for each in group.windows)
        assert served == sorted(map(repr, leaving[number:]))
    assert groups == ()


@given(pools)
def test_the_fewest_groups_are_the_fewest(pool: tuple[FixedWindow, ...]) -> None:
    assert len(minimum_groups(pool)) == fewest_groups(tuple(sorted(pool, key=repr))) <= len(subsume_windows(pool))


@given(pools)
def test_a_state_is_the_narrower_state_and_a_delta(pool: tuple[FixedWindow, ...]) -> None:
    for group in subsume_windows(pool):
        for number, level in enumerate(group.levels, start=1):
            ages = group.deltas[:number]
            for end, held in instances(level.window).items():
                kept = [instant for youngest, oldest in ages for instant in range(end - oldest, end - youngest)]
                assert sorted(kept) == list(held)


@given(pools)
def test_the_tier_of_a_group_serves_all_its_windows(pool: tuple[FixedWindow, ...]) -> None:
    for group in subsume_windows(pool):
        for window in group.windows:
            begins, ends = (window.slide, window.origin), (window.slide, window.origin + window.range)
            assert EdgeSet.of(begins, ends) <= group.edges


def test_what_is_not_a_group_is_refused() -> None:
    with pytest.raises(PlanError) as error:
        Group(())
    assert str(error.value) == "a group holds 0 windows, but it needs 1 as its seed. Hint: leave the group out."
    with pytest.raises(PlanError) as error:
        Group((Level(scope(24, 8)), Level(scope(32, 4))))
    assert str(error.value) == (
        "window '32s every 4s' follows '24s every 8s' in a group, but does not subsume it "
        "(ranges 24 s and 32 s, slides 8 s and 4 s). Hint: begin another group."
    )
    with pytest.raises(PlanError) as error:
        Level(scope(10, 2), (scope(12, 4),))
    assert str(error.value) == (
        "window '12s every 4s' is piggybacked on '10s every 2s', but its results are not among those of that window. "
        "Hint: give it a place in a chain."
    )


def test_a_window_that_is_not_there_cannot_be_suspended() -> None:
    with pytest.raises(PlanError) as error:
        suspend_window(subsume_windows((scope(10, 2),)), scope(12, 2))
    assert str(error.value) == (
        "window '12s every 2s' is in none of the groups (1), so it cannot be suspended. "
        "Hint: suspend a window that was embedded before."
    )
