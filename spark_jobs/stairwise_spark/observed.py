"""Numbers that Spark counts while it does something else."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Thread

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from stairwise_spark.errors import unless_refused

_LONGEST_WAIT = 5.0  # seconds for a number that is there as soon as the action has ended
_GROUPS = 10_000


def number(observation: Observation, name: str, place: int | None = None) -> int | None:
    """What an action has counted; None if Spark found out that it need not read anything, for then it never counts.

    Args:
        observation: Belongs to a frame that has been read.
        name: Of the number, or of several.
        place: Which of several.
    """
    found: list[int] = []

    def ask() -> None:
        value = unless_refused(lambda: observation.get[name])
        if value is not None:
            found.append(value if place is None else value[place])

    waiting = Thread(target=ask, daemon=True)
    waiting.start()
    waiting.join(_LONGEST_WAIT)
    return found[0] if found else None


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """How many different instants there are in each group of rows, once somebody has read them."""

    observation: Observation

    @classmethod
    def of(cls, frame: DataFrame, instant: Column, group: Column, groups: int) -> tuple[DataFrame, Counted]:
        """The frame, and what will be known of it.

        Args:
            frame: To be read once.
            instant: A TIMESTAMP of whole seconds; a task remembers each of them.
            group: Of a row, from 0.
            groups: How many there are.
        """
        # One set for all groups, for each one more takes time for every row.
        seen = F.collect_set(F.unix_seconds(instant) * F.lit(_GROUPS) + group)
        counts = F.transform(
            F.array_repeat(seen, groups),
            lambda each, place: F.size(F.filter(each, lambda one: F.pmod(one, F.lit(_GROUPS)) == place)),
        )
        counted = cls(Observation())
        return frame.observe(counted.observation, counts.alias("counts")), counted

    def number(self, group: int) -> int | None:
        """How many there are in a group; None: nobody has read the rows."""
        return number(self.observation, "counts", group)
