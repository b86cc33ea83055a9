"""The commands by which anybody can check the tables: ``stairwise status``, ``verify``, ``why`` and ``maintain``.

The first three read, and change nothing. Standard output holds the answer, standard error everything else.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stairwise import Options, Rollup, optimize
from stairwise.arguments import SPARK, Place, add_place
from stairwise.codec import to_json
from stairwise.command_parser import Parser
from stairwise.errors import StairwiseError, UsageError
from stairwise.instant import format_instant
from stairwise.plan import Plan
from stairwise.windowing import Interval
from stairwise_spark.command_line import count, instant, names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stairwise_spark.maintain import Upkeep
    from stairwise_spark.verify import Check


class Given(Place):
    """What the command line says of each of these commands."""

    file: str
    json: bool
    debug: bool

    def plan(self) -> Plan:
        """The plan of the declaration; the tables may have been filled by another one, which is then found there."""
        return optimize(Rollup.from_file(self.file), Options())

    def session(self) -> SparkSession:
        """A session, which starts fast."""
        from stairwise_spark.session import SessionOptions, open_session

        options = SessionOptions(master=self.master, remote=self.remote, conf=tuple(self.spark_conf), quick=True)
        return open_session(options)


class StatusGiven(Given):
    """What the command line says of status."""

    fail_on_gaps: bool


def status(arguments: Sequence[str]) -> int:
    """Say how the tables stand, by metadata alone; the exit code says whether there are gaps, if that was asked."""
    parser = file_parser("status", "Say what is covered, missing, out of date and not sealed yet. Reads metadata only.")
    parser.add_argument("--fail-on-gaps", action="store_true", help="exit with 1 if a tier has a gap")
    add_answer(parser)
    given = parser.read(arguments, StatusGiven())

    def answer() -> int:
        plan, spark = given.plan(), given.session()
        from stairwise_spark.status import status as looked
        from stairwise_spark.status_text import screen, told

        started = time.monotonic()
        found = looked(spark, plan)
        document = {**found.to_json(), "seconds": round(time.monotonic() - started, 3)}
        print(to_json(document) if given.json else told(found, screen(sys.stdout)), flush=True)
        return int(given.fail_on_gaps and found.has_gaps)

    return answered(given, answer)


class VerifyGiven(Given):
    """What the command line says of verify."""

    start: int | None
    end: int | None
    witness: bool
    sample: int | None
    seed: int | None
    limit: int
    tiers: tuple[str, ...]
    helpers: bool

    def check(self) -> Check:
        """What is to be compared."""
        from stairwise_spark.due import BEGINNING
        from stairwise_spark.verify import Check

        span = None
        if self.start is not None or self.end is not None:
            start = BEGINNING if self.start is None else self.start
            end = int(time.time()) if self.end is None else self.end
            if start >= end:
                raise UsageError(
                    f"the range from {format_instant(start)} to {format_instant(end)} is empty.",
                    hint="let --end be later than --start.",
                )
            span = Interval(start, end)
        check = Check(
            span=span,
            tiers=self.tiers,
            helpers=self.helpers,
            is_witness=self.witness,
            sample=self.sample,
            limit=self.limit,
        )
        return check if self.seed is None else check.seeded(self.seed)


def verify(arguments: Sequence[str]) -> int:
    """Compare the tables with the raw rows; the exit code says whether they are equal."""
    parser = file_parser("verify", "Recompute windows from the raw rows, and compare them with the tables.")
    parser.add_argument("--start", metavar="T", type=instant, help="windows that end after this instant")
    parser.add_argument("--end", metavar="T", type=instant, help="and not after this one")
    parser.add_argument("--tiers", metavar="LIST", type=names, default=(), help="only these, by table name")
    parser.add_argument("--helpers", action="store_true", help="the tiers that nobody asked for too, by their states")
    parser.add_argument("--witness", action="store_true", help="compare the numbers of rows only, which is cheap")
    parser.add_argument("--sample", metavar="N", type=count, help="so many windows of each tier, chosen at random")
    parser.add_argument("--seed", metavar="N", type=count, help="chooses the same windows as a run that printed it")
    parser.add_argument(
        "--limit", metavar="N", type=count, default=1_000, help="tell so many differences at most (default: 1000)"
    )
    add_answer(parser)
    given = parser.read(arguments, VerifyGiven())

    def answer() -> int:
        check, plan, spark = given.check(), given.plan(), given.session()
        from stairwise_spark.verify import verify as compared
        from stairwise_spark.verify_text import told

        proof = compared(spark, plan, check, given.file)
        print(to_json(proof.to_json()) if given.json else told(proof), flush=True)
        return int(proof.total > 0)

    return answered(given, answer)


class WhyGiven(Given):
    """What the command line says of why."""

    tier: str
    instant: int


def why(arguments: Sequence[str]) -> int:
    """Say where the windows of a tier come from that hold an instant."""
    parser = file_parser("why", "Say who wrote the windows that hold an instant, from what, and if they are sealed.")
    parser.add_argument("tier", metavar="TIER", help="the name of its table")
    parser.add_argument("instant", metavar="INSTANT", type=instant, help="such as 2024-01-31T06:00Z")
    add_answer(parser)
    given = parser.read(arguments, WhyGiven())

    def answer() -> int:
        plan, spark = given.plan(), given.session()
        from stairwise_spark.why import why as found

        origin = found(spark, plan, given.tier, given.instant)
        print(to_json(origin.to_json()) if given.json else origin.told(), flush=True)
        return 0

    return answered(given, answer)


class MaintainGiven(Given):
    """What the command line says of maintain."""

    vacuum: bool
    retain_hours: int | None
    force_short_retention: bool
    keep_reports: int
    dry_run: bool

    def upkeep(self) -> Upkeep:
        """What is to be done."""
        from stairwise_spark.maintain import Upkeep

        return Upkeep(
            vacuum=self.vacuum,
            retain_hours=self.retain_hours,
            is_forced=self.force_short_retention,
            reports=self.keep_reports,
            is_dry=self.dry_run,
        )


def maintain(arguments: Sequence[str]) -> int:
    """Keep the tables in order, beside runs: few files, no orphans, not too many reports."""
    parser = file_parser("maintain", "Compact what is sealed, and keep so many reports. Runs may go on meanwhile.")
    parser.add_argument("--vacuum", action="store_true", help="remove files that no recent version needs")
    parser.add_argument(
        "--retain-hours", metavar="H", type=count, help="those of the last H hours stay (default: the table's)"
    )
    parser.add_argument(
        "--force-short-retention", action="store_true", help="let H be shorter than readers and runs are safe with"
    )
    parser.add_argument(
        "--keep-reports", metavar="N", type=count, default=1_000, help="so many reports of runs stay (default: 1000)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    add_answer(parser)
    given = parser.read(arguments, MaintainGiven())

    def answer() -> int:
        upkeep, plan = given.upkeep(), given.plan()
        with _output_of_children_aside():
            spark = given.session()
        from stairwise_spark.maintain import maintain as keep

        kept = keep(spark, plan, upkeep)
        print(to_json(kept.to_json()) if given.json else kept.told(), flush=True)
        return 0

    return answered(given, answer)


@contextmanager
def _output_of_children_aside() -> Generator[None]:
    """Processes that begin within it print to standard error: Delta Lake says on standard output what it removed."""
    ours = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def answered(given: Given, answer: Callable[[], int]) -> int:
    """The exit code of an answer; what Spark said of an error first, if that was asked for."""
    try:
        return answer()
    except StairwiseError:
        if given.debug:
            traceback.print_exc()
        raise


def file_parser(name: str, description: str) -> Parser:
    """The parser of a command that takes a declaration."""
    parser = Parser(name, description)
    parser.add_argument("file", metavar="FILE", help="a declaration in YAML")
    return parser


def add_answer(parser: Parser) -> None:
    """Add the options that all of these commands share, below their own."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_place(parser)
    spark = parser.add_argument_group(SPARK)
    spark.add_argument("--debug", action="store_true", help="if it fails, print all that Spark said of it")
