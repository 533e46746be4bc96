"""Produce (0) and InitProducerId (22): writes records; assigns the id and epoch of an idempotent producer.

KIP-98, KIP-360, KIP-890, KIP-951.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Records,
    Struct,
    Uuid,
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uuid,
)


@struct
class PartitionProduceData(Struct):
    index: int = int32("0+")
    records: Records | None = records("0+", nullable="0+")


@struct
class TopicProduceData(Struct):
    name: str = string("0-12", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData, "0+")


@message("request", key=0, versions="3-13", flexible="9+", listeners=("broker",))
class ProduceRequest(Message):
    transactional_id: str | None = string("3+", nullable="3+", default=None, entity="transactionalId")
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")


@struct
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


@struct
class ProduceResponseLeaderIdAndEpoch(Struct):
    leader_id: int = int32("10+", default=-1, entity="brokerId")
    leader_epoch: int = int32("10+", default=-1)


@struct
class PartitionProduceResponse(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: ProduceResponseLeaderIdAndEpoch = nested(ProduceResponseLeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse(Struct):
    name: str = string("0-12", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse, "0+")


@struct
class ProduceResponseNodeEndpoint(Struct):
    node_id: int = int32("10+", entity="brokerId")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


@message("response", key=0, versions="3-13", flexible="9+")
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[ProduceResponseNodeEndpoint] = array(ProduceResponseNodeEndpoint, "10+", tag=0)


@message("request", key=22, versions="0-6", flexible="2+", latest_unstable=True, listeners=("broker",))
class InitProducerIdRequest(Message):
    transactional_id: str | None = string("0+", nullable="0+", entity="transactionalId")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1, entity="producerId")
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@message("response", key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1, entity="producerId")
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1, entity="producerId")
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
