"""A plan as a picture: one SVG that stands alone, for light and dark pages, with its text as text.

Bands run from fine to coarse, a box is a tier, a line leads from a parent to the tier that reads it and carries its
price. What kind a tier is shows in its outline and in words, never by colour alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from html import escape

from stairwise.final_aggregation import Technique
from stairwise.layout import BOX_WIDTH, TIP, Band, Layout, Link, Rectangle, lay_out
from stairwise.plan import Plan, Step
from stairwise.quantity import beside, quantity, share, size
from stairwise.theme import style_sheet
from stairwise.tiers import Kind
from stairwise.wording import (
    NO_BREAK,
    Prices,
    bound,
    cuts,
    helper_meaning,
    kept_together,
    label,
    printable,
    remarks,
    rivals,
    scope,
    sentence,
    shortened,
    source,
    summary,
    technique,
    verdict,
    way,
)

GUTTER = 104  # to the left of the boxes, for the bands' names
EDGE = 24
HEADER_HEIGHT = 160
LEAST_WIDTH = 1_080
COLUMN_WIDTH = 500  # of the sentences, and of the bars beside them
LINE_HEIGHT = 18
FOOTER_LINE = 20
BOX_LINE = 16
MOST_LINES = 3  # of one text in a box
BOX_FRAME = 20  # what a box has above and below its lines
PADDING = 12  # inside of a box
BAR_LEFT, BAR_WIDTH = 180, 170
BOLD = 1.1  # how much wider than plain letters

_Texts = tuple[tuple[str, str], ...]

TAGS = {Kind.DECLARED: "", Kind.FACTOR: "helper", Kind.COMPOSITE: "mixed helper"}
ROUNDING = {Kind.DECLARED: 6, Kind.FACTOR: 18, Kind.COMPOSITE: 18}


def draw(plan: Plan) -> str:
    """The plan as an SVG document of its own: no scripts, no references, nothing that a name could break out of."""
    prices = Prices.of(plan)
    texts = {step.tier.name: _box_lines(plan, step) for step in plan.steps}
    layout = lay_out(plan, BOX_LINE * max(map(len, texts.values())) + BOX_FRAME)
    width = max(layout.width + GUTTER + EDGE, LEAST_WIDTH)
    footer_top = HEADER_HEIGHT + layout.height + EDGE
    lines = _footer_lines(plan, prices, width)
    height = footer_top + FOOTER_LINE * len(lines) + EDGE / 2
    name = printable(plan.rollup)
    return _element(
        "svg",
        _element("title", escape(f"Plan of {name}")),
        _element("desc", escape(" ".join(_description(plan, prices)))),
        _element("style", style_sheet()),
        _element("rect", class_="paper", width=width, height=height),
        *_header(plan, prices),
        *_bands(layout, width),
        *_tiers(plan, prices, layout, texts, GUTTER + (width - GUTTER - EDGE - layout.width) / 2),
        *_footer(lines, footer_top),
        xmlns="http://www.w3.org/2000/svg", class_="stairwise", role="img",
        width=width, height=height, viewBox=f"0 0 {_number(width)} {_number(height)}",
    )  # fmt: skip


def _element(tag: str, *content: str, **attributes: str | float) -> str:
    """An element; its content is markup already, its attributes are not."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else _number(value))}"'
        for key, value in attributes.items()
    )
    inner = "\n".join(content)
    is_long = "\n" in inner or len(content) > 1
    return f"<{tag}{written}>\n{inner}\n</{tag}>" if is_long else f"<{tag}{written}>{inner}</{tag}>"


def _text(x: float, y: float, text: str, class_: str = "") -> str:
    return _element("text", escape(text), x=x, y=y, **({"class_": class_} if class_ else {}))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _description(plan: Plan, prices: Prices) -> Iterator[str]:
    """The picture in sentences, for people who cannot see it."""
    yield f"{summary(plan, prices)}. {verdict(plan, prices)} {bound(plan, prices)}"
    for step in plan.steps:
        parent = "raw rows" if step.reads is None else label(plan.step(step.reads).tier)
        yield f"{label(step.tier)} reads {parent} for {prices.text(step.cost.total)}."


def _header(plan: Plan, prices: Prices) -> Iterator[str]:
    """The title and what the plan costs; beside it, bars for what others would."""
    yield _text(EDGE, EDGE + 22, _fitting(printable(plan.rollup), COLUMN_WIDTH, 22, BOLD), "title")
    lines = [f"{summary(plan, prices)}.", *_wrapped(verdict(plan, prices), COLUMN_WIDTH)]
    is_good = "good" if plan.totals.is_proven_optimal else "quiet"
    texts = [(line, "") for line in lines] + [(line, is_good) for line in _wrapped(bound(plan, prices), COLUMN_WIDTH)]
    for number, text in enumerate(texts):
        yield _text(EDGE, EDGE + 48 + LINE_HEIGHT * number, *text)
    rows = rivals(plan)
    most = max((Fraction(cost) for _, cost, _ in rows), default=Fraction(1))
    left = EDGE + COLUMN_WIDTH + EDGE
    for number, (name, cost, about) in enumerate(rows):
        y = EDGE + 22 + 22 * number
        length = max(1.0, float(Fraction(cost) / most) * BAR_WIDTH)
        compared = f" ({beside(cost, plan.totals.total)})" if about else ""
        yield _text(left + BAR_LEFT - 8, y, name, "end quiet" if about else "end")
        yield _element(
            "rect", class_="bar" if about else "good", x=left + BAR_LEFT, y=y - 11, width=length, height=14, rx=2
        )
        yield _text(left + BAR_LEFT + length + 8, y, f"{prices.text(cost)}{compared}", "quiet" if about else "")


def _bands(layout: Layout, width: float) -> Iterator[str]:
    for number, band in enumerate(layout.bands):
        yield from _band(band, width, "paper" if number % 2 else "band")


def _band(band: Band, width: float, ground: str) -> Iterator[str]:
    top = HEADER_HEIGHT + band.y
    yield _element("rect", class_=ground, y=top, width=width, height=band.height)
    yield _text(EDGE, top + EDGE, band.name, "name quiet")


def _tiers(plan: Plan, prices: Prices, layout: Layout, texts: Mapping[str, _Texts], left: float) -> Iterator[str]:
    """Lines, the prices on them, and the boxes, all as one group, so that its places are those of the layout."""
    links = [_link(layout.links[step.tier.name]) for step in plan.steps]
    labels = [_price(layout.links[step.tier.name], _short(prices, step)) for step in plan.steps]
    boxes = [_box(plan, prices, step, layout.boxes[step.tier.name], texts[step.tier.name]) for step in plan.steps]
    move = f"translate({_number(left)} {HEADER_HEIGHT})"
    yield _element("g", *links, *labels, _source(plan, layout.boxes[None]), *boxes, transform=move)


def _link(link: Link) -> str:
    """A line with its tip; the tip is drawn, for markers need names that are unique on a whole page."""
    *_, before, end = link.line
    points = " ".join(f"{_number(point.x)},{_number(point.y)}" for point in link.line)
    along = (TIP, 0) if before.y == end.y else (0, TIP)
    x, y = end.x - along[0], end.y - along[1]
    corners = f"{_number(end.x)},{_number(end.y)} " + " ".join(
        f"{_number(x + side * along[1] * 2 / 3)},{_number(y + side * along[0] * 2 / 3)}" for side in (-1, 1)
    )
    return _element("polyline", class_="link", points=points) + _element("polygon", class_="tip", points=corners)


def _price(link: Link, price: str) -> str:
    """What a line costs, on a patch that interrupts it."""
    place = link.label
    text = _fitting(price, place.width - 8, 12)
    width = max(_text_width(text, 12) + 8, 26)
    patch = _element(
        "rect", class_="label", x=place.middle.x - width / 2, y=place.y, width=width, height=place.height, rx=9
    )
    return patch + _text(place.middle.x, place.y + 13, text, "middle")


def _short(prices: Prices, step: Step) -> str:
    return prices.text(step.cost.total) if prices.unit == "s" else prices.number(step.cost.total)


def _source(plan: Plan, box: Rectangle) -> str:
    """The raw rows, and where they are."""
    outline = _element("rect", class_="tier raw", x=box.x, y=box.y, width=box.width, height=box.height)
    where = source(plan)
    lines = ["raw rows", *([_fitting(where, box.width - 2 * PADDING, 11)] if where else [])]
    first = box.middle.y + 5 - 8 * (len(lines) - 1)
    texts = (
        _text(box.middle.x, first + 17 * number, line, "small quiet middle" if number else "name middle")
        for number, line in enumerate(lines)
    )
    return _element("g", outline, *texts)


def _box_lines(plan: Plan, step: Step) -> _Texts:
    """What stands in a tier's box, line by line with its class: name and kind, how it is computed, what it holds."""
    parent = None if step.reads is None else plan.step(step.reads).tier
    way_there = f"{way(step.tier, parent, step.how)}{_technique(step)}"
    names = _lines(label(step.tier), 13, BOLD)
    tag = TAGS[step.tier.kind]
    has_own_line = tag and not _is_room_beside(names[0], tag)
    return (
        *((name, "name") for name in names),
        *([(tag, f"small {step.tier.kind.value}-ink")] if has_own_line else []),
        *((line, "small") for line in _lines(way_there, 11)),
        *((line, "small quiet") for line in _lines(_holdings(step) or _portion(plan, step), 11)),
    )


def _lines(text: str, font_size: float, weight: float = 1) -> list[str]:
    """The text in a few lines of a box; what does not fit into the last one loses its middle."""
    room = BOX_WIDTH - 2 * PADDING
    lines = _wrapped(text, room, font_size, weight)
    last = " ".join(lines[MOST_LINES - 1 :])
    return [*lines[: MOST_LINES - 1], *([_fitting(last, room, font_size, weight)] if last else [])]


def _is_room_beside(name: str, tag: str) -> bool:
    return _text_width(name, 13) * BOLD + 8 + _text_width(tag, 11) <= BOX_WIDTH - 2 * PADDING


def _box(plan: Plan, prices: Prices, step: Step, box: Rectangle, texts: _Texts) -> str:
    """A tier: its lines, and its share of the whole as a bar."""
    kind, left, room = step.tier.kind.value, box.x + PADDING, box.width - 2 * PADDING
    tag = TAGS[step.tier.kind]
    is_beside = tag and _is_room_beside(texts[0][0], tag)
    whole = Fraction(plan.totals.total)
    length = float(Fraction(step.cost.total) / whole) * room if whole else 0.0
    more = f"{label(step.tier)}: {prices.text(step.cost.total)}. {' '.join(remarks(plan, step))}"
    return _element(
        "g",
        _element("title", escape(more.strip())),
        _element(
            "rect", class_=f"tier {kind}", x=box.x, y=box.y, width=box.width, height=box.height,
            rx=ROUNDING[step.tier.kind],
        ),
        *(_text(left, box.y + 20 + BOX_LINE * number, *line) for number, line in enumerate(texts)),
        *([_text(box.x + box.width - PADDING, box.y + 20, tag, f"small end {kind}-ink")] if is_beside else []),
        _element("rect", class_=f"{kind}-ink", x=left, y=box.y + box.height - 8, width=max(length, 1), height=3),
    )  # fmt: skip


def _technique(step: Step) -> str:
    return (
        ""
        if step.final is None or step.final is Technique.DIRECT
        else f", {technique(step.final)[0].replace(' ', NO_BREAK)}"
    )


def _portion(plan: Plan, step: Step) -> str:
    """What stands in place of the rows where the model does not count them."""
    if step.tier.kind is Kind.COMPOSITE:
        return f"cuts every {cuts(step.tier, 3)}"
    return f"{share(step.cost.total, plan.totals.total) or '0 %'} of all costs"


def _holdings(step: Step) -> str:
    rows, taken = step.cost.rows_written, step.cost.bytes_written
    if rows is None:
        return ""
    return f"{quantity(round(rows))} rows{'' if taken is None else f', {size(taken)}'}"


def _footer_lines(plan: Plan, prices: Prices, width: float) -> list[tuple[Kind | None, str]]:
    """The legend of the kinds that occur, what the numbers mean, and what was assumed."""
    meanings = {
        Kind.DECLARED: "a window that was asked for",
        Kind.FACTOR: f"helper: {helper_meaning(plan)}",
        Kind.COMPOSITE: "mixed helper: a helper that cuts time wherever its readers do, into slices of any length",
    }
    kinds = {step.tier.kind for step in plan.steps}
    others = (
        "paper-1 and paper-3 are the planners of the paper 'Factor Windows', without and with its helpers; "
        f"no plan{scope(plan)} costs less than the lower bound."
    )
    sentences = [
        f"On each line what the tier costs: {prices.explanation}. The bar in a box is its share of the whole.",
        *([others] if rivals(plan) else []),
        *map(sentence, plan.notes),
    ]
    wrapped = (line for text in sentences for line in _wrapped(printable(text), width - 2 * EDGE))
    return [*((kind, meanings[kind]) for kind in Kind if kind in kinds), *((None, line) for line in wrapped)]


def _footer(lines: Iterable[tuple[Kind | None, str]], top: float) -> Iterator[str]:
    for number, (kind, line) in enumerate(lines):
        y = top + FOOTER_LINE * number
        if kind is not None:
            yield _element("rect", class_=kind.value, x=EDGE, y=y - 11, width=26, height=14, rx=ROUNDING[kind] / 3)
        yield _text(EDGE if kind is None else EDGE + 36, y, line, "quiet")


def _wrapped(text: str, room: float, font_size: float = 12, weight: float = 1) -> list[str]:
    """The text in lines that fit; at least one."""
    lines = [""]
    for word in kept_together(text).split(" "):
        longer = f"{lines[-1]} {word}".strip(" ")
        if _text_width(longer, font_size) * weight <= room:
            lines[-1] = longer
        else:
            lines.append(_fitting(word, room, font_size, weight))
    return [line.replace(NO_BREAK, " ") for line in lines if line] or [""]


def _fitting(text: str, room: float, font_size: float, weight: float = 1) -> str:
    return shortened(text, room, lambda part: _text_width(part, font_size) * weight)


def _text_width(text: str, font_size: float) -> float:
    """About how wide a text is, in a font on the wide side."""
    return font_size * sum(map(_character_width, text))


def _character_width(char: str) -> float:
    if char in f"iljtfrI.,:;'|!()[] {NO_BREAK}":
        return 0.4
    if char in "mwMW@%…—":
        return 1.0
    if ord(char) < 0x250:
        return 0.64 if char.islower() or char.isdigit() else 0.74
    return 0.0 if unicodedata.combining(char) else 1.1
