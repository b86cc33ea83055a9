"""The commits of one table, the newest first; as many of them are read as somebody wants to see."""

from __future__ import annotations

from collections.abc import Iterator

from stairwise_spark.contents import Entry
from stairwise_spark.coverage import Claim
from stairwise_spark.session import sql
from stairwise_spark.tables import TierTable

# A first look, a second one, and then all of it: a commit takes 3 ms.
_PAGES = (50, 1_000, None)


def history(table: TierTable) -> Iterator[Entry]:
    """The commits that the log of a table still has, from the newest on; without the files that they added."""
    seen: int | None = None
    for most in _PAGES:
        limit = "" if most is None else f" LIMIT {most}"
        found = sql(table.spark, f"DESCRIBE HISTORY {table.place.identifier}{limit}")
        chosen = found.selectExpr("version", "unix_seconds(timestamp) AS at", "operation", "userMetadata")
        rows = sorted(chosen.collect(), key=lambda row: int(row["version"]), reverse=True)
        for row in rows:
            if seen is None or row["version"] < seen:
                seen = int(row["version"])
                claim = Claim.decode(row["userMetadata"])
                yield Entry(version=seen, at=row["at"], operation=row["operation"], claim=claim, added=())
        if most is None or len(rows) < most:
            return
