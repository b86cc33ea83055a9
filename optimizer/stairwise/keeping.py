"""Whether tables keep their rows as long as others need them: where the source drops its own, nobody else has them."""

from __future__ import annotations

from collections.abc import Iterator

from stairwise.declared import DeclaredWindow, Late, least_and_most, longest
from stairwise.duration import Duration
from stairwise.errors import RollupError
from stairwise.plan import Plan, Step
from stairwise.rollup import Rollup


def check_kept(plan: Plan) -> Plan:
    """The plan itself, if no table drops rows that a coarser one is still made of.

    Raises:
        RollupError: One does; the text says who needs its rows, and until when.
    """
    rollup = plan.declaration
    if rollup is None or rollup.source.retain is None:
        return plan  # what a table has dropped can be made again, of the events
    kept_by_source, _ = least_and_most(rollup.source.retain)
    for declared in rollup.windows:
        if declared.retain is None:
            continue
        kept, _ = least_and_most(declared.retain)
        for reader, needed in _needs(plan, rollup, declared):
            if needed > max(kept, kept_by_source):
                name = reader.tier.text or reader.tier.name
                raise RollupError(
                    f"window {declared.text!r}: retain {declared.retain}, but {name} is made of it and needs it for "
                    f"{Duration(needed)}, and the source keeps its own rows for {rollup.source.retain}.",
                    hint=f"retain {Duration(needed)} or longer, or declare a shorter lateness.",
                    text=declared.text,
                )
    return plan


def _needs(plan: Plan, rollup: Rollup, declared: DeclaredWindow) -> Iterator[tuple[Step, int]]:
    """Each tier that is made of a window, and how long it needs the rows: until it has ended, and no row is late."""
    late = 0
    if rollup.late is Late.CORRECT and rollup.lateness is not None:
        _, late = least_and_most(rollup.lateness)
    for step in plan.readers(declared.name):
        lasts = step.tier.range_s or 0
        if step.tier.window is not None:
            _, lasts = least_and_most(longest(step.tier.window))
        yield step, lasts + rollup.delay.seconds + late
