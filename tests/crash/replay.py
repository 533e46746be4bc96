"""A naive replay of batches: the expected producers and transactions after them (KIP-98, rules I1-I5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.crash.ledger import Batch

_SEQUENCES = 2**31


@dataclass
class ReplayedProducer:
    """One producer after a replay."""

    epoch: int
    coordinator_epoch: int = -1
    batches: list[tuple[int, int, int, int]] = field(default_factory=list)  # first, last sequence; first, last offset
    known: list[tuple[int, int, int, int]] = field(default_factory=list)  # all batches of the epoch
    open_since: int = -1
    last_offset: int = -1  # of data or markers
    marker_offset: int = -1


class Aborted(NamedTuple):
    """An aborted transaction: its first record, its marker, and the last of its records."""

    producer_id: int
    first: int
    marker: int
    last_data: int


@dataclass
class Replayed:
    """All producers and transactions."""

    producers: dict[int, ReplayedProducer] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)
    undecided: dict[int, list[Batch]] = field(default_factory=dict)
    """The data of each transaction that is open."""
    dead: list[Batch] = field(default_factory=list)
    """The data of aborted transactions."""


def replay(batches: list[Batch]) -> Replayed:
    """The expected producer state after these batches."""
    state = Replayed()
    for batch in batches:
        producer_id, epoch, sequence = batch.producer
        if producer_id < 0:
            continue
        producer = state.producers.setdefault(producer_id, ReplayedProducer(epoch))
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches, producer.known = [], []
        producer.last_offset = batch.last
        if batch.marker is None:
            last = (sequence + batch.last - batch.first) % _SEQUENCES
            producer.known.append((sequence, last, batch.first, batch.last))
            producer.batches = producer.known[-5:]
            if batch.transactional and producer.open_since < 0:
                producer.open_since = batch.first
            if batch.transactional:
                state.undecided.setdefault(producer_id, []).append(batch)
        else:
            data = state.undecided.pop(producer_id, [])
            if data and not batch.marker:
                state.aborted.append(Aborted(producer_id, data[0].first, batch.first, data[-1].last))
                state.dead += data
            producer.open_since = -1
            producer.marker_offset = batch.first
            producer.coordinator_epoch = batch.coordinator_epoch
    return state
