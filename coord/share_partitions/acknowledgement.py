"""Acknowledgements in requests: ranges of offsets, with one type for all of them or one for each (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from barnabas.coord.share_partitions.states import AcknowledgeType
from barnabas.wire.errors import ErrorCode, KafkaError


class BatchFields(Protocol):
    """An AcknowledgementBatch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledgement(NamedTuple):
    """The acknowledgement of the records from `first` to `last`, both included."""

    first: int
    last: int
    type: AcknowledgeType


def acknowledgements(batches: Iterable[BatchFields], *, may_renew: bool) -> list[Acknowledgement]:
    """The acknowledgements of one partition as runs of one type; KafkaError(INVALID_REQUEST) for invalid batches."""
    runs: list[Acknowledgement] = []
    previous_last = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if (
            first > last or first < previous_last
        ):  # the same record twice is refused when it is acknowledged, as in Kafka
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        previous_last = last
        if len(types) != 1 and len(types) != last - first + 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not 0 <= min(types) <= max(types) <= highest:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if len(types) == 1 or types.count(types[0]) == len(types):
            runs.append(Acknowledgement(first, last, AcknowledgeType(types[0])))
        else:
            runs += _runs(first, types)
    return runs


def _runs(first: int, types: Sequence[int]) -> Iterator[Acknowledgement]:
    for kind, equal in groupby(types):
        end = first + sum(1 for _ in equal)
        yield Acknowledgement(first, end - 1, AcknowledgeType(kind))
        first = end
