"""Replaying the records of a large change in steps: others see the image between two of them."""

from __future__ import annotations

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.replay import replay_in_steps, replay_record
from barnabas.wire.messages.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from barnabas.wire.schema import Message

ID, OLD_ID = bytes(15) + b"a", bytes(15) + b"b"


def partitions(topic_id: bytes, first: int, end: int) -> list[Message]:
    return [
        PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
        for index in range(first, end)
    ]


def image_with_topic() -> ClusterImage:
    image = ClusterImage()
    for record in (TopicRecord(name="old", topic_id=OLD_ID), *partitions(OLD_ID, 0, 3)):
        replay_record(image, record, ClusterDelta())
    return image


CHANGE: list[Message] = [
    TopicRecord(name="new", topic_id=ID),
    ConfigRecord(resource_type=2, resource_name="new", name="retention.ms", value="1"),
    *partitions(ID, 0, 1000),
    *partitions(OLD_ID, 3, 500),
]


def test_a_new_topic_appears_with_all_its_partitions() -> None:
    image, delta = image_with_topic(), ClusterDelta()
    seen = []
    for _ in replay_in_steps(image, CHANGE, delta):
        new = image.topics.get("new")
        seen.append(None if new is None else len(new.partitions))
    assert set(seen) == {None, 1000}
    assert len(seen) >= 10


def test_the_result_is_that_of_all_records() -> None:
    stepped, whole = image_with_topic(), image_with_topic()
    deltas = ClusterDelta(), ClusterDelta()
    records = [*CHANGE, RemoveTopicRecord(topic_id=OLD_ID)]
    for _ in replay_in_steps(stepped, records, deltas[0]):
        pass
    for record in records:
        replay_record(whole, record, deltas[1])
    assert vars(stepped) == vars(whole)
    for name in ClusterDelta.__slots__:
        assert getattr(deltas[0], name) == getattr(deltas[1], name)
