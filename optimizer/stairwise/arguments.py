"""What the command line says: the options of each command, with their types, and what does not go together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TypeVar

from stairwise.aggregate import Sharing
from stairwise.calibration import chosen
from stairwise.command_parser import HINT, OneOf, Parser, Reader, examples
from stairwise.errors import UsageError
from stairwise.names import nearest
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.rollup import Estimates

_Case = TypeVar("_Case", bound=Enum)
_MOST_DIGITS = 18
SHELLS = ("bash", "zsh", "fish")
# What the package of the engine adds, as entry points of the group ``stairwise.commands``.
ENGINE_COMMANDS = {
    "apply": "make the tables those of a changed declaration, beside its runs",
    "backfill": "fill the tables of a declaration from the events; resumable",
    "calibrate": "measure what work costs here, for the seconds of a plan",
    "demo": "take a year of trips through Airflow, Spark and Delta Lake",
    "diff": "say what a changed declaration does to the tables, and its cost",
    "init": "write a first declaration for a table, from its columns",
    "maintain": "compact what is sealed, and keep files and reports few",
    "run": "bring up to date what is new or changed, or a range",
    "status": "say what is covered, missing, out of date and not sealed yet",
    "verify": "recompute windows from the raw rows, and compare the tables",
    "why": "say who wrote the windows that hold an instant, and from what",
}
_PURPOSE_OF_PLAN = "find the cheapest hierarchy of tiers, and show why"
# What needs no engine, and no plan.
OWN_COMMANDS = {
    "completion": "print what completes commands and options in bash, zsh and fish",
    "schema": "print the JSON Schema of what --json prints",
}
# As they are met, rather than by name.
_IN_ORDER = (
    "init", "plan", "backfill", "run", "status", "verify", "why", "diff", "apply", "maintain", "calibrate", "demo",
    "schema", "completion",
)  # fmt: skip
SPARK = "Spark (default: on this machine)"
"""The group of options that say where and how Spark runs."""
PLANNING = "how to plan"
"""The group of options that say how to plan."""


class Place(argparse.Namespace):
    """Where Spark runs, as far as the command line says; see `add_place`."""

    master: str | None
    remote: str | None
    spark_conf: list[tuple[str, str]]


class Given(Place):
    """What the command line says of plan, with the types that the parser gives it."""

    file: str | None
    windows: str | None
    aggregate: str | None
    json: bool
    svg: Path | None
    out: Path | None
    rows_per_day: int | None
    distinct_keys: int | None
    measure: bool
    drift: bool
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
    """What the arguments of plan say, once they go together.

    >>> parse(["--windows", "5m", "--tiers", "none"]).options.tiers
    <TiersAllowed.NONE: 'none'>

    Raises:
        UsageError: An argument is unknown, not of its type, missing, or one too many.
    """
    given = plan_parser().read(arguments, Given())
    _check_together(given)
    return given


def no_command(word: str) -> UsageError:
    """The error for a first word that is no command."""
    if word.startswith("-"):
        meant = nearest(word, ["--help", "--version"], 0.75)
        hint = f"did you mean {meant}?" if meant else "write the command first, and then its options."
        return UsageError(f"there is no command before '{word}'.", hint=hint)
    known = sorted(("plan", *ENGINE_COMMANDS, *OWN_COMMANDS))
    if word.endswith((".yaml", ".yml")):
        hint = f"try stairwise plan {word}."
    elif meant := nearest(word, [*known, "--version"]):
        hint = f"did you mean '{meant}'?"
    else:
        hint = f"there are {', '.join(known)}."
    return UsageError(f"there is no command '{word}'.", hint=hint)


def overview() -> str:
    """The help of all commands."""
    purposes = {**ENGINE_COMMANDS, **OWN_COMMANDS, "plan": _PURPOSE_OF_PLAN}
    width = max(map(len, purposes))
    lines = [
        "usage: stairwise [--version] COMMAND [options]",
        "",
        "Scheduled window rollups on the lakehouse. stairwise COMMAND --help says more.",
        *(f"  {name:{width}}  {purposes[name]}" for name in _IN_ORDER),
        "",
        examples("stairwise"),
    ]
    return "\n".join(lines)


def plan_parser() -> Parser:
    """The parser of plan."""
    plan = Parser("plan", "Find the cheapest hierarchy of tiers for the declared windows, and show why.")
    plan.add_argument("file", nargs="?", metavar="FILE", help="a declaration in YAML; - reads standard input")
    plan.add_argument("--windows", metavar="LIST", help="windows instead of FILE; - reads one set a line")
    plan.add_argument("--aggregate", metavar="NAME", help="what is computed of --windows (default: sum)")
    _add_estimates(plan)
    plan.add_argument("--json", action="store_true", help="print one JSON document")
    plan.add_argument("--out", metavar="PLAN", type=Path, help="write the JSON document to a file")
    plan.add_argument("--svg", metavar="OUT", type=Path, help="draw the hierarchy into a file")
    _add_search_options(plan)
    add_constants(plan)
    add_place(plan, "Spark, for --measure and --drift (default: on this machine)")
    return plan


class Own(argparse.Namespace):
    """What the command line says of the commands that need no engine, and no plan."""

    shell: str
    kind: str | None


def own_parser(command: str) -> Parser:
    """The parser of a command that needs no engine, and no plan."""
    found = Parser(command, f"{_sentence(OWN_COMMANDS[command])}.")
    if command == "completion":
        found.add_argument("shell", metavar="SHELL", type=Reader(SHELLS), help=" or ".join(SHELLS))
    else:
        found.add_argument("kind", nargs="?", metavar="KIND", help="of which document; without it, all are listed")
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _add_estimates(plan: Parser) -> None:
    plan.add_argument("--rows-per-day", metavar="N", type=_count, help="events in a day (default: as FILE says)")
    plan.add_argument(
        "--distinct-keys", metavar="K", type=_count, help="combinations of the keys (default: as FILE says)"
    )
    plan.add_argument("--measure", action="store_true", help="count them in the source, or in a sample (needs Spark)")
    plan.add_argument("--drift", action="store_true", help="count them in the tables: is it still the best plan?")


def add_place(command: Parser, title: str = SPARK) -> None:
    """Add the options that say where Spark runs."""
    group = command.add_argument_group(title)
    group.add_argument("--master", metavar="URL", help="a cluster")
    group.add_argument("--remote", metavar="URL", help="a Spark Connect server, sc://HOST")
    group.add_argument(
        "--spark-conf", metavar="K=V", type=_setting, action="append", default=[], help="a setting of Spark; repeatable"
    )


def add_constants(command: Parser) -> None:
    """Add the option that says whose constants the prices have."""
    group = command.add_argument_group(PLANNING)
    group.add_argument("--constants", metavar="FILE", help="of calibrate, or default (else $STAIRWISE_CONSTANTS)")


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE.{HINT}write such as spark.driver.memory=4g.")
    return key, value


def _add_search_options(plan: Parser) -> None:
    group = plan.add_argument_group(PLANNING)
    group.add_argument(
        "--tiers",
        metavar="WHICH",
        type=_one_of(TiersAllowed),
        default=TiersAllowed.COMPOSITE,
        help="what may be invented: composite (default), factor, none",
    )
    group.add_argument(
        "--algorithm",
        metavar="WHO",
        type=_one_of(Algorithm),
        default=Algorithm.BEST,
        help="who plans: best (default), unshared, paper-1 or paper-3",
    )
    group.add_argument(
        "--cost-model",
        metavar="MODEL",
        type=_one_of(Pricing),
        default=Pricing.BATCH,
        help="what counts: batch (default; seconds), paper (reads)",
    )
    group.add_argument(
        "--eta", metavar="N", type=_count, default=1, help="events a second, in the paper model (default: 1)"
    )
    group.add_argument(
        "--semantics",
        metavar="KIND",
        type=_one_of(Sharing, Sharing.DISJOINT, Sharing.OVERLAPPING),
        help="disjoint or overlapping (default: as the aggregates say)",
    )


def _one_of(kind: type[_Case], *cases: _Case) -> OneOf[_Case]:
    """A reader of one of an enumeration's words, or of some of them."""
    return OneOf({str(case.value): case for case in cases or kind})


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
    if given.drift:
        _check_drift(given)
    place = {"--master": given.master, "--remote": given.remote, "--spark-conf": given.spark_conf}
    named = next((option for option, value in place.items() if value), None)
    if named is not None and not (given.measure or given.drift):
        raise UsageError(f"{named}: plan needs no Spark.", hint="leave it out, or add --measure.")


def _check_drift(given: Given) -> None:
    """Refuse to look for drift where there are no tables, or together with what says otherwise how many events are."""
    if given.file is None:
        raise UsageError("--drift looks at tables, and --windows have none.", hint="give a FILE.")
    told = {
        "--measure": given.measure,
        "--rows-per-day": given.rows_per_day,
        "--distinct-keys": given.distinct_keys,
        "--svg": given.svg,
        "--out": given.out,
        "--cost-model paper": given.cost_model is Pricing.PAPER,
    }
    other = next((option for option, value in told.items() if value), None)
    if other is not None:
        raise UsageError(
            f"--drift and {other}: it counts what there is, and plans by that.", hint=f"leave {other} out."
        )


def _check_places(outputs: Sequence[Path], file: str | None) -> None:
    """Refuse to write where something would be lost, or where no directory is."""
    named = [*outputs, *([] if file is None or file == "-" else [Path(file)])]
    for path in outputs:
        if [other.resolve() for other in named].count(path.resolve()) > 1:
            raise UsageError(f"'{path}' would be overwritten: it is named twice.", hint="choose another name.")
        if not path.parent.is_dir():
            message = f"cannot write '{path}': there is no directory '{path.parent}'."
            raise UsageError(message, hint="make it first.")
