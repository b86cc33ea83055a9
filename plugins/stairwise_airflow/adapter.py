"""The way to run a rollup by any operator: one function that puts a program and its arguments where it takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from airflow.sdk import BaseOperator

from stairwise_airflow.application import Application
from stairwise_airflow.run_task import RollupRun

_Operator = TypeVar("_Operator", bound=BaseOperator)


def submitted_by(
    operator: type[_Operator], place: Callable[[_Operator, Application], None]
) -> Callable[..., RollupRun]:
    """The class of tasks that write tiers by an operator of yours; it takes what both take.

    >>> from airflow.providers.standard.operators.bash import BashOperator
    >>> def place(task: BashOperator, application: Application) -> None:
    ...     task.bash_command = " ".join(["python", application.file, *application.arguments])
    >>> BashRollup = submitted_by(BashOperator, place)
    >>> BashRollup.__name__, issubclass(BashRollup, BashOperator)
    ('RollupBashOperator', True)

    Args:
        operator: The class, such as DatabricksSubmitRunOperator.
        place: Is told the program and its arguments just before the operator executes.
    """

    def _place(self: _Operator, application: Application) -> None:
        place(self, application)

    fields: Sequence[str] = (*operator.template_fields, *RollupRun.template_fields)
    links = (*operator.operator_extra_links, *RollupRun.operator_extra_links)
    return type(
        f"Rollup{operator.__name__}",
        (RollupRun, operator),
        {
            "__doc__": f"A rollup that {operator.__name__} submits.",
            "__module__": __name__,
            "place": _place,
            "template_fields": fields,
            "operator_extra_links": links,
        },
    )
