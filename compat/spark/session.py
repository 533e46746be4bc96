"""A Spark session that speaks Kafka: PySpark 4.0.0, the connector's jars, everything bound to loopback.

The jars come from `compat/spark/pom.xml` into the project's cache once; see `compat/jars.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from compat.jars import jars  # noqa: E402 - needs the path above

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POM = Path(__file__).with_name("pom.xml")


def spark_session(name: str, **settings: str) -> SparkSession:
    """A local session with two threads. `settings` are Spark's, with `_` for `.` (spark_sql_shuffle_partitions="2").

    Raises JarsUnavailableError when the connector's jars are neither cached nor to be had.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after the environment that it reads

    builder = (
        SparkSession.builder.appName(name)
        .master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in jars(POM)))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
