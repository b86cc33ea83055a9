"""The documentation is run: its Python, its command lines, its links, and what it says of the repository."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import io
import json
import pkgutil
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest

from stairwise.arguments import ENGINE_COMMANDS, OWN_COMMANDS
from stairwise.cli import main, parsers
from stairwise.json_fields import Json
from stairwise.rollup import Rollup, Source
from stairwise.schema import KINDS, schema
from stairwise_spark import versions

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
ARCHITECTURE = "docs/architecture.md"
PACKAGES = {
    "The rooms of the optimizer": ROOT / "optimizer" / "stairwise",
    "The rooms of the Spark side": ROOT / "spark_jobs" / "stairwise_spark",
    "The rooms of the Airflow side": ROOT / "plugins" / "stairwise_airflow",
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
OURS = re.compile(r"^\$ stairwise (?:plan (?!.*--measure)|(?:.* )?--help(?:-all)?$)", re.MULTILINE)
TABLE = re.compile(r"(<!-- schema (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NO_TIME = '"seconds": 0.0'
THE_REST = "..."


class Block(NamedTuple):
    """Something between two fences: its language, its text, and the line on which that begins."""

    language: str
    text: str
    line: int


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)))


def prose(page: str) -> str:
    return FENCE.sub("", text_of(page))


def spans(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(page))


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which what a page shows is run; the examples are there, and a place for pictures."""
    (tmp_path / "dags").symlink_to(ROOT / "dags")
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_python_does_what_the_page_shows(page: str) -> None:
    lines = [""] * (text_of(page).count("\n") + 1)
    for block in blocks(text_of(page)):
        if ">>> " in block.text:
            shown = block.text.splitlines()
            lines[block.line : block.line + len(shown)] = shown
    example = doctest.DocTestParser().get_doctest("\n".join(lines), {}, page, str(ROOT / page), 0)
    report = io.StringIO()
    result = doctest.DocTestRunner().run(example, out=report.write)
    assert not result.failed, report.getvalue()


@pytest.mark.parametrize("page", [page for page in PAGES if OURS.search(text_of(page))])
def test_command_lines_print_what_the_page_shows(
    page: str, workplace: Path, monkeypatch: pytest.MonkeyPatch, *, write_goldens: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = text_of(page)
    put_files(shown, workplace)
    printed = FENCE.sub(lambda found: f"```{found[1]}\n{rerun(found[1], found[2])}```", shown)
    if write_goldens:
        (ROOT / page).write_text(printed, encoding="utf-8")
    assert text_of(page) == printed


@pytest.mark.parametrize("page", [page for page in PAGES if "--svg docs/pictures/" in text_of(page)])
def test_pictures_are_what_their_command_draws(page: str, workplace: Path, *, write_goldens: bool) -> None:
    put_files(text_of(page), workplace)
    for block in blocks(text_of(page)):
        rerun(block.language, block.text)
    for drawn in sorted(workplace.glob("docs/pictures/*.svg")):
        committed = ROOT / drawn.relative_to(workplace)
        if write_goldens:
            committed.write_bytes(drawn.read_bytes())
        assert committed.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")


def put_files(text: str, place: Path) -> None:
    """Write each block that begins with a file's name in a comment to that file."""
    for block in blocks(text):
        if name := re.match(r"# ([\w-]+\.yaml)\n", block.text):
            (place / name[1]).write_text(block.text, encoding="utf-8")


def rerun(language: str, shown: str) -> str:
    """A block of commands with what those of ours print now; a last line of three dots stands for the rest."""
    if language != "console":
        return shown
    entries = re.findall(r"^(\$ .*\n)((?:(?!\$ ).*\n)*)", shown, re.MULTILINE)
    return "".join(command + (answer(command, below) if is_ours(command) else below) for command, below in entries)


def is_ours(command: str) -> bool:
    """Whether it is a command of ours that needs no engine."""
    return OURS.match(command) is not None


def answer(command: str, shown: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
        main(shlex.split(command)[2:])
    lines = re.sub(r'"seconds": [\d.e-]+', NO_TIME, output.getvalue()).splitlines()
    kept = shown.splitlines()
    if kept and kept[-1] == THE_REST:
        lines[len(kept) - 1 :] = [THE_REST]
    elif not kept and "--svg" in command:
        lines = []  # the picture is what matters
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("command", sorted(ENGINE_COMMANDS))
def test_commands_of_the_engine_have_the_options_that_pages_show(command: str) -> None:
    known = {option for action in parsers()[command].actions() for option in action.option_strings}
    calls = [line for page in PAGES for line in re.findall(rf"\bstairwise {command} ([^`;\n]*)", text_of(page))]
    shown = {option for call in calls for option in re.findall(r"(?<!\S)--[a-z-]+", call)}
    assert shown
    assert shown <= known


def links(page: str) -> list[str]:
    return [one or other for one, other in LINK.findall(prose(page))]


def headings(page: str) -> list[str]:
    """The anchors of a page, as those who show Markdown make them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.resolve().is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in headings(target.resolve().relative_to(ROOT).as_posix()), link


def test_every_page_and_picture_can_be_found_from_the_readme() -> None:
    found = {"README.md"}
    waiting = ["README.md"]
    for page in waiting:
        local = [link.partition("#")[0] for link in links(page) if not link.startswith(("https://", "#"))]
        fresh = {((ROOT / page).parent / link).resolve().relative_to(ROOT).as_posix() for link in local} - found
        found |= fresh
        waiting += sorted(fresh.intersection(PAGES))
    pictures = {picture.relative_to(ROOT).as_posix() for picture in ROOT.glob("docs/pictures/*")}
    assert {*PAGES, *pictures} <= found


@pytest.mark.parametrize("page", PAGES)
def test_pages_speak_of_what_is_there(page: str) -> None:
    folders = {place.name for place in ROOT.iterdir() if place.is_dir() and not place.name.startswith(".")} - {"target"}
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for span in spans(page):
        if span.partition("/")[0] in folders and re.fullmatch(r"[\w./-]+", span):
            assert (ROOT / span).exists(), span
        if (name := re.fullmatch(r"stairwise(\.\w+)+", span)) and span not in entry_points().groups:
            assert pkgutil.resolve_name(name[0]), span
        if name := re.fullmatch(r"stairwise_spark\.(\w+)(?:\.\w+)*", span):  # without importing an engine
            assert (ROOT / "spark_jobs" / "stairwise_spark" / f"{name[1]}.py").exists(), span
        if name := re.fullmatch(r"make (\w+)", span):
            assert name[1] in targets, span


def modules_in_order(title: str) -> list[str]:
    """The modules in the order of the rows of the tables below a title."""
    _, found, rest = prose(ARCHITECTURE).partition(f"\n## {title}\n")
    assert found, title
    return re.findall(r"^\| `(\w+)` \|", rest.partition("\n## ")[0], re.MULTILINE)


@pytest.mark.parametrize(("title", "package"), PACKAGES.items(), ids=["optimizer", "spark_jobs", "plugins"])
def test_the_map_names_every_module_once(title: str, package: Path) -> None:
    assert sorted(modules_in_order(title)) == sorted(file.stem for file in package.glob("*.py"))


def test_the_map_names_every_test_of_the_repository() -> None:
    folders = {"tests/" + place.name for place in (ROOT / "tests").iterdir() if any(place.glob("*.py"))}
    files = {"tests/" + file.name for file in (ROOT / "tests").glob("*.py")}
    assert folders | files <= set(spans(ARCHITECTURE))


@pytest.mark.parametrize(("title", "package"), PACKAGES.items(), ids=["optimizer", "spark_jobs", "plugins"])
def test_the_map_can_be_read_from_top_to_bottom(title: str, package: Path) -> None:
    read: set[str] = set()
    for module in modules_in_order(title):
        needed = set(imported(package / f"{module}.py"))
        assert needed <= read, f"{module} needs {sorted(needed - read)}, which stand below it"
        read.add(module)


def imported(file: Path) -> Iterator[str]:
    """The modules of its own package that a module imports, wherever in it."""
    package = file.parent.name
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
            yield node.module.removeprefix(f"{package}.")


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/adr/")])
def test_decisions_say_why_and_at_what_price(page: str) -> None:
    assert re.findall(r"^## (.+)$", text_of(page), re.MULTILINE) == ["Context", "Choice", "Price"]
    assert re.match(r"# \d{4} ", text_of(page)), "a title with the number"
    assert text_of(page)[2:6] == Path(page).name[:4]


def fields(told: Mapping[str, Json], top: Mapping[str, Json], path: str = "") -> Iterator[tuple[str, str, str]]:
    """The fields of an object in a schema: where they are, what they may be, what they are."""
    named = told.get("properties")
    for name, field in named.items() if isinstance(named, Mapping) else ():
        whole = resolved(field, top)
        place = f"{path}.{name}" if path else name
        yield place, kind(whole, top), str(whole["description"])
        for inner, dots in ((whole, ""), *((each, "") for each in choices(whole, top)), (items(whole, top), "[]")):
            if name != "calendar":  # the schema says it better than a table
                yield from fields(inner, top, place + dots)


def resolved(field: Json, top: Mapping[str, Json]) -> Mapping[str, Json]:
    """A part of a schema without references."""
    assert isinstance(field, Mapping)
    reference = field.get("$ref")
    if not isinstance(reference, str):
        return field
    definitions = top["$defs"]
    assert isinstance(definitions, Mapping)
    return {**resolved(definitions[reference.removeprefix("#/$defs/")], top), **field}


def choices(told: Mapping[str, Json], top: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    listed = told.get("anyOf", ())
    return [resolved(each, top) for each in listed] if isinstance(listed, Sequence) else []


def items(told: Mapping[str, Json], top: Mapping[str, Json]) -> Mapping[str, Json]:
    return resolved(told.get("items", {}), top)


def kind(told: Mapping[str, Json], top: Mapping[str, Json]) -> str:
    """What a value may be, in words."""
    if "const" in told:
        return f"`{told['const']}`"
    if isinstance(words := told.get("enum"), Sequence):
        return " or ".join("null" if word is None else f"`{word}`" for word in words)
    if cases := choices(told, top):
        return " or ".join(dict.fromkeys(kind(case, top) for case in cases))
    found = told.get("type", "anything")
    named = [found] if isinstance(found, str) else list(found) if isinstance(found, Sequence) else []
    if "array" in named:
        is_range = told.get("maxItems") == 2 and "pattern" in items(told, top)
        return "range" if is_range else f"list of {kind(items(told, top), top)}"
    names = {"string": "instant" if "T\\d" in str(told.get("pattern")) else "text", "boolean": "true or false"}
    return " or ".join(names.get(str(name), str(name)) for name in named)


def table(name: str) -> str:
    """What the page on JSON says of a kind of document."""
    told: dict[str, Json] = json.loads(schema(name))
    rows = [f"| `{place}` | {said} | {what} |\n" for place, said, what in dict.fromkeys(fields(told, told))]
    return f"\n{told['description']}\n\n| field | | |\n|---|---|---|\n{''.join(rows)}\n"


def test_the_tables_of_documents_say_what_the_schemas_say(*, write_goldens: bool) -> None:
    page = ROOT / "docs" / "reference" / "json.md"
    shown = page.read_text(encoding="utf-8")
    made = TABLE.sub(lambda found: found[1] + table(found[2]) + found[3], shown)
    if write_goldens:
        page.write_text(made, encoding="utf-8")
    assert {found[2] for found in TABLE.finditer(shown)} == set(KINDS)
    assert page.read_text(encoding="utf-8") == made


def test_the_reference_has_every_command() -> None:
    titles = re.findall(r"^## (\w+)$", text_of("docs/reference/command-line.md"), re.MULTILINE)
    assert sorted(titles) == sorted(["plan", *ENGINE_COMMANDS, *OWN_COMMANDS])


def test_the_reference_has_every_setting() -> None:
    code = "".join(file.read_text(encoding="utf-8") for package in PACKAGES.values() for file in package.glob("*.py"))
    ours = {*re.findall(r"\bSTAIRWISE_[A-Z]+\b", code), *re.findall(r"\bspark\.stairwise\.[\w.]+", code)}
    read = set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", code)) - {"PATH", "SPARK_HOME"}
    shown = set(spans("docs/reference/settings.md"))
    assert ours | read <= shown
    assert {span for span in shown if span.startswith(("STAIRWISE_", "spark.stairwise."))} <= ours


def test_the_reference_has_every_key_of_a_declaration() -> None:
    shown = set(re.findall(r"^\| `(\w+)` \|", text_of("docs/declarations.md"), re.MULTILINE))
    declared = {field.name for kind in (Rollup, Source) for field in dataclasses.fields(kind)} - {"name"}
    assert declared <= shown


def test_the_page_of_versions_says_what_is_pinned() -> None:
    pins = dict(
        re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    shown = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+)", text_of("docs/reference/versions.md"), re.MULTILINE))
    assert shown == {
        "Python": "3.11",
        "PySpark": pins["pyspark"],
        "Delta Lake": pins["delta-spark"],
        "Java": str(versions.OLDEST_JAVA),
        "Airflow": pins["apache-airflow"],
        "its Spark provider": pins["apache-airflow-providers-apache-spark"],
    }
    assert (shown["PySpark"], shown["Delta Lake"]) == (versions.SPARK, versions.DELTA)


# Rows of docs/benchmarks.md, and what the README calls them.
MEASURED = {
    "20 windows, dense, nothing written / one window() query each": (
        "20 windows over 20 million events, dense, nothing written",
        "a query for each window",
    ),
    "20 windows, ten_to_one, nothing written / one window() query each": (
        "the same, with ten events for each row of the finest tier",
        "a query for each window",
    ),
    "20 windows of RandomGen, dense, nothing written / one window() query each": (
        "20 random windows",
        "a query for each window",
    ),
    "20 windows, dense, Delta to Delta, layout one_table / one query and table each": (
        "20 windows from Delta to Delta, in one table",
        "a query and a table for each window",
    ),
    "20 windows, dense, Delta to Delta, layout tables / one query and table each": (
        "20 windows from Delta to Delta, in 20 tables",
        "a query and a table for each window",
    ),
}


def measured() -> str:
    """The table of the README, from the numbers of the benchmarks."""
    rows = dict(re.findall(r"^\| ([^|]+?) \| (.*) \|$", text_of("docs/benchmarks.md"), re.MULTILINE))
    lines = ["| work | Stairwise | plain Spark | |", "|---|---:|---:|---:|"]
    for row, (work, beside) in MEASURED.items():
        ours, theirs, ratio, *_ = rows[row].split(" | ")
        lines.append(f"| {work} | {ours} s | {beside}: {theirs} s | {ratio} |")
    return "\n" + "\n".join(lines) + "\n\n"


def test_the_numbers_of_the_readme_are_those_of_the_benchmarks(*, write_goldens: bool) -> None:
    made = re.sub(
        r"(<!-- measured -->\n).*?(<!-- end -->)",
        lambda found: found[1] + measured() + found[2],
        text_of("README.md"),
        flags=re.DOTALL,
    )
    if write_goldens:
        (ROOT / "README.md").write_text(made, encoding="utf-8")
    assert "<!-- measured -->" in made
    assert text_of("README.md") == made
