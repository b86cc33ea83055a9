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
from airflow.configuration import conf
from airflow.providers_manager import ProvidersManager

from stairwise.errors import UsageError
from stairwise_airflow.provider import OPTIONS
from stairwise_airflow.settings import Settings

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


def test_airflow_knows_the_section_of_the_configuration_with_its_defaults() -> None:
    ProvidersManager().initialize_providers_configuration()  # type: ignore[no-untyped-call]  # as Airflow has it
    assert {name: conf.get("stairwise", name) for name in OPTIONS} == {
        name: option["default"] for name, option in OPTIONS.items()
    }
    assert list(conf.configuration_description["stairwise"]["options"]) == list(OPTIONS)


def test_an_option_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__STAIRWISE__MOST_PARTITION_EVENTS", "many")
    with pytest.raises(UsageError) as caught:
        Settings.read()
    assert str(caught.value) == (
        "[stairwise] most_partition_events = many: it is not a whole number. Hint: write 1000."
    )


@pytest.fixture
def older(tmp_path: Path) -> Airflow:
    """An Airflow that says it is another one, as its distribution would."""
    folder = tmp_path / "older" / "apache_airflow_core-3.2.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-airflow-core\nVersion: 3.2.1\n", "utf-8")
    return Airflow(home=tmp_path, plugins=tmp_path / "none", path=str(folder.parent))


OTHER = (
    "Stairwise needs Airflow 3.3, and there is Airflow 3.2.1. "
    "Hint: pip install 'stairwise[airflow]' brings the one that was tested."
)


def test_another_airflow_shows_which_one_is_needed_as_the_error_of_the_plugin(older: Airflow) -> None:
    sources, problems, _ = json.loads(older.run("-c", LOAD_PLUGINS, str(older.plugins)))
    assert sources == []
    assert list(problems.values()) == [OTHER]


def test_in_another_airflow_a_dag_is_told_which_one_is_needed(older: Airflow) -> None:
    code = (
        "from stairwise.errors import UsageError\n"
        "try:\n"
        "    from stairwise_airflow import RollupOperator\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    assert older.run("-c", code) == OTHER
