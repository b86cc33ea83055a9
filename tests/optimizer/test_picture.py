from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from stairwise.final_aggregation import Technique
from stairwise.options import TiersAllowed
from stairwise.picture import draw
from stairwise.plan import Plan
from stairwise.theme import COLOURS, PALETTE, style_sheet
from stairwise.tiers import Kind
from tests.optimizer import plans_by_hand
from tests.optimizer.plans_by_hand import PLANS, PLANS_WITH_ANY_NAMES, fixed, mixed, planned, read

SVG = "{http://www.w3.org/2000/svg}"
BY_HAND = [
    plans_by_hand.alone(), plans_by_hand.unshared(), plans_by_hand.example_7(), plans_by_hand.trips(),
    plans_by_hand.chain(38), plans_by_hand.star(40),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Place) -> bool:
        """More than touching."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0.15 and min(self.bottom, other.bottom) - max(self.top, other.top) > 0.15

    def contains(self, other: Place) -> bool:
        across = self.left - 0.15 <= other.left and other.right <= self.right + 0.15
        return across and self.top - 0.15 <= other.top and other.bottom <= self.bottom + 0.15


def parsed(plan: Plan) -> ET.Element:
    return ET.fromstring(draw(plan))  # noqa: S314 - our own document


def places(picture: ET.Element, class_: str) -> list[Place]:
    found = (rect for rect in picture.iter(f"{SVG}rect") if class_ in rect.get("class", "").split())
    return [place(rect) for rect in found]


def place(rect: ET.Element) -> Place:
    x, y, width, height = (float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))
    return Place(x, y, x + width, y + height)


def lines(picture: ET.Element) -> Iterator[list[Place]]:
    """Each link as its segments, which are rectangles without width or height."""
    for line in picture.iter(f"{SVG}polyline"):
        points = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
        yield [
            Place(min(one[0], two[0]), min(one[1], two[1]), max(one[0], two[0]), max(one[1], two[1]))
            for one, two in pairwise(points)
        ]


def crosses(segment: Place, box: Place) -> bool:
    """Whether some inner part of the box is on the segment."""
    across = segment.right > box.left + 0.15 and segment.left < box.right - 0.15
    return across and segment.bottom > box.top + 0.15 and segment.top < box.bottom - 0.15


def check_geometry(plan: Plan) -> None:
    picture = parsed(plan)
    raw, *boxes = places(picture, "tier")
    labels = places(picture, "label")
    links = list(lines(picture))
    assert len(boxes) == len(labels) == len(links) == len(plan.steps)
    for one, two in combinations([raw, *boxes, *labels], 2):
        assert not one.overlaps(two), (one, two)
    box_of = {step.tier.name: box for step, box in zip(plan.steps, boxes, strict=True)}
    for step, link, own_label in zip(plan.steps, links, labels, strict=True):
        for segment in link:
            assert not any(crosses(segment, box) for box in (raw, *boxes)), (step.tier.name, segment)
            assert not any(crosses(segment, label) for label in labels if label is not own_label)
        assert any(crosses(segment, own_label) for segment in link)
        parent = raw if step.reads is None else box_of[step.reads]
        assert parent.bottom < box_of[step.tier.name].top
        assert link[0].top == pytest.approx(parent.bottom, abs=0.11)
        assert parent.left < link[0].left < parent.right
        own = box_of[step.tier.name]
        end = link[-1]
        assert end.bottom == pytest.approx(own.top, abs=0.11) or end.right == pytest.approx(own.left, abs=0.11)
    check_frame(picture, [raw, *boxes, *labels])


def check_frame(picture: ET.Element, inner: list[Place]) -> None:
    """Everything is on the page, and each box is within one band."""
    page = place(picture)
    group = next(element for element in picture.iter(f"{SVG}g") if "transform" in element.attrib)
    right, down = map(float, group.get("transform", "").removeprefix("translate(").removesuffix(")").split())
    moved = [Place(p.left + right, p.top + down, p.right + right, p.bottom + down) for p in inner]
    bands = [p for class_ in ("band", "paper") for p in places(picture, class_) if p != page]
    assert all(page.contains(p) and any(band.contains(p) for band in bands) for p in moved)
    assert not any(one.overlaps(two) for one, two in combinations(bands, 2))


@pytest.mark.parametrize("plan", BY_HAND, ids=lambda plan: f"{plan.rollup} {len(plan.steps)}")
def test_nothing_overlaps(plan: Plan) -> None:
    check_geometry(plan)


@given(PLANS)
def test_nothing_overlaps_whatever_the_shape(plan: Plan) -> None:
    check_geometry(plan)


@settings(max_examples=20)
@given(PLANS)
def test_the_same_plan_gives_the_same_picture(plan: Plan) -> None:
    assert draw(plan) == draw(plan)


@settings(max_examples=50)
@given(PLANS_WITH_ANY_NAMES)
def test_any_name_gives_a_well_formed_picture(plan: Plan) -> None:
    assert len(places(parsed(plan), "tier")) == 1 + len(plan.steps)


def test_names_cannot_break_out() -> None:
    name = "</title><script>alert('x')</script>&\"\x1b\x00"
    tier = fixed("5m", 300, name=name)
    picture = parsed(planned(read(tier), rollup=name))
    assert not list(picture.iter(f"{SVG}script"))
    titles = [element.text for element in picture.iter(f"{SVG}title")]
    assert titles == [
        "Plan of </title><script>alert('x')</script>&\"��",
        "</title><script>alert('x')</script>&\"��: 5m: 1 read.",
    ]


def test_it_stands_alone() -> None:
    text = draw(plans_by_hand.trips())
    assert "href" not in text
    assert "url(" not in text
    assert "<script" not in text
    assert text.count("http") == 1
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" class="stairwise" role="img" ')


def test_everything_is_said_in_text() -> None:
    picture = parsed(plans_by_hand.trips())
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert texts[:16] == [
        "trips", "8 windows and 1 helper tier for 433 s.",
        "Sharing tiers makes it 3.1 times cheaper: each window from the raw rows", "would take 1,350 s.",
        "Not proven optimal: no plan costs less than 431 s, 0.4 % below this one.", "no sharing",
        "1,350 s (3.1 x)", "paper-1", "493 s (+14 %)",
        "paper-3", "467 s (+8.0 %)", "this plan", "433 s", "lower bound", "431 s (-0.4 %)", "events",
    ]  # fmt: skip
    assert texts[16:22] == ["minutes", "hours", "days", "weeks", "months", "years"]
    assert texts[22:31] == ["199 s", "62.6 s", "55.5 s", "26.3 s", "20.9 s", "17.4 s", "17.1 s", "17.0 s", "17.0 s"]
    assert texts[31:39] == [
        "raw rows", "5m", "scans raw rows", "105 M rows, 8.41 GB", "15m", "merges 3 slices", "35.0 M rows, 2.80 GB",
        "helper",
    ]  # fmt: skip


def test_the_description_is_the_picture_in_sentences() -> None:
    described = parsed(plans_by_hand.example_7()).find(f"{SVG}desc")
    assert described is not None
    assert described.text == (
        "3 windows and 1 helper tier for 142 reads. Sharing tiers makes it 2.5 times cheaper: each window from the raw "
        "rows would take 360 reads. Proven optimal. slices reads raw rows for 120 reads. 20s reads slices for 8 reads. "
        "30s reads slices for 8 reads. 40s reads 20s for 6 reads."
    )


def test_the_kinds_are_told_apart_by_shape_and_word() -> None:
    picture = parsed(plans_by_hand.grown([(0, 2, 0), (1, 2, 1), (2, 2, 3)]))
    texts = {element.text for element in picture.iter(f"{SVG}text")}
    rounding = {
        kind: {rect.get("rx") for rect in picture.iter(f"{SVG}rect") if rect.get("class") == f"tier {kind.value}"}
        for kind in Kind
    }
    assert {"helper", "mixed helper"} <= texts
    assert rounding == {Kind.DECLARED: {"6"}, Kind.FACTOR: {"18"}, Kind.COMPOSITE: {"18"}}
    assert ".stairwise .factor { stroke-width: 1.5; stroke-dasharray: 7 4; }" in style_sheet()
    assert ".stairwise .composite { stroke-width: 2; stroke-dasharray: 2 3; }" in style_sheet()


def test_long_names_and_ways_go_on_in_a_second_line() -> None:
    slices = mixed("cut_36ac9bac", (600, 0), (900, 300))
    hour = replace(read(fixed("1h every 10m", 3_600, 600), slices), final=Technique.VAN_HERK)
    texts = [element.text for element in parsed(planned(read(slices), hour)).iter(f"{SVG}text")]
    assert texts[texts.index("raw rows") + 1 :][:8] == [
        "cut_36ac9bac", "mixed helper", "scans raw rows", "cuts every 10m and 15m+5m",
        "1h every 10m", "merges about 8.0 slices,", "van Herk", "50 % of all costs",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("allowed", "words"), [(TiersAllowed.FACTOR, " over the allowed tiers"), (TiersAllowed.COMPOSITE, "")]
)
def test_the_bound_holds_for_the_allowed_tiers(allowed: TiersAllowed, words: str) -> None:
    plan = plans_by_hand.trips()
    picture = parsed(replace(plan, search=replace(plan.search, tiers_allowed=allowed)))
    text = " ".join(element.text or "" for element in picture.iter(f"{SVG}text"))
    assert f"with its helpers; no plan{words} costs less than the lower bound." in text
    assert f"Not proven optimal: no plan{words} costs less than 431 s, 0.4 % below this one." in text


def test_a_free_plan_has_no_shares() -> None:
    picture = parsed(planned(read(fixed("5m", 300), cost=0)))
    assert "0 % of all costs" in {element.text for element in picture.iter(f"{SVG}text")}


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((text, ground) for text in ("ink", "quiet") for ground in ("paper", "band")),
        *((text, f"{kind.value}-fill") for kind in Kind for text in ("ink", "quiet", kind.value)),
        ("good", "paper"),
    ],
)
def test_texts_can_be_read(side: int, text: str, ground: str) -> None:
    one, two = (luminance(PALETTE[name][side]) for name in (text, ground))
    assert (max(one, two) + 0.05) / (min(one, two) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_is_used() -> None:
    assert {name for _, _, name in COLOURS} == PALETTE.keys()
