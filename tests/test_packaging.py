"""What ships, what it is called, what it pulls in, and what must not be in the repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types
import zipfile
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path
from textwrap import dedent

import pytest

import stairwise
from stairwise import errors
from stairwise.arguments import ENGINE_COMMANDS
from stairwise.schema import KINDS

ENGINES = ("airflow", "delta", "numpy", "pandas", "pyspark")
SOURCE_ROOTS = ("optimizer", "plugins", "spark_jobs")
SHIPPED_BY_SETUP = ("setup.cfg", "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def setup_cfg(repository: Path) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read(repository / "setup.cfg", encoding="utf-8")
    return parser


@pytest.fixture(scope="module")
def pins(repository: Path) -> dict[str, str]:
    text = (repository / "requirements.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that the tree stays as it is and nothing stale ships."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SHIPPED_BY_SETUP:
        shutil.copy(repository / name, folder)
    for root in SOURCE_ROOTS:
        shutil.copytree(repository / root, folder / root, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("dist/*.whl")
    return built


def described(wheel: Path, file: str) -> str:
    """The text of a file of the wheel's ``.dist-info``."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(f".dist-info/{file}"))
    return archive.read(name).decode()


def packages_in(repository: Path) -> list[Path]:
    return sorted(marker.parent for root in SOURCE_ROOTS for marker in (repository / root).rglob("__init__.py"))


def run_python(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def test_setup_cfg_lists_the_packages_of_the_tree(repository: Path, setup_cfg: ConfigParser) -> None:
    found = {folder.name: folder.relative_to(repository).as_posix() for folder in packages_in(repository)}
    listed = setup_cfg["options"]["packages"].split()
    folders = dict(line.split(" = ") for line in setup_cfg["options"]["package_dir"].strip().splitlines())
    assert listed == sorted(found)
    assert folders == found


def test_the_wheel_holds_the_packages_and_nothing_else(repository: Path, wheel: Path) -> None:
    expected = {
        f"{folder.name}/{file.name}"
        for folder in packages_in(repository)
        for file in folder.iterdir()
        if file.suffix == ".py" or file.name == "py.typed"
    }
    expected |= {f"stairwise/schemas/{kind}.json" for kind in KINDS}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected
    assert {f"{folder.name}/py.typed" for folder in packages_in(repository)} <= names


ROOMS = {
    **dict.fromkeys(("maintain", "status", "verify", "why"), "proof_commands"),
    **dict.fromkeys(("apply", "diff"), "change_commands"),
    "demo": "demo_commands",
    "init": "init_commands",
}


def test_the_wheel_announces_the_command_the_plugin_and_the_provider(wheel: Path) -> None:
    entry_points = ConfigParser()
    entry_points.read_string(described(wheel, "entry_points.txt"))
    assert {name: dict(entry_points[name]) for name in entry_points.sections()} == {
        "console_scripts": {"stairwise": "stairwise.cli:main"},
        "stairwise.commands": {
            name: f"stairwise_spark.{ROOMS.get(name, 'commands')}:{name}" for name in ENGINE_COMMANDS
        },
        "stairwise.engine": {name: f"stairwise_spark.commands:{name}" for name in ("counted", "measure")},
        "airflow.plugins": {"stairwise": "stairwise_airflow.plugin:StairwisePlugin"},
        "apache_airflow_provider": {"provider_info": "stairwise_airflow.provider:get_provider_info"},
    }


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    metadata = message_from_string(described(wheel, "METADATA"))
    needs = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert metadata["Requires-Python"] == ">=3.11"
    assert sorted(metadata.get_all("Provides-Extra", [])) == ["airflow", "all", "spark"]
    assert [re.split(r"[<>=]", need)[0] for need in needs] == ["PyYAML", "tzdata"]


def test_the_wheel_works_as_a_zip_on_the_path(wheel: Path, tmp_path: Path) -> None:
    archive = shutil.copy(wheel, tmp_path / "stairwise.zip")  # the name under which Spark takes it
    code = "import stairwise, stairwise_airflow, stairwise_spark.versions as v; print(stairwise.__file__, v.__file__)"
    printed = run_python(code, PYTHONPATH=str(archive))
    read = run_python("from stairwise.schema import schema; print(schema('plan'))", PYTHONPATH=str(archive))
    assert read.startswith("{")
    assert printed == f"{archive}/stairwise/__init__.py {archive}/stairwise_spark/versions.py"


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("stairwise", (*ENGINES, "yaml")),
        ("stairwise.cli", ENGINES),
        ("stairwise_airflow", ENGINES),
        ("stairwise_airflow.provider", ENGINES),
        ("stairwise_spark", ENGINES),
        ("stairwise_spark.commands", ENGINES),
        ("stairwise_spark.demo_commands", ENGINES),
    ],
)
def test_importing_pulls_in_no_engine(module: str, absent: tuple[str, ...]) -> None:
    assert run_python(f"import sys, {module}; print(sorted(sys.modules.keys() & {set(absent)}))") == "[]"


def test_exported_names_are_sorted_and_are_the_public_ones() -> None:
    visible = {
        name
        for name, value in vars(stairwise).items()
        if not name.startswith("_")
        and name not in {"annotations", "TYPE_CHECKING"}
        and not isinstance(value, types.ModuleType)
    }
    assert list(stairwise.__all__) == sorted(stairwise.__all__)
    assert set(stairwise.__all__) - {"__version__"} == visible


def test_the_drawn_error_tree_is_the_tree_of_classes() -> None:
    _, drawing = (errors.__doc__ or "").split("::\n\n")
    assert dedent(drawing.partition("\n\n")[0]).splitlines() == draw(errors.StairwiseError)


def draw(error: type[errors.StairwiseError]) -> list[str]:
    """The class and what is derived from it in its module, in the order of the definitions."""
    children = [child for child in error.__subclasses__() if child.__module__ == errors.__name__]
    builtins = [base.__name__ for base in error.__bases__ if not issubclass(base, errors.StairwiseError)]
    named = error is not errors.StairwiseError and builtins
    lines = [f"{error.__name__} ({', '.join(builtins)})" if named else error.__name__]
    for child in children:
        branch, trunk = ("└── ", "    ") if child is children[-1] else ("├── ", "│   ")
        first, *rest = draw(child)
        lines += [branch + first, *(trunk + line for line in rest)]
    return lines


def test_the_optimizer_silences_no_type_checker(repository: Path) -> None:
    silenced = [
        file.name
        for file in sorted((repository / "optimizer" / "stairwise").glob("*.py"))
        if re.search(r"#\s*(type|pyright):", file.read_text(encoding="utf-8"))
    ]
    assert silenced == []


def test_the_lock_holds_the_versions_that_setup_cfg_names(setup_cfg: ConfigParser, pins: dict[str, str]) -> None:
    requirements = "\n".join(setup_cfg["options.extras_require"].values())
    named = dict(re.findall(r"^([a-z-]+)(?:\[\S+\])?==(\S+)$", requirements, flags=re.MULTILINE))
    assert {"apache-airflow", "delta-spark", "pyspark"} <= named.keys()
    assert {name: pins[name] for name in named} == named
    assert pins["pandas"].startswith("2.")


def test_the_lock_names_no_place_to_download_from(repository: Path) -> None:
    text = (repository / "requirements.lock").read_text(encoding="utf-8")
    assert re.findall(r"^.*(?:://|--(?!hash=)).*$", text, flags=re.MULTILINE) == []


def test_no_file_names_a_folder_of_its_author(repository: Path) -> None:
    folders = ("optimizer", "plugins", "spark_jobs", "dags", "tests", "bench", "docs", ".ci")
    top = [file for file in repository.iterdir() if file.is_file() and file.name not in {".coverage", ".git"}]
    files = top + [file for folder in folders for file in (repository / folder).rglob("*") if file.is_file()]
    home = re.compile(rb"(?<![\w.$}])/(?:home|root|Users|work|tmp)/\w")
    named = [
        str(file.relative_to(repository)) for file in files if file.suffix != ".pyc" and home.search(file.read_bytes())
    ]
    assert named == []
