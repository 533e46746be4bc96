"""Serves a cassette on one address, which stands for all brokers of the session.

Requests that the cassette does not have are answered INVALID_REQUEST, and topics that it does not have with
TOPIC_AUTHORIZATION_FAILED, which clients do not try again, so that a test fails and does not wait. Where the answer has
no place for an error the connection is closed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from barnabas.broker.apis.registry import BROKER_APIS, Route
from barnabas.broker.net.acceptor import bind
from barnabas.broker.net.task_listener import serve_in_tasks
from barnabas.kit.cassette.addresses import replace_addresses
from barnabas.kit.cassette.exchange import decoded_request
from barnabas.kit.cassette.frames import Frames
from barnabas.kit.cassette.replay import Answer, MissingError, Replay
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import encode_response, parse_request_header
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.kit.cassette.addresses import Address
    from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.cassette")

BACKLOG: Final = 128
MAX_CONNECTIONS: Final = 256


class Player:
    """Answers clients from a cassette."""

    def __init__(self, replay: Replay, listen: Address) -> None:
        """OSError if `listen` cannot be used."""
        self.replay = replay
        self._listening = bind(*listen, BACKLOG)
        self.address = listen[0], self._listening.getsockname()[1]

    async def run(self) -> None:
        """Serve until cancelled."""
        await serve_in_tasks(self._listening, trio.Semaphore(MAX_CONNECTIONS), self._serve, logger)

    async def _serve(self, client: trio.SocketStream) -> None:
        """One connection."""
        frames = Frames(client)
        try:
            while (frame := await frames.next()) is not None:
                await self._answer(client, frame)
        except (ProtocolError, KafkaError, MissingError) as error:
            logger.warning("A connection is closed: %s", error)

    async def _answer(self, client: trio.SocketStream, frame: bytes) -> None:
        header, position = parse_request_header(frame)
        api, version = ApiKey(header.request_api_key), header.request_api_version
        request = decoded_request(api, version, frame[position:])
        try:
            response = self.replay.answer(api, version, request)
        except MissingError as error:
            refusal = error.refusal or _refusal(api, version, request, str(error))
            if refusal is None:
                raise
            response = Answer(refusal, version)
        if response is None:
            return
        replace_addresses(response.message, lambda _: client.socket.getsockname()[:2])
        if response.wait_s:
            await trio.sleep(response.wait_s)
        chunks = encode_response(response.message, response.version, header.correlation_id)
        await client.send_all(b"".join(map(chunk_bytes, chunks)))


def _refusal(api: ApiKey, version: int, request: Message, sentence: str) -> Message | None:
    """The answer to a request that the cassette does not have, None if there is none for an error."""
    if api not in BROKER_APIS:
        return None
    return Route(api, version).error_response(request, KafkaError(ErrorCode.INVALID_REQUEST, sentence))
