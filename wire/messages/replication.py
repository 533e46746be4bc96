"""AlterPartition (56): in-sync replicas; and three APIs that Kafka 4 removed (no valid version).

KIP-497, KIP-903, KIP-966.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    Uuid,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    struct,
    uuid,
)


@struct
class BrokerState(Struct):
    broker_id: int = int32("3+", entity="brokerId")
    broker_epoch: int = int64("3+", default=-1)


@struct
class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_epoch: int = int32("0+")
    new_isr: list[int] = array(int32, "0-2", entity="brokerId")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionRequestTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array(AlterPartitionRequestPartitionData, "0+")


@message("request", key=56, versions="2-3", flexible="0+", listeners=("controller",))
class AlterPartitionRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = array(AlterPartitionRequestTopicData, "0+")


@struct
class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+", entity="brokerId")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(int32, "0+", entity="brokerId")
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionResponseTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array(AlterPartitionResponsePartitionData, "0+")


@message("response", key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData, "0+")


@message("request", key=4, versions="none")
class LeaderAndIsrRequest(Message):
    """LeaderAndIsrRequest carries no fields."""


@message("response", key=4, versions="none")
class LeaderAndIsrResponse(Message):
    """LeaderAndIsrResponse carries no fields."""


@message("request", key=5, versions="none")
class StopReplicaRequest(Message):
    """StopReplicaRequest carries no fields."""


@message("response", key=5, versions="none")
class StopReplicaResponse(Message):
    """StopReplicaResponse carries no fields."""


@message("request", key=6, versions="none")
class UpdateMetadataRequest(Message):
    """UpdateMetadataRequest carries no fields."""


@message("response", key=6, versions="none")
class UpdateMetadataResponse(Message):
    """UpdateMetadataResponse carries no fields."""
