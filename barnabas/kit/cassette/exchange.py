"""A request of a session and its response, as bytes without headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.wire.schema import Message


def request_version(api: ApiKey, version: int) -> int:
    """The version to read and write a request in: for a newer ApiVersions than ours the latest (KIP-511)."""
    return min(version, message_for(api)[0].max_version) if api == ApiKey.API_VERSIONS else version


def decoded_request(api: ApiKey, version: int, body: bytes) -> Message:
    """A request as a broker reads it: librdkafka sends some with bytes after their end, which Kafka takes.

    ProtocolError and KafkaError if it cannot be read.
    """
    kind = message_for(api)[0]
    if version != request_version(api, version):
        return kind()  # the body of a later version cannot be read, and is not needed
    return kind.codec(version).parse(body)[0]


@dataclass(slots=True)
class Exchange:
    """A request and its response. Times are in seconds."""

    connection: int
    """The connections of a session are numbered, in the order in which they were opened."""
    at: float
    """Since the session began."""
    api: ApiKey
    version: int
    client_id: str | None
    request: bytes
    response: bytes | None = None
    """None if there was none: Produce with acks=0, or a connection that was closed before."""
    response_version: int = 0
    """The version of the response; it differs from the request's only for ApiVersions (KIP-511)."""
    took: float | None = None
    """From the request to the response."""

    def request_message(self) -> Message:
        """The request, decoded. ProtocolError and KafkaError if it cannot be."""
        return decoded_request(self.api, self.version, self.request)

    def response_message(self) -> Message | None:
        """The response, decoded anew. Errors as `request_message`."""
        return None if self.response is None else message_for(self.api)[1].decode(self.response, self.response_version)
