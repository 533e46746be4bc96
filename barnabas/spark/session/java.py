"""Finds the Java for Spark before Spark starts, so that a missing Java is reported in one sentence.

PySpark 4.0 needs Java 17 or later. It does not start on Java 24 or later, which has no security manager.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.spark.errors import MistakeError

OLDEST, NEWEST = 17, 23
NEEDED = "Spark 4.0 needs Java 17 or 21"
PLACES = ("/usr/lib/jvm/*/bin/java", "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java")
TIMEOUT_S = 20


def find_java(environment: Mapping[str, str] = os.environ, places: tuple[str, ...] = PLACES) -> Path:
    """The home of a suitable Java: JAVA_HOME, the PATH, or the usual directories.

    MistakeError if there is none, or if JAVA_HOME is set and has none or a wrong version.
    """
    java_home = environment.get("JAVA_HOME")
    if java_home:
        return _checked_home(Path(java_home))
    wrong: list[str] = []
    for java in _candidates(environment, places):
        version = java_version(java)
        home = java.resolve().parent.parent
        if version is not None and OLDEST <= version <= NEWEST and (home / "bin" / "java").exists():
            return home
        if version is not None:
            wrong.append(f"{java} is Java {version}")
    if wrong:
        raise MistakeError(f"{NEEDED}, and {wrong[0]}: install one and set JAVA_HOME to it")
    raise MistakeError(f"{NEEDED}, and none was found: install it (on Debian: apt-get install openjdk-17-jre-headless)")


def java_version(java: Path) -> int | None:
    """The feature version (17, 21 ...) of this `java`; None if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None


def _checked_home(home: Path) -> Path:
    version = java_version(home / "bin" / "java")
    if version is None:
        raise MistakeError(
            f"JAVA_HOME is {home}, which has no working bin/java: set it to a Java 17 or 21, or unset it"
        )
    if not OLDEST <= version <= NEWEST:
        raise MistakeError(f"{NEEDED}, and JAVA_HOME ({home}) is Java {version}: set it to another one, or unset it")
    return home


def _candidates(environment: Mapping[str, str], places: tuple[str, ...]) -> Iterator[Path]:
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        yield Path(on_path)
    for place in places:
        root = Path(place.partition("*")[0])
        if root.is_dir():
            yield from sorted(root.glob(place[len(str(root)) + 1 :]))
