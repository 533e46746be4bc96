"""Records that librdkafka has sent again in another epoch of its idempotent producer: a defect of the client.

While a leader moves, its older batches are refused by the old leader and a newer one goes to the new leader, which
answers OUT_OF_ORDER_SEQUENCE_NUMBER. librdkafka then begins a new epoch, with records that the old leader had appended
and whose refusal it takes for "not persisted" (confluentinc/librdkafka, issue 4953, open; with Kafka's brokers too).
No broker can know that the two copies are one record.

Only this defect is no finding: copies by the same producer id, each in an epoch of its own, and the copies that a
transaction has made of each such record. A record twice in one epoch, or of two producers, stays a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from barnabas.wire.batches.batch_header import iter_batches
from compat.checker.finding import Finding
from tests.cluster.load.replicas import batches

MOST_TIMES: Final = 3
"""How often a run lets it pass, counted in epochs that a producer has begun so; more are not a rare defect of a client.
Each time it is all that was on its way to a leader: one record, or a batch of many."""
_VALUE: Final = re.compile(r"'([^']+)' is at ")
_POSITION: Final = re.compile(r"(\S+)-(\d+)@(\d+) \(")
Position = tuple[str, int, int]


def resent(findings: Iterable[Finding], data_dir: Path) -> list[Finding]:
    """The findings that are this defect, according to the batches in the directory of a broker."""
    places = {finding: _places(finding.text) for finding in findings if finding.kind == "duplicate"}
    copies = {
        finding: copied for finding, (_, at) in places.items() if (copied := _first_copy(at, data_dir)) is not None
    }
    if len(set(copies.values())) > MOST_TIMES:
        return []
    values = {places[finding][0]: len(places[finding][1]) for finding in copies}
    return [
        finding
        for finding, (value, positions) in places.items()
        if finding in copies or values.get(value) == len(positions)
    ]


def take_resent(findings: list[Finding], data_dir: Path) -> list[Finding]:
    """Remove these findings from `findings`, print them, and return them."""
    taken = resent(findings, data_dir)
    for finding in taken:
        findings.remove(finding)
        print(f"librdkafka has written a record again in a new epoch: {finding}", flush=True)
    return taken


def _places(text: str) -> tuple[str, list[Position]]:
    value = _VALUE.search(text)
    return value[1] if value else "", [(topic, int(index), int(at)) for topic, index, at in _POSITION.findall(text)]


def _first_copy(positions: list[Position], data_dir: Path) -> tuple[int, int] | None:
    """Producer id and epoch of the first copy, if each copy has an epoch of its own of one idempotent producer."""
    producers = [_producer(data_dir / f"{topic}-{index}", offset) for topic, index, offset in positions]
    is_idempotent = all(producer_id >= 0 and not is_transactional for producer_id, _, is_transactional in producers)
    one_id = len({producer_id for producer_id, _, _ in producers}) == 1
    epochs = {epoch for _, epoch, _ in producers}
    if not (is_idempotent and one_id and len(epochs) == len(positions)):
        return None
    return producers[0][0], min(epochs)


def _producer(directory: Path, offset: int) -> tuple[int, int, bool]:
    """(producer id, epoch, whether it is in a transaction) of the batch with an offset; -1 if there is none."""
    for _, data in batches(directory):
        batch = next(iter(iter_batches(memoryview(data))))
        if batch.base_offset <= offset <= batch.last_offset:
            return batch.producer_id, batch.producer_epoch, batch.is_transactional
    return -1, -1, False
