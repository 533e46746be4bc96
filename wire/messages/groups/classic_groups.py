"""Classic groups: find the coordinator, join, sync, heartbeat, leave, describe, list, delete.

KIP-62, KIP-345, KIP-394, KIP-518, KIP-848.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    array,
    boolean,
    byte_string,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@message("request", key=10, versions="0-6", flexible="3+", listeners=("broker",))
class FindCoordinatorRequest(Message):
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


@struct
class Coordinator(Struct):
    key: str = string("4+")
    node_id: int = int32("4+", entity="brokerId")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


@message("response", key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3", entity="brokerId")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")


@struct
class JoinGroupRequestProtocol(Struct):
    name: str = string("0+")
    metadata: Bytes = byte_string("0+")


@message("request", key=11, versions="0-9", flexible="6+", listeners=("broker",))
class JoinGroupRequest(Message):
    group_id: str = string("0+", entity="groupId")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: Bytes = byte_string("0+")


@message("response", key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+")


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str = string("0+")
    assignment: Bytes = byte_string("0+")


@message("request", key=14, versions="0-5", flexible="4+", listeners=("broker",))
class SyncGroupRequest(Message):
    group_id: str = string("0+", entity="groupId")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


@message("response", key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: Bytes = byte_string("0+")


@message("request", key=12, versions="0-4", flexible="4+", listeners=("broker",))
class HeartbeatRequest(Message):
    group_id: str = string("0+", entity="groupId")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message("response", key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")


@struct
class MemberIdentity(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message("request", key=13, versions="0-5", flexible="4+", listeners=("broker",))
class LeaveGroupRequest(Message):
    group_id: str = string("0+", entity="groupId")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


@struct
class MemberResponse(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@message("response", key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")


@message("request", key=15, versions="0-6", flexible="5+", listeners=("broker",))
class DescribeGroupsRequest(Message):
    groups: list[str] = array(string, "0+", entity="groupId")
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribedGroupMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: Bytes = byte_string("0+")
    member_assignment: Bytes = byte_string("0+")


@struct
class DescribeGroupsResponseDescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+", entity="groupId")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-(2**31))


@message("response", key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribeGroupsResponseDescribedGroup] = array(DescribeGroupsResponseDescribedGroup, "0+")


@message("request", key=16, versions="0-5", flexible="3+", listeners=("broker",))
class ListGroupsRequest(Message):
    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


@struct
class ListedGroup(Struct):
    group_id: str = string("0+", entity="groupId")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message("response", key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array(ListedGroup, "0+")


@message("request", key=42, versions="0-3", flexible="2+", listeners=("broker",))
class DeleteGroupsRequest(Message):
    groups_names: list[str] = array(string, "0+", entity="groupId")


@struct
class DeletableGroupResult(Struct):
    group_id: str = string("0+", entity="groupId")
    error_code: int = int16("0+")
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@message("response", key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
