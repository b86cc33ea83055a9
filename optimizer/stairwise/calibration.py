"""Measured constants in a file: ``stairwise calibrate`` writes it, and a plan uses it if it is told to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from stairwise.codec import to_json
from stairwise.constants import Calibration, Constants
from stairwise.errors import CodecError, DeclarationError, PlanError, UsageError
from stairwise.instant import format_instant, parse_instant
from stairwise.json_fields import Fields, Json

SCHEMA = "stairwise.constants/1"
VARIABLE = "STAIRWISE_CONSTANTS"
BUILT_IN = "default"
_HINT = "use a file that stairwise calibrate has written."


def place() -> Path:
    """Where the constants of this machine are kept: where ``STAIRWISE_CONSTANTS`` says, or in the user's settings."""
    named = os.environ.get(VARIABLE, "")
    if named not in {"", BUILT_IN}:
        return Path(named)
    # A relative path is to be ignored, says the XDG base directory specification.
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".config") / "stairwise" / "constants.json"


def chosen(named: str | None) -> Calibration | None:
    """The constants of the file that was named, else of that in ``STAIRWISE_CONSTANTS``; None: those of this version.

    A file that nobody named is not used: a declaration is planned in the same way on every machine.

    >>> chosen("default") is None
    True

    Raises:
        UsageError: The file cannot be read.
        CodecError: It is none of ours.
    """
    name = named or os.environ.get(VARIABLE) or BUILT_IN
    return None if name == BUILT_IN else read_calibration(Path(name))


def read_calibration(file: Path) -> Calibration:
    """The constants that a file holds.

    Raises:
        UsageError: The file cannot be read.
        CodecError: It is none of ours.
    """
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(
            f"constants '{file}': the file cannot be read ({error.strerror}).",
            hint="stairwise calibrate writes one; --constants or $STAIRWISE_CONSTANTS names it, "
            "or default, for those of this version.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise CodecError(f"constants '{file}': not a JSON document ({error}).", hint=_HINT) from error
    top = Fields.of(document, f"constants '{file}'", _HINT)
    top.expect("schema", SCHEMA)
    try:
        return _decoded(top)
    except (DeclarationError, PlanError) as error:
        raise CodecError(f"{top.document}: {error.message}", hint=_HINT) from error


def write_calibration(calibration: Calibration, file: Path) -> None:
    """Keep the constants in a file, in a new folder if need be.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(to_json(encode_calibration(calibration)) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write '{file}': {error.strerror}.", hint="choose another place with --out."
        ) from error


def encode_calibration(calibration: Calibration) -> dict[str, Json]:
    """The document of measured constants."""
    return {
        "schema": SCHEMA,
        "where": calibration.where,
        "at": format_instant(calibration.at),
        "constants": calibration.constants.by_name(),
    }


def _decoded(top: Fields) -> Calibration:
    found = top.fields("constants")
    return Calibration(
        constants=Constants(
            scan_row=found.real("scan_row"),
            fold_row=found.real("fold_row"),
            copy_row=found.real("copy_row"),
            build_row=found.real("build_row"),
            merge_row=found.real("merge_row"),
            merge_byte=found.real("merge_byte"),
            slide_row=found.real("slide_row"),
            move_row=found.real("move_row"),
            write_byte=found.real("write_byte"),
            query=found.real("query"),
            commit=found.real("commit"),
            shared_commit=found.real("shared_commit"),
            partition_rows=found.integer("partition_rows"),
        ),
        where=top.text("where"),
        at=parse_instant(top.text("at")),
    )
