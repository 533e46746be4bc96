"""Spark's daemon of Python workers, `pyspark.daemon`, with the packages imported that each worker would import."""

from __future__ import annotations

import confluent_kafka  # noqa: F401
import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
