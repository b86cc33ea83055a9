"""A command of the engine whose declaration comes as a word, from a scheduler that shares no folder with Spark."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from stairwise import cli
from stairwise.codec import encode_error, encode_plan, to_json
from stairwise.errors import StairwiseError
from stairwise.parcel import unpack
from stairwise.plan import Plan
from stairwise_spark.session import is_connect

# They carry out the plan they are given; the others look at what is there, for which the declaration is enough.
_CARRY_OUT = ("run", "backfill")


def main(arguments: Sequence[str]) -> int:
    """Run ``COMMAND PLAN [options]`` with ``--json``, where PLAN is packed; the exit code says how it went."""
    command, word, *options = arguments
    try:
        plan = unpack(word)
    except StairwiseError as error:
        print(to_json(encode_error(error)), flush=True)  # noqa: T201 - as the command line prints it
        return error.exit_code
    with interruptible(), TemporaryDirectory(prefix="stairwise-") as folder:
        code = cli.main([command, str(_kept(plan, command, Path(folder))), "--json", *options])
    sys.stdout.flush()
    return code


@contextmanager
def interruptible() -> Generator[None]:
    """Whoever is asked to end takes along what a server does for it, which would go on for minutes."""

    def end(number: int, _: object) -> None:
        session = SparkSession.getActiveSession()
        if session is not None and is_connect(session):
            session.interruptAll()
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _kept(plan: Plan, command: str, folder: Path) -> Path:
    """The file that the command takes."""
    if plan.declaration is None or command in _CARRY_OUT:
        file = folder / "plan.json"
        file.write_text(to_json(encode_plan(plan)), encoding="utf-8")
    else:
        file = folder / f"{plan.rollup}.yaml"
        file.write_text(plan.declaration.to_yaml(), encoding="utf-8")
    return file
