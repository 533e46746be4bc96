"""Produce and InitProducerId requests."""

from __future__ import annotations

from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.memory.broker import Client


def produce(*data: PartitionProduceData, topic: str = "t", topic_id: bytes = bytes(16), **options) -> ProduceRequest:
    options.setdefault("acks", -1)
    return ProduceRequest(
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=list(data))],
        **options,
    )


def to(partition: int, records: bytes | None) -> PartitionProduceData:
    return PartitionProduceData(index=partition, records=records)


def answers(response: ProduceResponse) -> list[PartitionProduceResponse]:
    return response.responses[0].partition_responses


def init(client: Client, version: int = 4, **options) -> InitProducerIdResponse:
    return client.ask(InitProducerIdRequest(**{"transactional_id": None, **options}), version, InitProducerIdResponse)
