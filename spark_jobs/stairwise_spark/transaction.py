"""The writes to one table, which are one commit: whether it may be made, and what the table's log says became of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from stairwise_spark.arrangement import Arrangement
from stairwise_spark.coverage import Claim, Commit, Coverage, State, folded
from stairwise_spark.errors import CONFLICTS, BusyError
from stairwise_spark.tables import TierTable, Turn
from stairwise_spark.tier_logs import Log
from stairwise_spark.writes import Windows, Write, Written, uncounted

_TURNS, _MOST_TRIES = "stairwise", 50
# The rows of so much event time are kept for another try; more are computed again, and seldom meet others.
_KEPT_S = 2 * 86_400
# A run that is repeated finds what it wrote among so many last commits; beyond, it writes the same once more.
_RECENT = 64


@dataclass(slots=True, kw_only=True)
class Transaction:
    """The writes to one table.

    Attributes:
        table: The table.
        run: Who writes.
        plan: The digest of the plan.
        source: Which source it is, by its identity.
        writes: What; one at most for each tier.
        known: What was known of these tiers before.
        began: When it began, on the clock that only goes forward.
    """

    table: TierTable
    run: str
    plan: str
    source: str | None
    writes: Sequence[Write]
    known: Mapping[str, State]
    began: float = field(default_factory=time.monotonic)
    _seen: int = 0
    _tries: int = 0
    _has_failed: bool = False
    _rows: DataFrame | None = None
    _earlier: int | None = None
    _windows: Mapping[str, Windows] = field(default_factory=dict[str, Windows])

    def __post_init__(self) -> None:
        """Nobody has looked at the log since the tiers became known."""
        self._seen = min(state.version for state in self.known.values())

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

    def commit(self, log: Log, arrangement: Arrangement) -> None:
        """The windows are replaced, unless this run has done that before.

        Each commit takes the next turn of all writers of the table. One that was slower than another leaves nothing
        behind; :meth:`outcome` says so, and with a newer log it may be tried again, with the same rows.

        Args:
            log: What the table's log says, from :attr:`since` on.
            arrangement: How rows lie in the table.

        Raises:
            BusyError: Another run has written windows of the same range meanwhile.
        """
        claim = self._claim
        self._earlier = next((each.version for each in log.commits if each.claim == claim), None)
        if self._earlier is not None:
            return
        self._check_alone(each for each in log.commits if each.version > self._seen)
        self._seen = max((self._seen, *(each.version for each in log.commits)))
        if self._rows is None:
            self._rows, self._windows = arrangement.arranged(self.writes)
            if self._is_kept:
                self._rows = self._rows.persist(StorageLevel.MEMORY_AND_DISK)
        turn = Turn(_TURNS, self._seen + 1)
        self._tries += 1
        try:
            if claim.is_append:
                self.table.append(self._rows, claim.encode(), turn)
            else:
                self.table.replace(self._rows, claim.encode(), arrangement.predicate(self.writes), turn)
        except CONFLICTS:
            if self._tries == _MOST_TRIES:
                raise
            self._has_failed = True
        else:
            self._has_failed = False

    def was_passed_over(self, log: Log) -> bool:
        """Whether others have taken their turn, and this one has not; their claims are in its log."""
        commits = [each for each in log.commits if each.version > self._seen]
        is_mine = self._earlier is not None or any(each.claim == self._claim for each in commits)
        return not is_mine and (self._has_failed or bool(commits))

    def release(self) -> None:
        """What was kept for another try is let go."""
        if self._rows is not None and self._is_kept:
            self._rows.unpersist()

    def outcome(self, log: Log) -> tuple[dict[str, State], tuple[Written, ...]]:
        """What is known of the tiers now, and what became of the writes.

        Raises:
            BusyError: Another run has written windows of the same range meanwhile.
        """
        if self._earlier is not None:
            return {}, self._written(log, self._earlier, wrote=False)
        mine = next((each.version for each in log.commits if each.claim == self._claim), None)
        if mine is None:
            # No row was there, and none came: there is no commit, and the state itself may say so.
            states = {each.tier: _overlaid(self.known[each.tier], each.coverage) for each in self.writes}
            return states, tuple(Written(tier=tier, version=each.version, wrote=False) for tier, each in states.items())
        states = {tier: _later(tier, state, log.commits, mine, self.source) for tier, state in self.known.items()}
        return states, self._written(log, mine, wrote=True)

    @property
    def _known(self) -> int:
        return min(state.version for state in self.known.values())

    @property
    def _is_kept(self) -> bool:
        return sum(span.end - span.start for write in self.writes for span in write.ends) <= _KEPT_S

    @property
    def _claim(self) -> Claim:
        return Claim(
            run=self.run,
            plan=self.plan,
            tiers=tuple((write.tier, write.coverage) for write in self.writes),
            is_append=all(write.untouched is not None for write in self.writes),
            source=self.source,
        )

    def _check_alone(self, others: Iterable[Commit]) -> None:
        """Refuse rows upon rows of another run."""
        mine = {write.tier: write.coverage for write in self.writes}
        for other in others:
            claimed = () if other.claim is None else other.claim.tiers
            if any(coverage.minimum(mine.get(tier, Coverage())).stretches for tier, coverage in claimed):
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


def _later(tier: str, state: State, log: Iterable[Commit], version: int, source: str | None) -> State:
    since = [each for each in log if state.version < each.version <= version]
    return State(version, folded(tier, since, [state], source))
