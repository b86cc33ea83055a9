from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stairwise.errors import DeclarationError, DeclarationProblems
from stairwise.problems import MOST_PROBLEMS, Place, Problems
from stairwise.rollup import Rollup
from stairwise.yaml_reader import MOST_BYTES, MOST_NODES, Entries, Items, Node, Refused, Scalar, read_tree
from stairwise.yaml_slips import explained, place_of
from stairwise.yaml_writer import write_yaml
from tests.optimizer.test_rollup import FULL

PLAIN = st.recursive(
    st.text("ab1: #'\"\\-[]{},&*!|>%@`~?\t\n\r\0\x07\x7f\x85\u2028\ufeff\uffffé日😀", max_size=12)
    | st.sampled_from(
        ["null", "true", "on", "1:30", "a: b", "a #b", "- a", "it's", '"', "a\\b", "~", "@", "a,b", "[x]"]
    ),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2)
    ),
    max_leaves=4,
)


def tree_of(content: str | bytes) -> Node:
    problems = Problems("x.yaml")
    tree = read_tree(content, problems)
    problems.settle()
    return tree


def plain_of(node: Node) -> object:
    match node:
        case Scalar():
            return node.text
        case Items():
            return [plain_of(item) for item in node.items]
        case Entries():
            return {key.text: plain_of(value) for key, value in node.entries}
        case Refused():
            return None


def error_of(content: str | bytes) -> str:
    with pytest.raises(DeclarationProblems) as raised:
        Rollup.from_yaml(content, "x.yaml")
    return str(raised.value)


def test_scalars_stay_what_was_written() -> None:
    tree = tree_of("a: [on, 1:30, 0x1F, 2024-01-01, 1e3, 'null', null, ~]\n")
    assert plain_of(tree) == {"a": ["on", "1:30", "0x1F", "2024-01-01", "1e3", "null", "null", "~"]}


def test_nothing_is_told_from_the_word_for_it() -> None:
    tree = tree_of("[null, ~, '', 'null', NULL]")
    assert isinstance(tree, Items)
    assert [isinstance(item, Scalar) and item.is_nothing for item in tree.items] == [True, True, False, False, True]


def test_places_count_characters_from_one() -> None:
    tree = tree_of("\ufeffé: x\n日本: [y]\n")
    assert isinstance(tree, Entries)
    assert [(key.place, value.place) for key, value in tree.entries] == [
        (Place(1, 1), Place(1, 4)),
        (Place(2, 1), Place(2, 5)),
    ]


def test_block_and_flow_style_are_one() -> None:
    assert plain_of(tree_of("a: {b: [c, d]}")) == plain_of(tree_of("a:\n  b:\n    - c\n    - d\n"))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"rollup: caf\xe9\n", "x.yaml:1:12: byte 0xe9: the file is not UTF-8. Hint: save it as UTF-8."),
        (b"a: 1\n\xff", "x.yaml:2:1: byte 0xff: the file is not UTF-8. Hint: save it as UTF-8."),
        ("rollup: trips".encode("utf-16"), "x.yaml:1:1: byte 0xff: the file is not UTF-8. Hint: save it as UTF-8."),
        (
            b"rollup: tr\0ips\n",
            ("x.yaml:1:11: character U+0000: YAML does not allow it. Hint: remove it."),
        ),
        (
            "a: 1\nb: \ud800",
            ("x.yaml:2:4: character U+D800: YAML does not allow it. Hint: remove it."),
        ),
        (
            b"#" * (MOST_BYTES + 1),
            ("x.yaml: the file is larger than 1048576 bytes. Hint: check that the file is a declaration."),
        ),
        (
            'source: {table: "a\\x07b", time: t}\nrollup: r\naggregates: {n: count()}\nwindows: [1h]\ntarget: t',
            "x.yaml:1:17: table holds the character U+0007. Hint: remove it.",
        ),
    ],
)
def test_refuses_what_is_no_text(content: str | bytes, error: str) -> None:
    assert error_of(content) == error


@pytest.mark.parametrize(
    "content",
    [
        "[" * 500_000,
        "{a: " * 250_000,
        "- " * 300_000,
        "? " * 300_000,
        "[" + "a," * 400_000 + "]",
        "".join(f"key{i}: x\n" for i in range(70_000)),
        "windows: [" + ", ".join(f"day in Europe/Pari{i}" for i in range(8_000)) + "]",
        "a: &a [x]\n" + "".join(f"b{i}: [*a, *a]\n" for i in range(9_000)),
        "'" + "x" * 900_000,
        "a: |\n" + "  x\n" * 200_000,
        "a: " + "9" * 900_000,
        "windows: ['" + "9" * 900_000 + "s']",
        "aggregates: {x: '" + "(" * 900_000 + "'}",
        "source: {where: '" + "a " * 400_000 + "'}",
        "x" * 1_000_000 + ": y",
        "lateness: " + "-" * 900_000,
        "keys: ['" + "_" * 900_000 + "']",
    ],
    ids=lambda content: content[:12],
)
def test_refuses_a_bomb_at_once(content: str) -> None:
    started = time.process_time()
    assert len(error_of(content)) < 40_000
    assert time.process_time() - started < 1


def test_bounds_the_number_of_values() -> None:
    assert error_of("[" + "a," * MOST_NODES + "]") == (
        "x.yaml:1:40000: values are more than 20000. Hint: check that the file is a declaration."
    )


@pytest.mark.parametrize("entry", ["key{}: x", "a{}: sum(", "_{}: count()"])
def test_lists_no_more_problems_than_anyone_reads(entry: str) -> None:
    entries = ", ".join(entry.format(index) for index in range(MOST_PROBLEMS + 1))
    problems = error_of(f"{{aggregates: {{{entries}}}}}").splitlines()
    assert len(problems) == MOST_PROBLEMS + 1
    assert problems[-1] == "x.yaml: more problems follow; the first 25 are listed. Hint: correct these first."


def test_tells_a_refused_key_once() -> None:
    assert error_of("*a : x\nrollup: trips") == "x.yaml:1:1: alias *a: not allowed here. Hint: write the value out."


def test_refused_values_are_complained_of_once() -> None:
    refused = "".join(f"{key}: *a\n" for key in ("keys", "aggregates", "partial", "source", "estimates", "lookback"))
    lines = error_of(f"rollup: *a\n{refused}windows: [*a]\ntarget: {{catalog: *a}}\n").splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["alias *a: not allowed here. Hint: write the value out."] * 9


def test_both_parsers_lead_to_the_same_words() -> None:
    for text in ("a: [1\nb: 2", "a: 'x", "a: b: c", "a: @x", "\ta: 1", 'a: "\\q"', "a:\n- b\nc", "a: - b"):
        found: list[tuple[Place, str, str]] = []
        for loader in (yaml.CSafeLoader, yaml.SafeLoader):
            with pytest.raises(yaml.MarkedYAMLError) as raised:
                list(yaml.parse(text, loader))
            found.append(explained(raised.value, text))
        assert found[0] == found[1]


def test_an_error_without_a_place_is_the_whole_files() -> None:
    assert place_of(None) == Place(0, 0)


@given(st.dictionaries(st.sampled_from("abc"), PLAIN, min_size=1))
def test_reads_what_the_writer_writes(entries: dict[str, str]) -> None:
    assert plain_of(tree_of(write_yaml(entries))) == entries


@given(st.binary(max_size=60) | st.text("[]{}:,-?&*!|>'\"%@ \n\ta1", max_size=60))
def test_any_bytes_are_a_declaration_or_problems(content: str | bytes) -> None:
    with pytest.raises(DeclarationProblems):
        Rollup.from_yaml(content)


@given(st.data())
def test_any_mutation_is_a_declaration_or_problems(data: st.DataObject) -> None:
    text = FULL
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 9, len(text))))
        cut = data.draw(st.integers(0, len(text)))
        insert = data.draw(st.text("[]{}:,-?&*!|>'\"%@#\\ \n\t0a_\x00é", max_size=4) | st.just(text[cut : cut + 20]))
        text = text[:start] + insert + text[end:]
    started = time.process_time()
    try:
        rollup = Rollup.from_yaml(text)
    except DeclarationError:
        pass
    else:
        assert Rollup.from_yaml(rollup.to_yaml()) == rollup
    assert time.process_time() - started < 1


def test_problems_know_their_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "trips.yaml"
    path.write_text("rollup: 1\n", encoding="utf-8")
    with pytest.raises(DeclarationProblems) as raised:
        Rollup.from_file(path)
    problem = raised.value.problems[-1]
    assert (raised.value.file, problem.line, problem.column) == (str(path), 1, 9)
