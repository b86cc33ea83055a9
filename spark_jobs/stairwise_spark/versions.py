"""The versions that were verified together; ``setup.cfg`` pins the same ones."""

from __future__ import annotations

SPARK = "4.2.0"
SCALA = "2.13"
DELTA = "4.4.0"
OLDEST_JAVA = 17

# 4.4.1 is not a choice: its JAR cannot be had.
DELTA_COORDINATE = f"io.delta:delta-spark_{SPARK.rpartition('.')[0]}_{SCALA}:{DELTA}"
"""Where Maven has Delta Lake for this Spark: ``io.delta:delta-spark_4.2_2.13:4.4.0``."""

DELTA_JARS = {
    DELTA_COORDINATE: "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    f"io.delta:delta-storage:{DELTA}": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
"""The two JARs of Delta Lake that suffice here, each with the SHA-256 of its content."""
