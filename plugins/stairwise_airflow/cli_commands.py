"""``airflow stairwise plan FILE`` and ``airflow stairwise status FILE``: the command line, where Airflow is at hand.

It runs in a process of its own: Airflow would write what Spark's client logs to standard output, beside the answer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

_WORDS = Arg(  # type: ignore[no-untyped-call]  # as Airflow has it
    flags=("words",), nargs=argparse.REMAINDER, metavar="FILE ...", help="as after stairwise on the command line"
)


def commands() -> list[GroupCommand]:
    """The commands that Airflow adds to its own."""
    return [
        GroupCommand(
            name="stairwise",
            help="Rollups: what is planned, and what is there",
            subcommands=[
                ActionCommand(name="plan", help="The hierarchy of tiers of a declaration", func=plan, args=(_WORDS,)),
                ActionCommand(name="status", help="What its tables hold", func=status, args=(_WORDS,)),
            ],
        )
    ]


def plan(arguments: argparse.Namespace) -> None:
    """Print the plan of a declaration."""
    _answer("plan", arguments.words)


def status(arguments: argparse.Namespace) -> None:
    """Print what the tables of a declaration hold."""
    _answer("status", arguments.words)


def _answer(command: str, words: Sequence[str]) -> None:
    """The answer is printed as by ``stairwise``, and this process ends as that would.

    Raises:
        SystemExit: The answer is no, or there is none.
    """
    done = subprocess.run([sys.executable, "-m", "stairwise.cli", command, *words], check=False)  # noqa: S603 - our own
    if done.returncode:
        raise SystemExit(done.returncode)
