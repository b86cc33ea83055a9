"""What the rows of a rollup's tables mean, as a text that commits carry: of which events, and what each column is.

Two declarations whose meanings are equal fill the same tables with the same rows; policies and the plan are no part of
it, and windows only where somebody has named them, for other names say what they mean. Rows that hold more columns than
somebody asks for are good for him too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from stairwise.errors import CodecError
from stairwise.rollup import Rollup
from stairwise.rules import meaning
from stairwise.window_text import table_name

_DIGITS = 10
_DIGEST = re.compile(f"[0-9a-f]{{{_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What rows mean.

    >>> from stairwise import Source
    >>> trips = Rollup(name="trips", source=Source(table="trips", time="at"), keys=["zone"], windows=["5m"],
    ...                aggregates={"trips": "count()"}, target="lake")
    >>> Meaning.decode(Meaning.of(trips).encode()) == Meaning.of(trips.in_order())
    True

    Attributes:
        events: A digest of which events there are, when they happened, and by what they are grouped.
        columns: A digest for each aggregate, of its name and its call.
        windows: The windows that were given names, each as its name and a digest.
    """

    events: str
    columns: frozenset[str]
    windows: frozenset[tuple[str, str]] = field(default=frozenset())

    @classmethod
    def of(cls, rollup: Rollup) -> Meaning:
        """What the rows of a rollup's tables mean."""
        source = rollup.source
        events = [source.table, source.path, source.sql, source.format, source.time]
        events += [source.unit and source.unit.value, source.zone, source.where, *sorted(rollup.keys)]
        columns = (_digest([name, str(aggregate)]) for name, aggregate in rollup.aggregates)
        named = (each for each in rollup.windows if each.name != table_name(each.text))
        windows = ((each.name, _digest([str(meaning(each.window))])) for each in named)
        return cls(_digest(events), frozenset(columns), frozenset(windows))

    def encode(self) -> str:
        """The text; equal meanings have equal texts."""
        windows = (f"{name}={digest}" for name, digest in self.windows)
        return ":".join([self.events, *sorted(self.columns), *sorted(windows)])

    @classmethod
    def decode(cls, text: str) -> Meaning:
        """The meaning that :meth:`encode` wrote.

        Raises:
            CodecError: It did not write this.
        """
        events, *others = text.split(":")
        columns = [each for each in others if "=" not in each]
        windows = [(name, digest) for name, _, digest in (each.partition("=") for each in others if "=" in each)]
        if not all(_DIGEST.fullmatch(each) for each in (events, *columns, *(digest for _, digest in windows))):
            raise CodecError(
                f"meaning {text[:40]!r}: it is not a list of digests.",
                hint="run the version of Stairwise that wrote the tables, or a later one.",
            )
        return cls(events, frozenset(columns), frozenset(windows))

    def holds(self, other: Meaning, tier: str | None = None) -> bool:
        """Whether rows that mean this hold all that rows of the other meaning hold; of a tier, with its windows."""
        if self.events != other.events or not self.columns >= other.columns:
            return False
        return tier is None or dict(self.windows).get(tier) == dict(other.windows).get(tier)


def _digest(parts: Iterable[str | None]) -> str:
    return sha256(json.dumps(list(parts)).encode()).hexdigest()[:_DIGITS]
