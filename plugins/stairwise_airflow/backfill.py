"""A DAG that fills history: a range in a few chunks, one Spark application each, as often as it takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import DAG, BaseOperator, Context, Param
from airflow.sdk.definitions.mappedoperator import OperatorPartial
from airflow.sdk.definitions.param import ParamsDict

from stairwise import Rollup
from stairwise.duration import Duration
from stairwise.errors import DeclarationError
from stairwise.instant import format_instant, parse_instant
from stairwise.windowing import Interval
from stairwise_airflow.assets import assets_of
from stairwise_airflow.chunking import ROWS_PER_CHUNK, chunks
from stairwise_airflow.declarations import Declared, declared
from stairwise_airflow.errors import refusal
from stairwise_airflow.operators import RollupBackfillOperator

_PATIENCE = {"retries": 2, "retry_delay": timedelta(minutes=1)}


class RollupChunksOperator(BaseOperator):
    """Cuts the range of the run into chunks; its result is what a mapped task takes.

    Args:
        rollup: The declaration.
        chunk: The length of a chunk, such as ``30d``; None: by rows.
        rows_per_chunk: So many rows by the declaration's estimates, where `chunk` is None.
        newest_first: Whether the last chunk comes first.
        kwargs: What every operator takes.
    """

    def __init__(
        self,
        *,
        rollup: Declared,
        chunk: str | None = None,
        rows_per_chunk: int = ROWS_PER_CHUNK,
        newest_first: bool = True,
        **kwargs: Any,  # noqa: ANN401 - what every operator takes
    ) -> None:
        super().__init__(**kwargs)
        self.declaration: Rollup = declared(rollup)
        self.chunk = None if chunk is None else Duration.parse(chunk)
        self.rows_per_chunk = rows_per_chunk
        self.newest_first = newest_first

    def execute(self, context: Context) -> list[dict[str, str]]:
        """The chunks, in the order in which they are to be filled."""
        params = context["params"]
        try:
            span = Interval(parse_instant(str(params["start"])), parse_instant(str(params["end"])))
        except DeclarationError as error:
            raise refusal(error.message, error.hint) from error
        if span.start >= span.end:
            raise refusal(f"the range from {params['start']} to {params['end']} is empty.", "let end be later.")
        found = chunks(self.declaration, span, self.chunk, self.rows_per_chunk)
        self.log.info("%s: %s chunks", self.declaration.name, len(found))
        ordered = found[::-1] if self.newest_first else found
        return [{"start": format_instant(each.start), "end": format_instant(each.end)} for each in ordered]


def backfill_dag(
    rollup: Declared,
    *,
    dag_id: str | None = None,
    conn_id: str | None = None,
    chunk: str | None = None,
    rows_per_chunk: int = ROWS_PER_CHUNK,
    newest_first: bool = True,
    pool: str | None = None,
    chunks_at_once: int = 1,
    **kwargs: Any,  # noqa: ANN401 - what the operator takes
) -> DAG:
    """A DAG without a schedule that asks for a range, and fills it; what is done already is not done again.

    >>> from stairwise import Source
    >>> trips = Rollup(name="trips", source=Source(table="trips", time="at"), aggregates={"n": "count()"},
    ...                windows=["1h", "day"], target="lake/out")
    >>> dag = backfill_dag(trips, conn_id="spark_default")
    >>> dag.dag_id, list(dag.task_ids), list(dag.params)
    ('trips_backfill', ['chunks', 'backfill'], ['start', 'end'])

    Args:
        rollup: A :class:`stairwise.Rollup`, its YAML, or its file; a relative path begins in the caller's folder.
        dag_id: The name of the DAG; None: the rollup's, and ``_backfill``.
        conn_id: The Spark connection; None: as configured.
        chunk: The length of a chunk, such as ``30d``; None: by rows.
        rows_per_chunk: So many rows by the declaration's estimates, where `chunk` is None.
        newest_first: Whether the last chunk comes first.
        pool: The pool that the chunks run in; None: the default one.
        chunks_at_once: So many chunks run side by side.
        kwargs: What :class:`RollupOperator` takes.
    """
    found = declared(rollup, Path(inspect.stack(0)[1].filename).parent)
    with _asking_for_a_range(found, dag_id) as dag:
        cut = RollupChunksOperator(
            task_id="chunks", rollup=found, chunk=chunk, rows_per_chunk=rows_per_chunk, newest_first=newest_first
        )
        # So that what the user says wins.
        given = _PATIENCE | ({} if pool is None else {"pool": pool}) | kwargs
        _filling(found, conn_id, chunks_at_once, given).expand_kwargs(cut.output)
    return dag


def _asking_for_a_range(rollup: Rollup, dag_id: str | None) -> DAG:
    """A DAG that nothing but a user starts, who says from when to when."""
    return DAG(
        dag_id=f"{rollup.name}_backfill" if dag_id is None else dag_id,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        description=f"Fills the history of {rollup.name}, a range in chunks.",
        tags=["stairwise"],
        params=ParamsDict(
            {
                "start": _instant("Fill the windows that end after this instant"),
                "end": _instant("and not after this one."),
            }
        ),
        render_template_as_native_obj=False,
    )


def _filling(rollup: Rollup, conn_id: str | None, at_once: int, given: Mapping[str, Any]) -> OperatorPartial:
    """The task that is mapped over the chunks; a mapped task keeps plain arguments, so it has the text."""
    text = rollup.to_yaml()
    return RollupBackfillOperator.partial(
        task_id="backfill",
        rollup=text,
        doc_yaml=text,
        conn_id=conn_id,
        outlets=assets_of(rollup),
        max_active_tis_per_dagrun=at_once,
        map_index_template="{{ task.start }} to {{ task.end }}",
        **given,
    )


def _instant(description: str) -> Param:
    """A date picker that has to be used."""
    return Param(None, type="string", format="date-time", description=description)
