"""The one Spark session of all tests: a JVM costs seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from stairwise_spark.session import SessionOptions, open_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    # It works for many minutes, over few rows: the full compiler pays, many tasks do not.
    conf = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        # What it remembers of thousands of queries would fill it.
        "spark.sql.ui.retainedExecutions": "5",
        "spark.ui.retainedJobs": "5",
        "spark.ui.retainedStages": "5",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = open_session(SessionOptions(master="local[2]", conf=tuple(conf.items())))
    yield session
    session.stop()
