"""The program for `spark-submit`: one job, with the arguments of `barnabas pipeline run`.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 .../barnabas/pipeline/submit.py \
        etl --bootstrap HOST:PORT --config job.toml --once
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # spark-submit puts this directory at the head of the path: the one that has the package barnabas takes its place.
    sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)
    sys.argv[1:1] = ["pipeline", "run"]
    runpy.run_module("barnabas", run_name="__main__")
