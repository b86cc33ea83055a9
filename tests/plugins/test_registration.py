"""Airflow's own loader, in a process of its own, knows Stairwise exactly once, installed or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

LOAD_PLUGINS = """
import json, sys
from airflow import plugins_manager
sources = [str(plugin["source"]) for plugin in plugins_manager.get_plugin_info() if plugin["name"] == "stairwise"]
folder = sys.argv[1]
modules = [name for name, module in sys.modules.items() if (getattr(module, "__file__", None) or "").startswith(folder)]
print(json.dumps([sources, plugins_manager.get_import_errors(), sorted(modules)]))
"""
FROM_ENTRY_POINT = (
    f"stairwise=={version('stairwise')}: "
    "EntryPoint(name='stairwise', value='stairwise_airflow.plugin:StairwisePlugin', group='airflow.plugins')"
)
FROM_FOLDER = "$PLUGINS_FOLDER/stairwise_plugin.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Airflow:
    """Runs Python where Airflow is installed, with a new home and that folder of plugins."""

    home: Path
    plugins: Path
    options: tuple[str, ...] = ()
    path: str = ""

    def run(self, *arguments: str) -> str:
        environment = {
            **os.environ,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.plugins),
            "PYTHONPATH": self.path,
        }
        command = [sys.executable, *self.options, *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.home, check=False)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.splitlines()[-1]

    def assert_stairwise_comes_once(self, source: str) -> None:
        """From that source, nothing refused, and no file of the package run as a top-level module."""
        sources, problems, modules = json.loads(self.run("-c", LOAD_PLUGINS, str(self.plugins)))
        assert sources == [source]
        assert problems == {}
        assert {name.partition(".")[0] for name in modules} <= {"stairwise_airflow", "stairwise_plugin"}


@pytest.fixture
def site_without_stairwise(tmp_path: Path) -> Path:
    """A folder with every installed package but ours, for a Python that reads no other."""
    folder = tmp_path / "site"
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "stairwise" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    return folder


def test_installed_it_comes_from_the_entry_point(tmp_path: Path) -> None:
    airflow = Airflow(home=tmp_path, plugins=tmp_path / "none")
    airflow.assert_stairwise_comes_once(FROM_ENTRY_POINT)


def test_installed_it_leaves_the_plugins_folder_alone(tmp_path: Path, repository: Path) -> None:
    airflow = Airflow(home=tmp_path, plugins=repository / "plugins")
    airflow.assert_stairwise_comes_once(FROM_ENTRY_POINT)


def test_not_installed_it_comes_from_the_plugins_folder(
    tmp_path: Path, repository: Path, site_without_stairwise: Path
) -> None:
    path = os.pathsep.join([str(site_without_stairwise), str(repository / "optimizer")])
    airflow = Airflow(home=tmp_path, plugins=repository / "plugins", options=("-S",), path=path)
    airflow.assert_stairwise_comes_once(FROM_FOLDER)


def test_installed_it_is_listed_as_a_provider(tmp_path: Path) -> None:
    airflow = Airflow(home=tmp_path, plugins=tmp_path / "none")
    providers = json.loads(airflow.run("-m", "airflow", "providers", "list", "--output", "json"))
    assert [provider for provider in providers if provider["package_name"] == "stairwise"] == [
        {
            "package_name": "stairwise",
            "description": "Time-windowed rollups from the cheapest hierarchy of tiers, with Spark and Delta Lake",
            "version": version("stairwise"),
        }
    ]


def test_installed_its_command_line_is_one_of_airflows(tmp_path: Path, repository: Path) -> None:
    airflow = Airflow(home=tmp_path, plugins=tmp_path / "none")
    file = str(repository / "dags" / "rollups" / "trips.yaml")
    plan = json.loads(airflow.run("-m", "airflow", "stairwise", "plan", file, "--json"))
    assert plan["rollup"] == "trips"
