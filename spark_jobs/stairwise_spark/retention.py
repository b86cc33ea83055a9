"""How long rows are kept: by the source, which drops its own, and by tables, whose rows go once nobody needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pyspark.sql import functions as F

from stairwise.aggregate import Sharing
from stairwise.plan import Plan, Step
from stairwise.rollup import Late, Rollup
from stairwise.span import Span
from stairwise.tiers import Kind, Tier
from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.arrangement import PART
from stairwise_spark.changes import before
from stairwise_spark.compute import events, held, touched
from stairwise_spark.contents import contents, newest_files
from stairwise_spark.coverage import DOUBTFUL, EXPIRED, Coverage, State
from stairwise_spark.due import BEGINNING, available
from stairwise_spark.errors import translating
from stairwise_spark.rows import Rows
from stairwise_spark.source import PinnedSource
from stairwise_spark.spans import FEW, Spans, hull, joined, merged, without
from stairwise_spark.storage import Storage
from stairwise_spark.writes import Write


def kept_since(rollup: Rollup, now: int) -> int | None:
    """The instant from which on the source has all of its rows still; None: it keeps them for ever."""
    return None if rollup.source.retain is None else before(now, rollup.source.retain)


def reads_back(rollup: Rollup, tier: Tier) -> bool:
    """Whether the rows of a tier can be read from its table: results that do not merge cannot."""
    return tier.keeps_values or all(each.sharing is not Sharing.HOLISTIC for _, each in rollup.aggregates)


def extent(
    rollup: Rollup, plan: Plan, source: PinnedSource, storage: Storage, span: Interval, version: int | None
) -> Spans:
    """When all the events happened of windows that end in a range, or longer.

    Also of those that the source has dropped and a table still tells of. If a table holds all of them, or a log says
    when they were, no event is read for that.

    Args:
        rollup: What is declared.
        plan: All tiers.
        source: Where events are.
        storage: What is known of the tables.
        span: The range.
        version: Of the source, which tables have to reflect for that; None: none is asked.
    """
    tiers = sorted((step.tier for step in plan.steps if step.tier.name in storage.known), key=lambda tier: tier.rate)
    filled = {tier.name: storage.known[tier.name].coverage for tier in tiers}
    told: Spans = ()
    if rollup.source.retain is not None:
        coarsest = next((tier for tier in tiers if filled[tier.name].stretches), None)
        told = () if coarsest is None else _held_by(coarsest, storage)
    # Rows that came too late to be followed are in no table, and tables reflect their version all the same.
    elif source.version is not None and version is not None and followed_from(rollup) is None:
        for tier in tiers:
            is_whole = not without((span,), available(filled[tier.name], version))
            if is_whole and tier.window is not None and tier.window.is_tumbling:
                # After its last window's end are events of windows that have ended, though this one has not.
                last = held(tier, touched(tier, Interval(span.end - 1, span.end)))
                return merged([*_held_by(tier, storage), Interval(last.start, span.end)], FEW)
    there = source.told_extent() or source.extent()
    return joined([hull(joined([*told, *filter(None, [there])]))])


def _held_by(tier: Tier, storage: Storage) -> Spans:
    """When windows in a table were, by its log if that says it, or longer."""
    with translating(f"tier {tier.name}"):
        table, state = storage.tables()[tier.name], storage.known[tier.name]
        logs = newest_files([table], state.version)
        known = contents(logs)[table] if logs[table].newest == state.version else None
        mine = [part.ends for part in known or () if part.rows != 0 and part.window in {None, tier.name}]
        ends = [each for each in mine if each is not None]
        if known is not None and len(ends) == len(mine):
            windows = (Interval(first - 1, last) for first, last in ends)
            return joined(held(tier, each) for each in windows)
        rows = storage.stored(tier.name, state.version)
        bounds = F.unix_seconds(F.min("window_start")), F.unix_seconds(F.max("window_end"))
        found = rows.agg(*bounds).collect()[0]
    return () if found[0] is None else (Interval(found[0], found[1]),)


def followed_from(rollup: Rollup) -> Callable[[int], int] | None:
    """Says from which event time on late rows change windows, by how far tables reach; None: however late they are."""
    lateness = Span() if rollup.late is Late.IGNORE else rollup.lateness
    return None if lateness is None else partial(before, span=lateness)


def expiry(plan: Plan, rollup: Rollup, storage: Storage, now: int) -> tuple[dict[str, Spans], list[Write]]:
    """Which windows of each tier go, as ranges of their ends, and the writes by which they do."""
    days = {name: storage.arrangement.days(name) for name in storage.tiers}
    gone = expiring(plan, rollup, storage.known, now, days)
    writes = [
        Write(
            tier=name,
            rows=Rows(storage.stored(name, storage.known[name].version).limit(0).drop(PART.name)),
            ends=spans,
            starts=events(plan.step(name).tier, spans),
            coverage=Coverage.of_all(spans, EXPIRED),
        )
        for name, spans in gone.items()
    ]
    return gone, writes


def expiring(
    plan: Plan, rollup: Rollup, states: Mapping[str, State], now: int, days: Mapping[str, int]
) -> dict[str, Spans]:
    """Which windows go, as ranges of their ends: those that were kept as long as was declared.

    Of a helper, those go of which every window that was made of them has gone. It follows its readers by a run, so that
    none of them is left without, whichever of the commits fails.

    But for those that a coarser window is made of which is not written yet; nor, if the source drops its own rows, for
    those of which a coarser window is made that a row may still change which comes as late as is declared.

    Args:
        plan: Which tier is made of which.
        rollup: What is declared.
        states: What tiers reflect, by name.
        now: In seconds.
        days: The length of the parts of each table: as long as none of them goes as a whole, nothing does.
    """
    found: dict[str, Spans] = {}
    for step in plan.steps:
        name, until = step.tier.name, _kept_until(plan, rollup, step, states, now)
        if until is None or name not in states:
            continue
        last = min([until, *_needed(plan, rollup, step, states, now)])
        length = days[name] * DAY_SECONDS
        whole = Interval(BEGINNING, last // length * length)
        there = joined(
            Interval(each.start, each.end)
            for each in states[name].coverage.stretches
            if DOUBTFUL < each.version < EXPIRED
        )
        if gone := joined(
            Interval(max(each.start, whole.start), min(each.end, whole.end)) for each in there if each.start < whole.end
        ):
            found[name] = gone
    return found


def _kept_until(plan: Plan, rollup: Rollup, step: Step, states: Mapping[str, State], now: int) -> int | None:
    """The instant before which windows may go, as far as others do not need them; None: all of them stay."""
    if step.tier.kind is Kind.DECLARED:
        span = next((each.retain for each in rollup.windows if each.name == step.tier.name), None)
        return None if span is None else before(now, span)
    found: list[int] = []
    for reader in plan.readers(step.tier.name):
        coverage = states[reader.tier.name].coverage if reader.tier.name in states else Coverage()
        if not coverage.stretches or coverage.stretches[0].version != EXPIRED:
            return None
        since = coverage.stretches[0].end
        found.append(held(reader.tier, touched(reader.tier, Interval(since, since + 1))).start)
    return min(found, default=None)


def _needed(plan: Plan, rollup: Rollup, step: Step, states: Mapping[str, State], now: int) -> Iterator[int]:
    """Where the windows begin that are still needed, for one reason or another."""
    for reader in plan.readers(step.tier.name):
        coverage = states[reader.tier.name].coverage if reader.tier.name in states else Coverage()
        written = joined(Interval(each.start, each.end) for each in coverage.stretches if each.version > DOUBTFUL)
        beginning = written[0].start if written else BEGINNING
        open_ = without((Interval(beginning, touched(reader.tier, Interval(now - 1, now)).end),), written)
        yield from (held(reader.tier, span).start for span in open_[:1])
        if rollup.source.retain is not None and rollup.late is Late.CORRECT and rollup.lateness is not None:
            late = before(now, rollup.lateness)
            yield min(late, held(reader.tier, touched(reader.tier, Interval(late - 1, late))).start)
