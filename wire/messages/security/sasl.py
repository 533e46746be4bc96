"""SASL handshake and authentication, and SCRAM credentials. KIP-43, KIP-152, KIP-368, KIP-554."""

from __future__ import annotations

from barnabas.wire.schema import (
    Bytes,
    Message,
    Struct,
    array,
    byte_string,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@message(
    "request",
    key=17,
    versions="0-1",
    listeners=(
        "broker",
        "controller",
    ),
)
class SaslHandshakeRequest(Message):
    mechanism: str = string("0+")


@message("response", key=17, versions="0-1")
class SaslHandshakeResponse(Message):
    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")


@message(
    "request",
    key=36,
    versions="0-2",
    flexible="2+",
    listeners=(
        "broker",
        "controller",
    ),
)
class SaslAuthenticateRequest(Message):
    auth_bytes: Bytes = byte_string("0+")


@message("response", key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: Bytes = byte_string("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)


@struct
class UserName(Struct):
    name: str = string("0+")


@message(
    "request",
    key=50,
    versions="0",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = array(UserName, "0+", nullable="0+")


@struct
class CredentialInfo(Struct):
    mechanism: int = int8("0+")
    iterations: int = int32("0+")


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+")


@message("response", key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult, "0+")


@struct
class ScramCredentialDeletion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")


@struct
class ScramCredentialUpsertion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: Bytes = byte_string("0+")
    salted_password: Bytes = byte_string("0+")


@message(
    "request",
    key=51,
    versions="0",
    flexible="0+",
    listeners=(
        "broker",
        "controller",
    ),
)
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion, "0+")
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion, "0+")


@struct
class AlterUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message("response", key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult, "0+")
