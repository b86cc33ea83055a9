"""The command line and what it is connected to: terminals, pipes that close, disks that are full, impatient users."""

from __future__ import annotations

import io
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stairwise import cli
from stairwise.cli import main

COMMAND = ("plan", "--windows", "5m,1h")
TREE = "windows: 2 windows for "


class Terminal(io.TextIOWrapper):
    """Standard output that somebody looks at."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        self.flush()
        self.seek(0)
        return self.read()


@pytest.mark.parametrize(
    ("environment", "is_colored"),
    [
        ({}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_only_a_terminal_sees_colour(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], *, is_colored: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(COMMAND) == 0
    assert ("\x1b[" in terminal.text) is is_colored


def test_a_document_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main([*COMMAND, "--json"]) == 0
    assert terminal.text.startswith('{"schema"')


def test_a_terminal_without_box_drawing_still_shows_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(COMMAND) == 0
    assert terminal.text.startswith(f"\x1b[1m{TREE}")
    assert "??" in terminal.text


def test_any_stream_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(COMMAND) == 0
    assert stream.getvalue().startswith(TREE)


def test_a_pipe_that_is_closed_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(COMMAND) == 0


def test_a_disk_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(COMMAND) == 3
    assert capsys.readouterr().err == "stairwise: cannot write to standard output: No space left on device.\n"


class Impatient(io.BytesIO):
    """Standard input of somebody who presses Ctrl-C."""

    def __next__(self) -> bytes:
        raise KeyboardInterrupt


def test_an_interrupt_has_its_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Impatient()))
    assert main(["plan", "--windows", "-"]) == 130
    assert capsys.readouterr() == ("", "")


# ---- in a process of its own


def command(repository: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    path = os.pathsep.join([str(repository / "optimizer"), os.environ.get("PYTHONPATH", "")])
    return [sys.executable, "-m", "stairwise.cli", *arguments], {**os.environ, "PYTHONPATH": path}


def test_its_module_is_a_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["stairwise", *COMMAND])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(cli.__file__, run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(TREE)


def test_it_runs_as_a_module(repository: Path) -> None:
    line, environment = command(repository, *COMMAND)
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.startswith(TREE)
    assert done.stderr == ""


def test_a_reader_that_has_seen_enough_is_no_failure(repository: Path) -> None:
    with streaming(repository) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        process.stdin.write(b"5m\n" * 3)
        process.stdin.close()
        ended(process, 0)


def streaming(repository: Path) -> subprocess.Popen[bytes]:
    """A process that has planned one line, and waits for the next."""
    line, environment = command(repository, "plan", "--windows", "-")
    pipe = subprocess.PIPE
    # A process that was started in the background has been told to heed no interrupts, and so would this one be.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    signal.signal(signal.SIGINT, before)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"5m\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"schema": "stairwise.plan/1"')
    return process


def ended(process: subprocess.Popen[bytes], code: int) -> None:
    """The process ends with that code, without a word."""
    assert process.stderr
    assert process.wait(30) == code
    assert process.stderr.read() == b""


def test_an_interrupt_ends_it_quietly(repository: Path) -> None:
    with streaming(repository) as process:
        process.send_signal(signal.SIGINT)
        ended(process, 130)
