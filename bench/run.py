"""Measure the planner and the engine, and write the tables and pictures of ``docs/benchmarks.md``.

    python bench/run.py                             everything (some hours), as make bench does
    python bench/run.py --quick                     a little of everything (minutes), as make bench-quick does
    python bench/run.py speed                       one part
    python bench/run.py engine --only others        one section of it
    python bench/run.py truth                       what goes on over time
    python bench/run.py changes                     what a changed declaration takes
    python bench/run.py airflow                     what Airflow adds
    python bench/run.py papers                      what the papers claim
    python bench/run.py scaling                     what it costs to have more
    python bench/run.py quality --sizes 5 --seeds 3    a look; prints, and writes nothing
    python bench/run.py engine --rows 2000000       likewise

Needs scipy, for the exact optima, DuckDB and Polars. Each row is printed as soon as it is known; a part, or a section
of one, is written when the whole of it was measured; then the pictures are drawn from the page. What is quick is
written to ``target/quick``, for its numbers mean little. Times are shown, never asserted; a plan that is worse than it
says is an error.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

import airflow_speed
import change_speed
import engine_speed
import papers
import plan_quality
import plan_speed
import scaling
import truth_speed
from pictures import drawn, embedded
from runs import HEADER, PACE, Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
QUICK_PAGE = ROOT / "target" / "quick" / "benchmarks.md"
WRITTEN = (":!docs/benchmarks.md", ":!docs/pictures/bench-*")
"""What Git calls changed because of us."""
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
Seconds of wall clock in one warm process, the sides in turn, each once it no longer gets faster by a tenth, or for a
minute; medians of up to three rounds, of one where it takes long;
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
writer of Delta tables, hour by hour, with the rows of as many runs, their claims as the bookkeeping has them after the
last, and checkpoints; each time that the tables have 256 more commits their files are put together, as runs do it, the
last time 200 commits before its end, and logs lose, as Delta Lake has it, what is older than thirty days.
"By hand" is what one writes without Stairwise: the minutes from the new events, kept in memory, the other windows from
them and from the hours of the table, one append each, of what was asked for blindly.
"""

CHANGES = """\
Seconds of wall clock in one warm session, medians of three rounds after one that warms it, of eight where tables are
only looked at. A round fills four tables of 10 s to 5 min with 20 million dense events, adds two windows, and then an
count whose states are there; neither reads an event. Beside it stands what fills all of these tables of the events.
Rows are those that each has to read: of the tables for a change, of the source for all of them. A year of hourly runs
is laid out as it is for what goes on over time.
"""

AIRFLOW = """\
Medians, in one process. Parsing is the making of the DAG, the plan of its declaration included, and its serialisation.
Hourly runs of four windows over 120,000 events are driven by Airflow's own test of a DAG, with ``spark-submit`` on this
machine: each has a JVM of its own.
"""

PAPERS = """\
Window sets are drawn as "Factor Windows" (000) draws them, with a seed for each set, which its numbers fit; three sets
of each kind and not its ten, and as many events, 10 million, but one a second for each of 100 keys and not of one, so
that there is work for two cores: their 100,000 seconds hold some fifty of the longest windows. The aggregate is a
minimum, as there, which tumbling windows read side by side and hopping ones also where they overlap. A boost is the
time of one query with `window()` for each window over the time of a plan, both as Spark jobs over the same Delta table
that keep nothing, measured once each in a warm JVM; the paper's are of Trill, on one core. The data of its table II are
not to be had: its numbers stand beside ours for the same kind of sets. "Algorithm 1" and "3" are the plans of the
paper, computed by our engine; "ours" are those of the default model, and what the paper's model predicts of ours is
what it predicts of the plan that it finds best. What is counted and not timed needs no machine: states combined,
slices, trees, scans. Scans of ours are those of the default model; as many as there are windows means that it shares
nothing. "Sharing by keys" has 2 million events, 10,000 a second: with a million keys nearly each event of two seconds
has a key of its own, and no table is smaller than the events. Each way is computed by our engine there; "shared" is the
plan of the paper's model, which counts no keys, and what is predicted is what the batch model says of that plan.
"""

SCALING = """\
Seconds of wall clock in one warm process, as under "Events to tiers". The limit is one scan of the events that keeps
nothing. "By hand" is a table of ten-second slices in memory, and each window from it by a query of its own. DuckDB and
Polars have two threads, read the files of the same tables and keep results in memory. An empty cell is of one who would
read the events too often to wait for: more than 500 million of them, times windows.
Up to 100 windows are those of 20 s, 30 s and so on, over 2 million events of 100 keys, 20,000 s; events, those of
"dense" ones; keys, 2 million events, 10,000 a second, and five windows of 20 to 180 s, planned by the default model.
History is that of ten windows of 1 minute to 1 day over 120 events an hour, written hour by hour; what is older than a
month was put together by weeks, as maintenance does. The daily cache of it keeps days, and computes all windows of
today again. Late rows lie anywhere in 30 days of 3,600 events an hour; beside the run that mends the tables stand all
days with a late row again, and everything again.
"""

ENGINE_TITLE, TRUTH_TITLE, AIRFLOW_TITLE = "Events to tiers", "Over time", "In Airflow"
PAPERS_TITLE, SCALING_TITLE, CHANGES_TITLE = "What the papers claim", "What more costs", "Changed declarations"
TITLES = ("How good", "How fast", ENGINE_TITLE, PAPERS_TITLE, SCALING_TITLE, TRUTH_TITLE, CHANGES_TITLE, AIRFLOW_TITLE)
"""The parts of the page in their order."""
NOTES: Mapping[str, str] = MappingProxyType(
    {
        "computing": """\
What bounds the dense rows: to open and check the source and to build the query, which a single tier has not, took a
quarter of the time in a profile on a machine that was slower and busy; the rest is the scan and its grouping, a second
exchange, by key, and NumPy.
""",
        "writing": """\
What bounds these rows, by a profile of the dense run on a machine half as fast, where all of it took 26 s in tables of
their own and 10 s in one: a table that is filled costs half a second where an append without a question costs 0.15 s,
four at a time, because the commit makes sure that nobody else adds the same rows (ADR 16), and for that Delta Lake
works out the state of the table, by a query that it plans anew after each commit. The 20 tables and the helper pay that
21 times; one table and its helpers pay it twice, beside three seconds for what any run does once: to look at the source
and the tables, to make them, and to keep the plan and the report. Tried instead of the guard: a transaction identifier
for each table (0.43 s), the files in the checksum of each commit, no statistics, neither adaptive nor compiled queries
(0.40 to 0.50 s). Tried as well: to look at the source, at the bookkeeping and for missing times side by side, and to
list the files that were read beside the write, which took as long on two cores (3.88 s an hourly run, before 3.90 s).
By the times in Spark's own log of a dense run into one table, of 3.5 s: 0.4 s to open the source and to see that
nothing is there, 0.4 s to make three tables, 0.15 s to keep the plan, 0.35 s to build the queries, 1.9 s to compute and
to commit, 0.35 s to look at what became of it and to keep the report. For 16 x all of it would have to take 1.4 s, of
which computing alone takes 1.0 s; for 7 x in 20 tables 3.2 s, in which they could just be made and appended to without
a guard: 20 tables of 20,000 rows, four at a time, took 1.0 s to make, 2.6 s to make and append to, 5.9 s with the
guard, and 1.9 s where the first rows make the table by one commit, which none can race; but a table that is made so
lets the bounds of its windows be NULL. As files without a log they took 0.9 s. Any question to the table makes a
commit as dear, also one that no row has to be looked at for: Delta Lake works out all of its state for it. With ten
events a slice, the rows themselves weigh more. By the times in Spark's own log of such a run into one table, of 13.8 s,
which keeps both cores busy: 1.8 s to open and to make, 2.1 s to scan and to group the events, 3.2 s to move 2 million
rows by key and to make 5.3 million of 20 windows of them, 1.7 s to move these to their partitions, 3.6 s to write them
as Parquet, 1 s for the helper's 1.7 million. Tried: not to move them (15.2 s, and 432 files instead of 54), without
statistics, without counting windows, without compression (12.2 to 12.7 s each, beside 12.6 s).
""",
        "hourly": """\
In that year the tables were looked after as runs do it, each time that they had 256 more commits. Where nobody does,
each hour leaves files for ten windows, and the guard of an append has Delta Lake work out the state of all of them: an
hour after such a year took twice as long as one after a day.
""",
        "boosts": """\
Sets of SequentialGen gain less by tumbling windows here than in the paper: a slice of theirs holds two to ten events
of a key, and to make and to move a row of a tier costs Spark as much as some of these. With a thousand events in a
slice, twenty such windows are [more than twenty times as fast](#computing).
""",
        "late": """\
What bounds the second row, by the times in Spark's own log of a run of 14 s: 3.5 s before anything is computed, half of
it to compare versions of the source and half to work out which windows of ten tiers the 23,000 touched ranges are in;
2 s in which Delta Lake finds each of the 110 files with a window that is replaced, and writes anew what stays; 1.9 s to
read the events, which is a scan of all of them; 5 s to merge them with stored neighbours, to move 1.5 million rows by
key and to write them; 1 s for claims and report. Tried: a mask of the touched minutes as a text that each event cuts,
where the scan took 5 s; the same as an array of numbers in the predicate of the write, which Delta Lake makes anew for
each row that it checks.
""",
        "long-log": """\
What bounds this row, by a profile: to open 10,000 files of one row each takes Spark 3 to 4 s on two cores, warm, and it
copies all of its settings for each; to list them for Python, which takes each name by a call of its own, 2 s. Tried:
commits read as whole files and taken apart after, which halves what their reading took.
""",
        "more": """\
What is cheaper are the rows: a change reads a few thousand of the tables, where all of it anew reads 20 million events.
What bounds the seconds: queries and commits of a tenth of a second each, however few rows there are. By the times in
Spark's own log, two windows more took 0.5 s to open source and tables and to see what they reflect, 0.3 s to make two
tables, 0.4 s to plan, 0.8 s to read their parents and to commit, 0.8 s to keep report and plan and to look whether
anything is left; an aggregate more replaces what is in each of six tables, which took 3.7 s, four at a time, most of it
Delta Lake's. All tables together are one scan of the events, which is what grows with them: for 20 x it would have to
take a minute. Tried: to look at the tables once for both, the change and the run that fills (0.5 s less), and
to ask tables when the events were (0.4 s less, and more the more events there are).
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
        PAPERS_TITLE: (PAPERS, tuple(papers.SECTIONS)),
        SCALING_TITLE: (SCALING, tuple(scaling.SECTIONS)),
    }
)
"""Parts that are written section by section: what stands before, and their order."""
HEADERS: Mapping[str, Row] = MappingProxyType({**papers.HEADERS, **scaling.HEADERS})
"""Of those sections that have one of their own."""
PARTS = ("quality", "speed", "engine", "truth", "changes", "airflow", "papers", "scaling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is measured, and where it is written.

    Attributes:
        page: Where; None: it is only printed.
        sizes: How many windows the planner's sets have; empty for those of each part.
        seeds: How many sets of each kind.
        rows: Of the engine's events.
        truth: Sections of what goes on over time; empty for all of them.
        papers: Of what the papers claim.
        scaling: Of what more costs.
    """

    page: Path | None
    sizes: tuple[int, ...] = ()
    seeds: int = plan_quality.SEEDS
    rows: int = engine_speed.ROWS
    truth: tuple[str, ...] = ()
    papers: papers.Size = papers.WHOLE
    scaling: scaling.Size = scaling.WHOLE

    @classmethod
    def quick(cls) -> Extent:
        """A little of everything; whatever has its own pace or size is told so."""
        PACE.rounds, PACE.is_warm = 1, False
        airflow_speed.HOURS = 2
        truth_speed.WARMING, truth_speed.ROUNDS, truth_speed.COMMITS, truth_speed.LATE_DAYS = 1, 1, 40, 2
        truth_speed.LATE_ROUNDS = 1
        change_speed.WARMING, change_speed.ROUNDS, change_speed.DIFFERENCES = 0, 1, 1
        truth_speed.UPKEEP, truth_speed.LONG_SINCE, truth_speed.LOG_HOURS, truth_speed.A_YEAR = 24, 10, 3 * 24, 4 * 24
        QUICK_PAGE.unlink(missing_ok=True)
        return cls(
            page=QUICK_PAGE, sizes=(5, 20), seeds=1, rows=200_000, truth=("hourly", "kept", "late", "long-log"),
            papers=papers.Size(rows=200_000, sizes=(5, 10), sets=1, thin_rows=200_000),
            scaling=scaling.Size(
                windows=(1, 5, 20), rows=(200_000, 400_000), keys=(1, 10_000), history=(6, 36), late=(0.001, 0.1),
                few=200_000, late_days=2,
            ),
        )  # fmt: skip


class _Given(argparse.Namespace):
    parts: list[str]
    quick: bool
    sizes: str
    seeds: int
    only: list[str]
    rows: int
    most_rows: int


def main() -> int:
    given = _parsed()
    extent = _extent(given)
    parts = given.parts or PARTS
    code = 0
    if "quality" in parts:
        measured = plan_quality.quality(extent.sizes or plan_quality.SIZES, extent.seeds)
        found = [f"- {slip}\n" for slip in measured.slips] or ["Every claim of every plan held.\n"]
        code = 1 if measured.slips else 0
        _publish("How good", QUALITY, plan_quality.HEADER, measured.rows, found, page=extent.page)
    if "speed" in parts:
        sizes = tuple(size for size in extent.sizes if size in plan_speed.MULTIPLES) or tuple(plan_speed.MULTIPLES)
        speeds = list(_shown(plan_speed.speed(sizes)))
        _publish("How fast", SPEED, plan_speed.HEADER, speeds, [], page=extent.page)
    for part, title, sections_of in (
        ("engine", ENGINE_TITLE, partial(engine_speed.engine_speed, rows=extent.rows)),
        ("truth", TRUTH_TITLE, truth_speed.truth_speed),
        ("changes", CHANGES_TITLE, partial(change_speed.change_speed, rows=extent.rows)),
        ("airflow", AIRFLOW_TITLE, airflow_speed.airflow_speed),
        ("papers", PAPERS_TITLE, partial(papers.papers, size=extent.papers)),
        ("scaling", SCALING_TITLE, partial(scaling.scaling, size=extent.scaling)),
    ):
        only = given.only or (extent.truth if part == "truth" else ())
        for name, rows in sections_of(only) if part in parts else ():
            began = time.monotonic()
            _publish_section(title, name, list(_shown(rows)), page=extent.page)
            print(f"  {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return code


def _parsed() -> _Given:
    parser = argparse.ArgumentParser(description="Measure how good plans are and how fast they come.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a little of everything, written to target/quick")
    parser.add_argument("--sizes", default="", metavar="N,N", help="window set sizes; nothing is written then")
    parser.add_argument(
        "--seeds", type=int, default=plan_quality.SEEDS, metavar="K", help="sets of each kind; likewise"
    )
    sections = [name for _, names in SECTIONS.values() for name in names]
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
    parser.add_argument(
        "--most-rows",
        type=int,
        default=max(scaling.WHOLE.rows),
        metavar="N",
        help="no more events than these where their number grows",
    )
    given = parser.parse_args(namespace=_Given())
    if not {*given.parts} <= {*PARTS}:
        parser.error(f"parts are {', '.join(PARTS)}, not {' '.join(given.parts)}")
    return given


def _extent(given: _Given) -> Extent:
    if given.quick:
        return Extent.quick()
    sizes = tuple(int(size) for size in given.sizes.split(",") if size)
    is_whole = not sizes and given.seeds == plan_quality.SEEDS and given.rows == engine_speed.ROWS
    rows = tuple(rows for rows in scaling.WHOLE.rows if rows <= given.most_rows)
    return Extent(
        page=PAGE if is_whole else None, sizes=sizes, seeds=given.seeds, rows=given.rows,
        scaling=replace(scaling.WHOLE, rows=rows),
    )  # fmt: skip


def _shown(rows: Iterable[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        print("  ".join(row), flush=True)
        yield row


def _publish(
    title: str,
    text: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    found: Sequence[str],
    *,
    page: Path | None,
) -> None:
    """Print a part, and put it in its place on the page, leaving the other parts as they are."""
    body = f"{text}\n{_circumstances()}\n\n{_table(header, rows)}\n{''.join(found)}".rstrip() + "\n"
    print(f"\n## {title}\n\n{body}")
    if page is not None:
        _write(page, _parts(page) | {title: body})


def _publish_section(title: str, name: str, rows: Sequence[Row], *, page: Path | None) -> None:
    """Print a section of a part, and put it in its place, leaving the other sections as they are."""
    introduction, order = SECTIONS[title]
    note = f"\n{NOTES[name]}" if name in NOTES else ""
    section = f"{_circumstances()}\n\n{_table(HEADERS.get(name, HEADER), rows)}{embedded(name)}{note}"
    print(f"\n### {name}\n\n{section}")
    if page is not None:
        parts = _parts(page)
        known = dict(_split(parts.get(title, ""), "\n### ")) | {name: section}
        texts = [f"### {each}\n\n{known[each]}" for each in order if each in known]
        _write(page, parts | {title: "\n".join([introduction, *texts])})


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _split(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """The titles and the texts of what comes after each mark."""
    for each in text.split(mark)[1:]:
        title, _, body = each.partition("\n")
        yield title, body.strip() + "\n"


def _parts(page: Path) -> dict[str, str]:
    """What is on the page now, by title."""
    return dict(_split(page.read_text(encoding="utf-8"), "\n## ")) if page.exists() else {}


def _write(page: Path, parts: Mapping[str, str]) -> None:
    """Write the page, and the pictures of its tables beside it."""
    text = "\n".join([INTRODUCTION, *(f"## {title}\n\n{parts[title]}" for title in TITLES if title in parts)])
    pictures = page.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    for name, picture in drawn(text):
        (pictures / name).write_text(picture, encoding="utf-8")


def _circumstances() -> str:
    """Machine, commit and command, without which no number means anything."""
    commit = _git("rev-parse", "--short", "HEAD") + (
        " with changes" if _git("status", "--porcelain", "--", ".", *WRITTEN) else ""
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
