"""The versions that were verified together; ``setup.cfg`` pins the same ones."""

from __future__ import annotations

SPARK = "4.2.0"
SCALA = "2.13"
DELTA = "4.4.0"
OLDEST_JAVA = 17

# 4.4.1 is not a choice: its JAR cannot be had.
DELTA_COORDINATE = f"io.delta:delta-spark_{SPARK.rpartition('.')[0]}_{SCALA}:{DELTA}"
"""Where Maven has Delta Lake for this Spark: ``io.delta:delta-spark_4.2_2.13:4.4.0``."""
