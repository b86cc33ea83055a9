"""Shares of a whole in percent: how much of it may go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from stairwise.errors import RollupError

_PERCENT = re.compile(r"(?P<percent>\d{1,3}(?:\.\d{1,4})?) ?%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a whole.

    >>> Share.parse("2.5 %") == Share(Fraction(1, 40)), str(Share.parse("2.50%"))
    (True, '2.5%')

    Attributes:
        part: From 0 to 1, in whole millionths.
    """

    part: Fraction

    def __post_init__(self) -> None:
        """Refuse what no text means."""
        if not 0 <= self.part <= 1 or (self.part * 1_000_000).denominator != 1:
            raise RollupError(
                f"share {self.part}: it is not between 0 and 1 in whole millionths.", hint="Share.parse reads one."
            )

    @classmethod
    def parse(cls, text: str) -> Share:
        """The share that a text means, in percent.

        Raises:
            RollupError: The text is no share.
        """
        found = _PERCENT.fullmatch(text.strip())
        if found is None or Fraction(found["percent"]) > 100:
            raise RollupError(
                f"share {text!r}: it is not a percentage from 0% to 100%.", hint="write such as 10% or 2.5%.", text=text
            )
        return cls(Fraction(found["percent"]) / 100)

    def __str__(self) -> str:
        """One text that parses to this share."""
        whole, rest = divmod(int(self.part * 1_000_000), 10_000)
        return f"{whole}.{rest:04}".rstrip("0").rstrip(".") + "%"


def parse_most(text: str) -> Share | None:
    """The share that limits something, or None for ``any``, which is no limit.

    >>> parse_most("any"), parse_most("50%")
    (None, Share(part=Fraction(1, 2)))
    """
    return None if text.strip() == "any" else Share.parse(text)
