"""The commands that need an engine: ``stairwise run`` and ``stairwise backfill``.

The command line of the optimizer finds them as entry points, so that it needs no engine itself. Standard output holds
the answer, standard error everything else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from stairwise import Rollup, optimize
from stairwise.arguments import Parser
from stairwise.codec import to_json
from stairwise.duration import Duration
from stairwise.errors import DeclarationError, UsageError
from stairwise.instant import format_instant, parse_instant
from stairwise.quantity import quantity, size
from stairwise.windowing import Interval

if TYPE_CHECKING:
    from stairwise_spark.engine import Request
    from stairwise_spark.report import RunReport, TierReport
    from stairwise_spark.session import SessionOptions

_Value = TypeVar("_Value")


class Given(argparse.Namespace):
    """What the command line says, with the types that the parser gives it."""

    file: str
    start: int | None
    end: int | None
    chunk: int | None = None
    newest_first: bool = False
    restate: bool
    dry_run: bool
    tiers: tuple[str, ...]
    json: bool
    quick: bool
    master: str | None
    remote: str | None
    spark_conf: list[tuple[str, str]]

    def session(self) -> SessionOptions:
        """Where to run."""
        from stairwise_spark.session import SessionOptions

        return SessionOptions(master=self.master, remote=self.remote, conf=tuple(self.spark_conf), quick=self.quick)

    def request(self) -> Request:
        """What to do."""
        from stairwise_spark.engine import Request

        span = None if self.start is None or self.end is None else Interval(self.start, self.end)
        return Request(
            span=span,
            chunk_s=self.chunk,
            newest_first=self.newest_first,
            restate=self.restate,
            tiers=self.tiers,
            is_dry=self.dry_run,
        )


def run(arguments: Sequence[str]) -> int:
    """Bring every tier up to date for a range; the exit code says how it went."""
    parser = _parser("run", "Write every window that ends in the range, whole, from the events.")
    given = parser.parse_args(arguments, namespace=Given())
    if given.start is None or given.end is None:
        raise UsageError(
            "run needs --start and --end: to find out what is new or changed is not in this version yet.",
            hint="name the range, or use stairwise backfill, which skips what is done.",
        )
    return _done(given)


def backfill(arguments: Sequence[str]) -> int:
    """Fill a range, by default all of the source's; what is done already is not done again."""
    parser = _parser(
        "backfill", "Fill a range from the events, as few scans as fit; go on where an earlier run stopped."
    )
    parser.add_argument("--chunk", metavar="SPAN", type=_seconds, help="event time that is done at once, such as 30d")
    parser.add_argument("--newest-first", action="store_true", help="begin with the last chunk")
    given = parser.parse_args(arguments, namespace=Given())
    if (given.start is None) != (given.end is None):
        raise UsageError("backfill takes --start and --end together, or neither.", hint="add the other one.")
    return _done(given)


def _done(given: Given) -> int:
    if given.start is not None and given.end is not None and given.start >= given.end:
        raise UsageError(
            f"the range from {format_instant(given.start)} to {format_instant(given.end)} is empty.",
            hint="let --end be later than --start.",
        )
    started = time.monotonic()
    plan = optimize(Rollup.from_file(given.file))
    from stairwise_spark import engine
    from stairwise_spark.session import open_session

    spark = open_session(given.session())
    startup = time.monotonic() - started
    progress = _Progress(is_wanted=not given.json)
    report = replace(engine.run(spark, plan, given.request(), progress), startup_seconds=startup)
    print(to_json(report.to_json()) if given.json else _told(report), flush=True)
    return 0


def _parser(name: str, description: str) -> Parser:
    parser = Parser(prog=f"stairwise {name}", description=description, allow_abbrev=False)
    parser.add_argument("file", metavar="FILE", help="a declaration in YAML")
    parser.add_argument("--start", metavar="T", type=_instant, help="windows that end after this instant")
    parser.add_argument("--end", metavar="T", type=_instant, help="and not after this one")
    parser.add_argument("--tiers", metavar="LIST", type=_names, default=(), help="only these windows, by table name")
    parser.add_argument("--restate", action="store_true", help="make windows again that are there already")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    engine = parser.add_argument_group("where to run (default: Spark on this machine)")
    engine.add_argument("--master", metavar="URL", help="a cluster")
    engine.add_argument("--remote", metavar="URL", help="a Spark Connect server, sc://HOST")
    engine.add_argument(
        "--spark-conf", metavar="K=V", type=_setting, action="append", default=[], help="a setting of Spark; repeatable"
    )
    engine.add_argument("--quick", action="store_true", help="start fast rather than run fast, for small work")
    return parser


def _instant(text: str) -> int:
    return _read(parse_instant, text)


def _read(reader: Callable[[str], _Value], text: str) -> _Value:
    """What a text says; what is wrong with it in the words of the command line."""
    try:
        return reader(text)
    except DeclarationError as error:
        raise argparse.ArgumentTypeError(f"{error.message} {error.hint}".rstrip(".")) from error


def _seconds(text: str) -> int:
    seconds = _read(Duration.parse, text).seconds
    if not seconds:
        raise argparse.ArgumentTypeError(f"'{text}' is no time at all")
    return seconds


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


class _Progress:
    """A line for each chunk that is done, on standard error."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._started = time.monotonic()

    def __call__(self, done: int, of: int, tiers: Sequence[TierReport]) -> None:
        """Tell of a chunk."""
        if not self._is_wanted:
            return
        seconds = time.monotonic() - self._started
        rows = sum(tier.rows for tier in tiers)
        left = f", about {quantity(seconds / done * (of - done))} s left" if done < of else ""
        what = f"{quantity(rows)} rows in {len(tiers)} tiers" if tiers else "nothing to do"
        print(f"chunk {done} of {of}: {what}, {quantity(seconds)} s{left}", file=sys.stderr, flush=True)


def _told(report: RunReport) -> str:
    """The report for people."""
    span = f"{format_instant(report.span.start)} to {format_instant(report.span.end)}"
    verdict = "would write" if report.is_dry else "wrote" if report.wrote_anything else "found nothing to write for"
    lines = [f"{report.rollup}: {verdict} windows that end from {span}"]
    width = max(len(tier.name) for tier in report.tiers)
    lines.append("")
    lines.append(f"  {'tier':{width}}  {'rows':>9}  {'predicted':>9}  {'size':>8}  reads")
    for tier in report.tiers:
        predicted = "" if tier.predicted_rows is None else quantity(tier.predicted_rows)
        rows = "" if report.is_dry else quantity(tier.rows)
        taken = "" if report.is_dry else size(tier.bytes)
        lines.append(f"  {tier.name:{width}}  {rows:>9}  {predicted:>9}  {taken:>8}  {tier.reads or 'raw rows'}")
    lines.append("")
    read = f"{quantity(report.rows_read)} rows read, " if report.rows_read else ""
    lines.append(f"  {read}{quantity(report.seconds)} s; session ready after {quantity(report.startup_seconds)} s")
    if report.null_times:
        lines.append(f"  {quantity(report.null_times)} rows without a time were left out")
    return "\n".join(lines)
