"""The pictures of the benchmarks show what the tables beside them say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from chart import BOTTOM, LEFT, RIGHT, TOP, Chart, draw, read
from pictures import CHARTS, drawn, file_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
SVG = "{http://www.w3.org/2000/svg}"
CHART = Chart(
    title="A <title>", x="size", y="seconds", lines={"ours, s": "ours", "limit, s": "limit"}, limit="limit, s"
)
HEADER = ("size", "ours, s", "theirs, s", "limit, s")
ROWS = (("1", "1.00", "7", "0.50"), ("10", "10.00", "7", "0.50"), ("1,000", "", "7", "5.00"))


def points(picture: str, place: int) -> list[tuple[float, float]]:
    """Where the points of a line are."""
    group = ET.fromstring(picture).findall(f"{SVG}g")[place]  # noqa: S314 - we drew it
    places = (re.findall(r"[\d.]+", path.get("transform", "")) for path in group.findall(f"{SVG}path"))
    return [(float(x), float(y)) for x, y in places]


def test_a_picture_shows_what_its_table_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    pictures = dict(drawn(page))
    assert pictures, "a page without pictures"
    assert {file.name for file in (ROOT / "docs" / "pictures").glob("bench-*.svg")} == {*pictures}
    for name, picture in pictures.items():
        assert f"](pictures/{name})" in page
        assert (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") == picture, name


def test_another_number_makes_another_picture() -> None:
    page = "## Part\n\n### final-aggregation\n\n" + "".join(
        f"| {' | '.join(row)} |\n"
        for row in (("slices of a window", *CHARTS["final-aggregation"].lines), ["---"] * 7, ["1"] * 7, ["2"] * 7)
    )
    ((name, picture),) = drawn(page)
    assert name == file_of("final-aggregation")
    (other,) = (other for _, other in drawn(page.replace("| 2 |", "| 3 |")))
    assert picture != other


def test_equal_ratios_are_equally_far() -> None:
    (one, ten), (first, second, third) = (points(draw(CHART, HEADER, ROWS), place) for place in (0, 1))
    assert one[0] == first[0]
    assert second[0] - first[0] == pytest.approx((third[0] - second[0]) / 2, abs=0.1)
    assert first[1] == second[1]
    assert one[1] - ten[1] == pytest.approx(first[1] - third[1], abs=0.1)
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in (one, ten, first, second, third))


@pytest.mark.parametrize("names", [("R-5 tumbling", "S-5 tumbling"), ("", "1")])
def test_names_stand_side_by_side_and_nothing_joins_them(names: Sequence[str]) -> None:
    picture = draw(CHART, HEADER, [(name, *row[1:]) for name, row in zip(names, ROWS, strict=False)])
    assert "<polyline" not in picture
    assert len(points(picture, 0)) == len(names)


def test_a_picture_needs_numbers() -> None:
    with pytest.raises(ValueError, match="has nothing to show"):
        draw(CHART, HEADER, [("1", "", "2", "")])


def test_names_are_text() -> None:
    assert "A &lt;title&gt;" in draw(CHART, HEADER, ROWS)


@pytest.mark.parametrize(
    ("cell", "number"), [("1,440", 1_440), ("17.6 x", 17.6), ("1.75e+04 x", 17_500), ("S-5", None)]
)
def test_cells_begin_with_numbers(cell: str, number: float | None) -> None:
    assert read(cell) == number
