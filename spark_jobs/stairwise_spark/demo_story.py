"""The demo itself: what is done, in order, and the lines that tell it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stairwise import Rollup, optimize
from stairwise.instant import format_instant
from stairwise.json_fields import Fields
from stairwise.picture import draw
from stairwise.plan import Plan
from stairwise.window import Window
from stairwise.windowing import Interval, windows_ending
from stairwise_spark import demo_told as told
from stairwise_spark.demo_files import DAG_ID, DAGS, DAYS, HISTORY_ID, declaration
from stairwise_spark.demo_place import BESIDE, Place
from stairwise_spark.demo_rows import LATE, LATE_SHARE, YEAR, ZONE, ZONES, by_month, seconds, trips
from stairwise_spark.demo_server import Server
from stairwise_spark.demo_table import append

_HOUR, _FINEST = 3_600, 300
_HOURS_A_YEAR = (YEAR.end - YEAR.start) // _HOUR
_HOURS = tuple(Interval(YEAR.end + n * _HOUR, YEAR.end + (n + 1) * _HOUR) for n in range(2))
"""Those after the year, which a schedule brings."""
_SEED = 2_025
_LOOK = "see demo.log beside it."
_READERS = ("deltalake", "duckdb")
Section = Callable[[], Iterator[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A demo.

    Attributes:
        place: Where it is, and where Spark is.
        server: The Spark of all runs.
        year: The trips that are there from the beginning.
        hours: Those of two hours after it.
        late: Those that come with the second hour, though they are of spring.
    """

    place: Place
    server: Server
    year: pa.Table
    hours: tuple[pa.Table, ...]
    late: pa.Table

    @classmethod
    def of(cls, place: Place, server: Server, rows: int) -> Story:
        """A demo with a year of so many trips."""
        an_hour = max(1, rows // _HOURS_A_YEAR)
        return cls(
            place=replace(place, remote=server.address),
            server=server,
            year=trips(YEAR, rows, _SEED),
            hours=tuple(trips(hour, an_hour, _SEED + n) for n, hour in enumerate(_HOURS, start=1)),
            late=trips(LATE, rows // LATE_SHARE, _SEED),
        )

    @property
    def rollup(self) -> Rollup:
        """What is declared."""
        return declaration(self.place.events, self.place.target, len(self.year))

    @property
    def plan(self) -> Plan:
        """What every run carries out."""
        return optimize(self.rollup)

    def sections(self) -> Iterator[tuple[str, Section]]:
        """The titles in order, and what is done under each; each needs those before it."""
        file, scheduled = short(self.place.declaration), f"airflow dags test {DAG_ID}"
        yield "1  A year of taxi trips in Paris", self._events
        yield f"2  The plan: stairwise plan {file}", self._planned
        yield f"3  History: airflow dags test {HISTORY_ID}", self._history
        yield f"4  A scheduled hour: {scheduled} {format_instant(_HOURS[0].end)}", self._scheduled
        yield f"5  Late trips, with the next hour: {scheduled} {format_instant(_HOURS[1].end)}", self._repaired
        yield f"6  Is it true? stairwise verify {file}", self._verified
        yield "7  The same tables without a plan: a query of Spark for each window", self._compared
        yield "8  Yours now", self._left

    def _events(self) -> Iterator[str]:
        append(self.place.events, by_month(self.year), "pickup_at")
        share = np.bincount(self.year["zone_id"].to_numpy()).max() / len(self.year)
        yield f"{len(self.year):,} trips: {share:.0%} of them in one of {ZONES} zones, few by night, none on two days,"
        yield f"one day of 23 hours and one of 25. They are a Delta table: {short(self.place.events)}"

    def _planned(self) -> Iterator[str]:
        self.place.declaration.write_text(self.rollup.to_yaml(), encoding="utf-8")
        (self.place.dags / f"{DAG_ID}.py").write_text(DAGS, encoding="utf-8")
        self.place.picture.write_text(draw(self.plan), encoding="utf-8")
        yield from told.plan_told(self.plan)

    def _history(self) -> Iterator[str]:
        self.place.run("airflow", "db", "migrate")
        self.server.await_ready()
        conf = {"start": format_instant(YEAR.start), "end": format_instant(YEAR.end)}
        self.place.run("airflow", "dags", "test", HISTORY_ID, "--conf", json.dumps(conf))
        yield from told.history_told(self._report(0), len(self.year))

    def _scheduled(self) -> Iterator[str]:
        append(self.place.events, self.hours[:1], "pickup_at")
        self.place.run("airflow", "dags", "test", DAG_ID, format_instant(_HOURS[0].end))
        yield from told.hour_told(self._report(1), len(self.hours[0]))

    def _repaired(self) -> Iterator[str]:
        append(self.place.events, (self.hours[1], self.late), "pickup_at")
        yield f"{len(self.late):,} trips of {told.days_of(LATE)} come to light, on both sides of the night of 30 March."
        self.place.run("airflow", "dags", "test", DAG_ID, format_instant(_HOURS[1].end))
        yield from told.repair_told(self._report(2), self._counted())

    def _verified(self) -> Iterator[str]:
        yield from self.place.run("stairwise", "verify", str(self.place.declaration)).splitlines()

    def _compared(self) -> Iterator[str]:
        folders = map(str, (self.place.events, self.place.target, self.place.by_hand))
        # In a Spark of its own, which is as new to its work as that of the plan was.
        alone = replace(self.place, remote=None)
        answer = alone.run("python", "-m", "stairwise_spark.demo_by_hand", *folders)
        by_hand = Fields.of(json.loads(answer), "the comparison", _LOOK)
        yield from told.compared_told({name: by_hand.fields(name) for name in by_hand.values}, self._report(0))

    def _left(self) -> Iterator[str]:
        table = short(self.place.target)
        yield f"All windows are in one Delta table, {table}; with 'layout: tables' each has one of its own."
        yield "In DuckDB, without Spark, the busiest days:"
        yield ""
        yield from asked(self.place, busiest_days(self.place.target))
        yield ""
        stairwise = program()
        file = short(self.place.declaration)
        next_ones = (
            (f"{stairwise} demo --ui --dir {short(self.place.folder)}", "Airflow, with this history in it"),
            (f"{stairwise} why {file} {DAYS} 2025-03-30T12:00Z", "who made the day of 23 hours, and from what"),
            (f"{stairwise} init TABLE_OR_PATH", "a first declaration for a table of yours"),
        )
        yield "What to type next:"
        yield ""
        for command, purpose in next_ones:
            yield f"  {command}"
            yield f"      {purpose}"
        yield ""
        yield f"The plan as a picture: {short(self.place.picture)}; what the programs said: {short(self.place.log)}"

    def _report(self, number: int) -> Fields:
        """The report of a run, by its place in the history."""
        files = sorted((self.place.target / "_stairwise" / "runs").glob("*.json"))
        return Fields.of(json.loads(files[number].read_text(encoding="utf-8")), files[number].name, _LOOK)

    def _counted(self) -> dict[str, told.Windows]:
        """The windows of each tier, when the second hour has ended."""
        late = np.unique(seconds(self.late) // _FINEST * _FINEST).tolist()
        begun = np.sort(np.concatenate([seconds(table) for table in (self.year, *self.hours)]))
        return {
            name: told.Windows(
                late=told.windows_touched(window, late, _HOURS[1].end),
                new=sum(_has_trips(begun, each) for each in windows_ending(window, *_HOURS[1])),
                ended=sum(1 for _ in windows_ending(window, YEAR.start, _HOURS[1].end)),
            )
            for name, window in self._windows()
        }

    def _windows(self) -> Iterator[tuple[str, Window]]:
        for step in self.plan.steps:
            if step.tier.window is not None:
                yield step.tier.name, step.tier.window


def _has_trips(begun: NDArray[np.int64], window: Interval) -> bool:
    first, end = np.searchsorted(begun, window)
    return bool(first < end)


def busiest_days(target: Path) -> tuple[str, ...]:
    """Which days were the busiest, asked of the tables as Python reads them."""
    return (
        "import deltalake, duckdb",
        f"tiers = deltalake.DeltaTable({short(target)!r}).to_pyarrow_dataset()",
        f'duckdb.sql("""SELECT (window_start AT TIME ZONE \'{ZONE}\')::DATE AS day, sum(trips) AS trips',
        f"  FROM tiers WHERE \"window\" = '{DAYS}'",
        '  GROUP BY day ORDER BY trips DESC LIMIT 3""").show()',
    )


def asked(place: Place, lines: Sequence[str]) -> Iterator[str]:
    """Lines of Python, and what they print; or what they need, where that is missing."""
    yield from (f"  {line}" for line in lines)
    yield ""
    missing = [name for name in _READERS if find_spec(name) is None]
    if missing:
        yield f"  They need more than is here: pip install {' '.join(missing)}"
        return
    # From where somebody would type them.
    program = "\n".join([f"__import__('os').chdir({str(Path.cwd())!r})", *lines])
    yield from (f"  {line}" for line in place.run("python", "-c", program).splitlines() if line)


def short(path: Path) -> str:
    """A path as somebody types it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def program() -> str:
    """How the command line is called here.

    >>> Path(program()).name
    'stairwise'
    """
    found = shutil.which("stairwise")
    ours = BESIDE / "stairwise"
    return "stairwise" if found is not None and Path(found) == ours else short(ours)
