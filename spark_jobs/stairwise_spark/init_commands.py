"""The command that begins: ``stairwise init`` writes a first declaration for a table, and a DAG for it.

Standard output holds the declaration if no file is named for it; standard error says every guess.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from stairwise.arguments import Place, add_place
from stairwise.command_parser import Parser
from stairwise.errors import UsageError

_PATH = re.compile(r"[./~]|\w+:/|.*[/\\]")
_DAG = '''"""{title}: every tier of the declaration, once an hour."""

from __future__ import annotations

from airflow.sdk import DAG, CronDataIntervalTimetable
from stairwise_airflow import RollupOperator

with DAG(
    "{name}",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
):
    RollupOperator(task_id="rollup", rollup={file!r}, conn_id="spark_default")
'''


class Given(Place):
    """What the command line says of init."""

    source: str
    out: Path | None
    dag: Path | None
    target: str | None


def init(arguments: Sequence[str]) -> int:
    """Write a first declaration for a table, and say what was guessed."""
    parser = Parser(
        "init",
        "Write a first declaration for a table, from the names and types of its columns. No event is read. "
        "Every guess is said, in the file and on standard error.",
    )
    parser.add_argument("source", metavar="TABLE_OR_PATH", help="a table of the catalog, or a folder of files")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write it (default: standard output)")
    parser.add_argument("--dag", metavar="FILE", type=Path, help="write a DAG that runs it, too; needs --out")
    parser.add_argument("--target", metavar="FOLDER", help="where the tables are to be (default: beside the source)")
    add_place(parser)
    given = parser.read(arguments, Given())
    _check(given)
    _begin(given)
    return 0


def _check(given: Given) -> None:
    """Refuse to overwrite, and a DAG for a declaration that is in no file."""
    if given.dag is not None and given.out is None:
        raise UsageError("--dag needs --out: a DAG names the file of its declaration.", hint="add --out FILE.")
    for file in (given.out, given.dag):
        if file is not None and file.exists():
            raise UsageError(f"'{file}' is there already.", hint="choose another name, or remove it.")
        if file is not None and not file.parent.is_dir():
            message = f"cannot write '{file}': there is no directory '{file.parent}'."
            raise UsageError(message, hint="make it first.")
    if given.out is not None and given.out == given.dag:
        raise UsageError(f"'{given.out}' is named twice.", hint="choose another name for the DAG.")


def _begin(given: Given) -> None:
    from stairwise_spark.guesses import guessed
    from stairwise_spark.looking import looked
    from stairwise_spark.session import SessionOptions, open_session

    options = SessionOptions(master=given.master, remote=given.remote, conf=tuple(given.spark_conf), quick=True)
    is_path = _PATH.match(given.source) is not None or Path(given.source).is_dir()
    source, fields = looked(open_session(options), given.source, is_path=is_path)
    found = guessed(source, fields, given.target or _beside(given.source, is_path=is_path))
    text = found.to_yaml()
    if given.out is None:
        print(text, end="", flush=True)
    else:
        _write(given.out, text)
    for sentence in found.sentences():
        print(f"stairwise: {sentence}", file=sys.stderr)
    if given.out is not None and given.dag is not None:
        file = Path(os.path.relpath(given.out, given.dag.parent)).as_posix()
        _write(given.dag, _DAG.format(title=found.rollup.name.capitalize(), name=found.rollup.name, file=file))
        print("stairwise: GUESS: the DAG runs once an hour, by the connection spark_default.", file=sys.stderr)


def _beside(source: str, *, is_path: bool) -> str:
    """Where the tables are to be if nobody says so.

    >>> _beside("s3://lake/trips/", is_path=True), _beside("lake.trips", is_path=False)
    ('s3://lake/rollups/trips', 'rollups/trips')
    """
    if not is_path:
        return f"rollups/{source.rpartition('.')[2]}"
    folder, slash, name = source.rstrip("/").rpartition("/")
    return f"{folder}{slash}rollups/{name}"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write '{file}': {error.strerror}.", hint="choose another place.") from error
    print(f"stairwise: wrote {file}", file=sys.stderr)
