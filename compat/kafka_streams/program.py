"""Compiles and runs `src/WordCount.java`, a Kafka Streams application.

python -m compat.kafka_streams.program HOST:PORT APPLICATION STATE_DIR [NAME=VALUE...]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.jvm.command import java, logging
from tests.support.jvm.jars import jars
from tests.support.jvm.sources import compiled

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"


def command(
    bootstrap: str, application: str, state_dir: str, *settings: str, jvm_options: Sequence[str] = ()
) -> list[str]:
    """The command line of one instance; settings are Streams' configs, `name=value`."""
    class_path = [logging("warn"), compiled(FOLDER / "src", POM), *jars(POM)]
    return java(class_path, "WordCount", bootstrap, application, state_dir, *settings, options=jvm_options)


if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), check=False).returncode)
