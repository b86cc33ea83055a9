"""What a verification came to, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stairwise.json_fields import Json
from stairwise.quantity import counted, quantity
from stairwise.wording import printable
from stairwise_spark.compared import Difference
from stairwise_spark.status_text import instant
from stairwise_spark.verify import Proof

_LONGEST = 120
_COMPARED = {
    "witness": "how many rows each window of a key holds; no result was looked at",
    "full": (
        "every result and every state: doubles to 9 digits, sketches by what is exact, within their bounds, "
        "all others exactly"
    ),
}


def told(proof: Proof) -> str:
    """The differences, and what to do about them; or that there are none."""
    lines = [_verdict(proof), *(f"  {line}" for line in _facts(proof))]
    if proof.differences:
        lines += ["", *(f"  {_line(each)}" for each in proof.differences)]
        rest = proof.total - len(proof.differences)
        lines += [f"  and {quantity(rest)} more"] if rest > 0 else []
    lines += ["", *(f"  {hint}" for hint in proof.hints)] if proof.hints else []
    return "\n".join(lines)


def _verdict(proof: Proof) -> str:
    source = "the source" if proof.version is None else f"the source at version {proof.version}"
    if not proof.windows:
        return f"{proof.rollup}: nothing was verified"
    windows = counted(proof.windows, "window")
    if not proof.total:
        return f"{proof.rollup}: {windows} equal what {source} gives"
    return f"{proof.rollup}: {counted(proof.total, 'difference')} in {windows} between the tables and {source}"


def _facts(proof: Proof) -> Iterator[str]:
    yield f"compared: {_COMPARED[proof.check.mode]}"
    if proof.check.sample is not None:
        yield f"windows chosen at random; --seed {proof.check.seed} chooses the same again"
    width = max([4, *(len(each.name) for each in proof.tiers)])
    for each in proof.tiers:
        span = f"{instant(each.spans[0].start)} to {instant(each.spans[-1].end)}" if each.spans else ""
        found = counted(each.total, "difference") if each.total else "equal" if each.windows else "not verified"
        yield f"{each.name:{width}}  {counted(each.windows, 'window'):>16}  {found:<16}  {span}".rstrip()
    yield f"{quantity(proof.seconds)} s"


def _line(each: Difference) -> str:
    keys = ", ".join(f"{name}={_shown(value)}" for name, value in each.keys.items())
    where = f"{each.tier}  {instant(each.window.start)} to {instant(each.window.end)}  {printable(keys)}".rstrip()
    if each.column is not None:
        return f"{where}  {each.column}: stored {_shown(each.stored)}, recomputed {_shown(each.recomputed)}"
    if each.stored is None:
        return f"{where}  the row is missing: recomputed {_shown(each.recomputed)}"
    return f"{where}  the row is one too many: stored {_shown(each.stored)}"


def _shown(value: Json) -> str:
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
