"""Writes the ApiVersions responses of brokers of earlier Apache Kafka releases, from the classes of each release.

    python -m compat.kafka.make_releases

The table is `barnabas/client/releases.json`, which `as_version` uses. The jars of the releases are downloaded
once. Releases before 3.3 answer as a broker with ZooKeeper, later ones as a broker with KRaft.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from compat.kafka.programs import run_program
from tests.support.jvm.jars import ROOT, jars

TABLE = ROOT / "barnabas" / "client" / "releases.json"
FIRST_WITH_KRAFT: Final = (3, 3)
RELEASES: Final = (
    "2.0.1", "2.1.1", "2.4.1", "2.8.2", "3.0.2", "3.3.2", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1", "4.0.0", "4.1.0",
    "4.2.0", "4.3.1", "4.4.0",
)  # fmt: skip


def _pom(release: str) -> Path:
    """A pom with the jars of a release."""
    artifacts = ["kafka-clients"] + (["kafka-server-common"] if _has_kraft(release) else [])
    dependencies = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{release}</version></dependency>"
        for artifact in artifacts
    )
    folder = ROOT / ".cache" / "releases"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{release}.xml"
    path.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>barnabas.compat</groupId><artifactId>kafka-{release}</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
    )
    return path


def _has_kraft(release: str) -> bool:
    major, minor, _ = map(int, release.split("."))
    return (major, minor) >= FIRST_WITH_KRAFT


def answers(release: str) -> dict[str, Any]:
    """The APIs and the features of a release: first and last version by key, lowest and highest level by name."""
    kind = "BROKER" if _has_kraft(release) else "ZK_BROKER"
    of_release: dict[str, Any] = {"release": release, "apis": {}, "features": {}}
    for line in run_program("Releases", kind, class_path=jars(_pom(release))):
        what, name, first, last = line.split()
        of_release["apis" if what == "api" else "features"][name] = [int(first), int(last)]
    return of_release


def main() -> None:
    """Write the table."""
    lines = []
    for release in RELEASES:
        name = release.rpartition(".")[0]
        lines.append(f" {json.dumps(name)}: {json.dumps(answers(release))}")
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
