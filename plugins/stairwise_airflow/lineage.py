"""What a run read and wrote, as OpenLineage has it; only asked for where its provider is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stairwise import Rollup
from stairwise.declared import Catalog, Layout
from stairwise_airflow.reports import Report

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import RunFacet


def lineage(rollup: Rollup, report: Report) -> OperatorLineage[Dataset, RunFacet]:
    """The source, and each table that was written with how much that was."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

    source = rollup.source.path or rollup.source.table
    read = InputStatisticsInputDatasetFacet(rowCount=report.rows_read, size=report.bytes_read)
    written: dict[str, list[int]] = {}
    for tier in report.tiers:
        if tier.rows and any(window.name == tier.name for window in rollup.windows):
            done = written.setdefault(_table(rollup, tier.name), [0, 0])
            done[0] += tier.rows
            done[1] += tier.bytes
    return OperatorLineage(  # pyright: ignore[reportUnknownArgumentType]  # of a version without types
        inputs=[InputDataset(*dataset(source), inputFacets={"inputStatistics": read})] if source else [],
        outputs=[
            OutputDataset(
                *dataset(table),
                outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=rows, size=size)},
            )
            for table, (rows, size) in written.items()
        ],
    )


def dataset(place: str) -> tuple[str, str]:
    """The namespace and the name of a path or of a table of the catalog, as OpenLineage names them.

    >>> dataset("s3://lake/trips/1h"), dataset("/lake/trips/1h"), dataset("db.trips")
    (('s3://lake', 'trips/1h'), ('file', '/lake/trips/1h'), ('spark_catalog', 'db.trips'))
    """
    address = urlsplit(place)
    if address.scheme and address.netloc:
        return f"{address.scheme}://{address.netloc}", address.path.strip("/") or "/"
    return ("file", address.path) if "/" in place else ("spark_catalog", place)


def _table(rollup: Rollup, tier: str) -> str:
    """The path or the name of the table that holds a declared tier."""
    is_shared = rollup.layout is Layout.ONE_TABLE
    if isinstance(rollup.target, Catalog):
        return f"{rollup.target.schema}.{rollup.name if is_shared else tier}"
    return rollup.target if is_shared else f"{rollup.target.rstrip('/')}/{tier}"
