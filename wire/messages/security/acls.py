"""Access control lists. KIP-140, KIP-290."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@message(
    "request",
    key=29,
    versions="1-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeAclsRequest(Message):
    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class AclDescription(Struct):
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class DescribeAclsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription, "0+")


@message("response", key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource, "0+")


@struct
class AclCreation(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(
    "request",
    key=30,
    versions="1-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class CreateAclsRequest(Message):
    creations: list[AclCreation] = array(AclCreation, "0+")


@struct
class AclCreationResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message("response", key=30, versions="1-3", flexible="2+")
class CreateAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+")
    host_filter: str | None = string("0+", nullable="0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(
    "request",
    key=31,
    versions="1-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter, "0+")


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@struct
class DeleteAclsFilterResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl, "0+")


@message("response", key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult, "0+")
