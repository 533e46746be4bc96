"""Random metadata logs, logs of our controller and one of Kafka's: Kafka's own classes make the same images of them.

`python -m compat.kafka.metadata_images 20000` compares more. Rules R11, R17, R25.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.coord.cluster.metadata_log.metadata_serde import RECORD_TYPES
from barnabas.wire.batches.records import iter_batches, iter_records
from barnabas.wire.varint import unsigned_varint
from compat.kafka import deliberate_differences
from compat.kafka.metadata_images import (
    compare,
    controllers_log,
    difference,
    kafkas,
    load,
    random_log,
)
from compat.kafka.metadata_streams import Stream
from tests.support.archives import unpack
from tests.support.volume import seeds

RANDOM = seeds("BARNABAS_EXAMPLES", 140)
ARCHIVE = Path(__file__).resolve().parents[2] / "data" / "kafka-4.4.0-directory.tar.gz"


@pytest.mark.jvm
def test_random_logs_and_their_snapshots() -> None:
    logs = [random_log(seed) for seed in RANDOM]
    refused = sum(log.failed is not None for log in logs)
    assert len(logs) < 50 or len(logs) / 30 < refused < len(logs) / 3
    assert compare(logs) == []


@pytest.mark.jvm
def test_logs_of_our_controller() -> None:
    logs = [controllers_log(seed) for seed in RANDOM[::2]]
    assert sum(len(log.batches) for log in logs) > 10 * len(logs)
    assert compare(logs) == []


@pytest.mark.jvm
def test_a_log_that_kafka_has_written(tmp_path: Path) -> None:
    directory = unpack(ARCHIVE, tmp_path) / "__cluster_metadata-0"
    batches = []
    for path in sorted(directory.glob("*.log")):
        content = path.read_bytes()
        position = 0
        for batch in iter_batches(content):
            batches.append(content[position : position + batch.size])
            position += batch.size
    log = load("Kafka's log", batches)
    assert log.image.topics
    assert compare([log]) == []


@pytest.mark.jvm
def test_deliberate_differences_are_differences_still() -> None:
    cases = deliberate_differences.CASES
    logs = [load(case.name, case.log()) for case in cases]
    equal = [log.name for log, response in zip(logs, kafkas(logs), strict=True) if difference(log, response) is None]
    assert equal == []


def test_the_random_logs_have_all_types_in_all_versions() -> None:
    seen: set[tuple[int, int]] = set()
    for seed in range(1, 301):
        for batch in Stream(seed).batches:
            seen.update(record for content in iter_batches(batch) for record in records_of(content))
    assert {kind for kind, _ in seen} == set(RECORD_TYPES)
    missing = {(kind, version) for kind, declared in RECORD_TYPES.items() for version in declared.versions} - seen
    assert missing == set()


def records_of(batch: object) -> list[tuple[int, int]]:
    """(type, version) of the metadata records of a batch."""
    types = []
    if not batch.is_control:  # type: ignore[attr-defined]
        for record in iter_records(batch):  # type: ignore[arg-type]
            kind, position = unsigned_varint(record.value, 1)  # type: ignore[arg-type]
            types.append((kind, unsigned_varint(record.value, position)[0]))  # type: ignore[arg-type]
    return types
