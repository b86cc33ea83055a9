"""Declare time windows over events; get the cheapest hierarchy of tiers that computes them.

>>> from stairwise import Estimates, Rollup, Source, optimize
>>> trips = Rollup(
...     name="trips",
...     source=Source(table="lake.trips", time="pickup_at"),
...     keys=("zone_id",),
...     aggregates={"trips": "count()", "fares": "sum(fare)"},
...     windows=("5m", "1h", "day in Europe/Paris"),
...     target="lake/rollups/trips",
...     estimates=Estimates(rows_per_day=20_000_000, distinct_keys=260),
... )
>>> [(step.tier.name, step.reads) for step in optimize(trips).steps]
[('5m', None), ('1h', '5m'), ('day_in_europe_paris', '1h')]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stairwise.aggregate import Aggregate, Sharing
from stairwise.errors import StairwiseError
from stairwise.names import Form as _Form
from stairwise.options import Algorithm, Options, Pricing, TiersAllowed
from stairwise.rollup import Catalog, DeclaredWindow, Estimates, Rollup, Source

if TYPE_CHECKING:
    from stairwise.plan import Plan

__all__ = [
    "Aggregate",
    "Algorithm",
    "Catalog",
    "DeclaredWindow",
    "Estimates",
    "Options",
    "Pricing",
    "Rollup",
    "Sharing",
    "Source",
    "StairwiseError",
    "TiersAllowed",
    "optimize",
]

_ROLLUP = _Form(
    types=(Rollup,),
    wanted="a Rollup",
    hint="Rollup.from_file reads one from a file, Rollup.from_yaml from a text.",
)
_OPTIONS = _Form(types=(Options,), wanted="a value of Options", hint="give one, such as Options(eta=10).")


def __dir__() -> list[str]:
    """The public names, without the modules that they come from."""
    return __all__


def optimize(rollup: Rollup, options: Options | None = None) -> Plan:
    """The cheapest hierarchy of tiers that is known for a rollup, with its price and a bound on any other's.

    The planner is imported when it is first asked: most programs only declare.
    """
    _ROLLUP.take(rollup, "rollup")
    _OPTIONS.take(Options() if options is None else options, "options")
    from stairwise.keeping import check_kept
    from stairwise.pipeline import plan_workload
    from stairwise.workload import Workload

    return check_kept(plan_workload(Workload.of(rollup), options or Options()))
