"""What a person sees of a run: how far it is, on standard error, and what it did, in a table.

On a terminal there is a bar for each tier, redrawn in place; elsewhere a line for each tier that is written. Whatever
happens to the stream, the run goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from threading import Event as Signal
from threading import Lock, Thread
from types import TracebackType
from typing import Self, TextIO, assert_never

from stairwise.instant import format_instant
from stairwise.quantity import counted, percent, quantity, size
from stairwise.windowing import Interval
from stairwise_spark.due import BEGINNING
from stairwise_spark.report import ChunkBegun, ChunkDone, Event, RunBegun, RunReport, TierWritten

WIDEST, _NARROWEST_BAR, _WIDEST_BAR = 100, 5, 30
_BLOCKS = ("█", "░")
_NOWHERE = Interval(0, 0)
_REDRAWN_EVERY = 0.5  # seconds, so that one sees that it lives
_GREEN, _PLAIN = "\033[32m", "\033[0m"
_UP_AND_CLEAR = "\033[{}A\033[J"


def duration(seconds: float) -> str:
    """A time that passes, in at most two units.

    >>> [duration(each) for each in (0.4, 59.7, 61, 3_599, 5_400, 200_000)]
    ['0s', '1m 0s', '1m 1s', '59m 59s', '1h 30m', '2d 7h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3_600:
        return f"{whole // 60}m {whole % 60}s"
    if whole < 86_400:
        return f"{whole // 3_600}h {whole % 3_600 // 60}m"
    return f"{whole // 86_400}d {whole % 86_400 // 3_600}h"


@dataclass(slots=True)
class _Bar:
    """How far a tier is: by chunk, since one that lost a race is done again."""

    length: int
    rows: dict[int, int] = field(default_factory=dict[int, int])
    worked: dict[int, int] = field(default_factory=dict[int, int])
    skipped: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def done(self) -> float:
        """The part of the range that is there."""
        there = sum((self.skipped | self.worked).values())
        return there / self.length if self.length else 1.0

    def left(self, elapsed: float) -> float | None:
        """Seconds until the rest is there, if it goes on like this; None: there is nothing to tell by."""
        worked = sum(self.worked.values())
        there = sum((self.skipped | self.worked).values())
        return elapsed * (self.length - there) / worked if worked else None


@dataclass(slots=True)
class Tally:
    """What is known of a run that goes on; time is in seconds from whatever clock."""

    now: float
    chunks: int = 0
    number: int = 0
    span: Interval = _NOWHERE
    bars: dict[str, _Bar] = field(default_factory=dict[str, _Bar])
    _began: float = 0.0
    _due: tuple[str, ...] = ()

    def add(self, event: Event, now: float) -> None:
        """It has happened."""
        self.now = now
        match event:
            case RunBegun():
                self._began, self.chunks = now, event.chunks
                self.bars = {tier: _Bar(event.span.end - event.span.start) for tier in event.tiers}
            case ChunkBegun():
                self.number, self.span, self._due = event.number, event.span, event.due
            case TierWritten():
                bar = self.bars[event.tier]
                bar.rows[event.number] = event.rows
                bar.worked[event.number] = self._length
            case ChunkDone():
                for tier, bar in self.bars.items():
                    (bar.worked if tier in self._due else bar.skipped)[event.number] = self._length
            case _:
                assert_never(event)

    @property
    def _length(self) -> int:
        return self.span.end - self.span.start

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.now - self._began

    def left(self) -> float | None:
        """Seconds until the last tier is there."""
        found = [left for bar in self.bars.values() if (left := bar.left(self.elapsed)) is not None]
        return max(found, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What may be drawn.

    Attributes:
        columns: So many characters in a line.
        lines: So many lines.
        is_colored: Whether it knows colours, and nobody has asked for none.
        blocks: What a bar is made of where it is full, and where it is empty.
    """

    columns: int
    lines: int
    is_colored: bool = False
    blocks: tuple[str, str] = _BLOCKS

    @classmethod
    def of(cls, stream: TextIO) -> Screen | None:
        """The terminal behind a stream; None: there is none, or none that can go back a line."""
        if not stream.isatty() or os.environ.get("TERM") == "dumb":
            return None
        columns, lines = get_terminal_size()
        # The last column stays free: some terminals begin a new line behind it.
        return cls(
            columns=min(columns - 1, WIDEST),
            lines=lines,
            is_colored=not os.environ.get("NO_COLOR"),
            blocks=_BLOCKS if _can_say(stream, "".join(_BLOCKS)) else ("#", "."),
        )


def drawn(tally: Tally, screen: Screen) -> list[str]:
    """The lines that show how far a run is: none is wider than the screen, and all of them fit."""
    if not tally.bars:
        return []
    chunk = f"chunk {tally.number} of {tally.chunks}"
    between = " to ".join(format_instant(each) for each in tally.span)
    head = f"{chunk}: {between}, {duration(tally.elapsed)}" if tally.number else duration(tally.elapsed)
    room = max(1, screen.lines - 3)
    # What is not finished first, if there is not room for all.
    shown = sorted(tally.bars, key=lambda tier: tally.bars[tier].done == 1) if len(tally.bars) > room else tally.bars
    names = [tier for tier in tally.bars if tier in list(shown)[:room]]
    width = min(max(map(len, names)), max(8, screen.columns // 3))
    lines = [head[: screen.columns], *(_line(tier, tally, width, screen) for tier in names)]
    if len(names) < len(tally.bars):
        lines.append(f"  and {counted(len(tally.bars) - len(names), 'tier')} more"[: screen.columns])
    return lines


def _line(tier: str, tally: Tally, width: int, screen: Screen) -> str:
    bar = tally.bars[tier]
    rows = sum(bar.rows.values())
    rate = quantity(round(rows / tally.elapsed)) if tally.elapsed >= 1 else ""
    left = bar.left(tally.elapsed)
    state = "done" if bar.done == 1 else "" if left is None else f"{duration(left)} left"
    name = tier if len(tier) <= width else f"{tier[: width - 1]}~"
    numbers = f"{percent(bar.done):>7}  {quantity(rows):>9} rows  {rate + '/s' if rate else '':>10}  {state:<12}"
    room = screen.columns - (2 + width + 1) - len(numbers)
    if room < _NARROWEST_BAR:
        return f"  {name:{width}}{numbers}"[: screen.columns].rstrip()
    length = min(room, _WIDEST_BAR)
    full, empty = screen.blocks
    filled = int(bar.done * length)
    blocks = f"{full * filled}{empty * (length - filled)}"
    colored = f"{_GREEN}{blocks}{_PLAIN}" if screen.is_colored and bar.done == 1 else blocks
    return f"  {name:{width}} {colored}{numbers}".rstrip()


class Display:
    """Shows a run while it goes on; within ``with``, and told events by any thread.

    Args:
        stream: Where to; None: nowhere.
        clock: Tells the seconds.
    """

    def __init__(self, stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._tally = Tally(clock())
        self._lock = Lock()
        self._ended = Signal()
        self._lines = 0
        self._screen = None if stream is None else Screen.of(stream)
        self._drawing = Thread(target=self._draw_on, name="stairwise-progress", daemon=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self._screen is not None:
            self._drawing.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """End; what was drawn stays."""
        self._ended.set()
        if self._drawing.is_alive():
            self._drawing.join()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        with self._lock:
            self._tally.add(event, self._clock())
            if self._screen is None:
                self._say(told(event, self._tally))
            else:
                self._draw()

    def _draw_on(self) -> None:
        while not self._ended.wait(_REDRAWN_EVERY):
            with self._lock:
                self._tally.now = self._clock()
                self._draw()

    def _draw(self) -> None:
        if self._stream is None:
            return
        # The window may have another size by now.
        self._screen = Screen.of(self._stream)
        if self._screen is None:
            return
        lines = drawn(self._tally, self._screen)
        back = _UP_AND_CLEAR.format(self._lines) if self._lines else ""
        self._lines = len(lines)
        self._write(back + "".join(f"{line}\n" for line in lines))

    def _say(self, line: str) -> None:
        if line:
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        if self._stream is None or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # nobody reads it any more


def told(event: Event, tally: Tally) -> str:
    """The line for an event where nothing can be redrawn; empty: there is nothing to say."""
    chunk = f"chunk {tally.number} of {tally.chunks}"
    match event:
        case RunBegun():
            return ""
        case ChunkBegun():
            return "" if event.due else f"{chunk}: nothing to do"
        case TierWritten():
            taken = f"{counted(event.rows, 'row')}, {size(event.bytes)}, {event.seconds:,.1f} s"
            return f"{chunk}: {event.tier}: {taken}"
        case ChunkDone():
            left = tally.left()
            if tally.chunks == event.number or not left:
                return ""
            return f"{chunk}: done after {duration(tally.elapsed)}, about {duration(left)} left"
        case _:
            assert_never(event)


def summary(report: RunReport) -> str:
    """The report for people."""
    begin = "the beginning" if report.span.start == BEGINNING else format_instant(report.span.start)
    span = f"{begin} to {format_instant(report.span.end)}"
    verdict = "would write" if report.is_dry else "wrote" if report.wrote_anything else "found nothing to write for"
    lines = [f"{report.rollup}: {verdict} windows that end from {span}", ""]
    lines += _table(report)
    lines.append("")
    read = report.source
    files = "" if read.files is None else f" in {counted(read.files, 'file')}"
    large = "" if read.bytes is None or read.files is None else f" of {size(read.bytes)}"
    rows = f"{counted(read.rows, 'row')} read{files}{large}, " if read.rows else ""
    lines.append(f"  {rows}{quantity(report.seconds)} s; session ready after {quantity(report.startup_seconds)} s")
    lines += _said_of_rows(report)
    if report.looked_after.partitions:
        lines.append(f"  small files were put together in {counted(report.looked_after.partitions, 'partition')}")
    if report.looked_after.left:
        lines.append(f"  compaction: {report.looked_after.left}")
    lines += [f"  {way}: {why}" for way, why in report.source.found]
    return "\n".join(lines)


def _said_of_rows(report: RunReport) -> Iterator[str]:
    late, ignored = report.late_rows, report.ignored_rows
    if late:
        dropped = f", of which {quantity(ignored)} came too late to change anything" if ignored else ""
        yield f"  {counted(late, 'row')} came late{dropped}"
    if report.repaired_rows:
        merged = "would be" if report.is_dry else "were"
        yield (
            f"  {counted(report.repaired_rows, 'row')} came for windows of which the source has dropped rows, "
            f"and {merged} merged into what is stored of them"
        )
    if report.unrepairable_rows:
        yield (
            f"  {counted(report.unrepairable_rows, 'row')} came for windows of which the source has dropped rows: "
            "these stay as they are"
        )
    if report.lost:
        yield f"  not to be made any more, for what they are made of is gone: windows of {', '.join(report.lost)}"
    if report.expired:
        yield f"  expired, as declared: windows of {', '.join(report.expired)}"
    if report.null_times:
        yield f"  {quantity(report.null_times)} rows without a time were left out"
    if report.future_rows:
        yield f"  {quantity(report.future_rows)} rows are dated further ahead than the declaration allows, and wait"


def _table(report: RunReport) -> Sequence[str]:
    width = max([4, *(len(tier.name) for tier in report.tiers)])
    lines = [f"  {'tier':{width}}  {'windows':>9}  {'rows':>9}  {'predicted':>9}  {'size':>8}  {'seconds':>7}  reads"]
    for tier in report.tiers:
        predicted = "" if tier.predicted_rows is None else quantity(tier.predicted_rows)
        windows = "" if tier.windows is None else quantity(tier.windows)
        taken = f"{tier.seconds:,.1f}" if tier.wrote else ""
        done = ("", "", "", "") if report.is_dry else (windows, quantity(tier.rows), size(tier.bytes), taken)
        parent = tier.reads or "raw rows"
        lines.append(
            f"  {tier.name:{width}}  {done[0]:>9}  {done[1]:>9}  {predicted:>9}  {done[2]:>8}  {done[3]:>7}  {parent}"
        )
    return lines


def _can_say(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
