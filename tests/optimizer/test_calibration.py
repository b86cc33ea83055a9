"""Measured constants: what they may be, the file that holds them, and the plans that are told to use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path

import pytest

from stairwise.calibration import chosen, encode_calibration, place, read_calibration, write_calibration
from stairwise.cli import main
from stairwise.constants import Calibration, Constants
from stairwise.errors import CodecError, PlanError, UsageError
from stairwise.options import Options
from tests.optimizer.test_workload import batch, declared

SLOW = Calibration(constants=Constants(scan_row=1e-6, commit=2.0), where="a slow machine", at=86_400)
KNOWN = Constants().by_name()
HINT = "Hint: use a file that stairwise calibrate has written."


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAIRWISE_CONSTANTS", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "new" / "constants.json"
    write_calibration(SLOW, path)
    return path


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Constants(scan_row=-1.0), "constant scan_row: -1.0: a number from 0 up is needed."),
        (lambda: Constants(commit=inf), "constant commit: inf: a number from 0 up is needed."),
        (lambda: Constants(move_row=nan), "constant move_row: nan: a number from 0 up is needed."),
        (lambda: Constants(partition_rows=0), "constant partition_rows: 0: a number from 1 up is needed."),
    ],
)
def test_what_is_no_time_is_no_constant(make: Callable[[], Constants], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert str(caught.value) == text


# ---- the file


def test_constants_come_back_from_their_file(file: Path) -> None:
    assert read_calibration(file) == SLOW
    document = encode_calibration(SLOW)
    assert json.loads(file.read_text(encoding="utf-8")) == document
    assert (document["schema"], document["at"]) == ("stairwise.constants/1", "1970-01-02T00:00:00Z")


def test_the_file_is_among_the_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    assert place() == Path("/settings/stairwise/constants.json")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", "/ann")
    assert place() == Path("/ann/.config/stairwise/constants.json")
    monkeypatch.setenv("STAIRWISE_CONSTANTS", "default")
    assert place() == Path("/ann/.config/stairwise/constants.json")
    monkeypatch.setenv("STAIRWISE_CONSTANTS", "mine.json")
    assert place() == Path("mine.json")


def test_only_a_file_that_was_named_counts(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file.parent))
    (file.parent / "stairwise").mkdir()
    file.rename(file.parent / "stairwise" / "constants.json")
    assert chosen(None) is None
    assert chosen(str(place())) == SLOW
    monkeypatch.setenv("STAIRWISE_CONSTANTS", str(place()))
    assert chosen(None) == SLOW
    assert chosen("default") is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": "stairwise.plan/1"}, "'schema' is not \"stairwise.constants/1\"."),
        ({"where": 7}, "'where' is not a text."),
        ({"at": "soon"}, "instant 'soon': it is neither a date nor a date with a time in whole seconds and a zone."),
        ({"constants": None}, "'constants' is not an object."),
        ({"constants": {}}, "'constants.scan_row' is missing."),
        ({"constants": KNOWN | {"commit": -1}}, "constant commit: -1.0: a number from 0 up is needed."),
        ({"constants": KNOWN | {"commit": 10**400}}, "'constants.commit' is not a number of at most 2e+308."),
        ({"constants": KNOWN | {"partition_rows": 0.5}}, "'constants.partition_rows' is not a whole number."),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(file: Path, change: dict[str, object], text: str) -> None:
    file.write_text(json.dumps(encode_calibration(SLOW) | change), encoding="utf-8")
    with pytest.raises(CodecError) as caught:
        read_calibration(file)
    assert str(caught.value) == f"constants '{file}': {text} {HINT}"


def test_a_file_that_is_no_document_or_not_there_is_refused(file: Path) -> None:
    file.write_text("[1]", encoding="utf-8")
    with pytest.raises(CodecError) as listed:
        read_calibration(file)
    assert str(listed.value) == f"constants '{file}': not a JSON object. {HINT}"
    file.write_bytes(b"\xff")
    with pytest.raises(CodecError) as other:
        read_calibration(file)
    assert other.value.message.startswith(f"constants '{file}': not a JSON document (")
    file.unlink()
    with pytest.raises(UsageError) as missing:
        read_calibration(file)
    assert str(missing.value) == (
        f"constants '{file}': the file cannot be read (No such file or directory). "
        "Hint: stairwise calibrate writes one; --constants or $STAIRWISE_CONSTANTS names it, "
        "or default, for those of this version."
    )


def test_a_file_that_cannot_be_written_is_refused(file: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_calibration(SLOW, file / "below")
    assert str(caught.value) == f"cannot write '{file / 'below'}': File exists. Hint: choose another place with --out."


# ---- into plans


def test_the_model_takes_the_constants_it_is_given() -> None:
    model = batch(declared(), Options(calibration=SLOW))
    assert (model.constants, model.commit_s) == (SLOW.constants, 2.0)
    note = "constants of the cost model measured on a slow machine, at 1970-01-02T00:00:00Z"
    assert declared().assumptions(Options(calibration=SLOW))[0] == note


def test_the_command_line_names_them(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    costs: list[float] = []
    for options in ([], ["--constants", str(file)], ["--constants", "default"]):
        assert main(["plan", "--windows", "5m,1h", "--json", *options]) == 0
        costs.append(json.loads(capsys.readouterr().out)["cost"]["total"])
    assert costs[0] == costs[2] < costs[1]


def test_the_model_of_the_papers_has_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    paper = ["plan", "--windows", "5m,1h", "--cost-model", "paper"]
    assert main([*paper, "--constants", str(file)]) == 2
    assert capsys.readouterr().err == (
        "stairwise: --constants: the paper's cost model counts reads, not seconds. Hint: leave one of the two out.\n"
    )
    monkeypatch.setenv("STAIRWISE_CONSTANTS", str(file))
    assert main(paper) == 0
