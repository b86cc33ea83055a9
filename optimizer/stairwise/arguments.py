"""What the command line says: the options of each command, with their types, and what does not go together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from stairwise.aggregate import Sharing
from stairwise.calibration import chosen
from stairwise.errors import UsageError
from stairwise.names import nearest
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.rollup import Estimates

_Case = TypeVar("_Case", bound=Enum)
_Meant = TypeVar("_Meant")
_MOST_DIGITS = 18
SHELLS = ("bash", "zsh", "fish")
# What the package of the engine adds, as entry points of the group ``stairwise.commands``.
ENGINE_COMMANDS = {
    "apply": "make the tables those of a changed declaration, beside its runs",
    "backfill": "fill the tables of a declaration from the events; resumable",
    "calibrate": "measure what work costs here, for the seconds of a plan",
    "demo": "take a year of trips through Airflow, Spark and Delta Lake, and tell of it",
    "diff": "say what a changed declaration means for the tables, and what it costs",
    "init": "write a first declaration for a table, with what it guesses said",
    "maintain": "compact what is sealed, and keep the files and reports of the tables few",
    "run": "bring up to date what is new or changed, or what ends in a range",
    "status": "say what is covered, missing, out of date and not sealed yet",
    "verify": "recompute windows from the raw rows, and compare them with the tables",
    "why": "say who wrote the windows that hold an instant, from what, and if they are sealed",
}
_PURPOSE_OF_PLAN = "find the cheapest hierarchy of tiers, and show why"
# What needs no engine, and no plan.
OWN_COMMANDS = {
    "completion": "print what completes commands and options in bash, zsh and fish",
    "schema": "print the JSON Schema of what --json prints",
}
EXAMPLES = {
    "stairwise": (
        ("stairwise init lake.trips --out trips.yaml", "a first declaration"),
        ("stairwise plan trips.yaml", "the hierarchy, and what it saves"),
        ("stairwise backfill trips.yaml", "history"),
        ("stairwise run trips.yaml", "then, on a schedule"),
    ),
    "apply": (
        ("stairwise apply trips.yaml", "what only adds"),
        ("stairwise apply trips.yaml --allow-drop", "and what goes"),
    ),
    "backfill": (
        ("stairwise backfill trips.yaml --chunk 30d", "all of it"),
        ("stairwise backfill trips.yaml --start 2024-01-01 --end 2025-01-01", "a year"),
    ),
    "calibrate": (
        ("stairwise calibrate --out here.json", "measure"),
        ("stairwise plan trips.yaml --constants here.json", "plan with it"),
    ),
    "completion": (
        ('eval "$(stairwise completion bash)"', "in ~/.bashrc; with zsh in ~/.zshrc"),
        ("stairwise completion fish | source", "in config.fish"),
    ),
    "demo": (
        ("stairwise demo", "some minutes"),
        ("stairwise demo --ui", "then, Airflow with the history of it"),
    ),
    "diff": (("stairwise diff trips.yaml", "after the file was changed"),),
    "init": (
        ("stairwise init lake.trips --out trips.yaml --dag trips_dag.py", "and a DAG"),
        ("stairwise init lake/trips > trips.yaml", "a folder"),
    ),
    "maintain": (
        ("stairwise maintain trips.yaml --dry-run", "what would be done"),
        ("stairwise maintain trips.yaml --vacuum", "once a day or a week, beside runs"),
    ),
    "plan": (
        ("stairwise plan trips.yaml --svg plan.svg", "a tree, and a picture"),
        ("stairwise plan trips.yaml --drift", "whether it still suits"),
        ("stairwise plan --windows - < sets.txt", "JSON, a line for each line"),
    ),
    "run": (
        ("stairwise run trips.yaml", "what is due"),
        ("stairwise run trips.yaml --start 2024-03-01 --end 2024-03-02", "one day"),
    ),
    "schema": (("stairwise schema run > run.schema.json", "for a validator"),),
    "status": (
        ("stairwise status trips.yaml", "for people"),
        ("stairwise status trips.yaml --fail-on-gaps --json", "for alerts"),
    ),
    "verify": (
        ("stairwise verify trips.yaml --witness", "the numbers of rows, which is cheap"),
        ("stairwise verify trips.yaml --sample 20", "some windows, in full"),
    ),
    "why": (("stairwise why trips.yaml 1h 2024-03-31T06:00Z", "the hours that hold 6:00"),),
}
"""How each command is called, and what that is for: they stand below its help."""


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
    known = sorted(("plan", *ENGINE_COMMANDS, *OWN_COMMANDS))
    if word.endswith((".yaml", ".yml")):
        hint = f"try stairwise plan {word}."
    elif meant := nearest(word, known):
        hint = f"did you mean '{meant}'?"
    else:
        hint = f"so far there are {', '.join(known)}."
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


class HelpShownError(SystemExit):
    """Help was shown, and that is all."""

    def __init__(self, parser: Parser, status: int) -> None:
        super().__init__(status)
        self.parser = parser


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are errors like all others, and whose help ends with examples."""

    def error(self, message: str) -> NoReturn:
        """Raise what the command line has wrong."""
        _, is_unknown, words = message.partition("unrecognized arguments: ")
        if is_unknown:
            word = words.split()[0]
            if not word.startswith("-"):
                raise UsageError(f"'{word}' is one argument too many.", hint="quote what belongs together.")
            close = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1, cutoff=0.75)
            hint = f"did you mean {close[0]}?" if close else f"see {self.prog} --help."
            raise UsageError(f"there is no option '{word}'.", hint=hint)
        raise UsageError(f"{message}.", hint=f"see {self.prog} --help.")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002  # only `error` has one
        """Leave, and say who did."""
        raise HelpShownError(self, status)

    def format_help(self) -> str:
        """The help; its first line names what must be given, and its last ones how that is done."""
        if self.usage is None:
            needed = [f"[{each.metavar}]" if each.nargs == "?" else each.metavar for each in self.places()]
            self.usage = " ".join(map(str, [self.prog, *needed, "[options]"]))
        return super().format_help() + _examples(self.prog.rpartition(" ")[2])

    def places(self) -> list[argparse.Action]:
        """What stands on the line without an option before it."""
        return [action for action in self._actions if not action.option_strings]

    def actions(self) -> tuple[argparse.Action, ...]:
        """What may stand on the line, in the order of the help."""
        return tuple(self._actions)


def _examples(command: str) -> str:
    """What stands below the help of a command."""
    shown = EXAMPLES.get(command, ())
    width = max((len(line) for line, _ in shown), default=0)
    lines = [f"  {line:{width}}  {purpose}\n" for line, purpose in shown]
    return "".join(["\nexamples:\n" if len(lines) > 1 else "\nexample:\n", *lines]) if lines else ""


def parser_of(command: Callable[[Sequence[str]], int]) -> Parser:
    """The parser with which a command reads its line."""
    with redirect_stdout(StringIO()):
        try:
            command(["--help"])
        except HelpShownError as shown:
            return shown.parser
    raise UsageError("this command has no help.", hint="see stairwise --help.")


def parser() -> Parser:
    """The parser of all commands."""
    top = Parser(prog="stairwise", description="Scheduled window rollups on the lakehouse.", allow_abbrev=False)
    top.usage = "stairwise COMMAND FILE [options]"
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(title="commands", metavar="COMMAND FILE", prog="stairwise")
    for name, purpose in sorted({**ENGINE_COMMANDS, **OWN_COMMANDS, "plan": _PURPOSE_OF_PLAN}.items()):
        command = commands.add_parser(name, help=purpose, add_help=name == "plan", allow_abbrev=False)
        if name == "plan":
            _fill_plan(command)
    return top


def _fill_plan(plan: argparse.ArgumentParser) -> None:
    plan.description = "Find the cheapest hierarchy of tiers for the declared windows, and show why."
    plan.add_argument("file", nargs="?", metavar="FILE", help="a declaration in YAML; - reads standard input")
    plan.add_argument("--windows", metavar="LIST", help="windows instead of FILE; - reads one set a line")
    plan.add_argument("--aggregate", metavar="NAME", help="what is computed of --windows (default: sum)")
    _add_outputs(plan)
    _add_estimates(plan)
    _add_search_options(plan)
    add_constants(plan)
    add_place(plan, "where Spark runs, with --measure or --drift (default: on this machine)")


def own_parser(command: str) -> Parser:
    """The parser of a command that needs no engine, and no plan."""
    found = Parser(prog=f"stairwise {command}", description=f"{_sentence(OWN_COMMANDS[command])}.", allow_abbrev=False)
    if command == "completion":
        found.add_argument("shell", metavar="SHELL", type=Reader(SHELLS), help=" or ".join(SHELLS))
    else:
        found.add_argument("kind", nargs="?", metavar="KIND", help="of which document; without it, all are listed")
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


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
    group.add_argument("--drift", action="store_true", help="count them in the tables: is it still the best plan?")


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
        help="of calibrate, or default (else $STAIRWISE_CONSTANTS)",
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


class Reader:
    """Reads an argument of which all words are known."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)

    def __call__(self, text: str) -> object:
        """The text, if it is one of the words."""
        if text not in self.words:
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(self.words)}")
        return text


class OneOf(Reader, Generic[_Meant]):
    """Reads an argument of which all words are known, and means something by each."""

    def __init__(self, meanings: Mapping[str, _Meant]) -> None:
        super().__init__(meanings)
        self._meanings = meanings

    def __call__(self, text: str) -> _Meant:
        """What the text means, if it is one of the words."""
        super().__call__(text)
        return self._meanings[text]


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
