"""The programs in `src`, with the Java client's jars: their command lines, and runs of the scenarios.

python -m compat.java.program HOST:PORT [--command-config FILE] [SCENARIO...|NUMBER/COUNT]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.jvm import command, host
from tests.support.jvm.jars import jars
from tests.support.jvm.sources import compiled

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"
RUN_TIMEOUT_S = 600


def java(program: str, *arguments: str, jvm_options: Sequence[str] = ()) -> list[str]:
    """The command line of the program `src/PROGRAM.java`."""
    return command.java(_class_path(), program, *arguments, options=jvm_options)


def run_scenarios(bootstrap: str, *arguments: str, jvm_options: Sequence[str] = ()) -> host.Ran:
    """Run scenarios (all by default) against a broker, in the JVM of all such programs."""
    return host.run(_class_path(), "Compat", bootstrap, *arguments, options=jvm_options, timeout_s=RUN_TIMEOUT_S)


def _class_path() -> list[Path]:
    return [command.logging("warn"), compiled(FOLDER / "src", POM), *jars(POM)]


def main() -> int:
    """Run the scenarios and print their outcomes."""
    return subprocess.run(java("Compat", *sys.argv[1:]), check=False, timeout=RUN_TIMEOUT_S).returncode


if __name__ == "__main__":
    sys.exit(main())
