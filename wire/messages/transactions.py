"""Transactions and their producers. KIP-98, KIP-447, KIP-664, KIP-890."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    Uuid,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)


@struct
class AddPartitionsToTxnTopic(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = string("4+", entity="transactionalId")
    producer_id: int = int64("4+", entity="producerId")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


@message("request", key=24, versions="0-5", flexible="3+", listeners=("broker",))
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3", entity="transactionalId")
    v3_and_below_producer_id: int = int64("0-3", entity="producerId")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = int32("0+")
    partition_error_code: int = int16("0+")


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: str = string("0+", entity="topicName")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult, "0+")


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = string("4+", entity="transactionalId")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


@message("response", key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "0-3")


@message("request", key=25, versions="0-4", flexible="3+", listeners=("broker",))
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = string("0+", entity="transactionalId")
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+", entity="groupId")


@message("response", key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")


@message("request", key=26, versions="0-5", flexible="3+", listeners=("broker",))
class EndTxnRequest(Message):
    transactional_id: str = string("0+", entity="transactionalId")
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int16("0+")
    committed: bool = boolean("0+")


@message("response", key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True, entity="producerId")
    producer_epoch: int = int16("5+", default=-1, ignorable=True)


@struct
class WritableTxnMarkerTopic(Struct):
    name: str = string("0+", entity="topicName")
    partition_indexes: list[int] = array(int32, "0+")


@struct
class WritableTxnMarker(Struct):
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic, "0+")
    coordinator_epoch: int = int32("0+")
    transaction_version: int = int8("2+", ignorable=True)


@message("request", key=27, versions="1-2", flexible="1+", listeners=("broker",))
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker, "0+")


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult, "0+")


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int = int64("0+", entity="producerId")
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult, "0+")


@message("response", key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult, "0+")


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = string("0-5", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition, "0+")


@message("request", key=28, versions="0-6", flexible="3+", listeners=("broker",))
class TxnOffsetCommitRequest(Message):
    transactional_id: str = string("0+", entity="transactionalId")
    group_id: str = string("0+", entity="groupId")
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int16("0+")
    generation_id_or_member_epoch: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic, "0+")


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = string("0-5", ignorable=True, entity="topicName")
    topic_id: Uuid = uuid("6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition, "0+")


@message("response", key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic, "0+")


@message("request", key=65, versions="0", flexible="0+", listeners=("broker",))
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = array(string, "0+", entity="transactionalId")


@struct
class DescribeTransactionsResponseTopicData(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@struct
class DescribeTransactionsResponseTransactionState(Struct):
    error_code: int = int16("0+")
    transactional_id: str = string("0+", entity="transactionalId")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int16("0+")
    topics: list[DescribeTransactionsResponseTopicData] = array(DescribeTransactionsResponseTopicData, "0+")


@message("response", key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    transaction_states: list[DescribeTransactionsResponseTransactionState] = array(
        DescribeTransactionsResponseTransactionState, "0+"
    )


@message("request", key=66, versions="0-2", flexible="0+", listeners=("broker",))
class ListTransactionsRequest(Message):
    state_filters: list[str] = array(string, "0+")
    producer_id_filters: list[int] = array(int64, "0+", entity="producerId")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@struct
class ListTransactionsResponseTransactionState(Struct):
    transactional_id: str = string("0+", entity="transactionalId")
    producer_id: int = int64("0+", entity="producerId")
    transaction_state: str = string("0+")


@message("response", key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array(string, "0+")
    transaction_states: list[ListTransactionsResponseTransactionState] = array(
        ListTransactionsResponseTransactionState, "0+"
    )


@struct
class DescribeProducersRequestTopicRequest(Struct):
    name: str = string("0+", entity="topicName")
    partition_indexes: list[int] = array(int32, "0+")


@message("request", key=61, versions="0", flexible="0+", listeners=("broker",))
class DescribeProducersRequest(Message):
    topics: list[DescribeProducersRequestTopicRequest] = array(DescribeProducersRequestTopicRequest, "0+")


@struct
class ProducerState(Struct):
    producer_id: int = int64("0+", entity="producerId")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState, "0+")


@struct
class TopicResponse(Struct):
    name: str = string("0+", entity="topicName")
    partitions: list[PartitionResponse] = array(PartitionResponse, "0+")


@message("response", key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TopicResponse] = array(TopicResponse, "0+")
