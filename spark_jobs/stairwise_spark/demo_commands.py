"""The command that shows all of it: ``stairwise demo`` takes a year of trips through Airflow, Spark and Delta Lake.

It starts the programs that users start; what they say beside their answers goes to a file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stairwise.command_parser import Parser
from stairwise.errors import UsageError
from stairwise_spark.command_line import count

if TYPE_CHECKING:
    from stairwise_spark.demo_place import Place

ROWS, FEWEST, MOST = 1_000_000, 10_000, 100_000_000
_PORTS = 65_535


class Given(argparse.Namespace):
    """What the command line says of demo."""

    folder: Path
    rows: int
    ui: bool
    port: int


def demo(arguments: Sequence[str]) -> int:
    """Show what Stairwise does with a year of trips."""
    parser = Parser(
        "demo",
        "Take a year of trips through Airflow, Spark and Delta Lake, in a folder of its own: the plan, history in one "
        "scan, a scheduled hour, late trips, a check against the raw rows, and the same without a plan.",
    )
    parser.add_argument(
        "--dir", dest="folder", metavar="FOLDER", type=Path, default=Path("stairwise-demo"),
        help="replaces an earlier demo there (default: stairwise-demo)",
    )  # fmt: skip
    parser.add_argument("--rows", metavar="N", type=count, default=ROWS, help=f"trips of the year (default: {ROWS:,})")
    parser.add_argument("--ui", action="store_true", help="open Airflow with the history of an earlier demo in it")
    parser.add_argument("--port", metavar="N", type=count, default=8080, help="of --ui (default: 8080)")
    given = parser.read(arguments, Given())
    _check(given)
    from stairwise_spark.demo_place import Place

    place = Place(given.folder.resolve())
    if given.ui:
        from stairwise_spark.demo_ui import show

        return show(place, given.port)
    return _told(place, given.rows)


def _check(given: Given) -> None:
    """Refuse what nothing can be shown with, and a port that is none."""
    if not FEWEST <= given.rows <= MOST:
        raise UsageError(
            f"--rows {given.rows}: the demo takes {FEWEST:,} to {MOST:,} trips.", hint="choose a number between them."
        )
    if given.port > _PORTS:
        raise UsageError(f"--port {given.port}: ports go up to {_PORTS}.", hint="try 8081.")


def _told(place: Place, rows: int) -> int:
    """Begin anew, and tell it part by part."""
    from stairwise_spark.demo_server import serving
    from stairwise_spark.demo_story import Story
    from stairwise_spark.jars import delta_jars
    from stairwise_spark.session import check_java

    begun = time.monotonic()
    place.check()
    check_java()
    delta_jars()
    place.clear()
    with serving(place) as server:
        for title, section in Story.of(place, server, rows).sections():
            print(f"\n{title}\n", flush=True)
            for line in section():
                print(f"   {line}".rstrip(), flush=True)
    print(f"\nDone in {time.monotonic() - begun:,.0f} s.")
    return 0
