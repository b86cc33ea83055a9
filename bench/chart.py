"""A table as a picture: one SVG that stands alone, for light and dark pages, in the look of the pictures of plans.

Each line is a column, each point a cell. Where the first column holds numbers it is an axis, else its cells stand side
by side and no line joins them. Lines differ in the shape of their points and in their dashes, never in colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count, pairwise, takewhile
from math import floor, log10
from types import MappingProxyType

from stairwise.theme import PALETTE, style_sheet

WIDTH, HEIGHT = 900, 440
"""How large a picture is, unless the names below its axis stand aslant."""
LEFT, RIGHT, TOP, BOTTOM = 72, 620, 84, 372
"""The edges of the field in which the points are; to its right stands what the lines are."""
LEGEND, LINE_HEIGHT, LETTER = 648, 24, 7.0
STEEP = 0.6
"""How far down a name aslant goes, for its length."""
FAR = 12
"""A scale is one of powers if its ends are so many times apart."""
NUMBER = re.compile(r"[\d,]*\.?\d+(?:e[+-]?\d+)?")
PLACE = re.compile(rf"{NUMBER.pattern} ?%?")
LOOKS = (
    ("declared", "", "M-4.5,-4.5h9v9h-9z"),
    ("factor", "7 4", "M0,-6L6,5H-6z"),
    ("composite", "2 3", "M0,-6L6,0L0,6L-6,0z"),
    ("good", "10 3 2 3", "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z"),
    ("ink", "4 4", "M0,6L6,-5H-6z"),
    ("quiet", "1 4", "M-6,-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"),
    ("line", "12 4", "M-6,-3h12v6h-12z"),
)
"""For each line a colour of the theme, its dashes, and the shape of its points."""
LIMIT = ("quiet", "2 2", "M-5,-1h10v2h-10z")
"""The look of what nobody can be better than."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What of a table is drawn.

    Attributes:
        title: What it shows, in a sentence.
        x: What the first column is.
        y: What the numbers are.
        lines: For each column that is drawn, by its header, what the line is called.
        limit: The one of them which nobody can be better than; empty if there is none.
    """

    title: str
    x: str
    y: str
    lines: Mapping[str, str]
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where numbers are on an axis.

    Attributes:
        least: The number at its beginning.
        most: The one at its end.
        start: The place of the first.
        end: That of the second.
        is_log: Whether equal ways are equal ratios.
    """

    least: float
    most: float
    start: float
    end: float
    is_log: bool

    @classmethod
    def over(cls, numbers: Sequence[float], start: float, end: float) -> Scale:
        """The scale that holds all of them; one of powers where they are far apart."""
        least, most = min(numbers), max(numbers)
        is_log = least > 0 and most >= FAR * least
        return cls(least if is_log else min(0.0, least), most if most > least else least + 1, start, end, is_log)

    def rounded(self) -> Scale:
        """From a number that has a name to another one."""
        marks = [*takewhile(lambda mark: mark <= self.least * (1 + 1e-9), self._steps())][-1:]
        top = next(mark for mark in self._steps() if mark >= self.most)
        return Scale(marks[0] if marks else self.least, top, self.start, self.end, self.is_log)

    def __call__(self, number: float) -> float:
        """The place of a number."""
        of: Callable[[float], float] = log10 if self.is_log else float
        part = (of(number) - of(self.least)) / (of(self.most) - of(self.least))
        return self.start + part * (self.end - self.start)

    def marks(self) -> list[float]:
        """Numbers to write beside the axis: few."""
        below = takewhile(lambda mark: mark <= self.most * (1 + 1e-9), self._steps())
        inside = [mark for mark in below if mark >= self.least * (1 - 1e-9)]
        decades = [mark for mark in inside if f"{mark:e}".startswith("1.0")]
        return decades if self.is_log and len(decades) > 3 else inside

    def _steps(self) -> Iterator[float]:
        """1, 2, 5, 10 and so on from below the scale, or multiples of a round number."""
        if self.is_log:
            for power in count(floor(log10(self.least)) - 1):
                yield from (digit * 10.0**power for digit in (1, 2, 5))
        rough = (self.most - self.least) / 6
        unit = 10.0 ** floor(log10(rough))
        step = next(digit * unit for digit in (1, 2, 5, 10) if digit * unit >= rough)
        for number in count(floor(self.least / step)):
            yield number * step


def read(cell: str) -> float | None:
    """The number that a cell begins with, if there is one.

    >>> [read(cell) for cell in ("1,440", "17.6 x", "0.1 %", "1.75e+04 x", "", "R-5")]
    [1440.0, 17.6, 0.1, 17500.0, None, None]
    """
    found = NUMBER.match(cell)
    return float(found[0].replace(",", "")) if found else None


def draw(chart: Chart, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The picture of a table.

    Raises:
        ValueError: A line of the chart is no column of the table, or none of them has a number.
    """
    lines = {name: [read(row[header.index(column)]) for row in rows] for column, name in chart.lines.items()}
    found = [number for line in lines.values() for number in line if number is not None]
    if not found:
        raise ValueError(f"'{chart.title}' has nothing to show.")
    cells = [row[0] for row in rows]
    across, down = _places(cells), Scale.over(found, BOTTOM, TOP).rounded()
    is_axis, is_aslant = _is_axis(cells), _is_aslant(cells, across)
    height = HEIGHT + round(STEEP * LETTER * max(map(len, cells))) * is_aslant
    limit = chart.lines.get(chart.limit, "")
    others = iter(LOOKS)
    looks = {name: LIMIT if name == limit else next(others) for name in lines}
    content = [
        f"<title>{escape(chart.title)}</title>",
        f"<desc>{escape(_described(chart, rows, lines))}</desc>",
        f"<style>{style_sheet()}\n{_strokes()}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        _text(LEFT - 48, 36, chart.title, "title"),
        _text(LEFT - 48, TOP - 18, chart.y, "quiet"),
        _text((LEFT + RIGHT) / 2, height - 12, chart.x, "quiet middle"),
        *_grid(down),
        *_names(cells, across, is_aslant=is_aslant),
        *(_line(looks[name], across, line, down, is_joined=is_axis) for name, line in lines.items()),
        *_legend(looks, lines),
    ]
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="stairwise" role="img" {size}>'
    return "\n".join([start, *content, "</svg>"]) + "\n"


def _is_axis(cells: Sequence[str]) -> bool:
    return all(PLACE.fullmatch(cell) for cell in cells)


def _places(cells: Sequence[str]) -> list[float]:
    """Where each row is, from left to right."""
    known = [number for cell in cells if (number := read(cell)) is not None] if _is_axis(cells) else []
    if len(set(known)) > 1:
        return [*map(Scale.over(known, LEFT + 16, RIGHT - 16), known)]
    step = (RIGHT - LEFT) / max(len(cells), 1)
    return [LEFT + step * (place + 0.5) for place in range(len(cells))]


def _described(chart: Chart, rows: Sequence[Sequence[str]], lines: Mapping[str, Sequence[float | None]]) -> str:
    """The picture in sentences, for people who cannot see it."""
    ends = "; ".join(
        f"{name}: {line[first]:g} at {rows[first][0]}, {line[last]:g} at {rows[last][0]}"
        for name, line in lines.items()
        for places in [[place for place, number in enumerate(line) if number is not None]]
        if places
        for first, last in [(places[0], places[-1])]
    )
    return f"{chart.y} against {chart.x}. {ends}."


def _strokes() -> str:
    """The colours of the theme as those of lines; a renderer without variables takes the light one."""
    rules = (
        f".stairwise .{name}-line {{ stroke: {PALETTE[name][0]}; stroke: var(--{name}); }}\n"
        f".stairwise .{name}-point {{ fill: {PALETTE[name][0]}; fill: var(--{name}); }}"
        for name in dict.fromkeys(look[0] for look in (*LOOKS, LIMIT))
    )
    grid = f".stairwise .grid {{ stroke: {PALETTE['band'][0]}; stroke: var(--band); stroke-width: 1; }}"
    return "\n".join([".stairwise .plotted { fill: none; stroke-width: 2; }", grid, *rules])


def _grid(down: Scale) -> Iterator[str]:
    for mark in down.marks():
        y = down(mark)
        yield f'<path class="grid" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
        yield _text(LEFT - 8, y + 4, _short(mark), "end quiet")
    yield f'<path class="link" d="M{LEFT},{TOP}V{BOTTOM}H{RIGHT}"/>'


def _is_aslant(cells: Sequence[str], across: Sequence[float]) -> bool:
    """Whether names side by side would touch."""
    ways = pairwise(sorted(across))
    return max(map(len, cells)) * LETTER > min((right - left for left, right in ways), default=RIGHT)


def _names(cells: Sequence[str], across: Sequence[float], *, is_aslant: bool) -> Iterator[str]:
    for cell, x in zip(cells, across, strict=True):
        yield f'<path class="link" d="M{x:.1f},{BOTTOM}v5"/>'
        if is_aslant:
            turned = f'transform="rotate(-40 {x:.1f} {BOTTOM + 16})"'
            yield f'<text x="{x:.1f}" y="{BOTTOM + 16}" class="end small" {turned}>{escape(cell)}</text>'
        else:
            yield _text(x, BOTTOM + 20, cell, "middle small")


def _line(
    look: tuple[str, str, str],
    across: Sequence[float],
    line: Sequence[float | None],
    down: Scale,
    *,
    is_joined: bool,
) -> str:
    colour, dashes, shape = look
    points = [(x, down(number)) for x, number in zip(across, line, strict=True) if number is not None]
    drawn = "".join(
        f'<path class="{colour}-point" d="{shape}" transform="translate({x:.1f} {y:.1f})"/>' for x, y in points
    )
    if not is_joined or len(points) < 2:
        return f"<g>{drawn}</g>"
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<g><polyline class="plotted {colour}-line" stroke-dasharray="{dashes}" points="{way}"/>{drawn}</g>'


def _legend(looks: Mapping[str, tuple[str, str, str]], lines: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """What the lines are, in the order of their ends."""

    def last(name: str) -> float:
        return next((number for number in reversed(lines[name]) if number is not None), 0.0)

    for place, name in enumerate(sorted(looks, key=last, reverse=True)):
        colour, dashes, shape = looks[name]
        y = TOP + 8 + LINE_HEIGHT * place
        yield f'<path class="plotted {colour}-line" stroke-dasharray="{dashes}" d="M{LEGEND - 14},{y}h28"/>'
        yield f'<path class="{colour}-point" d="{shape}" transform="translate({LEGEND} {y})"/>'
        yield _text(LEGEND + 22, y + 4, name, "")


def _short(number: float) -> str:
    """A number beside an axis.

    >>> [_short(number) for number in (0.05, 1.0, 2_000.0, 5e6)]
    ['0.05', '1', '2,000', '5 M']
    """
    return f"{number / 1e6:,.10g} M" if number >= 1e6 else f"{number:,.10g}"


def _text(x: float, y: float, text: str, class_: str) -> str:
    named = f' class="{class_}"' if class_ else ""
    return f'<text x="{x:g}" y="{y:.1f}"{named}>{escape(text)}</text>'


NO_CHARTS: Mapping[str, Chart] = MappingProxyType({})
