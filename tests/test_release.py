"""What is published: the archives are built without a warning, and the wheel works in an environment of its own.

It takes a minute and the network, so it is asked for: ``make wheel``. What needs neither is in test_packaging.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.release

TOP = ("setup.cfg", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "MANIFEST.in")
# Not where else to look for packages, and nothing that makes the build say more.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
ROOTS = ("optimizer", "plugins", "spark_jobs")


@pytest.fixture(scope="module")
def archives(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("release")
    for name in TOP:
        shutil.copy(repository / name, folder)
    for root in ROOTS:
        shutil.copytree(repository / root, folder / root, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "warning" in line.lower()]
    assert said == []
    return folder / "dist"


def test_the_source_archive_holds_what_the_wheel_is_built_from(archives: Path) -> None:
    (archive,) = archives.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {*TOP, "optimizer/stairwise/schemas/plan.json", "spark_jobs/stairwise_spark/run_plan.py"} <= names


def test_the_wheel_carries_its_licence(archives: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (metadata,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        told = opened.read(metadata).decode().splitlines()
        licence = opened.read(metadata.replace("METADATA", "licenses/LICENSE")).decode()
    assert "License-Expression: Apache-2.0" in told
    assert "License-File: LICENSE" in told
    # One of the two is the rule: a classifier of a licence beside the expression is refused by the index.
    assert not [line for line in told if line.startswith("Classifier: License ::")]
    assert licence.split("\n", 2)[1].strip() == "Apache License"


def test_the_wheel_works_in_an_environment_of_its_own(archives: Path, tmp_path: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    place = tmp_path / "new"
    venv.create(place, with_pip=True)

    def run(*words: str) -> str:
        command = [str(place / "bin" / words[0]), *words[1:]]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT)
        return done.stdout

    run("python", "-m", "pip", "install", "--quiet", str(wheel))
    assert run("stairwise", "--version").startswith("stairwise 0.")
    assert "_stairwise()" in run("stairwise", "completion", "bash")
    assert json.loads(run("stairwise", "schema", "run"))["title"] == "stairwise.run/1"
    plan = json.loads(run("stairwise", "plan", "--windows", "5m, 15m, 1h", "--json"))
    assert [tier["name"] for tier in plan["tiers"]] == ["5m", "15m", "1h"]
    command = [str(place / "bin" / "stairwise"), "init", "trips"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.endswith("Hint: pip install 'stairwise[spark]'.\n")
    installed = run("python", "-m", "pip", "list", "--format=json")
    names = {each["name"].lower() for each in json.loads(installed)}
    assert names <= {"pip", "pyyaml", "setuptools", "stairwise", "tzdata"}
