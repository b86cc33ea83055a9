"""Plans as users read them: `plans/*.plan`, one story a file; above the rule what is asked, below it the answer.

What is asked is a declaration, or a command line after a `$`. `--write-goldens` writes the answers anew; a changed
answer is a change of behaviour: read it before you commit it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from stairwise.cli import main

PLANS = sorted(Path(__file__).with_name("plans").glob("*.plan"))
RULE = "----\n"
PROMPT = "$ stairwise "


def parts(path: Path) -> tuple[str, str, str]:
    """The story, what is asked, and the answer."""
    above, _, answer = path.read_text(encoding="utf-8").partition(RULE)
    story, _, asked = above.partition("\n")
    return story, asked, answer


def answer_to(asked: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    if asked.startswith(PROMPT):
        arguments = shlex.split(asked.removeprefix(PROMPT))
    else:
        declaration = directory / "declaration.yaml"
        declaration.write_text(asked, encoding="utf-8")
        arguments = ["plan", str(declaration)]
    code = main(arguments)
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_plan_is_as_it_was_reviewed(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, write_goldens: bool
) -> None:
    story, asked, expected = parts(path)
    answer = answer_to(asked, tmp_path, capsys)
    if write_goldens:
        path.write_text(f"{story}\n{asked}{RULE}{answer}", encoding="utf-8")
    else:
        assert answer == expected


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_file_tells_one_story_that_fits_a_screen(path: Path) -> None:
    story, asked, answer = parts(path)
    assert story.startswith("# ")
    assert story.endswith(".")
    assert asked
    assert max(map(len, answer.splitlines())) <= 100


def test_there_are_enough_stories_and_no_two_alike() -> None:
    assert len(PLANS) >= 28
    assert len({parts(path)[0] for path in PLANS}) == len({parts(path)[1] for path in PLANS}) == len(PLANS)
