"""What runs have left of a rollup: its plan and their reports, from files of the target or from Airflow's database.

Spark is never asked. The folder is that of the declaration in the DAG; nothing that a browser sends gets into a path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOENT
from functools import lru_cache
from pathlib import Path

from stairwise import Rollup, optimize
from stairwise.codec import decode_plan
from stairwise.declared import Catalog
from stairwise.errors import StairwiseError
from stairwise.plan import Plan
from stairwise_airflow.reports import Covered, Report
from stairwise_airflow.timeline import Coverage, coverages

MOST_REPORTS = 1_000  # six weeks of hours: whoever waits for all reports of years waits for ten seconds
_MOST_BYTES = 4_000_000  # of a file: a plan of a thousand tiers has a quarter of it


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is known of a rollup.

    Attributes:
        rollup: The declaration, as the DAG has it.
        plan: The plan that its tables were filled by; without one, the one that the next run would make.
        reports: Of its newest runs, the oldest first.
        runs: So many runs have left a report.
        tiers: What runs have written of each tier of the plan, and is there.
        earliest: When the earliest events happened that reports tell of; None: they tell of none.
        knows_before: Whether that is so of runs too of which no report is here.
        problem: Why the target cannot be read from here; empty if it can.
    """

    rollup: Rollup
    plan: Plan
    reports: tuple[Report, ...]
    runs: int
    tiers: Mapping[str, Coverage]
    earliest: int | None
    knows_before: bool
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
    return History(
        rollup=rollup,
        plan=plan,
        reports=reports,
        runs=len(reports),
        tiers=coverages(reports, _tiers(plan)),
        earliest=_earliest(reports),
        knows_before=False,
        problem=problem,
    )


def _left(rollup: Rollup, folder: Path, files: Sequence[str]) -> History:
    plan = _kept_plan(folder / "plan.json")
    if plan is None or plan.declaration is None or plan.declaration.windows != rollup.windows:
        plan = _planned(rollup)
    told = _kept_coverage(folder / "covered.json")
    reports, tiers = _kept_reports(tuple(files[-MOST_REPORTS:]), _tiers(plan), told)
    oldest = [_kept_report(file) for file in files[:1]]
    return History(
        rollup=rollup,
        plan=plan,
        reports=reports,
        runs=len(files),
        tiers=tiers,
        earliest=_earliest([*(each for each in oldest if each is not None), *reports]),
        knows_before=told is not None,
        problem="",
    )


def _folder(rollup: Rollup) -> Path | None:
    """The folder of the bookkeeping; None: the target is none that a file system has."""
    if isinstance(rollup.target, Catalog) or ("://" in rollup.target and not rollup.target.startswith("file:///")):
        return None
    return Path(rollup.target.removeprefix("file://")) / "_stairwise"


def _files(folder: Path) -> list[str]:
    """The files of the reports, the oldest first: they are named by when the run began.

    Raises:
        OSError: The folder is not there, or nobody here may read what is in it.
    """
    if "runs" not in (each.name for each in folder.iterdir()):
        return []
    runs = folder / "runs"
    # As texts, of which there may be tens of thousands.
    files = [f"{runs}/{name}" for name in sorted(os.listdir(runs)) if name.endswith(".json")]  # noqa: PTH208 - see above
    if files and Path(files[-1]).is_file():
        Path(files[-1]).open("rb").close()
    return files


def _earliest(reports: Iterable[Report]) -> int | None:
    return min((each.earliest for each in reports if each.earliest is not None), default=None)


@lru_cache(maxsize=64)
def _planned(rollup: Rollup) -> Plan:
    return optimize(rollup)


def _tiers(plan: Plan) -> tuple[str, ...]:
    return tuple(step.tier.name for step in plan.steps)


def _kept_plan(file: Path) -> Plan | None:
    changed = _changed(file)
    return None if changed is None else _read_plan(str(file), changed)


def _kept_coverage(file: Path) -> Covered | None:
    changed = _changed(file)
    return None if changed is None else _read_coverage(str(file), changed)


def _changed(file: Path) -> int | None:
    """When a file was changed, so that what was read is remembered until it is; None: it cannot be read."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=64)
def _read_plan(file: str, _changed: int) -> Plan | None:
    try:
        return decode_plan(_text(file))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _read_coverage(file: str, _changed: int) -> Covered | None:
    try:
        return Covered.of(json.loads(_text(file)))
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=16)
def _kept_reports(
    files: tuple[str, ...], tiers: tuple[str, ...], told: Covered | None
) -> tuple[tuple[Report, ...], Mapping[str, Coverage]]:
    """The reports in files, and what is there by them and by what the last run has told of all."""
    reports = tuple(report for report in map(_kept_report, files) if report is not None)
    return reports, coverages(reports, tiers, told)


@lru_cache(maxsize=16 * MOST_REPORTS)
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
