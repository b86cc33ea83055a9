"""Whether a declaration goes on with tables that an earlier one has filled."""

from __future__ import annotations

from stairwise.errors import UsageError
from stairwise.plan import Plan


def check_same(applied: Plan, plan: Plan) -> None:
    """Refuse a plan under which rows that are in the tables would mean something else.

    Windows may come and go, and a plan may read them from each other in another way.

    Raises:
        UsageError: The source, the keys, an aggregate or what a name stands for has changed.
    """
    old, new = applied.declaration, plan.declaration
    if old is None or new is None:
        return
    changed = [
        what
        for what, before, now in (
            ("source", old.source, new.source),
            ("keys", old.keys, new.keys),
            ("aggregates", dict(old.aggregates), dict(new.aggregates)),
        )
        if before != now
    ]
    windows = {step.tier.name: step.tier.window for step in applied.steps}
    changed += [
        f"window {step.tier.name}"
        for step in plan.steps
        if windows.get(step.tier.name, step.tier.window) != step.tier.window
    ]
    if changed:
        raise UsageError(
            f"rollup '{new.name}': {', '.join(changed)}: not what the tables in the target were filled with.",
            hint="choose another target; to change tables that are filled is not in this version yet.",
        )
