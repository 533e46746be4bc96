"""Serves connections that have an authenticator (`broker.security.sasl_authenticator`).

The dispatcher asks `is_admitted` for each of its frames. Tokens without a header are answered here; the others are
requests with handlers in `apis/sasl.py`. `refuse` answers a failure: after a delay, during which nothing is read, and
then the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from struct import Struct
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import Route, Routes
from barnabas.broker.config.keys.own import REQUEST_MAX_ELEMENTS
from barnabas.broker.context import RequestContext
from barnabas.broker.event_loop.waiting import sleep_until, start
from barnabas.broker.security.sasl_authenticator import Admission, AuthenticationRefused, SaslAuthenticator
from barnabas.wire.errors import KafkaError
from barnabas.wire.frame import SIZE, parse_request_header

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.net.connection import Connection
    from barnabas.wire.schema import Message

Serve = Callable[[Route, "Message", RequestContext], None]
_KEY: Final = Struct(">hh")
_SERVED: Final = Admission.SERVED


def is_admitted(broker: Broker, routes: Routes, connection: Connection, frame: memoryview, serve: Serve) -> bool:
    """Whether a frame is a request that is served now; any other frame is answered here, or raises ProtocolError."""
    authenticator = connection.authenticator
    assert isinstance(authenticator, SaslAuthenticator)
    if authenticator.takes_tokens:
        _answer_token(broker, connection, authenticator, bytes(frame))
        return False
    if len(frame) < _KEY.size:
        return True  # the dispatcher reports the error
    api_key, api_version = _KEY.unpack_from(frame)
    admission = authenticator.admit(api_key, connection.now)
    if admission is _SERVED:
        return True
    if admission is Admission.EXPIRED:
        connection.is_closing = True
    elif admission is Admission.ILLEGAL:
        route = copy(routes.find(api_key, api_version))
        header, position = parse_request_header(frame)
        request, _ = route.request_codec.parse_within(frame, position, broker.config[REQUEST_MAX_ELEMENTS])
        response = route.error_response(request, authenticator.illegal(api_key))  # None: it has no place for an error
        route.handler = lambda ctx, _request: refuse(ctx.broker, ctx.connection, authenticator, response)
        route.send_before_close = True
        context = RequestContext(
            broker,
            connection,
            route.api_key,
            api_version,
            header.correlation_id,
            header.client_id,
            connection.now,
        )
        serve(route, request, context)
    return False


async def refuse(
    broker: Broker, connection: Connection, authenticator: SaslAuthenticator, outcome: Message | KafkaError | None
) -> Message | None:
    """The response to a failed authentication, after a delay; nothing is read meanwhile, nor later."""
    connection.is_closing = True
    await sleep_until(broker.loop.timers, broker.loop.now() + authenticator.failure_delay_s)
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _answer_token(broker: Broker, connection: Connection, authenticator: SaslAuthenticator, token: bytes) -> None:
    """Answer a token that came without a header (SaslHandshake v0)."""
    try:
        response = authenticator.token(token)
    except AuthenticationRefused:

        def close(_: object) -> None:
            connection.delayed = None
            connection.on_output(connection)

        task = start(refuse(broker, connection, authenticator, None), broker.loop.slices, close)
        assert task is not None
        task.send_before_close = True
        connection.delayed = task
        return
    connection.out.append(SIZE.pack(len(response)) + response)
    connection.out_bytes += SIZE.size + len(response)
