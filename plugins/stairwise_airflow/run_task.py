"""A task that writes tiers, whichever operator submits it: settles the range, runs, tells what was written."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import DAG, Asset, Context, Param
from airflow.sdk.definitions._internal.contextmanager import DagContext

from stairwise_airflow.assets import assets_of, emit
from stairwise_airflow.errors import refusal
from stairwise_airflow.lineage import lineage
from stairwise_airflow.links import ReportLink
from stairwise_airflow.reach import Extent, Occasion, Reach, settle
from stairwise_airflow.reports import Document, Report
from stairwise_airflow.settings import Settings
from stairwise_airflow.task import RollupTask

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import RunFacet

_PARAMS = {
    "start": "Write the windows that end after this instant, whatever was done before. Empty: those of the run.",
    "end": "And not after this one.",
}


class OnChange(Enum):
    """What a task does whose declaration is another one than the tables were filled with."""

    REFUSE = "refuse"
    APPLY_ADDITIVE = "apply_additive"


class RollupRun(RollupTask):
    """Writes every tier for the run of a DAG.

    Args:
        start: Windows that end after this instant, in ISO 8601 with a zone (templated); None: the parameter ``start``
            of the run, and without it, the run's own interval.
        end: And not after this one (templated).
        grain: What a partition is, as a window such as ``1h`` or ``day in Europe/Paris``, for runs with partitions.
        extent: ``covered``: a scheduled run reaches back to what tables hold already; ``everything``: to the first
            event.
        tiers: Only these tiers, by table name; none: all.
        restate: Whether windows are written again that are there already.
        on_change: What to do if the declaration is another one than the tables were filled with: ``refuse``, so that
            somebody looks at ``stairwise diff``; or ``apply_additive``, which adds windows and columns before the run,
            and refuses if anything would go.
        accept_deletes: Whether windows may lose all of their rows, however many they are.
        outlets: More assets than the tiers.
        kwargs: What :class:`RollupTask` and the submitting operator take.
    """

    command = "run"
    template_fields: Sequence[str] = ("start", "end")
    operator_extra_links = (ReportLink(),)

    def __init__(  # noqa: PLR0913 - what a user may say of a run
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        grain: str | None = None,
        extent: str = "covered",
        tiers: Sequence[str] = (),
        restate: bool = False,
        on_change: str = OnChange.REFUSE.value,
        accept_deletes: bool = False,
        outlets: Sequence[Asset] = (),
        **kwargs: Any,  # noqa: ANN401 - what the other base takes
    ) -> None:
        super().__init__(**kwargs)
        self.start = start
        self.end = end
        self.grain = grain
        self.extent = Extent(extent)
        self.tiers = tuple(tiers)
        self.restate = restate
        self.on_change = OnChange(on_change)
        self.accept_deletes = accept_deletes
        self.report: Report | None = None
        self.add_outlets([*assets_of(self.declaration, self.tiers), *outlets])
        _offer_range(DagContext.get_current() or kwargs.get("dag"))

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - as the submitting operator has it
        """Every tier is up to date for the run; the report of what was done is the task's result."""
        reach = self.reach(context)
        self.log.info("%s: %s", self.declaration.name, reach)
        return self.told(context, self.answered(context, self.arguments(reach)))

    def resume_execution(
        self,
        next_method: str,
        next_kwargs: dict[str, Any] | None,
        context: Context,
    ) -> object:
        """As :meth:`execute`, where the submitting operator waited elsewhere meanwhile."""
        place = self.prepare(context, self.arguments(self.reach(context)))
        returned: object = super().resume_execution(next_method, next_kwargs, context)
        return self.told(context, self.heard(returned, place))

    def get_openlineage_facets_on_complete(self, _instance: object) -> OperatorLineage[Dataset, RunFacet] | None:
        """What was read and written, for the provider of OpenLineage, if there is one."""
        return None if self.report is None else lineage(self.declaration, self.report)

    def arguments(self, reach: Reach) -> tuple[str, ...]:
        """The options of the engine's command."""
        tiers = ("--tiers", ",".join(self.tiers)) if self.tiers else ()
        given = {
            "--restate": self.restate,
            "--apply-additive": self.on_change is OnChange.APPLY_ADDITIVE,
            "--accept-deletes": self.accept_deletes,
        }
        return (*reach.arguments, *tiers, *(option for option, is_given in given.items() if is_given))

    def reach(self, context: Context) -> Reach:
        """Which windows the run writes.

        Raises:
            AirflowFailException: It says none, or an empty range.
        """
        run = context["dag_run"]
        params = context.get("params", {})
        start, end = run.data_interval_start, run.data_interval_end
        return settle(
            Occasion(
                start=self.start or params.get("start"),
                end=self.end or params.get("end"),
                interval=None if start is None or end is None else (start, end),
                partition=run.partition_date,
                due=run.run_after,
                is_backfill=run.run_type == "backfill",
                cron=_cron(context["dag"]),
            ),
            self.grain,
            self.extent,
        )

    def told(self, context: Context, answer: Document | None) -> dict[str, object] | None:
        """What was written is in the log, and told to those who wait for it."""
        if answer is None:
            return None
        if answer.get("schema") != "stairwise.run/1":
            raise refusal(f"the program answered with {answer.get('schema')}.", "use run_plan.py of this version.")
        self.report = report = Report.of(answer)
        for line in summary(report):
            self.log.info("%s", line)
        changed = emit(context, self.declaration, report, Settings.read().most_partition_events)
        ours = {asset.name for asset in assets_of(self.declaration)}
        # A tier that was not written has not changed: what waits for it goes on waiting.
        self.outlets = [each for each in self.outlets if getattr(each, "name", "") not in ours - changed]
        return dict(answer)


def summary(report: Report) -> list[str]:
    """The report for the log: a line for each tier that was written, and one for all."""
    lines = [
        f"{tier.name}: {tier.rows:,} rows, {tier.bytes:,} bytes, {tier.seconds:,.1f} s"
        for tier in report.tiers
        if tier.rows
    ]
    done = f"{report.rows:,} rows written" if lines else "nothing to write"
    late = f", {report.late_rows:,} rows were late" if report.late_rows else ""
    read = f"{report.rows_read:,} rows read{late}"
    return [*lines, f"{done}, {read}; {report.startup_seconds:,.1f} s to start, {report.seconds:,.1f} s to work"]


def _offer_range(dag: DAG | None) -> None:
    """The form that triggers the DAG has two date pickers, unless it has parameters of these names."""
    if dag is None:
        return
    for name, told in _PARAMS.items():
        if name not in dag.params:
            dag.params[name] = Param(None, type=["null", "string"], format="date-time", description=told)


def _cron(dag: DAG) -> str | None:
    """The expression or period of a timetable that triggers runs, and gives them no interval; None: another one."""
    timetable = dag.timetable
    if "Trigger" not in type(timetable).__name__ or "Asset" in type(timetable).__name__:
        return None
    expression = getattr(timetable, "expression", None)
    return str(expression) if expression else f"every {getattr(timetable, 'delta', 'so often')}"
