"""Partitions of assets as windows of a declaration: days of 23 and 25 hours, weeks from any day, fiscal years.

A partition's key is the start of its window in UTC, as Airflow writes it: ``2026-03-29T22:00:00``. Airflow's own
windows count 24 hours a day, and none of them slides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, Self  # noqa: TID251 - as Airflow's classes have it

from airflow.partition_mappers.base import PartitionMapper
from airflow.partition_mappers.window import Window as PartitionWindow
from airflow.sdk import RollupMapper

from stairwise.errors import WindowError
from stairwise.window import CumulateWindow, Window
from stairwise.window_text import parse_window
from stairwise.windowing import Interval, windows_at, windows_touching

KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
_SOME_INSTANTS = (1_711_843_200, 1_729_987_200)  # the last Sundays of March and October 2024


def rollup_partitions(window: str, of: str) -> RollupMapper:
    """What makes partitions of one window of those of another; for PartitionedAssetTimetable.

    >>> mapper = rollup_partitions("day in Europe/Paris", of="1h")
    >>> type(mapper.upstream_mapper).__name__, type(mapper.window).__name__
    ('RollupWindowMapper', 'RollupWindow')

    Args:
        window: The downstream window, such as ``28 days every day in Europe/Paris``.
        of: The upstream window, such as ``1h``.
    """
    # A DAG's mapper is typed for parts of the DAG's own kind, which only describe; the scheduler makes its kind of them
    # by their fields. Ours are of the scheduler's kind on both sides, which Airflow accepts, and its types do not say.
    return RollupMapper(
        upstream_mapper=RollupWindowMapper(window=window, of=of),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        window=RollupWindow(window=window, of=of),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    )


class RollupWindow(PartitionWindow):
    """Which partitions of the upstream window lie in one of the downstream window.

    Args:
        window: The downstream window.
        of: The upstream window.
    """

    expected_decoded_type: ClassVar[type] = datetime

    def __init__(self, *, window: str, of: str) -> None:
        super().__init__()
        self.window = window
        self.of = of
        self._pair = _pair(window, of)

    def to_upstream(self, decoded_downstream: datetime) -> Iterator[datetime]:
        """The starts of the upstream windows within the one that starts there."""
        window, of = self._pair
        whole = _starting(window, _seconds(decoded_downstream))
        return (_moment(part.start) for part in windows_touching(of, whole.start, whole.end) if _is_in(part, whole))

    def serialize(self) -> dict[str, Any]:
        """The fields, for the database."""
        return {"window": self.window, "of": self.of}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """What the fields describe."""
        return cls(window=data["window"], of=data["of"])


class RollupWindowMapper(PartitionMapper):
    """Which partitions of the downstream window one of the upstream window is in; several, if they overlap.

    Args:
        window: The downstream window.
        of: The upstream window.
        max_downstream_keys: As Airflow has it.
    """

    expected_decoded_type: ClassVar[type] = datetime

    def __init__(self, *, window: str, of: str, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.window = window
        self.of = of
        self._pair = _pair(window, of)

    def to_downstream(self, key: str) -> Iterable[str]:
        """The keys of the downstream windows that hold the upstream window of that key."""
        window, of = self._pair
        part = _starting(of, _seconds(_parsed(key)))
        found = windows_touching(window, part.start, part.end)
        return [_key(_moment(whole.start)) for whole in found if _is_in(part, whole)]

    def decode_downstream(self, downstream_key: str) -> datetime:
        """The start of the window of that key."""
        return _parsed(downstream_key)

    def encode_upstream(self, decoded: datetime) -> str:
        """The key of the window that starts there."""
        return _key(decoded)

    def to_partition_date(self, downstream_key: str) -> datetime:
        """The date of the partition: the start of its window."""
        return _parsed(downstream_key)

    def serialize(self) -> dict[str, Any]:
        """The fields, for the database."""
        return {**super().serialize(), "window": self.window, "of": self.of}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """What the fields describe."""
        return cls(window=data["window"], of=data["of"], max_downstream_keys=data.get("max_downstream_keys"))


def _pair(window: str, of: str) -> tuple[Window, Window]:
    """Both windows, if the ones fill the others."""
    whole, part = parse_window(window), parse_window(of)
    for text, each in ((window, whole), (of, part)):
        if isinstance(each, CumulateWindow):
            raise WindowError(
                f"window '{text}': several of its windows begin at the same instant, which is a partition's key.",
                hint="take its period, or its step.",
            )
    for instant in _SOME_INSTANTS:
        one = windows_at(whole, instant)[0]
        parts = [each for each in windows_touching(part, one.start, one.end) if _is_in(each, one)]
        if not parts or parts[0].start != one.start or max(each.end for each in parts) != one.end:
            raise WindowError(f"windows of '{of}' do not fill one of '{window}'.", hint="take a finer one.")
    return whole, part


def _starting(window: Window, instant: int) -> Interval:
    """The window that starts then."""
    for found in windows_at(window, instant):
        if found.start == instant:
            return found
    raise WindowError(
        f"no window of the partitions starts at {_key(_moment(instant))} UTC.",
        hint="the key is the window's start in UTC.",
    )


def _is_in(part: Interval, whole: Interval) -> bool:
    return whole.start <= part.start and part.end <= whole.end


def _parsed(key: str) -> datetime:
    return datetime.strptime(key, KEY_FORMAT).replace(tzinfo=UTC)


def _key(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(KEY_FORMAT)


def _moment(instant: int) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
