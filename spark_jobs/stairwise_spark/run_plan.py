"""What ``spark-submit`` runs: ``run_plan.py COMMAND PLAN [options]``; see :mod:`stairwise_spark.launch`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the folder of this file first, where its neighbours would be modules of their own.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from stairwise_spark.launch import main

    sys.exit(main(sys.argv[1:]))
