"""How names from users get into Spark: quoted, so that any legal character is just a character."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

_WILDCARDS = re.compile(r"[\\*?\[\]{}]")


def quoted(name: str) -> str:
    """The name as an identifier of Spark SQL.

    >>> quoted("a.b"), quoted("it`s")
    ('`a.b`', '`it``s`')
    """
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of exactly that name, dots and all."""
    return F.col(quoted(name))


def without_wildcards(path: str) -> str:
    r"""The path where Spark takes one with wildcards.

    >>> print(without_wildcards("/lake/[a]*"))
    /lake/\[a\]\*
    """
    return _WILDCARDS.sub(lambda found: f"\\{found[0]}", path)


def numbered_files(first: int, *others: int, digits: int = 20) -> str:
    """The pattern of the commits in a log that have a number from one on, or one of some others.

    >>> numbered_files(87, 0, digits=3)
    '{000,087,08[8-9],0[9-9][0-9],[1-9][0-9][0-9]}.json'
    """
    text = f"{first:0{digits}d}"
    higher = (
        f"{text[:place]}[{int(text[place]) + 1}-9]{'[0-9]' * (digits - place - 1)}"
        for place in reversed(range(digits))
        if text[place] != "9"
    )
    return f"{{{','.join((*(f'{each:0{digits}d}' for each in others), text, *higher))}}}.json"
