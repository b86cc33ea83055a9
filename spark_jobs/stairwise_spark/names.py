"""How names from users get into Spark: quoted, so that any legal character is just a character."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> str:
    """The name as an identifier of Spark SQL.

    >>> quoted("a.b"), quoted("it`s")
    ('`a.b`', '`it``s`')
    """
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of exactly that name, dots and all."""
    return F.col(quoted(name))
