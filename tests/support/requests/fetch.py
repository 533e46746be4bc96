"""Fetch requests, and the records of their responses."""

from __future__ import annotations

from barnabas.wire.batches.records import ControlRecordType, control_record_type, iter_batches, iter_records
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.memory.broker import MemoryBroker, batch


def append(memory: MemoryBroker, topic: str, *values: bytes, partition: int = 0) -> int:
    """Produce one batch and return its base offset."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch(*values))])
        ],
    )
    response = memory.client().ask(request, 9, ProduceResponse).responses[0].partition_responses[0]
    assert response.error_code == 0, response
    return response.base_offset


def fetch(
    *partitions: FetchRequestFetchPartition, topic: str = "t", topic_id: bytes = bytes(16), **options
) -> FetchRequest:
    options.setdefault("max_wait_ms", 0)
    options.setdefault("min_bytes", 1)
    options.setdefault("session_epoch", -1)
    return FetchRequest(
        topics=[FetchRequestFetchTopic(topic=topic, topic_id=topic_id, partitions=list(partitions))], **options
    )


def at(offset: int, partition: int = 0, max_bytes: int = 1 << 20, **options) -> FetchRequestFetchPartition:
    return FetchRequestFetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **options
    )


def values(response: FetchResponsePartitionData) -> list[tuple[int, bytes | None]]:
    """Offsets and values of the whole batches in an answer."""
    values_by_offset = []
    data = bytes(response.records or b"")
    while len(data) >= 12 and len(data) >= 12 + int.from_bytes(data[8:12], "big"):
        size = 12 + int.from_bytes(data[8:12], "big")
        for record_batch in iter_batches(memoryview(data[:size])):
            values_by_offset += [(record.offset, record.value) for record in iter_records(record_batch)]
        data = data[size:]
    return values_by_offset


Records = list[tuple[int, bytes]]
"""Offsets and values."""


def committed_records(position: int, fetched: FetchResponsePartitionData) -> tuple[int, Records]:
    """The next position, and the records of a response except records of aborted transactions."""
    aborted = sorted(fetched.aborted_transactions or (), key=lambda transaction: transaction.first_offset)
    ongoing: set[int] = set()
    records: Records = []
    for view in iter_batches(bytes(fetched.records or b""), partial_ok=True):
        while aborted and aborted[0].first_offset <= view.last_offset:
            ongoing.add(aborted.pop(0).producer_id)
        if view.is_control:
            (marker,) = iter_records(view)
            if control_record_type(marker) == ControlRecordType.ABORT:
                ongoing.discard(view.producer_id)
        elif not (view.is_transactional and view.producer_id in ongoing):
            records += [
                (record.offset, record.value or b"") for record in iter_records(view) if record.offset >= position
            ]
        position = max(position, view.next_offset)
    return position, records
