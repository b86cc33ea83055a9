"""What runs have left of a rollup: its plan and their reports, from files of the target or from Airflow's database.

Spark is never asked. The folder is that of the declaration in the DAG; nothing that a browser sends gets into a path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from errno import ENOENT
from functools import lru_cache
from pathlib import Path

from stairwise import Rollup, optimize
from stairwise.codec import decode_plan
from stairwise.declared import Catalog
from stairwise.errors import StairwiseError
from stairwise.plan import Plan
from stairwise_airflow.reports import Report
from stairwise_airflow.timeline import Coverage, coverages

_MOST_REPORTS = 20_000
_MOST_BYTES = 4_000_000  # of a file: a plan of a thousand tiers has a quarter of it


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is known of a rollup.

    Attributes:
        rollup: The declaration, as the DAG has it.
        plan: The plan that its tables were filled by; without one, the one that the next run would make.
        reports: Of its runs, the oldest first.
        tiers: What they have written of each tier of the plan.
        problem: Why the target cannot be read from here; empty if it can.
    """

    rollup: Rollup
    plan: Plan
    reports: tuple[Report, ...]
    tiers: Mapping[str, Coverage]
    problem: str


def history(rollup: Rollup, told: Iterable[object] = ()) -> History:
    """What is known of a rollup.

    Args:
        rollup: The declaration.
        told: Reports that tasks have told Airflow, which count where the files cannot be read.
    """
    folder = _folder(rollup)
    if folder is None:
        return _told(rollup, told, f"The target {rollup.target} is not in a folder of this machine.")
    try:
        files = _files(folder)
    except FileNotFoundError:
        return _told(rollup, told, f"There is no folder {folder} here: nothing was written yet, or elsewhere.")
    except OSError as error:
        return _told(rollup, told, f"{folder} cannot be read here ({error.strerror}).")
    return _left(rollup, folder, files)


def _told(rollup: Rollup, told: Iterable[object], problem: str) -> History:
    plan = _planned(rollup)
    found = {report.run_id: report for report in _understood(told) if report.rollup == rollup.name}
    reports = tuple(found[run] for run in sorted(found))
    tiers = coverages(reports, _tiers(plan))
    return History(rollup=rollup, plan=plan, reports=reports, tiers=tiers, problem=problem)


def _left(rollup: Rollup, folder: Path, files: tuple[str, ...]) -> History:
    plan = _kept_plan(folder / "plan.json")
    if plan is None or plan.declaration is None or plan.declaration.windows != rollup.windows:
        plan = _planned(rollup)
    reports, tiers = _kept_reports(files, _tiers(plan))
    return History(rollup=rollup, plan=plan, reports=reports, tiers=tiers, problem="")


def _folder(rollup: Rollup) -> Path | None:
    """The folder of the bookkeeping; None: the target is none that a file system has."""
    if isinstance(rollup.target, Catalog) or ("://" in rollup.target and not rollup.target.startswith("file:///")):
        return None
    return Path(rollup.target.removeprefix("file://")) / "_stairwise"


def _files(folder: Path) -> tuple[str, ...]:
    """The files of the newest reports, the oldest first.

    Raises:
        OSError: The folder is not there, or nobody here may read what is in it.
    """
    if "runs" not in (each.name for each in folder.iterdir()):
        return ()
    files = sorted(str(each) for each in (folder / "runs").iterdir() if each.suffix == ".json")[-_MOST_REPORTS:]
    if files and Path(files[-1]).is_file():
        Path(files[-1]).open("rb").close()
    return tuple(files)


@lru_cache(maxsize=64)
def _planned(rollup: Rollup) -> Plan:
    return optimize(rollup)


def _tiers(plan: Plan) -> tuple[str, ...]:
    return tuple(step.tier.name for step in plan.steps)


def _kept_plan(file: Path) -> Plan | None:
    try:
        changed = file.stat().st_mtime_ns
    except OSError:
        return None
    return _read_plan(str(file), changed)


@lru_cache(maxsize=64)
def _read_plan(file: str, changed: int) -> Plan | None:
    del changed  # what was read is remembered until it does
    try:
        return decode_plan(_text(file))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=16)
def _kept_reports(files: tuple[str, ...], tiers: tuple[str, ...]) -> tuple[tuple[Report, ...], Mapping[str, Coverage]]:
    """The reports in files, and what they come to: of many runs and tiers, that takes seconds to work out."""
    reports = tuple(report for report in map(_kept_report, files) if report is not None)
    return reports, coverages(reports, tiers)


@lru_cache(maxsize=2 * _MOST_REPORTS)
def _kept_report(file: str) -> Report | None:
    """The report in a file, which is never changed once it is there; None: it is none, and is left out."""
    try:
        return Report.of(json.loads(_text(file)))
    except (OSError, ValueError, RecursionError):
        return None


def _text(file: str) -> str:
    """What a file begins with; whoever opened a pipe would wait for its other end."""
    if not Path(file).is_file():
        raise FileNotFoundError(ENOENT, "it is no file", file)
    with Path(file).open(encoding="utf-8") as opened:
        return opened.read(_MOST_BYTES)


def _understood(told: Iterable[object]) -> Iterable[Report]:
    for document in told:
        try:
            yield Report.of(document)
        except StairwiseError:
            continue
