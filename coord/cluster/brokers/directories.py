"""AssignReplicasToDirs: a broker reports in which of its log directories its replicas are (KIP-858).

A replica in a directory that is not online leaves the ISR. Source: Kafka 4.4
`ReplicationControlManager.handleAssignReplicasToDirs`.
"""

from __future__ import annotations

from collections.abc import Generator

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.partitions.leader_changes import CHANGED_PER_STEP, LeaderChanges, PartitionPlace, is_online
from barnabas.coord.cluster.partitions.partition_change import DIRECTORIES_SINCE
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid


def assign_replicas_steps(
    changes: LeaderChanges, broker: BrokerImage, request: AssignReplicasToDirsRequest
) -> Generator[None, None, tuple[list[Message], AssignReplicasToDirsResponse]]:
    """(records, response); each partition succeeds or fails on its own."""
    if changes.image.metadata_version < DIRECTORIES_SINCE:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    records: list[Message] = []
    response = AssignReplicasToDirsResponse()
    assigned: set[tuple[Uuid, int]] = set()
    count = 0
    for directory in request.directories:
        directory_result = AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        response.directories.append(directory_result)
        for topic in directory.topics:
            topic_result = AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            directory_result.topics.append(topic_result)
            for entry in topic.partitions:
                result = AssignReplicasToDirsResponsePartitionData(partition_index=entry.partition_index)
                topic_result.partitions.append(result)
                key = (topic.topic_id, entry.partition_index)
                try:
                    if key in assigned:
                        raise KafkaError(ErrorCode.INVALID_REQUEST)
                    record = _assign(changes, broker, _find(changes, *key), directory.id)
                    assigned.add(key)
                    if record is not None:
                        records.append(record)
                except KafkaError as error:
                    result.error_code = error.code
                count += 1
                if count % CHANGED_PER_STEP == 0:
                    yield
    return records, response


def _find(changes: LeaderChanges, topic_id: Uuid, index: int) -> PartitionPlace:
    topic = changes.image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return PartitionPlace(topic, index, partition)


def _assign(changes: LeaderChanges, broker: BrokerImage, place: PartitionPlace, directory: Uuid) -> Message | None:
    partition = place.partition
    if broker.id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if is_online(directory, broker.directories):
        change = changes.change(place, may_be_unclean=False)
    else:
        change = changes.change(place, lambda replica: replica != broker.id and changes.is_active(replica))
        change.isr = [replica for replica in partition.isr if replica != broker.id]
    change.set_directory(broker.id, directory)
    return change.build()
