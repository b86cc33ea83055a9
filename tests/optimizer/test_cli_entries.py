"""The commands that another package adds to the command line, as entry points."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from stairwise.cli import main


def entries(command: Callable[[], object] | None) -> Callable[..., tuple[SimpleNamespace, ...]]:
    found = () if command is None else (SimpleNamespace(load=command),)

    def entry_points(group: str, name: str) -> tuple[SimpleNamespace, ...]:
        return found if (group, name) == ("stairwise.commands", "run") else ()

    return entry_points


def missing() -> object:
    raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")


def test_a_command_of_the_engine_gets_the_rest_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[list[str]] = []

    def command(rest: list[str]) -> int:
        lines.append(rest)
        return 4

    monkeypatch.setattr("importlib.metadata.entry_points", entries(lambda: command))
    assert main(["run", "trips.yaml", "--restate"]) == 4
    assert lines == [["trips.yaml", "--restate"]]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (missing, "'run' runs on Spark, and Python has no module pyspark. Hint: pip install 'stairwise[spark]'."),
        (None, "'run' is not installed. Hint: install Stairwise as a package, with pip."),
    ],
)
def test_a_command_of_the_engine_that_is_not_there(
    command: Callable[[], object] | None,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", entries(command))
    assert main(["run", "trips.yaml"]) == 2
    assert capsys.readouterr().err == f"stairwise: {text}\n"
