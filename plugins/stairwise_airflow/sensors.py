"""A sensor that waits until tiers are complete up to an instant, by what their tables claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import BaseSensorOperator, Context

from stairwise.errors import DeclarationError
from stairwise.instant import format_instant, parse_instant
from stairwise.json_fields import Fields
from stairwise.windowing import Interval
from stairwise_airflow.errors import refusal, unanswered
from stairwise_airflow.reports import Document, intervals
from stairwise_airflow.submitting import SparkTask


class RollupStatusSensor(SparkTask, BaseSensorOperator):
    """Waits until every window that ends by an instant is there, in the tiers that are named, or in all.

    It looks with Spark, so it does so rarely, and lets its slot go meanwhile.

    Args:
        until: The instant, in ISO 8601 with a zone (templated); None: the end of the run's interval.
        since: From when on there must be no gap (templated); None: the first window that is there.
        tiers: By table name; none: all declared tiers.
        kwargs: What :class:`SparkTask` and BaseSensorOperator take.
    """

    command = "status"
    template_fields: Sequence[str] = (*SparkTask.template_fields, "until", "since")

    def __init__(
        self,
        *,
        until: str | None = None,
        since: str | None = None,
        tiers: Sequence[str] = (),
        **kwargs: Any,  # noqa: ANN401 - what the two bases take
    ) -> None:
        kwargs.setdefault("mode", "reschedule")
        kwargs.setdefault("poke_interval", 300)
        super().__init__(**kwargs)
        self.until = until
        self.since = since
        self.tiers = tuple(tiers) or tuple(window.name for window in self.declaration.windows)

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - as the sensor's
        """The tiers are complete."""
        return BaseSensorOperator.execute(self, context)

    def poke(self, context: Context) -> bool:
        """Whether the tiers are complete now."""
        answer = self.answered(context, [])
        if answer is None:
            raise unanswered(self.command)
        run = context["dag_run"]
        try:
            until = parse_instant(self.until or (run.data_interval_end or run.run_after).isoformat())
            since = None if self.since is None else parse_instant(self.since)
        except DeclarationError as error:
            raise refusal(error.message, error.hint) from error
        open_ones = unsealed(answer, self.tiers, since, until)
        if open_ones:
            self.log.info("not complete up to %s: %s", format_instant(until), ", ".join(open_ones))
        return not open_ones


def unsealed(status: Document, tiers: Sequence[str], since: int | None, until: int) -> list[str]:
    """Those of the tiers that lack a window that ends by an instant."""
    found = {fields.text("name"): fields for fields in Fields.of(status, "status").list_of_fields("tiers")}
    return [name for name in tiers if name not in found or not _is_sealed(found[name], since, until)]


def _is_sealed(tier: Fields, since: int | None, until: int) -> bool:
    covered = sorted(intervals(tier, "covered"))
    if not covered:
        return False
    begin = covered[0].start if since is None else since
    return _reaches(covered, begin) >= until


def _reaches(covered: Sequence[Interval], begin: int) -> int:
    """How far the ranges go on from there without a gap."""
    end = begin
    for span in covered:
        if span.start > end:
            break
        end = max(end, span.end)
    return end
