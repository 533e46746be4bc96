"""One client's connection, without its socket: takes bytes, dispatches requests, queues the chunks of the responses.

The transport asks `space()` where to read to (None: its own shared buffer), passes what it has read to `receive` or
`filled`, and sends the chunks in `out`. A connection owns memory only while it holds a partial frame or bytes that
wait for a delayed response. A frame is valid only while its handler runs: a handler copies what it keeps.

Invariants: requests are handled one at a time and in order (a delayed response holds back the following frames, as
Kafka's mute does); a frame's buffer grows with the bytes that arrive, never with the announced size; ProtocolError
closes the connection, KafkaError is answered, any other exception is a bug: it is logged with its traceback and
answered with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import Route, route_for
from barnabas.broker.context import RequestContext
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.net.frame_buffers import FIRST_BUFFER_BYTES, FrameBuffers
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import check_frame_size
from barnabas.wire.runtime import unknown_tags
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.wire.types import Chunk

logger = logging.getLogger("kafka.network.Processor")
request_logger = logging.getLogger("kafka.request.logger")

SMALL_SLICE_BYTES = 16 * 1024
"""File slices below this are read into the response; from here on they are sent by the kernel."""
OUT_LIMIT_BYTES = 2 * 1024 * 1024
"""Requests wait while this much of earlier answers has not been sent."""

_MIN_FRAME_BYTES = 4
_SIZE = Struct(">i")
_HEAD = Struct(">hhih")  # api key, api version, correlation id, length of the client id
_ANSWER = Struct(">ii")  # size, correlation id
_FLEXIBLE_ANSWER = Struct(">iib")


class Connection:
    """The server's side of one connection."""

    __slots__ = (
        "_broker",
        "_buffer",
        "_buffers",
        "_clients",
        "_delayed",
        "_filled",
        "_frame_end",
        "_has_room",
        "_max_frame_bytes",
        "_reserved",
        "client_software",
        "is_closed",
        "is_closing",
        "last_active",
        "listener",
        "local_host",
        "local_port",
        "now",
        "on_close",
        "on_output",
        "out",
        "out_bytes",
        "peer_host",
        "peer_port",
    )

    def __init__(
        self,
        broker: Broker,
        *,
        listener: str,
        peer: tuple[str, int],
        local: tuple[str, int],
        max_frame_bytes: int,
        buffers: FrameBuffers,
        on_output: Callable[[Connection], None],
        now: float,
    ) -> None:
        self._broker = broker
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.local_host, self.local_port = local
        self._max_frame_bytes = max_frame_bytes
        self._buffers = buffers
        self.on_output = on_output
        self.on_close: list[Callable[[], None]] = []  # called once, after the delayed response was cancelled
        self.now = now
        self.last_active = now
        self.out: deque[Chunk] = deque()
        self.out_bytes = 0
        self.is_closing = False  # no more reading; closes once `out` has been sent
        self.is_closed = False
        self.client_software = ("", "")
        self._buffer: bytearray | None = None
        self._filled = 0
        self._frame_end = 0  # in the buffer; 0 while the size is not known
        self._reserved = 0
        self._has_room = True  # for the frame that has begun
        self._delayed: tuple[DelayedResponse, Route, int, Message] | None = None

    # -- what the transport asks

    def space(self) -> memoryview | None:
        """Where the rest of a large partial frame belongs, or None to read into the shared buffer."""
        buffer = self._buffer
        if buffer is None or self._delayed is not None or self._frame_end - self._filled < SMALL_SLICE_BYTES:
            return None
        if self._filled == len(buffer):
            self._grow(min(self._frame_end, 4 * self._filled))
        return memoryview(self._buffer)[self._filled : self._frame_end]  # type: ignore[arg-type]

    @property
    def wants_data(self) -> bool:
        """Whether the transport should go on reading: not while requests already read wait for their turn."""
        return not (self.is_closing or (self._buffer is not None and (self.is_held or not self._has_room)))

    @property
    def is_held(self) -> bool:
        """Whether requests wait: for a delayed response, or for earlier answers to leave."""
        return self._delayed is not None or self.out_bytes >= OUT_LIMIT_BYTES

    @property
    def has_delayed_response(self) -> bool:
        """Whether the client waits for us: such a connection is not idle."""
        return self._delayed is not None

    @property
    def must_still_respond(self) -> bool:
        """Whether an answer comes that must leave before the connection closes."""
        return self._delayed is not None and self._delayed[0].send_before_close

    @property
    def frame_bytes(self) -> int:
        """The size announced for the frame that has begun."""
        return self._frame_end

    # -- what the transport tells

    def filled(self, count: int, now: float) -> None:
        """`count` bytes were read into `space()`."""
        self.now = now
        self._filled += count
        if self._filled >= self._frame_end:
            self._release_buffer()

    def receive(self, data: memoryview, now: float) -> None:
        """Bytes that came in; `data` is the transport's and is not kept."""
        self.now = now
        if self.is_closing:
            return
        if self._buffer is None:
            if self.is_held:
                self._store(data)
            else:
                self._process(data)
        elif self.is_held:
            self._append(data)
        else:
            self._complete(data)

    def drained(self, now: float) -> None:
        """Everything in `out` has been sent: requests that were held may go on."""
        self.now = now
        if self._buffer is None or self.is_held or self.is_closing:
            return
        if 0 < self._frame_end <= self._filled:
            self._release_buffer()

    def admit(self) -> None:
        """There is room for the frame that has begun: read on."""
        self._reserved = self._frame_end
        self._has_room = True
        self.on_output(self)

    def close(self) -> None:
        """The socket is gone, or is about to be: nobody waits for an answer any more."""
        if self.is_closed:
            return
        self.is_closed = self.is_closing = True
        self.out.clear()
        self.out_bytes = 0
        self._buffer = None
        self._give_up_room()
        if self._delayed is not None:
            delayed = self._delayed[0]
            self._delayed = None
            delayed.cancel()
        for closed in self.on_close:
            closed()
        self.on_close.clear()

    # -- bytes to frames

    def _process(self, data: memoryview) -> None:
        """Handle every complete frame of `data`, keep the rest."""
        position = 0
        end = len(data)
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(data, position)
            if not _MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                check_frame_size(size, self._max_frame_bytes)
            frame_end = position + 4 + size
            if frame_end > end:
                break
            self._handle(data[position + 4 : frame_end])
            position = frame_end
            if self._delayed is not None or self.is_closing or self.out_bytes >= OUT_LIMIT_BYTES:
                break
        if position:
            self.last_active = self.now
        if position < end and not self.is_closing:
            self._store(data[position:])

    def _store(self, data: memoryview) -> None:
        """Keep `data`, of which the first frame is not complete or must wait."""
        size = len(data)
        self._frame_end = self._announced_end(data) if size >= 4 else 0
        self._buffer = self._buffers.take(max(self._frame_end, size))
        if len(self._buffer) < size:
            self._grow(size)
        self._buffer[:size] = data
        self._filled = size
        self._ask_for_room()

    def _append(self, data: memoryview) -> None:
        assert self._buffer is not None
        end = self._filled + len(data)
        if end > len(self._buffer):
            self._grow(end)
        self._buffer[self._filled : end] = data
        self._filled = end
        if not self._frame_end and end >= 4:
            self._frame_end = self._announced_end(memoryview(self._buffer))
            self._ask_for_room()

    def _complete(self, data: memoryview) -> None:
        """Fill up the partial frame from `data`, handle it, and go on with what is left."""
        if not self._frame_end:
            missing = 4 - self._filled
            self._append(data[:missing])
            data = data[missing:]
            if not self._frame_end:
                return
        missing = self._frame_end - self._filled
        if missing > len(data):
            self._append(data)
            return
        if missing <= 0:  # whole frames that had been held
            self._append(data)
            self._release_buffer()
            return
        self._append(data[:missing])
        self._release_buffer()
        if len(data) > missing and not self.is_closing:
            self.receive(data[missing:], self.now)

    def _release_buffer(self) -> None:
        """Process what the buffer holds, and give it back."""
        buffer = self._buffer
        assert buffer is not None
        self._buffer = None
        self._give_up_room()
        self._process(memoryview(buffer)[: self._filled])
        self._buffers.give_back(buffer)

    def _ask_for_room(self) -> None:
        """A frame has begun: if it is a large one, it counts."""
        if self._frame_end > FIRST_BUFFER_BYTES and not self._reserved:
            self._has_room = self._buffers.reserve(self, self._frame_end)
            if self._has_room:
                self._reserved = self._frame_end

    def _give_up_room(self) -> None:
        if self._reserved:
            reserved, self._reserved = self._reserved, 0
            self._buffers.release(reserved)

    def _grow(self, size: int) -> None:
        assert self._buffer is not None
        grown = bytearray(size)
        grown[: self._filled] = memoryview(self._buffer)[: self._filled]
        self._buffer = grown

    def _announced_end(self, data: memoryview) -> int:
        (size,) = _SIZE.unpack_from(data)
        check_frame_size(size, self._max_frame_bytes)
        return int(size) + 4

    # -- frames to answers

    def _handle(self, frame: memoryview) -> None:
        """Serve one request."""
        try:
            api_key, api_version, correlation_id, client_id_size = _HEAD.unpack_from(frame)
        except Exception:
            raise ProtocolError("a request shorter than its header") from None
        if api_key == ApiKey.API_VERSIONS:
            route, frame, client_id_size = self._api_versions_route(api_version, correlation_id, frame, client_id_size)
        else:
            route = route_for(api_key, api_version)
        position = 10
        client_id = None
        if client_id_size >= 0:
            position += client_id_size
            client_id = _text(frame, 10, position)
        if route.request_is_flexible:
            position = _behind_tagged_fields(frame, position)
        request, _ = route.request_codec.parse(frame, position)
        context = RequestContext(self._broker, self, route.api_key, api_version, correlation_id, client_id, self.now)
        if request_logger.isEnabledFor(logging.DEBUG):
            request_logger.debug("%s:%d %s %s v%d", self.peer_host, self.peer_port, client_id, route.name, api_version)
        self._serve(route, context, request)

    def _serve(self, route: Route, context: RequestContext, request: Message) -> None:
        try:
            outcome = route.handler(context, request)
        except KafkaError as error:
            self._answer_error(route, context.correlation_id, request, error)
        except ProtocolError:
            raise
        except Exception:
            self._answer_bug(route, context.correlation_id, request)
        else:
            if outcome is None:
                return
            if isinstance(outcome, DelayedResponse):
                self._park(outcome, route, context.correlation_id, request)
                return
            self._answer_or_say_why(route, context.correlation_id, request, outcome)

    def _park(self, delayed: DelayedResponse, route: Route, correlation_id: int, request: Message) -> None:
        self._delayed = (delayed, route, correlation_id, request)
        delayed.attach(self._deliver)

    def _deliver(self, outcome: Message | KafkaError) -> None:
        """The outcome of the delayed response is there."""
        if self._delayed is None:
            return
        _, route, correlation_id, request = self._delayed
        self._delayed = None
        self.last_active = self.now
        if isinstance(outcome, KafkaError):
            try:
                self._answer_error(route, correlation_id, request, outcome)
            except Exception:
                self._answer_bug(route, correlation_id, request)
        else:
            self._answer_or_say_why(route, correlation_id, request, outcome)
        self.on_output(self)

    def _answer_or_say_why(self, route: Route, correlation_id: int, request: Message, response: Message) -> None:
        try:
            self._answer(route, correlation_id, response)
        except OSError as error:  # of the log's files, parts of which are read only now
            logger.error("Cannot read what %s:%d has asked for: %s", self.peer_host, self.peer_port, error)
            self._answer_error(route, correlation_id, request, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        except Exception:
            self._answer_bug(route, correlation_id, request)

    def _answer(self, route: Route, correlation_id: int, response: Message) -> None:
        """Put one answer into `out`: nothing of it if building fails."""
        chunks = route.response_codec.build(response)
        size = 4 + route.response_is_flexible
        for chunk in chunks:
            size += len(chunk)
        out = self.out
        if route.response_is_flexible:
            head = _FLEXIBLE_ANSWER.pack(size, correlation_id, 0)
        else:
            head = _ANSWER.pack(size, correlation_id)
        if len(chunks) == 1:
            out.append(head + chunks[0])  # type: ignore[operator]
        else:
            out.append(head)
            out.extend([_in_memory(chunk) for chunk in chunks])
        self.out_bytes += size + 4

    def _answer_error(self, route: Route, correlation_id: int, request: Message, error: KafkaError) -> None:
        response = route.error_response(request, error)
        if response is None:
            raise ProtocolError(f"{route.name} failed with {error.code.name} and its response has no place to say so")
        self._answer(route, correlation_id, response)

    def _answer_bug(self, route: Route, correlation_id: int, request: Message) -> None:
        logger.exception("%s v%d from %s:%d failed", route.name, route.api_version, self.peer_host, self.peer_port)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The broker failed on this request; its log says why.")
        try:
            self._answer_error(route, correlation_id, request, error)
        except Exception:
            self.is_closing = True

    def _api_versions_route(
        self, api_version: int, correlation_id: int, frame: memoryview, client_id_size: int
    ) -> tuple[Route, memoryview, int]:
        """KIP-511: an ApiVersions of an unknown version is answered in version 0, with error 35."""
        try:
            return route_for(ApiKey.API_VERSIONS, api_version), frame, client_id_size
        except ProtocolError:
            head = _HEAD.pack(ApiKey.API_VERSIONS, 0, correlation_id, -1)
            return route_for(ApiKey.API_VERSIONS, 0), memoryview(head), -1


def _in_memory(chunk: Chunk) -> Chunk:
    """Small file slices are cheaper read than sent by a call of their own."""
    if isinstance(chunk, (bytes, memoryview, bytearray)) or len(chunk) >= SMALL_SLICE_BYTES:
        return chunk
    return chunk.read()


def _text(frame: memoryview, start: int, end: int) -> str:
    if end > len(frame):
        raise ProtocolError("a client id that reaches beyond its frame")
    try:
        return str(frame[start:end], "utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("a client id that is not UTF-8") from None


def _behind_tagged_fields(frame: memoryview, position: int) -> int:
    """The position behind the header's tagged fields; nearly always they are the single byte 0."""
    try:
        if frame[position] == 0:
            return position + 1
        return unknown_tags(frame, position, len(frame))[1]
    except IndexError:
        raise ProtocolError("a request shorter than its header") from None
