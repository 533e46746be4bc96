"""Compiles and runs `src/WordCount.java`, a Kafka Streams application.

python -m compat.kafka_streams.program HOST:PORT APPLICATION STATE_DIR [NAME=VALUE...]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from compat.jars import classpath
from compat.java.program import compiled

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"


def command(
    bootstrap: str, application: str, state_dir: str, *settings: str, jvm_options: Sequence[str] = ()
) -> list[str]:
    """The command line of one instance; settings are Streams' configs, `name=value`."""
    classes = compiled(FOLDER / "src" / "WordCount.java", POM)
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *jvm_options]
    return [*java, "-cp", f"{classes}:{classpath(POM)}", "WordCount", bootstrap, application, state_dir, *settings]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), check=False).returncode)
