"""Counts the usage of clients' quotas by requests, returns throttle times to clients, and enforces them.

Responses are sent at once, of every version: throttle_time_ms tells the client, and its connection is not served
until then, for clients that do not wait by themselves (KIP-219). A throttle_time_ms that a handler has set counts
too: of fetches, of changes of the metadata, and of the controller's responses to forwarded requests. Source: Kafka 4.4
`RequestHandlerHelper`. KIP-13, KIP-124.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from barnabas.broker.context import MeteredContext, RequestContext
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.broker.security.mute import mute
from barnabas.broker.security.usage import Usage
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.fields import parse_versions
from barnabas.wire.messages.groups.share_groups import ShareFetchResponse
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import Route
    from barnabas.broker.security.client_quotas import ClientQuotas
    from barnabas.wire.schema import Message

EXEMPT: Final = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""Requests of other nodes, or before a client is known. An embedded request counts for its own client."""
FIELD: Final = "throttle_time_ms"
_INT32: Final = Struct(">i")


def metered(context: RequestContext, quotas: ClientQuotas, size: int, since: float) -> RequestContext:
    """The context with the usage of its request, which has `size` bytes; `since` is when its handling began."""
    if context.api_key in EXEMPT:
        return context
    metered_context = MeteredContext(
        context.broker,
        context.connection,
        context.api_key,
        context.api_version,
        context.correlation_id,
        context.client_id,
        context.now,
    )
    metered_context.usage = Usage(quotas, context.principal.name, context.client_id, size, since)
    return metered_context


def respond_metered(
    route: Route, context: RequestContext, response: Message, respond: Callable[[Message], None]
) -> None:
    """Send a response by `respond`, with the time for which its client has to wait, and mute its connection."""
    usage = context.usage
    assert usage is not None
    if usage.is_exempt:
        respond(response)
        return
    throttle_ms = throttle_of(usage, context.api_key, response)
    respond(_with_throttle_time(response, throttle_ms, route) if throttle_ms else response)
    usage.finish()
    if throttle_ms:
        _throttle(context, throttle_ms)


def _throttle(context: RequestContext, throttle_ms: int) -> None:
    if context.broker.meter is not None:
        context.broker.meter.throttle(context.api_key, throttle_ms)
    mute(context.connection, context.broker.loop, throttle_ms)


def unanswered(context: RequestContext) -> None:
    """A Produce with acks=0 is done: its bytes count, its time does not, as in Kafka."""
    usage = context.usage
    assert usage is not None
    throttle_ms = usage.produce_throttle_ms()
    if throttle_ms:
        _throttle(context, throttle_ms)


def throttle_of(usage: Usage, api_key: int, response: Message) -> int:
    """Record the usage of a request; return the throttle time of its client, ms."""
    throttle_ms = max(usage.request_throttle_ms(), getattr(response, FIELD, 0))
    if api_key == ApiKey.PRODUCE:
        return max(throttle_ms, usage.produce_throttle_ms())
    if isinstance(response, ShareFetchResponse):
        return max(throttle_ms, usage.share_fetch_throttle_ms(_size_of_records(response)))
    return throttle_ms


def _size_of_records(response: ShareFetchResponse) -> int:
    """The bytes of all records. They are sent in any case, since they have been acquired (Kafka sends none of them)."""
    return sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)


def _with_throttle_time(response: Message, throttle_ms: int, route: Route) -> Message:
    """The response with its throttle time; an encoded response begins with this field, if its version has it."""
    if not isinstance(response, EncodedResponse):
        if hasattr(response, FIELD):
            setattr(response, FIELD, throttle_ms)
        return response
    first = route.response_class.declared[0]
    if first.name != FIELD or route.api_version not in parse_versions(first.versions):
        return response
    encoded = EncodedResponse()
    encoded.chunks = [_INT32.pack(throttle_ms) + chunk_bytes(response.chunks[0])[4:], *response.chunks[1:]]
    return encoded
