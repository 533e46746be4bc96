"""Describe and change configs of topics, brokers and groups. KIP-133, KIP-226, KIP-339, KIP-1142."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class DescribeConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configuration_keys: list[str] | None = array(string, "0+", nullable="0+")


@message(
    "request",
    key=32,
    versions="1-4",
    flexible="4+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource, "0+")
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsSynonym(Struct):
    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@struct
class DescribeConfigsResourceResult(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")
    read_only: bool = boolean("0+")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("0+")
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult, "0+")


@message("response", key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult, "0+")


@struct
class AlterConfigsRequestAlterableConfig(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


@struct
class AlterConfigsRequestAlterConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[AlterConfigsRequestAlterableConfig] = array(AlterConfigsRequestAlterableConfig, "0+")


@message(
    "request",
    key=33,
    versions="0-2",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsRequestAlterConfigsResource] = array(AlterConfigsRequestAlterConfigsResource, "0+")
    validate_only: bool = boolean("0+")


@struct
class AlterConfigsResponseAlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


@message("response", key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResponseAlterConfigsResourceResponse] = array(
        AlterConfigsResponseAlterConfigsResourceResponse, "0+"
    )


@struct
class IncrementalAlterConfigsRequestAlterableConfig(Struct):
    name: str = string("0+")
    config_operation: int = int8("0+")
    value: str | None = string("0+", nullable="0+")


@struct
class IncrementalAlterConfigsRequestAlterConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = array(
        IncrementalAlterConfigsRequestAlterableConfig, "0+"
    )


@message(
    "request",
    key=44,
    versions="0-1",
    flexible="1+",
    listeners=(
        "broker",
        "controller",
    ),
)
class IncrementalAlterConfigsRequest(Message):
    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = array(
        IncrementalAlterConfigsRequestAlterConfigsResource, "0+"
    )
    validate_only: bool = boolean("0+")


@struct
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


@message("response", key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = array(
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse, "0+"
    )


@message("request", key=74, versions="0-1", flexible="0+", listeners=("broker",))
class ListConfigResourcesRequest(Message):
    resource_types: list[int] = array(int8, "1+")


@struct
class ConfigResource(Struct):
    resource_name: str = string("0+")
    resource_type: int = int8("1+", default=16, ignorable=True)


@message("response", key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    config_resources: list[ConfigResource] = array(ConfigResource, "0+")
