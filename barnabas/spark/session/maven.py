"""The jars of a Maven pom, downloaded into a directory.

Maven uses its configured registry. A stamp file has the hash of the pom, so that a changed pom is downloaded again. A
file lock prevents concurrent downloads.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
ATTEMPTS = 3
TIMEOUT_S = 600


class JarsUnavailableError(RuntimeError):
    """Maven is missing or failed; the message has the end of its output."""


def fetch(pom: Path, target: Path) -> Path:
    """Download the pom's dependencies into `target` unless they are there; returns `target`.

    JarsUnavailableError if Maven is not installed or fails.
    """
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if _is_fetched(target, digest):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.with_name(f"{target.name}.lock")):
        if not _is_fetched(target, digest):
            _fetch(pom, target, digest)
    return target


def _is_fetched(target: Path, digest: str) -> bool:
    try:
        return (target / ".pom-sha256").read_text() == digest
    except FileNotFoundError:
        return False


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(pom: Path, target: Path, digest: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailableError(f"The jars of {pom.name} need Maven, and there is no mvn on the PATH")
    fresh = target.with_name(f"{target.name}.new")
    command = [maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={fresh}"]
    for attempt in range(ATTEMPTS):
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise JarsUnavailableError(f"Maven did not fetch the jars of {pom} in {TIMEOUT_S} s") from error
        if done.returncode == 0 and any(fresh.glob("*.jar")):
            break
        if attempt == ATTEMPTS - 1:
            raise JarsUnavailableError(f"Maven could not fetch the jars of {pom}:\n{done.stdout[-2000:]}")
    (fresh / ".pom-sha256").write_text(digest)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
