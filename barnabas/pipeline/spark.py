"""A SparkSession with the Kafka connector: jars, Java, and settings for one machine.

With `spark-submit` the cluster has configured all of this, and its session is used unchanged.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.pipeline.errors import MistakeError, PipelineError
from barnabas.pipeline.jars import PACKAGES, jar_settings
from barnabas.pipeline.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # an expression that fails on a record gives null instead of failing the job
    "spark.sql.streaming.stateStore.providerClass": ROCKS_DB,  # transformWithState needs it
}
"""SQL settings that the jobs need, also on a cluster."""


def session(
    name: str = "barnabas",
    *,
    master: str | None = None,
    packages: bool = False,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """Start a session, or use the existing one of this process.

    `packages`: download the connector with Spark (`spark.jars.packages`) instead of Maven. `settings`: additional
    settings, which take precedence. `log`: the file for Spark's log; a temporary file by default. MistakeError if
    there is no Java or no connector, PipelineError if Spark does not start.
    """
    _check_pyspark()
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _submitted(settings or {})
    given = dict(settings or {})
    os.environ["JAVA_HOME"] = str(find_java())
    jars = {} if _has_jars(given) else {"spark.jars.packages": PACKAGES} if packages else jar_settings()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    master = master or f"local[{os.cpu_count() or 2}]"
    own = EVERYWHERE | (_on_this_machine() if master.startswith("local") else {})
    return _started(name, master, own | jars | given, log or Path(tempfile.gettempdir()) / f"spark-{os.getpid()}.log")


def _check_pyspark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MistakeError("the pipeline needs Spark: pip install 'barnabas[spark]'") from None


def _has_jars(settings: Mapping[str, str]) -> bool:
    return "spark.jars" in settings or "spark.jars.packages" in settings


def _on_this_machine() -> dict[str, str]:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    parallel = str(min(8, os.cpu_count() or 2))
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": parallel,
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }


def _started(name: str, master: str, settings: Mapping[str, str], log: Path) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    began_at = log.stat().st_size if log.exists() else 0
    try:
        with _stderr_to(log):
            started = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise _not_started(log, began_at) from error
    started.sparkContext.setLogLevel("WARN")
    return started


def _submitted(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    taken = SparkSession.builder.getOrCreate()
    for key, value in {**EVERYWHERE, **settings}.items():
        if key.startswith("spark.sql."):
            taken.conf.set(key, value)
    return taken


def _not_started(log: Path, began_at: int) -> PipelineError:
    output = log.read_bytes()[began_at:].decode(errors="replace")
    if "unresolved dependency" in output or "UNRESOLVED DEPENDENCIES" in output:
        return MistakeError(
            "Spark could not download its Kafka connector (is there a network?): copy the jars to this machine and set "
            "BARNABAS_SPARK_JARS to their directory"
        )
    return PipelineError(f"Spark did not start; see {log}")


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Processes started in this context get `log` as their stderr: Spark's Java writes its log there."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
