"""When an event happened: the source's own column, and the one count of microseconds that everything else knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from stairwise.declared import TimeUnit
from stairwise.windowing import Interval
from stairwise.zones import DAY_SECONDS
from stairwise_spark.errors import SourceError
from stairwise_spark.names import column, quoted

MICROS = 1_000_000
_LARGEST = 2**63 - 1
_MOST_DAYS = 10**8
_Integer = ByteType | ShortType | IntegerType | LongType
_PER_SECOND = {
    TimeUnit.SECONDS: 1,
    TimeUnit.MILLISECONDS: 1_000,
    TimeUnit.MICROSECONDS: MICROS,
    TimeUnit.NANOSECONDS: 1_000_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """The column that says when an event happened.

    Attributes:
        name: What the source calls it.
        type: Its type there.
        zone: Where a TIMESTAMP_NTZ or a DATE is local.
        unit: What an integer counts; None for every other type.
    """

    name: str
    type: DataType
    zone: str = "UTC"
    unit: TimeUnit | None = None

    def __post_init__(self) -> None:
        """Refuse a type that is no time, and a unit or a zone that does not go with it."""
        subject, said = f"time {self.name!r}", self.type.simpleString().upper()
        if not isinstance(self.type, TimestampType | TimestampNTZType | DateType | _Integer):
            raise SourceError(
                f"{subject}: its type is {said}, where TIMESTAMP, TIMESTAMP_NTZ, DATE or an integer is wanted.",
                hint="sql: SELECT ... to_timestamp(...) AS name makes one of it.",
            )
        if isinstance(self.type, _Integer) and self.unit is None:
            raise SourceError(
                f"{subject}: its type is {said}, and nothing says what it counts.",
                hint="add unit: s, ms, us or ns to the source.",
            )
        if not isinstance(self.type, _Integer) and self.unit is not None:
            raise SourceError(
                f"{subject}: its type is {said}, and unit {self.unit.value} goes with integers.", hint="remove unit."
            )
        if isinstance(self.type, TimestampType) and self.zone != "UTC":
            raise SourceError(
                f"{subject}: zone {self.zone} goes with times that are local, and a TIMESTAMP is an instant.",
                hint="remove zone.",
            )

    @property
    def micros(self) -> Column:
        """Microseconds since 1970-01-01T00:00Z; NULL where there is no time."""
        raw = column(self.name)
        if self.unit is None:
            instant = raw.cast("timestamp")  # in a session in UTC: as if it were local there
            return F.unix_micros(F.to_utc_timestamp(instant, self.zone) if self._is_shifted else instant)
        count, per_second = raw.cast("bigint"), _PER_SECOND[self.unit]
        if per_second <= MICROS:
            return count * F.lit(MICROS // per_second)
        each = F.lit(per_second // MICROS)
        # Rounded down before 1970 too, where a division of integers rounds up.
        return F.call_function("div", count - F.pmod(count, each), each)

    def may_be_in(self, spans: Iterable[Interval]) -> Column:
        """A filter on the source's own column, by which files are skipped: true for each event of some spans at least.

        It is exact unless :attr:`is_local`.
        """
        # As one text: put together column by column, many spans took Python seconds.
        return F.expr(" OR ".join(map(self._said, spans)) or "false")

    def _said(self, span: Interval) -> str:
        raw = quoted(self.name)
        # No offset from UTC is a day, and a time that never happens moves by an offset too.
        slack = DAY_SECONDS if self._is_shifted else 0
        bounds = span.start - slack, span.end + slack
        match self.type:
            case TimestampType() | TimestampNTZType():
                kind = self.type.simpleString()
                first, last = (f"CAST(timestamp_micros({_long(each * MICROS)}) AS {kind})" for each in bounds)
                return f"({raw} >= {first} AND {raw} < {last})"
            case DateType():
                first, last = (f"date_from_unix_date({_days(each // DAY_SECONDS)})" for each in bounds)
                return f"({raw} >= {first} AND {raw} <= {last})"
            case _:
                first, last = (_long(each * _PER_SECOND[self.unit or TimeUnit.SECONDS]) for each in bounds)
                return f"({raw} >= {first} AND {raw} < {last})"

    @property
    def is_local(self) -> bool:
        """Whether the source's own column alone does not say which instant it is."""
        return not isinstance(self.type, TimestampType | _Integer)

    @property
    def _is_shifted(self) -> bool:
        return self.is_local and self.zone != "UTC"


def _long(number: int) -> str:
    """The nearest BIGINT."""
    return f"{max(-_LARGEST, min(_LARGEST, number))}L"


def _days(number: int) -> int:
    return max(-_MOST_DAYS, min(_MOST_DAYS, number))
