"""A Spark session with the Kafka connector of PySpark 4.0.0, bound to the loopback."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.spark.session.spark import move_artifacts
from tests.support.jvm.jars import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POM = Path(__file__).resolve().parents[3] / "barnabas" / "spark" / "session" / "pom.xml"


def spark_session(name: str = "compat", **settings: str) -> SparkSession:
    """Start or get the session of this process. In settings, two underscores stand for a dot."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    from pyspark.sql import SparkSession

    own = {
        "spark.jars": ",".join(str(jar) for jar in jars(POM)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in (own | {key.replace("__", "."): value for key, value in settings.items()}).items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    move_artifacts(started)
    return started
