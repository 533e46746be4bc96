"""Compiles and runs the programs in `src` with the Java client's jars.

python -m compat.java.program HOST:PORT [--command-config FILE] [SCENARIO...]
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from compat.jars import ROOT, classpath

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"
RUN_TIMEOUT_S = 600


def compiled(source: Path, pom: Path) -> Path:
    """The folder with the classes of a Java source and its dependencies, compiled if necessary."""
    sources = [path.read_bytes() for path in sorted(source.parent.glob("*.java"))]
    digest = hashlib.sha256(b"".join([*sources, pom.read_bytes()])).hexdigest()[:16]
    target = ROOT / ".cache" / "classes" / f"{source.stem}-{digest}"
    target.mkdir(parents=True, exist_ok=True)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "done").exists():
            command = ["javac", "-cp", classpath(pom), "-sourcepath", str(source.parent), "-d", str(target)]
            subprocess.run([*command, str(source)], check=True)
            (target / "done").touch()
    return target


def command(bootstrap: str, *arguments: str, jvm_options: Sequence[str] = ()) -> list[str]:
    """The command line that runs scenarios (all by default) against a broker."""
    return java("Compat", bootstrap, *arguments, jvm_options=jvm_options)


def java(program: str, *arguments: str, jvm_options: Sequence[str] = ()) -> list[str]:
    """The command line of the program `src/PROGRAM.java`."""
    classes = compiled(FOLDER / "src" / f"{program}.java", POM)
    jvm = [
        "java",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *jvm_options,
    ]
    return [*jvm, "-cp", f"{classes}:{classpath(POM)}", program, *arguments]


def main() -> int:
    """Run the scenarios and print their outcomes."""
    return subprocess.run(command(*sys.argv[1:]), check=False, timeout=RUN_TIMEOUT_S).returncode


if __name__ == "__main__":
    sys.exit(main())
