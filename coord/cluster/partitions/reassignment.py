"""AlterPartitionReassignments and ListPartitionReassignments: partitions get other replicas while they serve.

A reassignment first adds the new replicas; when all of them are in the ISR, a second change removes the others
(`partition_change`). It can be replaced by another one, or cancelled, which removes what was added. Source: Kafka 4.4
`ReplicationControlManager`, `PartitionReassignmentReplicas`, `PartitionReassignmentRevert`. KIP-455, KIP-860. Rule R19.

A replacement differs from Kafka 4.4.0, which keeps the old lists of added or removed replicas where the new ones are
empty: there a reassignment back to the original replicas never ends, and one that keeps a replica that was to be
removed still removes it. Here the lists follow from the new target, and replicas that the first one added stay in the
list of added ones for a cancellation.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from barnabas.coord.cluster.changes.placement import check_manual_assignment
from barnabas.coord.cluster.partitions.leader_changes import (
    CHANGED_PER_STEP,
    VISITED_PER_STEP,
    LeaderChanges,
    PartitionPlace,
)
from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.wire.schema import Message


def alter_reassignments_steps(
    changes: LeaderChanges, request: AlterPartitionReassignmentsRequest
) -> Generator[None, None, tuple[list[Message], AlterPartitionReassignmentsResponse]]:
    """(records, response); each partition succeeds or fails on its own."""
    records: list[Message] = []
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",  # as in Kafka, whose controller answers this one by default
    )
    altered: dict[tuple[str, int], list[int] | None] = {}
    count = 0
    for topic in request.topics:
        topic_response = ReassignableTopicResponse(name=topic.name)
        response.responses.append(topic_response)
        for entry in topic.partitions:
            index = entry.partition_index
            result = ReassignablePartitionResponse(partition_index=index, error_message=None)
            topic_response.partitions.append(result)
            try:
                if (topic.name, index) in altered:
                    if altered[topic.name, index] != entry.replicas:
                        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition is in the request twice.")
                    continue
                place = _find(changes, topic.name, index)
                if entry.replicas is None:
                    record = _cancel(changes, place)
                else:
                    check_manual_assignment(entry.replicas, changes.image.brokers, None)
                    if not request.allow_replication_factor_change:
                        _check_replication_factor(place.partition, entry.replicas)
                    record = _reassign(changes, place, entry.replicas)
                altered[topic.name, index] = entry.replicas
                if record is not None:
                    records.append(record)
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    return records, response


def _find(changes: LeaderChanges, name: str, index: int) -> PartitionPlace:
    topic = changes.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    return PartitionPlace(topic, index, partition)


def is_reassigning(partition: PartitionImage) -> bool:
    """Whether replicas are being added or removed."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def _cancel(changes: LeaderChanges, place: PartitionPlace) -> Message | None:
    topic, index, partition = place
    if not is_reassigning(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    if not isr:
        if not changes.settings.unclean_leader_election_enable(topic.name):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election.",
            )
        isr = replicas[:1]
    change = changes.change(place)
    change.isr, change.replicas, change.removing, change.adding = isr, replicas, (), ()
    return change.build()


def _check_replication_factor(partition: PartitionImage, target: list[int]) -> None:
    """KIP-860: what a client may require; of a reassignment in progress its target counts."""
    present = len(set(partition.replicas) - set(partition.removing_replicas))
    if present != len(target):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {present} to {len(target)}",
        )


def _reassign(changes: LeaderChanges, place: PartitionPlace, target: list[int]) -> Message | None:
    partition = place.partition
    removing = sorted(set(partition.replicas) - set(target))
    change = changes.change(place, may_be_unclean=False)
    change.replicas = [*target, *removing]
    change.removing = removing
    change.adding = sorted(set(target) - set(partition.replicas) | set(partition.adding_replicas) & set(target))
    return change.build()


def list_reassignments_steps(
    changes: LeaderChanges, request: ListPartitionReassignmentsRequest
) -> Generator[None, None, ListPartitionReassignmentsResponse]:
    """The reassignments in progress, of all partitions or of those asked for."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    visited = 0
    for topic, indexes in _requested(changes, request):
        ongoing = OngoingTopicReassignment(name=topic.name)
        for index in indexes:
            partition = topic.partitions.get(index)
            if partition is not None and is_reassigning(partition):
                ongoing.partitions.append(
                    OngoingPartitionReassignment(
                        partition_index=index,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                )
            visited += 1
            if visited % VISITED_PER_STEP == 0:
                yield
        if ongoing.partitions:
            response.topics.append(ongoing)
    return response


def _requested(
    changes: LeaderChanges, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, Iterable[int]]]:
    if request.topics is None:
        for topic in changes.image.topics.values():
            yield topic, topic.partitions
        return
    for entry in request.topics:
        named = changes.image.topics.get(entry.name)
        if named is not None:
            yield named, entry.partition_indexes
