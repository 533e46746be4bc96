"""Envelope (58): a request that a broker forwards for its client, with the client's principal. KIP-590.

The embedded request has the bytes that the client has sent, header included, and is answered as if the client had sent
it here. Its response is embedded in the envelope's response, which has an error only if the envelope is invalid.
Source: Kafka 4.4 `EnvelopeUtils`, `RequestChannel.buildEnvelopeResponse`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.registry import CONTROLLER, ROUTES, Route, api
from barnabas.broker.apis.sliced_response import encode_in_steps
from barnabas.broker.config.keys.own import REQUEST_MAX_ELEMENTS
from barnabas.broker.context import ForwardedContext, RequestContext
from barnabas.broker.event_loop.guarded import answer_for
from barnabas.broker.event_loop.waiting import in_slices, outcome_of
from barnabas.coord.security.acls import Operation
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError, TooManyElements
from barnabas.wire.frame import parse_request_header
from barnabas.wire.messages.cluster import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.headers import ResponseHeader
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

FORWARDABLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""The served APIs whose requests brokers may forward, as in Kafka's `ApiKeys`."""
ADDRESS_BYTES: Final = (4, 16)


@api(EnvelopeRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
async def envelope(ctx: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    """Answer the embedded request; its response is long to encode if it has many elements."""
    principal = _principal(request.request_principal)
    if len(request.client_host_address) not in ADDRESS_BYTES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The address of the client is neither IPv4 nor IPv6.")
    peer_host = str(ip_address(bytes(request.client_host_address)))
    route, embedded, inner = _embedded(ctx, bytes(request.request_data), principal, peer_host)
    response: Message | None
    try:
        response = await outcome_of(route.handler(inner, embedded))
    except ProtocolError:
        raise
    except Exception as error:
        failure = answer_for(f"{route.name} v{route.api_version} in an envelope", error)
        response = route.error_response(embedded, failure)
        if response is None:
            raise failure from None
    if response is None:
        return EnvelopeResponse()
    header = ResponseHeader(correlation_id=inner.correlation_id).encode(int(route.response_is_flexible))
    chunks = (await in_slices(encode_in_steps(route, response))).chunks
    return EnvelopeResponse(response_data=header + b"".join(map(chunk_bytes, chunks)))


def _principal(data: bytes | None) -> KafkaPrincipal:
    """The principal of the client; KafkaError(PRINCIPAL_DESERIALIZATION_FAILURE) if the bytes are no principal."""
    try:
        return KafkaPrincipal.from_bytes(data)
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, f"Failed to deserialize client principal: {error}"
        ) from error


def _embedded(
    ctx: RequestContext, frame: bytes, principal: KafkaPrincipal, peer_host: str
) -> tuple[Route, Message, RequestContext]:
    """The route and the context of the embedded request; KafkaError(INVALID_REQUEST) if it may not be forwarded."""
    try:
        header, position = parse_request_header(frame)
        key = header.request_api_key
        if key not in FORWARDABLE:
            raise ProtocolError("Forwarded request api is not forwardable")
        route = ROUTES[CONTROLLER].find(key, header.request_api_version)
        max_elements = ctx.broker.config[REQUEST_MAX_ELEMENTS]
        embedded = route.request_codec.parse_within(memoryview(frame), position, max_elements)[0]
    except TooManyElements as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The forwarded request has {error.count} {error.name}") from error
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    inner = ForwardedContext(
        ctx.broker,
        ctx.connection,
        route.api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        ctx.now,
        principal,
        peer_host,
    )
    return route, embedded, inner
