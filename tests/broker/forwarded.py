"""Requests that a broker forwards to a controller that the test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from barnabas.broker.apis.registry import FORWARDING
from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import encode_request, encode_response, parse_request_header
from barnabas.wire.messages.cluster import (
    EnvelopeRequest,
    EnvelopeResponse,
)
from barnabas.wire.messages.headers import DefaultPrincipalData
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.broker.fake_controller import FakeController, JoinedBroker
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import Client

PRINCIPAL = b"\0\0" + DefaultPrincipalData(type="User", name="ANONYMOUS").encode(0)


def envelope(request: Message, version: int, **changes: Any) -> EnvelopeRequest:
    frame = b"".join(map(chunk_bytes, encode_request(request, version, 77, "client")))[4:]
    fields = {"request_data": frame, "request_principal": PRINCIPAL, "client_host_address": bytes([10, 0, 0, 9])}
    return EnvelopeRequest(**{**fields, **changes})


class Forwarded:
    """The controller's side: unpacks envelopes and answers the requests in them."""

    def __init__(self, controller: FakeController, response: Message | ErrorCode) -> None:
        self.answer = response
        self.envelopes: list[EnvelopeRequest] = []
        self.requests: list[tuple[int, str | None, Message]] = []
        controller.node.on(EnvelopeRequest, self._envelope)

    def _envelope(self, envelope: EnvelopeRequest, _: int) -> EnvelopeResponse:
        self.envelopes.append(envelope)
        header, position = parse_request_header(envelope.request_data)
        version = header.request_api_version
        request, _end = message_for(header.request_api_key)[0].codec(version).parse(envelope.request_data, position)
        self.requests.append((version, header.client_id, request))
        if isinstance(self.answer, ErrorCode):
            return EnvelopeResponse(error_code=self.answer)
        frame = b"".join(map(chunk_bytes, encode_response(self.answer, version, header.correlation_id)))
        return EnvelopeResponse(response_data=frame[4:])


def client_of(wire: Wire, member: JoinedBroker) -> Client:
    memory = SimpleNamespace(
        broker=member.broker, clock=wire, kind=FORWARDING, listener="PLAINTEXT", address=("127.0.0.1", 9092)
    )
    return Client(memory, max_frame_bytes=1 << 20)


def creation(name: str = "t", **fields: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=fields.get("timeout_ms", 5000))
