"""Validates batches with Apache Kafka's LogValidator, for tests without Java.

    python -m compat.kafka.make_verdicts tests/data/kafka-4.4.0-batch-verdicts.json

The batches are `tests.support.logs.raw_batches.nonsense`; the file has the name of Kafka's error for each, NONE if it
is accepted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from compat.kafka.programs import run_program
from tests.support.logs.raw_batches import nonsense


def verdicts(batches: list[bytes]) -> list[str]:
    """The names of Kafka's errors."""
    lines = run_program("Verdicts", stdin="".join(batch.hex() + "\n" for batch in batches))
    return [line.removeprefix("verdict ") for line in lines if line.startswith("verdict ")]


def main(target: Path) -> None:
    """Write the verdicts to `target`."""
    batches = nonsense()
    verdict_of = dict(zip(batches, verdicts(list(batches.values())), strict=True))
    target.write_text(json.dumps(verdict_of, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
