"""The help of each command: on one screen, with an example that the command takes."""

from __future__ import annotations

import shlex
from functools import cache

import pytest

from stairwise.arguments import ENGINE_COMMANDS, EXAMPLES, OWN_COMMANDS, parser_of
from stairwise.cli import main, parsers
from stairwise.errors import UsageError

COMMANDS = sorted(["", "plan", *ENGINE_COMMANDS, *OWN_COMMANDS])
LINES, COLUMNS = 40, 80


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


all_parsers = cache(parsers)


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_it_fits_a_screen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(command, capsys)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_how_the_command_is_called_and_ends_with_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usage, *_ = lines = help_of(command, capsys)
    assert usage.startswith(" ".join(["usage: stairwise", *command.split()]))
    assert usage.endswith(" [options]")
    shown = EXAMPLES[command or "stairwise"]
    below = lines[-len(shown) :]
    assert lines[-len(shown) - 1] == ("examples:" if len(shown) > 1 else "example:")
    assert [line.strip().partition("  ")[0] for line in below] == [example for example, _ in shown]


@pytest.mark.parametrize("example", [line for shown in EXAMPLES.values() for line, _ in shown])
def test_examples_have_options_that_there_are(example: str) -> None:
    words = shlex.split(example.removeprefix('eval "$(').removesuffix(')"'))
    assert words[0] == "stairwise"
    known = {name for action in all_parsers()[words[1]].actions() for name in action.option_strings}
    assert {word for word in words if word.startswith("--")} <= known


def test_a_command_without_help_has_no_parser() -> None:
    with pytest.raises(UsageError, match=r"this command has no help\. Hint: see stairwise --help\."):
        parser_of(lambda _: 0)
