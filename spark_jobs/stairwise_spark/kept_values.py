"""Values that a state keeps, as arrays sorted by value: each value once, or each with how often it was there.

A lambda would compute what it reads from outside again for each element. So neighbours are brought together by
shifting, and what a fold needs travels in its accumulator: all is linear in the array.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def entry(value: Column, count: Column) -> Column:
    """A value with how often it is there."""
    return F.struct(value.alias("value"), count.alias("count"))


def distinct(ordered: Column) -> Column:
    """Each value of a sorted array once."""
    firsts = F.zip_with(ordered, _shifted(ordered), lambda value, before: F.when(~value.eqNullSafe(before), value))
    return F.filter(firsts, lambda value: value.isNotNull())


def counted(ordered: Column) -> Column:
    """Each value of a sorted array as a struct, with how often it is there."""
    pairs = F.zip_with(
        ordered, _shifted(ordered), lambda value, before: F.struct(value.alias("value"), before.alias("before"))
    )
    # The last pair has no value of its own: it marks the end of the last run.
    marks = F.filter(F.transform(pairs, _start_of_run), lambda mark: mark.isNotNull())
    runs = F.zip_with(marks, F.slice(marks, 2, F.size(marks)), _run)
    return F.filter(runs, lambda run: run["count"].isNotNull())


def added(lists: Column) -> Column:
    """The sum of several lists of values with their counts."""
    first = F.map_from_entries(F.flatten(F.slice(lists, 1, 1)))
    total = F.aggregate(F.slice(lists, 2, F.size(lists)), first, _merged)
    entries = F.transform(F.map_entries(total), lambda pair: entry(pair["key"], pair["value"]))
    return F.sort_array(entries)


def most_frequent(entries: Column) -> Column:
    """The value with the highest count, the smallest of several; NULL if there is none."""
    by_count = F.transform(entries, lambda each: F.struct((-each["count"]).alias("rank"), each["value"].alias("value")))
    return F.array_min(by_count)["value"]


def at_rank(entries: Column, rank: float) -> Column:
    """The double at that rank from 0 to 1, between its neighbours as in Spark's percentile; NULL if there is none."""
    total = F.aggregate(entries, F.lit(0).cast("bigint"), lambda so_far, each: so_far + each["count"])
    position = (total - F.lit(1)) * F.lit(rank)
    nothing = F.lit(None).cast("double")
    start = F.struct(
        F.lit(0).cast("bigint").alias("seen"),
        position.alias("position"),
        nothing.alias("low"),
        nothing.alias("high"),
    )
    return F.aggregate(entries, start, _advanced, _interpolated)


def _shifted(ordered: Column) -> Column:
    return F.concat(F.array(F.lit(None)), ordered)


def _start_of_run(pair: Column, index: Column) -> Column:
    begins = ~pair["value"].eqNullSafe(pair["before"])
    return F.when(begins, F.struct(pair["value"].alias("value"), index.cast("bigint").alias("start")))


def _run(mark: Column, following: Column) -> Column:
    return entry(mark["value"], following["start"] - mark["start"])


def _merged(total: Column, entries: Column) -> Column:
    zero = F.lit(0).cast("bigint")
    return F.map_zip_with(
        total,
        F.map_from_entries(entries),
        lambda _, first, second: F.coalesce(first, zero) + F.coalesce(second, zero),
    )


def _advanced(so_far: Column, each: Column) -> Column:
    seen = so_far["seen"] + each["count"]
    value = each["value"].cast("double")
    low = F.when(so_far["low"].isNull() & (seen > F.floor(so_far["position"])), value).otherwise(so_far["low"])
    high = F.when(so_far["high"].isNull() & (seen > F.ceil(so_far["position"])), value).otherwise(so_far["high"])
    return F.struct(seen.alias("seen"), so_far["position"].alias("position"), low.alias("low"), high.alias("high"))


def _interpolated(end: Column) -> Column:
    low, high, share = end["low"], end["high"], end["position"] - F.floor(end["position"])
    return F.when(low == high, low).otherwise(low * (F.lit(1.0) - share) + high * share)
