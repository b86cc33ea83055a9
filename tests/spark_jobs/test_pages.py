"""Pages word for word: their files are written and changed, their commands run, and what they print is what is shown.

Times, sizes and names of runs differ each time; all else must not. A command ends well, unless the page shows its exit
code, and then what it says of an error as well. ``--write-goldens`` writes what was printed into the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stairwise.cli import main

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = ("tutorial.md", "how-to/change.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\n")
ENTRY = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
QUIET = ("stairwise status", "stairwise run trips.yaml --end 2024-04-01 --json", "python late.py")
CODE = "; echo $?"


def printed(command: str) -> str:
    """What a command prints, on both streams."""
    program, *words = shlex.split(command.removesuffix(CODE))
    output, told = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(told):
        match program:
            case "python":
                runpy.run_path(words[0], run_name="__main__")
            case "rm":
                Path(*words).unlink()
            case _:
                code = main(words)
    assert command.endswith(CODE) or code == 0, told.getvalue()
    text = output.getvalue() + (told.getvalue() if words[0] == "init" or code > 1 else "")
    return text.replace(str(Path.cwd()), "...") + (f"{code}\n" if command.endswith(CODE) else "")


def changed(text: str, difference: str) -> str:
    """A text after the lines with a minus have gone, and those with a plus have come."""
    lines = difference.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] in kinds) for kinds in (" -", " +"))
    assert text.count(before) == 1, before
    return text.replace(before, after)


def steady(text: str) -> str:
    """A text without what differs each time."""
    text = re.sub(r"\d{8}T\d{6}Z?[-\w]*|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "RUN", text)
    text = re.sub(r"(end from the beginning to )\S+Z", r"\1NOW", text)
    text = re.sub(r"(written by run )\S+ at \S+", r"\1RUN at THEN", text)
    text = re.sub(r"[\d.,]+ (?:kB|MB|B)\b", "SIZE", text)
    text = re.sub(r"(SIZE {2,})[\d.,]+", r"\1TIME", text)  # a column of seconds
    text = re.sub(r"[\d.,]+ (?:ms|s|min)\b", "TIME", text)
    text = re.sub(r"( {2,}0 {2,}0 {2,})[\d.,]+", r"\1LITTLE", text)  # predicted for the seconds since the last run
    return re.sub(r"[ ─]{2,}", "  ", text)


@pytest.mark.spark
@pytest.mark.parametrize("name", PAGES)
def test_it_does_what_it_says(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, write_goldens: bool
) -> None:
    assert spark.version
    monkeypatch.chdir(tmp_path)
    path = DOCS / name
    page = path.read_text(encoding="utf-8")

    def step(found: re.Match[str]) -> str:
        language, text = found[1], found[2]
        if name := FILE.match(text):
            Path(name[1]).write_text(text, encoding="utf-8")
        if language == "diff":
            file = Path("trips.yaml")
            file.write_text(changed(file.read_text(encoding="utf-8"), text), encoding="utf-8")
        return found[0] if language != "console" else f"```console\n{ENTRY.sub(answer, text)}```"

    def answer(found: re.Match[str]) -> str:
        command, shown = found[1], found[2]
        now = printed(command)
        if command.startswith(QUIET):
            return found[0]
        if not write_goldens:
            assert steady(now).splitlines() == steady(shown).splitlines(), command
        return f"$ {command}\n{now}"

    done = FENCE.sub(step, page)
    if write_goldens:
        path.write_text(done, encoding="utf-8")
