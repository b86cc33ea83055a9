"""A plan as one word, for command lines that take nothing else: clusters limit an argument to some thousand bytes."""

from __future__ import annotations

import binascii
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from stairwise.codec import decode_plan, encode_plan, to_json
from stairwise.errors import CodecError
from stairwise.plan import Plan

_PREFIX = "plan:"
_MOST_BYTES = 16_000_000  # a plan of a thousand tiers has a tenth of it


def pack(plan: Plan) -> str:
    """The plan as a word of letters, digits, ``-``, ``_`` and ``=``: the same plan, the same word."""
    return _PREFIX + urlsafe_b64encode(zlib.compress(to_json(encode_plan(plan)).encode(), 9)).decode()


def unpack(word: str) -> Plan:
    """The plan that a word holds.

    Raises:
        CodecError: It holds none, or one that this version cannot read.
    """
    if not word.startswith(_PREFIX):
        raise _refusal(f"it does not begin with '{_PREFIX}'")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(urlsafe_b64decode(word.removeprefix(_PREFIX)), _MOST_BYTES).decode()
    except (binascii.Error, ValueError, zlib.error) as error:
        raise _refusal(f"it was changed on its way ({error})") from error
    if not unpacking.eof:
        raise _refusal("it was cut short, or is too long")
    return decode_plan(text)


def _refusal(why: str) -> CodecError:
    return CodecError(f"a packed plan: {why}.", hint="hand the word over as it is, as one argument.")
