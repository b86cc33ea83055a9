"""Measure the planner and the engine, and write the tables of ``docs/benchmarks.md``.

    python bench/run.py                             everything (more than an hour), as make bench does
    python bench/run.py speed                       one part
    python bench/run.py engine --only others        one section of it
    python bench/run.py truth                       what goes on over time
    python bench/run.py changes                     what a changed declaration takes
    python bench/run.py airflow                     what Airflow adds
    python bench/run.py quality --sizes 5 --seeds 3    a look; prints, and writes nothing
    python bench/run.py engine --rows 2000000       likewise

Needs scipy, for the exact optima, DuckDB and Polars. Each row is printed as soon as it is known; a part, or a section
of the engine's, is written when the whole of it was measured. Times are shown, never asserted; a plan that is worse
than it says is an error.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import airflow_speed
import change_speed
import engine_speed
import plan_quality
import plan_speed
import truth_speed
from runs import HEADER, Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

Written by `make bench`; see `bench/` for what is measured and how.
"""
QUALITY = """\
Ten window sets of each kind, drawn by the generators of "Factor Windows" (R: RandomGen, S: SequentialGen), in the
paper's cost model with one event a second. "Cost / optimum" is for plans that may invent factor windows, over the
proven optimum of the same plan space; "composite" plans may cut time at any union of edges. Their optimum was worked
out for up to 10 windows that are read disjointly; beyond, their lower bound says how much better a plan could be.
"""
SPEED = """\
In process: processor time, from windows to plan, bound included, for window sets drawn by RandomGen with multiples up
to 50, 500 and 5,000 for 20, 100 and 1,000 windows. Whole processes: wall clock and processor time. The machine may have
been busy with other work (see its load): then the wall clock says more about it than about Stairwise.
"""

ENGINE = """\
Seconds of wall clock in one warm process, the sides in turn; medians of up to three rounds, of one where it takes long;
the ratios are what counts, the more so where the machine was busy with other work (see its load). Twenty windows are
those of 20 to 210 s; of RandomGen, twenty drawn with a seed for each.
"Dense" events are 1,000 in ten seconds for each of 100 keys, "ten_to_one" ones 10; there are 20 million, with count,
sum, min and max of a double. Where nothing is written, plans are those of the paper's cost model, which always shares
tumbling windows; where tables are, where windows hop, and where nothing is to be shared, those of the default model.
Spark's own windows of overlap 60 and more are asked for 1 of 200 events, at 1,440 for 1 of 5,000, and their time is
taken as often: it makes a copy of each event for each of its windows, and at 1,440 can no longer compile the query that
does. DuckDB and Polars read
the same files on two threads and keep results in memory: by a query for each window, and by the tiers of our plan, each
from its parent. The workloads whose cost is predicted are 1 to 20 windows of either generator, tumbling and hopping,
over 5 million events of 1 to 10,000 keys, shared and not; nothing is written, and the model is asked for that: one
pass, without commits and without the bytes of a table. Each section has the commit and the load at which it was
measured.
"""

TRUTH = """\
Seconds of wall clock in one warm session, the sides in turn, medians of eight rounds after four that warm it. Ten
windows of 1 minute to 1 day, in one table where nothing else is said. A year of hourly runs is laid out by another
writer of Delta tables, hour by hour, with the rows and claims of as many runs, and checkpoints; nothing was compacted
unless it says so: then logs also lose, as Delta Lake has it, what is older than thirty days.
"By hand" is what one writes without Stairwise: the minutes from the new events, kept in memory, the other windows from
them and from the hours of the table, one append each, of what was asked for blindly.
"""

CHANGES = """\
Seconds of wall clock in one warm session, medians of three rounds after one that warms it, of eight where tables are
only looked at. A round fills four tables of 10 s to 5 min with 20 million dense events, adds two windows, and then an
average whose states are there; neither reads an event. Beside it stands what fills all of these tables of the events. A
year of hourly runs is laid out as it is for what goes on over time.
"""

AIRFLOW = """\
Medians, in one process. Parsing is the making of the DAG, the plan of its declaration included, and its serialisation.
Hourly runs of four windows over 120,000 events are driven by Airflow's own test of a DAG, with ``spark-submit`` on this
machine: each has a JVM of its own.
"""

ENGINE_TITLE, TRUTH_TITLE, AIRFLOW_TITLE = "Events to tiers", "Over time", "In Airflow"
CHANGES_TITLE = "Changed declarations"
NOTES: Mapping[str, str] = MappingProxyType(
    {
        "computing": """\
What bounds the dense rows: to open and check the source and to build the query took 1.0 s in a profile under such a
load, which a single tier has not; the rest is the scan and its grouping, a second exchange, by key, and NumPy.
""",
        "writing": """\
What bounds these rows, by a profile of the dense run: a table that is filled costs half a second where an append
without a question costs 0.15 s, four at a time, because the commit makes sure that nobody else adds the same rows
(ADR 16), and for that Delta Lake works out the state of the table, by a query that it plans anew after each commit.
The 20 tables and the helper pay that 21 times; one table and its helpers pay it twice, beside three seconds for what
any run does once: to look at the source and the tables, to make them, and to keep the plan and the report. Tried
instead of the guard: a transaction identifier for each table (0.43 s), the files in the checksum of each commit, no
statistics, neither adaptive nor compiled queries (0.40 to 0.50 s). With ten events a slice, the rows themselves weigh
more: 5.3 million are moved to their partitions, compressed and written.
""",
    }
)
"""What bounds the rows of a section that are not where they should be."""
SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        ENGINE_TITLE: (ENGINE, tuple(engine_speed.SECTIONS)),
        TRUTH_TITLE: (TRUTH, tuple(truth_speed.SECTIONS)),
        CHANGES_TITLE: (CHANGES, tuple(change_speed.SECTIONS)),
        AIRFLOW_TITLE: (AIRFLOW, tuple(airflow_speed.SECTIONS)),
    }
)
"""Parts that are written section by section: what stands before, and their order."""
PARTS = ("quality", "speed", "engine", "truth", "changes", "airflow")


class _Given(argparse.Namespace):
    parts: list[str]
    sizes: str
    seeds: int
    only: list[str]
    rows: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how good plans are and how fast they come.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--sizes", default="", metavar="N,N", help="window set sizes; nothing is written then")
    parser.add_argument(
        "--seeds", type=int, default=plan_quality.SEEDS, metavar="K", help="sets of each kind; likewise"
    )
    sections = [*engine_speed.SECTIONS, *truth_speed.SECTIONS, *change_speed.SECTIONS, *airflow_speed.SECTIONS]
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=sections,
        metavar="SECTION",
        help=f"of the parts after speed, also several: {', '.join(sections)}",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=engine_speed.ROWS,
        metavar="N",
        help="of the events of engine and changes; nothing is written then",
    )
    given = parser.parse_args(namespace=_Given())
    parts = given.parts or PARTS
    if not {*parts} <= {*PARTS}:
        parser.error(f"parts are {', '.join(PARTS)}, not {' '.join(parts)}")
    sizes = tuple(int(size) for size in given.sizes.split(",") if size)
    is_whole = not sizes and given.seeds == plan_quality.SEEDS
    code = 0
    if "quality" in parts:
        measured = plan_quality.quality(sizes or plan_quality.SIZES, given.seeds)
        found = [f"- {slip}\n" for slip in measured.slips] or ["Every claim of every plan held.\n"]
        code = 1 if measured.slips else 0
        _publish("How good", QUALITY, plan_quality.HEADER, measured.rows, found, is_whole=is_whole)
    if "speed" in parts:
        speeds = list(_shown(plan_speed.speed(sizes or tuple(plan_speed.MULTIPLES))))
        _publish("How fast", SPEED, plan_speed.HEADER, speeds, [], is_whole=is_whole)
    if "engine" in parts:
        for name, rows in engine_speed.engine_speed(given.only, given.rows):
            _publish_section(ENGINE_TITLE, name, list(_shown(rows)), is_whole=given.rows == engine_speed.ROWS)
    if "changes" in parts:
        for name, rows in change_speed.change_speed(given.only, given.rows):
            _publish_section(CHANGES_TITLE, name, list(_shown(rows)), is_whole=given.rows == engine_speed.ROWS)
    for part, title, sections_of in (
        ("truth", TRUTH_TITLE, truth_speed.truth_speed),
        ("airflow", AIRFLOW_TITLE, airflow_speed.airflow_speed),
    ):
        for name, rows in sections_of(given.only) if part in parts else ():
            _publish_section(title, name, list(_shown(rows)), is_whole=True)
    return code


def _shown(rows: Iterable[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        print("  ".join(row), flush=True)
        yield row


def _publish(
    title: str, text: str, header: Sequence[str], rows: Sequence[Sequence[str]], found: Sequence[str], *, is_whole: bool
) -> None:
    """Print a part, and put it in its place on the page, leaving the other parts as they are."""
    body = f"{text}\n{_circumstances()}\n\n{_table(header, rows)}\n{''.join(found)}".rstrip() + "\n"
    print(f"\n## {title}\n\n{body}")
    if is_whole:
        _write(_parts() | {title: body})


def _publish_section(title: str, name: str, rows: Sequence[Row], *, is_whole: bool) -> None:
    """Print a section of a part, and put it in its place, leaving the other sections as they are."""
    introduction, order = SECTIONS[title]
    note = f"\n{NOTES[name]}" if name in NOTES else ""
    section = f"{_circumstances()}\n\n{_table(HEADER, rows)}{note}"
    print(f"\n### {name}\n\n{section}")
    if is_whole:
        parts = _parts()
        known = dict(_split(parts.get(title, ""), "\n### ")) | {name: section}
        texts = [f"### {each}\n\n{known[each]}" for each in order if each in known]
        _write(parts | {title: "\n".join([introduction, *texts])})


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _split(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """The titles and the texts of what comes after each mark."""
    for each in text.split(mark)[1:]:
        title, _, body = each.partition("\n")
        yield title, body.strip() + "\n"


def _parts() -> dict[str, str]:
    """What is on the page now, by title."""
    return dict(_split(PAGE.read_text(encoding="utf-8"), "\n## ")) if PAGE.exists() else {}


def _write(parts: Mapping[str, str]) -> None:
    texts = [f"## {title}\n\n{parts[title]}" for title in sorted(parts, reverse=True)]
    PAGE.write_text("\n".join([INTRODUCTION, *texts]), encoding="utf-8")


def _circumstances() -> str:
    """Machine, commit and command, without which no number means anything."""
    commit = _git("rev-parse", "--short", "HEAD") + (
        " with changes" if _git("status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}") else ""
    )
    command = " ".join(["python", "bench/run.py", *sys.argv[1:]])
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}, `{command}`, Python {platform.python_version()}, "
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}."
    )


def _git(*arguments: str) -> str:
    return subprocess.run(  # noqa: S603
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False  # noqa: S607
    ).stdout.strip()  # fmt: skip


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
