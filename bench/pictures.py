"""The pictures of ``docs/benchmarks.md``: which sections have one, each drawn from the table that stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from chart import Chart, draw

SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)

_SLICES = (
    "panes, each its own",
    "pairs, each its own",
    "pairs, shared",
    "Cutty, shared",
    "ours, of the events",
    "ours, all levels",
)
_TECHNIQUES = ("naive", "flat fat", "two stacks", "van herk", "slick deque", "running")
_RIVALS = {
    "Stairwise, s": "Stairwise",
    "a query each, s": "Spark, a query each",
    "by hand, s": "Spark, stacked by hand",
    "DuckDB, a query each, s": "DuckDB, a query each",
    "DuckDB, the same tiers, s": "DuckDB, the same tiers",
    "Polars, the same tiers, s": "Polars, the same tiers",
    "one scan, s": "one scan: the limit",
}
CHARTS: Mapping[str, Chart] = MappingProxyType(
    {
        "boosts": Chart(
            title="Times as fast as a query for each window",
            x="sets of RandomGen and SequentialGen",
            y="boost, mean",
            lines={
                "paper, without, mean": "paper, no factor windows",
                "paper, with, mean": "paper, factor windows",
                "algorithm 1, mean": "algorithm 1, here",
                "algorithm 3, mean": "algorithm 3, here",
                "ours, mean": "Stairwise",
            },
        ),
        "final-aggregation": Chart(
            title="Putting overlapping windows together",
            x="slices of a window",
            y="states combined for each slice",
            lines={name: name for name in _TECHNIQUES},
        ),
        "slices": Chart(
            title="Slices stored for uneven hopping windows",
            x="windows",
            y="slices an hour",
            lines={name: name for name in _SLICES},
        ),
        "sharing-by-keys": Chart(
            title="What sharing saves, the more keys there are",
            x="windows, keys",
            y="seconds",
            lines={"apart, s": "each from the raw rows", "shared, s": "always shared", "our choice, s": "Stairwise"},
        ),
        "by-windows": Chart(
            title="The more windows", x="windows", y="seconds", lines=_RIVALS, limit="one scan, s"
        ),
        "by-rows": Chart(
            title="The more events", x="events", y="seconds", lines=_RIVALS, limit="one scan, s"
        ),
        "by-keys": Chart(
            title="The more keys", x="keys", y="seconds", lines=_RIVALS, limit="one scan, s"
        ),
        "by-history": Chart(
            title="The more history",
            x="hours of history",
            y="seconds for one more hour",
            lines={
                "hourly run, s": "hourly run",
                "nothing to do, s": "a run with nothing to do",
                "daily cache, s": "today again, days kept",
                "all again, a query each, s": "all again, Spark",
                "all again, DuckDB, s": "all again, DuckDB",
                "all again, Stairwise, s": "all again, Stairwise",
                "one scan of the hour, s": "one scan of the hour: the limit",
            },
            limit="one scan of the hour, s",
        ),
        "by-late-rows": Chart(
            title="The more late rows",
            x="late rows, of all",
            y="seconds until all tiers are true",
            lines={
                "Stairwise, s": "Stairwise",
                "late days again, s": "days with late rows again",
                "all again, a query each, s": "all again, Spark",
                "all again, DuckDB, s": "all again, DuckDB",
                "all again, Stairwise, s": "all again, Stairwise",
                "one scan, s": "one scan: the limit",
            },
            limit="one scan, s",
        ),
    }
)  # fmt: skip
"""By the name of the section."""


def file_of(name: str) -> str:
    """What the picture of a section is called, in the folder of pictures."""
    return f"bench-{name}.svg"


def embedded(name: str) -> str:
    """The picture of a section, as its page shows it; nothing if it has none."""
    return f"\n![{CHARTS[name].title}](pictures/{file_of(name)})\n" if name in CHARTS else ""


def drawn(page: str) -> Iterator[tuple[str, str]]:
    """The files of all pictures that a page shows, each from the table of its section."""
    for section in SECTION.finditer(page):
        name, body = section[1], section[2]
        if name in CHARTS:
            header, _, *rows = ([cell.strip() for cell in row[1].split(" | ")] for row in ROW.finditer(body))
            yield file_of(name), draw(CHARTS[name], header, rows)
