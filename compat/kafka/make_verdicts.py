"""Validates batches with Apache Kafka's LogValidator, for tests without Java.

    python -m compat.kafka.make_verdicts tests/data/kafka-4.4.0-batch-verdicts.json

The batches are `tests.raw_batches.nonsense`; the file has the name of Kafka's error for each, NONE if it is accepted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from compat.jars import classpath
from compat.java.program import compiled
from tests.raw_batches import nonsense

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 300


def verdicts(batches: list[bytes]) -> list[str]:
    """The names of Kafka's errors."""
    pom = FOLDER / "pom.xml"
    command = ["java", "-cp", f"{compiled(FOLDER / 'Verdicts.java', pom)}:{classpath(pom)}", "Verdicts"]
    lines = "".join(batch.hex() + "\n" for batch in batches)
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S)
    return [line.removeprefix("verdict ") for line in done.stdout.splitlines() if line.startswith("verdict ")]


def main(target: Path) -> None:
    """Write the verdicts to `target`."""
    batches = nonsense()
    found = dict(zip(batches, verdicts(list(batches.values())), strict=True))
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
