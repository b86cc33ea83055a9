"""Instants as users write them: ISO 8601 with a zone, or a date alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from stairwise.errors import DeclarationError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_IN_UTC = _EPOCH.replace(tzinfo=None)
_SECOND = timedelta(seconds=1)
_SHAPE = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[T ]\d\d:\d\d(?::\d\d)?)?(?P<zone>Z|[+-]\d\d:\d\d)?", re.ASCII)


def parse_instant(text: str) -> int:
    """Return the second since 1970-01-01T00:00Z that a text names; a date alone is its midnight in UTC.

    >>> parse_instant("1970-01-02"), parse_instant("1970-01-01T01:30+02:00")
    (86400, -1800)
    >>> parse_instant("2024-01-01T12:00")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stairwise.errors.DeclarationError: instant '2024-01-01T12:00': a time of day needs a zone. Hint: try ...
    """
    shape = _SHAPE.fullmatch(text.strip())
    if not shape or (shape["zone"] and not shape["time"]):
        raise DeclarationError(
            f"instant {text!r}: it is neither a date nor a date with a time in whole seconds and a zone.",
            hint="write 2024-01-31, 2024-01-31T06:00Z or 2024-01-31T06:00:00+02:00.",
            text=text,
        )
    if shape["time"] and not shape["zone"]:
        raise DeclarationError(
            f"instant {text!r}: a time of day needs a zone.", hint=f"try {text.strip()}Z.", text=text
        )
    try:
        moment = datetime.fromisoformat(shape[0] if shape["zone"] else f"{shape[0]}T00:00Z").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise DeclarationError(
            f"instant {text!r}: {str(error).removesuffix('.')}.", hint="write a day and a time that exist.", text=text
        ) from error
    return (moment - _EPOCH) // _SECOND


def format_instant(instant: int) -> str:
    """Return the ISO 8601 text of an instant of the years 1 to 9999, in UTC with ``Z``; years have four digits.

    >>> format_instant(-1800), format_instant(parse_instant("0987-06-05"))
    ('1969-12-31T23:30:00Z', '0987-06-05T00:00:00Z')
    """
    return (_EPOCH_IN_UTC + instant * _SECOND).isoformat() + "Z"
