"""A declaration for the tests of the Airflow side, and a program in the engine's place that does no work.

The program stands where ``run_plan.py`` does: it takes the same arguments, notes them, and prints an answer.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator

from stairwise import Rollup
from stairwise_airflow import Application, submitted_by

TRIPS = """\
rollup: trips
source: {path: lake/trips, time: pickup_at}
keys: [zone_id]
aggregates: {trips: count(), revenue: sum(fare)}
windows: [15m, 1h, day in Europe/Paris]
target: lake/rollups/trips
"""

PROGRAM = """\
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
trouble = here / "fails once"
if trouble.exists() and trouble.read_text() in sys.argv:
    trouble.unlink()
    sys.exit(3)
answer, code = json.loads((here / "answer.json").read_text())
print("26/03/01 06:00:00 WARN Utils: noise of Spark")
print("chunk 1 of 1: 15m: 12 rows, 2.7 kB, 0.3 s")
if "--report" in sys.argv:
    place = pathlib.Path(sys.argv[sys.argv.index("--report") + 1])
    place.mkdir(parents=True)
    (place / "part-00000.txt").write_text(json.dumps(answer) + "\\n")
else:
    print(json.dumps(answer))
sys.exit(code)
"""

REPORT: dict[str, object] = {
    "schema": "stairwise.run/1",
    "rollup": "trips",
    "run_id": "20260301T060000000000-0a1b2c3d",
    "range": ["2026-03-01T05:00:00Z", "2026-03-01T06:00:00Z"],
    "source": {"version": 7, "rows_read": 60, "files_read": 1, "bytes_read": 1000, "changed_ranges": []},
    "tiers": [
        {
            "name": name, "reads": reads, "windows_written": windows, "rows_written": 3 * windows, "files_written": 1,
            "bytes_written": 1000 * windows, "version": 1 if windows else None, "seconds": 0.5, "predicted_rows": 12,
            "covered": [["2026-03-01T05:00:00Z", "2026-03-01T06:00:00Z"]],
        }
        for name, reads, windows in (("15m", None, 4), ("1h", "15m", 1), ("day_in_europe_paris", "1h", 0))
    ],
    "late_rows": 2,
    "null_times": 0,
    "seconds": 1.25,
    "startup_seconds": 4.0,
    "wrote_anything": True,
    "dry_run": False,
}  # fmt: skip


def declared() -> Rollup:
    return Rollup.from_yaml(TRIPS)


def program(folder: Path, answer: object = REPORT, code: int = 0) -> str:
    """The file of a program that gives this answer and ends with this code."""
    file = folder / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    (folder / "answer.json").write_text(json.dumps([answer, code]), encoding="utf-8")
    return str(file)


def calls(folder: Path) -> list[list[str]]:
    """The arguments of each call of the program, without the plan."""
    file = folder / "calls"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [[command, *rest] for command, _, *rest in map(json.loads, lines)]


def running(program: Path) -> list[str]:
    """The processes that run a program: the JVM and its Python."""
    lines = list(Path("/proc").glob("[0-9]*/cmdline"))
    return [str(file) for file in lines if str(program) in _read(file)]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # it has ended meanwhile


def place(task: BashOperator, application: Application) -> None:
    task.bash_command = shlex.join([sys.executable, application.file, *application.arguments]) + " "


BashRollup = submitted_by(BashOperator, place)
