"""The operators that users put into a DAG, each submitting to the Spark of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from stairwise.instant import format_instant
from stairwise_airflow.errors import unanswered
from stairwise_airflow.reach import instant
from stairwise_airflow.reports import Document, is_document, is_list
from stairwise_airflow.run_task import RollupRun
from stairwise_airflow.submitting import SparkTask

_SHOWN_DIFFERENCES = 5


class RollupOperator(RollupRun, SparkTask):
    """One Spark application that writes every tier for the run.

    See :class:`RollupRun`, :class:`SparkTask` and :class:`RollupTask` for the arguments::

        RollupOperator(task_id="rollup", rollup="rollups/trips.yaml", conn_id="spark_default")
    """

    template_fields: Sequence[str] = (*SparkTask.template_fields, *RollupRun.template_fields)


class RollupBackfillOperator(RollupOperator):
    """As :class:`RollupOperator`, for a range of history: what is done already is not done again."""

    command = "backfill"


class RollupVerifyOperator(SparkTask):
    """Recomputes windows from the raw rows and compares; fails with what differs.

    Args:
        start: Windows that end after this instant (templated); None: all.
        end: And not after this one (templated).
        sample: So many windows only; None: all.
        witness: Whether to compare counts only, which is cheap.
        kwargs: What :class:`SparkTask` takes.
    """

    command = "verify"
    template_fields: Sequence[str] = (*SparkTask.template_fields, "start", "end")

    def __init__(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        sample: int | None = None,
        witness: bool = False,
        **kwargs: Any,  # noqa: ANN401 - what SparkTask takes
    ) -> None:
        super().__init__(**kwargs)
        self.start = start
        self.end = end
        self.sample = sample
        self.witness = witness

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - as the base
        """The tables equal what the source gives."""
        ends = {name: instant(text, name) for name, text in (("start", self.start), ("end", self.end))}
        options = [word for name, at in ends.items() if at is not None for word in (f"--{name}", format_instant(at))]
        options += [] if self.sample is None else ["--sample", str(self.sample)]
        answer = self.answered(context, [*options, *(["--witness"] if self.witness else [])])
        if answer is None:
            raise unanswered(self.command)
        if answer.get("equal") is not True:
            raise AirflowFailException("\n".join(differences(answer)))
        self.log.info("%s: %s windows are equal", self.declaration.name, answer.get("windows_checked"))
        return dict(answer)


class RollupMaintenanceOperator(SparkTask):
    """Compacts the tables and removes files that no reader needs; runs beside it go on.

    Args:
        kwargs: What :class:`SparkTask` takes.
    """

    command = "maintain"

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - as the base
        """The tables have few files, and none that is not needed."""
        answer = self.answered(context, [])
        if answer is None:
            raise unanswered(self.command)
        return dict(answer)


def differences(answer: Document) -> list[str]:
    """What differs, for people: how much, and the first few."""
    found = answer.get("differences")
    listed = found if is_list(found) else []
    total = answer.get("differences_total", len(listed))
    shown = [_difference(each) for each in listed[:_SHOWN_DIFFERENCES] if is_document(each)]
    return [f"The tables differ from the source in {total} places.", *shown]


def _difference(one: Document) -> str:
    what = one.get("column") or "the row"
    where = f"{one.get('tier')} at {one.get('window_start')}, {one.get('keys')}"
    return f"{where}: {what} is {one.get('stored')}, and should be {one.get('recomputed')}."
