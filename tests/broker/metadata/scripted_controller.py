"""A broker that has joined a controller that the test plays, and records of its metadata."""

from __future__ import annotations

from pathlib import Path

from barnabas.wire.messages.records.metadata_records import (
    PartitionRecord,
    TopicRecord,
)
from barnabas.wire.schema import Message
from tests.broker.fake_controller import FakeController, JoinedBroker
from tests.broker.scripted_nodes import Wire


def started(wire: Wire, tmp_path: Path, controller: FakeController, *more: Path, **sets: str) -> JoinedBroker:
    member = JoinedBroker(wire, [tmp_path / "data", *more], controller.address, **sets)
    member.start()
    wire.advance(1)
    return member


def topic_records(name: str, number: int, directory: bytes = b"d" * 16) -> list:
    topic_id = number.to_bytes(16, "big")
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[directory]
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]


def topic(name: str, number: int, partitions: int = 1) -> list[Message]:
    """The records of a topic whose only replica is another broker's."""
    topic_id = number.to_bytes(16, "big")
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=[9], isr=[9], leader=9, directories=[b"d" * 16]
            )
            for index in range(partitions)
        ),
    ]


def following(wire: Wire, tmp_path: Path, controller: FakeController, **sets: str) -> JoinedBroker:
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address, **sets)
    member.follow()
    wire.until(lambda: member.remote.observer.is_caught_up)
    return member
