"""A plan survives as one word, and a word that is none is refused."""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64encode

import pytest

from stairwise import Rollup, Source, optimize
from stairwise.errors import CodecError
from stairwise.parcel import pack, unpack

TRIPS = Rollup(
    name="trips",
    source=Source(table="lake.trips", time="pickup_at", where="city = 'Zürich' AND note <> '\"'"),
    keys=["zone_id"],
    aggregates={"trips": "count()"},
    windows=["5m", "1h every 15m", "day in Europe/Paris"],
    target="lake/rollups/trips",
)


def test_a_plan_comes_back_and_its_word_is_plain() -> None:
    plan = optimize(TRIPS)
    assert unpack(pack(plan)) == plan
    assert re.fullmatch(r"plan:[A-Za-z0-9_=-]+", pack(plan))
    assert pack(plan) == pack(optimize(TRIPS))
    assert len(pack(plan)) < 3000


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("trips.yaml", "it does not begin with 'plan:'"),
        ("plan:AA", "it was changed on its way (Incorrect padding)"),
        ("plan:AAAA", "it was changed on its way (Error -3 while decompressing data: unknown compression method)"),
        (pack(optimize(TRIPS))[:-20], "it was cut short, or is too long"),
        ("plan:" + urlsafe_b64encode(zlib.compress(b" " * 16_000_001)).decode(), "it was cut short, or is too long"),
    ],
)
def test_another_word_is_refused(word: str, why: str) -> None:
    with pytest.raises(CodecError) as caught:
        unpack(word)
    assert str(caught.value) == f"a packed plan: {why}. Hint: hand the word over as it is, as one argument."
