"""How names from users get into Spark: quoted, so that any legal character is just a character."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

_WILDCARDS = re.compile(r"[\\*?\[\]{}]")
# Of the number of a commit.
_DIGITS = 20


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


def numbered_files(first: int, *others: int) -> str:
    """The pattern of the commits in a log that have a number from one on, or one of some others; and of no other file.

    >>> numbered_files(99_999_999_999_999_999_987, 0)
    '{00000000000000000000,99999999999999999987,9999999999999999998[8-9],999999999999999999[9-9][0-9]}.json'
    """
    text = f"{first:0{_DIGITS}d}"
    higher = (
        f"{text[:place]}[{int(text[place]) + 1}-9]{'[0-9]' * (_DIGITS - place - 1)}"
        for place in reversed(range(_DIGITS))
        if text[place] != "9"
    )
    return f"{{{','.join((*(f'{each:0{_DIGITS}d}' for each in others), text, *higher))}}}.json"
