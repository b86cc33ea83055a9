"""The writes to one table, which are one commit: whether it may be made, and what the table's log says became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import SystemRandom

from pyspark.sql import DataFrame

from stairwise_spark.arrangement import Arrangement
from stairwise_spark.coverage import Claim, Commit, Coverage, State, Wanted, folded
from stairwise_spark.errors import CONFLICTS, BusyError
from stairwise_spark.tables import OccupiedError, TierTable
from stairwise_spark.tier_logs import Log
from stairwise_spark.writes import Windows, Write, Written, uncounted

# So often a commit is tried while other runs write to the same days; and seconds to wait, at first.
_COMMITS, _PAUSE = 30, 0.5
# A run that is repeated finds what it wrote among so many last commits; beyond, it writes the same once more.
_RECENT = 64


@dataclass(slots=True, kw_only=True)
class Transaction:
    """The writes to one table.

    Attributes:
        table: The table.
        run: Who writes.
        plan: The digest of the plan.
        wanted: What the rows are about.
        writes: What; one at most for each tier.
        known: What was known of these tiers before.
        began: When it began, on the clock that only goes forward.
        is_append: Whether rows are added; then :meth:`commit` needs no log, for they find out themselves whether others
            are there.
    """

    table: TierTable
    run: str
    plan: str
    wanted: Wanted
    writes: Sequence[Write]
    known: Mapping[str, State]
    began: float = field(default_factory=time.monotonic)
    is_append: bool = field(default=False, init=False)
    _earlier: int | None = None
    _windows: Mapping[str, Windows] = field(default_factory=dict[str, Windows])

    def __post_init__(self) -> None:
        """Rows are added if no window of them was ever claimed."""
        self.is_append = all(write.is_new for write in self.writes)

    @property
    def subject(self) -> str:
        """What it is about, for errors."""
        return f"tier {self.writes[0].tier}" if len(self.writes) == 1 else f"table {self.table.place}"

    @property
    def since(self) -> int:
        """The version from which on the log has to be known for :meth:`commit`."""
        return max(0, self._known - _RECENT)

    @property
    def until(self) -> int:
        """The version from which on the log, and its files, have to be known for :meth:`outcome`."""
        return self._known + 1 if self._earlier is None else min(self._earlier, self._known + 1)

    def commit(self, log: Log | None, arrangement: Arrangement, look: Callable[[], Log]) -> None:
        """The windows are replaced, unless this run has done that before.

        Runs on other ranges may have written to the same days: then it is only this commit that waits and is tried
        again, with the same rows.

        Args:
            log: What the table's log says, from :attr:`since` on; None: rows are added.
            arrangement: How rows lie in the table.
            look: Reads the log once more, from :attr:`until` on.

        Raises:
            BusyError: Another run has written windows of the same range meanwhile.
        """
        if log is not None:
            self._earlier = next((each.version for each in log.commits if each.claim == self._claim), None)
            if self._earlier is not None:
                return
            if any(write.is_merged for write in self.writes):
                self._check_alone(log.commits)
        rows, self._windows = arrangement.arranged(self.writes)
        for attempt in range(_COMMITS - 1):
            try:
                self._save(rows, arrangement)
            except OccupiedError:
                self._check_alone(look().commits)
                self.is_append = False  # nobody claims these rows
            except CONFLICTS:
                self._check_alone(look().commits)
                time.sleep(SystemRandom().uniform(0, _PAUSE) * min(attempt + 1, 10))
            else:
                return
        self._save(rows, arrangement)

    def _save(self, rows: DataFrame, arrangement: Arrangement) -> None:
        note = self._claim.encode()
        if self.is_append:
            self.table.add(rows, note, arrangement.parts(self.writes), arrangement.ranges(self.writes))
        else:
            self.table.replace(rows, note, arrangement.predicate(self.writes))

    def outcome(self, log: Log) -> tuple[dict[str, State], tuple[Written, ...]]:
        """What is known of the tiers now, and what became of the writes.

        Raises:
            BusyError: Another run has written windows of the same range meanwhile.
        """
        if self._earlier is not None:
            return {}, self._written(log, self._earlier, wrote=False)
        mine = next((each.version for each in log.commits if each.claim == self._claim), None)
        if mine is None:
            # No row was there, and none came: there is no commit, and the state may say so, as of the newest one.
            self._check_alone(log.commits)
            newest = max((each.version for each in log.commits), default=0)
            states = {each.tier: _overlaid(self._until(each.tier, log, newest), each.coverage) for each in self.writes}
            return states, tuple(Written(tier=tier, version=each.version, wrote=False) for tier, each in states.items())
        states = {tier: self._until(tier, log, mine) for tier in self.known}
        return states, self._written(log, mine, wrote=True)

    def _until(self, tier: str, log: Log, version: int) -> State:
        """What is known of a tier, with all commits up to a version."""
        state = self.known[tier]
        since = [each for each in log.commits if state.version < each.version <= version]
        return State(max(version, state.version), folded(tier, since, [state], self.wanted))

    @property
    def _known(self) -> int:
        return min(state.version for state in self.known.values())

    @property
    def _claim(self) -> Claim:
        return Claim(
            run=self.run,
            plan=self.plan,
            tiers=tuple((write.tier, write.coverage) for write in self.writes),
            is_append=self.is_append,
            source=self.wanted.source,
            meaning=self.wanted.meaning,
        )

    def _check_alone(self, others: Iterable[Commit]) -> None:
        """Refuse rows upon rows of another run."""
        mine = {write.tier: write.coverage for write in self.writes}
        for other in others:
            claimed = () if other.claim is None else other.claim.tiers
            if any(
                tier in mine and other.version > self.known[tier].version and coverage.minimum(mine[tier]).stretches
                for tier, coverage in claimed
            ):
                raise BusyError(
                    f"table {self.table.place}: another run wrote windows of the same range, "
                    f"as version {other.version}.",
                    hint="run again.",
                )

    def _written(self, log: Log, version: int, *, wrote: bool) -> tuple[Written, ...]:
        files, seconds = log.files.get(version, ()), time.monotonic() - self.began
        written = (
            write.written(version, files, self._windows.get(write.tier, uncounted), wrote=wrote)
            for write in self.writes
        )
        return tuple(replace(each, seconds=seconds) for each in written)


def _overlaid(state: State, coverage: Coverage) -> State:
    return State(state.version, state.coverage.overlaid(coverage))
