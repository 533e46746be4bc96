"""Brokers and controllers of a cluster: registration, heartbeats, features, forwarding.

KIP-500, KIP-584, KIP-590, KIP-631.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    Uuid,
    array,
    boolean,
    byte_string,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class BrokerRegistrationRequestListener(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class BrokerRegistrationRequestFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message("request", key=62, versions="0-4", flexible="0+", listeners=("controller",))
class BrokerRegistrationRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")
    cluster_id: str = string("0+")
    incarnation_id: Uuid = uuid("0+")
    listeners: list[BrokerRegistrationRequestListener] = array(BrokerRegistrationRequestListener, "0+")
    features: list[BrokerRegistrationRequestFeature] = array(BrokerRegistrationRequestFeature, "0+")
    rack: str | None = string("0+", nullable="0+")
    is_migrating_zk_broker: bool = boolean("1+")
    log_dirs: list[Uuid] = array(uuid, "2+", ignorable=True)
    previous_broker_epoch: int = int64("3+", default=-1, ignorable=True)


@message("response", key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    broker_epoch: int = int64("0+", default=-1)


@message("request", key=63, versions="0-2", flexible="0+", listeners=("controller",))
class BrokerHeartbeatRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+", default=-1)
    current_metadata_offset: int = int64("0+")
    want_fence: bool = boolean("0+")
    want_shut_down: bool = boolean("0+")
    offline_log_dirs: list[Uuid] = array(uuid, "1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "2+", nullable="2+", tag=1, default=None)


@message("response", key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    is_caught_up: bool = boolean("0+")
    is_fenced: bool = boolean("0+", default=True)
    should_shut_down: bool = boolean("0+")


@message(
    "request",
    key=64,
    versions="0",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class UnregisterBrokerRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")


@message("response", key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@struct
class ControllerRegistrationRequestListener(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class ControllerRegistrationRequestFeature(Struct):
    name: str = string("0+")
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message("request", key=70, versions="0", flexible="0+", listeners=("controller",))
class ControllerRegistrationRequest(Message):
    controller_id: int = int32("0+")
    incarnation_id: Uuid = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    listeners: list[ControllerRegistrationRequestListener] = array(ControllerRegistrationRequestListener, "0+")
    features: list[ControllerRegistrationRequestFeature] = array(ControllerRegistrationRequestFeature, "0+")


@message("response", key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(
    "request",
    key=94,
    versions="0",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class UnregisterControllerRequest(Message):
    controller_id: int = int32("0+")


@message("response", key=94, versions="0", flexible="0+")
class UnregisterControllerResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message("request", key=67, versions="0", flexible="0+", listeners=("controller",))
class AllocateProducerIdsRequest(Message):
    broker_id: int = int32("0+", entity="brokerId")
    broker_epoch: int = int64("0+", default=-1)


@message("response", key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id_start: int = int64("0+", entity="producerId")
    producer_id_len: int = int32("0+")


@struct
class FeatureUpdateKey(Struct):
    feature: str = string("0+")
    max_version_level: int = int16("0+")
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@message(
    "request",
    key=57,
    versions="0-2",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class UpdateFeaturesRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey, "0+")
    validate_only: bool = boolean("1+")


@struct
class UpdatableFeatureResult(Struct):
    feature: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message("response", key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)


@message("request", key=58, versions="0", flexible="0+", listeners=("controller",))
class EnvelopeRequest(Message):
    request_data: Bytes = byte_string("0+")
    request_principal: Bytes | None = byte_string("0+", nullable="0+")
    client_host_address: Bytes = byte_string("0+")


@message("response", key=58, versions="0", flexible="0+")
class EnvelopeResponse(Message):
    response_data: Bytes | None = byte_string("0+", nullable="0+", default=None)
    error_code: int = int16("0+")


@message("request", key=7, versions="none")
class ControlledShutdownRequest(Message):
    """ControlledShutdownRequest carries no fields."""


@message("response", key=7, versions="none")
class ControlledShutdownResponse(Message):
    """ControlledShutdownResponse carries no fields."""
