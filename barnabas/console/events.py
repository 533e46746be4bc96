"""Server-sent events: a generator, run step by step in a thread, as a response that never ends by itself.

At most `STREAMS_MAX` streams are open. A comment is sent every `HEARTBEAT_S`, so that a client that is gone is noticed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from barnabas.console.failures import answer
from barnabas.console.values import to_json

if TYPE_CHECKING:
    from starlette.requests import Request

STREAMS_MAX = 64
FULL = "too many live views are open: close one and load this again"
HEARTBEAT_S = 15.0
_LINE_BREAKS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Event:
    """One event: `data` is sent as JSON, or as it is if it is a text (HTML)."""

    data: object
    name: str = "message"
    id: str = ""


class Streams:
    """The open streams of a console."""

    def __init__(self) -> None:
        self._threads: anyio.CapacityLimiter | None = None
        self.open = 0

    @property
    def is_full(self) -> bool:
        """Whether no further stream may be opened."""
        return self.open >= STREAMS_MAX

    async def body(self, request: Request, steps: Iterator[Event | None]) -> AsyncIterator[str]:
        """The text of the response: the events of `steps` until they or the client end."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(STREAMS_MAX)
        if self.is_full:  # others were opened since the request was let in
            yield encode(Event({"status": 503, "text": FULL}, "failure"))
            return
        self.open += 1
        sent_at = monotonic()
        try:
            yield ": open\n\n"
            while not await request.is_disconnected():
                ended, event = await to_thread.run_sync(_step, steps, limiter=self._threads)
                if ended:
                    return
                if event is not None:
                    sent_at = monotonic()
                    yield encode(event)
                elif monotonic() - sent_at > HEARTBEAT_S:
                    sent_at = monotonic()
                    yield ": alive\n\n"
        finally:
            self.open -= 1
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_close, steps, limiter=self._threads)


def encode(event: Event) -> str:
    """The lines of one event."""
    text = event.data if isinstance(event.data, str) else to_json(event.data).decode()
    lines = [f"event: {event.name}"] if event.name != "message" else []
    if event.id:
        lines.append(f"id: {event.id}")
    lines += [f"data: {line}" for line in _LINE_BREAKS.split(text)]
    return "\n".join(lines) + "\n\n"


def _step(steps: Iterator[Event | None]) -> tuple[bool, Event | None]:
    """Whether the steps have ended, and the next event. An error is the last event, named `failure`."""
    try:
        return False, next(steps)
    except StopIteration:
        return True, None
    except Exception as error:
        failed = answer(error)
        return False, Event({"status": int(failed.status), "text": failed.text}, "failure")


def _close(steps: Iterator[Event | None]) -> None:
    close = getattr(steps, "close", None)
    if close is not None:
        close()
