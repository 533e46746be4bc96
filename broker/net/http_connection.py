"""A connection of HTTP/1.1 with a client, over a stream of trio: events of h11 in, events out.

The control channel of tests and the metrics listener are served with it. Its users decide which requests are valid; h11
bounds the head of a request.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import h11
import trio

READ_BYTES: Final = 64 * 1024


class HttpConnection:
    """The server's side of one connection."""

    def __init__(self, stream: trio.SocketStream, most_head_bytes: int = READ_BYTES) -> None:
        self.stream: Final = stream
        self.http: Final = h11.Connection(h11.SERVER, max_incomplete_event_size=most_head_bytes)
        self.has_ended = False
        """Whether the client sends nothing more."""
        self._is_head = False  # whether the request is a HEAD, whose response has no body

    async def next_event(self) -> Any:
        """The next event of the client's request. h11.RemoteProtocolError if it is not HTTP."""
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                if isinstance(event, h11.Request):
                    self._is_head = event.method == b"HEAD"
                return event
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            data = await self.stream.receive_some(READ_BYTES)
            self.has_ended = not data
            self.http.receive_data(data)

    async def send(self, *events: h11.Event) -> None:
        """Send events in one piece. h11.LocalProtocolError if the client has gone."""
        await self.stream.send_all(b"".join(self.http.send(event) or b"" for event in events))

    async def respond(self, status: HTTPStatus, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole response."""
        length = ("Content-Length", str(len(body)))
        response = h11.Response(status_code=status.value, reason=status.phrase, headers=[*headers, length])
        await self.send(response, h11.Data(data=b"" if self._is_head else body), h11.EndOfMessage())
