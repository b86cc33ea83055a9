"""The JSON Schemas of the documents that ``--json`` prints, as they ship in the package (draft 2020-12)."""

from __future__ import annotations

from importlib.resources import files

from stairwise.errors import UsageError

KINDS = ("apply", "constants", "diff", "drift", "error", "maintain", "plan", "run", "status", "verify", "why")
"""The kinds of documents: ``stairwise.plan/1`` is a plan."""


def schema(kind: str) -> str:
    r"""The text of the schema of one kind of document.

    >>> schema("plan").splitlines()[2]
    '  "title": "stairwise.plan/1",'

    Raises:
        UsageError: There is no such kind.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of document '{kind}'.", hint=f"there are {', '.join(KINDS)}.")
    return (files("stairwise") / "schemas" / f"{kind}.json").read_text(encoding="utf-8")
