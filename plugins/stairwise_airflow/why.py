"""Why a window is there or not: an answer from the plan and the reports of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stairwise.errors import DeclarationError
from stairwise.instant import format_instant, parse_instant
from stairwise.plan import Step
from stairwise.quantity import beside
from stairwise.tiers import Kind
from stairwise.windowing import Interval, windows_at
from stairwise.wording import label
from stairwise_airflow.history import History
from stairwise_airflow.timeline import EARLIER, Coverage, stale


@dataclass(frozen=True, slots=True)
class Question:
    """A window that somebody asks about.

    Attributes:
        tier: The tier's name, as the reader gave it.
        at: An instant in the window, as the reader gave it.
    """

    tier: str
    at: str


def answer(known: History, asked: Question, now: int) -> Iterator[str]:
    """What can be said of the window, a sentence or two at a time."""
    step = next((step for step in known.plan.steps if step.tier.name == asked.tier), None)
    if step is None:
        yield f"There is no tier '{asked.tier}'."
        return
    yield _reason(known, step)
    if not asked.at:
        return
    try:
        instant = parse_instant(asked.at)
    except DeclarationError as error:
        yield str(error)
        return
    if step.tier.window is None:
        yield "It is a helper that cuts time where several windows do, so it has no window of its own."
        return
    try:
        found = windows_at(step.tier.window, instant)[-1]
        said = list(_about(known, step, found, now))
    except OverflowError:
        said = ["Its window is not within the years 1 to 9999, beyond which there are no dates."]
    yield from said


def _reason(known: History, step: Step) -> str:
    read = "the raw rows" if step.reads is None else f"'{label(known.plan.step(step.reads).tier)}'"
    second = step.runner_up
    if second is None:
        return f"'{label(step.tier)}' reads {read}: there was no other way. {step.why}"
    other = "the raw rows" if second.reads is None else f"'{label(known.plan.step(second.reads).tier)}'"
    price = beside(second.cost, step.cost.total)
    return f"'{label(step.tier)}' reads {read}; next best: to read {other}, {price}. {step.why}"


def _about(known: History, step: Step, window: Interval, now: int) -> Iterator[str]:
    own = known.tiers[step.tier.name]
    delay = known.rollup.delay.seconds
    yield f"The window is from {format_instant(window.start)} to {format_instant(window.end)}."
    run = own.run_at(window.end - 1, window.end)
    if run is None:
        yield _expired(known, step, window) or _missing(own, window, now, delay, known.rollup.start)
        return
    yield from _writer(known, step, run)
    if step.reads is None:
        return
    parent = known.tiers[step.reads]
    if any(span.start < window.end and window.start < span.end for span in stale(own, parent)):
        yield f"It is stale: '{step.reads}' was written again since. The next run that reaches back so far mends it."
    elif any(span.start < window.end and window.start < span.end for span in parent.expired):
        yield f"'{step.reads}' holds not all of its time any more: what expired there was kept as long as was declared."
    elif parent.run_at(window.start, window.end) is None:
        yield f"'{step.reads}' does not hold all of its time, so the rest was computed from the raw rows."


def _writer(known: History, step: Step, run: int) -> Iterator[str]:
    if run == EARLIER:
        yield f"It was written by a run whose report is none of the newest {len(known.reports):,}, which are read here."
        return
    report = known.reports[run]
    yield f"It was written last by run {report.run_id}, which was for windows that ended up to {_end(report.span)}."
    done = next(tier for tier in report.tiers if tier.name == step.tier.name)
    if done.reads != step.reads:
        yield f"That run read {done.reads or 'the raw rows'}, by the plan of its time."


def _expired(known: History, step: Step, window: Interval) -> str:
    """That a window was there and is no more; empty: it has not expired."""
    if not any(span.start < window.end <= span.end for span in known.tiers[step.tier.name].expired):
        return ""
    declared = (each.retain for each in known.rollup.windows if each.name == step.tier.name)
    retain = next((each for each in declared if each is not None), None)
    if step.tier.kind is not Kind.DECLARED:
        return "It is not there any more: it has expired, once no window was kept any longer that was made of it."
    length = "were kept as long as was declared then" if retain is None else f"are kept for {retain}, as is declared"
    return f"It is not there any more: it has expired, for windows {length}."


def _missing(own: Coverage, window: Interval, now: int, delay: int, start: int | None) -> str:
    if window.end > now - delay:
        waits = f", and {delay:,} s of delay after that" if delay else ""
        return f"It is not there yet: it is over at {format_instant(window.end)}{waits}."
    if start is not None and window.end <= start:
        return f"It is not there: the declaration starts at {format_instant(start)}."
    if own.end is None:
        return "It is not there: nothing is written of this tier. A backfill fills it."
    if window.end <= own.done[0].start:
        begin = format_instant(own.done[0].start)
        return f"It is not there: history is filled from {begin} on. A backfill goes further."
    if window.end > own.end:
        return f"It is not there: runs have come to {format_instant(own.end)}, and it ends later."
    return "It is not there: it is in a gap between times that are. A backfill of that range fills it."


def _end(span: Interval) -> str:
    return format_instant(span.end)
