"""What commands of the engine refuse before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise.cli import main

RANGE = ("--start", "2024-01-01", "--end", "2024-01-02")
TIME = "a time of day needs a zone. Hint: try 2024-01-02T12:00Z."


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "run needs a FILE. Hint: try stairwise run trips.yaml."),
        (
            ["why"],
            "why needs a FILE, a TIER and an INSTANT. Hint: try stairwise why trips.yaml 1h 2024-03-31T06:00Z.",
        ),
        (["why", "FILE", "1h"], "why needs an INSTANT. Hint: try stairwise why trips.yaml 1h 2024-03-31T06:00Z."),
        (["status", ""], "FILE is empty. Hint: a variable of the shell may not be set."),
        (
            ["run", "FILE", "--start", "2024-01-01"],
            "run takes --start only together with --end. Hint: add --end, or leave both out.",
        ),
        (
            ["run", "FILE", *RANGE, "--since", "2024-01-01"],
            "run takes --start or --since, not both. Hint: leave out one of them.",
        ),
        (
            ["backfill", "FILE", "--start", "2024-01-01"],
            "backfill takes --start and --end together, or neither. Hint: add the other one.",
        ),
        (
            ["run", "FILE", "--start", "2024-01-02", "--end", "2024-01-01"],
            (
                "the range from 2024-01-02T00:00:00Z to 2024-01-01T00:00:00Z is empty. "
                "Hint: let --end be later than --start."
            ),
        ),
        (["run", "FILE", "--start", "2024-01-02T12:00"], f"--start: instant '2024-01-02T12:00': {TIME}"),
        (["run", "FILE", "--start"], "--start needs a value: --start T. Hint: see stairwise run --help."),
        (["run", "FILE", "--strt", "2024-01-02"], "there is no option '--strt'. Hint: did you mean --start?"),
        (["run", "FILE", "--zzz"], "there is no option '--zzz'. Hint: see stairwise run --help."),
        (["run", "FILE", "FILE"], "'FILE' is one argument too many. Hint: quote what belongs together."),
        (["backfill", "FILE", "--chunk", "0s"], "--chunk: '0s' is no time at all. Hint: try 30d."),
        (
            ["backfill", "FILE", "--chunk", "1.5h"],
            "--chunk: duration '1.5h': counts are whole numbers. Hint: try 90m.",
        ),
        (
            ["backfill", "FILE", "--spark-conf", "spark.x"],
            "--spark-conf: 'spark.x' is not KEY=VALUE. Hint: write such as spark.driver.memory=4g.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"stairwise: {text}\n"


PLAN = "Hint: use a file that stairwise plan --out has written."


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", f"not a JSON document (Expecting value: line 1 column 1 (char 0)). {PLAN}"),
        (b"{}", f"'schema' is missing. {PLAN}"),
        (b"\xff", f"the file is not UTF-8. {PLAN}"),
        (None, "the file cannot be read (No such file or directory). Hint: check the path."),
    ],
)
def test_a_plan_that_is_none_is_refused_with_its_name(
    content: bytes | None, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_bytes(content)
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err == f"stairwise: plan '{file}': {text}\n"


def test_a_plan_of_no_declaration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    assert main(["plan", "--windows", "5m, 1h", "--out", str(file)]) == 0
    capsys.readouterr()
    assert main(["backfill", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"stairwise: plan '{file}': it was made of --windows, which say neither where rows are nor where they go. "
        "Hint: make it of a declaration: stairwise plan FILE --out PLAN.\n"
    )
