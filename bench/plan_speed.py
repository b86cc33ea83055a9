"""How fast plans come: in process, through the command line, and as a stream.

In process, processor time is taken, so that other work on the machine counts little; whole processes show both that
and the wall clock, by which a user waits. Each number is the median of several runs, the best beside it. Whole
processes find their modules compiled, as an installed package has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

from generators import Generator, Recipe, Seeding, Shape, draw

from stairwise.options import Options, Pricing, TiersAllowed
from stairwise.pipeline import plan_workload
from stairwise.replan import kept_plan, replanned_workload
from stairwise.rollup import Estimates
from stairwise.window import FixedWindow
from stairwise.workload import Workload

HEADER = ("what", "median, ms", "best, ms", "target, ms")
EXAMPLE = Path(__file__).resolve().parent.parent / "dags" / "rollups" / "trips.yaml"
MULTIPLES = {20: 50, 100: 500, 1_000: 5_000}
TARGETS = {20: "10", 100: "100", 1_000: "1000"}
REPEATS = {20: 9, 100: 5, 1_000: 1}
MIN_SIZES = (20, 100)  # where windows may also cover each other, which min allows and sum does not
SEQUENCES = (20, 100, 200)  # every minute: where all windows have much to do with each other
USUAL = (
    "1m,2m,5m,10m,15m,30m,1h,2h,3h,6h,12h,1d,1w,month,quarter,year,"
    "1h every 5m,1h every 15m,1d every 1h,7 days every day"
)
SETS = 400
RUNS = 10


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that several runs took."""

    seconds: tuple[float, ...]

    @property
    def cells(self) -> tuple[str, str]:
        """The median and the best, in milliseconds."""
        return f"{median(self.seconds) * 1000:.1f}", f"{min(self.seconds) * 1000:.1f}"


def speed(sizes: tuple[int, ...] = tuple(MULTIPLES)) -> Iterator[tuple[str, ...]]:
    """The rows of the table."""
    yield from _planning(sizes)
    with tempfile.TemporaryDirectory() as bytecode:
        yield from _processes(Path(bytecode))


def _planning(sizes: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    for size, shape in product(sizes, Shape):
        recipes = [
            Recipe(generator=Generator.RANDOM, shape=shape, seeding=seeding, size=size, multiples=MULTIPLES[size])
            for seeding in Seeding
        ]
        sets = [_texts(draw(recipe, seed)) for recipe in recipes for seed in range(REPEATS[size])]
        yield from _in_all_ways(f"{size} {shape.value}", sets, TARGETS[size])
        if size in MIN_SIZES:
            yield from _in_all_ways(f"{size} {shape.value}", sets, TARGETS[size], "min")
    yield from _in_all_ways("20 usual ones, 1m to 1y", [tuple(USUAL.split(","))] * 5, TARGETS[20])
    for size in SEQUENCES:
        minutes = tuple(f"{length}m" for length in range(1, size + 1))
        yield from _in_all_ways(f"1m to {size}m", [minutes] * 3, TARGETS.get(size, ""), "min")
    yield from _replanning()


def _replanning() -> Iterator[tuple[str, ...]]:
    """One window more than the hundred of a running plan: what is kept, and the whole answer, a fresh plan included."""
    for shape in Shape:
        kept: list[float] = []
        whole: list[float] = []
        for seed, seeding in product(range(REPEATS[100]), Seeding):
            recipe = Recipe(
                generator=Generator.RANDOM, shape=shape, seeding=seeding, size=101, multiples=MULTIPLES[100]
            )
            *texts, added = _texts(draw(recipe, seed))
            running = plan_workload(Workload.of_windows(texts, "sum", Estimates()), Options())
            workload = Workload.of_windows([*texts, added], "sum", Estimates())
            started = time.process_time()
            kept_plan(running, workload, Options())
            kept.append(time.process_time() - started)
            started = time.process_time()
            replanned_workload(running, workload, Options())
            whole.append(time.process_time() - started)
        yield f"replan 100 {shape.value} and 1 more, sum, what is kept", *Times(tuple(kept)).cells, "20"
        yield f"replan 100 {shape.value} and 1 more, sum, all of it", *Times(tuple(whole)).cells, ""


def _in_all_ways(
    name: str, sets: list[tuple[str, ...]], target: str, aggregate: str = "sum"
) -> Iterator[tuple[str, ...]]:
    for tiers, pricing in product((TiersAllowed.FACTOR, TiersAllowed.COMPOSITE), Pricing):
        options = Options(tiers=tiers, pricing=pricing)
        times = Times(tuple(_processor_time(texts, aggregate, options) for texts in sets))
        yield f"plan {name}, {aggregate}, {tiers.value}, {pricing.value}", *times.cells, target


def _processor_time(texts: tuple[str, ...], aggregate: str, options: Options) -> float:
    workload = Workload.of_windows(texts, aggregate, Estimates())
    started = time.process_time()
    plan_workload(workload, options)
    return time.process_time() - started


def _texts(windows: tuple[FixedWindow, ...]) -> tuple[str, ...]:
    return tuple(f"{window.range}s every {window.slide}s" for window in windows)


def _processes(bytecode: Path) -> Iterator[tuple[str, ...]]:
    run = _Python(bytecode)
    yield from _rows("python that does nothing", [run.timed("pass") for _ in range(RUNS)], "")
    imports = [run.timed_inside("import stairwise") for _ in range(RUNS)]
    yield from _rows("import stairwise in a fresh process", imports, "50")
    command = f"from stairwise.cli import main; main(['plan', {str(EXAMPLE)!r}])"
    yield from _rows(
        f"stairwise plan {EXAMPLE.name}, the whole process", [run.timed(command) for _ in range(RUNS)], "300"
    )
    stream = "from stairwise.cli import main; main(['plan', '--windows', '-'])"
    recipe = Recipe(generator=Generator.RANDOM, shape=Shape.TUMBLING, seeding=Seeding.PER_WINDOW, size=20)
    lines = [",".join(_texts(draw(recipe, seed))) + "\n" for seed in range(SETS)]
    seconds = run.timed(stream, "".join(lines))
    for name, one in (("wall clock", seconds.wall), ("processor", seconds.processor)):
        yield f"plan --windows -, 20 tumbling: sets a minute, {name}", f"{SETS * 60 / one:.0f}", "", "1000 sets"


def _rows(name: str, runs: list[_Seconds], target: str) -> Iterator[tuple[str, ...]]:
    yield f"{name}: wall clock", *Times(tuple(run.wall for run in runs)).cells, target
    yield f"{name}: processor", *Times(tuple(run.processor for run in runs)).cells, ""


@dataclass(frozen=True, slots=True)
class _Seconds:
    wall: float
    processor: float


@dataclass(frozen=True, slots=True)
class _Python:
    """Runs code in fresh processes that keep their compiled modules in a folder of their own."""

    bytecode: Path

    def __post_init__(self) -> None:
        """Have everything compiled that will be needed."""
        self._run(f"from stairwise.cli import main; main(['plan', {str(EXAMPLE)!r}])")

    def timed(self, code: str, given: str = "") -> _Seconds:
        """The seconds of a whole process, its start and end included."""
        before, started = os.times(), time.perf_counter()
        self._run(code, given)
        wall, after = time.perf_counter() - started, os.times()
        processor = after.children_user + after.children_system - before.children_user - before.children_system
        return _Seconds(wall, processor)

    def timed_inside(self, code: str) -> _Seconds:
        """The seconds that the code itself takes."""
        clocks = "time.perf_counter(), time.process_time()"
        printed = self._run(f"import time\na, b = {clocks}\n{code}\nc, d = {clocks}\nprint(c - a, d - b)")
        wall, processor = map(float, printed.split())
        return _Seconds(wall, processor)

    def _run(self, code: str, given: str = "") -> str:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True,
            env={**kept, "PYTHONPYCACHEPREFIX": str(self.bytecode)},
        )  # fmt: skip
        return done.stdout
