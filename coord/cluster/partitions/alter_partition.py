"""AlterPartition: a leader asks for a new ISR, or says that it has recovered from an unclean election.

Each partition is checked and answered on its own. A leader that knows more than this controller is sent to another one
(41); one that knows less gets 74 or 95; replicas that may not be in the ISR now give 107. Source: Kafka 4.4
`ReplicationControlManager.alterPartition`. KIP-497, KIP-704, KIP-841, KIP-903. Rule R11.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from barnabas.coord.cluster.partitions.leader_changes import CHANGED_PER_STEP, LeaderChanges, PartitionPlace
from barnabas.coord.cluster.partitions.partition_change import RECOVERED, RECOVERING
from barnabas.coord.cluster.topic_image import NO_LEADER_CHANGE, PartitionImage
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)
from barnabas.wire.schema import Message

VERSION_WITH_EPOCHS = 3
"""The first version whose ISR has the epochs of its brokers (KIP-903)."""
ANY_EPOCH = -1


def alter_partition_steps(
    changes: LeaderChanges, request: AlterPartitionRequest, version: int
) -> Generator[None, None, tuple[list[Message], AlterPartitionResponse]]:
    """(records, response) of a request whose broker epoch is current."""
    records: list[Message] = []
    response = AlterPartitionResponse()
    altered: set[tuple[bytes, int]] = set()
    count = 0
    for entry in request.topics:
        topic = changes.image.topics_by_id.get(entry.topic_id)
        topic_result = AlterPartitionResponseTopicData(topic_id=entry.topic_id)
        response.topics.append(topic_result)
        for data in entry.partitions:
            result = AlterPartitionResponsePartitionData(partition_index=data.partition_index)
            topic_result.partitions.append(result)
            partition = None if topic is None else topic.partitions.get(data.partition_index)
            if topic is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            elif partition is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif (entry.topic_id, data.partition_index) in altered:  # the second time its partition epoch is old
                result.error_code = ErrorCode.INVALID_UPDATE_VERSION
            else:
                place = PartitionPlace(topic, data.partition_index, partition)
                record = _alter(changes, request.broker_id, place, data, version, result)
                if record is not None:
                    records.append(record)
                    altered.add((entry.topic_id, data.partition_index))
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    return records, response


def _alter(
    changes: LeaderChanges,
    broker_id: int,
    place: PartitionPlace,
    data: AlterPartitionRequestPartitionData,
    version: int,
    result: AlterPartitionResponsePartitionData,
) -> Message | None:
    """Fill in the answer for one partition; its record, if there is one."""
    isr = data.new_isr_with_epochs
    if version < VERSION_WITH_EPOCHS:
        isr = [BrokerState(broker_id=replica, broker_epoch=ANY_EPOCH) for replica in data.new_isr]
    partition = place.partition
    result.error_code = _checked(changes, broker_id, partition, data, isr)
    if result.error_code:
        return None
    change = changes.change(place)
    change.isr = [state.broker_id for state in isr]
    change.recovery_state = data.leader_recovery_state
    record = change.build()
    if record is not None:
        partition = partition.changed(record)
        if record.leader not in {broker_id, NO_LEADER_CHANGE}:
            # The change completed a reassignment in which this leader was removed.
            result.error_code = ErrorCode.NEW_LEADER_ELECTED
            return record
    result.leader_id, result.leader_epoch = partition.leader, partition.leader_epoch
    result.isr, result.leader_recovery_state = list(partition.isr), partition.leader_recovery_state
    result.partition_epoch = partition.partition_epoch
    return record


def _checked(
    changes: LeaderChanges,
    broker_id: int,
    partition: PartitionImage,
    data: AlterPartitionRequestPartitionData,
    isr: Sequence[BrokerState],
) -> int:
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    replicas = [state.broker_id for state in isr]
    if (
        not set(replicas) <= set(partition.replicas)
        or len(set(replicas)) < len(replicas)
        or partition.leader not in replicas
        or data.leader_recovery_state not in {RECOVERED, RECOVERING}
    ):
        return ErrorCode.INVALID_REQUEST
    if data.leader_recovery_state == RECOVERING and (len(replicas) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_may_join(changes, state) for state in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _may_join(changes: LeaderChanges, state: BrokerState) -> bool:
    return changes.is_active(state.broker_id) and state.broker_epoch in {
        ANY_EPOCH,
        changes.image.brokers[state.broker_id].epoch,
    }
