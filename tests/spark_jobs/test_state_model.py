"""Every order of the steps of three runs, each of which may die at any of them, while the source changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Generic, TypeVar

import pytest

from stairwise.windowing import Interval
from tests.spark_jobs.state_model import ALL, CHANGED, COARSE, FINE, Fault, Model, Run, World, packed

_Value = TypeVar("_Value", bound=Hashable)
_State = tuple[int, tuple[int, ...], bool]
"""The world, the runs in any order, and whether OPTIMIZE is still to come."""

EARLY, LATE, ODD = Interval(0, 2), Interval(2, 4), Interval(1, 4)
HISTORIES = {
    "one range": (Run(ALL), Run(ALL), Run(ALL)),
    "ranges that overlap": (Run(EARLY), Run(ODD), Run(ODD)),
    "disjoint ranges, and all": (Run(EARLY), Run(LATE), Run(ALL)),
    "some make again what is there": (Run(ALL), Run(ALL), Run(EARLY, restates=True)),
}
WAITING, FREE = Model(), Model(appends=False, has_mutex=False)
"""Rows are added or replaced under a mutex; rows are always replaced, and nobody waits for anybody."""


@dataclass(slots=True)
class Numbered(Generic[_Value]):
    """Each value has a number, by which states are told from each other fast."""

    values: list[_Value] = field(default_factory=list[_Value])
    _numbers: dict[_Value, int] = field(default_factory=dict[_Value, int])

    def number(self, value: _Value) -> int:
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


@dataclass(slots=True)
class Search:
    """All that may become of some runs."""

    model: Model
    newest: int = 2
    packs: bool = False
    heals: bool = True
    worlds: Numbered[World] = field(default_factory=Numbered[World])
    runs: Numbered[Run] = field(default_factory=Numbered[Run])
    _steps: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict[tuple[int, int], tuple[int, int]])
    states: int = 0

    def wrong(self, runs: tuple[Run, ...]) -> Iterator[str]:
        """All that is wrong in any state, or after the next quiet run, in words."""
        begun: _State = self.worlds.number(World()), tuple(sorted(map(self.runs.number, runs))), self.packs
        todo, seen, looked_at = [begun], {begun}, 0
        while todo:
            state = todo.pop()
            for found in self._next(state):
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
            for world in self.worlds.values[looked_at:]:
                yield from self._of(world)
            looked_at = len(self.worlds.values)
        self.states = len(seen)

    def _next(self, state: _State) -> Iterator[_State]:
        """The states to which the next step of anybody may lead."""
        number, runs, packs = state
        for place, run in enumerate(runs):
            if self.runs.values[run].step != "done":
                moved, later = self._stepped(number, run)
                # Who did what is all one.
                yield moved, tuple(sorted((*runs[:place], later, *runs[place + 1 :]))), packs
        world = self.worlds.values[number]
        if world.source < self.newest:
            after = self.worlds.number(replace(world, source=world.source + 1))
            # When it was pinned is all one, but for this.
            for pinned in product(*([run, *self._pinned(world, run)] for run in runs)):
                yield after, tuple(sorted(pinned)), packs
        if packs:
            for tier in (FINE, COARSE):
                if world.table(tier).version:
                    yield self.worlds.number(packed(world, tier)), runs, False

    def _pinned(self, world: World, number: int) -> Iterator[int]:
        run = self.runs.values[number]
        if run.step == "pin":
            yield self.runs.number(self.model.stepped(world, run)[1])

    def _stepped(self, world: int, run: int) -> tuple[int, int]:
        found = self._steps.get((world, run))
        if found is None:
            before, begun = self.worlds.values[world], self.runs.values[run]
            after, later = self.model.stepped(before, begun)
            if begun.step == "pin":
                after, later = self.model.stepped(after, later)
            found = self._steps[world, run] = self.worlds.number(after), self.runs.number(later)
        return found

    def _of(self, world: World) -> Iterator[str]:
        """What is wrong with a world, and what is after one more run with nobody beside it."""
        yield from world.faults()
        run = Run() if self.heals else Run().over
        while run != run.over:
            world, run = self.model.stepped(world, run)
        if self.heals:
            yield from world.faults()
            yield from world.lacks()


@pytest.mark.parametrize("runs", HISTORIES.values(), ids=HISTORIES.keys())
def test_no_order_of_steps_makes_a_tier_wrong(runs: tuple[Run, ...]) -> None:
    search = Search(WAITING)
    assert [*islice(search.wrong(runs), 5)] == []
    assert search.states > 2_000


@pytest.mark.parametrize("runs", [HISTORIES["one range"], HISTORIES["ranges that overlap"]])
def test_claims_alone_keep_tiers_true_if_nobody_waits(runs: tuple[Run, ...]) -> None:
    assert [*islice(Search(FREE).wrong(runs), 5)] == []


@pytest.mark.parametrize("model", [WAITING, FREE], ids=["waiting", "free"])
def test_two_runs_while_the_source_changes_twice_and_tables_are_packed(model: Model) -> None:
    assert [*islice(Search(model, newest=max(CHANGED), packs=True).wrong((Run(EARLY), Run(ODD))), 5)] == []


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.value)
def test_what_is_done_wrong_is_found_out(fault: Fault) -> None:
    """In one history or another."""
    is_of_order = fault in (Fault.APPEND_ALONE, Fault.REPLACE_ALONE, Fault.SKIP_BELIEVED)
    model = replace(WAITING if is_of_order else FREE, fault=fault)
    assert any(any(Search(model, heals=False).wrong(runs)) for runs in HISTORIES.values())
