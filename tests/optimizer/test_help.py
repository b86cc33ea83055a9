"""The help of each command: on one screen, with examples that the command takes."""

from __future__ import annotations

import shlex
from functools import cache

import pytest

from stairwise.arguments import ENGINE_COMMANDS, OWN_COMMANDS
from stairwise.cli import main, parsers
from stairwise.command_parser import EXAMPLES, parser_of
from stairwise.errors import UsageError

COMMANDS = sorted(["plan", *ENGINE_COMMANDS, *OWN_COMMANDS])
LINES, COLUMNS = 24, 80  # of which the last line is the shell's, which asks again
WITH_MORE = {"backfill", "plan", "run", "verify"}


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


all_parsers = cache(parsers)


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What is shown, whether the command or its parser ends with it."""
    try:
        code: int | str | None = main(words)
    except SystemExit as left:
        code = left.code
    assert code == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.endswith("\n")
    return shown.out.splitlines()


@pytest.mark.parametrize("words", [["--help"], *([command, "--help"] for command in COMMANDS)], ids=" ".join)
def test_it_fits_a_screen_and_shows_how(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    *command, _ = words
    usage, *_ = lines = help_of(capsys, *words)
    assert len(lines) < LINES
    assert max(map(len, lines)) <= COLUMNS
    assert usage.startswith("usage: stairwise")
    assert usage.endswith(" [options]")
    shown = EXAMPLES[command[0] if command else "stairwise"]
    below = lines[-len(shown) :]
    assert lines[-len(shown) - 1] == ("examples:" if len(shown) > 1 else "example:")
    assert [line.strip().partition("  ")[0] for line in below] == [example for example, _ in shown]


def test_the_first_help_has_a_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(capsys, "--help")
    assert sorted(line.split()[0] for line in lines if line.startswith("  ") and "stairwise " not in line) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_it_names_every_option_and_says_where_each_is_explained(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = [action for action in all_parsers()[command].actions() if action.dest not in {"help", "help_all"}]
    screen, everything = help_of(capsys, command, "--help"), help_of(capsys, command, "--help-all")
    named = " ".join(screen)
    assert [name for action in actions for name in action.option_strings if name not in named] == []
    explained = {line.split()[0] for line in everything if line.startswith("  ")}
    assert explained >= {action.option_strings[-1] if action.option_strings else action.metavar for action in actions}
    assert max(map(len, everything)) <= COLUMNS
    assert ("more with --help-all: " in named) == (screen != everything) == (command in WITH_MORE)
    assert everything[-1] == screen[-1]


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ([], ["--help"]),
        (["help"], ["--help"]),
        (["-h"], ["--help"]),
        (["--help-all"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["--help", "plan"], ["plan", "--help"]),
        (["--help-all", "run"], ["run", "--help-all"]),
        (["plan", "-h"], ["plan", "--help"]),
    ],
)
def test_other_ways_to_ask(words: list[str], same: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert help_of(capsys, *words) == help_of(capsys, *same)


@pytest.mark.parametrize("example", [line for shown in EXAMPLES.values() for line, _ in shown])
def test_examples_have_options_that_there_are(example: str) -> None:
    words = shlex.split(example.removeprefix('eval "$(').removesuffix(')"'))
    assert words[0] == "stairwise"
    known = {name for action in all_parsers()[words[1]].actions() for name in action.option_strings}
    assert {word for word in words if word.startswith("--")} <= known


def test_a_command_without_help_has_no_parser() -> None:
    with pytest.raises(UsageError, match=r"this command has no help\. Hint: see stairwise --help\."):
        parser_of(lambda _: 0)
