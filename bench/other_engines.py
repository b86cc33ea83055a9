"""The tiers of a plan by DuckDB and by Polars: what is to be had in one process, without Spark, on two threads.

Both read the files of a table of events and follow the steps of a plan: one that shares nothing is a query for each
window, another is the same hierarchy as ours. Results stay in memory. Each engine has the form that was the fastest of
those tried: Polars streams, and events get into slices of uneven length by way of slots that are as long as all edges
allow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Protocol

import duckdb

from stairwise.plan import Plan, Step
from stairwise.tiers import How, Kind

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)  # read once, when it is imported

import polars as pl  # noqa: E402

MICROS = 1_000_000


class OtherEngine(Protocol):
    """Whoever can follow a plan over ``k``, ``ts`` and ``v``, with count, sum, min and max of ``v``."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def computed(self, folder: Path, plan: Plan) -> int:
        """All tiers of a plan from the Parquet files of a folder; the rows of those that were declared."""
        ...


@dataclass(frozen=True, slots=True)
class DuckDb:
    """See ``OtherEngine``. Tiers that are read are tables in memory; of others, every column is looked at."""

    name: str = "DuckDB"

    def computed(self, folder: Path, plan: Plan) -> int:
        """See ``OtherEngine``."""
        rows = 0
        with duckdb.connect(config={"threads": THREADS, "autoinstall_known_extensions": False}) as connection:
            events = connection.read_parquet(str(folder / "*.parquet")).project("k, epoch_us(ts) AS begin, v")
            for step in plan.steps:
                name, cuts = step.tier.name, _Cuts.of(step)
                parent = _duckdb_slots(events, cuts) if step.reads is None else connection.table(f'"{step.reads}"')
                tier = parent if step.reads is None and cuts.are_slots else _duckdb_merged(parent, cuts)
                if plan.readers(name):
                    tier.to_table(f'"{name}"')
                    tier = connection.table(f'"{name}"')
                if step.tier.kind is Kind.DECLARED:
                    ((found, *_),) = tier.aggregate("count(*), sum(n), sum(total), min(low), max(high)").fetchall()
                    rows += int(found)
        return rows


def _duckdb_slots(events: duckdb.DuckDBPyRelation, cuts: _Cuts) -> duckdb.DuckDBPyRelation:
    placed = events.project(f"k, begin - begin % {cuts.slot} AS begin, v")
    return placed.aggregate("k, begin, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high", "k, begin")


def _duckdb_merged(rows: duckdb.DuckDBPyRelation, cuts: _Cuts) -> duckdb.DuckDBPyRelation:
    since = ", ".join(f"(begin - {residue}) % {modulus}" for modulus, residue in cuts.classes)
    placed = rows.project(f"k, begin - least({since}) AS begin, n, total, low, high")
    states = "sum(n)::BIGINT AS n, sum(total) AS total, min(low) AS low, max(high) AS high"
    return placed.aggregate(f"k, begin, {states}", "k, begin")


@dataclass(frozen=True, slots=True)
class Polars:
    """See ``OtherEngine``."""

    name: str = "Polars"

    def computed(self, folder: Path, plan: Plan) -> int:
        """See ``OtherEngine``."""
        events = pl.scan_parquet(folder / "*.parquet").select("k", pl.col("ts").dt.epoch("us").alias("begin"), "v")
        found: dict[str, pl.DataFrame] = {}
        for step in plan.steps:
            cuts = _Cuts.of(step)
            parent = _polars_slots(events, cuts) if step.reads is None else found[step.reads].lazy()
            tier = parent if step.reads is None and cuts.are_slots else _polars_merged(parent, cuts)
            found[step.tier.name] = tier.collect(engine="streaming")
        return sum(found[step.tier.name].height for step in plan.steps if step.tier.kind is Kind.DECLARED)


def _polars_slots(events: pl.LazyFrame, cuts: _Cuts) -> pl.LazyFrame:
    begin, v = pl.col("begin"), pl.col("v")
    return events.group_by("k", begin - begin % cuts.slot).agg(
        pl.len().cast(pl.Int64).alias("n"), v.sum().alias("total"), v.min().alias("low"), v.max().alias("high")
    )


def _polars_merged(rows: pl.LazyFrame, cuts: _Cuts) -> pl.LazyFrame:
    begin = pl.col("begin")
    since = pl.min_horizontal([(begin - residue) % modulus for modulus, residue in cuts.classes])
    return rows.group_by("k", begin - since).agg(
        pl.col("n").sum(), pl.col("total").sum(), pl.col("low").min(), pl.col("high").max()
    )


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Where a tier cuts time: at each instant of these classes, in microseconds."""

    classes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, step: Step) -> _Cuts:
        """The cuts of a tier that tiles time."""
        if step.how not in {How.RAW, How.DISJOINT} or not step.tier.tiles:
            raise ValueError(f"tier '{step.tier.name}' cannot be put together from slices that lie side by side.")
        return cls(tuple((modulus * MICROS, residue * MICROS) for modulus, residue in step.tier.needs.classes))

    @property
    def slot(self) -> int:
        """The longest slots of equal length that are cut wherever the tier is."""
        return gcd(*(number for each in self.classes for number in each))

    @property
    def are_slots(self) -> bool:
        """Whether the slots are the slices of the tier."""
        return self.classes == ((self.slot, 0),)
