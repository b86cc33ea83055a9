"""What shells complete, asked of the shells themselves; one that is not installed is left out."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stairwise.arguments import ENGINE_COMMANDS, OWN_COMMANDS, SHELLS
from stairwise.cli import main, parsers

COMMANDS = {"plan", *ENGINE_COMMANDS, *OWN_COMMANDS}
_PATIENCE = 30  # seconds, for a busy machine
Complete = Callable[[str], set[str]]


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture(params=[pytest.param(shell, marks=needs(shell)) for shell in ("bash", "fish")])
def complete(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What may stand in place of the last word of a line, as a shell says."""
    shell = str(request.param)
    assert main(["completion", shell]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "my trips.yaml").touch()

    def asked(line: str) -> set[str]:
        words = line.split(" ")
        if shell == "bash":
            listed = " ".join(f"'{word}'" for word in words)
            code = f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _stairwise"
            command = ["bash", "--norc", "-c", f'{code}; printf "%s\\n" "${{COMPREPLY[@]}}"']
        else:
            command = ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.stderr == ""
        return {each.partition("\t")[0] for each in done.stdout.splitlines()} - {""}

    return asked


def test_commands(complete: Complete) -> None:
    assert complete("stairwise ") >= COMMANDS
    assert complete("stairwise st") == {"status"}


def test_options_of_each_command(complete: Complete) -> None:
    assert complete("stairwise verify --wit") == {"--witness"}
    assert complete("stairwise status --wit") == set()
    assert complete("stairwise plan trips.yaml --s") == {"--svg", "--semantics", "--spark-conf"}


def test_words_that_an_option_takes(complete: Complete) -> None:
    assert complete("stairwise plan --tiers ") == {"composite", "factor", "none"}
    assert complete("stairwise plan --tiers com") == {"composite"}
    assert complete("stairwise completion ") >= {"bash", "fish", "zsh"}


def test_files(complete: Complete) -> None:
    assert {each.replace("\\", "") for each in complete("stairwise plan my")} == {"my trips.yaml"}
    assert {each.replace("\\", "") for each in complete("stairwise run --report my")} >= {"my trips.yaml"}
    assert complete("stairwise run --start my") == set()


@needs("zsh")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("stairwise sta\t", "stairwise status "),
        ("stairwise verify --wit\t", "stairwise verify --witness "),
        ("stairwise plan --tiers com\t", "stairwise plan --tiers composite "),
        ("stairwise plan my\t", r"stairwise plan my\ trips.yaml "),
    ],
)
def test_zsh_completes_what_is_typed(
    typed: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "zsh"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "my trips.yaml").touch()
    start = f"PS1='ready> '; autoload -U compinit; compinit -D -u; source {script}; echo started\n"
    assert expected in on_a_terminal(["zsh", "-f", "-i"], [start, typed], ["started\r\n", expected], tmp_path)


def on_a_terminal(command: list[str], typed: list[str], awaited: list[str], folder: Path) -> str:
    """What a program shows to somebody who types, each time until what is awaited is there, or for too long."""
    terminal, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown = ""
    try:
        for text, end in zip(typed, awaited, strict=True):
            os.write(terminal, text.encode())
            until = time.monotonic() + _PATIENCE
            while end not in shown and time.monotonic() < until:
                if select.select([terminal], [], [], 0.1)[0]:
                    shown += os.read(terminal, 65_536).decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tcsh"], "SHELL: 'tcsh' is not one of bash, zsh, fish. Hint: see stairwise completion --help."),
        (["bsh"], "SHELL: 'bsh' is not one of bash, zsh, fish. Hint: did you mean bash?"),
        ([], 'completion needs a SHELL. Hint: try eval "$(stairwise completion bash)".'),
    ],
)
def test_another_shell_is_refused(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", *arguments]) == 2
    assert capsys.readouterr().err == f"stairwise: {text}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name, parser in parsers().items():
        assert name in script
        for action in parser.actions():
            for option in action.option_strings:
                assert (f"-l {option[2:]} " if shell == "fish" else option) in script or not option.startswith("--")
