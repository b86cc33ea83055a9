"""The page of a rollup, as HTML: the staircase, the coverage, the runs, and why.

Everything is in the page itself: it asks for nothing else, and works without a script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from stairwise.instant import format_instant
from stairwise.plan import Plan, Step
from stairwise.quantity import beside, quantity, size
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise.wording import Prices, label, source, way
from stairwise_airflow.history import MOST_REPORTS, History
from stairwise_airflow.markup import Markup, element, joined
from stairwise_airflow.page_style import SCRIPT, style_sheet
from stairwise_airflow.reports import BEGINNING, Report
from stairwise_airflow.timeline import Cell, Coverage, State, cells, stale, union
from stairwise_airflow.why import Question, answer

_CELLS = 180
_SHOWN_RUNS = 25
_DAY = 86_400
SPANS = {"day": _DAY, "week": 7 * _DAY, "month": 31 * _DAY, "year": 366 * _DAY, "all": None}
_KINDS = {Kind.DECLARED: "declared", Kind.FACTOR: "helper", Kind.COMPOSITE: "helper, mixed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a reader wants to see.

    Attributes:
        span: How much time the coverage shows: a key of SPANS.
        run: The run of the engine that is looked at; empty: none.
        question: What the reader asks; None: nothing.
        now: Up to when windows could be written.
    """

    span: str = "all"
    run: str = ""
    question: Question | None = None
    now: int


def document(title: str, *content: str, nonce: str) -> str:
    """A whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style_sheet()), nonce=nonce),
        element("script", Markup(SCRIPT), nonce=nonce),
    )
    return f"<!doctype html>\n{element('html', head, element('body', element('main', *content)), lang='en')}"


def rollup_section(known: History, view: View) -> Markup:
    """All that is known of a rollup."""
    notice = []
    if known.problem:
        found = "What tasks have told Airflow is shown instead." if known.reports else "So there is the plan alone."
        notice = [element("p", f"{known.problem} {found}", class_="notice", role="note")]
    return element(
        "section",
        element("h1", known.rollup.name),
        _facts(known),
        *notice,
        _staircase(known),
        _ribbons(known, view),
        _runs(known, view),
        _why(known, view),
        aria_label=f"Rollup {known.rollup.name}",
    )


def _facts(known: History) -> Markup:
    prices = Prices.of(known.plan)
    totals = known.plan.totals
    declared = [step for step in known.plan.steps if step.tier.kind is Kind.DECLARED]
    helpers = len(known.plan.steps) - len(declared)
    ends = [known.tiers[step.tier.name].end for step in declared]
    last = known.reports[-1] if known.reports else None
    facts = {
        "Tiers": f"{len(declared)}, and {_counted(helpers, 'helper')}" if helpers else str(len(declared)),
        "Cost": prices.text(totals.total),
        "Without sharing": prices.text(totals.unshared),
        "Complete up to": _instant(min(end for end in ends if end is not None))
        if all(ends) and ends
        else "nothing yet",
        "Last run": "none" if last is None else f"{quantity(last.rows)} rows in {quantity(last.seconds)} s",
    }
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", fact)) for name, fact in facts.items()),
        class_="facts",
    )


def _staircase(known: History) -> Markup:
    plan = known.plan
    most = max((float(step.cost.total) for step in plan.steps), default=0.0)
    prices = Prices.of(plan)

    def below(name: str | None) -> Markup:
        steps = plan.readers(name)
        if not steps:
            return Markup("")
        return element(
            "ol", *(element("li", _step(known, step, prices, most), below(step.tier.name)) for step in steps)
        )

    raw = element("span", source(plan) or "the raw rows", class_="raw")
    return element(
        "section",
        element("h2", "The staircase", id="stairs"),
        element("p", "Each tier is made of the one that it stands below. Open one to see why.", class_="quiet"),
        element("p", f"Costs are {prices.explanation}.", class_="quiet"),
        element("ol", element("li", raw, below(None)), class_="stairs"),
        aria_labelledby="stairs",
    )


def _step(known: History, step: Step, prices: Prices, most: float) -> Markup:
    plan = known.plan
    parent = None if step.reads is None else plan.step(step.reads).tier
    rows = step.cost.rows_written
    share = float(step.cost.total) / most if most else 0.0
    actual = _actual(known, step.tier.name)
    next_best = step.runner_up
    told = [
        element("p", step.why),
        element(
            "p",
            "There was no other way."
            if next_best is None
            else f"Next best: from {next_best.reads or 'the raw rows'}, {beside(next_best.cost, step.cost.total)}.",
        ),
        element("p", "Table ", element("code", step.tier.name), f". {actual}", class_="quiet"),
    ]
    return element(
        "details",
        element(
            "summary",
            element(
                "span", label(step.tier), " ", element("span", _KINDS[step.tier.kind], class_="tag"), class_="name"
            ),
            element("span", way(step.tier, parent, step.how), class_="how quiet"),
            element("span", "" if rows is None else f"{quantity(rows)} rows", class_="number"),
            element("span", prices.text(step.cost.total), class_="number cost"),
            element("span", element("i", style=f"width:{share:.1%}"), class_="bar", aria_hidden="true"),
        ),
        element("div", *told),
        class_=f"step {step.tier.kind.value}",
    )


def _actual(known: History, tier: str) -> str:
    for run in reversed(tuple(known.tiers[tier].reach)):
        for done in known.reports[run].tiers:
            if done.name == tier and done.rows:
                return f"Last written: {quantity(done.rows)} rows, {size(done.bytes)}, {done.seconds:,.1f} s."
    return "Not written yet." if known.tiers[tier].end is None else "Written by earlier runs alone."


def _ribbons(known: History, view: View) -> Markup:
    everything = union(span for tier in known.tiers.values() for span in tier.done)
    if not everything:
        told = element("p", "No run has written anything yet.", class_="quiet")
        return element("section", element("h2", "Coverage", id="coverage"), told, aria_labelledby="coverage")
    span = _shown_span(_since_events(everything, known.earliest), view)
    rows: list[Markup] = []
    for step in known.plan.steps:
        own = known.tiers[step.tier.name]
        old = () if step.reads is None else stale(own, known.tiers[step.reads])
        found = cells(own, old, span, _CELLS)
        rows.append(element("span", label(step.tier), class_="label", aria_hidden="true"))
        rows.append(
            element(
                "div",
                element("span", _in_words(label(step.tier), own, old), class_="hidden"),
                *(_cell(each) for each in found),
                class_="ribbon",
            )
        )
    middle = (span.start + span.end) // 2
    axis = element("div", *(element("span", _instant(at)) for at in (span.start, middle, span.end)), class_="axis")
    return element(
        "section",
        element("h2", "Coverage", id="coverage"),
        _span_links(view),
        element("div", *rows, axis, class_="ribbons"),
        _legend(),
        *_reach(known),
        aria_labelledby="coverage",
    )


def _reach(known: History) -> Iterable[Markup]:
    """What the coverage does not tell where not all reports were read."""
    read = len(known.reports)
    if known.runs <= MOST_REPORTS:
        return
    if known.knows_before:
        told = f"What is stale or written again is told by the newest {read:,} of {known.runs:,} runs."
    else:
        told = (
            f"This is told by the newest {read:,} of {known.runs:,} runs; what was written before is not shown. The "
            "next run leaves a list of it."
        )
    yield element("p", told, class_="quiet")


def _since_events(everything: tuple[Interval, ...], earliest: int | None) -> Interval:
    """All that is covered; runs that are for all that there is cover two thousand years before the first event too."""
    begin, end = everything[0].start, everything[-1].end
    return Interval(earliest if begin <= BEGINNING and earliest is not None and earliest < end else begin, end)


def _shown_span(everything: Interval, view: View) -> Interval:
    begin, end = everything
    # Somewhat beyond the end, so that what is not written yet is to be seen.
    end = max(end, min(view.now, end + max(1, (end - begin) // 20)))
    length = SPANS.get(view.span)
    return Interval(begin if length is None else max(begin, end - length), end)


def _cell(cell: Cell) -> Markup:
    again = ", and a part of it was written again" if cell.is_rewritten else ""
    return element(
        "span",
        class_=f"cell {cell.state.value}{' again' if cell.is_rewritten else ''}",
        style=f"flex:{cell.span.end - cell.span.start}",
        title=f"{_instant(cell.span.start)} to {_instant(cell.span.end)}: {cell.state.meaning}{again}",
        aria_hidden="true",
    )


def _in_words(name: str, own: Coverage, old: tuple[Interval, ...]) -> str:
    if not own.done:
        return f"{name}: nothing is written."
    parts = (
        [f"{name}: written {_in_time(Interval(own.covered[0].start, own.covered[-1].end))}"]
        if own.covered
        else [f"{name}: nothing is there any more"]
    )
    parts += [f"expired up to {_instant(own.expired[-1].end)}"] if own.expired else []
    parts += [_counted(len(own.gaps), "gap") if own.gaps else "no gap"]
    parts += [f"stale in {_counted(len(old), 'range')}"] if old else []
    parts += [f"written again in {_counted(len(own.rewritten), 'range')}"] if own.rewritten else []
    return f"{', '.join(parts)}."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _span_links(view: View) -> Markup:
    links = (
        element("a", name, href=f"?span={name}#coverage", aria_current="true" if name == view.span else None)
        for name in SPANS
    )
    return element("nav", *links, class_="spans", aria_label="How much time is shown")


def _legend() -> Markup:
    entries = [(state.value, state.meaning) for state in State]
    entries.append(("written again", "a part of it was written again, for late rows or a restatement"))
    return element(
        "ul",
        *(element("li", element("span", class_=f"cell {name}", aria_hidden="true"), text) for name, text in entries),
        class_="legend",
    )


def _runs(known: History, view: View) -> Markup:
    head = ("Run", "Windows that ended", "Rows", "Predicted rows", "Bytes", "Predicted bytes", "Seconds",
            "Predicted seconds", "Late rows", "Rows read")  # fmt: skip
    shown = list(reversed(known.reports[-_SHOWN_RUNS:]))
    if not shown:
        told: Markup = element("p", "No run has left a report yet.", class_="quiet")
    else:
        header = element("tr", *(_head(name, index) for index, name in enumerate(head)))
        body = (_run_row(report, known.plan, view) for report in shown)
        told = element(
            "div",
            element("table", element("thead", header), element("tbody", *body)),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Table of runs",
        )
    more = known.runs - len(shown)
    rest = [element("p", f"And {more:,} earlier ones.", class_="quiet")] if more else []
    return element("section", element("h2", "Runs", id="runs"), told, *rest, aria_labelledby="runs")


def _head(name: str, index: int) -> Markup:
    return element("th", name, scope="col", class_=None if index < 2 else "number")


def _run_row(report: Report, plan: Plan, view: View) -> Markup:
    unknown = "unknown" if report.rows else ""
    predicted = _predicted(report, plan)
    rows, stored, seconds = (unknown,) * 3 if predicted is None else predicted
    numbers = (
        quantity(report.rows),
        rows,
        size(report.bytes) if report.bytes else "",
        stored,
        f"{report.seconds:,.1f}",
        seconds,
        "unknown" if report.late_rows is None else quantity(report.late_rows),
        quantity(report.rows_read),
    )
    span = _in_time(report.span).removeprefix("from ")
    return element(
        "tr",
        element("th", element("code", report.run_id), scope="row"),
        element("td", span),
        *(element("td", number, class_="number") for number in numbers),
        class_="chosen" if report.run_id == view.run else None,
    )


def _predicted(report: Report, plan: Plan) -> tuple[str, str, str] | None:
    """The rows, bytes and seconds that the plan has for what a run wrote; None: it does not say."""
    costs = {step.tier.name: step.cost for step in plan.steps}
    rows = stored = seconds = 0.0
    for tier in report.tiers:
        cost = costs.get(tier.name)
        if not tier.rows:
            continue
        if cost is None or not cost.rows_written or cost.bytes_written is None or tier.predicted_rows is None:
            return None
        part = tier.predicted_rows / cost.rows_written
        rows += tier.predicted_rows
        stored += part * cost.bytes_written
        seconds += part * float(cost.total)
    return (quantity(round(rows)), size(stored), f"{seconds:,.1f}") if rows else None


def _why(known: History, view: View) -> Markup:
    asked = view.question
    options = (
        element(
            "option",
            label(step.tier),
            value=step.tier.name,
            selected=asked is not None and asked.tier == step.tier.name,
        )
        for step in known.plan.steps
    )
    form = element(
        "form",
        element("input", type="hidden", name="span", value=view.span),
        element("label", "Tier", element("select", *options, name="tier")),
        element(
            "label",
            "An instant in the window",
            element(
                "input", name="at", size="22", placeholder="2026-03-01T05:30Z", value="" if asked is None else asked.at
            ),
        ),
        element("button", "Why?", type="submit"),
        action="#why",
        method="get",
    )
    said: Iterable[str] = () if asked is None else answer(known, asked, view.now)
    lines = [element("p", line) for line in said]
    return element(
        "section",
        element("h2", "Why", id="why"),
        element("p", "Why a window is there or not, and what it was made of.", class_="quiet"),
        form,
        *([element("div", *lines, class_="answer", role="status")] if lines else []),
        aria_labelledby="why",
    )


def index(dags: Iterable[tuple[str, tuple[str, ...]]], nonce: str) -> str:
    """The list of DAGs with rollups."""
    rows = [
        element("li", element("a", dag, href=f"dags/{_quoted(dag)}"), joined([": ", ", ".join(names)]))
        for dag, names in dags
    ]
    empty = element("p", "No DAG that you may see has a rollup.", class_="quiet")
    return document("Rollups", element("h1", "Rollups"), element("ul", *rows) if rows else empty, nonce=nonce)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _in_time(span: Interval) -> str:
    if span.start <= BEGINNING:
        return f"up to {_instant(span.end)}"
    return f"from {_instant(span.start)} to {_instant(span.end)}"


def _instant(instant: int) -> str:
    moment = datetime.fromtimestamp(instant, UTC)
    if moment.hour or moment.minute or moment.second:
        return format_instant(instant).replace("T", " ").removesuffix(":00Z").removesuffix("Z")
    return moment.date().isoformat()
