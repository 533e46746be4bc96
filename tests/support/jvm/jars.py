"""Jars of a Maven pom in `.cache/jars/<artifactId>`, downloaded by `barnabas.spark.session.maven`.

python -m tests.support.jvm.jars compat/kafka/pom.xml   # prints the directory; without an argument, fetches every pom
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from barnabas.spark.session import maven
from barnabas.spark.session.maven import JarsUnavailableError as JarsUnavailableError

ROOT = Path(__file__).resolve().parents[3]
JARS = ROOT / ".cache" / "jars"


def artifact_id(pom: Path) -> str:
    """The pom's artifactId, which is the name of the directory of its jars."""
    text = re.sub(r"<(parent|dependencies|dependencyManagement|build)>.*?</\1>", "", pom.read_text(), flags=re.DOTALL)
    match = re.search(r"<artifactId>\s*([\w.-]+)\s*</artifactId>", text)
    if match is None:
        raise ValueError(f"{pom} has no artifactId")
    return match.group(1)


def fetch(pom_path: Path | str) -> Path:
    """The directory with the pom's dependencies, downloaded if necessary.

    JarsUnavailableError if Maven is not installed or fails.
    """
    pom = Path(pom_path).resolve()
    return maven.fetch(pom, JARS / artifact_id(pom))


def jars(*poms: Path | str) -> list[Path]:
    """All jars of the poms, in the order of the poms."""
    return [jar for pom in poms for jar in sorted(fetch(pom).glob("*.jar"))]


def classpath(*poms: Path | str) -> str:
    """The class path of the poms' jars; if two have the same class, the first pom's is used."""
    return os.pathsep.join(f"{fetch(pom)}{os.sep}*" for pom in poms)


def main(arguments: list[str]) -> int:
    paths = [*(ROOT / "compat").glob("*/pom.xml"), ROOT / "barnabas" / "spark" / "session" / "pom.xml"]
    poms = arguments or sorted(str(pom) for pom in paths)
    try:
        for number, pom in enumerate(poms, 1):
            directory = JARS / artifact_id(Path(pom))
            if not directory.is_dir():
                print(f"Maven downloads the jars of {directory.name} ({number} of {len(poms)}), once", file=sys.stderr)
            print(fetch(pom), flush=True)
    except (JarsUnavailableError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
