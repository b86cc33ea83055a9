"""What a tier reflects: for which ranges, and the source as of which version.

A range claims the windows that **end** in it: [start, end) stands for the windows with start < window end <= end. So
neighbouring ranges share no window, and a window that began long before its range is claimed with it.

The claim is: the stored rows of these windows equal the rollup of the source at that version, or at a later one.
Coverage is the fold of a tier's own commits in the order of its log, since a commit carries what it claims; records of
a ledger, each true of the tier at one of its versions, shorten the fold and claim what needed no commit.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import NamedTuple

from stairwise.errors import CodecError
from stairwise.json_fields import Json
from stairwise.meaning import Meaning
from stairwise.windowing import Interval
from stairwise_spark.shapes import is_list, is_object
from stairwise_spark.spans import Spans, joined

SCHEMA = "stairwise.claim/1"
_FAMILY = "stairwise.claim/"
# Below the version of any source: the range may hold rows, but they are not to be trusted.
DOUBTFUL = -1
# Above the version of any source: the rows are gone, since nobody wanted them any longer, and are not made again.
EXPIRED = 2**62

_Choose = Callable[[int | None, int | None], int | None]
"""Says which of two versions holds, or none; None: one of the two claims nothing there."""


def partial_at(version: int) -> int:
    """What stands for windows that have not ended: lower than any version, and for each version another number.

    >>> partial_at(0), partial_at(7)
    (-2, -9)
    """
    return DOUBTFUL - 1 - version


class Stretch(NamedTuple):
    """The range [start, end) reflects the source at a version; DOUBTFUL; EXPIRED; or holds windows that go on."""

    start: int
    end: int
    version: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Disjoint ranges in order, each with its version; neighbours of one version are one range.

    >>> Coverage.over([(0, 60, 3), (60, 90, 3), (40, 50, 7)])
    Coverage(stretches=((0, 40, 3), (40, 50, 7), (50, 90, 3)))

    Attributes:
        stretches: The ranges in normal form; :meth:`over` makes it of any.
    """

    stretches: tuple[Stretch, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is not in normal form."""
        is_apart = all(
            end < start or (end == start and one != other)
            for (_, end, one), (start, _, other) in pairwise(self.stretches)
        )
        if not is_apart or any(start >= end for start, end, _ in self.stretches):
            raise ValueError(f"coverage {list(map(tuple, self.stretches))}: the ranges are empty or not in order.")

    def __repr__(self) -> str:
        return f"Coverage(stretches={tuple(map(tuple, self.stretches))})"

    @classmethod
    def of(cls, span: Interval, version: int) -> Coverage:
        """One range at one version; nothing if the range is empty."""
        return cls((Stretch(span.start, span.end, version),) if span.start < span.end else ())

    @classmethod
    def of_all(cls, spans: Spans, version: int) -> Coverage:
        """Some ranges at one version."""
        return cls(tuple(Stretch(start, end, version) for start, end in spans))

    @classmethod
    def over(cls, ranges: Iterable[tuple[int, int, int]]) -> Coverage:
        """The coverage after these ranges, one upon the other: where they overlap, the later one holds."""
        known = [Stretch(start, end, version) for start, end, version in ranges if start < end]
        ordered = sorted(known)
        if all(one.end <= other.start for one, other in pairwise(ordered)):
            return cls(_merged(ordered, (), _newer))
        layers = [cls((each,)) for each in known]
        while len(layers) > 1:  # by halves, so that many ranges do not take as many looks at all of them
            layers = [older.overlaid(newer) for older, newer in zip_longest(layers[::2], layers[1::2], fillvalue=cls())]
        return layers[0] if layers else cls()

    def overlaid(self, newer: Coverage) -> Coverage:
        """What holds after a newer commit: its claims where it makes any, even lower ones, else the old ones."""
        return Coverage(_merged(self.stretches, newer.stretches, _newer))

    def appended(self, newer: Coverage) -> Coverage:
        """What holds after rows were added without removing any: rows upon rows are to be trusted no more."""
        return Coverage(_merged(self.stretches, newer.stretches, _alone))

    def union(self, other: Coverage) -> Coverage:
        """What holds if both are true: the higher version of the two.

        >>> Coverage.over([(0, 60, 3)]).union(Coverage.over([(30, 90, 2)]))
        Coverage(stretches=((0, 60, 3), (60, 90, 2)))
        """
        return Coverage(_merged(self.stretches, other.stretches, _higher))

    def minimum(self, other: Coverage) -> Coverage:
        """What may be claimed of windows that were made of two tiers: the lower version, and nothing that one lacks.

        >>> Coverage.over([(0, 60, 3)]).minimum(Coverage.over([(30, 90, 2)]))
        Coverage(stretches=((30, 60, 2),))
        """
        return Coverage(_merged(self.stretches, other.stretches, _lower))

    def doubted(self) -> Coverage:
        """The same ranges, of which nothing is to be trusted; what is gone stays gone."""
        return Coverage.over(
            (start, end, EXPIRED if version == EXPIRED else DOUBTFUL) for start, end, version in self.stretches
        )

    def within(self, span: Interval) -> Coverage:
        """The part in a range."""
        return Coverage(
            tuple(
                Stretch(max(start, span.start), min(end, span.end), version)
                for start, end, version in self._meeting(span)
                if max(start, span.start) < min(end, span.end)
            )
        )

    def gaps(self, span: Interval, version: int = 0) -> tuple[Interval, ...]:
        """The parts of a range that do not reflect the source at that version or later; by default, at any.

        >>> Coverage.over([(0, 60, 3), (80, 90, 2)]).gaps(Interval(0, 100))
        (Interval(start=60, end=80), Interval(start=90, end=100))
        """
        at, gaps = span.start, list[Interval]()
        for start, end, known in self._meeting(span):
            if known >= version:
                if at < start:
                    gaps.append(Interval(at, start))
                at = end
        if at < span.end:
            gaps.append(Interval(at, span.end))
        return tuple(gaps)

    def is_covered(self, span: Interval, version: int = 0) -> bool:
        """Whether all of a range reflects the source at that version or later; by default, at any."""
        return not self.gaps(span, version)

    def is_untouched(self, span: Interval) -> bool:
        """Whether nothing was ever claimed in a range, so that no row of ours is there; doubtful rows may be some."""
        return not self.within(span).stretches

    def to_json(self) -> list[Json]:
        """The ranges as lists of start, end and version."""
        return [list(each) for each in self.stretches]

    @classmethod
    def from_json(cls, value: object) -> Coverage:
        """The coverage that :meth:`to_json` wrote.

        Raises:
            CodecError: It did not write this.
        """
        if not is_list(value):
            raise _refusal(value, "it is not a list of [start, end, version]")
        stretches = tuple(map(_stretch, value))
        try:
            return cls(stretches)
        except ValueError as error:
            raise _refusal(value, "its ranges are empty or not in order") from error

    def _meeting(self, span: Interval) -> tuple[Stretch, ...]:
        """The ranges that meet another, whole."""
        first = bisect_right(self.stretches, span.start, key=lambda each: each.end)
        return self.stretches[first : bisect_left(self.stretches, span.end, key=lambda each: each.start)]


def _newer(old: int | None, new: int | None) -> int | None:
    return old if new is None else new


def _alone(old: int | None, new: int | None) -> int | None:
    return new if old is None else old if new is None else DOUBTFUL


def _higher(one: int | None, two: int | None) -> int | None:
    return two if one is None else one if two is None else max(one, two)


def _lower(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else min(one, two)


def _merged(one: Sequence[Stretch], two: Sequence[Stretch], choose: _Choose) -> tuple[Stretch, ...]:
    """What is chosen, in normal form: between two neighbouring bounds one choice settles the range."""
    ones, twos = _versions(one), _versions(two)
    found, start = list[Stretch](), 0
    here = there = chosen = None
    for bound in sorted(ones | twos):
        here, there = ones.get(bound, here), twos.get(bound, there)
        version = choose(here, there)
        if version != chosen:
            if chosen is not None:
                found.append(Stretch(start, bound, chosen))
            start, chosen = bound, version
    return tuple(found)


def _versions(stretches: Iterable[Stretch]) -> dict[int, int | None]:
    """What holds from each bound on, by bound and in order; None: nothing does."""
    found: dict[int, int | None] = {}
    for start, end, version in stretches:
        found[start], found[end] = version, None
    return found


def trusted(coverage: Coverage) -> tuple[Interval, ...]:
    """The ranges that are covered, whatever version of the source they reflect."""
    found = (Interval(each.start, each.end) for each in coverage.stretches if DOUBTFUL < each.version < EXPIRED)
    return joined(found)


def expired(coverage: Coverage) -> tuple[Interval, ...]:
    """The ranges whose rows were kept as long as was declared, and are gone."""
    return tuple(Interval(each.start, each.end) for each in coverage.stretches if each.version == EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a commit says of itself, as the text of its ``userMetadata``.

    Attributes:
        run: Who made it.
        plan: The digest of the plan that it followed.
        tiers: What each tier in the commit reflects, by name.
        is_append: Whether rows were only added, because none were there.
        source: The identity of the source that the versions are of; None: it has none.
        meaning: What the rows mean; None: nobody says.
        emptied: The tiers of which nothing is known any more but what this commit claims.
    """

    run: str
    plan: str
    tiers: tuple[tuple[str, Coverage], ...]
    is_append: bool = False
    source: str | None = None
    meaning: Meaning | None = None
    emptied: tuple[str, ...] = ()

    def encode(self) -> str:
        """The text; equal claims have equal texts."""
        document: dict[str, Json] = {
            "schema": SCHEMA,
            "run": self.run,
            "plan": self.plan,
            "append": self.is_append,
            **({} if self.source is None else {"source": self.source}),
            **({} if self.meaning is None else {"meaning": self.meaning.encode()}),
            **({"emptied": list(self.emptied)} if self.emptied else {}),
            "tiers": {name: coverage.to_json() for name, coverage in self.tiers},
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str | None) -> Claim | None:
        """The claim that a text holds; None for what others write into their commits, or nothing.

        Raises:
            CodecError: It is a claim, but of a later version, or not one that :meth:`encode` writes.
        """
        try:
            document: object = json.loads(text or "")
        except (ValueError, RecursionError):
            return None
        if not is_object(document) or not str(document.get("schema")).startswith(_FAMILY):
            return None
        match document:
            case {"schema": "stairwise.claim/1", "run": str(run), "plan": str(plan), "append": bool(is_append), **rest}:
                tiers, source, meaning = (rest.pop(name, None) for name in ("tiers", "source", "meaning"))
                emptied = rest.pop("emptied", [])
                if (
                    is_object(tiers)
                    and is_list(emptied)
                    and not rest
                    and all(each is None or isinstance(each, str) for each in (source, meaning))
                ):
                    return cls(
                        run=run,
                        plan=plan,
                        tiers=tuple((name, Coverage.from_json(ranges)) for name, ranges in tiers.items()),
                        is_append=is_append,
                        source=None if source is None else str(source),
                        meaning=None if meaning is None else Meaning.decode(str(meaning)),
                        emptied=tuple(map(str, emptied)),
                    )
            case _:
                pass
        raise CodecError(
            f"claim {(text or '')[:80]}: it is not one of {SCHEMA}.",
            hint="run the version of Stairwise that wrote the tables, or a later one.",
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table, and what it claims; None: it is not ours."""

    version: int
    claim: Claim | None


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a tier when its table was at a version."""

    version: int
    coverage: Coverage

    def claiming(self, spans: Spans, version: int) -> State:
        """The same, and that the windows that end in some ranges are as a version of the source gives them."""
        return State(self.version, self.coverage.overlaid(Coverage.of_all(spans, version)))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What claims have to be about to be believed.

    Attributes:
        source: The identity of the source; None: it has none, or nobody asks.
        meaning: What rows have to mean; None: nobody asks.
    """

    source: str | None = None
    meaning: Meaning | None = None

    def believes(self, tier: str, source: str | None, meaning: Meaning | None) -> bool:
        """Whether what is claimed of a tier's rows, of a source and of a meaning, says something of what is wanted.

        Versions of another source, which was there before under the same name, say nothing of this one.
        """
        if self.source not in (None, source):
            return False
        return self.meaning is None or meaning is None or meaning.holds(self.meaning, tier)


ANYTHING = Wanted()


def folded(tier: str, commits: Iterable[Commit], records: Iterable[State], wanted: Wanted = ANYTHING) -> Coverage:
    """What a tier's rows reflect of a source, by the commits of its table and by records of it.

    What claims are about something else than is wanted is doubtful.

    Each record is true of its own version, and a commit changes what was true before. So at each version comes first
    the commit, then the higher of that and what the records say. Where commits are missing, nothing said before is
    known to hold any longer: a record at the last missing one, or at a later one, is where the fold begins anew.
    """
    known: dict[int, list[Coverage]] = {}
    for record in records:
        known.setdefault(record.version, []).append(record.coverage)
    claims = {commit.version: commit.claim for commit in commits}
    stretches, at = list[Stretch](), -1
    for version in sorted({*known, *claims}):
        claim = claims.get(version)
        is_begun_anew = version not in claims or version > at + 1
        if is_begun_anew or (claim is not None and tier in claim.emptied):
            stretches.clear()
        if claim is not None:
            _lay(stretches, _claimed(tier, claim, wanted).stretches, _alone if claim.is_append else _newer)
        for coverage in known.get(version, ()):
            _lay(stretches, coverage.stretches, _higher)
        at = version
    return Coverage(tuple(stretches))


def _claimed(tier: str, claim: Claim, wanted: Wanted) -> Coverage:
    claimed = dict(claim.tiers).get(tier, Coverage())
    return claimed if wanted.believes(tier, claim.source, claim.meaning) else claimed.doubted()


def _lay(stretches: list[Stretch], newer: Sequence[Stretch], choose: _Choose) -> None:
    """What is newer changes a coverage where it meets it; however long the coverage is, little else of it is looked at.

    Args:
        stretches: Those of the coverage, which is changed in place.
        newer: What comes to it, in normal form.
        choose: What holds after that; where nothing comes, the coverage stays as it is.
    """
    if not newer:
        return
    first = bisect_left(stretches, newer[0].start, key=lambda each: each.end)
    last = bisect_right(stretches, newer[-1].end, key=lambda each: each.start)
    half = len(newer) // 2
    if half and last - first > 2 * len(newer):
        _lay(stretches, newer[:half], choose)
        _lay(stretches, newer[half:], choose)
        return
    stretches[first:last] = _merged(stretches[first:last], newer, choose)


def _stretch(value: object) -> Stretch:
    if is_list(value) and len(value) == 3:
        start, end, version = value
        if type(start) is int and type(end) is int and type(version) is int:  # True is an int too
            return Stretch(start, end, version)
    raise _refusal(value, "it is not [start, end, version]")


def _refusal(value: object, rule: str) -> CodecError:
    return CodecError(
        f"coverage {json.dumps(value)[:80]}: {rule}.",
        hint="something else changed the bookkeeping: restore it, or fill the target anew.",
    )
