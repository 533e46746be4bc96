"""Three of Apache Kafka's own controllers, for `serve --brokers N --controllers kafka`. Needs Java.

Their jars are fetched once, through `pom.xml` beside this file, into the user's cache. The directories are formatted
once, with explicit feature levels: Kafka's default levels may be higher than Barnabas' brokers support.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from barnabas.supervise.plan import PlanError

POM = Path(__file__).with_name("pom.xml")
VERSION = "4.4.0"
HEAP = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FEATURES = {
    "metadata.version": 33,
    "group.version": 1,
    "transaction.version": 2,
    "share.version": 1,
    "streams.version": 1,
    "eligible.leader.replicas.version": 1,
    "kraft.version": 0,
}
"""The levels that a new cluster has; Barnabas' brokers support each."""
LOG4J = """
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


def jars() -> Path:
    """The directory with Kafka's jars, fetched if necessary. PlanError without Java or Maven."""
    if shutil.which("java") is None:
        raise PlanError(
            "--controllers kafka runs Apache Kafka's controllers, which need Java 17, and there is no java on the PATH"
            "; without the option Barnabas' own controller is used"
        )
    from barnabas.spark.session.maven import JarsUnavailableError, fetch

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas" / "jars" / f"kafka-{VERSION}"
    if not cache.is_dir():
        sys.stderr.write(f"Maven downloads the jars of Apache Kafka {VERSION} into {cache}, once\n")
    try:
        return fetch(POM, cache)
    except JarsUnavailableError as error:
        raise PlanError(str(error)) from error


def java(jar_directory: Path, directory: Path, *options: str) -> list[str]:
    """The command line of a JVM with Kafka's classes; its log configuration is in `directory`."""
    return ["java", *options, f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}", "-cp", f"{jar_directory}/*"]


def command(jar_directory: Path, directory: Path) -> list[str]:
    """The command line of a controller."""
    return [*java(jar_directory, directory, *HEAP), "kafka.Kafka", str(directory / "server.properties")]


def prepare(
    jar_directory: Path,
    nodes: Mapping[Path, Mapping[str, str]],
    cluster_id: str,
    features: Mapping[str, int] = FEATURES,
) -> None:
    """Write the configuration of each controller, by its directory, and format new directories. PlanError.

    Without `features` a new cluster has Kafka's defaults.
    """
    new: list[Path] = []
    for directory, keys in nodes.items():
        directory.mkdir(parents=True, exist_ok=True)
        settings = {**keys, "log.dirs": str(directory / "logs")}
        (directory / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (directory / "log4j2.xml").write_text(LOG4J)
        if not (directory / "logs" / "meta.properties").exists():
            new.append(directory)
    _format(jar_directory, new, cluster_id, features)


def _format(jar_directory: Path, directories: Sequence[Path], cluster_id: str, features: Mapping[str, int]) -> None:
    """Format all at once: each is a JVM of its own, for a second."""
    levels = [part for name, level in features.items() for part in ("--feature", f"{name}={level}")]
    tools = []
    for directory in directories:
        tool = [*java(jar_directory, directory, "-Xmx128m", *HEAP[1:]), "kafka.tools.StorageTool", "format"]
        tool += [f"--cluster-id={cluster_id}", "-c", str(directory / "server.properties"), *levels]
        tools.append(subprocess.Popen(tool, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for directory, tool_process in zip(directories, tools, strict=True):
        output, _ = tool_process.communicate()
        if tool_process.returncode != 0:
            raise PlanError(f"Kafka's controller could not format {directory}: {output.strip().splitlines()[-1:]}")


def guard(arguments: Sequence[str]) -> int:
    """Run a JVM in this process's group until it ends; SIGTERM is passed on. Its exit code."""
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    code = process.wait()
    return 0 if code in (0, 128 + signal.SIGTERM, -signal.SIGTERM) else 1
