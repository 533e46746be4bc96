"""Parses and handles large requests of many elements in steps between the turns, and encodes their responses so.

A request may have `barnabas.request.max.elements` elements, of which each takes a few microseconds. The connection
waits as for any request that waits. A request that cannot be parsed closes it, as when it is parsed in its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.sliced_response import in_steps
from barnabas.broker.event_loop.guarded import answer_for
from barnabas.broker.event_loop.waiting import in_slices, outcome_of, pause
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.runtime import unknown_tags
from barnabas.wire.errors import ProtocolError, TooManyElements

if TYPE_CHECKING:
    from collections.abc import Generator

    from barnabas.broker.apis.registry import Route
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message


class LargeRequest:
    """One request that is served between the turns."""

    def __init__(self, route: Route, context: RequestContext, max_elements: int) -> None:
        self.request: Message = route.request_codec.message_class()
        """The request, which has no fields until it is parsed."""
        self._route = route
        self._context = context
        self._max_elements = max_elements
        self.has_effect = route.api_key is not ApiKey.FETCH

    async def serve(self, frame: memoryview, position: int) -> Message | None:
        """Serve the request of a frame, which is copied; `position` is the one after the client id.

        The response for an error is as long as the request: it is returned, and so encoded in steps too.
        """
        # Offsets are written into the batches of a Produce.
        copy = memoryview(bytearray(frame)) if self._route.api_key == ApiKey.PRODUCE else bytes(frame)
        del frame
        await pause()
        self.request = await in_slices(self._parse(copy, position))
        await pause()
        try:
            response: Message | None = await outcome_of(self._route.handler(self._context, self.request))
        except ProtocolError:
            raise
        except Exception as error:
            connection = self._context.connection
            what = f"{self._route.name} v{self._route.api_version} from {connection.peer_host}:{connection.peer_port}"
            failure = answer_for(what, error)
            failed = self._route.error_response(self.request, failure)
            if failed is None:
                raise failure from None
            return failed
        return response

    def _parse(self, frame: bytes | memoryview, position: int) -> Generator[None, None, Message]:
        route, client_id, budget = self._route, self._context.client_id, self._max_elements
        try:
            if route.request_is_flexible:
                position, budget = _after_tagged_fields(frame, position, budget)
            parsed: tuple[Message, int] = yield from in_steps(
                route.request_codec.parse_in_steps(frame, position, budget)
            )
            return parsed[0]
        except IndexError:
            raise ProtocolError("a request shorter than its header") from None
        except TooManyElements as error:
            raise _too_many(route, client_id, self._max_elements, error) from None
        except MemoryError:
            raise no_memory(route, client_id, len(frame)) from None


def parse_within(route: Route, frame: memoryview, position: int, max_elements: int, client_id: str | None) -> Message:
    """The request of a frame; at `position` the header's tagged fields begin, which count as elements too.

    ProtocolError if it has more elements, or cannot be decoded.
    """
    budget = max_elements
    try:
        if route.request_is_flexible:
            position, budget = _after_tagged_fields(frame, position, budget)
        return route.request_codec.parse_within(frame, position, budget)[0]
    except IndexError:
        raise ProtocolError("a request shorter than its header") from None
    except TooManyElements as error:
        raise _too_many(route, client_id, max_elements, error) from None


def _after_tagged_fields(frame: bytes | memoryview, position: int, budget: int) -> tuple[int, int]:
    """The position after the header's tagged fields, and the rest of the budget."""
    tags, position = unknown_tags(frame, position, len(frame), budget)
    return position, budget - len(tags)


def _too_many(route: Route, client_id: str | None, max_elements: int, error: TooManyElements) -> ProtocolError:
    return ProtocolError(
        f"{route.name} v{route.api_version} of the client {client_id!r} has {error.count} {error.name} and "
        f"{max_elements - error.budget} other elements: {max_elements} are allowed (barnabas.request.max.elements)"
    )


def no_memory(route: Route, client_id: str | None, size: int) -> ProtocolError:
    """The error of a request for whose elements there is no memory."""
    return ProtocolError(
        f"{route.name} v{route.api_version} of the client {client_id!r}, {size} bytes, does not fit into memory"
    )
