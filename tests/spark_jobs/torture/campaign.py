"""Lives of tables, one after the other, until so many runs were killed."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Self

from stairwise.instant import format_instant
from tests.spark_jobs.torture.episodes import Life, Victim, WrongError
from tests.spark_jobs.torture.fleet import Driver, Server, environment
from tests.spark_jobs.torture.world import DAY, SPAN, WINDOWS

_WHOLE = ["--start", format_instant(SPAN.start - DAY), "--end", format_instant(SPAN.end + DAY)]
HEALERS: Sequence[Sequence[str]] = (
    ["run"],  # if there is such a thing yet
    ["backfill"],
    ["backfill", "--chunk", "2d"],
    ["backfill", "--chunk", "2d", "--newest-first"],
    ["run", *_WHOLE],
)
_EPISODES = 12  # in a life
# A JVM of its own takes ten seconds to start.
_LOTS = {
    Victim.DRIVER: 70,
    Victim.APPLY: 12,
    Victim.WORKER: 12,
    Victim.NOBODY: 10,
    Victim.SERVER: 4,
    Victim.JVM: 2,
    Victim.PYTHON: 2,
}


@dataclass(slots=True)
class Campaign:
    """A server, and lives of tables.

    Attributes:
        folder: For all of it; what went well is removed.
        seed: Decides everything but who is how fast.
        killed: How often who was killed, and where.
    """

    folder: Path
    seed: int
    killed: Counter[str]
    lives: list[Life] = field(default_factory=list[Life])
    _server: Server = field(init=False)
    _healers: Sequence[Sequence[str]] = ()

    def __enter__(self) -> Self:
        """The server runs."""
        self._server = Server(self.folder)
        self._server.start()
        self._healers = HEALERS if self._can_find_out() else HEALERS[1:]
        return self

    def __exit__(self, *_: object) -> None:
        """It does not, and nothing that it served."""
        for life in self.lives:
            life.end()
        self._server.kill()

    @property
    def versions(self) -> int:
        """How many versions of tables were held against the truth."""
        return sum(life.audit.versions for life in self.lives)

    def go(self, kills: int, until: float, victims: Sequence[Victim] = (), windows: Sequence[str] = WINDOWS) -> None:
        """So many runs were killed, or it is late.

        Args:
            kills: So many.
            until: Nothing begins after this instant, on the clock that only goes forward.
            victims: Who is killed, three in an episode, again and again; none: whoever is drawn.
            windows: What a life may declare.

        Raises:
            WrongError: Tables are not true.
        """
        named = cycle(victims)
        luck = random.Random(self.seed)  # noqa: S311 - to be the same again
        number = 0
        while self.killed.total() < kills and time.monotonic() < until:
            number += 1
            layout = luck.choice(("tables", "tables", "one_table"))
            declared = windows[0] if luck.random() < 0.4 else luck.choice(windows)
            life = Life(
                self.folder / f"life-{number}", self._server, luck, layout, declared, self._healers, self.killed
            )
            self.lives.append(life)
            for episode in range(_EPISODES):
                if self.killed.total() >= kills or time.monotonic() > until:
                    break
                drawn = [*islice(named, 3)] or luck.choices([*_LOTS], [*_LOTS.values()], k=luck.choice((1, 1, 2, 3)))
                self._episode(life, drawn, f"life {number} ({layout}: {declared}), episode {episode + 1}")
            shutil.rmtree(life.folder)

    def _episode(self, life: Life, victims: Sequence[Victim], name: str) -> None:
        started = time.monotonic()
        try:
            life.episode(victims)
        except WrongError as error:
            error.add_note(f"seed {self.seed}, {name}, {[each.name for each in victims]}; it is kept: {life.folder}")
            raise
        names = ", ".join(each.name.lower() for each in victims)
        seconds = time.monotonic() - started
        print(f"{self.killed.total():4} kills; {name}: {names}; {seconds:.1f} s", flush=True)  # noqa: T201

    def _can_find_out(self) -> bool:
        """Whether a run needs no range."""
        arguments = ["run", str(self.folder / "nothing.yaml")]
        driver = Driver.started(arguments, self.folder / "probe.log", environment(self.folder))
        driver.ended()
        return "--start" not in str(driver).splitlines()[-1]
