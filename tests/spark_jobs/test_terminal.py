"""What a person sees of a run, without a run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from stairwise.windowing import Interval
from stairwise_spark.report import (
    ChunkBegun,
    ChunkDone,
    Event,
    RunBegun,
    RunReport,
    SourceReport,
    TierReport,
    TierWritten,
)
from stairwise_spark.terminal import WIDEST, Display, Screen, Tally, drawn, summary

DAY = 86_400


@dataclass
class Clock:
    """Shows what it is set to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """Somebody looks at it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    """Nobody reads it any more."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def wrote(number: int, tier: str, rows: int, seconds: float = 2.04) -> TierWritten:
    return TierWritten(number=number, tier=tier, rows=rows, bytes=rows * 40, seconds=seconds)


def chunk(number: int, *due: str) -> ChunkBegun:
    return ChunkBegun(number=number, span=Interval((number - 1) * DAY, number * DAY), due=due)


BEGUN = RunBegun(span=Interval(0, 4 * DAY), chunks=4, tiers=("5m", "1h_every_15m"))
STORY: Sequence[tuple[float, Event]] = (
    (10, BEGUN),
    (10, chunk(1)),
    (10, ChunkDone(number=1)),
    (10, chunk(2, "5m", "1h_every_15m")),
    (40, wrote(2, "5m", 120_000)),
    # Another run was faster with the other one: the chunk is done again, and this tier is there.
    (45, chunk(2, "1h_every_15m")),
    (70, wrote(2, "1h_every_15m", 40_000)),
    (70, ChunkDone(number=2)),
    (70, chunk(3, "5m", "1h_every_15m")),
    (90, wrote(3, "5m", 120_000)),
)


def tally(story: Sequence[tuple[float, Event]] = STORY) -> Tally:
    found = Tally(0.0)
    for now, event in story:
        found.add(event, now)
    return found


def test_a_bar_for_each_tier() -> None:
    assert drawn(tally(), Screen(columns=99, lines=24)) == [
        "chunk 3 of 4: 1970-01-03T00:00:00Z to 1970-01-04T00:00:00Z, 1m 20s",
        "  5m           ██████████████████████░░░░░░░░   75 %    240,000 rows     3,000/s  40s left",
        "  1h_every_15m ███████████████░░░░░░░░░░░░░░░   50 %     40,000 rows       500/s  2m 40s left",
    ]


def test_what_is_done_is_green_where_colours_are_known() -> None:
    done = tally([*STORY, (100, wrote(3, "1h_every_15m", 1)), (100, ChunkDone(number=3)), (100, chunk(4, "5m"))])
    done.add(wrote(4, "5m", 5), 110)
    first, second = drawn(done, Screen(columns=69, lines=24, is_colored=True, blocks=("#", ".")))[1:]
    assert first == "  5m           \033[32m#####\033[0m  100 %    240,005 rows     2,400/s  done"
    assert "\033" not in second


@pytest.mark.parametrize("columns", [1, 10, 30, 45, 60, 79, WIDEST])
@pytest.mark.parametrize("lines", [1, 4, 5, 24])
def test_it_fits(columns: int, lines: int) -> None:
    many = RunBegun(span=Interval(0, 4 * DAY), chunks=4, tiers=("a" * 70, *(f"tier_{each}" for each in range(9))))
    found = drawn(
        tally([(10, many), *((now, event) for now, event in STORY[1:3])]), Screen(columns=columns, lines=lines)
    )
    assert max(map(len, found)) <= columns
    assert len(found) < max(lines, 4)


def test_what_is_not_done_is_shown_first() -> None:
    tiers = ("a", "b", "c", "d")
    found = tally([(0, RunBegun(span=Interval(0, DAY), chunks=1, tiers=tiers)), (0, chunk(1, *tiers))])
    found.add(wrote(1, "a", 1), 5)
    lines = drawn(found, Screen(columns=79, lines=5))
    assert [line.split()[0] for line in lines[1:3]] == ["b", "c"]
    assert lines[3] == "  and 2 tiers more"


def test_elsewhere_a_line_for_each_tier() -> None:
    clock, stream = Clock(), io.StringIO()
    with Display(stream, clock) as display:
        for clock.now, event in STORY:
            display(event)
        clock.now = 110
        display(wrote(3, "1h_every_15m", 1, 0.02))
        display(ChunkDone(number=3))
    assert stream.getvalue().splitlines() == [
        "chunk 1 of 4: nothing to do",
        "chunk 2 of 4: 5m: 120,000 rows, 4.80 MB, 2.0 s",
        "chunk 2 of 4: 1h_every_15m: 40,000 rows, 1.60 MB, 2.0 s",
        "chunk 2 of 4: done after 1m 0s, about 2m 0s left",
        "chunk 3 of 4: 5m: 120,000 rows, 4.80 MB, 2.0 s",
        "chunk 3 of 4: 1h_every_15m: 1 row, 40 B, 0.0 s",
        "chunk 3 of 4: done after 1m 40s, about 50s left",
    ]


def test_on_a_terminal_it_is_redrawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "80"), ("LINES", "24"), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    clock, stream = Clock(), Terminal()
    with Display(stream, clock) as display:
        for clock.now, event in STORY:
            display(event)
    before, *_, last = stream.getvalue().split("\033[3A\033[J")
    assert before.count("\n") == 3
    assert last.splitlines() == drawn(tally(), Screen(columns=79, lines=24))


@pytest.mark.parametrize(("term", "is_one"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_is_none(term: str, *, is_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    assert (Screen.of(Terminal()) is not None) == is_one
    assert Screen.of(io.StringIO()) is None


def test_a_terminal_without_blocks_has_bars_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    stream.encoding = "latin-1"
    screen = Screen.of(stream)
    assert screen is not None
    assert (screen.blocks, screen.is_colored) == (("#", "."), True)


@pytest.mark.parametrize("stream", [None, Closed()])
def test_a_run_needs_nobody_who_looks(stream: io.StringIO | None) -> None:
    with Display(stream) as display:
        for _, event in STORY:
            display(event)


def test_the_report_for_people() -> None:
    hour = TierReport(
        name="1h",
        reads=None,
        predicted_rows=1_200_000.0,
        ranges=(Interval(0, DAY),),
        windows=24,
        rows=120,
        files=1,
        bytes=4_110,
        version=1,
        seconds=3.26,
        wrote=True,
    )
    report = RunReport(
        rollup="trips",
        run_id="r",
        span=Interval(0, DAY),
        source=SourceReport(version=3, rows=1_440, files=1, bytes=102_395),
        tiers=(hour, TierReport(name="4h", reads="1h", predicted_rows=None, windows=None)),
        null_times=2,
        seconds=5.4,
        startup_seconds=1.25,
    )
    assert summary(report).splitlines() == [
        "trips: wrote windows that end from 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z",
        "",
        "  tier    windows       rows  predicted      size  seconds  reads",
        "  1h           24        120     1.20 M   4.11 kB      3.3  raw rows",
        "  4h                       0                  0 B           1h",
        "",
        "  1,440 rows read in 1 file of 102 kB, 5.40 s; session ready after 1.25 s",
        "  2 rows without a time were left out",
    ]
