"""Dispatches requests: decodes a frame, calls the API's handler, encodes its response into the connection's output.

A KafkaError of a handler is answered, a ProtocolError closes the connection (the transport does that). An OSError comes
from the disk: it is logged and answered with KAFKA_STORAGE_ERROR. Any other exception is a bug: it is logged with its
traceback and answered with UNKNOWN_SERVER_ERROR. A handler that waits is a coroutine (`broker.event_loop.waiting`): its
first part is run here, the rest is a task of its connection, which dispatches no further request until the task has
ended; an exception of it is answered in the same way.

Decoding, handling and encoding a request of thousands of elements take milliseconds each. So for a request with many
elements all three are done in steps between the turns (`large_requests`).
"""

from __future__ import annotations

import logging
from functools import partial
from struct import Struct
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.apis.large_requests import LargeRequest, no_memory, parse_within
from barnabas.broker.apis.registry import BROKER, ROUTES, Route, Routes
from barnabas.broker.apis.sliced_response import FEW_ELEMENTS, encode_in_steps
from barnabas.broker.config.keys.own import REQUEST_MAX_ELEMENTS
from barnabas.broker.context import RequestContext
from barnabas.broker.event_loop.guarded import answer_for, log_failure
from barnabas.broker.event_loop.waiting import Task
from barnabas.broker.net.connection import SMALL_SLICE_BYTES
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.runtime import unknown_tags
from barnabas.wire.errors import KafkaError, ProtocolError, TooManyElements
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.context import Broker
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.broker.net.connection import Connection
    from barnabas.wire.types import Chunk, Slice

logger = logging.getLogger("kafka.network.Processor")
request_logger = logging.getLogger("kafka.request.logger")

_API_VERSIONS = int(ApiKey.API_VERSIONS)  # a member of an enumeration is looked up by a function of Python

LARGE_REQUEST_BYTES = 8 * 1024
"""Only larger requests may have many elements."""

IN_MEMORY: Final = (bytes, memoryview, bytearray)
"""The chunks of a response that are no slices of files."""
JOINED_BYTES = 32 * 1024
"""Responses of several chunks in memory up to this size are copied into one: that costs less than to send a list."""

_REQUEST_HEADER = Struct(">hhih")  # api key, api version, correlation id, length of the client id
_RESPONSE_HEADER = Struct(">ii")  # size, correlation id
_FLEXIBLE_RESPONSE_HEADER = Struct(">iib")


class Dispatcher:
    """Serves the requests of all connections of one kind of listener."""

    __slots__ = ("_admits", "_broker", "_countdown", "_few_elements", "_max_elements", "_routes", "_small")

    def __init__(self, broker: Broker, listener: str = BROKER, routes: Routes | None = None) -> None:
        """`listener` is the kind of listener: `registry.BROKER`, `CONTROLLER` or `FORWARDING`.

        `routes` replaces the routes of that kind.
        """
        self._broker = broker
        self._routes = routes or ROUTES[listener]
        self._max_elements = broker.config[REQUEST_MAX_ELEMENTS]
        self._few_elements = min(FEW_ELEMENTS, self._max_elements)
        self._small = min(LARGE_REQUEST_BYTES, self._max_elements)  # a request of fewer bytes has fewer elements
        self._countdown = None if broker.meter is None else broker.meter.countdown
        self._admits: Callable[..., bool] | None = None  # imported when the first client authenticates

    def dispatch(self, connection: Connection, frame: memoryview) -> None:  # noqa: C901 - inlined
        """Serve one request; `frame` is valid only until this returns. ProtocolError when it cannot be decoded."""
        if connection.authenticator is not None and not (self._admits or self._import_admits())(
            self._broker, self._routes, connection, frame, _serve
        ):
            return
        broker = self._broker
        quotas = broker.client_quotas
        since = 0.0 if quotas is None else quotas.cpu_time()
        try:
            api_key, api_version, correlation_id, client_id_size = _REQUEST_HEADER.unpack_from(frame)
        except Exception:
            raise ProtocolError("a request shorter than its header") from None
        route = self._routes.known.get(api_key << 16 | api_version)
        if route is None:
            route, frame, client_id_size = _new_route(self._routes, frame)
        if (countdown := self._countdown) is not None:
            left = countdown[api_key] = countdown[api_key] - 1
            if not left:
                self._dispatch_timed(connection, frame, api_key)
                return
        position = 10
        client_id = None
        if client_id_size >= 0:
            position += client_id_size
            try:
                client_id = str(frame[10:position], "utf-8")
            except UnicodeDecodeError:
                raise ProtocolError("a client id that is not UTF-8") from None
        size = len(frame)
        if position >= size:
            _check_header(position, size, route)
        request = None
        if route.serve_usual is not None and quotas is None:
            request = route.serve_usual(broker, connection, frame, position, correlation_id)
            if type(request) is bytes:
                if request:
                    connection.out.append(request)
                    connection.out_bytes += len(request)
                if request_logger.isEnabledFor(logging.DEBUG):
                    _log_request(connection, client_id, route)
                return
        if broker.loop.gathered:
            broker.loop.write_gathered()  # any other request sees what was gathered before it
        if request is None:
            try:
                if size <= self._small and route.request_is_flexible and not frame[position]:
                    request = route.request_codec.parse(frame, position + 1)[0]  # nearly always
                else:
                    request = self._parse(route, frame, position, client_id)
            except IndexError:
                raise ProtocolError("a request shorter than its header") from None
            except MemoryError:
                raise no_memory(route, client_id, size) from None
        context = RequestContext(
            broker, connection, route.api_key, api_version, correlation_id, client_id, connection.now
        )
        if quotas is not None:
            from barnabas.broker.apis.metering import metered

            context = metered(context, quotas, size, since)
        if request_logger.isEnabledFor(logging.DEBUG):
            _log_request(connection, client_id, route)
        if request is None:
            large = LargeRequest(route, context, self._max_elements)
            _begin(large.serve(frame, position), route, large, context)
        else:
            _serve(route, request, context)

    def _dispatch_timed(self, connection: Connection, frame: memoryview, api_key: int) -> None:
        """Serve a request whose times are taken: it is dispatched again."""
        meter = self._broker.meter
        assert meter is not None
        began, weight = meter.begins(api_key)
        self.dispatch(connection, frame)
        meter.handled(api_key, began, weight, connection)

    def _parse(self, route: Route, frame: memoryview, position: int, client_id: str | None) -> Message | None:
        """The request of a frame; `position` is the one after the client id. None: it is parsed between the turns."""
        size = len(frame)
        if size <= self._small:
            if route.request_is_flexible:
                position = _after_tagged_fields(frame, position) if frame[position] else position + 1
            return route.request_codec.parse(frame, position)[0]
        if size > LARGE_REQUEST_BYTES:
            return self._parse_few(route, frame, position)
        return parse_within(route, frame, position, self._max_elements, client_id)

    def _parse_few(self, route: Route, frame: memoryview, position: int) -> Message | None:
        """The request of a large frame, None if it has many elements, or tagged fields in its header."""
        try:
            if route.request_is_flexible:
                if frame[position]:
                    return None
                position += 1
            return route.request_codec.parse_within(frame, position, self._few_elements)[0]
        except TooManyElements:
            return None

    def _import_admits(self) -> Callable[..., bool]:
        """Import the check of frames on connections that must authenticate, or whose session can expire."""
        from barnabas.broker.apis.security.authentication import is_admitted

        self._admits = is_admitted
        return is_admitted


def _log_request(connection: Connection, client_id: str | None, route: Route) -> None:
    peer = (connection.peer_host, connection.peer_port)
    request_logger.debug("%s:%d %s %s v%d", *peer, client_id, route.name, route.api_version)


def _serve(route: Route, request: Message, context: RequestContext) -> None:
    """Call the handler, and send its response unless it waits or has none."""
    try:
        outcome: Any = route.handler(context, request)
        if type(outcome) is CoroutineType:
            outcome = _begin(outcome, route, request, context)
        if outcome is None:
            if context.connection.delayed is None:
                _unanswered(context)
        elif context.usage is None:
            _respond(context.connection, route, context.correlation_id, outcome)
        else:
            _send(route, context, outcome)
    except KafkaError as error:
        _respond_with_error(route, request, context, error)
    except ProtocolError:
        raise
    except Exception as error:
        _respond_to_failure(route, request, context, error)


def _begin(
    coroutine: Waiting[Message | None], route: Route, request: Message | LargeRequest, context: RequestContext
) -> Message | None:
    """Run the first part of a coroutine, and return its response; or None, when the connection waits for it."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    task = Task(coroutine, context.broker.loop.slices, partial(_deliver, route, request, context))
    task.send_before_close = route.send_before_close or (type(request) is LargeRequest and request.has_effect)
    _wait(task, context)
    task.waits(waits_for)
    return None


def _wait(waiting: Task, context: RequestContext) -> None:
    """The connection serves nothing else until the request has its response."""
    if context.usage is not None:
        context.usage.pause()
    context.connection.delayed = waiting


def _deliver(route: Route, request: Message | LargeRequest, context: RequestContext, outcome: Any) -> None:
    """Send the outcome of a task; None: there is no response. The response of a task that has paused is long."""
    connection = context.connection
    waited = connection.delayed
    assert waited is not None  # a cancelled task does not deliver
    if waited.has_paused and isinstance(outcome, Message) and type(outcome) is not EncodedResponse:
        deliver = partial(_deliver, route, request, context)
        if connection.count_errors is not None and route.first_error(outcome):
            connection.count_errors(route, outcome)
        encoding = Task(encode_in_steps(route, outcome), context.broker.loop.slices, deliver)
        encoding.send_before_close = waited.send_before_close
        connection.delayed = encoding
        encoding.waits(None)
        return
    connection.delayed = None
    connection.last_active = connection.clock()  # idle time counts from the response
    if context.broker.meter is not None:
        context.broker.meter.waited(context.api_key, connection.last_active - context.now)
    if context.usage is not None:
        context.usage.resume()
    try:
        if isinstance(outcome, Exception):
            _respond_to_failure(route, request, context, outcome)
        elif outcome is None:
            _unanswered(context)
        elif context.usage is None:
            _respond(connection, route, context.correlation_id, outcome)
        else:
            _send(route, context, outcome)
    except Exception as error:  # it cannot be encoded, or the small parts of log files in it not be read
        _respond_to_failure(route, request, context, error)
    connection.on_output(connection)


def _respond_to_failure(
    route: Route, request: Message | LargeRequest, context: RequestContext, error: Exception
) -> None:
    """Log an exception unless it is a KafkaError, and send its error.

    A ProtocolError closes the connection, and so does an error that cannot be sent.
    """
    connection = context.connection
    what = f"{route.name} v{route.api_version} from {connection.peer_host}:{connection.peer_port}"
    if isinstance(error, ProtocolError):
        connection.refuse(error)
        return
    try:
        _respond_with_error(route, request, context, answer_for(what, error))
    except Exception as failure:
        log_failure(f"Answering {connection.peer_host}:{connection.peer_port}, which is closed,", failure)
        connection.is_closing = True


def _send(route: Route, context: RequestContext, response: Message) -> None:
    """Send a response, and throttle its client if it has used up a quota."""
    if context.usage is None:
        _respond(context.connection, route, context.correlation_id, response)
        return
    from barnabas.broker.apis.metering import respond_metered  # only a broker with quotas needs it

    respond_metered(
        route,
        context,
        response,
        lambda throttled: _respond(context.connection, route, context.correlation_id, throttled),
    )


def _unanswered(context: RequestContext) -> None:
    """A request without a response is done; throttle its client if it has used up a quota."""
    if context.usage is None:
        return
    from barnabas.broker.apis.metering import unanswered

    unanswered(context)


def _respond(connection: Connection, route: Route, correlation_id: int, response: Message | bytes) -> None:
    """Append one response to the connection's output; nothing of it if encoding fails."""
    if type(response) is bytes:
        connection.out.append(response)
        connection.out_bytes += len(response)
        return
    if type(response) is EncodedResponse:
        chunks = response.chunks
    else:
        chunks = route.response_codec.build(response)  # type: ignore[arg-type]
        if connection.count_errors is not None and route.first_error(response):
            connection.count_errors(route, response)
    if len(chunks) == 1:
        body: bytes = chunks[0]  # type: ignore[assignment]
        if route.response_is_flexible:
            frame = _FLEXIBLE_RESPONSE_HEADER.pack(5 + len(body), correlation_id, 0) + body
        else:
            frame = _RESPONSE_HEADER.pack(4 + len(body), correlation_id) + body
        connection.out.append(frame)
        connection.out_bytes += len(frame)
        return
    size = 4 + route.response_is_flexible
    is_joined = True
    for index, chunk in enumerate(chunks):
        size += len(chunk)
        if type(chunk) is not bytes and not isinstance(chunk, IN_MEMORY):
            chunks[index] = in_memory = _in_memory(chunk)  # it may fail, so nothing is in the output before
            is_joined = is_joined and isinstance(in_memory, IN_MEMORY)
    if route.response_is_flexible:
        header = _FLEXIBLE_RESPONSE_HEADER.pack(size, correlation_id, 0)
    else:
        header = _RESPONSE_HEADER.pack(size, correlation_id)
    if is_joined and size <= JOINED_BYTES:
        connection.out.append(b"".join((header, *chunks)))  # type: ignore[arg-type]
    else:
        connection.out.append(header)
        connection.out.extend(chunks)
    connection.out_bytes += size + 4


def _respond_with_error(
    route: Route, request: Message | LargeRequest, context: RequestContext, error: KafkaError
) -> None:
    if isinstance(request, LargeRequest):
        request = request.request  # parsed meanwhile
    response = route.error_response(request, error)
    if response is None:
        raise ProtocolError(f"{route.name} failed with {error.code.name}, which its response cannot carry")
    _send(route, context, response)


def _new_route(routes: Routes, frame: memoryview) -> tuple[Route, memoryview, int]:
    """A request's route that was not used before, its frame and the size of its client id. ProtocolError if not served.

    KIP-511: an ApiVersions request of an unknown version is answered in version 0, with UNSUPPORTED_VERSION.
    """
    api_key, api_version, correlation_id, client_id_size = _REQUEST_HEADER.unpack_from(frame)
    try:
        return routes.find(api_key, api_version), frame, client_id_size
    except ProtocolError:
        if api_key != _API_VERSIONS:
            raise
        head = _REQUEST_HEADER.pack(ApiKey.API_VERSIONS, 0, correlation_id, -1)
        return routes.find(ApiKey.API_VERSIONS, 0), memoryview(head), -1


def _in_memory(chunk: Slice) -> Chunk:
    """Read a small file slice into memory: that is cheaper than a system call of its own to send it.

    A slice that is not in the page cache is read where it is sent (`broker.net.page_cache`).
    """
    if len(chunk) >= SMALL_SLICE_BYTES and not chunk.is_in_memory:
        return chunk
    data = chunk.read_from_cache()
    return chunk if data is None else data


def _check_header(position: int, size: int, route: Route) -> None:
    """ProtocolError unless the header ends in the frame: its client id ends at `position`."""
    if position > size:
        raise ProtocolError("a client id that extends beyond its frame")
    if route.request_is_flexible:
        raise ProtocolError("a request shorter than its header")


def _after_tagged_fields(frame: memoryview, position: int) -> int:
    """The position after the header's tagged fields, if there are any."""
    try:
        return unknown_tags(frame, position, len(frame))[1]
    except IndexError:
        raise ProtocolError("a request shorter than its header") from None
