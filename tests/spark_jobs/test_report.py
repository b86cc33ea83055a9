"""What a run reports, as JSON."""

from __future__ import annotations

from dataclasses import replace

from stairwise.windowing import Interval
from stairwise_spark.report import RunReport, SourceReport, TierReport

HOUR = 3_600
FIRST = TierReport(
    name="1h",
    reads=None,
    predicted_rows=12.4,
    ranges=(Interval(2 * HOUR, 3 * HOUR),),
    windows=1,
    rows=5,
    files=1,
    bytes=900,
    version=1,
    seconds=1.25,
    wrote=True,
)
NEXT = replace(FIRST, ranges=(Interval(3 * HOUR, 4 * HOUR),), version=2, rows=7)


def test_two_chunks_are_one_report() -> None:
    both = FIRST.merged(NEXT)
    assert both == replace(
        FIRST,
        predicted_rows=24.8,
        ranges=(Interval(2 * HOUR, 4 * HOUR),),
        windows=2,
        rows=12,
        files=2,
        bytes=1_800,
        version=2,
        seconds=2.5,
    )
    idle = replace(NEXT, windows=0, rows=0, files=0, bytes=0, version=None, seconds=0.0, wrote=False)
    assert FIRST.merged(idle).version == 1
    assert FIRST.merged(idle).wrote


def test_what_is_not_known_of_a_part_is_not_known_of_the_whole() -> None:
    both = FIRST.merged(replace(NEXT, windows=None, predicted_rows=None))
    assert (both.windows, both.predicted_rows) == (None, None)


def test_the_document() -> None:
    idle = TierReport(name="4h", reads="1h", predicted_rows=None, windows=None, ranges=(Interval(0, HOUR),))
    report = RunReport(
        rollup="trips",
        run_id="r1",
        span=Interval(0, 4 * HOUR),
        source=SourceReport(
            version=7,
            rows=14,
            files=2,
            bytes=None,
            changed=(Interval(0, HOUR), Interval(2 * HOUR, 4 * HOUR)),
            found=(("log", "it says so"),),
        ),
        late_rows=9,
        ignored_rows=None,
        future_rows=1,
        tiers=(FIRST.merged(NEXT), idle),
        null_times=3,
        seconds=2.34567,
        startup_seconds=1.5,
    )
    assert report.to_json() == {
        "schema": "stairwise.run/1",
        "rollup": "trips",
        "run_id": "r1",
        "range": ["1970-01-01T00:00:00Z", "1970-01-01T04:00:00Z"],
        "source": {
            "version": 7,
            "rows_read": 14,
            "files_read": 2,
            "bytes_read": None,
            "changed_ranges": [
                ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"],
                ["1970-01-01T02:00:00Z", "1970-01-01T04:00:00Z"],
            ],
            "found_by": [{"way": "log", "why": "it says so"}],
        },
        "tiers": [
            {
                "name": "1h",
                "reads": None,
                "windows_written": 2,
                "rows_written": 12,
                "files_written": 2,
                "bytes_written": 1_800,
                "version": 2,
                "seconds": 2.5,
                "predicted_rows": 25,
                "covered": [["1970-01-01T02:00:00Z", "1970-01-01T04:00:00Z"]],
            },
            {
                "name": "4h",
                "reads": "1h",
                "windows_written": None,
                "rows_written": 0,
                "files_written": 0,
                "bytes_written": 0,
                "version": None,
                "seconds": 0.0,
                "predicted_rows": None,
                "covered": [["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"]],
            },
        ],
        "late_rows": 9,
        "ignored_rows": None,
        "repaired_rows": 0,
        "unrepairable_rows": 0,
        "lost": {},
        "expired": {},
        "partitions_compacted": 0,
        "compaction_left": None,
        "null_times": 3,
        "future_rows": 1,
        "seconds": 2.346,
        "startup_seconds": 1.5,
        "wrote_anything": True,
        "dry_run": False,
    }
