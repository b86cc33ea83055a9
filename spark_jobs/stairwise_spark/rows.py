"""The rows of one tier, which may share a frame with those of others."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from stairwise_spark.names import column

NUMBER = "_tier"
"""The column that says, in a frame of several tiers, which of them a row is of: its number, from 1."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a tier: a frame, or those with its number in a frame of several tiers."""

    frame: DataFrame
    number: int | None = None

    def alone(self) -> DataFrame:
        """Without the rows of other tiers."""
        return self.frame if self.number is None else self.frame.where(column(NUMBER) == self.number).drop(NUMBER)
