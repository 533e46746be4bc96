"""One client's connection, without its socket: cuts the received bytes into frames and dispatches them in order.

The transport asks `space()` where to read to (None: its own shared buffer), passes the bytes that it has read to
`receive` or `filled`, and sends the chunks in `out`. A connection owns memory only while it holds a partial frame or
bytes that wait behind a request that waits. A frame is valid only while it is dispatched: a handler copies what it
keeps.

Invariants: requests are handled one at a time and in order (one that waits holds back the following frames, as
Kafka's mute does); a frame's buffer grows with the bytes that arrive, never with the announced size; the requests of
one call take at most `SHARE_S` and one request more, the others are kept for `resume`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.net.frame_buffers import FIRST_BUFFER_BYTES
from barnabas.wire.frame import check_frame_size
from barnabas.wire.principal import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.net.frame_buffers import FrameBuffers
    from barnabas.wire.errors import ProtocolError
    from barnabas.wire.principal import KafkaPrincipal
    from barnabas.wire.types import Chunk

SMALL_SLICE_BYTES = 16 * 1024
"""File slices smaller than this are read into the response; larger ones are sent by the kernel (sendfile)."""
OUT_LIMIT_BYTES = 2 * 1024 * 1024
"""Further requests wait while this many bytes of responses have not been sent."""
SHARE_S = 0.0005
"""How long a connection's requests are handled before those of the other connections, seconds."""
EXPENSIVE_S = 0.001
"""A connection that takes this much CPU time when it is served waits for the others the next time, seconds."""

_MIN_FRAME_BYTES = 4
_SIZE = Struct(">i")


class Authenticator(Protocol):
    """Decides which requests of a connection are served (in `broker.security`); the dispatcher calls it."""

    def versions_answered(self) -> None:
        """ApiVersions was answered."""


class Waiting(Protocol):
    """The wait of the dispatched request: for a coroutine of its handler, or the end of a throttle time."""

    has_paused: bool
    """Whether the request was long, and so is its response."""
    send_before_close: bool
    """Whether a broker that stops sends the response before it closes the connection."""

    def cancel(self) -> None:
        """End the wait: the client has disconnected."""


class Meter(Protocol):
    """What counts turns and errors for metrics."""

    turns: list[float]
    """The lengths of turns, seconds; `count_turns` is called when there are some."""

    def count_turns(self) -> None:
        """Count the turns in the list, and empty it."""

    def count_errors(self, route: Any, response: Any) -> None:
        """Count the errors in a response."""


class Connection:
    """The server's side of one connection."""

    __slots__ = (
        "_buffers",
        "_filled",
        "_frame_end",
        "_is_admitted",
        "_max_frame_bytes",
        "_principal",
        "_reserved",
        "_share_end",
        "authenticator",
        "client_software",
        "clock",
        "count_errors",
        "delayed",
        "dispatch",
        "granted_topics",
        "is_closed",
        "is_closing",
        "last_active",
        "listener",
        "local_host",
        "local_port",
        "now",
        "on_authenticated",
        "on_close",
        "on_output",
        "on_refused",
        "out",
        "out_bytes",
        "partial",
        "peer_host",
        "peer_port",
        "security_protocol",
    )

    def __init__(
        self,
        dispatch: Callable[[Connection, memoryview], None],
        *,
        listener: str,
        peer: tuple[str, int],
        local: tuple[str, int],
        max_frame_bytes: int,
        buffers: FrameBuffers,
        on_output: Callable[[Connection], None],
        clock: Callable[[], float],
        security_protocol: str = "PLAINTEXT",
        on_refused: Callable[[Connection, ProtocolError], None] | None = None,
        count_errors: Callable[..., None] | None = None,
    ) -> None:
        """`dispatch` serves one frame; `on_output` is called when there is something to send outside of a read.

        `on_refused` is called with a frame's error that is found after `dispatch`, which raises the others.
        `clock` is the monotonic clock, seconds. `count_errors` takes the route and the response that has errors.
        """
        self.dispatch = dispatch
        self.listener = listener
        self.security_protocol = security_protocol
        self.peer_host, self.peer_port = peer
        self.local_host, self.local_port = local
        self._max_frame_bytes = max_frame_bytes
        self._buffers = buffers
        self.on_output = on_output
        self.on_refused = on_refused
        self.on_close: list[
            Callable[[], None]
        ] = []  # called once, after the task of the request that waits was cancelled
        self.on_authenticated: Callable[[Connection], None] | None = None  # called once
        self.clock = clock
        self.count_errors = count_errors  # for metrics
        self.now = self.last_active = self._share_end = clock()
        self.out: deque[Chunk] = deque()
        self.out_bytes = 0
        self.is_closing = False  # no more reading; closes once `out` has been sent
        self.is_closed = False
        self.client_software = ("", "")
        self.principal = ANONYMOUS  # until the peer is authenticated
        self.authenticator: Authenticator | None = None  # while it must authenticate, or its session has an end
        self.partial: bytearray | None = None
        """The frame that has begun, or whole frames that wait; None between frames, nearly always."""
        self._filled = 0
        self._frame_end = 0  # in the buffer; 0 while the size is not known
        self._reserved = 0
        self._is_admitted = True  # whether the frame that has begun fits into queued.max.request.bytes
        self.delayed: Waiting | None = None  # the wait of the dispatched request

    def refuse(self, error: ProtocolError) -> None:
        """Close the connection, outside of `dispatch`, because its peer has sent something invalid."""
        self.is_closing = True
        if self.on_refused is not None:
            self.on_refused(self, error)

    def limit_frames(self, max_frame_bytes: int) -> None:
        """Set the largest size of the frames that follow."""
        self._max_frame_bytes = max_frame_bytes

    @property
    def principal(self) -> KafkaPrincipal:
        """The principal of the peer."""
        return self._principal

    @principal.setter
    def principal(self, principal: KafkaPrincipal) -> None:
        self._principal = principal
        self.granted_topics: dict[int, set[str | bytes]] = {}
        """By operation, topics that the authorizer is known to allow; it belongs to `broker.apis.access`."""

    def authenticated(self) -> None:
        """The client has authenticated, as far as its listener requires."""
        called, self.on_authenticated = self.on_authenticated, None
        if called is not None:
            called(self)

    def use_buffers(self, buffers: FrameBuffers) -> None:
        """Receive the frames that follow into other buffers. Only while no frame is being received."""
        self._buffers = buffers

    # -- queries of the transport

    def space(self) -> memoryview | None:
        """The memory to read the rest of a large partial frame into, or None to read into the shared buffer."""
        buffer = self.partial
        if buffer is None or self.delayed is not None or self._frame_end - self._filled < SMALL_SLICE_BYTES:
            return None
        if not self._is_admitted:
            return None
        if self._filled == len(buffer):
            self._grow(min(self._frame_end, 4 * self._filled))
        return memoryview(self.partial)[self._filled : self._frame_end]  # type: ignore[arg-type]

    @property
    def wants_data(self) -> bool:
        """Whether the transport should read: not while requests that were read already are kept."""
        if self.partial is None:
            return not self.is_closing
        return not (self.is_closing or self.is_held or not self._is_admitted or self._has_frame)

    @property
    def can_resume(self) -> bool:
        """Whether `resume` has something to do: a request was kept, and nothing holds it back any more."""
        if self.partial is None:
            return False  # nearly always
        return self._has_frame and not (self.is_held or self.out or self.is_closing)

    @property
    def is_finished(self) -> bool:
        """Whether the connection is to be closed now: it is closing, and nothing is left to be sent."""
        return self.is_closing and not (self.out or self.must_still_respond)

    @property
    def _has_frame(self) -> bool:
        """Whether a complete request was kept."""
        return self.partial is not None and 0 < self._frame_end <= self._filled

    @property
    def is_held(self) -> bool:
        """Whether requests are held back: by a request that waits, or by responses that are not sent yet."""
        return self.delayed is not None or self.out_bytes >= OUT_LIMIT_BYTES

    @property
    def has_delayed_response(self) -> bool:
        """Whether the client is waiting for the broker: such a connection is not idle."""
        return self.delayed is not None

    @property
    def must_still_respond(self) -> bool:
        """Whether there will be a response that must be sent before the connection closes."""
        return self.delayed is not None and self.delayed.send_before_close

    @property
    def frame_bytes(self) -> int:
        """The size announced for the frame that has begun."""
        return self._frame_end

    # -- events from the transport

    def filled(self, count: int, now: float, share_s: float = SHARE_S) -> None:
        """`count` bytes were read into `space()`."""
        self.now = now
        self._share_end = now + share_s
        self._filled += count
        if self._filled >= self._frame_end:
            self._release_buffer()

    def receive(self, data: memoryview, now: float, share_s: float = SHARE_S) -> None:
        """Take received bytes; `data` belongs to the transport and is not kept. `share_s` is how long requests are
        served, seconds."""
        self.now = now
        self._share_end = now + share_s
        if self.is_closing:
            return
        if self.partial is None:
            if self.delayed is not None or self.out_bytes >= OUT_LIMIT_BYTES:
                self._store(data)
                return
            end = len(data)
            if 4 < end <= self._max_frame_bytes and _SIZE.unpack_from(data)[0] == end - 4 >= _MIN_FRAME_BYTES:
                self.dispatch(self, data[4:])  # one whole frame, nearly always
                self.last_active = now
            else:
                self._process(data)
        elif self.is_held:
            self._append(data)
        else:
            self._complete(data)

    def resume(self, now: float) -> None:
        """Go on with requests that were kept: the share of a turn was used up, or a response had to be sent first."""
        self.now = now
        self._share_end = now + SHARE_S
        if self._has_frame and not self.is_held and not self.is_closing:
            self._release_buffer()

    def replace(self, response: bytes, other: bytes) -> None:
        """Send another response in place of one that is in `out`; nothing if it is not there any more."""
        for index, chunk in enumerate(self.out):
            if chunk is response:
                self.out[index] = other
                self.out_bytes += len(other) - len(response)
                return

    def admit(self) -> None:
        """The frame that has begun fits into queued.max.request.bytes now: go on reading it."""
        self._reserved = self._frame_end
        self._is_admitted = True
        self.on_output(self)

    def close(self) -> None:
        """Free everything: the socket is closed or about to be. Calls `on_close`; a second call does nothing."""
        if self.is_closed:
            return
        self.is_closed = self.is_closing = True
        self.out.clear()
        self.out_bytes = 0
        self.partial = None
        self._release_reservation()
        if self.delayed is not None:
            delayed = self.delayed
            self.delayed = None
            delayed.cancel()
        for closed in self.on_close:
            call_guarded("Releasing what a closed connection held", closed)
        self.on_close.clear()

    # -- bytes to frames

    def _process(self, data: memoryview) -> None:
        """Dispatch every complete frame of `data`, keep the rest."""
        position = 0
        end = len(data)
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(data, position)
            if not _MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                check_frame_size(size, self._max_frame_bytes)
            frame_end = position + 4 + size
            if frame_end > end:
                break
            self.dispatch(self, data[position + 4 : frame_end])
            position = frame_end
            if self.delayed is not None or self.is_closing or self.out_bytes >= OUT_LIMIT_BYTES:
                break
            if position < end and self.clock() >= self._share_end:
                break
        if position:
            self.last_active = self.now
        if position < end and not self.is_closing:
            self._store(data[position:])

    def _store(self, data: memoryview) -> None:
        """Keep `data`, of which the first frame is not complete or must wait."""
        size = len(data)
        self._frame_end = self._announced_end(data) if size >= 4 else 0
        self.partial = self._buffers.take(max(self._frame_end, size))
        if len(self.partial) < size:
            self._grow(size)
        self.partial[:size] = data
        self._filled = size
        self._reserve()

    def _append(self, data: memoryview) -> None:
        assert self.partial is not None
        end = self._filled + len(data)
        if end > len(self.partial):
            self._grow(end)
        self.partial[self._filled : end] = data
        self._filled = end
        if not self._frame_end and end >= 4:
            self._frame_end = self._announced_end(memoryview(self.partial))
            self._reserve()

    def _complete(self, data: memoryview) -> None:
        """Complete the partial frame from `data`, dispatch it, and go on with the rest of `data`."""
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
        if missing <= 0:  # complete frames that were held back
            self._append(data)
            self._release_buffer()
            return
        self._append(data[:missing])
        self._release_buffer()
        if len(data) > missing and not self.is_closing:
            if self.clock() >= self._share_end:
                self._store(data[missing:])
            else:
                self.receive(data[missing:], self.now, self._share_end - self.now)

    def _release_buffer(self) -> None:
        """Process the content of the buffer, and return the buffer for reuse."""
        buffer = self.partial
        assert buffer is not None
        self.partial = None
        self._release_reservation()
        self._process(memoryview(buffer)[: self._filled])
        self._buffers.give_back(buffer)

    def _reserve(self) -> None:
        """Reserve the size of a large frame that has begun (queued.max.request.bytes); a complete one needs none."""
        if self._frame_end > FIRST_BUFFER_BYTES and self._frame_end > self._filled and not self._reserved:
            self._is_admitted = self._buffers.reserve(self, self._frame_end)
            if self._is_admitted:
                self._reserved = self._frame_end

    def _release_reservation(self) -> None:
        if not self._is_admitted:
            self._is_admitted = True
            self._buffers.leave(self)
        if self._reserved:
            reserved, self._reserved = self._reserved, 0
            self._buffers.release(reserved)

    def _grow(self, size: int) -> None:
        assert self.partial is not None
        grown = bytearray(size)
        grown[: self._filled] = memoryview(self.partial)[: self._filled]
        self.partial = grown

    def _announced_end(self, data: memoryview) -> int:
        (size,) = _SIZE.unpack_from(data)
        check_frame_size(size, self._max_frame_bytes)
        return int(size) + 4
