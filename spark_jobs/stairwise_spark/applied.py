"""The plan that rules the tables: the one that was applied, until another one is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stairwise.codec import decode_plan
from stairwise.declared import Catalog
from stairwise.errors import ChangedError, StairwiseError
from stairwise.evolution import Action, Evolution, evolved, is_filled_alike
from stairwise.plan import Plan


def going_on(applied: str | None, plan: Plan) -> Plan:
    """The plan to go on with: the one that filled the tables, under the policies that are declared now.

    So neither another version of the planner nor other statistics change tables by themselves.

    Args:
        applied: The text of the plan that filled the tables; None: nothing did.
        plan: Of the declaration as it is now.

    Raises:
        ChangedError: What is declared now takes other tables.
    """
    if applied is None or plan.declaration is None:
        return plan
    running = decode_plan(applied)
    if running.declaration is None:
        return plan
    if is_filled_alike(running.declaration, plan.declaration):
        return replace(running, declaration=plan.declaration)
    raise changed(evolved(running, plan))


def known_here(plan: Plan) -> Plan | None:
    """The plan to go on with, by the files of this machine alone; None: Spark has to look.

    The plan that rules the tables may have helpers that this one has not. Where there is no bookkeeping, nothing was
    filled; where it cannot be read, or something else is declared now, it is the run that says so.

    Args:
        plan: Of the declaration as it is now.
    """
    target = "" if plan.declaration is None else plan.declaration.target
    if not target or isinstance(target, Catalog) or "://" in target or target.startswith("file:"):
        return None
    folder = Path(target, "_stairwise")
    try:
        return going_on((folder / "plan.json").read_text(encoding="utf-8"), plan) if folder.exists() else plan
    except (OSError, ValueError, StairwiseError):
        return None


def changed(evolution: Evolution) -> ChangedError:
    """What is said to somebody who wants to go on with tables that are not those of his declaration."""
    found = [
        f"{each.action.value} {each.column or each.tier}"
        for each in evolution.changes
        if each.action is not Action.KEEP and (each.step is None or each.step.tier.text)
    ]
    more = f" and {len(found) - _SAID} more" if len(found) > _SAID else ""
    return ChangedError(
        f"rollup '{evolution.goal.rollup}': its declaration has changed since the tables were filled: "
        f"{', '.join(found[:_SAID])}{more}.",
        hint="stairwise diff FILE shows what that means and costs, stairwise apply FILE does it; "
        "--apply-additive does it before the run, if nothing goes.",
        changes=", ".join(found),
        is_additive=evolution.is_additive,
    )


_SAID = 8
