"""Requests of Kafka's protocol that the control channel makes of a broker of its own process, without a socket.

The dispatcher and handlers of all clients handle them, with the rights of a super user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.server import Server
    from barnabas.wire.schema import Message

R = TypeVar("R", bound="Message")

CLIENT_ID = "barnabas-control"
MAX_FRAME_BYTES = 100 * 1024 * 1024
PRINCIPAL: Final = KafkaPrincipal("BarnabasControl", "test")
"""The principal: a super user of every authorizer, of a type that no client can be authenticated as."""


class LocalClient:
    """Sends requests to one broker; each has a connection of its own, so that none waits for another."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def ask(self, request: Message, response_class: type[R], version: int | None = None) -> R:
        """Send a request in its latest version, or in this one; its response."""
        chosen = request.max_version if version is None else version
        api_key = request.api_key
        frame = b"".join(chunk_bytes(chunk) for chunk in encode_request(request, chosen, 1, CLIENT_ID))
        answered = trio.Event()
        broker = self._server.broker
        connection = Connection(
            Dispatcher(broker, self._server.kind).dispatch,
            listener=self._server.addresses[0].name,
            peer=("127.0.0.1", 0),
            local=("127.0.0.1", self._server.addresses[0].port),
            max_frame_bytes=MAX_FRAME_BYTES,
            buffers=FrameBuffers(),
            on_output=lambda _: answered.set(),
            clock=broker.loop.now,
        )
        connection.principal = PRINCIPAL
        try:
            connection.receive(memoryview(bytearray(frame)), broker.loop.now())
            broker.loop.end_turn()
            if not connection.out:
                await answered.wait()
            response = b"".join(chunk_bytes(chunk) for chunk in connection.out)[4:]
        finally:
            connection.close()
        _, position = parse_response_header(response, api_key, chosen)
        decoded = message_for(api_key)[1].decode(response[position:], chosen)
        assert isinstance(decoded, response_class)
        return decoded
