from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import CodecError
from stairwise.meaning import Meaning
from stairwise.windowing import Interval
from stairwise_spark.coverage import (
    DOUBTFUL,
    EXPIRED,
    Claim,
    Commit,
    Coverage,
    State,
    Stretch,
    Wanted,
    folded,
    partial_at,
)
from stairwise_spark.ledger import Known, Summary
from stairwise_spark.spans import joined

_One = TypeVar("_One")
_Other = TypeVar("_Other")
_END = 12
_WINDOW = Interval(0, 60)


def _ranges() -> st.SearchStrategy[list[tuple[int, int, int]]]:
    instants = st.integers(0, _END)
    return st.lists(st.tuples(instants, instants, st.integers(DOUBTFUL, 3)), max_size=5)


def _coverages() -> st.SearchStrategy[Coverage]:
    return _ranges().map(Coverage.over)


def _points(coverage: Coverage) -> list[int | None]:
    """The version at each second, by brute force."""
    return [
        next((version for start, end, version in coverage.stretches if start <= at < end), None) for at in range(_END)
    ]


def _pairs(one: Coverage, two: Coverage) -> Iterator[tuple[int | None, int | None]]:
    return zip(_points(one), _points(two), strict=True)


@given(_ranges())
def test_the_later_of_two_ranges_holds(ranges: list[tuple[int, int, int]]) -> None:
    versions: list[int | None] = [None] * _END
    for start, end, version in ranges:
        if start < end:
            versions[start:end] = [version] * (end - start)
    assert _points(Coverage.over(ranges)) == versions


@given(_coverages(), _coverages())
def test_operations_are_pointwise(one: Coverage, two: Coverage) -> None:
    known = [[each for each in pair if each is not None] for pair in _pairs(one, two)]
    assert _points(one.overlaid(two)) == [old if new is None else new for old, new in _pairs(one, two)]
    assert _points(one.union(two)) == [max(each, default=None) for each in known]
    assert _points(one.minimum(two)) == [min(each) if len(each) == 2 else None for each in known]
    assert _points(one.appended(two)) == [DOUBTFUL if len(each) == 2 else max(each, default=None) for each in known]


@given(_coverages(), st.integers(0, _END), st.integers(0, _END), st.integers(0, 3))
def test_gaps_are_what_is_not_covered(coverage: Coverage, start: int, end: int, version: int) -> None:
    span = Interval(start, end)
    low = [at for at, found in enumerate(_points(coverage)) if start <= at < end and (found is None or found < version)]
    gaps = coverage.gaps(span, version)
    assert [at for gap in gaps for at in range(gap.start, gap.end)] == low
    assert all(left.end < right.start for left, right in pairwise(gaps))
    assert coverage.is_covered(span, version) is (not low)
    assert coverage.is_untouched(span) is all(found is None for found in _points(coverage)[start:end])


@given(_coverages(), st.integers(-1, _END + 1), st.integers(-1, _END + 1))
def test_a_part_is_what_is_in_a_range(coverage: Coverage, start: int, end: int) -> None:
    part = [found if start <= at < end else None for at, found in enumerate(_points(coverage))]
    assert _points(coverage.within(Interval(start, end))) == part


@given(_coverages(), st.integers(DOUBTFUL, 3))
def test_ranges_of_one_version_are_as_one_upon_the_other(coverage: Coverage, version: int) -> None:
    spans = joined(Interval(start, end) for start, end, _ in coverage.stretches)
    assert Coverage.of_all(spans, version) == Coverage.over((start, end, version) for start, end in spans)


@given(st.permutations([(at, at + 2, at // 4) for at in range(0, _END, 2)]))
def test_ranges_that_are_apart_may_come_in_any_order(ranges: list[tuple[int, int, int]]) -> None:
    assert Coverage.over(ranges).stretches == ((0, 4, 0), (4, 8, 1), (8, 12, 2))


@given(_coverages())
def test_json_round_trips(coverage: Coverage) -> None:
    assert Coverage.from_json(coverage.to_json()) == coverage
    claim = Claim(run="r'1", plan="ab", tiers=(("5m", coverage), ("1h", Coverage())))
    assert Claim.decode(claim.encode()) == claim


def test_a_claim_reads_well() -> None:
    claim = Claim(run="r1", plan="ab", tiers=(("5m", Coverage.over([(0, 60, 3)])),), is_append=True)
    wanted = '{"schema":"stairwise.claim/1","run":"r1","plan":"ab","append":true,"tiers":{"5m":[[0,60,3]]}}'
    assert claim.encode() == wanted


@pytest.mark.parametrize("text", [None, "", "nightly", "7", "[]", '{"schema": 1}', "{}", "[" * 100_000])
def test_what_others_write_is_no_claim(text: str | None) -> None:
    assert Claim.decode(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"schema":"stairwise.claim/2"}',
            """claim {"schema":"stairwise.claim/2"}: it is not one of stairwise.claim/1.""",
        ),
        (
            '{"schema":"stairwise.claim/1","run":"r","plan":"p","append":0,"tiers":{}}',
            (
                """claim {"schema":"stairwise.claim/1","run":"r","plan":"p","append":0,"tiers":{}}: """
                "it is not one of stairwise.claim/1."
            ),
        ),
        (
            '{"schema":"stairwise.claim/1","run":"","plan":"","append":true,"tiers":{},"x":1}',
            (
                """claim {"schema":"stairwise.claim/1","run":"","plan":"","append":true,"tiers":{},"x":1}: """
                "it is not one of stairwise.claim/1."
            ),
        ),
        (
            '{"schema":"stairwise.claim/1","run":"","plan":"","append":true,"tiers":{"5m":[[2,1,0]]}}',
            "coverage [[2, 1, 0]]: its ranges are empty or not in order.",
        ),
        (
            '{"schema":"stairwise.claim/1","run":"","plan":"","append":true,"tiers":{"5m":[[0,1,true]]}}',
            "coverage [0, 1, true]: it is not [start, end, version].",
        ),
        (
            '{"schema":"stairwise.claim/1","run":"","plan":"","append":true,"tiers":{"5m":7}}',
            "coverage 7: it is not a list of [start, end, version].",
        ),
    ],
)
def test_a_claim_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(CodecError) as refused:
        Claim.decode(text)
    assert refused.value.message == message


@given(_coverages())
def test_a_summary_round_trips(coverage: Coverage) -> None:
    tiers = {"5m": Known("/lake/5m", "b7", 6, State(3, coverage)), "1h": Known("/lake/1h", "b8", None)}
    summary = Summary(made="ab", plan="cd", tiers=tiers)
    assert Summary.decode(summary.encode()) == summary


@pytest.mark.parametrize("text", [None, "", "nightly", "[]", '{"schema":"stairwise.ledger/3"}', "[" * 100_000])
def test_what_others_write_into_the_ledger_is_no_summary(text: str | None) -> None:
    assert Summary.decode(text) is None


@pytest.mark.parametrize("tiers", ["7", '{"5m":7}', '{"5m":["/lake",1,null,null]}', '{"5m":["/lake","b7",null,3]}'])
def test_a_summary_that_is_none_is_refused(tiers: str) -> None:
    text = f'{{"schema":"stairwise.ledger/2","made":"","plan":"","tiers":{tiers}}}'
    with pytest.raises(
        CodecError, match=r"^bookkeeping .*: it is not \[location, mark, keys, version, coverage\]\. Hint: "
    ):
        Summary.decode(text)


@pytest.mark.parametrize("stretches", [((0, 0, 1),), ((5, 9, 1), (0, 5, 2)), ((0, 5, 1), (5, 9, 1))])
def test_coverage_is_in_normal_form(stretches: tuple[tuple[int, int, int], ...]) -> None:
    with pytest.raises(ValueError, match=r"^coverage \[.*\]: the ranges are empty or not in order\.$"):
        Coverage(tuple(Stretch(*each) for each in stretches))


def _commit(version: int, *ranges: tuple[int, int, int], is_append: bool = False) -> Commit:
    tiers = (("5m", Coverage.over(ranges)), ("1h", Coverage.over([(0, 1, 9)])))
    return Commit(version, Claim(run="r", plan="p", tiers=tiers, is_append=is_append))


def _record(version: int, *ranges: tuple[int, int, int]) -> State:
    return State(version, Coverage.over(ranges))


@pytest.mark.parametrize(
    ("commits", "records", "wanted"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([Commit(0, None)], [], [], id="created"),
        pytest.param([_commit(0, (0, 9, 5)), _commit(1, (3, 6, 4))], [], [(0, 9, 5), (3, 6, 4)], id="the last holds"),
        pytest.param([_commit(0, (0, 9, 5)), Commit(1, None)], [], [(0, 9, 5)], id="others change nothing"),
        pytest.param([_commit(0, (0, 3, 5), (6, 9, 5)), _commit(1, (3, 6, 5))], [], [(0, 9, 5)], id="between"),
        pytest.param([_commit(0, (0, 3, 5))], [_record(0, (3, 6, 4), (0, 3, 2))], [(0, 3, 5), (3, 6, 4)], id="beside"),
        pytest.param([_commit(8, (3, 6, 4))], [_record(7, (0, 9, 5))], [(0, 9, 5), (3, 6, 4)], id="a shorter fold"),
        pytest.param([_commit(9, (3, 6, 4))], [_record(7, (0, 9, 5))], [(3, 6, 4)], id="a hole after the record"),
        pytest.param([], [_record(7, (0, 3, 5)), _record(7, (3, 6, 4))], [(0, 3, 5), (3, 6, 4)], id="two of a version"),
        pytest.param([_commit(0, (0, 9, 5)), _commit(1, (3, 6, 6))], [_record(0, (3, 6, 9))], [(0, 9, 5), (3, 6, 6)],
                     id="a commit after a record"),
        pytest.param([_commit(0, (0, 3, 5)), _commit(1, (3, 6, 4), is_append=True)], [], [(0, 3, 5), (3, 6, 4)],
                     id="rows beside rows"),
        pytest.param([_commit(0, (0, 3, 5)), _commit(1, (2, 6, 7), is_append=True)], [],
                     [(0, 2, 5), (2, 3, DOUBTFUL), (3, 6, 7)], id="rows upon rows"),
    ],
)  # fmt: skip
def test_a_fold(commits: list[Commit], records: list[State], wanted: list[tuple[int, int, int]]) -> None:
    assert folded("5m", commits, records) == Coverage.over(wanted)


def test_a_fold_may_start_at_any_record() -> None:
    """Every record in the log's own past gives the same coverage, wherever the log is cut."""
    commits = [_commit(0, (0, 9, 5)), _commit(1, (3, 6, 4)), Commit(2, None), _commit(3, (8, 12, 6))]
    records = [State(each.version, folded("5m", commits[: each.version + 1], [])) for each in commits]
    for cut, kept in product(range(4), repeat=2):
        if kept <= cut:
            whole = folded("5m", commits[kept + 1 :], records[kept : cut + 1])
            assert whole == folded("5m", commits, [])


@pytest.mark.parametrize(
    ("of", "asked", "version"),
    [("a", "a", 5), ("a", None, 5), (None, None, 5), ("a", "b", DOUBTFUL), (None, "b", DOUBTFUL)],
)
def test_what_is_said_of_another_source_is_doubtful(of: str | None, asked: str | None, version: int) -> None:
    """A claim that names none was made when there was none to be told from others."""
    claim = Claim(run="r", plan="p", tiers=(("5m", Coverage.over([(0, 3, 5)])),), source=of)
    assert folded("5m", [Commit(0, claim)], [], Wanted(asked)) == Coverage.over([(0, 3, version)])


_MEANINGS = Meaning("a", frozenset({"total"})), Meaning("b", frozenset({"total"}))


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[Commit], list[State]]:
    """Commits of all kinds, of which one may be missing, and records of any version."""
    claims = st.builds(
        Claim,
        run=st.just("r"),
        plan=st.just("p"),
        tiers=_often(st.just("5m"), st.just("1h")).flatmap(lambda tier: st.tuples(st.tuples(st.just(tier), _kept(4)))),
        is_append=st.booleans(),
        source=_often(st.just("a"), st.sampled_from([None, "b"])),
        meaning=_often(st.just(_MEANINGS[0]), st.sampled_from([None, *_MEANINGS])),
        emptied=_often(st.just(()), st.sampled_from([("5m",), ("1h",)])),
    )
    made = draw(st.lists(_often(claims, st.none()), min_size=4, max_size=12))
    missing = draw(st.none() | st.integers(0, 8))
    records = draw(st.lists(st.builds(State, st.integers(0, 12), _kept(12)), max_size=3))
    return [Commit(version, claim) for version, claim in enumerate(made) if version != missing], records


def _often(usual: st.SearchStrategy[_One], other: st.SearchStrategy[_Other]) -> st.SearchStrategy[_One | _Other]:
    return st.integers(0, 5).flatmap(lambda die: usual if die else other)


def _kept(most: int) -> st.SearchStrategy[Coverage]:
    """Coverages that hold all that there may be, up to windows that go on and windows that are gone."""
    versions = st.sampled_from([1, 1, 1, 2, 3, EXPIRED, DOUBTFUL, partial_at(3)])
    ranges = st.tuples(st.integers(0, 24), st.integers(1, 3), versions)
    return st.lists(ranges.map(lambda each: (each[0], each[0] + each[1], each[2])), max_size=most).map(Coverage.over)


def _one_by_one(commits: Sequence[Commit], records: Sequence[State], wanted: Wanted) -> Coverage:
    """At each version, what is known by then is made anew as a whole: by the commit, then by the records."""
    claims = {commit.version: commit.claim for commit in commits}
    coverage, at = Coverage(), -1
    for version in sorted({*claims, *(record.version for record in records)}):
        if version not in claims or version > at + 1:
            coverage = Coverage()
        if (claim := claims.get(version)) is not None:
            claimed = dict(claim.tiers).get("5m", Coverage())
            if not wanted.believes("5m", claim.source, claim.meaning):
                claimed = claimed.doubted()
            before = Coverage() if "5m" in claim.emptied else coverage
            coverage = before.appended(claimed) if claim.is_append else before.overlaid(claimed)
        for record in records:
            if record.version == version:
                coverage = coverage.union(record.coverage)
        at = version
    return coverage


@given(_histories(), st.sampled_from([None, "a"]), st.sampled_from([None, _MEANINGS[0]]))
def test_a_fold_is_what_commits_and_records_give_one_by_one(
    history: tuple[list[Commit], list[State]], source: str | None, meaning: Meaning | None
) -> None:
    wanted = Wanted(source, meaning)
    assert folded("5m", *history, wanted) == _one_by_one(*history, wanted)


@pytest.mark.parametrize("kinds", [(True,), (False,), (True, False)], ids=["added", "replaced", "in turns"])
def test_a_long_log_is_folded_quickly(kinds: tuple[bool, ...]) -> None:
    """Each commit claims an hour, and one of the day before; what was claimed of all the others is not looked at."""
    commits = [
        _commit(at, (2 * at - 48, 2 * at - 47, at), (2 * at, 2 * at + 1, at), is_append=kinds[at % len(kinds)])
        for at in range(3_000)
    ]
    started = time.process_time()
    folded("5m", commits, [])
    assert time.process_time() - started < 2


@dataclass(frozen=True, slots=True)
class _Run:
    """A run over one window: it reads what is known, writes, and records what made no commit; it may end at any point.

    Its rows reflect the source at its version. It adds them if nothing was ever claimed, and is not alone.
    """

    source: int
    step: str = "read"
    at: int = 0
    known: Coverage = field(default_factory=Coverage)


@dataclass(frozen=True, slots=True)
class _Table:
    """The commits and the records, and of each set of rows that is there the version of the source that it reflects."""

    born: int
    log: tuple[Commit, ...] = (Commit(0, None),)
    records: tuple[State, ...] = ()
    rows: tuple[int, ...] = ()

    def claimed(self) -> int:
        known = folded("5m", self.log, self.records).stretches
        return known[0].version if known else DOUBTFUL

    def is_true(self) -> bool:
        """Whether the rows are those of the source at the claimed version, or later: it has rows since it was born."""
        claimed = self.claimed()
        holds = (claimed < self.born) if not self.rows else (len(self.rows) == 1 and claimed <= self.rows[0])
        return claimed == DOUBTFUL or holds


def _stepped(table: _Table, run: _Run) -> tuple[_Table, _Run]:
    match run.step:
        case "read":
            known = folded("5m", table.log, table.records)
            if known.is_covered(_WINDOW, run.source):
                return table, replace(run, step="done")
            step = "append" if known.is_untouched(_WINDOW) else "replace"
            return table, replace(run, step=step, at=len(table.log) - 1, known=known)
        case "record":
            known = run.known.overlaid(Coverage.of(_WINDOW, run.source))
            return replace(table, records=(*table.records, State(run.at, known))), replace(run, step="done")
        case step:
            new = (run.source,) if run.source >= table.born else ()
            rows = (*table.rows, *new) if step == "append" else new
            if not new and rows == table.rows:
                return table, replace(run, step="record")
            claim = Claim(
                run="r",
                plan="p",
                tiers=(("5m", Coverage.of(_WINDOW, run.source)),),
                is_append=step == "append",
            )
            log = (*table.log, Commit(len(table.log), claim))
            return replace(table, log=log, rows=rows), replace(run, step="done")


@pytest.mark.parametrize("born", [0, 2, 3, 4])
def test_no_interleaving_claims_too_much(born: int) -> None:
    """Every order of the steps of three runs, each of which may stop for good after any of them."""
    begun: tuple[_Table, tuple[_Run, ...]] = (_Table(born), tuple(map(_Run, (1, 2, 3, 3))))
    todo = [begun]
    seen = set(todo)
    while todo:
        table, runs = todo.pop()
        assert table.is_true(), (table, runs)
        for run in runs:
            if run.step != "done":
                table_after, after = _stepped(table, run)
                state = table_after, tuple(after if each is run else each for each in runs)
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
    assert len(seen) > 500
