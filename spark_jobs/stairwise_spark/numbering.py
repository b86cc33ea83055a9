"""The version of a source in claims: that of a Delta table, or a number of our own for a list of its files."""

from __future__ import annotations

from collections.abc import Mapping

from stairwise_spark.changes import Listing, listing_of
from stairwise_spark.coverage import EXPIRED, State
from stairwise_spark.ledger import Ledger
from stairwise_spark.source import FILES, PinnedSource


def numbered(source: PinnedSource, ledger: Ledger, states: Mapping[str, State]) -> tuple[int, Listing | None]:
    """The version of the source; without one, a number of our own, and the files that it stands for, if there are."""
    if source.version is not None:
        return source.version, None
    if source.identity != FILES:
        known = (each.version for state in states.values() for each in state.coverage.stretches)
        return 1 + max((version for version in known if version < EXPIRED), default=0), None
    newest = ledger.newest_listing()
    if newest is None:
        return 1, listing_of(source)
    number, text = newest
    found = listing_of(source, Listing.decode(text))
    return number if found.encode() == text else number + 1, found
