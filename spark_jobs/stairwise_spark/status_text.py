"""How tables stand, for people: a table, and for each tier a line of time in which characters tell what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from stairwise.instant import format_instant
from stairwise.quantity import counted, quantity, size
from stairwise.tiers import Kind
from stairwise.windowing import Interval
from stairwise.wording import columns, printable, shortened
from stairwise_spark.due import BEGINNING
from stairwise_spark.status import Reason, Status, TierStatus
from stairwise_spark.terminal import WIDEST, Screen, duration

_NARROWEST, _WIDEST_MAP = 8, 72
_READABLE = 40  # columns for words beside the names
# What is not yet has at most this part of what is.
_REST = 4
_DRAWN, _NO_TERMINAL = ("█", "░"), ("#", ".")
_PLAIN = "\033[0m"
# A hole before this many ranges of a tier have been named is worth a line; the others are counted.
_MOST_NAMED = 3


class Cell(Enum):
    """What a stretch of a tier's time is; of several, the later one here is shown."""

    NONE = "nothing asked"
    COVERED = "covered"
    OPEN = "not yet"
    STALE = "covered, but the source is newer"
    GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How cells are drawn."""

    characters: dict[Cell, str]
    colors: dict[Cell, str]

    def drawn(self, cells: Sequence[Cell]) -> str:
        """The characters; each run of one kind in its colour, if there are colours."""
        if not self.colors:
            return "".join(self.characters[cell] for cell in cells).rstrip()
        text, last = "", None
        for cell in cells:
            if cell is not last:
                text += (_PLAIN if last in self.colors else "") + self.colors.get(cell, "")
                last = cell
            text += self.characters[cell]
        return text + (_PLAIN if last in self.colors else "")


_BLOCKS = {Cell.NONE: " ", Cell.COVERED: "█", Cell.OPEN: "·", Cell.STALE: "▒", Cell.GAP: "!"}
_LETTERS = {Cell.NONE: " ", Cell.COVERED: "#", Cell.OPEN: ".", Cell.STALE: "~", Cell.GAP: "!"}
_COLORS = {Cell.COVERED: "\033[32m", Cell.STALE: "\033[33m", Cell.GAP: "\033[31m", Cell.OPEN: "\033[2m"}


def look(screen: Screen) -> Look:
    """How cells are drawn where there are these characters and colours."""
    has_blocks = screen.blocks == _DRAWN
    return Look(
        characters=_BLOCKS if has_blocks else _LETTERS, colors=_COLORS if screen.is_colored else dict[Cell, str]()
    )


def screen(stream: TextIO) -> Screen:
    """What may be drawn on a stream: where it is no terminal, without colours, and as wide as pages are."""
    found = Screen.of(stream)
    if found is not None:
        return found
    return Screen(columns=WIDEST, lines=0, blocks=_NO_TERMINAL if not _can_draw(stream) else _DRAWN)


def _can_draw(stream: TextIO) -> bool:
    try:
        "".join(_BLOCKS.values()).encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def told(status: Status, screen: Screen) -> str:
    """The status for people; no line is wider than the screen."""
    lines = [_headline(status), ""]
    lines += [] if status.is_empty else [*_table(status, screen.columns), "", *_map(status, screen), ""]
    lines += [f"  {each}" for each in (*_findings(status), *_runs(status), *status.notes)]
    return "\n".join(_fitted(lines, screen.columns)).rstrip()


def _headline(status: Status) -> str:
    version = status.clock.version
    source = "" if version is None else f"; the source is at version {version}"
    if status.is_empty:
        return f"{status.rollup}: nothing was made yet{source}. stairwise backfill or run makes it."
    gaps = sum(len(tier.gaps) for tier in status.tiers)
    stale = sum(bool(tier.stale) for tier in status.tiers)
    verdict = counted(gaps, "gap") if gaps else "no gap"
    behind = f", {counted(stale, 'tier')} older than the source" if stale else ""
    return f"{status.rollup}: {verdict}{behind}{source}"


def _table(status: Status, width: int) -> list[str]:
    """The numbers; where there is no room, the last columns are left out."""
    head = ("tier", "rows", "size", "files", "covered until", "lag", "last run")
    rows = [head, *(_cells(tier) for tier in status.tiers)]
    widths = [max(columns(row[number]) for row in rows) for number in range(len(head))]
    widths[0] = min(widths[0], max(8, width // 3))
    shown = 1
    while shown < len(head) and 2 + sum(widths[: shown + 1]) + 2 * shown <= width:
        shown += 1
    return [_aligned(row[:shown], widths) for row in rows]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    name = shortened(first, widths[0])
    cells = [name + " " * (widths[0] - columns(name))]
    cells += [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=False)]
    return f"  {'  '.join(cells)}".rstrip()


def _cells(tier: TierStatus) -> tuple[str, ...]:
    holds, last = tier.holds, tier.last
    numbers = ("?", "?", "?") if holds is None else (_number(holds.rows), size(holds.bytes), quantity(holds.files))
    until = "" if tier.until is None else instant(tier.until)
    lag = "" if tier.lag_s is None else duration(tier.lag_s)
    wrote = "" if last is None else f"{instant(last.at)}, {counted(last.wrote.rows or 0, 'row')}"
    return (_name(tier), *numbers, until, lag, wrote)


def _name(tier: TierStatus) -> str:
    tag = "" if tier.step.tier.kind is Kind.DECLARED else " (helper)"
    return f"{printable(tier.step.tier.name)}{tag}"


def _number(rows: int | None) -> str:
    return "?" if rows is None else quantity(rows)


def _map(status: Status, screen: Screen) -> Iterator[str]:
    """For each tier a line of time, and what its characters mean."""
    span = extent(status)
    names = [_name(tier) for tier in status.tiers]
    width = min(max(map(columns, names)), max(8, screen.columns // 3))
    room = min(screen.columns - width - 4, _WIDEST_MAP)
    if room < _NARROWEST:
        return
    drawing = look(screen)
    for tier, name in zip(status.tiers, names, strict=True):
        short = shortened(name, width)
        cells = heat(tier, span, room)
        yield f"  {short}{' ' * (width - columns(short))}  {drawing.drawn(cells)}"
    yield f"  {' ' * width}  {_scale(span, room)}"
    used = {cell for tier in status.tiers for cell in heat(tier, span, room)} - {Cell.NONE}
    yield from _legend([cell for cell in Cell if cell in used], drawing, screen.columns, width)


def _scale(span: Interval, room: int) -> str:
    """The first and the last instant below their places, as far as both fit."""
    first, last = instant(span.start), instant(span.end)
    if len(first) + 1 + len(last) <= room:
        return f"{first}{last:>{room - len(first)}}"
    return shortened(first, room)


def _legend(cells: Sequence[Cell], drawing: Look, width: int, indent: int) -> Iterator[str]:
    line, margin = "", indent if width - indent >= _READABLE else 0
    for cell in cells:
        entry = f"{drawing.characters[cell]} {cell.value}"
        if line and margin + 4 + len(line) + 3 + len(entry) > width:
            yield f"  {' ' * margin}  {line}"
            line = ""
        line = f"{line}   {entry}" if line else entry
    yield f"  {' ' * margin}  {line}"


def extent(status: Status) -> Interval:
    """The time that a line stands for: what is covered or missing, and as much of what is not yet as leaves it room."""
    starts, ends = list[int](), list[int]()
    for tier in status.tiers:
        known = tier.coverage.stretches
        rows = None if tier.holds is None else tier.holds.ends
        # Whoever covers all of the past begins with its first row.
        starts += [each.start for each in known[:1] if each.start > BEGINNING]
        starts += [each.start for each in tier.gaps[:1] if each.start > BEGINNING]
        starts += [] if rows is None else [rows[0] - (tier.step.tier.range_s or 0)]
        ends += [each.end for each in known[-1:]]
    now = status.clock.now
    start = min(starts, default=now - 1)
    last = max([start + 1, *ends])
    return Interval(start, max(last, min(now, last + (last - start) // _REST)))


def heat(tier: TierStatus, span: Interval, room: int) -> list[Cell]:
    """What each of so many equal stretches of a span is; the worst of what is in it."""
    found = [Cell.NONE] * room
    order = list(Cell)
    for cell, ranges in (
        (Cell.COVERED, tier.covered),
        (Cell.OPEN, tuple(each.span for each in tier.unsealed if each.reason is not Reason.DOUBTFUL)),
        (Cell.STALE, tier.stale),
        (Cell.GAP, tier.gaps),
    ):
        for start, end in ranges:
            first, last = max(start, span.start), min(end, span.end)
            if first < last:
                length = span.end - span.start
                begin = (first - span.start) * room // length
                for place in range(begin, max(begin + 1, -(-(last - span.start) * room // length))):
                    found[place] = max(found[place], cell, key=order.index)
    return found


def _findings(status: Status) -> Iterator[str]:
    """What is missing, out of date or open; tiers of which the same is said together."""
    said: dict[tuple[str, str], list[str]] = {}
    for tier in () if status.is_empty else status.tiers:
        found = {"gap": tier.gaps, "stale": tier.stale}
        for reason in Reason:
            found[f"not sealed, {reason.value}"] = tuple(each.span for each in tier.unsealed if each.reason is reason)
        for what, spans in found.items():
            if spans:
                said.setdefault((what, _named(spans)), []).append(printable(tier.step.tier.name))
    order = ["gap", "stale", *(f"not sealed, {reason.value}" for reason in Reason)]
    for (what, named), tiers in sorted(said.items(), key=lambda each: order.index(each[0][0])):
        yield f"{what}: {named} ({', '.join(tiers)})"


def _named(spans: Sequence[Interval]) -> str:
    named = ", ".join(f"{instant(start)} to {instant(end)}" for start, end in spans[:_MOST_NAMED])
    rest = len(spans) - _MOST_NAMED
    return f"{named} and {rest} more" if rest > 0 else named


def _runs(status: Status) -> Iterator[str]:
    if status.report is not None:
        wrote = "wrote" if status.report.get("wrote_anything") else "found nothing to write"
        yield f"last run: {printable(str(status.report.get('run_id')))} {wrote}"


def _fitted(lines: Sequence[str], width: int) -> Iterator[str]:
    """The lines, those of words broken where they are too wide."""
    for line in lines:
        words = line.split(" ")
        if "\033" in line or columns(line) <= width or len(words) < 2:
            yield line
            continue
        margin = " " * (len(line) - len(line.lstrip()))
        row = margin
        for word in line.split():
            if row.strip() and columns(row) + 1 + columns(word) > width:
                yield row
                row = margin + "  "
            row = f"{row} {word}" if row.strip() else row + shortened(word, max(8, width - columns(row)))
        yield row


def instant(second: int) -> str:
    """An instant, as short as it can be said.

    >>> instant(0), instant(3_600), instant(61), instant(BEGINNING)
    ('1970-01-01', '1970-01-01T01:00Z', '1970-01-01T00:01:01Z', 'the beginning')
    """
    if second <= BEGINNING:
        return "the beginning"
    text = format_instant(second).removesuffix("T00:00:00Z")
    return text.replace(":00Z", "Z") if text.endswith(":00Z") and text.count(":") == 2 else text
