"""Many parts put together as a tree that is as flat as can be.

One after the other, they would make a plan as deep as they are many: Spark Connect refuses more than a hundred levels,
and whatever walks through a plan takes longer the deeper it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Part = TypeVar("Part")


def any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of some conditions is true; without any it is not."""
    return in_halves(lambda one, other: one | other, [*conditions] or [F.lit(False)])  # noqa: FBT003 - a literal


def all_of(conditions: Iterable[Column]) -> Column:
    """Whether all of some conditions are true; without any they are."""
    return in_halves(lambda one, other: one & other, [*conditions] or [F.lit(True)])  # noqa: FBT003 - a literal


def rows_of_all(frames: Iterable[DataFrame]) -> DataFrame:
    """The rows of some frames with the same columns, which may be in another order."""
    return in_halves(DataFrame.unionByName, frames)


def in_halves(join: Callable[[Part, Part], Part], parts: Iterable[Part]) -> Part:
    """The parts as one, joined two by two.

    >>> in_halves("({} {})".format, "abcde")
    '(((a b) (c d)) e)'

    Raises:
        ValueError: There is none.
    """
    level = list(parts)
    if not level:
        raise ValueError("there is nothing to join.")
    while len(level) > 1:
        pairs = [join(one, other) for one, other in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]
