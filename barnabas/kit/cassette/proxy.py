"""A proxy that records: it passes frames on between clients and brokers, and hands over each exchange.

Each broker that a response names gets a listening socket of its own, and its address is replaced by that one, so that
clients stay with the proxy. Nothing else is changed. Responses have the order of their requests, so the oldest request
without a response is the one that is answered (as in Kafka). A request that cannot be read closes its connection.
Connections are plaintext.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.broker.net.acceptor import bind
from barnabas.broker.net.task_listener import serve_in_tasks
from barnabas.kit.cassette.addresses import Address, has_addresses, replace_addresses
from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.frames import Frames
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import (
    SIZE,
    api_versions_response_version,
    encode_response,
    parse_request_header,
    parse_response_header,
)
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    import socket

    from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.cassette")

BACKLOG: Final = 128
MAX_CONNECTIONS: Final = 256
MAX_BROKERS: Final = 1000
"""Listening sockets."""


class Proxy:
    """Records the sessions of the clients that connect to it."""

    def __init__(self, upstream: Address, listen: Address, keep: Callable[[Exchange], Awaitable[None]]) -> None:
        """`keep` is called with each exchange when it is complete. OSError if `listen` cannot be used."""
        self.keep = keep
        self._listeners: dict[Address, socket.socket] = {}
        self._host = listen[0]
        self._numbers = count(1)
        self._nursery: trio.Nursery
        self._limit = trio.Semaphore(MAX_CONNECTIONS)
        self._unreachable: set[Address] = set()
        """Brokers that could not be reached: each is logged once, since clients retry."""
        self._began = trio.current_time()
        self.address = self._listen(upstream, listen)
        """The proxy's address for the first broker."""

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as self._nursery:
            for upstream, listening in list(self._listeners.items()):
                self._nursery.start_soon(self._accept, upstream, listening)
            await trio.sleep_forever()

    def close(self) -> None:
        """Close the listening sockets."""
        for listening in self._listeners.values():
            listening.close()

    def _listen(self, upstream: Address, listen: Address) -> Address:
        listening = self._listeners[upstream] = bind(*listen, BACKLOG)
        return self._host, listening.getsockname()[1]

    def _port_of(self, broker: Address) -> int:
        """The proxy's port for a broker."""
        listening = self._listeners.get(broker)
        if listening is not None:
            return int(listening.getsockname()[1])
        if len(self._listeners) == MAX_BROKERS:
            raise ProtocolError(f"the brokers have had more than {MAX_BROKERS} addresses")
        _, port = self._listen(broker, (self._host, 0))
        self._nursery.start_soon(self._accept, broker, self._listeners[broker])
        return port

    async def _accept(self, upstream: Address, listening: socket.socket) -> None:
        await serve_in_tasks(listening, self._limit, partial(self._serve, upstream), logger)

    async def _serve(self, upstream: Address, client: trio.SocketStream) -> None:
        """One connection."""
        try:
            broker = await trio.open_tcp_stream(*upstream)
        except OSError as error:
            if upstream not in self._unreachable:
                self._unreachable.add(upstream)
                logger.warning("No connection to the broker at %s:%d: %s", *upstream, error)
            return
        self._unreachable.discard(upstream)
        async with broker:
            await _Session(self, client, broker, next(self._numbers)).run()

    def now(self) -> float:
        """Seconds since the recording began."""
        return trio.current_time() - self._began

    def rewritten(self, exchange: Exchange, host: str) -> Message | None:
        """The response with the proxy's ports, at the host that the client has reached; None if it has no address."""
        if not has_addresses(message_for(exchange.api)[1]):
            return None
        message = exchange.response_message()
        replace_addresses(message, lambda broker: (host, self._port_of(broker)))
        return message


class _Session:
    """One connection of a client, and the connection to the broker."""

    def __init__(self, proxy: Proxy, client: trio.SocketStream, broker: trio.SocketStream, number: int) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._number = number
        self._waiting: deque[Exchange] = deque()

    async def run(self) -> None:
        """Pass frames on until one side closes."""
        try:
            async with trio.open_nursery() as nursery:

                async def until_closed(direction: Callable[[], Awaitable[None]]) -> None:
                    await direction()
                    nursery.cancel_scope.cancel()

                nursery.start_soon(until_closed, self._requests)
                nursery.start_soon(until_closed, self._responses)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # one side has closed the connection
        except* (ProtocolError, KafkaError, OSError) as group:
            logger.warning("Connection %d is closed: %s", self._number, group.exceptions[0])
        for exchange in self._waiting:
            await self._proxy.keep(exchange)

    async def _requests(self) -> None:
        frames = Frames(self._client)
        while (frame := await frames.next()) is not None:
            header, position = parse_request_header(frame)
            exchange = Exchange(
                connection=self._number,
                at=self._proxy.now(),
                api=ApiKey(header.request_api_key),
                version=header.request_api_version,
                client_id=header.client_id,
                request=frame[position:],
                response_version=header.request_api_version,
            )
            _refuse_raw_tokens(exchange)
            if _has_response(exchange):
                self._waiting.append(exchange)
            else:
                await self._proxy.keep(exchange)
            await self._broker.send_all(SIZE.pack(len(frame)) + frame)

    async def _responses(self) -> None:
        frames = Frames(self._broker)
        while (frame := await frames.next()) is not None:
            if not self._waiting:
                raise ProtocolError("the broker has sent a response without a request")
            exchange = self._waiting.popleft()
            await self._client.send_all(await self._completed(exchange, frame))

    async def _completed(self, exchange: Exchange, frame: bytes) -> bytes:
        """Complete an exchange; the response as the client gets it."""
        header, position = parse_response_header(frame, exchange.api, exchange.version)
        exchange.response = frame[position:]
        if exchange.api == ApiKey.API_VERSIONS:
            exchange.response_version = api_versions_response_version(exchange.response, exchange.version)
        exchange.took = self._proxy.now() - exchange.at
        await self._proxy.keep(exchange)
        rewritten = self._proxy.rewritten(exchange, self._client.socket.getsockname()[0])
        if rewritten is None:
            return SIZE.pack(len(frame)) + frame
        chunks = encode_response(rewritten, exchange.response_version, header.correlation_id)
        return b"".join(map(chunk_bytes, chunks))


def _has_response(exchange: Exchange) -> bool:
    """Whether the broker will respond: a Produce with acks=0 has no response."""
    if exchange.api != ApiKey.PRODUCE:
        return True
    request: Any = exchange.request_message()
    return bool(request.acks != 0)


def _refuse_raw_tokens(exchange: Exchange) -> None:
    """After a SaslHandshake of version 0 a client sends passwords in frames that are no requests, as before KIP-152."""
    if exchange.api == ApiKey.SASL_HANDSHAKE and exchange.version == 0:
        raise ProtocolError("a client logs in with SaslHandshake of version 0, which is not recorded")
