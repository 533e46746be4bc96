"""Subscription and assignment inside JoinGroup and SyncGroup of classic consumers. KIP-429, KIP-792, KIP-881."""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    array,
    byte_string,
    int32,
    message,
    string,
    struct,
)


@struct
class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = string("0+", entity="topicName")
    partitions: list[int] = array(int32, "0+")


@message("data", versions="0-3")
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition, "0+"
    )
    user_data: Bytes | None = byte_string("0+", nullable="0+", default=None)


@struct
class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = string("1+", entity="topicName")
    partitions: list[int] = array(int32, "1+")


@message("data", versions="0-3")
class ConsumerProtocolSubscription(Message):
    topics: list[str] = array(string, "0+")
    user_data: Bytes | None = byte_string("0+", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
