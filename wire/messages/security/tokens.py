"""Delegation tokens. KIP-48."""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    array,
    byte_string,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@struct
class CreatableRenewers(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@message(
    "request",
    key=38,
    versions="1-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers, "0+")
    max_lifetime_ms: int = int64("0+")


@message("response", key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: Bytes = byte_string("0+")
    throttle_time_ms: int = int32("0+")


@message(
    "request",
    key=39,
    versions="1-2",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class RenewDelegationTokenRequest(Message):
    hmac: Bytes = byte_string("0+")
    renew_period_ms: int = int64("0+")


@message("response", key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")


@message(
    "request",
    key=40,
    versions="1-2",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class ExpireDelegationTokenRequest(Message):
    hmac: Bytes = byte_string("0+")
    expiry_time_period_ms: int = int64("0+")


@message("response", key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")


@struct
class DescribeDelegationTokenOwner(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@message(
    "request",
    key=41,
    versions="1-3",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, "0+", nullable="0+")


@struct
class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@struct
class DescribedDelegationToken(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64("0+")
    expiry_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    token_id: str = string("0+")
    hmac: Bytes = byte_string("0+")
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer, "0+")


@message("response", key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken, "0+")
    throttle_time_ms: int = int32("0+")
