"""The command line as a user meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from stairwise import cli
from stairwise.arguments import ENGINE_COMMANDS, OWN_COMMANDS
from stairwise.cli import main
from stairwise.codec import decode_plan
from stairwise.explain import explain
from stairwise.json_fields import Json
from stairwise.rollup import Rollup

DECLARATION = """\
rollup: trips
source: {table: lake.trips, time: pickup_at}
keys: [zone_id]
aggregates: {trips: count()}
windows: [5m, 1h]
target: lake/rollups/trips
"""
TREE = "windows: 2 windows for "


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    path = tmp_path / "trips.yaml"
    path.write_text(DECLARATION, encoding="utf-8")
    return path


def document(text: str) -> dict[str, Json]:
    """The one JSON document that a text is."""
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    read: dict[str, Json] = json.loads(text)
    return read


def a_document(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says on standard error when it is wrong; nothing else is said anywhere."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints when all is well; nothing else is said anywhere."""
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


# ---- help


def test_without_arguments_it_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = answered(capsys)
    assert text.startswith("usage: stairwise")
    assert "plan        find the cheapest hierarchy of tiers, and show why" in text


def test_the_help_of_plan_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--help-all"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    options = "windows aggregate json out svg rows-per-day distinct-keys tiers algorithm cost-model eta semantics"
    assert [option for option in options.split() if f"  --{option} " not in text] == []
    assert "stairwise plan --windows - < sets.txt" in text


def test_it_knows_its_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(capsys, "--version").startswith("stairwise ")
    assert answered(capsys, "-V") == answered(capsys, "--version")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    assert answered(capsys, "--version") == "stairwise (not installed)\n"


# ---- what is planned


def test_a_file_is_planned(capsys: pytest.CaptureFixture[str], declaration: Path) -> None:
    text = answered(capsys, "plan", str(declaration))
    assert text.startswith("trips: 2 windows for ")
    assert "└─ 5m " in text
    assert text.endswith("estimates.distinct_keys.\n")


def test_typed_windows_are_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(capsys, "plan", "--windows", "5m, 1h").startswith(TREE)
    assert answered(capsys, "plan", "--windows= 5m,1h ").startswith(TREE)


def test_json_is_one_document(capsys: pytest.CaptureFixture[str], declaration: Path) -> None:
    text = answered(capsys, "plan", str(declaration), "--json")
    assert document(text)["schema"] == "stairwise.plan/1"
    seconds = document(text)["seconds"]
    assert isinstance(seconds, float)
    assert 0 < seconds < 10
    assert decode_plan(text).declaration == Rollup.from_yaml(DECLARATION).in_order()


def test_the_text_and_the_document_are_of_one_plan(capsys: pytest.CaptureFixture[str]) -> None:
    text = answered(capsys, "plan", "--windows", "5m,1h")
    assert explain(decode_plan(answered(capsys, "plan", "--windows", "5m,1h", "--json"))) == text


def cost_of(capsys: pytest.CaptureFixture[str], *options: str) -> Json:
    text = answered(capsys, "plan", "--windows", "20s,30s,40s", "--cost-model", "paper", "--json", *options)
    return a_document(document(text)["cost"])["total"]


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        ((), 142),
        (("--tiers", "composite"), 142),
        (("--tiers", "factor"), 150),
        (("--tiers", "none"), 246),
        (("--algorithm", "best"), 142),
        (("--algorithm", "paper-1"), 246),
        (("--algorithm", "paper-3"), 150),
        (("--algorithm", "unshared"), 360),
        (("--eta", "100"), 12_022),
        (("--algorithm", "unshared", "--eta", "100"), 36_000),
    ],
)
def test_the_search_options_do_what_they_say(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], cost: int
) -> None:
    assert cost_of(capsys, *options) == cost


@pytest.mark.parametrize(
    ("options", "semantics"),
    [
        ((), "disjoint"),
        (("--aggregate", "sum"), "disjoint"),
        (("--aggregate", "min"), "overlapping"),
        (("--aggregate", "median"), "holistic"),
        (("--aggregate", "sum(fare) where fare > 0"), "disjoint"),
        (("--aggregate", "min", "--semantics", "disjoint"), "disjoint"),
        (("--aggregate", "sum", "--semantics", "overlapping"), "overlapping"),
    ],
)
def test_the_aggregate_decides_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], semantics: str
) -> None:
    text = answered(capsys, "plan", "--windows", "20m every 10m,40m", "--json", *options)
    assert document(text)["semantics"] == semantics


@pytest.mark.parametrize("semantics", ["disjoint", "overlapping"])
@pytest.mark.parametrize(
    ("aggregate", "text", "sketch"),
    [
        ("median", "median(x)", ", or take a sketch: quantile()"),
        ("percentile(fare, 0.9)", "percentile(fare, 0.9)", ", or take a sketch: quantile()"),
        ("count_distinct", "count_distinct(x)", ", or take a sketch: approx_distinct()"),
        ("mode(x) where y > 0", "mode(x) where y > 0", ""),
        ("collect_set", "collect_set(x)", ""),
    ],
)
def test_no_semantics_make_a_holistic_aggregate_merge(
    capsys: pytest.CaptureFixture[str], aggregate: str, semantics: str, text: str, sketch: str
) -> None:
    assert refused(capsys, *WINDOWS, "--aggregate", aggregate, "--semantics", semantics) == (
        f"stairwise: semantics {semantics}: {text} cannot be merged from results of slices. "
        f"Hint: leave --semantics out{sketch}.\n"
    )


def test_what_a_file_declares_is_not_planned_to_be_counted_twice(
    capsys: pytest.CaptureFixture[str], declaration: Path
) -> None:
    command = ("plan", str(declaration), "--semantics", "overlapping")
    assert refused(capsys, *command) == (
        "stairwise: semantics overlapping: count() would count rows twice. "
        "Hint: leave --semantics out, or try it on --windows, which nothing computes.\n"
    )
    declaration.write_text(DECLARATION.replace("count()", "max(fare)"), encoding="utf-8")
    assert "aggregates   overlapping: " in answered(capsys, *command)
    assert "aggregates   disjoint: " in answered(capsys, *command[:-1], "disjoint")


def test_the_batch_model_prices_what_is_known_of_the_events(
    capsys: pytest.CaptureFixture[str], declaration: Path
) -> None:
    declaration.write_text(DECLARATION + "estimates: {rows_per_day: 1000, distinct_keys: 7}\n", encoding="utf-8")
    from_file = document(answered(capsys, "plan", str(declaration), "--json"))
    overruled = document(answered(capsys, "plan", str(declaration), "--json", "--rows-per-day", "2000"))
    typed = document(answered(capsys, "plan", str(declaration), "--json", "--distinct-keys", "9"))
    assert from_file["cost_model"] == "batch"
    assert from_file["notes"] == overruled["notes"] == typed["notes"] == []
    assert len({json.dumps(each["cost"]) for each in (from_file, overruled, typed)}) == 3


# ---- a declaration on standard input


def put_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_declaration_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, declaration: Path, tmp_path: Path
) -> None:
    from_file = answered(capsys, "plan", str(declaration))
    put_in(monkeypatch, DECLARATION.encode())
    monkeypatch.chdir(tmp_path)
    assert answered(capsys, "plan", "-", "--out", "-") == from_file
    assert decode_plan((tmp_path / "-").read_text(encoding="utf-8")).rollup == "trips"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            DECLARATION.encode() + b"delay: soon",
            (
                "<stdin>:7:8: duration 'soon': it is not whole numbers with units (w, d, h, m, s). "
                "Hint: try 5m, 1h30m or 1d."
            ),
        ),
        (b"rollup: \xff", "<stdin>:1:9: byte 0xff: the file is not UTF-8. Hint: save it as UTF-8."),
        (
            b" " * 2**21,
            "<stdin>: the file is larger than 1048576 bytes. Hint: check that the file is a declaration.",
        ),
    ],
)
def test_problems_on_standard_input_have_their_places(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, content: bytes, text: str
) -> None:
    put_in(monkeypatch, content)
    assert refused(capsys, "plan", "-") == f"{text}\n"


@pytest.mark.parametrize("command", [("plan", "-"), ("plan", "--windows", "-")])
def test_standard_input_that_is_closed_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    text = "stairwise: standard input is closed. Hint: redirect a file to it.\n"
    assert refused(capsys, *command) == text


class Unreadable(io.BytesIO):
    """Standard input on a disk that fails."""

    def read(self, _size: int | None = -1, /) -> bytes:
        raise OSError(5, "Input/output error")


def test_standard_input_that_cannot_be_read_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Unreadable()))
    assert refused(capsys, "plan", "-") == (
        "<stdin>: it cannot be read (Input/output error). Hint: redirect a file to it.\n"
    )


# ---- files that are written


def test_the_plan_and_the_picture_are_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, svg = tmp_path / "plan.json", tmp_path / "plan.svg"
    text = answered(capsys, "plan", "--windows", "5m,1h", "--out", str(out), "--svg", str(svg))
    assert text == explain(decode_plan(out.read_text(encoding="utf-8")))
    assert svg.read_text(encoding="utf-8").startswith("<svg ")
    document(out.read_text(encoding="utf-8"))


def test_the_document_is_written_as_printed_but_for_the_time_it_took(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "plan.json"
    text = answered(capsys, "plan", "--windows", "5m,1h", "--json", "--out", str(out))
    printed = json.loads(text)
    assert printed.pop("seconds") > 0
    assert json.loads(out.read_text(encoding="utf-8")) == printed


def test_events_per_second_belong_to_the_model_of_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--windows", "5m", "--eta", "5"]) == 2
    assert capsys.readouterr().err == (
        "stairwise: --eta: only the paper's cost model counts events per second. "
        "Hint: add --cost-model paper, or say --rows-per-day.\n"
    )


# ---- a set a line


def streamed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: bytes, *options: str
) -> tuple[int, list[dict[str, Json]]]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    code = main(["plan", "--windows", "-", *options])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, [document(line) for line in captured.out.splitlines(keepends=True)]


def test_each_line_is_planned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = b"20s,30s,40s\r\n 10s, 20s , 30s, 40s\nday in Europe/Paris"
    code, documents = streamed(monkeypatch, capsys, lines, "--cost-model", "paper", "--tiers", "factor")
    assert code == 0
    assert [a_document(each["cost"])["total"] for each in documents] == [150, 150, 86_400]


def test_a_bad_line_has_an_error_in_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, documents = streamed(monkeypatch, capsys, b"5m\n\n5m every 1h\n5m,\n\xff\xfe\n5m,1h\n", "--json")
    assert code == 2
    kinds = ["stairwise.plan/1", *["stairwise.error/1"] * 4, "stairwise.plan/1"]
    assert [each["schema"] for each in documents] == kinds
    assert [each["message"] for each in documents[1:5]] == [
        "windows '': one of them is empty.",
        "window '5m every 1h': the slide (3600 s) is longer than the range (300 s).",
        "windows '5m,': one of them is empty.",
        "window '\ufffd\ufffd': '\ufffd\ufffd' is not a span.",
    ]


def test_no_line_is_no_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert streamed(monkeypatch, capsys, b"") == (0, [])


# ---- what is wrong

SEE = "Hint: see stairwise plan --help."
FIRST = "Hint: write the command first, and then its options."
WINDOWS = ("plan", "--windows", "5m")
NO_SPARK = "plan needs no Spark. Hint: leave it out, or add --measure."
NO_COUNT = "not a whole number above 0 of at most 18 digits"
BOTH = "or --windows, not both. Hint: leave one out, and quote a list of windows."


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["tabulate", "a.yaml"],
            (
                "there is no command 'tabulate'. "
                f"Hint: there are {', '.join(sorted(('plan', *ENGINE_COMMANDS, *OWN_COMMANDS)))}."
            ),
        ),
        (["rum", "a.yaml"], "there is no command 'rum'. Hint: did you mean 'run'?"),
        (["trips.yaml"], "there is no command 'trips.yaml'. Hint: try stairwise plan trips.yaml."),
        (["version"], "there is no command 'version'. Hint: did you mean '--version'?"),
        (["help", "rum"], "there is no command 'rum'. Hint: did you mean 'run'?"),
        (["--windows", "5m"], f"there is no command before '--windows'. {FIRST}"),
        (["--windows=5m"], f"there is no command before '--windows=5m'. {FIRST}"),
        (["--verison"], "there is no command before '--verison'. Hint: did you mean --version?"),
        (["plan"], 'plan needs a FILE or --windows. Hint: try stairwise plan --windows "5m, 1h".'),
        (["plan", "--mesure", "a.yaml"], "there is no option '--mesure'. Hint: did you mean --measure?"),
        ([*WINDOWS, "--measure"], "--measure looks at a source, and --windows have none. Hint: give a FILE."),
        (
            ["plan", "a.yaml", "--measure", "--cost-model", "paper"],
            "--measure: the paper's cost model asks nothing of the source. Hint: leave one of the two out.",
        ),
        ([*WINDOWS, "--drift"], "--drift looks at tables, and --windows have none. Hint: give a FILE."),
        (
            ["plan", "a.yaml", "--drift", "--rows-per-day", "9"],
            "--drift and --rows-per-day: it counts what there is, and plans by that. Hint: leave --rows-per-day out.",
        ),
        (["plan", "--spark-conf", "a.b=c", "a.yaml"], f"--spark-conf: {NO_SPARK}"),
        (["plan", "a.yaml", "--master=local[2]"], f"--master: {NO_SPARK}"),
        ([*WINDOWS, "--remote", "sc://host"], f"--remote: {NO_SPARK}"),
        (
            ["plan", "a.yaml", "--spark-conf", "=c"],
            "--spark-conf: '=c' is not KEY=VALUE. Hint: write such as spark.driver.memory=4g.",
        ),
        (["plan", "--colour"], f"there is no option '--colour'. {SEE}"),
        (["plan", "--window", "5m"], "there is no option '--window'. Hint: did you mean --windows?"),
        (["plan", "--row-per-day=5"], "there is no option '--row-per-day=5'. Hint: did you mean --rows-per-day?"),
        (["plan", "--windows"], f"--windows needs a value: --windows LIST. {SEE}"),
        (["plan", "a.yaml", "b.yaml"], "'b.yaml' is one argument too many. Hint: quote what belongs together."),
        (["plan", "a.yaml", "b c"], "'b c' is one argument too many. Hint: quote what belongs together."),
        (["plan", "a.yaml", "--drift=yes"], f"--drift takes no value, and has 'yes'. {SEE}"),
        (["plan", ""], "FILE is empty. Hint: a variable of the shell may not be set."),
        (["plan", "--windows", "5m,", "1h"], f"plan takes a FILE (here '1h') {BOTH}"),
        (["plan", "a.yaml", "--windows", "-"], f"plan takes a FILE (here 'a.yaml') {BOTH}"),
        (
            ["plan", "a.yaml", "--aggregate", "sum"],
            "--aggregate goes with --windows: a FILE has its own. Hint: leave --aggregate out.",
        ),
        (
            ["plan", "--windows", "-", "--out", "plan.json"],
            "--windows - prints what it plans, --out and --svg cannot. Hint: leave them out.",
        ),
        (["plan", "--windows", ""], "windows '': one of them is empty. Hint: try 5m, 1h."),
        (["plan", "--windows", "5m,,1h"], "windows '5m,,1h': one of them is empty. Hint: try 5m, 1h."),
        (["plan", "--windows", "90m,1h30m"], "window '1h30m': the same as '90m'. Hint: keep one of the two."),
        (
            ["plan", "--windows", "1h every 2h"],
            "window '1h every 2h': the slide (7200 s) is longer than the range (3600 s). Hint: try 2h every 1h.",
        ),
        (
            [*WINDOWS, "--aggregate", "mean"],
            "aggregate 'mean(x)': there is no aggregate mean. Hint: try avg(x).",
        ),
        ([*WINDOWS, "--aggregate", ""], "aggregate '': it is empty. Hint: name one, such as sum."),
        ([*WINDOWS, "--aggregate", " "], "aggregate ' ': it is empty. Hint: name one, such as sum."),
        ([*WINDOWS, "--eta", "0"], f"--eta: '0' is {NO_COUNT}. {SEE}"),
        ([*WINDOWS, "--eta", "1e3"], f"--eta: '1e3' is {NO_COUNT}. {SEE}"),
        (
            [*WINDOWS, "--rows-per-day", "9" * 19],
            f"--rows-per-day: '{'9' * 19}' is {NO_COUNT}. {SEE}",
        ),
        (
            [*WINDOWS, "--distinct-keys=-1"],
            f"--distinct-keys: '-1' is {NO_COUNT}. {SEE}",
        ),
        ([*WINDOWS, "--tiers", "all"], f"--tiers: 'all' is not one of composite, factor, none. {SEE}"),
        (
            [*WINDOWS, "--algorithm", "paper-2"],
            f"--algorithm: 'paper-2' is not one of best, paper-1, paper-3, unshared. {SEE}",
        ),
        ([*WINDOWS, "--cost-model", "s"], f"--cost-model: 's' is not one of batch, paper. {SEE}"),
        (
            [*WINDOWS, "--semantics", "holistic"],
            f"--semantics: 'holistic' is not one of disjoint, overlapping. {SEE}",
        ),
    ],
)  # fmt: skip
def test_a_wrong_command_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], text: str) -> None:
    assert refused(capsys, *arguments) == f"stairwise: {text}\n"


def test_a_wrong_command_is_a_document_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json", "--tiers", "all"]) == 2
    captured = capsys.readouterr()
    assert captured.err == ""
    assert document(captured.out) == {
        "schema": "stairwise.error/1",
        "kind": "usage",
        "message": "--tiers: 'all' is not one of composite, factor, none.",
        "hint": "see stairwise plan --help.",
        "data": {},
    }


def test_a_wrong_file_has_all_its_problems_listed(capsys: pytest.CaptureFixture[str], declaration: Path) -> None:
    declaration.write_text(DECLARATION.replace("[5m, 1h]", "[90m, 1h30m]").replace("trips: count()", "trips: count("))
    lines = refused(capsys, "plan", str(declaration)).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{declaration}:4:21", f"{declaration}:5:16"]
    assert main(["plan", str(declaration), "--json"]) == 2
    assert document(capsys.readouterr().out) == {
        "schema": "stairwise.error/1",
        "kind": "declaration",
        "message": "\n".join(line.partition(" Hint: ")[0] for line in lines),
        "hint": "correct each of the 2 problems.",
        "data": {
            "file": str(declaration),
            "problems": [
                {
                    "line": 4,
                    "column": 21,
                    "kind": "aggregate",
                    "message": "aggregate 'count(': '(' is never closed.",
                    "hint": "add ')'.",
                },
                {
                    "line": 5,
                    "column": 16,
                    "kind": "rollup",
                    "message": "window '1h30m': the same as '90m'.",
                    "hint": "keep one of the two.",
                },
            ],
        },
    }


def test_a_problem_without_a_place_has_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert main(["plan", str(path), "--json"]) == 2
    message = "the file cannot be read (No such file or directory)."
    assert document(capsys.readouterr().out) == {
        "schema": "stairwise.error/1",
        "kind": "declaration",
        "message": f"{path}: {message}",
        "hint": "check the path.",
        "data": {
            "file": str(path),
            "problems": [
                {"line": None, "column": None, "kind": "declaration", "message": message, "hint": "check the path."}
            ],
        },
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "(Is a directory). Hint: name a file in it."),
        ("/none.yaml", "(No such file or directory). Hint: check the path."),
        ("/a\0b", "(embedded null byte). Hint: check the path."),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, reason: str
) -> None:
    path = f"{tmp_path}{name}"
    assert refused(capsys, "plan", path) == f"{path}: the file cannot be read {reason}\n"


def test_a_file_without_permission_is_refused(capsys: pytest.CaptureFixture[str], declaration: Path) -> None:
    declaration.chmod(0)
    if os.access(declaration, os.R_OK):
        pytest.skip("permissions do not bind this user")
    text = f"{declaration}: the file cannot be read (Permission denied). Hint: check the path.\n"
    assert refused(capsys, "plan", str(declaration)) == text


@pytest.mark.parametrize("option", ["--out", "--svg"])
def test_a_place_that_cannot_be_written_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, declaration: Path, option: str
) -> None:
    command = ("plan", "--windows", "5m", option)
    text = f"stairwise: cannot write '{tmp_path}': Is a directory. Hint: choose another place.\n"
    assert refused(capsys, *command, str(tmp_path)) == text
    for place in (declaration, tmp_path / "new"):
        text = f"cannot write '{place / 'plan'}': there is no directory '{place}'. Hint: make it first."
        assert refused(capsys, *command, str(place / "plan")) == f"stairwise: {text}\n"
        assert not (tmp_path / "new").exists()


def test_nothing_is_written_if_one_of_two_places_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, svg = tmp_path / "plan.json", tmp_path / "new" / "plan.svg"
    text = f"stairwise: cannot write '{svg}': there is no directory '{svg.parent}'. Hint: make it first.\n"
    assert refused(capsys, *WINDOWS, "--out", str(out), "--svg", str(svg)) == text
    assert not out.exists()


def test_no_file_is_overwritten_by_mistake(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, declaration: Path
) -> None:
    monkeypatch.chdir(declaration.parent)
    text = "stairwise: 'trips.yaml' would be overwritten: it is named twice. Hint: choose another name.\n"
    assert refused(capsys, "plan", str(declaration), "--out", "trips.yaml") == text
    assert refused(capsys, "plan", "--windows", "5m", "--out", "trips.yaml", "--svg", str(declaration)) == text
    assert declaration.read_text(encoding="utf-8") == DECLARATION


def test_what_nobody_has_thought_of_is_a_failure_and_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise ValueError("nobody has thought of it")

    monkeypatch.setattr(cli, "_run", broken)
    assert main(["plan"]) == 3
    assert "ValueError: nobody has thought of it" in capsys.readouterr().err
