"""Runs that are killed, race and are paused; after each of them the next run has to end in true tables.

Nothing in the engine knows of this: a point of a run is told by the file that appears there.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path

from stairwise import Rollup
from stairwise.instant import format_instant
from tests.spark_jobs.torture.audit import Audit
from tests.spark_jobs.torture.fleet import Driver, Server, children, environment, is_alive, kill
from tests.spark_jobs.torture.world import DAY, SPAN, World, declaration

_LOOK = 0.001
_DONE, _CHANGED, _FAILED, _BUSY = 0, 2, 3, 4
_TIER, _LEDGER = r"^(?!_stairwise/|_tiers/).*", r"^_stairwise/ledger/.*"


class Victim(Enum):
    """Who is killed."""

    DRIVER = "driver"
    WORKER = "Python worker"
    APPLY = "driver of a change"
    SERVER = "JVM of many drivers"
    JVM = "JVM under a living Python"
    PYTHON = "Python over its own JVM"
    NOBODY = "nobody: a driver is stopped, overtaken, and goes on"


_MORE = "40m"
"""What is declared later."""
# What is deleted here is meant to go, however little there is.
_ACCEPTING = ("--accept-deletes",)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a run: so many files of a kind have come.

    Attributes:
        name: In words.
        pattern: What such a file is called below the target.
        count: How many there are by then.
    """

    name: str
    pattern: str
    count: int = 1


POINTS = (
    Point("in table creation", r"_delta_log$"),
    Point("after the first table was made", r".*_delta_log/0{20}\.json$"),
    Point("rows written, not committed", _TIER + r"\.parquet$"),
    Point("in a tier's commit", _TIER + r"_delta_log/\..*\.tmp$"),
    Point("after a tier's commit", _TIER + r"_delta_log/\d{20}\.json$"),
    Point("between two tables' commits", r"^(?!_stairwise/).*_delta_log/\d{20}\.json$", 2),
    Point("when most tiers are committed", r"^(?!_stairwise/).*_delta_log/\d{20}\.json$", 3),
    Point("in the ledger's commit", _LEDGER + r"\.(tmp|parquet)$"),
    Point("after a ledger record", _LEDGER + r"_delta_log/\d{20}\.json$"),
)


@dataclass(slots=True)
class Watch:
    """What has come below a folder since it began."""

    folder: Path
    _before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._before = frozenset(self._files())

    def count(self, point: Point) -> int:
        """How many files of a kind have come."""
        return sum(bool(re.search(point.pattern, file)) for file in self._files() if file not in self._before)

    def _files(self, below: str = "", depth: int = 4) -> Iterator[str]:
        try:
            with os.scandir(self.folder / below) as entries:
                found = [(f"{below}{each.name}", each.is_dir(follow_symlinks=False)) for each in entries]
        except OSError:
            return
        for name, is_folder in found:
            yield name
            if is_folder and depth:
                yield from self._files(f"{name}/", depth - 1)


class WrongError(AssertionError):
    """A table is not true."""


@dataclass(slots=True)
class Life:
    """A source and the tables made of it, from the first run on.

    Attributes:
        folder: For all of it.
        server: Serves the drivers.
        luck: Decides everything.
        layout: Of the tables.
        windows: What is declared, until a change adds a window.
        healers: The commands that have to bring all up to date.
        killed: How often who was killed, and where.
    """

    folder: Path
    server: Server
    luck: random.Random
    layout: str
    windows: str
    healers: Sequence[Sequence[str]]
    killed: Counter[str]
    world: World = field(init=False)
    audit: Audit = field(init=False)
    _drivers: list[Driver] = field(default_factory=list[Driver])
    _is_whole: bool = False
    _is_wide: bool = False
    _usual: float = 4.0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        texts = [
            declaration(self.folder / "source", self.target, self.layout, windows)
            for windows in (self.windows, f"{self.windows}, {_MORE}")
        ]
        for file, text in zip((self.file, self._wider), texts, strict=True):
            file.write_text(text, encoding="utf-8")
        before, later = map(Rollup.from_yaml, texts)
        self.world = World(self.folder / "source", later, self.luck)
        self.world.begin(rows=120)
        self.audit = Audit(self.world, self.target, {each.name for each in before.windows})

    @property
    def file(self) -> Path:
        """The declaration."""
        return self._wider if self._is_wide else self.folder / "torture.yaml"

    @property
    def _wider(self) -> Path:
        """The declaration with a window more."""
        return self.folder / "wider.yaml"

    @property
    def target(self) -> Path:
        """The tables."""
        return self.folder / "target"

    def episode(self, victims: Sequence[Victim]) -> None:
        """Some runs end badly, one after the other; then a quiet one puts everything right."""
        for victim in victims:
            if self.luck.random() < 0.8:
                self.world.change()
            match victim:
                case Victim.APPLY if self._is_whole and not self._is_wide:
                    self._attack_change()
                case Victim.APPLY:
                    self._attack(Victim.DRIVER)
                case Victim.DRIVER | Victim.WORKER | Victim.SERVER:
                    self._attack(victim)
                case Victim.JVM | Victim.PYTHON:
                    self._attack_alone(victim)
                case Victim.NOBODY:
                    self._overtake()
            self._check(self.audit.look())
        self._heal()

    def end(self) -> None:
        """No driver of it runs on."""
        for driver in self._drivers:
            driver.kill()

    def _attack(self, victim: Victim) -> None:
        """One of one or two drivers is killed, or what they need, while others may write and pack."""
        drivers = [self._started(self._command())]
        if self.luck.random() < 0.4:
            drivers.append(self._started(self._command()))
        if self.luck.random() < 0.2:
            drivers.append(self._maintenance())
        where = self._reach(drivers[0], is_busy=self.luck.random() < 0.4)
        was_running = drivers[0].is_running
        match victim:
            case Victim.DRIVER:
                is_hit = drivers[0].kill()
            case Victim.WORKER:
                is_hit = bool([*filter(kill, self.server.workers())]) and was_running
            case _:
                self.server.kill()
                is_hit = was_running
                self.server.start()
        allowed = (_DONE, _BUSY) if victim is Victim.DRIVER else (_DONE, _BUSY, _FAILED)
        for driver in drivers[1:] if victim is Victim.DRIVER else drivers:
            self._end(driver, allowed)
        self.server.revive()
        self._count(victim, where, is_hit=is_hit)
        if self.luck.random() < 0.5:
            # Else what it had asked for goes on, beside whoever comes next.
            self.server.settle()

    def _attack_change(self) -> None:
        """Who adds a window is killed, perhaps twice, and beside a run of the old declaration; another one ends it."""
        for _ in range(self.luck.choice((1, 1, 2))):
            change = self._started(["apply"])
            beside = [self._started(self._command())] if self.luck.random() < 0.5 else []
            where = self._reach(change, is_busy=self.luck.random() < 0.4)
            self._count(Victim.APPLY, where, is_hit=change.kill())
            for driver in beside:
                self._end(driver, (_DONE, _BUSY, _CHANGED))
            if self.luck.random() < 0.5:
                self.server.settle()
            self._check(self.audit.look())
        self.server.settle()
        # What was deleted is accepted by runs only. If it was killed after the switch, these are of the past.
        self._end(self._started(self._healer()), (_DONE, _CHANGED))
        self._end(self._started(["apply"]), (_DONE,))
        self._is_wide = True
        self.audit.declared.update(each.name for each in self.world.rollup.windows)

    def _attack_alone(self, victim: Victim) -> None:
        """A driver with a JVM of its own loses it, or leaves it behind."""
        driver = self._driver([*self._command(), "--master", "local[2]", "--quick"])
        until = time.monotonic() + 60
        while not (below := [*children(driver.pid)]) and driver.is_running and time.monotonic() < until:
            time.sleep(0.01)
        where = self._reach(driver, is_busy=False, start_s=12.0)
        below = [*children(driver.pid)] or below
        is_hit = driver.is_running
        if victim is Victim.PYTHON:
            is_hit = driver.kill()
        else:
            for pid in below:
                kill(pid)
            self._end(driver, (_DONE, _FAILED))
        until = time.monotonic() + 60
        while any(map(is_alive, below)):
            assert time.monotonic() < until, f"{driver}: its JVM lives on"
            time.sleep(0.05)
        self._count(victim, where, is_hit=is_hit)

    def _overtake(self) -> None:
        """A driver is stopped, another one does everything meanwhile, and the first goes on where it was."""
        driver = self._started(self._command())
        self._reach(driver, is_busy=False)
        if driver.is_running:
            os.kill(driver.pid, signal.SIGSTOP)
        if self.luck.random() < 0.7:
            self.world.change()
        try:
            self._end(self._started(self._healer()), (_DONE, _BUSY))
        finally:
            if driver.is_running:
                os.kill(driver.pid, signal.SIGCONT)
        self._end(driver, (_DONE, _BUSY))

    def _heal(self) -> None:
        """Whoever comes next, after whatever happened, brings true tables; who comes then finds nothing to do."""
        if self.server.is_busy():
            self._end(self._started(self._healer()), (_DONE, _BUSY))
            self.server.settle()
            self._check(self.audit.look())
        started = time.monotonic()
        self._end(self._started(self._healer()), (_DONE,))
        self._usual = 0.5 * self._usual + 0.5 * (time.monotonic() - started)
        self._check(self.audit.claims())
        self._check(self.audit.unequal())
        self._is_whole = True
        if self.luck.random() < 0.25:
            before = self.audit.state()
            self._end(self._started(self._healer()), (_DONE,))
            self._check(self.audit.look())
            after = self.audit.state()
            self._check(f"{table} was written for nothing" for table in before if after[table] != before[table])

    def _reach(self, driver: Driver, *, is_busy: bool, start_s: float = 0.0) -> str:
        """The run is at some point of it, or at some instant; the source may have changed meanwhile."""
        watch = Watch(self.target)
        point = self.luck.choice(POINTS) if self.luck.random() < 0.7 else None
        # Who does not come to the point is killed all the same.
        until = time.monotonic() + start_s + self.luck.uniform(0.3 if point else 0, 1) * self._usual
        if is_busy:
            time.sleep(self.luck.uniform(0, 0.3 * self._usual))
            self.world.change()
        while driver.is_running and time.monotonic() < until:
            looked = time.monotonic()
            if point and watch.count(point) >= point.count:
                return point.name
            # To look all the time would take a processor from those who are looked at.
            time.sleep(max(_LOOK, 2 * (time.monotonic() - looked)))
        return "at some instant"

    def _count(self, victim: Victim, where: str, *, is_hit: bool) -> None:
        if is_hit:
            self.killed[f"{victim.value}, {where}"] += 1

    def _command(self) -> list[str]:
        """A run of any kind, over any range."""
        begin = self.luck.randrange(SPAN.start, SPAN.end, 7_200)
        end = min(SPAN.end + DAY, begin + self.luck.choice((7_200, DAY, 4 * DAY)))
        span = ["--start", format_instant(begin), "--end", format_instant(end)]
        if self.luck.random() < 0.3:
            return [*self._healer()]
        kinds = (
            ["run", *span],
            ["run", "--restate", *span],
            ["backfill", *span],
            ["backfill", *span, "--chunk", "1d", "--newest-first"],
        )
        return [*self.luck.choices(kinds, (3, 4, 2, 2))[0], *_ACCEPTING]

    def _healer(self) -> list[str]:
        """A command that brings all up to date; without a range only what has been there before."""
        healers = [each for each in self.healers if each != ["run"] or self._is_whole]
        return [*self.luck.choice(healers), *_ACCEPTING]

    def _maintenance(self) -> Driver:
        name = self.luck.choice(self.world.rollup.windows).name
        table = self.target if self.layout == "one_table" else self.target / name
        return self._driver(["sql", f"{self.luck.choice(('OPTIMIZE', 'VACUUM'))} delta.`{table}`", self.server.url])

    def _started(self, command: Sequence[str]) -> Driver:
        return self._driver([*command, "--remote", self.server.url])

    def _driver(self, arguments: Sequence[str]) -> Driver:
        head, *tail = arguments
        file = self._wider if head == "apply" else self.file
        command = arguments if head == "sql" else [head, str(file), *tail]
        log = self.folder / f"driver-{len(self._drivers) + 1}.log"
        self._drivers.append(Driver.started(command, log, environment(self.folder)))
        return self._drivers[-1]

    def _end(self, driver: Driver, allowed: Sequence[int]) -> None:
        is_maintenance = driver.arguments[0] == "sql"
        code = driver.ended()
        if code not in allowed and not is_maintenance:
            raise WrongError(f"exit code {code}, where {allowed} are right\n{driver}")

    def _check(self, wrong: Iterator[str]) -> None:
        found = [*islice(wrong, 5)]
        if found:
            raise WrongError("\n".join(found))
