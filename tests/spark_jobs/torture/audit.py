"""Whether the tables of a rollup are true: at every version that they ever had, by another reader than Spark.

A reader sees one version of a table. So each version has to show whole windows only, each as some version of the source
gives it; and what commits and ledger claim has to hold, by the fold that the engine itself uses.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeGuard

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from stairwise.declared import Layout
from stairwise.windowing import Interval, windows_ending
from stairwise_spark.coverage import Claim, Commit, Coverage, State, folded
from stairwise_spark.ledger import Summary
from tests.spark_jobs.torture.world import DAY, SPAN, Content, Sum, World, content

Windows = Mapping[Interval, Content]
_COLUMNS = ["key", "window_start", "window_end", "n", "total", "low"]


@dataclass(slots=True)
class Audit:
    """What was seen of the tables.

    Attributes:
        world: The source.
        target: The tables.
        declared: The windows whose tables have to hold all of it by now; of others there may be more or less.
    """

    world: World
    target: Path
    declared: set[str] = field(default_factory=set[str])
    _seen: dict[str, dict[int, Windows]] = field(
        default_factory=lambda: defaultdict(dict[int, Windows]), init=False, repr=False
    )
    _commits: dict[Path, list[Commit]] = field(
        default_factory=lambda: defaultdict(list[Commit]), init=False, repr=False
    )
    _summaries: dict[int, Summary | None] = field(default_factory=dict[int, Summary | None], init=False, repr=False)
    _lost: int = 0

    def __post_init__(self) -> None:
        """All of them, if nobody says which."""
        self.declared = self.declared or {each.name for each in self.world.rollup.windows}

    @property
    def versions(self) -> int:
        """How many versions of tables were looked at."""
        return sum(map(len, self._seen.values()))

    def look(self) -> Iterator[str]:
        """What is wrong with the versions that are new, in words: a reader could see it."""
        for table, tiers in self._tables().items():
            for number in self._new_commits(table):
                for tier, windows in self._windows(table, number, tiers).items():
                    self._seen[tier][number] = windows
                    yield from self._halves(tier, number, windows)

    def claims(self) -> Iterator[str]:
        """What is claimed and not so, in words."""
        yield from self.look()
        records = self._records()
        for table, tiers in self._tables().items():
            for tier in tiers:
                known = records.get(tier, [])
                for record in known:
                    yield from self._untrue(tier, record.version, record.coverage, "the ledger claims")
                at = State(-1, Coverage())
                for commit in self._commits[table]:
                    at = State(commit.version, folded(tier, [commit], [at] if at.version >= 0 else []))
                    yield from self._untrue(tier, at.version, at.coverage, "the commits claim")

    def unequal(self) -> Iterator[str]:
        """What is not as the newest version of the source gives it, or is not known to be so, in words."""
        expected = self.world.expected(self.world.newest)
        for table, tiers in self._tables().items():
            newest = self._commits[table][-1].version if self._commits[table] else -1
            for tier in filter(self.declared.__contains__, tiers):
                wanted = {window: found for (name, window), found in expected.items() if name == tier}
                found = self._seen[tier].get(newest, {})
                for window in sorted(wanted.keys() | found.keys()):
                    if wanted.get(window) != found.get(window):
                        yield f"{tier} {window} is {found.get(window)}, not {wanted.get(window)}"
                known = folded(tier, self._commits[table], self._records().get(tier, []))
                # Windows with events before the end of the last day; the others have no end in sight.
                if not known.is_covered(SPAN, self.world.newest):
                    yield f"{tier} is known to be {known}, not at {self.world.newest}"

    def state(self) -> Mapping[str, int]:
        """The newest version of each table."""
        return {str(table): commits[-1].version for table, commits in self._commits.items() if commits}

    def _tables(self) -> dict[Path, list[str]]:
        names = [each.name for each in self.world.rollup.windows]
        if self.world.rollup.layout is Layout.ONE_TABLE:
            return {self.target: names}
        return {self.target / name: [name] for name in names}

    def _new_commits(self, table: Path) -> Iterator[int]:
        known = self._commits[table]
        while (file := table / "_delta_log" / f"{len(known):020d}.json").exists():
            note = next((text for text in _notes(file)), None)
            known.append(Commit(len(known), Claim.decode(note)))
            yield known[-1].version

    def _windows(self, table: Path, version: int, tiers: list[str]) -> Mapping[str, Windows]:
        is_shared = len(tiers) > 1
        sums: dict[str, defaultdict[Interval, list[Sum]]] = {tier: defaultdict(list) for tier in tiers}
        try:
            columns = [*_COLUMNS, "window"] if is_shared else _COLUMNS
            rows = DeltaTable(table, version=version).to_pyarrow_table(columns=columns)
        except (DeltaError, OSError):
            self._lost += 1  # VACUUM was faster
            return {}
        cells = rows.to_pydict()
        bounds = [[_second(at) for at in cells[name]] for name in ("window_start", "window_end")]
        places = cells["window"] if is_shared else tiers * rows.num_rows
        for place, start, end, *found in zip(
            places, *bounds, cells["key"], cells["n"], cells["total"], cells["low"], strict=True
        ):
            sums[place][Interval(start, end)].append(Sum(*found))
        return {tier: {window: content(found) for window, found in of.items()} for tier, of in sums.items()}

    def _halves(self, tier: str, version: int, windows: Windows) -> Iterator[str]:
        for window, found in windows.items():
            if self.world.last_version(tier, window, found) is None:
                yield f"{tier} at {version}: {window} holds {found}, which no version of the source gives"

    def _untrue(self, tier: str, version: int, coverage: Coverage, by: str) -> Iterator[str]:
        windows = self._seen[tier].get(version)
        if windows is None:
            return
        declared = next(each.window for each in self.world.rollup.windows if each.name == tier)
        # Nothing ever happened before and after, of which claims may be made all the same.
        for start, end, claimed in coverage.within(Interval(SPAN.start - 2 * DAY, SPAN.end + 2 * DAY)).stretches:
            if claimed < 0:
                continue
            for window in windows_ending(declared, start, end):
                found = windows.get(window, ())
                reflects = self.world.last_version(tier, window, found)
                if reflects is None or reflects < claimed:
                    what = f"{window}, which holds {found}, as of {reflects}"
                    yield f"{tier} at {version}: {by} {claimed} for {what}"

    def _records(self) -> Mapping[str, list[State]]:
        log = self.target / "_stairwise" / "ledger" / "_delta_log"
        while (file := log / f"{len(self._summaries):020d}.json").exists():
            note = next((text for text in _notes(file)), None)
            self._summaries[len(self._summaries)] = Summary.decode(note)
        records: defaultdict[str, list[State]] = defaultdict(list)
        found = [(tier, each) for known in filter(None, self._summaries.values()) for tier, each in known.tiers.items()]
        # Of a table that was lost, and of the one that came in its place, the same numbers mean different versions.
        marks = {tier: each.mark for tier, each in found}
        for tier, each in found:
            if each.mark == marks[tier] and each.record is not None and each.record not in records[tier]:
                records[tier].append(each.record)
        return records


def _notes(file: Path) -> Iterator[str]:
    """The note in a commit."""
    for line in file.read_text(encoding="utf-8").splitlines():
        action: object = json.loads(line)
        if _is_object(action) and _is_object(info := action.get("commitInfo")):
            note = info.get("userMetadata")
            if isinstance(note, str):
                yield note


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _second(at: object) -> int:
    assert isinstance(at, datetime)
    return int(at.timestamp())
