"""What differs between two versions of a source: the answer, however it was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stairwise.windowing import Interval


class Way(Enum):
    """How it was found out what changed, the most exact way first."""

    UNCHANGED = "unchanged"
    LOG = "log"
    FEED = "change data feed"
    LISTING = "listing"
    STATISTICS = "statistics"
    LOOKBACK = "lookback"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs between two versions of a source.

    Attributes:
        spans: Event time in whole seconds, in order and apart; outside of them no row that the rollup uses differs.
        way: How it was found out.
        why: One short sentence for people.
        late_rows: How many more rows there are in the slices that have more than before; None: nobody counted.
        fewer_rows: How many rows fewer there are in those that have fewer; None: nobody counted.
        files: How many files were opened for it; None: nobody says.
        bytes: How large these are.
        rechecked: The lookbacks that were due, as they are declared; whoever keeps when must do so once all is written.
    """

    spans: tuple[Interval, ...]
    way: Way
    why: str
    late_rows: int | None = None
    fewer_rows: int | None = None
    files: int | None = 0
    bytes: int | None = 0
    rechecked: tuple[str, ...] = ()
