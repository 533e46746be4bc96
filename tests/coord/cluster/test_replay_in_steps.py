"""Replaying the records of a large change in steps: others see the image between two of them."""

from __future__ import annotations

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.replay import replay_in_steps, replay_record
from barnabas.wire.messages.records.metadata_records import (
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.wire.schema import Message
from tests.support.cases import for_each

ID, OLD_ID, THIRD_ID = bytes(15) + b"a", bytes(15) + b"b", bytes(15) + b"c"


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
    assert set(seen) == {None}
    assert len(seen) >= 10
    assert len(image.topics["new"].partitions) == 1000


ELR = {"eligible_leader_replicas": [1]}


@for_each(
    "records",
    [
        [*CHANGE, RemoveTopicRecord(topic_id=OLD_ID)],
        [  # the ELR of a new topic is not that which was ended
            PartitionChangeRecord(topic_id=OLD_ID, partition_id=0, **ELR),
            ClearElrRecord(),
            TopicRecord(name="new", topic_id=ID),
            PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], **ELR),
        ],
        [
            TopicRecord(name="new", topic_id=ID),
            PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], **ELR),
            ClearElrRecord(topic_name="new"),
            PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]),
        ],
        [  # the same name twice
            TopicRecord(name="new", topic_id=ID),
            ConfigRecord(resource_type=2, resource_name="new", name="retention.ms", value="1"),
            RemoveTopicRecord(topic_id=ID),
            TopicRecord(name="new", topic_id=THIRD_ID),
            PartitionRecord(topic_id=THIRD_ID, partition_id=0),
        ],
        [RemoveTopicRecord(topic_id=OLD_ID), TopicRecord(name="old", topic_id=ID), ClearElrRecord(topic_name="old")],
        [
            TopicRecord(name="new", topic_id=ID),
            BeginTransactionRecord(),
            PartitionRecord(topic_id=ID, partition_id=0),
            EndTransactionRecord(),
        ],
    ],
)
def test_the_result_is_that_of_all_records(records: list[Message]) -> None:
    stepped, whole = image_with_topic(), image_with_topic()
    deltas = ClusterDelta(), ClusterDelta()
    for _ in replay_in_steps(stepped, records, deltas[0]):
        pass
    for record in records:
        replay_record(whole, record, deltas[1])
    assert vars(stepped) == vars(whole)
    for name in ClusterDelta.__slots__:
        assert getattr(deltas[0], name) == getattr(deltas[1], name)
