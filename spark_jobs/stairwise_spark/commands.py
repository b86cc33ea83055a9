"""The commands that need an engine: ``stairwise run``, ``stairwise backfill``, ``stairwise calibrate``.

The command line of the optimizer finds them as entry points, so that it needs no engine itself. Standard output holds
the answer, standard error everything else.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stairwise import Options, Rollup, optimize
from stairwise.arguments import SPARK, Place, add_constants, add_place
from stairwise.calibration import chosen, encode_calibration, place, write_calibration
from stairwise.codec import decode_plan, to_json
from stairwise.command_parser import Parser
from stairwise.constants import Calibration, Constants
from stairwise.errors import CodecError, StairwiseError, UsageError
from stairwise.instant import format_instant
from stairwise.json_fields import HINT
from stairwise.measured import Measured
from stairwise.quantity import beside, quantity
from stairwise.windowing import Interval
from stairwise_spark.command_line import instant, names, seconds

if TYPE_CHECKING:
    from stairwise.drift import Counted
    from stairwise.plan import Plan
    from stairwise_spark.scope import Request, Scope
    from stairwise_spark.session import SessionOptions


class Given(Place):
    """What the command line says, with the types that the parser gives it."""

    file: str
    start: int | None
    end: int | None
    since: int | None = None
    report: str | None
    chunk: int | None = None
    newest_first: bool = False
    restate: bool
    dry_run: bool
    tiers: tuple[str, ...]
    apply_additive: bool
    accept_deletes: bool
    json: bool
    quick: bool
    constants: str | None
    debug: bool

    def session(self) -> SessionOptions:
        """Where to run."""
        from stairwise_spark.session import SessionOptions

        return SessionOptions(master=self.master, remote=self.remote, conf=tuple(self.spark_conf), quick=self.quick)

    def options(self) -> Options:
        """How to plan."""
        return Options(calibration=chosen(self.constants))

    def request(self, otherwise: Scope) -> Request:
        """What to do; without a start, something else than a range."""
        from stairwise_spark.scope import Request

        return Request(
            span=otherwise if self.start is None or self.end is None else Interval(self.start, self.end),
            chunk_s=self.chunk,
            newest_first=self.newest_first,
            restate=self.restate,
            tiers=self.tiers,
            is_dry=self.dry_run,
            accepts_deletes=self.accept_deletes,
        )


def run(arguments: Sequence[str]) -> int:
    """Bring every tier up to date for a range; the exit code says how it went."""
    parser = _parser(
        "run",
        "Bring up to date every window that is new or that a change of the source touches; with --start and --end, "
        "write every window that ends in the range.",
    )
    parser.add_argument(
        "--since", metavar="T", type=instant, help="without --start: where to begin if nothing was ever made"
    )
    _add_common(parser)
    given = parser.read(arguments, Given())
    if given.start is not None and given.end is None:
        raise UsageError("run takes --start only together with --end.", hint="add --end, or leave both out.")
    if given.start is not None and given.since is not None:
        raise UsageError("run takes --start or --since, not both.", hint="leave out one of them.")
    from stairwise_spark.scope import Due

    return _done(given, Due(until=given.end, since=given.since))


def backfill(arguments: Sequence[str]) -> int:
    """Fill a range, by default all of the source's; what is done already is not done again."""
    parser = _parser("backfill", "Fill a range from the events in few scans; go on where an earlier one stopped.")
    parser.add_argument("--chunk", metavar="SPAN", type=seconds, help="event time that is done at once, such as 30d")
    parser.add_argument("--newest-first", action="store_true", help="begin with the last chunk")
    _add_common(parser)
    given = parser.read(arguments, Given())
    if (given.start is None) != (given.end is None):
        raise UsageError("backfill takes --start and --end together, or neither.", hint="add the other one.")
    from stairwise_spark.scope import History

    return _done(given, History())


class CalibrateGiven(Place):
    """What the command line says of calibrate."""

    out: Path | None
    scratch: str | None
    json: bool


def calibrate(arguments: Sequence[str]) -> int:
    """Measure what work costs, and keep it in a file for plans that are told to use it."""
    parser = Parser(
        "calibrate", "Measure what work costs where Spark runs, in about a minute. Give the file to --constants."
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to keep it (default: your settings)")
    parser.add_argument("--scratch", metavar="FOLDER", help="for tables of some MB, which stay (default: temporary)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_place(parser)
    given = parser.read(arguments, CalibrateGiven())
    if given.scratch is None and (given.remote or not (given.master or "local").startswith("local")):
        raise UsageError(
            "calibrate needs --scratch: a cluster does not see the temporary folder of this machine.",
            hint="name a folder that the cluster writes to.",
        )
    file = given.out or place()
    found = _calibrated(given)
    write_calibration(found, file)
    print(to_json(encode_calibration(found)) if given.json else compared(found, file), flush=True)
    return 0


def _calibrated(given: CalibrateGiven) -> Calibration:
    from tempfile import TemporaryDirectory

    from stairwise_spark.calibrate import Bench, calibrate
    from stairwise_spark.session import SessionOptions, open_session

    spark = open_session(SessionOptions(master=given.master, remote=given.remote, conf=tuple(given.spark_conf)))
    if given.scratch is not None:
        return calibrate(Bench(spark=spark, folder=given.scratch))
    with TemporaryDirectory(prefix="stairwise-") as folder:
        return calibrate(Bench(spark=spark, folder=folder))


def compared(found: Calibration, file: Path) -> str:
    """The constants beside those of this version."""
    known = Constants().by_name()
    lines = [f"measured on {found.where}", "", f"  {'constant':14}  {'here':>9}  {'default':>9}  {'':>8}  unit"]
    for name, number in found.constants.by_name().items():
        scale, unit = _UNITS[name]
        shown, usual = quantity(number * scale), quantity(known[name] * scale)
        lines.append(f"  {name:14}  {shown:>9}  {usual:>9}  {beside(number, known[name]):>8}  {unit}")
    return "\n".join([*lines, "", f"kept in {file}; to plan with it: stairwise plan FILE --constants {file}"])


# What a constant is multiplied by to be read, and what it is then.
_UNITS = {
    "scan_row": (1e9, "ns a row"),
    "fold_row": (1e9, "ns a row"),
    "copy_row": (1e9, "ns a copy"),
    "build_row": (1e9, "ns a row"),
    "merge_row": (1e9, "ns a row"),
    "merge_byte": (1e9, "ns a byte"),
    "slide_row": (1e9, "ns a row"),
    "move_row": (1e9, "ns a row"),
    "write_byte": (1e9, "ns a byte"),
    "query": (1e3, "ms a tier and run"),
    "commit": (1e3, "ms a table"),
    "shared_commit": (1e3, "ms a tier"),
    "partition_rows": (1, "rows, not measured"),
}


def measure(rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]) -> Measured:
    """What there is in a rollup's source, for ``stairwise plan --measure``."""
    from stairwise_spark import measure as statistics
    from stairwise_spark.session import SessionOptions, open_session

    spark = open_session(SessionOptions(master=master, remote=remote, conf=conf, quick=True))
    return statistics.measure(spark, rollup)


def counted(
    rollup: Rollup, *, master: str | None, remote: str | None, conf: tuple[tuple[str, str], ...]
) -> tuple[Plan, Counted]:
    """The plan that rules a rollup's tables, and what these hold, for ``stairwise plan --drift``."""
    from stairwise_spark import counting
    from stairwise_spark.session import SessionOptions, open_session

    spark = open_session(SessionOptions(master=master, remote=remote, conf=conf, quick=True))
    return counting.counted(spark, rollup)


def _done(given: Given, otherwise: Scope) -> int:
    if given.start is not None and given.end is not None and given.start >= given.end:
        raise UsageError(
            f"the range from {format_instant(given.start)} to {format_instant(given.end)} is empty.",
            hint="let --end be later than --start.",
        )
    try:
        return _reported(given, otherwise)
    except StairwiseError:
        if given.debug:
            traceback.print_exc()
        raise


def _reported(given: Given, otherwise: Scope) -> int:
    """Do it, while saying how far it is, and say what was done."""
    started = time.monotonic()
    plan = planned(given.file, given.options())
    if given.tiers:
        _check_tiers(given, plan)
    from stairwise_spark import engine
    from stairwise_spark.session import open_session
    from stairwise_spark.terminal import Display, summary

    spark = open_session(given.session())
    startup = time.monotonic() - started
    with Display(sys.stderr) as display:
        if given.apply_additive and not given.dry_run and plan.declaration is not None:
            from stairwise_spark.changing import apply_additive

            apply_additive(spark, plan.declaration, given.options(), display)
        report = engine.run(spark, plan, given.request(otherwise), display, startup)
    document = to_json(report.to_json())
    if given.report is not None:
        from stairwise_spark.publishing import publish

        publish(spark, document, given.report)
    print(document if given.json else summary(report), flush=True)
    return 0


def _check_tiers(given: Given, plan: Plan) -> None:
    """Refuse what is no tier before Spark starts, if it is known already which plan rules the tables."""
    from stairwise_spark.applied import known_here
    from stairwise_spark.scope import check_tiers

    ruling = known_here(plan) if given.session().is_still_to_start_here else None
    if ruling is not None:
        check_tiers(given.tiers, [step.tier.name for step in ruling.steps])


def planned(file: str, options: Options) -> Plan:
    """The plan that a file holds, as ``stairwise plan --out`` wrote it, or the one for the declaration in it.

    Raises:
        CodecError: The file is no plan.
        UsageError: It cannot be read, or is a plan of no declaration.
        DeclarationProblems: It is no declaration, or cannot be read.
    """
    if not file.endswith(".json"):
        return optimize(Rollup.from_file(file), options)
    try:
        plan = decode_plan(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"plan '{file}': the file cannot be read ({error.strerror}).", hint="check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise CodecError(f"plan '{file}': the file is not UTF-8.", hint=HINT) from error
    except CodecError as error:
        raise CodecError(f"plan '{file}': {error.message.removeprefix('plan: ')}", hint=error.hint) from error
    if plan.declaration is None:
        message = f"plan '{file}': it was made of --windows, which say neither where rows are nor where they go."
        raise UsageError(message, hint="make it of a declaration: stairwise plan FILE --out PLAN.")
    return plan


def _parser(name: str, description: str) -> Parser:
    parser = Parser(name, description)
    parser.add_argument("file", metavar="FILE", help="a declaration in YAML, or a plan in JSON")
    parser.add_argument("--start", metavar="T", type=instant, help="windows that end after this instant")
    parser.add_argument("--end", metavar="T", type=instant, help="and not after this one")
    return parser


def _add_common(parser: Parser) -> None:
    """Add the options that run and backfill share, below their own."""
    parser.add_argument("--tiers", metavar="LIST", type=names, default=(), help="only these windows, by table name")
    parser.add_argument("--restate", action="store_true", help="make windows again that are there already")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument(
        "--apply-additive", action="store_true", help="first apply a changed declaration, if it only adds"
    )
    parser.add_argument(
        "--accept-deletes", action="store_true", help="let more windows become empty than the declaration allows"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--report", metavar="FOLDER", help="write the document there too, for others to read")
    add_constants(parser)
    add_place(parser)
    spark = parser.add_argument_group(SPARK)
    spark.add_argument("--quick", action="store_true", help="start fast rather than run fast, for small work")
    spark.add_argument("--debug", action="store_true", help="if it fails, print all that Spark said of it")
