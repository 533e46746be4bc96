"""State of share partitions, stored by the share coordinator. KIP-932."""

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
    string,
    struct,
    uuid,
)


@struct
class InitializeShareGroupStateRequestPartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class InitializeStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[InitializeShareGroupStateRequestPartitionData] = array(
        InitializeShareGroupStateRequestPartitionData, "0+"
    )


@message("request", key=83, versions="0", flexible="0+", listeners=("broker",))
class InitializeShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[InitializeStateData] = array(InitializeStateData, "0+")


@struct
class InitializeShareGroupStateResponsePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class InitializeStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[InitializeShareGroupStateResponsePartitionResult] = array(
        InitializeShareGroupStateResponsePartitionResult, "0+"
    )


@message("response", key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = array(InitializeStateResult, "0+")


@struct
class ReadShareGroupStateRequestPartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateRequestPartitionData] = array(ReadShareGroupStateRequestPartitionData, "0+")


@message("request", key=84, versions="0", flexible="0+", listeners=("broker",))
class ReadShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateData] = array(ReadStateData, "0+")


@struct
class ReadShareGroupStateResponseStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@struct
class ReadShareGroupStateResponsePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    state_batches: list[ReadShareGroupStateResponseStateBatch] = array(ReadShareGroupStateResponseStateBatch, "0+")


@struct
class ReadStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateResponsePartitionResult] = array(
        ReadShareGroupStateResponsePartitionResult, "0+"
    )


@message("response", key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = array(ReadStateResult, "0+")


@struct
class WriteShareGroupStateRequestStateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@struct
class WriteShareGroupStateRequestPartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[WriteShareGroupStateRequestStateBatch] = array(WriteShareGroupStateRequestStateBatch, "0+")


@struct
class WriteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[WriteShareGroupStateRequestPartitionData] = array(WriteShareGroupStateRequestPartitionData, "0+")


@message("request", key=85, versions="0-1", flexible="0+", listeners=("broker",))
class WriteShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[WriteStateData] = array(WriteStateData, "0+")


@struct
class WriteShareGroupStateResponsePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class WriteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[WriteShareGroupStateResponsePartitionResult] = array(
        WriteShareGroupStateResponsePartitionResult, "0+"
    )


@message("response", key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = array(WriteStateResult, "0+")


@struct
class DeleteShareGroupStateRequestPartitionData(Struct):
    partition: int = int32("0+")


@struct
class DeleteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[DeleteShareGroupStateRequestPartitionData] = array(DeleteShareGroupStateRequestPartitionData, "0+")


@message("request", key=86, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[DeleteStateData] = array(DeleteStateData, "0+")


@struct
class DeleteShareGroupStateResponsePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class DeleteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[DeleteShareGroupStateResponsePartitionResult] = array(
        DeleteShareGroupStateResponsePartitionResult, "0+"
    )


@message("response", key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = array(DeleteStateResult, "0+")


@struct
class ReadShareGroupStateSummaryRequestPartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateSummaryData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateSummaryRequestPartitionData] = array(
        ReadShareGroupStateSummaryRequestPartitionData, "0+"
    )


@message("request", key=87, versions="0-1", flexible="0+", listeners=("broker",))
class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData, "0+")


@struct
class ReadShareGroupStateSummaryResponsePartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult] = array(
        ReadShareGroupStateSummaryResponsePartitionResult, "0+"
    )


@message("response", key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult, "0+")
