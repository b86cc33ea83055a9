"""The state model in small: runs as steps over two tiers, so that every order of the steps of three runs can be tried.

The fine tier has a window for each of four slices of time, the coarse one a window for each two of them, read from the
fine tier at one pinned version. What a window holds is told by the version of the source that it was made of, slice by
slice. A run may die after any step, which is to say that it takes no other one. What tables reflect is kept and folded
by the code of the engine itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache

from stairwise.windowing import Interval
from stairwise_spark.coverage import DOUBTFUL, Claim, Commit, Coverage, State, folded

FINE, COARSE = "fine", "coarse"
ALL = Interval(0, 4)
CHANGED: Mapping[int, int] = {2: 0, 3: 3}
"""The slice that each later version of the source changes."""
_ATTEMPTS = 2

Made = tuple[int, ...]
"""What a window was made of: a version of the source for each of its slices."""
Rows = tuple[Made, ...]
"""What is in a window: once what it was made of, or nothing, or several times, which must not be."""


_NOTHING: tuple[tuple[Rows, ...], Coverage] = ((), Coverage())


class Fault(Enum):
    """What an engine could do wrong; each has to be found out."""

    CLAIM_FIRST = "a claim before the rows that it speaks of"
    CLAIM_PINNED = "a coarse window claims the run's version, not the lowest of what it was made of"
    RECORD_NEWEST = "a record of the newest version of a table, of which the run has not seen all commits"
    RECORD_OVERLAID = "a record of the run's own commit, without what others committed just before"
    PARENT_UNPINNED = "rows of the parent's newest version under the claim of an older one"
    APPEND_ALONE = "rows are added without the mutex"
    REPLACE_ALONE = "rows are replaced without the mutex that those who add rows wait for"
    SKIP_BELIEVED = "a commit that Delta Lake skipped, for its number was used, is taken for done"


@dataclass(frozen=True, slots=True)
class Table:
    """The log and the rows of a tier; the counter is the number of the last commit under the mutex."""

    windows: tuple[Rows, ...]
    log: tuple[Commit, ...] = (Commit(0, None),)
    counter: int = 0
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Logs are long, and looked up a million times.
        object.__setattr__(self, "_hash", hash((self.windows, self.log, self.counter)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def version(self) -> int:
        """That of the newest commit."""
        return len(self.log) - 1

    def committed(self, claim: Claim | None, rows: Mapping[int, Rows], counter: int) -> Table:
        """The table after one more commit."""
        windows = tuple(rows.get(place, old) for place, old in enumerate(self.windows))
        return Table(windows, (*self.log, Commit(len(self.log), claim)), counter)


@dataclass(frozen=True, slots=True)
class Run:
    """A run, before its next step.

    Attributes:
        span: What it is asked for.
        restates: Whether it makes again what is there.
        step: The next one.
        source: The version of the source that it reads.
        attempt: How often it was too late.
        known: What it knows of each tier, and the counter that it saw.
        parent: What the fine tier held, and reflected, at the version that is read.
    """

    span: Interval = ALL
    restates: bool = False
    step: str = "pin"
    source: int = 0
    attempt: int = 0
    known: tuple[tuple[str, State, int], ...] = ()
    parent: tuple[tuple[Rows, ...], Coverage] = _NOTHING

    @property
    def over(self) -> Run:
        """It has ended, and whatever it knew is forgotten."""
        return Run(step="done")

    def of(self, tier: str) -> tuple[State, int]:
        """What it knows of a tier."""
        return next((state, counter) for name, state, counter in self.known if name == tier)

    def knowing(self, tier: str, state: State, counter: int) -> Run:
        """It knows this now."""
        others = tuple(each for each in self.known if each[0] != tier)
        return replace(self, known=tuple(sorted((*others, (tier, state, counter)), key=lambda each: each[0])))


@dataclass(frozen=True, slots=True)
class World:
    """All that is kept: the version of the source, the tables, and the ledger."""

    source: int = 1
    fine: Table = Table(((),) * 4)
    coarse: Table = Table(((),) * 2)
    records: frozenset[tuple[str, State]] = frozenset()

    def table(self, tier: str) -> Table:
        """That of a tier."""
        return self.fine if tier == FINE else self.coarse

    def with_table(self, tier: str, table: Table) -> World:
        """The world with another table of a tier."""
        return replace(self, fine=table) if tier == FINE else replace(self, coarse=table)

    def reflected(self, tier: str) -> Coverage:
        """What a tier reflects, by its log and the ledger."""
        return _folded(tier, self.table(tier), frozenset(of for name, of in self.records if name == tier))

    def faults(self) -> Iterator[str]:
        """What must never be, in words."""
        for tier in (FINE, COARSE):
            reflected = self.reflected(tier)
            for place, rows in enumerate(self.table(tier).windows):
                claimed = _claimed(reflected, tier, place)
                if len(rows) > 1:
                    yield f"{tier} window {place} is counted {len(rows)} times"
                elif claimed != DOUBTFUL and claimed > _reflects(tier, place, rows, self.source):
                    yield f"{tier} window {place} claims {claimed} and holds {rows}"

    def lacks(self) -> Iterator[str]:
        """What is not as of the newest version of the source, in words."""
        for tier in (FINE, COARSE):
            reflected = self.reflected(tier)
            for place, rows in enumerate(self.table(tier).windows):
                claimed = _claimed(reflected, tier, place)
                if claimed != self.source or _reflects(tier, place, rows, self.source) != self.source:
                    yield f"{tier} window {place} holds {rows}, claimed as of {claimed}, of {self.source}"


@dataclass(frozen=True, slots=True)
class Model:
    """An engine.

    Attributes:
        appends: Whether it adds rows where nothing is; else it replaces always.
        has_mutex: Whether those who write wait for each other.
        fault: What it does wrong.
    """

    appends: bool = True
    has_mutex: bool = True
    fault: Fault | None = None

    def stepped(self, world: World, run: Run) -> tuple[World, Run]:
        """What is after the next step of a run."""
        match run.step:
            case "pin":
                return world, replace(run, step="look", source=world.source)
            case "look":
                return world, self._looked(world, run)
            case "claim first":
                ahead = {
                    (tier, State(run.of(tier)[0].version, run.of(tier)[0].coverage.overlaid(claim)))
                    for tier in (FINE, COARSE)
                    for claim in [Coverage.of(run.span, run.source)]
                }
                return replace(world, records=world.records | ahead), replace(run, step=FINE)
            case "fine":
                return self._fine(world, run)
            case "coarse":
                return self._coarse(world, run)
            case _:
                return self._recorded(world, run)

    def _looked(self, world: World, run: Run) -> Run:
        for tier in (FINE, COARSE):
            table = world.table(tier)
            run = run.knowing(tier, State(table.version, world.reflected(tier)), table.counter)
        run = self._read(run, world.fine, run.of(FINE)[0])
        return replace(run, step="claim first" if self.fault is Fault.CLAIM_FIRST else FINE)

    def _fine(self, world: World, run: Run) -> tuple[World, Run]:
        new = dict.fromkeys(self._due(FINE, run), ((run.source,), run.source))
        return self._written(world, run, FINE, new)

    def _coarse(self, world: World, run: Run) -> tuple[World, Run]:
        windows, reflected = run.parent
        if self.fault is Fault.PARENT_UNPINNED:
            windows = world.fine.windows
        new: dict[int, tuple[Made, int]] = {}
        for place in self._due(COARSE, run):
            # What the parent lacks is made of the source.
            read = [(windows[part], _claimed(reflected, FINE, part)) for part in _slices(COARSE, place)]
            parts = [(rows[0][0] if claimed >= 0 and rows else run.source, claimed) for rows, claimed in read]
            claims = [claimed if claimed >= 0 else run.source for _, claimed in parts]
            claim = run.source if self.fault is Fault.CLAIM_PINNED else min(claims)
            new[place] = tuple(made for made, _ in parts), claim
        return self._written(world, run, COARSE, new)

    def _due(self, tier: str, run: Run) -> list[int]:
        """The windows that end in what is asked for, and are not known, or changed since."""
        coverage = run.of(tier)[0].coverage
        return [
            place
            for place in _ending(tier, run.span)
            for claimed in [_claimed(coverage, tier, place)]
            if run.restates or claimed < 0 or (claimed < run.source and _changed(tier, place, claimed, run.source))
        ]

    def _written(self, world: World, run: Run, tier: str, new: Mapping[int, tuple[Made, int]]) -> tuple[World, Run]:
        """One commit of rows with what they reflect; or the run is too late, and looks again."""
        onward = replace(run, step=COARSE if tier == FINE else "record")
        if not new:
            return self.stepped(world, onward)
        table, (state, counter) = world.table(tier), run.of(tier)
        spans = [_span(tier, place) for place in new]
        adds = self.appends and not run.restates and all(map(state.coverage.is_untouched, spans))
        waits = self.has_mutex and self.fault is not (Fault.APPEND_ALONE if adds else Fault.REPLACE_ALONE)
        claimed = Coverage()
        for span, (_, version) in zip(spans, new.values(), strict=True):
            claimed = claimed.overlaid(Coverage.of(span, version))
        if waits and table.counter != counter:
            if self.fault is Fault.SKIP_BELIEVED and adds:
                believed = State(state.version, state.coverage.overlaid(claimed))
                return world, self._knowing(onward, tier, table, believed)
            again = Run(run.span, restates=run.restates, step="look", source=run.source, attempt=run.attempt + 1)
            return world, again if again.attempt < _ATTEMPTS else run.over
        rows = {place: (*(table.windows[place] if adds else ()), made) for place, (made, _) in new.items()}
        claim = Claim(run="r", plan="p", tiers=((tier, claimed),), is_append=adds)
        table = table.committed(claim, rows, table.counter + waits)
        since = [each for each in table.log if each.version > state.version]
        after = State(table.version, folded(tier, since, [state]))
        if self.fault is Fault.RECORD_OVERLAID:
            after = State(table.version, state.coverage.overlaid(claimed))
        return world.with_table(tier, table), self._knowing(onward, tier, table, after)

    def _knowing(self, run: Run, tier: str, table: Table, state: State) -> Run:
        """The run knows what became of its commit, and the coarse tier reads the fine one as of then."""
        run = run.knowing(tier, state, table.counter)
        return replace(run, parent=_NOTHING) if tier == COARSE else self._read(run, table, state)

    def _read(self, run: Run, table: Table, state: State) -> Run:
        """What the coarse tier reads of the fine one; where no change came, it is as of the run's version."""
        return replace(run, parent=(table.windows, _advanced(FINE, state.coverage, ALL, run.source)))

    def _recorded(self, world: World, run: Run) -> tuple[World, Run]:
        """What no change has touched is known to be as of the run's version, without a commit."""
        new: set[tuple[str, State]] = set()
        for tier in (FINE, COARSE):
            state, _ = run.of(tier)
            coverage = _advanced(tier, state.coverage, run.span, run.source)
            is_newest = self.fault is Fault.RECORD_NEWEST
            new.add((tier, State(world.table(tier).version if is_newest else state.version, coverage)))
        return replace(world, records=world.records | new), run.over


def packed(world: World, tier: str) -> World:
    """The world after OPTIMIZE: a commit that claims nothing and changes no row."""
    table = world.table(tier)
    return world.with_table(tier, table.committed(None, {}, table.counter))


@cache
def _folded(tier: str, table: Table, records: frozenset[State]) -> Coverage:
    return folded(tier, table.log, records)


def _slices(tier: str, place: int) -> tuple[int, ...]:
    return (place,) if tier == FINE else (2 * place, 2 * place + 1)


@cache
def _span(tier: str, place: int) -> Interval:
    """A range in which the window ends, and no other one."""
    end = _slices(tier, place)[-1] + 1
    return Interval(end - 1, end)


@cache
def _ending(tier: str, span: Interval) -> Iterable[int]:
    """The windows that end in a range."""
    return [place for place in range(4 if tier == FINE else 2) if span.start < _span(tier, place).end <= span.end]


@cache
def _claimed(coverage: Coverage, tier: str, place: int) -> int:
    """The version that is claimed of a window; DOUBTFUL where none is."""
    known = coverage.within(_span(tier, place)).stretches
    return known[0].version if known else DOUBTFUL


@cache
def _advanced(tier: str, coverage: Coverage, span: Interval, source: int) -> Coverage:
    """What is reflected as of a version, as is known of windows that no change has touched since."""
    for place in _ending(tier, span):
        claimed = _claimed(coverage, tier, place)
        if 0 <= claimed < source and not _changed(tier, place, claimed, source):
            coverage = coverage.overlaid(Coverage.of(_span(tier, place), source))
    return coverage


def _changed(tier: str, place: int, since: int, until: int) -> bool:
    """Whether a version of the source after one, until another, changes a window."""
    return any(since < version <= until and part in _slices(tier, place) for version, part in CHANGED.items())


@cache
def _reflects(tier: str, place: int, rows: Rows, newest: int) -> int:
    """The last version of the source that a window holds at least in all its slices."""
    if len(rows) != 1:
        return DOUBTFUL
    later = [
        min((version - 1 for version, part in CHANGED.items() if version > made and part == of), default=newest)
        for made, of in zip(rows[0], _slices(tier, place), strict=True)
    ]
    return min(*later, newest)
