"""Request and response headers, and the principal of a forwarded request. KIP-482, KIP-590."""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    boolean,
    int16,
    int32,
    message,
    string,
)


@message("header", versions="1-2", flexible="2+")
class RequestHeader(Message):
    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", flexible="none")


@message("header", versions="0-1", flexible="1+")
class ResponseHeader(Message):
    correlation_id: int = int32("0+")


@message("data", versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = boolean("0+")
