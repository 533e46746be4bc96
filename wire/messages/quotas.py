"""Client quotas. KIP-546."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class ComponentData(Struct):
    entity_type: str = string("0+")
    match_type: int = int8("0+")
    match: str | None = string("0+", nullable="0+")


@message("request", key=48, versions="0-1", flexible="1+", listeners=("broker",))
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = array(ComponentData, "0+")
    strict: bool = boolean("0+")


@struct
class DescribeClientQuotasResponseEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class ValueData(Struct):
    key: str = string("0+")
    value: float = float64("0+")


@struct
class DescribeClientQuotasResponseEntryData(Struct):
    entity: list[DescribeClientQuotasResponseEntityData] = array(DescribeClientQuotasResponseEntityData, "0+")
    values: list[ValueData] = array(ValueData, "0+")


@message("response", key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entries: list[DescribeClientQuotasResponseEntryData] | None = array(
        DescribeClientQuotasResponseEntryData, "0+", nullable="0+"
    )


@struct
class AlterClientQuotasRequestEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


@struct
class AlterClientQuotasRequestEntryData(Struct):
    entity: list[AlterClientQuotasRequestEntityData] = array(AlterClientQuotasRequestEntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


@message(
    "request",
    key=49,
    versions="0-1",
    flexible="1+",
    listeners=(
        "broker",
        "controller",
    ),
)
class AlterClientQuotasRequest(Message):
    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData, "0+")
    validate_only: bool = boolean("0+")


@struct
class AlterClientQuotasResponseEntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


@struct
class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = array(AlterClientQuotasResponseEntityData, "0+")


@message("response", key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData, "0+")
