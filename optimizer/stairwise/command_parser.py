"""The line of one command: read, refused in our words, and explained on one screen, with examples."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from io import StringIO
from textwrap import fill
from typing import Generic, NoReturn, TypeVar

from stairwise.errors import UsageError

_Given = TypeVar("_Given", bound=argparse.Namespace)
_Meant = TypeVar("_Meant")
_LINES = 23  # of a terminal of 24, for below the help the shell asks again
_COLUMNS = 78  # of a terminal of 80, as argparse has it
_REQUIRED = "the following arguments are required: "  # what argparse says of them
HINT = " Hint: "
"""What stands between the text and the hint of an ``argparse.ArgumentTypeError`` of ours."""
_HELP = ("--help", "--help-all")  # options that a page of help need not name
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


class HelpShownError(SystemExit):
    """Help was shown, and that is all."""

    def __init__(self, parser: Parser, status: int) -> None:
        super().__init__(status)
        self.parser = parser


class Parser(argparse.ArgumentParser):
    """A parser of one command, whose refusals are errors like all others.

    Its help fits a screen: where lines for all options do not, those in argument groups are only named there, and have
    their lines with ``--help-all``.
    """

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"stairwise {command}", description=description, allow_abbrev=False, add_help=False)
        self._command = command
        self.add_argument("-h", "--help", action="help", help="explain the command on one screen")
        self.add_argument(
            "--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help="explain every option"
        )

    def read(self, arguments: Sequence[str], given: _Given) -> _Given:
        """What the arguments say, as attributes of what is given.

        Raises:
            UsageError: An argument is unknown, not of its type, missing, or one too many.
        """
        found, unknown = self.parse_known_args(arguments, namespace=given)
        if unknown:
            raise self._unknown(unknown[0])
        for place in self.places():
            if vars(found)[place.dest] == "":
                raise UsageError(f"{place.metavar} is empty.", hint="a variable of the shell may not be set.")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise what the command line has wrong, in our words instead of those of argparse."""
        told, _, hint = message.partition(HINT)
        _, is_missing, missing = told.partition(_REQUIRED)
        if is_missing:
            *others, last = [f"an {name}" if name[0] in "AEIO" else f"a {name}" for name in missing.split(", ")]
            needed = f"{', '.join(others)} and {last}" if others else last
            raise UsageError(f"{self._command} needs {needed}.", hint=f"try {EXAMPLES[self._command][0][0]}.")
        told = told.removeprefix("argument ").removesuffix(".")
        told = re.sub(": expected one argument$", self._valueless, told)
        told = re.sub(": ignored explicit argument (.*)", r" takes no value, and has \1", told)
        raise UsageError(f"{told}.", hint=hint or f"see {self.prog} --help.")

    def _unknown(self, word: str) -> UsageError:
        """The error for a word that stands where nothing does."""
        if not word.startswith("-"):
            return UsageError(f"'{word}' is one argument too many.", hint="quote what belongs together.")
        close = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else f"see {self.prog} --help."
        return UsageError(f"there is no option '{word}'.", hint=hint)

    def _valueless(self, told: re.Match[str]) -> str:
        name = told.string[: told.start()].rpartition("/")[2]
        return f" needs a value: {name} {self._option_string_actions[name].metavar}"

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002  # only `error` has one
        """Leave, and say who did."""
        raise HelpShownError(self, status)

    def format_help(self) -> str:
        """The help on one screen; its first line names what must be given, and its last ones show how."""
        everything = self.format_all()
        if everything.count("\n") <= _LINES:
            return everything
        named = [f"{title.partition(' (')[0]} ({_names(actions)})" for title, actions in self._groups().items()]
        return self._page({}, f"more with --help-all: {'; '.join(named)}")

    def format_all(self) -> str:
        """The help with a line for each option."""
        return self._page(self._groups())

    def places(self) -> list[argparse.Action]:
        """What stands on the line without an option before it."""
        return [action for action in self._actions if not action.option_strings]

    def actions(self) -> tuple[argparse.Action, ...]:
        """What may stand on the line, in the order of the help."""
        return tuple(self._actions)

    def _groups(self) -> dict[str, list[argparse.Action]]:
        """The options of the argument groups, by title; not the groups that every parser begins with."""
        found: dict[str, list[argparse.Action]] = {}
        for group in self._action_groups[2:]:
            found.setdefault(group.title or "", []).extend(group._group_actions)  # noqa: SLF001  # as argparse does
        return found

    def _page(self, groups: Mapping[str, Sequence[argparse.Action]], more: str = "") -> str:
        needed = [f"[{each.metavar}]" if each.nargs == "?" else each.metavar for each in self.places()]
        grouped = [action for actions in self._groups().values() for action in actions]
        options = [action for action in self._actions if action.option_strings and action not in grouped]
        plain = [*self.places(), *(action for action in options if action.option_strings[-1] not in _HELP)]
        formatter = self._get_formatter()
        formatter.add_usage(" ".join(map(str, [self.prog, *needed, "[options]"])), [], [])
        formatter.add_text(self.description)
        sections: list[tuple[str | None, Sequence[argparse.Action]]] = [(None, plain), *groups.items()]
        for title, actions in sections:
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        told = f"{fill(more, _COLUMNS, break_on_hyphens=False)}\n" if more else ""
        return "\n".join(part for part in (formatter.format_help(), told, examples(self._command)) if part)


class _HelpAll(argparse.Action):
    """Shows the help with a line for each option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002  # the signature is that of argparse
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Print it, and leave."""
        sys.stdout.write(parser.format_all() if isinstance(parser, Parser) else parser.format_help())
        parser.exit()


def _names(actions: Iterable[argparse.Action]) -> str:
    return ", ".join(action.option_strings[-1] for action in actions)


def examples(command: str) -> str:
    """What stands below the help of a command."""
    shown = EXAMPLES[command]
    width = max(len(line) for line, _ in shown)
    lines = [f"  {line:{width}}  {purpose}\n" for line, purpose in shown]
    return "".join(["examples:\n" if len(lines) > 1 else "example:\n", *lines])


def parser_of(command: Callable[[Sequence[str]], int]) -> Parser:
    """The parser with which a command reads its line."""
    with redirect_stdout(StringIO()):
        try:
            command(["--help"])
        except HelpShownError as shown:
            return shown.parser
    raise UsageError("this command has no help.", hint="see stairwise --help.")


class Reader:
    """Reads an argument of which all words are known."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)

    def __call__(self, text: str) -> object:
        """The text, if it is one of the words."""
        if text not in self.words:
            close = get_close_matches(text, self.words, cutoff=0.75)
            hint = f"{HINT}did you mean {close[0]}?" if len(close) == 1 else ""
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(self.words)}.{hint}")
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
