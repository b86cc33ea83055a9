"""Wrong declarations with the whole text of what a user reads: `wrong/*.txt`, one topic a file.

`--write-goldens` writes the texts anew; read each of them before you commit it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import pytest

from stairwise.errors import DeclarationProblems
from stairwise.rollup import Rollup

TOPICS = sorted(Path(__file__).with_name("wrong").glob("*.txt"))
TITLE, ERROR = "==== ", "---- error\n"


class Case(NamedTuple):
    title: str
    declaration: str
    error: str


def cases(topic: Path) -> list[Case]:
    found: list[Case] = []
    for part in topic.read_text(encoding="utf-8").split(TITLE)[1:]:
        title, rest = part.split("\n", 1)
        declaration, _, error = rest.partition(ERROR)
        found.append(Case(title, declaration, error))
    return found


def error_of(declaration: str) -> str:
    with pytest.raises(DeclarationProblems) as raised:
        Rollup.from_yaml(declaration, "trips.yaml")
    assert raised.value.exit_code == 2
    return f"{raised.value}\n"


@pytest.mark.parametrize(
    ("topic", "case"),
    [pytest.param(topic, case, id=f"{topic.stem}-{case.title}") for topic in TOPICS for case in cases(topic)],
)
def test_says_all_that_is_wrong(topic: Path, case: Case, *, write_goldens: bool) -> None:
    started = time.process_time()
    error = error_of(case.declaration)
    assert time.process_time() - started < 1
    if write_goldens:
        rewritten = [each._replace(error=error) if each == case else each for each in cases(topic)]
        text = "".join(f"{TITLE}{each.title}\n{each.declaration}{ERROR}{each.error}" for each in rewritten)
        topic.write_text(text, encoding="utf-8")
    else:
        assert error == case.error


def test_the_table_is_large_and_each_case_in_it_differs() -> None:
    table = [(topic.stem, case) for topic in TOPICS for case in cases(topic)]
    assert len(table) >= 150
    assert len({(topic, case.title) for topic, case in table}) == len(table)
    assert len({case.declaration for _, case in table}) == len(table)


def test_every_message_and_every_hint_is_a_sentence() -> None:
    for topic in TOPICS:
        for line in "".join(case.error for case in cases(topic)).splitlines():
            message, separator, hint = line.partition(" Hint: ")
            assert message.endswith("."), line
            assert hint.endswith(".") or not separator, line
