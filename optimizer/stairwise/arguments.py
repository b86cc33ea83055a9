"""What the command line says: the options of each command, with their types, and what does not go together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import NoReturn, TypeVar

from stairwise.aggregate import Sharing
from stairwise.calibration import chosen
from stairwise.errors import UsageError
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.rollup import Estimates

_Case = TypeVar("_Case", bound=Enum)
_MOST_DIGITS = 18
# What the package of the engine adds, as entry points of the group ``stairwise.commands``.
ENGINE_COMMANDS = {
    "apply": "make the tables those of a changed declaration, beside its runs",
    "backfill": "fill the tables of a declaration from the events; resumable",
    "calibrate": "measure what work costs here, for the seconds of a plan",
    "diff": "say what a changed declaration means for the tables, and what it costs",
    "maintain": "compact what is sealed, and keep the files and reports of the tables few",
    "run": "bring up to date what is new or changed, or what ends in a range",
    "status": "say what is covered, missing, out of date and not sealed yet",
    "verify": "recompute windows from the raw rows, and compare them with the tables",
    "why": "say who wrote the windows that hold an instant, from what, and if they are sealed",
}
_EPILOG = """\
examples:
  stairwise plan trips.yaml                       the hierarchy, as a tree
  stairwise plan - < trips.yaml                   the same, from standard input
  stairwise plan trips.yaml --svg plan.svg        the same as a picture
  stairwise plan --windows "5m, 1h every 15m"     windows without a file
  stairwise plan --windows - < sets.txt           one set a line in, one JSON document a line out
"""


class Place(argparse.Namespace):
    """Where Spark runs, as far as the command line says; see `add_place`."""

    master: str | None
    remote: str | None
    spark_conf: list[tuple[str, str]]


class Given(Place):
    """What the command line says of plan, with the types that the parser gives it."""

    version = False

    file: str | None
    windows: str | None
    aggregate: str | None
    json: bool
    svg: Path | None
    out: Path | None
    rows_per_day: int | None
    distinct_keys: int | None
    measure: bool
    constants: str | None
    tiers: TiersAllowed
    algorithm: Algorithm
    cost_model: Pricing
    eta: int
    semantics: Sharing | None

    @property
    def options(self) -> Options:
        """How to plan."""
        if self.eta != 1 and self.cost_model is not Pricing.PAPER:
            raise UsageError(
                "--eta: only the paper's cost model counts events per second.",
                hint="add --cost-model paper, or say --rows-per-day.",
            )
        if self.constants is not None and self.cost_model is Pricing.PAPER:
            raise UsageError(
                "--constants: the paper's cost model counts reads, not seconds.",
                hint="leave one of the two out.",
            )
        return Options(
            algorithm=self.algorithm,
            tiers=self.tiers,
            pricing=self.cost_model,
            sharing=self.semantics,
            eta=self.eta,
            calibration=None if self.cost_model is Pricing.PAPER else chosen(self.constants),
        )

    def estimates(self, declared: Estimates) -> Estimates:
        """What is known of the events; the command line knows better than the file."""
        return Estimates(rows_per_day=self.rows_per_day, distinct_keys=self.distinct_keys).over(declared)


def parse(arguments: Sequence[str]) -> Given:
    """What the arguments say, once they go together.

    >>> parse(["plan", "--windows", "5m", "--tiers", "none"]).options.tiers
    <TiersAllowed.NONE: 'none'>

    Raises:
        UsageError: An argument is unknown, not of its type, missing, or one too many.
    """
    _check_first(arguments[0])
    given, unknown = parser().parse_known_args(arguments, namespace=Given())
    if unknown:
        raise _unknown(unknown[0])
    if not given.version:
        _check_together(given)
    return given


def _check_first(word: str) -> None:
    """Refuse a first word that is no command, and an option that needs one before it."""
    if word in {"plan", "-h", "--help", "--version"}:
        return
    if word.partition("=")[0] in _options():
        raise UsageError(f"there is no command before '{word}'.", hint="write stairwise plan first.")
    if word.startswith("-"):
        raise _unknown(word)
    known = ", ".join(sorted(("plan", *ENGINE_COMMANDS)))
    hint = f"try stairwise plan {word}." if word.endswith((".yaml", ".yml")) else f"so far there are {known}."
    raise UsageError(f"there is no command '{word}'.", hint=hint)


def _unknown(word: str) -> UsageError:
    """The error for a word that stands where nothing does."""
    if not word.startswith("-"):
        return UsageError(f"'{word}' is one argument too many.", hint="quote what belongs together.")
    option = word.partition("=")[0]
    close = get_close_matches(option, _options(), n=1, cutoff=0.75)
    hint = f"did you mean {close[0]}?" if close else "see stairwise plan --help."
    return UsageError(f"there is no option '{word}'.", hint=hint)


def _options() -> list[str]:
    """The options of plan."""
    names = [*Given.__annotations__, *Place.__annotations__]
    return [f"--{name.replace('_', '-')}" for name in names if name != "file"]


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are errors like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise what the command line has wrong."""
        raise UsageError(f"{message}.", hint=f"see {self.prog} --help.")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = Parser(prog="stairwise", description="Scheduled window rollups on the lakehouse.", allow_abbrev=False)
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name, purpose in ENGINE_COMMANDS.items():
        commands.add_parser(name, help=purpose, add_help=False)
    plan = commands.add_parser(
        "plan",
        help="find the cheapest hierarchy of tiers, and show why",
        description="Find the cheapest hierarchy of tiers for the declared windows, and show why it is.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    plan.add_argument("file", nargs="?", metavar="FILE", help="a declaration in YAML; - reads standard input")
    plan.add_argument("--windows", metavar="LIST", help="windows instead of FILE; - reads one set a line")
    plan.add_argument("--aggregate", metavar="NAME", help="what is computed of --windows (default: sum)")
    _add_outputs(plan)
    _add_estimates(plan)
    _add_search_options(plan)
    add_constants(plan)
    add_place(plan, "where Spark runs, with --measure (default: on this machine)")
    return top


def _add_outputs(plan: argparse.ArgumentParser) -> None:
    group = plan.add_argument_group("what to write (default: the hierarchy as text)")
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("--out", metavar="PLAN", type=Path, help="write the JSON document to a file")
    group.add_argument("--svg", metavar="OUT", type=Path, help="draw the hierarchy into a file")


def _add_estimates(plan: argparse.ArgumentParser) -> None:
    group = plan.add_argument_group("what is known of the events (default: as FILE says)")
    group.add_argument("--rows-per-day", metavar="N", type=_count, help="events in a day")
    group.add_argument("--distinct-keys", metavar="K", type=_count, help="different combinations of the keys")
    group.add_argument("--measure", action="store_true", help="count them in the source, or in a sample (needs Spark)")


def add_place(command: argparse.ArgumentParser, title: str = "where to run (default: Spark on this machine)") -> None:
    """Add the options that say where Spark runs."""
    group = command.add_argument_group(title)
    group.add_argument("--master", metavar="URL", help="a cluster")
    group.add_argument("--remote", metavar="URL", help="a Spark Connect server, sc://HOST")
    group.add_argument(
        "--spark-conf", metavar="K=V", type=_setting, action="append", default=[], help="a setting of Spark; repeatable"
    )


def add_constants(command: argparse.ArgumentParser) -> None:
    """Add the option that says whose constants the prices have."""
    command.add_argument(
        "--constants",
        metavar="FILE",
        help="what stairwise calibrate has measured, or default (default: what STAIRWISE_CONSTANTS names, if it does)",
    )


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def _add_search_options(plan: argparse.ArgumentParser) -> None:
    group = plan.add_argument_group("how to search")
    group.add_argument(
        "--tiers",
        metavar="WHICH",
        type=_one_of(TiersAllowed),
        default=TiersAllowed.COMPOSITE,
        help="tiers that may be invented: composite (any union of edges; default), factor (windows only), none",
    )
    group.add_argument(
        "--algorithm",
        metavar="WHO",
        type=_one_of(Algorithm),
        default=Algorithm.BEST,
        help="who plans: best (default), paper-1 or paper-3 (Factor Windows without and with its helpers), unshared",
    )
    group.add_argument(
        "--cost-model",
        metavar="MODEL",
        type=_one_of(Pricing),
        default=Pricing.BATCH,
        help="what counts: batch (seconds of an engine; default), paper (rows and partial results read)",
    )
    group.add_argument(
        "--eta", metavar="N", type=_count, default=1, help="events per second in the paper model (default: 1)"
    )
    group.add_argument(
        "--semantics",
        metavar="KIND",
        type=_one_of(Sharing, Sharing.DISJOINT, Sharing.OVERLAPPING),
        help="disjoint (each event once) or overlapping (twice does no harm); default: as the aggregates say",
    )


def _one_of(kind: type[_Case], *cases: _Case) -> Callable[[str], _Case]:
    """A reader of one of an enumeration's words, or of some of them."""
    known = {str(case.value): case for case in cases or kind}

    def read(text: str) -> _Case:
        if text not in known:
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(known)}")
        return known[text]

    return read


def _count(text: str) -> int:
    """A whole number from 1, of a size that things have."""
    if not (text.isascii() and text.isdigit() and text.strip("0")) or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0 of at most {_MOST_DIGITS} digits")
    return int(text)


def _check_together(given: Given) -> None:
    """Refuse options that do not go together."""
    if given.file is None and given.windows is None:
        raise UsageError("plan needs a FILE or --windows.", hint='try stairwise plan --windows "5m, 1h".')
    if given.file is not None and given.windows is not None:
        message = f"plan takes a FILE (here '{given.file}') or --windows, not both."
        raise UsageError(message, hint="leave one out, and quote a list of windows.")
    if given.file is not None and given.aggregate is not None:
        raise UsageError("--aggregate goes with --windows: a FILE has its own.", hint="leave --aggregate out.")
    outputs = [path for path in (given.out, given.svg) if path is not None]
    if given.windows == "-" and outputs:
        raise UsageError("--windows - prints what it plans, --out and --svg cannot.", hint="leave them out.")
    _check_measuring(given)
    _check_places(outputs, given.file)


def _check_measuring(given: Given) -> None:
    """Refuse to measure what is not there or not asked for, and a place for Spark without need of it."""
    if given.measure and given.file is None:
        raise UsageError("--measure looks at a source, and --windows have none.", hint="give a FILE.")
    if given.measure and given.cost_model is Pricing.PAPER:
        raise UsageError(
            "--measure: the paper's cost model asks nothing of the source.", hint="leave one of the two out."
        )
    place = {"--master": given.master, "--remote": given.remote, "--spark-conf": given.spark_conf}
    named = next((option for option, value in place.items() if value), None)
    if named is not None and not given.measure:
        raise UsageError(f"{named}: plan needs no Spark.", hint="leave it out, or add --measure.")


def _check_places(outputs: Sequence[Path], file: str | None) -> None:
    """Refuse to write where something would be lost, or where no directory is."""
    named = [*outputs, *([] if file is None or file == "-" else [Path(file)])]
    for path in outputs:
        if [other.resolve() for other in named].count(path.resolve()) > 1:
            raise UsageError(f"'{path}' would be overwritten: it is named twice.", hint="choose another name.")
        if not path.parent.is_dir():
            message = f"cannot write '{path}': there is no directory '{path.parent}'."
            raise UsageError(message, hint="make it first.")
