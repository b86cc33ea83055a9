"""``airflow stairwise plan FILE`` and ``airflow stairwise status FILE``: the command line, where Airflow is at hand."""

from __future__ import annotations

import argparse

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

from stairwise.cli import main

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
    _exit(main(["plan", *arguments.words]))


def status(arguments: argparse.Namespace) -> None:
    """Print what the tables of a declaration hold."""
    _exit(main(["status", *arguments.words]))


def _exit(code: int) -> None:
    if code:
        raise SystemExit(code)
