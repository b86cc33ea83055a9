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
