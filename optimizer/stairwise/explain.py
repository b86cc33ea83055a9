"""A plan as text: what it costs, beside what others would, and how every tier is computed.

The text explains itself: each word in it that is ours stands in the list at its end, and no other words do. No line is
longer than ``WIDTH``, whatever the user named things and however deep the hierarchy is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from stairwise.network import Number
from stairwise.plan import Plan, Step
from stairwise.quantity import beside, quantity, share, size
from stairwise.tiers import How, Kind
from stairwise.wording import (
    NO_BREAK,
    Prices,
    bound,
    columns,
    helper_meaning,
    kept_together,
    label,
    one_pass,
    printable,
    remarks,
    rivals,
    sentence,
    sharing_meaning,
    shortened,
    source,
    summary,
    technique,
    verdict,
    way,
)

WIDTH = 100
MARGIN = 3  # columns for one level of a tree
DEEPEST = 9  # levels of one tree; what is deeper gets a tree of its own below
BAR_WIDTH = 24
RIVAL_FRAME = 21  # of a line with a bar: the name, and what is between the columns
EIGHTHS = " ▏▎▍▌▋▊▉"

COST_HEADINGS = {"s": "seconds", "reads": "reads", "reads/day": "reads/day"}
CELLS = 5  # how, rows, size, cost, share
_TAGS = {Kind.DECLARED: "", Kind.FACTOR: " (helper)", Kind.COMPOSITE: " (helper, mixed)"}


class Style(Enum):
    """How a piece of text stands out on a terminal; the words alone say everything too."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    GOOD = "32"
    OPEN = "33"
    INVENTED = "36"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text in one style."""

    text: str
    style: Style = Style.PLAIN


Line = tuple[Piece, ...]


def explain(plan: Plan, *, is_colored: bool = False) -> str:
    """The plan as text of at most 100 columns, for people who have not read a manual.

    With ``is_colored``, for a terminal that understands ANSI colours.
    """
    prices = Prices.of(plan)
    sections = [
        _headline(plan, prices),
        _comparison(plan, prices),
        *_hierarchy(plan, prices),
        *_small_print(plan, prices),
    ]
    blocks = ("\n".join(_rendered(line, is_colored=is_colored) for line in section) for section in sections if section)
    return "\n\n".join(blocks) + "\n"


def _rendered(line: Line, *, is_colored: bool) -> str:
    if not is_colored:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(map(_painted, line)).rstrip()


def _painted(piece: Piece) -> str:
    """The text in its colour, the space around it in none."""
    inner = piece.text.strip(" ")
    if not inner or not piece.style.value:
        return piece.text
    return piece.text.replace(inner, f"\x1b[{piece.style.value}m{inner}\x1b[0m")


def _wrapped(text: str, first: str, rest: str, style: Style = Style.PLAIN) -> list[Line]:
    """The text in lines behind a margin; the margin itself keeps the quiet style."""
    room = WIDTH - max(columns(first), columns(rest))
    wrapped = textwrap.wrap(kept_together(printable(text)), room)
    rows = [shortened(row.replace(NO_BREAK, " "), room) for row in wrapped]
    return [(Piece(rest if number else first, Style.QUIET), Piece(row, style)) for number, row in enumerate(rows)]


def _headline(plan: Plan, prices: Prices) -> list[Line]:
    price = summary(plan, prices)
    name = shortened(printable(plan.rollup), WIDTH - columns(price) - 2)
    style = Style.GOOD if plan.totals.is_proven_optimal else Style.OPEN
    return [
        (Piece(f"{name}: {price}", Style.STRONG),),
        *_wrapped(verdict(plan, prices), "", ""),
        *_wrapped(bound(plan, prices), "", "", style),
    ]


def _comparison(plan: Plan, prices: Prices) -> list[Line]:
    """The prices of other plans as bars; nothing where they are all the same."""
    rows = rivals(plan)
    if not rows:
        return []
    most = max(cost for _, cost, _ in rows)
    texts = [prices.text(cost) for _, cost, _ in rows]
    differences = [beside(cost, plan.totals.total) if about else "" for _, cost, about in rows]
    price_width, difference_width = max(map(len, texts)), max(map(len, differences))
    widest = max(len(about) for _, _, about in rows)
    room = min(BAR_WIDTH, WIDTH - RIVAL_FRAME - price_width - difference_width - widest)
    return [
        (
            Piece(f"  {name:<11}  {text:>{price_width}}  ", Style.PLAIN if about else Style.STRONG),
            Piece(f"{_bar(cost, most, room):<{room}}  ", Style.QUIET if about else Style.GOOD),
            Piece(f"{difference:<{difference_width}}  {about}", Style.QUIET),
        )
        for (name, cost, about), text, difference in zip(rows, texts, differences, strict=True)
    ]


def _bar(cost: Number, most: Number, room: int) -> str:
    eighths = max(1, round(float(Fraction(cost) / Fraction(most)) * room * 8))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One line of the table, and the prose under it, behind a margin of its own."""

    name: str
    margin: str = ""
    tag: str = ""
    cells: tuple[str, ...] = ("",) * CELLS
    prose: str = ""
    below: str = ""

    def name_within(self, width: int) -> str:
        """The name, as far as there is room for it."""
        return shortened(self.name, width - columns(self.margin + self.tag))

    def details(self, width: int) -> list[Line]:
        """The prose in lines; a name that the table had to cut is given in full."""
        is_cut = self.name_within(width) != self.name
        text = f"In full: {self.name}. {self.prose}" if is_cut else self.prose
        return _wrapped(text, self.below, self.below, Style.QUIET)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """A tier's place: what stands before it and below it, and whether its readers get a tree of their own."""

    step: Step
    margin: str
    below: str
    is_end: bool


def _hierarchy(plan: Plan, prices: Prices) -> Iterator[list[Line]]:
    """The tree of tiers as a table, and a further one for each tier below which it would get too deep."""
    trees = list(_trees(plan, prices))
    heading = _Row(name="", cells=("how", "rows", "size", COST_HEADINGS[prices.unit], "share"))
    total = _Row(name="total", cells=_sums(plan, prices))
    widths = _widths([heading, total, *(row for tree in trees for row in tree)])
    for number, tree in enumerate(trees):
        lines = [] if number else [_aligned(heading, widths, Style.QUIET)]
        for row in tree:
            lines += [_aligned(row, widths), *row.details(widths[0])]
        if number == len(trees) - 1:
            rule = "─" * (sum(widths) + 2 * sum(map(bool, widths[1:])))
            lines += [(Piece(rule, Style.QUIET),), _aligned(total, widths, Style.STRONG)]
        yield lines


def _widths(rows: Sequence[_Row]) -> tuple[int, ...]:
    """The width of each column, 0 for one without a number; the names get what the others leave."""
    cells = [max(columns(row.cells[number]) for row in rows) for number in range(CELLS)]
    known = [any(row.cells[number] for row in rows[1:]) for number in range(CELLS)]
    others = [width if is_known else 0 for width, is_known in zip(cells, known, strict=True)]
    room = WIDTH - sum(width + 2 for width in others if width)
    return min(room, max(columns(row.margin + row.name + row.tag) for row in rows)), *others


def _aligned(row: _Row, widths: Sequence[int], style: Style = Style.PLAIN) -> Line:
    name = row.name_within(widths[0])
    blank = " " * (widths[0] - columns(row.margin + name + row.tag))
    first, *numbers = (f"  {cell}" for cell in _padded(row.cells, widths[1:]))
    name_style = Style.STRONG if not row.cells[0] else Style.INVENTED if row.tag else style
    return (
        Piece(row.margin, Style.QUIET),
        Piece(name + row.tag, name_style),
        Piece(blank),
        Piece(first, Style.QUIET),
        Piece("".join(numbers), style),
    )


def _padded(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The words to the left of their column, the numbers to the right of theirs."""
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if width:
            yield " " * (width - columns(cell)) + cell if number else cell + " " * (width - columns(cell))


def _trees(plan: Plan, prices: Prices) -> Iterator[list[_Row]]:
    """The tree below the raw rows, then those below tiers at whose depth a tree ends."""
    where = source(plan)
    first = _Row(name=f"raw rows of {where}" if where else "raw rows")
    waiting: list[tuple[_Row, str | None]] = [(first, None)]
    for root, name in waiting:
        rows = [root]
        for branch in _branches(plan, name, ""):
            rows.append(_row(plan, prices, branch))
            if branch.is_end:
                again = _Row(name=label(branch.step.tier), tag=" (continued)")
                waiting.append((again, branch.step.tier.name))
        yield rows


def _branches(plan: Plan, name: str | None, margin: str) -> Iterator[_Branch]:
    """The tiers below one, each before its readers, as deep as one tree goes."""
    readers = plan.readers(name)
    for step in readers:
        is_last = step is readers[-1]
        below = margin + ("   " if is_last else "│  ")
        is_read = bool(plan.readers(step.tier.name))
        is_end = is_read and len(below) >= MARGIN * DEEPEST
        inner = below + ("│  " if is_read and not is_end else "   ")
        yield _Branch(step=step, margin=margin + ("└─ " if is_last else "├─ "), below=inner, is_end=is_end)
        if not is_end:
            yield from _branches(plan, step.tier.name, below)


def _row(plan: Plan, prices: Prices, branch: _Branch) -> _Row:
    step = branch.step
    tier, cost = step.tier, step.cost
    parent = None if step.reads is None else plan.step(step.reads).tier
    sentences = [*remarks(plan, step), *(["Its readers stand further below."] if branch.is_end else [])]
    return _Row(
        margin=branch.margin,
        name=label(tier),
        tag=_TAGS[tier.kind],
        cells=(
            way(tier, parent, step.how),
            "" if cost.rows_written is None else quantity(round(cost.rows_written)),
            "" if cost.bytes_written is None else size(cost.bytes_written),
            prices.number(cost.total),
            share(cost.total, plan.totals.total),
        ),
        prose=" ".join(sentences),
        below=branch.below,
    )


def _sums(plan: Plan, prices: Prices) -> tuple[str, ...]:
    rows = [step.cost.rows_written for step in plan.steps]
    sizes = [step.cost.bytes_written for step in plan.steps]
    return (
        "",
        "" if None in rows else quantity(round(sum(row for row in rows if row is not None))),
        "" if None in sizes else size(sum(taken for taken in sizes if taken is not None)),
        prices.number(plan.totals.total),
        "",
    )


def _small_print(plan: Plan, prices: Prices) -> Iterator[list[Line]]:
    """What the words mean that stand above, what was asked of the planner, and what was assumed."""
    search = plan.search
    asked = (
        f"--algorithm {search.algorithm.value} --tiers {search.tiers_allowed.value} "
        f"--cost-model {search.cost_model.value}"
    )
    terms = (
        ("cost", f"{prices.explanation}."),
        *_terms(plan),
        *(("one pass", one_pass(plan, each)) for each in plan.passes()),
        ("aggregates", f"{sharing_meaning(search.semantics)}."),
        ("planner", f"planned with {asked}."),
    )
    meanings = (line for term, meaning in terms for line in _wrapped(meaning, f"  {term:<11}  ", " " * 15))
    yield [(Piece("In words", Style.STRONG),), *meanings]
    if plan.notes:
        notes = (line for note in plan.notes for line in _wrapped(sentence(note), "  · ", "    "))
        yield [(Piece("Assumed" if plan.measured is None else "Measured and assumed", Style.STRONG),), *notes]


def _terms(plan: Plan) -> Iterator[tuple[str, str]]:
    kinds = {step.tier.kind for step in plan.steps}
    hows = {step.how for step in plan.steps}
    if rivals(plan):
        yield "paper-1, -3", "plans by the published method 'Factor Windows', without and with its helper windows."
    if kinds & {Kind.FACTOR, Kind.COMPOSITE}:
        yield "helper", f"{helper_meaning(plan)}."
    if Kind.COMPOSITE in kinds:
        yield "mixed", "its slices differ in length, for it cuts time wherever one of its readers does."
    if How.DISJOINT in hows:
        yield "slice", "the partial results of one piece of time; merged, they give what the raw rows would."
    if How.OVERLAPPING in hows:
        yield "overlapping", "windows that share some time; results like a minimum may count it twice."
    if How.VALUES in hows:
        yield "values", "each distinct value of a slice with its count, from which exact results can be had."
    if How.EQUAL_RANGE in hows:
        yield "keeps", "the results are there already, in a tier whose equally long windows begin more often."
    yield from dict.fromkeys(technique(step.final) for step in plan.steps if step.final)
    if any(step.runner_up for step in plan.steps):
        yield "next best", "what else the tier could be computed from, and what it would cost from there."
