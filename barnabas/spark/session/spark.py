"""A SparkSession with the Kafka connector: jars, Java, and settings for one machine.

Spark's own log, with the output of Java and of Python's workers, is a file. On one machine a failed task is tried
again, which Spark does in a cluster only. With `spark-submit` the cluster has configured all of this, and its session
is used unchanged.
"""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j import java_gateway
from py4j.protocol import Py4JError

from barnabas.spark.activity import saying
from barnabas.spark.errors import INSTALL, MistakeError, PipelineError
from barnabas.spark.session.jars import PACKAGES, jar_settings
from barnabas.spark.session.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# --- Spark's directory of artifacts

OWNER = "org.apache.spark.sql.artifact.ArtifactManager$"


def move_artifacts(spark: SparkSession) -> None:
    """Let Spark use a temporary directory of Java, which is deleted when it ends.

    Spark 4.0 creates `artifacts/` where the program was started, and leaves it there; where that directory is read-only
    the first query fails. No setting changes it, so its lazy value is set before Spark computes it. If another version
    of Spark has no such field, nothing is changed.
    """
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


# --- the session

ATTEMPTS = 4
"""How often a task is tried, as in a cluster (`spark.task.maxFailures`, which Spark ignores on one machine)."""
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.redaction.options.regex": "(?i)url|sasl[.]|ssl[.]",  # options of [security], in plans that are shown
    "spark.sql.ansi.enabled": "false",  # an expression that fails on a record gives null instead of failing the job
    "spark.sql.streaming.stateStore.providerClass": ROCKS_DB,  # transformWithState needs it
}
"""SQL settings that the jobs need, also on a cluster."""
_logs: list[Path] = []
"""The log of the session that was started last."""


def log_file() -> Path | None:
    """Spark's log; None if this process has started no session."""
    return _logs[-1] if _logs else None


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
    own_settings = dict(settings or {})
    os.environ["JAVA_HOME"] = str(find_java())
    jars: dict[str, str] = {}
    if not own_settings.keys() & {"spark.jars", "spark.jars.packages"}:
        jars = {"spark.jars.packages": PACKAGES} if packages else jar_settings()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    master = with_retries(master or f"local[{os.cpu_count() or 2}]")
    defaults = EVERYWHERE | (_on_this_machine() if master.startswith("local") else {})
    return _started(
        name, master, defaults | jars | own_settings, log or Path(tempfile.gettempdir()) / f"spark-{os.getpid()}.log"
    )


def check_machine() -> None:
    """MistakeError if this machine has no PySpark or no suitable Java; both are needed except with `spark-submit`."""
    _check_pyspark()
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        find_java()


def with_retries(master: str) -> str:
    """The master of one machine with the number of attempts of a task; another one unchanged."""
    local = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return master if local is None else f"local[{local[1] or 1},{ATTEMPTS}]"


def _check_pyspark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MistakeError(f"the pipeline needs Spark: {INSTALL}") from None


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
        "spark.python.authenticate.socketTimeout": "60s",  # a busy machine starts Python workers slowly
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }


def _started(name: str, master: str, settings: Mapping[str, str], log: Path) -> SparkSession:
    from pyspark.errors import PySparkException, PySparkRuntimeError
    from pyspark.sql import SparkSession

    from barnabas.spark.failures import sentence_of

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if SparkSession.getActiveSession() is not None:
        return builder.getOrCreate()
    began_at = log.stat().st_size if log.exists() else 0
    downloads = "downloading Spark's Kafka connector and " if "spark.jars.packages" in settings else ""
    try:
        _log_callbacks(log)
        with saying(f"{downloads}starting Spark", f"; its log is {log}"), _stderr_to(log), ended_if_interrupted():
            started = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise _not_started(log, began_at) from error
    except (PySparkException, Py4JError) as error:
        refused = sentence_of(error, "", of="with these settings")
        refused.log = log
        raise refused from error
    _logs.append(log)
    started.sparkContext.setLogLevel("WARN")
    move_artifacts(started)
    return started


@contextmanager
def ended_if_interrupted() -> Iterator[None]:
    """Kill what PySpark has started in this block if the block does not end normally.

    PySpark 4.0 would leave Java running without an owner. Java ignores SIGINT and SIGTERM: a terminal, `timeout` and
    systemd send them to all processes of a job, and Java must live until the job has stopped its queries. It ends when
    its stdin, which is a pipe of this process, is closed.
    """
    from pyspark import SparkContext
    from pyspark import java_gateway as launcher

    started: list[subprocess.Popen[bytes]] = []
    names = vars(launcher)
    original, connected = names["Popen"], SparkContext._gateway

    def start(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        if os.name == "posix":
            options["preexec_fn"] = _ignore_stop_signals  # PySpark's own ignores SIGINT only
        started.append(original(*command, **options))
        return started[-1]

    names["Popen"] = start
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        if SparkContext._gateway is not connected:  # the next session starts another one
            SparkContext._gateway = SparkContext._jvm = None
        raise
    finally:
        names["Popen"] = original


def _ignore_stop_signals() -> None:
    """Java keeps what it inherits as ignored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _log_callbacks(log: Path) -> None:
    """Write what py4j logs to Spark's log: it would print tracebacks of Python functions that Java calls.

    An interrupted call is logged through the module `logging`, not through a logger of py4j: it is replaced there.
    """
    logger = logging.getLogger("py4j")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
    logger.addHandler(logging.FileHandler(log, delay=True))
    logger.propagate = False
    setattr(java_gateway, "logging", logger)  # noqa: B010 (an attribute that its types do not have)


def _submitted(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    existing = SparkSession.builder.getOrCreate()
    for key, value in {**EVERYWHERE, **settings}.items():
        if key.startswith("spark.sql."):
            existing.conf.set(key, value)
    move_artifacts(existing)
    return existing


def _not_started(log: Path, began_at: int) -> PipelineError:
    output = log.read_bytes()[began_at:].decode(errors="replace")
    if "unresolved dependency" in output or "UNRESOLVED DEPENDENCIES" in output:
        return MistakeError(
            "Spark could not download its Kafka connector (is there a network?): copy the jars to this machine and set "
            "BARNABAS_SPARK_JARS to their directory"
        )
    lines = [line for line in output.splitlines() if "Exception" in line or "Error" in line]
    reason = f": {lines[0].strip()[:300]}" if lines else ""
    failed = PipelineError(f"Spark did not start{reason}")
    failed.log = log
    return failed


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Processes started in this context get `log` as their stderr: Spark's Java writes its log there.

    Python's own stderr is the same as before.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own, before = os.dup(2), sys.stderr
    if _descriptor(before) == 2:
        sys.stderr = io.TextIOWrapper(io.FileIO(own, "w", closefd=False), line_buffering=True, errors="replace")
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before
        os.dup2(own, 2)
        os.close(own)


def _descriptor(stream: object) -> int | None:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):  # a notebook's
        return None
