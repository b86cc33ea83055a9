"""A sensor that waits until tiers are complete up to an instant, by what their tables claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import BaseSensorOperator, Context

from stairwise.instant import format_instant
from stairwise.json_fields import Fields
from stairwise.windowing import Interval
from stairwise_airflow.errors import refusal, unanswered
from stairwise_airflow.reach import instant, seconds
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
        self._check_tiers(answer)
        run, until = context["dag_run"], instant(self.until, "until")
        if until is None:
            until = seconds(run.data_interval_end or run.run_after)
        open_ones = unsealed(answer, self.tiers, instant(self.since, "since"), until)
        if open_ones:
            self.log.info("not complete up to %s: %s", format_instant(until), ", ".join(open_ones))
        return not open_ones

    def _check_tiers(self, answer: Document) -> None:
        """Every tier is declared, or a helper: one that is neither would be waited for without an end."""
        known = dict.fromkeys([*(window.name for window in self.declaration.windows), *_tiers(answer)])
        for name in self.tiers:
            if name not in known:
                raise refusal(f"there is no tier '{name}'; the tiers are {', '.join(known)}.", "name one of them.")


def unsealed(status: Document, tiers: Sequence[str], since: int | None, until: int) -> list[str]:
    """Those of the tiers that lack a window that ends by an instant."""
    found = _tiers(status)
    return [name for name in tiers if name not in found or not _is_sealed(found[name], since, until)]


def _tiers(status: Document) -> dict[str, Fields]:
    """What is told of each tier, by its name."""
    return {fields.text("name"): fields for fields in Fields.of(status, "status").list_of_fields("tiers")}


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
