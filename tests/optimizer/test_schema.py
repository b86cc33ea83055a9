"""The JSON Schemas: sound, complete, and true of what is printed without an engine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import stairwise
from stairwise import optimize
from stairwise.calibration import encode_calibration
from stairwise.cli import main
from stairwise.codec import encode_plan
from stairwise.constants import Calibration, Constants
from stairwise.json_fields import Json
from stairwise.measured import Measured, Slice
from stairwise.rollup import Estimates, Rollup
from stairwise.schema import KINDS, schema
from stairwise.windowing import Interval
from tests.documents import check, undescribed
from tests.optimizer.test_golden_plans import PLANS, PROMPT, parts

FOLDER = Path(stairwise.__file__).with_name("schemas")


def test_there_is_one_for_each_kind() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_sound_and_describes_every_field(kind: str) -> None:
    document = json.loads(schema(kind))
    Draft202012Validator.check_schema(document)
    assert document["title"] == document["properties"]["schema"]["const"] == f"stairwise.{kind}/1"
    assert undescribed(document) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_prints_it(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    assert capsys.readouterr().out == schema(kind)


def test_the_command_lists_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == list(KINDS)


def test_another_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "runs"]) == 2
    told = f"there is no kind of document 'runs'. Hint: there are {', '.join(KINDS)}."
    assert capsys.readouterr().err == f"stairwise: {told}\n"


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_golden_plan_fits(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, asked, _ = parts(path)
    file = tmp_path / "declaration.yaml"
    file.write_text(asked, encoding="utf-8")
    arguments = shlex.split(asked.removeprefix(PROMPT)) if asked.startswith(PROMPT) else ["plan", str(file)]
    assert main([*arguments, "--json", "--out", str(tmp_path / "plan.json")]) == 0
    check(json.loads(capsys.readouterr().out))
    check(json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")))


def test_a_measured_plan_fits() -> None:
    rollup = Rollup.from_yaml(
        "rollup: trips\nsource: {path: trips, time: at}\naggregates: {trips: count()}\nwindows: [1h]\ntarget: out\n"
    )
    known = Measured(
        rows=10,
        span=Interval(0, 86_400),
        estimates=Estimates(rows_per_day=5, distinct_keys=2),
        slices=(Slice(60, 1.5, 1.0),),
        sample=1,
        bytes=None,
        version=3,
    )
    check(encode_plan(replace(optimize(rollup), measured=known)))


def test_constants_fit() -> None:
    check(encode_calibration(Calibration(constants=Constants(), where="local[2]", at=0)))


@pytest.mark.parametrize("line", [["plan"], ["plan", "missing.yaml"], ["plan", "wrong.yaml"], ["schema", "runs"]])
def test_errors_fit(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text("rollup: 5m\nwindow: [1h]\n", encoding="utf-8")
    assert main([*line, "--json"]) == 2
    check(json.loads(capsys.readouterr().out))


def test_documents_that_differ_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--windows", "5m,1h", "--json"]) == 0
    document: Mapping[str, Json] = json.loads(capsys.readouterr().out)
    check(document)
    wrong = [
        {name: value for name, value in document.items() if name != "tiers"},
        {**document, "algorithm": "worst"},
        {**document, "new": 1},
        {**document, "horizon": ["2024-01-01T00:00:00Z"]},
    ]
    for each in wrong:
        with pytest.raises(AssertionError):
            check(each)
