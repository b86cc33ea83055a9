"""Where the boxes of a plan's picture go: bands by grain, a tree within them, no line through any box.

A plan is a tree, so it can be drawn without a crossing. What would make it too wide is many tiers that nobody reads,
side by side under one parent; those are stacked in columns beside a common line, as high as makes for a good page.

Tidy drawing of a tree
    Input: the plan's steps. Requirement: each tier reads one parent. Time: tiers x rows for each height of stacks that
    is tried. Space: the same. First appeared: Reingold and Tilford 1981; stacks of leaves as in organization charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from stairwise.plan import Plan, Step
from stairwise.tiers import Tier
from stairwise.window import CumulateWindow

DAY = 86_400
GRAINS = (
    ("seconds", 60), ("minutes", 3_600), ("hours", DAY), ("days", 7 * DAY), ("weeks", 28 * DAY), ("months", 364 * DAY),
)  # fmt: skip
BOX_WIDTH = 204
GAP = 22  # between neighbouring boxes
LINK = 50  # from a row's upper edge to its boxes: room for the line that brings them their rows, and its price
BUS = 16  # below a parent's box, where its line parts
MARGIN = 12  # above and below the rows of a band
INSET = 14  # from a box's edge to the nearest place where a line leaves it
STUB = 90  # from where a stack's lines come down to its boxes
TIP = 6  # length of an arrow's head
LABEL_WIDTH = 72
LABEL_HEIGHT = 18
TALLEST_STACK = 12
PROPORTION = 1.6  # of a page: width to height


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the picture, in its own unit."""

    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """An upright rectangle by its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        """Its centre."""
        return Point(self.x + self.width / 2, self.y + self.height / 2)


@dataclass(frozen=True, slots=True)
class Link:
    """How a tier gets its rows: the line from its parent's box to its own, and where the price stands."""

    line: tuple[Point, ...]
    label: Rectangle


@dataclass(frozen=True, slots=True)
class Band:
    """All tiers of one grain."""

    name: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything's place; the raw rows' box is named None."""

    width: float
    height: float
    bands: tuple[Band, ...]
    boxes: dict[str | None, Rectangle]
    links: dict[str, Link]


def lay_out(plan: Plan, box_height: float) -> Layout:
    """Of the layouts that differ in how high unread tiers are stacked, the one that fits on the smallest page."""
    layouts = [_Drawing(plan, box_height, tallest).layout() for tallest in range(1, TALLEST_STACK + 1)]
    return min(layouts, key=_page)


def _page(layout: Layout) -> tuple[float, float]:
    """The height of the page that it needs, and its area."""
    return max(layout.width / PROPORTION, layout.height), layout.width * layout.height


_Block = tuple[Step, ...]  # one tier with all below it, or a stack of tiers that nobody reads
_Outline = dict[int, tuple[float, float]]  # row: how far a drawing reaches to the left and to the right in it


class _Drawing:
    """One layout in the making.

    A row is a level within a band, with the space above it. Everything is placed relative to where the line from its
    parent comes down, from the leaves up: neighbours move together until some row of theirs would touch.
    """

    def __init__(self, plan: Plan, box_height: float, tallest: int) -> None:
        self._plan = plan
        self._box_height = box_height
        self._tallest = tallest
        self._readers = _readers(plan)
        self._bands = _bands(plan)
        self._levels: dict[str | None, int] = {None: 0}
        self._blocks: dict[str | None, list[_Block]] = {}
        self._rows: dict[tuple[int, int], int] = {}
        self._tops: list[float] = []
        self._outlines: dict[str | None, _Outline] = {}
        self._arrivals: dict[str | None, list[float]] = {}
        self._boxes: dict[str | None, Rectangle] = {}
        self._links: dict[str, Link] = {}

    def layout(self) -> Layout:
        """Rows from the raw rows down, outlines from the leaves up, and then the places."""
        names = [None, *(step.tier.name for step in self._plan.steps)]
        for name in names:
            self._blocks[name] = self._settle(name)
        bands = self._cut_into_rows()
        for name in reversed(names):
            self._arrange(name)
        left, right = zip(*self._outlines[None].values(), strict=True)
        self._place(None, -min(left))
        for name in names:
            self._place_below(name)
        return Layout(
            width=max(right) - min(left), height=bands[-1].y + bands[-1].height,
            bands=bands, boxes=self._boxes, links=self._links,
        )  # fmt: skip

    def _settle(self, name: str | None) -> list[_Block]:
        """Settle the levels of a tier's readers, and stack those that have none themselves."""
        inner: list[_Block] = []
        leaves: dict[int, list[Step]] = {}
        for step in self._readers[name]:
            self._levels[step.tier.name] = self._first_level(name, step)
            if self._readers[step.tier.name]:
                inner.append((step,))
            else:
                leaves.setdefault(self._bands[step.tier.name], []).append(step)
        stacks = [_stacks(group, self._tallest) for _, group in sorted(leaves.items())]
        for stack in chain.from_iterable(stacks):
            for number, step in enumerate(stack):
                self._levels[step.tier.name] += number
        return [*inner, *(tuple(chain.from_iterable(column)) for column in zip_longest(*stacks, fillvalue=()))]

    def _first_level(self, name: str | None, step: Step) -> int:
        return self._levels[name] + 1 if self._bands[name] == self._bands[step.tier.name] else 0

    def _cut_into_rows(self) -> tuple[Band, ...]:
        """Number the rows and find where their boxes begin; bands without tiers do not exist."""
        deepest: dict[int, int] = {}
        for name, level in self._levels.items():
            deepest[self._bands[name]] = max(level, deepest.get(self._bands[name], 0))
        bands: list[Band] = []
        y = 0.0
        for band, last in sorted(deepest.items()):
            start = y
            y += MARGIN
            for level in range(last + 1):
                y += LINK if band else 0
                self._rows[band, level] = len(self._tops)
                self._tops.append(y)
                y += self._box_height
            y += MARGIN
            bands.append(Band(_grain_name(band), start, y - start))
        return tuple(bands)

    def _row(self, name: str | None) -> int:
        return self._rows[self._bands[name], self._levels[name]]

    def _arrange(self, name: str | None) -> None:
        """Push the blocks below a tier together, and put the tier above their middle."""
        row = self._row(name)
        drawn = [(block, self._outline(block, row)) for block in self._blocks[name]]
        drawn = _deepest_inside(drawn)
        blocks = self._blocks[name] = [block for block, _ in drawn]
        outline: _Outline = {}
        arrivals: list[float] = []
        for _, own in drawn:
            arrival = max((outline[at][1] - own[at][0] + GAP for at in own if at in outline), default=0.0)
            arrivals.append(arrival)
            _join(outline, own, arrival)
        middle = (arrivals[0] + arrivals[-1]) / 2 if arrivals else 0.0
        if len(blocks) == 1 and len(blocks[0]) > 1:
            middle += BOX_WIDTH / 2 - INSET
        self._arrivals[name] = [arrival - middle for arrival in arrivals]
        around = {row: (-BOX_WIDTH / 2, BOX_WIDTH / 2)}
        _join(around, outline, -middle)
        self._outlines[name] = around

    def _outline(self, block: _Block, parent_row: int) -> _Outline:
        """What a block takes in each row, the line that comes down to it included."""
        rows = [self._row(step.tier.name) for step in block]
        outline: _Outline = dict.fromkeys(range(parent_row + 1, max(rows)), (0.0, 0.0))
        if len(block) == 1:
            return outline | self._outlines[block[0].tier.name]
        return outline | dict.fromkeys(rows, (0.0, STUB + BOX_WIDTH))

    def _place(self, name: str | None, centre: float) -> None:
        self._boxes[name] = Rectangle(
            x=centre - BOX_WIDTH / 2, y=self._tops[self._row(name)], width=BOX_WIDTH, height=self._box_height
        )

    def _place_below(self, name: str | None) -> None:
        box = self._boxes[name]
        for block, offset in zip(self._blocks[name], self._arrivals[name], strict=True):
            arrival = box.middle.x + offset
            departure = arrival if len(self._blocks[name]) == 1 else box.middle.x
            down = [Point(departure, box.y + box.height), Point(departure, box.y + box.height + BUS)]
            for step in block:
                self._place(step.tier.name, arrival + (STUB + BOX_WIDTH / 2 if len(block) > 1 else 0))
                own = self._boxes[step.tier.name]
                self._links[step.tier.name] = _side_link(down, own, arrival) if len(block) > 1 else _top_link(down, own)


def _stacks(steps: Sequence[Step], tallest: int) -> list[_Block]:
    """The steps in stacks of nearly the same height."""
    count = -(-len(steps) // tallest)
    height = -(-len(steps) // count)
    return [tuple(steps[start : start + height]) for start in range(0, len(steps), height)]


def _deepest_inside(drawn: Sequence[tuple[_Block, _Outline]]) -> list[tuple[_Block, _Outline]]:
    """The blocks in an order that keeps the drawing narrow: those that reach down furthest in the middle."""
    by_depth = sorted(drawn, key=lambda one: max(one[1]))
    return [*by_depth[0::2], *reversed(by_depth[1::2])]


def _join(outline: _Outline, other: _Outline, shift: float) -> None:
    """Let the outline enclose another one, moved to the right."""
    for row, (left, right) in other.items():
        known = outline.get(row, (left + shift, right + shift))
        outline[row] = min(known[0], left + shift), max(known[1], right + shift)


def _top_link(down: Sequence[Point], box: Rectangle) -> Link:
    end = Point(box.middle.x, box.y)
    line = _straightened([*down, Point(end.x, down[-1].y), end])
    return Link(line, _label(Point(end.x, end.y - (LINK - BUS + TIP) / 2)))


def _side_link(down: Sequence[Point], box: Rectangle, arrival: float) -> Link:
    end = Point(box.x, box.middle.y)
    line = _straightened([*down, Point(arrival, down[-1].y), Point(arrival, end.y), end])
    return Link(line, _label(Point((arrival + end.x - TIP) / 2, end.y)))


def _label(centre: Point) -> Rectangle:
    return Rectangle(
        x=centre.x - LABEL_WIDTH / 2, y=centre.y - LABEL_HEIGHT / 2, width=LABEL_WIDTH, height=LABEL_HEIGHT
    )


def _readers(plan: Plan) -> dict[str | None, tuple[Step, ...]]:
    names: dict[str | None, list[Step]] = {None: [], **{step.tier.name: [] for step in plan.steps}}
    for step in plan.steps:
        names[step.reads].append(step)
    return {name: tuple(steps) for name, steps in names.items()}


def _bands(plan: Plan) -> dict[str | None, int]:
    """The band of each tier, never above that of its parent; the raw rows' own is 0."""
    bands: dict[str | None, int] = {None: 0}
    for step in plan.steps:
        own = 1 + sum(_length(step.tier) >= limit for _, limit in GRAINS)
        bands[step.tier.name] = max(own, bands[step.reads])
    return bands


def _length(tier: Tier) -> float:
    """How long a tier's windows are; those that grow count as long as they become, slices as on average."""
    if tier.range_s is None or tier.slide_s is None:
        return float(1 / tier.rate)
    return 2 * tier.range_s - tier.slide_s if isinstance(tier.window, CumulateWindow) else tier.range_s


def _grain_name(band: int) -> str:
    return ("events", *(name for name, _ in GRAINS), "years")[band]


def _straightened(line: Sequence[Point]) -> tuple[Point, ...]:
    """The line without points that it passes anyway."""
    kept = [line[0]]
    for point in line[1:]:
        if len(kept) > 1 and (kept[-2].x == kept[-1].x == point.x or kept[-2].y == kept[-1].y == point.y):
            kept.pop()
        kept.append(point)
    return tuple(kept)
