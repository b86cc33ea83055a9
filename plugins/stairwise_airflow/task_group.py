"""The plan as tasks of their own, a tier each, for those who want retries and times per tier."""

from __future__ import annotations

from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import TaskGroup

from stairwise import optimize
from stairwise_airflow.declarations import Declared, declared
from stairwise_airflow.operators import RollupOperator


class RollupTaskGroup(TaskGroup):
    """The same tables as :class:`RollupOperator`, by one task for each tier; the edges are those of the plan.

    Each task starts Spark by itself, which takes some seconds.

    Args:
        rollup: A :class:`stairwise.Rollup`, its file, or its YAML.
        group_id: The name of the group; None: the rollup's.
        tooltip: What the interface shows of the group; None: how many tiers there are.
        kwargs: What each :class:`RollupOperator` takes.
    """

    def __init__(
        self,
        *,
        rollup: Declared,
        group_id: str | None = None,
        tooltip: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - what RollupOperator takes
    ) -> None:
        found = declared(rollup)
        plan = optimize(found)
        told = f"{len(plan.steps)} tiers of {found.name}" if tooltip is None else tooltip
        super().__init__(group_id=found.name if group_id is None else group_id, tooltip=told)
        tasks: dict[str, RollupOperator] = {}
        with self:
            for step in plan.steps:
                name = step.tier.name
                tasks[name] = RollupOperator(task_id=name, rollup=found, tiers=(name,), **kwargs)
                if step.reads is not None:
                    tasks[step.reads].set_downstream(tasks[name])
