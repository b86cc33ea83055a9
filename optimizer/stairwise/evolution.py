"""What becomes of the tables when a declaration changes: each thing that is kept, added, filled, renamed or given up.

Nothing here looks at a table: two plans are compared, the one that filled the tables and the one to go on with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from stairwise.aggregate import Aggregate, Sharing, partial_columns
from stairwise.errors import PlanError, UsageError
from stairwise.meaning import Meaning
from stairwise.plan import Plan, Step
from stairwise.rollup import Rollup
from stairwise.rules import meaning
from stairwise.tiers import Kind, Tier
from stairwise.window import Window


class Action(Enum):
    """What becomes of a table, or of a column of all tables."""

    KEEP = "keep"
    ADD = "add"
    FILL = "fill"
    RENAME = "rename"
    REBUILD = "rebuild"
    DROP = "drop"


class Permission(Enum):
    """What has to be allowed, since something that is there goes."""

    DROP = "--allow-drop"
    REBUILD = "--allow-rebuild"


MARK = "is_partial"
"""The column by which a declaration with ``partial: true`` tells windows that have not ended."""


class Origin(Enum):
    """Where values come from that no other tier has."""

    STATES = "its own states"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One action.

    Attributes:
        action: What is done.
        tier: To which tier; None: to all declared ones.
        column: To which column of it; None: to all.
        origin: Where rows or values come from: a tier, which is its parent or what it was called before; states that
            are there; None: the events.
        needs: What has to be allowed for it; None: nothing.
        why: What makes it necessary, in a few words.
        step: How the tier will be computed; None: it will not be any more.
    """

    action: Action
    tier: str | None
    column: str | None = None
    origin: Origin | str | None = None
    needs: Permission | None = None
    why: str = ""
    step: Step | None = None

    @property
    def is_additive(self) -> bool:
        """Whether nothing that is there is changed or lost by it."""
        return self.action in {Action.KEEP, Action.ADD, Action.FILL} and self.needs is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """From the plan that filled the tables to the one to go on with.

    Attributes:
        running: The plan that filled the tables; None: nothing did.
        goal: The plan to go on with.
        changes: All that happens, in the order of the goal's tiers; what goes comes last.
    """

    running: Plan | None
    goal: Plan
    changes: tuple[Change, ...]

    @classmethod
    def first(cls, goal: Plan) -> Evolution:
        """From nothing."""
        added = (
            Change(action=Action.ADD, tier=step.tier.name, origin=step.reads, why="nothing is there", step=step)
            for step in goal.steps
        )
        return cls(running=None, goal=goal, changes=tuple(added))

    @property
    def is_anything(self) -> bool:
        """Whether there is anything to do."""
        return any(each.action is not Action.KEEP for each in self.changes)

    @property
    def is_additive(self) -> bool:
        """Whether all of it can be done without leave: nothing that is there is lost.

        A helper that nobody reads any more is left alone unless somebody allows that it goes.
        """
        return all(each.is_additive or is_idle(each) for each in self.changes)

    @property
    def needed(self) -> frozenset[Permission]:
        """What has to be allowed for it."""
        return frozenset(each.needs for each in self.changes if each.needs is not None and not is_idle(each))

    def of(self, action: Action) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(each for each in self.changes if each.action is action)


def is_idle(change: Change) -> bool:
    """Whether it is about what is merely not needed any more: a helper, or what a change has left that did not end."""
    return change.action is Action.DROP and change.column is None and change.why in {_UNREAD, _LEFT_OVER}


_UNREAD = "no tier reads it any more"
_LEFT_OVER = "it was taken away by a change that did not end"


def check_allowed(evolution: Evolution, allowed: frozenset[Permission]) -> None:
    """Refuse what takes something away that nobody has allowed to go, or that would go though it need not.

    Raises:
        UsageError: Something is not allowed.
    """
    refused = [each for each in evolution.changes if each.needs not in {None, *allowed} and not is_idle(each)]
    if refused:
        listed = ", ".join(f"{each.action.value} {each.column or each.tier} ({each.why})" for each in refused)
        wanted = " ".join(sorted({each.needs.value for each in refused if each.needs is not None}))
        raise UsageError(
            f"rollup '{evolution.goal.rollup}': not allowed: {listed}.",
            hint=f"add {wanted} if that is what you want.",
            needs=wanted,
        )
    _check_history(evolution)


def _check_history(evolution: Evolution) -> None:
    """Refuse to make anew at once what could be kept, where the source does not have all of it any more.

    Raises:
        UsageError: Something is renamed or filled beside what is rebuilt, or a column means something else.
    """
    rollup = evolution.goal.declaration
    if rollup is None or rollup.source.retain is None or Permission.REBUILD not in evolution.needed:
        return
    others = [each for each in evolution.changes if each.action in {Action.RENAME, Action.FILL}]
    if others:
        listed = ", ".join(f"{each.action.value} {each.column or each.tier} ({each.why})" for each in others)
        raise UsageError(
            f"rollup '{evolution.goal.rollup}': the source keeps its rows for {rollup.source.retain}, so {listed} "
            "would lose what was before, together with a rebuild.",
            hint="apply that by itself first; a column that is to mean something else takes another name.",
        )


def evolved(running: Plan, goal: Plan) -> Evolution:
    """What has to be done so that the tables of one plan become those of another.

    Raises:
        PlanError: One of the plans is for windows without a declaration.
    """
    old, new = _declared(running), _declared(goal)
    if parts := _differing(old, new):
        changes = (*_rebuilt(goal, parts), *_dropped(running, goal, {}))
        return Evolution(running=running, goal=goal, changes=changes)
    renamed = _renamed(running, goal)
    changes = (*_columns(old, new), *_tiers(running, goal, renamed), *_dropped(running, goal, renamed))
    return Evolution(running=running, goal=goal, changes=changes)


def left_over(tier: str) -> Change:
    """What is to become of a window that no plan has any more, though there are rows of it."""
    return Change(action=Action.DROP, tier=tier, needs=Permission.DROP, why=_LEFT_OVER)


def called(plan: Plan, names: Mapping[str, str]) -> Plan:
    """The same plan, in which some declared tiers have other names."""

    def name(of: str) -> str:
        return names.get(of, of)

    steps = tuple(
        replace(
            step,
            tier=replace(step.tier, name=name(step.tier.name)),
            reads=None if step.reads is None else name(step.reads),
            runner_up=step.runner_up
            and replace(step.runner_up, reads=step.runner_up.reads and name(step.runner_up.reads)),
        )
        for step in plan.steps
    )
    declared = _declared(plan)
    windows = tuple(replace(each, name=name(each.name)) for each in declared.windows)
    return replace(plan, declaration=replace(declared, windows=windows), steps=steps)


def _differing(old: Rollup, new: Rollup) -> tuple[str, ...]:
    """The parts of two declarations that differ, and say which events there are, how grouped, and in which tables."""
    parts = [
        (f"source.{name}", getattr(old.source, name), getattr(new.source, name))
        for name in ("table", "path", "sql", "format", "time", "unit", "zone", "where")
    ]
    parts += [("keys", sorted(old.keys), sorted(new.keys)), ("layout", old.layout, new.layout)]
    return tuple(name for name, before, now in parts if before != now)


def is_filled_alike(old: Rollup, new: Rollup) -> bool:
    """Whether what is declared differs in nothing but policies: no table and no row is another one."""
    return (
        not _differing(old, new)
        and Meaning.of(old).columns == Meaning.of(new).columns
        and old.partial == new.partial
        and {each.name: meaning(each.window) for each in old.windows}
        == {each.name: meaning(each.window) for each in new.windows}
    )


def by_itself(old: Rollup, aggregate: Aggregate) -> bool:
    """Whether a result can be worked out of the states that tables hold already."""
    held = {partial.name for partial in partial_columns(_merging(old))}
    return aggregate.sharing is not Sharing.HOLISTIC and all(each.name in held for each in aggregate.partials)


def _merging(rollup: Rollup) -> list[Aggregate]:
    return [each for _, each in rollup.aggregates if each.sharing is not Sharing.HOLISTIC]


def _declared(plan: Plan) -> Rollup:
    if plan.declaration is None:
        raise PlanError(f"plan '{plan.rollup}': there is no declaration in it, so it has no tables.")
    return plan.declaration


def _rebuilt(goal: Plan, parts: tuple[str, ...]) -> Iterator[Change]:
    verb = "differs" if len(parts) == 1 else "differ"
    for step in goal.steps:
        yield Change(
            action=Action.REBUILD,
            tier=step.tier.name,
            origin=step.reads,
            needs=Permission.REBUILD,
            why=f"{' and '.join(parts)} {verb}",
            step=step,
        )


def _columns(old: Rollup, new: Rollup) -> Iterator[Change]:
    before, now = dict(old.aggregates), dict(new.aggregates)
    origins = {name: Origin.STATES if by_itself(old, now[name]) else None for name in now}
    for name, aggregate in now.items():
        if name not in before:
            why = f"{aggregate} is new"
            yield Change(action=Action.FILL, tier=None, column=name, origin=origins[name], why=why)
        elif before[name] != aggregate:
            why, needs = f"it was {before[name]}, and is {aggregate}", Permission.REBUILD
            yield Change(action=Action.FILL, tier=None, column=name, origin=origins[name], needs=needs, why=why)
    if new.partial and not old.partial:
        why = "windows that have not ended are marked"
        yield Change(action=Action.FILL, tier=None, column=MARK, origin=Origin.STATES, why=why)
    for name, aggregate in before.items():
        if name not in now:
            why = f"{aggregate} is not declared any more"
            yield Change(action=Action.DROP, tier=None, column=name, needs=Permission.DROP, why=why)
    if old.partial and not new.partial:
        why = "windows that have not ended are not written any more"
        yield Change(action=Action.DROP, tier=None, column=MARK, needs=Permission.DROP, why=why)


def _renamed(running: Plan, goal: Plan) -> Mapping[str, str]:
    """The old names of declared tiers that have new ones."""
    after = {step.tier.name.lower() for step in goal.steps}
    gone = {
        _meaning(step.tier): step.tier.name
        for step in running.steps
        if step.tier.kind is Kind.DECLARED and step.tier.name.lower() not in after
    }
    before = {step.tier.name.lower() for step in running.steps}
    return {
        step.tier.name: gone[_meaning(step.tier)]
        for step in goal.steps
        if step.tier.kind is Kind.DECLARED and step.tier.name.lower() not in before and _meaning(step.tier) in gone
    }


def _tiers(running: Plan, goal: Plan, renamed: Mapping[str, str]) -> Iterator[Change]:
    before = {step.tier.name.lower(): step.tier for step in running.steps}
    for step in goal.steps:
        tier, was = step.tier, before.get(step.tier.name.lower())
        if tier.name in renamed:
            old = renamed[tier.name]
            yield Change(action=Action.RENAME, tier=tier.name, origin=old, why=f"it was called {old}", step=step)
        elif was is None or was.kind is not tier.kind:
            why = "nobody had it yet" if was is None else f"it was {_KINDS[was.kind]}"
            origin = step.reads if was is None or not _is_same(was, tier) else was.name
            yield Change(action=Action.ADD, tier=tier.name, origin=origin, why=why, step=step)
        elif _is_same(was, tier) and was.name == tier.name:
            yield Change(action=Action.KEEP, tier=tier.name, origin=step.reads, step=step)
        else:
            needs = Permission.REBUILD if tier.kind is Kind.DECLARED else None
            why = f"it was {was.text or 'cut otherwise'}, and is {tier.text or 'cut otherwise'}"
            yield Change(action=Action.REBUILD, tier=tier.name, origin=step.reads, needs=needs, why=why, step=step)


_KINDS = {Kind.DECLARED: "declared", Kind.FACTOR: "a helper", Kind.COMPOSITE: "a helper"}


def _is_same(one: Tier, other: Tier) -> bool:
    """Whether both hold the same rows."""
    return (_meaning(one), one.keeps_values) == (_meaning(other), other.keeps_values) and (
        one.window is not None or one.needs == other.needs
    )


def _meaning(tier: Tier) -> tuple[Window, ...] | None:
    return None if tier.window is None else meaning(tier.window)


def _dropped(running: Plan, goal: Plan, renamed: Mapping[str, str]) -> Iterator[Change]:
    kept = {step.tier.name.lower(): step.tier.kind for step in goal.steps}
    for step in running.steps:
        name, kind = step.tier.name, step.tier.kind
        if name in renamed.values() or kept.get(name.lower()) is kind:
            continue
        why = "it is not declared any more" if kind is Kind.DECLARED else _UNREAD
        yield Change(action=Action.DROP, tier=name, needs=Permission.DROP, why=why)
