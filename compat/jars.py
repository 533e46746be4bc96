"""Jars of a Maven pom, fetched once into `.cache/jars/<artifactId>`, for tests and benchmarks alike.

The poms name no registry: Maven finds its own. A stamp holds the hash of the pom, so that a changed pom is fetched
anew; a file lock keeps two callers (pytest-xdist workers, a test run beside a benchmark) from fetching the same jars.

    python -m compat.jars compat/kafka/pom.xml      # prints the directory; without an argument, fetches every pom
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JARS = ROOT / ".cache" / "jars"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
ATTEMPTS = 3
TIMEOUT_S = 600


class JarsUnavailableError(RuntimeError):
    """Maven is missing or could not fetch; the message says which and shows the end of its output."""


def artifact_id(pom: Path) -> str:
    """The pom's own artifactId, which names the directory of its jars."""
    text = re.sub(r"<(parent|dependencies|dependencyManagement|build)>.*?</\1>", "", pom.read_text(), flags=re.DOTALL)
    found = re.search(r"<artifactId>\s*([\w.-]+)\s*</artifactId>", text)
    if found is None:
        raise ValueError(f"{pom} has no artifactId")
    return found.group(1)


def fetch(pom_path: Path | str) -> Path:
    """The directory with every jar that the pom depends on, fetched when it is not there yet.

    Raises JarsUnavailableError when Maven is not installed or fails.
    """
    pom = Path(pom_path).resolve()
    target = JARS / artifact_id(pom)
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if _is_fetched(target, digest):
        return target
    JARS.mkdir(parents=True, exist_ok=True)
    with _lock(JARS / f"{target.name}.lock"):
        if not _is_fetched(target, digest):
            _fetch(pom, target, digest)
    return target


def jars(*poms: Path | str) -> list[Path]:
    """Every jar of the poms, the first pom's in front."""
    return [jar for pom in poms for jar in sorted(fetch(pom).glob("*.jar"))]


def classpath(*poms: Path | str) -> str:
    """What `java -cp` takes to run a class out of the poms' jars; where two hold the same class, the first pom wins."""
    return os.pathsep.join(f"{fetch(pom)}{os.sep}*" for pom in poms)


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
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=TIMEOUT_S
        )
        if done.returncode == 0 and any(fresh.glob("*.jar")):
            break
        if attempt == ATTEMPTS - 1:
            raise JarsUnavailableError(f"Maven could not fetch the jars of {pom}:\n{done.stdout[-2000:]}")
    (fresh / ".pom-sha256").write_text(digest)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


def main(arguments: list[str]) -> int:
    poms = arguments or sorted(str(pom) for pom in (ROOT / "compat").glob("*/pom.xml"))
    try:
        for pom in poms:
            print(fetch(pom))
    except (JarsUnavailableError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
