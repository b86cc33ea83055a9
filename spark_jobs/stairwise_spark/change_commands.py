"""The commands for a declaration that has changed: ``stairwise diff`` and ``stairwise apply``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stairwise import Options, Rollup
from stairwise.arguments import add_constants
from stairwise.calibration import chosen
from stairwise.codec import to_json
from stairwise.evolution import Permission, check_allowed
from stairwise_spark.proof_commands import Given as Asked
from stairwise_spark.proof_commands import add_answer, answered, file_parser

if TYPE_CHECKING:
    from stairwise_spark.difference import Difference


class Given(Asked):
    """What the command line says of both."""

    constants: str | None

    def difference(self) -> Difference:
        """What there is to do."""
        from stairwise_spark.difference import difference

        rollup = Rollup.from_file(self.file)
        return difference(self.session(), rollup, Options(calibration=chosen(self.constants)))


class ApplyGiven(Given):
    """What the command line says of apply."""

    allow_drop: bool
    allow_rebuild: bool
    dry_run: bool

    @property
    def allowed(self) -> frozenset[Permission]:
        """What may go."""
        given = {Permission.DROP: self.allow_drop, Permission.REBUILD: self.allow_rebuild}
        return frozenset(each for each, is_given in given.items() if is_given)


def diff(arguments: Sequence[str]) -> int:
    """Say what a changed declaration would do to the tables; the exit code is 1 if it would do anything."""
    found = file_parser(
        "diff", "Compare a declaration with the tables, and price each step; exit with 1 if there is one."
    )
    add_constants(found)
    add_answer(found)
    given = found.read(arguments, Given())

    def answer() -> int:
        started = time.monotonic()
        difference = given.difference()
        document = {**difference.to_json(), "seconds": round(time.monotonic() - started, 3)}
        print(to_json(document) if given.json else difference.told(), flush=True)
        return int(difference.is_anything)

    return answered(given, answer)


def apply(arguments: Sequence[str]) -> int:
    """Make the tables those of a changed declaration, beside the runs of the old one."""
    found = file_parser("apply", "Make the tables those of the declaration; runs of the old one may go on meanwhile.")
    found.add_argument("--allow-drop", action="store_true", help="tables and columns go that are declared no more")
    found.add_argument("--allow-rebuild", action="store_true", help="tables are filled anew that mean something else")
    found.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    add_constants(found)
    add_answer(found)
    given = found.read(arguments, ApplyGiven())

    def answer() -> int:
        from stairwise_spark.changing import apply as carried_out
        from stairwise_spark.difference import Applied
        from stairwise_spark.terminal import Display

        difference = given.difference()
        if given.dry_run:
            check_allowed(difference.evolution, given.allowed)
            print(to_json(Applied(difference=difference).to_json()) if given.json else difference.told(), flush=True)
            return 0
        with Display(sys.stderr) as display:
            done = carried_out(given.session(), difference, given.allowed, display)
        print(to_json(done.to_json()) if given.json else done.told(), flush=True)
        return 0

    return answered(given, answer)
