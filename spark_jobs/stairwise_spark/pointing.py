"""Which aggregates may have met an error of values: Spark does not say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from stairwise.aggregate import Primitive
from stairwise.plan import Plan
from stairwise_spark.errors import CONDITIONS_OF_VALUES, OVERFLOWS, RunError
from stairwise_spark.source_checks import expressions


@contextmanager
def pointing(plan: Plan) -> Generator[None]:
    """Within it, the hint of an error of values names the aggregates that may have met it."""
    try:
        yield
    except RunError as error:
        suspects = _suspects(plan, str(error.data.get("condition")))
        if suspects:
            error.hint = f"{error.hint.removesuffix('.')}; it may be {' or '.join(suspects)}."
        raise


def _suspects(plan: Plan, name: str) -> list[str]:
    """The aggregates that may fail by a condition of Spark: all that compute, and where it is an overflow, all sums."""
    if plan.declaration is None or name not in CONDITIONS_OF_VALUES:
        return []
    return [
        f"{result}: {aggregate}"
        for result, aggregate in plan.declaration.aggregates
        if any(not text.isidentifier() for text in expressions(aggregate))
        or (name in OVERFLOWS and any(partial.primitive is Primitive.SUM for partial in aggregate.partials))
    ]
