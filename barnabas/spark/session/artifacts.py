"""Keeps Spark 4.0's directory of artifacts out of the working directory.

Spark creates `artifacts/` where the program was started, and leaves it there; where that directory is read-only the
first query fails. No setting changes it, so its lazy value is set before Spark computes it. If another version of
Spark has no such field, nothing is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWNER = "org.apache.spark.sql.artifact.ArtifactManager$"


def move_artifacts(spark: SparkSession) -> None:
    """Let Spark use a temporary directory of Java, which is deleted when it ends."""
    jvm = spark._jvm
    assert jvm is not None
    try:
        owner = jvm.java.lang.Class.forName(OWNER)
        value, is_computed = owner.getDeclaredField("artifactRootDirectory"), owner.getDeclaredField("bitmap$0")
        value.setAccessible(True)
        is_computed.setAccessible(True)
        if is_computed.get(None):
            return
        temporary = jvm.java.lang.System.getProperty("java.io.tmpdir")
        value.set(None, jvm.org.apache.spark.util.Utils.createTempDir(temporary, "spark-artifacts").toPath())
        is_computed.set(None, True)
    except Py4JError:
        return
