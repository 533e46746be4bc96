"""Metrics pushed by clients. KIP-714."""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Uuid,
    array,
    boolean,
    byte_string,
    int8,
    int16,
    int32,
    message,
    string,
    uuid,
)


@message("request", key=71, versions="0", flexible="0+", listeners=("broker",))
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = uuid("0+")


@message("response", key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = boolean("0+")
    requested_metrics: list[str] = array(string, "0+")


@message("request", key=72, versions="0", flexible="0+", listeners=("broker",))
class PushTelemetryRequest(Message):
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = boolean("0+")
    compression_type: int = int8("0+")
    metrics: Bytes = byte_string("0+")


@message("response", key=72, versions="0", flexible="0+")
class PushTelemetryResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
